"""Executors on other people's libraries (JAX, jaxlib's interpreter, IREE) that a test can use.

A library that is not installed skips the test, except with TENFERRO_REQUIRE_LIBRARIES=1, which fails it.
"""

from __future__ import annotations

import os
import sys

import pytest

from oracle.executors import Executor, Pool
from tenferro_ref.errors import MissingDependency


def executor_or_skip(pool: Pool, name: str) -> Executor:
    """The executor of that name, started; skips (or fails) the calling test if its library is not there."""
    executor = pool.make(name)
    try:
        executor.open()
    except MissingDependency as error:
        if os.environ.get("TENFERRO_REQUIRE_LIBRARIES") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))
    return executor


def hide(module: str) -> None:
    """A worker's preload: `module` cannot be imported, as where it is not installed."""
    sys.modules[module] = None  # type: ignore[assignment]
