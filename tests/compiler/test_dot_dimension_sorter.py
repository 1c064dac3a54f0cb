from __future__ import annotations

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.compiler import run_passes
from tenferro_ref.compiler.dot_dimension_sorter import consecutive_but_unsorted, sort_pairs
from tenferro_ref.program import to_exec
from tests.build import integers, interpret, one_dot


@pytest.mark.parametrize(
    ("lhs", "rhs", "sorted_lhs", "sorted_rhs"),
    [
        ((3, 2), (2, 1), (2, 3), (1, 2)),  # the three examples of SEMANTICS 4.1
        ((2, 0), (3, 2), (0, 2), (2, 3)),  # rhs drives
        ((2, 0), (3, 0), (2, 0), (3, 0)),  # both have gaps
        ((0, 1), (3, 2), (1, 0), (2, 3)),  # lhs is sorted, rhs drives
        ((2, 3, 1), (0, 1, 2), (1, 2, 3), (2, 0, 1)),
        ((1,), (0,), (1,), (0,)),
        ((), (), (), ()),
    ],
)
def test_contracting_lists(
    lhs: tuple[int, ...], rhs: tuple[int, ...], sorted_lhs: tuple[int, ...], sorted_rhs: tuple[int, ...]
) -> None:
    batch = ((5, 4), (6, 5))  # batch lists are never touched
    assert sort_pairs(ops.DotGeneral(lhs, rhs, *batch)) == ops.DotGeneral(sorted_lhs, sorted_rhs, *batch)


def test_consecutive_but_unsorted() -> None:
    assert consecutive_but_unsorted((3, 2))
    assert not consecutive_but_unsorted((2, 3))
    assert not consecutive_but_unsorted((2, 0))
    assert not consecutive_but_unsorted(())


def test_value_changes_and_reassociation_are_reported() -> None:
    program = to_exec(one_dot((2, 3, 4, 5), (6, 5, 4), (3, 2), (1, 2), (), ()))
    (result,) = run_passes(program, ["DotDimensionSorter"], verify=True)
    assert result.program.instructions[0].op == ops.DotGeneral((2, 3), (2, 1), (), ())
    assert result.changes == ("slot 2: contraction [3, 2] x [1, 2] becomes [2, 3] x [2, 1]",)
    assert result.inexact
    inputs = integers((2, 3, 4, 5)), integers((6, 5, 4))
    np.testing.assert_array_equal(interpret(program, inputs)[0], interpret(result.program, inputs)[0])


def test_nothing_to_do_gives_the_program_itself() -> None:
    program = to_exec(one_dot((2, 3), (3, 4), (1,), (0,), (), ()))
    (result,) = run_passes(program, ["DotDimensionSorter"])
    assert result.program is program
    assert (result.changes, result.inexact) == ((), False)
