"""Decompositions and solvers, judged by residuals and invariants with proved backward-error bounds.

Factors are not unique, so no element of them is compared. What is checked is what every backward stable algorithm gives:
the factors multiply to the matrix, within the bound of its theorem; they are triangular, orthogonal, ordered, permutations.
Theorems and equations are those of Higham, Accuracy and Stability of Numerical Algorithms (2nd edition, 2002); where he
gives a constant as "a small integer" it is `SMALL` here. Residuals are evaluated in a wider type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from oracle.enclosure.formats import FORMATS
from oracle.verdict import Comparison
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.extensions import linalg
from tenferro_ref.ops import Extension
from tenferro_ref.tensor import Array

Matrix: TypeAlias = np.ndarray[Any, Any]

#: Higham's c in gamma~_k = c k u / (1 - c k u), for real and for complex arithmetic.
SMALL = {False: 8, True: 24}


@dataclass(frozen=True)
class Check:
    """One invariant of one matrix of a batch: the error may be at most the bound."""

    name: str
    error: float
    bound: float

    @property
    def holds(self) -> bool:
        return bool(self.error <= self.bound)


@dataclass(frozen=True)
class _Scale:
    """Bounds of one dtype."""

    unit: float
    complex: bool
    tiny: float

    def gamma(self, k: int) -> float:
        """gamma_k, of complex arithmetic with its larger unit (lemma 3.5)."""
        return _gamma(k * self.unit * (4 if self.complex else 1))

    def growing(self, k: int) -> float:
        """gamma~_k."""
        return _gamma(SMALL[self.complex] * k * self.unit)


def _gamma(ku: float) -> float:
    return ku / (1 - ku) if ku < 0.5 else np.inf


def _scale(x: Matrix) -> _Scale:
    f = FORMATS[DType.of(x).real]
    return _Scale(f.unit, x.dtype.kind == "c", f.min_normal)


def checks(op: Extension, inputs: Sequence[Array], outputs: Sequence[Array]) -> list[Check]:
    """The invariants of a linalg op's results, over all matrices of the batch.

    Nothing is asked of a matrix that is not finite. A result that is not finite fails.

    Raises
    ------
    UnsupportedOp
        Not an op of the linalg family that is judged here.
    """
    judge = _JUDGES.get(op.op) if op.family == linalg.FAMILY else None
    if judge is None:
        raise UnsupportedOp(op=op.op, reason=f"no invariants are known for family {op.family!r}")
    flags = linalg.config_of(op)
    found: list[Check] = []
    for index in np.ndindex(inputs[0].shape[2:]):
        at = (..., *index)
        given, made = [x[at] for x in inputs], [x[at] for x in outputs]
        if 0 in given[0].shape or not all(np.isfinite(x).all() for x in given):
            continue
        if not all(np.isfinite(x).all() for x in made):
            found.append(Check("finite", np.inf, 0.0))
            continue
        found += judge(_scale(given[0]), [_wide(x) for x in given], [_wide(x) for x in made], **flags)
    return found


def compare(op: Extension, inputs: Sequence[Array], outputs: Sequence[Array]) -> Comparison:
    """`checks` as a comparison: one element an invariant."""
    found = checks(op, inputs, outputs)
    failed = [c for c in found if not c.holds]
    if not failed:
        return Comparison(len(found), len(found))
    first = failed[0]
    return Comparison(
        elements=len(found),
        decided=len(found),
        outside=len(failed),
        worst_output=0,
        worst_index=(),
        observed=f"{first.name} {first.error:.3g}",
        expected=f"at most {first.bound:.3g}",
        value_class=f"{op.op}: {first.name}",
    )


def _wide(x: Matrix) -> Matrix:
    if x.dtype.kind == "i":
        return x
    kinds = {"f4": np.float64, "f8": np.longdouble, "c8": np.complex128, "c16": np.clongdouble}
    return x.astype(kinds[x.dtype.str[1:]])


# --- measures -------------------------------------------------------------------------------------------------------


def _norm(x: Matrix) -> float:
    """Frobenius norm."""
    return float(np.sqrt((np.abs(x) ** 2).sum()))


def _h(x: Matrix) -> Matrix:
    return x.conj().T


def _excess(error: Matrix, bound: Matrix) -> tuple[float, float]:
    """The element whose error is furthest beyond its bound."""
    worst = np.unravel_index(np.argmax(np.abs(error) - bound), error.shape)
    return float(np.abs(error[worst])), float(bound[worst])


def _zero(name: str, x: Matrix) -> Check:
    return Check(name, float(np.abs(x).max(initial=0.0)), 0.0)


def _orthogonal(name: str, q: Matrix, bound: float) -> Check:
    """Columns, against the identity."""
    k = q.shape[1]
    return Check(name, _norm(_h(q) @ q - np.eye(k)), 2 * np.sqrt(k) * bound)


def _descending(x: Matrix) -> Check:
    return Check("order", float(np.maximum(np.diff(x), 0).max(initial=0.0)), 0.0)


def _positive(s: _Scale, columns: Matrix) -> Check:
    """A gauge: the largest entry of each column, or one as large, is positive (SEMANTICS 6)."""
    size = np.abs(columns)
    largest = size >= size.max(0) * (1 - 16 * s.unit)
    off = np.where(largest, np.abs(columns - size), np.inf).min(0) / np.where(size.max(0) == 0, 1, size.max(0))
    return Check("gauge", float(off.max(initial=0.0)), 16 * s.unit)


def _symmetrised(a: Matrix) -> Matrix:
    """From its lower triangle, which is all that is read."""
    low = np.tril(a, -1)
    return np.asarray(low + _h(low) + np.diag(np.diag(a).real))


# --- factorisations -------------------------------------------------------------------------------------------------

Judge: TypeAlias = Callable[..., Iterator[Check]]
_JUDGES: dict[str, Judge] = {}


def _judge(*names: str) -> Callable[[Judge], Judge]:
    def add(function: Judge) -> Judge:
        _JUDGES.update(dict.fromkeys(names, function))
        return function

    return add


@_judge("Cholesky")
def _cholesky(s: _Scale, given: Sequence[Matrix], made: Sequence[Matrix]) -> Iterator[Check]:
    """Theorem 10.3: |L L^H - A| <= gamma_{n+1} |L| |L^H|."""
    (a,), (low,) = given, made
    yield _zero("triangular", np.triu(low, 1))
    yield Check("positive diagonal", float(np.maximum(-np.diag(low).real, 0).max()), 0.0)
    bound = s.gamma(len(a) + 1) * (np.abs(low) @ np.abs(low).T) + s.tiny * len(a)
    yield Check("residual", *_excess(low @ _h(low) - _symmetrised(a), bound))


@_judge("Lu")
def _lu(s: _Scale, given: Sequence[Matrix], made: Sequence[Matrix]) -> Iterator[Check]:
    """Theorem 9.3: |L U - P A| <= gamma_k |L| |U|, with multipliers of modulus at most 1."""
    (a,), (p, low, up, parity) = given, made
    yield from _triangles(s, p @ a, low, up)
    yield Check("permutation", _not_permutation(p), 0.0)
    yield Check("parity", float(abs(np.linalg.det(p.real.astype(float)) - parity)), 1e-6)


def _not_permutation(p: Matrix) -> float:
    ones = (p == 1).sum()
    return float(
        np.abs(p.sum(0) - 1).max() + np.abs(p.sum(1) - 1).max() + abs(ones - len(p)) + (~np.isin(p, (0, 1))).sum()
    )


def _triangles(s: _Scale, rows: Matrix, low: Matrix, up: Matrix, replaced: float = 0.0) -> Iterator[Check]:
    k = min(rows.shape)
    yield _zero("lower triangular", np.triu(low, 1))
    yield _zero("unit diagonal", np.diag(low) - 1)
    yield _zero("upper triangular", np.tril(up, -1))
    # LAPACK compares |re| + |im|, which may prefer a pivot of smaller modulus
    yield Check("multipliers", float(np.abs(low).max()), (np.sqrt(2) if s.complex else 1) * (1 + 8 * s.unit))
    bound = s.gamma(k) * (np.abs(low) @ np.abs(up)) + s.tiny * k + replaced
    yield Check("residual", *_excess(low @ up - rows, bound))


@_judge("LuFactor")
def _lu_factor(s: _Scale, given: Sequence[Matrix], made: Sequence[Matrix]) -> Iterator[Check]:
    """As Lu; pivots are the rows, from 1, that each row was exchanged with."""
    (a,), (packed, pivots, _) = given, made
    k = min(a.shape)
    order = np.arange(len(a))
    inside = bool(((pivots > np.arange(k)) & (pivots <= len(a))).all())
    yield Check("pivots", 0.0 if inside else 1.0, 0.0)
    if inside:
        for i, other in enumerate(pivots - 1):
            order[[i, other]] = order[[other, i]]
        low = np.tril(packed[:, :k], -1) + np.eye(len(a), k)
        yield from _triangles(s, a[order], low, np.triu(packed[:k]))


@_judge("FullPivLu")
def _full_piv_lu(s: _Scale, given: Sequence[Matrix], made: Sequence[Matrix]) -> Iterator[Check]:
    """P A Q^T = L U; a pivot that is nothing but rounding error is replaced by one of its size."""
    (a,), (p, low, up, q, _) = given, made
    yield Check("row permutation", _not_permutation(p), 0.0)
    yield Check("column permutation", _not_permutation(q), 0.0)
    yield from _triangles(s, p @ a @ q.T, low, up, 4 * s.unit * float(np.abs(a).max()))


@_judge("Qr")
def _qr(s: _Scale, given: Sequence[Matrix], made: Sequence[Matrix], *, gauge: str) -> Iterator[Check]:
    """Theorem 19.4: columns of Q R - A within gamma~_mn |a_j|; equation 19.13: Q within sqrt(n) gamma~_mn of orthogonal."""
    (a,), (q, r) = given, made
    bound = s.growing(a.size)
    yield _zero("upper triangular", np.tril(r, -1))
    yield _orthogonal("orthogonal", q, bound)
    if gauge != "Raw":
        yield _positive(s, np.diag(r)[np.newaxis])
    columns = np.sqrt((np.abs(a) ** 2).sum(0))
    # the thin Q itself is off by another sqrt(n) gamma~
    allowed = (1 + np.sqrt(q.shape[1])) * bound * columns + s.tiny * len(a)
    yield Check("residual", *_excess(np.sqrt((np.abs(q @ r - a) ** 2).sum(0)), allowed))


@_judge("Svd")
def _svd(s: _Scale, given: Sequence[Matrix], made: Sequence[Matrix], *, gauge: str) -> Iterator[Check]:
    """Two sided Householder reduction, then a backward stable iteration: U S V^H is A within a norm-wise gamma~."""
    (a,), (u, values, vt) = given, made
    bound = s.growing(a.size)
    yield from _singular_values(values)
    yield _orthogonal("left vectors", u, bound)
    yield _orthogonal("right vectors", _h(vt), bound)
    if gauge != "Raw":
        yield _positive(s, u)
    residual = _norm((u * values) @ vt - a)
    yield Check("residual", residual, 2 * bound * _norm(a) + s.tiny * a.size)


def _singular_values(values: Matrix) -> Iterator[Check]:
    yield _descending(values)
    yield Check("not negative", float(np.maximum(-values, 0).max()), 0.0)


@_judge("SvdVals")
def _svd_values(s: _Scale, given: Sequence[Matrix], made: Sequence[Matrix]) -> Iterator[Check]:
    """Weyl: singular values move by at most the norm of the backward error; the reference's own error is allowed too."""
    (a,), (values,) = given, made
    yield from _singular_values(values)
    true = np.linalg.svd(_standard(a), compute_uv=False)
    yield Check("values", float(np.abs(values - true).max()), 2 * s.growing(a.size) * _norm(a) + s.tiny * a.size)


def _standard(a: Matrix) -> Matrix:
    """For LAPACK, which has no wider type than float64."""
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


@_judge("Eigh")
def _eigh(s: _Scale, given: Sequence[Matrix], made: Sequence[Matrix], *, gauge: str) -> Iterator[Check]:
    """A V = V diag(w) within a norm-wise gamma~, V orthogonal, w ascending."""
    (a,), (values, v) = given, made
    a, bound = _symmetrised(a), s.growing(a.size)
    yield _descending(-values)
    yield _orthogonal("orthogonal", v, bound)
    if gauge != "Raw":
        yield _positive(s, v)
    allowed = 2 * bound * _norm(a) + s.tiny * a.size
    yield Check("residual", _norm(a @ v - v * values), allowed)


@_judge("EighVals")
def _eigh_values(s: _Scale, given: Sequence[Matrix], made: Sequence[Matrix]) -> Iterator[Check]:
    """Weyl, as SvdVals."""
    (a,), (values,) = given, made
    a = _symmetrised(a)
    yield _descending(-values)
    true = np.linalg.eigvalsh(_standard(a))
    yield Check("values", float(np.abs(values - true).max()), 2 * s.growing(a.size) * _norm(a) + s.tiny * a.size)


@_judge("Eig", "EigVals")
def _eig(s: _Scale, given: Sequence[Matrix], made: Sequence[Matrix]) -> Iterator[Check]:
    """w is an eigenvalue of some A + E with |E| <= e exactly if sigma_min(A - w I) <= e; the trace is that of A + E."""
    (a,), (values, *vectors) = given, made
    n = len(a)
    allowed = s.growing(n * n) * _norm(a) + s.tiny * n
    least = [np.linalg.svd(_standard(a - w * np.eye(n)), compute_uv=False)[-1] for w in values]
    yield Check("backward error", float(max(least)), allowed)
    yield Check("trace", float(abs(values.sum() - np.trace(a))), n * allowed)
    for v in vectors:
        yield Check("unit vectors", float(np.abs(np.sqrt((np.abs(v) ** 2).sum(0)) - 1).max()), s.growing(n))
        residual = np.sqrt((np.abs(a @ v - v * values) ** 2).sum(0))
        yield Check("residual", float(residual.max()), allowed)


# --- solvers --------------------------------------------------------------------------------------------------------


@_judge("TriangularSolve")
def _triangular_solve(
    s: _Scale,
    given: Sequence[Matrix],
    made: Sequence[Matrix],
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    unit_diagonal: bool,
) -> Iterator[Check]:
    """Theorem 8.5: |b - T x| <= gamma_n |T| |x|, whatever the order."""
    (a, b), (x,) = given, made
    t = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        t = t - np.diag(np.diag(t)) + np.eye(len(t))
    t = t.T if transpose_a else t
    if not left_side:
        t, b, x = t.T, b.T, x.T
    if np.diag(t).all():
        yield Check("residual", *_excess(b - t @ x, s.gamma(len(t) + 1) * (np.abs(t) @ np.abs(x)) + s.tiny * len(t)))


@_judge("Solve", "FullPivLuSolve", "LuSolvePrepared")
def _solve(
    s: _Scale,
    given: Sequence[Matrix],
    made: Sequence[Matrix],
    *,
    transpose_a: bool = False,
    conjugate_a: bool = False,
) -> Iterator[Check]:
    """Theorem 9.4: |b - A x| <= gamma_3n P^T |L| |U| |x|.

    The factors are those of an elimination of our own (of the given factors where there are); twice, since the implementation
    may take other pivots.
    """
    (a, b), (x,) = (given[0], given[-1]), made
    factors = _unpacked(given[1], given[2]) if len(given) == 4 else _eliminated(a)
    a = a.conj() if conjugate_a else a
    a, factors = (a.T, factors.T) if transpose_a else (a, factors)
    bound = 2 * s.gamma(3 * len(a)) * (factors @ np.abs(x)) + s.tiny * len(a)
    yield Check("residual", *(_excess(b - a @ x, bound) if b.size else (0.0, 0.0)))


def _unpacked(packed: Matrix, pivots: Matrix) -> Matrix:
    """P^T |L| |U| of LAPACK's packed factors."""
    size = np.abs(np.tril(packed, -1) + np.eye(len(packed))) @ np.abs(np.triu(packed))
    for i in reversed(range(len(pivots))):
        size[[i, pivots[i] - 1]] = size[[pivots[i] - 1, i]]
    return np.asarray(size)


def _eliminated(a: Matrix) -> Matrix:
    """P^T |L| |U| of an elimination with partial pivoting."""
    u, n = a.copy(), len(a)
    low, pivots = np.zeros_like(u), np.arange(1, n + 1)
    for k in range(n - 1):
        p = k + int(np.argmax(np.abs(u[k:, k])))
        pivots[k] = p + 1
        u[[k, p]], low[[k, p]] = u[[p, k]], low[[p, k]]
        if u[k, k] != 0:
            low[k + 1 :, k] = u[k + 1 :, k] / u[k, k]
            u[k + 1 :] -= np.outer(low[k + 1 :, k], u[k])
    return _unpacked(low + np.triu(u), pivots)
