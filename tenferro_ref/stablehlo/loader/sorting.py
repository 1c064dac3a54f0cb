"""Sorting, by a network: in each of its stages an element is compared with one other, and the two change places or stay.

What an element is compared with depends on no value, so that a comparison that is undecided leaves open these two elements alone.
In which order equal elements come is left open where the module does not ask for a stable sort, and that of all elements of a line where the
comparator is no order on them: of floats beside a NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np

from tenferro_ref import ops
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import bodies, composed, orders
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.composed import full, select, static
from tenferro_ref.stablehlo.loader.reductions import identity
from tenferro_ref.stablehlo.loader.regions import apply_body
from tenferro_ref.stablehlo.loader.special import total_order
from tenferro_ref.stablehlo.loader.tracer import ROWS, Tracer

#: The most comparisons: those of 100,000 elements.
_MOST_COMPARISONS = 2**24


@ROWS.row("sort")
def _(b: Tracer, op: Operation, *operands: Value) -> Sequence[Value]:
    """What is computed is stable also where the module does not ask for that."""
    shape = static(operands[0])
    axis = op.attribute("dimension", -1) % max(1, len(shape))
    if not shape or shape[axis] < 2 or prod(shape) == 0:
        return operands
    last = [a for a in range(len(shape)) if a != axis] + [axis]
    back = [last.index(a) for a in range(len(shape))]

    def before(lines: Sequence[Value], others: Sequence[Value]) -> Value:
        return apply_body(b, op, [v for pair in zip(lines, others, strict=True) for v in pair])[0]

    *lines, _ = _sorted(b, op, [b.transpose(v, last) for v in operands], before)
    return [b.transpose(v, back) for v in _left_open(b, op, lines)]


def _left_open(b: Tracer, op: Operation, lines: Sequence[Value]) -> Sequence[Value]:
    """Sorted arrays, with every order of their lines that the module permits."""
    compared: list[bodies.Expression] = []
    found = bodies.results(op, compared=compared)
    order = orders.order_of(found[0], [i ^ 1 for i in range(2 * len(lines))]) if found is not None else None
    if order is None:  # it is not known to be one on any elements
        anywhere = b.array(np.ones(static(lines[0])[:-1], bool))
        return [orders.any_of_line(b, v, anywhere) for v in lines]
    no_order: Value | None = None
    if any(map(order.unordered, compared)):
        keys: list[Value] = []
        apply_body(b, op, [v for v in lines for _ in range(2)], compared=keys)
        no_order = orders.any_nan(b, [v for v, x in zip(keys, compared, strict=True) if order.unordered(x)])
    if not (op.attribute("is_stable", False) and order.strict):
        lines = _of_equals(b, op, lines, order)
    return [v if no_order is None else orders.any_of_line(b, v, no_order) for v in lines]


def _of_equals(b: Tracer, op: Operation, lines: Sequence[Value], order: orders.Order) -> list[Value]:
    """Sorted arrays, with equal elements in any order; what is a key itself has the same value then, but for the sign of a zero."""
    rank, n = len(static(lines[0])), static(lines[0])[-1]
    starts, shape = (0,) * (rank - 1), static(lines[0])[:-1]

    def cut(v: Value, start: int, stop: int) -> Value:
        return b.apply(ops.Slice((*starts, start), (*shape, stop), (1,) * rank), v)

    first, second = ([cut(v, i, n - 1 + i) for v in lines] for i in (0, 1))
    forward, backward = (
        apply_body(b, op, [v for pair in zip(*both, strict=True) for v in pair])[0]
        for both in ((first, second), (second, first))
    )
    # elements of which a comparison holds both ways keep no order in a stable sort either
    stable = op.attribute("is_stable", False)
    equal = composed.logical("and", forward, backward) if stable else forward == backward
    kinds = {bodies.argument(2 * i): i for i in range(len(lines))}
    of_keys = {kinds[k.first]: k.kind for k in order.keys if k.first in kinds}
    made = []
    for i, v in enumerate(lines):
        if i not in of_keys:
            made.append(orders.any_of_run(b, v, equal))
        elif of_keys[i] == " FLOAT" and identity("add", v.dtype) is not None:
            made.append(select(v == full(v, 0), orders.any_of_run(b, v, equal), v))
        else:
            made.append(v)
    return made


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
