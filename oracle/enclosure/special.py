"""Rules of `Special` and `Special2`: the true value by mpmath, taken outward by the function's budget (`special.toml`)."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

from oracle.enclosure import limits
from oracle.enclosure.arithmetic import choose
from oracle.enclosure.bounds import may_be_negative, may_be_positive, may_be_zero
from oracle.enclosure.formats import FORMATS, Array
from oracle.enclosure.freedoms import flush
from oracle.enclosure.functions import budgeted
from oracle.enclosure.rule import ENCLOSE, Context
from oracle.enclosure.value import Interval
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp

#: Digits that mpmath computes with.
PRECISION = 120
#: The most different arguments of one function: mpmath takes tens of microseconds each.
MOST = 2**16


@cache
def budgets() -> dict[str, dict[str, Any]]:
    """`special.toml`: by function, ULPs by dtype, `floor`, below which an error is absolute, and `argument`, ULPs of the argument."""
    return tomllib.loads(Path(__file__).with_name("special.toml").read_text())


def budget(c: Context, function: str) -> float:
    """ULPs that a platform's function may be away; of a narrow float, that of F32, rounded."""
    known = budgets()[function]
    if c.dtype.is_narrow_float:
        return 0.5 + float(known["F32"]) * 2.0 ** (int(c.dtype.finfo.nmant) - 23)
    return float(known[c.dtype.name])


# --- true values ------------------------------------------------------------------------------------------------------


def _log_gamma(x: Any) -> Any:
    return mpmath.inf if x <= 0 and x == mpmath.floor(x) else mpmath.re(mpmath.loggamma(x))


def _digamma(x: Any) -> Any:
    return mpmath.nan if x <= 0 and x == mpmath.floor(x) else mpmath.digamma(x)


def _within(least: float, greatest: float, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: f(x) if least <= x <= greatest else mpmath.nan


_TRUTH: dict[str, Callable[[Any], Any]] = {
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "tan": mpmath.tan,
    "asin": _within(-1, 1, mpmath.asin),
    "acos": _within(-1, 1, mpmath.acos),
    "atan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "asinh": mpmath.asinh,
    "acosh": _within(1, np.inf, mpmath.acosh),
    "atanh": _within(-1, 1, lambda x: mpmath.sign(x) * mpmath.inf if abs(x) == 1 else mpmath.atanh(x)),
    "erf": mpmath.erf,
    "erfc": lambda x: mpmath.erfc(min(max(x, -1000), 1000)),  # mpmath's overflows far out, where no format has a value
    "erf_inv": _within(-1, 1, lambda x: mpmath.sign(x) * mpmath.inf if abs(x) == 1 else mpmath.erfinv(x)),
    "lgamma": _log_gamma,
    "digamma": _digamma,
    "bessel_i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
}
#: Limits at minus and plus infinity.
_AT_INFINITY: dict[str, tuple[float, float]] = {
    "cbrt": (-np.inf, np.inf), "tan": (np.nan, np.nan), "asin": (np.nan, np.nan), "acos": (np.nan, np.nan),
    "atan": (-np.pi / 2, np.pi / 2), "sinh": (-np.inf, np.inf), "cosh": (np.inf, np.inf), "asinh": (-np.inf, np.inf),
    "acosh": (np.nan, np.inf), "atanh": (np.nan, np.nan), "erf": (-1.0, 1.0), "erfc": (2.0, 0.0),
    "erf_inv": (np.nan, np.nan), "lgamma": (np.inf, np.inf), "digamma": (np.nan, np.inf), "bessel_i1e": (0.0, 0.0),
}  # fmt: skip
#: Where each function is monotone (from, to, whether it falls); elsewhere only single arguments are bounded.
_MONOTONE: dict[str, tuple[float, float, bool]] = {
    "cbrt": (-np.inf, np.inf, False), "atan": (-np.inf, np.inf, False), "sinh": (-np.inf, np.inf, False),
    "asinh": (-np.inf, np.inf, False), "erf": (-np.inf, np.inf, False), "erfc": (-np.inf, np.inf, True),
    "asin": (-1.0, 1.0, False), "acos": (-1.0, 1.0, True), "atanh": (-1.0, 1.0, False), "erf_inv": (-1.0, 1.0, False),
    "acosh": (1.0, np.inf, False), "cosh": (0.0, np.inf, False), "lgamma": (1.4616321449683625, np.inf, False),
    "digamma": (2.0**-1000, np.inf, False), "tan": (-1.5, 1.5, False), "bessel_i1e": (-1.5, 1.5, False),
}  # fmt: skip
#: Bounds of the results.
_RANGE: dict[str, tuple[float, float]] = {
    "erf": (-1.0, 1.0), "erfc": (0.0, 2.0), "cosh": (1.0, np.inf), "acosh": (0.0, np.inf),
}  # fmt: skip


def true_values(function: str, x: Array, wide: Any) -> Array:
    """The function at each element, rounded to the wide type.

    Raises
    ------
    UnsupportedOp
        More than `MOST` different arguments.
    """
    arguments, places = np.unique(x, return_inverse=True)
    if arguments.size > MOST:
        raise UnsupportedOp(op=function, reason=f"enclosure: more than {MOST} different arguments")
    values = np.empty(arguments.shape, wide)
    with mpmath.workprec(PRECISION):
        for i, a in enumerate(arguments.tolist()):
            if not np.isfinite(a):
                values[i] = np.nan if a != a else _AT_INFINITY[function][a > 0]
            else:
                values[i] = _rounded(_TRUTH[function](mpmath.mpf(a)), wide)
    return values[places].reshape(x.shape)


def true_range(function: str, x: Array, dtype: DType) -> tuple[Array, Array]:
    """Least and greatest true value at each element, and at its neighbours if the function's argument may be off by an ULP.

    What is first computed of a denormal, as `sin(pi * x)` within `lgamma`, is rounded to a multiple of the least number. An exponential
    within a function grows with the error of its own argument: a formula by `exp(x + log(1/2))`, `exp(-x * x)` or `log1p(-x * x)` loses an
    ULP of x, which is hundreds of the result far out.
    """
    wide = FORMATS[dtype].wide
    low = high = true = true_values(function, x, wide)
    kept = DType.F64 if dtype is DType.F64 else DType.F32
    exact = x.astype(kept.numpy)
    off = (np.abs(exact) < float(kept.finfo.tiny)) & (exact != 0) | ("argument" in budgets()[function])
    if off.any():
        for end in (-np.inf, np.inf):
            other = np.where(off, np.nextafter(exact, exact.dtype.type(end)), exact)
            beside = true_values(function, other.astype(float), wide)
            low, high = np.fmin(low, beside), np.fmax(high, beside)
    none = np.isnan(true)  # outside the function's domain, however near
    return np.where(none, np.nan, low), np.where(none, np.nan, high)


#: An exponent of 2 that a long double has, far below those of all dtypes.
_LEAST = -16_000


def _rounded(value: Any, wide: Any) -> Any:
    """A number of mpmath in a wide type."""
    if wide is not np.float64 and 0 < abs(value) < mpmath.ldexp(1, -1000):  # float64 loses digits there, or all
        digits, exponent = mpmath.frexp(value)
        return np.ldexp(wide(float(digits)), max(int(exponent), _LEAST))  # it has a sign, and is no zero
    high = float(value)
    if wide is np.float64 and high == 0 and value != 0:  # it has a sign, and is no zero
        return np.copysign(5e-324, int(mpmath.sign(value)))
    if not np.isfinite(high) or wide is np.float64:
        return wide(high)
    return wide(high) + wide(float(value - mpmath.mpf(high)))


def _bounded(c: Context, function: str, x: Interval, low: Array, high: Array, nan: Array) -> Interval:
    """The enclosure of true values between `low` and `high` (NaN: none), within the budget."""
    ulps, floor = budget(c, function), budgets()[function].get("floor", 0.0)
    none = np.isnan(low) | np.isnan(high)
    low, high = np.where(none, np.inf, low), np.where(none, -np.inf, high)
    lo, hi = budgeted(c.format, ulps, low, high)
    if floor:  # near a root of the function a result is off by ULPs of `floor`
        off = ulps * float(c.format.ulp(np.asarray(floor, c.format.wide)))
        lo = np.where(none, np.inf, np.fmin(lo, c.format.greatest_at_or_below(low - off)))
        hi = np.where(none, -np.inf, np.fmax(hi, c.format.least_at_or_above(high + off)))
    # what underflows, or is flushed, between the terms of a polynomial is divided by its coefficients; the sign stays
    lost = flush.lost_within_function(c.model, c.format)
    near = ~none & (low < lost * 2.0**30) & (high > -lost * 2.0**30)
    if np.count_nonzero(near):
        least = np.where(low >= 0, np.maximum(low - lost, 0), low - lost)
        greatest = np.where(high <= 0, np.minimum(high + lost, 0), high + lost)
        lo = np.where(near, np.fmin(lo, c.format.greatest_at_or_below(least)), lo)
        hi = np.where(near, np.fmax(hi, c.format.least_at_or_above(greatest)), hi)
    least, greatest = _RANGE.get(function, (-np.inf, np.inf))  # which nothing that is lost on the way leaves
    lo, hi = np.where(none, lo, np.fmax(lo, least)), np.where(none, hi, np.fmin(hi, greatest))
    limit = np.isinf(low) & (low == high)
    lo, hi = np.where(limit, low, lo).astype(float), np.where(limit, high, hi).astype(float)
    odd = function not in ("acos", "erfc", "cosh", "acosh", "lgamma", "digamma")
    pos = (high > 0) | (x.pos_zero if odd else low <= 0)
    neg = (low < 0) | (x.neg_zero if odd else np.zeros(x.shape, bool))
    far = np.isinf(x.lo) & (low == 0) & (high == 0)  # a limit that is zero, of either sign
    pos, neg = pos | far, neg | far
    return c.build(lo, hi, nan | x.nan | (none & ~x.empty), pos, neg)


@ENCLOSE.row(ops.Special)
def _special(op: ops.Special, c: Context, x: Interval) -> Interval:
    if x.is_point or not (x.lo < x.hi).any():
        low, high = true_range(op.function, np.where(x.empty, np.nan, x.lo), c.dtype)
        made = _bounded(c, op.function, x, low, high, np.zeros(x.shape, bool))
    else:
        made = _of_range(op.function, c, x)
    return _at_poles(made, x, x.lo == x.hi) if op.function == "digamma" else made


def _of_range(function: str, c: Context, x: Interval) -> Interval:
    """The function of an interval: from its ends where it is monotone between them."""
    start, end, _ = _MONOTONE[function]
    inside = (x.lo >= start) & (x.hi <= end) & ~x.empty
    single = (x.lo == x.hi) & ~x.empty
    known = inside | single
    below, above = (true_range(function, np.where(known, end, np.nan), c.dtype) for end in (x.lo, x.hi))
    low, high = np.fmin(below[0], above[0]), np.fmax(below[1], above[1])
    anything = ~known & ~x.empty
    least, greatest = _RANGE.get(function, (-np.inf, np.inf))
    made = _bounded(c, function, x, np.where(known, low, np.nan), np.where(known, high, np.nan), x.nan)
    return Interval(
        c.dtype,
        np.where(anything, least, made.lo),
        np.where(anything, greatest, made.hi),
        made.nan | anything,
        made.pos_zero | anything,
        made.neg_zero | anything,
    )


@ENCLOSE.row(ops.Special2)
def _special2(op: ops.Special2, c: Context, x: Interval, y: Interval) -> Interval:
    if op.function == "atan2":
        return _atan2(c, x, y)
    known = (x.lo == x.hi) & ~x.nan & (y.lo == y.hi) & ~y.nan & _within_reach(op, x.lo, y.lo)
    a, b = (np.where(known, argument.lo, np.nan) for argument in (x, y))
    made = _of_known(op, c, x, y, true_values_of_two(op.function, a, b, c.format.wide))
    if known.all():
        return made
    yes, infinity = np.ones(known.shape, bool), np.full(known.shape, np.inf)
    return choose(known, ~known, made, Interval(c.dtype, -infinity, infinity, yes, yes, yes))


def _of_known(op: ops.Special2, c: Context, x: Interval, y: Interval, values: Array) -> Interval:
    """The enclosure of `zeta` or `polygamma` around their true values, which are NaN where an argument is not a single number."""
    made = _bounded(c, op.function, x, values, values, y.nan)
    if op.function == "polygamma" and np.count_nonzero(x.lo == 0):  # which has roots
        made = choose(x.lo == 0, x.lo != 0, _bounded(c, "digamma", x, values, values, y.nan), made)
    # at infinity the limit is zero, of order 0 infinity, or NaN, since a series has no term to begin with
    far = (y.lo == np.inf) & (x.lo > 1 if op.function == "zeta" else x.lo >= 0)
    if far.any():
        logarithmic = (x.lo == 0) & (op.function == "polygamma")
        made = limits.listed(made, far, np.where(logarithmic, np.inf, 0.0), True)
    if op.function == "zeta":  # 1 is the pole of all others
        return _at_poles(made, y, True, also=x.lo == 1)
    return _at_poles(made, y, np.isfinite(x.lo))


#: An exponent of 2 whose negative is that of less than any number.
_BELOW_ALL = 1200
#: The largest order of polygamma, and the farthest argument below zero, for which mpmath's time is bounded.
_REACH = 1e3


def _within_reach(op: ops.Special2, x: Array, y: Array) -> Array:
    """Where mpmath does not take minutes, as it adds up a term for each unit below zero, and for each order."""
    far = np.isfinite(x) & np.isfinite(y) & (y < -_REACH) & (y != np.floor(y))
    if op.function == "polygamma":
        far |= np.isfinite(x) & (x > _REACH) & (x == np.floor(x))
    return np.asarray(~far)


def _at_poles(made: Interval, x: Interval, where: Array | bool = True, also: Array | bool = False) -> Interval:
    """`made` but at zero and negative integers, where implementations differ: an infinity of either sign, or NaN."""
    pole = np.asarray(((x.lo <= 0) & (x.lo == np.floor(x.lo)) & ~x.empty & where) | also)
    return limits.listed(made, pole, np.full(pole.shape, np.inf), True, True) if pole.any() else made


def true_values_of_two(function: str, x: Array, y: Array, wide: Any) -> Array:
    """As `true_values`, of `zeta` and `polygamma`."""
    values = np.empty(x.shape, wide)
    with mpmath.workprec(PRECISION):
        for index in np.ndindex(x.shape):
            values[index] = _rounded(_of_two(function, float(x[index]), float(y[index])), wide)
    return values


def _of_two(function: str, a: float, b: float) -> Any:
    if not (np.isfinite(a) and np.isfinite(b)):
        return mpmath.nan
    if function == "polygamma":
        pole = b <= 0 and b == int(b)
        return mpmath.polygamma(int(a), b) if a >= 0 and a == int(a) and not pole else mpmath.nan
    if a < 1 or (b < 0 and b != int(b) and a != int(a)):  # of a negative number a power that is not whole
        return mpmath.nan
    return _zeta(a, b) if a > 1 and (b > 0 or b != int(b)) else mpmath.inf


def _zeta(a: float, b: float) -> Any:
    """Of Hurwitz, at most `b**-a * (1 + b / (a - 1))` beyond 1; mpmath counts digits from 1 on, and of what is less than all numbers no end."""
    if b < 0:  # where mpmath's series is far off (a = 2, b = -50.3); terms of both signs may cancel
        with mpmath.workprec(2 * PRECISION):
            terms = math.ceil(-b)
            first = mpmath.fsum((mpmath.mpf(b) + k) ** -mpmath.mpf(a) for k in range(terms))
            return first + mpmath.zeta(a, mpmath.mpf(b) + terms)
    small = a * math.log2(max(b, 1.0))
    if small - math.log2(1 + max(b, 0.0) / (a - 1)) > _BELOW_ALL:
        return mpmath.ldexp(1, -_BELOW_ALL)
    with mpmath.workprec(PRECISION + int(min(small, 1200.0))):
        return mpmath.re(mpmath.zeta(a, b))


def _atan2(c: Context, y: Interval, x: Interval) -> Interval:
    """The angle of a point; of a box that holds neither the origin nor the cut, its corners have the extreme angles."""
    wide, f = c.format.wide, c.format
    shape = np.broadcast_shapes(x.shape, y.shape)
    low, high = np.full(shape, np.inf, wide), np.full(shape, -np.inf, wide)
    # a zero that ends negative numbers has their sign
    for ys, yz in ((y.lo, y.neg_zero & ~y.pos_zero), (y.hi, ~y.pos_zero)):
        for xs, xz in ((x.lo, x.neg_zero & ~x.pos_zero), (x.hi, ~x.pos_zero)):
            a = np.where((ys == 0) & yz, -0.0, ys).astype(wide)
            b = np.where((xs == 0) & xz, -0.0, xs).astype(wide)
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
