"""Emission of the elementwise ops."""

from __future__ import annotations

from tenferro_ref.dtype import DType
from tenferro_ref.ops import (
    Abs,
    Add,
    Clamp,
    Compare,
    Conj,
    Cos,
    Divide,
    Exp,
    Expm1,
    Log,
    Log1p,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Op,
    Pow,
    Rsqrt,
    Select,
    Sign,
    Sin,
    Sqrt,
    Tanh,
)
from tenferro_ref.stablehlo.emit.table import EMIT, Row
from tenferro_ref.stablehlo.literals import Shape
from tenferro_ref.stablehlo.writer import Body, Value


def _unary(name: str) -> Row:
    return lambda op, body, shape, x: body.same(name, x)


for _op, _name in {
    Negate: "negate", Exp: "exponential", Log: "log", Sin: "sine", Cos: "cosine", Tanh: "tanh", Sqrt: "sqrt",
    Rsqrt: "rsqrt", Expm1: "exponential_minus_one", Log1p: "log_plus_one",
}.items():  # fmt: skip
    EMIT[_op] = _unary(_name)


def _binary(name: str) -> Row:
    def row(op: Op, body: Body, shape: Shape, x: Value, y: Value) -> Value:
        wide = y.dtype if y.dtype.is_complex else x.dtype
        return body.same(name, *(_beside(body, v, wide, shape) for v in (x, y)))

    return row


def _beside(body: Body, x: Value, dtype: DType, shape: Shape) -> Value:
    """A rank-0 operand takes the dtype and shape of the one beside it: StableHLO's binary ops want equal types."""
    if x.dtype is not dtype:
        x = body.convert(x, dtype)
    return body.broadcast(x, shape) if x.rank < len(shape) else x


EMIT[Add] = _binary("add")
EMIT[Multiply] = _binary("multiply")
EMIT[Divide] = _binary("divide")
EMIT[Pow] = _binary("power")


@EMIT.row(Maximum, Minimum)
def _(op: Op, body: Body, shape: Shape, x: Value, y: Value) -> Value:
    return body.same(op.name.lower(), x, y)


@EMIT.row(Abs)
def _(op: Op, body: Body, shape: Shape, x: Value) -> Value:
    return body.call("abs", [x], x.dtype.real, shape) if x.dtype.is_complex else body.same("abs", x)


@EMIT.row(Conj)
def _(op: Op, body: Body, shape: Shape, x: Value) -> Value:
    if not x.dtype.is_complex:
        return x
    imag = body.same("negate", body.call("imag", [x], x.dtype.real, shape))
    return body.call("complex", [body.real(x), imag], x.dtype, shape)


@EMIT.row(Sign)
def _(op: Op, body: Body, shape: Shape, x: Value) -> Value:
    sign = body.same("sign", x)
    if not x.dtype.is_float:
        return sign
    # StableHLO keeps -0, the engine gives +0; adding 0 would be simplified away
    zero = body.filled(0, x.dtype, shape)
    return body.select(body.compare("EQ", sign, zero), zero, sign)


@EMIT.row(Compare)
def _(op: Compare, body: Body, shape: Shape, x: Value, y: Value) -> Value:
    return body.compare(op.dir.name.upper(), x, y)


@EMIT.row(Select)
def _(op: Op, body: Body, shape: Shape, pred: Value, on_true: Value, on_false: Value) -> Value:
    return body.select(pred, on_true, on_false)


@EMIT.row(Clamp)
def _(op: Op, body: Body, shape: Shape, x: Value, lower: Value, upper: Value) -> Value:
    return body.same("clamp", lower, x, upper)
