"""Rules of ReduceProd, ReduceMax and ReduceMin: bounds that hold for every order of evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from oracle.enclosure import integers, unchanged
from oracle.enclosure.arithmetic import multiply
from oracle.enclosure.bounds import (
    extreme_products,
    may_be_negative,
    may_be_positive,
    may_be_zero,
)
from oracle.enclosure.formats import NO_NAN, Array, Format, quantum
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
    """Any order: a relative error, and an absolute one where a partial product may underflow; the sign is that of the factors."""
    if not op.axes:
        return x
    x = x.map(flattened(op.axes, len(x.shape)))
    if not c.dtype.is_float:
        return _integer_product(c.dtype, x)
    x = unchanged.without_neutral(op, x)
    n = x.shape[-1]
    if n in (1, 2):
        return _nested(c, _of_one_or_two(c, x), x)
    f = c.format
    lo = np.where(x.empty, 1.0, x.lo)
    hi = lo if x.is_point else np.where(x.empty, 1.0, x.hi)
    zero, zeros = may_be_zero(x).any(-1), ((x.lo == 0) & (x.hi == 0)).any(-1)
    endless = (lo == hi) & np.isinf(lo)
    large = np.where(endless, 1, np.maximum(np.abs(lo), np.abs(hi))).astype(f.wide)
    small = np.where((lo <= 0) & (hi >= 0), 0, np.minimum(np.abs(lo), np.abs(hi))).astype(f.wide)
    p = _partial(c, large, small, _is_exact(f, lo, hi, endless))
    endless = endless.any(-1)
    wild = (p.over | endless) & ~zeros
    none = x.empty.any(-1) | (zeros & endless)
    low, high = _extremes(f, lo, hi)
    # what underflows is off by a subnormal, which later factors enlarge, or is flushed: then all of the product is zero
    most = np.maximum(large, 1).prod(-1)
    lost = np.where(p.under & ~wild, 2 * n * f.least_subnormal * most, 0.0).astype(f.wide)
    gone = p.under & ~wild & (c.zero_below > 0)
    down, up = (np.where(gone, end, v) for v, end in ((low, np.fmin(low, 0)), (high, np.fmax(high, 0))))
    raw_down, raw_up = _slipped(p.slip, down, up)
    least, greatest = f.least_at_or_above(raw_down - lost), f.greatest_at_or_below(raw_up + lost)
    signs = may_be_negative(x)
    decided = (signs != may_be_positive(x)).all(-1)
    minus = np.where(signs, 1, 0).sum(-1) % 2 == 1
    # where no wider type has the product, or the largest number takes the place of an infinity, it says nothing of the least
    open_ = p.under | zero | (p.over & (np.isinf(f.overflow) | (c.dtype in NO_NAN)))
    least = np.where(wild, np.where(endless, np.inf, np.where(open_, 0.0, least)), least)
    least = np.where(
        wild & (minus | ~decided), -np.inf, np.where(p.under & decided & ~minus, np.maximum(least, 0), least)
    )
    greatest = np.where(wild, np.where(endless, -np.inf, np.where(open_, 0.0, greatest)), greatest)
    greatest = np.where(
        wild & ~(minus & decided), np.inf, np.where(p.under & decided & minus, np.minimum(greatest, 0), greatest)
    )
    least, greatest = np.where(zeros, 0.0, least), np.where(zeros, 0.0, greatest)
    least, greatest = np.where(none, np.inf, least), np.where(none, -np.inf, greatest)
    nan = any_term(x.nan) | ((zero | p.vanishing) & (p.over | endless))
    result = c.build(least, greatest, nan, ~decided | ~minus, ~decided | minus)
    if not c.model.keeps_unrounded:
        return result
    # fused with an addition that follows, the last of the products is not rounded
    raw_low, raw_high = _slipped(np.where(p.slip == 1, 1, _slip(f, n, n - 2)), down, up)
    # that of an overflow may be finite
    fixed = zeros | none
    raw_low = np.where(fixed, least, np.where(wild, np.fmin(least, raw_low), raw_low - lost))
    raw_high = np.where(fixed, greatest, np.where(wild, np.fmax(greatest, raw_high), raw_high + lost))
    roundings = np.where(p.slip == 1, 0.0, n - 1.0)
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


@dataclass(frozen=True, slots=True, eq=False)
class _Partial:
    """Of partial products of finite factors: the factor that roundings may move them by, whether one may overflow, may be
    subnormal (or lost), may be zero."""

    slip: Array
    over: Array
    under: Array
    vanishing: Array


def _partial(c: Context, large: Array, small: Array, is_exact: Array) -> _Partial:
    """Partial products of factors of at most, and at least, these magnitudes.

    They reach at most the product of the factors above 1, and at least that of those below. A rounding makes no more than a
    third less of a subnormal, unless it is half the least one: that is zero.
    """
    f, n = c.format, large.shape[-1]
    most, least = np.maximum(large, 1).prod(-1), np.minimum(small, 1).prod(-1)
    rounded = _slip(f, n, max(n - 1, 0))  # over no element it is 1
    # one factor above 1 is rounded to no more than itself beside others, one below 1 to no less
    grows, shrinks = (large > 1).sum(-1) > 1, (small < 1).sum(-1) > 1
    reach = np.where(is_exact | ~shrinks, 1, rounded)
    under = (least < f.min_normal * reach) | (least <= c.zero_below * reach)
    slip = np.where(is_exact & ~under, 1, rounded)
    over = most * np.where(grows, slip, 1) >= f.overflow
    vanishing = under & ((c.zero_below > 0) | (shrinks & (least <= f.least_subnormal * f.wide(1.5) ** n)))
    return _Partial(slip, over, under, vanishing)


def _is_exact(f: Format, lo: Array, hi: Array, endless: Array) -> Array:
    """Whether so few bits are set in all factors together that every partial product in the normal range is exact."""
    other = endless | (lo == 0)
    bits = np.where(other, 1, np.abs(lo) / np.where(other, 1, quantum(lo))).astype(f.wide).prod(-1)
    return np.asarray((lo == hi).all(-1) & (bits * f.unit < 1))


def _slip(f: Format, n: int, roundings: int) -> Array:
    """The factor by which a product of `n`, computed in the wide type, and so many roundings differ: each moves by 1 + u at most, up or down."""
    return np.asarray(np.exp(np.minimum(f.wide(roundings * f.unit + 4 * n * f.wide_unit), 700)))


def _slipped(slip: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Bounds of what [low, high] may be off by such a factor."""
    return np.where(low < 0, low * slip, low / slip), np.where(high < 0, high / slip, high * slip)


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
    start = unchanged.NEUTRAL[type(op)]
    x = unchanged.without_neutral(op, x)
    if x.shape[-1] == 1:  # as a product before it, unrounded
        return x.map(lambda a: a[..., 0])
    if (same := unchanged.along_last(x)) is not None:
        return same
    none = x.empty.any(-1)
    lo, hi = pick.reduce(x.lo, -1, initial=start), pick.reduce(x.hi, -1, initial=start)
    lo, hi = flush.extremum_of_many(c.model, c.format, x, lo, hi)
    lo, hi = np.where(none, np.inf, lo), np.where(none, -np.inf, hi)
    return c.build(lo, hi, any_term(x.nan), any_term(x.pos_zero), any_term(x.neg_zero), inexact=False)
