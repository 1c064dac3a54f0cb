"""Operands that are on either side of a gap: each side is enclosed for itself, by ops with a pole at zero and by those that scale.

A denormal that may be flushed is one of two numbers (`freedoms.flush`). Of both at once a logarithm is anything from minus infinity
to that of the denormal; of each it is one value. Products, quotients, roots and signs of both are two values likewise.
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

#: The operands of which each side is enclosed for itself: those at whose zeros an op has a pole, of real numbers those that are scaled, too.
_POLES: dict[type[Op], tuple[int, ...]] = {ops.Log: (0,), ops.Rsqrt: (0,), ops.Pow: (0,), ops.Divide: (1,)}
_SCALED: dict[type[Op], tuple[int, ...]] = {
    **_POLES,
    **dict.fromkeys((ops.Multiply, ops.Divide), (0, 1)),
    **dict.fromkeys((ops.Sqrt, ops.Sign, ops.Abs, ops.Negate), (0,)),
}


def by_sides(rule: Callable[..., Enclosure], op: Op, operands: Sequence[Enclosure]) -> Enclosure:
    """What the rule gives for the operands; where one has a gap that goes on to the result, with that."""
    whole = rule(*operands)
    real = all(isinstance(x, Interval) for x in operands)
    split = [
        k for k in (_SCALED if real else _POLES).get(type(op), ()) if any(p.gap is not None for p in operands[k].parts)
    ]
    if not split or not whole.parts[0].dtype.is_float:
        return whole
    choices = [_of_sides(x) if k in split else (x,) for k, x in enumerate(operands)]
    return each_part(united, whole, *(rule(*chosen) for chosen in product(*choices)))


def _of_sides(x: Enclosure) -> list[Enclosure]:
    """A number for each choice of the sides of its parts."""
    return [rectangle(*parts) if len(parts) == 2 else parts[0] for parts in product(*map(_sides, x.parts))]


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
