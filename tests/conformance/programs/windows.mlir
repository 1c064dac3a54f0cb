func.func @running_sums() {
  %x = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %sums = "stablehlo.reduce_window"(%x, %zero) ({
    ^bb0(%a: tensor<i64>, %b: tensor<i64>):
      %0 = stablehlo.add %a, %b : tensor<i64>
      stablehlo.return %0 : tensor<i64>
  }) {window_dimensions = array<i64: 4>, padding = dense<[[3, 0]]> : tensor<1x2xi64>} : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
  check.expect_eq_const %sums, dense<[1, 3, 6, 10]> : tensor<4xi64>
  func.return
}

// -----

func.func @pooling() {
  %x = stablehlo.constant dense<[[1.0, 5.0, 2.0], [4.0, 0x7FC00000, -3.0], [-1.0, -2.0, -4.0]]> : tensor<3x3xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %max = "stablehlo.reduce_window"(%x, %low) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %0 = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %0 : tensor<f32>
  }) {window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 1, 2>, window_dilations = array<i64: 2, 1>} : (tensor<3x3xf32>, tensor<f32>) -> tensor<1x2xf32>
  check.expect_eq_const %max, dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  func.return
}

// -----

func.func @convolution() {
  %x = stablehlo.constant dense<[[[1.0], [2.0], [3.0], [4.0]]]> : tensor<1x4x1xf64>
  %k = stablehlo.constant dense<[[[1.0, 0.0]], [[10.0, 1.0]]]> : tensor<2x1x2xf64>
  %y = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, f, 0], window = {stride = [1], pad = [[1, 0]], rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x1xf64>, tensor<2x1x2xf64>) -> tensor<1x2x3xf64>
  check.expect_eq_const %y, dense<[[[20.0, 31.0, 42.0], [2.0, 3.0, 4.0]]]> : tensor<1x2x3xf64>
  func.return
}
