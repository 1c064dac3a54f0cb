// StableHLO keeps the row-major sequence of elements.
func.func @row_major() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %tall = stablehlo.reshape %x : (tensor<2x3xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %tall, dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
  %flat = stablehlo.reshape %x : (tensor<2x3xi32>) -> tensor<6xi32>
  check.expect_eq_const %flat, dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi32>
  %unit = stablehlo.reshape %x : (tensor<2x3xi32>) -> tensor<2x1x3x1xi32>
  check.expect_eq_const %unit, dense<[[[[1], [2], [3]]], [[[4], [5], [6]]]]> : tensor<2x1x3x1xi32>
  func.return
}

// -----

func.func @moves() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %t, dense<[[1, 4], [2, 5], [3, 6]]> : tensor<3x2xi32>
  %b = stablehlo.broadcast_in_dim %x, dims = [2, 0] : (tensor<2x3xi32>) -> tensor<3x2x2xi32>
  check.expect_eq_const %b, dense<[[[1, 4], [1, 4]], [[2, 5], [2, 5]], [[3, 6], [3, 6]]]> : tensor<3x2x2xi32>
  %r = stablehlo.reverse %x, dims = [1] : tensor<2x3xi32>
  check.expect_eq_const %r, dense<[[3, 2, 1], [6, 5, 4]]> : tensor<2x3xi32>
  %c = stablehlo.concatenate %x, %r, dim = 0 : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<4x3xi32>
  check.expect_eq_const %c, dense<[[1, 2, 3], [4, 5, 6], [3, 2, 1], [6, 5, 4]]> : tensor<4x3xi32>
  %i = stablehlo.iota dim = 1 : tensor<2x3xi32>
  check.expect_eq_const %i, dense<[[0, 1, 2], [0, 1, 2]]> : tensor<2x3xi32>
  func.return
}
