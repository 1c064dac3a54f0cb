func.func @division() {
  %x = stablehlo.constant dense<[17, -17, 5, -5, -2147483648]> : tensor<5xi32>
  %y = stablehlo.constant dense<[5, 5, 0, -3, -1]> : tensor<5xi32>
  %quotient = stablehlo.divide %x, %y : tensor<5xi32>
  check.expect_eq_const %quotient, dense<[3, -3, -1, 1, -2147483648]> : tensor<5xi32>
  %rest = stablehlo.remainder %x, %y : tensor<5xi32>
  check.expect_eq_const %rest, dense<[2, -2, 5, -2, 0]> : tensor<5xi32>
  func.return
}

// -----

func.func @bits() {
  %x = stablehlo.constant dense<[12, -1, -8, 9223372036854775807, -9223372036854775808]> : tensor<5xi64>
  %y = stablehlo.constant dense<[10, 255, 5, 1, 1]> : tensor<5xi64>
  %and = stablehlo.and %x, %y : tensor<5xi64>
  check.expect_eq_const %and, dense<[8, 255, 0, 1, 0]> : tensor<5xi64>
  %or = stablehlo.or %x, %y : tensor<5xi64>
  check.expect_eq_const %or, dense<[14, -1, -3, 9223372036854775807, -9223372036854775807]> : tensor<5xi64>
  %xor = stablehlo.xor %x, %y : tensor<5xi64>
  check.expect_eq_const %xor, dense<[6, -256, -3, 9223372036854775806, -9223372036854775807]> : tensor<5xi64>
  %not = stablehlo.not %x : tensor<5xi64>
  check.expect_eq_const %not, dense<[-13, 0, 7, -9223372036854775808, 9223372036854775807]> : tensor<5xi64>
  %count = stablehlo.popcnt %x : tensor<5xi64>
  check.expect_eq_const %count, dense<[2, 64, 61, 63, 1]> : tensor<5xi64>
  func.return
}

// -----

func.func @shifts() {
  %x = stablehlo.constant dense<[1, -1, -7, -2147483648, 6, 6, -6]> : tensor<7xi32>
  %by = stablehlo.constant dense<[31, 4, 1, 31, 0, 32, -1]> : tensor<7xi32>
  %left = stablehlo.shift_left %x, %by : tensor<7xi32>
  check.expect_eq_const %left, dense<[-2147483648, -16, -14, 0, 6, 0, 0]> : tensor<7xi32>
  %arithmetic = stablehlo.shift_right_arithmetic %x, %by : tensor<7xi32>
  check.expect_eq_const %arithmetic, dense<[0, -1, -4, -1, 6, 0, -1]> : tensor<7xi32>
  %logical = stablehlo.shift_right_logical %x, %by : tensor<7xi32>
  check.expect_eq_const %logical, dense<[0, 268435455, 2147483644, 1, 6, 0, 0]> : tensor<7xi32>
  func.return
}
