func.func @slices() {
  %x = stablehlo.constant dense<[[1, 2, 3, 4], [5, 6, 7, 8]]> : tensor<2x4xi32>
  %s = stablehlo.slice %x [0:2, 1:4:2] : (tensor<2x4xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %s, dense<[[2, 4], [6, 8]]> : tensor<2x2xi32>
  %far = stablehlo.constant dense<9> : tensor<i64>
  %before = stablehlo.constant dense<-3> : tensor<i64>
  %d = stablehlo.dynamic_slice %x, %before, %far, sizes = [1, 3] : (tensor<2x4xi32>, tensor<i64>, tensor<i64>) -> tensor<1x3xi32>
  check.expect_eq_const %d, dense<[[2, 3, 4]]> : tensor<1x3xi32>
  %u = stablehlo.dynamic_update_slice %x, %d, %far, %before : (tensor<2x4xi32>, tensor<1x3xi32>, tensor<i64>, tensor<i64>) -> tensor<2x4xi32>
  check.expect_eq_const %u, dense<[[1, 2, 3, 4], [2, 3, 4, 8]]> : tensor<2x4xi32>
  func.return
}

// -----

func.func @pads() {
  %x = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %nine = stablehlo.constant dense<9.0> : tensor<f32>
  %inner = stablehlo.pad %x, %nine, low = [1], high = [0], interior = [1] : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  check.expect_eq_const %inner, dense<[9.0, 1.0, 9.0, 2.0, 9.0, 3.0]> : tensor<6xf32>
  %cropped = stablehlo.pad %x, %zero, low = [-1], high = [2], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<4xf32>
  check.expect_eq_const %cropped, dense<[2.0, 3.0, 0.0, 0.0]> : tensor<4xf32>
  func.return
}
