"""The twin of a module: the same operations on floats of another width."""

from __future__ import annotations

from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.twin import twin
from tests.libraries import module_or_skip

module_or_skip("jaxlib")

LOOP = """module {
  func.func @main(%x: tensor<2xf32>, %n: tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, tensor<2xf32> cond {
      %c = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %tenth = stablehlo.constant dense<0.1> : tensor<2xf32>
      %j = stablehlo.subtract %i, %one : tensor<i32>
      %z = func.call @f(%y, %tenth) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      stablehlo.return %j, %z : tensor<i32>, tensor<2xf32>
    }
    %bits = stablehlo.bitcast_convert %0#1 : (tensor<2xf32>) -> tensor<2xi32>
    return %0#1, %bits : tensor<2xf32>, tensor<2xi32>
  }
  func.func private @f(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %a, %b : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""


def test_loops_calls_and_constants_are_widened_and_bits_are_not() -> None:
    made = twin(LOOP)
    assert isinstance(made.code, str)
    assert [t.dtype for t in (*made.arguments, *made.results)] == [DType.F64, DType.I32, DType.F64, DType.I32]
    # the constant keeps the value that it had, which is not that of 0.1 in F64
    assert "0.10000000149011612" in made.code
    assert "stablehlo.convert" in made.code
    assert "bitcast_convert %" in made.code
    assert made.has("bitcast_convert", "f32")
    assert not made.has("add", "f32")


def test_a_narrow_twin_takes_f64_alone() -> None:
    text = (
        "func.func @main(%a: tensor<complex<f64>>, %b: tensor<2xf64>, %c: tensor<bf16>) -> tensor<2xf64>"
        " { return %b : tensor<2xf64> }"
    )
    assert [t.dtype for t in twin(text, narrow=True).arguments] == [DType.C32, DType.F32, DType.BF16]
    assert [t.dtype for t in twin(text).arguments] == [DType.C64, DType.F64, DType.F64]
