"""Distances in ULPs: steps from one number to the next, counted where they are few."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.compare import compare
from oracle.enclosure import Interval
from oracle.ulp import ulp_distance
from tenferro_ref.dtype import DType


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


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
def test_the_width_of_an_enclosure_is_counted_in_steps(dtype: DType) -> None:
    one = np.ones(1, dtype.numpy)
    high = one + 5 * dtype.finfo.eps
    never = np.zeros(1, bool)
    enclosure = Interval(dtype, one.astype(np.float64), high.astype(np.float64), never, never, never)
    assert compare([enclosure], None, [one], [high]).widths == ((round(float(np.log2(5)), 3), 5.0),)
