"""Narrow floats are rounded once: held to the list of all values of their format, and to fractions."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.case import Case
from oracle.enclosure import MODELS, enclose
from oracle.enclosure.formats import FORMATS
from oracle.peers import NativeExecutor
from tenferro_ref import ops
from tenferro_ref.dtype import NARROW_FLOATS, DType
from tenferro_ref.errors import Unsupported
from tenferro_ref.narrow import narrowed, to_nearest
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import GraphBuilder, LoweringView
from tenferro_ref.runtime.kernels import run_kernel
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.stablehlo.loader import load

pytestmark = pytest.mark.once

FORMATS_WITH_ZERO = sorted(NARROW_FLOATS - {DType.F8E8M0FNU}, key=lambda d: d.name)
HALVES = [DType.F16, DType.BF16]


def every_value(dtype: DType) -> np.ndarray:
    """All finite values, ascending."""
    words = np.arange(2 ** min(dtype.bits, 8 * dtype.itemsize), dtype=np.uint32).astype(f"u{dtype.itemsize}")
    with np.errstate(invalid="ignore"):  # NaNs that signal
        values = words.view(dtype.numpy).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


@pytest.mark.parametrize("dtype", FORMATS_WITH_ZERO, ids=str)
def test_rounding_gives_the_nearest_value(dtype: DType) -> None:
    values = every_value(dtype)
    rng = np.random.default_rng(3)
    middles = (values[1:] + values[:-1]) / 2
    near = np.concatenate([values, middles, np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf)])
    x = rng.permutation(near)[:4000]
    got = to_nearest(dtype, x)
    place = np.clip(np.searchsorted(values, x), 1, len(values) - 1)
    least = np.minimum(np.abs(values[place] - x), np.abs(values[place - 1] - x))
    np.testing.assert_array_equal(np.abs(got - x), least)
    again = narrowed(dtype, got)
    np.testing.assert_array_equal(again.astype(np.float64), got)
    ties = np.isin(x, middles)
    even = again.view(f"u{dtype.itemsize}") & 1
    assert not even[ties].any()


@pytest.mark.parametrize("dtype", sorted(NARROW_FLOATS, key=lambda d: d.name), ids=str)
@pytest.mark.parametrize("op", [ops.ReduceMax((0,)), ops.ReduceMin((0,))], ids=["maximum", "minimum"])
def test_an_extremum_is_a_number_whatever_the_format_lacks(op: ops.ReduceMax | ops.ReduceMin, dtype: DType) -> None:
    """Some have NaN in place of infinities, and what they begin with must not be one."""
    values = every_value(dtype)
    ends = [float(e) for e in (dtype.extremes if isinstance(op, ops.ReduceMax) else dtype.extremes[::-1])]
    (of_none,) = run_kernel(op, STABLEHLO, np.zeros(0, dtype.numpy))
    assert float(of_none) == ends[0]
    assert not values.size or float(of_none) in (values[0], values[-1], -np.inf, np.inf)
    some = np.array([1, 2, 1], np.float32).astype(dtype.numpy)
    (largest,) = run_kernel(op, STABLEHLO, some)
    b = GraphBuilder(policy=STABLEHLO)
    text = lower_to_stablehlo(LoweringView.of(b.build(b.apply(op, b.input(dtype, (3,))))))
    again = load(text)
    (read,) = NativeExecutor().run(Case.of(again.program, again.inputs([some]))).outputs
    assert float(largest) == float(read) == (2 if isinstance(op, ops.ReduceMax) else 1)
    if dtype.bits == 8:  # what it begins with stands in the module by its bits
        word = int(re.search("dense<0x([0-9A-F]+)>", text)[1], 16)  # type: ignore[index]
        assert float(np.uint8(word).view(dtype.numpy)) == ends[0]


@pytest.mark.parametrize(
    "op", [ops.ReduceSum((0,)), ops.ReduceSumSquares((0,)), ops.Tril(0), ops.Triu(1), ops.EmbedDiag(0, 1)], ids=str
)
def test_what_needs_a_zero_is_refused_in_a_format_without_one(op: ops.Op) -> None:
    b = GraphBuilder(policy=STABLEHLO)
    with pytest.raises(Unsupported, match=f"{op.name}: dtype F8E8M0FNU has no zero; convert"):
        b.apply(op, b.input(DType.F8E8M0FNU, (3, 3)))
    b.apply(op, b.input(DType.F8E5M2, (3, 3)))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_beyond_the_range_lies_infinity(dtype: DType) -> None:
    largest = float(dtype.finfo.max)
    step = largest - float(every_value(dtype)[-2])
    x = np.array([largest + step / 2, np.nextafter(largest + step / 2, 0), -np.inf, np.nan, -0.0])
    got = to_nearest(dtype, x)
    assert got[:3].tolist() == [np.inf, largest, -np.inf]
    assert np.isnan(got[3])
    assert np.signbit(got[4])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@given(st.data())
def test_arithmetic_is_rounded_once_natively_and_in_enclosures(dtype: DType, data: st.DataObject) -> None:
    words = st.integers(0, 2**16 - 1)
    a, b = (np.array([data.draw(words)], np.uint16).view(dtype.numpy) for _ in range(2))
    x, y = float(a[0]), float(b[0])
    for op, exact in (
        (ops.Add, lambda p, q: p + q),
        (ops.Multiply, lambda p, q: p * q),
        (ops.Divide, lambda p, q: p / q),
    ):
        (result,) = run_kernel(op(), STABLEHLO, a, b)
        assert result.dtype == dtype.numpy
        builder = GraphBuilder(policy=STABLEHLO)
        program = builder.build(builder.apply(op(), builder.input(dtype, (1,)), builder.input(dtype, (1,))))
        (enclosure,) = enclose(program, [a, b], MODELS["ieee"])
        assert enclosure.contains(result).all()
        if np.isfinite([x, y]).all() and not (op is ops.Divide and y == 0) and np.isfinite(float(result[0])):
            true = exact(Fraction(x), Fraction(y))
            got = Fraction(float(result[0]))
            step = Fraction(float(FORMATS[dtype].ulp(np.asarray(float(true)))))
            assert abs(got - true) <= step / 2


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@given(st.data())
def test_a_sum_of_squares_is_that_of_rounded_ones(dtype: DType, data: st.DataObject) -> None:
    """As it is written in StableHLO: 2 * 2 + 1.0078125 * 1.0078125 of BF16 is 5, and 5.03125 if rounded once."""
    words = data.draw(st.lists(st.integers(0, 2**16 - 1), min_size=2, max_size=2))
    for x in (
        np.array(words, np.uint16).view(dtype.numpy),
        np.array([2, 1 + float(dtype.finfo.eps)]).astype(dtype.numpy),
    ):
        builder = GraphBuilder(policy=STABLEHLO)
        program = builder.build(builder.apply(ops.ReduceSumSquares((0,)), builder.input(dtype, (2,))))
        (enclosure,) = enclose(program, [x], MODELS["numpy"])
        (result,) = run_kernel(ops.ReduceSumSquares((0,)), STABLEHLO, x)
        assert result.dtype == dtype.numpy
        assert enclosure.contains(result).all()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_subnormals_are_kept_and_sums_of_many_hold(dtype: DType) -> None:
    least = float(dtype.finfo.smallest_subnormal)
    x = np.array([least, 3 * least, -least]).astype(dtype.numpy)
    (doubled,) = run_kernel(ops.Add(), STABLEHLO, x, x)
    assert doubled.astype(float).tolist() == [2 * least, 6 * least, -2 * least]
    many = np.random.default_rng(1).standard_normal(500).astype(dtype.numpy)
    builder = GraphBuilder(policy=STABLEHLO)
    program = builder.build(builder.apply(ops.ReduceSum((0,)), builder.input(dtype, (500,))))
    (enclosure,) = enclose(program, [many], MODELS["xla"])
    in_order = np.zeros((), dtype.numpy)
    for value in many:
        in_order = (in_order + value).astype(dtype.numpy)
    assert enclosure.contains(np.asarray(in_order)).all()
    assert enclosure.contains(run_kernel(ops.ReduceSum((0,)), STABLEHLO, many)[0]).all()


@pytest.mark.parametrize("dtype", sorted(NARROW_FLOATS, key=str), ids=str)
def test_narrow_floats_are_gathered(dtype: DType) -> None:
    """NumPy's interface of arrays has no word for one of them."""
    x = np.arange(1, 7).reshape(2, 3).astype(np.float32).astype(dtype.numpy)
    (got,) = run_kernel(ops.Gather((1,), (0,), (0,), 1, (1, 2)), STABLEHLO, x, np.array([[1], [0], [7]], np.int32))
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got.astype(np.float32), x[[1, 0, 1], :2].astype(np.float32))
