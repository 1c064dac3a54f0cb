"""Exact rules of integers and Bool: two's-complement wrap, truncating division.

Bounds are int64. An interval that crosses a wrap becomes everything; single I64 values wrap as NumPy's do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle.enclosure.formats import Array
from oracle.enclosure.value import INT_RANGE, Interval, everything, exact
from tenferro_ref.dtype import DType


def wrapped(dtype: DType, lo: Array, hi: Array, approximate: tuple[Array, Array] | None = None) -> Interval:
    """Bounds taken modulo the dtype.

    Parameters
    ----------
    lo, hi
        Exact for I32 (the results of one operation fit in 64 bits), modulo 2**64 for I64; one array for known values.
    approximate
        For I64 intervals: the bounds in float64, which tell whether they wrapped.
    """
    one = lo is hi
    if dtype is DType.I32:
        low = _wrap32(lo)
        high = low if one else _wrap32(hi)
        crossed = False if one else (hi - lo >= 2**32) | (low > high)
    else:
        low, high = lo, hi
        crossed = False
        if not one and approximate is not None:
            crossed = (np.abs(approximate[0]) >= 2.0**62) | (np.abs(approximate[1]) >= 2.0**62)
    if one:
        return exact(dtype, low)
    least, greatest = INT_RANGE[dtype]
    return exact(dtype, np.where(crossed, least, low), np.where(crossed, greatest, high))


def _wrap32(v: Array) -> Array:
    return ((v + 2**31) & 0xFFFFFFFF) - 2**31


def monotone(dtype: DType, f: Callable[[Array, Array], Array], x: Interval, y: Interval) -> Interval:
    """`f` increasing in both operands and never wrapping."""
    lo = f(x.lo, y.lo)
    return exact(dtype, lo, lo if x.is_point and y.is_point else f(x.hi, y.hi))


def add(dtype: DType, x: Interval, y: Interval) -> Interval:
    if dtype is DType.Bool:
        return monotone(dtype, np.maximum, x, y)
    lo = x.lo + y.lo
    if x.is_point and y.is_point:
        return wrapped(dtype, lo, lo)
    return wrapped(dtype, lo, x.hi + y.hi, (x.lo.astype(float) + y.lo, x.hi.astype(float) + y.hi))


def subtract(dtype: DType, x: Interval, y: Interval) -> Interval:
    lo = x.lo - y.hi
    if x.is_point and y.is_point:
        return wrapped(dtype, lo, lo)
    return wrapped(dtype, lo, x.hi - y.lo, (x.lo.astype(float) - y.hi, x.hi.astype(float) - y.lo))


def multiply(dtype: DType, x: Interval, y: Interval) -> Interval:
    if dtype is DType.Bool:
        return monotone(dtype, np.minimum, x, y)
    if x.is_point and y.is_point:
        p = x.lo * y.lo
        return wrapped(dtype, p, p)
    pairs = [(a, b) for a in (x.lo, x.hi) for b in (y.lo, y.hi)]
    corners = np.stack(np.broadcast_arrays(*(a * b for a, b in pairs)))
    floats = np.stack(np.broadcast_arrays(*(a.astype(float) * b for a, b in pairs)))
    return wrapped(dtype, corners.min(0), corners.max(0), (floats.min(0), floats.max(0)))


def negate(dtype: DType, x: Interval) -> Interval:
    lo = -x.hi
    return wrapped(dtype, lo, lo if x.is_point else -x.lo, (-x.hi.astype(float), -x.lo.astype(float)))


def absolute(dtype: DType, x: Interval) -> Interval:
    if x.is_point:
        lo = np.abs(x.lo)
        return wrapped(dtype, lo, lo)
    least = INT_RANGE[dtype][0]
    lo = np.where((x.lo <= 0) & (x.hi >= 0), 0, np.minimum(np.abs(x.lo), np.abs(x.hi)))
    hi = np.maximum(np.abs(x.lo), np.abs(x.hi))
    minimum_inside = x.lo == least  # |MIN| = MIN
    return exact(dtype, np.where(minimum_inside, least, lo), np.where(minimum_inside, INT_RANGE[dtype][1], hi))


def divide(dtype: DType, x: Interval, y: Interval) -> Interval:
    """Truncating; x / 0 = -1 and MIN / -1 = MIN (the engine raises for a zero divisor and gives no value)."""
    if x.is_point and y.is_point:
        return exact(dtype, _truncate(dtype, x.lo, y.lo))
    corners = [_truncate(dtype, a, b) for a in (x.lo, x.hi) for b in (y.lo, y.hi)]
    stacked = np.stack(np.broadcast_arrays(*corners))
    least, greatest = INT_RANGE[dtype]
    # monotone in each operand while the divisor keeps one sign and MIN / -1 stays out
    wild = ((y.lo <= 0) & (y.hi >= 0)) | ((x.lo == least) & (y.hi < 0))
    return exact(dtype, np.where(wild, least, stacked.min(0)), np.where(wild, greatest, stacked.max(0)))


def _truncate(dtype: DType, a: Array, b: Array) -> Array:
    least = INT_RANGE[dtype][0]
    overflow = (a == least) & (b == -1)
    safe = np.where((b == 0) | overflow, 1, b)
    quotient = a // safe
    quotient = quotient + ((quotient * safe != a) & ((a < 0) != (safe < 0)))
    return np.where(b == 0, -1, np.where(overflow, least, quotient))


def power(dtype: DType, x: Interval, y: Interval) -> Interval:
    """By squaring, wrapping; a negative exponent has no value that all agree on."""
    shape = np.broadcast_shapes(x.shape, y.shape)
    if not (x.is_point and y.is_point):
        return everything(dtype, shape)
    base, exponent = (np.broadcast_to(a, shape) for a in (x.lo, y.lo))
    result = np.ones(shape, np.int64)
    left = np.maximum(exponent, 0)
    square = base
    while (left > 0).any():
        result = np.where(left & 1, result * square, result)
        square = square * square
        left = left >> 1
    value = wrapped(dtype, result, result)
    if not (exponent < 0).any():
        return value
    least, greatest = INT_RANGE[dtype]
    return exact(dtype, np.where(exponent < 0, least, value.lo), np.where(exponent < 0, greatest, value.hi))
