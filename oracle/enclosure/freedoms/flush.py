"""Flushing: a subnormal operand or result may be read or written as the zero of its sign.

*Bound.* Enclosures stay closed under flushing: beside each subnormal that an input, a constant or a result may be, the
zero of its sign is admitted at once, so that no rule has to think of subnormal operands
(beside a known one nothing between the two). A result that was tiny
*before* rounding is flushed although it rounds to the smallest normal number; where rounding took place, zero is
admitted beside that number too.

*Where it is not.* Floats with fewer exponents than F32 (F16, and those of 8, 6 and 4 bits but F8E8M0FNU) are computed in F32,
where their subnormals are normal numbers, and F16's own instructions of processors take no notice of the mode that flushes.

*Where more is to be said.* Of two subnormals, both read as zeros, an extremum may be either. One value that is read
twice by a comparison may be read as zero once. The terms of a sum and the factors of a product that are lost on the
way are an absolute error of a subnormal's worth each (`lost_below`), which without flushing is that of underflow: the
least subnormal.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oracle.enclosure.formats import FORMATS, Array, Format
from oracle.enclosure.model import Model
from oracle.enclosure.value import Enclosure, Interval, each_part
from tenferro_ref.dtype import DType


def flushes(model: Model, f: Format) -> bool:
    """Whether subnormals of a format may be flushed."""
    return model.flush and f.min_normal <= FORMATS[DType.F32].min_normal


def zero_below(model: Model, f: Format) -> float:
    """The magnitude below which an operand may be read as zero."""
    return f.min_normal if flushes(model, f) else 0.0


def lost_below(model: Model, f: Format) -> float:
    """The magnitude below which a result may be lost."""
    return f.min_normal if flushes(model, f) else f.least_subnormal


#: How many times what is lost by an underflow within a function may be in its result: where subnormals are flushed at most 3.5 were seen (F32
#: zeta of jaxlib), of arguments and results up to e^40 above the smallest normal number. Where they are kept, half the least one is, but
#: StableHLO's `erf` divides by 0.0143 then: at most 35 were seen.
_LOST, _LOST_GRADUALLY = 7.0, 71.0


def lost_within_function(model: Model, f: Format) -> float:
    """How much of a result of a function may be lost by an underflow within it."""
    return (_LOST if flushes(model, f) else _LOST_GRADUALLY) * lost_below(model, f)


def lost_in_contraction(model: Model, f: Format) -> float:
    """How much may be lost of a product of a contraction, and of the sum with it: both may be flushed."""
    return 2 * f.min_normal if flushes(model, f) else f.least_subnormal


def of_known(model: Model, x: Enclosure) -> Enclosure:
    """An input or a constant: each subnormal, or the zero of its sign, and nothing between the two."""
    return each_part(lambda part: _either(model, part), x) if model.flush else x


def _either(model: Model, x: Interval) -> Interval:
    admitted = of_result(model, x, inexact=False)
    if admitted is x or not x.is_point:
        return admitted
    two = admitted.lo < admitted.hi
    return replace(admitted, gap=(np.where(two, admitted.lo, np.inf), np.where(two, admitted.hi, -np.inf)))


def of_result(model: Model, x: Interval, *, inexact: bool) -> Interval:
    """A result, which was rounded (`inexact`) or only selected: beside each subnormal, the zero of its sign."""
    if not x.dtype.is_float or not flushes(model, FORMATS[x.dtype]):
        return x
    least = FORMATS[x.dtype].min_normal
    if not np.count_nonzero((x.lo <= least) & (x.hi >= -least)):
        return x
    small = np.less_equal if inexact else np.less
    pos = (x.hi > 0) & small(x.lo, least) & (x.lo <= x.hi)
    neg = (x.lo < 0) & small(-x.hi, least) & (x.lo <= x.hi)
    if not np.count_nonzero(pos | neg):
        return x
    lo, hi = np.where(pos & (x.lo > 0), 0.0, x.lo), np.where(neg & (x.hi < 0), 0.0, x.hi)
    return Interval(x.dtype, lo, hi, x.nan, x.pos_zero | pos, x.neg_zero | neg, x.origin)


def extremum(model: Model, f: Format, x: Interval, y: Interval, lo: Array, hi: Array) -> tuple[Array, Array]:
    """Bounds of an extremum: of two subnormals, either."""
    least = zero_below(model, f)
    both = (x.lo < least) & (x.hi > -least) & (y.lo < least) & (y.hi > -least)
    if not least or not both.any():
        return lo, hi
    low, high = np.minimum(x.lo, y.lo), np.maximum(x.hi, y.hi)
    return (
        np.where(both, np.minimum(lo, np.maximum(low, -least)), lo),
        np.where(both, np.maximum(hi, np.minimum(high, least)), hi),
    )


def extremum_of_many(model: Model, f: Format, x: Interval, lo: Array, hi: Array) -> tuple[Array, Array]:
    """Bounds of an extremum over the last axis: of several subnormals, any."""
    least = zero_below(model, f)
    if not least:
        return lo, hi
    inside = (x.lo < least) & (x.hi > -least)
    several = (lo < least) & (hi > -least) & (inside.sum(-1) > 1)
    low = np.where(inside, np.maximum(x.lo, -least), np.inf).min(-1, initial=np.inf)
    high = np.where(inside, np.minimum(x.hi, least), -np.inf).max(-1, initial=-np.inf)
    return np.where(several, np.minimum(lo, low), lo), np.where(several, np.maximum(hi, high), hi)
