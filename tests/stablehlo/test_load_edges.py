"""Modules and arguments that a reader trips over: narrow indices, attributes beside a value, empty loops, arguments of other types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracle.enclosure import IEEE, XLA, enclose
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.errors import (
    DTypeMismatch,
    FormatError,
    InvalidArgument,
    LoweringError,
    RankMismatch,
    ShapeMismatch,
    TenferroError,
)
from tenferro_ref.isolation.engines import reader
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.stablehlo.loader import Loaded, load
from tenferro_ref.tensor import Array
from tests.libraries import module_or_skip

module_or_skip("jaxlib")


def run(loaded: Loaded, *arguments: Array) -> list[Array]:
    return GraphExecutor(checking=True).eval_exec_ir(compile_std_to_exec(loaded.program), loaded.inputs(arguments))


@pytest.mark.parametrize("index", ["i8", "ui8", "i64"])
def test_batches_of_a_gather_are_not_counted_in_the_type_of_its_indices(index: str) -> None:
    text = f"""func.func @main(%x: tensor<300x3xf32>, %i: tensor<300x1x{index}>) -> tensor<300x1xf32> {{
      %0 = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [0],
        start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}}>
        : (tensor<300x3xf32>, tensor<300x1x{index}>) -> tensor<300x1xf32>
      return %0 : tensor<300x1xf32>
    }}"""
    x = np.arange(900, dtype=np.float32).reshape(300, 3)
    dtype = {"i8": np.int8, "ui8": np.uint8, "i64": np.int64}[index]
    (result,) = run(load(text), x, np.ones((300, 1), dtype))
    assert result[:, 0].tolist() == x[:, 1].tolist()


def test_a_constant_is_told_from_attributes_beside_it() -> None:
    text = """func.func @main() -> tensor<2xcomplex<f32>> {
      %0 = stablehlo.constant {note = dense<7> : tensor<1xi32>} dense<[(1.0, 2.0), (3.0, -4.0)]> : tensor<2xcomplex<f32>>
      return %0 : tensor<2xcomplex<f32>>
    }"""
    (result,) = run(load(text))
    assert result.tolist() == [1 + 2j, 3 - 4j]


def test_a_loop_of_empty_regions_ends() -> None:
    text = """func.func @main() -> tensor<i1> {
      %t = stablehlo.constant dense<true> : tensor<i1>
      %0 = stablehlo.while(%x = %t) : tensor<i1> cond { stablehlo.return %x : tensor<i1> } do { stablehlo.return %x : tensor<i1> }
      return %0 : tensor<i1>
    }"""
    with pytest.raises(LoweringError, match="more than 100 operations"):
        load(text, evaluate=reader.evaluate, most=100)


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [([np.array(2.5)], DTypeMismatch), ([np.array([1, 2], np.int32)], ShapeMismatch), ([], RankMismatch),
     ([np.array(3, np.int32)] * 2, RankMismatch), (5, InvalidArgument), ([None], InvalidArgument)],
)  # fmt: skip
def test_a_loop_is_not_unrolled_for_what_is_no_argument(inputs: Any, kind: type[TenferroError]) -> None:
    text = """func.func @main(%n: tensor<i32>) -> tensor<i32> {
      %0 = stablehlo.while(%x = %n) : tensor<i32> cond {
        %z = stablehlo.constant dense<0> : tensor<i32>
        %c = stablehlo.compare GT, %x, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %1 = stablehlo.constant dense<1> : tensor<i32>
        %2 = stablehlo.subtract %x, %1 : tensor<i32>
        stablehlo.return %2 : tensor<i32>
      }
      return %0 : tensor<i32>
    }"""
    with pytest.raises(kind):
        load(text, evaluate=reader.evaluate, inputs=inputs)


@pytest.mark.parametrize("source", [None, 5, "\udc80"])
def test_what_is_neither_text_nor_bytes_is_a_format_error(source: Any) -> None:
    with pytest.raises(FormatError):
        load(source)


_REDUCE = """func.func @main(%x: tensor<{n}xf32>, %i: tensor<f32>) -> tensor<f32> {{
  %minus = stablehlo.constant dense<-0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: {init}) applies stablehlo.add across dimensions = [0] : (tensor<{n}xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}}"""


@pytest.mark.parametrize("init", ["%i", "%minus"])
@pytest.mark.parametrize(
    ("elements", "minus"), [([-0.0], True), ([-0.0] * 3, True), ([], True), ([1.0, -0.0], False), ([2.0, 3.0], False)]
)
def test_a_sum_from_minus_zero_may_be_minus_zero(elements: list[float], minus: bool, init: str) -> None:
    """As StableHLO says: the engine's sums start from +0."""
    loaded = load(_REDUCE.format(n=len(elements), init=init))
    arguments = [np.array(elements, np.float32), np.float32(-0.0).reshape(())]
    (total,) = enclose(loaded.program, loaded.inputs(arguments), IEEE)
    assert total.contains(np.array(sum(elements, -0.0), np.float32))
    assert bool(total.neg_zero) is minus


def test_a_sum_from_plus_zero_is_plus_zero() -> None:
    loaded = load(_REDUCE.format(n=2, init="%i"))
    arguments = [np.array([-0.0, -0.0], np.float32), np.float32(0.0).reshape(())]
    (total,) = enclose(loaded.program, loaded.inputs(arguments), IEEE)
    assert total.contains(np.array(0.0, np.float32))


def test_a_sum_from_plus_zero_along_no_axis_adds_it() -> None:
    """The interpreter does, XLA does not; a sum of the engine along no axis is its operand."""
    loaded = load("""func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %i = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [] : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }""")
    x = np.array([-0.0, 3.0], np.float32)
    (xla,), (ieee,) = (enclose(loaded.program, loaded.inputs([x]), model) for model in (XLA, IEEE))
    assert xla.contains(x).all()
    assert xla.contains(x + 0).all()
    assert ieee.contains(x + 0).all()
    assert not ieee.contains(x).all()


def test_a_reduction_over_nothing_is_its_initial_value() -> None:
    for init in (-0.0, 7.5):
        (result,) = run(load(_REDUCE.format(n=0, init="%i")), np.zeros(0, np.float32), np.float32(init).reshape(()))
        assert (float(result), bool(np.signbit(result))) == (init, bool(np.signbit(init)))


def test_a_sort_that_is_too_long_is_refused_before_its_stages_are_made() -> None:
    """Those of 2**33 elements would not fit into any memory."""
    type_ = f"tensor<{2**33}xi8>"
    text = f"""func.func @main(%a: {type_}) -> {type_} {{
      %0 = "stablehlo.sort"(%a) ({{
      ^bb0(%x: tensor<i8>, %y: tensor<i8>):
        %p = stablehlo.compare LT, %x, %y : (tensor<i8>, tensor<i8>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }}) {{dimension = 0 : i64}} : ({type_}) -> {type_}
      return %0 : {type_}
    }}"""
    with pytest.raises(LoweringError, match="more than 16777216 comparisons"):
        load(text)
