"""The kernel of DotGeneral (SEMANTICS 2.5)."""

from __future__ import annotations

from math import prod

import numpy as np

from tenferro_ref.ops import DotGeneral, Policy, free_axes
from tenferro_ref.runtime.kernels.base import KERNELS, Values, canonical


@KERNELS.row(DotGeneral)
def _dot_general(op: DotGeneral, policy: Policy, lhs: Values, rhs: Values) -> Values:
    """Both operands are brought to one form, so that the bits depend on values and on the order of the pairs alone.

    In column-major terms that form is the DotDecomposer's, `[M, K, B] x [K, N, B]`; it is written here with the axes
    reversed, as C-ordered `[B, N, K] @ [B, K, M]`, so that an operand in that form already needs no copy.
    """
    lhs_free = free_axes(lhs.ndim, op.lhs_contracting_dims, op.lhs_batch_dims)
    rhs_free = free_axes(rhs.ndim, op.rhs_contracting_dims, op.rhs_batch_dims)
    rows, columns = [lhs.shape[a] for a in lhs_free], [rhs.shape[a] for a in rhs_free]
    batch = [lhs.shape[a] for a in op.lhs_batch_dims]
    m, n, b, k = prod(rows), prod(columns), prod(batch), prod(lhs.shape[a] for a in op.lhs_contracting_dims)
    shape = (*rows, *columns, *batch)
    if k == 0 or m * n * b == 0:
        return np.zeros(shape, lhs.dtype, order="F")
    left = _matrices(lhs, (*lhs_free, *op.lhs_contracting_dims, *op.lhs_batch_dims), (b, k, m))
    right = _matrices(rhs, (*op.rhs_contracting_dims, *rhs_free, *op.rhs_batch_dims), (b, n, k))
    if np.may_share_memory(left, right):
        right = right.copy()  # matmul calls another BLAS routine (syrk) for a matrix times its own transpose
    return canonical(np.matmul(right, left)).reshape(-1).reshape(shape, order="F")


def _matrices(x: Values, axes: tuple[int, ...], shape: tuple[int, int, int]) -> Values:
    """`x` with column-major axis order `axes`, as C-ordered matrices; strides are regular even on axes of extent 1."""
    flat = x.transpose(axes[::-1]).reshape(-1)
    if flat.strides != (flat.itemsize,):
        flat = flat.copy()
    return flat.reshape(shape)
