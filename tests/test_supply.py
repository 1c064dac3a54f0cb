"""What a release is made of: the same files give the same wheel, and CI pins what it installs."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.once


def wheel_of(source: Path, out: Path) -> str:
    """SHA-256 of the wheel that is built from a folder."""
    code = f"import hatchling.build as b; b.build_wheel({str(out)!r})"
    out.mkdir()
    subprocess.run([sys.executable, "-c", code], cwd=source, check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_two_builds_are_one_wheel(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    hashes = []
    for name in ("a", "another folder"):
        source = tmp_path / name
        for package in ("tenferro_ref", "oracle", "fuzz", "reports"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(
                ROOT / package, source / package, copy_function=shutil.copyfile, ignore=ignored
            )  # times of now
        for file in ("pyproject.toml", "README.md"):
            shutil.copyfile(ROOT / file, source / file)
        hashes.append(wheel_of(source, tmp_path / f"{name}.out"))
    assert hashes[0] == hashes[1]


def test_every_requirement_of_ci_has_a_version() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pinned = {re.split("==", line)[0] for line in lines}
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.+-]+( ; .*)?", line) for line in lines)
    tox, project = (ROOT / "tox.ini").read_text(), (ROOT / "pyproject.toml").read_text()
    asked = set(re.findall(r'^    "([\w-]+)[>=]', project, re.M)) | set(re.findall(r"^    ([\w-]+)>=", tox, re.M))
    assert {name.lower().replace("_", "-") for name in asked} - pinned == set()


def test_plugins_are_pinned_by_hash() -> None:
    lines = [line for line in (ROOT / "plugins.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    extra = re.search(r"^cpu-builds = \[(.*)\]", (ROOT / "pyproject.toml").read_text(), re.M)
    assert extra is not None
    assert re.findall(r'"([^"]+)"', extra[1]) == [line.split()[0] for line in lines]
