"""What the rules of complex numbers share: parts put together and told apart, and where a value is lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oracle.enclosure.bounds import is_zero, may_be_infinite
from oracle.enclosure.formats import Array, Format
from oracle.enclosure.origin import Origin
from oracle.enclosure.rule import ENCLOSE, Context
from oracle.enclosure.value import Enclosure, Interval, Rectangle, each_part, merged, real_point, rectangle
from tenferro_ref import ops


def simple(*values: Interval) -> bool:
    """No origin has arrays."""
    return not any(v.origin.moves for v in values)


def together(*values: Interval) -> Interval:
    """Intervals of one shape, each `simple`, as one with a new first axis: one call of NumPy does what many would."""
    made = merged(np.array, values).from_(Origin(all(v.const for v in values), all(v.repeated for v in values)))
    object.__setattr__(made, "_finite", all(v.finite for v in values))
    return made


def apart(x: Interval) -> tuple[Interval, Interval]:
    """The two elements of the first axis."""
    return x.map(lambda a: a[0, ...]), x.map(lambda a: a[1, ...])


def promoted(c: Context, x: Enclosure) -> Rectangle:
    """A real number as a complex one of the result's dtype."""
    if isinstance(x, Rectangle):
        return x
    real = c.dtype.real
    # a compiler knows the zero, whatever `x` is
    zero = real_point(np.zeros(x.shape, real.numpy)).known_as(const=True, repeated=x.repeated)
    part = ENCLOSE[ops.Convert](ops.Convert(real), c.real, x)
    return rectangle(part.known_as(const=x.const, repeated=part.repeated), zero)


def anything(x: Rectangle, mask: Array, *, signs: bool = False) -> Rectangle:
    """Every value where the mask holds; with `signs`, zeros of either sign everywhere."""
    some = bool(np.count_nonzero(mask))
    if not some and not signs:
        return x

    def opened(p: Interval) -> Interval:
        lo, hi = (np.where(mask, -np.inf, p.lo), np.where(mask, np.inf, p.hi)) if some else (p.lo, p.hi)
        zero = (lo <= 0) & (hi >= 0) if signs else mask
        gap = p.gap and (np.where(mask, np.inf, p.gap[0]), np.where(mask, -np.inf, p.gap[1]))
        own = p.remembering(p.unrounded, p.terms).origin
        return Interval(p.dtype, lo, hi, p.nan | mask, p.pos_zero | zero, p.neg_zero | zero, own, gap)

    return each_part(opened, x)


def nothing(x: Rectangle, mask: Array) -> Rectangle:
    """Certainly NaN, both parts, where the mask holds."""
    if not np.count_nonzero(mask):
        return x

    def emptied(p: Interval) -> Interval:
        lo, hi = np.where(mask, np.inf, p.lo), np.where(mask, -np.inf, p.hi)
        return replace(p, lo=lo, hi=hi, nan=p.nan | mask, pos_zero=p.pos_zero & ~mask, neg_zero=p.neg_zero & ~mask)

    return each_part(emptied, x)


def reach(x: Enclosure) -> Array:
    """Largest magnitude of a part, but for NaN."""
    return np.asarray(np.maximum.reduce([np.where(p.empty, 0, np.maximum(-p.lo, p.hi)) for p in x.parts]))


def spoiled(f: Format, x: Enclosure, y: Enclosure) -> Array:
    """Where both parts of a product, or of a sum of four products in any form, are NaN.

    A NaN in either part of a factor goes into both parts of the product; Annex G makes a number of two NaN only where a
    factor or one of the four products is infinite. A real factor may stay real: then only its own NaN does that.
    """
    certain = np.zeros((), bool)
    if x.number and y.number:
        return certain
    for v, other in ((x, y), (y, x)):
        if isinstance(v, Interval) or isinstance(other, Rectangle):
            certain = certain | np.logical_or.reduce([p.empty for p in v.parts])
    if not certain.any():
        return certain
    return np.asarray(certain & (reach(x) * reach(y) < f.max) & np.isfinite(reach(x)) & np.isfinite(reach(y)))


def never_finite(x: Enclosure) -> Array:
    """Where each part of a complex number is an infinity or NaN: so are those of its products."""
    certain = np.zeros((), bool)
    if isinstance(x, Interval) or x.number:
        return certain
    for k, p in enumerate(x.parts):
        one = (p.lo == p.hi) if p.gap is None else (p.lo == p.hi) | ((p.lo == p.gap[0]) & (p.hi == p.gap[1]))
        here = p.empty | (one & np.isinf(p.lo) & np.isinf(p.hi))
        certain = here if k == 0 else certain & here
    return certain


def size_class(x: Enclosure) -> tuple[Array, Array, Array]:
    """Where a number has an infinite part for certain, where none may be (NaN or not), and where both parts are zero."""
    infinite = np.logical_or.reduce([(p.lo == p.hi) & np.isinf(p.lo) & ~p.nan for p in x.parts])
    finite = ~np.logical_or.reduce([may_be_infinite(p) for p in x.parts])
    return infinite, finite, np.logical_and.reduce([is_zero(p) & ~p.nan for p in x.parts])
