module @calls {
  func.func public @main() -> tensor<3xi64> {
    %x = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi64>
    %y = call @twice(%x) : (tensor<3xi64>) -> tensor<3xi64>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %chosen = "stablehlo.case"(%one) ({
      stablehlo.return %x : tensor<3xi64>
    }, {
      %0 = stablehlo.multiply %y, %y : tensor<3xi64>
      stablehlo.return %0 : tensor<3xi64>
    }, {
      stablehlo.return %y : tensor<3xi64>
    }) : (tensor<i32>) -> tensor<3xi64>
    %far = stablehlo.constant dense<-7> : tensor<i32>
    %last = "stablehlo.case"(%far) ({
      stablehlo.return %x : tensor<3xi64>
    }, {
      stablehlo.return %y : tensor<3xi64>
    }) : (tensor<i32>) -> tensor<3xi64>
    %no = stablehlo.constant dense<false> : tensor<i1>
    %other = "stablehlo.if"(%no) ({
      stablehlo.return %x : tensor<3xi64>
    }, {
      stablehlo.return %chosen : tensor<3xi64>
    }) : (tensor<i1>) -> tensor<3xi64>
    %a = stablehlo.constant dense<[16, 64, 144]> : tensor<3xi64>
    %b = stablehlo.constant dense<[4, 8, 12]> : tensor<3xi64>
    stablehlo.custom_call @check.expect_eq(%other, %a) {has_side_effect = true} : (tensor<3xi64>, tensor<3xi64>) -> ()
    stablehlo.custom_call @check.expect_eq(%last, %b) {has_side_effect = true} : (tensor<3xi64>, tensor<3xi64>) -> ()
    return %other : tensor<3xi64>
  }
  func.func private @twice(%x: tensor<3xi64>) -> tensor<3xi64> {
    %0 = call @double(%x) : (tensor<3xi64>) -> tensor<3xi64>
    %1 = call @double(%0) : (tensor<3xi64>) -> tensor<3xi64>
    return %1 : tensor<3xi64>
  }
  func.func private @double(%x: tensor<3xi64>) -> tensor<3xi64> {
    %0 = stablehlo.add %x, %x : tensor<3xi64>
    return %0 : tensor<3xi64>
  }
}
