"""Rows of contraction, reductions, and what moves windows over an array (a Gather, then a reduction or contraction)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import CompareDir, Op, free_axes
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import bodies, composed
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.composed import full, pad, select, spread, static
from tenferro_ref.stablehlo.loader.tracer import ROWS, Tracer


@ROWS.row("dot_general")
def _(b: Tracer, op: Operation, lhs: Value, rhs: Value) -> Value:
    dims = op.fields("dot_dimension_numbers")
    dtype = op.result.dtype
    lists = [
        tuple(dims.get(f"{side}_{role}_dimensions", ()))
        for role in ("contracting", "batching")
        for side in ("lhs", "rhs")
    ]
    product = b.apply(ops.DotGeneral(*lists), lhs.astype(dtype), rhs.astype(dtype))
    batches = len(lists[2])
    frees = product.ndim - batches
    return b.transpose(product, [*range(frees, product.ndim), *range(frees)])


_REDUCE: dict[str, Callable[[tuple[int, ...]], Op]] = {
    "add": ops.ReduceSum, "multiply": ops.ReduceProd, "maximum": ops.ReduceMax, "minimum": ops.ReduceMin,
}  # fmt: skip


def _identity(name: str, dtype: DType) -> np.generic | None:
    if name in ("add", "multiply"):
        return dtype.numpy.type(name == "multiply")
    if dtype.is_complex:
        return None
    sign = -1 if name == "maximum" else 1
    return dtype.numpy.type(sign * np.inf if dtype.is_float else dtype.limits[sign > 0])


def _folded(b: Tracer, op: Operation, name: str, x: Value, init: Value, axes: tuple[int, ...]) -> Value:
    if name in ("and", "or"):
        if x.dtype is not DType.Bool:
            raise op.refusal(f"a reduction by {name} of integers is none of the engine's")
        name = {"and": "minimum", "or": "maximum"}[name]
    reduced = b.apply(_REDUCE[name](axes), x)
    identity = _identity(name, x.dtype)
    if identity is not None and init is b.array(np.asarray(identity)):
        return reduced
    return b.apply(bodies.OPS[name], spread(init, static(reduced)), reduced)


@ROWS.row("reduce")
def _reduce(b: Tracer, op: Operation, *operands: Value) -> Sequence[Value]:
    count = len(operands) // 2
    arrays, inits, axes = operands[:count], operands[count:], op.axes("dimensions")
    found = bodies.results(op)
    if found is not None:
        names = [bodies.fold(expression, i, count + i) for i, expression in enumerate(found)]
        if all(name in bodies.FOLDS for name in names):
            each = zip(names, arrays, inits, strict=True)
            return [_folded(b, op, str(name), x, init, axes) for name, x, init in each]
        name = bodies.extremum_with_index(found)
        if name is not None and arrays[1].dtype.is_int:
            return _extremum_with_index(b, op, name, arrays, inits, axes)
    raise op.refusal("its body is none of add, multiply, maximum, minimum, and, or, argmax, argmin")


def _extremum_with_index(
    b: Tracer, op: Operation, name: str, arrays: Sequence[Value], inits: Sequence[Value], axes: tuple[int, ...]
) -> tuple[Value, Value]:
    """The extremum, and the smallest index where it stands; NaN is the extremum where there is one."""
    (x, index), (start, first) = arrays, inits
    best = _folded(b, op, name, x, start, axes)
    shape = static(best)
    everywhere = b.apply(ops.BroadcastInDim(static(x), free_axes(x.ndim, axes)), best)

    def holds(value: Value, extremum: Value) -> Value:
        equal = b.apply(ops.Compare(CompareDir.Eq), value, extremum)
        return composed.logical("or", equal, value != value) if value.dtype.is_float else equal

    last = full(index, index.dtype.limits[1])
    place = b.apply(ops.ReduceMin(axes), select(holds(x, everywhere), index, last))
    earlier = b.apply(ops.Minimum(), place, spread(first, shape))
    return best, select(holds(spread(start, shape), best), earlier, place)


# --- windows ----------------------------------------------------------------------------------------------------------

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
    return _folded(b, op, str(name), view, init, tuple(range(rank, view.ndim)))


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
