from __future__ import annotations

import numpy as np

from tenferro_ref import ops
from tenferro_ref.compiler import run_passes
from tenferro_ref.program import ExecProgram, GraphBuilder, GraphProgram, to_exec
from tests.build import integers, interpret


def fold(graph: GraphProgram) -> ExecProgram:
    (result,) = run_passes(to_exec(graph), ["TransposeFolding"], verify=True)
    inputs = [integers([int(str(e)) for e in t.shape], i) for i, t in enumerate(graph.input_types)]
    np.testing.assert_array_equal(interpret(graph, inputs)[0], interpret(result.program, inputs)[0])
    assert not result.reassociates
    assert bool(result.changes) == (result.program != to_exec(graph))
    return result.program


def test_a_transposed_lhs_is_read_through() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (3, 2)), b.input("F64", (3, 4))
    program = fold(b.build(b.apply(ops.DotGeneral((1,), (0,), (), ()), x.T, y)))
    dot = program.instructions[1]
    assert (dot.op, dot.input_slots, dot.output_slots) == (ops.DotGeneral((0,), (0,), (), ()), (0, 1), (3,))
    assert [i.op.name for i in program.instructions] == ["Transpose", "DotGeneral"]  # dead code is another pass's job


def test_a_three_cycle_is_mapped_forwards() -> None:
    """The inverse permutation would give other axes: [1, 2, 0] is no involution."""
    b = GraphBuilder()
    x, y = b.input("F64", (2, 3, 4)), b.input("F64", (2, 5))
    program = fold(b.build(b.apply(ops.DotGeneral((2,), (0,), (), ()), x.transpose((1, 2, 0)), y)))
    assert program.instructions[-1].op == ops.DotGeneral((0,), (0,), (), ())
    assert program.instructions[-1].input_slots == (0, 1)


def test_free_axes_out_of_order_are_left_alone() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (2, 3, 4, 5)), b.input("F64", (4, 5))
    graph = b.build(b.apply(ops.DotGeneral((2,), (0,), (3,), (1,)), x.transpose((1, 0, 2, 3)), y))
    assert fold(graph) == to_exec(graph)


def test_contracting_or_batch_axes_out_of_order_are_left_alone() -> None:
    for dims in [((0, 1), (0, 1), (), ()), ((), (), (0, 1), (0, 1)), ((1, 0), (1, 0), (), ())]:
        b = GraphBuilder()
        x, y = b.input("F64", (2, 3)), b.input("F64", (3, 2))
        graph = b.build(b.apply(ops.DotGeneral(*dims), x.T, y))
        folds = dims == ((1, 0), (1, 0), (), ())  # through [1, 0] this becomes ascending
        assert (fold(graph) != to_exec(graph)) == folds


def test_a_chain_stops_where_it_would_reorder() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (2, 3, 4)), b.input("F64", (4, 5))
    first = x.transpose((1, 0, 2))  # swaps the free axes
    program = fold(b.build(b.apply(ops.DotGeneral((0,), (0,), (), ()), first.transpose((2, 0, 1)), y)))
    assert program.instructions[-1].op == ops.DotGeneral((2,), (0,), (), ())
    assert program.instructions[-1].input_slots == (first.slot, 1)


def test_only_a_direct_transpose_folds() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (3, 2)), b.input("F64", (3, 4))
    graph = b.build(b.apply(ops.DotGeneral((1,), (0,), (), ()), x.T.reshape(2, 3), y))
    assert fold(graph) == to_exec(graph)
