"""Rows of `STRATEGY` for ops that index, cut, pad and take diagonals.

Index tensors hold integers in and out of range, as inputs or as whatever integers the program has computed: the engine clamps
them. A float index tensor is always an input, since it must hold exact integers.
"""

from __future__ import annotations

from typing import Any

from fuzz.generate.growth import Estimate, Growth
from fuzz.generate.ops.structural import expression
from fuzz.generate.shapes import Shape, shape_of, volume
from fuzz.generate.table import STRATEGY
from fuzz.generate.values.recipes import Recipe
from tenferro_ref import ops
from tenferro_ref.dims import DimExpr, InputDim
from tenferro_ref.dtype import DType
from tenferro_ref.program import Value


def _ranked(g: Growth, op: type[Any], least: int) -> Value:
    """A value with at least `least` axes, of a dtype that `op` has."""
    return g.operand(g.dtypes_of(op), lambda v: v.type.rank >= least)


# --- index tensors ----------------------------------------------------------------------------------------------------


def index_tensor(g: Growth, shape: Shape) -> Value:
    """An index tensor: integers of the program that have this shape, or a new input."""
    choices = g.choices
    integers = [v for v in g.pool if v.dtype.is_int and v.shape == shape]
    if integers and choices.chance(40):
        return g.recent(integers)
    # XLA has no float indices: programs with them stay native, and are rare
    integral = [d for d in g.config.dtypes if d.is_int]
    floating = [d for d in g.config.dtypes if d.is_float]
    float_indices = floating and (not integral or (choices.chance(5) and not g.portable))
    dtype = choices.choose(floating if float_indices else integral or [DType.I32])
    if not dtype.is_int:
        return g.fresh(dtype, shape, Recipe("indices", choices.integer(2)))
    if shape and dtype in integral and choices.chance(8) and g.has_array():
        return g.constant_array(dtype, shape)
    return g.fresh(dtype, shape, Recipe("far" if choices.chance(20) else "indices", choices.integer(2)))


def _subset(g: Growth, axes: list[int]) -> tuple[int, ...]:
    """Some of `axes`, one of them mostly, in any order."""
    if not axes:
        return ()
    count = g.choices.choose((1, 1, 1, 2, 2, 0, 3, 4))
    order = g.choices.permutation(len(axes))
    return tuple(axes[i] for i in order[: min(count, len(axes))])


def _places(g: Growth, rank: int, count: int) -> tuple[int, ...]:
    """`count` of `range(rank)`, ascending; the last ones are the simplest."""
    if g.choices.chance(50):
        return tuple(sorted(g.choices.permutation(rank)[:count]))
    return tuple(range(rank - count, rank))


def _windows(g: Growth, shape: Shape, mapped: tuple[int, ...]) -> tuple[list[int], tuple[int, ...]]:
    """Window extents of an operand, and those of its axes that the window drops; the window's extent there is 1."""
    sizes = list(shape)
    for axis, extent in enumerate(shape):
        if (axis in mapped or g.choices.chance(20)) and extent:
            sizes[axis] = 1 if g.choices.pick(4) < 3 else 1 + g.choices.pick(extent)
    dropped = tuple(
        a for a in range(len(shape)) if sizes[a] == 1 and shape[a] and (a in mapped or g.choices.chance(20))
    )
    return sizes, dropped if not g.choices.chance(15) else dropped[1:]


def _batch(g: Growth, window: list[int]) -> Shape:
    """Extents of the batch of index vectors, so small that batch and window stay within the limits of rank and volume."""
    rank = min(g.choices.choose((1, 1, 0, 2)), max(0, g.max_rank - len(window)))
    extents = [g.extent() for _ in range(rank)]
    while max(extents, default=1) > 1 and volume(extents) * volume(window) > g.limit:
        extents[extents.index(max(extents))] = 1
    return tuple(extents)


def _vectors(g: Growth, batch: Shape, length: int) -> tuple[Shape, int]:
    """Shape of an index tensor and the axis that holds its vectors; an axis of extent 1 may be left out."""
    if length == 1 and g.choices.chance(40):
        return batch, len(batch)
    at = len(batch) if g.choices.pick(4) < 3 else g.choices.pick(len(batch) + 1)
    return (*batch[:at], length, *batch[at:]), at


@STRATEGY.row(ops.Gather, ops.GatherDynamicSliceSizes)
def _(g: Growth, op: type[Any]) -> Value:
    x = _ranked(g, op, 1)
    shape = shape_of(x)
    mapped = _subset(g, list(range(len(shape))))
    sizes, collapsed = _windows(g, shape, mapped)
    window = [s for a, s in enumerate(sizes) if a not in collapsed]
    batch = _batch(g, window)
    vectors, vector_dim = _vectors(g, batch, len(mapped))
    indices = index_tensor(g, vectors)
    offsets = _places(g, len(batch) + len(window), len(window))
    exprs: list[DimExpr] = list(sizes)
    operands = [x, indices]
    if op is ops.GatherDynamicSliceSizes:
        operands += [g.recent(g.pool)] if g.choices.chance(30) else []
        known = [(InputDim(i, axis), e) for i, v in enumerate(operands) for axis, e in enumerate(shape_of(v))]
        whole = [InputDim(0, a) if s == shape[a] else s for a, s in enumerate(sizes)]
        named = [expression(g, s, known) if g.choices.chance(40) else whole[a] for a, s in enumerate(sizes)]
        exprs = [s if a in collapsed else named[a] for a, s in enumerate(sizes)]
    return g.apply(op(offsets, collapsed, mapped, vector_dim, tuple(exprs)), *operands, estimate=g.estimates[x.slot])


@STRATEGY.row(ops.Scatter)
def _(g: Growth, op: type[Any]) -> Value:
    x = _ranked(g, op, 1)
    shape = shape_of(x)
    mapped = _subset(g, list(range(len(shape))))
    sizes, inserted = _windows(g, shape, mapped)
    window = [s for a, s in enumerate(sizes) if a not in inserted]
    batch = _batch(g, window)
    vectors, vector_dim = _vectors(g, batch, len(mapped))
    rank = len(batch) + len(window)
    places = _places(g, rank, len(window))
    windows, batches = iter(window), iter(batch)
    updates = g.typed(x.dtype, tuple(next(windows) if a in places else next(batches) for a in range(rank)))
    a, b = g.estimates[x.slot], g.estimates[updates.slot]
    estimate = Estimate(a.positive and b.positive, max(a.size, b.size) + 4)
    return g.apply(op(places, inserted, mapped, vector_dim), x, index_tensor(g, vectors), updates, estimate=estimate)


# --- windows ----------------------------------------------------------------------------------------------------------


def _within(g: Growth, extent: int) -> int:
    """A window of an axis: all of it, or less."""
    return extent if g.choices.chance(40) else g.choices.pick(extent + 1)


@STRATEGY.row(ops.Slice)
def _(g: Growth, op: type[Any]) -> Value:
    x = _ranked(g, op, 0 if g.choices.chance(5) else 1)
    starts, limits, strides = [], [], []
    for extent in shape_of(x):
        whole = g.choices.chance(30)
        start = 0 if whole else g.choices.near(extent + 1)
        starts.append(start)
        limits.append(extent if whole or g.choices.chance(40) else start + g.choices.pick(extent - start + 1))
        strides.append(g.choices.choose((1, 1, 1, 2, 3, 7)))
    return g.apply(op(tuple(starts), tuple(limits), tuple(strides)), x)


@STRATEGY.row(ops.DynamicSlice)
def _(g: Growth, op: type[Any]) -> Value:
    x = _ranked(g, op, 0 if g.choices.chance(5) else 1)
    sizes = tuple(_within(g, e) for e in shape_of(x))
    return g.apply(op(sizes), x, index_tensor(g, (len(sizes),)), estimate=g.estimates[x.slot])


@STRATEGY.row(ops.DynamicUpdateSlice)
def _(g: Growth, op: type[Any]) -> Value:
    x = _ranked(g, op, 0 if g.choices.chance(5) else 1)
    update = g.typed(x.dtype, tuple(_within(g, e) for e in shape_of(x)))
    a, b = g.estimates[x.slot], g.estimates[update.slot]
    estimate = Estimate(a.positive and b.positive, max(a.size, b.size))
    return g.apply(op(), x, update, index_tensor(g, (update.type.rank,)), estimate=estimate)


@STRATEGY.row(ops.Pad)
def _(g: Growth, op: type[Any]) -> Value:
    x = _ranked(g, op, 0 if g.choices.chance(5) else 1)
    lows, highs, interiors, shape = [], [], [], list(shape_of(x))
    for axis, extent in enumerate(shape):
        low = g.choices.choose((0, 1, -1, 2, -2, -3))  # beyond a step of the interior, too
        high = g.choices.choose((0, 1, 2, -1, 3, -2))
        interior = g.choices.choose((0, 0, 1, 2))
        spread = (extent - 1) * (interior + 1) + 1 if extent else 0
        if low + high + spread < 0:  # more is cropped than there is
            low, high = -(spread // 2), -(spread - spread // 2)
        shape[axis] = low + high + spread
        if volume(shape) > g.limit:
            low = high = interior = 0
            shape[axis] = extent
        lows.append(low)
        highs.append(high)
        interiors.append(interior)
    return g.apply(op(tuple(lows), tuple(highs), tuple(interiors)), x)


@STRATEGY.row(ops.PadToMatch)
def _(g: Growth, op: type[Any]) -> Value:
    x = _ranked(g, op, 1)
    axis = g.choices.pick(x.type.rank)
    shape = list(shape_of(x))
    shape[axis] = g.extent()
    if volume(shape) > g.limit:
        shape[axis] = 1
    reference = g.typed(g.dtype(g.config.dtypes), tuple(shape))
    return g.apply(op(axis), x, reference, estimate=g.estimates[x.slot])


@STRATEGY.row(ops.Concatenate)
def _(g: Growth, op: type[Any]) -> Value:
    x = _ranked(g, op, 1)
    axis, parts = g.choices.pick(x.type.rank), [x]
    shape = list(shape_of(x))
    total = shape[axis]
    for _ in range(g.choices.choose((1, 1, 2, 0, 3))):
        shape[axis] = g.extent()
        if volume([*shape[:axis], total + shape[axis], *shape[axis + 1 :]]) > g.limit:
            break
        total += shape[axis]
        parts.append(g.typed(x.dtype, tuple(shape)))
    parts = [parts[i] for i in g.choices.permutation(len(parts))]
    estimates = [g.estimates[v.slot] for v in parts]
    estimate = Estimate(all(e.positive for e in estimates), max(e.size for e in estimates))
    return g.apply(op(axis), *parts, estimate=estimate)


@STRATEGY.row(ops.Reverse)
def _(g: Growth, op: type[Any]) -> Value:
    x = _ranked(g, op, 0 if g.choices.chance(5) else 1)
    return g.apply(op(_subset(g, list(range(x.type.rank)))), x)


@STRATEGY.row(ops.ShapeOf)
def _(g: Growth, op: type[Any]) -> Value:
    x = _ranked(g, op, 1)
    return g.apply(op(g.choices.pick(x.type.rank)), x, estimate=Estimate(True, 14))


@STRATEGY.row(ops.DynamicTruncate)
def _(g: Growth, op: type[Any]) -> Value:
    x = _ranked(g, op, 1)
    dtypes = [d for d in (DType.I64, DType.F64, DType.F32) if d in g.config.dtypes]
    dtype = g.choices.choose(dtypes or [DType.I64])
    kind = "halves" if dtype.is_float and g.choices.chance(50) else "indices"
    size = g.fresh(dtype, (), Recipe(kind, g.choices.integer(2)))
    return g.show(op(g.choices.pick(x.type.rank)), x, size)


# --- diagonals and triangles ------------------------------------------------------------------------------------------


@STRATEGY.row(ops.ExtractDiag)
def _(g: Growth, op: type[Any]) -> Value:
    x = _ranked(g, op, 2)
    a, b = g.choices.permutation(x.type.rank)[:2]
    return g.apply(op(a, b), x)


@STRATEGY.row(ops.EmbedDiag)
def _(g: Growth, op: type[Any]) -> Value:
    x = g.operand(g.dtypes_of(op), lambda v: 1 <= v.type.rank < max(2, g.max_rank))
    shape = shape_of(x)
    fitting = [a for a, e in enumerate(shape) if volume(shape) * e <= g.limit]
    if not fitting:
        x, shape, fitting = g.fresh(x.dtype, (2,)), (2,), [0]
    return g.apply(op(g.choices.choose(fitting), g.choices.pick(len(shape) + 1)), x)


#: Which diagonal a triangle ends with: some of them beyond every matrix, and where a row number plus it has no place in I64.
_DIAGONALS = (*(0, 1, -1, 2, -2) * 2, 5, -5, 2**63 - 1, 1 - 2**63)


@STRATEGY.row(ops.Tril, ops.Triu)
def _(g: Growth, op: type[Any]) -> Value:
    x = _ranked(g, op, 2)
    return g.apply(op(g.choices.choose(_DIAGONALS)), x)
