"""Sorting, by a network: in each of its stages an element is compared with one other, and the two change places or stay.

What an element is compared with depends on no value, so that a comparison that is undecided leaves open these two elements alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np

from tenferro_ref import ops
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import composed
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.composed import select, static
from tenferro_ref.stablehlo.loader.regions import apply_body
from tenferro_ref.stablehlo.loader.special import total_order
from tenferro_ref.stablehlo.loader.tracer import ROWS, Tracer

#: The most comparisons: those of 100,000 elements.
_MOST_COMPARISONS = 2**24


@ROWS.row("sort")
def _(b: Tracer, op: Operation, *operands: Value) -> Sequence[Value]:
    """Stable, also where the module does not ask for it: which of several equal elements comes first is open then."""
    shape = static(operands[0])
    axis = op.attribute("dimension", -1) % max(1, len(shape))
    if not shape or shape[axis] < 2 or prod(shape) == 0:
        return operands
    last = [a for a in range(len(shape)) if a != axis] + [axis]
    back = [last.index(a) for a in range(len(shape))]

    def before(lines: Sequence[Value], others: Sequence[Value]) -> Value:
        return apply_body(b, op, [v for pair in zip(lines, others, strict=True) for v in pair])[0]

    ordered = _sorted(b, op, [b.transpose(v, last) for v in operands], before)
    return [b.transpose(v, back) for v in ordered[:-1]]


@ROWS.row("chlo.top_k")
def _(b: Tracer, op: Operation, x: Value) -> Sequence[Value]:
    """The largest elements of each line along the last axis, in the total order of floats; of equal ones the first."""
    shape, k = static(x), op.attribute("k")
    key = total_order(x) if x.dtype.is_float else x
    ordered = _sorted(b, op, [x, key], lambda lines, others: lines[1] > others[1])
    cut = ops.Slice((0,) * len(shape), (*shape[:-1], k), (1,) * len(shape))
    return b.apply(cut, ordered[0]), b.apply(cut, ordered[-1])


def _sorted(
    b: Tracer, op: Operation, lines: Sequence[Value], before: Callable[[Sequence[Value], Sequence[Value]], Value]
) -> Sequence[Value]:
    """Arrays sorted along the last axis, and behind them the index that each element had. Equal elements keep their order."""
    shape = static(lines[0])
    rank, n = len(shape), shape[-1]
    levels = (n - 1).bit_length()
    if prod(shape) * (levels * (levels + 1) // 2) > _MOST_COMPARISONS:  # before any stage is made
        raise op.refusal(f"more than {_MOST_COMPARISONS} comparisons")
    lines = [*lines, b.array(np.broadcast_to(np.arange(n, dtype=np.int32), shape))]
    for partners in _stages(n):
        index = b.array(partners)
        pick = ops.Gather((*range(rank - 1),), (rank - 1,), (rank - 1,), 1, (*shape[:-1], 1))
        others = [b.apply(pick, v, index) for v in lines]
        is_lower = b.array(np.broadcast_to(np.arange(n) <= partners, shape))
        less = before(lines[:-1], others[:-1])
        greater = b.apply(pick, less, index)  # whether the other one comes before
        forward, backward = select(is_lower, less, greater), select(is_lower, greater, less)
        tie = (lines[-1] < others[-1]) == is_lower
        stays = composed.logical("or", forward, composed.logical("and", composed.logical("not", backward), tie))
        lines = [select(stays, v, other) for v, other in zip(lines, others, strict=True)]
    return lines


def _stages(n: int) -> Iterator[np.ndarray]:
    """With which element each of `n` is compared, itself if with none: Batcher's odd-even merge sort."""
    for width in (2**e for e in range((n - 1).bit_length())):
        for step in (width >> e for e in range(width.bit_length())):
            low = np.arange(n - step)
            first = (low >= step % width) & ((low - step % width) // step % 2 == 0)
            low = low[first & (low // (2 * width) == (low + step) // (2 * width))]
            partners = np.arange(n)
            partners[low], partners[low + step] = low + step, low
            yield partners
