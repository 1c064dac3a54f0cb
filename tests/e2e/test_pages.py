"""README and how-tos as a reader goes through them: every command and every piece of Python, in order, in an empty folder.

In a ```console block a line with `$` is a command (`>` continues it), and what follows is what it prints: `...` stands for what
varies, blanks do not count (`doctest`). ```python blocks of a page are run one after the other; ```sh blocks are commands alone.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import in_this_process
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *(f"docs/how-to/{name}.md" for name in (
    "check-a-jax-function", "test-an-engine", "test-a-plugin", "nightly-campaign", "report-upstream",
)), "docs/tutorial.md"]  # fmt: skip
#: The others go the same ways once more.
FIRST = ("README", "test-a-plugin")
BLOCK = re.compile(r"^```(console|python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: What a test does not do: these are the jobs of .ci/run and of the workflow, asserted below; nor does it install anything.
ELSEWHERE = re.compile(r"^(python -m pip install|pipx|uvx|git clone|cd )")
_ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def shell(command: str, folder: Path, variables: dict[str, str]) -> str:
    """What a command prints; one of ours that a shell has nothing to do with runs in this process, which is in `folder`."""
    if re.fullmatch(r"tenferro-ref [\w ./:,@=+-]*", command):
        run = in_this_process(*command.split()[1:])
        assert run.status in (0, 1), run
        return run.out
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=variables, capture_output=True, text=True,
        errors="replace", timeout=300,
    )  # fmt: skip
    assert done.returncode in (0, 1), f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def console(block: str) -> list[tuple[str, str]]:
    """Commands with what they print."""
    steps: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        elif line.startswith("> ") and not steps[-1][1]:
            steps[-1] = (f"{steps[-1][0]}\n{line[2:]}", "")
        else:
            steps[-1] = (steps[-1][0], f"{steps[-1][1]}{line}\n")
    return steps


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """`tenferro-ref` and `python` are on the PATH, as after an installation."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, words in (("tenferro-ref", "-m tenferro_ref"), ("python", "")):
        (bin_ / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (bin_ / name).chmod(0o755)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {
        **os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path,
        "EXAMPLES": str(ROOT / "examples"), "LC_ALL": "C.UTF-8",
    }  # fmt: skip


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=() if Path(p).stem in FIRST else pytest.mark.nightly, id=Path(p).stem) for p in PAGES],
)
def test_a_page_does_what_it_shows(
    page: str, tmp_path: Path, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module_or_skip("jax")
    for plugin in ("xla081", "lam115"):
        plugin_or_skip(plugin)
    folder = tmp_path / "reader"
    folder.mkdir()
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    blocks = BLOCK.findall((ROOT / page).read_text("utf-8"))
    assert blocks
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, page, "exec"), names)
            continue
        steps = console(block) if kind == "console" else [(line, "...") for line in block.splitlines()]
        for command, want in steps:
            if ELSEWHERE.match(command):
                continue
            found = shell(command, folder, variables)
            alike = doctest.OutputChecker().check_output(want or "\n", found or "\n", _ALIKE)
            assert alike, f"{page}: {command}\n--- shown\n{want}--- printed\n{found}"


def test_the_two_commands_are_what_ci_runs() -> None:
    readme, ci = ((ROOT / name).read_text("utf-8") for name in ("README.md", ".github/workflows/ci.yml"))
    assert "tox run -e parity" in readme
    assert "tox run -e parity" in ci
    assert "tox run --skip-missing-interpreters" in ci
    assert '/bin/tox" run' in (ROOT / ".ci/run").read_text("utf-8")
