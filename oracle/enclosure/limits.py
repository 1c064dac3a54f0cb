"""Limits of complex functions: what they are at infinities, NaN and poles, as lists of values (C99 Annex G, G.6).

Each part of a function is a product of two real functions of the parts of its argument, of which one may be infinite, NaN or 0
there; `freedoms.limits` says which values come of that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from oracle.enclosure.formats import Array
from oracle.enclosure.freedoms import limits
from oracle.enclosure.rule import Context
from oracle.enclosure.value import Enclosure, Interval, Rectangle, rectangle

#: Of each part, two factors, as functions of the real and the imaginary part of the argument.
Factors: TypeAlias = Callable[[Array, Array], tuple[tuple[Array, Array], tuple[Array, Array]]]


def listed(p: Interval, mask: Array, value: Array, nan: Array | bool, either: Array | bool = False) -> Interval:
    """One value (NaN: none) where the mask holds; or NaN, where that is possible; or either of `-value` and `value`."""
    value = np.where(either, np.abs(value), value)
    none, zero = np.isnan(value), value == 0
    gap = None
    if p.gap is not None or np.any(either):
        below, above = p.gap or (np.inf, -np.inf)
        gap = (
            np.where(mask, np.where(either, -value, np.inf), below),
            np.where(mask, np.where(either, value, -np.inf), above),
        )
    return replace(
        p.remembering(p.unrounded, p.terms),
        lo=np.where(mask, np.where(none, np.inf, np.where(either, -value, value)), p.lo),
        hi=np.where(mask, np.where(none, -np.inf, value), p.hi),
        nan=np.where(mask, none | nan, p.nan),
        pos_zero=np.where(mask, zero, p.pos_zero),
        neg_zero=np.where(mask, zero, p.neg_zero),
        gap=gap,
    )


def infinite_or_nan(x: Rectangle, mask: Array) -> Rectangle:
    """In each part either infinity, or NaN: what Annex G (G.5) makes of a product or quotient of which all is NaN."""
    if not np.count_nonzero(mask):
        return x
    return rectangle(*(listed(p, mask, np.full(p.shape, np.inf), True, True) for p in x.parts))


def representative(p: Interval) -> tuple[Array, Array, Array]:
    """A number of the class of each element (its value, NaN, or of its sign), whether there are others, and whether it has a class."""
    finite = np.isfinite(p.lo) & np.isfinite(p.hi) & ~p.nan
    single = p.empty | ((p.lo == p.hi) & ~p.nan)
    value = np.where(p.empty, np.nan, np.where(single, p.lo, np.where(finite, p.lo / 2 + p.hi / 2, 0)))
    value = np.where(value == 0, np.where(p.neg_zero & ~p.pos_zero, -0.0, 0.0), value)  # a bound of 0 has any sign
    return value, ~single, single | (finite & ((p.lo > 0) | (p.hi < 0)))


def special(x: Enclosure) -> bool:
    """Whether there is anything to say: a part that is not finite, or zero."""
    return not (x.number and all(np.count_nonzero(p.lo) == p.size and p.is_point for p in x.parts))


def of_products(
    c: Context,
    x: Enclosure,
    made: Rectangle,
    factors: Factors,
    *,
    shift: float = 0.0,
    quotient: bool = False,
    known_side: Array | bool = True,
) -> Rectangle:
    """The result of a function with its limits, where its argument is not finite or it overflows beside a zero.

    Parameters
    ----------
    factors
        Of a finite argument they need to be right in sign, and size where they are large.
    shift
        What is added to the real part.
    quotient
        The function is made of a quotient, which gives NaN for 0.
    known_side
        Where the sign of a zero imaginary part decides on which side of a cut the argument is.
    """
    if not special(x):
        return made
    f = c.real.format
    (re, re_loose, re_known), (im, im_loose, im_known) = map(representative, x.parts)
    known, single = re_known & im_known, ~(re_loose | im_loose)
    beyond = ~(np.isfinite(re) & np.isfinite(im))
    parts = []
    with np.errstate(all="ignore"):
        for part, (p, q), add in zip(
            made.parts, factors(re.astype(f.wide), im.astype(f.wide)), (shift, 0), strict=True
        ):
            zero = (p == 0) | (q == 0)
            lost = zero & ~((np.abs(p) < f.max / 4) & (np.abs(q) < f.max / 4))
            value = np.where(lost, 0, p * q)
            open_sign = np.isnan(value) & (np.isinf(p) | np.isinf(q))
            either = open_sign | (np.isinf(value) & (im == 0) & (re < 0) & ~np.asarray(known_side))
            infinite = np.isinf(value)
            here = known & (lost | (beyond & (single | ~infinite)) | ((re == 0) & (im == 0) & infinite))
            nan = open_sign | (lost & limits.may_be_lost(c)) | quotient
            parts.append(listed(part, here, np.where(open_sign, np.inf, value + add).astype(float), nan, either))
    return rectangle(*parts)


def of_logarithm(c: Context, x: Enclosure, made: Rectangle, known_side: Array | bool, shift: float = 0.0) -> Rectangle:
    """The logarithm of `shift + x` at infinities, NaN and 0: that of the modulus, and the angle."""
    if not special(x):
        return made
    f = c.real.format
    (re, _, re_known), (im, _, im_known) = map(representative, x.parts)
    re = re + shift if shift else re
    here = re_known & im_known & (~(np.isfinite(re) & np.isfinite(im)) | ((re == 0) & (im == 0)))
    none = np.isnan(re) | np.isnan(im)
    with np.errstate(all="ignore"):
        modulus, angle = np.log(np.hypot(re, im)), np.arctan2(im, re)
    either = (im == 0) & (angle != 0) & ~np.asarray(known_side)
    if not shift:  # of a zero of either sign the angle is 0 or pi
        here &= (re != 0) | (x.parts[0].pos_zero != x.parts[0].neg_zero)
    imag = listed(made.parts[1], here, angle, False, either)
    off = np.where(here & ~none, (c.budget("Log") + 1) * f.ulp(angle), 0).astype(float)
    lo, hi = f.greatest_at_or_below(imag.lo - off), f.least_at_or_above(imag.hi + off)
    gap = imag.gap and (f.least_at_or_above(imag.gap[0] + off), f.greatest_at_or_below(imag.gap[1] - off))
    imag = replace(imag, lo=np.where(here, lo, imag.lo), hi=np.where(here, hi, imag.hi), gap=gap)
    return rectangle(listed(made.parts[0], here, modulus, none & limits.may_be_lost(c)), imag)


def never_finite(x: Interval, mask: Array) -> Interval:
    """The infinities of each element where the mask holds, and NaN."""
    some = mask & ~x.empty
    lo, hi = np.where(some & (x.lo > -np.inf), np.inf, x.lo), np.where(some & (x.hi < np.inf), -np.inf, x.hi)
    both = some & (lo < hi)
    made = replace(x, lo=lo, hi=hi, pos_zero=x.pos_zero & ~mask, neg_zero=x.neg_zero & ~mask)
    return replace(made, gap=(np.where(both, -np.inf, np.inf), np.where(both, np.inf, -np.inf)))
