"""Input sets enclosed at once give what each gives alone."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.enclosure import XLA, Interval, enclose_sets, sets_at_once
from oracle.enclosure.value import Mixed, Unrounded, merged_with_origin, real_point
from tenferro_ref import ops
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


def test_many_terms_are_not_stacked() -> None:
    """The rule of sums looks at each partial sum up to so many terms, of all sets."""

    def at_once(n: int, *, product: bool) -> int:
        b = GraphBuilder()
        x = b.input("F32", (n, n))
        return sets_at_once(b.build(x @ x if product else x + x), [(n, n)])

    assert (at_once(8, product=False), at_once(8, product=True), at_once(64, product=True)) == (512, 64, 1)


def test_symbolic_programs_are_stacked_as_large_as_their_inputs_are() -> None:
    b = GraphBuilder()
    program = b.build(b.input("F32", ("n", "n")).sum(0))
    assert [sets_at_once(program, [(n, n)]) for n in (8, 64, 512)] == [512, 8, 1]


def test_values_whose_origins_differ_are_not_put_together() -> None:
    x = real_point(np.ones(3))

    def stacked(*values: Interval) -> Interval:
        return merged_with_origin(lambda arrays: np.stack(arrays, -1), values)

    product = x.remembering(Unrounded("product", x.lo, x.hi))
    quotient = x.remembering(Unrounded("quotient", x.lo, x.hi))
    assert stacked(product, product).origin.unrounded.lo.shape == (3, 2)
    for other in (x, quotient):
        with pytest.raises(Mixed):
            stacked(product, other)


def test_constants_that_differ_between_sets_take_each_their_own_elements() -> None:
    b = GraphBuilder()
    x, y, start = b.input("F32", (2,)), b.input("F32", (2,)), b.input("I64", (1,))
    program = b.build(b.apply(ops.DynamicSlice((2,)), b.apply(ops.Concatenate(0), x, y), start))
    arrays = np.float32([1, 2]), np.float32([3, 4])
    sets = [(*arrays, np.array([at])) for at in (0, 2)]
    (made,) = enclose_sets(program, sets, XLA, arguments=2)
    expected = np.stack(arrays, -1)
    assert all(np.array_equal(ends, expected) for part in made.parts for ends in (part.lo, part.hi))
