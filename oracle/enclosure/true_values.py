"""The true values of `Special` and `Special2`, by mpmath, and their budgets (`special.toml`)."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

from oracle.enclosure.formats import FORMATS, Array
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp

#: Digits that mpmath computes with.
PRECISION = 120
#: The most different arguments of one function: mpmath takes tens of microseconds each.
MOST = 2**16
#: An exponent of 2 whose negative is that of less than any number.
_BELOW_ALL = 1200
#: The largest order of polygamma, and the farthest argument below zero, for which mpmath's time is bounded.
_REACH = 1e3
#: The largest order of polygamma whose factorial a float64 holds, as the native kernel needs it below zero.
_ORDERS = 170


@cache
def budgets() -> dict[str, dict[str, Any]]:
    """`special.toml`: by function, ULPs by dtype, `floor`, below which an error is absolute, and `argument`, ULPs of the argument."""
    return tomllib.loads(Path(__file__).with_name("special.toml").read_text())


# --- of one argument -------------------------------------------------------------------------------------------------


def _log_gamma(x: Any) -> Any:
    return mpmath.inf if x <= 0 and x == mpmath.floor(x) else mpmath.re(mpmath.loggamma(x))


def _digamma(x: Any) -> Any:
    return mpmath.nan if x <= 0 and x == mpmath.floor(x) else mpmath.digamma(x)


def _within(least: float, greatest: float, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: f(x) if least <= x <= greatest else mpmath.nan


TRUTH: dict[str, Callable[[Any], Any]] = {
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
AT_INFINITY: dict[str, tuple[float, float]] = {
    "cbrt": (-np.inf, np.inf), "tan": (np.nan, np.nan), "asin": (np.nan, np.nan), "acos": (np.nan, np.nan),
    "atan": (-np.pi / 2, np.pi / 2), "sinh": (-np.inf, np.inf), "cosh": (np.inf, np.inf), "asinh": (-np.inf, np.inf),
    "acosh": (np.nan, np.inf), "atanh": (np.nan, np.nan), "erf": (-1.0, 1.0), "erfc": (2.0, 0.0),
    "erf_inv": (np.nan, np.nan), "lgamma": (np.inf, np.inf), "digamma": (np.nan, np.inf), "bessel_i1e": (0.0, 0.0),
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
                values[i] = np.nan if a != a else AT_INFINITY[function][a > 0]
            else:
                values[i] = rounded(TRUTH[function](mpmath.mpf(a)), wide)
    return values[places].reshape(x.shape)


def true_range(function: str, x: Array, dtype: DType) -> tuple[Array, Array]:
    """Least and greatest true value at each element, and at its neighbours if the function's argument may be off by an ULP.

    What is first computed of a subnormal, as `sin(pi * x)` within `lgamma`, is rounded to a multiple of the least number. An exponential
    within a function grows with the error of its own argument: a formula by `exp(x + log(1/2))`, `exp(-x * x)` or `log1p(-x * x)` loses an
    ULP of x, which is hundreds of the result far out.
    """
    wide = FORMATS[dtype].wide
    low = high = true = true_values(function, x, wide)
    kept = DType.F64 if dtype is DType.F64 else DType.F32
    exact = x.astype(kept.numpy)
    off = (np.abs(exact) < float(kept.finfo.tiny)) & (exact != 0) | ("argument" in budgets()[function])
    off &= (true != 0) & ~np.isinf(true)  # a zero is exact, and so is a pole
    if off.any():
        for end in (-np.inf, np.inf):
            other = np.where(off, np.nextafter(exact, exact.dtype.type(end)), exact)
            beside = true_values(function, other.astype(float), wide)
            low, high = np.fmin(low, beside), np.fmax(high, beside)
    none = np.isnan(true)  # outside the function's domain, however near
    return np.where(none, np.nan, low), np.where(none, np.nan, high)


#: An exponent of 2 that a long double has, far below those of all dtypes.
_LEAST = -16_000


def rounded(value: Any, wide: Any) -> Any:
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


# --- of two arguments ------------------------------------------------------------------------------------------------


def within_reach(function: str, x: Array, y: Array) -> Array:
    """Where mpmath does not take minutes, as it adds up a term for each unit below zero, and for each order."""
    far = np.isfinite(x) & np.isfinite(y) & (y < 0) & (y != np.floor(y)) & ((y < -_REACH) | (x > _REACH))
    if function == "polygamma":
        far |= np.isfinite(x) & (x > np.where(y < 0, _ORDERS, _REACH)) & (x == np.floor(x))
    return np.asarray(~far)


def true_values_of_two(function: str, x: Array, y: Array, wide: Any) -> Array:
    """As `true_values`, of `zeta` and `polygamma`."""
    values = np.empty(x.shape, wide)
    with mpmath.workprec(PRECISION):
        for index in np.ndindex(x.shape):
            values[index] = rounded(value_of_two(function, float(x[index]), float(y[index])), wide)
    return values


def value_of_two(function: str, a: float, b: float) -> Any:
    if not (np.isfinite(a) and np.isfinite(b)):
        return mpmath.nan
    if function == "polygamma":
        pole = b <= 0 and b == int(b)
        if a < 0 or a != int(a) or pole:
            return mpmath.nan
        if a >= 1 and b < 0:  # mpmath's loses all digits where terms of both signs cancel (a = 80, b = -74.5)
            return (-1) ** (int(a) + 1) * mpmath.factorial(int(a)) * _zeta_below(a + 1, b)
        return mpmath.polygamma(int(a), b)
    if a < 1 or (b < 0 and b != int(b) and a != int(a)):  # of a negative number a power that is not whole
        return mpmath.nan
    return _zeta(a, b) if a > 1 and (b > 0 or b != int(b)) else mpmath.inf


def _zeta(a: float, b: float) -> Any:
    """Of Hurwitz, at most `b**-a * (1 + b / (a - 1))` beyond 1; mpmath counts digits from 1 on, and of what is less than all numbers no end."""
    if b < 0:
        return _zeta_below(a, b)
    small = a * math.log2(max(b, 1.0))
    if small - math.log2(1 + max(b, 0.0) / (a - 1)) > _BELOW_ALL:
        return mpmath.ldexp(1, -_BELOW_ALL)
    with mpmath.workprec(PRECISION + int(min(small, 1200.0))):
        return mpmath.re(mpmath.zeta(a, b))


def _zeta_below(a: float, b: float) -> Any:
    """Where mpmath's series is far off (a = 2, b = -50.3). Terms of both signs may cancel down to the first beyond them all."""
    terms = math.ceil(-b)
    for more in (0, int(min(a * math.log2(2 + 2 * terms), 1200.0))):
        with mpmath.workprec(2 * PRECISION + more):
            first = [(mpmath.mpf(b) + k) ** -mpmath.mpf(a) for k in range(terms)]
            value = mpmath.fsum([*first, mpmath.zeta(a, mpmath.mpf(b) + terms)])
            if abs(value) > mpmath.ldexp(max(map(abs, first)), -PRECISION):
                break
    return value
