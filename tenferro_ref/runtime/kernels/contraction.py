"""The kernel of DotGeneral (SEMANTICS 2.5)."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from tenferro_ref import ops
from tenferro_ref.ops import free_axes
from tenferro_ref.runtime.kernels.base import KERNELS, Values, canonical


def _dot_general(op: ops.DotGeneral, lhs: Values, rhs: Values) -> Values:
    """Both operands are brought to one form, so that the bits depend on values and on the order of the pairs alone.

    In column-major terms that form is the DotDecomposer's, `[M, K, B] x [K, N, B]`; it is written here with the axes
    reversed, as C-ordered `[B, N, K] @ [B, K, M]`, so that an operand in that form already needs no copy.
    """
    form = matrix_form(op, lhs.shape, rhs.shape)
    if form.k == 0 or 0 in form.shape:
        return np.zeros(form.shape, lhs.dtype, order="F")
    left = _matrices(lhs, form.lhs_axes, (form.b, form.k, form.m))
    right = _matrices(rhs, form.rhs_axes, (form.b, form.n, form.k))
    if np.may_share_memory(left, right):
        right = right.copy()  # matmul calls another BLAS routine (syrk) for a matrix times its own transpose
    return canonical(np.matmul(right, left)).ravel().reshape(form.shape, order="F")


KERNELS[ops.DotGeneral] = _dot_general


@KERNELS.row(ops.DotGeneralWithConj)
def _dot_general_with_conj(op: ops.DotGeneralWithConj, lhs: Values, rhs: Values) -> Values:
    return _dot_general(op.plain, *op.conjugated(conj, lhs, rhs))


def conj(x: Values) -> Values:
    """The conjugate of complex numbers; what is real stays as it is, of any dtype."""
    return np.asarray(np.conjugate(x)) if x.dtype.kind == "c" else x


class MatrixForm(NamedTuple):
    """A DotGeneral as a batched matrix product.

    `lhs_axes` are the operand's axes in the order `[M, K, B]`, each letter a group of axes that are merged, `rhs_axes` in
    the order `[K, N, B]`. The product, `[M, N, B]`, reshaped to `shape` is the result.
    """

    lhs_axes: tuple[int, ...]
    rhs_axes: tuple[int, ...]
    m: int
    k: int
    n: int
    b: int
    shape: tuple[int, ...]


@lru_cache(maxsize=4096)
def matrix_form(op: ops.DotGeneral, lhs: tuple[int, ...], rhs: tuple[int, ...]) -> MatrixForm:
    """The matrix form of `op` on operands of shapes `lhs` and `rhs`."""
    lhs_free = free_axes(len(lhs), op.lhs_contracting_dims, op.lhs_batch_dims)
    rhs_free = free_axes(len(rhs), op.rhs_contracting_dims, op.rhs_batch_dims)
    rows, columns = [lhs[a] for a in lhs_free], [rhs[a] for a in rhs_free]
    batch = [lhs[a] for a in op.lhs_batch_dims]
    return MatrixForm(
        (*lhs_free, *op.lhs_contracting_dims, *op.lhs_batch_dims),
        (*op.rhs_contracting_dims, *rhs_free, *op.rhs_batch_dims),
        prod(rows),
        prod(lhs[a] for a in op.lhs_contracting_dims),
        prod(columns),
        prod(batch),
        (*rows, *columns, *batch),
    )


def _matrices(x: Values, axes: tuple[int, ...], shape: tuple[int, int, int]) -> Values:
    """`x` with column-major axis order `axes`, as C-ordered matrices; strides are regular even on axes of extent 1."""
    flat = x.transpose(axes).ravel("F")
    if flat.strides != (flat.itemsize,):
        flat = flat.copy()
    return flat.reshape(shape)
