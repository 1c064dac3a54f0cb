"""LoweringView: what the XLA path may read of a program (SEMANTICS 7.1)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tenferro_ref import ops
from tenferro_ref.dims import DimOp, InputDim
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidCompiledGraph, InvalidProgram, NonStaticShape, ShapeMismatch, TenferroError
from tenferro_ref.ops import STABLEHLO, TensorType
from tenferro_ref.program import ExecProgram, GraphBuilder, GraphProgram, LoweringView, to_exec
from tests.program.samples import every_op, programs


def symbolic() -> GraphProgram:
    b = GraphBuilder("s", STABLEHLO)
    x = b.input("F32", ("n", 3))
    flat = b.apply(ops.Reshape((DimOp("mul", InputDim(0, 0), InputDim(0, 1)),)), x)
    return b.build(b.apply(ops.Exp(), flat), x)


def bounded() -> GraphProgram:
    b = GraphBuilder()
    x, n = b.input("F64", (2, 5)), b.input("I64", ())
    short = b.apply(ops.DynamicTruncate(1), x, n)
    cut = b.apply(ops.Pad((0, -1), (0, 0), (0, 0)), short)
    return b.build(b.apply(ops.Exp(), short), cut)


def test_the_view_reads_and_nothing_else() -> None:
    program = symbolic()
    for form in (program, to_exec(program)):
        view = LoweringView.of(form, ((4, 3),))
        assert (view.n_slots, view.input_slots, view.output_slots) == (3, (0,), (2, 0))
        assert view.policy == STABLEHLO
        assert view.input_specs == (TensorType(DType.F32, (4, 3)),)
        first, second = view.instructions()
        assert (first.op_name, first.dtype) == ("Reshape", DType.F32)
        assert (first.input_slots, first.output_slots) == ((0,), (1,))
        assert first.op == form.instructions[0].op
        assert second.static_output_shape(0) == (12,)
        assert view.static_type(2) == TensorType(DType.F32, (12,))
        assert view.static_type(0) == TensorType(DType.F32, (4, 3))
        assert view.slot_type(0) == TensorType(DType.F32, (4, 3))


def test_a_static_program_needs_no_shapes() -> None:
    view = LoweringView.of(every_op())
    assert view.input_specs == every_op().input_types


def test_a_symbolic_program_does() -> None:
    with pytest.raises(NonStaticShape) as caught:
        LoweringView.of(symbolic())
    assert (caught.value.op, caught.value.output_index, caught.value.axis) == ("program input", 0, 0)


@pytest.mark.parametrize(
    ("shapes", "kind"),
    [
        ((), InvalidCompiledGraph),
        (((4, 3), (4, 3)), InvalidCompiledGraph),
        (((4, 5),), ShapeMismatch),
        (((4,),), ShapeMismatch),
        (((),), ShapeMismatch),
    ],
)
def test_input_shapes_that_do_not_fit(shapes: tuple[tuple[int, ...], ...], kind: type[TenferroError]) -> None:
    with pytest.raises(kind):
        LoweringView.of(symbolic(), shapes)


@pytest.mark.parametrize("index", [1, -1, 7])
def test_missing_output(index: int) -> None:
    first = next(LoweringView.of(every_op()).instructions())
    with pytest.raises(InvalidProgram, match=f"{first.op_name} has no output {index}"):
        first.static_output_shape(index)


def test_a_bounded_extent_is_not_static() -> None:
    view = LoweringView.of(bounded())
    truncate, pad, exp = view.instructions()
    for ins, kind in ((truncate, "an upper bound"), (exp, "an upper bound"), (pad, "unknown")):
        with pytest.raises(NonStaticShape) as caught:
            ins.static_output_shape(0)
        assert (caught.value.op, caught.value.output_index, caught.value.axis) == (ins.op_name, 0, 1)
        assert caught.value.extent == kind
    with pytest.raises(NonStaticShape):
        view.static_type(truncate.output_slots[0])


def test_a_dim_expression_that_does_not_evaluate() -> None:
    b = GraphBuilder()
    x = b.input("F64", ("n",))
    y = b.apply(ops.BroadcastInDim((DimOp("sub", InputDim(1, 0), 5),), ()), b.constant(0.0), x)
    view = LoweringView.of(b.build(y), ((3,),))
    ins = list(view.instructions())[1]
    with pytest.raises(InvalidProgram, match="SubUnderflow"):
        ins.static_output_shape(0)
    assert list(LoweringView.of(b.build(y), ((7,),)).instructions())[1].static_output_shape(0) == (2,)


@settings(max_examples=50)
@given(programs())
def test_static_types_are_those_of_the_program_at_these_shapes(program: GraphProgram) -> None:
    sizes: dict[object, int] = {}
    shapes = tuple(
        tuple(e if isinstance(e, int) else sizes.setdefault(e, 2 + len(sizes)) for e in t.shape)
        for t in program.input_types
    )
    concrete = tuple(TensorType(t.dtype, s) for t, s in zip(program.input_types, shapes, strict=True))
    static = GraphProgram(
        program.instructions, program.input_slots, concrete, program.output_slots, program.n_slots, program.policy
    )
    forms: tuple[GraphProgram | ExecProgram, ...] = (program, to_exec(program))
    try:
        expected = static.slot_types
    except TenferroError:
        return  # a symbol may stand for an extent that its ops cannot take
    for form in forms:
        view = LoweringView.of(form, shapes)
        for ins in view.instructions():
            for slot in ins.output_slots:
                assert view.static_type(slot) == expected[slot]
