"""DotGeneral against an explicit sum, and the law that its bits do not depend on layout or on the axes' places."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tenferro_ref import ops
from tests.build import COMPLEXES, FLOATS, apply, arr


@pytest.mark.parametrize("dtype", FLOATS + COMPLEXES)
def test_bits_do_not_depend_on_where_the_axes_are(dtype):
    """The canonical [M,K,B] x [K,N,B] form and every arrangement of it, transposed in memory, agree bit for bit."""
    rng = np.random.default_rng(4)
    for m, k, n, b in [
        (3, 17, 4, 2),
        (1, 33, 5, 1),
        (6, 40, 1, 3),
        (1, 9, 1, 1),
        (1, 1, 1, 1),
        (4, 64, 4, 1),
        (2, 200, 9, 2),
    ]:
        x, y = (
            rng.standard_normal(s) + (1j * rng.standard_normal(s) if dtype.is_complex else 0)
            for s in ((m, k, b), (k, n, b))
        )
        x, y = arr(x, dtype), arr(y, dtype)
        expected = apply(ops.DotGeneral((1,), (0,), (2,), (2,)), x, y).tobytes("F")
        for p, q in itertools.product(itertools.permutations(range(3)), repeat=2):
            op = ops.DotGeneral((p.index(1),), (q.index(0),), (p.index(2),), (q.index(2),))
            moved = apply(op, np.asfortranarray(x.transpose(p)), np.asfortranarray(y.transpose(q)))
            assert moved.tobytes("F") == expected


@pytest.mark.parametrize("dtype", FLOATS + COMPLEXES)
def test_bits_are_those_of_the_merged_contraction(dtype):
    """Several contracting, free and batch axes against their column-major merge, as the DotDecomposer makes it."""
    rng = np.random.default_rng(9)
    x, y = rng.standard_normal((2, 3, 4, 5, 2)), rng.standard_normal((4, 5, 3, 2, 2))
    x, y = arr(x, dtype), arr(y, dtype)
    whole = apply(ops.DotGeneral((2, 3), (0, 1), (4,), (4,)), x, y)
    merged = apply(
        ops.DotGeneral((1,), (0,), (2,), (2,)), x.reshape((6, 20, 2), order="F"), y.reshape((20, 6, 2), order="F")
    )
    assert whole.tobytes("F") == merged.tobytes("F")


@pytest.mark.parametrize("dtype", FLOATS + COMPLEXES)
def test_bits_do_not_depend_on_the_operands_being_one_buffer(dtype):
    x = arr(np.random.default_rng(1).standard_normal((50, 20)), dtype)
    op = ops.DotGeneral((0,), (0,), (), ())
    assert apply(op, x, x).tobytes("F") == apply(op, x, x.copy(order="F")).tobytes("F")


@pytest.mark.parametrize("dtype", FLOATS + COMPLEXES)
def test_empty_contraction_and_empty_result(dtype):
    zero_k = apply(ops.DotGeneral((1,), (0,), (), ()), np.zeros((2, 0), dtype.numpy), np.zeros((0, 3), dtype.numpy))
    assert zero_k.tolist() == [[0] * 3] * 2
    assert apply(
        ops.DotGeneral((1,), (0,), (), ()), arr(np.ones((0, 2)), dtype), arr(np.ones((2, 3)), dtype)
    ).shape == (0, 3)


@pytest.mark.parametrize("dtype", FLOATS)
def test_zero_times_infinity_is_nan_in_every_shape(dtype):
    for m, k, n in [(1, 1, 1), (1, 5, 1), (3, 5, 1), (1, 5, 4), (4, 9, 4), (17, 33, 19)]:
        x, y = np.zeros((m, k), dtype.numpy, order="F"), np.full((k, n), np.inf, dtype.numpy, order="F")
        assert np.isnan(apply(ops.DotGeneral((1,), (0,), (), ()), x, y)).all()
