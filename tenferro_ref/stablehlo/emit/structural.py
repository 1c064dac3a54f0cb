"""Emission of Constant and of the structural ops."""

from __future__ import annotations

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.emit.indexing import gather
from tenferro_ref.stablehlo.emit.table import EMIT
from tenferro_ref.stablehlo.literals import Shape
from tenferro_ref.stablehlo.writer import Body, SsaValue


@EMIT.row(ops.Constant)
def _(op: ops.Constant, body: Body, shape: Shape) -> SsaValue:
    return body.constant(op.value, op.dtype)


@EMIT.row(ops.Convert)
def _(op: ops.Convert, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    if not x.dtype.is_complex or op.to.is_complex:
        return body.convert(x, op.to)
    if op.to is DType.Bool:  # either part nonzero
        return body.compare("NE", x, body.filled(0, x.dtype, shape))
    real = body.real(x)  # StableHLO leaves complex to real open
    return real if real.dtype is op.to else body.convert(real, op.to)


@EMIT.row(ops.Transpose)
def _(op: ops.Transpose, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    return body.transpose(x, op.perm)


@EMIT.row(ops.Reshape)
def _(op: ops.Reshape, body: Body, shape: Shape, x: SsaValue, *providers: SsaValue) -> SsaValue:
    return body.reshape_column_major(x, shape)


@EMIT.row(ops.BroadcastInDim)
def _(op: ops.BroadcastInDim, body: Body, shape: Shape, x: SsaValue, *providers: SsaValue) -> SsaValue:
    return body.broadcast(x, shape, op.dims)


# --- diagonals and triangles: elements are picked, never added, so that -0 and NaN payloads survive -------------------


@EMIT.row(ops.ExtractDiag)
def _(op: ops.ExtractDiag, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    at = op.axis_a - (op.axis_a > op.axis_b)
    if shape[at] == 0:  # nothing to gather, and of an axis of extent 0 no slice of size 1
        return body.filled(0, x.dtype, shape)
    pair = sorted((op.axis_a, op.axis_b))
    positions = body.iota((shape[at], 2), 0)  # [[0, 0], [1, 1], ...]
    sizes = [1 if axis in pair else extent for axis, extent in enumerate(x.shape)]
    offsets = [axis for axis in range(len(shape)) if axis != at]
    return gather(body, x, positions, offsets, pair, pair, 1, sizes, shape)


@EMIT.row(ops.EmbedDiag)
def _(op: ops.EmbedDiag, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    source = op.axis_a + (op.axis_a >= op.axis_b)
    square = (x.shape[op.axis_a],) * 2
    diagonal = body.compare("EQ", body.iota(square, 0), body.iota(square, 1))
    wide = body.broadcast(x, shape, [axis for axis in range(len(shape)) if axis != op.axis_b])
    return _masked(body, diagonal, (source, op.axis_b), wide)


@EMIT.row(ops.Tril, ops.Triu)
def _(op: ops.Tril | ops.Triu, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    m, n = shape[:2]
    k = max(-m, min(n, op.k))  # beyond these nothing changes, and an extreme k is no I64
    row, col = body.iota((m, n), 0), body.iota((m, n), 1)
    if k:
        row = body.same("add", row, body.filled(k, DType.I64, (m, n)))
    return _masked(body, body.compare("GE" if isinstance(op, ops.Tril) else "LE", row, col), (0, 1), x)


def _masked(body: Body, mask: SsaValue, axes: tuple[int, int], x: SsaValue) -> SsaValue:
    """`x` where the mask over `axes` holds, zero elsewhere."""
    if x.rank > 2 or axes != (0, 1):
        mask = body.broadcast(mask, x.shape, axes)
    return body.select(mask, x, body.filled(0, x.dtype, x.shape))
