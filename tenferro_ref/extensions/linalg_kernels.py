"""Kernels of the linalg family: one matrix each, on numpy.linalg and SciPy's LAPACK.

A matrix that an op cannot work on (singular, not positive definite, not finite where an iteration would not end) is a
`LinAlgError`, never a result full of NaN. Which op has which kernel, and the loop over batches, is in `linalg`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_ref.errors import InvalidArgument
from tenferro_ref.extensions import elimination
from tenferro_ref.extensions.elimination import Matrix


def lapack(name: str, *arrays: Matrix) -> Callable[..., Any]:
    """The LAPACK routine for the arrays' dtype."""
    from scipy.linalg import get_lapack_funcs

    function: Callable[..., Any] = get_lapack_funcs(name, arrays)
    return function


def finite(a: Matrix) -> Matrix:
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError("it has elements that are not finite")
    return a


def cholesky(a: Matrix) -> tuple[Matrix]:
    finite(np.tril(a))
    try:
        return (np.linalg.cholesky(a),)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError("it is not positive definite") from None


# --- orthogonal factors, eigenvalues ----------------------------------------------------------------------------------


def _phase(x: Matrix) -> Matrix:
    """x / |x|, and 1 for 0."""
    size = np.abs(x)
    return np.where(size == 0, x.dtype.type(1), x / size)


def _pivots(columns: Matrix) -> Matrix:
    """The largest entry of each column, the first of several."""
    return columns[np.abs(columns).argmax(axis=0), np.arange(columns.shape[1])] if columns.size else columns.diagonal()


def svd(a: Matrix, gauge: str) -> tuple[Matrix, Matrix, Matrix]:
    u, s, vt = np.linalg.svd(finite(a), full_matrices=False)
    if gauge == "Raw":
        return u, s, vt
    phase = _phase(_pivots(u))
    return u * phase.conj(), s, vt * phase[:, None]


def svd_full(a: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    u, s, vt = np.linalg.svd(finite(a))
    return u, s, vt


def svdvals(a: Matrix) -> tuple[Matrix]:
    return (np.linalg.svd(finite(a), compute_uv=False),)


def qr(a: Matrix, gauge: str) -> tuple[Matrix, Matrix]:
    q, r = np.linalg.qr(a)
    return _gauged(q, r, gauge)


def _gauged(q: Matrix, r: Matrix, gauge: str) -> tuple[Matrix, Matrix]:
    if gauge == "Raw":
        return q, r
    phase = _phase(r.diagonal())
    return q[:, : len(r)] * phase, r * phase.conj()[:, None]


def rank_revealing_qr(a: Matrix, gauge: str, rtol: float, atol: float) -> tuple[Matrix, Matrix, Matrix, int]:
    from scipy.linalg import qr as pivoted

    if not a.any():  # of no elements, too
        k = min(a.shape)
        return np.eye(len(a), k), np.zeros((k, a.shape[1])), np.arange(a.shape[1]), 0
    q, r, order = pivoted(a, mode="economic", pivoting=True, check_finite=False)
    size = np.abs(finite(r.diagonal()))
    above = size > max(atol, rtol * size[0])
    return *_gauged(q, r, gauge), order, int(np.cumprod(above).sum())


def geqrf(a: Matrix) -> tuple[Matrix, Matrix]:
    """R with the vectors of the reflectors below it, and the coefficient of each."""
    if a.size == 0:
        return a, np.zeros(0, a.dtype)
    packed, tau, _, _ = lapack("geqrf", a)(a)
    return packed, tau


def householder_from_factors(q: Matrix, r: Matrix) -> tuple[Matrix, Matrix]:
    return geqrf(q @ r)


def householder_append(packed: Matrix, tau: Matrix, columns: Matrix) -> tuple[Matrix, Matrix]:
    turned, n = reflect(packed, tau, columns, adjoint=True), packed.shape[1]
    below, more = geqrf(turned[n:])
    return np.hstack([packed, np.vstack([turned[:n], below])]), np.concatenate([tau, more])


def householder_r(packed: Matrix, tau: Matrix, gauge: str) -> tuple[Matrix]:
    r = np.triu(packed[: len(tau)])
    return (_gauged(r[:0], r, gauge)[1],)


def householder_columns(
    packed: Matrix, tau: Matrix, gauge: str, start: int = 0, end: int | None = None
) -> tuple[Matrix]:
    """Columns of Q, by default those of the thin one; those beyond have no gauge."""
    columns = np.eye(len(packed), dtype=packed.dtype)
    if gauge != "Raw":
        k = len(tau)
        columns[range(k), range(k)] = _phase(packed.diagonal())
    return (reflect(packed, tau, columns[:, start : len(tau) if end is None else end]),)


def reflect(packed: Matrix, tau: Matrix, x: Matrix, adjoint: bool = False) -> Matrix:
    """The product Q of the reflectors, or its adjoint, times `x`."""
    if 0 in (x.size, tau.size):
        return x
    complex_ = np.iscomplexobj(packed)
    routine = lapack("unmqr" if complex_ else "ormqr", packed, tau, x)
    trans = ("C" if complex_ else "T") if adjoint else "N"
    turned: Matrix = routine("L", trans, packed[:, : len(tau)], tau, x, lwork=64 * x.shape[1])[0]
    return turned


def eigh(a: Matrix, gauge: str) -> tuple[Matrix, Matrix]:
    values, vectors = np.linalg.eigh(finite(np.tril(a)))
    return values, vectors if gauge == "Raw" else vectors * _phase(_pivots(vectors)).conj()


def eigvalsh(a: Matrix) -> tuple[Matrix]:
    return (np.linalg.eigvalsh(finite(np.tril(a))),)


def eig(a: Matrix) -> tuple[Matrix, Matrix]:
    values, vectors = np.linalg.eig(finite(a))
    return values, vectors


def eigvals(a: Matrix) -> tuple[Matrix]:
    return (np.linalg.eigvals(finite(a)),)


# --- LU with partial pivoting -----------------------------------------------------------------------------------------


def _getrf(a: Matrix) -> tuple[Matrix, Matrix]:
    """L and U in one matrix, and for each row the row (from 0) that it was exchanged with."""
    if a.size == 0:
        return a, np.arange(min(a.shape))
    packed, pivots, _ = lapack("getrf", a)(a)
    # a zero on the diagonal with anything below it is where a subnormal pivot was found and not exchanged
    below = np.abs(np.tril(packed, -1))[:, : min(a.shape)].max(0, initial=0.0)
    found = np.where(packed.diagonal() == 0, below, packed.diagonal())
    return elimination.eliminated(a) if elimination.is_needed(found) else (packed, np.asarray(pivots))


def _order(pivots: Matrix, n: int) -> tuple[Matrix, int]:
    """The permutation that a sequence of exchanges makes of `range(n)`, and its parity."""
    order, parity = np.arange(n), 1
    for i, other in enumerate(pivots):
        if other != i:
            order[[i, other]], parity = order[[other, i]], -parity
    return order, parity


def _permutation(order: Matrix) -> Matrix:
    """The matrix P for which `P A` has the rows `A[order]`."""
    return np.eye(len(order))[order]


def _unpack(packed: Matrix) -> tuple[Matrix, Matrix]:
    k = min(packed.shape)
    return np.tril(packed[:, :k], -1) + np.eye(len(packed), k), np.triu(packed[:k])


def lu(a: Matrix) -> tuple[Matrix, Matrix, Matrix, int]:
    packed, pivots = _getrf(a)
    order, parity = _order(pivots, len(a))
    return _permutation(order), *_unpack(packed), parity


def lu_factor(a: Matrix) -> tuple[Matrix, Matrix, int]:
    packed, pivots = _getrf(a)
    return packed, pivots + 1, _order(pivots, len(a))[1]


def sign_det(a: Matrix, packed: Matrix, parity: Matrix) -> tuple[Matrix]:
    """Of the factors; 0 for 0, as `Sign` has it. The matrix itself is for derivatives."""
    d = packed.diagonal()
    if d.dtype.kind != "c":
        return (parity * np.sign(d).prod(),)
    size = np.abs(d)
    return (parity * np.where(size == 0, 0, d / np.where(size == 0, 1, size)).prod(),)


def log_abs_det(a: Matrix, packed: Matrix) -> tuple[Matrix]:
    return (np.log(np.abs(packed.diagonal())).sum(),)


def _regular(diagonal: Matrix) -> None:
    if not diagonal.all():
        raise np.linalg.LinAlgError("it is singular")


def _solved(packed: Matrix, pivots: Matrix, b: Matrix, transpose_a: bool, conjugate_a: bool) -> tuple[Matrix]:
    _regular(packed.diagonal())
    if b.size == 0:
        return (b,)
    if conjugate_a and not transpose_a:  # conj(A) X = B is A conj(X) = conj(B)
        return (_solved(packed, pivots, b.conj(), False, False)[0].conj(),)
    trans = (2 if conjugate_a else 1) if transpose_a else 0
    if not elimination.is_needed(packed.diagonal()):
        return (lapack("getrs", packed, b)(packed, pivots, b, trans=trans)[0],)
    order, _ = _order(pivots, len(packed))
    if not trans:
        return (_trtrs(packed, _trtrs(packed, b[order], lower=True, unit=True), lower=False),)
    result = np.empty_like(b)
    result[order] = _trtrs(packed, _trtrs(packed, b, lower=False, trans=trans), lower=True, trans=trans, unit=True)
    return (result,)


def solve(a: Matrix, b: Matrix) -> tuple[Matrix]:
    return _solved(*_getrf(a), b, False, False)


def lu_solve_prepared(
    a: Matrix, packed: Matrix, pivots: Matrix, b: Matrix, transpose_a: bool, conjugate_a: bool
) -> tuple[Matrix]:
    if ((pivots < 1) | (pivots > len(a))).any():
        raise InvalidArgument(op="LuSolvePrepared", argument="pivots", detail=f"they must be 1 to {len(a)}")
    return _solved(packed, pivots - 1, b, transpose_a, conjugate_a)


# --- LU with full pivoting, triangular systems ------------------------------------------------------------------------


def _getc2(a: Matrix) -> tuple[Matrix, Matrix, Matrix, int, bool]:
    """L and U in one matrix, orders of rows and columns, parity, and whether a pivot was too small.

    Such a pivot is replaced by the rounding error of the largest, so that the factors can still be used. Of a matrix that is not
    finite all factors are NaN, in its own order.
    """
    if not np.isfinite(a).all():  # where no element is the largest, LAPACK exchanges rows by uninitialised numbers
        return np.full_like(a, np.nan), np.arange(len(a)), np.arange(len(a)), 1, False
    if a.size == 0:
        return a, np.arange(0), np.arange(0), 1, False
    packed, rows, columns, info = lapack("getc2", a)(a)
    p, row_parity = _order(rows, len(a))
    q, column_parity = _order(columns, len(a))
    return packed, p, q, row_parity * column_parity, info > 0


def full_piv_lu(a: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix, int]:
    packed, p, q, parity, _ = _getc2(a)
    return _permutation(p), *_unpack(packed), _permutation(q), parity


def full_piv_lu_solve(a: Matrix, b: Matrix, transpose_a: bool) -> tuple[Matrix]:
    packed, p, q, _, replaced = _getc2(a)
    if replaced:
        raise np.linalg.LinAlgError("it is singular")
    result = np.empty_like(b)
    if transpose_a:  # A^T = Q^T U^T L^T P
        result[p] = _trtrs(packed, _trtrs(packed, b[q], lower=False, trans=1), lower=True, trans=1, unit=True)
    else:
        result[q] = _trtrs(packed, _trtrs(packed, b[p], lower=True, unit=True), lower=False)
    return (result,)


def _trtrs(a: Matrix, b: Matrix, *, lower: bool, trans: int = 0, unit: bool = False) -> Matrix:
    """X of `op(A) X = B`."""
    if not unit:
        _regular(a.diagonal())
    if b.size == 0:
        return b
    if not unit and elimination.is_needed(a.diagonal()):
        op = (a, a.T, a.T.conj())[trans]
        return elimination.substituted(op, b, lower=lower is not bool(trans))
    solution: Matrix = lapack("trtrs", a, b)(a, b, lower=lower, trans=trans, unitdiag=unit)[0]
    return solution


def triangular_solve(
    a: Matrix, b: Matrix, left_side: bool, lower: bool, transpose_a: bool, unit_diagonal: bool
) -> tuple[Matrix]:
    if left_side:
        return (_trtrs(a, b, lower=lower, trans=int(transpose_a), unit=unit_diagonal),)
    # X op(A) = B is op(A)^T X^T = B^T
    return (_trtrs(a, b.T, lower=lower, trans=int(not transpose_a), unit=unit_diagonal).T,)
