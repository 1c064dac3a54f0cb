"""Zeros of contractions: where a platform's own sums start from +0, its library of matrix products may start otherwise.

*Bound.* That of `zeros`, for contractions alone: BLAS starts from -0, from the first product, or subtracts; the reference's other
sums start from +0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from oracle.enclosure.model import Model
from oracle.enclosure.rule import Context


def within(c: Context) -> Context:
    """The context of the sums of a contraction."""
    return replace(c, model=_either(c.model)) if c.model.contraction_zero else c


@cache
def _either(model: Model) -> Model:
    return replace(model, either_zero=True)
