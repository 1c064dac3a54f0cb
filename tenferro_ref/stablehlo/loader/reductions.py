"""Rows of contraction and reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import CompareDir, Op, free_axes
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import bodies, composed
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.composed import full, select, spread, static
from tenferro_ref.stablehlo.loader.table import ROWS
from tenferro_ref.stablehlo.loader.tracer import Tracer


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
    if dtype is DType.Bool:
        return np.bool_(sign > 0)
    info = np.iinfo(dtype.value) if dtype.is_int else None
    return dtype.numpy.type(sign * np.inf if info is None else info.min if sign < 0 else info.max)


def folded(b: Tracer, op: Operation, name: str, x: Value, init: Value, axes: tuple[int, ...]) -> Value:
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
            return [folded(b, op, str(name), x, init, axes) for name, x, init in each]
        name = bodies.extremum_with_index(found)
        if name is not None and arrays[1].dtype.is_int:
            return _extremum_with_index(b, op, name, arrays, inits, axes)
    raise op.refusal("its body is none of add, multiply, maximum, minimum, and, or, argmax, argmin")


def _extremum_with_index(
    b: Tracer, op: Operation, name: str, arrays: Sequence[Value], inits: Sequence[Value], axes: tuple[int, ...]
) -> tuple[Value, Value]:
    """The extremum, and the smallest index where it stands; NaN is the extremum where there is one."""
    (x, index), (start, first) = arrays, inits
    best = folded(b, op, name, x, start, axes)
    shape = static(best)
    everywhere = b.apply(ops.BroadcastInDim(static(x), free_axes(x.ndim, axes)), best)

    def holds(value: Value, extremum: Value) -> Value:
        equal = b.apply(ops.Compare(CompareDir.Eq), value, extremum)
        return composed.logical("or", equal, value != value) if value.dtype.is_float else equal

    last = full(index, np.iinfo(index.dtype.value).max)
    place = b.apply(ops.ReduceMin(axes), select(holds(x, everywhere), index, last))
    earlier = b.apply(ops.Minimum(), place, spread(first, shape))
    return best, select(holds(spread(start, shape), best), earlier, place)
