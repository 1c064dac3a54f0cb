"""Rows of what moves windows over an array: a Gather lays them side by side, then a reduction or contraction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import bodies, composed
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.composed import full, pad, select, spread, static
from tenferro_ref.stablehlo.loader.contractions import in_dtype
from tenferro_ref.stablehlo.loader.reductions import Alone, identity, reduced
from tenferro_ref.stablehlo.loader.regions import apply_body, grouped_places, taken
from tenferro_ref.stablehlo.loader.tracer import ROWS, Tracer, numbers
from tenferro_ref.tensor import Array

#: The most elements that the windows of an array may have together: they are laid out side by side.
_MOST = 2**28


def _windows(
    b: Tracer,
    op: Operation,
    x: Value,
    axes: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Value:
    """`x` with positions of the window on each of `axes`, and what a window holds on new last axes, one each."""
    for axis, size, stride, dilation in zip(axes, sizes, strides, dilations, strict=True):
        shape = static(x)
        count = max(0, (shape[axis] - dilation * (size - 1) - 1) // stride + 1)
        if prod((*shape, count, size)) > _MOST * max(1, shape[axis]):
            raise op.refusal(f"its windows side by side have more than {_MOST} elements")
        if not shape[axis]:  # there is no position, and no element to gather at one
            x = b.reshape(x, (*shape, size))
            continue
        index = np.arange(count)[:, np.newaxis] * stride + np.arange(size) * dilation
        rest = tuple(a for a in range(x.ndim + 1) if a not in (axis, x.ndim))
        gather = ops.Gather(rest, (axis,), (axis,), 2, (*shape[:axis], 1, *shape[axis + 1 :]))
        x = b.apply(gather, x, b.array(index.astype(np.int64)))
    return x


def _edges(op: Operation, count: int) -> tuple[list[int], list[int]]:
    pairs = op.attribute("padding", [[0, 0]] * count)
    return [p[0] for p in pairs], [p[1] for p in pairs]


def _interior(op: Operation, name: str, count: int) -> list[int]:
    return [d - 1 for d in op.attribute(name, [1] * count)]


@ROWS.row("reduce_window")
def _(b: Tracer, op: Operation, *operands: Value) -> Sequence[Value]:
    count, rank = len(operands) // 2, operands[0].ndim
    arrays, inits, ones = operands[:count], operands[count:], [1] * rank
    dilations, strides = op.attribute("window_dilations", ones), op.attribute("window_strides", ones)
    sizes, interior = op.attribute("window_dimensions"), _interior(op, "base_dilations", rank)
    edges = _edges(op, rank)

    def view(i: int, padding: Value) -> Value:
        padded = pad(arrays[i], padding, *edges, interior)
        return _windows(b, op, padded, range(rank), sizes, strides, dilations)

    views, alone = [view(i, init) for i, init in enumerate(inits)], None
    within = tuple(range(rank, views[0].ndim))
    if any(edges[0]) or any(edges[1]) or any(interior):
        # padding is initial values, and whether it counts as elements is left open with how often these enter
        real = pad(full(arrays[0], True, DType.Bool), b.constant(False, DType.Bool), *edges, interior)
        there = b.apply(ops.ReduceMax(within), _windows(b, op, real, range(rank), sizes, strides, dilations))
        alone = Alone(view, there)
    return reduced(b, op, views, inits, within, alone=alone)


@ROWS.row("convolution", "dynamic_conv")
def _(b: Tracer, op: Operation, lhs: Value, rhs: Value, *padding: Value) -> Value:
    """Windows over the spatial axes, contracted with the kernel."""
    lists = [entry.split(", ") for entry in re.findall(r"\[(.*?)\]", str(op.raw.attributes["dimension_numbers"]))]
    spatial = [str(i) for i in range(lhs.ndim - 2)]
    (left, right, out), count = lists, len(spatial)
    x = b.transpose(lhs, [left.index(label) for label in ("b", *spatial, "f")])
    kernel = b.transpose(rhs, [right.index(label) for label in ("i", *spatial, "o")])
    reversed_axes = tuple(i + 1 for i, flag in enumerate(op.attribute("window_reversal", [])) if flag)
    if reversed_axes:
        kernel = b.apply(ops.Reverse(reversed_axes), kernel)
    edges = numbers(b, op, padding[0]) if padding else ()
    low, high = (edges[::2], edges[1::2]) if padding else _edges(op, count)
    interior = _interior(op, "lhs_dilation", count)
    padded = pad(x, b.array(np.zeros((), x.dtype.numpy)), [0, *low, 0], [0, *high, 0], [0, *interior, 0])
    sizes = static(kernel)[1:-1]
    strides, dilations = (op.attribute(name, [1] * count) for name in ("window_strides", "rhs_dilation"))
    axes = range(1, count + 1)
    view = _windows(b, op, padded, axes, sizes, strides, dilations)  # batch, positions, features, windows
    groups = op.attribute("feature_group_count", 1), op.attribute("batch_group_count", 1)
    result = in_dtype(b, op.result.dtype, view, kernel, lambda lhs, rhs: _contracted(b, lhs, rhs, *groups))
    labels = ["b", *spatial, "f"]
    return b.transpose(result, [labels.index(label) for label in out])


def _contracted(b: Tracer, view: Value, kernel: Value, features: int, batches: int) -> Value:
    """Windows (batch, positions, features, window) and a kernel (features, window, output) contracted, in groups.

    A group of features, or of batches, meets only its part of the kernel's outputs.
    """
    count = kernel.ndim - 2
    if features == batches == 1:
        contracted = tuple(range(count + 1, 2 * count + 2))
        return b.apply(ops.DotGeneral(contracted, tuple(range(count + 1)), (), ()), view, kernel)
    groups, axis = max(features, batches), 0 if batches > 1 else count + 1
    shape, outputs = static(view), static(kernel)[-1]
    split = (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])
    grouped = b.reshape(view, split)  # one axis more, at `axis`
    weights = b.reshape(kernel, (*static(kernel)[:-1], groups, outputs // groups))
    contracted = tuple(range(count + 2, 2 * count + 3))
    product = b.apply(ops.DotGeneral(contracted, tuple(range(count + 1)), (axis,), (count + 1,)), grouped, weights)
    # batch, positions, outputs of a group, group
    turned = b.transpose(product, [*range(count + 1), count + 2, count + 1])
    return b.reshape(turned, (*static(turned)[:-2], outputs))


# --- select and scatter -----------------------------------------------------------------------------------------------


@ROWS.row("select_and_scatter")
def _(b: Tracer, op: Operation, x: Value, source: Value, init: Value) -> Value:
    """Of each window the element that the first body selects gets the window's element of `source`."""
    rank, shape = x.ndim, static(x)
    sizes, strides = op.attribute("window_dimensions", [1] * rank), op.attribute("window_strides", [1] * rank)
    low, _ = _edges(op, rank)
    lines = []
    for axis in range(rank):
        start = np.arange(static(source)[axis]) * strides[axis] - low[axis]
        lines.append(start[:, np.newaxis] + np.arange(sizes[axis]))
    inside: Array = np.ones((), bool)
    place: Array = np.zeros((), np.int64)
    for axis, line in enumerate(lines):
        at = line.reshape(
            [e for a in range(rank) for e in ((line.shape[0],) if a == axis else (1,))]
            + [e for a in range(rank) for e in ((line.shape[1],) if a == axis else (1,))]
        )
        inside = inside & (at >= 0) & (at < shape[axis])
        place = place * shape[axis] + np.clip(at, 0, shape[axis] - 1)
    positions, window = prod(static(source)), prod(sizes)
    inside = np.broadcast_to(inside, (*static(source), *sizes)).reshape(positions, window)
    place = np.broadcast_to(place, (*static(source), *sizes)).reshape(positions, window)
    winner, best = _winner(b, op, b.reshape(x, (prod(shape),)), place, inside)
    numbers = b.array(np.broadcast_to(np.arange(window, dtype=np.int32), (positions, window)))
    spots = b.apply(ops.BroadcastInDim((positions, window), (0,)), winner)
    flat = b.reshape(source, (positions,))
    chosen = spots == numbers
    if x.dtype.is_float:
        chosen = b.apply(ops.Repeated("select", 1), chosen, *_any_way(b, op, x, best, spots, chosen, place, inside))
    fill = _fill(b, op, source.dtype)
    share = select(
        chosen, b.apply(ops.BroadcastInDim((positions, window), (0,)), flat), spread(fill, (positions, window))
    )
    cover = _covering(place, inside, prod(shape))
    terms = taken(b, b.reshape(share, (positions * window,)), cover, fill)
    hit = taken(b, b.reshape(chosen, (positions * window,)), cover, b.constant(False, DType.Bool))
    alone = Alone(None, b.apply(ops.ReduceMax((1,)), hit))
    total = reduced(b, op, [terms], [init], (1,), region=1, alone=alone)
    return b.reshape(total[0], shape)


def _fill(b: Tracer, op: Operation, dtype: DType) -> Value:
    """What an element that is not selected adds: nothing, whatever the second body is."""
    found = bodies.results(op, 1)
    name = bodies.fold(found[0], 0, 1) if found is not None else None
    value = None if name in (None, "right", "and", "or") else identity(str(name), dtype)
    if value is None:
        raise op.refusal("its second body is no sum, product or extremum")
    return b.array(np.asarray(value))


def _winner(b: Tracer, op: Operation, x: Value, place: np.ndarray, inside: np.ndarray) -> tuple[Value, Value]:
    """Which element of its window each position selects, and its value: the first unless the body prefers a later one."""
    first = inside.argmax(1)
    index = b.array(first.astype(np.int32))
    best = taken(b, x, place[np.arange(len(place)), first])
    for k in range(1, place.shape[1]):
        candidate = taken(b, x, place[:, k])
        (keep,) = apply_body(b, op, [best, candidate])
        stay = composed.logical("or", keep, b.array(~inside[:, k] | (first >= k)))
        best = select(stay, best, candidate)
        index = select(stay, index, full(index, k))
    return index, best


def _any_way(
    b: Tracer,
    op: Operation,
    x: Value,
    best: Value,
    spots: Value,
    chosen: Value,
    place: np.ndarray,
    inside: np.ndarray,
) -> tuple[Value, Value]:
    """Which elements of its window each position may select, and which it must: `chosen` where its winner is preferred to every other in the place of each.

    Elsewhere (beside a NaN, of which no comparison holds) it depends on which are compared first, which StableHLO leaves open.
    """
    flat = taken(b, b.reshape(x, (prod(static(x)),)), place)
    rivals = b.apply(ops.BroadcastInDim(place.shape, (0,)), best)
    (before,), (after,) = apply_body(b, op, [flat, rivals]), apply_body(b, op, [rivals, flat])
    numbers = b.array(np.broadcast_to(np.arange(place.shape[1], dtype=np.int32), place.shape))
    beaten = select(numbers < spots, composed.logical("not", before), after)
    beaten = composed.logical("or", composed.logical("or", beaten, chosen), b.array(~inside))
    settled = b.apply(ops.BroadcastInDim(place.shape, (0,)), b.apply(ops.ReduceMin((1,)), beaten))
    return select(settled, chosen, b.array(inside)), composed.logical("and", settled, chosen)


def _covering(place: np.ndarray, inside: np.ndarray, size: int) -> np.ndarray:
    """For each element of an array of this size, the flat numbers of (position, window element) that stand on it; -1."""
    flat, kept = place.ravel(), inside.ravel()
    numbers = np.flatnonzero(kept)
    return grouped_places(flat[numbers], numbers, size)
