"""Derivative rules of ops that move elements, of reductions and of DotGeneral (SEMANTICS B.2)."""

from __future__ import annotations

from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.autodiff.elementwise import T, X, not_linear
from tenferro_ref.autodiff.errors import UnsupportedMetadata
from tenferro_ref.autodiff.rules import (
    JVP,
    TRANSPOSE,
    Cotangents,
    Operand,
    Optional,
    conj,
    constant_extent,
    expanded,
    part,
    summed,
    total,
    zeros,
)
from tenferro_ref.dims import equal_extents
from tenferro_ref.ops.contraction import free_axes
from tenferro_ref.program import Value


@JVP.row(
    *(ops.Transpose, ops.Reshape, ops.BroadcastInDim, ops.ExtractDiag, ops.EmbedDiag, ops.Tril, ops.Triu),
    *(ops.Reverse, ops.Slice, ops.Pad, ops.ReduceSum),
    *(ops.Gather, ops.GatherDynamicSliceSizes, ops.DynamicSlice, ops.DynamicTruncate, ops.PadToMatch),
)
def _(op: ops.Op, x: X, y: X, t: T) -> Optional:
    """Linear in operand 0: the same op on its tangent, the other operands as they are."""
    return None if t[0] is None else t[0].builder.apply(op, t[0], *x[1:])


@JVP.row(ops.ReduceSumSquares)
def _(op: ops.ReduceSumSquares, x: X, y: X, t: X) -> Optional:
    """The sum of 2 x t, the 2 as a sum (SEMANTICS A.1)."""
    product = x[0] * t[0]
    return (product + product).sum(op.axes)


@JVP.row(ops.ReduceProd)
def _(op: ops.ReduceProd, x: X, y: X, t: X) -> Optional:
    """`d(ab) = da b + a db`, for the two halves of each axis, their halves, and so on.

    For each element that is the product of the others, also where some are zero, and so are the derivatives of this one.
    """
    if any(x[0].shape[axis] == 0 for axis in op.axes):  # of nothing it is 1
        return None
    value, tangent = x[0], t[0]
    for axis in op.axes:
        value, tangent = _halved(op, value, tangent, axis)
    return tangent.reshape(y[0].shape)


def _halved(op: ops.ReduceProd, value: Value, tangent: Value, axis: int) -> tuple[Value, Value]:
    """A product along an axis and its tangent; the axis stays, with extent 1."""
    extent = constant_extent(op, value.shape[axis])
    while extent > 1:
        half = extent // 2
        (a, b), (da, db) = ((part(v, axis, 0, half), part(v, axis, half, 2 * half)) for v in (value, tangent))
        product, slope = a * b, da * b + a * db
        if extent % 2:
            join = ops.Concatenate(axis)
            product = value.builder.apply(join, product, part(value, axis, extent - 1, extent))
            slope = value.builder.apply(join, slope, part(tangent, axis, extent - 1, extent))
        value, tangent, extent = product, slope, half + extent % 2
    return value, tangent


@JVP.row(ops.ReduceMax, ops.ReduceMin)
def _(op: ops.ReduceMax | ops.ReduceMin, x: X, y: X, t: X) -> Optional:
    """The mean of the tangents of the elements that equal the result; 0/0 where that is NaN. Over no axis a copy."""
    if not op.axes:
        return t[0]
    ties = (x[0] == expanded(y[0], op.axes, x[0].type, [x[0]])).astype(x[0].dtype)
    count = expanded(ties.sum(op.axes), op.axes, x[0].type, [x[0]])
    return (ties / count * t[0]).sum(op.axes)


@JVP.row(ops.DotGeneral, ops.DotGeneralWithConj)
def _(op: ops.DotGeneral | ops.DotGeneralWithConj, x: X, y: X, t: T) -> Optional:
    apply = x[0].builder.apply
    return total(
        None if t[0] is None else apply(op, t[0], x[1]),
        None if t[1] is None else apply(op, x[0], t[1]),
    )


# --- transposes -------------------------------------------------------------------------------------------------------


@TRANSPOSE.row(ops.Transpose)
def _(op: ops.Transpose, x: tuple[Operand, ...], g: Value) -> Cotangents:
    return (g.transpose([op.perm.index(axis) for axis in range(len(op.perm))]),)


@TRANSPOSE.row(ops.Reverse, ops.Tril, ops.Triu)
def _(op: ops.Op, x: tuple[Operand, ...], g: Value) -> Cotangents:
    return (g.builder.apply(op, g),)


@TRANSPOSE.row(ops.Reshape)
def _(op: ops.Reshape, x: tuple[Operand, ...], g: Value) -> Cotangents:
    return (g.reshape(x[0].type.shape), *[None] * (len(x) - 1))


@TRANSPOSE.row(ops.BroadcastInDim)
def _(op: ops.BroadcastInDim, x: tuple[Operand, ...], g: Value) -> Cotangents:
    """Sum over the axes that were added or stretched, then the operand's order and shape."""
    type_ = x[0].type
    for extent, dim in zip(type_.shape, op.dims, strict=True):
        if not isinstance(extent, int) and equal_extents(extent, g.shape[dim]) is not True:
            raise UnsupportedMetadata(op=op.name, detail=f"{extent} may be 1, and stretched to {g.shape[dim]}")
    kept = [dim for axis, dim in enumerate(op.dims) if not (type_.shape[axis] == 1 and g.shape[dim] != 1)]
    value = summed(g, [axis for axis in range(g.ndim) if axis not in kept])
    order = [sorted(kept).index(dim) for dim in kept]
    if order != sorted(order):
        value = value.transpose(order)
    return (value if value.shape == type_.shape else value.reshape(type_.shape), *[None] * (len(x) - 1))


@TRANSPOSE.row(ops.ExtractDiag)
def _(op: ops.ExtractDiag, x: tuple[Operand, ...], g: Value) -> Cotangents:
    a, b = op.axis_a, op.axis_b
    square = g.builder.apply(ops.EmbedDiag(a if a < b else a - 1, b), g)
    if square.shape == x[0].type.shape:
        return (square,)
    whole = zeros(square.builder, x[0].type)
    for axis in (a, b):
        square = tn.pad_to_match(square, whole, axis)
    return (square,)


@TRANSPOSE.row(ops.EmbedDiag)
def _(op: ops.EmbedDiag, x: tuple[Operand, ...], g: Value) -> Cotangents:
    a, b = op.axis_a, op.axis_b
    value = g.builder.apply(ops.ExtractDiag(a + 1 if b <= a else a, b), g)
    return (value,)


@TRANSPOSE.row(ops.ReduceSum)
def _(op: ops.ReduceSum, x: tuple[Operand, ...], g: Value) -> Cotangents:
    return (expanded(g, op.axes, x[0].type),)


@TRANSPOSE.row(ops.DotGeneral)
def _(op: ops.DotGeneral, x: tuple[Operand, ...], g: Value) -> Cotangents:
    lhs, rhs = x
    lc, rc, lb, rb = op.lhs_contracting_dims, op.rhs_contracting_dims, op.lhs_batch_dims, op.rhs_batch_dims
    lhs_free, rhs_free = free_axes(lhs.type.rank, lc, lb), free_axes(rhs.type.rank, rc, rb)
    n, tail = len(lhs_free), tuple(range(len(lhs_free) + len(rhs_free), g.ndim))
    apply = g.builder.apply
    if isinstance(rhs, Value):
        # contracted with rhs's free axes; what is left: lhs free, rhs contracting in ascending order, batch
        dot = ops.DotGeneral(tuple(range(n, n + len(rhs_free))), rhs_free, tail, rb)
        order = (*lhs_free, *(lc[rc.index(axis)] for axis in sorted(rc)), *lb)
        return _ordered(apply(dot, g, conj(rhs)), order), None
    if isinstance(lhs, Value):
        dot = ops.DotGeneral(lhs_free, tuple(range(n)), lb, tail)
        order = (*(rc[lc.index(axis)] for axis in sorted(lc)), *rhs_free, *rb)
        return None, _ordered(apply(dot, conj(lhs), g), order)
    raise not_linear(op)


def _ordered(value: Value, axes: tuple[int, ...]) -> Value:
    """`value`, whose axis i is axis `axes[i]` of the result."""
    return value if axes == tuple(range(len(axes))) else value.transpose([axes.index(i) for i in range(len(axes))])


@TRANSPOSE.row(ops.DotGeneralWithConj)
def _(op: ops.DotGeneralWithConj, x: tuple[Operand, ...], g: Value) -> Cotangents:
    """Conjugation is its own adjoint."""
    operands = op.conjugated(lambda v: conj(v) if isinstance(v, Value) else v, *x)
    return op.conjugated(lambda v: None if v is None else conj(v), *TRANSPOSE[ops.DotGeneral](op.plain, operands, g))


TRANSPOSE.unsupported("not a linear function", ops.ReduceSumSquares, ops.ReduceProd, ops.ReduceMax, ops.ReduceMin)
