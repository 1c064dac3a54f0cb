"""LAPACK's routines (`tenferro_ref.extensions.lapack`), judged as the decompositions that they are part of.

Householder vectors stand for the product of their reflectors, which is formed in the wider type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from oracle import decompositions, householder
from oracle.checks import CHECK_EXTENSION, Check
from oracle.decompositions import Judge, Matrices, Matrix, Scale
from tenferro_ref import ops
from tenferro_ref.extensions import lapack
from tenferro_ref.tensor import Array


def _routine(name: str) -> Callable[[Judge], Judge]:
    """Decorator: `judge(scale, operands, results, **flags)` checks one matrix of a routine's batch; None for a result that
    has no meaning.
    """

    def add(judge: Judge) -> Judge:
        def every(op: ops.Extension, inputs: Sequence[Array], outputs: Sequence[Array]) -> list[Check]:
            without = lapack.garbage(op, len(outputs))
            kept = [i for i in range(len(outputs)) if i not in without]

            def judged(s: Scale, operands: Matrices, results: Matrices, **flags: Any) -> Iterator[Check]:
                known = dict(zip(kept, results, strict=True))
                yield from judge(s, operands, [known.get(i) for i in range(len(outputs))], **flags)

            places = np.ndindex(inputs[0].shape[:-2])
            return decompositions.batch(judged, places, inputs, [outputs[i] for i in kept], lapack.config_of(op))

        CHECK_EXTENSION.row((lapack.FAMILY, name))(every)
        return judge

    return add


def _info(info: Matrix, expected: int = 0) -> Check:
    return Check("info", float(abs(int(info) - expected)), 0.0)


@_routine("potrf")
def _potrf(s: Scale, operands: Matrices, results: Matrices, *, uplo: str) -> Iterator[Check]:
    (a,), (factor, info) = operands, results
    if uplo == "U":
        a, factor = decompositions.h(a), decompositions.h(factor)
    yield _info(info)
    yield from decompositions.cholesky(s, [a], [np.tril(factor)])


@_routine("trsm")
def _trsm(
    s: Scale, operands: Matrices, results: Matrices, *, side: str, uplo: str, trans_x: str, diag: str
) -> Iterator[Check]:
    a, b = operands
    flags = {
        "left_side": side == "L",
        "lower": uplo == "L",
        "transpose_a": trans_x != "N",
        "unit_diagonal": diag == "U",
    }
    yield from decompositions.triangular_solve(s, [a.conj() if trans_x == "C" else a, b], results, **flags)


@_routine("getrf")
def _getrf(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    packed, pivots, info = results
    yield _info(info, lapack.first_zero(packed))
    yield from decompositions.lu_factor(s, operands, [packed, pivots, None])


@_routine("geqrf")
def _geqrf(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    packed, tau = results
    q, unitary = householder.reflected(s, packed, tau, len(tau))
    yield Check("reflectors", 0.0 if unitary else 1.0, 0.0)
    yield from decompositions.qr(s, operands, [q, np.triu(packed)[: len(tau)]], gauge="Raw")


@_routine("orgqr")
def _orgqr(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """Equation 19.13: within sqrt(n) gamma~_mn of the product; nothing is asked where these are no reflectors."""
    (packed, tau), (q,) = operands, results
    expected, unitary = householder.reflected(s, packed, tau, q.shape[1])
    if unitary:
        bound = np.sqrt(q.shape[1]) * s.demanded(q.size)
        yield decompositions.within_norm("product", s.residual((expected,), q), bound)


@_routine("gesdd")
def _gesdd(s: Scale, operands: Matrices, results: Matrices, *, mode: str) -> Iterator[Check]:
    (a,), (_, values, u, vt, info) = operands, results
    yield _info(info)
    if mode == "N":
        yield from decompositions.svd_values(s, operands, [values])
        return
    k = min(a.shape)
    yield from decompositions.svd(s, operands, [u[:, :k], values, vt[:k]], gauge="Raw")
    if mode == "A":
        yield decompositions.orthogonal(s, "all left vectors", u, s.demanded(a.size))
        yield decompositions.orthogonal(s, "all right vectors", decompositions.h(vt), s.demanded(a.size))


@_routine("syevd")
def _syevd(s: Scale, operands: Matrices, results: Matrices, *, mode: str, uplo: str) -> Iterator[Check]:
    (a,), (vectors, values, info) = operands, results
    a = a if uplo == "L" else decompositions.h(a)
    yield _info(info)
    if mode == "N":
        yield from decompositions.eigh_values(s, [a], [values])
    else:
        yield from decompositions.eigh(s, [a], [values, vectors], gauge="Raw")


@_routine("geev")
def _geev(s: Scale, operands: Matrices, results: Matrices, *, compute_left: str, compute_right: str) -> Iterator[Check]:
    (a,), (*parts, left, right, info) = operands, results
    values = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
    yield _info(info)
    yield from decompositions.eig(s, [a], [values, *([right] if compute_right == "V" else [])])
    if compute_left == "V":  # v^H A = w v^H
        yield from decompositions.eig(s, [decompositions.h(a)], [values.conj(), left])
