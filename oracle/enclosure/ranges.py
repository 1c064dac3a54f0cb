"""The range of a special function over an interval of arguments: from its ends, and from an extremum between them.

tan, digamma and polygamma of even order rise between two poles, zeta of odd order falls; lgamma, polygamma of odd order and zeta of even
order are convex there, as their second derivatives are sums of even powers of `1 / (x + k)`. bessel_i1e is odd, and rises to one peak: its
slope is `I0 exp(-x) (1 - r (1 + 1 / x))` with `r = I1 / I0`; where that is 0, `r' = 1 - r / x - r^2` gives `r (1 + 1 / x)` the slope
`(x - 1) / (x (x + 1))`. It is 1/2 at 0, so that it goes through 1 once, upward.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import mpmath
import numpy as np

from oracle.enclosure.bounds import least_magnitude, magnitude
from oracle.enclosure.formats import FORMATS, Array
from oracle.enclosure.true_values import (
    PRECISION,
    TRUTH,
    rounded,
    true_range,
    true_values,
    true_values_of_two,
    value_of_two,
    within_reach,
)
from oracle.enclosure.value import Interval
from tenferro_ref.dtype import DType

#: Least and greatest true value, where some argument has none, and where this is known.
Range: TypeAlias = tuple[Array, Array, Array, Array]

#: The domains of functions that are monotone on all of it.
_DOMAIN: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("cbrt", "atan", "sinh", "asinh", "erf", "erfc"), (-np.inf, np.inf)),
    **dict.fromkeys(("asin", "acos", "atanh", "erf_inv"), (-1.0, 1.0)),
    "acosh": (1.0, np.inf),
}
#: Farther below zero the minima between the poles of lgamma are not looked for.
_FAR = -(2.0**50)
#: Halvings of an interval between two poles, by which a minimum is found: what is left of its slope times that is below all digits.
_STEPS = 64


def of_one(function: str, x: Interval, dtype: DType) -> Range:
    """The range of a function of one argument over each interval."""
    single = (x.lo == x.hi) & ~x.empty
    if function in _DOMAIN:
        start, end = _DOMAIN[function]
        low, high = _at_ends(function, np.maximum(x.lo, start), np.minimum(x.hi, end), dtype)
        return low, high, x.nan | (x.lo < start) | (x.hi > end), np.ones(x.shape, bool)
    if function == "cosh":
        lo, hi = (np.where(x.empty, np.nan, f(x.lo, x.hi)) for f in (least_magnitude, magnitude))
        return *_at_ends(function, lo, hi, dtype), x.nan, ~x.empty
    if function == "bessel_i1e":
        place, peak = _peak()
        low, high = _at_ends(function, x.lo, x.hi, dtype)
        near, top = place * (1 - 2.0**-40), rounded(peak, FORMATS[dtype].wide)
        low = np.where((x.lo <= -near) & (x.hi >= -place), -top, low)
        high = np.where((x.lo <= place) & (x.hi >= near), top, high)
        return low, high, x.nan, ~x.empty
    if function == "tan":
        # closer than two poles; and over one the tangent falls
        close = single | (x.hi - x.lo < 3.0)
        low, high = (
            true_range(function, np.where(close & ~x.empty, end, np.nan), dtype)[k]
            for k, end in enumerate((x.lo, x.hi))
        )
        return low, high, x.nan, single | (close & (low < high))
    known = single | ~_pole_inside(x) if function == "digamma" else single | (x.lo > _FAR)
    known &= ~x.empty
    lo, hi = (np.where(known, end, np.nan) for end in (x.lo, x.hi))
    low, high = _at_ends(function, lo, hi, dtype)
    if function == "lgamma":
        low, high = _of_log_gamma(low, high, np.where(single, np.nan, lo), hi, FORMATS[dtype].wide)
    return low, high, x.nan, known


def _at_ends(function: str, lo: Array, hi: Array, dtype: DType) -> tuple[Array, Array]:
    """Least and greatest of the values at both ends; NaN where there is no interval."""
    some = lo <= hi
    below, above = (true_range(function, np.where(some, end, np.nan), dtype) for end in (lo, hi))
    return np.fmin(below[0], above[0]), np.fmax(below[1], above[1])


@cache
def _peak() -> tuple[float, Any]:
    """Where bessel_i1e is greatest, a number that is not less, and its value there."""
    with mpmath.workprec(PRECISION):
        place = mpmath.findroot(lambda x: mpmath.besseli(0, x) - mpmath.besseli(1, x) * (1 + 1 / x), 1.5)
        return float(place) * (1 + 2.0**-50), TRUTH["bessel_i1e"](place)


def _pole_inside(x: Interval) -> Array:
    """Whether an interval has zero or a negative integer in it; at its ends, too."""
    return np.asarray((x.lo <= 0) & (np.ceil(x.lo) <= x.hi))


def _of_log_gamma(low: Array, high: Array, lo: Array, hi: Array, wide: Any) -> tuple[Array, Array]:
    """The range from the values at the ends: infinite at a pole, and with the least minimum of those between poles.

    The minima fall from each interval between poles to the next below it, by a factor of more than 1 in the gamma function.
    """
    inner = lo < hi
    pole = inner & (lo <= 0) & (np.ceil(lo) <= hi)
    high = np.where(pole, np.inf, high)
    falls = true_values("digamma", np.where(inner, lo, np.nan), np.float64) < 0
    rises = true_values("digamma", np.where(inner, hi, np.nan), np.float64) > 0
    whole = pole & (np.ceil(lo) + 1 <= np.minimum(hi, 0))
    for here, piece in (
        (np.where(pole, falls, falls & rises), np.floor(lo)),
        (pole & rises, np.floor(hi)),
        (whole, np.ceil(lo)),
    ):
        for k in np.unique(np.minimum(piece[here], 0)).tolist():
            least = rounded(_minimum("lgamma", 0, int(k)), wide)
            low = np.where(here & (np.minimum(piece, 0) == k), np.fmin(low, least), low)
    return low, high


def of_two(function: str, x: Interval, y: Interval, wide: Any) -> tuple[Array, Array, Array]:
    """Least and greatest value of `polygamma` or `zeta`, and where they are known: of one order, or of zeta for arguments of at least 1."""
    sure = ~(x.nan | y.nan | x.empty | y.empty)
    order = sure & (x.lo == x.hi)
    single = order & (y.lo == y.hi)
    finite = np.isfinite(x.lo) & np.isfinite(x.hi) & np.isfinite(y.lo) & np.isfinite(y.hi)
    between = order & ((y.lo > 0) | ((np.floor(y.lo) == np.floor(y.hi)) & (y.lo != np.floor(y.lo))))
    if function == "zeta":  # there it falls in both
        between |= sure & (y.lo >= 1) & (x.lo > 1)
    reached = within_reach(function, x.lo, y.lo) & within_reach(function, x.hi, y.hi)
    # of an infinite order some have the limit, and some NaN
    known = reached & (single | (finite & between)) & ~np.isinf(x.lo)
    ends = []
    for a, b, use in ((x.lo, y.lo, known), (x.hi, y.hi, known & ~single)):
        ends.append(true_values_of_two(function, np.where(use, a, np.nan), np.where(use, b, np.nan), wide))
    low, high = (np.array(f(*ends)) for f in (np.fmin, np.fmax))
    order_of = np.where(known & ~single & (y.hi < 0) & (x.lo == np.floor(x.lo)), x.lo, np.nan)
    for index in np.argwhere(np.mod(order_of, 2) == (function == "polygamma")):
        at = tuple(index)
        slope = _slope(function, int(order_of[at]))
        if slope(float(y.lo[at])) < 0 < slope(float(y.hi[at])):
            least = _minimum(function, int(order_of[at]), int(np.floor(y.lo[at])))
            low[at] = np.fmin(low[at], rounded(least, wide))
    return low, high, known


def _slope(function: str, order: int) -> Callable[[Any], Any]:
    """What has the sign of the derivative."""
    if function == "lgamma":
        return TRUTH["digamma"]
    sign = 1 if function == "polygamma" else -1
    return lambda v: sign * value_of_two(function, order + 1, float(v))


@cache
def _minimum(function: str, order: int, below: int) -> Any:
    """The minimum of a convex function between the poles `below` and `below + 1`; of lgamma above the pole 0 that of positive numbers."""
    value = TRUTH[function] if function == "lgamma" else lambda v: value_of_two(function, order, float(v))
    slope = _slope(function, order)
    with mpmath.workprec(PRECISION):
        start, end = (mpmath.mpf(below + (below == 0) + k) for k in (0, 1))
        for _ in range(_STEPS):
            middle = (start + end) / 2
            start, end = (middle, end) if slope(middle) < 0 else (start, middle)
        return value(start)
