"""Basic indexing of values: integers, slices, `...` and None become Slice, Reverse and Reshape.

A Slice needs constant extents (SEMANTICS 3). In a value with symbolic ones each sliced axis becomes a window of a
GatherDynamicSliceSizes, whose extent is an expression; steps other than 1 and -1 are refused there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dims import DimExpr, DimOp, InputDim
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, RankMismatch, UsageError

if TYPE_CHECKING:
    from tenferro_ref.program.value import Value


def as_integer(given: Any, what: str) -> int:
    """An integer of Python's or NumPy's as Python's.

    Raises
    ------
    UsageError
        It is something else, a bool among others.
    """
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        raise UsageError(detail=f"{type(given).__name__} where an integer is needed: {what}")
    return int(given)


def getitem(x: Value, index: Any) -> Value:
    """`x[index]`.

    Raises
    ------
    RankMismatch
        More indices than axes.
    InvalidArgument
        An integer out of range, a step of 0, or a slice of a symbolic axis that has no expression.
    UsageError
        An index of another kind.
    """
    entries = list(index) if isinstance(index, tuple) else [index]
    for i, entry in enumerate(entries):
        if isinstance(entry, slice):
            bounds = (entry.start, entry.stop, entry.step)
            entries[i] = slice(*(None if bound is None else as_integer(bound, "bound of a slice") for bound in bounds))
        elif entry is not None and entry is not ...:
            entries[i] = as_integer(entry, "index; take(x, indices) takes values")
    given = sum(e is not None and e is not ... for e in entries)
    dots = [i for i, e in enumerate(entries) if e is ...]
    if given > x.ndim or len(dots) > 1:
        raise RankMismatch(op="Slice", expected=x.ndim, actual=given)
    at = dots[0] if dots else len(entries)
    entries[at : at + 1] = [slice(None)] * (x.ndim - given)
    indices = [e for e in entries if e is not None]
    sliced = _static(x, indices) if x.type.is_static else _symbolic(x, indices)
    if all(isinstance(e, slice) for e in entries):
        return sliced
    axes = iter(range(x.ndim))
    shape: list[DimExpr] = []
    for entry in entries:
        axis = None if entry is None else next(axes)
        if axis is None:
            shape.append(1)
        elif isinstance(entry, slice):
            extent = sliced.shape[axis]
            shape.append(extent if isinstance(extent, int) else InputDim(0, axis))
    return x.builder.apply(ops.Reshape(tuple(shape)), sliced)


def _steps(axis: int, extent: int, entry: int | slice) -> range:
    """The positions that an index takes of an axis of constant extent, in order."""
    if isinstance(entry, int):
        if not -extent <= entry < extent:
            raise InvalidArgument(
                op="Slice", argument="starts", detail=f"index {entry} on axis {axis} of extent {extent}"
            )
        return range(entry % extent, entry % extent + 1)
    if entry.step == 0:
        raise InvalidArgument(op="Slice", argument="strides", detail=f"stride 0 on axis {axis}")
    return range(*entry.indices(extent))


def _static(x: Value, indices: list[int | slice]) -> Value:
    starts, limits, strides, reverse = [], [], [], []
    for axis, entry in enumerate(indices):
        extent = x.shape[axis]
        positions = _steps(axis, extent if isinstance(extent, int) else 0, entry)
        if len(positions) > 1 and positions.step < 0:
            reverse.append(axis)
            positions = positions[::-1]
        starts.append(positions[0] if positions else 0)
        limits.append(positions[-1] + 1 if positions else 0)
        strides.append(positions.step if len(positions) > 1 else 1)
    if (starts, tuple(limits), strides) != ([0] * x.ndim, x.shape, [1] * x.ndim):
        x = x.builder.apply(ops.Slice(tuple(starts), tuple(limits), tuple(strides)), x)
    return x.builder.apply(ops.Reverse(tuple(reverse)), x) if reverse else x


def _symbolic(x: Value, indices: list[int | slice]) -> Value:
    for axis, entry in enumerate(indices):
        extent = x.shape[axis]
        if isinstance(extent, int):
            positions = _steps(axis, extent, entry)
            if len(positions) > 1 and abs(positions.step) != 1:
                raise _no_expression(axis, f"step {positions.step} beside symbolic axes")
            if len(positions) != extent:
                x = _window(x, axis, min(positions, default=0), len(positions))
            if len(positions) > 1 and positions.step < 0:
                x = x.builder.apply(ops.Reverse((axis,)), x)
        elif isinstance(entry, int):
            # windows of constant size, so that an axis that is too short is an error
            x = _from(x, axis, entry) if entry >= 0 else _window(x, axis, _LAST, -entry)
            x = _window(x, axis, 0, 1)
        else:
            x = _symbolic_slice(x, axis, entry)
    return x


def _symbolic_slice(x: Value, axis: int, entry: slice) -> Value:
    start, stop, step = entry.start, entry.stop, 1 if entry.step is None else entry.step
    if step == -1 and start is None and stop is None:
        return x.builder.apply(ops.Reverse((axis,)), x)
    if step != 1:
        raise _no_expression(axis, f"step {step}")
    if start is not None and start < 0 and stop is not None and stop >= 0:
        raise _no_expression(axis, f"{start}:{stop}")
    if start is not None and start < 0:
        x = _from(x, axis, start)
        return x if stop is None else _until(x, axis, stop)
    if stop is not None:
        x = _until(x, axis, stop)
    return x if start is None else _from(x, axis, start)


def _no_expression(axis: int, what: str) -> InvalidArgument:
    return InvalidArgument(op="Slice", argument="operand shape", detail=f"{what} on axis {axis} needs constant extents")


#: Beyond every start: clamped to the last one at which the window fits.
_LAST = 2**62


def _from(x: Value, axis: int, start: int) -> Value:
    """`x[start:]`; for a negative `start` the last elements."""
    here = InputDim(0, axis)
    if start < 0:
        return _window(x, axis, _LAST, DimOp("min", here, -start))
    return _window(x, axis, start, DimOp("sub", DimOp("max", here, start), start)) if start else x


def _until(x: Value, axis: int, stop: int) -> Value:
    """`x[:stop]`; for a negative `stop` all but the last elements."""
    here = InputDim(0, axis)
    size = DimOp("min", here, stop) if stop >= 0 else DimOp("sub", DimOp("max", here, -stop), -stop)
    return _window(x, axis, 0, size)


def _window(x: Value, axis: int, start: int, size: DimExpr) -> Value:
    """`size` elements of one axis, the other axes whole."""
    whole: list[DimExpr] = [e if isinstance(e, int) else InputDim(0, i) for i, e in enumerate(x.shape)]
    sizes = (*whole[:axis], size, *whole[axis + 1 :])
    gather = ops.GatherDynamicSliceSizes(tuple(range(x.ndim)), (), (axis,), 0, sizes)
    return x.builder.apply(gather, x, x.builder.constant(start, DType.I64))


__all__ = ["as_integer", "getitem"]
