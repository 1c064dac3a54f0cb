// What the bindings' own passes take apart: chlo ops, composites, ops of the past.
module @decomposed {
  func.func @main() {
    %x = stablehlo.constant dense<[-0.5, 0.25, 2.0]> : tensor<3xf64>
    %e = stablehlo.constant dense<[-0.52049987781304654, 0.27632639016823690, 0.99532226501895273]> : tensor<3xf64>
    %s = stablehlo.constant dense<[-0.52109530549374736, 0.25261231680816831, 3.6268604078470188]> : tensor<3xf64>
    %t = stablehlo.constant dense<[0.5, 1.25, 3.0]> : tensor<3xf64>
    %erf = chlo.erf %x : tensor<3xf64> -> tensor<3xf64>
    "check.expect_almost_eq"(%erf, %e) {tolerance = 1.0e-12 : f64} : (tensor<3xf64>, tensor<3xf64>) -> ()
    %sinh = chlo.sinh %x : tensor<3xf64> -> tensor<3xf64>
    "check.expect_almost_eq"(%sinh, %s) {tolerance = 1.0e-12 : f64} : (tensor<3xf64>, tensor<3xf64>) -> ()
    %shifted = stablehlo.composite "my.shift" %x {decomposition = @shift} : (tensor<3xf64>) -> tensor<3xf64>
    "check.expect_close"(%shifted, %t) {max_ulp_difference = 0 : ui64} : (tensor<3xf64>, tensor<3xf64>) -> ()
    return
  }
  func.func private @shift(%x: tensor<3xf64>) -> tensor<3xf64> {
    %one = stablehlo.constant dense<1.0> : tensor<3xf64>
    %0 = stablehlo.add %x, %one : tensor<3xf64>
    return %0 : tensor<3xf64>
  }
}
