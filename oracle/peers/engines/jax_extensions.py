"""Extension ops as calls of JAX: `jax.numpy.fft`, `jax.lax.linalg`, `jax.numpy.einsum` (SEMANTICS 6).

Matrices are in the first two axes in the engine, in the last two in JAX. JAX has no errors for the values of a matrix: where
the native runtime refuses one (singular, not positive definite, not finite), JAX's result is arbitrary. JAX is imported by the
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeAlias, cast

import numpy as np

from oracle import configurations
from tenferro_ref import ops
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.extensions import einsum, fft, lapack, linalg
from tenferro_ref.ops import TensorType
from tenferro_ref.table import Table

Types: TypeAlias = tuple[TensorType, ...]
#: `row(op, types, *operands) -> results`, on JAX arrays or tracers.
Row: TypeAlias = Callable[..., Sequence[Any]]
Decompose: TypeAlias = Callable[[Any], tuple[Any, ...]]
#: By family and op.
JAX_EXTENSION: Table[Row] = Table("JAX")
JAX_EXTENSION.unsupported("modules call it, and jax runs them as they are", *lapack.LAPACK.keys)
JAX_EXTENSION.unsupported(
    "it has no elimination with full pivoting", (linalg.FAMILY, "FullPivLu"), (linalg.FAMILY, "FullPivLuSolve")
)


def _jnp() -> Any:
    return import_module("jax.numpy")


def _lapack() -> Any:
    return import_module("jax.lax.linalg")


# --- fft, einsum ------------------------------------------------------------------------------------------------------


@JAX_EXTENSION.row(*fft.FFT.keys)
def _fft(op: ops.Extension, types: Types, x: Any) -> Sequence[Any]:
    jnp, (type_,) = _jnp(), types
    if 0 in type_.shape:  # XLA's transform takes no empty operand
        return [jnp.zeros(type_.shape, type_.dtype.numpy)]
    spec = configurations.transform(op, x.ndim)
    return [getattr(jnp.fft, op.op)(x, n=spec.n, axis=spec.axis, norm=spec.norm)]


@JAX_EXTENSION.row(*einsum.EINSUM.keys)
def _einsum(op: ops.Extension, types: Types, *operands: Any) -> Sequence[Any]:
    """By JAX's own decomposition, along a path of its own; its output has no label twice."""
    jnp, (type_,) = _jnp(), types
    equation = configurations.equation(op)
    text = f"{','.join(equation.inputs)}->{equation.kept}"
    result = jnp.einsum(text, *(x.astype(type_.dtype.numpy) for x in operands), precision="highest")
    if equation.output == equation.kept:
        return [result]
    index = np.indices(result.shape, sparse=True)
    at = tuple(index[equation.kept.index(label)] for label in equation.output)
    return [jnp.zeros(type_.shape, result.dtype).at[at].set(result)]


# --- linalg -----------------------------------------------------------------------------------------------------------


def _linalg(*names: str) -> Callable[[Row], Row]:
    """A row `row(op, *operands)` on matrices in the last two axes."""

    def add(row: Row) -> Row:
        def moved(op: ops.Extension, types: Types, *operands: Any) -> Sequence[Any]:
            jnp, batch = _jnp(), operands[0].ndim - 2
            if 0 in operands[0].shape:
                raise UnsupportedOp(op=op.op, reason="JAX's decompositions take no matrix without elements")
            first = [jnp.moveaxis(x, range(x.ndim - batch), range(batch, x.ndim)) for x in operands]
            results = row(op, *first)
            return [jnp.moveaxis(r, range(batch), range(r.ndim - batch, r.ndim)) for r in results]

        JAX_EXTENSION.row(*((linalg.FAMILY, name) for name in names))(moved)
        return row

    return add


def _transposed(x: Any) -> Any:
    return _jnp().swapaxes(x, -1, -2)


def _phase(x: Any) -> Any:
    """x / |x|, and 1 for 0."""
    jnp = _jnp()
    size = jnp.abs(x)
    return jnp.where(size == 0, 1, x / jnp.where(size == 0, 1, size)).astype(x.dtype)


def _pivots(columns: Any) -> Any:
    """The largest entry of each column, as a row."""
    jnp = _jnp()
    return jnp.take_along_axis(columns, jnp.abs(columns).argmax(-2)[..., None, :], -2)


@_linalg("Cholesky")
def _cholesky(op: ops.Extension, a: Any) -> Sequence[Any]:
    return [_lapack().cholesky(a, symmetrize_input=False)]


def _factored(a: Any) -> tuple[Any, Any, Any, Any]:
    """L and U in one matrix, pivots from 0, the order of the rows, the order's parity."""
    jnp = _jnp()
    packed, pivots, order = _lapack().lu(a)
    exchanges = (pivots != jnp.arange(pivots.shape[-1])).sum(-1)
    return packed, pivots, order, (1 - 2 * (exchanges % 2)).astype(a.dtype)


@_linalg("Lu")
def _lu(op: ops.Extension, a: Any) -> Sequence[Any]:
    jnp = _jnp()
    packed, _, order, parity = _factored(a)
    k = min(a.shape[-2:])
    lower = jnp.tril(packed[..., :k], -1) + jnp.eye(a.shape[-2], k, dtype=a.dtype)
    return [jnp.eye(a.shape[-2], dtype=a.dtype)[order], lower, jnp.triu(packed[..., :k, :]), parity]


@_linalg("LuFactor")
def _lu_factor(op: ops.Extension, a: Any) -> Sequence[Any]:
    packed, pivots, _, parity = _factored(a)
    return [packed, pivots + 1, parity]


@_linalg("LuSolvePrepared")
def _lu_solve_prepared(op: ops.Extension, a: Any, packed: Any, pivots: Any, b: Any) -> Sequence[Any]:
    flags = configurations.flags(op)
    order = _lapack().lu_pivots_to_permutation(pivots - 1, packed.shape[-1])
    rows = _jnp().argsort(order, axis=-1)
    lower, upper = {"lower": True, "unit_diagonal": True}, {"lower": False, "unit_diagonal": False}

    def permuted(x: Any, index: Any) -> Any:
        return _jnp().take_along_axis(x, index[..., None], -2)

    packed = packed.conj() if flags["conjugate_a"] else packed

    def solve(x: Any, **triangle: bool) -> Any:
        return _lapack().triangular_solve(packed, x, left_side=True, transpose_a=flags["transpose_a"], **triangle)

    if flags["transpose_a"]:
        return [permuted(solve(solve(b, **upper), **lower), rows)]
    return [solve(solve(permuted(b, order), **lower), **upper)]


@_linalg("SignDetFromLuFactor")
def _sign_det(op: ops.Extension, a: Any, packed: Any, parity: Any) -> Sequence[Any]:
    return [parity * _sign(_jnp().diagonal(packed, axis1=-2, axis2=-1)).prod(-1)]


def _sign(x: Any) -> Any:
    return import_module("jax.lax").sign(x)


@_linalg("LogAbsDetFromLuFactor")
def _log_abs_det(op: ops.Extension, a: Any, packed: Any) -> Sequence[Any]:
    jnp = _jnp()
    return [jnp.log(jnp.abs(jnp.diagonal(packed, axis1=-2, axis2=-1))).sum(-1)]


@_linalg("SvdFull")
def _svd_full(op: ops.Extension, a: Any) -> Sequence[Any]:
    return list(_lapack().svd(a, full_matrices=True))


def _differentiated(op: ops.Extension, decompose: Decompose, regular: Callable[..., tuple[Any, ...]]) -> Decompose:
    """`decompose` with tangents regularised by the `derivative_eps` of the op, if that is not the default.

    JAX's tangents of vectors have factors `1 / d`, `d` the gaps of a spectrum; the engine's have `d / (d^2 + eps^2)`, which is
    `1 / d` less the share `eps^2 / (d^2 + eps^2)` of it. `regular(share, results, tangents)` takes that from JAX's tangents; its
    `share` is a function of the spectrum.
    """
    eps, jax, jnp = configurations.derivative_eps(op), import_module("jax"), _jnp()
    if eps == configurations.DERIVATIVE_EPS:
        return decompose

    def share(spectrum: Any) -> Any:
        """For each pair of vectors; 0 on the diagonal, where there is no gap."""
        gaps = spectrum[..., None, :] - spectrum[..., :, None]
        return jnp.where(jnp.eye(spectrum.shape[-1], dtype=bool), 0, eps**2 / (gaps**2 + eps**2))

    def rule(primals: Any, tangents: Any) -> Any:
        results, moved = jax.jvp(decompose, primals, tangents)
        return results, regular(share, results, moved)

    regularised: Any = jax.custom_jvp(decompose)
    regularised.defjvp(rule)
    return cast(Decompose, regularised)


def _without(basis: Any, moved: Any, share: Any) -> Any:
    """The tangent of a basis without these shares of what turns each of its vectors into the others."""
    jnp = _jnp()
    turned = jnp.matmul(_transposed(basis).conj(), moved, precision="highest")
    return moved - jnp.matmul(basis, share.astype(turned.dtype) * turned, precision="highest")


@_linalg("Svd")
def _svd(op: ops.Extension, a: Any) -> Sequence[Any]:
    def regular(share: Any, results: Any, moved: Any) -> tuple[Any, ...]:
        (u, values, vt), (du, dvalues, dvt) = results, moved
        less = share(values**2)
        v, dv = _transposed(vt).conj(), _transposed(dvt).conj()
        return _without(u, du, less), dvalues, _transposed(_without(v, dv, less)).conj()

    u, values, vt = _differentiated(op, lambda x: tuple(_lapack().svd(x, full_matrices=False)), regular)(a)
    if configurations.flags(op)["gauge"] == "Raw":
        return [u, values, vt]
    phase = _phase(_pivots(u))
    return [u * phase.conj(), values, vt * _transposed(phase)]


@_linalg("SvdVals")
def _svdvals(op: ops.Extension, a: Any) -> Sequence[Any]:
    return [_lapack().svd(a, full_matrices=False, compute_uv=False)]


@_linalg("Qr")
def _qr(op: ops.Extension, a: Any) -> Sequence[Any]:
    return _gauged(op, *_lapack().qr(a, full_matrices=False))


def _gauged(op: ops.Extension, q: Any, r: Any) -> list[Any]:
    if configurations.flags(op)["gauge"] == "Raw":
        return [q, r]
    phase = _phase(_jnp().diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return [q * phase, r * _transposed(phase.conj())]


@_linalg("RankRevealingQr")
def _rank_revealing_qr(op: ops.Extension, a: Any) -> Sequence[Any]:
    jnp, config = _jnp(), configurations.flags(op)
    q, r, order = _lapack().qr(a, full_matrices=False, pivoting=True)
    size = jnp.abs(jnp.diagonal(r, axis1=-2, axis2=-1))
    above = size > jnp.maximum(config["atol"], config["rtol"] * size[..., :1])
    return [*_gauged(op, q, r), order.astype("int64"), above.cumprod(-1).sum(-1).astype("int64")]


def _reflected(a: Any) -> list[Any]:
    packed, tau = _jnp().linalg.qr(a, mode="raw")
    return [_transposed(packed), tau]


@_linalg("HouseholderQrFactor")
def _householder(op: ops.Extension, a: Any) -> Sequence[Any]:
    return _reflected(a)


@_linalg("HouseholderQrFromFactors")
def _householder_from_factors(op: ops.Extension, q: Any, r: Any) -> Sequence[Any]:
    return _reflected(_jnp().matmul(q, r, precision="highest"))


@_linalg("HouseholderQrAppend")
def _householder_append(op: ops.Extension, packed: Any, tau: Any, columns: Any) -> Sequence[Any]:
    jnp, n = _jnp(), packed.shape[1]
    turned = _lapack().ormqr(packed[:, : len(tau)], tau, columns, transpose=True)
    if n >= len(packed):
        return [jnp.concatenate([packed, turned], 1), tau]
    below, more = _reflected(turned[n:])
    return [jnp.concatenate([packed, jnp.concatenate([turned[:n], below])], 1), jnp.concatenate([tau, more])]


@_linalg("HouseholderQrR", "HouseholderQrThinQ", "HouseholderQrQColumns")
def _of_state(op: ops.Extension, packed: Any, tau: Any) -> Sequence[Any]:
    jnp, k = _jnp(), len(tau)
    whole = _lapack().ormqr(packed[:, :k], tau, jnp.eye(len(packed), dtype=packed.dtype))
    q, r = _gauged(op, whole[:, :k], jnp.triu(packed[:k]))
    config = configurations.flags(op)
    start, end = config.get("start", 0), config.get("end")
    if op.op == "HouseholderQrR":
        return [r]
    # XLA ends where a slice of nothing meets an empty part of a concatenate (finding 0163)
    columns = q if k == whole.shape[1] else jnp.concatenate([q, whole[:, k:]], 1)
    return [columns[:, start : k if end is None else end]]


@_linalg("Eigh", "EighVals")
def _eigh(op: ops.Extension, a: Any) -> Sequence[Any]:
    def regular(share: Any, results: Any, moved: Any) -> tuple[Any, ...]:
        return _without(results[0], moved[0], share(results[1])), moved[1]

    def decompose(x: Any) -> tuple[Any, ...]:
        return tuple(_lapack().eigh(x, lower=True, symmetrize_input=False))

    vectors, values = _differentiated(op, decompose, regular)(a)
    if op.op == "EighVals":
        return [values]
    return [
        values,
        vectors if configurations.flags(op)["gauge"] == "Raw" else vectors * _phase(_pivots(vectors)).conj(),
    ]


@_linalg("Eig", "EigVals")
def _eig(op: ops.Extension, a: Any) -> Sequence[Any]:
    return list(_lapack().eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=op.op == "Eig"))


@_linalg("TriangularSolve")
def _triangular_solve(op: ops.Extension, a: Any, b: Any) -> Sequence[Any]:
    return [_lapack().triangular_solve(a, b, **configurations.flags(op))]


@_linalg("Solve")
def _solve(op: ops.Extension, a: Any, b: Any) -> Sequence[Any]:
    return [_jnp().linalg.solve(a, b)]
