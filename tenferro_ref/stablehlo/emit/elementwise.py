"""Emission of the elementwise ops."""

from __future__ import annotations

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op
from tenferro_ref.stablehlo.emit.table import EMIT, Row
from tenferro_ref.stablehlo.literals import Shape
from tenferro_ref.stablehlo.writer import Body, SsaValue


def _unary(name: str) -> Row:
    return lambda op, body, shape, x: body.same(name, x)


for _op, _name in {
    ops.Negate: "negate", ops.Exp: "exponential", ops.Log: "log", ops.Sin: "sine", ops.Cos: "cosine", ops.Tanh: "tanh", ops.Sqrt: "sqrt",
    ops.Rsqrt: "rsqrt", ops.Expm1: "exponential_minus_one", ops.Log1p: "log_plus_one",
}.items():  # fmt: skip
    EMIT[_op] = _unary(_name)


def _binary(name: str) -> Row:
    def row(op: Op, body: Body, shape: Shape, x: SsaValue, y: SsaValue) -> SsaValue:
        wide = y.dtype if y.dtype.is_complex else x.dtype
        return body.same(name, *(_beside(body, v, wide, shape) for v in (x, y)))

    return row


def _beside(body: Body, x: SsaValue, dtype: DType, shape: Shape) -> SsaValue:
    """A rank-0 operand takes the dtype and shape of the one beside it: StableHLO's binary ops want equal types."""
    if x.dtype is not dtype:
        x = body.convert(x, dtype)
    return body.broadcast(x, shape) if x.rank < len(shape) else x


for _arithmetic, _name in {
    ops.Add: "add", ops.Subtract: "subtract", ops.Multiply: "multiply", ops.Divide: "divide", ops.Pow: "power",
}.items():  # fmt: skip
    EMIT[_arithmetic] = _binary(_name)


@EMIT.row(ops.Maximum, ops.Minimum)
def _(op: Op, body: Body, shape: Shape, x: SsaValue, y: SsaValue) -> SsaValue:
    return body.same(op.name.lower(), x, y)


@EMIT.row(ops.Abs)
def _(op: Op, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    return body.call("abs", [x], x.dtype.real, shape) if x.dtype.is_complex else body.same("abs", x)


@EMIT.row(ops.Conj)
def _(op: Op, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    if not x.dtype.is_complex:
        return x
    imag = body.same("negate", body.call("imag", [x], x.dtype.real, shape))
    return body.call("complex", [body.real(x), imag], x.dtype, shape)


@EMIT.row(ops.Sign)
def _(op: Op, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    sign = body.same("sign", x)
    if not x.dtype.is_float:
        return sign
    # StableHLO keeps -0, the engine gives +0; adding 0 would be simplified away
    zero = body.filled(0, x.dtype, shape)
    return body.select(body.compare("EQ", sign, zero), zero, sign)


@EMIT.row(ops.Compare)
def _(op: ops.Compare, body: Body, shape: Shape, x: SsaValue, y: SsaValue) -> SsaValue:
    return body.compare(op.dir.name.upper(), x, y)


@EMIT.row(ops.Select)
def _(op: Op, body: Body, shape: Shape, pred: SsaValue, on_true: SsaValue, on_false: SsaValue) -> SsaValue:
    return body.select(pred, on_true, on_false)


@EMIT.row(ops.Clamp)
def _(op: Op, body: Body, shape: Shape, x: SsaValue, lower: SsaValue, upper: SsaValue) -> SsaValue:
    return body.same("clamp", lower, x, upper)
