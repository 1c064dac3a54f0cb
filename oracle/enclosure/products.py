"""Rules of ReduceProd, ReduceMax and ReduceMin: bounds that hold for every order of evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce

import numpy as np

from oracle.enclosure import integers, unchanged
from oracle.enclosure.arithmetic import multiply
from oracle.enclosure.bounds import (
    extreme_products,
    may_be_infinite,
    may_be_negative,
    may_be_positive,
    may_be_zero,
)
from oracle.enclosure.formats import Array, Format, quantum
from oracle.enclosure.freedoms import flush, merging
from oracle.enclosure.freedoms.gathering import slipped
from oracle.enclosure.origin import Unrounded
from oracle.enclosure.rule import ENCLOSE, Context
from oracle.enclosure.sums import any_term, flattened
from oracle.enclosure.value import Interval, exact
from tenferro_ref import ops
from tenferro_ref.dtype import DType


def taken(i: int) -> Callable[[Array], Array]:
    """Element `i` of the last axis."""
    return lambda a: a[..., i]


@ENCLOSE.row(ops.ReduceProd)
def _reduce_prod(op: ops.ReduceProd, c: Context, x: Interval) -> Interval:
    """Any order: relative error, an absolute one where a partial product may underflow; none where one may overflow."""
    if not op.axes:
        return x
    x = x.map(flattened(op.axes, len(x.shape)))
    n = x.shape[-1]
    if not c.dtype.is_float:
        return _integer_product(c.dtype, x)
    if n in (1, 2):
        return _nested(c, _of_one_or_two(c, x), x)
    f, w = c.format, c.format.wide
    none = x.empty.any(-1)
    lo = np.where(x.empty, 1.0, x.lo)
    hi = lo if x.is_point else np.where(x.empty, 1.0, x.hi)
    zero = may_be_zero(x).any(-1)
    infinite = may_be_infinite(x).any(-1)
    large = np.maximum(np.abs(lo), np.abs(hi))
    small = np.where((lo <= 0) & (hi >= 0), 0, np.minimum(np.abs(lo), np.abs(hi)))
    over, under = _out_of_range(f, large, small)
    low, high = _extremes(f, lo, hi)
    # small integers over a power of two: every partial product is exact
    grain = np.minimum(quantum(lo), 1).prod(-1)
    fine = ((lo == hi) & np.isfinite(lo)).all(-1) & (np.maximum(large, 1).prod(-1) * f.unit < grain)
    error = np.where(fine & (grain > f.min_normal), 0, _product_error(f, n, max(n - 1, 0)))  # over no element it is 1
    # what underflows is off by a denormal, which later factors enlarge, or is flushed: then all of the product is zero
    lost = np.where(under & ~over, 2 * n * f.least_denormal * np.maximum(large, 1).prod(-1), 0.0).astype(w)
    gone = under & ~over & (c.zero_below > 0)
    down, up = (np.where(gone, end, v) for v, end in ((low, np.fmin(low, 0)), (high, np.fmax(high, 0))))
    least = f.least_at_or_above(down - error * np.abs(down) - lost)
    greatest = f.greatest_at_or_below(up + error * np.abs(up) + lost)
    certain_zero = ((x.lo == 0) & (x.hi == 0)).any(-1) & ~over & ~infinite
    wild = over & ~certain_zero
    signs = may_be_negative(x)
    plus_only = ~signs.any(-1)
    known = np.where(signs, 1, 0).sum(-1) % 2 == 1
    decided = (signs != may_be_positive(x)).all(-1)
    least = np.where(wild, np.where(plus_only, np.where(under | zero, 0.0, least), -np.inf), least)
    least = np.where(under & decided & ~known, np.maximum(least, 0), least)
    greatest = np.where(under & decided & known, np.minimum(greatest, 0), greatest)
    greatest = np.where(wild, np.inf, greatest)
    least, greatest = np.where(np.isnan(least), -np.inf, least), np.where(np.isnan(greatest), np.inf, greatest)
    least, greatest = np.where(certain_zero, 0.0, least), np.where(certain_zero, 0.0, greatest)
    least, greatest = np.where(none, np.inf, least), np.where(none, -np.inf, greatest)
    nan = any_term(x.nan) | (zero & (infinite | over)) | (over & under) | (infinite & under)
    pos, neg = ~decided | ~known, ~decided | known
    result = c.build(least, greatest, nan, pos, neg)
    if not c.model.keeps_unrounded:
        return result
    # fused with an addition that follows, the last of the products is not rounded
    before = np.where(error == 0, 0, _product_error(f, n, n - 2))
    fixed = certain_zero | none
    raw_low, raw_high = down - before * np.abs(down) - lost, up + before * np.abs(up) + lost
    # that of an overflow may be finite
    raw_low = np.where(fixed, least, np.where(wild, np.fmin(least, raw_low), raw_low))
    raw_high = np.where(fixed, greatest, np.where(wild, np.fmax(greatest, raw_high), raw_high))
    roundings = np.where(error == 0, 0.0, n - 1.0)
    return _nested(
        c, result.remembering(Unrounded("product", raw_low, raw_high, False, (down, up), roundings, True)), x
    )


def _of_one_or_two(c: Context, x: Interval) -> Interval:
    """1 times the first factor is that factor."""
    made = reduce(partial(multiply, c), (x.map(taken(i)) for i in range(x.shape[-1])))
    u = made.unrounded if x.shape[-1] == 2 else None
    return made.remembering(replace(u, reduced=True)) if u else made


def _extremes(f: Format, lo: Array, hi: Array) -> tuple[Array, Array]:
    """The least and the greatest product along the last axis, in the wide type."""
    low = high = np.ones(lo.shape[:-1], f.wide)
    for i in range(lo.shape[-1]):
        a = lo[..., i].astype(f.wide)
        low, high = extreme_products(low, high, a, a if hi is lo else hi[..., i].astype(f.wide))
    return low, high


def _product_error(f: Format, n: int, roundings: int) -> float:
    """Of `n` factors multiplied in the wide type, beside so many roundings."""
    return roundings * f.unit / (1 - roundings * f.unit) + 4 * n * f.wide_unit


def _nested(c: Context, made: Interval, x: Interval) -> Interval:
    """A product of products as one, in any order: off by a rounding for each of all the factors; not where one leaves the range."""
    u, own = x.unrounded, made.unrounded
    if not (merging.is_free(c) and u and u.reduced and own):
        return made
    f = c.format
    low = high = np.ones(made.shape, f.wide)
    for a, b in zip(*(np.moveaxis(v, -1, 0) for v in u.chain), strict=True):
        low, high = extreme_products(low, high, a, b)
    n = x.shape[-1]
    roundings = np.sum(np.broadcast_to(u.roundings, x.shape), -1) + n - 1
    down, up = slipped(f, roundings - 1, low, high)
    inside = (
        np.isfinite(x.lo).all(-1) & np.isfinite(x.hi).all(-1) & (np.minimum(np.abs(down), np.abs(up)) > f.min_normal)
    )
    inside &= np.isfinite(made.lo) & np.isfinite(made.hi) & (made.lo != 0) & (made.hi != 0) & (roundings > 0)
    lo, hi = np.fmin(made.lo, f.nearest(down)), np.fmax(made.hi, f.nearest(up))
    wide = replace(made, lo=np.where(inside, lo, made.lo), hi=np.where(inside, hi, made.hi))
    ends = np.where(inside, np.fmin(own.lo, down), own.lo), np.where(inside, np.fmax(own.hi, up), own.hi)
    return wide.remembering(Unrounded("product", *ends, own.scaled, (low, high), roundings, True))


def _out_of_range(f: Format, large: Array, small: Array) -> tuple[Array, Array]:
    """Whether a partial product of factors of these magnitudes may overflow, and whether one may underflow."""
    with np.errstate(divide="ignore"):
        log_large, log_small = np.log2(large), np.log2(small)
    # partial products reach at most the product of the factors above 1, at least that of those below
    over = np.maximum(log_large, 0).sum(-1) >= np.log2(f.max) - 1
    return over, np.minimum(log_small, 0).sum(-1) <= np.log2(f.min_normal) + 1


def _integer_product(dtype: DType, x: Interval) -> Interval:
    if dtype is DType.Bool:
        return exact(dtype, ~any_term(x.lo == 0), ~any_term(x.hi == 0))
    value = integers.modulo(dtype, np.asarray(np.multiply.reduce(x.lo, -1)))
    return integers.where_known(dtype, np.logical_and.reduce(x.lo == x.hi, -1), value)


@ENCLOSE.row(ops.ReduceMax, ops.ReduceMin)
def _reduce_extremum(op: ops.ReduceMax | ops.ReduceMin, c: Context, x: Interval) -> Interval:
    """NaN if there is one; of several zeros either sign."""
    if not op.axes:
        return x
    largest = isinstance(op, ops.ReduceMax)
    pick = np.maximum if largest else np.minimum
    was_point = x.is_point
    x = x.map(flattened(op.axes, len(x.shape)))
    if not c.dtype.is_float:
        least, greatest = c.dtype.limits
        first = least if largest else greatest
        lo = pick.reduce(x.lo, -1, initial=first)
        return exact(c.dtype, lo, lo if was_point else pick.reduce(x.hi, -1, initial=first))
    if x.shape[-1] == 1:  # as a product before it, unrounded
        return x.map(lambda a: a[..., 0])
    if (same := unchanged.along_last(x)) is not None:
        return same
    start = -np.inf if largest else np.inf
    none = x.empty.any(-1)
    lo, hi = pick.reduce(x.lo, -1, initial=start), pick.reduce(x.hi, -1, initial=start)
    lo, hi = flush.extremum_of_many(c.model, c.format, x, lo, hi)
    lo, hi = np.where(none, np.inf, lo), np.where(none, -np.inf, hi)
    return c.build(lo, hi, any_term(x.nan), any_term(x.pos_zero), any_term(x.neg_zero), inexact=False)
