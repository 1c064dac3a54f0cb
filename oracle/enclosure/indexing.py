"""Rules of the ops whose indices are values: gathers, scatters, runtime slices and truncation.

Each is written as StableHLO has it: which element of its operands does this element of the result take? Where a start is
not decided, the result is the hull over all starts that are possible.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from oracle.enclosure import integers
from oracle.enclosure.arithmetic import add, choose
from oracle.enclosure.formats import Array
from oracle.enclosure.moves import concatenated
from oracle.enclosure.rule import ENCLOSE, Context
from oracle.enclosure.sums import sum_of
from oracle.enclosure.value import Interval, spread
from oracle.extents import extents
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.ops import Op

#: Elements that a hull over possible starts may visit.
LIMIT = 2**22

Starts = tuple[Array, Array]


def starts_between(indices: Interval, last: Array) -> Starts:
    """Least and greatest start, clamped to [0, last]; int64, of the shape of `indices`.

    A float that may not be a whole number is truncated (the native executor raises); one that may be NaN may be anything.
    """
    limit = 2.0**62

    def start(v: Array, unknown: float) -> Array:
        if indices.dtype.is_float:
            if not indices.number:
                v = np.where(indices.nan, unknown, v)
            v = np.minimum(np.maximum(np.trunc(v), -limit), limit).astype(np.int64)
        elif v.dtype == np.uint64:
            v = np.minimum(v, np.uint64(limit)).astype(np.int64)
        return np.minimum(np.maximum(v, 0), last)

    least = start(indices.lo, -limit)
    return least, least if indices.is_point else start(indices.hi, limit)


def possible(op: Op, least: Array, greatest: Array, size: int) -> Iterator[Array]:
    """Every array of starts between the bounds: axis 0 holds the components of index vectors, which vary together.

    Vectors of different windows vary in step, since no element of the result looks at two of them.
    """
    if least is greatest:
        yield least
        return
    steps = [int((g - l).max(initial=0)) + 1 for l, g in zip(least, greatest, strict=True)]
    if math.prod(steps) * size > LIMIT:
        raise UnsupportedOp(op=op.name, reason=f"enclosure: {math.prod(steps)} starts are possible, too many to try")
    for shift in itertools.product(*map(range, steps)):
        yield (
            np.stack([np.minimum(l + s, g) for s, l, g in zip(shift, least, greatest, strict=True)]) if shift else least
        )


def taken(flat: Interval, sources: Iterator[Array]) -> Interval:
    """The elements of a rank-1 enclosure at any of the `sources`."""
    either = np.ones((), bool)
    moved = (flat.map(lambda a, source=source: a.take(source)) for source in sources)  # type: ignore[misc]
    return reduce(lambda x, y: choose(either, either, x, y), moved)


def flattened(x: Interval) -> Interval:
    return x.map(lambda a: a.reshape(-1))


def positions(shape: Sequence[int], coordinates: Sequence[Array]) -> Array:
    """Row-major positions, in an array of `shape`, of the elements at broadcast `coordinates`."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    total: Array = np.zeros((), np.int64)
    for stride, coordinate in zip(strides, coordinates, strict=True):
        total = total + stride * coordinate
    return total


def room(shape: Sequence[int], window: Sequence[int]) -> Array:
    """The last start on each axis."""
    return np.array(shape, np.int64) - np.array(window, np.int64)


# --- slices ---------------------------------------------------------------------------------------------------------


@ENCLOSE.row(ops.DynamicSlice)
def _dynamic_slice(op: ops.DynamicSlice, c: Context, x: Interval, starts: Interval) -> Interval:
    least, greatest = starts_between(starts, room(x.shape, op.slice_sizes))
    offsets = np.indices(op.slice_sizes)

    def source(start: Array) -> Array:
        return positions(x.shape, [o + s for o, s in zip(offsets, start, strict=True)])

    return taken(flattened(x), map(source, possible(op, least, greatest, math.prod(op.slice_sizes))))


@ENCLOSE.row(ops.DynamicUpdateSlice)
def _dynamic_update_slice(op: Op, c: Context, x: Interval, update: Interval, starts: Interval) -> Interval:
    if update.shape == x.shape:  # wherever it starts, it is clamped to 0
        return update
    least, greatest = starts_between(starts, room(x.shape, update.shape))
    both = concatenated([flattened(x), flattened(update)], 0)
    stay = np.arange(x.lo.size).reshape(x.shape)

    def written(start: Array) -> Array:
        source = stay.copy()
        window = tuple(slice(s, s + e) for s, e in zip(start.tolist(), update.shape, strict=True))
        source[window] = np.arange(update.lo.size).reshape(update.shape) + x.lo.size
        return source

    return taken(both, map(written, possible(op, least, greatest, x.lo.size)))


# --- gather ---------------------------------------------------------------------------------------------------------


def index_vectors(indices: Interval, index_vector_dim: int) -> Interval:
    """Components of the index vectors first; `index_vector_dim == rank` is an implicit last axis of extent 1."""
    rank = len(indices.shape)
    if index_vector_dim == rank:
        return indices.map(lambda a: a[np.newaxis])
    order = (index_vector_dim, *(axis for axis in range(rank) if axis != index_vector_dim))
    return indices.map(lambda a: a.transpose(order))


@ENCLOSE.row(ops.Gather)
def _gather(op: ops.Gather, c: Context, x: Interval, indices: Interval) -> Interval:
    return _gathered(op, op.slice_sizes, x, indices)


@ENCLOSE.row(ops.GatherDynamicSliceSizes)
def _gather_dynamic(op: ops.GatherDynamicSliceSizes, c: Context, x: Interval, *rest: Interval) -> Interval:
    return _gathered(op, extents(op.slice_sizes, [x.shape, *(r.shape for r in rest)]), x, rest[0])


def _gathered(
    op: ops.Gather | ops.GatherDynamicSliceSizes, sizes: tuple[int, ...], x: Interval, indices: Interval
) -> Interval:
    """Result axes: `offset_dims` run over the window, the others over the batch of index vectors."""
    vectors = index_vectors(indices, op.index_vector_dim)
    batch = vectors.shape[1:]
    kept = [axis for axis in range(len(x.shape)) if axis not in op.collapsed_slice_dims]
    rank = len(batch) + len(kept)
    batch_dims = [d for d in range(rank) if d not in op.offset_dims]
    shape = [0] * rank
    for d, extent in zip((*batch_dims, *op.offset_dims), (*batch, *(sizes[a] for a in kept)), strict=True):
        shape[d] = extent
    place = np.indices(shape, sparse=True)
    window: list[Array] = [np.zeros((), np.int64)] * len(x.shape)
    for axis, d in zip(kept, op.offset_dims, strict=True):
        window[axis] = place[d]
    last = np.array([x.shape[a] - sizes[a] for a in op.start_index_map], np.int64)
    least, greatest = starts_between(vectors, last.reshape(-1, *(1,) * len(batch)))
    out = [batch[batch_dims.index(d)] if d in batch_dims else 1 for d in range(rank)]

    def source(starts: Array) -> Array:
        coordinates = list(window)
        for axis, start in zip(op.start_index_map, starts, strict=True):
            coordinates[axis] = coordinates[axis] + start.reshape(out)
        return spread(positions(x.shape, coordinates), tuple(shape))

    return taken(flattened(x), map(source, possible(op, least, greatest, math.prod(shape))))


# --- scatter --------------------------------------------------------------------------------------------------------


@ENCLOSE.row(ops.Scatter)
def _scatter(op: ops.Scatter, c: Context, x: Interval, indices: Interval, updates: Interval) -> Interval:
    """Operand plus the updates that land on an element, in any order; an update that may land elsewhere may be nothing."""
    vectors = index_vectors(indices, op.index_vector_dim)
    kept = [axis for axis in range(len(x.shape)) if axis not in op.inserted_window_dims]
    sizes = [1] * len(x.shape)
    place = np.indices(updates.shape, sparse=True)
    window: list[Array] = [np.zeros((), np.int64)] * len(x.shape)
    for axis, d in zip(kept, op.update_window_dims, strict=True):
        sizes[axis], window[axis] = updates.shape[d], place[d]
    if not updates.lo.size or not x.lo.size:
        return x
    out = [1 if d in op.update_window_dims else e for d, e in enumerate(updates.shape)]
    last = np.array([x.shape[a] - sizes[a] for a in op.scatter_dims_to_operand_dims], np.int64)
    last = last.reshape(-1, *(1,) * (vectors.lo.ndim - 1))
    least, greatest = starts_between(vectors, last)
    outside = np.zeros(vectors.shape[1:], bool)
    unsure = outside if least is greatest else np.logical_or.reduce(least != greatest)
    if c.policy.scatter_bounds == "skip":
        low, high = vectors.lo, vectors.hi
        if np.count_nonzero(vectors.nan):
            low, high = (np.where(vectors.nan, -1, v) for v in (least, greatest))
        outside = np.logical_or.reduce((low > last) | (high < 0))
        unsure = unsure | (np.logical_or.reduce((low < 0) | (high > last)) & ~outside)

    def targets(starts: Array) -> Array:
        coordinates = list(window)
        for axis, start in zip(op.scatter_dims_to_operand_dims, starts, strict=True):
            coordinates[axis] = coordinates[axis] + start.reshape(out)
        at = positions(x.shape, coordinates)
        if np.count_nonzero(outside):
            at = np.where(outside.reshape(out), -1, at)
        return spread(at, updates.shape).reshape(-1)

    count = updates.lo.size
    keys = [_keys(targets(starts), count) for starts in possible(op, least, greatest, count)]
    flat = flattened(updates)
    if np.count_nonzero(unsure):
        flat = optional(flat, spread(unsure.reshape(out), updates.shape).reshape(-1))
    parts = concatenated([flattened(x), flat], 0)
    order = np.sort(keys[0]) if len(keys) == 1 else np.unique(np.concatenate(keys))
    return _landed(c, parts, (x.const, updates.const), x.shape, *np.divmod(order, count))


def _keys(targets: Array, count: int) -> Array:
    """One number for each pair of an operand's element and an update that lands on it."""
    return (targets * count + np.arange(count))[targets >= 0]


def optional(x: Interval, mask: Array) -> Interval:
    """`x`, or a term that is not there where the mask holds."""
    both = mask & x.dtype.is_float
    lo, hi = np.where(mask, np.minimum(x.lo, 0), x.lo), np.where(mask, np.maximum(x.hi, 0), x.hi)
    gap = x.gap and (np.where(mask, np.inf, x.gap[0]), np.where(mask, -np.inf, x.gap[1]))
    return replace(x.plain(), lo=lo, hi=hi, pos_zero=x.pos_zero | both, neg_zero=x.neg_zero | both, gap=gap)


def _landed(
    c: Context, parts: Interval, const: tuple[bool, bool], shape: tuple[int, ...], targets: Array, updates: Array
) -> Interval:
    """Elements with equally many updates together; `parts` are the operand's elements, then those of the updates."""
    size = math.prod(shape)
    counts = np.bincount(targets, minlength=size)
    first = np.cumsum(counts) - counts
    pieces, order = [], []
    for n in np.unique(counts):
        at = np.flatnonzero(counts == n)
        order.append(at)
        terms = np.column_stack([at, size + updates[first[at][:, np.newaxis] + np.arange(n)]]) if n else at
        pieces.append(_sum_of(c, parts, const, terms) if n else parts.map(lambda a, t=terms: a[t]))  # type: ignore[misc]
    back = np.argsort(np.concatenate(order))
    return concatenated(pieces, 0).map(lambda a: a[back].reshape(shape))


def _sum_of(c: Context, parts: Interval, const: tuple[bool, bool], terms: Array) -> Interval:
    picked = parts.map(lambda a: a[terms])
    if terms.shape[1] == 2:  # an addition, whose rewrites depend on what is constant
        x, y = (
            picked.map(lambda a, k=k: a[:, k]).known_as(const=const[k], repeated=picked.repeated)  # type: ignore[misc]
            for k in (0, 1)
        )
        return add(c, x, y) if c.dtype.is_float else integers.add(c.dtype, x, y)
    minus = picked.neg_zero.all(-1)
    total = sum_of(c, picked).plain()  # it is taken in a loop
    return replace(total, neg_zero=total.neg_zero | minus) if minus.any() else total  # no zero to start from


# --- truncation -----------------------------------------------------------------------------------------------------


@ENCLOSE.row(ops.DynamicTruncate)
def _dynamic_truncate(op: ops.DynamicTruncate, c: Context, x: Interval, size: Interval) -> Interval:
    """Floats round half away from zero; the bounds must agree once they are clamped to the extent."""
    extent = x.shape[op.axis]
    ends = {min(max(_rounded(v), 0), extent) for v in (size.lo.item(), size.hi.item())}
    if len(ends) != 1 or size.nan:
        raise UnsupportedOp(op=op.name, reason="enclosure: the extent of the result is not decided")
    index = (slice(None),) * op.axis + (slice(ends.pop()),)
    return x.map(lambda a: a[index])


def _rounded(value: float | int) -> int:
    if isinstance(value, int):
        return value
    if math.isinf(value):
        return DType.I64.limits[value > 0]
    whole = math.trunc(value)
    # adding a half first would round 0.49999999999999994 up
    return whole + (1 if value > 0 else -1) * (abs(value - whole) >= 0.5)
