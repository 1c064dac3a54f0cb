"""The pytest plugin (entry point `pytest11`): a fixture `assert_parity`, one line in a test suite that uses JAX.

def test_softmax(assert_parity):
    assert_parity(jax.nn.softmax, np.ones((4, 9), np.float32), executors=["jax", "pjrt:xla-cpu-pjrt"])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tenferro_ref import checking


@pytest.fixture(scope="session")
def assert_parity() -> Iterator[Callable[..., Any]]:
    """`tenferro_ref.assert_parity`, with worker processes that stay until the session ends."""
    with checking.checker() as made:
        yield partial(checking.assert_parity, using=made)
