"""A wheel of this project, as pipx and uvx install it: in an environment of its own, with nothing of the clone in reach."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
NEGATE = "graph (%0: F64[2]) -> (%1) slots 2 {\n  %1 = Negate(%0) : F64[2]\n}\n"


def test_a_wheel_runs_as_a_tool(tmp_path: Path) -> None:
    uv, uvx = shutil.which("uv"), shutil.which("uvx")
    if uv is None or uvx is None:
        pytest.skip("no uv")
    alone = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | {
        "UV_CACHE_DIR": str(tmp_path / "cache")
    }
    build = [uv, "build", "--wheel", "--quiet", "--out-dir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, env=alone)
    (wheel,) = tmp_path.glob("*.whl")
    (tmp_path / "negate.txt").write_text(NEGATE)
    for arguments, words in (
        (["check", "negate.txt", "--executors", "native-fused", "--seed", "1"], "native-fused"),
        (["check", "--help"], "Run each of FILES"),
        (["help", "executors"], "external-served:COMMAND"),
    ):
        command = [uvx, "--from", str(wheel), "tenferro-ref", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True, check=True)
        assert words in done.stdout
