"""Reductions against a literal left fold, highest axis first."""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np
import pytest
from runtime_helpers import COMPLEXES, FLOATS, INTS, apply, arr, hostile, quiet_nans, same

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, Unsupported
from tenferro_ref.ops import STABLEHLO, Policy

SHAPES = [(1,), (2,), (7,), (1, 9), (9, 1), (2, 30), (30, 2), (3, 4, 5), (1, 6, 1), (40, 3, 2)]


def left_fold(step, identity, x, axes):
    for axis in sorted(axes, reverse=True):
        acc = np.full(x.shape[:axis] + x.shape[axis + 1 :], identity, x.dtype)
        for i in range(x.shape[axis]):
            acc = np.asarray(step(acc, np.take(x, i, axis)))
        x = acc
    return x


def times(a, b):
    if a.dtype.kind != "c":
        return a * b
    result = np.empty_like(a)
    result.real, result.imag = a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real
    return result


def larger(acc, x):
    return np.where((acc >= x) | (acc != acc), acc, x)


def smaller(acc, x):
    return np.where((acc <= x) | (acc != acc), acc, x)


def cases(dtype):
    rng = np.random.default_rng(11)
    for shape in SHAPES:
        x = rng.standard_normal(shape) * 10.0 ** rng.uniform(-4, 4, shape)
        if dtype.is_complex:
            x = x + 1j * rng.standard_normal(shape)
        elif dtype.is_int:
            x = rng.integers(-(2**31), 2**31, shape)
        for count in range(1, len(shape) + 1):
            for axes in itertools.combinations(range(len(shape)), count):
                yield arr(x, dtype), axes


@pytest.mark.parametrize("dtype", FLOATS + COMPLEXES + INTS)
def test_sum_and_product_are_the_left_fold_bit_for_bit(dtype):
    with np.errstate(all="ignore"):
        for x, axes in cases(dtype):
            assert same(apply(ops.ReduceSum(axes), x), left_fold(np.add, 0, x, axes)), (x.shape, axes)
            assert same(apply(ops.ReduceProd(axes), x), left_fold(times, 1, x, axes)), (x.shape, axes)


@pytest.mark.parametrize("dtype", FLOATS + INTS)
def test_extrema_are_the_left_fold_bit_for_bit(dtype):
    rng = np.random.default_rng(2)
    for shape in SHAPES:
        x = hostile(dtype, int(np.prod(shape)), rng).reshape(shape, order="F")
        x[rng.random(shape) < 0.6] = 0
        if dtype.is_float:
            x[rng.random(shape) < 0.3] = -0.0
        low, high = (-np.inf, np.inf) if dtype.is_float else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
        for axes in [(0,), (len(shape) - 1,), tuple(range(len(shape)))]:
            assert apply(ops.ReduceMax(axes), x).tobytes("F") == left_fold(larger, low, x, axes).tobytes("F")
            assert apply(ops.ReduceMin(axes), x).tobytes("F") == left_fold(smaller, high, x, axes).tobytes("F")


@pytest.mark.parametrize("dtype", FLOATS)
def test_long_single_lines_are_not_summed_pairwise(dtype):
    x = arr(np.random.default_rng(0).standard_normal(5000), dtype)
    expected = reduce(lambda a, b: a + b, x, dtype.numpy.type(0))
    for shape, axis in (((5000,), 0), ((5000, 1), 0), ((1, 5000), 1), ((1, 5000, 1), 1)):
        assert apply(ops.ReduceSum((axis,)), x.reshape(shape, order="F")).ravel()[0] == expected


@pytest.mark.parametrize("dtype", FLOATS)
def test_sum_of_negative_zeros_is_positive_zero(dtype):
    for x, axes in ((arr([-0.0, -0.0], dtype), (0,)), (arr([[-0.0] * 3] * 2, dtype), (1,)), (arr([-0.0], dtype), (0,))):
        result = apply(ops.ReduceSum(axes), x)
        assert not np.signbit(result).any()
    assert np.signbit(apply(ops.ReduceSum(()), arr(-0.0, dtype)))  # over no axis a copy


@pytest.mark.parametrize("dtype", INTS)
def test_integers_wrap_and_keep_their_dtype(dtype):
    top = np.iinfo(dtype.numpy).max
    assert apply(ops.ReduceSum((0,)), arr([top, 1], dtype)) == np.iinfo(dtype.numpy).min
    assert apply(ops.ReduceProd((0,)), arr([top, 2], dtype)) == -2


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [ops.ReduceMax, ops.ReduceMin])
def test_extrema_keep_nan_wherever_it_stands(dtype, op):
    for i in range(9):
        x = arr(np.arange(9.0), dtype)
        x[i] = quiet_nans(dtype)[2]
        assert apply(op((0,)), x).tobytes() == quiet_nans(dtype)[2].tobytes()


def test_zero_extents():
    kept = np.zeros((0, 3), order="F")
    assert apply(ops.ReduceSum((1,)), kept).shape == (0,)
    assert apply(ops.ReduceMax((1,)), kept).shape == (0,)
    for op in (ops.ReduceSum, ops.ReduceProd, ops.ReduceMax, ops.ReduceMin):
        with pytest.raises(InvalidArgument, match="extent 0"):
            apply(op((0,)), kept)
    policy = Policy(empty_reduction="identity")
    for op, value in ((ops.ReduceSum, 0), (ops.ReduceProd, 1), (ops.ReduceMax, -np.inf), (ops.ReduceMin, np.inf)):
        assert apply(op((0,)), kept, policy=policy).tolist() == [value] * 3
    ints = np.zeros((0,), np.int32)
    assert apply(ops.ReduceMax((0,)), ints, policy=policy) == -(2**31)
    assert apply(ops.ReduceMin((0,)), ints, policy=policy) == 2**31 - 1


def test_bool_is_refused_by_the_engine_and_logical_under_stablehlo():
    x = np.array([[True, False], [True, True]], order="F")
    with pytest.raises(Unsupported):
        apply(ops.ReduceSum((0,)), x)
    for op, expected in (
        (ops.ReduceSum, [1, 1]),
        (ops.ReduceProd, [1, 0]),
        (ops.ReduceMax, [1, 1]),
        (ops.ReduceMin, [1, 0]),
    ):
        assert apply(op((0,)), x, policy=STABLEHLO).astype(int).tolist() == expected
    assert apply(ops.ReduceSum(()), x).tolist() == x.tolist()
    for op in (ops.ReduceMax, ops.ReduceMin, ops.ReduceProd):
        assert apply(op(()), arr([1j], DType.C64)).tolist() == [1j]
