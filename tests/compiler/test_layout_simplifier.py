"""The layout simplifier, sentence by sentence of SEMANTICS 4.5."""

from __future__ import annotations

import numpy as np

from tenferro_ref import ops
from tenferro_ref.compiler import PassResult, run_passes
from tenferro_ref.dims import InputDim, UpperBound
from tenferro_ref.program import GraphBuilder, GraphProgram, Value, to_exec
from tenferro_ref.runtime import GraphExecutor
from tests.build import integers, interpret, steps


def simplify(graph: GraphProgram) -> PassResult:
    before = to_exec(graph)
    (result,) = run_passes(before, ["AlgebraicLayoutSimplifier"], verify=True)
    assert bool(result.changes) == (result.program != before)
    assert not result.reassociates
    inputs = [integers([e if isinstance(e, int) else 3 for e in t.shape], i) for i, t in enumerate(graph.input_types)]
    for got, want in zip(interpret(result.program, inputs), interpret(graph, inputs), strict=True):
        np.testing.assert_array_equal(got, want)
    return result


def same_axes(value: Value) -> Value:
    """The Reshape to its operand's own extents, by name."""
    return value.builder.apply(ops.Reshape(tuple(InputDim(0, axis) for axis in range(value.type.rank))), value)


def test_identity_transposes_and_reshapes_go() -> None:
    b = GraphBuilder()
    x = b.input("F64", (2, "n"))
    result = simplify(b.build(-same_axes(b.apply(ops.Transpose((0, 1)), x))))
    assert [i.op.name for i in result.program.instructions] == ["Negate"]
    assert result.program.instructions[0].input_slots == (x.slot,)
    assert result.changes == (
        "slot 1: identity Transpose removed, slot 0 is read instead",
        "slot 2: identity Reshape removed, slot 0 is read instead",
    )


def test_nothing_may_be_left_but_an_output_that_is_an_input() -> None:
    b = GraphBuilder()
    x = b.input("F64", (2, 3))
    program = simplify(b.build(same_axes(x), x.T.T, b.input("F64", ()).reshape())).program
    assert program.instructions == ()
    assert program.output_slots == (0, 0, 4)
    given = integers((2, 3))
    first, second, _ = GraphExecutor(checking=True).eval_exec_ir(program, [given, np.array(1.0)])
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(second, given)


def test_a_reshape_that_drops_an_axis_is_no_identity() -> None:
    """The engine missed the comparison of ranks (#1107)."""
    b = GraphBuilder()
    x = b.input("F64", ("n", 1))
    graph = b.build(b.apply(ops.Reshape((InputDim(0, 0),)), x))
    assert simplify(graph).program.output_types[0].shape == (InputDim(0, 0),)
    b = GraphBuilder()
    wider = b.build(b.apply(ops.Reshape((InputDim(0, 0), 1)), b.input("F64", ("n",))))
    assert simplify(wider).changes == ()


def test_only_the_operands_own_extents_in_order_are_an_identity() -> None:
    for shape in [(3, 3), (InputDim(0, 1), InputDim(0, 0)), (InputDim(1, 0), InputDim(1, 1)), (InputDim(0, 0), 3)]:
        b = GraphBuilder()
        x = b.input("F64", (3, 3))
        assert simplify(b.build(b.apply(ops.Reshape(shape), x, x))).changes == ()


def test_shape_providers_do_not_matter() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (2, 3)), b.input("F64", (4,))
    result = simplify(b.build(-b.apply(ops.Reshape((InputDim(0, 0), InputDim(0, 1))), x, y)))
    assert [i.input_slots for i in result.program.instructions] == [(x.slot,)]


def test_adjacent_transposes_are_composed() -> None:
    """composed[i] = first[second[i]]; with three-cycles, the other order would be another permutation."""
    b = GraphBuilder()
    x = b.input("F64", (2, 3, 4))
    first, second = (1, 2, 0), (0, 2, 1)
    result = simplify(b.build(x.transpose(first).transpose(second)))
    assert steps(result.program) == [(ops.Transpose((1, 0, 2)), (x.slot,), 2)]
    assert result.changes == ("slot 2: reads slot 0, not its transpose in 1",)


def test_a_transpose_that_somebody_else_reads_stays() -> None:
    b = GraphBuilder()
    x = b.input("F64", (2, 3, 4))
    first = x.transpose((1, 2, 0))
    assert simplify(b.build(first.transpose((1, 2, 0)), -first)).changes == ()
    b = GraphBuilder()
    first = b.input("F64", (2, 3, 4)).transpose((1, 2, 0))
    assert simplify(b.build(first.transpose((1, 2, 0)), first)).changes == ()  # a program output is a reader
    b = GraphBuilder()
    first = b.input("F64", (2, 3)).T
    assert simplify(b.build(first.T, first.T)).changes == ()


def test_readers_of_a_removed_identity_count_as_readers_of_its_source() -> None:
    b = GraphBuilder()
    x = b.input("F64", (2, 3, 4))
    first = x.transpose((1, 2, 0))
    again = b.apply(ops.Transpose((0, 1, 2)), first)
    result = simplify(b.build(again.transpose((1, 2, 0)), -again))
    assert [i.op.name for i in result.program.instructions] == ["Transpose", "Transpose", "Negate"]
    assert len(result.changes) == 1


def test_bounds_stay_bounds() -> None:
    b = GraphBuilder()
    x, size = b.input("F64", (3, 4)), b.input("F64", ())
    short = b.apply(ops.DynamicTruncate(0), x, size)
    graph = b.build(same_axes(short.T.T))
    before = to_exec(graph)
    (result,) = run_passes(before, ["AlgebraicLayoutSimplifier"], verify=True)
    assert [i.op.name for i in result.program.instructions] == ["DynamicTruncate"]
    assert result.program.output_types[0].shape == (UpperBound(3), 4) == before.output_types[0].shape
