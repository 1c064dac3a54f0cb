"""Floating-point arithmetic in fractions, rounded by our own rule: what a result would be with fewer roundings."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tests.laws.cases import Array

#: Arrays of fractions.
real: Callable[[Array], Any] = np.vectorize(lambda v: Fraction(float(v)), otypes=[object])


def near(exact: Array, kind: Any) -> Array:
    """Fractions rounded to nearest even."""
    info = np.finfo(kind)

    def one(q: Fraction) -> Any:
        if abs(q) >= Fraction(float(info.max)) + Fraction(2) ** (info.maxexp - info.nmant - 2):
            return kind(np.inf if q > 0 else -np.inf)
        exponent = abs(q.numerator).bit_length() - q.denominator.bit_length()  # of the binade, or the one above
        exponent -= abs(q) < Fraction(2) ** exponent
        step = Fraction(2) ** (max(exponent, info.minexp) - info.nmant)
        return kind(float(round(q / step) * step))

    return np.asarray(np.vectorize(one, otypes=[kind])(exact))


def fused(x: Array, y: Array, z: Array) -> Array:
    """`x y + z`, rounded once."""
    apart = x * y + z
    factors, addend = np.stack([x, y]), z
    known = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    x, y, z = (np.where(known, v, 0) for v in (x, y, z))
    exact = real(x) * real(y) + real(z)
    # an infinite addend stays when the product does not overflow before
    apart = np.where(np.isfinite(factors).all(axis=0) & np.isinf(addend), addend, apart)
    return np.where(known & (exact != 0), near(exact, z.dtype.type), apart)


def read(x: Array) -> list[Array]:
    """As a platform may read it: as it is, and subnormals as zeros of their sign."""
    small = np.abs(x) < np.finfo(x.dtype).smallest_normal
    return [x, np.where(small, np.copysign(x.dtype.type(0), x), x)]


def written(x: Array) -> list[Array]:
    """As a platform may write a rounded result: as `read`, but the least normal number may have come from below."""
    small = np.abs(x) <= np.finfo(x.dtype).smallest_normal
    return [x, np.where(small, np.copysign(x.dtype.type(0), x), x)]
