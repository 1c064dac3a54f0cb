"""Ctrl-C: a command stops soon, writes what there is, and names the command that goes on."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzz import records
from tests.e2e.command import ROOT

pytestmark = pytest.mark.once

#: An engine that never answers.
ENGINE = """#!/bin/sh
echo $$ >> "$(dirname "$0")/pids"
sleep 600
"""


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    path = tmp_path / "engine"
    path.write_text(ENGINE)
    path.chmod(0o755)
    return path


def interrupted(engine: Path, *arguments: object) -> tuple[int, str, str, float]:
    """Status, output and errors of a command that gets SIGINT while the engine is at work; and seconds from then to its end."""
    command = [sys.executable, "-m", "tenferro_ref", *map(str, arguments)]
    pids = engine.with_name("pids")
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not pids.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(6)  # the native executors answer the whole batch meanwhile; 3 were too few once on a busy machine
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        try:
            out, err = process.communicate(timeout=60)
        finally:  # one that was started where SIGINT is ignored does not end by it
            process.kill()
    return process.returncode, out, err, time.monotonic() - start


def test_parity_writes_what_there_is(tmp_path: Path, engine: Path) -> None:
    executors = f"native-nopasses,external:{engine}"
    # without modules, since starting their reader takes longer than is waited on a busy machine
    status, _, err, seconds = interrupted(
        engine, "parity", "--seed", 3, "--programs", 200, "--generate", "invalid=0", "--generate", "modules=0", "--workers", 2,
        "--executors", executors, "--out", tmp_path / "report",
    )  # fmt: skip
    assert status == 130, err
    assert re.search(r"interrupted after \d+ programs; `tenferro-ref parity --seed 3 .*--programs 200", err)
    assert "fuzz run STORE" in err
    campaign = records.load(tmp_path / "report" / "campaign.json")
    assert campaign.interrupted
    assert campaign.programs >= 32  # those of the batch at work, which the native executors have answered
    verdicts = {t.executor: t.verdicts for t in campaign.totals}
    assert sum(verdicts["native-nopasses"].values()) == campaign.programs
    assert verdicts[f"external:{engine}"] == {}  # no verdict on what was ended
    assert "the run was interrupted" in (tmp_path / "report" / "summary.md").read_text("utf-8")
    for pid in engine.with_name("pids").read_text().split():
        assert not Path(f"/proc/{pid}").exists()
    assert seconds < 10  # of which a report takes most, on a machine that is busy; it was 37 once


def test_fuzz_run_names_resume(tmp_path: Path, engine: Path) -> None:
    store = tmp_path / "a store.sqlite"
    status, _, err, seconds = interrupted(
        engine, "fuzz", "run", store, "--seed", 3, "--programs", 64, "--workers", 1, "--executors",
        f"native-nopasses,external:{engine}",
    )  # fmt: skip
    assert status == 130, err
    assert f"`tenferro-ref fuzz resume '{store}'` goes on" in err
    assert seconds < 10
