"""Windows that move over an array: `reduce_window` and `convolution`, composed of Gather and a reduction or contraction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

import numpy as np

from tenferro_ref import ops
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import bodies
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.composed import pad, static
from tenferro_ref.stablehlo.loader.reductions import folded
from tenferro_ref.stablehlo.loader.table import ROWS
from tenferro_ref.stablehlo.loader.tracer import Tracer

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
def _(b: Tracer, op: Operation, *operands: Value) -> Value:
    found = bodies.results(op)
    name = bodies.fold(found[0], 0, 1) if found is not None and len(operands) == 2 else None
    if name not in bodies.FOLDS:
        raise op.refusal("only one operand and a body of add, multiply, maximum, minimum, and, or can be read")
    x, init = operands
    rank, ones = x.ndim, [1] * x.ndim
    padded = pad(x, init, *_edges(op, rank), _interior(op, "base_dilations", rank))
    dilations, strides = op.attribute("window_dilations", ones), op.attribute("window_strides", ones)
    view = _windows(b, op, padded, range(rank), op.attribute("window_dimensions"), strides, dilations)
    return folded(b, op, str(name), view, init, tuple(range(rank, view.ndim)))


@ROWS.row("convolution")
def _(b: Tracer, op: Operation, lhs: Value, rhs: Value) -> Value:
    """Windows over the spatial axes, contracted with the kernel."""
    dtype = op.result.dtype
    if op.attribute("feature_group_count", 1) != 1 or op.attribute("batch_group_count", 1) != 1:
        raise op.refusal("groups of features or batches are not composed")
    lists = [entry.split(", ") for entry in re.findall(r"\[(.*?)\]", str(op.raw.attributes["dimension_numbers"]))]
    spatial = [str(i) for i in range(lhs.ndim - 2)]
    (left, right, out), count = lists, len(spatial)
    x = b.transpose(lhs.astype(dtype), [left.index(label) for label in ("b", *spatial, "f")])
    kernel = b.transpose(rhs.astype(dtype), [right.index(label) for label in ("i", *spatial, "o")])
    reversed_axes = tuple(i + 1 for i, flag in enumerate(op.attribute("window_reversal", [])) if flag)
    if reversed_axes:
        kernel = b.apply(ops.Reverse(reversed_axes), kernel)
    low, high = _edges(op, count)
    interior = _interior(op, "lhs_dilation", count)
    padded = pad(x, b.array(np.zeros((), dtype.numpy)), [0, *low, 0], [0, *high, 0], [0, *interior, 0])
    sizes = static(kernel)[1:-1]
    strides, dilations = (op.attribute(name, [1] * count) for name in ("window_strides", "rhs_dilation"))
    axes = range(1, count + 1)
    view = _windows(b, op, padded, axes, sizes, strides, dilations)  # batch, positions, features, windows
    contracted = tuple(range(count + 1, 2 * count + 2))
    result = b.apply(ops.DotGeneral(contracted, tuple(range(count + 1)), (), ()), view, kernel)
    labels = ["b", *spatial, "f"]
    return b.transpose(result, [labels.index(label) for label in out])
