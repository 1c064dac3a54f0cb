"""Which real PJRT plugins a test can use.

A test that needs one asks `plugin_or_skip`: a plugin that is not installed skips the test, except with
TENFERRO_REQUIRE_PLUGINS=1 (as in CI, where a silent skip would be a hole), which fails it.
"""

from __future__ import annotations

import os

import pytest

from tenferro_ref.errors import PjrtPluginNotLoaded
from tenferro_ref.pjrt import PluginRef, resolve

CPU_PLUGINS = ("xla081", "fas106", "lam115")
#: For what costs compilations or processes: the build that compiles fastest; the others at night.
ONE_BUILD = [pytest.param(name, marks=() if name == "fas106" else pytest.mark.nightly) for name in CPU_PLUGINS]
on_one_build = pytest.mark.parametrize("xla_client", ONE_BUILD, indirect=True, scope="session")


def plugin_or_skip(short_name: str) -> PluginRef:
    """The installed plugin of that name; skips (or fails) the calling test if there is none."""
    try:
        return resolve(short_name)
    except PjrtPluginNotLoaded as error:
        if os.environ.get("TENFERRO_REQUIRE_PLUGINS") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))
