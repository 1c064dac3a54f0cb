"""Environments for bundles: what is installed in them, how often they are made, and a machine that cannot make one."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from contextlib import closing
from importlib import metadata
from pathlib import Path

import pytest

from fuzz.findings.environments import ROOT, FreshEnvironments, as_wheel
from oracle.peers import Pool
from tenferro_ref.errors import MissingDependency
from tests.libraries import module_or_skip

pytestmark = pytest.mark.once


def test_what_is_installed_can_be_installed_elsewhere(tmp_path: Path) -> None:
    """A fresh environment gets the code that runs here, also where there is no checkout of it."""
    site = tmp_path / "site"
    files = {
        "shape/__init__.py": "SIDES = 3\n", "shape/names.txt": "triangle\n", "shape/__pycache__/__init__.pyc": "x",
        "shape-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: shape\nVersion: 1.0\n",
        "shape-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "shape-1.0.dist-info/INSTALLER": "pip\n", "shape-1.0.dist-info/direct_url.json": "{}",
    }  # fmt: skip
    for name, content in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(content)
    record = "".join(f"{name},,\n" for name in (*files, "../bin/shape", "shape-1.0.dist-info/RECORD"))
    (site / "shape-1.0.dist-info/RECORD").write_text(record)
    wheel = as_wheel(metadata.Distribution.at(site / "shape-1.0.dist-info"), tmp_path)
    target = tmp_path / "elsewhere"
    flags = ["--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *flags, str(wheel)], check=True, capture_output=True)
    assert (target / "shape/__init__.py").read_text() == "SIDES = 3\n"
    assert (target / "shape/names.txt").read_text() == "triangle\n"
    with zipfile.ZipFile(wheel) as archive:
        kept = {name for name in files if not name.endswith((".pyc", "INSTALLER", ".json"))}
        assert set(archive.namelist()) == {*kept, "shape-1.0.dist-info/RECORD"}


def test_a_machine_without_pip_for_environments_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no module named ensurepip\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    with FreshEnvironments() as environments, pytest.raises(MissingDependency, match="ensurepip"):
        environments.python("native", ())


def test_one_environment_serves_all_who_need_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    installed: list[list[str]] = []
    monkeypatch.setattr("fuzz.findings.environments._run", lambda what, command: made.append(command))
    monkeypatch.setattr("fuzz.findings.environments._pip", lambda python, *arguments: installed.append([*arguments]))
    with FreshEnvironments() as environments:
        native = environments.python("native-unsegmented", ())
        assert environments.python("native", ()) == native
        plugin = environments.python("pjrt:xla@parity", ("xla-cpu-pjrt==1.0",))
        library = environments.python("jax-eager", ("jax==0.8", "jaxlib==0.8"))
    assert len({native, plugin, library}) == len(made) == 3
    package = str(ROOT)
    assert installed == [
        [package], [package], ["--no-deps", "xla-cpu-pjrt==1.0"], [f"{package}[jax]", "jax==0.8", "jaxlib==0.8"],
    ]  # fmt: skip


def test_requirements_are_what_is_installed_here() -> None:
    module_or_skip("jax")
    with closing(Pool()) as pool:
        assert pool.make("native").requirements() == ()
        assert pool.make("jax").requirements() == tuple(f"{p}=={metadata.version(p)}" for p in ("jax", "jaxlib"))
