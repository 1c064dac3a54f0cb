"""One line a function: do the compilers agree on it?"""

import jax
import numpy as np
import pytest
from layers import attention, log_sum_exp_naive, normalised

#: `jax` is JAX's own XLA, `interpreter` evaluates StableHLO without compiling it; add a plugin as "pjrt:PATH_OR_PACKAGE".
EXECUTORS = ["jax", "interpreter"]
RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_normalised(assert_parity):
    assert_parity(normalised, array(4, 16), executors=EXECUTORS)


@pytest.mark.parametrize("length", [1, 7, 32])
def test_attention(assert_parity, length):
    assert_parity(attention, array(5, 8), array(length, 8), array(length, 8), executors=EXECUTORS)


def test_its_gradient(assert_parity):
    gradient = jax.grad(lambda x, y: (normalised(x) * y).sum())
    assert_parity(gradient, array(4, 8), array(4, 8), executors=EXECUTORS)


def test_overflow_is_kept(assert_parity):
    assert_parity(log_sum_exp_naive, np.array([[1000.0, 1.0], [0.0, 1.0]], np.float32), executors=EXECUTORS)
