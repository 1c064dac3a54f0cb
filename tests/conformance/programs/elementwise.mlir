// Functions of f64 numbers, special values among them.
module @elementwise {
  func.func public @main() -> tensor<6xf64> {
    %0 = call @inputs() : () -> tensor<6xf64>
    %1 = call @expected() : () -> tensor<6xf64>
    %2 = stablehlo.multiply %0, %0 : tensor<6xf64>
    %3 = stablehlo.sqrt %2 : tensor<6xf64>
    %4 = stablehlo.subtract %3, %0 : tensor<6xf64>
    stablehlo.custom_call @check.expect_close(%4, %1) {has_side_effect = true} : (tensor<6xf64>, tensor<6xf64>) -> ()
    return %4 : tensor<6xf64>
  }
  func.func private @inputs() -> (tensor<6xf64> {mhlo.layout_mode = "default"}) {
    %0 = stablehlo.constant dense<[-1.5, 2.25, 0.0, 0x7FF8000000000000, -3.0, 0.1]> : tensor<6xf64>
    return %0 : tensor<6xf64>
  }
  func.func private @expected() -> (tensor<6xf64> {mhlo.layout_mode = "default"}) {
    %0 = stablehlo.constant dense<[3.0, 0.0, 0.0, 0x7FF8000000000000, 6.0, 0.0]> : tensor<6xf64>
    return %0 : tensor<6xf64>
  }
}

// -----

func.func @transcendental() {
  %x = stablehlo.constant dense<[0.0, 1.0, -2.0]> : tensor<3xf32>
  %exp = stablehlo.exponential %x : tensor<3xf32>
  check.expect_almost_eq_const %exp, dense<[1.0, 2.718281828, 0.135335283]> : tensor<3xf32> {tolerance = 0.00001 : f64}
  %tanh = stablehlo.tanh %x : tensor<3xf32>
  check.expect_almost_eq_const %tanh, dense<[0.0, 0.761594156, -0.964027580]> : tensor<3xf32>
  %logistic = stablehlo.logistic %x : tensor<3xf32>
  check.expect_almost_eq_const %logistic, dense<[0.5, 0.731058579, 0.119202922]> : tensor<3xf32>
  %tan = stablehlo.tan %x : tensor<3xf32>
  check.expect_almost_eq_const %tan, dense<[0.0, 1.557407725, 2.185039863]> : tensor<3xf32>
  %atan2 = stablehlo.atan2 %x, %exp : tensor<3xf32>
  check.expect_almost_eq_const %atan2, dense<[0.0, 0.352513421, -1.503230000]> : tensor<3xf32>
  func.return
}
