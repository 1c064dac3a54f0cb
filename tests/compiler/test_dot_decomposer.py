from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.compiler import run_passes
from tenferro_ref.compiler.dot_decomposer import dot_decomposer
from tenferro_ref.dims import DimOp, InputDim, UpperBound
from tenferro_ref.dtype import DType
from tenferro_ref.errors import Internal
from tenferro_ref.ops import TensorType
from tenferro_ref.program import ExecProgram, GraphBuilder, GraphProgram, to_exec
from tests.build import integers, interpret, one_dot, steps


def decompose(graph: GraphProgram) -> ExecProgram:
    before = to_exec(graph)
    (result,) = run_passes(before, ["DotDecomposer"], verify=True)
    assert {s: t for s, t in result.program.slot_types.items() if s < graph.n_slots} == before.slot_types
    assert bool(result.changes) == (result.program != before)
    if graph.is_static:
        inputs = [abs(integers([int(str(e)) for e in t.shape], i)) for i, t in enumerate(graph.input_types)]
        np.testing.assert_array_equal(interpret(graph, inputs)[0], interpret(result.program, inputs)[0])
    return result.program


def mul(a: int | InputDim, b: int | InputDim) -> DimOp:
    return DimOp("mul", a, b)


def test_a_two_batch_axes_and_two_contracting() -> None:
    program = decompose(one_dot((2, 3, 7, 4, 5), (2, 3, 4, 5, 11), (3, 4), (2, 3), (0, 1), (0, 1)))
    assert steps(program) == [
        (ops.Transpose((2, 3, 4, 0, 1)), (0,), 3),
        (ops.Reshape((7, mul(4, 5), 2, 3)), (3,), 4),
        (ops.Transpose((2, 3, 4, 0, 1)), (1,), 5),
        (ops.Reshape((mul(4, 5), 11, 2, 3)), (5,), 6),
        (ops.DotGeneral((1,), (0,), (2, 3), (2, 3)), (4, 6), 2),
    ]
    assert program.output_types[0].shape == (7, 11, 2, 3)


def test_b_two_free_axes_are_merged_and_given_back() -> None:
    program = decompose(one_dot((2, 3, 4), (4, 5), (2,), (0,), (), ()))
    assert steps(program) == [
        (ops.Reshape((mul(2, 3), 4)), (0,), 3),
        (ops.DotGeneral((1,), (0,), (), ()), (3, 1), 4),
        (ops.Reshape((InputDim(1, 0), InputDim(1, 1), InputDim(2, 1))), (4, 0, 1), 2),
    ]
    assert [t.shape for t in (i.types[0] for i in program.instructions)] == [(6, 4), (6, 5), (2, 3, 5)]
    assert program.n_slots == 5


def test_c_canonical_and_outer_products_are_untouched() -> None:
    for args in [
        ((4, 5), (5, 6), (1,), (0,), (), ()),
        ((5,), (5,), (0,), (0,), (), ()),
        ((4, 5, 2), (5, 2), (1,), (0,), (2,), (1,)),
        ((2, 3), (4,), (), (), (), ()),
        ((2, 3), (2,), (), (), (0,), (0,)),
    ]:
        graph = one_dot(*args)
        assert decompose(graph) == to_exec(graph)


def test_two_free_axes_around_the_contracted_one_are_not_canonical() -> None:
    """The dim lists are those of the canonical form; the number of free axes is not."""
    program = decompose(one_dot((2, 4, 3), (4, 5), (1,), (0,), (), ()))
    assert [type(op) for op, _, _ in steps(program)] == [ops.Transpose, ops.Reshape, ops.DotGeneral, ops.Reshape]


def test_d_leading_batch_writes_the_original_slot() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (7, 3, 4)), b.input("F64", (7, 4, 5))
    product = b.apply(ops.DotGeneral((2,), (1,), (0,), (0,)), x, y)
    program = decompose(b.build(product.transpose((2, 0, 1))))
    assert steps(program) == [
        (ops.Transpose((1, 2, 0)), (0,), 4),
        (ops.Transpose((1, 2, 0)), (1,), 5),
        (ops.DotGeneral((1,), (0,), (2,), (2,)), (4, 5), 2),
        (ops.Transpose((2, 0, 1)), (2,), 3),
    ]


def test_e_a_bounded_extent_stays_a_bound_when_merged() -> None:
    b = GraphBuilder()
    x, size, y = b.input("F64", (5, 3, 4)), b.input("F64"), b.input("F64", (4, 2))
    bounded = b.apply(ops.DynamicTruncate(0), x, size)
    program = decompose(b.build(b.apply(ops.DotGeneral((2,), (0,), (), ()), bounded, y)))
    merge, product, restore = program.instructions[1:]
    assert merge.op == ops.Reshape((mul(InputDim(0, 0), 3), 4))  # the real extent, not the bound
    assert [t.shape for t in merge.types] == [(UpperBound(15), 4)]
    assert [t.shape for t in product.types] == [(UpperBound(15), 2)]
    assert [t.shape for t in restore.types] == [(UpperBound(5), 3, 2)]


def test_symbolic_extents_are_read_from_the_operands() -> None:
    program = decompose(one_dot(("n", 3, 4), (4, "m"), (2,), (0,), (), ()))
    assert program.instructions[0].op == ops.Reshape((mul(InputDim(0, 0), 3), 4))
    for n, m in [(2, 5), (0, 1)]:
        inputs = integers((n, 3, 4)), integers((4, m))
        np.testing.assert_array_equal(interpret(program, inputs)[0], np.tensordot(*inputs, 1))


def test_merging_never_hides_a_mismatch_of_contracted_extents() -> None:
    """Extents (2, 6) against (6, 2) would agree once merged: 12 and 12."""
    graph = one_dot(("a", "b"), ("c", "d"), (0, 1), (0, 1), (), ())
    assert decompose(graph) == to_exec(graph)
    same_symbols = one_dot(("a", "b", 2), ("a", "b"), (0, 1), (0, 1), (), ())
    assert len(decompose(same_symbols).instructions) > 1


def test_malformed_programs_are_internal_errors() -> None:
    program = to_exec(one_dot((2, 3, 4), (4, 5), (2,), (0,), (), ()))
    (dot,) = program.instructions

    def fails(broken: ExecProgram, message: str) -> None:
        with pytest.raises(Internal, match=message):
            dot_decomposer(broken)

    def reading(*slots: int) -> ExecProgram:
        return replace(program, instructions=(replace(dot, input_slots=slots),), n_slots=9)

    fails(reading(0, 7), "missing shape for slot 7")
    fails(reading(0, 9), "slot 9 is outside the table of 9 slots")
    bad = replace(dot, op=ops.DotGeneral((2,), (0,), (0,), ()))
    fails(replace(program, instructions=(bad,)), "1 lhs and 0 rhs batch axes")
    fails(replace(program, input_types=(TensorType(DType.F64, (2, 3, 4)),)), "1 input shapes for 2 input slots")
