module @dot_general {
  func.func public @main() -> tensor<2x2x2xf32> {
    %0:2 = call @inputs() : () -> (tensor<2x2x3xf32>, tensor<3x2x2xf32>)
    %1 = call @expected() : () -> tensor<2x2x2xf32>
    %2 = stablehlo.dot_general %0#0, %0#1, batching_dims = [0] x [1], contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x2x3xf32>, tensor<3x2x2xf32>) -> tensor<2x2x2xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> ()
    return %2 : tensor<2x2x2xf32>
  }
  func.func private @inputs() -> (tensor<2x2x3xf32>, tensor<3x2x2xf32>) {
    %0 = stablehlo.constant dense<[[[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]], [[-1.0, 0.5, 2.0], [4.0, 0.0, 1.0]]]> : tensor<2x2x3xf32>
    %1 = stablehlo.constant dense<[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]], [[9.0, 10.0], [11.0, 12.0]]]> : tensor<3x2x2xf32>
    return %0, %1 : tensor<2x2x3xf32>, tensor<3x2x2xf32>
  }
  func.func private @expected() -> tensor<2x2x2xf32> {
    %0 = stablehlo.constant dense<[[[38.0, 44.0], [5.0, 6.0]], [[22.5, 24.0], [23.0, 28.0]]]> : tensor<2x2x2xf32>
    return %0 : tensor<2x2x2xf32>
  }
}

// -----

func.func @integers() {
  %x = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>
  %y = stablehlo.constant dense<[[5, 6], [7, 8]]> : tensor<2x2xi64>
  %z = stablehlo.dot_general %x, %y, contracting_dims = [0] x [1] : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi64>
  check.expect_eq_const %z, dense<[[23, 31], [34, 46]]> : tensor<2x2xi64>
  %outer = stablehlo.dot_general %x, %y, contracting_dims = [] x [] : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2x2x2xi64>
  %corner = stablehlo.slice %outer [1:2, 0:1, 1:2, 0:2] : (tensor<2x2x2x2xi64>) -> tensor<1x1x1x2xi64>
  check.expect_eq_const %corner, dense<[[[[21, 24]]]]> : tensor<1x1x1x2xi64>
  func.return
}
