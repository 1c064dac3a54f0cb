"""However a command ends, nothing that it started goes on, and no folder of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.command import ROOT, processes_of

pytestmark = pytest.mark.once

PROGRAM = "graph (%0: F64[2]) -> (%1) slots 2 {\n  %1 = Negate(%0) : F64[2]\n}\n"
#: Says who it is, starts another process, and never ends.
ENGINE = """#!/bin/sh
echo $$ >> "{pids}"
sleep 1000 &
echo $! >> "{pids}"
wait
"""
WAIT = 30.0


def until(condition: Callable[[], object], seconds: float = WAIT) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int], Path]]:
    """`check` with an engine that hangs; the processes of that engine; the folder for temporary files."""
    pids, engine, scratch = tmp_path / "pids", tmp_path / "engine", tmp_path / "tmp"
    engine.write_text(ENGINE.replace("{pids}", str(pids)))
    engine.chmod(0o755)
    scratch.mkdir()
    (tmp_path / "p.txt").write_text(PROGRAM)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    process = subprocess.Popen(
        [sys.executable, "-m", "tenferro_ref", "check", str(tmp_path / "p.txt"), "--executors", f"external:{engine}"],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(scratch)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert until(lambda: pids.exists() and len(pids.read_text().split()) == 2), process.communicate(timeout=5)
        yield process, [int(word) for word in pids.read_text().split()], scratch
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("number", "status", "words"),
    [
        (signal.SIGTERM, 143, "terminated"),
        pytest.param(signal.SIGINT, 130, "interrupted", marks=pytest.mark.nightly),
        pytest.param(signal.SIGHUP, 129, "the terminal is gone", marks=pytest.mark.nightly),
        pytest.param(signal.SIGKILL, -9, "", marks=pytest.mark.nightly),
    ],
)
def test_nothing_goes_on(
    started: tuple[subprocess.Popen[str], list[int], Path], number: int, status: int, words: str
) -> None:
    process, pids, scratch = started
    assert all(map(alive, pids))
    assert os.listdir(scratch)
    process.send_signal(number)
    _, err = process.communicate(timeout=WAIT)
    assert process.returncode == status
    said = [line for line in err.splitlines() if line]  # the first is empty: it ends the one where ^C was typed
    assert len(said) == bool(words)
    assert all(line.startswith(f"error: {words}") for line in said)
    assert until(lambda: not any(map(alive, pids)))
    assert until(lambda: not os.listdir(scratch))


#: Is killed between the start of a command and the line that tells the keeper of it; the command leaves its group, too.
DIES = """
import os, signal
from tenferro_ref import children, keeper
tell = keeper._tell
keeper._tell = lambda *lines: os.kill(os.getpid(), signal.SIGKILL) if lines and lines[0][:2] == "+g" else tell(*lines)
with keeper.folder("x-"):
    keeper.start(["sh", "-c", "setsid sleep 1000 & sleep 1000"], env=children.environment())
"""


def test_killed_before_the_keeper_knows(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", DIES], env=env)
    assert done.returncode == -signal.SIGKILL
    assert until(lambda: not processes_of(tmp_path))
    assert until(lambda: not list(tmp_path.glob("x-*")))


#: A command of which a finalizer is at work when the signal comes: Python prints what that raises, and goes on.
SWALLOWS = """
import os, signal, sys
from tenferro_ref import cli

class Late:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGHUP)

def invoke(context):
    Late()

cli.cli.invoke = invoke
sys.exit(cli.main(["help"]))
"""


def test_a_signal_within_a_finalizer_ends_the_command_with_its_status(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", SWALLOWS], env=env, capture_output=True, text=True)
    assert done.returncode == 128 + signal.SIGHUP, done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: the terminal is gone")
