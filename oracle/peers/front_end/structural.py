"""Words for ops that move elements: transposes, reshapes, slices, pads, diagonals."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

from oracle.peers.front_end.table import WORDS, back
from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.dims import DimOp, Extent, is_exact
from tenferro_ref.ops import TensorType
from tenferro_ref.program import Value


@WORDS.row(ops.Transpose)
def _transpose(op: ops.Transpose, result: TensorType, x: Value) -> Value:
    axes = range(x.ndim)
    if op.perm == tuple(reversed(axes)):
        return x.T
    for source in axes:
        target = op.perm.index(source)
        if [a for a in op.perm if a != source] == [a for a in axes if a != source] and target != source:
            return tn.moveaxis(x, source, target - x.ndim)
    return x.transpose(*back(op.perm, x.ndim))


_OPERATORS: dict[str, Callable[[Any, Any], Extent]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv,
}  # fmt: skip


@WORDS.row(ops.Reshape)
def _reshape(op: ops.Reshape, result: TensorType, x: Value, *like: Value) -> Value | None:
    if not all(map(is_exact, result.shape)):
        return None
    shape = _spelled(result.shape)
    if x.type.is_static and result.is_static and shape:
        if prod(result.static_shape[:-1]):
            shape = (*shape[:-1], -1)
        if result.static_shape[0] % 2:
            return x.T.reshape(shape[::-1], order="C", like=like).T
    return x.reshape(shape, like=_providers(result, like))


@WORDS.row(ops.BroadcastInDim)
def _broadcast(op: ops.BroadcastInDim, result: TensorType, x: Value, *like: Value) -> Value | None:
    if not all(map(is_exact, result.shape)):
        return None
    order = sorted(range(x.ndim), key=lambda axis: op.dims[axis])
    turned = x if order == list(range(x.ndim)) else x.transpose(order)
    first = min(op.dims, default=result.rank)
    there = turned[tuple(slice(None) if a in op.dims else None for a in range(first, result.rank))]
    return there.broadcast_to(_spelled(result.shape), like=_providers(result, like))


def _spelled(shape: tuple[Extent, ...]) -> tuple[Extent, ...]:
    """The extents by Python's operators, as a user writes them: `2 * n`, `5 - n`."""
    return tuple(map(_by_operators, shape))


def _by_operators(extent: Extent) -> Extent:
    if not isinstance(extent, DimOp) or extent.kind not in _OPERATORS:
        return extent
    return _OPERATORS[extent.kind](_by_operators(extent.lhs), _by_operators(extent.rhs))


def _providers(result: TensorType, like: tuple[Value, ...]) -> tuple[Value, ...]:
    """The values that have the symbolic extents; else the front end takes inputs of the program."""
    return like if result.rank % 2 else ()


@WORDS.row(ops.Reverse)
def _reverse(op: ops.Reverse, result: TensorType, x: Value) -> Value:
    if len(op.axes) == 1:
        return x[(*(slice(None),) * op.axes[0], slice(None, None, -1))]
    return tn.flip(x) if len(op.axes) == x.ndim else tn.flip(x, back(op.axes, x.ndim))


@WORDS.row(ops.Slice)
def _slice(op: ops.Slice, result: TensorType, x: Value) -> Value | None:
    """Each axis in another way: as an integer and a new axis, backwards and turned, counted from the end, or as it is."""
    if not x.type.is_static:
        return None
    index: list[int | slice] = []
    behind: list[slice | None] = []
    for axis, (start, limit, stride) in enumerate(zip(op.starts, op.limits, op.strides, strict=True)):
        extent, way = x.type.static_shape[axis], (start + limit + axis) % 4
        positions = range(start, limit, stride)
        turned = False
        if len(positions) == 1 and way in (0, 3):
            index.append(start - extent if way else start)
            behind.append(None)
            continue
        if positions and way == 1:
            turned = True
            index.append(slice(positions[-1], start - stride if start >= stride else None, -stride))
        elif positions and way == 2:
            index.append(slice(start - extent, limit - extent or None, stride))
        else:
            index.append(slice(start, limit, stride))
        behind.append(slice(None, None, -1 if turned else None))
    return x[tuple(index)][tuple(behind)]


@WORDS.row(ops.Pad)
def _pad(op: ops.Pad, result: TensorType, x: Value) -> Value:
    edges = list(zip(op.edge_padding_low, op.edge_padding_high, strict=True))
    interior = op.interior_padding[0] if len(set(op.interior_padding)) == 1 else op.interior_padding
    if len(set(edges)) == 1:
        return tn.pad(x, edges[0][0] if edges[0][0] == edges[0][1] else edges[0], interior)
    return tn.pad(x, edges, interior)


@WORDS.row(ops.Concatenate)
def _concatenate(op: ops.Concatenate, result: TensorType, *values: Value) -> Value | None:
    if len({v.dtype for v in values}) > 1:
        return None
    if all(v.shape[op.axis] == 1 for v in values):
        single = (slice(None),) * op.axis
        return tn.stack([v[(*single, 0)] for v in values], op.axis)
    return tn.concatenate(values, op.axis - values[0].ndim)


@WORDS.row(ops.Tril, ops.Triu)
def _triangle(op: ops.Tril | ops.Triu, result: TensorType, x: Value) -> Value:
    function, rank = tn.tril if isinstance(op, ops.Tril) else tn.triu, x.ndim
    if rank == 2:
        return function(x, op.k)
    return function(x.transpose(*range(2, rank), 0, 1), op.k).transpose(rank - 2, rank - 1, *range(rank - 2))


@WORDS.row(ops.ExtractDiag)
def _extract_diag(op: ops.ExtractDiag, result: TensorType, x: Value) -> Value:
    """The diagonal of a matrix, or of what is a row or column larger, where it begins later."""
    if (op.axis_a, op.axis_b, x.ndim) == (0, 1, 2):
        return tn.diag(x)
    offset = (0, 1, -2)[result.rank % 3]
    wider = [(0, 0)] * x.ndim
    wider[op.axis_b if offset > 0 else op.axis_a] = (abs(offset), 0)
    padded = tn.pad(x, wider) if offset else x
    diagonal = tn.diagonal(padded, offset, *back((op.axis_a, op.axis_b), x.ndim))
    return tn.moveaxis(diagonal, -1, op.axis_a - (op.axis_a > op.axis_b))


@WORDS.row(ops.EmbedDiag)
def _embed_diag(op: ops.EmbedDiag, result: TensorType, x: Value) -> Value | None:
    return tn.diag(x) if (op.axis_a, op.axis_b, x.ndim) == (0, 1, 1) else None
