"""The arithmetic in fractions that the other laws are said with rounds as the processor does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.exact import fused, near, real

pytestmark = pytest.mark.once


numbers = st.floats(-(2.0**60), 2.0**60, width=32).map(np.float32)


@given(numbers, numbers, numbers)
def test_fractions_are_rounded_as_the_processor_rounds(x: np.float32, y: np.float32, z: np.float32) -> None:
    a, b, c = (np.asarray([v], np.float32) for v in (x, y, z))
    for kind in (np.float32, np.float64):
        p: Any = a.astype(kind)
        q: Any = b.astype(kind)
        assert near(real(p) + real(q), kind) == p + q
        assert near(real(p) * real(q), kind) == p * q
    wide = a.astype(np.longdouble) * b  # 48 digits: the sum is rounded once, but for what 64 digits do not hold
    if wide + c - wide == c and (wide + c) - c == wide:
        assert fused(a, b, c) == (wide + c).astype(np.float32)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_largest_numbers_are_rounded_to_infinity(kind: Any) -> None:
    info = np.finfo(kind)
    below, above = (real(np.array([info.max])) + real(np.array([np.spacing(info.max / 2)])) * f for f in (0, 2))
    assert near(below, kind) == info.max
    assert near(above, kind) == np.inf
    big, inf = np.array([info.max], kind), np.array([np.inf], kind)
    with np.errstate(all="ignore"):
        assert fused(big, big, -inf) == -inf
        assert np.isnan(fused(inf, big, -inf)).all()
