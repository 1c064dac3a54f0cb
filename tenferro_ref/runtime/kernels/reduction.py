"""Kernels of the reductions (SEMANTICS 2.3): highest axis first, each a left fold from the identity."""

from __future__ import annotations

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Policy
from tenferro_ref.runtime.kernels.base import KERNELS, PerPolicy, Values, bind, canonical
from tenferro_ref.runtime.kernels.elementwise import multiply
from tenferro_ref.tensor import column_major


def _fold(function: np.ufunc, identity: int, x: Values, axis: int) -> Values:
    """Left fold along one axis.

    NumPy's `reduce` adds whole slabs one after another, which is the fold, when the reduced axis is the slowest and the
    others have two elements or more between them; on a single line it sums pairwise, and there `accumulate` is the fold.
    """
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    start = x.dtype.type(identity)
    if x.size == 0:
        return np.full(shape, start, x.dtype, order="F")
    if x.dtype.kind == "c" and function is np.multiply:
        slices, product = np.moveaxis(x, axis, 0), np.full(shape, start, x.dtype, order="F")
        for values in slices:
            product = multiply(product, values, shape)
        return product
    if x.size == x.shape[axis]:
        line = np.concatenate((start.reshape(1), x.reshape(-1)))
        return np.asarray(function.accumulate(line, dtype=x.dtype)[-1]).reshape(shape)
    slabs = column_major(np.moveaxis(x, axis, -1))
    return column_major(function.reduce(slabs, axis=-1, dtype=x.dtype, initial=start))


def _sum_or_product(op: ops.ReduceSum | ops.ReduceProd, x: Values) -> Values:
    product = isinstance(op, ops.ReduceProd)
    if not op.axes:
        return x
    if x.dtype.kind == "b":
        return _bool(np.logical_and if product else np.logical_or, op.axes, x)
    function, identity = (np.multiply, 1) if product else (np.add, 0)
    if x.dtype.kind in "iu":  # wrapping arithmetic is associative
        return column_major(np.asarray(function.reduce(x, axis=op.axes, dtype=x.dtype)))
    for axis in sorted(op.axes, reverse=True):
        x = _fold(function, identity, x, axis)
    return canonical(x)


KERNELS[ops.ReduceSum] = KERNELS[ops.ReduceProd] = _sum_or_product


@KERNELS.row(ops.ReduceSumSquares)
@PerPolicy
def _sum_of_squares(op: ops.ReduceSumSquares, policy: Policy, x: Values) -> Values:
    return bind(ops.ReduceSum(op.axes), policy)(bind(ops.Multiply(), policy)(x, x))


@KERNELS.row(ops.ReduceMax, ops.ReduceMin)
def _extremum(op: ops.ReduceMax | ops.ReduceMin, x: Values) -> Values:
    largest = isinstance(op, ops.ReduceMax)
    if not op.axes:
        return x
    if x.dtype.kind == "b":
        return _bool(np.logical_or if largest else np.logical_and, op.axes, x)
    for axis in sorted(op.axes, reverse=True):
        x = _extremum_along(x, axis, largest)
    return x


def _extremum_along(x: Values, axis: int, largest: bool) -> Values:
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    if x.size == 0:
        return np.full(shape, DType.of(x).extremes[not largest], x.dtype, order="F")
    # the fold keeps the first of equal elements (so the first zero gives the sign) and the first NaN: so does argmax
    lines = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis], order="F")
    winner = lines.argmax(axis=1) if largest else lines.argmin(axis=1)
    return np.asarray(lines[np.arange(len(lines)), winner]).reshape(shape, order="F")


def _bool(function: np.ufunc, axes: tuple[int, ...], x: Values) -> Values:
    return column_major(np.asarray(function.reduce(x, axis=axes)))
