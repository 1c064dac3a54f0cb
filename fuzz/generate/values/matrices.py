"""Matrices by class, for ops that not every matrix suits.

Each is made of elementwise sums, products and quotients alone, no BLAS and no FMA, so that a recipe gives the same bits on
every machine. Batch axes follow the two of the matrix, and every matrix of a batch is another one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator

from fuzz.generate.values.special import Array
from tenferro_ref.dtype import DType

#: From m, n and a count: that many real matrices, in the first two axes of the result.
MatrixClass: TypeAlias = Callable[[Generator, int, int, int], Array]

#: Singular values from 1 to 4.
REGULAR = ("regular", "graded", "dominant", "orthogonal", "identity")
#: Hermitian and positive definite: eigenvalues from 1 to 4, eigenvalues 1 and 2, eigenvalues from 1 down to 4^-n; with a
#: heavy diagonal and one pair of elements that are far smaller than the rest; the identity.
DEFINITE = ("definite", "repeated", "conditioned", "one small pair", "identity")
#: Hermitian, with a least eigenvalue about as large as rounding errors, of either sign: a factor exists in one order of sums only.
NEARLY_SINGULAR = "nearly singular"
#: Square; either triangle with the diagonal is regular: the diagonal has the largest magnitudes.
TRIANGULAR = ("triangular", "dominant", "identity")
#: Triangular, with elements so much larger than those of the diagonal that a solution grows beyond F32 in a few rows.
GROWING = "growing"
#: With zeros on the diagonal: regular if the diagonal is said to be of ones and not to be read.
UNREAD_DIAGONAL = "unread diagonal"
#: Hermitian, with eigenvalues of both signs or of one.
HERMITIAN = ("indefinite", *DEFINITE)
#: A definite matrix below the diagonal and on it, anything above: what reads the lower triangle alone sees the definite one.
ONE_SIDED = ("one-sided", "beside NaN")
#: Also those of half the rank, Jordan blocks, and small integers.
ANY = (*REGULAR, *HERMITIAN, "deficient", "jordan", "integers", "triangular")
#: Matrices of subnormal numbers, each class with the one that they are multiples of: no pivot has a finite reciprocal.
SMALL = {"small regular": "regular", "small triangular": "triangular"}
#: With a row and a column of zeros: solvers and Cholesky refuse it.
SINGULAR = "singular"


def _eye(m: int, n: int, values: Array) -> Array:
    """Diagonal matrices; the values are of shape (min(m, n), count)."""
    a = np.zeros((m, n, values.shape[1]))
    k = np.arange(len(values))
    a[k, k] = values
    return a


def _reflected(a: Array, v: Array) -> Array:
    """H a, with H the Householder reflector of the integers v, one vector a matrix; sums in a fixed order."""
    if not len(a):
        return a
    size = (v * v).sum(0)
    along = np.zeros(a.shape[1:])
    for row, weight in zip(a, v, strict=True):
        along = along + weight * row
    reflected: Array = a - v[:, None] * (2 * along / size)
    return reflected


def _turned(rng: Generator, a: Array, hermitian: bool) -> Array:
    """With two reflectors applied on either side, the same ones if the matrix is to stay Hermitian."""
    m, n, count = a.shape
    for _ in range(2):
        left = rng.integers(1, 5, (m, count)) * (1.0 - 2.0 * rng.integers(0, 2, (m, count)))
        right = left if hermitian else rng.integers(1, 5, (n, count)) * (1.0 - 2.0 * rng.integers(0, 2, (n, count)))
        a = _reflected(_reflected(a, left).swapaxes(0, 1), right).swapaxes(0, 1)
    return (a + a.swapaxes(0, 1)) / 2 if hermitian else a


def _spectrum(values: Callable[[Generator, int, int], Array], hermitian: bool = False) -> MatrixClass:
    """Matrices with these singular values or eigenvalues, of shape (k, count)."""

    return lambda rng, m, n, count: _turned(rng, _eye(m, n, values(rng, min(m, n), count)), hermitian and m == n)


def _between(rng: Generator, k: int, count: int) -> Array:
    return rng.uniform(1.0, 4.0, (k, count))


def _both_signs(rng: Generator, k: int, count: int) -> Array:
    signed: Array = _between(rng, k, count) * (1.0 - 2.0 * rng.integers(0, 2, (k, count)))
    return signed


def _falling(rng: Generator, k: int, count: int) -> Array:
    return np.asarray(np.ldexp(_between(rng, k, count), -2 * np.arange(k)[:, None]))


def _nearly_zero(rng: Generator, k: int, count: int) -> Array:
    """All positive but the last one, which is about as large as rounding errors of F32, or of F64, and of either sign."""
    values = _both_signs(rng, k, count)
    values[:-1] = np.abs(values[:-1])
    bits = rng.choice((22, 24, 26, 51, 53, 55), count)
    values[-1:] = np.ldexp(values[-1:], -bits)
    return values


def _graded(rng: Generator, m: int, n: int, count: int) -> Array:
    return np.asarray(np.ldexp(_CLASSES["regular"](rng, m, n, count), -3 * np.arange(m)[:, None, None]))


def _integers(rng: Generator, m: int, n: int, count: int) -> Array:
    return rng.integers(-3, 4, (m, n, count)).astype(float)


def _dominant(rng: Generator, m: int, n: int, count: int) -> Array:
    return _integers(rng, m, n, count) + _eye(m, n, np.full((min(m, n), count), 4.0 * max(m, n)))


def _triangular(rng: Generator, m: int, n: int, count: int) -> Array:
    a = rng.uniform(-1.0, 1.0, (m, n, count))
    k = np.arange(min(m, n))
    a[k, k] = np.copysign(1 + np.abs(a[k, k]), a[k, k])
    return a


def _unread_diagonal(rng: Generator, m: int, n: int, count: int) -> Array:
    a = _triangular(rng, m, n, count)
    k = np.arange(min(m, n))
    a[k, k] = 0.0
    return a


def _growing(rng: Generator, m: int, n: int, count: int) -> Array:
    a = np.ldexp(_triangular(rng, m, n, count), 30)
    k = np.arange(min(m, n))
    a[k, k] = np.ldexp(a[k, k], -60)
    return np.asarray(a)


def _one_small_pair(rng: Generator, m: int, n: int, count: int) -> Array:
    a = _integers(rng, m, n, count)
    if m == n:
        a = a + a.swapaxes(0, 1)
    k = np.arange(min(m, n))
    a[k, k] = rng.integers(7 * max(m, n), 9 * max(m, n), (len(k), count))
    if min(m, n) > 1:
        i, j = rng.choice(min(m, n), 2, replace=False)
        a[i, j] = a[j, i] = np.ldexp(rng.uniform(1.0, 2.0, count), -38)
    return a


def _jordan(rng: Generator, m: int, n: int, count: int) -> Array:
    a = _eye(m, n, np.full((min(m, n), count), float(rng.integers(0, 3))))
    k = np.arange(min(m, n - 1)) if n else np.arange(0)
    a[k, k + 1] = 1.0
    return a


def _singular(rng: Generator, m: int, n: int, count: int) -> Array:
    a = _CLASSES["definite"](rng, m, n, count)
    if min(m, n):
        at = int(rng.integers(0, min(m, n)))
        a[at, :], a[:, at] = 0.0, 0.0
    return a


def _one_sided(rng: Generator, m: int, n: int, count: int) -> Array:
    a = _CLASSES["definite"](rng, m, n, count)
    above = np.triu_indices(m, 1, n)
    a[above] = rng.uniform(-4.0, 4.0, (len(above[0]), count))
    return a


def _beside_nan(rng: Generator, m: int, n: int, count: int) -> Array:
    a = _one_sided(rng, m, n, count)
    above = np.triu_indices(m, 1, n)
    a[above] = np.where(rng.random((len(above[0]), count)) < 0.5, np.nan, a[above])
    return a


_CLASSES: dict[str, MatrixClass] = {
    "regular": _spectrum(_between),
    "graded": _graded,
    "dominant": _dominant,
    "orthogonal": _spectrum(lambda rng, k, count: np.ones((k, count))),
    "identity": lambda rng, m, n, count: _eye(m, n, np.ones((min(m, n), count))),
    "definite": _spectrum(_between, hermitian=True),
    "repeated": _spectrum(lambda rng, k, count: rng.integers(1, 3, (k, count)).astype(float), hermitian=True),
    "conditioned": _spectrum(_falling, hermitian=True),
    "one small pair": _one_small_pair,
    NEARLY_SINGULAR: _spectrum(_nearly_zero, hermitian=True),
    "indefinite": _spectrum(_both_signs, hermitian=True),
    "deficient": _spectrum(lambda rng, k, count: _between(rng, k, count) * (np.arange(k)[:, None] < (k + 1) // 2)),
    "integers": _integers,
    "triangular": _triangular,
    GROWING: _growing,
    UNREAD_DIAGONAL: _unread_diagonal,
    "jordan": _jordan,
    "one-sided": _one_sided,
    "beside NaN": _beside_nan,
    SINGULAR: _singular,
}
MATRICES = frozenset({*_CLASSES, *SMALL})
#: The binary exponent by which they are scaled, beside that of the least normal number: each element keeps ten bits less.
_BELOW = -10

#: Numbers of modulus 1, with parts that are exact or nearly so.
_PHASES = np.array([1, 0.6 + 0.8j, 1j, -1, 0.28 - 0.96j])

#: Classes that keep what they promise if rows and columns have phases of their own; with the same ones a determinant is real.
_OF_ANY_PHASE = (
    *("regular", "graded", "dominant", "orthogonal", "deficient", "integers", "triangular"), UNREAD_DIAGONAL, GROWING,
)  # fmt: skip


def matrices(kind: str, rng: Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Matrices of a class in the first two axes of `shape`; a complex one has a phase for each row and one for each column.

    Those of the columns are the conjugate ones of the rows where the matrix is to stay what its class says.
    """
    m, n, *batch = shape
    kind, small = SMALL.get(kind, kind), kind in SMALL
    a = _CLASSES[kind](rng, m, n, prod(batch))
    if dtype.is_complex:
        w = _PHASES[rng.integers(0, len(_PHASES), max(m, n))]
        v = _PHASES[rng.integers(0, len(_PHASES), n)] if kind in _OF_ANY_PHASE else w[:n]
        x, y, real, imag = w.real[:m, None, None], w.imag[:m, None, None], v.real[:, None], v.imag[:, None]
        turned = np.empty(a.shape, complex)  # a * (x + iy) * (real - i imag), by real products
        turned.real, turned.imag = a * (x * real + y * imag), a * (y * real - x * imag)
        a = turned
    if small:
        finfo: Any = np.finfo  # of NumPy's own types
        least = int(finfo(dtype.real.numpy).minexp) + _BELOW
        a = np.ldexp(a.real, least) + (1j * np.ldexp(a.imag, least) if dtype.is_complex else 0)
    return a.reshape(shape, order="F").astype(dtype.numpy)
