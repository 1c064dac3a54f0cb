"""Contraction: a product may go unrounded into an addition (FMA).

*Bound.* A product keeps its unrounded bounds (`Unrounded`): exact for F32 in float64; for F64 in the wide type, one
step outward unless few enough bits are set. Moves, negation, selection, the absolute value of what is not negative and
reductions of one element carry them along. A sum takes the hull of what rounding twice and rounding once give. The unrounded product of an overflow may be
finite again in a sum, that of an infinity is infinite. The last product of a ReduceProd is one of them.

*Zeros.* What a fused sum leaves is no zero, or the +0 that rounding twice gives too: the product of two numbers of p
bits has at most 2 p, so `x y` and z, and hence their sum, are multiples of the lesser of `u^2 |x y|` and `u |z|`.
Only where that may be flushed or underflow is the zero of its sign possible as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oracle.enclosure.bounds import Bounds, least_bits, least_magnitude, magnitude, product_bounds, without_nan
from oracle.enclosure.formats import Array, Format, sum_outward
from oracle.enclosure.origin import NOWHERE, Origin, Unrounded
from oracle.enclosure.rule import Context
from oracle.enclosure.value import Interval
from tenferro_ref.dtype import DType


def is_free(c: Context) -> bool:
    """Whether a product may go unrounded into an addition."""
    return c.model.contract


def unrounded_product(f: Format, x: Interval, y: Interval, exact_low: Array, exact_high: Array) -> Bounds:
    """Wide bounds of the product itself, given those in float64."""
    if f.wide is not np.float64:
        exact_low, exact_high = product_bounds(f.wide, x, y)
    # F32 products are exact in float64; those of F64 are exact in the wide type when few enough bits are set
    if f.dtype is DType.F64:
        fits = magnitude(exact_low, exact_high) * f.wide_unit <= least_bits(x) * least_bits(y)
        # where the wide type has the range of all products, zeros and infinities come of zeros and infinities alone
        ranged = f.wide is not np.float64
        exact_low, exact_high = (
            np.where(fits | (ranged & ((v == 0) | np.isinf(v))), v, np.nextafter(v, f.wide(towards)))
            for v, towards in ((exact_low, -np.inf), (exact_high, np.inf))
        )
    none = np.isnan(exact_low) | np.isnan(exact_high)
    exact_low, exact_high = np.where(none, np.inf, exact_low), np.where(none, -np.inf, exact_high)
    return exact_low, exact_high


def beside_ones(c: Context, x: Interval, other: Interval) -> bool:
    """Whether `x` is a product that a contraction with `other` may take unrounded, since all that it multiplies with is 1 or -1."""
    u = x.unrounded
    return bool(
        c.model.contract
        and u
        and u.contractible
        and other.const
        and np.all((other.lo == other.hi) & (np.abs(other.lo) == 1))
    )


def without_ones(c: Context, x: Interval, y: Interval, lo: Array, hi: Array) -> Bounds:
    """Bounds of the products of a contraction, where factors are ones also of what the others were rounded from."""
    for v, one in ((x, y), (y, x)):
        if beside_ones(c, v, one) and (u := v.unrounded):
            ends = u.lo * one.lo, u.hi * one.lo
            lo, hi = np.fmin(lo, np.fmin(*ends)), np.fmax(hi, np.fmax(*ends))
    return lo, hi


def picked(*values: Interval, pick: Callable[[Sequence[Array], bool], Array]) -> Origin:
    """The unrounded products of values that are picked from, if there are any; a value without one stands for itself.

    `pick` makes of the lower ends (True), and of the upper ends, those of the result.
    """
    products = [v.unrounded if v.unrounded is not None and v.unrounded.contractible else None for v in values]
    if not any(products):
        return NOWHERE
    ends = [(v.lo, v.hi) if u is None else (u.lo, u.hi) for v, u in zip(values, products, strict=True)]
    lows, highs = zip(*ends, strict=True)
    return Origin(unrounded=Unrounded("product", pick(lows, True), pick(highs, False)))


def terms(c: Context, x: Interval) -> tuple[Array, Array, Array | None]:
    """Bounds of the terms of a sum, which may come unrounded, and which of them are known; None: all are."""
    u = x.unrounded
    if not c.model.contract or u is None or not u.contractible:
        return x.lo, x.hi, None if x.is_point else x.lo == x.hi
    single = (x.lo == x.hi) & (u.lo == x.lo) & (u.hi == x.hi)
    return np.fmin(u.lo, x.lo), np.fmax(u.hi, x.hi), single


def addition(c: Context, result: Interval, x: Interval, y: Interval) -> Interval:
    """`x + y`, given what rounding twice gives."""
    if not c.model.contract:
        return result
    fused = [(u, v) for u, v in ((x.unrounded, y), (y.unrounded, x)) if u is not None and u.contractible]
    for (unrounded, addend), (low, high) in zip(fused, _fused(c.format, fused), strict=True):
        vanishing = _vanishing(c, unrounded, addend, low, high)
        pos, neg = result.pos_zero, result.neg_zero
        if np.count_nonzero(vanishing):
            # of two zeros the sum is that of the rounded product, and the sign of a bound says nothing
            ends = ((unrounded.hi, addend.hi), (unrounded.lo, addend.lo))
            greatest, least = (~((u == 0) & (v == 0)) for u, v in ends)
            pos, neg = pos | (vanishing & greatest & ~np.signbit(high)), neg | (vanishing & least & np.signbit(low))
            low, high = np.where(vanishing & (low > 0), 0.0, low), np.where(vanishing & (high < 0), 0.0, high)
        result = Interval(c.dtype, np.fmin(result.lo, low), np.fmax(result.hi, high), result.nan, pos, neg)
    return result


def beside_filled(c: Context, result: Interval, x: Interval, y: Interval) -> Unrounded | None:
    """`x + y` before it was rounded, where a product is added to a zero that a move or a Select has put there: LLVM leaves that out.

    Only of a product that is not negative, as a square is not: -0 and that zero would be +0.
    """
    lo, hi, some = result.lo, result.hi, False
    for zero, other in ((x, y), (y, x)):
        u, filled = other.unrounded, zero.origin.filled
        if u is None or filled is None or not (c.model.contract and u.contractible) or other.shape != result.shape:
            continue
        alone = filled & (u.lo >= 0) & (u.lo <= u.hi)
        if other.origin.filled is not None:
            alone &= ~other.origin.filled
        lo, hi, some = np.where(alone, u.lo, lo), np.where(alone, u.hi, hi), some or bool(np.any(alone))
    return Unrounded("product", lo, hi) if some else None


def _vanishing(c: Context, product: Unrounded, addend: Interval, low: Array, high: Array) -> Array:
    """Where a sum of a product, rounded once to [low, high], may be so small that a zero of its sign takes its place.

    Products of two numbers of p bits have no more than 2 p, so that both `x y` and z are multiples of the lesser of
    `u^2 |x y|` and `u |z|`, as their sum is: nothing, and then +0 as the rounded sum is, or at least that.
    """
    f = c.format
    tiny = c.lost_below
    near = np.asarray((low <= tiny) & (high >= -tiny))
    if not np.count_nonzero(near):
        return near
    of_product, of_addend = least_magnitude(product.lo, product.hi), least_magnitude(addend.lo, addend.hi)
    return np.asarray(near & (np.fmin(of_product * f.unit**2, of_addend * f.unit) <= tiny))


def _fused(f: Format, sums: list[tuple[Unrounded, Interval]]) -> list[Bounds]:
    """Bounds of each `product + addend` rounded once; an empty sum is (+inf, -inf)."""
    if not sums:
        return []
    shapes = {v.lo.shape for pair in sums for v in pair}
    shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
    products, addends = np.empty((len(sums), 2, *shape), f.wide), np.empty((len(sums), 2, *shape), f.wide)
    for k, (product, addend) in enumerate(sums):
        products[k, 0], products[k, 1] = product.lo, product.hi
        addends[k, 0], addends[k, 1] = addend.lo, addend.hi
    directions = np.array([-np.inf, np.inf], f.wide).reshape(2, *(1,) * len(shape))
    return [without_nan(low, high) for low, high in f.nearest(sum_outward(products, addends, directions))]
