"""Structural kernels: each against an element-by-element statement of its rule."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dims import DimOp, InputDim
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tests.build import FLOATS, INTS, apply, hostile, numbered, same


@pytest.mark.parametrize("dtype", list(ENGINE_DTYPES))
def test_constant(dtype):
    value = {DType.Bool: True, DType.C32: 1 - 2j, DType.C64: 1 - 2j}.get(dtype, 7)
    result = apply(ops.Constant.of(value, dtype))
    assert result.shape == ()
    assert result == value


def test_constant_keeps_a_nan_payload_and_takes_any_nonzero_byte_as_true():
    data = bytes.fromhex("450600000000fcff")
    assert apply(ops.Constant(DType.F64, data)).tobytes() == data
    assert apply(ops.Constant(DType.Bool, b"\x02")).tobytes() == b"\x01"


@pytest.mark.parametrize("perm", list(itertools.permutations(range(3))))
def test_transpose(perm):
    x = numbered(2, 3, 4)
    y = apply(ops.Transpose(perm), x)
    for index in np.ndindex(y.shape):
        source = [0, 0, 0]
        for i, p in enumerate(perm):
            source[p] = index[i]
        assert y[index] == x[tuple(source)]


def test_reshape_is_column_major():
    x = numbered(2, 3)
    assert apply(ops.Reshape((3, 2)), x).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert apply(ops.Reshape((6,)), x).tolist() == [1, 2, 3, 4, 5, 6]
    assert apply(ops.Reshape(()), numbered(1, 1)).shape == ()
    assert apply(ops.Reshape((0, 5)), numbered(3, 0)).shape == (0, 5)


def test_reshape_reads_extents_of_its_shape_providers():
    x, provider = numbered(12), numbered(3, 4)
    op = ops.Reshape((InputDim(1, 0), DimOp("mul", InputDim(1, 1), 1)))
    assert same(apply(op, x, provider), x.reshape((3, 4), order="F"))


def test_broadcast_in_dim():
    x = numbered(2, 3)
    y = apply(ops.BroadcastInDim((3, 4, 2), (2, 0)), x)
    for i, j, k in np.ndindex(3, 4, 2):
        assert y[i, j, k] == x[k, i]
    assert apply(ops.BroadcastInDim((2, 5), (0, 1)), numbered(2, 1))[1].tolist() == [2] * 5
    assert apply(ops.BroadcastInDim((2, 2), ()), np.array(3.0)).tolist() == [[3, 3], [3, 3]]
    assert apply(ops.BroadcastInDim((), ()), np.array(3.0)).tolist() == 3
    assert apply(ops.BroadcastInDim((0, 3), (1,)), numbered(3)).shape == (0, 3)
    assert apply(ops.BroadcastInDim((InputDim(1, 0), 2), (1,)), numbered(2), numbered(5)).shape == (5, 2)


# --- Convert ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTS)
def test_float_to_int_saturates_at_the_exact_boundary(source, target):
    info = np.iinfo(target.numpy)
    edge = source.numpy.type(2.0 ** (info.bits - 1))
    below = np.nextafter(edge, source.numpy.type(0))
    x = np.array(
        [edge, below, -edge, np.nextafter(-edge, -np.inf), np.inf, -np.inf, np.nan, 2.9, -2.9, -0.0, 1e-40, 1e30],
        source.numpy,
    )
    with np.errstate(all="ignore"):
        expected = [0 if math.isnan(v) else max(info.min, min(info.max, math.trunc(v))) if math.isfinite(v)
                    else (info.max if v > 0 else info.min) for v in x.tolist()]  # fmt: skip
    assert apply(ops.Convert(target), x).tolist() == expected
    for v, e in zip(x, expected, strict=True):
        assert apply(ops.Convert(target), np.array(v)).tolist() == e


@pytest.mark.parametrize("source", list(ENGINE_DTYPES))
@pytest.mark.parametrize("target", list(ENGINE_DTYPES))
def test_every_cast_against_its_rule(source, target):
    def parts(value, real):
        return (real(value.real), real(value.imag)) if isinstance(value, complex) else (real(value), real(0))

    def one(value):
        if target is DType.Bool:
            return bool(value != 0)
        if target.is_complex:
            real = np.dtype(target.real.numpy).type
            return complex(*parts(value, real)) if isinstance(value, complex) else complex(real(value), 0)
        if isinstance(value, complex):
            value = value.real
        if not target.is_int:
            return target.numpy.type(value)
        info = np.iinfo(target.numpy)
        if isinstance(value, float):
            if math.isnan(value):
                return 0
            return int(max(float(info.min), min(float(info.max), value))) if abs(value) < 2**62 else (
                info.max if value > 0 else info.min)  # fmt: skip
        return (int(value) - info.min) % 2**info.bits + info.min

    x = hostile(source, 60, np.random.default_rng(1))
    with np.errstate(all="ignore"):
        expected = np.array([one(v) for v in x.tolist()], target.numpy)
    assert same(apply(ops.Convert(target), x), expected)


# --- diagonals and triangles ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), list(itertools.permutations(range(3), 2)))
def test_extract_diag(a, b):
    x = numbered(3, 4, 2)
    y = apply(ops.ExtractDiag(a, b), x)
    kept = [axis for axis in range(3) if axis != b]
    for index in np.ndindex(y.shape):
        source = dict(zip(kept, index, strict=True))
        source[b] = source[a]
        assert y[index] == x[tuple(source[i] for i in range(3))]


@pytest.mark.parametrize("shape", [(3,), (3, 2), (2, 3, 4)])
def test_embed_diag(shape):
    x = numbered(*shape)
    for a, b in itertools.product(range(len(shape)), range(len(shape) + 1)):
        y = apply(ops.EmbedDiag(a, b), x)
        for index in np.ndindex(y.shape):
            rest = list(index)
            inserted = rest.pop(b)
            assert y[index] == (x[tuple(rest)] if rest[a] == inserted else 0)


@pytest.mark.parametrize("k", [-(2**63), -4, -1, 0, 1, 2, 5, 2**63 - 1])
@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (3, 3, 2), (0, 3)])
def test_triangles_act_on_the_first_two_axes(k, shape):
    x = numbered(*shape)
    low, high = apply(ops.Tril(k), x), apply(ops.Triu(k), x)
    for index in np.ndindex(shape):
        row, col = index[:2]
        assert low[index] == (x[index] if row >= col - k else 0)
        assert high[index] == (x[index] if row <= col - k else 0)


def test_triangle_fill_is_plus_zero_even_beside_nan():
    x = np.full((2, 2), -np.nan)
    assert apply(ops.Tril(0), x)[0, 1].tobytes() == np.float64(0).tobytes()
    assert apply(ops.Triu(0), np.ones((2, 2), bool)).tolist() == [[True, True], [False, True]]
