"""Tangents of factors, held to the equations that define the factors; cotangents, to the law that ties them to tangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tenferro_ref.autodiff import jvp, vjp
from tenferro_ref.errors import InvalidArgument
from tenferro_ref.extensions import einsum, fft, linalg
from tenferro_ref.program import GraphBuilder, Program, Value
from tenferro_ref.tensor import Array
from tests.autodiff.products import paired, product, run


def matrix(rng: np.random.Generator, dtype: str, *shape: int) -> Array:
    values = rng.standard_normal(shape)
    return np.asfortranarray(values + 1j * rng.standard_normal(shape) if dtype == "C64" else values)


def h(a: Array) -> Array:
    return a.conj().T


def built(dtype: str, shapes: Sequence[tuple[int, ...]], function: Callable[..., object]) -> Program:
    b = GraphBuilder()
    results = function(*(b.input(dtype, shape) for shape in shapes))
    return b.build(*(results if isinstance(results, tuple) else (results,)))  # type: ignore[arg-type]


@pytest.fixture(params=["F64", "C64"])
def dtype(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def tangents(program: Program, inputs: Sequence[Array], seeds: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """Results and their tangents."""
    derivative = jvp(program)
    pushed = run(derivative.program, [*inputs, *seeds])
    return run(program, inputs), [pushed[r] for r in derivative.results if r is not None]


def near(a: Array, b: Array) -> bool:
    return bool(np.allclose(a, b, rtol=1e-9, atol=1e-9))


def test_cholesky(dtype: str) -> None:
    rng = np.random.default_rng(1)
    root, da = matrix(rng, dtype, 4, 4), matrix(rng, dtype, 4, 4)
    (factor,), (tangent,) = tangents(built(dtype, [(4, 4)], linalg.cholesky), [root @ h(root) + np.eye(4)], [da])
    lower = np.tril(da, -1) + np.diag(np.diag(da).real)
    assert near(tangent @ h(factor) + factor @ h(tangent), lower + h(np.tril(da, -1)))
    assert near(np.triu(tangent, 1), np.zeros((4, 4)))


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_lu(dtype: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    a, da = matrix(rng, dtype, *shape), matrix(rng, dtype, *shape)
    (p, lower, upper, _), (dl, du) = tangents(built(dtype, [shape], linalg.lu), [a], [da])
    assert near(dl @ upper + lower @ du, p @ da)
    assert near(np.triu(dl), np.zeros_like(dl))
    assert near(np.tril(du, -1), np.zeros_like(du))


def test_full_piv_lu(dtype: str) -> None:
    """Columns change places in a cycle, whose inverse is another one."""
    rng = np.random.default_rng(9)
    a, da = (
        np.asfortranarray(np.diag([8.0, 4.0, 2.0, 1.0])[:, [1, 2, 0, 3]]) + 0.01 * matrix(rng, dtype, 4, 4),
        matrix(rng, dtype, 4, 4),
    )
    (p, lower, upper, q, _), (dl, du) = tangents(built(dtype, [(4, 4)], linalg.full_piv_lu), [a], [da])
    assert not np.array_equal(q, q.T)
    assert near(dl @ upper + lower @ du, p @ da @ q.T)


@pytest.mark.parametrize("function", [linalg.eigh, linalg.svd])
def test_second_tangents_in_single_precision_are_numbers(function: Callable[..., object]) -> None:
    """The square of `derivative_eps` squared is no number of F32."""
    rng = np.random.default_rng(10)
    b = GraphBuilder()
    program = b.build(*function(b.input("F32", (3, 3))))  # type: ignore[misc]
    second = vjp(jvp(program).program).program
    inputs = [np.asfortranarray(rng.standard_normal(t.static_shape), np.float32) for t in second.input_types]
    assert all(np.isfinite(r).all() for r in run(second, inputs))


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_qr(dtype: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    a, da = matrix(rng, dtype, *shape), matrix(rng, dtype, *shape)
    (q, r), (dq, dr) = tangents(built(dtype, [shape], linalg.qr), [a], [da])
    assert near(dq @ r + q @ dr, da)
    assert near(h(q) @ dq, -h(h(q) @ dq))
    assert near(np.tril(dr, -1), np.zeros_like(dr))


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_svd(dtype: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    a, da = matrix(rng, dtype, *shape), matrix(rng, dtype, *shape)
    (u, s, vh), (du, ds, dvh) = tangents(built(dtype, [shape], linalg.svd), [a], [da])
    assert near((du * s) @ vh + (u * ds) @ vh + (u * s) @ dvh, da)
    assert near(h(u) @ du, -h(h(u) @ du))
    (_,), (values,) = tangents(built(dtype, [shape], linalg.svdvals), [a], [da])
    assert near(values, ds)


def test_eigh(dtype: str) -> None:
    rng = np.random.default_rng(5)
    root, da = matrix(rng, dtype, 4, 4), matrix(rng, dtype, 4, 4)
    a = root + h(root)
    (w, v), (dw, dv) = tangents(built(dtype, [(4, 4)], linalg.eigh), [a], [da])
    dh = np.tril(da, -1) + h(np.tril(da, -1)) + np.diag(np.diag(da).real)
    assert near(dh @ v + a @ dv, dv * w + v * dw)
    (_,), (values,) = tangents(built(dtype, [(4, 4)], linalg.eigvalsh), [a], [da])
    assert near(values, dw)


GAUGED = {
    "eigh": ((3, 3), lambda a: linalg.eigh(a, "CanonicalPivot")[1]),
    "svd": ((4, 3), lambda a: linalg.svd(a, "CanonicalPivot")[::2]),
    "wide svd": ((2, 3), lambda a: linalg.svd(a, "CanonicalPivot")[::2]),
}


@pytest.mark.parametrize("name", GAUGED)
def test_a_gauge_is_kept_while_vectors_change(dtype: str, name: str) -> None:
    """Against differences, which phases that are left to chance have not; and those of the tangents, for the second order."""
    shape, function = GAUGED[name]
    rng = np.random.default_rng(12)
    program = built(dtype, [shape], function)
    first = jvp(program).program
    a, da, dda = (matrix(rng, dtype, *shape) for _ in range(3))
    step = 1e-5
    for derived, x, dx in ((program, [a], [da]), (first, [a, da], [dda, 0 * da])):
        made = run(jvp(derived).program, [*x, *dx])
        beside = [run(derived, [p + s * d for p, d in zip(x, dx, strict=True)]) for s in (step, -step)]
        for tangent, after, before in zip(made, *beside, strict=True):
            assert np.allclose(tangent, (after - before) / (2 * step), rtol=1e-5, atol=1e-6)


def test_a_gauge_of_no_vectors_has_a_derivative() -> None:
    program = jvp(built("C64", [(0, 0)], lambda a: linalg.eigh(a, "CanonicalPivot")[1])).program
    assert run(program, [np.zeros((0, 0), complex)] * 2)[0].shape == (0, 0)


def test_gaps_of_the_spectrum_are_regularised_as_the_op_says(dtype: str) -> None:
    rng = np.random.default_rng(7)
    root, da = matrix(rng, dtype, 3, 3), matrix(rng, dtype, 3, 3)
    a, dh = root + h(root), np.tril(da, -1) + h(np.tril(da, -1)) + np.diag(np.diag(da).real)
    program = built(dtype, [(3, 3)], lambda x: linalg.eigh(x, derivative_eps=0.5))
    (w, v), (_, dv) = tangents(program, [a], [da])
    gaps = w[None, :] - w[:, None]
    assert near(dv, v @ (gaps / (gaps**2 + 0.25) * (h(v) @ dh @ v)))
    plain = built(dtype, [(3, 3)], lambda x: linalg.eigh(x, derivative_eps=linalg.DERIVATIVE_EPS))
    assert plain == built(dtype, [(3, 3)], linalg.eigh) != program
    for eps in (0.0, -1.0, float("inf")):
        with pytest.raises(InvalidArgument, match="derivative_eps"):
            built(dtype, [(3, 3)], lambda x, eps=eps: linalg.svd(x, derivative_eps=eps))


def test_eigvals(dtype: str) -> None:
    rng = np.random.default_rng(6)
    a, da = matrix(rng, dtype, 4, 4), matrix(rng, dtype, 4, 4)
    (w,), (dw,) = tangents(built(dtype, [(4, 4)], linalg.eigvals), [a], [da])
    # the power sums of the eigenvalues are traces
    for n in (1, 2, 3):
        assert near(np.sum(n * w ** (n - 1) * dw), n * np.trace(np.linalg.matrix_power(a, n - 1) @ da))


def _prepared(a: Value, b: Value, **flags: bool) -> Value:
    packed, pivots, _ = linalg.lu_factor(a)
    return linalg.lu_solve_prepared(a, packed, pivots, b, **flags)


ADJOINT: dict[str, tuple[list[tuple[int, ...]], Callable[..., object]]] = {
    "cholesky": ([(3, 3)], linalg.cholesky),
    "lu": ([(4, 3)], lambda a: linalg.lu(a)[1:3]),
    "wide lu": ([(2, 4)], lambda a: linalg.lu(a)[1:3]),
    "full_piv_lu": ([(3, 3)], lambda a: linalg.full_piv_lu(a)[1:3]),
    "qr": ([(4, 3)], linalg.qr),
    "wide qr": ([(2, 4)], linalg.qr),
    "svd": ([(4, 3)], linalg.svd),
    "batched svdvals": ([(3, 2, 2)], linalg.svdvals),
    "eigh": ([(3, 3)], linalg.eigh),
    "gauged eigh": ([(3, 3, 2)], lambda a: linalg.eigh(a, "CanonicalPivot")),
    "gauged svd": ([(4, 3, 2)], lambda a: linalg.svd(a, "CanonicalPivot")),
    "eigvals": ([(3, 3)], linalg.eigvals),
    "solve": ([(3, 3), (3, 2)], linalg.solve),
    "batched solve": ([(3, 3, 2), (3, 2, 2)], linalg.solve),
    "prepared": ([(3, 3), (3, 2)], _prepared),
    "prepared transposed": ([(3, 3), (3, 2)], lambda a, b: _prepared(a, b, transpose_a=True)),
    "prepared conjugated": ([(3, 3), (3, 2)], lambda a, b: _prepared(a, b, transpose_a=True, conjugate_a=True)),
    "full_piv_lu_solve": ([(3, 3), (3, 2)], lambda a, b: linalg.full_piv_lu_solve(a, b, transpose_a=True)),
    "triangular": ([(3, 3), (3, 2)], linalg.triangular_solve),
    "triangular right": (
        [(3, 3), (2, 3)],
        lambda a, b: linalg.triangular_solve(a, b, left_side=False, lower=False, transpose_a=True),
    ),
    "triangular unit": ([(3, 3), (3, 2)], lambda a, b: linalg.triangular_solve(a, b, unit_diagonal=True)),
    "einsum": ([(2, 3), (3, 4)], lambda a, b: einsum.einsum("ij,jk->ki", a, b)),
    "einsum diagonal": ([(3, 3, 2), (3,)], lambda a, b: einsum.einsum("iij,i->j", a, b)),
    "einsum summed": ([(3, 2, 4)], lambda a: einsum.einsum("ijk->i", a)),
    "einsum embedded": ([(2, 3), (3, 2)], lambda a, b: einsum.einsum("ij,ji->iji", a, b)),
    "fft": ([(5, 2)], lambda a: fft.fft(a, axis=0, norm="forward")),
    "fft cropped": ([(5, 2)], lambda a: fft.fft(a, n=3, axis=0)),
    "fft padded": ([(3, 2)], lambda a: fft.fft(a, n=5, axis=0, norm="ortho")),
}
REAL = {
    "rfft": ([(6, 2)], lambda a: fft.rfft(a, axis=0)),
    "rfft odd": ([(5,)], lambda a: fft.rfft(a, n=7, norm="ortho")),
    "rfft cropped": ([(6,)], lambda a: fft.rfft(a, n=4, norm="forward")),
}
COMPLEX = {
    "ifft": ([(4,)], fft.ifft),
    "irfft": ([(4,)], fft.irfft),
    "irfft odd": ([(4, 2)], lambda a: fft.irfft(a, n=7, axis=0, norm="ortho")),
    "irfft cropped": ([(5,)], lambda a: fft.irfft(a, n=4)),
}
_ALL = [
    *((name, d) for d in ("F64", "C64") for name in ADJOINT),
    *((name, "F64") for name in REAL),
    *((name, "C64") for name in COMPLEX),
]


@pytest.mark.parametrize(("name", "dtype"), _ALL)
def test_the_two_products_are_adjoint(name: str, dtype: str) -> None:
    shapes, function = (ADJOINT | REAL | COMPLEX)[name]
    rng = np.random.default_rng(7)
    inputs = [matrix(rng, dtype, *shape) for shape in shapes]
    if name in ("cholesky", "eigh"):
        inputs[0] = np.asfortranarray(inputs[0] @ h(inputs[0]) + np.eye(3))
    program = built(dtype, shapes, function)
    forward, backward = jvp(program), vjp(program)
    seeds = [matrix(rng, dtype, *shape) for shape in shapes]
    outputs = run(program, inputs)
    cotangents = [matrix(rng, "C64" if np.iscomplexobj(y) else "F64", *y.shape) for y in outputs]
    pushed = run(forward.program, [*inputs, *seeds])
    pulled = run(backward.program, [*inputs, *cotangents])
    a, size = product(paired(cotangents, pushed, backward, forward))
    b, _ = product(paired(seeds, pulled, forward, backward))
    assert size > 0
    assert abs(a - b) <= 1e-10 * size


@pytest.mark.parametrize("name", ["einsum", "einsum diagonal", "fft cropped", "prepared conjugated", "triangular"])
def test_tangents_are_differences(name: str) -> None:
    shapes, function = ADJOINT[name]
    rng = np.random.default_rng(8)
    inputs, seeds = ([matrix(rng, "C64", *shape) for shape in shapes] for _ in range(2))
    program = built("C64", shapes, function)
    (_, pushed) = tangents(program, inputs, seeds)
    step = 1e-6
    ahead, behind = (run(program, [x + s * t for x, t in zip(inputs, seeds, strict=True)]) for s in (step, -step))
    for tangent, up, down in zip(pushed, ahead, behind, strict=True):
        assert np.allclose(tangent, (up - down) / (2 * step), rtol=1e-6, atol=1e-6)
