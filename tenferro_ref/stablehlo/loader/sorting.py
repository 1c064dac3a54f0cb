"""Sorting: every pair is compared, and an element's place is how many come before it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import composed
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.composed import full, select, static
from tenferro_ref.stablehlo.loader.regions import apply_body
from tenferro_ref.stablehlo.loader.special import total_order
from tenferro_ref.stablehlo.loader.tracer import ROWS, Tracer

#: The most pairs that are compared.
_MOST_PAIRS = 2**24


@ROWS.row("sort")
def _(b: Tracer, op: Operation, *operands: Value) -> Sequence[Value]:
    """Stable, also where the module does not ask for it: which of several equal elements comes first is open then."""
    axis = op.attribute("dimension", -1) % max(1, operands[0].ndim)
    shape = static(operands[0])
    if not shape or shape[axis] < 2 or prod(shape) == 0:
        return operands
    last = [a for a in range(len(shape)) if a != axis] + [axis]
    lines = [b.transpose(v, last) for v in operands]
    order = _order(b, op, lines)
    back = [last.index(a) for a in range(len(shape))]
    return [b.transpose(_along(b, v, order), back) for v in lines]


def _order(b: Tracer, op: Operation, lines: Sequence[Value]) -> Value:
    """Which element of the last axis comes to each place of it."""
    shape = static(lines[0])
    n, rank = shape[-1], len(shape)
    square = (*shape, n)
    if prod(square) > _MOST_PAIRS:
        raise op.refusal(f"more than {_MOST_PAIRS} pairs to compare")
    rows = [b.apply(ops.BroadcastInDim(square, tuple(range(rank))), v) for v in lines]
    columns = [b.apply(ops.BroadcastInDim(square, (*range(rank - 1), rank)), v) for v in lines]
    pairs = [v for pair in zip(rows, columns, strict=True) for v in pair]
    (less,) = apply_body(b, op, pairs)  # whether the row's element comes before the column's
    greater = b.transpose(less, [*range(rank - 1), rank, rank - 1])
    earlier = b.array(np.broadcast_to(np.tril(np.ones((n, n), bool), -1), square))
    before = composed.logical("or", greater, composed.logical("and", earlier, composed.logical("not", less)))
    return _places(b, before, shape)


def _places(b: Tracer, before: Value, shape: tuple[int, ...]) -> Value:
    """Which element comes to each place, given for each pair whether the second comes before the first."""
    rank, n = len(shape), shape[-1]
    square = (*shape, n)
    place = b.apply(ops.ReduceSum((rank,)), before.astype(DType.I32))
    spots = b.apply(ops.BroadcastInDim(square, (*range(rank - 1), rank)), place)
    wanted = b.array(np.broadcast_to(np.arange(n, dtype=np.int32)[:, np.newaxis], square))
    numbers = b.array(np.broadcast_to(np.arange(n, dtype=np.int32), square))
    return b.apply(ops.ReduceSum((rank,)), select(spots == wanted, numbers, full(numbers, 0)))


def _along(b: Tracer, x: Value, order: Value) -> Value:
    """The elements of each line of `x`, along its last axis, in an order."""
    shape = static(x)
    lines = prod(shape[:-1])
    starts = np.broadcast_to(np.arange(lines).reshape(*shape[:-1], 1) * shape[-1], shape)
    index = order.astype(DType.I64) + b.array(starts.astype(np.int64))
    flat = b.reshape(x, (prod(shape),))
    return b.apply(ops.Gather((), (0,), (0,), len(shape), (1,)), flat, index)


@ROWS.row("chlo.top_k")
def _(b: Tracer, op: Operation, x: Value) -> Sequence[Value]:
    """The largest elements of each line along the last axis, in the total order of floats; of equal ones the first."""
    shape, k = static(x), op.attribute("k")
    key = total_order(x) if x.dtype.is_float else x
    rank, n = len(shape), shape[-1]
    square = (*shape, n)
    if prod(square) > _MOST_PAIRS:
        raise op.refusal(f"more than {_MOST_PAIRS} pairs to compare")
    row = b.apply(ops.BroadcastInDim(square, tuple(range(rank))), key)
    column = b.apply(ops.BroadcastInDim(square, (*range(rank - 1), rank)), key)
    earlier = b.array(np.broadcast_to(np.tril(np.ones((n, n), bool), -1), square))
    before = composed.logical("or", column > row, composed.logical("and", earlier, column == row))
    order = _places(b, before, shape)
    cut = ops.Slice((0,) * rank, (*shape[:-1], k), (1,) * rank)
    return b.apply(cut, _along(b, x, order)), b.apply(cut, order)
