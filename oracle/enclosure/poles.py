"""Operands that are on either side of a gap: each side is enclosed for itself, by ops with a pole at zero and by those that scale.

A subnormal that may be flushed is one of two numbers (`freedoms.flush`). Of both at once a logarithm is anything from minus infinity
to that of the subnormal; of each it is one value. Products, quotients, roots and signs of both are two values likewise.
So are the quotient by a zero of either sign, and the angle of a point beside one: an operand whose sign is open has two sides, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from oracle.enclosure.bounds import may_be_negative, may_be_positive
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


#: The operands of real ops that are split by their sign, as the sign of a zero decides on the result.
_SIGNED: dict[type[Op], tuple[int, ...]] = {ops.Divide: (1,), ops.Rsqrt: (0,), ops.Pow: (0,)}


def by_sides(rule: Callable[..., Enclosure], op: Op, operands: Sequence[Enclosure]) -> Enclosure:
    """What the rule gives for the operands; where one has a gap, or an open sign, that goes on to the result, with that."""
    whole = rule(*operands)
    real = all(isinstance(x, Interval) for x in operands)
    gaps, signs = (_SCALED if real else _POLES).get(type(op), ()), _signed(op) if real else ()
    if not (gaps or signs) or not whole.parts[0].dtype.is_float:
        return whole
    choices = [_of_sides(x, k in gaps, k in signs) for k, x in enumerate(operands)]
    if all(len(sides) == 1 for sides in choices):
        return whole
    return each_part(united, whole, *(rule(*chosen) for chosen in product(*choices)))


def _signed(op: Op) -> tuple[int, ...]:
    if isinstance(op, ops.Special2):
        return (0, 1) if op.function == "atan2" else ()
    return _SIGNED.get(type(op), ())


def _of_sides(x: Enclosure, gaps: bool, signs: bool) -> list[Enclosure]:
    """A number for each choice of the sides of its parts."""
    sides = [_sides(p) if gaps else (p,) for p in x.parts]
    if len(sides) == 2:
        return [rectangle(*parts) for parts in product(*sides)]
    return [signed for side in sides[0] for signed in (_by_sign(side) if signs else (side,))]


def gapped(c: Context, made: Interval, below: Array, above: Array) -> Interval:
    """A result of which nothing is between two numbers, but for zero, which a subnormal beside the gap may be flushed to."""
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


def _by_sign(x: Interval) -> tuple[Interval, ...]:
    """What has a minus sign, and what has a plus sign; where one alone is possible, both are all of it."""
    either = may_be_negative(x) & may_be_positive(x)
    if not np.count_nonzero(either):
        return (x,)
    below, above = np.where(either, np.minimum(x.hi, 0.0), x.hi), np.where(either, np.maximum(x.lo, 0.0), x.lo)
    minus, plus = _between(x, x.lo, below), _between(x, above, x.hi)
    return replace(minus, pos_zero=minus.pos_zero & ~either), replace(plus, neg_zero=plus.neg_zero & ~either)


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
