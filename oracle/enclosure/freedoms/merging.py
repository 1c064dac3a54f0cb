"""Merged sums: a sum of sums may be one sum, the accumulator of a contraction may start from an addend, `x + 0` may be
x.

*Bound.* A sum keeps its terms taken together (`Terms`): the sums of their bounds and of their magnitudes, what
divides them all, and how many there are. A sum of sums takes the hull of the nested one and of the sum of all terms
in any order, whose error is counted as that of any sum (`bounds.any_order`). Of k products and an addend there are k
sums, of which the addend meets one rounding less than a product. An element that is no sum, beside others that are, is one
term, and a contraction with ones is a sum. So it is of a sum over elements that are sums of two
products, the parts of complex products among them: `s + fma(a, b, c d)` becomes `fma(a, b, fma(c, d, s))` in the loop
of a reduction, where no product that is beyond the largest value overflows. Bounds are those of the *real* sum; where terms are
not finite, nothing is admitted beside the nested one, unless they are products that overflow when they are rounded, and not when they are fused.

*Zeros.* Where a constant zero that is added is left out, -0 stays -0, and what reads the sum reads the other term; so it is of a sum along an axis
of one element beside constant zeros. A sum or contraction of no
terms is such a zero: its operands have no elements, so that a compiler knows it (`Origin.const`). So is a Pad that crops all of its operand
away, a triangle that keeps nothing, and a constant into which an update without elements is written (`moves.read_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from oracle.enclosure.bounds import any_order, is_value, is_zero
from oracle.enclosure.formats import Array, quantum
from oracle.enclosure.freedoms import contraction
from oracle.enclosure.origin import Terms
from oracle.enclosure.rule import Context
from oracle.enclosure.value import Interval, hull


def minus_zero(c: Context, x: Interval, y: Interval, neg: Array) -> Array:
    """Where `x + y` may be -0: with a constant zero left out, where the other is."""
    if not c.model.merge or not (x.const or y.const):
        return neg
    return neg | (x.neg_zero & y.pos_zero & y.const) | (x.pos_zero & y.neg_zero & x.const)


def addition(c: Context, result: Interval, x: Interval, y: Interval) -> Interval:
    """`x + y`, one of which may be a contraction that starts from the other, or both products that a sum takes one by one."""
    if c.model.merge:
        for zero, other in ((x, y), (y, x)):
            if zero.const and other.origin.moves and other.shape == result.shape and np.all(is_zero(zero)):
                # the zero is left out: what reads the sum reads the other term
                return result.from_(other.origin)
        lone, terms = contraction.beside_filled(c, result, x, y), _products(c, x, y)
        if lone or terms:
            return result.remembering(lone, terms)
        for terms, addend in ((x.terms, y), (y.terms, x)):
            if terms is not None and terms.contraction:
                result = hull(result, accumulated(c, terms, addend))
    return result


def _products(c: Context, x: Interval, y: Interval) -> Terms | None:
    """`x + y` as a sum of two products, if both are."""
    u, v = x.unrounded, y.unrounded
    if not (u and v and u.contractible and v.contractible):
        return None
    open_ = x.nan | y.nan
    size_lo, size_hi = (np.where(open_, np.inf, np.abs(a) + np.abs(b)) for a, b in ((u.lo, v.lo), (u.hi, v.hi)))
    common = np.minimum(*(_common(w, contraction.terms(c, w)[2]) for w in (x, y)))
    return Terms(u.lo + v.lo, u.hi + v.hi, size_lo, size_hi, common, 2, products=True)


def _common(x: Interval, known: Array | None) -> Array:
    """What divides an element; 0 where it is not known. None: all are."""
    return quantum(x.lo) if known is None else np.where(known, quantum(x.lo), 0.0)


def joined(parts: Sequence[Interval], axis: int) -> Terms | None:
    """What the elements of parts side by side were sums of: a sum over them is one over the terms, of which any other part is one."""
    some = next((p.terms for p in parts if p.terms is not None), None)
    if some is None:
        return None
    known = [p.terms or _alone(p, some) for p in parts]
    if len({(t.contraction, t.products) for t in known}) > 1:
        return None
    along = partial(np.concatenate, axis=axis)
    return replace(
        known[0],
        lo=along([t.lo for t in known]),
        hi=along([t.hi for t in known]),
        size_lo=along([t.size_lo for t in known]),
        size_hi=along([t.size_hi for t in known]),
        quantum=along([t.quantum for t in known]),
        count=max(t.count for t in known),
    )


def _alone(x: Interval, like: Terms) -> Terms:
    """A value as its one term, among others that are `like` that."""
    size_lo, size_hi = (np.where(x.nan | ~np.isfinite(v), np.inf, np.abs(v)) for v in (x.lo, x.hi))
    return replace(like, lo=x.lo, hi=x.hi, size_lo=size_lo, size_hi=size_hi, quantum=_common(x, x.lo == x.hi), count=1)


def beside_ones(c: Context, x: Interval, other: Interval) -> bool:
    """Whether a contraction of `x` with `other` is a sum of sums."""
    return c.model.merge and x.terms is not None and other.const and bool(np.all(is_value(other, 1.0)))


def is_free(c: Context) -> bool:
    """Whether sums of sums may be one sum."""
    return c.model.merge


def nested(c: Context, x: Interval) -> Terms | None:
    """What the elements of a sum were sums of, if they may be merged."""
    return x.terms if c.model.merge else None


def accumulated(c: Context, t: Terms, addend: Interval) -> Interval:
    """A contraction and an addend as one sum in any order; nothing where the addend is not finite or a sum may overflow."""
    f = c.format
    size_lo, size_hi = t.size_lo + np.abs(addend.lo), t.size_hi + np.abs(addend.hi)
    sum_lo, sum_hi = t.lo + addend.lo, t.hi + addend.hi
    # flushed may be each product, the sum with it and the addend: `t.count` is one more than there are products
    least = c.lost_below * 2 * t.count
    # of k products and the addend there are k sums, of which the addend meets one rounding less than a product
    low, high = (any_order(f, np.abs(s), size, t.count - 1, False) + f.unit * products + 4 * f.wide_unit * size + least
                 for s, size, products in ((sum_lo, size_lo, t.size_lo), (sum_hi, size_hi, t.size_hi)))  # fmt: skip
    low, high = f.least_at_or_above(sum_lo - low), f.greatest_at_or_below(sum_hi + high)
    exact = np.maximum(size_lo, size_hi) * f.unit < np.minimum(t.quantum, _common(addend, addend.lo == addend.hi))
    usable = ~exact & np.isfinite(size_lo) & np.isfinite(size_hi) & (np.maximum(size_lo, size_hi) < f.max / 2)
    low, high = np.where(usable, low, np.nan), np.where(usable, high, np.nan)
    never = np.zeros(low.shape, bool)
    made = c.build(low, high, never, ~never, (low < 0) & (high >= 0))
    return replace(made, nan=never)
