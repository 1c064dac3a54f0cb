"""Gathered factors: chains of products, quotients and roots may be grouped otherwise.

`(x c) d` and `(x c)(y d)` with constants or broadcast values may have these gathered; `(a / b) / c`, `a / (b / c)`,
`a / sqrt(b)` and `a / (sqrt(b) / c)` may be one quotient or product; `a / rsqrt(b)`, and `a / (c / b)` with a constant or broadcast c,
a product that goes unrounded into a sum; `sqrt(x) sqrt(x)` may be x, `rsqrt(x) rsqrt(x)` 1 / x, and `log(sqrt x)` half of `log x`. A factor or
divisor that is one may be left out. The sum along an axis of what is broadcast along it may be a product with their number.

*Bound.* The real value of the whole chain, which any grouping approximates: it is off by one relative u for each
rounding of that grouping but the last, and then rounded. Of n factors there are n - 2 roundings before the last, one
more for a rounded reciprocal, twice the budget of Rsqrt for a root (x rsqrt(y) for x / sqrt(y): a budget of ULPs is
at most twice that in units of u), and none for a constant power of two, with which every grouping is exact.
`Unrounded` counts them (`roundings`) and keeps the real bounds (`real`). Where every factor and the product are
exact, so is every grouping, since no part of the product has more bits than it.

*Not admitted.* Bounds are those of *real* values: where a grouping overflows or underflows on its way and the program
does not, where it makes finite what is certainly an infinity, or loses a NaN, its result stays outside. (A zero that an
underflow, or a quotient by an overflow, makes on the program's own way is widened to the real value.) A complex number
with an infinite part, times one, is the exception: it is an infinity of Annex G either way, whichever part is NaN. Constants of complex products are not gathered, but their parts may be computed
otherwise, so that their zeros may have either sign.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oracle.enclosure import narrowing
from oracle.enclosure.bounds import Bounds, Quotient, nan_of_product, product_bounds, shared, zero_signs
from oracle.enclosure.formats import Array, Format
from oracle.enclosure.freedoms import approximations, reciprocals
from oracle.enclosure.origin import NOWHERE, Origin, Unrounded, fixed_in
from oracle.enclosure.rule import Context
from oracle.enclosure.value import Enclosure, Interval, Rectangle, each_part


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


def without_factor(c: Context, x: Interval, one: Interval, unrounded: Bounds, *, picks: bool = False) -> Bounds:
    """Wide bounds of `x * one`, `x / one` or `x ** one` itself; also those of `x` where `one` may be one and a compiler knows that.

    Of a function of constants it does, if all of it may be one, and of an element that comes from them; of a Bool that was converted to a factor, where
    it is one (`picks`): XLA makes a Select of that product.
    """
    u, (low, high) = x.unrounded, unrounded
    if not (c.model.gather and u and u.contractible):
        return unrounded
    known = (one.lo <= 1) & (one.hi >= 1)
    if one.const:
        known &= np.all(known)
    elif not (picks and narrowing.is_predicate(one)):
        known &= fixed_in(one)
    if not np.count_nonzero(known):
        return unrounded
    return np.where(known, np.fmin(low, u.lo), low), np.where(known, np.fmax(high, u.hi), high)


def scaled_after(c: Context, x: Interval, by: Interval, unrounded: Bounds) -> Bounds:
    """Wide bounds of `x * by` itself; where x is a product and `by` a constant power of two, also those of the unrounded x, scaled.

    `x y 4 + z 4` may be `fma(x, y, z) 4`.
    """
    u = x.unrounded
    if not (c.model.gather and by.const and u and u.contractible and np.all(_is_power(by))):
        return unrounded
    ends = u.lo * by.lo, u.hi * by.lo
    return np.fmin(unrounded[0], np.fmin(*ends)), np.fmax(unrounded[1], np.fmax(*ends))


def _infinite(lo: Array, hi: Array) -> Array:
    """Certainly infinite, whatever a grouping that loses the overflow may give."""
    return np.asarray((lo == hi) & np.isinf(lo))


# --- products -------------------------------------------------------------------------------------------------------


def product(c: Context, result: Interval, x: Interval, y: Interval, rounded: Bounds, unrounded: Bounds) -> Interval:
    """`x * y`, given its result, its bounds rounded once, and before that; with its origin."""
    f, (lo, hi) = c.format, rounded
    for one, other in ((x, y), (y, x)):
        unrounded = scaled_after(c, one, other, without_factor(c, one, other, unrounded, picks=True))
    low, high = unrounded
    scaled = shared(x, y) or shared(y, x)
    # (x c) (y d) as (x y) (c d) has a constant to gather again
    scaled |= all(v.unrounded is not None and v.unrounded.regroups for v in (x, y))
    chain = _product_chain(f, x, y) if c.model.gather else None
    if chain is None and not (c.model.gather and scaled and "root" in _kinds(x, y)):
        return result.remembering(Unrounded("product", low, high, scaled, None, _roundings(x, y)))
    real_low, real_high, roundings = chain or _real_product(f, x, y)
    if chain is None:  # nothing to gather yet, but the constant may leave the root to another one
        empty = np.isnan(real_low) | np.isnan(real_high)
        real = np.where(empty, low, real_low), np.where(empty, high, real_high)
        return result.remembering(Unrounded("product", low, high, scaled, real, roundings))
    down, up = slipped(f, roundings - 1, real_low, real_high)
    # no grouping takes an overflow back, but an addition that the product goes into does
    over = _infinite(lo, hi)
    exact = _exactly(x) & _exactly(y) & (low == high) & (low == lo) & (high == hi)
    down, up, real_low, real_high = (
        np.asarray(np.where(over, lo, np.where(exact, low, v))) for v in (down, up, real_low, real_high)
    )
    lo, hi = np.fmin(lo, f.nearest(down)), np.fmax(hi, f.nearest(up))
    low, high = np.where(over, low, np.fmin(low, down)), np.where(over, high, np.fmax(high, up))
    empty = np.isnan(real_low) | np.isnan(real_high)
    real = np.where(empty, low, real_low), np.where(empty, high, real_high)
    pos, neg = zero_signs(x, y)
    # sqrt(-0) sqrt(-0) as -0
    result = c.build(lo, hi, nan_of_product(x, y), pos, neg | (x.neg_zero & y.neg_zero))
    return result.remembering(Unrounded("product", low, high, scaled, real, roundings))


def _product_chain(f: Format, x: Interval, y: Interval) -> tuple[Array, Array, Array | float] | None:
    """The real value of (x * c) * (y * d), which may become (x * y) * (c * d), or of sqrt(x) * sqrt(x) or rsqrt(x) * rsqrt(x), which may become x or 1 / x.

    Wide bounds, NaN where empty, and the roundings of any grouping.
    """
    xu, yu = x.unrounded, y.unrounded
    # of the inverse root of p twice, which XLA asks of a p that cannot be negative, 1 / p
    roots = _kinds(x, y) == ("root", "root") or (
        x is y and xu is not None and xu.kind == "quotient" and xu.inverse and not xu.scaled
    )
    regrouped = (xu is not None and xu.regroups and (shared(y, x) or (yu is not None and yu.regroups))) or (
        yu is not None and yu.regroups and shared(x, y)
    )
    # (sqrt(x) c) sqrt(x) as x c
    regrouped |= any(
        u and v and u.regroups and u.kind == "product" and v.kind == "root" for u, v in ((xu, yu), (yu, xu))
    )
    if not (roots or regrouped):
        return None
    low, high, roundings = _real_product(f, x, y)
    return low, high, 1.0 if roots else roundings


def _kinds(x: Interval, y: Interval) -> tuple[str, str]:
    """Kinds of the operations that gave the factors, as far as they are known."""
    return tuple("" if v.unrounded is None else v.unrounded.kind for v in (x, y))  # type: ignore[return-value]


def _real_product(f: Format, x: Interval, y: Interval) -> tuple[Array, Array, Array | float]:
    """The product of the real values of two chains, and the roundings of both."""
    roundings = _roundings(x, y)
    factors = []
    for v, u in ((x, x.unrounded), (y, y.unrounded)):
        chained = u is not None and not v.const
        factors.append(replace(v, lo=u.chain[0], hi=u.chain[1]) if chained and u is not None else v)
        roundings = roundings + u.roundings if chained and u is not None else roundings
    if isinstance(roundings, np.ndarray):
        roundings = np.broadcast_to(roundings, np.broadcast_shapes(x.shape, y.shape))
    return *product_bounds(f.wide, *factors), roundings


def either_zero(c: Context) -> bool:
    """Whether the zeros of complex products may have either sign."""
    return c.model.gather


def may_count(c: Context) -> bool:
    """Whether a sum of n times one value may be its product with n."""
    return c.model.gather


def may_leave_out_one(c: Context) -> bool:
    """Whether a product may leave out a factor of one (`without_one`)."""
    return c.model.gather


def without_one(c: Context, made: Rectangle, x: Rectangle, one: Enclosure) -> Rectangle:
    """A product or quotient by one may leave it out: no part of `x` becomes NaN by an infinity or NaN in the other part then.

    Annex G has an infinity there, which `x` is, and asks for nothing where it is NaN. Where `one` is a constant, what reads
    the result reads `x`.
    """
    if not may_leave_out_one(c):
        return made
    ones = [(p.lo == bit) & (p.hi == bit) & ~p.nan for p, bit in zip(one.parts, (1, 0), strict=False)]
    mask = np.logical_and.reduce(ones)
    if not np.count_nonzero(mask):
        return made
    left_out = one.const and bool(np.all(mask)) and made.shape == x.shape

    def wider(p: Interval, q: Interval) -> Interval:
        gap = p.gap and (np.where(mask, np.inf, p.gap[0]), np.where(mask, -np.inf, p.gap[1]))
        return replace(
            p.from_(q.origin) if left_out else p.remembering(p.unrounded, p.terms),
            lo=np.where(mask, np.minimum(p.lo, q.lo), p.lo),
            hi=np.where(mask, np.maximum(p.hi, q.hi), p.hi),
            nan=p.nan | (mask & q.nan),
            pos_zero=p.pos_zero | (mask & q.pos_zero),
            neg_zero=p.neg_zero | (mask & q.neg_zero),
            gap=gap,
        )

    return each_part(wider, made, x)


# --- quotients ------------------------------------------------------------------------------------------------------


def quotient(c: Context, q: Quotient, low: Array, high: Array, is_shared: bool) -> tuple[Array, Array, Origin]:
    """Bounds of a rounded quotient, given those without gathering; and its origin."""
    inverted = reciprocals.taken(c, is_shared)
    if not (c.model.gather or inverted):
        return low, high, NOWHERE
    f, w, x, y = c.format, c.format.wide, q.x, q.y
    # a quotient by a power of two is exact, as a product with its reciprocal is
    usual = (np.abs(low) > f.min_normal) | (low == 0)
    halved = (np.abs(np.frexp(y.lo)[0]) == 0.5) & (y.lo == y.hi) & (y.unrounded is None) & usual & np.isfinite(low)
    halved &= _exactly(x) & (low == high)
    # the real quotient, with unrounded quotients and roots in place of rounded operands
    xu, yu = (x.unrounded, y.unrounded) if c.model.gather else (None, None)
    if yu is not None and yu.kind == "product":
        yu = None
    # x / (c / y) is x y / c, whose divisor c, which many elements share, is inverted, and gathered with one of x
    inverts = yu is not None and yu.kind == "quotient" and yu.scaled
    if xu is not None and not (xu.kind == "quotient" or (xu.scaled and (is_shared or inverts))):
        xu = None
    rounded = [(v.lo.astype(w), v.hi.astype(w)) for v in (x, y)]
    plain = q.bounds(*rounded[0], *rounded[1])
    real, once = plain, _is_power(y)
    off = inverted + approximations.units_of_one(c)
    roundings: Array | float = np.where(once, 0.0, 1.0 + off)
    last = slipped(f, np.where(once, 0.0, off), *plain)  # a product with a rounded reciprocal, if one is taken
    of_root = max(2 * c.budget("Rsqrt"), approximations.units_of_one(c))
    if xu is not None or yu is not None:
        ends = [e if u is None else u.chain for e, u in zip(rounded, (xu, yu), strict=True)]
        real = q.bounds(*ends[0], *ends[1])
        for u in (xu, yu):
            roundings = roundings + (0 if u is None else of_root if u.kind == "root" else u.roundings)
        roundings = roundings + inverts
        down, up = slipped(f, roundings - 1, *real)
        over = _infinite(low, high)
        kept = halved | over
        low = np.where(kept, low, np.fmin(low, f.nearest(down)))
        high = np.where(kept, high, np.fmax(high, f.nearest(up)))
        real = np.where(over, low, real[0]), np.where(over, high, real[1])
        last = np.where(over, last[0], np.fmin(last[0], down)), np.where(over, last[1], np.fmax(last[1], up))
    last = without_factor(c, x, y, last)
    if c.model.gather and x.unrounded is not None and x.unrounded.kind == "root":  # z / (sqrt(x) / y) as z y rsqrt(x)
        real, roundings = q.bounds(*x.unrounded.chain, *(rounded[1] if yu is None else yu.chain)), roundings + of_root
    empty = np.isnan(last[0]) | np.isnan(real[0])

    def known(ends: Bounds) -> Bounds:
        least, greatest = (np.where(halved, low, v) for v in ends)
        return np.where(empty, np.inf, least), np.where(empty, -np.inf, greatest)

    of_shared = shared(x, y)
    roundings = np.where(halved, 0.0 if xu is None else xu.roundings, roundings)
    made = Unrounded(
        "quotient",
        *known(last),
        is_shared or of_shared,
        known(real),
        roundings,
        inverse=c.model.gather and (of_shared or (xu is not None and xu.inverse)),
        multiplied=yu is not None and yu.inverse,
    )
    return low, high, Origin(unrounded=made)


def by_reciprocal(c: Context, made: Interval, product: Interval) -> Interval:
    """`x / (1 / v)`, given `x v`, which may take its place; not where the reciprocal left the range and the product does not."""
    if not c.model.gather or product.unrounded is None:
        return made
    lost = (made.lo == made.hi) & ((made.lo == 0) | np.isinf(made.lo))
    lost &= (product.lo != made.lo) | (product.hi != made.hi)
    least, greatest = np.fmin(made.lo, product.lo), np.fmax(made.hi, product.hi)
    either = Interval(
        made.dtype,
        np.where(lost, made.lo, least),
        np.where(lost, made.hi, greatest),
        made.nan | (product.nan & ~lost),
        made.pos_zero | (product.pos_zero & ~lost),
        made.neg_zero | (product.neg_zero & ~lost),
    )
    u, quotient = product.unrounded, made.unrounded
    low, high = np.where(lost, made.lo, u.lo), np.where(lost, made.hi, u.hi)
    if quotient is None:
        return either.remembering(Unrounded("product", low, high, u.scaled))
    return either.remembering(Unrounded("product", low, high, u.scaled, quotient.chain, quotient.roundings))


# --- roots ----------------------------------------------------------------------------------------------------------


def root(c: Context, x: Interval, low: Array, high: Array) -> Origin:
    """The origin of a square root of `x`, none of which is negative, given its rounded bounds in float64."""
    if not c.model.gather:
        return NOWHERE
    w = c.format.wide
    at_low = np.sqrt(np.maximum(x.lo, 0.0).astype(w))
    at_high = at_low if x.is_point else np.sqrt(np.maximum(x.hi, 0.0).astype(w))
    real_low, real_high = np.nextafter(at_low, w(-np.inf)), np.nextafter(at_high, w(np.inf))
    # exact at 0 and inf; elsewhere a root is far from both
    real_low, real_high = (
        np.where((v == 0) | np.isinf(v), v, real) for v, real in ((low, real_low), (high, real_high))
    )
    none = x.lo > x.hi
    if np.count_nonzero(none):
        real_low, real_high = np.where(none, np.inf, real_low), np.where(none, -np.inf, real_high)
    return Origin(unrounded=Unrounded("root", real_low, real_high))


def inverse_root(c: Context, made: Interval, low: Array, high: Array) -> Interval:
    """`1 / sqrt(x)`, given its real bounds: a quotient, since `y / rsqrt(x)` may be `y sqrt(x)`."""
    if not c.model.gather:
        return made
    w = c.format.wide
    ends = ((low, np.nextafter(low, w(-np.inf))), (high, np.nextafter(high, w(np.inf))))
    # exact at infinities, which are also the bounds of nothing
    least, greatest = (np.where(np.isinf(v), v, outward) for v, outward in ends)
    return made.remembering(Unrounded("quotient", least, greatest, inverse=True))


def logarithm(c: Context, x: Interval, low: Array, high: Array) -> Bounds:
    """Wide bounds of log(x), given those of x itself: log(sqrt y) is log(y) / 2."""
    u = x.unrounded
    if not c.model.gather or u is None or u.kind != "root":
        return low, high
    low, high = np.fmin(low, np.log(np.maximum(u.lo, 0))), np.fmax(high, np.log(np.maximum(u.hi, 0)))
    return np.where(x.empty, np.inf, low), np.where(x.empty, -np.inf, high)
