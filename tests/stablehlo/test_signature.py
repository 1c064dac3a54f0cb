"""What is read of a module that is run as it is: arguments, results, operations, what inputs must be."""

from __future__ import annotations

import pytest

from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, LoweringError, UnsupportedDType, UnsupportedOp
from tenferro_ref.ops import TensorType
from tenferro_ref.stablehlo.loader import load, signature
from tests.libraries import module_or_skip

module_or_skip("jaxlib")

SIMPLE = "func.func @{name}(%a: tensor<2x1xf32>) -> tensor<2x1xf32> {{ return %a : tensor<2x1xf32> }}"


def test_a_module_with_main_is_kept_as_it_is() -> None:
    text = SIMPLE.format(name="main") + " // a comment"
    source = signature(text)
    assert source.code == text
    assert source.arguments == source.results == (TensorType(DType.F32, (2, 1)),)


SHARDED = """module {{
  sdy.mesh @mesh = <["i"=1]>
  func.func @main(%a: tensor<2x1xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"i"}}, {{}}]>, jax.buffer_donor = true}})
      -> (tensor<2x1xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"i"}}, {{}}]>}}) {{
    %0 = stablehlo.negate %a {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{}}, {{}}]>]>}} : tensor<2x1xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{{"i"}}, {{}}]> : tensor<2x1xf32>
    {more}
    return %1 : tensor<2x1xf32>
  }}
}}"""


def test_what_says_only_where_arrays_lie_is_left_out() -> None:
    source = signature(SHARDED.format(more=""))
    assert isinstance(source.code, str)
    assert ("sdy" in source.code, "buffer_donor" in source.code) == (False, True)
    assert source.ops == {("negate", "f32"), ("func.return", "f32")}
    assert load(source.code).program == load(SHARDED.format(more="")).program  # a constraint alone is read, too


def test_a_part_that_each_device_runs_by_itself_keeps_its_mesh() -> None:
    part = """%2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"i"}, {}]>] out_shardings=[<@mesh, [{"i"}, {}]>]
      manual_axes={"i"} (%b: tensor<2x1xf32>) { sdy.return %b : tensor<2x1xf32> } : (tensor<2x1xf32>) -> tensor<2x1xf32>"""
    text = SHARDED.format(more=part)
    assert signature(text).code == text
    with pytest.raises(UnsupportedOp, match="it is about several devices"):
        load(text)


def test_a_byte_order_mark_is_no_part_of_a_module() -> None:
    text = SIMPLE.format(name="main")
    source = b"\xef\xbb\xbf" + text.encode()
    assert signature(source).code == text
    assert load(source).program == load(text).program


def test_a_function_of_another_name_is_called_by_main() -> None:
    source = signature(SIMPLE.format(name="f"))
    assert isinstance(source.code, str)
    assert "call @f" in source.code
    assert load(source.code).program.input_types == source.arguments


def test_a_function_beside_main_takes_its_name() -> None:
    """Whoever called `main` calls it still."""
    main = SIMPLE.format(name="main").replace("return %a", "%b = stablehlo.negate %a : tensor<2x1xf32> return %b")
    caller = "func.func @f(%a: tensor<2x1xf32>) -> tensor<2x1xf32> { %b = func.call @main(%a) : (tensor<2x1xf32>) -> tensor<2x1xf32> return %b : tensor<2x1xf32> }"
    source = signature(f"module {{ {main} {caller} }}", entry="f")
    assert load(source.code).program == load(f"module {{ {main} {caller} }}", entry="main").program


def test_the_one_public_function_is_meant() -> None:
    private = "func.func private @g(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"
    assert signature(f"module {{ {private} {SIMPLE.format(name='f')} }}").arguments == (TensorType(DType.F32, (2, 1)),)


def test_several_functions_and_no_main_are_refused() -> None:
    with pytest.raises(FormatError, match="has no function @main"):
        signature(f"module {{ {SIMPLE.format(name='f')} {SIMPLE.format(name='g')} }}")


def test_elements_of_a_tuple_are_results_of_their_own() -> None:
    text = (
        "func.func @main(%a: tensor<2xf32>, %b: tensor<i1>) -> tuple<tensor<2xf32>, tensor<i1>> {"
        " %0 = stablehlo.tuple %a, %b : tuple<tensor<2xf32>, tensor<i1>>"
        " return %0 : tuple<tensor<2xf32>, tensor<i1>> }"
    )
    assert signature(text).results == (TensorType(DType.F32, (2,)), TensorType(DType.Bool, ()))


REFUSED = {
    "tensor<2x?xf32>": "NonStaticShape: m:1:1: argument 0: axis 1 is dynamic (2x?xf32), not an exact static extent",
    "tensor<*xf32>": "UnsupportedDType: m:1:1: type tensor<*xf32> is not supported as argument 0",
    "memref<2xf32>": "UnsupportedDType: m:1:1: type memref<2xf32> is not supported as argument 0",
    "tuple<tensor<2xf32>>": "UnsupportedDType: m:1:1: type tuple<tensor<2xf32>> is not supported as argument 0",
    "tensor<2xi128>": "UnsupportedDType: m:1:1: type i128 is not supported as argument 0",
}


@pytest.mark.parametrize("type_", REFUSED)
def test_what_cannot_be_passed_as_an_array_is_named_with_its_place(type_: str) -> None:
    with pytest.raises(LoweringError) as caught:
        signature(f"func.func @main(%a: {type_}) -> {type_} {{ return %a : {type_} }}", "m")
    assert f"{caught.value.kind}: {caught.value}" == REFUSED[type_]


def test_operations_are_listed_with_their_element_types() -> None:
    text = (
        "func.func @main(%a: tensor<2xcomplex<f32>>) -> tensor<2xf32> {"
        " %0 = stablehlo.real %a : (tensor<2xcomplex<f32>>) -> tensor<2xf32>"
        " %1 = stablehlo.custom_call @there(%0) : (tensor<2xf32>) -> tensor<2xf32>"
        " return %1 : tensor<2xf32> }"
    )
    source = signature(text)
    assert {("real", "complex<f32>"), ("real", "f32"), ("custom_call:there", "f32")} <= source.ops
    assert source.has("real")
    assert source.has("real", "f32")
    assert not source.has("real", "f64")


def test_indices_and_definite_matrices_are_demanded_through_calls_and_conversions() -> None:
    text = """module {
  func.func @main(%x: tensor<5x2xf32>, %i: tensor<3xi64>, %m: tensor<4x4xf32>) -> (tensor<3x2xf32>, tensor<4x4xf32>) {
    %0 = call @narrow(%i) : (tensor<3xi64>) -> tensor<3x1xi32>
    %1 = "stablehlo.gather"(%x, %0) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
      start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>} : (tensor<5x2xf32>, tensor<3x1xi32>) -> tensor<3x2xf32>
    %2 = stablehlo.cholesky %m, lower = true : tensor<4x4xf32>
    return %1, %2 : tensor<3x2xf32>, tensor<4x4xf32>
  }
  func.func private @narrow(%i: tensor<3xi64>) -> tensor<3x1xi32> {
    %0 = stablehlo.convert %i : (tensor<3xi64>) -> tensor<3xi32>
    %1 = stablehlo.reshape %0 : (tensor<3xi32>) -> tensor<3x1xi32>
    return %1 : tensor<3x1xi32>
  }
}"""
    source = signature(text)
    assert source.demands == ("", "index:5", "definite")


def test_a_token_is_refused_with_what_it_is_for() -> None:
    text = "func.func @main(%a: !stablehlo.token) -> !stablehlo.token { return %a : !stablehlo.token }"
    with pytest.raises(UnsupportedDType, match="as argument 0: it puts calls of Python functions, or queues, in order"):
        signature(text)


CALLS = """func.func @main(%a: tensor<f32>) -> tensor<f32> {{
  %0 = func.call @{callee}(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}}
func.func private @turn(%a: tensor<f32>) -> tensor<f32> {{
  %0 = func.call @{back}(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}}
func.func private @elsewhere(tensor<f32>) -> tensor<f32>
func.func private @same(%a: tensor<f32>) -> tensor<f32> {{
  return %a : tensor<f32>
}}"""


@pytest.mark.parametrize(
    ("callee", "back", "words"),
    [
        ("main", "same", "@main calls @main: a function may not call itself"),
        ("turn", "main", "@main calls @turn calls @main: a function may not call itself"),
        ("elsewhere", "same", "function @elsewhere is called and has no body"),
    ],
)
def test_calls_that_no_executor_can_follow_are_refused(callee: str, back: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        signature(CALLS.format(callee=callee, back=back), "m")


def test_functions_may_be_called_more_than_once() -> None:
    assert signature(CALLS.format(callee="turn", back="same"), "m").results
