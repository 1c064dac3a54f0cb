"""QR factorisations with pivoting, and as Householder states, judged by the product that they stand for (SEMANTICS C.2).

Q and R of a state are not unique: what is checked is that reflectors and triangle give the matrix, and that what is read from a
state is what is in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oracle.checks import UNCHECKED, Check
from oracle.decompositions.factors import qr
from oracle.decompositions.measures import Matrices, Matrix, Scale, columns, norm, within, zero
from oracle.decompositions.rows import judge, phased, scaled


def is_permutation(order: Matrix) -> bool:
    return bool((np.sort(order) == np.arange(len(order))).all())


def pivoted(s: Scale, a: Matrix, order: Matrix, diagonal: Matrix) -> Iterator[Check]:
    """An order of columns that makes the moduli of R's diagonal fall.

    Norms of what is left of the columns are kept up to date within the square root of a unit (LAPACK Working Note 176).
    """
    slack = len(a) * np.sqrt(s.unit) * diagonal + s.demanded(a.size) * norm(a) + s.reflected(a)
    yield Check("permutation", float(not is_permutation(order)), 0.0)
    yield Check("falling diagonal", float(np.maximum(np.diff(diagonal) - slack[:-1], 0).max(initial=0.0)), 0.0)


@judge("RankRevealingQr", finite=phased)
def _rank_revealing(
    s: Scale, operands: Matrices, results: Matrices, *, gauge: str, rtol: float, atol: float
) -> Iterator[Check]:
    """As Qr of the permuted columns, with a falling diagonal of R; the rank is what SEMANTICS C.2 makes of that diagonal."""
    (a,), (q, r, order, rank) = operands, results
    size = np.abs(np.diag(r))
    yield from pivoted(s, a, order, size)
    if is_permutation(order):
        yield from qr(s, [a[:, order]], [q, r], gauge=gauge)
    threshold = max(atol, rtol * size[:1].sum())
    # a subnormal number may be read as 0
    bounds = threshold * (1 + 4 * s.unit) + s.tiny, threshold * (1 - 4 * s.unit)
    ranks = [np.cumprod(size > bound).sum() for bound in bounds]
    yield Check("rank", float(not min(ranks) <= rank <= max(ranks)), 0.0)


def reflected(s: Scale, packed: Matrix, tau: Matrix, count: int) -> tuple[Matrix, bool]:
    """The first columns of the product of the reflectors `1 - tau v v^H`, and whether these are unitary."""
    q, unitary = np.eye(len(packed), count, dtype=packed.dtype), True
    for j in reversed(range(len(tau))):
        v = np.concatenate([np.zeros(j), [1], packed[j + 1 :, j]]).astype(packed.dtype)
        size = float((np.abs(v) ** 2).sum())
        off = abs(abs(1 - tau[j] * size) - 1)
        unitary = unitary and off <= s.demanded(len(v)) * (1 + abs(tau[j]) * size)
        q = q - tau[j] * np.outer(v, v.conj() @ q)
    return q, unitary


def unitary(s: Scale, operands: Matrices, **config: Any) -> bool:
    """Whether the operands begin with a state whose reflectors are some: products of others grow with each of them."""
    packed, tau = operands[:2]
    return reflected(s, packed, tau, 0)[1]


def _state(s: Scale, packed: Matrix, tau: Matrix) -> tuple[Matrix, Matrix]:
    """The whole Q and the R that a state stands for."""
    return reflected(s, packed, tau, len(packed))[0], np.triu(packed)


def _product(s: Scale, packed: Matrix, tau: Matrix) -> Matrix:
    q, r = _state(s, packed, tau)
    return np.asarray(q @ r)


def _appended(s: Scale, operands: Matrices) -> bool:
    return len(operands) < 3 or unitary(s, operands)


def _appended_finite(s: Scale, operands: Matrices) -> bool:
    return scaled(s, operands) and _appended(s, operands)


@judge("HouseholderQrFactor", "HouseholderQrFromFactors", "HouseholderQrAppend", finite=_appended_finite)
def _householder(s: Scale, operands: Matrices, results: Matrices) -> Iterator[Check]:
    """States are compared through Q R = A (SEMANTICS C.2); that of a product also with the roundings of the product.

    Nothing is asked of columns appended to what is no state.
    """
    rounded: float | Matrix = 0.0
    if not _appended(s, operands):
        yield UNCHECKED
        return
    if len(operands) == 3:
        a = np.hstack([_product(s, *operands[:2]), operands[2]])
    elif len(operands) == 2:
        a = operands[0] @ operands[1]
        rounded = s.eliminated(len(operands[1])) * columns(np.abs(operands[0]) @ np.abs(operands[1]))
    else:
        (a,) = operands
    q, r = _state(s, *results)
    yield from qr(s, [a], [q[:, : len(results[1])], r[: len(results[1])]], rounded=rounded)


def _gauged(s: Scale, packed: Matrix, gauge: str) -> tuple[Matrix, float]:
    """What the columns of Q are multiplied by, and how far that may be off."""
    diagonal = np.diag(packed)
    size = np.abs(diagonal)
    phase = np.where(size == 0, 1, diagonal / np.where(size == 0, 1, size))
    return (np.ones_like(phase), 0.0) if gauge == "Raw" else (phase, 16 * s.unit)


@judge("HouseholderQrR", finite=phased)
def _r_of_state(s: Scale, operands: Matrices, results: Matrices, *, gauge: str) -> Iterator[Check]:
    """What is in the state, as it is."""
    (packed, tau), (r,) = operands, results
    phase, off = _gauged(s, packed, gauge)
    due = phase.conj()[:, None] * np.triu(packed[: len(tau)])
    yield zero("upper triangular", np.tril(r, -1))
    yield within("rows", (r - due, 4 * s.wide_unit * np.abs(due)), off * np.abs(due) + s.tiny)


def _q_finite(s: Scale, operands: Matrices, *, gauge: str, **config: Any) -> bool:
    return unitary(s, operands) and (gauge == "Raw" or s.moderate(np.diag(operands[0])))


@judge("HouseholderQrThinQ", "HouseholderQrQColumns", finite=_q_finite)
def _q_of_state(
    s: Scale, operands: Matrices, results: Matrices, *, gauge: str, start: int = 0, end: int | None = None
) -> Iterator[Check]:
    """Equation 19.13: within sqrt(n) gamma~_mn of the product of the reflectors; nothing is asked where these are none."""
    (packed, tau), (made,) = operands, results
    if not unitary(s, operands):
        yield UNCHECKED
        return
    phase, off = _gauged(s, packed, gauge)
    q, k = _state(s, packed, tau)[0], len(tau)
    q[:, :k] = q[:, :k] * phase
    due = q[:, start : k if end is None else end]
    yield Check("columns", norm(made - due), float(np.sqrt(max(1, made.shape[1])) * (s.demanded(packed.size) + off)))
