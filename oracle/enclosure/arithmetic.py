"""Rules of the correctly rounded operations: sum, product, quotient, and what only picks or compares.

Rounding to nearest is monotone, so that the bounds of the rounded results are the rounded bounds. What an FMA or a
rewritten division may give instead joins the hull (docs/enclosures.md, "Contraction" and "Rewrites").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from oracle.enclosure import integers
from oracle.enclosure.formats import FORMATS, Array, Format, quantum, sum_outward
from oracle.enclosure.rule import ENCLOSE, Bounds, Context
from oracle.enclosure.value import (
    NOWHERE,
    Enclosure,
    Interval,
    Origin,
    Terms,
    Unrounded,
    build,
    exact,
    hull,
    three_valued,
)
from tenferro_ref import ops
from tenferro_ref.ops import CompareDir, Op


def may_be_positive(x: Interval) -> Array:
    """Some possible result has a plus sign."""
    return np.asarray((x.hi > 0) | x.pos_zero)


def may_be_negative(x: Interval) -> Array:
    return np.asarray((x.lo < 0) | x.neg_zero)


def may_be_zero(x: Interval) -> Array:
    return np.asarray(x.pos_zero | x.neg_zero)


def may_be_infinite(x: Interval) -> Array:
    return np.asarray(((x.hi == np.inf) | (x.lo == -np.inf)) & (x.lo <= x.hi))


def may_be_finite(x: Interval) -> Array:
    return np.asarray((x.lo < np.inf) & (x.hi > -np.inf) & (x.lo <= x.hi))


def is_zero(x: Interval) -> Array:
    """Nothing but a zero (or NaN)."""
    return np.asarray((x.lo == 0) & (x.hi == 0))


# --- sum ------------------------------------------------------------------------------------------------------------


def _without_nan(lo: Array, hi: Array) -> Bounds:
    """Bounds of a sum: where one is inf - inf, the other operand is one infinity, and no more than that is possible."""
    return np.where(np.isnan(lo), np.inf, lo), np.where(np.isnan(hi), -np.inf, hi)


@ENCLOSE.row(ops.Add)
def _add(op: Op, c: Context, x: Interval, y: Interval) -> Interval:
    return add(c, x, y) if c.dtype.is_float else integers.add(c.dtype, x, y)


def add(c: Context, x: Interval, y: Interval) -> Interval:
    """`x + y` rounded once; with an unrounded product in it where the model contracts."""
    f = c.format
    finite = x.finite and y.finite
    if x.is_point and y.is_point:
        lo = hi = f.nearest(x.lo + y.lo)
    else:
        lo, hi = f.nearest(x.lo + y.lo), f.nearest(x.hi + y.hi)
        lo, hi = (lo, hi) if finite else _without_nan(lo, hi)
    nan = x.nan | y.nan
    if not finite:
        nan = nan | ((x.hi == np.inf) & (y.lo == -np.inf)) | ((x.lo == -np.inf) & (y.hi == np.inf))
    # a sum of two zeros has their common sign, or is +0; any other zero is a cancellation: +0
    neg = x.neg_zero & y.neg_zero
    pos = ~neg
    if np.count_nonzero(neg):
        pos = ~(is_zero(x) & is_zero(y)) | (x.pos_zero & may_be_zero(y)) | (x.neg_zero & y.pos_zero)
    if c.model.rewrite and (x.const or y.const):  # x + 0 is x
        neg = neg | (x.neg_zero & y.pos_zero & y.const) | (x.pos_zero & y.neg_zero & x.const)
    result = build(c.model, c.dtype, lo, hi, nan, pos, neg)
    if c.model.contract:
        fused = [(u, v) for u, v in ((x.unrounded, y), (y.unrounded, x)) if u is not None and u.contractible]
        for (product, addend), (low, high) in zip(fused, _fused(f, fused), strict=True):
            vanishing = _vanishing(c, product, addend, low, high)
            pos, neg = result.pos_zero, result.neg_zero
            if np.count_nonzero(vanishing):
                pos, neg = pos | (vanishing & ~np.signbit(high)), neg | (vanishing & np.signbit(low))
                low, high = np.where(vanishing & (low > 0), 0.0, low), np.where(vanishing & (high < 0), 0.0, high)
            lo, hi = np.fmin(result.lo, low), np.fmax(result.hi, high)
            result = Interval(c.dtype, lo, hi, result.nan, pos, neg)
    if c.model.rewrite:
        for sum_, addend in ((x.terms, y), (y.terms, x)):
            if sum_ is not None and sum_.contraction:  # the accumulator may start from the addend
                result = hull(result, accumulated(c, sum_, addend))
    return result


def _vanishing(c: Context, product: Unrounded, addend: Interval, low: Array, high: Array) -> Array:
    """Where a sum of a product, rounded once to [low, high], may be so small that a zero of its sign takes its place.

    Products of two numbers of p bits have no more than 2 p, so that both `x y` and z are multiples of the lesser of
    `u^2 |x y|` and `u |z|`, as their sum is: nothing, and then +0 as the rounded sum is, or at least that.
    """
    f = c.format
    tiny = f.min_normal if c.model.flush else f.least_denormal
    near = np.asarray((low <= tiny) & (high >= -tiny))
    if not np.count_nonzero(near):
        return near
    of_product, of_addend = _least_magnitude(product.lo, product.hi), _least_magnitude(addend.lo, addend.hi)
    return np.asarray(near & (np.fmin(of_product * f.unit**2, of_addend * f.unit) <= tiny))


def accumulated(c: Context, t: Terms, addend: Interval) -> Interval:
    """A contraction and an addend as one sum in any order; nothing where the addend is not finite or a sum may overflow."""
    f = c.format
    size_lo, size_hi = t.size_lo + np.abs(addend.lo), t.size_hi + np.abs(addend.hi)
    sum_lo, sum_hi = t.lo + addend.lo, t.hi + addend.hi
    # flushed may be each product, the sum with it and the addend: `t.count` is one more than there are products
    least = (f.min_normal if c.model.flush else f.least_denormal) * 2 * t.count
    # of k products and the addend there are k sums, of which the addend meets one rounding less than a product
    low, high = (any_order(f, np.abs(s), size, t.count - 1, False) + f.unit * products + 4 * f.wide_unit * size + least
                 for s, size, products in ((sum_lo, size_lo, t.size_lo), (sum_hi, size_hi, t.size_hi)))  # fmt: skip
    low, high = f.least_at_or_above(sum_lo - low), f.greatest_at_or_below(sum_hi + high)
    exact = np.maximum(size_lo, size_hi) * f.unit < np.minimum(t.quantum, _least_bits(addend))
    usable = ~exact & np.isfinite(size_lo) & np.isfinite(size_hi) & (np.maximum(size_lo, size_hi) < f.max / 2)
    low, high = np.where(usable, low, np.nan), np.where(usable, high, np.nan)
    never = np.zeros(low.shape, bool)
    made = build(c.model, c.dtype, low, high, never, ~never, (low < 0) & (high >= 0))
    return replace(made, nan=never)


def any_order(
    f: Format, total: Array, size: Array, additions: int, products: bool, partial: Array | None = None
) -> Array:
    """Largest error of a sum that is evaluated in any order.

    Parameters
    ----------
    total, size
        Magnitude of the sum, and the sum of the magnitudes of the terms (wide).
    products
        Each term is a product that may be rounded first.
    partial
        Bound of the magnitudes of all partial sums together, without the last; by default each is bounded by the greater
        of the positive and of the negative terms.
    """
    rounded = additions + products
    gamma = rounded * f.unit / (1 - rounded * f.unit) if rounded * f.unit < 0.5 else np.inf
    if partial is None:
        partial = max(additions - 1, 0) * (size + total) / 2
    # partial sums are themselves off by gamma at most
    return f.unit * (total + partial + (products + max(additions, 0) * gamma) * size)


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
    return [_without_nan(low, high) for low, high in f.nearest(sum_outward(products, addends, directions))]


# --- product --------------------------------------------------------------------------------------------------------


def extreme_products(xl: Array, xh: Array, yl: Array, yh: Array) -> Bounds:
    """Least and greatest corner; fmin and fmax leave out 0 * inf."""
    if xl is xh:
        if yl is yh:
            p = xl * yl
            return p, p
        a, b = xl * yl, xl * yh
        return np.fmin(a, b), np.fmax(a, b)
    if yl is yh:
        a, b = xl * yl, xh * yl
        return np.fmin(a, b), np.fmax(a, b)
    a, b, d, e = xl * yl, xl * yh, xh * yl, xh * yh
    return np.fmin(np.fmin(a, b), np.fmin(d, e)), np.fmax(np.fmax(a, b), np.fmax(d, e))


def product_bounds(wide: Any, x: Interval, y: Interval) -> Bounds:
    """Bounds of the product in a wide type (rounded to that type); NaN where there is none."""
    xl, yl = x.lo.astype(wide), y.lo.astype(wide)
    xh = xl if x.is_point else x.hi.astype(wide)
    yh = yl if y.is_point else y.hi.astype(wide)
    lo, hi = extreme_products(xl, xh, yl, yh)
    if x.is_point and y.is_point:
        return lo, hi
    if x is y:  # a square
        lo = np.where((xl < 0) & (xh > 0), 0, np.fmin(xl * xl, xh * xh))
    finite = x.finite and y.finite
    # 0 * finite where every corner is 0 * inf
    zero = np.asarray(may_be_zero(x) | may_be_zero(y))
    if not finite:
        zero = (may_be_zero(x) & may_be_finite(y)) | (may_be_zero(y) & may_be_finite(x))
    if np.count_nonzero(zero):
        lo, hi = np.where(zero, np.fmin(lo, 0), lo), np.where(zero, np.fmax(hi, 0), hi)
    if finite:
        return lo, hi
    none = x.empty | y.empty
    if np.count_nonzero(none):
        lo, hi = np.where(none, np.nan, lo), np.where(none, np.nan, hi)
    return lo, hi


def nan_of_product(x: Interval, y: Interval) -> Array:
    """Where NaN is possible."""
    nan = x.nan | y.nan
    if x.finite and y.finite:
        return np.asarray(nan)
    return np.asarray(nan | (may_be_zero(x) & may_be_infinite(y)) | (may_be_zero(y) & may_be_infinite(x)))


@ENCLOSE.row(ops.Multiply)
def _multiply(op: Op, c: Context, x: Interval, y: Interval) -> Interval:
    return multiply(c, x, y) if c.dtype.is_float else integers.multiply(c.dtype, x, y)


def multiply(c: Context, x: Interval, y: Interval) -> Interval:
    """`x * y` rounded once, with its unrounded bounds where the model contracts."""
    f = c.format
    exact_low, exact_high = product_bounds(np.float64, x, y)
    one = exact_low is exact_high
    lo = f.nearest(exact_low)
    hi = lo if one else f.nearest(exact_high)
    result = build(c.model, c.dtype, lo, hi, nan_of_product(x, y), *_zero_signs(x, y))
    if not c.model.contract:
        return result
    low, high = _unrounded_product(f, x, y, exact_low, exact_high)
    scaled = shared(x, y) or shared(y, x)
    # (x c) (y d) as (x y) (c d) has a constant to gather again
    scaled |= all(v.unrounded is not None and v.unrounded.regroups for v in (x, y))
    chain = _regrouped_product(f, x, y) if c.model.rewrite else None
    if chain is None:
        return result.remembering(Unrounded("product", low, high, scaled, None, _roundings(x, y)))
    real_low, real_high, roundings = chain
    down, up = slipped(f, roundings - 1, real_low, real_high)
    # where each factor and the product are exact, so is every grouping: parts of the product have no more bits than it
    kept = _exactly(x) & _exactly(y) & (low == high) & (low == lo) & (high == hi)
    down, up, real_low, real_high = (np.asarray(np.where(kept, low, v)) for v in (down, up, real_low, real_high))
    lo, hi = np.fmin(lo, f.nearest(down)), np.fmax(hi, f.nearest(up))
    low, high = np.fmin(low, down), np.fmax(high, up)
    empty = np.isnan(real_low) | np.isnan(real_high)
    real = np.where(empty, low, real_low), np.where(empty, high, real_high)
    pos, neg = _zero_signs(x, y)
    # sqrt(-0) sqrt(-0) as -0
    result = build(c.model, c.dtype, lo, hi, nan_of_product(x, y), pos, neg | (x.neg_zero & y.neg_zero))
    return result.remembering(Unrounded("product", low, high, scaled, real, roundings))


def slipped(f: Format, roundings: Array | float, low: Array, high: Array) -> Bounds:
    """Wide bounds of what [low, high], off by some units of the wide type, may be after so many roundings."""
    roundings = np.maximum(roundings, 0)
    off = roundings * f.unit / (1 - roundings * f.unit) + 8 * f.wide_unit
    return low - off * np.abs(low), high + off * np.abs(high)


def _roundings(x: Interval, y: Interval) -> Array | float:
    """One for a product; none for that with a power of two, whatever it is grouped with."""
    if not (x.const or y.const):
        return 1.0
    return np.where(_is_power(x) | _is_power(y), 0.0, 1.0)


def _is_power(x: Interval) -> Array:
    """Known to be a power of two, or its negative, and no quotient that other factors may go into."""
    if x.unrounded is not None and not x.const:
        return np.zeros(x.shape, bool)
    return np.asarray((x.lo == x.hi) & (np.abs(np.frexp(x.lo)[0]) == 0.5) & np.isfinite(x.lo))


def _exactly(x: Interval) -> Array:
    """A known value that came about without rounding."""
    u = x.unrounded
    return np.asarray((x.lo == x.hi) if u is None else (u.lo == u.hi) & (u.lo == x.lo) & (x.lo == x.hi))


def shared(x: Enclosure, other: Enclosure) -> bool:
    """Constant, or one value for many elements of the result: what a compiler moves out of loops and gathers."""
    return x.const or x.repeated or x.size < other.size


def _regrouped_product(f: Format, x: Interval, y: Interval) -> tuple[Array, Array, Array | float] | None:
    """The real value of (x * c) * (y * d), which may become (x * y) * (c * d), or of sqrt(x) * sqrt(x), which may become x.

    Wide bounds, NaN where empty, and the roundings of any grouping.
    """
    xu, yu = x.unrounded, y.unrounded
    roots = xu is not None and yu is not None and xu.kind == yu.kind == "root"
    regrouped = (xu is not None and xu.regroups and (shared(y, x) or (yu is not None and yu.regroups))) or (
        yu is not None and yu.regroups and shared(x, y)
    )
    if not (roots or regrouped):
        return None
    roundings = _roundings(x, y)
    factors = []
    for v, u in ((x, xu), (y, yu)):
        chained = u is not None and not v.const
        factors.append(replace(v, lo=u.chain[0], hi=u.chain[1]) if chained and u is not None else v)
        roundings = roundings + u.roundings if chained and u is not None else roundings
    if isinstance(roundings, np.ndarray):
        roundings = np.broadcast_to(roundings, np.broadcast_shapes(x.shape, y.shape))
    return *product_bounds(f.wide, *factors), 1.0 if roots else roundings


def _unrounded_product(f: Format, x: Interval, y: Interval, exact_low: Array, exact_high: Array) -> Bounds:
    """Wide bounds of the product itself, given those in float64."""
    if f.wide is not np.float64:
        exact_low, exact_high = product_bounds(f.wide, x, y)
    # F32 products are exact in float64; those of F64 are exact in the wide type when few enough bits are set
    if f.dtype.itemsize == 8:
        fits = _magnitude(exact_low, exact_high) * f.wide_unit <= _least_bits(x) * _least_bits(y)
        # where the wide type has the range of all products, zeros and infinities come of zeros and infinities alone
        ranged = f.wide is not np.float64
        exact_low, exact_high = (
            np.where(fits | (ranged & ((v == 0) | np.isinf(v))), v, np.nextafter(v, f.wide(towards)))
            for v, towards in ((exact_low, -np.inf), (exact_high, np.inf))
        )
    none = np.isnan(exact_low) | np.isnan(exact_high)
    exact_low, exact_high = np.where(none, np.inf, exact_low), np.where(none, -np.inf, exact_high)
    return exact_low, exact_high


def _magnitude(lo: Array, hi: Array) -> Array:
    return np.fmax(np.abs(lo), np.abs(hi))


def _least_magnitude(lo: Array, hi: Array) -> Array:
    return np.fmax(np.fmax(lo, -hi), 0.0)


def _least_bits(x: Interval) -> Array:
    q = quantum(x.lo)
    return q if x.is_point else np.minimum(q, quantum(x.hi))


def _zero_signs(x: Interval, y: Interval) -> Bounds:
    """Signs that a product or quotient may have: possible +0, possible -0."""
    xp, xn, yp, yn = may_be_positive(x), may_be_negative(x), may_be_positive(y), may_be_negative(y)
    return (xp & yp) | (xn & yn), (xp & yn) | (xn & yp)


# --- quotient -------------------------------------------------------------------------------------------------------


def quotient_bounds(xl: Array, xh: Array, y: Interval, yl: Array, yh: Array, zero: Array) -> Bounds:
    """Bounds of x / y in the type of the bounds; NaN where there is none.

    `y` says which signs and zeros the divisor has; `zero` where 0 is a result that the corners may miss.
    """
    lo, hi = np.full(zero.shape, np.nan, xl.dtype), np.full(zero.shape, np.nan, xl.dtype)
    some = y.lo <= y.hi
    for use, a, b in (
        # the sign of a zero divisor is the sign of the infinity
        (may_be_positive(y) & some, np.abs(np.maximum(yl, 0)), np.abs(np.maximum(yh, 0))),
        (may_be_negative(y) & some, -np.abs(np.minimum(yl, 0)), -np.abs(np.minimum(yh, 0))),
    ):
        if not use.any():
            continue
        corners = [xl / a] if xl is xh and yl is yh else [xl / a, xl / b, xh / a, xh / b]
        least, greatest = reduce(np.fmin, corners), reduce(np.fmax, corners)
        lo, hi = np.fmin(lo, np.where(use, least, np.nan)), np.fmax(hi, np.where(use, greatest, np.nan))
    if zero.any():
        lo, hi = np.where(zero, np.fmin(lo, 0), lo), np.where(zero, np.fmax(hi, 0), hi)
    return lo, hi


@ENCLOSE.row(ops.Divide)
def _divide(op: Op, c: Context, x: Interval, y: Interval) -> Interval:
    return divide(c, x, y) if c.dtype.is_float else integers.divide(c.dtype, x, y)


def divide(c: Context, x: Interval, y: Interval) -> Interval:
    """`x / y` rounded once; rewritten divisions join the hull where the model has them."""
    f = c.format
    # a divisor that many elements share: its reciprocal may be taken once
    outer = shared(y, x)
    x, y = _broadcast(x, y)
    nan = x.nan | y.nan | (may_be_zero(x) & may_be_zero(y)) | (may_be_infinite(x) & may_be_infinite(y))
    zero = (may_be_zero(x) & ~is_zero(y)) | (may_be_finite(x) & may_be_infinite(y))
    zero &= ~x.empty & ~y.empty
    none = x.empty | y.empty

    def bounds(xl: Array, xh: Array, yl: Array, yh: Array) -> Bounds:
        lo, hi = quotient_bounds(xl, xh, y, yl, yh, zero)
        return np.where(none, np.nan, lo), np.where(none, np.nan, hi)

    lo, hi = bounds(x.lo, x.hi, y.lo, y.hi)
    low, high = f.nearest(lo), f.nearest(hi)
    # a quotient by a power of two is exact, as a product with its reciprocal is
    usual = (np.abs(low) > f.min_normal) | (low == 0)
    halved = (np.abs(np.frexp(y.lo)[0]) == 0.5) & (y.lo == y.hi) & (y.unrounded is None) & usual & np.isfinite(low)
    halved &= _exactly(x) & (low == high)
    if not c.model.rewrite:
        return build(c.model, c.dtype, low, high, nan, *_zero_signs(x, y))

    # the real quotient, with unrounded quotients and roots in place of rounded operands
    w = f.wide
    xu, yu = x.unrounded, y.unrounded
    if xu is not None and not (xu.kind == "quotient" or (xu.scaled and outer)):
        xu = None
    if yu is not None and yu.kind == "product":
        yu = None
    rounded = [(v.lo.astype(w), v.hi.astype(w)) for v in (x, y)]
    plain = bounds(*rounded[0], *rounded[1])
    real = plain
    once = _is_power(y)
    roundings: Array | float = np.where(once, 0.0, 1.0 + outer)
    last = slipped(f, np.where(once, 0.0, outer), *plain)  # a product with a rounded reciprocal, if one is taken
    if xu is not None or yu is not None:
        ends = [e if u is None else u.chain for e, u in zip(rounded, (xu, yu), strict=True)]
        real = bounds(*ends[0], *ends[1])
        for u in (xu, yu):
            # x / sqrt(y) is x rsqrt(y), whose budget in ULPs is at most twice that in units
            roundings = roundings + (0 if u is None else 2 * c.budget("Rsqrt") if u.kind == "root" else u.roundings)
        down, up = slipped(f, roundings - 1, *real)
        low = np.where(halved, low, np.fmin(low, f.nearest(down)))
        high = np.where(halved, high, np.fmax(high, f.nearest(up)))
        last = np.fmin(last[0], down), np.fmax(last[1], up)
    if outer:  # x * (1 / y), the reciprocal rounded
        for end in (y.lo,) if y.is_point else (y.lo, y.hi):
            reciprocal = f.nearest(1 / end)
            # one that is denormal has too few bits, or none where it is flushed: what comes of it is wrong
            usable = (np.abs(reciprocal) >= f.min_normal) & np.isfinite(reciprocal) & ~none
            reciprocal = np.where(usable, reciprocal, np.nan)
            alt_low, alt_high = extreme_products(x.lo, x.lo if x.is_point else x.hi, reciprocal, reciprocal)
            low, high = np.fmin(low, f.nearest(alt_low)), np.fmax(high, f.nearest(alt_high))
    result = build(c.model, c.dtype, low, high, nan, *_zero_signs(x, y))
    empty = np.isnan(last[0]) | np.isnan(real[0])

    def known(ends: Bounds) -> Bounds:
        least, greatest = (np.where(halved, low, v) for v in ends)
        return np.where(empty, np.inf, least), np.where(empty, -np.inf, greatest)

    memory = Unrounded("quotient", *known(last), outer or x.const, known(real), np.where(halved, 0.0, roundings))
    return result.remembering(memory)


def _broadcast(x: Interval, y: Interval) -> tuple[Interval, Interval]:
    shape = np.broadcast_shapes(x.shape, y.shape)
    return x.reshaped(shape), y.reshaped(shape)


# --- sign, extrema, comparison, choice ------------------------------------------------------------------------------


@ENCLOSE.row(ops.Negate)
def _negate(op: Op, c: Context, x: Interval) -> Interval:
    if not c.dtype.is_float:
        return integers.negate(c.dtype, x)
    lo = -x.hi
    hi = lo if x.is_point else -x.lo
    return Interval(x.dtype, lo, hi, x.nan, x.neg_zero, x.pos_zero, -x.origin)


@ENCLOSE.row(ops.Abs)
def _abs(op: Op, c: Context, x: Interval) -> Interval:
    if not c.dtype.is_float:
        return integers.absolute(c.dtype, x)
    if x.is_point:
        lo = hi = np.abs(x.lo)
    else:
        lo, hi = np.maximum(np.maximum(x.lo, -x.hi), 0.0), np.maximum(-x.lo, x.hi)
        lo, hi = np.where(x.empty, np.inf, lo), np.where(x.empty, -np.inf, hi)
    return Interval(x.dtype, lo, hi, x.nan, may_be_zero(x), np.zeros_like(x.neg_zero))


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
    if not c.dtype.is_float:
        return integers.monotone(c.dtype, pick, x, y)
    lo, hi = pick(x.lo, y.lo), pick(x.hi, y.hi)
    nan = x.nan | y.nan
    none = x.empty | y.empty
    if none.any():
        lo, hi = np.where(none, np.nan, lo), np.where(none, np.nan, hi)
    # of two zeros (and, where denormals are read as zeros, of two denormals) either may be picked
    pos, neg = x.pos_zero | y.pos_zero, x.neg_zero | y.neg_zero
    if c.model.flush:
        least = c.format.min_normal
        both = (x.lo < least) & (x.hi > -least) & (y.lo < least) & (y.hi > -least)
        if both.any():
            low, high = np.minimum(x.lo, y.lo), np.maximum(x.hi, y.hi)
            lo = np.where(both, np.minimum(lo, np.maximum(low, -least)), lo)
            hi = np.where(both, np.maximum(hi, np.minimum(high, least)), hi)
    return build(c.model, c.dtype, lo, hi, nan, pos, neg, inexact=False)


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
    if x is y and x.dtype.is_float:  # one value, read twice; of a denormal one reading may be zero
        least = FORMATS[x.dtype].min_normal if c.model.flush else 0.0
        steady = (x.lo >= least) | (x.hi <= -least) | (least == 0)
        if op.dir in (CompareDir.Lt, CompareDir.Gt):
            can = can & ~steady
        else:
            must = must | steady
    return three_valued(can & some, ~must | x.nan | y.nan)


@ENCLOSE.row(ops.Select)
def _select(op: Op, c: Context, pred: Interval, x: Interval, y: Interval) -> Interval:
    """The operand that the predicate picks; their hull where it is undecided."""
    return choose(pred.can_true, pred.can_false, x, y)


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

    return Interval(x.dtype, lo, hi, nan, pos, neg, merge_products(x, y, pick=both_ends))


def merge_products(*values: Interval, pick: Callable[[Sequence[Array], bool], Array]) -> Origin:
    """The unrounded products of values that are picked from, if there are any; a value without one stands for itself.

    `pick` makes of the lower ends (True), and of the upper ends, those of the result.
    """
    products = [v.unrounded if v.unrounded is not None and v.unrounded.contractible else None for v in values]
    if not any(products):
        return NOWHERE
    ends = [(v.lo, v.hi) if u is None else (u.lo, u.hi) for v, u in zip(values, products, strict=True)]
    lows, highs = zip(*ends, strict=True)
    return Origin(unrounded=Unrounded("product", pick(lows, True), pick(highs, False)))
