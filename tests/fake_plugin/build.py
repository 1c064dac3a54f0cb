"""Building the fake plugin, and libraries that are no plugins, with whatever C compiler is here.

`FAKE_PJRT_MODE`, `FAKE_PJRT_DELAY`, `FAKE_PJRT_TRIGGER` and `FAKE_PJRT_ONCE` choose how the plugin misbehaves: `fake_plugin.c` lists the modes.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def c_compiler() -> str | None:
    """The C compiler, or None."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build_fake_plugin(directory: Path) -> Path:
    """Compile the fake plugin into `directory`; gives the shared library.

    A copy of the library under another name is another plugin to the loader, with its own state.
    """
    return _build(Path(__file__).with_name("fake_plugin.c"), directory / "fake_plugin.so")


def build_plain_library(directory: Path) -> Path:
    """Compile a shared library without `GetPjrtApi`."""
    source = directory / "plain.c"
    source.write_text("int answer(void) { return 42; }\n")
    return _build(source, directory / "plain.so")


def write_text_library(directory: Path) -> Path:
    """Write a text file whose name ends in `.so`."""
    path = directory / "text.so"
    path.write_text("this is not a shared library\n" * 20)
    return path


def _build(source: Path, target: Path) -> Path:
    compiler = c_compiler()
    if compiler is None:
        raise FileNotFoundError("no C compiler (cc, gcc, clang) on this machine")
    subprocess.run([compiler, "-std=gnu11", "-O1", "-shared", "-fPIC", "-pthread", "-o", target, source], check=True)
    return target
