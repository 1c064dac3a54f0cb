"""What a program means over an algebra, read from SEMANTICS 6.1 and computed by plain NumPy: nothing of `runtime.semiring` is used.

An algebra has a plus and a times. Extrema propagate NaN, and -0 is smaller than +0; what times gives is rounded once; every NaN that is computed is
the positive quiet one. Ops that move elements are read off what they do to the elements' numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tenferro_ref import ops
from tenferro_ref.ops import Op, Policy, free_axes
from tenferro_ref.program import GraphProgram
from tenferro_ref.runtime import run_kernel
from tenferro_ref.tensor import Array

Values: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Meaning:
    """An algebra: its two operations on arrays of one shape, and the zero that it fills with."""

    plus: Callable[[Values, Values], Values]
    times: Callable[[Values, Values], Values]
    zero: float | bool


def _quiet(x: Values) -> Values:
    return np.where(np.isnan(x), x.dtype.type(np.nan), x)


def _larger(x: Values, y: Values) -> Values:
    picked = np.where((x > y) | ((x == y) & np.signbit(y)), x, y)
    return np.where(np.isnan(x) | np.isnan(y), x.dtype.type(np.nan), picked)


def _smaller(x: Values, y: Values) -> Values:
    picked = np.where((x < y) | ((x == y) & np.signbit(x)), x, y)
    return np.where(np.isnan(x) | np.isnan(y), x.dtype.type(np.nan), picked)


MEANINGS = {
    "max-plus": Meaning(_larger, lambda x, y: _quiet(x + y), -np.inf),
    "min-plus": Meaning(_smaller, lambda x, y: _quiet(x + y), np.inf),
    "max-times": Meaning(_larger, lambda x, y: _quiet(x * y), 0.0),
    "boolean": Meaning(lambda x, y: x | y, lambda x, y: x & y, zero=False),
}

#: Where the operands of an op that moves elements are that say how; of shapes alone (Reshape, BroadcastInDim) all but the first.
CONTROLS: dict[type[Op], Sequence[int]] = {
    ops.Select: (0,), ops.DynamicUpdateSlice: (2,),
    **dict.fromkeys((ops.Gather, ops.GatherDynamicSliceSizes, ops.DynamicSlice, ops.DynamicTruncate, ops.Reshape, ops.BroadcastInDim), range(1, 64)),
}  # fmt: skip


def read(program: GraphProgram, inputs: Sequence[Array], name: str) -> list[Array]:
    """The outputs of a program over an algebra of `MEANINGS`; its ops are those that have rows in `SEMIRING`, but for constants."""
    values: dict[int, Values] = dict(zip(program.input_slots, inputs, strict=True))
    with np.errstate(all="ignore"):
        for ins in program.instructions:
            operands = [values[slot] for slot in ins.input_slots]
            values[ins.output_slots[0]] = _one(MEANINGS[name], ins.op, program.policy, operands)
    return [values[slot] for slot in program.output_slots]


def _one(meaning: Meaning, op: Op, policy: Policy, operands: Sequence[Values]) -> Values:
    match op:
        case ops.Add():
            return meaning.plus(*operands)
        case ops.Multiply():
            return meaning.times(*operands)
        case ops.ReduceSum():
            return _total(meaning, operands[0], op.axes)
        case ops.ReduceSumSquares():
            return _total(meaning, meaning.times(operands[0], operands[0]), op.axes)
        case ops.DotGeneral():
            return _contraction(meaning, op, operands[0], operands[1])
    return _moved(meaning, op, policy, operands)


def _total(meaning: Meaning, x: Values, axes: Sequence[int]) -> Values:
    """The sum over axes, one element after the other; that of no element is zero."""
    for axis in sorted(axes, reverse=True):
        slabs = [x.take(i, axis) for i in range(x.shape[axis])]
        total = np.full(x.shape[:axis] + x.shape[axis + 1 :], meaning.zero, x.dtype)
        for number, slab in enumerate(slabs):
            total = meaning.plus(total, slab) if number else slab
        x = total if x.dtype.kind == "b" else _quiet(total)
    return x


def _contraction(meaning: Meaning, op: ops.DotGeneral, x: Values, y: Values) -> Values:
    """Result axes: lhs free, rhs free, batch (SEMANTICS 2.5)."""
    left = free_axes(x.ndim, op.lhs_contracting_dims, op.lhs_batch_dims)
    right = free_axes(y.ndim, op.rhs_contracting_dims, op.rhs_batch_dims)
    x = x.transpose([*left, *op.lhs_batch_dims, *op.lhs_contracting_dims])
    y = y.transpose([*right, *op.rhs_batch_dims, *op.rhs_contracting_dims])
    pairs = len(op.lhs_contracting_dims)
    x = x.reshape([*x.shape[: len(left)], *(1,) * len(right), *x.shape[len(left) :]])
    y = y.reshape([*(1,) * len(left), *y.shape])
    product = meaning.times(x, y)
    return _total(meaning, product, range(product.ndim - pairs, product.ndim))


def _moved(meaning: Meaning, op: Op, policy: Policy, operands: Sequence[Values]) -> Values:
    """What the op does to the numbers 1, 2, 3, ... of all elements; 0 is where it fills."""
    controls = CONTROLS.get(type(op), ())
    elements: list[Values] = []
    numbers: list[Values] = []
    count = 1
    for place, x in enumerate(operands):
        if place in controls:
            numbers.append(x)
            continue
        numbers.append(np.arange(count, count + x.size).reshape(x.shape, order="F"))
        elements.append(x.ravel("F"))
        count += x.size
    (moved,) = run_kernel(op, policy, *numbers)
    known = np.concatenate([np.full(1, meaning.zero, elements[0].dtype), *elements])
    return np.asarray(known[moved])
