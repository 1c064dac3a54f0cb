"""Executors on other people's libraries (JAX, jaxlib's interpreter, IREE) that a test can use.

A library that is not installed skips the test, except with TENFERRO_REQUIRE_LIBRARIES=1, which fails it. IREE, a large
compiler that one interpreter's tests are enough for, has a variable of its own: TENFERRO_REQUIRE_IREE.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import pytest

from oracle.peers import OTHERS, Executor, Pool
from tenferro_ref.errors import MissingDependency
from tests.plugins import plugin_or_skip


def module_or_skip(name: str) -> Any:
    """The library's module; skips (or fails) the calling module or test if it is not there."""
    if os.environ.get("TENFERRO_REQUIRE_LIBRARIES") == "1":
        return importlib.import_module(name)
    return pytest.importorskip(name)


def executor_or_skip(pool: Pool, name: str) -> Executor:
    """The executor of that name, started; skips (or fails) the calling test if its library is not there."""
    executor = pool.make(name)
    try:
        executor.open()
    except MissingDependency as error:
        if os.environ.get("TENFERRO_REQUIRE_IREE" if name == "iree" else "TENFERRO_REQUIRE_LIBRARIES") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))
    return executor


def peer_or_skip(pool: Pool, name: str) -> Executor:
    """Any executor by its name: as `executor_or_skip`, and for a plugin as `tests.plugins.plugin_or_skip`."""
    if name.startswith("pjrt:"):
        plugin_or_skip(name.removeprefix("pjrt:").partition("@")[0])
    return executor_or_skip(pool, name) if name in OTHERS else pool.make(name)


def hide(module: str) -> None:
    """A worker's preload: `module` cannot be imported, as where it is not installed."""
    sys.modules[module] = None  # type: ignore[assignment]
