"""Distances between floats, counted in representable values (ULPs of the dtype)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tenferro_ref.dtype import DType


def ordinals(x: NDArray[Any]) -> NDArray[np.int64]:
    """Position of each finite element on the line of the values of its float dtype; both zeros are 0."""
    dtype, raw = DType.of(x), np.ascontiguousarray(x)
    if dtype is DType.F8E8M0FNU:  # which has no sign
        return raw.view(np.uint8).astype(np.int64)
    spare = 8 * dtype.itemsize - dtype.bits  # above the sign
    bits = (raw.view(f"i{dtype.itemsize}") << spare >> spare).astype(np.int64)
    sign = -(2 ** (dtype.bits - 1))
    return np.where(bits < 0, sign - bits, bits).reshape(x.shape)


def without_subnormals(x: NDArray[Any]) -> NDArray[Any]:
    """Subnormals as zeros."""
    return np.where(np.abs(x) < DType.of(x).finfo.smallest_normal, x.dtype.type(0), x)


def spacing_at(size: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """ULP of (the parts of) `dtype` at each positive size; that of normal numbers below them."""
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    usual = np.clip(size, float(info.smallest_normal), float(info.max) / 2).astype(info.dtype)
    _, exponent = np.frexp(usual.astype(np.float64))
    return np.asarray(np.ldexp(1.0, exponent - 1 - int(info.nmant)))


def ulp_distance(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """How many values lie between the elements of `a` and `b` (float64; exact up to 2**53); NaN where either is not finite.

    Subnormals count as zeros and the normal numbers as one gapless line: a flushed result is not millions of ULPs away.
    Complex numbers are as far apart as the modulus of their difference, in ULPs of the larger modulus.
    """
    if a.dtype.kind == "c":
        known = np.isfinite(a) & np.isfinite(b)
        with np.errstate(over="ignore"):
            x, y = (np.where(known, v, 0).astype(np.clongdouble) for v in (a, b))
            size = np.maximum(np.abs(x), np.abs(y))
            return np.where(known, (np.abs(x - y) / spacing_at(size, a.dtype)).astype(np.float64), np.nan)
    finite = np.isfinite(a) & np.isfinite(b)
    skipped = ordinals(np.asarray(DType.of(a).finfo.smallest_normal, a.dtype)) - 1

    def position(x: NDArray[Any]) -> NDArray[np.int64]:
        place = ordinals(without_subnormals(np.where(finite, x, x.dtype.type(0))))
        return np.asarray(place - np.sign(place) * skipped)

    return np.where(finite, steps(position(a), position(b)), np.nan)


def steps(p: NDArray[np.int64], q: NDArray[np.int64]) -> NDArray[np.float64]:
    """How far positions are apart, rounded once: up to 2**64, and float64 has no single steps between such positions."""
    with np.errstate(over="ignore"):  # NumPy warns of scalars that wrap, as is meant here
        apart = np.maximum(p, q).astype(np.uint64) - np.minimum(p, q).astype(np.uint64)
    return np.asarray(apart.astype(np.float64))
