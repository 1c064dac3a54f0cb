"""Basic indexing: integers, slices, `...` and None become Slice, Reverse and Reshape.

A Slice needs constant extents (SEMANTICS 3). In a value with symbolic ones each sliced axis becomes a window of a
GatherDynamicSliceSizes, whose extent is an expression; steps other than 1 and -1 are refused there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dims import DimExpr, DimOp, InputDim
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, RankMismatch, UsageError
from tenferro_ref.ops import DEFAULT_POLICY, Op, Policy, TensorType


def as_integer(number: Any, what: str) -> int:
    """A Python or NumPy integer as a Python integer.

    Raises
    ------
    UsageError
        It is something else; a bool too.
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise UsageError(detail=f"{type(number).__name__} where an integer is needed: {what}")
    return int(number)


def as_integers(numbers: Any, what: str) -> tuple[int, ...]:
    """A sequence of Python or NumPy integers as a tuple of Python integers.

    Raises
    ------
    UsageError
        It is no sequence, or one of something else.
    """
    if not isinstance(numbers, Sequence):
        raise UsageError(detail=f"{type(numbers).__name__} where a sequence of integers is needed: {what}")
    return tuple([as_integer(number, what) for number in numbers])


@dataclass(slots=True)
class _Chain:
    """Ops applied one after the other, the first to a value of type `type`.

    Attributes
    ----------
    type
        Type of the last op's result.
    policy
        That of the program: which dtypes there are.
    steps
        Each op with the start of its window, or None if the op has no operand beside the value.
    """

    type: TensorType
    policy: Policy
    steps: list[tuple[Op, int | None]] = field(default_factory=list)

    def apply(self, op: Op, start: int | None = None) -> None:
        starts = () if start is None else (TensorType(DType.I64, ()),)
        (self.type,) = op.result_types((self.type, *starts), self.policy)
        self.steps.append((op, start))

    def window(self, axis: int, start: int, size: DimExpr) -> None:
        """`size` elements of one axis, the other axes whole."""
        whole: list[DimExpr] = [e if isinstance(e, int) else InputDim(0, i) for i, e in enumerate(self.type.shape)]
        sizes = (*whole[:axis], size, *whole[axis + 1 :])
        self.apply(ops.GatherDynamicSliceSizes(tuple(range(self.type.rank)), (), (axis,), 0, sizes), start)

    def drop_until(self, axis: int, start: int) -> None:
        """`x[start:]`; for a negative `start` the last elements."""
        here = InputDim(0, axis)
        if start < 0:
            self.window(axis, _LAST, DimOp("min", here, -start))
        elif start:
            self.window(axis, start, DimOp("sub", DimOp("max", here, start), start))

    def keep_until(self, axis: int, stop: int) -> None:
        """`x[:stop]`; for a negative `stop` all but the last elements."""
        here = InputDim(0, axis)
        size = DimOp("min", here, stop) if stop >= 0 else DimOp("sub", DimOp("max", here, -stop), -stop)
        self.window(axis, 0, size)


#: Beyond every start: clamped to the last one at which the window fits.
_LAST = 2**62


def index_steps(type_: TensorType, index: Any, policy: Policy = DEFAULT_POLICY) -> list[tuple[Op, int | None]]:
    """The ops that take `x[index]` of a value of type `type_`, in order, in a program of that policy.

    Returns
    -------
    list of (op, start)
        Each op's operands are the previous result and, unless `start` is None, that integer as a rank-0 I64.

    Raises
    ------
    RankMismatch
        More indices than axes.
    InvalidArgument
        An integer out of range, a step of 0, or a slice of a symbolic axis that has no expression.
    UsageError
        An index of another kind.
    """
    entries = _entries(type_.rank, index)
    indices = [e for e in entries if e is not None]
    chain = _Chain(type_, policy)
    if type_.is_static:
        _static(chain, indices)
    else:
        _symbolic(chain, indices)
    if not all(isinstance(e, slice) for e in entries):
        axes = iter(enumerate(chain.type.shape))
        shape: list[DimExpr] = []
        for entry in entries:
            axis, extent = (0, 1) if entry is None else next(axes)
            if entry is None:
                shape.append(1)
            elif isinstance(entry, slice):
                shape.append(extent if isinstance(extent, int) else InputDim(0, axis))
        chain.apply(ops.Reshape(tuple(shape)))
    return chain.steps


def _entries(rank: int, index: Any) -> list[int | slice | None]:
    """The index of each axis in order, with None for each new axis: integers are checked, `...` is written out."""
    entries = list(index) if isinstance(index, tuple) else [index]
    for i, entry in enumerate(entries):
        if isinstance(entry, slice):
            bounds = (entry.start, entry.stop, entry.step)
            entries[i] = slice(*(None if bound is None else as_integer(bound, "bound of a slice") for bound in bounds))
        elif entry is not None and entry is not ...:
            entries[i] = as_integer(entry, "index; take(x, indices) takes values")
    count = sum(e is not None and e is not ... for e in entries)
    dots = [i for i, e in enumerate(entries) if e is ...]
    if count > rank or len(dots) > 1:
        words = f"{count} indices, and the value has rank {rank}" if count > rank else "more than one ellipsis"
        raise RankMismatch(op="Slice", expected=rank, actual=count).saying(f"index: {words}")
    at = dots[0] if dots else len(entries)
    entries[at : at + 1] = [slice(None)] * (rank - count)
    return entries


def _positions(axis: int, extent: int, entry: int | slice) -> range:
    """The positions that an index takes of an axis of constant extent, in order."""
    if isinstance(entry, int):
        if not -extent <= entry < extent:
            error = InvalidArgument(op="Slice", argument="starts", detail=f"{entry} on axis {axis} of extent {extent}")
            raise error.saying(f"index {entry} is out of bounds for axis {axis} of extent {extent}")
        return range(entry % extent, entry % extent + 1)
    if entry.step == 0:
        error = InvalidArgument(op="Slice", argument="strides", detail=f"stride 0 on axis {axis}")
        raise error.saying(f"index: a slice of step 0 on axis {axis}")
    return range(*entry.indices(extent))


def _static(chain: _Chain, indices: list[int | slice]) -> None:
    shape = chain.type.static_shape
    starts, limits, strides, reverse = [], [], [], []
    for axis, entry in enumerate(indices):
        positions = _positions(axis, shape[axis], entry)
        if len(positions) > 1 and positions.step < 0:
            reverse.append(axis)
            positions = positions[::-1]
        starts.append(positions[0] if positions else 0)
        limits.append(positions[-1] + 1 if positions else 0)
        strides.append(positions.step if len(positions) > 1 else 1)
    if (starts, tuple(limits), strides) != ([0] * len(shape), shape, [1] * len(shape)):
        chain.apply(ops.Slice(tuple(starts), tuple(limits), tuple(strides)))
    if reverse:
        chain.apply(ops.Reverse(tuple(reverse)))


def _symbolic(chain: _Chain, indices: list[int | slice]) -> None:
    for axis, entry in enumerate(indices):
        extent = chain.type.shape[axis]
        if isinstance(extent, int):
            positions = _positions(axis, extent, entry)
            if len(positions) > 1 and abs(positions.step) != 1:
                raise _no_expression(axis, f"step {positions.step} beside symbolic axes")
            if len(positions) != extent:
                chain.window(axis, min(positions, default=0), len(positions))
            if len(positions) > 1 and positions.step < 0:
                chain.apply(ops.Reverse((axis,)))
        elif isinstance(entry, int):
            # windows of constant size, so that an axis that is too short is an error
            if entry >= 0:
                chain.drop_until(axis, entry)
            else:
                chain.window(axis, _LAST, -entry)
            chain.window(axis, 0, 1)
        else:
            _symbolic_slice(chain, axis, entry)


def _symbolic_slice(chain: _Chain, axis: int, entry: slice) -> None:
    start, stop, step = entry.start, entry.stop, 1 if entry.step is None else entry.step
    if step == -1 and start is None and stop is None:
        chain.apply(ops.Reverse((axis,)))
        return
    if step != 1:
        raise _no_expression(axis, f"step {step}")
    negative = start is not None and start < 0
    if negative and stop is not None and stop >= 0:
        raise _no_expression(axis, f"{start}:{stop}")
    if negative:
        chain.drop_until(axis, start)
    if stop is not None:
        chain.keep_until(axis, stop)
    if start is not None and not negative:
        chain.drop_until(axis, start)


def _no_expression(axis: int, what: str) -> InvalidArgument:
    return InvalidArgument(op="Slice", argument="operand shape", detail=f"{what} on axis {axis} needs constant extents")
