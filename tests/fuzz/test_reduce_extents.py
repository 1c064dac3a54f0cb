"""The reducer: shorter axes, fewer axes, integers for symbols."""

from __future__ import annotations

import numpy as np
import pytest

from fuzz.findings.reduce import narrowed, reduce_case, size
from fuzz.findings.reduce.draft import concrete_types
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dims import InputDim
from tenferro_ref.program import GraphBuilder
from tenferro_ref.tensor import Array
from tests.fuzz.reductions import has, ops_of, outputs, reduced, run, wrong_with
from tests.program.samples import symbolic

pytestmark = pytest.mark.once


def test_a_failure_that_needs_a_shape_keeps_it_and_shrinks_what_can() -> None:
    """A transposed matrix that is not square: [m, n] with m != n, and nothing smaller than that."""

    def broken(op: ops.Transpose, x: Array) -> Array:
        return x.reshape(tuple(x.shape[p] for p in op.perm), order="C")

    fails = wrong_with({ops.Transpose: broken})
    b = GraphBuilder()
    x, y = b.input("F64", (5, 7)), b.input("F64", (7, 5))
    program = b.build(b.apply(ops.Add(), x.transpose((1, 0)), y).reshape(35))
    draw = np.random.default_rng(1)
    reduction = reduced(Case.of(program, [draw.normal(size=(5, 7)), draw.normal(size=(7, 5))]), fails)
    assert ops_of(reduction.case) == ["Transpose"]
    assert reduction.case.inputs[0].shape == (2, 2)
    assert sorted(reduction.case.inputs[0].ravel().tolist()) == [0.0, 0.0, 0.0, 1.0]


def test_extents_shrink_together_through_reshape_pad_concatenate_and_broadcast() -> None:
    b = GraphBuilder()
    x, y, s = b.input("F64", (6, 4)), b.input("F64", (24,)), b.input("F64", (4,))
    flat = b.apply(ops.Add(), x.reshape(24), y)
    padded = b.apply(ops.Pad((2,), (1,), (0,)), flat)
    joined = b.apply(ops.Concatenate(0), padded, padded)
    wide = b.apply(ops.BroadcastInDim((6, 4), (1,)), s)
    program = b.build(joined, b.apply(ops.Multiply(), wide, x))
    names = [i.op.name for i in program.instructions]
    start = Case.of(program, [np.ones((6, 4)), np.ones(24), np.ones(4)])

    def fails(case: Case) -> bool:
        return ops_of(case) == names

    reduction = reduced(start, fails)
    types = concrete_types(reduction.case)
    assert max(int(e) for t in types.values() for e in t.shape) <= 2  # two pieces joined
    assert size(reduction.case).elements <= 10
    outputs(reduction.case)


@pytest.mark.parametrize("tail", [False, True])
def test_the_failing_end_of_an_axis_is_kept(tail: bool) -> None:
    b = GraphBuilder()
    program = b.build(-b.input("F64", (32,)))
    array = np.arange(1.0, 33.0)
    needed = 31.0 if tail else 3.0
    reduction = reduce_case(Case.of(program, [array]), lambda c: needed in c.inputs[0], evaluate=run)
    assert reduction.case.inputs[0].size == 1


def test_zero_extents_survive() -> None:
    b = GraphBuilder()
    x = b.input("F64", (0, 3))
    program = b.build(x.transpose((1, 0)), x.reshape(3, 0), x.sum([1]))
    start = Case.of(program, [np.zeros((0, 3))])
    fails = has("Transpose")
    reduction = reduced(start, fails)
    assert ops_of(reduction.case) == ["Transpose"]
    assert reduction.case.inputs[0].shape == (0,)


def test_unit_axes_go() -> None:
    b = GraphBuilder()
    x = b.input("F64", (1, 4, 1))
    y = b.apply(ops.BroadcastInDim((1, 4, 1, 2), (0, 1, 2)), x)
    program = b.build(b.apply(ops.ReduceSum((0, 3)), b.apply(ops.Exp(), y)))
    start = Case.of(program, [np.ones((1, 4, 1))])
    names = ops_of(start)
    case = reduced(start, lambda c: ops_of(c) == names).case
    assert [t.rank for t in concrete_types(case).values()] == [0, 0, 0, 0]


def test_symbolic_shapes_become_integers_unless_needed() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", ("n", 3)), b.input("F64", ("n",))
    z = b.apply(ops.BroadcastInDim((InputDim(1, 0), 3), (0,)), y, x)
    program = b.build(b.apply(ops.Add(), x, z))
    start = Case.of(program, [np.ones((5, 3)), np.ones(5)])
    case = reduced(start, has("BroadcastInDim"), None).case
    assert case.program.is_static
    assert ops_of(case) == ["BroadcastInDim"]
    assert len(case.program.input_slots) == 1

    def symbolic(c: Case) -> bool:
        return not c.program.is_static and "BroadcastInDim" in ops_of(c)

    reduction = reduced(start, symbolic, None)
    assert ops_of(reduction.case) == ["BroadcastInDim"]


def test_a_symbolic_program_that_must_stay_symbolic() -> None:
    program = symbolic()
    start = Case.of(program, [np.ones((2, 4, 3), np.float32), np.ones((3, 2), np.float32), np.asarray(1.0)])
    for name in dict.fromkeys(ops_of(start)):

        def fails(case: Case, name: str = name) -> bool:
            return name in ops_of(case) and not case.program.is_static

        reduction = reduced(start, fails, None)
        assert ops_of(reduction.case) == [name]


def test_one_element_is_left_of_what_is_computed() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (3, 4)), b.input("F64", (2, 4))
    z = b.apply(ops.Multiply(), x.transpose((1, 0)), b.apply(ops.BroadcastInDim((4, 3), (0,)), y.sum([0])))
    draw = np.random.default_rng(2)
    case = Case.of(b.build(z), [draw.normal(size=(3, 4)), draw.normal(size=(2, 4))])
    one = narrowed(case, case.program.output_slots[0], (3, 1))
    assert one is not None
    assert [a.shape for a in one.inputs] == [(1, 1), (2, 1)]  # what is summed stays
    assert outputs(one)[0].tolist() == [[outputs(case)[0][3, 1]]]
    assert narrowed(one, one.program.output_slots[0], (0, 0)) is None
