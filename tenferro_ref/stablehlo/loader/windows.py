"""Windows that move over an array: `reduce_window` and `convolution`, composed of Gather and a reduction or contraction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader.bindings import attribute, refuse
from tenferro_ref.stablehlo.loader.composed import full, select, spread, static
from tenferro_ref.stablehlo.loader.tracer import Tracer

#: The most elements that the windows of an array may have together: they are laid out side by side.
_MOST = 2**28


def pad(b: Tracer, x: Value, value: Value, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Value:
    """The engine pads with zero; any other value is selected by a padded mask."""
    if not (any(low) or any(high) or any(interior)):
        return x
    op = ops.Pad(tuple(low), tuple(high), tuple(interior))
    padded = b.apply(op, x)
    if value is b.array(np.zeros((), value.dtype.numpy)):
        return padded
    return select(b.apply(op, full(x, True, DType.Bool)), padded, spread(value, static(padded)))


def _windows(
    b: Tracer,
    op: Any,
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
            raise refuse(op, f"its windows side by side have more than {_MOST} elements")
        index = np.arange(count)[:, np.newaxis] * stride + np.arange(size) * dilation
        rest = tuple(a for a in range(x.ndim + 1) if a not in (axis, x.ndim))
        gather = ops.Gather(rest, (axis,), (axis,), 2, (*shape[:axis], 1, *shape[axis + 1 :]))
        x = b.apply(gather, x, b.array(index.astype(np.int64)))
    return x


def _edges(op: Any, count: int) -> tuple[list[int], list[int]]:
    pairs = attribute(op, "padding", [[0, 0]] * count)
    return [p[0] for p in pairs], [p[1] for p in pairs]


def _interior(op: Any, name: str, count: int) -> list[int]:
    return [d - 1 for d in attribute(op, name, [1] * count)]


def window_view(b: Tracer, op: Any, x: Value, init: Value) -> Value:
    """The operand of a `reduce_window`, its windows on the last axes: as many as it has axes."""
    rank, ones = x.ndim, [1] * x.ndim
    padded = pad(b, x, init, *_edges(op, rank), _interior(op, "base_dilations", rank))
    dilations, strides = attribute(op, "window_dilations", ones), attribute(op, "window_strides", ones)
    return _windows(b, op, padded, range(rank), attribute(op, "window_dimensions"), strides, dilations)


def convolution(b: Tracer, op: Any, lhs: Value, rhs: Value, dtype: DType) -> Value:
    """Windows over the spatial axes, contracted with the kernel."""
    if attribute(op, "feature_group_count", 1) != 1 or attribute(op, "batch_group_count", 1) != 1:
        raise refuse(op, "groups of features or batches are not composed")
    lists = [entry.split(", ") for entry in re.findall(r"\[(.*?)\]", str(op.attributes["dimension_numbers"]))]
    spatial = [str(i) for i in range(lhs.ndim - 2)]
    (left, right, out), count = lists, len(spatial)
    x = b.transpose(lhs.astype(dtype), [left.index(label) for label in ("b", *spatial, "f")])
    kernel = b.transpose(rhs.astype(dtype), [right.index(label) for label in ("i", *spatial, "o")])
    reversed_axes = tuple(i + 1 for i, flag in enumerate(attribute(op, "window_reversal", [])) if flag)
    if reversed_axes:
        kernel = b.apply(ops.Reverse(reversed_axes), kernel)
    low, high = _edges(op, count)
    interior = _interior(op, "lhs_dilation", count)
    padded = pad(b, x, b.array(np.zeros((), dtype.numpy)), [0, *low, 0], [0, *high, 0], [0, *interior, 0])
    sizes = static(kernel)[1:-1]
    strides, dilations = (attribute(op, name, [1] * count) for name in ("window_strides", "rhs_dilation"))
    axes = range(1, count + 1)
    view = _windows(b, op, padded, axes, sizes, strides, dilations)  # batch, positions, features, windows
    contracted = tuple(range(count + 1, 2 * count + 2))
    result = b.apply(ops.DotGeneral(contracted, tuple(range(count + 1)), (), ()), view, kernel)
    labels = ["b", *spatial, "f"]
    return b.transpose(result, [labels.index(label) for label in out])


__all__ = ["convolution", "pad", "window_view"]
