"""Equations between two programs that hold over the real numbers: enclosures of both sides have a value in common.

No tolerance is involved. Each side is enclosed in real arithmetic (`oracle.enclosure.freedoms.real`), so that both
enclosures contain the one true value. Where a side may be NaN or infinite nothing is claimed; one that is certainly NaN is wrong, which
is for those to say who know that there is a number (`oracle.ordinary`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oracle.compare import interval_words
from oracle.enclosure import Enclosure, Interval
from oracle.enclosure.formats import Array
from oracle.verdict import Comparison


def compare_sides(ours: Sequence[Enclosure], theirs: Sequence[Enclosure]) -> Comparison:
    """How many elements of both sides are known, and how many of these have no value in common; the first one in words.

    One of ours that is certainly NaN has none in common with a number.
    """
    elements = decided = outside = 0
    first: tuple[int, tuple[int, ...]] | None = None
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        known = np.logical_and.reduce([_known(p) & _known(q) for p, q in zip(one.parts, other.parts, strict=True)])
        apart = np.logical_or.reduce([_apart(p, q) for p, q in zip(one.parts, other.parts, strict=True)])
        gone = np.logical_or.reduce([p.empty & _known(q) for p, q in zip(one.parts, other.parts, strict=True)])
        apart, known = apart | gone, known | gone
        elements, decided = elements + one.size, decided + int(known.sum())
        outside += int(apart.sum())
        if first is None and apart.any():
            first = number, tuple(int(k) for k in np.argwhere(apart)[0])
    if first is None:
        return Comparison(elements, decided)
    number, index = first
    return Comparison(
        elements,
        decided,
        outside,
        worst_output=number,
        worst_index=index,
        observed=interval_words(ours[number], index),
        expected=interval_words(theirs[number], index),
        value_class="another derivative",
    )


def _known(x: Interval) -> Array:
    return np.isfinite(x.lo) & np.isfinite(x.hi) & ~x.nan


def _apart(x: Interval, y: Interval) -> Array:
    return _known(x) & _known(y) & ((x.lo > y.hi) | (y.lo > x.hi))
