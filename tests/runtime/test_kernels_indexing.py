"""Indexing, slicing, padding and host kernels against element-by-element statements of their rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.generate import Config
from fuzz.generate.strategies import cases
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, ValidationError
from tenferro_ref.ops import Policy
from tenferro_ref.runtime.kernels import indexing
from tests.build import FLOATS, apply, arr, numbered, quiet_nans, same

SKIP = Policy(scatter_bounds="skip")


# --- static -----------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 5), st.integers(-6, 4), st.integers(-6, 4), st.integers(0, 3))
def test_pad_expands_then_crops(extent, low, high, interior):
    spread = [0.0] * ((extent - 1) * (interior + 1) + 1 if extent else 0)
    spread[:: interior + 1] = range(1, extent + 1)
    x = numbered(extent)
    try:
        result = apply(ops.Pad((low,), (high,), (interior,)), x)
    except ValidationError:
        assert low + high + len(spread) < 0
        return
    assert len(result) == low + high + len(spread)
    assert result.tolist() == [spread[i - low] if 0 <= i - low < len(spread) else 0.0 for i in range(len(result))]


# --- index tensors ----------------------------------------------------------------------------------------------------

TAKE = ops.Gather((), (0,), (0,), 1, (1,))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("value", [0.5, np.nan, np.inf, -np.inf, 2.0**60])
def test_float_indices_must_be_exact_integers(dtype, value):
    for op, arrays in (
        (TAKE, (numbered(4), arr([0, value], dtype))),
        (ops.DynamicSlice((2,)), (numbered(4), arr([value], dtype))),
        (ops.DynamicUpdateSlice(), (numbered(4), numbered(2), arr([value], dtype))),
        (ops.Scatter((), (0,), (0,), 1), (numbered(4), arr([value], dtype), numbered(1))),
    ):
        with pytest.raises(InvalidArgument) as caught:
            apply(op, *arrays)
        assert caught.value.op == "index_tensor"


def one_op_of(op):
    """Generated programs of one instruction: the op and its operands; indices are integers, some of them outside."""
    config = Config(
        ops=(op,), dtypes=(DType.F32, DType.I64), min_instructions=1, max_instructions=1, symbolic=0, motifs=False
    )

    def parts(case):
        values = dict(zip(case.program.input_slots, case.inputs, strict=True))
        (ins,) = [i for i in case.program.instructions if type(i.op) is op]
        return ins.op, [values.get(slot) for slot in ins.input_slots]

    fits = lambda c: sum(type(i.op) is op for i in c.program.instructions) == 1  # noqa: E731
    whole = lambda p: all(a is not None for a in p[1]) and p[1][1].dtype.kind == "i"  # noqa: E731
    return cases(config).filter(fits).map(parts).filter(whole)


def gather_literally(op, x, indices):
    """Element by element, as StableHLO's specification puts it."""
    if op.index_vector_dim == indices.ndim:
        indices = indices[..., np.newaxis]
    batch_shape = tuple(np.delete(indices.shape, op.index_vector_dim))
    window_axes = [a for a in range(x.ndim) if a not in op.collapsed_slice_dims]
    rank = len(batch_shape) + len(op.offset_dims)
    batch_dims = [d for d in range(rank) if d not in op.offset_dims]
    shape = [0] * rank
    for d, e in zip(batch_dims, batch_shape, strict=True):
        shape[d] = e
    for d, a in zip(op.offset_dims, window_axes, strict=True):
        shape[d] = op.slice_sizes[a]
    result = np.zeros(shape, x.dtype)
    for index in np.ndindex(*shape):
        batch = [index[d] for d in batch_dims]
        batch.insert(op.index_vector_dim, slice(None))
        vector = indices[tuple(batch)]
        source = [0] * x.ndim
        for start, a in zip(vector.tolist(), op.start_index_map, strict=True):
            source[a] = min(max(int(start), 0), x.shape[a] - op.slice_sizes[a])
        for d, a in zip(op.offset_dims, window_axes, strict=True):
            source[a] += index[d]
        result[index] = x[tuple(source)]
    return result


@settings(max_examples=300, deadline=None)
@given(one_op_of(ops.Gather))
def test_gather_against_the_specification(case):
    op, (x, indices) = case
    result = apply(op, x, indices)
    assert result.tobytes("F") == gather_literally(op, x, indices).tobytes("F")
    dynamic = ops.GatherDynamicSliceSizes(
        op.offset_dims, op.collapsed_slice_dims, op.start_index_map, op.index_vector_dim, op.slice_sizes
    )
    assert apply(dynamic, x, indices).tobytes("F") == result.tobytes("F")


def scatter_literally(op, x, indices, updates, skip):
    """Window by window in the column-major order of the elements of `updates`."""
    result = x.copy(order="F")
    if op.index_vector_dim == indices.ndim:
        indices = indices[..., np.newaxis]
    window_axes = [a for a in range(x.ndim) if a not in op.inserted_window_dims]
    sizes = {a: updates.shape[d] for d, a in zip(op.update_window_dims, window_axes, strict=True)}
    for reversed_index in np.ndindex(*updates.shape[::-1]):
        index = reversed_index[::-1]
        batch = [i for d, i in enumerate(index) if d not in op.update_window_dims]
        batch.insert(op.index_vector_dim, slice(None))
        target, fits = [0] * x.ndim, True
        for start, a in zip(indices[tuple(batch)].tolist(), op.scatter_dims_to_operand_dims, strict=True):
            last = x.shape[a] - sizes.get(a, 1)
            fits = fits and 0 <= start <= last
            target[a] = min(max(start, 0), last)
        for d, a in zip(op.update_window_dims, window_axes, strict=True):
            target[a] += index[d]
        if fits or not skip:
            result[tuple(target)] += updates[index]
    return result


@settings(max_examples=300, deadline=None)
@given(one_op_of(ops.Scatter), st.booleans())
def test_scatter_against_the_specification(case, skip):
    op, operands = case
    operands = [operands[0], operands[1], operands[2].astype(operands[0].dtype)]
    with np.errstate(all="ignore"):
        expected = scatter_literally(op, *operands, skip)
    for large_window in (1, 256):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(indexing, "_LARGE_WINDOW", large_window)
            assert same(apply(op, *operands, policy=SKIP if skip else Policy()), expected)


@pytest.mark.parametrize("policy", [Policy(), SKIP])
def test_scatter_of_large_windows(policy):
    """Rows and columns, twice onto the same ones; NaNs that come in are made canonical, those that were there stay."""
    rng = np.random.default_rng(3)
    for window, inserted in (((0,), (1,)), ((1,), (0,))):
        op = ops.Scatter(window, inserted, inserted, 1)
        x, updates = (np.asfortranarray(rng.standard_normal((300, 300))) for _ in range(2))
        x[7, 7], x[9, 9], updates[5, 5] = quiet_nans(DType.F64)[1:]
        indices = rng.integers(-2, 40, (300, 1)) * 9  # never 7
        result = apply(op, x, indices, updates, policy=policy)
        assert same(result, scatter_literally(op, x, indices, updates, policy == SKIP))
        assert result[7, 7].tobytes() == x[7, 7].tobytes()
        nans = np.isnan(result)
        nans[7, 7] = False
        assert nans.sum() > 1
        assert set(map(bytes, result[nans])) == {bytes(np.float64(np.nan))}


# --- host ops ---------------------------------------------------------------------------------------------------------


def test_dynamic_truncate_just_below_a_half():
    assert apply(ops.DynamicTruncate(0), numbered(4), np.array(0.49999999999999994)).shape == (0,)


@pytest.mark.parametrize("size", [np.nan, np.inf, -np.inf])
def test_dynamic_truncate_needs_a_finite_size(size):
    with pytest.raises(InvalidArgument, match="finite") as caught:
        apply(ops.DynamicTruncate(0), numbered(4), np.array(size))
    assert caught.value.op == "DynamicTruncate"
