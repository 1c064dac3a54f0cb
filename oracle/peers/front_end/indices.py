"""Words for ops whose positions or extents are values."""

from __future__ import annotations

from typing import Any

from oracle.peers.front_end.table import WORDS
from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.dims import InputDim, is_exact
from tenferro_ref.ops import Op, TensorType
from tenferro_ref.program import Value


def _flat_indices(indices: Value, vector: int) -> Value | None:
    """Indices of one axis as `take` has them; None where each is a vector of several."""
    if vector == indices.ndim:
        return indices
    return indices[..., 0] if vector == indices.ndim - 1 and indices.shape[vector] == 1 else None


@WORDS.row(ops.Gather, ops.GatherDynamicSliceSizes)
def _gather(op: Any, result: TensorType, x: Value, indices: Value, *like: Value) -> Value | None:
    flat = _flat_indices(indices, op.index_vector_dim)
    if flat is None or like or len(op.start_index_map) != 1:
        return None
    (a,), rank = op.start_index_map, x.ndim - 1 + flat.ndim
    window = (*range(a), *range(a + flat.ndim, rank))
    sizes = tuple(1 if i == a else e if isinstance(e, int) else InputDim(0, i) for i, e in enumerate(x.shape))
    if (op.offset_dims, op.collapsed_slice_dims, op.slice_sizes) != (window, (a,), sizes):
        return None
    return tn.take(x, flat, a - x.ndim)


@WORDS.row(ops.Scatter)
def _scatter(op: ops.Scatter, result: TensorType, x: Value, indices: Value, updates: Value) -> Value | None:
    flat = _flat_indices(indices, op.index_vector_dim)
    axes = op.scatter_dims_to_operand_dims
    if flat is None or len(axes) != 1 or op.inserted_window_dims != axes or x.dtype is not updates.dtype:
        return None
    (a,) = axes
    window = (*range(a), *range(a + flat.ndim, x.ndim - 1 + flat.ndim))
    static = all(v.type.is_static for v in (x, flat, updates))
    if not static or op.update_window_dims != window or updates.shape != (*x.shape[:a], *flat.shape, *x.shape[a + 1 :]):
        return None
    return tn.scatter_add(x, flat, updates, a - x.ndim)


def _positions(starts: Value, rank: int) -> Value | list[Value]:
    """The starts as one value, or one by one."""
    return list(starts) if rank and rank % 2 == 0 and starts.shape == (rank,) else starts


@WORDS.row(ops.DynamicSlice)
def _dynamic_slice(op: ops.DynamicSlice, result: TensorType, x: Value, starts: Value) -> Value:
    return tn.dynamic_slice(x, _positions(starts, x.ndim), op.slice_sizes)


@WORDS.row(ops.DynamicUpdateSlice)
def _update(op: Op, result: TensorType, x: Value, update: Value, starts: Value) -> Value | None:
    if x.dtype is not update.dtype:
        return None
    return tn.dynamic_update_slice(x, update, _positions(starts, x.ndim))


@WORDS.row(ops.ShapeOf)
def _shape_of(op: ops.ShapeOf, result: TensorType, x: Value) -> Value:
    """The extent; times the mean of ones, one more than it is, if it is symbolic."""
    extent = tn.shape_of(x, op.axis - x.ndim)
    if isinstance(x.shape[op.axis], int) or not all(map(is_exact, x.shape)):
        return extent
    longer = tn.pad(x, [(0, int(axis == op.axis)) for axis in range(x.ndim)])
    ones = x.builder.constant(1.0).broadcast_to(longer.shape[op.axis :][:1], like=[longer])
    return extent * tn.mean(ones)


@WORDS.row(ops.DynamicTruncate)
def _truncate(op: ops.DynamicTruncate, result: TensorType, x: Value, size: Value) -> Value:
    return tn.truncate(x, size, op.axis - x.ndim)


@WORDS.row(ops.PadToMatch)
def _pad_to_match(op: ops.PadToMatch, result: TensorType, x: Value, reference: Value) -> Value:
    return tn.pad_to_match(x, reference, op.axis - x.ndim)
