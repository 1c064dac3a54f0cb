"""Rows of `STRATEGY` for elementwise ops, Compare, Select, Constant and Convert."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from fuzz.generate.config import directions
from fuzz.generate.growth import Estimate, Growth
from fuzz.generate.shapes import shape_of
from fuzz.generate.table import STRATEGY
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op
from tenferro_ref.program import Value


def below(size: float) -> Callable[[Estimate], bool]:
    """Prefers values of magnitudes up to `2**size`."""
    return lambda estimate: estimate.size <= size


def _positive(estimate: Estimate) -> bool:
    return estimate.positive


#: What operands a unary op prefers in ordinary programs, and the estimate of its result.
_UNARY: dict[type[Op], tuple[Callable[[Estimate], bool], Callable[[Estimate], Estimate]]] = {
    ops.Exp: (below(6), lambda x: Estimate(True, 1.45 * 2 ** min(x.size, 12))),
    ops.Expm1: (below(6), lambda x: Estimate(x.positive, 1.45 * 2 ** min(x.size, 12))),
    ops.Log: (_positive, lambda x: Estimate(False, 7)),
    ops.Log1p: (_positive, lambda x: Estimate(x.positive, 7)),
    ops.Sin: (below(20), lambda x: Estimate(False, 0)),
    ops.Cos: (below(20), lambda x: Estimate(False, 0)),
    ops.Tanh: (below(inf), lambda x: Estimate(x.positive, 0)),
    ops.Sqrt: (_positive, lambda x: Estimate(True, x.size / 2)),
    ops.Rsqrt: (_positive, lambda x: Estimate(True, 7)),
    ops.Conj: (below(inf), lambda x: x),
    ops.Negate: (below(inf), lambda x: Estimate(False, x.size)),
    ops.Abs: (below(inf), lambda x: Estimate(True, x.size)),
    ops.Sign: (below(inf), lambda x: Estimate(x.positive, 0)),
}


@STRATEGY.row(*_UNARY)
def _(g: Growth, op: type[Any]) -> Value:
    prefer, result = _UNARY[op]
    x = g.operand(g.dtypes_of(op), prefer=prefer)
    outside = (
        prefer is _positive and g.regime == "ordinary" and not (g.estimates[x.slot].positive or x.dtype.is_complex)
    )
    if outside and g.has(ops.Abs) and g.choices.chance(60):
        x = g.apply(ops.Abs(), x, estimate=Estimate(True, g.estimates[x.slot].size))
    return g.apply(op(), x, estimate=result(g.estimates[x.slot]))


#: Size of the result of a binary op, from the sizes of its operands.
_SIZE: dict[type[Op], Callable[[float, float], float]] = {
    ops.Add: lambda a, b: max(a, b) + 1,
    ops.Subtract: lambda a, b: max(a, b) + 1,
    ops.Multiply: lambda a, b: a + b,
    ops.Divide: lambda a, b: a + b + 4,
    ops.Pow: lambda a, b: 4 * a + 4,
    ops.Remainder: min,
}


def _scalar_dtype(g: Growth, op: type[Any], dtype: DType) -> DType:
    """The dtype of an operand of rank 0: that of the other one, or the real one of its precision beside complex numbers."""
    mixes = dtype.is_complex and op.mixes_complex and dtype.real in g.config.dtypes
    return dtype.real if mixes and g.choices.chance(40) else dtype


@STRATEGY.row(*_SIZE)
def _(g: Growth, op: type[Any]) -> Value:
    power = op is ops.Pow
    prefer = below(3 if power else 60)
    x = g.operand(g.dtypes_of(op), prefer=(lambda e: e.positive and e.size <= 6) if power else prefer)
    mode = g.choices.pick(8)
    y = g.like(x, prefer) if mode < 5 else g.rank_0(_scalar_dtype(g, op, x.dtype))
    if mode == 7:
        x, y = y, x
    a, b = g.estimates[x.slot], g.estimates[y.slot]
    positive = (a.positive and b.positive and op is not ops.Subtract) or (op is ops.Multiply and x is y)
    return g.apply(op(), x, y, estimate=Estimate(positive, _SIZE[op](a.size, b.size)))


@STRATEGY.row(ops.Maximum, ops.Minimum)
def _(g: Growth, op: type[Any]) -> Value:
    x = g.operand(g.dtypes_of(op))
    y = g.like(x)
    a, b = g.estimates[x.slot], g.estimates[y.slot]
    return g.apply(op(), x, y, estimate=Estimate(a.positive and b.positive, max(a.size, b.size)))


@STRATEGY.row(ops.Clamp)
def _(g: Growth, op: type[Any]) -> Value:
    x = g.operand(g.dtypes_of(op))
    lower, upper = g.like(x), g.like(x)
    if upper is lower and g.choices.chance(75):
        upper = g.fresh(x.dtype, shape_of(x))
    return g.apply(op(), x, lower, upper)


def compare(g: Growth, x: Value, y: Value) -> Value:
    """Compare two values of one type in any direction that their dtype has."""
    direction = g.choices.choose(directions(x.dtype, g.policy))
    return g.apply(ops.Compare(direction), x, y, estimate=Estimate(True, 0))


@STRATEGY.row(ops.Compare)
def _(g: Growth, op: type[Any]) -> Value:
    bools = g.choices.chance(8)
    x = g.operand([d for d in g.config.dtypes if (d is DType.Bool) is bools] or g.config.dtypes)
    return compare(g, x, g.like(x))


@STRATEGY.row(ops.Select)
def _(g: Growth, op: type[Any]) -> Value:
    x = g.operand(g.config.dtypes)
    y = g.like(x)
    return g.apply(op(), _predicate(g, x, y), x, y)


def _predicate(g: Growth, x: Value, y: Value) -> Value:
    """A Bool of the shape of `x`, made by comparing `x` with `y` if the program has none."""
    shape = shape_of(x)
    known = any(v.dtype is DType.Bool and v.shape == shape for v in g.pool)
    if not known and g.has(ops.Compare) and g.choices.pick(4) < 3:
        return compare(g, x, y)
    return g.typed(DType.Bool, shape)


@STRATEGY.row(ops.Constant)
def _(g: Growth, op: type[Any]) -> Value:
    return g.constant(g.dtype(g.config.dtypes))


@STRATEGY.row(ops.Convert)
def _(g: Growth, op: type[Any]) -> Value:
    return g.convert(g.operand(g.dtypes_of(op)), g.choices.choose(g.config.dtypes))
