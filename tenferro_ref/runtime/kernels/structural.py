"""Kernels of the structural ops and of Constant (SEMANTICS 1.4, 2.2 and 2.6)."""

from __future__ import annotations

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dims import DimExpr, evaluate
from tenferro_ref.dtype import DType
from tenferro_ref.narrow import narrowed, sticky
from tenferro_ref.runtime.kernels.base import KERNELS, Values
from tenferro_ref.tensor import column_major


@KERNELS.row(ops.Constant)
def _constant(op: ops.Constant) -> Values:
    return np.asarray(op.value)


@KERNELS.row(ops.Transpose)
def _transpose(op: ops.Transpose, x: Values) -> Values:
    return column_major(x.transpose(op.perm))


def target_shape(shape: tuple[DimExpr, ...], arrays: tuple[Values, ...]) -> tuple[int, ...]:
    """`shape` with its dim expressions evaluated on the operands at hand."""
    shapes = [a.shape for a in arrays]
    return tuple(e if isinstance(e, int) else evaluate(e, shapes) for e in shape)


@KERNELS.row(ops.Reshape)
def _reshape(op: ops.Reshape, *arrays: Values) -> Values:
    return arrays[0].reshape(target_shape(op.shape, arrays), order="F")


def aligned(op: ops.BroadcastInDim, x: Values) -> Values:
    """View of `x` with the axes of the result, those that `x` lacks having extent 1."""
    order = sorted(range(x.ndim), key=op.dims.__getitem__)
    return x.transpose(order)[(*(slice(None) if a in op.dims else np.newaxis for a in range(len(op.shape))), ...)]


@KERNELS.row(ops.BroadcastInDim)
def _broadcast_in_dim(op: ops.BroadcastInDim, *arrays: Values) -> Values:
    result = np.empty(target_shape(op.shape, arrays), arrays[0].dtype, order="F")
    result[...] = aligned(op, arrays[0])
    return result


def cast(x: Values, to: DType) -> Values:
    """The lossy cast: saturating with NaN -> 0 to integers, "nonzero" to Bool, the real part of complex to real."""
    of = DType.of(x)
    if of is to:
        return x
    if to is DType.Bool:
        return np.asarray(x != 0)
    if of.is_complex and not to.is_complex:
        x, of = x.real, of.real
    if to.is_narrow_float:
        return np.asfortranarray(narrowed(to, sticky(x) if of.is_int else x.astype(np.float64)))
    if of.is_narrow_float:
        x = x.astype(np.float64)
    elif of.is_int and of.bits < 8:
        x = x.astype(np.int64)
    if not (of.is_float and to.is_int):
        return np.asarray(x.astype(to.numpy, order="F"))
    # NumPy leaves out-of-range conversions to C, where they are undefined. The least integer and the one behind the
    # greatest are zero or powers of two, hence exact in every float dtype; the greatest is not. astype truncates toward zero.
    least, greatest = to.limits
    high, low = x >= float(greatest + 1), x <= float(least)
    inside = np.where(high | low | np.isnan(x), x.dtype.type(0), x)
    result = (inside.astype(np.int64) if to.bits < 8 else inside).astype(to.numpy, order="F")
    result[high] = greatest
    result[low] = least
    return result


@KERNELS.row(ops.Convert)
def _convert(op: ops.Convert, x: Values) -> Values:
    return cast(x, op.to)


@KERNELS.row(ops.ExtractDiag)
def _extract_diag(op: ops.ExtractDiag, x: Values) -> Values:
    diagonal = np.diagonal(x, 0, op.axis_a, op.axis_b)
    return column_major(np.moveaxis(diagonal, -1, op.axis_a - (op.axis_a > op.axis_b)))


@KERNELS.row(ops.EmbedDiag)
def _embed_diag(op: ops.EmbedDiag, x: Values) -> Values:
    extent = x.shape[op.axis_a]
    result = np.zeros((*x.shape[: op.axis_b], extent, *x.shape[op.axis_b :]), x.dtype, order="F")
    source = op.axis_a + (op.axis_a >= op.axis_b)
    if x.size == 0:
        return result
    i = np.arange(extent)
    np.moveaxis(result, (source, op.axis_b), (-2, -1))[..., i, i] = np.moveaxis(x, op.axis_a, -1)
    return result


@KERNELS.row(ops.Tril, ops.Triu)
def _triangle(op: ops.Tril | ops.Triu, x: Values) -> Values:
    if x.size == 0:
        return x
    m, n = x.shape[:2]
    k = max(-m, min(n, op.k))  # beyond these nothing changes, and an extreme k cannot overflow
    row, col = np.arange(m)[:, np.newaxis], np.arange(n)
    keep = row >= col - k if isinstance(op, ops.Tril) else row <= col - k
    return column_major(np.where(keep.reshape(m, n, *(1,) * (x.ndim - 2)), x, x.dtype.type(0)))
