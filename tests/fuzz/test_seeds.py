"""Seeded generators are NumPy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

from fuzz.strategies.seeds import generator


@given(st.sampled_from([0, 1, 2**16 - 1, 2**16, 2**40]) | st.integers(0, 2**16 - 1))
def test_a_seed_gives_numpys_numbers(seed: int) -> None:
    ours, theirs = generator(seed), Generator(PCG64(seed))
    assert ours.bit_generator.state["state"] == theirs.bit_generator.state["state"]
    np.testing.assert_array_equal(ours.standard_normal(5), theirs.standard_normal(5))
