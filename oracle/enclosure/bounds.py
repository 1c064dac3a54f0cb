"""Bounds of sums, products and quotients of real numbers before they are rounded, and what an interval may hold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from oracle.enclosure.formats import Array, Format, quantum
from oracle.enclosure.value import Enclosure, Interval

Bounds: TypeAlias = tuple[Any, Any]


def may_be_positive(x: Interval) -> Array:
    """Some possible result has a plus sign."""
    return np.asarray((x.hi > 0) | x.pos_zero)


def may_be_negative(x: Interval) -> Array:
    return np.asarray((x.lo < 0) | x.neg_zero)


def may_be_zero(x: Interval) -> Array:
    return np.asarray(x.pos_zero | x.neg_zero)


def may_be_infinite(x: Interval) -> Array:
    return np.asarray(((x.hi == np.inf) | (x.lo == -np.inf)) & (x.lo <= x.hi))


def may_be_finite(x: Interval) -> Array:
    return np.asarray((x.lo < np.inf) & (x.hi > -np.inf) & (x.lo <= x.hi))


def is_zero(x: Interval) -> Array:
    """Nothing but a zero (or NaN)."""
    return np.asarray((x.lo == 0) & (x.hi == 0))


def is_value(x: Interval, value: float) -> Array:
    return np.asarray((x.lo == value) & (x.hi == value))


def shared(x: Enclosure, other: Enclosure) -> bool:
    """Constant, or one value for many elements of the result: what a compiler takes out of loops."""
    return x.const or x.repeated or x.size < other.size


def on_common_shape(x: Interval, y: Interval) -> tuple[Interval, Interval]:
    """Both broadcast to the shape of a result."""
    shape = np.broadcast_shapes(x.shape, y.shape)
    return x.reshaped(shape), y.reshaped(shape)


def without_nan(lo: Array, hi: Array) -> Bounds:
    """Bounds of a sum: where one is inf - inf, the other operand is one infinity, and no more than that is possible."""
    return np.where(np.isnan(lo), np.inf, lo), np.where(np.isnan(hi), -np.inf, hi)


def any_order(
    f: Format, total: Array, size: Array, additions: int, products: bool, partial: Array | None = None
) -> Array:
    """Largest error of a sum that is evaluated in any order.

    Parameters
    ----------
    total, size
        Magnitude of the sum, and the sum of the magnitudes of the terms (wide).
    products
        Each term is a product that may be rounded first.
    partial
        Bound of the magnitudes of all partial sums together, without the last; by default each is bounded by the greater
        of the positive and of the negative terms.
    """
    rounded = additions + products
    gamma = rounded * f.unit / (1 - rounded * f.unit) if rounded * f.unit < 0.5 else np.inf
    if partial is None:
        partial = max(additions - 1, 0) * (size + total) / 2
    if np.isinf(gamma):
        # so short a format that partial sums say nothing; this holds for any number of terms (Jeannerod and Rump 2013)
        return rounded * f.unit * size
    # partial sums are themselves off by gamma at most
    return f.unit * (total + partial + (products + max(additions, 0) * gamma) * size)


def magnitude(lo: Array, hi: Array) -> Array:
    return np.fmax(np.abs(lo), np.abs(hi))


def least_magnitude(lo: Array, hi: Array) -> Array:
    return np.fmax(np.fmax(lo, -hi), 0.0)


def least_bits(x: Interval) -> Array:
    q = quantum(x.lo)
    return q if x.is_point else np.minimum(q, quantum(x.hi))


def extreme_products(xl: Array, xh: Array, yl: Array, yh: Array) -> Bounds:
    """Least and greatest corner; fmin and fmax leave out 0 * inf."""
    if xl is xh:
        if yl is yh:
            p = xl * yl
            return p, p
        a, b = xl * yl, xl * yh
        return np.fmin(a, b), np.fmax(a, b)
    if yl is yh:
        a, b = xl * yl, xh * yl
        return np.fmin(a, b), np.fmax(a, b)
    a, b, d, e = xl * yl, xl * yh, xh * yl, xh * yh
    return np.fmin(np.fmin(a, b), np.fmin(d, e)), np.fmax(np.fmax(a, b), np.fmax(d, e))


def product_bounds(wide: Any, x: Interval, y: Interval) -> Bounds:
    """Bounds of the product in a wide type (rounded to that type); NaN where there is none."""
    xl, yl = x.lo.astype(wide), y.lo.astype(wide)
    xh = xl if x.is_point else x.hi.astype(wide)
    yh = yl if y.is_point else y.hi.astype(wide)
    lo, hi = extreme_products(xl, xh, yl, yh)
    if x.is_point and y.is_point:
        return lo, hi
    if x is y:  # a square
        lo = np.where((xl < 0) & (xh > 0), 0, np.fmin(xl * xl, xh * xh))
    finite = x.finite and y.finite
    # 0 * finite where every corner is 0 * inf
    zero = np.asarray(may_be_zero(x) | may_be_zero(y))
    if not finite:
        zero = (may_be_zero(x) & may_be_finite(y)) | (may_be_zero(y) & may_be_finite(x))
    if np.count_nonzero(zero):
        lo, hi = np.where(zero, np.fmin(lo, 0), lo), np.where(zero, np.fmax(hi, 0), hi)
    if finite:
        return lo, hi
    none = x.empty | y.empty
    if np.count_nonzero(none):
        lo, hi = np.where(none, np.nan, lo), np.where(none, np.nan, hi)
    return lo, hi


def nan_of_product(x: Interval, y: Interval) -> Array:
    """Where NaN is possible."""
    nan = x.nan | y.nan
    if x.finite and y.finite:
        return np.asarray(nan)
    return np.asarray(nan | (may_be_zero(x) & may_be_infinite(y)) | (may_be_zero(y) & may_be_infinite(x)))


def zero_signs(x: Interval, y: Interval) -> Bounds:
    """Signs that a product or quotient may have: possible +0, possible -0."""
    xp, xn, yp, yn = may_be_positive(x), may_be_negative(x), may_be_positive(y), may_be_negative(y)
    return (xp & yp) | (xn & yn), (xp & yn) | (xn & yp)


def quotient_bounds(xl: Array, xh: Array, y: Interval, yl: Array, yh: Array, zero: Array) -> Bounds:
    """Bounds of x / y in the type of the bounds; NaN where there is none.

    `y` says which signs and zeros the divisor has; `zero` where 0 is a result that the corners may miss.
    """
    lo, hi = np.full(zero.shape, np.nan, xl.dtype), np.full(zero.shape, np.nan, xl.dtype)
    some = y.lo <= y.hi
    for use, a, b in (
        # the sign of a zero divisor is the sign of the infinity
        (may_be_positive(y) & some, np.abs(np.maximum(yl, 0)), np.abs(np.maximum(yh, 0))),
        (may_be_negative(y) & some, -np.abs(np.minimum(yl, 0)), -np.abs(np.minimum(yh, 0))),
    ):
        if not use.any():
            continue
        corners = [xl / a] if xl is xh and yl is yh else [xl / a, xl / b, xh / a, xh / b]
        least, greatest = reduce(np.fmin, corners), reduce(np.fmax, corners)
        lo, hi = np.fmin(lo, np.where(use, least, np.nan)), np.fmax(hi, np.where(use, greatest, np.nan))
    if zero.any():
        lo, hi = np.where(zero, np.fmin(lo, 0), lo), np.where(zero, np.fmax(hi, 0), hi)
    return lo, hi


@dataclass(frozen=True, slots=True, eq=False)
class Quotient:
    """`x / y` of one shape: `bounds` for any ends in place of those of x and y."""

    x: Interval
    y: Interval
    none: Array
    zero: Array

    @classmethod
    def of(cls, x: Interval, y: Interval) -> Quotient:
        none = x.empty | y.empty
        zero = (may_be_zero(x) & ~is_zero(y)) | (may_be_finite(x) & may_be_infinite(y))
        return cls(x, y, none, zero & ~none)

    def bounds(self, xl: Array, xh: Array, yl: Array, yh: Array) -> Bounds:
        """NaN where there is no quotient."""
        lo, hi = quotient_bounds(xl, xh, self.y, yl, yh, self.zero)
        return np.where(self.none, np.nan, lo), np.where(self.none, np.nan, hi)

    @property
    def nan(self) -> Array:
        """Where NaN is possible."""
        x, y = self.x, self.y
        return np.asarray(x.nan | y.nan | (may_be_zero(x) & may_be_zero(y)) | (may_be_infinite(x) & may_be_infinite(y)))
