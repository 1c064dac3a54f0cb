"""Rules of `Special` and `Special2`: the true value by mpmath, taken outward by the function's budget (`special.toml`)."""

from __future__ import annotations

import mpmath
import numpy as np

from oracle.enclosure import limits, ranges
from oracle.enclosure.arithmetic import choose
from oracle.enclosure.bounds import is_zero, may_be_negative, may_be_positive, may_be_zero
from oracle.enclosure.formats import FORMATS, Array
from oracle.enclosure.freedoms import flush
from oracle.enclosure.functions import budgeted
from oracle.enclosure.rule import ENCLOSE, Context
from oracle.enclosure.true_values import AT_INFINITY, budgets, true_range
from oracle.enclosure.value import Interval
from tenferro_ref import ops
from tenferro_ref.dtype import DType

#: Bounds of the results.
_RANGE: dict[str, tuple[float, float]] = {
    "erf": (-1.0, 1.0), "erfc": (0.0, 2.0), "cosh": (1.0, np.inf), "acosh": (0.0, np.inf),
}  # fmt: skip
#: Of zero they are exactly 1.
_ONE_AT_ZERO = ("cosh", "erfc")


def budget(c: Context, function: str) -> float:
    """ULPs that a platform's function may be away; of a narrow float, that of F32, rounded, unless it has a budget of its own."""
    known = budgets()[function]
    if c.dtype.is_narrow_float and c.dtype.name not in known:
        return 0.5 + float(known["F32"]) * 2.0 ** (int(c.dtype.finfo.nmant) - 23)
    return float(known[c.dtype.name])


def _lost(c: Context, function: str) -> float:
    """How much of a result may be lost by an underflow within the function, in the format that it is computed in."""
    if c.dtype.is_narrow_float and c.dtype.name not in budgets()[function]:
        return flush.lost_within_function(c.model, FORMATS[DType.F32])
    return flush.lost_within_function(c.model, c.format)


def _bounded(
    c: Context, function: str, x: Interval, low: Array, high: Array, nan: Array, terms: Array | float = 0.0
) -> Interval:
    """The enclosure of true values between `low` and `high` (NaN: none), within the budget: in ULPs of `terms` where that is larger."""
    ulps, floor = budget(c, function), np.fmax(terms, budgets()[function].get("floor", 0.0))
    none = np.isnan(low) | np.isnan(high)
    low, high = np.where(none, np.inf, low), np.where(none, -np.inf, high)
    lo, hi = budgeted(c.format, ulps, low, high)
    if np.count_nonzero(floor):  # near a root of the function a result is off by ULPs of `floor`
        off = ulps * c.format.ulp(np.fmin(floor, c.format.max).astype(c.format.wide))
        lo = np.where(none, np.inf, np.fmin(lo, c.format.greatest_at_or_below(low - off)))
        hi = np.where(none, -np.inf, np.fmax(hi, c.format.least_at_or_above(high + off)))
    # what underflows, or is flushed, between the terms of a polynomial is divided by its coefficients; the sign stays
    lost = _lost(c, function)
    near = ~none & (low < lost * 2.0**30) & (high > -lost * 2.0**30)
    if np.count_nonzero(near):
        least = np.where(low >= 0, np.maximum(low - lost, 0), low - lost)
        greatest = np.where(high <= 0, np.minimum(high + lost, 0), high + lost)
        lo = np.where(near, np.fmin(lo, c.format.greatest_at_or_below(least)), lo)
        hi = np.where(near, np.fmax(hi, c.format.least_at_or_above(greatest)), hi)
    if function == "erfc":  # StableHLO's formula stops where exp(-x * x) is less than the least normal number
        kept = FORMATS[DType.F64 if c.dtype is DType.F64 else DType.F32]
        lo = np.where(~none & (low < kept.min_normal), 0, lo)
    lowest, highest = _RANGE.get(function, (-np.inf, np.inf))  # which nothing that is lost on the way leaves
    lo, hi = np.where(none, lo, np.fmax(lo, lowest)), np.where(none, hi, np.fmin(hi, highest))
    limit = (low == high) & (np.isinf(low) | (is_zero(x) if function in _ONE_AT_ZERO else False))
    lo, hi = np.where(limit, low, lo).astype(float), np.where(limit, high, hi).astype(float)
    odd = function not in ("acos", "erfc", "cosh", "acosh", "lgamma", "digamma")
    pos = (high > 0) | (x.pos_zero if odd else low <= 0)
    neg = (low < 0) | (x.neg_zero if odd else np.zeros(x.shape, bool))
    limits_at = AT_INFINITY.get(function, (np.nan, np.nan))
    far = np.isinf(x.lo) & (low == 0) & (high == 0)  # a limit that is zero, of either sign
    far |= (x.lo == -np.inf) & (limits_at[0] == 0) | (x.hi == np.inf) & (limits_at[1] == 0) & ~x.empty
    pos, neg = pos | far, neg | far
    return c.build(lo, hi, nan | x.nan | (none & ~x.empty), pos, neg)


@ENCLOSE.row(ops.Special)
def _special(op: ops.Special, c: Context, x: Interval) -> Interval:
    if x.is_point or not (x.lo < x.hi).any():
        low, high = true_range(op.function, np.where(x.empty, np.nan, x.lo), c.dtype)
        made = _bounded(c, op.function, x, low, high, np.zeros(x.shape, bool))
    else:
        low, high, none, known = ranges.of_one(op.function, x, c.dtype)
        made = _where_known(op.function, _bounded(c, op.function, x, low, high, none), known | x.empty)
    return _at_poles(made, x, x.lo == x.hi) if op.function == "digamma" else made


def _where_known(function: str, made: Interval, known: Array) -> Interval:
    """`made` where the range is known; elsewhere anything in the range of the function, or NaN."""
    if known.all():
        return made
    yes = np.ones(known.shape, bool)
    least, greatest = (np.full(known.shape, end) for end in _RANGE.get(function, (-np.inf, np.inf)))
    return choose(known, ~known, made, Interval(made.dtype, least, greatest, yes, yes, yes))


@ENCLOSE.row(ops.Special2)
def _special2(op: ops.Special2, c: Context, x: Interval, y: Interval) -> Interval:
    if op.function == "atan2":
        return _atan2(c, x, y)
    low, high, known = ranges.of_two(op.function, x, y, c.format.wide)
    return _where_known(op.function, _of_known(op, c, x, y, low, high), known)


def _of_known(op: ops.Special2, c: Context, x: Interval, y: Interval, low: Array, high: Array) -> Interval:
    """The enclosure of `zeta` or `polygamma` around their least and greatest true values, which are NaN where nothing is known."""
    made = _bounded(c, op.function, x, low, high, y.nan, _largest_term(op.function, x, y))
    if op.function == "polygamma" and np.count_nonzero(x.lo == 0):  # which has roots
        made = choose(x.lo == 0, x.lo != 0, _bounded(c, "digamma", x, low, high, y.nan), made)
    # at infinity the limit is zero, of order 0 infinity, or NaN, since a series has no term to begin with
    far = (y.lo == np.inf) & (x.lo > 1 if op.function == "zeta" else x.lo >= 0)
    if far.any():
        logarithmic = (x.lo == 0) & (op.function == "polygamma")
        made = limits.listed(made, far, np.where(logarithmic, np.inf, 0.0), True)
    if op.function == "zeta":  # 1 is the pole of all others
        return _at_poles(made, y, True, also=x.lo == 1)
    return _at_poles(made, y, np.isfinite(x.lo))


def _largest_term(function: str, x: Interval, y: Interval) -> Array:
    """Of the terms `(y + k) ** -x` the largest where some are of numbers below zero, whose signs differ; 0 elsewhere."""
    below = (y.lo < 0) & np.isfinite(y.lo) & np.isfinite(y.hi) & np.isfinite(x.hi)
    order = np.where(below, x.hi, 1.0)
    end = [np.where(below, v, 0.5) for v in (y.lo, y.hi)]
    nearest = np.fmin(*(np.abs(v - np.rint(v)) for v in end))
    with np.errstate(divide="ignore", over="ignore"):
        if function == "zeta":
            return np.where(below, nearest**-order, 0.0)
        orders, places = np.unique(order, return_inverse=True)
        factor = np.array([float(mpmath.factorial(n)) if 0 <= n <= 170 else np.inf for n in orders.tolist()])
        return np.where(below, factor[places].reshape(order.shape) * nearest ** (-order - 1), 0.0)


def _at_poles(made: Interval, x: Interval, where: Array | bool = True, also: Array | bool = False) -> Interval:
    """`made` but at zero and negative integers, where implementations differ: an infinity of either sign, or NaN."""
    pole = np.asarray(((x.lo <= 0) & (x.lo == np.floor(x.lo)) & ~x.empty & where) | also)
    return limits.listed(made, pole, np.full(pole.shape, np.inf), True, True) if pole.any() else made


def _atan2(c: Context, y: Interval, x: Interval) -> Interval:
    """The angle of a point; of a box that holds neither the origin nor the cut, its corners have the extreme angles."""
    wide, f = c.format.wide, c.format
    shape = np.broadcast_shapes(x.shape, y.shape)
    low, high = np.full(shape, np.inf, wide), np.full(shape, -np.inf, wide)
    # a zero that ends negative numbers has their sign, and any other the one that its flags say, whatever the bound's is
    for ys, yz in ((y.lo, y.neg_zero & ~y.pos_zero), (y.hi, ~y.pos_zero)):
        for xs, xz in ((x.lo, x.neg_zero & ~x.pos_zero), (x.hi, ~x.pos_zero)):
            a, b = (np.where(v == 0, np.where(z, -0.0, 0.0), v).astype(wide) for v, z in ((ys, yz), (xs, xz)))
            angle = np.arctan2(a, b)
            low, high = np.fmin(low, angle), np.fmax(high, angle)
    # more than one sign of a zero, or the cut along negative x, leaves open all but the quadrants
    crossing = (y.lo <= 0) & (y.hi >= 0) & may_be_negative(x)
    wild = crossing & (may_be_negative(y) & may_be_positive(y))
    wild |= may_be_zero(y) & may_be_zero(x) & ~((y.lo == y.hi) & (x.lo == x.hi) & ~(x.pos_zero & x.neg_zero))
    half = np.arctan2(wide(1), wide(0))
    nearest, farthest = np.where(may_be_positive(x), 0, half), np.where(may_be_negative(x), 2 * half, half)
    low = np.where(wild, np.where(may_be_negative(y), -farthest, nearest), low)
    high = np.where(wild, np.where(may_be_positive(y), farthest, -nearest), high)
    none = x.empty | y.empty
    low, high = np.where(none, np.inf, low), np.where(none, -np.inf, high)
    lo, hi = budgeted(f, budget(c, "atan2"), low, high)
    # the sign is that of y, also where the angle is too small for a number
    pos, neg = may_be_positive(y) | y.pos_zero, may_be_negative(y) | y.neg_zero
    return c.build(lo, hi, x.nan | y.nan, pos, neg)
