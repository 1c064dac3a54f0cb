"""Rules of the correctly rounded operations: sum, product, quotient, and what only picks or compares.

Rounding to nearest is monotone, so that the bounds of the rounded results are the rounded bounds.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from oracle.enclosure import integers, multiples, narrowing, unchanged
from oracle.enclosure.bounds import (
    Quotient,
    is_zero,
    may_be_negative,
    may_be_positive,
    may_be_zero,
    nan_of_product,
    on_common_shape,
    product_bounds,
    shared,
    without_nan,
    zero_signs,
)
from oracle.enclosure.formats import FORMATS, Array
from oracle.enclosure.freedoms import approximations, contraction, flush, gathering, merging, reciprocals
from oracle.enclosure.origin import NOWHERE, Converted, fixed_in
from oracle.enclosure.rule import ENCLOSE, Context
from oracle.enclosure.value import Interval, exact, hull, three_valued
from tenferro_ref import ops
from tenferro_ref.ops import CompareDir, Op

# --- sum ------------------------------------------------------------------------------------------------------------


@ENCLOSE.row(ops.Add)
def _add(op: Op, c: Context, x: Interval, y: Interval) -> Interval:
    return add(c, x, y) if c.dtype.is_float else with_sign_flipped(integers.add(c.dtype, x, y), x, y)


def add(c: Context, x: Interval, y: Interval) -> Interval:
    """`x + y` rounded once; with an unrounded product in it where the model contracts."""
    f = c.format
    finite = x.finite and y.finite
    if x.is_point and y.is_point:
        lo = hi = f.nearest(x.lo + y.lo)
    else:
        lo, hi = f.nearest(x.lo + y.lo), f.nearest(x.hi + y.hi)
        lo, hi = (lo, hi) if finite else without_nan(lo, hi)
    nan = x.nan | y.nan
    if not finite:
        nan = nan | ((x.hi == np.inf) & (y.lo == -np.inf)) | ((x.lo == -np.inf) & (y.hi == np.inf))
    # a sum of two zeros has their common sign, or is +0; any other zero is a cancellation: +0
    neg = x.neg_zero & y.neg_zero
    pos = ~neg
    if np.count_nonzero(neg):
        pos = ~(is_zero(x) & is_zero(y)) | (x.pos_zero & may_be_zero(y)) | (x.neg_zero & y.pos_zero)
    result = c.build(lo, hi, nan, pos, merging.minus_zero(c, x, y, neg))
    return merging.addition(c, contraction.addition(c, result, x, y), x, y)


@ENCLOSE.row(ops.Subtract)
def _subtract(op: Op, c: Context, x: Interval, y: Interval) -> Interval:
    return subtract(c, x, y) if c.dtype.is_float else integers.subtract(c.dtype, x, y)


def subtract(c: Context, x: Interval, y: Interval) -> Interval:
    """`x - y` is `x + -y`, signs of zeros included."""
    return add(c, x, negated(y))


# --- product --------------------------------------------------------------------------------------------------------


@ENCLOSE.row(ops.Multiply)
def _multiply(op: Op, c: Context, x: Interval, y: Interval) -> Interval:
    return multiply(c, x, y) if c.dtype.is_float else integers.multiply(c.dtype, x, y)


def multiply(c: Context, x: Interval, y: Interval) -> Interval:
    """`x * y` rounded once."""
    for one, other in ((x, y), (y, x)):
        if sign := unchanged.sign_of(one, other):
            return other if sign > 0 else negated(other)
    f = c.format
    exact_low, exact_high = product_bounds(np.float64, x, y)
    lo = f.nearest(exact_low)
    hi = lo if exact_low is exact_high else f.nearest(exact_high)
    result = c.build(lo, hi, nan_of_product(x, y), *zero_signs(x, y))
    if not c.model.keeps_unrounded:
        return result
    unrounded = contraction.unrounded_product(f, x, y, exact_low, exact_high)
    return multiples.of_product(gathering.product(c, result, x, y, (lo, hi), unrounded), x, y)


# --- quotient -------------------------------------------------------------------------------------------------------


@ENCLOSE.row(ops.Divide)
def _divide(op: Op, c: Context, x: Interval, y: Interval) -> Interval:
    return divide(c, x, y) if c.dtype.is_float else integers.divide(c.dtype, x, y)


def divide(c: Context, x: Interval, y: Interval) -> Interval:
    """`x / y` rounded once."""
    if sign := unchanged.sign_of(y, x):
        return x if sign > 0 else negated(x)
    f, is_shared = c.format, shared(y, x)
    x, y = on_common_shape(x, y)
    q = Quotient.of(x, y)
    exact = q.bounds(x.lo, x.hi, y.lo, y.hi)
    low, high = approximations.within(c, f.nearest(exact[0]), f.nearest(exact[1]), exact)
    low, high = reciprocals.quotient(c, q, low, high, is_shared)
    low, high, origin = gathering.quotient(c, q, low, high, is_shared)
    made = c.build(low, high, q.nan, *zero_signs(x, y)).from_(origin)
    if not c.model.keeps_unrounded:
        return made
    if inverse := multiples.reciprocal(y):  # x / (1 / v) as x v
        value, sign = inverse
        by_value = multiply(c, x, value)
        return gathering.by_reciprocal(c, made, by_value if sign > 0 else negated(by_value))
    return multiples.of_quotient(made, x, y)


@ENCLOSE.row(ops.Remainder)
def _remainder(op: Op, c: Context, x: Interval, y: Interval) -> Interval:
    """Exact, so that one quotient over the whole of both intervals gives the ends; else smaller than either operand."""
    if not c.dtype.is_float:
        return integers.remainder(c.dtype, x, y)
    x, y = on_common_shape(x, y)
    sizes = [(np.where(v.lo > 0, v.lo, np.where(v.hi < 0, -v.hi, 0.0)), np.maximum(-v.lo, v.hi)) for v in (x, y)]
    (small_x, large_x), (small_y, large_y) = sizes
    corners = [np.fmod(a, b) for a in (small_x, large_x) for b in (small_y, large_y)]
    quotients = [np.rint((a - r) / b) for (a, b), r in zip(itertools.product(*sizes), corners, strict=True)]
    one_sign = (x.lo > 0) | (x.hi < 0)
    same = one_sign & (small_y > 0) & (large_x < np.inf) & (quotients[1] == quotients[2]) & (quotients[2] < 2.0**50)
    # of known operands the remainder is exact, however large the quotient
    same |= (x.lo == x.hi) & (y.lo == y.hi) & np.isfinite(x.lo) & (small_y > 0)
    reach = np.minimum(large_x, large_y)
    low = np.where(same, np.minimum.reduce(corners), 0.0)
    high = np.where(same, np.maximum.reduce(corners), reach)
    lo = np.where(x.lo < 0, -high, low)
    hi = np.where(x.hi > 0, high, -low)
    infinite = (np.abs(x.lo) == np.inf) | (np.abs(x.hi) == np.inf)
    nan = x.nan | y.nan | infinite | may_be_zero(y)
    none = x.empty | y.empty | is_zero(y) | ((x.lo == x.hi) & infinite)
    lo, hi = np.where(none, np.nan, lo), np.where(none, np.nan, hi)
    return c.build(lo, hi, nan, may_be_positive(x) | x.pos_zero, may_be_negative(x) | x.neg_zero, inexact=False)


# --- sign, extrema, comparison, choice ------------------------------------------------------------------------------


@ENCLOSE.row(ops.Negate)
def _negate(op: Op, c: Context, x: Interval) -> Interval:
    if not c.dtype.is_float:
        return integers.negate(c.dtype, x)
    return negated(x)


def negated(x: Interval) -> Interval:
    """`-x` of floats."""
    lo = -x.hi
    hi = lo if x.is_point else -x.lo
    return Interval(x.dtype, lo, hi, x.nan, x.neg_zero, x.pos_zero, -x.origin)


def with_sign_flipped(made: Interval, x: Interval, y: Interval) -> Interval:
    """An Xor or a sum of integers; that with the sign bit, of the bits of a float, gives those of its negative."""
    sign = made.dtype.limits[0] or 2 ** (made.dtype.bits - 1)
    for bits, by in ((x, y), (y, x)):
        before = bits.origin.converted
        if (
            before
            and before.value.dtype.bits == made.dtype.bits
            and by.const
            and np.all((by.lo == sign) & (by.hi == sign))
        ):
            return made.from_(made.origin.converted_from(Converted(negated(before.value), before.exact)))
    return made


@ENCLOSE.row(ops.Abs)
def _abs(op: Op, c: Context, x: Interval) -> Interval:
    if not c.dtype.is_float:
        return integers.absolute(c.dtype, x)
    if x.is_point:
        lo = hi = np.abs(x.lo)
    else:
        lo, hi = np.maximum(np.maximum(x.lo, -x.hi), 0.0), np.maximum(-x.lo, x.hi)
        lo, hi = np.where(x.empty, np.inf, lo), np.where(x.empty, -np.inf, hi)
    # of what is not negative, as a square is not, a compiler leaves it out
    origin = x.origin if (x.lo >= 0).all() else NOWHERE
    return Interval(x.dtype, lo, hi, x.nan, may_be_zero(x), np.zeros_like(x.neg_zero), origin)


@ENCLOSE.row(ops.Conj)
def _conj(op: Op, c: Context, x: Interval) -> Interval:
    return x


@ENCLOSE.row(ops.Sign)
def _sign(op: Op, c: Context, x: Interval) -> Interval:
    """-1, 0 or 1; XLA keeps the sign of zero, the reference gives +0: either is accepted (SEMANTICS 0)."""
    if not c.dtype.is_float:
        return exact(c.dtype, np.sign(x.lo), None if x.is_point else np.sign(x.hi))
    zero = may_be_zero(x)
    lo = np.where(x.lo > 0, 1.0, np.where(zero, -0.0, 1.0))
    lo = np.where(x.lo < 0, -1.0, lo)
    hi = np.where(x.hi > 0, 1.0, np.where(zero, 0.0, -1.0))
    lo, hi = np.where(x.empty, np.inf, lo), np.where(x.empty, -np.inf, hi)
    return Interval(x.dtype, lo, hi, x.nan, zero, zero)


def _extremum(c: Context, x: Interval, y: Interval, largest: bool) -> Interval:
    pick = np.maximum if largest else np.minimum
    if (same := unchanged.extremum(x, y, largest)) is not None:
        return same
    if not c.dtype.is_float:
        return integers.monotone(c.dtype, pick, x, y)
    lo, hi = pick(x.lo, y.lo), pick(x.hi, y.hi)
    nan = x.nan | y.nan
    none = x.empty | y.empty
    if none.any():
        lo, hi = np.where(none, np.nan, lo), np.where(none, np.nan, hi)
    # of two zeros either may be picked
    lo, hi = flush.extremum(c.model, c.format, x, y, lo, hi)
    made = c.build(lo, hi, nan, x.pos_zero | y.pos_zero, x.neg_zero | y.neg_zero, inexact=False)
    return unchanged.of_extremum(made, x, y, largest)


@ENCLOSE.row(ops.Maximum)
def _maximum(op: Op, c: Context, x: Interval, y: Interval) -> Interval:
    return _extremum(c, x, y, True)


@ENCLOSE.row(ops.Minimum)
def _minimum(op: Op, c: Context, x: Interval, y: Interval) -> Interval:
    return _extremum(c, x, y, False)


@ENCLOSE.row(ops.Clamp)
def _clamp(op: Op, c: Context, x: Interval, lower: Interval, upper: Interval) -> Interval:
    return _extremum(c, upper, _extremum(c, lower, x, True), False)


@ENCLOSE.row(ops.Compare)
def _compare(op: ops.Compare, c: Context, x: Interval, y: Interval) -> Interval:
    """Three-valued: undecided where the operands overlap; false where NaN."""
    if op.dir in (CompareDir.Gt, CompareDir.Ge):
        x, y = y, x
    some = ~(x.empty | y.empty)
    if op.dir is CompareDir.Eq:
        can = (x.lo <= y.hi) & (y.lo <= x.hi)
        must = (x.lo == x.hi) & (y.lo == y.hi) & (x.lo == y.lo)
    elif op.dir in (CompareDir.Lt, CompareDir.Gt):
        can, must = x.lo < y.hi, x.hi < y.lo
    else:
        can, must = x.lo <= y.hi, x.hi <= y.lo
    if x is y and x.dtype.is_float:  # one value, read twice; of a subnormal one reading may be zero
        least = flush.zero_below(c.model, FORMATS[x.dtype])
        steady = (x.lo >= least) | (x.hi <= -least) | (least == 0)
        if op.dir in (CompareDir.Lt, CompareDir.Gt):
            can = can & ~steady
        else:
            must = must | steady
    return three_valued(can & some, ~must | x.nan | y.nan)


@ENCLOSE.row(ops.Select)
def _select(op: Op, c: Context, pred: Interval, x: Interval, y: Interval) -> Interval:
    """The operand that the predicate picks; their hull where it is undecided."""
    same = unchanged.chosen(pred, x, y)
    if same is not None:
        return same
    pick = partial(choose, pred.can_true, pred.can_false)
    made = pick(x, y)
    if converted := narrowing.joined((x, y), lambda both: pick(*both)):
        made = made.from_(made.origin.converted_from(converted))
    zero = (_known_zeros(x) & ~pred.can_false) | (_known_zeros(y) & ~pred.can_true)
    fixed = fixed_in(pred) & ((fixed_in(x) & ~pred.can_false) | (fixed_in(y) & ~pred.can_true))
    if np.any(zero) or np.any(fixed):
        origin = replace(made.origin, filled=zero if np.any(zero) else None, fixed=fixed if np.any(fixed) else None)
        made = made.from_(origin)
    return made


def _known_zeros(x: Interval) -> Array:
    """Where a compiler knows that a float is +0: a constant, or a zero that a move or a Select has put there."""
    if x.const and x.dtype.is_float:
        return np.asarray((x.lo == 0) & (x.hi == 0) & ~(x.nan | x.neg_zero))
    return np.zeros(x.shape, bool) if x.origin.filled is None else x.origin.filled


def choose(can_x: Array, can_y: Array, x: Interval, y: Interval) -> Interval:
    """`x` where only it can be, `y` where only it can be, else the hull."""
    union = x if x.is_point and y.is_point and not (can_x & can_y).any() else hull(x, y)
    only_x = ~can_y

    def pick(a: Array, b: Array, both: Array) -> Array:
        return np.where(only_x, a, np.where(can_x, both, b))

    lo = pick(x.lo, y.lo, union.lo)
    hi = lo if union is x else pick(x.hi, y.hi, union.hi)
    if not x.dtype.is_float:
        return exact(x.dtype, lo, hi)
    nan, pos, neg = (pick(a, b, a | b) for a, b in ((x.nan, y.nan), (x.pos_zero, y.pos_zero), (x.neg_zero, y.neg_zero)))

    def both_ends(ends: Sequence[Array], low: bool) -> Array:
        a, b = ends
        return pick(a, b, np.fmin(a, b) if low else np.fmax(a, b))

    return Interval(
        x.dtype, lo, hi, nan, pos, neg, contraction.picked(x, y, pick=both_ends), _gap_of(x, y, only_x, can_x)
    )


def _gap_of(x: Interval, y: Interval, only_x: Array, can_x: Array) -> tuple[Array, Array] | None:
    """What is between `x` and `y` where either may be, if they are apart; where one alone may be, its own gap."""
    both = ~only_x & can_x
    if x.gap is None and y.gap is None and not np.count_nonzero(both):
        return None
    (x_below, x_above), (y_below, y_above) = (v.gap or (np.inf, -np.inf) for v in (x, y))
    between = np.minimum(x.hi, y.hi), np.maximum(x.lo, y.lo)
    apart = both & (between[0] < between[1]) & ~(x.empty | y.empty)
    below = np.where(only_x, x_below, np.where(can_x, np.inf, y_below))
    above = np.where(only_x, x_above, np.where(can_x, -np.inf, y_above))
    return np.where(apart, between[0], below), np.where(apart, between[1], above)
