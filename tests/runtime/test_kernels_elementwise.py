"""Edge values of the elementwise kernels, dtype by dtype, and agreement with plain formulas."""

from __future__ import annotations

import cmath
import math

import mpmath
import numpy as np
import pytest
from runtime_helpers import COMPLEXES, FLOATS, INTS, apply, arr, hostile, quiet_nans, same

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument
from tenferro_ref.ops import STABLEHLO, CompareDir

INF, NAN = math.inf, math.nan


def is_negative_zero(x):
    return x == 0 and np.signbit(x)


def is_positive_zero(x):
    return x == 0 and not np.signbit(x)


# --- integers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTS)
def test_integer_arithmetic_wraps(dtype):
    info = np.iinfo(dtype.numpy)
    top, bottom = arr([info.max], dtype), arr([info.min], dtype)
    assert apply(ops.Add(), top, arr([1], dtype))[0] == info.min
    assert apply(ops.Multiply(), top, arr([2], dtype))[0] == -2
    assert apply(ops.Negate(), bottom)[0] == info.min
    assert apply(ops.Abs(), bottom)[0] == info.min
    wrapped = (3**41 - info.min) % 2**info.bits + info.min
    assert apply(ops.Pow(), arr([3], dtype), arr([41], dtype)) == [wrapped]


@pytest.mark.parametrize("dtype", INTS)
def test_integer_division_truncates_toward_zero(dtype):
    x, y = arr([7, -7, 7, -7, 6, -6, 0], dtype), arr([2, 2, -2, -2, 3, 3, 5], dtype)
    assert apply(ops.Divide(), x, y).tolist() == [3, -3, -3, 3, 2, -2, 0]
    low = np.iinfo(dtype.numpy).min
    assert apply(ops.Divide(), arr([low, low], dtype), arr([-1, 2], dtype)).tolist() == [low, low // 2]


@pytest.mark.parametrize("dtype", INTS)
def test_integer_division_by_zero_goes_by_policy(dtype):
    x, zero = arr([5, -5, 0], dtype), arr(0, dtype)
    with pytest.raises(InvalidArgument, match="division by zero") as caught:
        apply(ops.Divide(), x, zero)
    assert caught.value.op == "Divide"
    assert apply(ops.Divide(), x, zero, policy=STABLEHLO).tolist() == [-1, -1, -1]
    assert apply(ops.Divide(), arr(np.zeros(0), dtype), zero).shape == (0,)


@pytest.mark.parametrize("dtype", INTS)
def test_negative_integer_exponent_goes_by_policy(dtype):
    x, y = arr([1, -1, -1, 2, 0, 3], dtype), arr([-3, -3, -4, -1, -1, 2], dtype)
    with pytest.raises(InvalidArgument, match="negative integer exponent"):
        apply(ops.Pow(), x, y)
    assert apply(ops.Pow(), x, y, policy=STABLEHLO).tolist() == [1, -1, 1, 0, 0, 9]
    assert apply(ops.Pow(), arr([0, 5, -2], dtype), arr([0, 0, 3], dtype)).tolist() == [1, 1, -8]


@pytest.mark.parametrize("dtype", INTS)
def test_integer_extrema_sign_and_order(dtype):
    x, y = arr([1, -2, 3], dtype), arr([2, -3, 3], dtype)
    assert apply(ops.Maximum(), x, y).tolist() == [2, -2, 3]
    assert apply(ops.Minimum(), x, y).tolist() == [1, -3, 3]
    assert apply(ops.Sign(), arr([-7, 0, 9], dtype)).tolist() == [-1, 0, 1]
    assert apply(ops.Compare(CompareDir.Ge), x, y).tolist() == [False, True, True]
    assert apply(ops.Clamp(), x, y, x, policy=STABLEHLO).tolist() == [1, -2, 3]


def test_bool_arithmetic_under_stablehlo():
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    assert apply(ops.Add(), x, y, policy=STABLEHLO).tolist() == [False, True, True, True]
    assert apply(ops.Multiply(), x, y, policy=STABLEHLO).tolist() == [False, False, False, True]
    assert apply(ops.Maximum(), x, y, policy=STABLEHLO).tolist() == [False, True, True, True]
    assert apply(ops.Minimum(), x, y, policy=STABLEHLO).tolist() == [False, False, False, True]
    assert apply(ops.Compare(CompareDir.Lt), x, y, policy=STABLEHLO).tolist() == [False, True, False, False]
    assert apply(ops.Compare(CompareDir.Eq), x, y).tolist() == [True, False, False, True]


# --- floats: special values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_signed_zeros(dtype):
    plus, minus = arr([0.0], dtype), arr([-0.0], dtype)
    assert is_positive_zero(apply(ops.Sign(), minus)[0])
    assert is_positive_zero(apply(ops.Sign(), plus)[0])
    assert is_positive_zero(apply(ops.Abs(), minus)[0])
    assert is_negative_zero(apply(ops.Negate(), plus)[0])
    assert is_negative_zero(apply(ops.Maximum(), minus, plus)[0])
    assert is_positive_zero(apply(ops.Maximum(), plus, minus)[0])
    assert is_negative_zero(apply(ops.Minimum(), minus, plus)[0])
    assert is_positive_zero(apply(ops.Minimum(), plus, minus)[0])
    assert is_positive_zero(apply(ops.Add(), plus, minus)[0])
    assert is_negative_zero(apply(ops.Add(), minus, minus)[0])
    assert is_negative_zero(apply(ops.Sqrt(), minus)[0])
    assert apply(ops.Rsqrt(), np.concatenate([plus, minus])).tolist() == [INF, -INF]
    assert is_negative_zero(apply(ops.Clamp(), minus, plus - 1, plus + 1)[0])


@pytest.mark.parametrize("dtype", FLOATS)
def test_signed_zeros_hold_at_every_length(dtype):
    for size in (1, 3, 4, 8, 17, 64, 65):
        minus = np.full(size, -0.0, dtype.numpy)
        assert np.signbit(apply(ops.Maximum(), minus, -minus)).all()
        assert np.signbit(apply(ops.Minimum(), minus, -minus)).all()
        assert not np.signbit(apply(ops.Sign(), minus)).any()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [ops.Maximum(), ops.Minimum()])
def test_extrema_keep_nan(dtype, op):
    nan, one = arr([NAN] * 9, dtype), arr([1] * 9, dtype)
    for pair in ((nan, one), (one, nan), (nan, nan)):
        assert np.isnan(apply(op, *pair)).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_clamp(dtype):
    x, lower, upper = (
        arr([-5, 5, 0.5, 0, NAN, 0, 0], dtype),
        arr([0, 0, 0, 3, 0, NAN, 0], dtype),
        arr([1, 1, 1, 2, 1, 1, NAN], dtype),
    )
    result = apply(ops.Clamp(), x, lower, upper)
    assert result[:4].tolist() == [0, 1, 0.5, 2]  # lower above upper gives upper
    assert np.isnan(result[4:]).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_division_and_domain_follow_ieee(dtype):
    result = apply(ops.Divide(), arr([1, -1, 0, INF, 1], dtype), arr([0, 0, 0, INF, INF], dtype))
    assert result[:2].tolist() == [INF, -INF]
    assert np.isnan(result[2:4]).all()
    assert is_positive_zero(result[4])
    assert np.isnan(apply(ops.Log(), arr([-1], dtype))[0])
    assert apply(ops.Log(), arr([0, -0.0, INF], dtype)).tolist() == [-INF, -INF, INF]
    assert np.isnan(apply(ops.Sqrt(), arr([-1], dtype))[0])
    assert apply(ops.Log1p(), arr([-1], dtype))[0] == -INF
    assert np.isnan(apply(ops.Sin(), arr([INF], dtype))[0])
    assert apply(ops.Tanh(), arr([INF, -INF], dtype)).tolist() == [1, -1]
    assert apply(ops.Expm1(), arr([-INF, INF], dtype)).tolist() == [-1, INF]
    for op in (ops.Expm1(), ops.Log1p(), ops.Sin(), ops.Tanh()):
        assert is_negative_zero(apply(op, arr([-0.0], dtype))[0])


POW = [
    (NAN, 0.0, 1), (1, NAN, 1), (1, INF, 1), (-1, INF, 1), (-1, -INF, 1), (0.0, 0.0, 1), (-8, 1 / 3, NAN), (-2, 3, -8),
    (-INF, 0.5, INF), (-0.0, 0.5, 0.0), (-0.0, -1, -INF), (-0.0, -2, INF), (-0.0, 3, -0.0), (-INF, 3, -INF),
    (-INF, -3, -0.0), (0.5, INF, 0.0), (2, -INF, 0.0), (INF, -1, 0.0), (NAN, 1, NAN), (2, NAN, NAN), (4, 0.5, 2),
    (9, 2, 81), (2, -1, 0.5),
]  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("x", "y", "expected"), POW)
@pytest.mark.parametrize("form", ["rank 0", "one element", "tensors", "scalar exponent", "scalar base"])
def test_pow_is_the_pow_of_c_in_every_form(dtype, x, y, expected, form):
    base, exponent = {
        "rank 0": (x, y),
        "one element": ([x], [y]),
        "tensors": ([[x] * 9] * 3, [[y] * 9] * 3),
        "scalar exponent": ([x] * 17, y),
        "scalar base": (x, [y] * 17),
    }[form]
    result = apply(ops.Pow(), arr(base, dtype), arr(exponent, dtype))
    assert same(result, np.full(result.shape, expected, dtype.numpy))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("direction", list(CompareDir))
def test_compare(dtype, direction):
    x, y = arr([1, 2, 2, NAN, 1, NAN, 0.0, INF], dtype), arr([2, 1, 2, 1, NAN, NAN, -0.0, INF], dtype)
    expected = {
        CompareDir.Eq: [0, 0, 1, 0, 0, 0, 1, 1],
        CompareDir.Lt: [1, 0, 0, 0, 0, 0, 0, 0],
        CompareDir.Le: [1, 0, 1, 0, 0, 0, 1, 1],
        CompareDir.Gt: [0, 1, 0, 0, 0, 0, 0, 0],
        CompareDir.Ge: [0, 1, 1, 0, 0, 0, 1, 1],
    }[direction]
    assert apply(ops.Compare(direction), x, y).astype(int).tolist() == expected
    assert apply(ops.Compare(direction), x[2].reshape(()), y[2].reshape(())).ndim == 0


@pytest.mark.parametrize("dtype", list(DType))
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
def test_complex_abs_sign_conj(dtype):
    z = arr([3 + 4j, 0, -5j, complex(NAN, 1)], dtype)
    modulus = apply(ops.Abs(), z)
    assert modulus[:3].tolist() == [5, 0, 5]
    assert np.isnan(modulus[3])
    assert apply(ops.Abs(), arr([complex(-INF, NAN)], dtype))[0] == INF
    sign = apply(ops.Sign(), z)
    assert np.allclose(sign[:3], [0.6 + 0.8j, 0, -1j])
    assert np.isnan(sign[3])
    assert apply(ops.Conj(), z)[:3].tolist() == [3 - 4j, 0, 5j]
    assert apply(ops.Conj(), arr(1 + 2j, dtype)).shape == ()
    big = np.finfo(dtype.real.numpy).max / 2
    assert np.isfinite(apply(ops.Abs(), arr([complex(big, big)], dtype))[0])


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_complex_arithmetic_beside_a_real_scalar(dtype):
    z, s = arr([1 + 2j, 3 - 1j], dtype), arr(2, dtype.real)
    assert apply(ops.Multiply(), s, z).tolist() == [2 + 4j, 6 - 2j]
    assert apply(ops.Add(), z, s).tolist() == [3 + 2j, 5 - 1j]
    assert apply(ops.Divide(), z, s).tolist() == [0.5 + 1j, 1.5 - 0.5j]
    assert apply(ops.Compare(CompareDir.Eq), z, z.conj()).tolist() == [False, False]


COMPLEX_FUNCTIONS = {
    ops.Exp: mpmath.exp, ops.Log: mpmath.log, ops.Sin: mpmath.sin, ops.Cos: mpmath.cos, ops.Tanh: mpmath.tanh, ops.Sqrt: mpmath.sqrt,
    ops.Rsqrt: lambda z: 1 / mpmath.sqrt(z), ops.Expm1: lambda z: mpmath.exp(z) - 1, ops.Log1p: lambda z: mpmath.log(1 + z),
}  # fmt: skip


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("op", list(COMPLEX_FUNCTIONS), ids=lambda op: op.__name__)
def test_complex_functions_are_accurate(dtype, op):
    """Each result is within a few ULP of its modulus, near 0 too."""
    rng = np.random.default_rng(7)
    scale = 10.0 ** rng.uniform(-9, 0.7, 60)
    z = arr(scale * np.exp(1j * rng.uniform(-3.1, 3.1, 60)), dtype)
    got = apply(op(), z)
    ulp = np.finfo(dtype.real.numpy).eps
    with mpmath.workprec(200):
        for zi, wi in zip(z.tolist(), got.tolist(), strict=True):
            exact = COMPLEX_FUNCTIONS[op](mpmath.mpc(zi))
            assert abs(mpmath.mpc(wi) - exact) <= 16 * ulp * abs(exact), (zi, wi)


def test_complex_exp_family_at_infinity():
    z = np.array([complex(-INF, 0), complex(INF, 0), complex(700, 1), complex(-800, 2)])
    w = apply(ops.Expm1(), z)
    assert w[0] == -1
    assert w[1].real == INF
    assert w[2] == cmath.exp(complex(700, 1)) - 1
    assert w[3] == -1
    assert apply(ops.Log1p(), np.array([-1 + 0j]))[0].real == -INF


# --- agreement with plain formulas ------------------------------------------------------------------------------------

FORMULAS = {
    ops.Exp: math.exp, ops.Log: math.log, ops.Sin: math.sin, ops.Cos: math.cos, ops.Tanh: math.tanh, ops.Sqrt: math.sqrt,
    ops.Rsqrt: lambda x: 1 / math.sqrt(x), ops.Expm1: math.expm1, ops.Log1p: math.log1p, ops.Abs: abs, ops.Negate: lambda x: -x,
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", list(FORMULAS), ids=lambda op: op.__name__)
def test_functions_agree_with_libm(dtype, op):
    rng = np.random.default_rng(3)
    x = arr(np.abs(rng.standard_normal(200)) * 10.0 ** rng.uniform(-6, 1, 200), dtype)
    expected = np.array([FORMULAS[op](v) for v in x.tolist()])
    np.testing.assert_allclose(apply(op(), x), expected, rtol=8 * np.finfo(dtype.numpy).eps)


@pytest.mark.parametrize("dtype", FLOATS)
def test_arithmetic_agrees_with_that_of_single_elements(dtype):
    rng = np.random.default_rng(5)
    x, y = hostile(dtype, 300, rng), hostile(dtype, 300, rng)
    with np.errstate(all="ignore"):
        for op, reference in ((ops.Add(), np.add), (ops.Multiply(), np.multiply), (ops.Divide(), np.divide)):
            single = np.array([reference(a, b) for a, b in zip(x, y, strict=True)], dtype.numpy)
            assert same(apply(op, x, y), single)
