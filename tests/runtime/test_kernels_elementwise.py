"""Elementwise kernels at every length and in every form, and against plain formulas; edge values are in `tests.known`."""

from __future__ import annotations

import cmath
from itertools import product

import mpmath
import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tests.build import COMPLEXES, FLOATS, INF, NAN, apply, arr, hostile, quiet_nans, same
from tests.known import POWERS

# --- floats: special values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_signed_zeros_and_nans_hold_at_every_length(dtype):
    for size in (1, 3, 4, 8, 17, 64, 65):
        minus = np.full(size, -0.0, dtype.numpy)
        assert np.signbit(apply(ops.Maximum(), minus, -minus)).all()
        assert np.signbit(apply(ops.Minimum(), minus, -minus)).all()
        assert not np.signbit(apply(ops.Sign(), minus)).any()
        for op, other in product((ops.Maximum(), ops.Minimum()), (minus, minus + np.nan)):
            assert np.isnan(apply(op, minus + np.nan, other)).all()
            assert np.isnan(apply(op, other, minus + np.nan)).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_pow_is_the_pow_of_c_in_every_form(dtype):
    """Rank 0, one element, tensors, a scalar exponent, a scalar base."""
    for x, y, expected in POWERS:
        forms = (x, y), ([x], [y]), ([[x] * 9] * 3, [[y] * 9] * 3), ([x] * 17, y), (x, [y] * 17)
        for base, exponent in forms:
            result = apply(ops.Pow(), arr(base, dtype), arr(exponent, dtype))
            assert same(result, np.full(result.shape, expected, dtype.numpy)), (base, exponent)


@pytest.mark.parametrize("dtype", list(ENGINE_DTYPES))
def test_select_is_a_pure_pick(dtype):
    rng = np.random.default_rng(0)
    a, b, pred = hostile(dtype, 40, rng), hostile(dtype, 40, rng), rng.random(40) < 0.5
    result = apply(ops.Select(), pred, a, b)
    expected = [x if p else y for p, x, y in zip(pred, a, b, strict=True)]
    assert result.tobytes() == np.array(expected, dtype.numpy).tobytes()


@pytest.mark.parametrize("dtype", FLOATS + COMPLEXES)
def test_sign_changes_keep_payloads_and_arithmetic_makes_canonical_nans(dtype):
    nans = quiet_nans(dtype.real)
    x = nans if dtype.is_float else (nans + 0j).astype(dtype.numpy)
    x.real[...] = nans
    quiet = np.array([NAN], dtype.real.numpy).tobytes()
    assert apply(ops.Negate(), apply(ops.Negate(), x)).real.tobytes() == nans.tobytes()
    for op in (ops.Add(), ops.Multiply(), ops.Divide()):
        result = apply(op, x, x[::-1].copy())
        assert result.real.tobytes() == quiet * 4
    assert apply(ops.Exp(), x).real.tobytes() == quiet * 4


# --- complex ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_complex_sign_and_modulus(dtype):
    sign = apply(ops.Sign(), arr([3 + 4j, 0, -5j, complex(NAN, 1)], dtype))
    assert np.allclose(sign[:3], [0.6 + 0.8j, 0, -1j])
    assert np.isnan(sign[3])
    big = np.finfo(dtype.real.numpy).max / 2
    assert np.isfinite(apply(ops.Abs(), arr([complex(big, big)], dtype))[0])


def test_complex_exp_family_at_infinity():
    z = np.array([complex(-INF, 0), complex(INF, 0), complex(700, 1), complex(-800, 2)])
    w = apply(ops.Expm1(), z)
    assert w[0] == -1
    assert w[1].real == INF
    assert w[2] == cmath.exp(complex(700, 1)) - 1
    assert w[3] == -1
    assert apply(ops.Log1p(), np.array([-1 + 0j]))[0].real == -INF


def test_the_complex_log1p_of_terms_that_cancel_is_accurate() -> None:
    """Within 1.5 ULP of the modulus; 3.2 where `x (2 + x) + y y` is rounded before its logarithm is taken."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-0.5, 0.5, 500) + 1j * rng.uniform(-0.5, 0.5, 500)
    x[0] = -0.3841706270385746 + 0.08509929588094031j
    with mpmath.workprec(160):
        for number, result in zip(x, apply(ops.Log1p(), x), strict=True):
            true = mpmath.log(1 + mpmath.mpc(number))
            assert abs(mpmath.mpf(result.real) - true.real) < 1.5 * np.spacing(float(abs(true)))


def test_a_constant_keeps_a_nan_payload_and_takes_any_nonzero_byte_as_true():
    data = bytes.fromhex("450600000000fcff")
    assert apply(ops.Constant(DType.F64, data)).tobytes() == data
    assert apply(ops.Constant(DType.Bool, b"\x02")).tobytes() == b"\x01"


def test_the_digamma_function_is_that_of_order_0_near_its_poles_too():
    x = np.array([-1 + 2.0**-11, -3 - 2.0**-20, -0.25])
    made = [apply(ops.Special2("polygamma"), np.zeros(3), x), apply(ops.Special("digamma"), x)]
    true = np.array([float(mpmath.digamma(float(v))) for v in x])
    for value in made:
        np.testing.assert_allclose(value, true, rtol=64 * 2.0**-52)


@pytest.mark.parametrize("order", [2, 4, 20])
def test_series_whose_terms_cancel_have_all_digits(order):
    """Of an even order left of zero the terms of both signs are alike, at a half but for a few."""
    x = np.array([-14.5, -11.5 - 1e-6, -4.25, -0.5, -7.0 - 1e-9, -1e-3])
    n = np.full(x.shape, float(order))
    polygamma, zeta = (apply(ops.Special2(f), a, x) for f, a in (("polygamma", n), ("zeta", n + 1)))
    with mpmath.workprec(200):
        true = np.array([float(mpmath.polygamma(order, float(q))) for q in x])
        of_zeta = true / -float(mpmath.factorial(order))
    np.testing.assert_allclose(polygamma, true, rtol=64 * 2.0**-52)
    np.testing.assert_allclose(zeta, of_zeta, rtol=64 * 2.0**-52)


def test_an_order_that_is_not_whole_has_no_polygamma():
    """1 more than a tiny number is 1 in floating point."""
    made = apply(ops.Special2("polygamma"), np.array([-1e-33, 5e-324, 1.5, -1.0, 1.0]), np.full(5, 2.0))
    assert np.isnan(made).tolist() == [True, True, True, True, False]


def test_erfc_keeps_its_digits_down_to_the_subnormals():
    x = np.concatenate([np.linspace(-6, 27.4, 700), [26.859375, 28.0, 1e300, INF]])
    made = apply(ops.Special("erfc"), x)
    true = np.array([float(mpmath.erfc(min(q, 1000))) for q in x])
    assert (np.abs(made - true) <= 16 * np.spacing(true)).all()
    assert made[-4] > 0
    assert (made[-3:] == 0).all()


def test_zeta_has_its_digits_where_its_terms_are_alike_and_where_they_cancel():
    orders = np.array([159.07431665336821, 39.2, 3e13, 2.5, 1.0625, 17.0, 101.0, 21.0, 19.0, 3.0])
    x = np.array(
        [
            84.4495922874678,
            194.3,
            1.7,
            1e200,
            3.0,
            -8.499999974662986,
            -3.5,
            -6.495232986238787,
            -3.042270793046818,
            0.25,
        ]
    )
    made = apply(ops.Special2("zeta"), orders, x)
    with mpmath.workprec(500):
        true = []
        for s, q in zip(map(mpmath.mpf, orders.tolist()), map(mpmath.mpf, x.tolist()), strict=True):
            end = q + 2000  # three terms of Euler and Maclaurin from there on
            rest = end ** (1 - s) / (s - 1) + end**-s / 2 + s * end ** (-s - 1) / 12
            true.append(float(mpmath.fsum((q + k) ** -s for k in range(2000)) + rest))
    np.testing.assert_allclose(made, true, rtol=8 * 2.0**-52, atol=0)


@pytest.mark.parametrize("order", [7, 170, 200, 400])
def test_polygamma_where_factorial_or_sum_leave_the_numbers(order):
    x = np.array([2.0, 100.0, 400.0])
    made = apply(ops.Special2("polygamma"), np.full(3, float(order)), x)
    with mpmath.workprec(4000):
        true = [float(mpmath.polygamma(order, q)) for q in x.tolist()]
    np.testing.assert_allclose(made, true, rtol=16 * 2.0**-52, atol=0)


@pytest.mark.parametrize("order", [2, 3, 4, 21, 22, 40])
def test_zeta_far_below_zero_is_the_sum_around_the_nearest_pole(order):
    """A sum of a term for each unit below zero would never end."""
    x = np.array([-(2.0**50) + 0.25, -1e9 - 0.375, -1e6 + 2.0**-20])
    made = apply(ops.Special2("zeta"), np.full(x.shape, float(order)), x)
    with mpmath.workprec(300):
        sign, exact = (-1) ** order, [(mpmath.mpf(q), mpmath.mpf(q) - round(q)) for q in x.tolist()]
        both = [mpmath.zeta(order, 1 + t) + t**-order + sign * mpmath.zeta(order, 1 - t) for _, t in exact]
        true = [float(sum_ - sign * mpmath.zeta(order, 1 - q)) for sum_, (q, _) in zip(both, exact, strict=True)]
    np.testing.assert_allclose(made, true, rtol=64 * 2.0**-52)


def test_polygamma_overflows_next_to_zero():
    """At the negative numbers whose reciprocal is infinite, where it is worked out from a cotangent."""
    x = np.array([-1.390671161567e-309, -5e-324, -1e-200])
    for order in (2.0, 4.0, 20.0):
        assert (apply(ops.Special2("polygamma"), np.full(3, order), x) == np.inf).all()


def test_series_at_and_beside_their_poles_do_not_cancel():
    x = np.array([-1e-200, -3.0, -np.inf, np.nan])
    made = apply(ops.Special2("zeta"), np.full(4, 3.0), x)
    assert made[0] == -np.inf
    assert not np.isfinite(made[1:]).any()
