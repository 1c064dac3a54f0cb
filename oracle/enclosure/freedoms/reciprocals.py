"""Reciprocals: division by a value that many elements share may be multiplication by its rounded reciprocal.

*Bound.* A divisor that is constant, a broadcast, or smaller than the dividend (`bounds.shared`) may be inverted once;
the hull is taken with `x (1 / y)`, rounded twice, at each end of y. A reciprocal that is subnormal has too few bits,
or none where it is flushed, and one that overflows has none: what comes of these stays outside. Such a quotient is a
product, and contracts as one. The reciprocal is a quotient itself, which may be approximated (`approximations`).

*Complex numbers.* A quotient of those is off by `QUOTIENT` units of its modulus, a product with the rounded
reciprocal of the divisor by `RECIPROCAL`, which is the product's `sqrt(5)` more (`oracle.enclosure.complexes`).
"""

from __future__ import annotations

import numpy as np

from oracle.enclosure.bounds import Bounds, Quotient, extreme_products
from oracle.enclosure.formats import Array
from oracle.enclosure.freedoms import approximations
from oracle.enclosure.rule import Context


def taken(c: Context, is_shared: bool) -> bool:
    """Whether the reciprocal of a divisor may be taken, which many elements share or not."""
    return c.model.reciprocal and is_shared


def quotient(c: Context, q: Quotient, low: Array, high: Array, is_shared: bool) -> Bounds:
    """Bounds of a rounded quotient, given those of `q` rounded once."""
    if not taken(c, is_shared):
        return low, high
    f, x, y = c.format, q.x, q.y
    for end in (y.lo,) if y.is_point else (y.lo, y.hi):
        exact = 1 / end
        reciprocal = f.nearest(exact)
        usable = (np.abs(reciprocal) >= f.min_normal) & np.isfinite(reciprocal) & ~q.none
        ends = approximations.within(c, reciprocal, reciprocal, (exact, exact))
        inverse = (np.where(usable, v, np.nan) for v in ends)
        least, greatest = extreme_products(x.lo, x.lo if x.is_point else x.hi, *inverse)
        low, high = np.fmin(low, f.nearest(least)), np.fmax(high, f.nearest(greatest))
    return low, high
