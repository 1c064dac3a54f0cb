"""Excess precision: a result of a narrow float may go on unrounded, in F32, to the next operation of its fusion.

*Bound.* What is not rounded is at most half an ULP of its format away from what is, and what is rounded twice, by F32
first, at most one: each bound moves one ULP outward. Beyond the largest value, where the format has an infinity, F32 may
have a number.
"""

from __future__ import annotations

import numpy as np

from oracle.enclosure.formats import FORMATS
from oracle.enclosure.model import Model
from oracle.enclosure.value import Interval


def of_result(model: Model, x: Interval) -> Interval:
    """A result that was rounded."""
    return unrounded(x) if model.excess and x.dtype.is_narrow_float else x


def unrounded(x: Interval) -> Interval:
    """What was rounded, before that."""
    f = FORMATS[x.dtype]
    some = ~x.empty
    lo = np.where(np.isinf(x.lo) & (x.lo > 0), f.max, x.lo - f.ulp(x.lo))
    hi = np.where(np.isinf(x.hi) & (x.hi < 0), -f.max, x.hi + f.ulp(x.hi))
    lo, hi = np.where(some, lo, x.lo), np.where(some, hi, x.hi)
    # an underflow is no zero in F32, and keeps its sign there
    zero = x.pos_zero | x.neg_zero
    return Interval(
        x.dtype,
        np.where(zero & ~x.neg_zero & (x.lo == 0), 0.0, lo),
        np.where(zero & ~x.pos_zero & (x.hi == 0), -0.0, hi),
        x.nan,
        x.pos_zero | (some & (lo <= 0) & (hi > 0)),
        x.neg_zero | (some & (lo < 0) & (hi >= 0)),
        x.origin,
    )
