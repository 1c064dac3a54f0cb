"""The reducer, against failures whose minimum is known: what remains of a program."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest

from fuzz.findings.reduce import reduce_case, size
from fuzz.findings.reduce.draft import concrete_types
from fuzz.findings.reduce.links import FOLLOW
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.errors import InvalidArgument
from tenferro_ref.ops import OPS, Op
from tenferro_ref.program import GraphBuilder
from tenferro_ref.tensor import Array
from tests.fuzz.reductions import first_failing, has, ops_of, random_case, reduced, run, wrong_with
from tests.program.samples import every_op

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    "names",
    [("Transpose", "DotGeneral"), ("Reverse",), ("Exp", "Multiply"), ("Reshape", "Transpose"), ("ReduceSum", "Add")],
)
def test_a_chain_of_ops_is_all_that_remains(names: tuple[str, ...]) -> None:
    fails = has(*names)
    start = first_failing(fails)
    reduction = reduced(start, fails)
    case = reduction.case
    assert ops_of(case) == list(names)
    assert len(case.program.output_slots) == 1
    assert len(case.program.input_slots) == 1
    assert all(e in (0, 1) for t in concrete_types(case).values() for e in t.shape)
    assert all(not a.any() for a in case.inputs)
    assert case.program.name == ""
    assert reduction.reproduced
    assert reduction.complete


def _sum_without_last(op: ops.ReduceSum, x: Array) -> Array:
    return np.delete(x, -1, op.axes[0]).sum(axis=op.axes) if op.axes else x


def test_a_reduction_that_skips_the_last_element_comes_down_to_one_instruction_and_one_element() -> None:
    fails = wrong_with({ops.ReduceSum: _sum_without_last})
    for start in itertools.islice(filter(fails, map(random_case, itertools.count())), 4):
        reduction = reduced(start, fails)
        assert ops_of(reduction.case) == ["ReduceSum"]
        assert [a.tolist() for a in reduction.case.inputs] == [[1.0]]


def test_tests_are_spent_on_big_cuts_first() -> None:
    fails = wrong_with({ops.ReduceSum: _sum_without_last})
    start = first_failing(fails)
    reduction = reduce_case(start, fails, evaluate=run, max_tests=25)
    assert len(reduction.case.program.instructions) == 1


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.__name__)
def test_every_op_can_be_cut_out_of_a_program_that_cannot_be_run(op: type[Op]) -> None:
    program = every_op()
    start = Case.of(program, [np.ones([int(e) for e in t.shape], t.dtype.numpy) for t in program.input_types])
    fails = has(op.__name__)
    reduction = reduced(start, fails, None)
    assert ops_of(reduction.case) == [op.__name__]
    assert size(reduction.case).elements <= 8


def test_ops_without_a_value_are_cut_with_ones() -> None:
    """An imported program that cannot be run natively: `evaluate` raises."""

    def cannot(case: Case) -> Mapping[int, Array]:
        raise InvalidArgument(op="Gather", argument="indices", detail="not here")

    b = GraphBuilder()
    x, i = b.input("F32", (8, 4)), b.input("I64", (3, 1))
    g = b.apply(ops.Gather((1,), (0,), (0,), 1, (1, 4)), b.apply(ops.Exp(), x), i)
    program = b.build(-g)
    start = Case.of(program, [np.ones((8, 4), np.float32), np.zeros((3, 1), np.int64)])
    reduction = reduced(start, has("Gather"), cannot)
    assert ops_of(reduction.case) == ["Gather"]
    assert size(reduction.case).elements <= 3


def test_data_dependent_extents_are_cut_at_their_value() -> None:
    b = GraphBuilder()
    x, n = b.input("F64", (6,)), b.input("I64", ())
    program = b.build(b.apply(ops.Exp(), b.apply(ops.DynamicTruncate(0), x, n)))
    start = Case.of(program, [np.ones(6), np.asarray(4)])

    def evaluate(case: Case) -> Mapping[int, Array]:
        cut = {ops.DynamicTruncate: lambda op, x, n: x[: int(n)]}
        return run(case, cut)

    case = reduced(start, has("Exp"), evaluate).case
    assert ops_of(case) == ["Exp"]
    case = reduced(start, has("DynamicTruncate", "Exp"), evaluate).case
    assert ops_of(case) == ["DynamicTruncate", "Exp"]
    assert case.inputs[0].shape == (1,)


def test_attributes_follow_for_known_ops_only() -> None:
    assert set(FOLLOW) <= set(OPS)
