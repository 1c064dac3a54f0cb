// Shapes and places given as values that are constants.

func.func @gathered_rows() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6], [7, 8, 9]]> : tensor<3x3xi32>
  %rows = stablehlo.constant dense<[2, 0]> : tensor<2xi64>
  %sizes = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
  %0 = "stablehlo.dynamic_gather"(%x, %rows, %sizes) {
    dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>
  } : (tensor<3x3xi32>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x2xi32>
  check.expect_eq_const %0, dense<[[7, 8], [1, 2]]> : tensor<2x2xi32>
  func.return
}

// -----

func.func @padded_convolution() {
  %x = stablehlo.constant dense<[[[1.0], [2.0], [3.0]]]> : tensor<1x3x1xf32>
  %k = stablehlo.constant dense<[[[1.0]], [[10.0]]]> : tensor<2x1x1xf32>
  %padding = stablehlo.constant dense<[[1, 0]]> : tensor<1x2xi32>
  %0 = "stablehlo.dynamic_conv"(%x, %k, %padding) {
    dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, batch_group_count = 1 : i64, feature_group_count = 1 : i64
  } : (tensor<1x3x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi32>) -> tensor<1x3x1xf32>
  check.expect_eq_const %0, dense<[[[10.0], [21.0], [32.0]]]> : tensor<1x3x1xf32>
  func.return
}

// -----

func.func @differences_backward() {
  %x = stablehlo.constant dense<[[1, 3, 7], [2, 5, 5]]> : tensor<2x3xi32>
  %after = stablehlo.constant dense<[10, 20]> : tensor<2xi32>
  %0:2 = chlo.scan(%x) inits (%after) dimension=1 attributes {is_reverse = true} {
  ^bb0(%here: tensor<2xi32>, %next: tensor<2xi32>):
    %1 = stablehlo.subtract %next, %here : tensor<2xi32>
    stablehlo.return %1, %here : tensor<2xi32>, tensor<2xi32>
  } : (tensor<2x3xi32>, tensor<2xi32>) -> (tensor<2x3xi32>, tensor<2xi32>)
  check.expect_eq_const %0#0, dense<[[2, 4, 3], [3, 0, 15]]> : tensor<2x3xi32>
  check.expect_eq_const %0#1, dense<[1, 2]> : tensor<2xi32>
  func.return
}
