"""Systems of subnormal numbers have the solutions of their multiples by a power of two."""

from __future__ import annotations

import numpy as np
import pytest

from tenferro_ref.dtype import DType
from tenferro_ref.extensions import linalg_kernels as kernels
from tests.build import normal

DTYPES = [DType.F32, DType.F64, DType.C32, DType.C64]


def small(dtype: DType, shape: tuple[int, ...], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Small whole numbers, and the same times a power of two that makes all of them subnormal; both are exact."""
    whole = np.round(4 * normal(dtype, shape, seed))
    return whole, whole * dtype.numpy.type(np.finfo(dtype.numpy).tiny / 2**10)


def close(x: np.ndarray, y: np.ndarray) -> None:
    np.testing.assert_allclose(x, y, rtol=64 * np.finfo(x.dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(("left", "transposed"), [(True, False), (True, True), (False, False), (False, True)])
def test_triangular_systems(dtype: DType, lower: bool, left: bool, transposed: bool) -> None:
    a, tiny_a = small(dtype, (4, 4), 1)
    b, tiny_b = small(dtype, (4, 4), 2)
    step = np.finfo(dtype.numpy).tiny / 2**10
    a, tiny_a = a + 20 * np.eye(4, dtype=a.dtype), tiny_a + 20 * step * np.eye(4, dtype=a.dtype)
    (x,) = kernels.triangular_solve(tiny_a, tiny_b, left, lower, transposed, unit_diagonal=False)
    (due,) = kernels.triangular_solve(a, b, left, lower, transposed, unit_diagonal=False)
    assert x.dtype == dtype.numpy
    close(x, due)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("transposed", "conjugated"), [(False, False), (True, False), (True, True), (False, True)])
def test_systems_by_their_factors(dtype: DType, transposed: bool, conjugated: bool) -> None:
    (a, tiny_a), (b, tiny_b) = small(dtype, (5, 5), 3), small(dtype, (5, 2), 4)
    packed, pivots, parity = kernels.lu_factor(tiny_a)
    assert np.abs(packed[1:, 0]).max() > 0.01  # what is below a pivot was divided by it
    x = kernels.solve(tiny_a, tiny_b)[0]
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-2)  # the factors are subnormal themselves
    (y,) = kernels.lu_solve_prepared(tiny_a, packed, pivots, tiny_b, transposed, conjugated)
    op = a.conj() if conjugated else a
    np.testing.assert_allclose(y, np.linalg.solve(op.T if transposed else op, b), rtol=1e-2)
    assert parity == round(np.linalg.det(np.eye(5)[kernels._order(pivots - 1, 5)[0]]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (1, 1)])
def test_factors(dtype: DType, shape: tuple[int, int]) -> None:
    a = small(dtype, shape, 5)[1]
    p, low, up, _ = kernels.lu(a)
    assert np.abs(low).max() <= 1
    grain = float(np.finfo(dtype.numpy).smallest_subnormal)
    np.testing.assert_allclose(p.T @ low @ up, a, rtol=0, atol=4 * max(shape) * grain)


def test_a_single_small_pivot_is_eliminated_with() -> None:
    a = np.array([[1e-310, 1.0], [1e-310, 2.0]])
    p, low, up, _ = kernels.lu(a)
    assert p.tolist() == [[1, 0], [0, 1]]
    assert low.tolist() == [[1, 0], [1, 1]]
    assert up.tolist() == [[1e-310, 1], [0, 1]]
    assert kernels.solve(a, np.array([[1.0], [2.0]]))[0].tolist() == [[0], [1]]
