"""The example plugin, built as its page says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fake_plugin.build import c_compiler

FOLDER = Path(__file__).parents[1] / "examples" / "plugin"


def build_example_plugin(folder: Path) -> Path:
    """Compile it into `folder`, its `NAME.toml` beside it; skips the calling test where there is no compiler."""
    compiler = c_compiler()
    if compiler is None:
        pytest.skip("no C compiler to build the example plugin with")
    target = folder / "example_plugin.so"
    flags = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-shared", "-fPIC")
    subprocess.run([compiler, *flags, "-o", target, FOLDER / "example_plugin.c", "-lm"], check=True)
    shutil.copy(FOLDER / "example_plugin.toml", folder)
    return target
