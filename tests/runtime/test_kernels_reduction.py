"""Reductions against a literal left fold, highest axis first."""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tests.build import COMPLEXES, FLOATS, INTS, apply, arr, hostile, quiet_nans, same

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
@pytest.mark.parametrize("op", [ops.ReduceMax, ops.ReduceMin])
def test_extrema_keep_nan_wherever_it_stands(dtype, op):
    for i in range(9):
        x = arr(np.arange(9.0), dtype)
        x[i] = quiet_nans(dtype)[2]
        assert apply(op((0,)), x).tobytes() == quiet_nans(dtype)[2].tobytes()


def test_a_reduction_over_no_axis_is_a_copy_for_dtypes_without_an_order():
    for op in (ops.ReduceMax, ops.ReduceMin, ops.ReduceProd):
        assert apply(op(()), arr([1j], DType.C64)).tolist() == [1j]
