"""Matrices within a distance of known ones, and what is proved of their factors and solutions.

Everything is computed for one matrix in float64. A factor is first computed as ever; the residual, with all roundings counted, then
says how far the true one can be: the equation of the difference maps a ball into itself, so that it has a solution there (Brouwer).
`e`, `d` and `k` are Frobenius norms. Where nothing is proved a function raises NumPy's `LinAlgError`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oracle.enclosure.formats import Array

#: Of each sum of products, relative to the sum of magnitudes: far more than float64's roundings, in any order, of complex numbers.
_ROUNDING = 2.0**-49
#: For the roundings of a bound itself, and for underflow.
_MARGIN, _TINY = 1 + 2.0**-30, 1e-290
#: Below which a norm is small enough for the proofs about triangular factors.
_SMALL = 0.25


@dataclass(frozen=True, eq=False)
class Near:
    """The matrices whose elements are within `rad` of those of `mid`, by modulus."""

    mid: Array
    rad: Array

    @property
    def size(self) -> Array:
        """The largest modulus of each element."""
        return np.asarray(np.abs(self.mid) + self.rad)

    @property
    def norm(self) -> float:
        """At least the Frobenius norm."""
        return float(np.sqrt((self.size**2).sum())) * _MARGIN

    @property
    def adjoint(self) -> Near:
        return Near(self.mid.conj().T, self.rad.T)

    def __getitem__(self, index: tuple[slice, slice]) -> Near:
        return Near(self.mid[index], self.rad[index])

    def __matmul__(self, other: Near) -> Near:
        rounding = _ROUNDING * (self.mid.shape[1] + 1) * (np.abs(self.mid) @ np.abs(other.mid))
        rad = self.rad @ other.size + np.abs(self.mid) @ other.rad + rounding
        return Near(self.mid @ other.mid, rad * _MARGIN + _TINY)

    def __sub__(self, other: Near) -> Near:
        mid = self.mid - other.mid
        return Near(mid, (self.rad + other.rad + _ROUNDING * np.abs(mid)) * _MARGIN)


def known(a: Array) -> Near:
    """A matrix that is known."""
    return Near(a, np.zeros(a.shape))


def lower(a: Near, k: int = 0) -> Near:
    return Near(np.tril(a.mid, k), np.tril(a.rad, k))


def upper(a: Near, k: int = 0) -> Near:
    return Near(np.triu(a.mid, k), np.triu(a.rad, k))


def beside(a: Near, b: Near, axis: int) -> Near:
    return Near(np.concatenate([a.mid, b.mid], axis), np.concatenate([a.rad, b.rad], axis))


def hermitian(a: Near) -> Near:
    """The Hermitian matrix that the lower triangle stands for."""
    strict = lower(a, -1)
    return Near(
        strict.mid + strict.mid.conj().T + np.diag(a.mid.diagonal().real),
        strict.rad + strict.rad.T + np.diag(a.rad.diagonal()),
    )


def unit_lower(a: Near) -> Near:
    """The strict lower triangle with ones on the diagonal."""
    strict = lower(a, -1)
    return Near(strict.mid + np.eye(*a.mid.shape), strict.rad)


def _rows(a: Array) -> Array:
    """The norm of each row, as a column."""
    return np.asarray(np.sqrt((np.abs(a) ** 2).sum(1, keepdims=True)) * _MARGIN)


def _small(e: float) -> float:
    """A norm that is small enough."""
    if not e < _SMALL:
        raise np.linalg.LinAlgError("nothing is proved")
    return e


def _within(a: Array, k: float) -> Near:
    """`a (I + K)`, the norm of K at most `k`."""
    return Near(a, np.broadcast_to(_rows(a) * k, a.shape) * _MARGIN)


# --- systems and triangular factors -----------------------------------------------------------------------------------


def solved(a: Near, b: Near) -> Near:
    """The solutions of `A X = B`: by an approximate inverse R, `|X - X~| <= (I + E + E^2 + ...) |R (B - A X~)|`, `E = |I - R A|`."""
    inverse = known(np.linalg.inv(a.mid))
    off = (known(np.eye(len(a.mid))) - inverse @ a).size.sum(1).max(initial=0.0)
    mid = inverse.mid @ b.mid
    step = (inverse @ (b - a @ known(mid))).size
    more = _small(off) / (1 - off)
    return Near(mid, (step + more * step.max(0, initial=0.0)) * _MARGIN + _TINY)


def solved_right(a: Near, b: Near) -> Near:
    """The solutions of `X A = B`."""
    return solved(a.adjoint, b.adjoint).adjoint


def _relative(left: Array, a: Near, right: Array) -> float:
    """The norm of `L^-1 A R^-1 - I`."""
    inner = solved_right(known(right), solved(known(left), a))
    return (inner - known(np.eye(len(left)))).norm


def cholesky(a: Near) -> Near:
    """`A = L L^H`: with `I + E = L~^-1 A L~^-H = (I + K)(I + K)^H` it is `L~ (I + K)`, and `k <= (e + k^2) / sqrt 2`."""
    factor = np.linalg.cholesky(a.mid)
    return lower(_within(factor, _small(_relative(factor, a, factor.conj().T))))


def lu(a: Near, low: Array, up: Array) -> tuple[Near, Near]:
    """`A = L U` near known factors: `I + E = (I + K)(I + M)`, and `k + m <= e + k m`, of which `2 e` is a bound."""
    k = min(a.mid.shape)
    l1, u1 = low[:k], up[:, :k]
    e = 2 * _small(_relative(l1, a[:k, :k], u1))
    left, right = lower(_within(l1, e), -1), upper(_within(u1.conj().T, e).adjoint)
    left = Near(np.tril(l1), left.rad)
    rest_left, rest_right = solved_right(right, a[k:, :k]), solved(left, a[:k, k:])
    return beside(left, rest_left, 0), beside(right, rest_right, 1)


def qr(a: Near, up: Array) -> tuple[Near, Near]:
    """`A = Q R`, R near a known factor and its diagonal real: of `A^H A = R^H R` as of Cholesky's; then Q is `A R^-1`."""
    m, n = a.mid.shape
    k = min(m, n)
    first, guess = a[:, :k], np.triu(up[:, :k])
    guess = guess - np.diag(guess.diagonal()) + np.diag(guess.diagonal().real)
    e = _small(_relative(guess.conj().T, first.adjoint @ first, guess))
    right = upper(_within(guess.conj().T, e).adjoint)
    q = solved_right(right, first)
    return q, beside(right, q.adjoint @ a[:, k:], 1)


# --- reflectors -------------------------------------------------------------------------------------------------------


def reflectors(q: Near) -> tuple[Near, Near]:
    """Vectors, unit lower, and coefficients of the reflectors whose product begins with the columns of Q.

    `I - Q = Y T Y1^H` for the vectors Y and a triangle T with the coefficients on its diagonal, whose factors LU gives.
    """
    m, k = q.mid.shape
    rest = known(np.eye(m, k)) - q
    j = min(k, m - 1)  # the last of a square matrix has a vector of one element
    low, up = np.eye(m, j, dtype=q.mid.dtype), np.zeros((j, k), q.mid.dtype)
    left = rest.mid[:, :j].copy()
    for i in range(j):
        up[i, i:j] = left[i, i:]
        low[i + 1 :, i] = left[i + 1 :, i] / left[i, i]
        left[i + 1 :] -= np.outer(low[i + 1 :, i], left[i])
    y, t = lu(rest[:, :j], low, up[:, :j])
    tau = Near(t.mid.diagonal(), t.rad.diagonal())
    if j == k:
        return y, tau
    column = rest[:, j:]
    last = column[j:, :] - y[j:, :] @ solved(y[:j, :], column[:j, :])
    y = beside(y, known(np.eye(m, 1, -j, dtype=q.mid.dtype)), 1)
    return y, Near(np.append(tau.mid, last.mid), np.append(tau.rad, last.rad))


def reflected(y: Near, tau: Near, columns: int) -> Near:
    """The first columns of the product of the reflectors."""
    x = known(np.eye(len(y.mid), columns, dtype=y.mid.dtype))
    for i in reversed(range(len(tau.mid))):
        v, scale = y[:, i : i + 1], Near(tau.mid[i : i + 1, None], tau.rad[i : i + 1, None])
        x = x - v @ (scale @ (v.adjoint @ x))
    return x


# --- spectra ----------------------------------------------------------------------------------------------------------


def _gap(values: Array) -> float:
    apart = np.abs(values[:, None] - values[None, :])
    gap = float(apart[~np.eye(len(values), dtype=bool)].min(initial=np.inf))
    if not gap:
        raise np.linalg.LinAlgError("nothing is proved of equal values")
    return gap


def eigh(a: Near, values: Array, vectors: Array) -> tuple[Near, Near]:
    """`A V = V W` with unitary V near known ones, of which no vector is turned: `V = V~ (I + K)`, the diagonal of K real.

    For `V~^H A V~ = W~ + D`, `V~^H V~ = I + E`, s the largest eigenvalue and `n = e (1 + k)^2 + k^2`,
    `k <= (d (1 + k)^2 + s k^2 + s n) / gap + n / 2`.
    """
    guess = known(vectors)
    d = (guess.adjoint @ a @ guess - known(np.diag(values))).norm
    e = (guess.adjoint @ guess - known(np.eye(len(values)))).norm
    s, gap = float(np.abs(values).max(initial=0.0)), _gap(values)
    k = _small(2 * ((d + s * e) / gap + e))
    n = e * (1 + k) ** 2 + k * k
    shift = (d * (1 + k) ** 2 + s * k * k + s * n) * _MARGIN
    if shift / gap + n / 2 > k:
        raise np.linalg.LinAlgError("nothing is proved")
    return Near(values, np.full(values.shape, shift)), _within(vectors, k)


def svd(a: Near, u: Array, s: Array, vh: Array) -> tuple[Near, Near, Near]:
    """`A = U S V^H` near known factors: V by the eigenvectors of `A^H A`, S by their values, U is `A V / S`."""
    m, n = a.mid.shape
    if m < n:
        right, values, left = svd(a.adjoint, vh.conj().T, s, u.conj().T)
        return left.adjoint, values, right.adjoint
    squares, v = eigh(a.adjoint @ a, s * s, vh.conj().T)
    if not s.all() or not (squares.rad < s * s / 2).all():
        raise np.linalg.LinAlgError("nothing is proved of values near zero")
    off = squares.rad / s * _MARGIN
    inverse = Near(1 / s, 2 * off / s**2 + _ROUNDING / s)
    scale = Near(np.diag(inverse.mid), np.diag(inverse.rad))
    return a @ v @ scale, Near(s, off + _ROUNDING * s), v.adjoint


def eig(a: Near, values: Array, vectors: Array) -> tuple[Near, Near]:
    """`A X = X W`, X near known vectors, and scaled as they are: `X = X~ (I + K)` without a diagonal of K.

    For `X~^-1 A X~ = W~ + D`, `k <= d (1 + k)^2 / gap`; a value moves by at most `d (1 + k)`.
    """
    guess = known(vectors)
    d = (solved(guess, a @ guess) - known(np.diag(values))).norm
    k = _small(2 * d / _gap(values))
    return Near(values, np.full(values.shape, d * (1 + k) * _MARGIN)), _within(vectors, k)
