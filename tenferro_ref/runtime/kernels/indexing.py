"""Kernels of the indexing, slicing and padding ops and of the host ops on shapes (SEMANTICS 2.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument
from tenferro_ref.ops import Op, Policy
from tenferro_ref.runtime.kernels.base import KERNELS, PerPolicy, Values, canonical
from tenferro_ref.runtime.kernels.structural import target_shape
from tenferro_ref.tensor import column_major

# --- static slices and padding -----------------------------------------------------------------------------------------


def _part(x: Values, begin: Sequence[int], sizes: Sequence[int]) -> Values:
    """View of a window; also of a tensor of rank 0, which indexed with () alone would give a scalar."""
    subscript: tuple[Any, ...] = (*[slice(b, b + size) for b, size in zip(begin, sizes, strict=True)], ...)
    window: Values = x[subscript]
    return window


@KERNELS.row(ops.Slice)
def _slice(op: ops.Slice, x: Values) -> Values:
    subscript: tuple[Any, ...] = (*map(slice, op.starts, op.limits, op.strides), ...)
    return column_major(x[subscript])


@KERNELS.row(ops.Reverse)
def _reverse(op: ops.Reverse, x: Values) -> Values:
    steps = (slice(None, None, -1 if axis in op.axes else 1) for axis in range(x.ndim))
    subscript: tuple[Any, ...] = (*steps, ...)  # the ellipsis keeps an array of rank 0 one
    return column_major(x[subscript])


@KERNELS.row(ops.Concatenate)
def _concatenate(op: ops.Concatenate, *arrays: Values) -> Values:
    return column_major(np.concatenate(arrays, axis=op.axis))


@KERNELS.row(ops.Pad)
def _pad(op: ops.Pad, x: Values) -> Values:
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
    dtype = DType.of(indices)
    if dtype.is_float:
        indices, limit = indices.astype(np.float64), 2.0 ** (int(dtype.finfo.nmant) + 1)
        if not np.all((np.abs(indices) <= limit) & (np.trunc(indices) == indices)):
            raise InvalidArgument(
                op="index_tensor", argument="values", detail=f"float indices must be integers of at most {limit:.0f}"
            )
    if dtype is DType.U64:
        indices = np.minimum(indices, np.uint64(2**63 - 1))
    return indices.astype(np.int64)


def _clamped(starts: Values, extents: Sequence[int], sizes: Sequence[int]) -> list[int]:
    return [max(0, min(int(s), e - z)) for s, e, z in zip(starts, extents, sizes, strict=True)]


@KERNELS.row(ops.DynamicSlice)
def _dynamic_slice(op: ops.DynamicSlice, x: Values, starts: Values) -> Values:
    begin = _clamped(index_values(starts), x.shape, op.slice_sizes)
    return column_major(_part(x, begin, op.slice_sizes))


@KERNELS.row(ops.DynamicUpdateSlice)
def _dynamic_update_slice(op: Op, x: Values, update: Values, starts: Values) -> Values:
    begin = _clamped(index_values(starts), x.shape, update.shape)
    result = x.copy(order="F")
    _part(result, begin, update.shape)[...] = update
    return result


def _index_vectors(indices: Values, index_vector_dim: int) -> Values:
    """The index tensor with the components of its vectors on axis 0."""
    values = index_values(indices)
    return values[np.newaxis] if index_vector_dim == values.ndim else np.moveaxis(values, index_vector_dim, 0)


def _addresses(
    extents: Sequence[int], vectors: Values, axes: Sequence[int], window: Mapping[int, int], shape: tuple[int, ...]
) -> Values:
    """Where the elements of windows lie in a flat column-major tensor of `extents`.

    Parameters
    ----------
    vectors
        Index vectors, one component an axis of `axes`, for every window; clamped here so that the windows fit.
    window
        Which dim of `shape` runs along each axis of a window; the axes that it lacks have extent 1. The other dims of
        `shape` tell the windows apart.
    """
    batch_shape = [1 if d in window.values() else e for d, e in enumerate(shape)]
    strides = [math.prod(extents[:axis]) for axis in range(len(extents))]
    result: Values = np.zeros(shape, np.int64, order="F")
    for vector, axis in zip(vectors, axes, strict=True):
        size = shape[window[axis]] if axis in window else 1
        result += (np.clip(vector, 0, extents[axis] - size) * strides[axis]).reshape(batch_shape)
    for axis, dim in window.items():
        result += (np.arange(shape[dim]) * strides[axis]).reshape([-1 if d == dim else 1 for d in range(len(shape))])
    return result


def _gather(op: ops.Gather, x: Values, indices: Values) -> Values:
    vectors = _index_vectors(indices, op.index_vector_dim)
    batch = vectors.shape[1:]
    if 0 in (*batch, *op.slice_sizes):
        taken = np.empty((*op.slice_sizes, *batch), x.dtype)
    else:
        # with the axes reversed, as NumPy's C order is the column-major order of the engine
        # as bits: NumPy's interface of arrays has no word for some of the narrow floats
        bits = x.view(f"u{x.itemsize}") if DType.of(x).is_narrow_float else x
        windows = sliding_window_view(bits.T, op.slice_sizes[::-1])
        starts: list[Any] = [0] * x.ndim
        for vector, axis in zip(vectors, op.start_index_map, strict=True):
            starts[axis] = np.clip(vector, 0, x.shape[axis] - op.slice_sizes[axis]).T
        taken = windows[(*reversed(starts), ...)].T.view(x.dtype)
        if not op.start_index_map:  # nothing tells the windows apart
            taken = np.broadcast_to(taken.reshape(taken.shape + (1,) * len(batch)), (*op.slice_sizes, *batch))
    taken = taken[(*(0 if axis in op.collapsed_slice_dims else slice(None) for axis in range(x.ndim)), ...)]
    windows_first, batch_next = iter(range(len(op.offset_dims))), iter(range(len(op.offset_dims), taken.ndim))
    order = [next(windows_first) if axis in op.offset_dims else next(batch_next) for axis in range(taken.ndim)]
    return column_major(taken.transpose(order))


@KERNELS.row(ops.Gather)
def _gather_static(op: ops.Gather, x: Values, indices: Values) -> Values:
    return _gather(op, x, indices)


@KERNELS.row(ops.GatherDynamicSliceSizes)
def _gather_dynamic(op: ops.GatherDynamicSliceSizes, *arrays: Values) -> Values:
    sizes = target_shape(op.slice_sizes, arrays)
    concrete = ops.Gather(op.offset_dims, op.collapsed_slice_dims, op.start_index_map, op.index_vector_dim, sizes)
    return _gather(concrete, arrays[0], arrays[1])


#: Windows of this many elements on are added one by one, in half the time of `np.add.at` (benchmarks/test_native_speed.py).
_LARGE_WINDOW = 256


@KERNELS.row(ops.Scatter)
@PerPolicy
def _scatter(op: ops.Scatter, policy: Policy, x: Values, indices: Values, updates: Values) -> Values:
    """Adds in the column-major order of the elements of `updates`."""
    vectors = _index_vectors(indices, op.index_vector_dim)
    result = x.copy(order="F")
    if x.size == 0 or updates.size == 0:
        return result
    axes = op.scatter_dims_to_operand_dims
    kept = [axis for axis in range(x.ndim) if axis not in op.inserted_window_dims]
    window = dict(zip(kept, op.update_window_dims, strict=True))
    sizes = [updates.shape[window[axis]] if axis in window else 1 for axis in range(x.ndim)]
    last = np.array([x.shape[axis] - sizes[axis] for axis in axes], np.int64).reshape(-1, *(1,) * (vectors.ndim - 1))
    inside = np.all((vectors >= 0) & (vectors <= last), axis=0) | (policy.scatter_bounds == "clamp")
    # such windows overlap wholly or not at all, so that adding one after the other is the right order
    one_by_one = math.prod(sizes) >= _LARGE_WINDOW and all(sizes[axis] in (1, x.shape[axis]) for axis in axes)
    if one_by_one:
        starts = np.clip(vectors, 0, last).reshape(len(axes), inside.size, order="F")
        batch = [d for d in range(updates.ndim) if d not in op.update_window_dims]
        windows = updates.transpose([*batch, *op.update_window_dims]).reshape([inside.size, *sizes], order="F")
        for start, fits, update in zip(starts.T.tolist(), inside.ravel("F"), windows, strict=True):
            if fits:
                begin = dict(zip(axes, start, strict=True))
                part = _part(result, [begin.get(axis, 0) for axis in range(x.ndim)], sizes)
                np.add(part, update, out=part)
        if not np.any(np.isnan(result)):
            return result
    where = _addresses(x.shape, vectors, axes, window, updates.shape).ravel("F")
    values = updates.ravel("F")
    if not np.all(inside):
        lines = [1 if d in op.update_window_dims else e for d, e in enumerate(updates.shape)]
        keep = np.broadcast_to(inside.reshape(lines), updates.shape).ravel("F")
        where, values = where[keep], values[keep]
    flat = result.reshape(-1, order="F")
    if not one_by_one:
        np.add.at(flat, where, values)
    flat[where] = canonical(flat[where])
    return result


# --- host ops ---------------------------------------------------------------------------------------------------------


@KERNELS.row(ops.ShapeOf)
def _shape_of(op: ops.ShapeOf, x: Values) -> Values:
    return np.array(x.shape[op.axis], np.float64)


@KERNELS.row(ops.DynamicTruncate)
def _dynamic_truncate(op: ops.DynamicTruncate, x: Values, size: Values) -> Values:
    limit = max(0, min(_rounded(op, size), x.shape[op.axis]))
    return column_major(x[(slice(None),) * op.axis + (slice(limit),)])


def _rounded(op: Op, size: Values) -> int:
    """Half away from zero; exact for every I64 and float."""
    if DType.of(size).is_int:
        return int(size)
    value = float(size)
    if not math.isfinite(value):
        raise InvalidArgument(op=op.name, argument="size", detail=f"size {value} is not finite")
    whole = math.trunc(value)
    return whole + (abs(value - whole) >= 0.5) * (1 if value > 0 else -1)


@KERNELS.row(ops.PadToMatch)
def _pad_to_match(op: ops.PadToMatch, x: Values, reference: Values) -> Values:
    extent = x.shape[op.axis]
    target = max(extent, reference.shape[op.axis])
    result = np.zeros((*x.shape[: op.axis], target, *x.shape[op.axis + 1 :]), x.dtype, order="F")
    result[(slice(None),) * op.axis + (slice(extent),)] = x
    return result
