func.func @over_nothing() {
  %x = stablehlo.constant dense<> : tensor<2x0xf64>
  %zero = stablehlo.constant dense<0.0> : tensor<f64>
  %three = stablehlo.constant dense<3.0> : tensor<f64>
  %low = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x0xf64>, tensor<f64>) -> tensor<2xf64>
  check.expect_eq_const %sum, dense<0.0> : tensor<2xf64>
  %product = stablehlo.reduce(%x init: %three) applies stablehlo.multiply across dimensions = [1] : (tensor<2x0xf64>, tensor<f64>) -> tensor<2xf64>
  check.expect_eq_const %product, dense<3.0> : tensor<2xf64>
  %max = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<2x0xf64>, tensor<f64>) -> tensor<2xf64>
  check.expect_eq_const %max, dense<0xFFF0000000000000> : tensor<2xf64>
  func.return
}

// -----

func.func @bodies() {
  %x = stablehlo.constant dense<[[1, 5, 2], [4, -1, 6]]> : tensor<2x3xi32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %sum = stablehlo.reduce(%x init: %two) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<i32>
  check.expect_eq_const %sum, dense<19> : tensor<i32>
  %min = "stablehlo.reduce"(%x, %two) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %0 = stablehlo.minimum %b, %a : tensor<i32>
      stablehlo.return %0 : tensor<i32>
  }) {dimensions = array<i64: 1>} : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
  check.expect_eq_const %min, dense<[1, -1]> : tensor<2xi32>
  %p = stablehlo.constant dense<[[true, false], [true, true]]> : tensor<2x2xi1>
  %true = stablehlo.constant dense<true> : tensor<i1>
  %all = stablehlo.reduce(%p init: %true) applies stablehlo.and across dimensions = [1] : (tensor<2x2xi1>, tensor<i1>) -> tensor<2xi1>
  check.expect_eq_const %all, dense<[false, true]> : tensor<2xi1>
  func.return
}

// -----

func.func @argmax() {
  %x = stablehlo.constant dense<[[1.0, 3.0, 3.0], [2.0, 0x7FC00000, 9.0], [0xFF800000, 0xFF800000, 0xFF800000]]> : tensor<3x3xf32>
  %i = stablehlo.iota dim = 1 : tensor<3x3xi64>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %r:2 = stablehlo.reduce(%x init: %low), (%i init: %zero) across dimensions = [1] : (tensor<3x3xf32>, tensor<3x3xi64>, tensor<f32>, tensor<i64>) -> (tensor<3xf32>, tensor<3xi64>)
   reducer(%v: tensor<f32>, %w: tensor<f32>) (%j: tensor<i64>, %k: tensor<i64>) {
    %gt = stablehlo.compare GT, %v, %w, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %nan = stablehlo.compare NE, %v, %v, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %pick = stablehlo.or %gt, %nan : tensor<i1>
    %eq = stablehlo.compare EQ, %v, %w, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %lt = stablehlo.compare LT, %j, %k, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %tie = stablehlo.and %eq, %lt : tensor<i1>
    %first = stablehlo.or %pick, %tie : tensor<i1>
    %value = stablehlo.select %pick, %v, %w : tensor<i1>, tensor<f32>
    %index = stablehlo.select %first, %j, %k : tensor<i1>, tensor<i64>
    stablehlo.return %value, %index : tensor<f32>, tensor<i64>
  }
  check.expect_eq_const %r#0, dense<[3.0, 0x7FC00000, 0xFF800000]> : tensor<3xf32>
  check.expect_eq_const %r#1, dense<[1, 1, 0]> : tensor<3xi64>
  func.return
}
