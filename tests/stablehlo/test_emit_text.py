"""The text of every elementwise, structural and reduction form; modules and fingerprints."""

from __future__ import annotations

import re
from textwrap import dedent

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.ops import DEFAULT_POLICY, OPS, PHASE1, STABLEHLO
from tenferro_ref.program import GraphBuilder, LoweringView
from tenferro_ref.stablehlo import EMIT, Body, fingerprint, lower_into, lower_to_stablehlo
from tests.build import lines, one_op
from tests.op_examples import PAIRS, examples, program_of


def test_every_op_has_a_row_or_a_reason() -> None:
    assert EMIT.holes(OPS) == []
    assert set(PHASE1) <= set(EMIT)


def test_module_with_one_result() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (2, 3)), b.input("F64", (2, 3))
    assert lower_to_stablehlo(LoweringView.of(b.build(-(x + y)))) == dedent(
        """\
        module {
          func.func @main(%arg0: tensor<2x3xf64>, %arg1: tensor<2x3xf64>) -> tensor<2x3xf64> {
            %0 = stablehlo.add %arg0, %arg1 : tensor<2x3xf64>
            %1 = stablehlo.negate %0 : tensor<2x3xf64>
            return %1 : tensor<2x3xf64>
          }
        }
        """
    )


def test_module_with_no_result_and_with_several() -> None:
    b = GraphBuilder()
    x = b.input("F32")
    y = x + x
    assert lower_to_stablehlo(LoweringView.of(GraphBuilder().build())) == (
        "module {\n  func.func @main() -> () {\n    return\n  }\n}\n"
    )
    text = lower_to_stablehlo(LoweringView.of(b.build(y, x)))
    assert "(%arg0: tensor<f32>) -> (tensor<f32>, tensor<f32>) {" in text
    assert "    return %0, %arg0 : tensor<f32>, tensor<f32>\n" in text


def test_constant() -> None:
    assert lines(ops.Constant.of(2.0, DType.F64)) == ["%0 = stablehlo.constant dense<2.0> : tensor<f64>"]
    assert lines(ops.Constant(DType.Bool, b"\x07")) == ["%0 = stablehlo.constant dense<true> : tensor<i1>"]


def test_convert() -> None:
    assert lines(ops.Convert(DType.I32), "F64 2") == ["%0 = stablehlo.convert %arg0 : (tensor<2xf64>) -> tensor<2xi32>"]
    assert lines(ops.Convert(DType.C64), "C32") == [
        "%0 = stablehlo.convert %arg0 : (tensor<complex<f32>>) -> tensor<complex<f64>>"
    ]
    assert lines(ops.Convert(DType.F64), "C64") == ["%0 = stablehlo.real %arg0 : (tensor<complex<f64>>) -> tensor<f64>"]
    assert lines(ops.Convert(DType.I32), "C64")[1] == "%1 = stablehlo.convert %0 : (tensor<f64>) -> tensor<i32>"
    assert lines(ops.Convert(DType.Bool), "C64") == [
        "%0 = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f64>>",
        "%1 = stablehlo.compare NE, %arg0, %0, FLOAT : (tensor<complex<f64>>, tensor<complex<f64>>) -> tensor<i1>",
    ]


def test_reshape_reverses_reshapes_reverses() -> None:
    assert lines(ops.Reshape((3, 2)), "F64 2 3") == [
        "%0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>",
        "%1 = stablehlo.reshape %0 : (tensor<3x2xf64>) -> tensor<2x3xf64>",
        "%2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>",
    ]


@pytest.mark.parametrize(
    ("source", "target"),
    [((2, 3), (2, 1, 3)), ((1, 2, 1, 3), (2, 3)), ((), (1, 1)), ((1,), ()), ((2, 3), (2, 3)), ((2, 0), (0, 5, 3))],
)
def test_reshape_where_only_unit_axes_move_is_bare(source: tuple[int, ...], target: tuple[int, ...]) -> None:
    (line,) = lines(ops.Reshape(target), " ".join(["F64", *map(str, source)]))
    assert line.startswith("%0 = stablehlo.reshape %arg0 :")


def test_reshape_from_and_to_one_axis_transposes_once() -> None:
    assert [line.split()[2] for line in lines(ops.Reshape((6,)), "F64 2 3")] == [
        "stablehlo.transpose",
        "stablehlo.reshape",
    ]
    assert [line.split()[2] for line in lines(ops.Reshape((2, 3)), "F64 1 6")] == [
        "stablehlo.reshape",
        "stablehlo.transpose",
    ]


def test_dot_without_batch_needs_no_transpose() -> None:
    assert lines(ops.DotGeneral((1,), (0,), (), ()), "F64 2 3", "F64 3 4") == [
        "%0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : "
        "(tensor<2x3xf64>, tensor<3x4xf64>) -> tensor<2x4xf64>"
    ]


def test_batched_dot_moves_batch_to_the_end_even_if_all_extents_are_equal() -> None:
    assert lines(ops.DotGeneral((2,), (1,), (0,), (0,)), "F32 2 2 2", "F32 2 2 2") == [
        "%0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1], "
        "precision = [DEFAULT, DEFAULT] : (tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>",
        "%1 = stablehlo.transpose %0, dims = [1, 2, 0] : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>",
    ]
    two = lines(ops.DotGeneral((3,), (3,), (0, 1), (1, 0)), "F32 2 3 4 5", "F32 3 2 6 5")
    assert two[0].endswith("-> tensor<2x3x4x6xf32>")
    assert "dims = [2, 3, 0, 1]" in two[1]


def test_batch_only_dot_needs_no_transpose() -> None:
    (line,) = lines(ops.DotGeneral((1,), (1,), (0,), (0,)), "F32 2 3", "F32 2 3")
    assert line.endswith("-> tensor<2xf32>")
    (line,) = lines(ops.DotGeneral((), (), (), ()), "F32", "F32")
    assert "contracting_dims = [] x []" in line


def test_two_programs_in_one_module() -> None:
    body = Body()
    results = [
        result for op in (ops.Negate(), ops.Exp()) for result in lower_into(body, LoweringView.of(one_op(op, "F32 2")))
    ]
    assert body.module(results).splitlines()[1:5] == [
        "  func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {",
        "    %0 = stablehlo.negate %arg0 : tensor<2xf32>",
        "    %1 = stablehlo.exponential %arg1 : tensor<2xf32>",
        "    return %0, %1 : tensor<2xf32>, tensor<2xf32>",
    ]


def test_fingerprint() -> None:
    assert fingerprint("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert np.unique([fingerprint(t) for t in ("module {}", "module { }", "")]).size == 3


#: Attributes that change no value but promise something, by which an optimiser may go: what the emitter may say of them.
PROMISES = {"indices_are_sorted": "false", "unique_indices": "false", "precision": "[DEFAULT, DEFAULT]"}
#: Attributes that say what is computed.
MEANINGS = {
    "dim", "dims", "dimensions", "sizes", "dimension_numbers", "slice_sizes", "scatter_dimension_numbers", "offset_dims",
    "collapsed_slice_dims", "start_index_map", "index_vector_dim", "update_window_dims", "inserted_window_dims",
    "scatter_dims_to_operand_dims", "contracting_dims", "batching_dims", "low", "high", "interior",
}  # fmt: skip


@pytest.mark.parametrize("dtype", list(ENGINE_DTYPES), ids=str)
def test_the_emitter_promises_nothing_that_may_be_untrue(dtype: DType) -> None:
    """Of no form; a new attribute has to be sorted into one of the two lists. The order of a comparison is its dtype's."""
    asked = [e for op, d in PAIRS if d is dtype and op is not ops.DynamicTruncate for e in examples(op, d)]
    for policy in (DEFAULT_POLICY, STABLEHLO):
        chosen = [e for e in asked if e.policy is policy]
        text = lower_to_stablehlo(LoweringView.of(program_of(chosen, policy)[0])) if chosen else ""
        said = re.findall(r"(?<![%\w])([a-z_]+) = (\[.*?\]|\w+|#|dense|array|\"|\{)", text)
        assert {name for name, _ in said} <= {*PROMISES, *MEANINGS}
        assert {(name, value) for name, value in said if name in PROMISES} <= set(PROMISES.items())
        for order, element in re.findall(r"stablehlo\.compare .*, (\w+) : \(tensor<(?:\d+x)*(\w+)", text):
            kind = {"i": "SIGNED", "u": "UNSIGNED"}.get(element[0], "FLOAT")
            assert order == ("UNSIGNED" if element == "i1" else kind)
