"""Kernels of the indexing, slicing and padding ops and of the host ops on shapes (SEMANTICS 2.4)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tenferro_ref.errors import InvalidArgument
from tenferro_ref.ops import (
    Concatenate,
    DynamicSlice,
    DynamicTruncate,
    DynamicUpdateSlice,
    Gather,
    GatherDynamicSliceSizes,
    Op,
    Pad,
    PadToMatch,
    Policy,
    Reverse,
    Scatter,
    ShapeOf,
    Slice,
)
from tenferro_ref.runtime.kernels.base import KERNELS, Values, canonical
from tenferro_ref.runtime.kernels.structural import target_shape
from tenferro_ref.tensor import column_major

# --- static slices and padding -----------------------------------------------------------------------------------------


def _part(x: Values, slices: Iterable[slice]) -> Values:
    subscript: tuple[Any, ...] = (*slices, ...)  # rank 0 indexed with () alone would give a scalar
    return column_major(x[subscript])


@KERNELS.row(Slice)
def _slice(op: Slice, policy: Policy, x: Values) -> Values:
    return _part(x, map(slice, op.starts, op.limits, op.strides))


@KERNELS.row(Reverse)
def _reverse(op: Reverse, policy: Policy, x: Values) -> Values:
    return column_major(np.flip(x, op.axes))


@KERNELS.row(Concatenate)
def _concatenate(op: Concatenate, policy: Policy, *arrays: Values) -> Values:
    return column_major(np.concatenate(arrays, axis=op.axis))


@KERNELS.row(Pad)
def _pad(op: Pad, policy: Policy, x: Values) -> Values:
    shape, source, target = [], [], []
    for extent, low, high, interior in zip(
        x.shape, op.edge_padding_low, op.edge_padding_high, op.interior_padding, strict=True
    ):
        step = interior + 1
        padded = low + high + ((extent - 1) * step + 1 if extent else 0)
        # element i goes to low + i * step; the edges crop what falls outside
        first = max(0, -(low // step))
        last = min(extent, (padded - 1 - low) // step + 1)
        shape.append(padded)
        source.append(slice(first, max(first, last)))
        target.append(slice(low + first * step, max(low + first * step, low + (last - 1) * step + 1), step))
    result = np.zeros(shape, x.dtype, order="F")
    if x.size and all(s.start < s.stop for s in source):
        result[tuple(target)] = x[tuple(source)]
    return result


# --- index tensors ----------------------------------------------------------------------------------------------------


def index_values(indices: Values) -> Values:
    """An index tensor as I64.

    Raises
    ------
    InvalidArgument
        A float that is not finite, not an integer, or too large to be exact in its dtype (op label `index_tensor`).
    """
    if indices.dtype.kind == "f":
        limit = 2.0 ** (24 if indices.dtype.itemsize == 4 else 53)
        if not np.all((np.abs(indices) <= limit) & (np.trunc(indices) == indices)):
            raise InvalidArgument(
                op="index_tensor", argument="values", detail=f"float indices must be integers of at most {limit:.0f}"
            )
    return indices.astype(np.int64)


def _clamped(starts: Values, extents: Sequence[int], sizes: Sequence[int]) -> list[int]:
    return [max(0, min(int(s), e - z)) for s, e, z in zip(starts, extents, sizes, strict=True)]


@KERNELS.row(DynamicSlice)
def _dynamic_slice(op: DynamicSlice, policy: Policy, x: Values, starts: Values) -> Values:
    begin = _clamped(index_values(starts), x.shape, op.slice_sizes)
    return _part(x, (slice(b, b + z) for b, z in zip(begin, op.slice_sizes, strict=True)))


@KERNELS.row(DynamicUpdateSlice)
def _dynamic_update_slice(op: Op, policy: Policy, x: Values, update: Values, starts: Values) -> Values:
    begin = _clamped(index_values(starts), x.shape, update.shape)
    result = x.copy(order="F")
    result[tuple(slice(b, b + z) for b, z in zip(begin, update.shape, strict=True))] = update
    return result


def _index_vectors(indices: Values, index_vector_dim: int) -> Values:
    """The index tensor with the components of its vectors on axis 0."""
    values = index_values(indices)
    return values[np.newaxis] if index_vector_dim == values.ndim else np.moveaxis(values, index_vector_dim, 0)


def _gather(op: Gather, x: Values, indices: Values) -> Values:
    vectors = _index_vectors(indices, op.index_vector_dim)
    batch = vectors.shape[1:]
    window = [axis for axis in range(x.ndim) if axis not in op.collapsed_slice_dims]
    rank = len(batch) + len(window)
    shape = (*batch, *(op.slice_sizes[axis] for axis in window))
    windows_last = range(len(batch), rank)
    if 0 in shape:
        return np.moveaxis(np.empty(shape, x.dtype), windows_last, op.offset_dims)
    subscripts = []
    for axis, size in enumerate(op.slice_sizes):
        position: Values = np.zeros((1,) * rank, np.int64)
        if axis in op.start_index_map:
            start = vectors[op.start_index_map.index(axis)]
            position = np.clip(start, 0, x.shape[axis] - size).reshape(batch + (1,) * len(window))
        if axis in window:
            offset = np.arange(size).reshape([size if a == axis else 1 for a in window])
            position = position + offset
        subscripts.append(position)
    picked = np.broadcast_to(x[tuple(subscripts)], shape)
    return np.array(np.moveaxis(picked, windows_last, op.offset_dims), order="F")


@KERNELS.row(Gather)
def _gather_static(op: Gather, policy: Policy, x: Values, indices: Values) -> Values:
    return _gather(op, x, indices)


@KERNELS.row(GatherDynamicSliceSizes)
def _gather_dynamic(op: GatherDynamicSliceSizes, policy: Policy, *arrays: Values) -> Values:
    sizes = target_shape(op.slice_sizes, arrays)
    concrete = Gather(op.offset_dims, op.collapsed_slice_dims, op.start_index_map, op.index_vector_dim, sizes)
    return _gather(concrete, arrays[0], arrays[1])


@KERNELS.row(Scatter)
def _scatter(op: Scatter, policy: Policy, x: Values, indices: Values, updates: Values) -> Values:
    """Adds in the column-major order of the elements of `updates`."""
    vectors = _index_vectors(indices, op.index_vector_dim)
    result = x.copy(order="F")
    if x.size == 0 or updates.size == 0:
        return result
    window = [axis for axis in range(x.ndim) if axis not in op.inserted_window_dims]
    sizes = dict(zip(window, (updates.shape[d] for d in op.update_window_dims), strict=True))
    strides = [math.prod(x.shape[:axis]) for axis in range(x.ndim)]
    batch_shape = [1 if d in op.update_window_dims else e for d, e in enumerate(updates.shape)]
    # position of each element of updates in the flat column-major operand, and whether its window fits
    target: Values = np.zeros(updates.shape, np.int64, order="F")
    inside: Values = np.ones(updates.shape, np.bool_, order="F")
    for vector, axis in zip(vectors, op.scatter_dims_to_operand_dims, strict=True):
        last = x.shape[axis] - sizes.get(axis, 1)
        start = np.clip(vector, 0, last)
        target += (start * strides[axis]).reshape(batch_shape)
        if policy.scatter_bounds == "skip":
            inside &= ((vector >= 0) & (vector <= last)).reshape(batch_shape)
    for dim, axis in zip(op.update_window_dims, window, strict=True):
        line = [-1 if d == dim else 1 for d in range(updates.ndim)]
        target += (np.arange(sizes[axis]) * strides[axis]).reshape(line)
    keep = inside.reshape(-1, order="F")
    where = target.reshape(-1, order="F")[keep]
    flat = result.reshape(-1, order="F")
    np.add.at(flat, where, updates.reshape(-1, order="F")[keep])
    flat[where] = canonical(flat[where])
    return result


# --- host ops ---------------------------------------------------------------------------------------------------------


@KERNELS.row(ShapeOf)
def _shape_of(op: ShapeOf, policy: Policy, x: Values) -> Values:
    return np.array(x.shape[op.axis], np.float64)


@KERNELS.row(DynamicTruncate)
def _dynamic_truncate(op: DynamicTruncate, policy: Policy, x: Values, size: Values) -> Values:
    limit = max(0, min(_rounded(op, size), x.shape[op.axis]))
    return column_major(x[(slice(None),) * op.axis + (slice(limit),)])


def _rounded(op: Op, size: Values) -> int:
    """Half away from zero; exact for every I64 and float."""
    if size.dtype.kind == "i":
        return int(size)
    value = float(size)
    if not math.isfinite(value):
        raise InvalidArgument(op=op.name, argument="size", detail=f"size {value} is not finite")
    whole = math.trunc(value)
    return whole + (abs(value - whole) >= 0.5) * (1 if value > 0 else -1)


@KERNELS.row(PadToMatch)
def _pad_to_match(op: PadToMatch, policy: Policy, x: Values, reference: Values) -> Values:
    extent = x.shape[op.axis]
    target = max(extent, reference.shape[op.axis])
    result = np.zeros((*x.shape[: op.axis], target, *x.shape[op.axis + 1 :]), x.dtype, order="F")
    result[(slice(None),) * op.axis + (slice(extent),)] = x
    return result
