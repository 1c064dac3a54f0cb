"""Solutions of linear equations.

A subnormal element of a solution may be off by `Scale.lost`, times the matrix in the residual.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oracle.checks import UNCHECKED, Check
from oracle.decompositions.measures import Matrices, Matrix, Scale, standard, within
from oracle.decompositions.rows import judge


@judge("TriangularSolve")
def triangular_solve(
    s: Scale,
    operands: Matrices,
    results: Matrices,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    unit_diagonal: bool,
) -> Iterator[Check]:
    """Theorem 8.5: |b - T x| <= gamma |T| |x|, whatever the order."""
    (a, b), (x,) = operands, results
    t = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        t = t - np.diag(np.diag(t)) + np.eye(len(t))
    t = t.T if transpose_a else t
    if not left_side:
        t, b, x = t.T, b.T, x.T
    if not np.diag(t).all():
        yield UNCHECKED
    else:
        bound = s.eliminated(len(t)) * (np.abs(t) @ np.abs(x)) + s.lost * (len(t) + np.abs(t).sum(1, keepdims=True))
        yield within("residual", s.residual((t, x), b), bound)


@judge("LuSolvePrepared")
def _solve_prepared(
    s: Scale, operands: Matrices, results: Matrices, *, transpose_a: bool, conjugate_a: bool
) -> Iterator[Check]:
    """Theorem 8.5 for each of the given factors: |b - P^T L U x| <= gamma P^T |L| |U| |x|."""
    (_, packed, pivots, b), (x,) = operands, results
    factors = [f.conj() if conjugate_a else f for f in _unpacked(packed, pivots)]
    factors = [f.T for f in reversed(factors)] if transpose_a else factors
    size, lost = np.abs(x), np.full_like(np.abs(x), s.lost)
    for f in reversed(factors):
        size, lost = np.abs(f) @ size, np.abs(f) @ lost + s.lost * len(b)
    if b.size:
        bound = 2 * s.eliminated(len(b)) * size + lost
        yield within("residual", s.residual((*factors, x), b), bound)


def _unpacked(packed: Matrix, pivots: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """P^T, L and U of LAPACK's packed factors."""
    n = len(packed)
    order = np.arange(n)
    for i, other in enumerate(pivots - 1):
        order[[i, other]] = order[[other, i]]
    return np.eye(n)[:, order], np.tril(packed, -1) + np.eye(n), np.triu(packed)


@judge("Solve", "FullPivLuSolve")
def solve(s: Scale, operands: Matrices, results: Matrices, *, transpose_a: bool = False) -> Iterator[Check]:
    """Theorem 9.4: |b - A x| <= gamma_3n P^T |L| |U| |x|; here twice that, in the largest norm of each column.

    The implementation's factors are not known, and how small their small rows are depends on its pivots. Those of LAPACK
    stand for them: that is a demand.
    """
    (a, b), (x,) = operands, results
    if b.size:
        from scipy.linalg import lu

        _, low, up = lu(standard(a))
        size = np.abs(up).T @ (np.abs(low).T @ np.abs(x)) if transpose_a else np.abs(low) @ (np.abs(up) @ np.abs(x))
        # of each element of the factors, times the solution, and of each sum of the two substitutions
        n = len(a)
        lost = s.lost * (n * n + n + n * np.abs(up).sum()) * (1 + np.abs(x).max(0, initial=0.0))
        bound = 6 * s.eliminated(n) * size.max(0, initial=0.0) + lost
        yield within("residual", s.residual((a.T if transpose_a else a, x), b), np.broadcast_to(bound, b.shape))
