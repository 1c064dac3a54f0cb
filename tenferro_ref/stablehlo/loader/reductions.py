"""Rows of contraction, reductions, and what moves windows over an array (a Gather, then a reduction or contraction)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import CompareDir, Op, free_axes
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import bodies, composed
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.composed import full, select, spread, static
from tenferro_ref.stablehlo.loader.regions import fold_tree
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


def _folded(
    b: Tracer, op: Operation, name: str, x: Value, init: Value, axes: tuple[int, ...], padded: bool = False
) -> Value:
    if name in ("and", "or"):
        name = {"and": "minimum", "or": "maximum"}[name]
    identity = _identity(name, x.dtype)
    same = [] if identity is None else [np.asarray(identity)]
    if name == "add" and x.dtype is not DType.Bool:
        same += [np.negative(zero) for zero in same]
    if any(init is b.array(value) for value in same):
        return b.apply(_REDUCE[name](axes), x)
    if name in ("add", "multiply"):
        return _seeded(b, op, name, x, init, axes, padded)
    reduced = b.apply(_REDUCE[name](axes), x)
    return b.apply(bodies.OPS[name], spread(init, static(reduced)), reduced)


def _seeded(b: Tracer, op: Operation, name: str, x: Value, init: Value, axes: tuple[int, ...], padded: bool) -> Value:
    """A sum or product with an initial value that is not the identity: one term more, in any place, once or as often as there are
    elements. XLA:CPU makes large reductions in stages, each of which begins with it. It leaves out what is padded of a window, which StableHLO
    fills with the initial value.
    """
    line, last = last_axis(b, x, axes), x.ndim - len(axes)
    shape, count = static(line)[:-1], static(line)[-1] + padded

    def with_terms(k: int) -> Value:
        terms = b.apply(ops.Concatenate(last), line, spread(init, (*shape, k)))
        return b.apply(_REDUCE[name]((last,)), terms)

    result = with_terms(1)
    if count < 2 or x.dtype is DType.Bool:  # `or` and `and` take a term once or often alike
        return result
    repeated = ops.Repeated(name, count)
    if result.dtype.is_int:
        return b.apply(repeated, result, spread(init, shape))
    if result.dtype.is_complex and name == "multiply":
        raise op.refusal("how often the initial value of a complex product enters is not said")
    for k in (count,) if name == "add" else (2, count - 1, count):  # powers alternate in sign
        result = b.apply(repeated, result, with_terms(k))
    return result


@ROWS.row("reduce")
def _reduce(b: Tracer, op: Operation, *operands: Value) -> Sequence[Value]:
    count = len(operands) // 2
    arrays, inits, axes = operands[:count], operands[count:], op.axes("dimensions")
    return reduced(b, op, arrays, inits, axes)


def folds(op: Operation, count: int, region: int = 0) -> list[str | None]:
    """The names of the operations that a body joins each of `count` arrays by; None where it does not join them one by one."""
    found = bodies.results(op, region)
    return [None] * count if found is None else [bodies.fold(e, i, count + i) for i, e in enumerate(found)]


def filling(b: Tracer, name: str | None, init: Value) -> Value:
    """What changes nothing where a window is padded, if that is not the initial value."""
    dtype = init.dtype
    if name not in ("add", "multiply") or dtype is DType.Bool:
        return init
    identity = np.asarray(_identity(name, dtype))
    both = (identity, np.negative(identity)) if name == "add" else (identity,)
    return init if any(init is b.array(value) for value in both) else b.array(both[-1])


def reduced(
    b: Tracer,
    op: Operation,
    arrays: Sequence[Value],
    inits: Sequence[Value],
    axes: tuple[int, ...],
    region: int = 0,
    padded: bool = False,
) -> Sequence[Value]:
    """The arrays reduced over some axes by a body of `op`; reductions of the engine hold for every order.

    Parameters
    ----------
    padded
        Whether the arrays are windows with padding, which `filling` gave.

    Raises
    ------
    UnsupportedOp
        The body is none of theirs and rounds, or cannot be applied to arrays.
    """
    count, found = len(arrays), bodies.results(op, region)
    if found is not None:
        names = folds(op, count, region)
        if all(has_reduction(name, x) for name, x in zip(names, arrays, strict=True)):
            each = zip(names, arrays, inits, strict=True)
            return [_folded(b, op, str(name), x, init, axes, padded) for name, x, init in each]
        name = bodies.extremum_with_index(found)
        if name is not None and arrays[1].dtype.kind == "int" and region == 0:
            return _extremum_with_index(b, op, name, arrays, inits, axes)
    return fold_tree(b, op, [last_axis(b, x, axes) for x in arrays], inits, region)


def has_reduction(name: str | None, x: Value) -> bool:
    """Whether a fold of this name is a reduction of the engine's."""
    return name in (*_REDUCE,) or (name in ("and", "or") and x.dtype is DType.Bool)


def last_axis(b: Tracer, x: Value, axes: tuple[int, ...]) -> Value:
    """`x` with some axes as one, the last."""
    shape, kept = static(x), free_axes(x.ndim, axes)
    merged = (*(shape[a] for a in kept), prod(shape[a] for a in axes))
    return b.reshape(b.transpose(x, (*kept, *axes)), merged)


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
