func.func @factor_and_solve() {
  %a = stablehlo.constant dense<[[[4.0, 2.0], [2.0, 10.0]], [[9.0, 3.0], [3.0, 2.0]]]> : tensor<2x2x2xf64>
  %zero = stablehlo.constant dense<0.0> : tensor<2x2x2xf64>
  %l = stablehlo.cholesky %a, lower = true : tensor<2x2x2xf64>
  %row = stablehlo.iota dim = 1 : tensor<2x2x2xi32>
  %col = stablehlo.iota dim = 2 : tensor<2x2x2xi32>
  %keep = stablehlo.compare GE, %row, %col : (tensor<2x2x2xi32>, tensor<2x2x2xi32>) -> tensor<2x2x2xi1>
  %lower = stablehlo.select %keep, %l, %zero : tensor<2x2x2xi1>, tensor<2x2x2xf64>
  check.expect_almost_eq_const %lower, dense<[[[2.0, 0.0], [1.0, 3.0]], [[3.0, 0.0], [1.0, 1.0]]]> : tensor<2x2x2xf64> {tolerance = 0.00000000001 : f64}
  %b = stablehlo.constant dense<[[[2.0], [4.0]], [[3.0], [0.0]]]> : tensor<2x2x1xf64>
  %x = "stablehlo.triangular_solve"(%lower, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<2x2x2xf64>, tensor<2x2x1xf64>) -> tensor<2x2x1xf64>
  check.expect_almost_eq_const %x, dense<[[[1.0], [1.0]], [[1.0], [-1.0]]]> : tensor<2x2x1xf64> {tolerance = 0.00000000001 : f64}
  %y = "stablehlo.triangular_solve"(%lower, %b) {left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<2x2x2xf64>, tensor<2x2x1xf64>) -> tensor<2x2x1xf64>
  check.expect_almost_eq_const %y, dense<[[[-2.0], [4.0]], [[3.0], [0.0]]]> : tensor<2x2x1xf64> {tolerance = 0.00000000001 : f64}
  func.return
}

// -----

func.func @transforms() {
  %x = stablehlo.constant dense<[[1.0, 0.0, -1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]> : tensor<2x4xf64>
  %f = stablehlo.fft %x, type = RFFT, length = [4] : (tensor<2x4xf64>) -> tensor<2x3xcomplex<f64>>
  check.expect_almost_eq_const %f, dense<[[(0.0, 0.0), (2.0, 0.0), (0.0, 0.0)], [(4.0, 0.0), (0.0, 0.0), (0.0, 0.0)]]> : tensor<2x3xcomplex<f64>>
  %back = stablehlo.fft %f, type = IRFFT, length = [4] : (tensor<2x3xcomplex<f64>>) -> tensor<2x4xf64>
  check.expect_almost_eq %back, %x : tensor<2x4xf64>
  func.return
}
