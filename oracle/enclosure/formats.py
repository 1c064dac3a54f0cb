"""The float formats, and rounding to them: to nearest, inward, outward. No op is known here.

Bounds are kept in float64 whatever the dtype, and every finite bound is a value of its format. What must be known more
finely than the format (a product before it is rounded, a logarithm) is computed in the format's *wide* type: float64 for
F32 and the narrower formats; for F64 x87's 80-bit type where NumPy has it, else float64 itself with a slack that covers its error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tenferro_ref.dtype import NARROW_FLOATS, DType
from tenferro_ref.narrow import spacing, sticky, to_nearest

Array: TypeAlias = NDArray[Any]

#: Whether longdouble has more digits than double (x86 has 64, some platforms 53).
HAS_WIDER = np.finfo(np.longdouble).nmant >= 63


@dataclass(frozen=True)
class Format:
    """A float format.

    Attributes
    ----------
    max, top_binade, min_normal, least_subnormal, unit
        Largest finite value, the power of two below it, smallest normal and subnormal value, half the spacing at 1.
    overflow
        Smallest magnitude that rounds to infinity (wide).
    slack
        Error, in ULPs of the format, that is assumed of NumPy's functions when they are evaluated in `wide`; tests
        measure it against Arb.
    wide_unit
        Half the spacing at 1 of the wide type.
    """

    dtype: DType
    storage: Any
    wide: Any
    max: float
    top_binade: float
    min_normal: float
    least_subnormal: float
    unit: float
    overflow: Any
    slack: float
    wide_unit: float

    def gamma(self, units: float) -> float:
        """Relative error after roundings of so many units of rounding together (Higham 2002, lemma 3.1); infinite for too many."""
        off = units * self.unit
        return off / (1 - off) if off < 0.5 else float("inf")

    def nearest(self, v: Array) -> Array:
        """Round to nearest even, in float64; beyond the range of a format without infinities, where it has NaN, to one nevertheless."""
        v = np.asarray(v)
        if self.dtype in NARROW_FLOATS:
            near = to_nearest(self.dtype, v)
            return np.where(np.isnan(near), v * np.inf, near) if self.dtype in NO_INFINITY else near
        if self.dtype is DType.F32:
            return np.asarray(v.astype(np.float32).astype(np.float64))
        return v if v.dtype == np.float64 else np.asarray(v.astype(np.float64))

    def of_integers(self, v: Array) -> Array:
        """Integers rounded once, in float64."""
        if self.dtype in NARROW_FLOATS:
            return self.nearest(sticky(v))
        return np.asarray(v.astype(self.storage).astype(np.float64))

    def least_at_or_above(self, v: Array) -> Array:
        """The smallest result >= v; what rounds to an infinity is one, and nothing else is."""
        y = self.nearest(v)
        # what is beyond `max` and rounds to it has no larger result
        below = (y < v) & (np.abs(v) <= self.max)
        if not np.count_nonzero(below):
            return y
        if self.dtype in NARROW_FLOATS:
            # a negative power of two has closer neighbours towards zero than away from it
            step = spacing(self.dtype, y)
            step = np.where((y < 0) & (spacing(self.dtype, y + step / 2) < step), step / 2, step)
            return np.where(below, np.where(y + step == 0, -0.0, y + step), y)
        return np.where(below, np.nextafter(y.astype(self.storage), self.storage(np.inf)).astype(np.float64), y)

    def greatest_at_or_below(self, v: Array) -> Array:
        """The greatest result <= v; what rounds to an infinity is one, and nothing else is."""
        return -self.least_at_or_above(-v)

    def widened(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The smallest result >= `low`, and the greatest <= `high`; arrays of one shape."""
        least, below = self.least_at_or_above(np.array((low, -high)))
        return least, -below

    def ulp(self, v: Array) -> Array:
        """Spacing of the format at the magnitude of `v`; that of `max` beyond."""
        # capped at the power of two below `max`: NumPy's spacing of `max` itself is infinite
        magnitude = np.fmin(np.abs(v), self.top_binade)
        if self.dtype in NARROW_FLOATS:
            return np.asarray(spacing(self.dtype, magnitude))
        magnitude = magnitude.astype(self.storage)
        return np.asarray(np.spacing(magnitude).astype(self.wide))


def outward(f: Format, ulps: float, ends: Array, *, single: bool) -> Array:
    """Least and greatest number (wide) within `ulps` of a value in [low, high].

    Not monotone where the interval crosses a power of two: there the spacing doubles, so that the power itself may reach
    further towards zero than the end of the interval does.

    Parameters
    ----------
    ends
        `low` and `-high` along the first axis; so is the result.
    single
        Both are the same number.
    """
    out: Array = ends - ulps * f.ulp(ends)
    if single:
        return out
    power = _next_power(ends)
    crossed = (ends > 0) & (power <= -ends[::-1])
    if np.count_nonzero(crossed):
        out = np.where(crossed, np.fmin(out, power - ulps * f.ulp(power)), out)
    return out


def _next_power(v: Array) -> Array:
    """The smallest power of two above each positive element, +inf above +inf; anything for the others."""
    return np.where(np.isinf(v), np.inf, np.ldexp(v.dtype.type(1), np.frexp(v)[1]))


def _format(dtype: DType) -> Format:
    info: Any = dtype.finfo
    largest = float(info.max)
    wide: Any = np.float64 if dtype is not DType.F64 or not HAS_WIDER else np.longdouble
    widens = np.finfo(wide).nmant > info.nmant
    half = wide(2) ** (int(info.maxexp) - int(info.nmant) - 2)
    return Format(
        dtype,
        dtype.numpy.type,
        wide,
        largest,
        2.0 ** (int(info.maxexp) - 1),
        float(info.smallest_normal),
        float(info.smallest_subnormal),
        2.0 ** -(int(info.nmant) + 1),
        wide(largest) + half if widens else wide(np.inf),
        2.0**-7 if widens else 2.0,
        float(np.finfo(wide).eps) / 2,
    )


#: Narrow formats whose zero has no sign, and those without NaN: what becomes of one there is not specified.
UNSIGNED_ZERO = frozenset(d for d in NARROW_FLOATS if not np.signbit(np.float64(d.numpy.type(-0.0))))
NO_NAN = frozenset(d for d in NARROW_FLOATS if not np.isnan(np.float64(d.numpy.type(np.nan))))
#: Those that have NaN in place of infinities; F8E8M0FNU, which has no zero either, is not among them.
NO_INFINITY = frozenset(
    d for d in NARROW_FLOATS - NO_NAN if np.isnan(np.float64(d.numpy.type(np.inf))) and d is not DType.F8E8M0FNU
)

FORMATS: dict[DType, Format] = {d: _format(d) for d in DType if d.is_float}


def quantum(x: Array) -> Array:
    """The value of the lowest set bit of each finite element; +inf for zero, 0 for infinities (float64).

    Sums of multiples of `q` whose absolute sum stays below `2**p * q` are exact in any order.
    """
    mantissa, exponent = np.frexp(x)
    finite = np.isfinite(x)
    every = np.count_nonzero(finite) == finite.size
    bits = (mantissa * 2.0**53 if every else np.where(finite, mantissa * 2.0**53, 0)).astype(np.int64)
    low = np.ldexp((bits & -bits).astype(np.float64), exponent - 53)
    if np.count_nonzero(bits) != bits.size:
        low = np.where(x == 0, np.inf, low)
    return low if every else np.where(finite, low, 0.0)


def sum_outward(a: Array, b: Array, direction: Array) -> Array:
    """`a + b` in the type of the operands, one step towards `direction` (of that type) unless it is exact (TwoSum, Knuth)."""
    s = a + b
    t = s - a
    inexact = ((a - (s - t)) + (b - t) != 0) & np.isfinite(a) & np.isfinite(b)
    return np.where(inexact, np.nextafter(s, direction), s)


def flushed(x: Array) -> Array:
    """The array with each subnormal as the zero of its sign; `x` itself if it has none."""
    dtype = DType.of(x)
    if dtype.is_complex:
        parts = np.ascontiguousarray(x).reshape(-1).view(dtype.real.numpy)
        zeros = flushed(parts)
        return x if zeros is parts else zeros.view(x.dtype).reshape(x.shape)
    if not dtype.is_float:
        return x
    wide = x.astype(np.float64)
    small = (wide != 0) & (np.abs(wide) < FORMATS[dtype].min_normal)
    return np.where(small, np.copysign(0, wide), wide).astype(x.dtype) if small.any() else x
