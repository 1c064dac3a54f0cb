"""Emission of the ops of the reference alone: of most one operation of StableHLO or CHLO each."""

from __future__ import annotations

from tenferro_ref import ops
from tenferro_ref.stablehlo.emit.table import EMIT
from tenferro_ref.stablehlo.literals import Shape
from tenferro_ref.stablehlo.writer import Body, SsaValue

#: Functions that are operations of StableHLO itself; the others are CHLO's.
_OWN = frozenset({"cbrt", "tan", "atan2"})


@EMIT.row(ops.Special, ops.Special2)
def _(op: ops.Special | ops.Special2, body: Body, shape: Shape, *operands: SsaValue) -> SsaValue:
    if op.function in _OWN:
        return body.same(op.function, *operands)
    return body.generic(op.function, operands, "", operands[0].dtype, shape, dialect="chlo")


@EMIT.row(ops.Bits, ops.Whole)
def _(op: ops.Bits | ops.Whole, body: Body, shape: Shape, *operands: SsaValue) -> SsaValue:
    return body.same(op.function, *operands)


@EMIT.row(ops.Imag)
def _(op: ops.Imag, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    return body.call("imag", [x], x.dtype.real, shape)


@EMIT.row(ops.Complex)
def _(op: ops.Complex, body: Body, shape: Shape, re: SsaValue, im: SsaValue) -> SsaValue:
    return body.call("complex", [re, im], re.dtype.complex, shape)


@EMIT.row(ops.Bitcast)
def _(op: ops.Bitcast, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    return body.call("bitcast_convert", [x], op.to, shape)


@EMIT.row(ops.ReducePrecision)
def _(op: ops.ReducePrecision, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    return body.line(
        f"reduce_precision {x.name}, format = e{op.exponent_bits}m{op.mantissa_bits} : {x.type}", x.dtype, shape
    )


@EMIT.row(ops.Repeated)
def _(op: ops.Repeated, body: Body, shape: Shape, *operands: SsaValue) -> SsaValue:
    """One of the ways that are left open."""
    return operands[0]
