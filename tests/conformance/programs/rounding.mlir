func.func @to_integers() {
  %x = stablehlo.constant dense<[-2.5, -0.5, 0.5, 1.5, 2.5, -1.2, 4503599627370497.0, 0x7FF0000000000000]> : tensor<8xf64>
  %floor = stablehlo.floor %x : tensor<8xf64>
  check.expect_eq_const %floor, dense<[-3.0, -1.0, 0.0, 1.0, 2.0, -2.0, 4503599627370497.0, 0x7FF0000000000000]> : tensor<8xf64>
  %ceil = stablehlo.ceil %x : tensor<8xf64>
  check.expect_eq_const %ceil, dense<[-2.0, -0.0, 1.0, 2.0, 3.0, -1.0, 4503599627370497.0, 0x7FF0000000000000]> : tensor<8xf64>
  %even = stablehlo.round_nearest_even %x : tensor<8xf64>
  check.expect_eq_const %even, dense<[-2.0, -0.0, 0.0, 2.0, 2.0, -1.0, 4503599627370497.0, 0x7FF0000000000000]> : tensor<8xf64>
  %away = stablehlo.round_nearest_afz %x : tensor<8xf64>
  check.expect_eq_const %away, dense<[-3.0, -1.0, 1.0, 2.0, 3.0, -1.0, 4503599627370497.0, 0x7FF0000000000000]> : tensor<8xf64>
  %sign = stablehlo.sign %x : tensor<8xf64>
  check.expect_eq_const %sign, dense<[-1.0, -1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 1.0]> : tensor<8xf64>
  func.return
}

// -----

func.func @conversions() {
  %x = stablehlo.constant dense<[1.9, -1.9, 3.0e+10, 0x7F800000, 0.0]> : tensor<5xf32>
  %i = stablehlo.convert %x : (tensor<5xf32>) -> tensor<5xi32>
  check.expect_eq_const %i, dense<[1, -1, 2147483647, 2147483647, 0]> : tensor<5xi32>
  %p = stablehlo.convert %x : (tensor<5xf32>) -> tensor<5xi1>
  check.expect_eq_const %p, dense<[true, true, true, true, false]> : tensor<5xi1>
  %z = stablehlo.convert %p : (tensor<5xi1>) -> tensor<5xcomplex<f64>>
  check.expect_eq_const %z, dense<[(1.0, 0.0), (1.0, 0.0), (1.0, 0.0), (1.0, 0.0), (0.0, 0.0)]> : tensor<5xcomplex<f64>>
  func.return
}
