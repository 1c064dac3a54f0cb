"""Words for reductions and contractions."""

from __future__ import annotations

from typing import Any

from oracle.peers.front_end.table import WORDS, back
from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import TensorType, free_axes
from tenferro_ref.program import Value

_METHODS = {ops.ReduceSum: "sum", ops.ReduceProd: "prod", ops.ReduceMax: "max", ops.ReduceMin: "min"}


@WORDS.row(*_METHODS)
def _reduction(op: Any, result: TensorType, x: Value) -> Value:
    if isinstance(op, ops.ReduceSum) and _is_mean(op, x):
        return tn.mean(x, back(op.axes, x.ndim)).astype(x.dtype)
    if isinstance(op, ops.ReduceSum) and x.dtype is DType.I32 and op.axes and x.slot % 2:
        return _by_mean(op, x)
    method = getattr(x, _METHODS[type(op)])
    if op.axes == tuple(range(x.ndim)):
        total: Value = method()
    elif 0 in op.axes:
        total = method(op.axes, keepdims=True)[tuple(0 if a in op.axes else slice(None) for a in range(x.ndim))]
    else:
        total = method(back(op.axes, x.ndim))
    return total


def _is_mean(op: ops.ReduceSum, x: Value) -> bool:
    """Whether the sum is of one number, which is then the mean, and loses no bits by it; without axes a NaN does."""
    one = bool(op.axes) and all(x.shape[a] == 1 for a in op.axes)
    return one and x.dtype in (DType.F32, DType.F64, DType.I32)


def _by_mean(op: ops.ReduceSum, x: Value) -> Value:
    """The mean times the number of terms, which F64 holds but for a fraction of one, rounded; an I64 wraps as the sum does."""
    total = tn.mean(x, back(op.axes, x.ndim))
    for a in op.axes:
        total = total * tn.shape_of(x, a).astype(DType.F64)
    return (total + 0.5 * tn.sign(total)).astype(DType.I64).astype(DType.I32)


@WORDS.row(ops.DotGeneral, ops.DotGeneralWithConj)
def _contraction(op: ops.DotGeneral, result: TensorType, x: Value, y: Value) -> Value | None:
    """`@` where there is one contracted axis, and one free one on each side of a batch; `tensordot` without a batch."""
    if x.dtype is not y.dtype:
        return None
    left, right, batch = op.lhs_contracting_dims, op.rhs_contracting_dims, op.lhs_batch_dims
    if isinstance(op, ops.DotGeneralWithConj):
        pairs = zip((*left, *batch), (*right, *op.rhs_batch_dims), strict=True)
        if any(x.shape[a] != y.shape[b] for a, b in pairs):
            return None  # `@` and `tensordot` make a DotGeneral, which an error about extents would name
        if x.dtype.is_complex:
            x, y = op.conjugated(tn.conj, x, y)
    if not batch:
        if left == (x.ndim - 1,) and right == (max(y.ndim - 2, 0),) and (y.ndim <= 2 or x.ndim == 1):
            return x @ y
        if left == (1,) and right == (y.ndim - 2,) and x.ndim == 2 and y.ndim > 2:
            return tn.moveaxis(x @ y, -2, 0)
        n = len(left)
        ends = left == tuple(range(x.ndim - n, x.ndim)) and right == tuple(range(n))
        return tn.tensordot(x, y, n if ends else (back(left, x.ndim), back(right, y.ndim)))
    rows, columns = free_axes(x.ndim, left, batch), free_axes(y.ndim, right, op.rhs_batch_dims)
    if not len(left) == len(rows) == len(columns) == 1:
        return None
    if [x.shape[a] for a in batch] != [y.shape[a] for a in op.rhs_batch_dims]:
        return None
    n = len(batch)
    product = x.transpose(*batch, *rows, *left) @ y.transpose(*op.rhs_batch_dims, *right, *columns)
    return product.transpose(n, n + 1, *range(n))
