"""Distances in ULPs: steps from one number to the next, counted where they are few."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.compare import compare
from oracle.enclosure import Interval
from oracle.ulp import ordinals, ulp_distance
from tenferro_ref.dtype import NARROW_FLOATS, DType


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("start", [1e-30, 0.3, 1.0, 1.5, 3.3, 1e30])
def test_steps_are_counted_one_by_one(dtype: type[np.floating], start: float) -> None:
    steps = [dtype(start)]
    for _ in range(9):
        steps.append(np.nextafter(steps[-1], dtype(np.inf)))
    line = np.array(steps)
    assert ulp_distance(line, np.full_like(line, line[0])).tolist() == list(range(10))
    assert ulp_distance(-line, np.full_like(line, -line[3])).tolist() == [abs(i - 3) for i in range(10)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_whole_line_is_measured(dtype: type[np.floating]) -> None:
    info = np.finfo(dtype)
    ends = np.array([info.max]), np.array([info.min])
    # normal numbers of one sign, twice, and the zero between
    wanted = 2.0 * (info.maxexp - info.minexp) * 2.0**info.nmant
    assert ulp_distance(*ends)[0] == wanted
    assert ulp_distance(*(np.asarray(e[0]) for e in ends)) == wanted


@pytest.mark.parametrize("dtype", sorted((d for d in NARROW_FLOATS if d.bits <= 8), key=str), ids=str)
def test_numbers_of_few_bits_are_in_order(dtype: DType) -> None:
    values = np.arange(2**dtype.bits, dtype=np.uint8).view(dtype.numpy)
    known = values[np.isfinite(values.astype(np.float64))]
    ordered = known[np.argsort(known.astype(np.float64), kind="stable")]
    rises = np.diff(ordered.astype(np.float64)) > 0  # not from one zero to the other
    assert np.diff(ordinals(ordered)).tolist() == rises.astype(int).tolist()
    one, two = np.ones(1).astype(dtype.numpy), np.full(1, 2.0).astype(dtype.numpy)
    assert ulp_distance(one, two) == 2.0 ** int(dtype.finfo.nmant)
    if dtype is not DType.F8E8M0FNU:
        assert ulp_distance(one, -one) == 2 * ulp_distance(one, 0 * one)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
def test_the_width_of_an_enclosure_is_counted_in_steps(dtype: DType) -> None:
    one = np.ones(1, dtype.numpy)
    high = one + 5 * dtype.finfo.eps
    never = np.zeros(1, bool)
    enclosure = Interval(dtype, one.astype(np.float64), high.astype(np.float64), never, never, never)
    assert compare([enclosure], None, [one], [high]).widths == ((round(float(np.log2(5)), 3), 5.0),)
