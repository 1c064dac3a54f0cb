"""Conjugates: a Conj may be taken to the operands of what it conjugates, as the reference's pass ConjSinking does.

*Bound.* The conjugate of a sum is the sum of the conjugates, but for the sign of an imaginary zero: where the imaginary parts
cancel, the sum has +0 and its conjugate -0, the sum of conjugates has +0. What Pad and Tril fill in likewise; a product takes that
sign on to its real part. So a part that may be zero may be either; signs of other numbers are exact.
"""

from __future__ import annotations

from dataclasses import replace

from oracle.enclosure.bounds import may_be_zero
from oracle.enclosure.rule import Context
from oracle.enclosure.value import Enclosure, Interval, Rectangle, each_part


def of_conjugate(c: Context, x: Rectangle) -> Enclosure:
    """A conjugate, taken of the result or of its operands."""
    if not c.model.conj_moves:
        return x
    return each_part(_either_zero, x)


def _either_zero(x: Interval) -> Interval:
    either = may_be_zero(x)
    return replace(x, pos_zero=either, neg_zero=either)
