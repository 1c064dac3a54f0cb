"""Enclosures of factors in real arithmetic: the true ones, by mpmath, are inside, and no farther away than rounding explains."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from oracle.enclosure import IEEE, REAL, Enclosure, enclose, proofs
from oracle.enclosure.proofs import Near, known
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.extensions import linalg
from tenferro_ref.program import GraphBuilder, Value
from tenferro_ref.tensor import Array

pytestmark = pytest.mark.once

SHAPES = [(1, 1), (3, 3), (4, 2), (2, 4)]


def matrix(m: int, n: int, complex_: bool, seed: int = 3) -> Array:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((m, n)) + 2 * np.eye(m, n)
    return a + 1j * rng.standard_normal((m, n)) if complex_ else a


def holds(near: Near, true: mpmath.matrix, width: float = 1e-9) -> None:
    """The true matrix is inside, and the bound is narrow."""
    exact = np.array(true.tolist(), object).reshape(near.mid.shape)
    for index in np.ndindex(near.mid.shape):
        assert abs(exact[index] - mpmath.mpmathify(complex(near.mid[index]))) <= near.rad[index]
    assert near.rad.max(initial=0) < width


@pytest.fixture(autouse=True)
def digits() -> None:
    mpmath.mp.dps = 60


@pytest.mark.parametrize("complex_", [False, True])
def test_solutions_and_triangles(complex_: bool) -> None:
    a, b = matrix(4, 4, complex_), matrix(4, 2, complex_, 5)
    holds(proofs.solved(known(a), known(b)), mpmath.matrix(a) ** -1 * mpmath.matrix(b))
    definite = a @ a.conj().T + np.eye(4)
    definite = np.tril(definite) + np.tril(definite, -1).conj().T
    holds(proofs.cholesky(known(definite)), mpmath.cholesky(mpmath.matrix(definite)))


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_of_factors_are_the_matrix(shape: tuple[int, int], complex_: bool) -> None:
    """What cannot be asked of mpmath: the equations that define the factors hold for the balls."""
    a = matrix(*shape, complex_)
    k = min(shape)
    low = [np.eye(shape[0], k, dtype=a.dtype), a.copy()]
    for i in range(k):
        low[0][i + 1 :, i] = low[1][i + 1 :, i] / low[1][i, i]
        low[1][i + 1 :] -= np.outer(low[0][i + 1 :, i], low[1][i])
    left, right = proofs.lu(known(a), low[0], np.triu(low[1][:k]))
    q, r = proofs.qr(known(a), np.linalg.qr(a)[1])
    u, s, vh = proofs.svd(known(a), *np.linalg.svd(a, full_matrices=False))
    y, tau = proofs.reflectors(q)
    for rest, due in (
        (left @ right, a),
        (q @ r, a),
        (q.adjoint @ q, np.eye(k)),
        (u @ Near(np.diag(s.mid), np.diag(s.rad)) @ vh, a),
        (u.adjoint @ u, np.eye(k)),
        (proofs.reflected(y, tau, k), q.mid),
    ):
        assert (np.abs(rest.mid - due) <= rest.rad).all()
        assert rest.rad.max() < 1e-9


@pytest.mark.parametrize("complex_", [False, True])
def test_spectra(complex_: bool) -> None:
    a = matrix(4, 4, complex_)
    h = a + a.conj().T
    values, vectors = proofs.eigh(known(h), *np.linalg.eigh(h))
    true, _ = mpmath.eighe(mpmath.matrix(h)) if complex_ else mpmath.eigsy(mpmath.matrix(h))
    holds(values, true)
    assert (np.abs(h @ vectors.mid - vectors.mid * values.mid) < 1e-12).all()
    values, vectors = proofs.eig(known(a), *np.linalg.eig(a))
    own = mpmath.eig(mpmath.matrix(a), right=False)
    for value, rad in zip(values.mid, values.rad, strict=True):
        assert min(abs(t - mpmath.mpmathify(complex(value))) for t in own) <= rad < 1e-9
    singular = mpmath.svd(mpmath.matrix(a), compute_uv=False)
    holds(proofs.svd(known(a), *np.linalg.svd(a))[1], singular)


def test_a_wrong_guess_proves_nothing() -> None:
    a = matrix(3, 3, False)
    values, vectors = np.linalg.eigh(a + a.T)
    for prove in (
        lambda: proofs.eigh(known(a + a.T), values, vectors[:, ::-1]),
        lambda: proofs.eigh(known(a + a.T), values, vectors + 0.5),
        lambda: proofs.eigh(known(np.eye(2)), np.ones(2), np.eye(2)),
        lambda: proofs.qr(known(a), np.triu(a)),
        lambda: proofs.lu(known(a), np.eye(3), np.triu(a)),
        lambda: proofs.svd(known(np.diag([1.0, 0.0])), np.eye(2), np.array([1.0, 0.0]), np.eye(2)),
        lambda: proofs.solved(Near(np.eye(2), np.full((2, 2), 0.3)), known(np.eye(2))),
    ):
        with pytest.raises(np.linalg.LinAlgError):
            prove()


OPS: dict[str, Callable[[Value], tuple[Value, ...]]] = {
    "lu": lambda a: linalg.lu(a)[:3],
    "full_piv_lu": lambda a: linalg.full_piv_lu(a)[:4],
    "qr": lambda a: linalg.qr(a, "PositiveDiagonal"),
    "svd": lambda a: linalg.svd(a, "CanonicalPivot"),
    "eigh": lambda a: linalg.eigh(a, "CanonicalPivot"),
    "solve": lambda a: (linalg.solve(a, a),),
}


@pytest.mark.parametrize("dtype", ["F32", "F64", "C32", "C64"])
@pytest.mark.parametrize("name", OPS)
def test_what_the_reference_computes_is_near(name: str, dtype: str) -> None:
    """Batches too; of a matrix that is not finite nothing is said, and outside of real arithmetic there is no enclosure."""
    from tests.autodiff.products import run

    b = GraphBuilder()
    program = b.build(*OPS[name](b.input(dtype, (3, 3, 2))))
    a = np.stack([matrix(3, 3, dtype[0] == "C"), matrix(3, 3, dtype[0] == "C", 7)], -1).astype(b.inputs[0].dtype.numpy)
    made, seen = enclose(program, [a], REAL), run(program, [np.asfortranarray(a)])
    room = 1e-4 if dtype in ("F32", "C32") else 1e-9
    for enclosure, array in zip(made, seen, strict=True):
        for part, values in zip(enclosure.parts, (array.real, array.imag), strict=False):
            assert (part.lo - room <= values).all()
            assert (values <= part.hi + room).all()
            assert (part.hi - part.lo < room).all()
    a[0, 0, 1] = np.nan
    assert all(_open(e) for e in enclose(program, [a], REAL))
    with pytest.raises(UnsupportedOp):
        enclose(program, [a], IEEE)


def _open(x: Enclosure) -> bool:
    """Anything of the second matrix, and bounds of the first one."""
    return bool(np.isinf(x.parts[0].lo[..., 1]).all() and np.isfinite(x.parts[0].lo[..., 0]).all())


@pytest.mark.parametrize("rows", [0, 2])
def test_factors_of_a_matrix_without_elements_are_enclosed(rows: int) -> None:
    b = GraphBuilder()
    a, rest = b.input("C32", (rows, 0, 1)), b.input("C32", (0, 1, 1))
    results = [*linalg.lu_factor(a), *linalg.lu(a)]
    if rows == 0:
        results.append(linalg.lu_solve_prepared(a, *linalg.lu_factor(a)[:2], rest))
    made = enclose(b.build(*results), [np.zeros((rows, 0, 1), np.complex64), np.zeros((0, 1, 1), np.complex64)], REAL)
    assert [e.shape for e in made] == [r.shape for r in results]


def test_gauges_of_no_vectors_are_enclosed() -> None:
    b = GraphBuilder()
    a = b.input("F64", (0, 2))
    results = linalg.svd(a, "CanonicalPivot")
    made = enclose(b.build(*results), [np.zeros((0, 2))], REAL)
    assert [e.shape for e in made] == [(0, 0), (0,), (0, 2)]
