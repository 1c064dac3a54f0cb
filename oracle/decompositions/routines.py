"""LAPACK's routines (`tenferro_ref.extensions.lapack`), judged as the decompositions that they are part of.

Householder vectors stand for the product of their reflectors, which is formed in the wider type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from oracle.checks import CHECK_EXTENSION, UNCHECKED, Check
from oracle.decompositions import factors, householder, solvers, spectra
from oracle.decompositions.measures import (
    Matrices,
    Matrix,
    Scale,
    h,
    norm,
    orthogonal,
    symmetrised,
    within,
    within_norm,
    zero,
)
from oracle.decompositions.rows import Demands, Finite, Judge, Part, batch, scaled, whole
from tenferro_ref import ops
from tenferro_ref.extensions import lapack
from tenferro_ref.tensor import Array


def _routine(name: str, finite: Finite = scaled, read: Part = whole, made: Part = whole) -> Callable[[Judge], Judge]:
    """Decorator: `judge(scale, operands, results, **flags)` checks one matrix of a routine's batch; None for a result that
    has no meaning.
    """

    def add(judge: Judge) -> Judge:
        def every(op: ops.Extension, inputs: Sequence[Array], outputs: Sequence[Array], flushes: bool) -> list[Check]:
            without = lapack.garbage(op, len(outputs))
            kept = [i for i in range(len(outputs)) if i not in without]

            def judged(s: Scale, operands: Matrices, results: Matrices, **flags: Any) -> Iterator[Check]:
                known = dict(zip(kept, results, strict=True))
                yield from judge(s, operands, [known.get(i) for i in range(len(outputs))], **flags)

            places = np.ndindex(inputs[lapack.ROUTINES[op.op].matrix].shape[:-2])
            demands = Demands(finite, read, made)
            return batch(judged, places, inputs, [outputs[i] for i in kept], lapack.config_of(op), flushes, demands)

        CHECK_EXTENSION.row((lapack.FAMILY, name))(every)
        return judge

    return add


def _half(matrices: Matrices, *, uplo: str, **flags: str) -> Matrices:
    """Of the first matrix the triangle that is read, and written: the other one stays."""
    a, *others = matrices
    return [np.tril(a) if uplo == "L" else np.triu(a), *others]


def _info(info: Matrix, *expected: int) -> Check:
    """One of these; 0 without any."""
    return Check("info", float(min(abs(int(info) - value) for value in expected or (0,))), 0.0)


def _potrf_finite(s: Scale, operands: Matrices, *, uplo: str) -> bool:
    return factors.cholesky_finite(s, [h(operands[0]) if uplo == "U" else operands[0]])


@_routine("potrf", _potrf_finite, _half, _half)
def _potrf(s: Scale, operands: Matrices, results: Matrices, *, uplo: str) -> Iterator[Check]:
    """As Cholesky; of a matrix that has no factor `info` says so."""
    (a,), (factor, info) = operands, results
    if uplo == "U":
        a, factor = h(a), h(factor)
    least, most = factors.smallest(s, a)
    if not least > 0:
        if most < 0:
            yield Check("info", float(info <= 0), 0.0)
        yield UNCHECKED
        return
    yield _info(info)
    yield from factors.cholesky(s, [a], [np.tril(factor)])
    kept = (factor == a) | (np.isnan(factor) & np.isnan(a))
    yield Check("other triangle", float(np.triu(~kept, 1).sum()), 0.0)  # the matrix stays there


def _triangular(*, side: str, uplo: str, trans_x: str, diag: str) -> dict[str, bool]:
    """The flags of `TriangularSolve`."""
    return {
        "left_side": side == "L",
        "lower": uplo == "L",
        "transpose_a": trans_x != "N",
        "unit_diagonal": diag == "U",
    }


def _trsm_finite(s: Scale, operands: Matrices, **letters: str) -> bool:
    return solvers.triangular_finite(s, operands, **_triangular(**letters))


def _trsm_read(operands: Matrices, **letters: str) -> Matrices:
    return solvers.triangle(operands, **_triangular(**letters))


@_routine("trsm", _trsm_finite, _trsm_read)
def _trsm(s: Scale, operands: Matrices, results: Matrices, **letters: str) -> Iterator[Check]:
    a, b = operands
    a = a.conj() if letters["trans_x"] == "C" else a
    yield from solvers.triangular_solve(s, [a, b], results, **_triangular(**letters))


@_routine("getrf", factors.lu_finite)
def _getrf(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    packed, pivots, info = results
    without = (
        np.where(np.maximum(np.abs(packed.real), np.abs(packed.imag)) < s.tiny, 0, packed) if s.flushes else packed
    )
    yield _info(info, lapack.first_zero(packed), lapack.first_zero(without))  # a subnormal pivot may be read as zero
    yield from factors.lu_factor(s, operands, [packed, pivots])


@_routine("geqrf")
def _geqrf(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    packed, tau = results
    q, unitary = householder.reflected(s, packed, tau, len(tau))
    yield Check("reflectors", 0.0 if unitary else 1.0, 0.0)
    yield from factors.qr(s, operands, [q, np.triu(packed)[: len(tau)]], gauge="Raw")


@_routine("orgqr", householder.unitary)
def _orgqr(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """Equation 19.13: within sqrt(n) gamma~_mn of the product; nothing is asked where these are no reflectors."""
    (packed, tau), (q,) = operands, results
    expected, unitary = householder.reflected(s, packed, tau, q.shape[1])
    bound = np.sqrt(q.shape[1]) * s.demanded(q.size)
    yield within_norm("product", s.residual((expected,), q), bound) if unitary else UNCHECKED


@_routine("ormqr", householder.unitary)
def _ormqr(s: Scale, operands: Matrices, results: Matrices, *, left: str, transpose: str) -> Iterator[Check]:
    """Lemma 19.3: each column within gamma~_mn of the product; nothing is asked where these are no reflectors."""
    (packed, tau, c), (made,) = operands, results
    q, unitary = householder.reflected(s, packed, tau, len(packed))
    q = h(q) if transpose == "T" else q
    factors, bound = (q, c) if left == "T" else (c, q), s.demanded(packed.size) * norm(c)
    product = within_norm("product", s.residual(factors, made), 2 * bound + s.tiny * c.size)
    yield product if unitary else UNCHECKED


@_routine("geqp3")
def _geqp3(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """As geqrf of the permuted columns, with a falling diagonal of R."""
    (a, _), (packed, order, tau) = operands, results
    yield from householder.pivoted(s, a, order - 1, np.abs(np.diag(packed)))
    if householder.is_permutation(order - 1):
        yield from _geqrf(s, [a[:, order - 1]], [packed, tau])


@_routine("gehrd")
def _gehrd(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """A is Q H Q^H within a norm-wise gamma~, with H zero below its subdiagonal."""
    packed, tau, info = results
    yield _info(info)
    yield from _similar(s, operands[0], packed, tau, np.triu(packed, -1))


@_routine("sytrd", read=_half, made=_half)
def _sytrd(s: Scale, operands: Matrices, results: Matrices, *, uplo: str) -> Iterator[Check]:
    """As gehrd, of a Hermitian matrix. The upper triangle is the lower one with rows and columns in reverse."""
    (a,), (packed, diagonal, beside, tau, info) = operands, results
    if uplo == "U":
        a, packed, diagonal, beside, tau = a[::-1, ::-1], packed[::-1, ::-1], diagonal[::-1], beside[::-1], tau[::-1]
    yield _info(info)
    yield zero("diagonal", np.diag(packed).real - diagonal)
    yield zero("beside the diagonal", np.diag(packed, -1) - beside)
    tridiagonal = np.diag(diagonal) + np.diag(beside, -1) + np.diag(beside, 1)
    yield from _similar(s, symmetrised(a), packed, tau, tridiagonal)


def _similar(s: Scale, a: Matrix, packed: Matrix, tau: Matrix, middle: Matrix) -> Iterator[Check]:
    """A is Q M Q^H, where Q is the product of reflectors that leave the first row alone."""
    q, below = np.eye(len(a), dtype=packed.dtype), packed[1:, :-1]
    q[1:, 1:], unitary = householder.reflected(s, below, tau, len(below))
    yield Check("reflectors", 0.0 if unitary else 1.0, 0.0)
    bound = 2 * s.demanded(a.size) * norm(a) + s.tiny * a.size
    yield within_norm("residual", s.residual((q, middle, h(q)), a), bound)


@_routine("gees")
def _gees(s: Scale, operands: Matrices, results: Matrices, *, mode: str, sort: str) -> Iterator[Check]:
    """A is Q T Q^H within a norm-wise gamma~; T is triangular, of a real matrix with blocks of 2 x 2 that have equal diagonals."""
    (a,), (form, vectors, *parts, _, info) = operands, results
    values = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
    below = np.diag(form, -1)
    yield _info(info)
    yield zero("triangular", np.tril(form, -1 if s.complex else -2))
    yield zero("blocks", (below[1:] != 0) & (below[:-1] != 0))
    yield zero("signs of blocks", (below * np.diag(form, 1)).real[below != 0] >= 0)
    yield zero("diagonals of blocks", np.diff(np.diag(form))[below != 0])
    yield zero("values", values.real - np.diag(form).real)
    size = np.sqrt(np.abs(below * np.diag(form, 1)))
    turns = np.diag(form).imag if s.complex else np.append(size, 0) - np.insert(size, 0, 0)
    yield within("turns", (values.imag - turns, 4 * s.wide_unit * np.abs(turns)), 4 * s.unit * np.abs(turns) + s.lost)
    yield from spectra.eig(s, [a], [values])
    bound = s.demanded(a.size)
    if mode == "V":
        yield orthogonal(s, "orthogonal", vectors, bound)
        off = s.residual((vectors, form, h(vectors)), a)
        yield within_norm("residual", off, 2 * bound * norm(a) + s.tiny * a.size)
    else:
        norms = abs(norm(form) - norm(a))
        yield Check("norm", norms, 2 * bound * norm(a) + s.tiny * a.size)


def _tridiagonal(operands: Matrices) -> Matrices:
    """The matrix and the right-hand side."""
    below, diagonal, above, b = operands
    return [np.diag(diagonal) + np.diag(below[1:], -1) + np.diag(above[:-1], 1), b]


def _gtsv_finite(s: Scale, operands: Matrices) -> bool:
    return solvers.solve_finite(s, _tridiagonal(operands))


@_routine("gtsv", _gtsv_finite)
def _gtsv(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """As Solve; of a matrix that is nearly singular a pivot may be zero, whose place `info` is."""
    info = results[-1]
    if info and not _gtsv_finite(s, operands):
        yield UNCHECKED
    else:
        yield _info(info)
        yield from solvers.solve(s, _tridiagonal(operands), [results[3]])


@_routine("gesvd")
@_routine("gesdd")
def _gesdd(s: Scale, operands: Matrices, results: Matrices, *, mode: str) -> Iterator[Check]:
    (a,), (_, values, u, vt, info) = operands, results
    yield _info(info)
    if mode == "N":
        yield from spectra.svd_values(s, operands, [values])
        return
    k = min(a.shape)
    yield from spectra.svd(s, operands, [u[:, :k], values, vt[:k]], gauge="Raw")
    if mode == "A":
        yield orthogonal(s, "all left vectors", u, s.demanded(a.size))
        yield orthogonal(s, "all right vectors", h(vt), s.demanded(a.size))


@_routine("syevd", read=_half)
def _syevd(s: Scale, operands: Matrices, results: Matrices, *, mode: str, uplo: str) -> Iterator[Check]:
    (a,), (vectors, values, info) = operands, results
    a = a if uplo == "L" else h(a)
    yield _info(info)
    if mode == "N":
        yield from spectra.eigh_values(s, [a], [values])
    else:
        yield from spectra.eigh(s, [a], [values, vectors], gauge="Raw")


@_routine("geev")
def _geev(s: Scale, operands: Matrices, results: Matrices, *, compute_left: str, compute_right: str) -> Iterator[Check]:
    (a,), (*parts, left, right, info) = operands, results
    values = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
    yield _info(info)
    yield from spectra.eig(s, [a], [values, *([right] if compute_right == "V" else [])])
    if compute_left == "V":  # v^H A = w v^H
        yield from spectra.eig(s, [h(a)], [values.conj(), left])
