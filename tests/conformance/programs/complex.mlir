func.func @parts() {
  %re = stablehlo.constant dense<[1.0, -0.0, 0x7FF0000000000000, -2.5]> : tensor<4xf64>
  %im = stablehlo.constant dense<[2.0, 3.0, 0xFFF0000000000000, 0x7FF8000000000000]> : tensor<4xf64>
  %z = stablehlo.complex %re, %im : tensor<4xcomplex<f64>>
  %back = stablehlo.real %z : (tensor<4xcomplex<f64>>) -> tensor<4xf64>
  check.expect_eq %back, %re : tensor<4xf64>
  %side = stablehlo.imag %z : (tensor<4xcomplex<f64>>) -> tensor<4xf64>
  check.expect_eq %side, %im : tensor<4xf64>
  func.return
}

// -----

func.func @arithmetic() {
  %z = stablehlo.constant dense<[(1.0, 2.0), (-0.5, 0.25)]> : tensor<2xcomplex<f32>>
  %w = stablehlo.constant dense<[(3.0, -1.0), (2.0, 0.0)]> : tensor<2xcomplex<f32>>
  %product = stablehlo.multiply %z, %w : tensor<2xcomplex<f32>>
  check.expect_eq_const %product, dense<[(5.0, 5.0), (-1.0, 0.5)]> : tensor<2xcomplex<f32>>
  %im = stablehlo.imag %product : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  check.expect_eq_const %im, dense<[5.0, 0.5]> : tensor<2xf32>
  %size = stablehlo.abs %z : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  check.expect_almost_eq_const %size, dense<[2.236068, 0.559017]> : tensor<2xf32>
  %ne = stablehlo.compare NE, %z, %w, FLOAT : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> tensor<2xi1>
  check.expect_eq_const %ne, dense<true> : tensor<2xi1>
  func.return
}
