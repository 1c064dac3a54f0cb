"""Environments in which nothing of this installation helps: virtual ones, with the code that runs here and what an executor needs.

Lives here: a wheel of what is installed, the environments. What is run in them, and
what it shows, is in `fuzz.findings.bundle`.
"""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path

from oracle.peers.peer import FAMILIES, Peer
from tenferro_ref import children
from tenferro_ref.errors import FormatError, MissingDependency
from tenferro_ref.pjrt import known_packages

#: Where this code is imported from: a checkout, or where it is installed.
ROOT = Path(__file__).resolve().parents[2]
#: A name, or one version of it (PEP 440).
_REQUIREMENT = re.compile(r"([a-z0-9-]+)(==[0-9][A-Za-z0-9.!+_-]*)?")
#: What pip adds when it installs.
_NOT_IN_WHEELS = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")


class FreshEnvironments:
    """Virtual environments with this package and what is needed beside it: one for each set of requirements, until closed."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory()
        self._made: dict[tuple[str, ...], str] = {}

    def __enter__(self) -> FreshEnvironments:
        return self

    def __exit__(self, *_: object) -> None:
        self._place.cleanup()

    def python(self, executor: str, needed: Sequence[str]) -> str:
        """The interpreter of an environment for `executor` with the `needed` packages, which is made now if it is not there.

        Raises
        ------
        FormatError
            What is needed is not the name of a package that some executor comes with, or not one version of it.
        MissingDependency
            The environment cannot be made.
        """
        for given in needed:
            _check_requirement(given)
        extra = Peer.parse(executor).about.extra
        key = (extra, *needed)
        if key not in self._made:
            folder = Path(self._place.name) / str(len(self._made))
            # some systems ship Python without ensurepip
            _run("a virtual environment with pip", [sys.executable, "-m", "venv", str(folder)])
            python = str(folder / "bin" / "python")
            package = f"{self._package}{extra and f'[{extra}]'}"
            if extra:
                _pip(python, package, *needed)
            else:
                _pip(python, package)
                if needed:
                    _pip(python, "--no-deps", *needed)  # a plugin needs none of what its wheel asks for
            self._made[key] = python
        return self._made[key]

    @cached_property
    def _package(self) -> Path:
        """What to install as this package: the code that runs here, which need not be what an index has under its version."""
        if (ROOT / "pyproject.toml").exists():
            return ROOT
        return as_wheel(metadata.distribution("tenferro-ref"), Path(self._place.name))


def as_wheel(installed: metadata.Distribution, folder: Path) -> Path:
    """A wheel in `folder` of a distribution as it is installed; there must be nothing in it but Python and data."""
    path = folder / f"{installed.name.replace('-', '_')}-{installed.version}-py3-none-any.whl"
    rows = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file in installed.files or ():
            # what pip adds when it installs: scripts, bytecode, its own notes
            if ".." in file.parts or "__pycache__" in file.parts or file.name in _NOT_IN_WHEELS:
                continue
            content = Path(str(file.locate())).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append(f"{file.as_posix()},sha256={digest},{len(content)}")
            wheel.writestr(file.as_posix(), content)
        record = f"{installed.name.replace('-', '_')}-{installed.version}.dist-info/RECORD"
        wheel.writestr(record, "\n".join([*rows, f"{record},,"]) + "\n")
    return path


def _check_requirement(given: str) -> None:
    """Refuse what is no package that an executor comes with: a bundle's words become no option, path or address of pip's."""
    match = _REQUIREMENT.fullmatch(given)
    if match is None or match[1] not in known_packages().union(*(about.packages for about in FAMILIES.values())):
        detail = f"{given!r} is no package that an executor comes with, NAME or NAME==VERSION; nothing was installed"
        raise FormatError(where="environment.json: requirements", detail=detail)


def _pip(python: str, *arguments: str) -> None:
    # a script that runs once imports little of what compiling all modules takes half of the time for
    _run(" ".join(arguments), [python, "-m", "pip", "install", "--quiet", "--no-compile", *arguments])


def _run(what: str, command: Sequence[str]) -> None:
    """Run a step of making `what`; a typed error with its last words if it fails."""
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=False,
        env=children.environment(python=False, pip=True),
    )  # fmt: skip
    if done.returncode:
        words = ((done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise MissingDependency(name=what, remedy=words)
