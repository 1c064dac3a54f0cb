"""The row of reductions, and what is left open where an initial value stands among the elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op, free_axes
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import bodies
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.composed import select, spread, static
from tenferro_ref.stablehlo.loader.orders import either
from tenferro_ref.stablehlo.loader.picking import folds, left_open, picking
from tenferro_ref.stablehlo.loader.regions import fold_tree
from tenferro_ref.stablehlo.loader.tracer import ROWS, Tracer

_REDUCE: dict[str, Callable[[tuple[int, ...]], Op]] = {
    "add": ops.ReduceSum, "multiply": ops.ReduceProd, "maximum": ops.ReduceMax, "minimum": ops.ReduceMin,
}  # fmt: skip


def identity(name: str, dtype: DType) -> np.generic | None:
    """The value that changes nothing; None for extrema of complex numbers, and for sums in F8E8M0FNU, which has no zero."""
    if name in ("add", "multiply"):
        value = dtype.numpy.type(name == "multiply")
        return value if value == (name == "multiply") else None
    return None if dtype.is_complex else dtype.numpy.type(dtype.extremes[name == "minimum"])


@dataclass(frozen=True)
class Alone:
    """What there is beside initial values where some stand among the elements: in a padded window, or where nothing is selected.

    Attributes
    ----------
    line
        The array with another value, given, where an initial value stands; None: there is none among its elements.
    there
        Where the result has an element that is not one, in its shape.
    """

    line: Callable[[int, Value], Value] | None
    there: Value

    def of(self, i: int, x: Value, none: Value | None) -> Value:
        return x if self.line is None or none is None else self.line(i, none)


def _folded(
    b: Tracer, op: Operation, name: str, i: int, x: Value, init: Value, axes: tuple[int, ...], alone: Alone | None
) -> Value:
    if name in ("and", "or"):
        name = {"and": "minimum", "or": "maximum"}[name]
    none = identity(name, x.dtype)
    fold = _REDUCE[name](axes)
    signed = name == "add" and not (x.dtype.is_int or x.dtype is DType.Bool)
    # -0 changes no number that it is added to; +0 makes +0 of -0
    neutral = None if none is None else b.array(np.asarray(np.negative(none) if signed else none))
    if none is not None and init is b.array(np.asarray(none)):
        return _from_zero(b, i, x, init, axes, alone, neutral) if signed else b.apply(fold, x)
    if not prod(static(x)[a] for a in axes):
        return spread(init, tuple(static(x)[a] for a in free_axes(x.ndim, axes)))
    if signed and init is neutral:
        return b.apply(ops.Repeated("add", 1), b.apply(fold, x), _with_minus_zero(b, x, axes))
    bare = x if alone is None else alone.of(i, x, neutral)
    if name in ("add", "multiply"):
        return _seeded(b, op, name, x, bare, init, axes, alone)
    reduced, never = b.apply(fold, x), b.apply(fold, bare)
    once = b.apply(bodies.OPS[name], spread(init, static(reduced)), reduced)
    return b.apply(ops.Repeated(name, 1), once, _where_there(never, init, alone))


def _from_zero(
    b: Tracer, i: int, x: Value, init: Value, axes: tuple[int, ...], alone: Alone | None, neutral: Value | None
) -> Value:
    """A sum with the initial value +0, which makes +0 of -0 along no axis, too, where the engine's is its operand; padding may be left out."""
    if not axes:
        return b.apply(ops.ReduceSum((x.ndim,)), last_axis(b, x, axes))
    total = b.apply(ops.ReduceSum(axes), x)
    if alone is None or alone.line is None:
        return total
    of_elements = _with_minus_zero(b, alone.of(i, x, neutral), axes)
    return b.apply(ops.Repeated("add", 1), total, _where_there(of_elements, init, alone))


def _with_minus_zero(b: Tracer, x: Value, axes: tuple[int, ...]) -> Value:
    """The sum, or -0 in place of a zero: from an initial value of -0, terms that are all -0 add up to -0; the engine starts from +0."""
    return -b.apply(ops.ReduceSum(axes), -x)


def _where_there(never: Value, init: Value, alone: Alone | None) -> Value:
    return never if alone is None else select(alone.there, never, spread(init, static(never)))


def _seeded(
    b: Tracer, op: Operation, name: str, x: Value, bare: Value, init: Value, axes: tuple[int, ...], alone: Alone | None
) -> Value:
    """A sum or product with an initial value that is not the identity: one term more, in any place. StableHLO leaves open how often it is one.

    XLA:CPU makes large reductions in stages, each of which begins with it, and leaves it out of reductions of one element; the
    interpreter has one for each update of a `select_and_scatter`, and one more.
    """
    line, alone_line, last = last_axis(b, x, axes), last_axis(b, bare, axes), x.ndim - len(axes)
    shape, count = static(line)[:-1], static(line)[-1]

    def of_terms(k: int, terms: Value = alone_line) -> Value:
        return b.apply(ops.Concatenate(last), terms, spread(init, (*shape, k))) if k else terms

    def with_terms(k: int, terms: Value = alone_line) -> Value:
        return b.apply(_REDUCE[name]((last,)), of_terms(k, terms))

    once = with_terms(1, line)
    never, most = _where_there(with_terms(0), init, alone), count + 1
    repeated = ops.Repeated(name, most)
    if x.dtype.is_int:
        return b.apply(repeated, once, never, spread(init, shape))
    if x.dtype is DType.Bool:  # `or` and `and` take a term once or often alike
        return b.apply(repeated, once, never)
    if x.dtype.is_complex and name == "multiply" and count > 1:
        raise op.refusal("how often the initial value of a complex product enters is not said")
    if name == "add":
        from_minus, of_elements = (_with_minus_zero(b, terms, (last,)) for terms in (of_terms(1, line), alone_line))
        return b.apply(repeated, once, never, with_terms(most), from_minus, _where_there(of_elements, init, alone))
    # powers alternate in sign; without what is not one of the elements, an initial value may be the only one
    ways = {2, count, most} if alone is None else {1, 2, count, most}
    return b.apply(repeated, once, never, *map(with_terms, sorted(ways)))


@ROWS.row("reduce")
def _reduce(b: Tracer, op: Operation, *operands: Value) -> Sequence[Value]:
    count = len(operands) // 2
    arrays, inits, axes = operands[:count], operands[count:], op.axes("dimensions")
    return reduced(b, op, arrays, inits, axes)


def reduced(
    b: Tracer,
    op: Operation,
    arrays: Sequence[Value],
    inits: Sequence[Value],
    axes: tuple[int, ...],
    region: int = 0,
    alone: Alone | None = None,
) -> Sequence[Value]:
    """The arrays reduced over some axes by a body of `op`; reductions of the engine hold for every order.

    Parameters
    ----------
    alone
        Where initial values stand among the elements.

    Raises
    ------
    UnsupportedOp
        The body is none of theirs and rounds, or cannot be applied to arrays.
    """
    count, found = len(arrays), bodies.results(op, region)
    if found is not None:
        names = [bodies.fold(expression, i, count + i) for i, expression in enumerate(found)]
        known = [_has_reduction(name, x) for name, x in zip(names, arrays, strict=True)]
        if all(known) or folds(found):  # each result for itself
            others = arrays if all(known) else _by_tree(b, op, arrays, inits, axes, region, alone)
            each = enumerate(zip(known, names, arrays, inits, others, strict=True))
            return [
                _folded(b, op, str(name), i, x, init, axes, alone) if here else other
                for i, (here, name, x, init, other) in each
            ]
    return _by_tree(b, op, arrays, inits, axes, region, alone)


def _by_tree(
    b: Tracer,
    op: Operation,
    arrays: Sequence[Value],
    inits: Sequence[Value],
    axes: tuple[int, ...],
    region: int,
    alone: Alone | None,
) -> Sequence[Value]:
    """The same by a body of no reduction of the engine's, with what other trees may give."""
    lines, elements = [last_axis(b, x, axes) for x in arrays], prod(static(arrays[0])[a] for a in axes)
    ways = zip(*fold_tree(b, op, lines, inits, region), inits, strict=True)
    how = picking(op, len(arrays), region, several=elements > 1)
    if not elements:
        return [once for once, *_ in ways]
    made = [
        b.apply(ops.Repeated("", 1), once, _where_there(never, init, alone), behind)
        for once, never, behind, init in ways
    ]
    if how is None:
        return made
    any_, where = left_open(b, op, how, lines, inits, region)
    return made if where is None else [select(where, either(b, v, a), v) for v, a in zip(made, any_, strict=True)]


def _has_reduction(name: str | None, x: Value) -> bool:
    """Whether a fold of this name is a reduction of the engine's."""
    return name in (*_REDUCE,) or (name in ("and", "or") and x.dtype is DType.Bool)


def last_axis(b: Tracer, x: Value, axes: tuple[int, ...]) -> Value:
    """`x` with some axes as one, the last."""
    shape, kept = static(x), free_axes(x.ndim, axes)
    merged = (*(shape[a] for a in kept), prod(shape[a] for a in axes))
    return b.reshape(b.transpose(x, (*kept, *axes)), merged)
