"""Zeros of sums: a sum of zeros may start from -0, and is +0 or -0 then.

*Bound.* A sum of zeros is +0 unless all of them are -0: then it is +0 where it starts from +0 (the engine does), and
-0 where it starts from -0 or from its first term. Signs of zero are exact otherwise. The real part of a complex
contraction that may be zero may be either: BLAS sums its two halves apart, and some kernels subtract them the other
way round.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oracle.enclosure.bounds import may_be_zero
from oracle.enclosure.formats import Array
from oracle.enclosure.rule import Context
from oracle.enclosure.value import Interval, Rectangle, rectangle


def of_single(c: Context, x: Interval) -> Interval:
    """A sum of one term, which starts from a zero: of -0 it is +0, or -0 from a start at -0."""
    if not np.count_nonzero(x.neg_zero):
        return x
    minus = x.neg_zero if c.model.either_zero else np.zeros_like(x.neg_zero)
    return replace(x, pos_zero=x.pos_zero | x.neg_zero, neg_zero=minus)


def of_terms(c: Context, lo: Array, hi: Array, neg_zero: Array) -> Array:
    """Where a sum over the last axis of terms between `lo` and `hi`, which may be -0 where `neg_zero`, may be -0."""
    never = np.zeros(lo.shape[:-1], bool)
    if not c.model.either_zero or not lo.shape[-1]:
        return never
    minus_zero = neg_zero if lo is hi else neg_zero | ((lo < 0) & (hi >= 0))
    return np.logical_and.reduce(minus_zero, -1) if np.count_nonzero(minus_zero) else never


def of_contraction(c: Context, x: Rectangle) -> Rectangle:
    """The real part of a complex contraction."""
    if not c.model.either_zero:
        return x
    either = may_be_zero(x.real)
    return rectangle(replace(x.real, pos_zero=either, neg_zero=either), x.imag)
