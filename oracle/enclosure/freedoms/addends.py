"""Addends: a sum of products may start from a number that is added to it, as a contraction may (`merging`).

IREE is the platform: of `sum(x y) + v` all of 64 results are those of `(v + x0 y0) + x1 y1 ...`, of `sum(x) + v` none is.

*Bound.* That of a contraction and an addend, in `merging`: the sum remembers its products as the terms of one.
"""

from __future__ import annotations

from dataclasses import replace

from oracle.enclosure.origin import Terms
from oracle.enclosure.rule import Context
from oracle.enclosure.value import Interval


def of_products(c: Context, x: Interval, terms: Terms | None) -> Terms | None:
    """The terms of a sum over the last axis: those of a contraction where they are products and the model permits it."""
    u = x.unrounded
    if not (c.model.addends and terms and u and u.contractible):
        return terms
    return replace(terms, count=x.shape[-1] + 1, contraction=True, products=True)
