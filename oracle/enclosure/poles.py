"""Ops with a pole at zero, of operands that are on either side of a gap: each side is enclosed for itself.

A denormal that may be flushed is one of two numbers (`freedoms.flush`). Of both at once a logarithm is anything from minus infinity
to that of the denormal; of each it is one value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from oracle.enclosure.formats import Array
from oracle.enclosure.rule import Context
from oracle.enclosure.value import Enclosure, Interval, each_part, rectangle
from tenferro_ref import ops
from tenferro_ref.ops import Op

#: The operand at whose zeros an op has its pole.
_OPERAND: dict[type[Op], int] = {ops.Log: 0, ops.Rsqrt: 0, ops.Pow: 0, ops.Divide: 1}


def by_sides(rule: Callable[..., Enclosure], op: Op, operands: Sequence[Enclosure]) -> Enclosure:
    """What the rule gives for the operands; where one has a gap at a pole of `op`, with the gap that follows from it."""
    whole = rule(*operands)
    place = _OPERAND.get(type(op))
    if place is None or all(p.gap is None for p in operands[place].parts):
        return whole
    before, after = operands[:place], operands[place + 1 :]
    sides = product(*map(_sides, operands[place].parts))
    results = [rule(*before, rectangle(*parts) if len(parts) == 2 else parts[0], *after) for parts in sides]
    return each_part(united, whole, *results)


def gapped(c: Context, made: Interval, below: Array, above: Array) -> Interval:
    """A result of which nothing is between two numbers, but for zero, which a denormal beside the gap may be flushed to."""
    least = c.zero_below
    none = ~(below < above) | ((below < 0) & (above > 0) & ((below >= -least) | (above <= least)))
    if none.all():
        return made
    return replace(made, gap=(np.where(none, np.inf, below), np.where(none, -np.inf, above)))


def _sides(x: Interval) -> tuple[Interval, ...]:
    if x.gap is None:
        return (x,)
    below, above = x.gap
    return _between(x, x.lo, np.minimum(x.hi, below)), _between(x, np.maximum(x.lo, above), x.hi)


def _between(x: Interval, lo: Array, hi: Array) -> Interval:
    zero = (lo <= 0) & (hi >= 0)
    pos, neg = x.pos_zero & zero, x.neg_zero & zero
    return replace(x, lo=lo, hi=lo if np.array_equal(lo, hi) else hi, pos_zero=pos, neg_zero=neg, gap=None)


def united(whole: Interval, *results: Interval) -> Interval:
    """The union of the results, with the widest gap in it; all else is that of `whole`."""
    pieces = [piece for result in results for piece in _sides(result)]
    lows, highs = np.array([p.lo for p in pieces]), np.array([p.hi for p in pieces])
    order = np.argsort(lows, axis=0)
    lows, highs = np.take_along_axis(lows, order, 0), np.take_along_axis(highs, order, 0)
    reach = np.maximum.accumulate(highs)
    # from the highest that the pieces below it reach to the next; of what is certainly NaN there is no piece
    width = np.where((lows > highs)[1:] | ~(lows[1:] > reach[:-1]), -np.inf, lows[1:] - reach[:-1])
    widest = np.argmax(width, axis=0)[None]
    below, above, found = (np.take_along_axis(a, widest, 0)[0] for a in (reach[:-1], lows[1:], width))
    nan, pos, neg = (
        np.logical_or.reduce([getattr(p, flag) for p in pieces]) for flag in ("nan", "pos_zero", "neg_zero")
    )
    gap = np.where(found > 0, below, np.inf), np.where(found > 0, above, -np.inf)
    return replace(whole, lo=lows[0], hi=reach[-1], nan=nan, pos_zero=pos, neg_zero=neg, gap=gap)
