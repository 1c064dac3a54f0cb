"""Triangular and orthogonal factors: Cholesky, LU, QR."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from oracle.checks import PROMISED, UNCHECKED, Check
from oracle.decompositions.measures import (
    Matrices,
    Matrix,
    Scale,
    columns,
    excess,
    gamma,
    h,
    norm,
    orthogonal,
    positive,
    symmetrised,
    within,
    zero,
)
from oracle.decompositions.rows import judge, lower, phased
from oracle.decompositions.solvers import eliminated
from oracle.decompositions.spectra import true_eigenvalues, true_singular
from tenferro_ref.extensions import linalg
from tenferro_ref.tensor import Array


def smallest(s: Scale, a: Matrix) -> tuple[float, float]:
    """Bounds of the smallest eigenvalue of `D^-1 (A + E) D^-1`, D^2 being A's diagonal and E any backward error of an elimination.

    Where it is above zero Cholesky's elimination runs to its end, where it is below it does not, and between them the order of the
    sums decides (theorem 10.7). E has the rounding errors, what is lost of subnormal elements, products and quotients, and
    imaginary parts of the diagonal. If these are more than rounding errors nothing is known: StableHLO leaves undefined what is
    not Hermitian, and LAPACK ignores them.
    """
    diagonal, n = np.diag(a).real, len(a)
    if _turned(a) > s.demanded(n):
        return -np.inf, np.inf
    if not (diagonal > 0).all():
        return -np.inf, -np.inf
    if not n:
        return np.inf, np.inf
    size = np.sqrt(diagonal)
    with np.errstate(over="ignore"):
        scaled = symmetrised(a) / size[:, np.newaxis] / size
    value, off = -1.0, 0.0  # at most, of a 2 x 2 block with an element above 2
    if (np.abs(scaled) <= 2).all():
        values, off = true_eigenvalues(s, scaled)
        value, off = float(values[0]), off + 4 * s.wide_unit * norm(scaled)
    least = float(size.min())
    off += n * (gamma(s.eliminated(n)) + _turned(a) + 4 * s.lost * ((n + 2) / least + 2) / least)
    return value - off, value + off


def _turned(a: Matrix) -> float:
    """The largest imaginary part of the diagonal, relative to the real one."""
    diagonal = np.diag(a)
    with np.errstate(all="ignore"):
        off = np.where(diagonal.imag == 0, 0, np.abs(diagonal.imag) / np.abs(diagonal.real))
    return float(off.max(initial=0.0))


def cholesky_finite(s: Scale, operands: Matrices) -> bool:
    """No element of the factor is above the root of the largest of A, and the pivots are at least those of `smallest`."""
    (a,) = operands
    least = smallest(s, a)[0]
    return least > 0 and s.divides(np.sqrt(least * np.diag(a).real))


def _lower_factors(outputs: Sequence[Array]) -> Sequence[Array]:
    """StableHLO leaves open what is in the other triangle."""
    return [np.moveaxis(np.tril(np.moveaxis(x, (0, 1), (-2, -1))), (-2, -1), (0, 1)) for x in outputs]


PROMISED[linalg.FAMILY, "Cholesky"] = _lower_factors


@judge("Cholesky", finite=cholesky_finite, read=lower)
def cholesky(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """Theorem 10.3: |L L^H - A| <= gamma |L| |L^H|; nothing of a matrix that need not have a factor.

    Pivots of complex matrices may keep what is imaginary of them, which is small beside A's diagonal. `L L^H` then differs by
    `2 |l_ij| |Im l_jj|` from what the elimination makes A of.
    """
    (a,), (low,) = operands, results
    n, (least, _) = len(a), smallest(s, a)
    if not least > 0:
        yield UNCHECKED
        return
    yield zero("triangular", np.triu(low, 1))
    diagonal = np.diag(low)
    turned = (s.eliminated(n) + _turned(a)) / least if s.complex else 0.0
    off = (s.eliminated(n) + turned) * np.abs(diagonal)
    yield Check("positive diagonal", *excess(diagonal - np.abs(diagonal), off))
    lost = s.lost * n * (1 + float(np.abs(low).max(initial=0.0)))
    bound = s.eliminated(n) * (np.abs(low) @ np.abs(low).T) + lost
    kept = 2 * np.abs(low) * np.abs(diagonal.imag)
    yield within("residual", s.residual((low, h(low)), symmetrised(a)), bound + np.maximum(kept, kept.T))


def lu_finite(s: Scale, operands: Matrices) -> bool:
    """Whether no pivot is so small that its reciprocal overflows.

    The largest element of a column of what is left of the matrix is a pivot, or not above it. Its norm is at least the least singular value of
    that, which is not below the one of A's first columns; less the backward error of the elimination, with LAPACK's factors.
    """
    (a,) = operands
    if s.moderate(a):
        return True
    columns = a[:, : len(a)]
    (*_, least), off = true_singular(s, columns)
    _, low, up = eliminated(columns)
    off += norm(6 * s.eliminated(len(up)) * low @ up + s.lost * len(a) * (1 + up.sum(0)))
    return s.divides(max(least - off, 0.0) / np.sqrt(len(a)))


@judge("Lu", finite=lu_finite)
def _lu(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """Theorem 9.3: |L U - P A| <= gamma |L| |U|, with multipliers of modulus at most 1."""
    (a,), (p, low, up, parity) = operands, results
    yield from _triangles(s, p @ a, low, up)
    yield Check("permutation", _not_permutation(p), 0.0)
    yield _sign(parity, p)


def _sign(parity: Matrix, *permutations: Matrix) -> Check:
    """The sign of permutations that follow one another."""
    signs = [np.linalg.det(p.real.astype(float)) for p in permutations]
    return Check("parity", float(abs(np.prod(signs) - parity)), 1e-6)


def _not_permutation(p: Matrix) -> float:
    sums = [np.abs(p.sum(axis) - 1).max(initial=0.0) for axis in (0, 1)]
    return float(sum(sums) + abs((p == 1).sum() - len(p)) + (~np.isin(p, (0, 1))).sum())


def _triangles(s: Scale, rows: Matrix, low: Matrix, up: Matrix, replaced: float = 0.0) -> Iterator[Check]:
    k = min(rows.shape)
    yield zero("lower triangular", np.triu(low, 1))
    yield zero("unit diagonal", np.diag(low) - 1)
    yield zero("upper triangular", np.tril(up, -1))
    # LAPACK compares |re| + |im|, which may prefer a pivot of smaller modulus
    yield Check(
        "multipliers", float(np.abs(low).max(initial=0.0)), (np.sqrt(2) if s.complex else 1) * (1 + 16 * s.unit)
    )
    bound = s.eliminated(k) * (np.abs(low) @ np.abs(up)) + s.lost * (k + np.abs(up).sum(0)) + replaced
    yield within("residual", s.residual((low, up), rows), bound)


@judge("LuFactor", finite=lu_finite)
def lu_factor(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """As Lu; pivots are the rows, from 1, that each row was exchanged with."""
    (a,), (packed, pivots, *parity) = operands, results  # LAPACK's routine has none
    k = min(a.shape)
    order = np.arange(len(a))
    inside = bool(((pivots > np.arange(k)) & (pivots <= len(a))).all())
    yield Check("pivots", 0.0 if inside else 1.0, 0.0)
    if inside:
        for i, other in enumerate(pivots - 1):
            order[[i, other]] = order[[other, i]]
        low = np.tril(packed[:, :k], -1) + np.eye(len(a), k)
        yield from _triangles(s, a[order], low, np.triu(packed[:k]))
        yield from (_sign(sign, np.eye(len(a))[order]) for sign in parity)


@judge("FullPivLu", finite=lu_finite)
def _full_piv_lu(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """P A Q^T = L U; a pivot that is nothing but rounding error is replaced by one of its size."""
    (a,), (p, low, up, q, parity) = operands, results
    yield Check("row permutation", _not_permutation(p), 0.0)
    yield Check("column permutation", _not_permutation(q), 0.0)
    yield _sign(parity, p, q)
    # each pivot is the largest element of what is left of the matrix at its step
    left = np.array([np.abs(low[:, k:] @ up[k:]).max(initial=0.0) for k in range(len(a))])
    slack = s.eliminated(len(a)) * float((np.abs(low) @ np.abs(up)).max(initial=0.0)) + s.tiny / s.unit
    yield within("pivots", (np.maximum(left - np.abs(np.diag(up)), 0), 0 * left), 16 * s.unit * left + slack)
    # LAPACK's getc2: at least an ULP of the largest element, and a normal number whose reciprocal is one
    yield from _triangles(s, p @ a @ q.T, low, up, 4 * s.unit * float(np.abs(a).max(initial=0.0)) + s.tiny / s.unit)


@judge("Qr", finite=phased)
def qr(
    s: Scale, operands: Matrices, results: Matrices, *, gauge: str = "Raw", rounded: float | Matrix = 0.0
) -> Iterator[Check]:
    """Theorem 19.4: columns of Q R - A within gamma~_mn |a_j|; equation 19.13: Q within sqrt(n) gamma~_mn of orthogonal.

    `rounded` is how far A itself may be off, by columns.
    """
    (a,), (q, r) = operands, results
    bound = s.demanded(a.size)
    yield zero("upper triangular", np.tril(r, -1))
    yield orthogonal(s, "orthogonal", q, bound)
    if gauge != "Raw":
        yield positive(s, np.diag(r)[np.newaxis])
    # the thin Q itself is off by another sqrt(n) gamma~
    allowed = (1 + np.sqrt(q.shape[1])) * bound * columns(a) + s.reflected(a) + rounded
    off, slack = s.residual((q, r), a)
    yield within("residual", (columns(off), columns(slack)), np.asarray(allowed))
