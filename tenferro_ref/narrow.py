"""Rounding of float64 to a float format of 16 bits or fewer: once, to nearest even.

`astype` of `ml_dtypes` goes through float32 and rounds twice (measured: ml_dtypes 0.6, 1 + 2**-8 + 2**-30 to BF16).
Float64 has more than twice the digits of any of these formats, and two more, so that one correctly rounded operation in
it, rounded here, is the correctly rounded operation of the format (Figueroa 1995).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenferro_ref.dtype import DType

#: float8_e8m0fnu has powers of two only: no sign, no zero, and its least value is no multiple of a subnormal.
_POWERS_ONLY = DType.F8E8M0FNU


def spacing(dtype: DType, v: NDArray[Any]) -> NDArray[np.float64]:
    """The distance of neighbouring values of a format at the magnitude of each finite `v`; that of its subnormals below."""
    info = dtype.finfo
    fraction, exponent = np.frexp(np.asarray(v, np.float64))
    binade = np.where(fraction == 0, int(info.minexp), exponent - 1)  # of zero, frexp says 0
    return np.asarray(np.ldexp(1.0, np.maximum(binade, int(info.minexp)) - int(info.nmant)))


def to_nearest(dtype: DType, v: NDArray[Any]) -> NDArray[np.float64]:
    """`v` rounded to the format, in float64; beyond its range the infinity or, where it has none, NaN or its largest value."""
    v = np.asarray(v, np.float64)
    with np.errstate(all="ignore"):
        finite = np.isfinite(v)
        safe = np.where(finite, v, 0.0)
        step = spacing(dtype, safe)
        near = np.copysign(np.rint(safe / step) * step, safe)
        if dtype is _POWERS_ONLY:  # without a zero, the least value is the nearest to all below it
            near = np.where(safe > 0, np.maximum(near, float(dtype.finfo.tiny)), near)
        # what is left is exact or out of range: there the format itself says what it has
        return np.where(finite, near, v).astype(np.float32).astype(dtype.numpy).astype(np.float64)


def narrowed(dtype: DType, v: NDArray[Any]) -> NDArray[Any]:
    """Float64 as an array of the format."""
    return np.asarray(to_nearest(dtype, v).astype(np.float32).astype(dtype.numpy))


def sticky(v: NDArray[Any]) -> NDArray[np.float64]:
    """Integers in float64, those beyond its digits rounded to odd: rounding again to a narrow format is rounding once."""
    v = np.asarray(v)
    if v.dtype.itemsize < 8 or not v.size or (np.max(v) <= 2**53 and np.min(v) >= -(2**53)):
        return v.astype(np.float64)
    high = v >> 11
    odd = high | (v & 2047 != 0)
    large = (v > 2**53) | (v < -(2**53))
    return np.where(large, odd.astype(np.float64) * 2048.0, v.astype(np.float64))
