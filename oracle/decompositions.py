"""Decompositions and solvers, judged by residuals and invariants.

Factors are not unique, so no element of them is compared. What is checked is what every backward stable algorithm gives:
the factors multiply to the matrix; they are triangular, orthogonal, ordered, permutations. Residuals are evaluated in a
wider type, and what that evaluation may be off is added to their bounds, so that nothing fails which is right.

Bounds of eliminations and substitutions are theorems, with their constants (`Scale.eliminated`). Of orthogonal factors,
singular values and eigenvalues the theorems have "a small integer constant": there the bound is a demand (`Scale.demanded`),
of which `python -m tools.margins` measures how much implementations use. Theorems and equations are those of Higham,
Accuracy and Stability of Numerical Algorithms (2nd edition, 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from oracle import configurations
from oracle.checks import CHECK_EXTENSION, Check
from oracle.enclosure.complexes import PRODUCT, RECIPROCAL
from oracle.enclosure.formats import FORMATS
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.extensions import linalg
from tenferro_ref.tensor import Array

Matrix: TypeAlias = np.ndarray[Any, Any]
Matrices: TypeAlias = Sequence[Matrix]

#: What is demanded for Higham's c in gamma~_k = c k u / (1 - c k u), in real and in complex arithmetic.
SMALL = {False: 8, True: 24}
#: Units of a sum of k products, beside k: one addition less, a product, and one by the rounded reciprocal of a divisor.
BESIDE = {False: 2.0, True: PRODUCT + RECIPROCAL - 1}


@dataclass(frozen=True)
class Scale:
    """Bounds of one dtype."""

    unit: float
    complex: bool
    tiny: float
    wide_unit: float

    def eliminated(self, k: int) -> float:
        """gamma of a sum of k products, divided by something: whatever the order, with or without reciprocals and FMA."""
        return _gamma((k + BESIDE[self.complex]) * self.unit)

    def demanded(self, k: int) -> float:
        """gamma~_k."""
        return _gamma(SMALL[self.complex] * k * self.unit)

    def residual(self, factors: Sequence[Matrix], minus: Matrix) -> tuple[Matrix, Matrix]:
        """The product of `factors` less `minus`, and how far the evaluation of that may be off."""
        product, size, roundings = factors[0], np.abs(factors[0]), 4.0
        for f in factors[1:]:
            product, size, roundings = product @ f, size @ np.abs(f), roundings + len(f) + BESIDE[True]
        return product - minus, _gamma(roundings * self.wide_unit) * (size + np.abs(minus))


def _gamma(ku: float) -> float:
    return ku / (1 - ku) if ku < 0.5 else np.inf


def _scale(x: Matrix) -> Scale:
    f = FORMATS[DType.of(x).real]
    return Scale(f.unit, x.dtype.kind == "c", f.min_normal, f.wide_unit)


def _wide(x: Matrix) -> Matrix:
    if x.dtype.kind == "i":
        return x
    kinds = {"f4": np.float64, "f8": np.longdouble, "c8": np.complex128, "c16": np.clongdouble}
    return x.astype(kinds[x.dtype.str[1:]])


# --- measures -------------------------------------------------------------------------------------------------------


def norm(x: Matrix) -> float:
    """Frobenius norm."""
    return float(np.sqrt((np.abs(x) ** 2).sum()))


def columns(x: Matrix) -> Matrix:
    """2-norms of the columns."""
    return np.asarray(np.sqrt((np.abs(x) ** 2).sum(0)))


def h(x: Matrix) -> Matrix:
    return x.conj().T


def _excess(error: Matrix, bound: Matrix) -> tuple[float, float]:
    """The element whose error is furthest beyond its bound."""
    if not error.size:
        return 0.0, 0.0
    worst = np.unravel_index(np.argmax(np.abs(error) - bound), error.shape)
    return float(np.abs(error[worst])), float(bound[worst])


def zero(name: str, x: Matrix) -> Check:
    return Check(name, float(np.abs(x).max(initial=0.0)), 0.0)


def within(name: str, off: tuple[Matrix, Matrix], bound: Matrix) -> Check:
    """A residual, element by element."""
    return Check(name, *_excess(off[0], bound + off[1]))


def within_norm(name: str, off: tuple[Matrix, Matrix], bound: float) -> Check:
    return Check(name, norm(off[0]), bound + norm(off[1]))


def orthogonal(s: Scale, name: str, q: Matrix, bound: float) -> Check:
    """Columns, against the identity (of its norm-wise distance from an orthogonal matrix twice as much)."""
    k = q.shape[1]
    return within_norm(name, s.residual((h(q), q), np.eye(k)), 2 * np.sqrt(k) * bound)


def _descending(s: Scale, x: Matrix) -> Check:
    """Denormal numbers may be compared as zeros."""
    return Check("order", float(np.maximum(np.diff(x), 0).max(initial=0.0)), s.tiny)


def _positive(s: Scale, columns: Matrix) -> Check:
    """A gauge: the largest entry of each column, or one as large, is positive (SEMANTICS 6)."""
    size = np.abs(columns)
    greatest = size.max(0, initial=0.0)
    largest = size >= greatest * (1 - 16 * s.unit)
    off = np.where(largest, np.abs(columns - size), np.inf).min(0, initial=np.inf) / np.where(
        greatest == 0, 1, greatest
    )
    return Check("gauge", float(off.max(initial=0.0)), 16 * s.unit)


def symmetrised(a: Matrix) -> Matrix:
    """From its lower triangle, which is all that is read."""
    low = np.tril(a, -1)
    return np.asarray(low + h(low) + np.diag(np.diag(a).real))


# --- factorisations -------------------------------------------------------------------------------------------------

Judge: TypeAlias = Callable[..., Iterator[Check]]


def judge(*names: str) -> Callable[[Judge], Judge]:
    """Decorator: `judge(scale, operands, results, **config)` checks one matrix of a linalg op's batch."""

    def add(judge: Judge) -> Judge:
        def every(op: ops.Extension, inputs: Sequence[Array], outputs: Sequence[Array]) -> list[Check]:
            places = ((..., *index) for index in np.ndindex(inputs[0].shape[2:]))
            return batch(judge, places, inputs, outputs, configurations.flags(op))

        CHECK_EXTENSION.row(*((linalg.FAMILY, name) for name in names))(every)
        return judge

    return add


def batch(
    judge: Judge, places: Iterable[Any], inputs: Sequence[Array], outputs: Sequence[Array], config: dict[str, Any]
) -> list[Check]:
    """The checks of the matrices at these places of the arrays.

    Nothing is asked where an operand is empty or not finite, or where a result is not finite that may have overflowed.
    """
    found: list[Check] = []
    for at in places:
        operands, results = [x[at] for x in inputs], [x[at] for x in outputs]
        if not all(np.isfinite(x).all() for x in operands):
            continue
        if all(np.isfinite(x).all() for x in results):
            found += judge(_scale(operands[0]), [*map(_wide, operands)], [*map(_wide, results)], **config)
        elif all(_moderate(x) for x in operands):
            found.append(Check("finite", np.inf, 0.0))
    return found


def _moderate(x: Matrix) -> bool:
    """Whether no product or quotient of a few elements overflows."""
    if x.dtype.kind == "i":
        return True
    f, size = FORMATS[DType.of(x).real], np.abs(x[x != 0])
    return bool((size < f.max**0.25).all() and (size > f.min_normal**0.25).all())


@judge("Cholesky")
def cholesky(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """Theorem 10.3: |L L^H - A| <= gamma |L| |L^H|."""
    (a,), (low,) = operands, results
    yield zero("triangular", np.triu(low, 1))
    diagonal = np.diag(low)
    yield Check("positive diagonal", *_excess(diagonal - np.abs(diagonal), s.eliminated(len(a)) * np.abs(diagonal)))
    bound = s.eliminated(len(a)) * (np.abs(low) @ np.abs(low).T) + s.tiny * len(a)
    yield within("residual", s.residual((low, h(low)), symmetrised(a)), bound)


@judge("Lu")
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
    bound = s.eliminated(k) * (np.abs(low) @ np.abs(up)) + s.tiny * (k + np.abs(up).sum(0)) + replaced
    yield within("residual", s.residual((low, up), rows), bound)


@judge("LuFactor")
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


@judge("FullPivLu")
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


@judge("Qr")
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
        yield _positive(s, np.diag(r)[np.newaxis])
    # the thin Q itself is off by another sqrt(n) gamma~
    allowed = (1 + np.sqrt(q.shape[1])) * bound * columns(a) + s.tiny * len(a) + rounded
    off, slack = s.residual((q, r), a)
    yield within("residual", (columns(off), columns(slack)), np.asarray(allowed))


@judge("Svd", "SvdFull")
def svd(s: Scale, operands: Matrices, results: Matrices, *, gauge: str = "Raw") -> Iterator[Check]:
    """Two sided Householder reduction, then a backward stable iteration: U S V^H is A within a norm-wise gamma~."""
    (a,), (u, values, vt) = operands, results
    bound = s.demanded(a.size)
    yield from _singular_values(s, values)
    yield orthogonal(s, "left vectors", u, bound)
    yield orthogonal(s, "right vectors", h(vt), bound)
    if gauge != "Raw":
        yield _positive(s, u)
    middle = np.zeros((u.shape[1], len(vt)), values.dtype)  # of full factors it has rows or columns of zeros
    np.fill_diagonal(middle, values)
    yield within_norm("residual", s.residual((u, middle, vt), a), 2 * bound * norm(a) + s.tiny * a.size)


def _singular_values(s: Scale, values: Matrix) -> Iterator[Check]:
    yield _descending(s, values)
    yield Check("not negative", float(np.maximum(-values, 0).max(initial=0.0)), s.tiny)


@judge("SvdVals")
def svd_values(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """Weyl: singular values move by at most the norm of the backward error."""
    (a,), (values,) = operands, results
    yield from _singular_values(s, values)
    true, off = _true_singular(s, a)
    bound = s.demanded(a.size) * norm(a) + s.tiny * a.size
    yield Check("values", float(np.abs(values - true).max(initial=0.0)), bound + off)


def _true_singular(s: Scale, a: Matrix) -> tuple[Matrix, float]:
    """Singular values from LAPACK, and how far any of them may be off.

    U S V^H is A but for its residual, and as far from X S Y^H with X and Y orthogonal, the polar factors of U and V, as these
    are: then Weyl. All of that is evaluated in the wide type, nothing about LAPACK assumed.
    """
    u, values, vt = np.linalg.svd(_standard(a), full_matrices=False)
    x, y = (_defect(s, v) for v in (u, h(vt)))
    away = sum(map(norm, s.residual((_wide(u), np.diag(values), _wide(vt)), a)))
    return values, away + float(values.max(initial=0.0)) * (x + y + x * y)


def _true_eigenvalues(s: Scale, a: Matrix) -> tuple[Matrix, float]:
    """Of a Hermitian matrix, likewise."""
    values, v = np.linalg.eigh(_standard(a))
    x, v = _defect(s, v), _wide(v)
    away = sum(map(norm, s.residual((a, v), v * values)))
    return values, away + x * (norm(a) + float(np.abs(values).max(initial=0.0)))


def _defect(s: Scale, q: Matrix) -> float:
    """At least the distance of `q` from its polar factor: |sigma - 1| <= |sigma^2 - 1|."""
    q = _wide(q)
    return float(sum(map(norm, s.residual((h(q), q), np.eye(q.shape[1])))))


def _standard(a: Matrix) -> Matrix:
    """For LAPACK, which has no wider type than float64."""
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


@judge("Eigh")
def eigh(s: Scale, operands: Matrices, results: Matrices, *, gauge: str) -> Iterator[Check]:
    """A V = V diag(w) within a norm-wise gamma~, V orthogonal, w ascending."""
    (a,), (values, v) = operands, results
    a, bound = symmetrised(a), s.demanded(a.size)
    yield _descending(s, -values)
    yield orthogonal(s, "orthogonal", v, bound)
    if gauge != "Raw":
        yield _positive(s, v)
    yield within_norm("residual", s.residual((a, v), v * values), 2 * bound * norm(a) + s.tiny * a.size)


@judge("EighVals")
def eigh_values(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """Weyl, as SvdVals."""
    (a,), (values,) = operands, results
    a = symmetrised(a)
    yield _descending(s, -values)
    true, off = _true_eigenvalues(s, a)
    bound = s.demanded(a.size) * norm(a) + s.tiny * a.size
    yield Check("values", float(np.abs(values - true).max(initial=0.0)), bound + off)


def _nearly_singular(s: Scale, a: Matrix, w: complex, bound: float) -> Check:
    true, off = _true_singular(s, a - w * np.eye(len(a)))
    rounded = 2 * s.wide_unit * (norm(a) + np.sqrt(len(a)) * abs(w))
    return Check("backward error", float(true[-1]), float(bound + off + rounded))


def _balanced(s: Scale, a: Matrix, v: Matrix, residual: tuple[Matrix, Matrix]) -> Check:
    """The residual of D^-1 A D, D being what LAPACK's geev scales by before it iterates: of that it is backward stable."""
    from scipy.linalg import matrix_balance

    by = np.asarray(matrix_balance(_standard(a), separate=True)[1][0])[:, None]
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
    slack, one = _gamma(4 * n * n * s.wide_unit), norm(a) or 1.0
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


# --- solvers --------------------------------------------------------------------------------------------------------
#
# An element of a solution below the least normal number may be read as zero, so that its error is up to that number, times
# the matrix in the residual.


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
    if np.diag(t).all():
        bound = s.eliminated(len(t)) * (np.abs(t) @ np.abs(x)) + s.tiny * (len(t) + np.abs(t).sum(1, keepdims=True))
        yield within("residual", s.residual((t, x), b), bound)


@judge("LuSolvePrepared")
def _solve_prepared(
    s: Scale, operands: Matrices, results: Matrices, *, transpose_a: bool, conjugate_a: bool
) -> Iterator[Check]:
    """Theorem 8.5 for each of the given factors: |b - P^T L U x| <= gamma P^T |L| |U| |x|."""
    (_, packed, pivots, b), (x,) = operands, results
    factors = [f.conj() if conjugate_a else f for f in _unpacked(packed, pivots)]
    factors = [f.T for f in reversed(factors)] if transpose_a else factors
    size, lost = np.abs(x), np.full_like(np.abs(x), s.tiny)
    for f in reversed(factors):
        size, lost = np.abs(f) @ size, np.abs(f) @ lost
    if b.size:
        bound = 2 * s.eliminated(len(b)) * size + s.tiny * len(b) + lost
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

        _, low, up = lu(_standard(a))
        size = np.abs(up).T @ (np.abs(low).T @ np.abs(x)) if transpose_a else np.abs(low) @ (np.abs(up) @ np.abs(x))
        lost = s.tiny * (len(a) + np.abs(a).sum(0 if transpose_a else 1).max(initial=0.0))
        bound = 6 * s.eliminated(len(a)) * size.max(0, initial=0.0) + lost
        yield within("residual", s.residual((a.T if transpose_a else a, x), b), np.broadcast_to(bound, b.shape))
