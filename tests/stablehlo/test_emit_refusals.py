"""Programs that are more than a list of ops: extensions, symbolic shapes, and every refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tenferro_ref import ops
from tenferro_ref.dims import InputDim
from tenferro_ref.dtype import DType
from tenferro_ref.errors import (
    Internal,
    InvalidArgument,
    InvalidCompiledGraph,
    InvalidProgram,
    LoweringError,
    NonStaticShape,
    ShapeMismatch,
    UnsupportedDType,
)
from tenferro_ref.extensions import Family, register
from tenferro_ref.ops import FAMILIES, OPS, PHASE1, TensorType
from tenferro_ref.program import GraphBuilder, GraphProgram, LoweringView, to_exec
from tenferro_ref.stablehlo import Body, SsaValue, lower_into, lower_to_stablehlo
from tenferro_ref.stablehlo.emit import EMIT_EXTENSION
from tests.build import one_op
from tests.op_examples import PAIRS, examples, program_of

# --- extensions -------------------------------------------------------------------------------------------------------


def _infer(op: ops.Extension, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    (x,) = inputs
    return x.with_shape(x.shape[:1]), x.with_shape(x.shape[::-1])


def _two_results(op: ops.Extension, body: Body, outputs: tuple[TensorType, ...], x: SsaValue) -> list[SsaValue]:
    b = GraphBuilder()
    sums = b.apply(ops.ReduceSum((1,)), b.input(x.dtype, x.shape))
    (inlined,) = lower_into(body, LoweringView.of(b.build(sums)), [x])
    return [inlined, body.transpose(x, (1, 0))]


@pytest.fixture
def two_results(monkeypatch: pytest.MonkeyPatch) -> ops.Extension:
    """One op: a matrix gives its row sums and its transpose."""
    register(Family("test.family.v1", ("two", "three"), _infer))
    monkeypatch.setitem(EMIT_EXTENSION._rows, ("test.family.v1", "two"), _two_results)
    return ops.Extension.of("test.family.v1", "two", {})


def test_an_extension_with_several_results(two_results: ops.Extension) -> None:
    b = GraphBuilder()
    sums, transposed = b.apply_many(two_results, b.input("F64", ("n", 3)))
    program = b.build(-transposed, sums)
    assert lower_to_stablehlo(LoweringView.of(program, ((2, 3),))).splitlines()[1:-2] == [
        "  func.func @main(%arg0: tensor<2x3xf64>) -> (tensor<3x2xf64>, tensor<2xf64>) {",
        "    %0 = stablehlo.constant dense<0.0> : tensor<f64>",
        "    %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [1] : "
        "(tensor<2x3xf64>, tensor<f64>) -> tensor<2xf64>",
        "    %2 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>",
        "    %3 = stablehlo.negate %2 : tensor<3x2xf64>",
        "    return %3, %1 : tensor<3x2xf64>, tensor<2xf64>",
    ]


def test_an_extension_without_lowering(two_results: ops.Extension) -> None:
    error = refusal(one_op(replace(two_results, op="three"), "F64 2 3"))
    assert error.facts() == {"op": "Extension", "reason": "three of 'test.family.v1' has no lowering to StableHLO"}
    assert refusal(one_op(two_results, "F64 2 3"), phase1_only=True).facts()["reason"] == "outside Phase 1"


def test_a_lowering_that_breaks_its_familys_rule(two_results: ops.Extension, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (
        lambda op, body, outputs, x: [x, x],
        lambda op, body, outputs, x: _two_results(op, body, outputs, x)[:1],
    ):
        monkeypatch.setitem(EMIT_EXTENSION._rows, ("test.family.v1", "two"), wrong)
        with pytest.raises(Internal, match=r"gave F64\[2.*\]; its rule says F64\[2\], F64\[3, 2\]"):
            lower_to_stablehlo(LoweringView.of(one_op(two_results, "F64 2 3")))


@pytest.mark.parametrize(
    ("standard_ops", "kind", "message"),
    [
        (lambda op, x: [x.T], InvalidProgram, r"the standard ops of turn of 'test.standard.v1' give F64\[2, 3\]; its rule says F64\[3, 2\]"),
        (lambda op, x: [x.astype("F32")], InvalidProgram, r"give F32\[3, 2\]"),
        (lambda op, x: [x, x], InvalidProgram, r"give F64\[3, 2\], F64\[3, 2\]"),
        (lambda op, x: [], InvalidProgram, "give nothing"),
        (lambda op, x: None, Internal, "failed in standard_ops of turn: it gave NoneType, not a list of Values"),
        (lambda op, x: [x.no], Internal, "failed in standard_ops of turn: AttributeError"),
    ],
)  # fmt: skip
def test_standard_ops_that_break_their_familys_rule(
    monkeypatch: pytest.MonkeyPatch, standard_ops: Any, kind: type[Exception], message: str
) -> None:
    name = "test.standard.v1"
    family = Family(name, ("turn",), lambda op, inputs: inputs, standard_ops=standard_ops)
    monkeypatch.setitem(FAMILIES._rows, name, family)
    with pytest.raises(kind, match=message):
        lower_to_stablehlo(LoweringView.of(one_op(ops.Extension.of(name, "turn", {}), "F64 3 2")))


# --- symbolic programs ------------------------------------------------------------------------------------------------


def test_symbolic_programs_are_lowered_at_concrete_shapes() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", ("n", 3)), b.input("F64", ("n",))
    graph = b.build(b.apply(ops.Reshape((3, InputDim(1, 0))), x, y))
    with pytest.raises(NonStaticShape, match="axis 0 of output 0 is symbolic"):
        LoweringView.of(graph)
    assert "-> tensor<3x5xf64> {" in lower_to_stablehlo(LoweringView.of(graph, ((5, 3), (5,))))
    assert lower_to_stablehlo(LoweringView.of(to_exec(graph), ((5, 3), (5,)))) == lower_to_stablehlo(
        LoweringView.of(graph, ((5, 3), (5,)))
    )


def test_extents_of_symbolic_programs_are_constants_of_the_text() -> None:
    graph = one_op(ops.ShapeOf(0), "F64 n")
    assert "dense<7.0>" in lower_to_stablehlo(LoweringView.of(graph, ((7,),)))
    graph = one_op(ops.PadToMatch(0), "F64 n", "F64 m")
    assert "high = [4]" in lower_to_stablehlo(LoweringView.of(graph, ((1,), (5,))))
    assert "pad" not in lower_to_stablehlo(LoweringView.of(graph, ((5,), (1,))))
    graph = one_op(ops.Scatter((1,), (0,), (0,), 1), "F64 n m", "I64 3", "F64 3 w")
    with pytest.raises(InvalidArgument, match="window extent 5 exceeds operand extent 4"):
        lower_to_stablehlo(LoweringView.of(graph, ((2, 4), (3,), (3, 5))))


def test_what_symbols_left_open_is_checked_at_concrete_shapes() -> None:
    graph = one_op(ops.Add(), "F64 n", "F64 m")
    assert lower_to_stablehlo(LoweringView.of(graph, ((2,), (2,))))
    with pytest.raises(ShapeMismatch):
        lower_to_stablehlo(LoweringView.of(graph, ((2,), (3,))))
    with pytest.raises(InvalidArgument, match="extent 0"):
        lower_to_stablehlo(LoweringView.of(one_op(ops.ReduceSum((0,)), "F64 n"), ((0,),)))


# --- refusals ---------------------------------------------------------------------------------------------------------


def refusal(graph: GraphProgram, *, phase1_only: bool = False) -> LoweringError:
    with pytest.raises(LoweringError) as error:
        lower_to_stablehlo(LoweringView.of(graph), phase1_only=phase1_only)
    return error.value


def test_bounded_extents() -> None:
    error = refusal(one_op(ops.DynamicTruncate(0), "F64 2", "F64"))
    assert error.facts() == {"op": "DynamicTruncate", "output_index": 0, "axis": 0, "extent": "an upper bound"}


def test_a_slot_without_value() -> None:
    exec_program = to_exec(one_op(ops.Negate(), "F64 2"))
    (negate,) = exec_program.instructions
    broken = replace(exec_program, instructions=(replace(negate, input_slots=(1,)),))
    with pytest.raises(InvalidCompiledGraph, match=r"\(Negate\): slot 1 is read before it is written"):
        lower_to_stablehlo(LoweringView.of(broken))


def test_phase1_takes_only_its_ops_and_dtypes() -> None:
    def dtype_refusal(graph: GraphProgram) -> tuple[str, str]:
        error = refusal(graph, phase1_only=True)
        assert isinstance(error, UnsupportedDType)
        return error.dtype, error.context

    assert dtype_refusal(one_op(ops.Add(), "I32", "I32")) == ("I32", "program input")
    assert dtype_refusal(one_op(ops.Constant.of(1, DType.C32))) == ("C32", "constant")
    assert dtype_refusal(one_op(ops.Convert(DType.Bool), "F32")) == ("Bool", "convert target")
    for dtype in (DType.F32, DType.F64):
        outside = [op for op, d in PAIRS if d is dtype and op not in (*PHASE1, ops.DynamicTruncate)]
        assert len(outside) == len(OPS) - len(PHASE1) - len((ops.DynamicTruncate, ops.Extension))
        for op in outside:
            graph = program_of(examples(op, dtype)[:1])[0]
            if all(t.dtype is dtype for t in graph.input_types):
                error = refusal(graph, phase1_only=True)
                assert error.facts() == {"op": op.__name__, "reason": "outside Phase 1"}
    graph = one_op(ops.Add(), "F32 2", "F32")
    assert lower_to_stablehlo(LoweringView.of(graph), phase1_only=True) == lower_to_stablehlo(LoweringView.of(graph))
