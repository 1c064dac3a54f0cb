"""The command line as a user runs it: in a process of its own, or in this one where the start-up is not the subject."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenferro_ref.cli import main

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Run:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One JSON object a line of standard output."""
        return [json.loads(line) for line in self.out.splitlines()]


def tenferro_ref(
    *arguments: object,
    env: dict[str, str | None] | None = None,
    stdin: bytes = b"",
    stdout: Path | None = None,
    under: Sequence[str] = (),
    **options: Any,
) -> Run:
    """`tenferro-ref ARGUMENTS...`; a None in `env` unsets the variable; with `stdout` what is printed goes to that file; `under` is a command that runs it."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    variables = {**os.environ, "PYTHONPATH": path}
    for name, value in (env or {}).items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    command = [*under, sys.executable, "-m", "tenferro_ref", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, env=variables, input=stdin, timeout=300, **options)
    if stdout is not None:
        stdout.write_bytes(done.stdout)
    return Run(done.returncode, "" if stdout else done.stdout.decode(), done.stderr.decode())


def processes_of(folder: Path) -> list[str]:
    """Processes whose temporary files are in a folder; the keeper has a moment for what it ends."""
    for _ in range(50):
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"TMPDIR={folder}".encode() in (place / "environ").read_bytes().split(b"\0"):
                    found.append(place.name)
        if not found:
            return []
        time.sleep(0.1)
    return found


def in_this_process(*arguments: object) -> Run:
    """The same command, whose imports are paid once for all tests."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(a) for a in arguments])
    return Run(status, out.getvalue(), err.getvalue())


def assert_one_line_error(run: Run, status: int, *words: str) -> None:
    """A bad call ends with its status and one line that says `words`, and no traceback."""
    assert run.status == status, run
    lines = run.err.splitlines()
    assert len(lines) == 1, run.err
    assert lines[0].startswith("error: ")
    for word in words:
        assert word in lines[0]
