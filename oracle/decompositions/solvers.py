"""Solutions of linear equations.

A subnormal element of a solution may be off by `Scale.lost`, times the matrix in the residual. That a solution is finite
is asked where no order of the sums overflows: of moderate elements a few may be enough for it, since each unknown is divided once more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oracle.checks import UNCHECKED, Check
from oracle.decompositions.measures import Matrices, Matrix, Scale, standard, within
from oracle.decompositions.rows import judge


def _substituted(s: Scale, t: Matrix, b: Matrix) -> tuple[Matrix, Matrix]:
    """At least the moduli of the solution that any substitution gives, and of the sums on its way.

    That is the solution with the comparison matrix, `|t_ii| |x_i| = |b_i| + sum |t_ij| |x_j|` (section 8.2), and a rounding of each row.
    """
    size, sums, x = np.abs(t), np.abs(b), np.zeros(b.shape, np.abs(b).dtype)
    rows = range(len(t)) if not np.triu(t, 1).any() else reversed(range(len(t)))
    with np.errstate(all="ignore"):
        for i in rows:
            sums[i] = (sums[i] + size[i] @ x) * (1 + s.eliminated(len(t)))
            x[i] = sums[i] / size[i, i]
    return x, sums


def triangle(operands: Matrices, *, lower: bool, unit_diagonal: bool, **flags: bool) -> Matrices:
    """What is read: a triangle of the matrix, without its diagonal if that is ones."""
    a, b = operands
    return [np.tril(a, -int(unit_diagonal)) if lower else np.triu(a, int(unit_diagonal)), b]


def _system(operands: Matrices, *, left_side: bool, transpose_a: bool, **flags: bool) -> tuple[Matrix, Matrix]:
    """The matrix and the right-hand side of a system with the matrix on the left."""
    t, b = triangle(operands, **flags)
    if flags["unit_diagonal"]:
        t = t + np.eye(len(t))
    t = t.T if transpose_a else t
    return (t, b) if left_side else (t.T, b.T)


def triangular_finite(s: Scale, operands: Matrices, **flags: bool) -> bool:
    t, b = _system(operands, **flags)
    return s.divides(np.diag(t)) and s.holds(*_substituted(s, t, b))


@judge("TriangularSolve", finite=triangular_finite, read=triangle)
def triangular_solve(s: Scale, operands: Matrices, results: Matrices, **flags: bool) -> Iterator[Check]:
    """Theorem 8.5: |b - T x| <= gamma |T| |x|, whatever the order."""
    (t, b), (x,) = _system(operands, **flags), results
    x = x if flags["left_side"] else x.T
    if not np.diag(t).all():
        yield UNCHECKED
    else:
        bound = s.eliminated(len(t)) * (np.abs(t) @ np.abs(x)) + s.lost * (len(t) + np.abs(t).sum(1, keepdims=True))
        yield within("residual", s.residual((t, x), b), bound)


def _prepared(operands: Matrices, transpose_a: bool, conjugate_a: bool) -> list[Matrix]:
    """The factors whose product is the matrix of the system."""
    _, packed, pivots, _ = operands
    factors = [f.conj() if conjugate_a else f for f in _unpacked(packed, pivots)]
    return [f.T for f in reversed(factors)] if transpose_a else factors


def _prepared_finite(s: Scale, operands: Matrices, **flags: bool) -> bool:
    x, found, permutation = operands[-1], list[Matrix](), 2 if flags["transpose_a"] else 0
    for i, f in enumerate(_prepared(operands, **flags)):
        if i == permutation:
            x = f.T @ x
        else:
            x, sums = _substituted(s, f, x)
            found += [x, sums]
    return s.divides(np.diag(operands[1])) and s.holds(*found)


@judge("LuSolvePrepared", finite=_prepared_finite)
def _solve_prepared(
    s: Scale, operands: Matrices, results: Matrices, *, transpose_a: bool, conjugate_a: bool
) -> Iterator[Check]:
    """Theorem 8.5 for each of the given factors: |b - P^T L U x| <= gamma P^T |L| |U| |x|."""
    b, (x,), factors = operands[-1], results, _prepared(operands, transpose_a, conjugate_a)
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


def eliminated(a: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """A permutation and the moduli of LAPACK's factors."""
    from scipy.linalg import lu

    largest = np.abs(a).max(initial=0.0) or 1
    p, low, up = lu(standard(a / largest))
    return p, np.abs(low), np.abs(up) * largest


def solve_finite(s: Scale, operands: Matrices, *, transpose_a: bool = False) -> bool:
    """Whether A is so far from singular that every elimination gives a solution, and no number on the way overflows.

    The factors and the solution are those of A + E (theorem 9.4, as in `solve`): where the spectral radius of `|A^-1| |E|` is below a
    half, `(I - |A^-1| |E|)^-1 |A^-1|` bounds the inverse of that. Solutions, sums and reciprocals of pivots follow.
    """
    a, b = operands
    n, (p, low, up) = len(a), eliminated(a)
    with np.errstate(all="ignore"):
        off = 6 * s.eliminated(n) * p @ low @ up + s.lost * n * (1 + up.sum(0))
        try:
            inverse = np.abs(np.linalg.inv(standard(a)))
            grown = standard(inverse @ off)
            if not max(np.abs(np.linalg.eigvals(grown)), default=0.0) < 0.5:
                return False
            inverse = np.linalg.inv(np.eye(n) - grown) @ inverse
        except np.linalg.LinAlgError:
            return False
        if transpose_a:
            x, sums = inverse.T @ np.abs(b), up.T @ (low.T @ (p.T @ (inverse.T @ np.abs(b))))
        else:
            x = inverse @ np.abs(b)
            sums = low @ (up @ x)
        reciprocals = (inverse @ p @ low) ** (2 if s.complex else 1)  # complex numbers may be divided by squares
        return s.holds(x, sums + np.abs(b).max(initial=0.0), reciprocals, low @ up)


@judge("Solve", "FullPivLuSolve", finite=solve_finite)
def solve(s: Scale, operands: Matrices, results: Matrices, *, transpose_a: bool = False) -> Iterator[Check]:
    """Theorem 9.4: |b - A x| <= gamma_3n P^T |L| |U| |x|; here twice that, in the largest norm of each column.

    The implementation's factors are not known, and how small their small rows are depends on its pivots. Those of LAPACK
    stand for them: that is a demand.
    """
    (a, b), (x,) = operands, results
    if not b.size:
        return
    _, low, up = eliminated(a)
    if not s.holds(low @ up):  # divided by a pivot that is infinite, what is wrong may be finite
        yield UNCHECKED
    else:
        size = up.T @ (low.T @ np.abs(x)) if transpose_a else low @ (up @ np.abs(x))
        # of each element of the factors, times the solution, and of each sum of the two substitutions
        n = len(a)
        lost = s.lost * (n * n + n + n * up.sum()) * (1 + np.abs(x).max(0, initial=0.0))
        bound = 6 * s.eliminated(n) * size.max(0, initial=0.0) + lost
        yield within("residual", s.residual((a.T if transpose_a else a, x), b), np.broadcast_to(bound, b.shape))
