"""What each command does when its surroundings fail: the rows of docs/reference/robustness.md that no other file has."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzz.campaign.audit import audit
from fuzz.store import Lock, Store
from tenferro_ref.errors import EnvironmentFault, FormatError, UsageError
from tests.e2e.command import ROOT, Run, assert_one_line_error, processes_of, tenferro_ref
from tests.e2e.command import in_this_process as in_process
from tests.hostile.attacks import finding, store_of
from tests.hostile.test_hostile_ends import PROGRAM, until
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once

NIGHTLY = pytest.mark.nightly
NATIVE = ("--executors", "native,native-nopasses", "--seed", 3)
HANGS = '#!/bin/sh\ntouch "$(dirname "$0")/started"\nsleep 1000 &\nwait\n'


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "p.txt").write_text(PROGRAM)
    return tmp_path / "p.txt"


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """TMPDIR of the command, by which its processes are known."""
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def limited(resource: str, most: int) -> list[str]:
    """The command of util-linux that runs another one with less; a function between fork and exec is no way beside threads.

    Python would cut short what it compiles, too, and all later processes would find that.
    """
    return ["env", "PYTHONDONTWRITEBYTECODE=1", "prlimit", f"--{resource}={most}:{most}"]


def started(scratch: Path, *arguments: object, **options: object) -> subprocess.Popen[str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        [sys.executable, "-m", "tenferro_ref", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(scratch)}, **options,  # type: ignore[call-overload]
    )  # fmt: skip


def said(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The output of a process that did not do what was waited for, and might go on for ever."""
    process.kill()
    return process.communicate()


def children_seconds() -> float:
    """Processor time of the processes that have been waited for, with those that they waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def processor_seconds(scratch: Path) -> float:
    """Processor time so far of the processes of a command, with those that they waited for."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in processes_of(scratch)]
    return sum(int(ticks) for stat in stats for ticks in stat[11:15]) / os.sysconf("SC_CLK_TCK")


# --- a full disk -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [30_000, *(pytest.param(n, marks=NIGHTLY) for n in (0, 1000, 5_000, 150_000))])
def test_a_disk_that_is_full_at_any_write_of_a_campaign(tmp_path: Path, room: int) -> None:
    """No file may grow beyond so many bytes, which is how a full disk looks to a process."""
    store = tmp_path / "s.sqlite"
    call = ("fuzz", "run", store, "--programs", 40, "--workers", 1, "--no-fresh-venv", "--out", tmp_path / "r", *NATIVE)
    run = tenferro_ref(*call, under=limited("fsize", room))
    assert_one_line_error(run, 3, "cannot write")
    assert not list((tmp_path / "r").glob("*"))
    if store.stat().st_size:
        with Store(store, readonly=True) as opened:
            assert audit(opened) == []


@pytest.mark.parametrize("room", [0, pytest.param(100, marks=NIGHTLY)])
def test_temporary_files_that_have_no_room(program: Path, tmp_path: Path, room: int) -> None:
    (tmp_path / "engine").write_text("#!/bin/sh\nexit 4\n")
    (tmp_path / "engine").chmod(0o755)
    call = ("check", program, "--executors", f"native,external:{tmp_path}/engine", "--json")
    assert_one_line_error(tenferro_ref(*call, under=limited("fsize", room)), 3, "cannot write")


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_report_without_room_leaves_the_earlier_one(tmp_path: Path) -> None:
    store_of(tmp_path / "s.sqlite", finding(executor="native"))
    report = ("report", tmp_path / "s.sqlite", "--out", tmp_path / "r")
    assert tenferro_ref(*report).status == 1  # it has no program
    before = contents(tmp_path / "r")
    assert_one_line_error(tenferro_ref(*report, under=limited("fsize", 10_000)), 3, "cannot write")
    assert contents(tmp_path / "r") == before


# --- little of everything ----------------------------------------------------------------------------------------------


@NIGHTLY
@pytest.mark.parametrize(("kind", "most"), [("nofile", 64), ("as", 2 << 30)])
def test_few_files_and_a_small_address_space(program: Path, tmp_path: Path, kind: str, most: int) -> None:
    limit = limited(kind, most)
    assert tenferro_ref("check", program, "--executors", "native,native-nopasses", under=limit).status == 0
    call = ("fuzz", "run", tmp_path / "s", "--programs", 40, "--workers", 2, "--no-fresh-venv", *NATIVE)
    assert tenferro_ref(*call, under=limit).status == 0


@NIGHTLY
def test_no_shared_memory(program: Path, tmp_path: Path) -> None:
    """In a mount namespace of its own, where /dev/shm is an empty folder that nobody may write to."""
    hide = 'mount -t tmpfs -o mode=000,ro none /dev/shm && ! touch /dev/shm/x 2>/dev/null && exec "$@"'
    alone = [shutil.which("unshare") or pytest.skip("there is no unshare"), "--mount", "sh", "-c", hide, "sh"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("mounting needs root")
    assert tenferro_ref("check", program, "--executors", "native,native-nopasses", under=alone).status == 0
    few = ("--programs", 40, "--workers", 2, *NATIVE)
    assert tenferro_ref("fuzz", "run", tmp_path / "s", "--no-fresh-venv", *few, under=alone).status == 0
    assert tenferro_ref("parity", "--out", tmp_path / "r", *few, under=alone).status == 0


# --- signals, a reader that goes away, kill -9 -------------------------------------------------------------------------


#: What ends which command; those of every change are one of each, `check` is that of test_hostile_ends.py.
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
COMMANDS = (("fuzz", "run", "S"), ("parity", "--out", "S"), ("check", "P"))
DAILY = ((SIGNALS[1], COMMANDS[2]), (SIGNALS[3], COMMANDS[0]))


@pytest.mark.parametrize(
    ("number", "command"),
    [pytest.param(n, c, marks=() if (n, c) in DAILY else NIGHTLY) for c in COMMANDS for n in SIGNALS],
)
def test_signals(program: Path, tmp_path: Path, scratch: Path, number: int, command: tuple[str, ...]) -> None:
    engine = tmp_path / "engine"
    engine.write_text(HANGS)
    engine.chmod(0o755)
    words = [{"S": tmp_path / "s", "P": program}.get(word, word) for word in command]
    reaped = children_seconds()
    process = started(scratch, *words, "--executors", f"native-nopasses,external:{engine}")
    assert until((tmp_path / "started").exists), said(process)
    before = processor_seconds(scratch)
    process.send_signal(number)
    start = time.monotonic()
    _, err = process.communicate(timeout=60)
    killed = number == signal.SIGKILL
    assert process.returncode == (-number if killed else 128 + number), err
    assert time.monotonic() - start < 20  # a machine that is busy may take that; the work is what is limited
    assert children_seconds() - reaped - before < 2
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(errors) == (not killed)
    assert "Traceback" not in err
    assert until(lambda: not processes_of(scratch))
    assert until(lambda: not os.listdir(scratch))


@NIGHTLY
def test_parity_that_is_killed_is_gone_on_with(tmp_path: Path, scratch: Path) -> None:
    store = tmp_path / "r" / "campaign-3.sqlite"

    def checked() -> int:
        with contextlib.suppress(FormatError, EnvironmentFault, UsageError), Store(store, readonly=True) as opened:
            return opened.done(opened.shards()[0].id)[0]
        return 0

    process = started(scratch, "parity", "--out", store.parent, "--programs", 100_000, *NATIVE)
    assert until(checked), said(process)
    process.kill()
    process.communicate()
    assert_one_line_error(in_process("parity", "--out", store.parent, *NATIVE), 2, "`fuzz resume` goes on with it")
    more = ("--programs", checked() + 160, "--workers", 1, "--no-fresh-venv", "--out", store.parent)
    assert in_process("fuzz", "resume", store, *more).status == 0
    assert in_process("fuzz", "status", store, "--check").status == 0
    assert not processes_of(scratch)


def test_a_reader_that_goes_away(scratch: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "tenferro_ref", "mutants", "list"], stdout=write, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )  # fmt: skip
    os.close(write)
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.parametrize("after", [0.6, pytest.param(0.2, marks=NIGHTLY), pytest.param(1.2, marks=NIGHTLY)])
def test_golden_that_is_killed(tmp_path: Path, scratch: Path, after: float) -> None:
    golden = ("golden", "--out", tmp_path / "set", "--programs", 3, "--seed", 1)
    assert in_process(*golden).status == 0
    process = started(scratch, *golden)
    until(lambda: len(list(tmp_path.iterdir())) > 3, after + 1)
    time.sleep(after)
    process.kill()
    process.communicate()
    assert in_process("golden", "--check", tmp_path / "set").status == 0  # the old one or the new one
    assert in_process(*golden).status == 0
    assert not processes_of(scratch)


@pytest.mark.parametrize("after", [0.8, pytest.param(1.6, marks=NIGHTLY)])
def test_a_report_and_a_merge_that_are_killed(tmp_path: Path, scratch: Path, after: float) -> None:
    store_of(tmp_path / "s.sqlite", *(finding(signature=f"s{i}", executor="native") for i in range(200)))
    report = ("report", tmp_path / "s.sqlite", "--out", tmp_path / "r")
    merge = ("fuzz", "merge", tmp_path / "m.sqlite", tmp_path / "s.sqlite")
    for call in (report, merge):
        process = started(scratch, *call)
        time.sleep(after)
        process.kill()
        process.communicate()
    assert in_process(*report).status == 1
    assert in_process(*merge).status == 0
    with Store(tmp_path / "m.sqlite") as merged:
        assert len(merged.findings()) == 200
        assert audit(merged) == []


@NIGHTLY
@pytest.mark.parametrize("after", [1.0, 4.0, 9.0])
@pytest.mark.parametrize("command", ["compile", "conform", "reduce"])
def test_what_is_killed_begins_again(program: Path, tmp_path: Path, scratch: Path, command: str, after: float) -> None:
    plugin_or_skip("xla-cpu-pjrt")
    store, compiled, page = tmp_path / "s.sqlite", tmp_path / "p.pjrt", tmp_path / "page"
    store_of(store, finding(executor="native"))
    plugin = "xla-cpu-pjrt"
    words = {
        "compile": ("compile", program, "--plugin", plugin, "--out", compiled),
        "conform": ("conform", plugin, "--sections", "attributes,transfers", "--out", page),
        "reduce": ("fuzz", "reduce", store),
    }[command]
    process = started(scratch, *words)
    time.sleep(after)
    process.kill()
    process.communicate()
    assert until(lambda: not processes_of(scratch))
    assert until(lambda: not os.listdir(scratch))
    assert in_process(*words).status in (0, 1)
    with Store(store) as opened:
        assert audit(opened) == []
        assert len(opened.findings()) == 1


# --- clocks, and two on one store --------------------------------------------------------------------------------------


def test_a_clock_that_jumps_by_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, ticks = time.time, iter(range(10**9))
    monkeypatch.setattr(time, "time", lambda: real() + (-1) ** next(ticks) * 86_400)
    call = ("parity", "--out", tmp_path / "r", "--programs", 40, "--minutes", 5, *NATIVE)
    assert in_process(*call).status == 0


@pytest.mark.parametrize("call", [("run",), ("resume",), ("reduce",), ("merge",)])
def test_two_on_one_store(tmp_path: Path, call: tuple[str, ...]) -> None:
    store = tmp_path / "s.sqlite"
    store_of(store, finding(executor="native"))
    more: dict[str, tuple[object, ...]] = {"run": (*NATIVE, "--programs", 2), "merge": (store,)}
    with Lock(store):
        run: Run = in_process("fuzz", *call, store, *more.get(call[0], ()))
        assert_one_line_error(run, 3, "in use by process")


def test_readers_beside_a_writer(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    store_of(store, finding(executor="native"))
    with Store(store) as opened, opened.database.write() as write:
        write.execute("DELETE FROM finding")
        for call in ("status", "findings"):
            run = in_process("fuzz", call, store)
            assert run.status == 0, run
        assert "s" in run.out  # what was committed before
