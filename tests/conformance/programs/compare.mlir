func.func @nan_is_not_equal_to_itself() {
  %x = stablehlo.constant dense<[1.0, 0x7FF8000000000000, -0.0, 0x7FF0000000000000]> : tensor<4xf64>
  %y = stablehlo.constant dense<[2.0, 0x7FF8000000000000, 0.0, 0x7FF0000000000000]> : tensor<4xf64>
  %eq = stablehlo.compare EQ, %x, %y, FLOAT : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xi1>
  check.expect_eq_const %eq, dense<[false, false, true, true]> : tensor<4xi1>
  %ne = stablehlo.compare NE, %x, %y, FLOAT : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xi1>
  check.expect_eq_const %ne, dense<[true, true, false, false]> : tensor<4xi1>
  %lt = stablehlo.compare LT, %x, %y : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xi1>
  check.expect_eq_const %lt, dense<[true, false, false, false]> : tensor<4xi1>
  %finite = stablehlo.is_finite %x : (tensor<4xf64>) -> tensor<4xi1>
  check.expect_eq_const %finite, dense<[true, false, true, false]> : tensor<4xi1>
  func.return
}

// -----

func.func @truth_values() {
  %p = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
  %q = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
  %and = stablehlo.and %p, %q : tensor<4xi1>
  check.expect_eq_const %and, dense<[true, false, false, false]> : tensor<4xi1>
  %or = stablehlo.or %p, %q : tensor<4xi1>
  check.expect_eq_const %or, dense<[true, true, true, false]> : tensor<4xi1>
  %xor = stablehlo.xor %p, %q : tensor<4xi1>
  check.expect_eq_const %xor, dense<[false, true, true, false]> : tensor<4xi1>
  %not = stablehlo.not %p : tensor<4xi1>
  check.expect_eq_const %not, dense<[false, false, true, true]> : tensor<4xi1>
  %gt = stablehlo.compare GT, %p, %q, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  check.expect_eq_const %gt, dense<[false, true, false, false]> : tensor<4xi1>
  func.return
}

// -----

func.func @select_and_clamp() {
  %x = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi64>
  %y = stablehlo.constant dense<[7, 8, 9]> : tensor<3xi64>
  %p = stablehlo.constant dense<false> : tensor<i1>
  %scalar = stablehlo.select %p, %x, %y : tensor<i1>, tensor<3xi64>
  check.expect_eq %scalar, %y : tensor<3xi64>
  %low = stablehlo.constant dense<2> : tensor<i64>
  %high = stablehlo.constant dense<[5, 5, 1]> : tensor<3xi64>
  %clamp = stablehlo.clamp %low, %x, %high : (tensor<i64>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  check.expect_eq_const %clamp, dense<[2, 2, 1]> : tensor<3xi64>
  func.return
}
