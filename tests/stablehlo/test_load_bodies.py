"""Bodies of reductions, sorts and scatters: functions that they call, and what they have beside operations on scalars."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.case import Case
from oracle.enclosure import XLA, enclose
from oracle.peers import NativeExecutor
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.stablehlo.loader import load
from tenferro_ref.tensor import Array
from tests.libraries import module_or_skip

module_or_skip("jaxlib")

CALLED = """
func.func private @less(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func private @endless(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i1> {
  %0 = func.call @endless(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %0 : tensor<i1>
}"""


def sorting(lines: str) -> str:
    return f"""func.func @main(%x: tensor<5xi32>) -> tensor<5xi32> {{
      %r = "stablehlo.sort"(%x) <{{dimension = 0 : i64, is_stable = true}}> ({{
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        {lines}
        stablehlo.return %c : tensor<i1>
      }}) : (tensor<5xi32>) -> tensor<5xi32>
      return %r : tensor<5xi32>
    }}{CALLED}"""


def run(text: str, *arrays: Array) -> Array:
    loaded = load(text, "m")
    (result,) = NativeExecutor().run(Case.of(loaded.program, loaded.inputs(arrays))).outputs
    return result


LESS = "%c = stablehlo.compare LT, %d, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>"


@pytest.mark.parametrize(
    "lines",
    [
        "%c = func.call @less(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        f"%d = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<i32>) -> tensor<i32>\n{LESS}",
        f"%d = stablehlo.reshape %a : (tensor<i32>) -> tensor<i32>\n{LESS}",
    ],
)
def test_a_comparator_may_call_a_function_and_move_a_scalar(lines: str) -> None:
    x = np.array([3, -1, 7, 0, 3], np.int32)
    assert run(sorting(lines), x).tolist() == sorted(x.tolist())


def test_a_sum_that_a_body_calls_is_a_sum() -> None:
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<f32> {{
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %r = stablehlo.reduce(%x init: %z) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      reducer(%a: tensor<f32>, %b: tensor<f32>) {{
        %s = func.call @sum(%b, %a) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}
      return %r : tensor<f32>
    }}{CALLED}"""
    assert [i.op.name for i in load(text).program.instructions] == ["ReduceSum"]
    assert run(text, np.arange(4, dtype=np.float32)) == 6


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("%d = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<i32>) -> tensor<3xi32>\n"
         "%s = stablehlo.slice %d [0:1] : (tensor<3xi32>) -> tensor<1xi32>\n"
         "%e = stablehlo.reshape %s : (tensor<1xi32>) -> tensor<i32>\n"
         "%c = stablehlo.compare LT, %e, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>", "broadcast_in_dim"),
        ("%d = stablehlo.dot_general %a, %b, contracting_dims = [] x [] : (tensor<i32>, tensor<i32>) -> tensor<i32>\n"
         + LESS, "dot_general"),
        ("%c = func.call @endless(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i1>", "recursive"),
    ],
)  # fmt: skip
def test_a_body_that_is_about_more_than_scalars_is_refused_with_its_place(lines: str, words: str) -> None:
    with pytest.raises(UnsupportedOp, match=words) as caught:
        load(sorting(lines), "m")
    assert caught.value.place.startswith("m:2:")


@pytest.mark.parametrize(
    ("body", "first", "left_out", "filled"), [("add", 3.0, 3.0, 6.0), ("multiply", -2.0, -2.0, 4.0)]
)
def test_what_is_padded_of_a_window_may_be_left_out(body: str, first: float, left_out: float, filled: float) -> None:
    """StableHLO fills it with the initial value, XLA leaves it out; either way that enters once more."""
    code = f"""func.func @main(%x: tensor<2xf32>, %i: tensor<f32>) -> tensor<3xf32> {{
      %0 = "stablehlo.reduce_window"(%x, %i) <{{window_dimensions = array<i64: 1>, base_dilations = array<i64: 2>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.{body} %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }}) : (tensor<2xf32>, tensor<f32>) -> tensor<3xf32>
      return %0 : tensor<3xf32>
    }}"""
    loaded = load(code, "m")
    inputs = loaded.inputs((np.array([5.0, 7.0], np.float32), np.array(first, np.float32)))
    (made,) = enclose(loaded.program, inputs, XLA)
    assert made.contains(np.array([made.lo[0], left_out, made.lo[2]], np.float32)).all()
    assert made.contains(np.array([made.lo[0], filled, made.lo[2]], np.float32)).all()
    assert not made.contains(np.array([100.0, 100.0, 100.0], np.float32)).any()
    assert run(code, np.array([5.0, 7.0], np.float32), np.array(first, np.float32))[1] == left_out
