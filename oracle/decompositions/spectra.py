"""Singular values and eigenvalues, with and without their vectors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oracle.checks import Check
from oracle.decompositions.measures import (
    Matrices,
    Matrix,
    Scale,
    columns,
    descending,
    gamma,
    h,
    norm,
    orthogonal,
    positive,
    standard,
    symmetrised,
    wide,
    within,
    within_norm,
)
from oracle.decompositions.rows import judge, lower


@judge("Svd", "SvdFull")
def svd(s: Scale, operands: Matrices, results: Matrices, *, gauge: str = "Raw") -> Iterator[Check]:
    """Two sided Householder reduction, then a backward stable iteration: U S V^H is A within a norm-wise gamma~."""
    (a,), (u, values, vt) = operands, results
    bound = s.demanded(a.size)
    yield from _singular_values(s, values)
    yield orthogonal(s, "left vectors", u, bound)
    yield orthogonal(s, "right vectors", h(vt), bound)
    if gauge != "Raw":
        yield positive(s, u)
    middle = np.zeros((u.shape[1], len(vt)), values.dtype)  # of full factors it has rows or columns of zeros
    np.fill_diagonal(middle, values)
    yield within_norm("residual", s.residual((u, middle, vt), a), 2 * bound * norm(a) + s.tiny * a.size)


def _singular_values(s: Scale, values: Matrix) -> Iterator[Check]:
    yield descending(s, values)
    yield Check("not negative", float(np.maximum(-values, 0).max(initial=0.0)), s.tiny)


@judge("SvdVals")
def svd_values(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """Weyl: singular values move by at most the norm of the backward error."""
    (a,), (values,) = operands, results
    yield from _singular_values(s, values)
    true, off = true_singular(s, a)
    bound = s.demanded(a.size) * norm(a) + s.tiny * a.size
    yield Check("values", float(np.abs(values - true).max(initial=0.0)), bound + off)


def true_singular(s: Scale, a: Matrix) -> tuple[Matrix, float]:
    """Singular values from LAPACK, and how far any of them may be off.

    U S V^H is A but for its residual, and as far from X S Y^H with X and Y orthogonal, the polar factors of U and V, as these
    are: then Weyl. All of that is evaluated in the wide type, nothing about LAPACK assumed.
    """
    u, values, vt = np.linalg.svd(standard(a), full_matrices=False)
    x, y = (_defect(s, v) for v in (u, h(vt)))
    away = sum(map(norm, s.residual((wide(u), np.diag(values), wide(vt)), a)))
    return values, away + float(values.max(initial=0.0)) * (x + y + x * y)


def true_eigenvalues(s: Scale, a: Matrix) -> tuple[Matrix, float]:
    """Of a Hermitian matrix, likewise."""
    values, v = np.linalg.eigh(standard(a))
    x, v = _defect(s, v), wide(v)
    away = sum(map(norm, s.residual((a, v), v * values)))
    return values, away + x * (norm(a) + float(np.abs(values).max(initial=0.0)))


def _defect(s: Scale, q: Matrix) -> float:
    """At least the distance of `q` from its polar factor: |sigma - 1| <= |sigma^2 - 1|."""
    q = wide(q)
    return float(sum(map(norm, s.residual((h(q), q), np.eye(q.shape[1])))))


@judge("Eigh", read=lower)
def eigh(s: Scale, operands: Matrices, results: Matrices, *, gauge: str) -> Iterator[Check]:
    """A V = V diag(w) within a norm-wise gamma~, V orthogonal, w ascending."""
    (a,), (values, v) = operands, results
    a, bound = symmetrised(a), s.demanded(a.size)
    yield descending(s, -values)
    yield orthogonal(s, "orthogonal", v, bound)
    if gauge != "Raw":
        yield positive(s, v)
    yield within_norm("residual", s.residual((a, v), v * values), 2 * bound * norm(a) + s.tiny * a.size)


@judge("EighVals", read=lower)
def eigh_values(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """Weyl, as SvdVals."""
    (a,), (values,) = operands, results
    a = symmetrised(a)
    yield descending(s, -values)
    true, off = true_eigenvalues(s, a)
    bound = s.demanded(a.size) * norm(a) + s.tiny * a.size
    yield Check("values", float(np.abs(values - true).max(initial=0.0)), bound + off)


def _nearly_singular(s: Scale, a: Matrix, w: complex, bound: float) -> Check:
    true, off = true_singular(s, a - w * np.eye(len(a)))
    rounded = 2 * s.wide_unit * (norm(a) + np.sqrt(len(a)) * abs(w))
    return Check("backward error", float(true[-1]), float(bound + off + rounded))


def _balanced(s: Scale, a: Matrix, v: Matrix, residual: tuple[Matrix, Matrix]) -> Check:
    """The residual of D^-1 A D, D being what LAPACK's geev scales by before it iterates: of that it is backward stable."""
    from scipy.linalg import matrix_balance

    scaling, order = matrix_balance(standard(a), separate=True)[1]
    by = np.empty((len(a), 1))
    by[order, 0] = scaling  # which is that of the matrix whose rows and columns are in this order
    e = s.demanded(a.size) * norm(a / by * by.T) + s.tiny * len(a)
    error, evaluation = (columns(x / by) for x in residual)
    return within("residual", (error, evaluation), e * columns(v / by))


@judge("Eig", "EigVals")
def eig(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """The w are the eigenvalues of some A + E with |E| <= e: |A - w I| has a singular value of at most e, |sum w - tr A| and
    |sum w^2 - tr A^2| are at most sqrt(n) e and (2 |A| + e) e, which all w together have to keep.
    """
    (a,), (values, *vectors) = operands, results
    n = len(a)
    e = s.demanded(n * n) * norm(a) + s.tiny * n
    if not n:
        return
    yield max((_nearly_singular(s, a, w, e) for w in values), key=lambda c: c.error - c.bound)
    slack, one = gamma(4 * n * n * s.wide_unit), norm(a) or 1.0
    unit, own, off = a / one, values / one, e / one  # squares of large numbers are beyond any format
    for name, power, allowed in (("trace", 1, np.sqrt(n) * off), ("squares", 2, (2 + off) * off)):
        size = (np.abs(own) ** power).sum() + np.sqrt(n)
        away = (own**power).sum() - np.trace(np.linalg.matrix_power(unit, power))
        yield Check(name, float(abs(away)), float(allowed + slack * size))
    for v in vectors:
        yield Check("unit vectors", float(np.abs(columns(v) - 1).max(initial=0.0)), s.demanded(n))
        error, evaluation = s.residual((a, v), v * values)
        plain = within("residual", (columns(error), columns(evaluation)), np.full(n, e))
        yield plain if plain.holds else _balanced(s, a, v, (error, evaluation))
