"""Rows of elementwise and structural ops, and of the arrays that a module brings along.

What needs more than an op or two of the engine is in `composed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import CompareDir, Op
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import composed
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.composed import broadcast, select, spread, static
from tenferro_ref.stablehlo.loader.special import total_order
from tenferro_ref.stablehlo.loader.tracer import ROWS, Row, Tracer

# --- elementwise ------------------------------------------------------------------------------------------------------

_SAME: dict[str, Op] = {
    "abs": ops.Abs(), "add": ops.Add(), "cosine": ops.Cos(), "divide": ops.Divide(), "exponential": ops.Exp(),
    "exponential_minus_one": ops.Expm1(), "log": ops.Log(), "log_plus_one": ops.Log1p(), "maximum": ops.Maximum(), "minimum": ops.Minimum(),
    "multiply": ops.Multiply(), "negate": ops.Negate(), "power": ops.Pow(), "remainder": ops.Remainder(), "rsqrt": ops.Rsqrt(), "sine": ops.Sin(), "sqrt": ops.Sqrt(),
    "subtract": ops.Subtract(), "tanh": ops.Tanh(),
}  # fmt: skip
_COMPOSED: dict[str, Callable[..., Value]] = {
    "complex": composed.complex_,
    "imag": composed.imag, "is_finite": composed.is_finite, "logistic": composed.logistic, "real": composed.real,
    "sign": composed.sign,
}  # fmt: skip


def _applied(op: Op) -> Row:
    return lambda b, _, *operands: b.apply(op, *operands)


def _called(function: Callable[..., Value]) -> Row:
    return lambda b, _, *operands: function(*operands)


for _name, _op in _SAME.items():
    ROWS[_name] = _applied(_op)
for _name, _function in _COMPOSED.items():
    ROWS[_name] = _called(_function)


@ROWS.row(*ops.Whole.functions)
def _(b: Tracer, op: Operation, x: Value) -> Value:
    return b.apply(ops.Whole(op.name), x)


@ROWS.row("compare")
def _(b: Tracer, op: Operation, x: Value, y: Value) -> Value:
    if x.dtype.is_float and op.enum("compare_type") == "TOTALORDER":
        x, y = total_order(x), total_order(y)
    direction = op.enum("comparison_direction")
    if direction == "NE":
        return ~b.apply(ops.Compare(CompareDir.Eq), x, y)
    return b.apply(ops.Compare(CompareDir[direction.capitalize()]), x, y)


@ROWS.row("select")
def _(b: Tracer, op: Operation, pred: Value, on_true: Value, on_false: Value) -> Value:
    return select(pred if pred.ndim == on_true.ndim else spread(pred, static(on_true)), on_true, on_false)


@ROWS.row("clamp")
def _(b: Tracer, op: Operation, lower: Value, x: Value, upper: Value) -> Value:
    bounds = (v if v.ndim == x.ndim else spread(v, static(x)) for v in (lower, upper))
    return b.apply(ops.Clamp(), x, *bounds)


@ROWS.row("convert")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    to = op.result.dtype
    return (composed.real(x) if to is DType.Bool else x).astype(to)


@ROWS.row("optimization_barrier", "sdy.sharding_constraint")
def _(b: Tracer, op: Operation, *operands: Value) -> Sequence[Value]:
    return operands


# --- arrays that the module brings along ------------------------------------------------------------------------------


@ROWS.row("constant")
def _(b: Tracer, op: Operation) -> Value:
    return b.array(op.dense())


@ROWS.row("iota")
def _(b: Tracer, op: Operation) -> Value:
    return composed.iota(b, op.shape, op.attribute("iota_dimension"), op.result.dtype)


# --- structural -------------------------------------------------------------------------------------------------------


@ROWS.row("transpose")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    return b.transpose(x, op.axes("permutation"))


@ROWS.row("reshape")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    return b.reshape(x, op.shape)


@ROWS.row("broadcast_in_dim")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    return broadcast(x, op.shape, op.axes("broadcast_dimensions"))


@ROWS.row("reverse")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    return b.apply(ops.Reverse(op.axes("dimensions")), x)


@ROWS.row("concatenate")
def _(b: Tracer, op: Operation, *parts: Value) -> Value:
    return b.apply(ops.Concatenate(op.attribute("dimension")), *parts)


@ROWS.row("slice")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    return b.apply(ops.Slice(*map(op.axes, ("start_indices", "limit_indices", "strides"))), x)


@ROWS.row("pad")
def _(b: Tracer, op: Operation, x: Value, value: Value) -> Value:
    return composed.pad(x, value, *map(op.axes, ("edge_padding_low", "edge_padding_high", "interior_padding")))
