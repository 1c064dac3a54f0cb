"""A command under test: every way in which it can end has its verdict."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import ExternalExecutor, NativeExecutor, Pool
from oracle.peers.errors import EngineFault
from oracle.verdict import Answer, Verdict
from tenferro_ref import ops
from tenferro_ref.errors import MissingDependency, UsageError
from tenferro_ref.program import GraphBuilder, GraphProgram
from tenferro_ref.tensor import save_npz

pytestmark = pytest.mark.once

#: `COMMAND MODE PROGRAM INPUTS OUTPUTS`
SCRIPT = """#!/bin/sh
here=$(dirname "$0")
case $1 in
  copy) cp "$here/answer.npz" "$4" ;;
  refuse) echo progress >&2; cat "$here/refusal.json" >&2; exit 3 ;;
  silent) exit 0 ;;
  mute) echo "no reason" >&2; exit 3 ;;
  junk) echo junk > "$4" ;;
  pipe) mkfifo "$4" ;;
  fail) echo "last words" >&2; exit 4 ;;
  abort) kill -ABRT $$ ;;
  leave) setsid sleep 30 & echo $! > "$here/pid"; exit 4 ;;
  hang) echo $$ > "$here/pid"; sleep 30; exit 0 ;;
esac
"""
SELF = f"{sys.executable} -m tenferro_ref exec"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    script = tmp_path / "engine under test"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    return tmp_path


def command(folder: Path, mode: str) -> str:
    return f"'{folder}/engine under test' {mode}"


def total() -> GraphProgram:
    b = GraphBuilder()
    return b.build((b.input("F64", (2, 3)) * 3.0).sum([1]))


CASE = Case.of(total(), [np.arange(6.0).reshape(2, 3)])
WANTED = np.array([9.0, 36.0])


def verdict(folder: Path, mode: str, case: Case = CASE, seconds: float = 20) -> Answer:
    return judge(ExternalExecutor(command(folder, mode), seconds), Reference(case, NativeExecutor()))


@pytest.mark.parametrize("outputs", [[WANTED], [WANTED + 1], [WANTED.astype(np.float32)], [WANTED, WANTED], []])
def test_what_it_writes_is_judged(folder: Path, outputs: list[np.ndarray]) -> None:
    save_npz(folder / "answer.npz", {f"out{i}": a for i, a in enumerate(outputs)})
    right = len(outputs) == 1 and np.array_equal(outputs[0], WANTED) and outputs[0].dtype == WANTED.dtype
    assert verdict(folder, "copy").verdict is (Verdict.PASS if right else Verdict.MISMATCH)


@pytest.mark.parametrize(
    ("mode", "want", "words"),
    [
        ("fail", Verdict.CRASH, "exit status 4; its last words: last words"),
        ("abort", Verdict.CRASH, "signal SIGABRT"),
        ("mute", Verdict.CRASH, "without a line of JSON"),
        ("silent", Verdict.ERROR, "exit status 0, but"),
        ("junk", Verdict.ERROR, "exit status 0, but not an .npz"),
        ("pipe", Verdict.ERROR, "exit status 0, but the outputs are no regular file"),
    ],
)
def test_any_other_end(folder: Path, mode: str, want: Verdict, words: str) -> None:
    answer = verdict(folder, mode)
    assert answer.verdict is want
    assert words in answer.reason


def sessions() -> set[int]:
    """Ids of the sessions in which some process runs."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            found.add(int(entry.read_text().rsplit(")", 1)[1].split()[3]))
        except OSError:
            continue  # ended meanwhile
    return found


def test_a_hang_ends_at_the_time_limit_with_all_that_it_started(folder: Path) -> None:
    start = time.monotonic()
    assert verdict(folder, "hang", seconds=0.5).verdict is Verdict.TIMEOUT
    assert time.monotonic() - start < 20
    session = int((folder / "pid").read_text())
    for _ in range(100):  # killed at once, gone when somebody has collected them
        if session not in sessions():
            break
        time.sleep(0.05)
    assert session not in sessions()


def test_what_left_the_process_group_ends_as_well(folder: Path) -> None:
    assert verdict(folder, "leave").verdict is Verdict.CRASH
    started = Path("/proc") / (folder / "pid").read_text().strip()
    for _ in range(100):
        if not started.exists():
            break
        time.sleep(0.05)
    assert not started.exists()


ADD = '{"error": {"kind": "ShapeMismatch", "op": "Add", "lhs": [2], "rhs": [3], "message": "shapes"}}'
SHORT = '{"error": {"kind": "ShapeMismatch", "op": "Add", "message": "shapes"}}'
FOREIGN = '{"error": {"kind": "BackendFailure", "op": "Pow", "message": "no kernel"}}'


@pytest.mark.parametrize(
    ("line", "want", "words"),
    [
        (ADD, Verdict.ERROR, "ShapeMismatch: Add"),
        (SHORT, Verdict.ERROR, "ShapeMismatch: shapes"),  # the program is valid
        (FOREIGN, Verdict.UNSUPPORTED, "BackendFailure: no kernel"),
        (FOREIGN.replace("BackendFailure", "Unsupported"), Verdict.UNSUPPORTED, "Unsupported: no kernel"),
        ('{"error": "no"}', Verdict.CRASH, "without a line of JSON"),
        ("[3]", Verdict.CRASH, "without a line of JSON"),
    ],
)
def test_a_refusal_where_the_native_executor_gives_a_result(folder: Path, line: str, want: Verdict, words: str) -> None:
    (folder / "refusal.json").write_text(line + "\n")
    answer = verdict(folder, "refuse")
    assert answer.verdict is want
    assert words in answer.reason


@pytest.mark.parametrize(("line", "want"), [(ADD, Verdict.PASS), (SHORT, Verdict.PASS), (FOREIGN, Verdict.UNSUPPORTED)])
def test_a_refusal_where_the_native_executor_refuses_too(folder: Path, line: str, want: Verdict) -> None:
    (folder / "refusal.json").write_text(line)
    b = GraphBuilder()
    x, y = b.input("F64", ("m",)), b.input("F64", ("n",))
    case = Case.of(b.build(b.apply(ops.Add(), x, y)), [np.ones(2), np.ones(3)])
    assert verdict(folder, "refuse", case).verdict is want


def test_pointed_at_itself_it_passes_and_refuses_as_the_native_executor(pool: Pool) -> None:
    executor = pool.make(f"external:{SELF}")
    executor.open()
    answer = judge(executor, Reference(CASE, NativeExecutor()))
    assert answer.verdict is Verdict.PASS, answer.reason
    assert answer.executor == f"external:{SELF}"
    b = GraphBuilder()
    x, y = b.input("I32", (1,)), b.input("I32", (1,))
    refused = Case.of(b.build(x / y), [np.ones(1, np.int32), np.zeros(1, np.int32)])
    assert judge(executor, Reference(refused, NativeExecutor())).verdict is Verdict.PASS
    facts = dict(executor.info().facts)
    assert len(facts["sha256"]) == 64
    assert facts["command"] == SELF


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(MissingDependency, match="no-such-engine"):
        Pool().select(["external:no-such-engine --fast"])
    assert not ExternalExecutor("no-such-engine").info().available


@pytest.mark.parametrize("words", ["", "  ", "'unfinished"])
def test_no_command(words: str) -> None:
    with pytest.raises(UsageError, match="external"):
        Pool().select([f"external:{words}"])


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    file = tmp_path / "engine"
    file.write_bytes(b"\x7fELF nothing")
    file.chmod(0o755)
    with pytest.raises(EngineFault, match="cannot be run"):
        ExternalExecutor(str(file)).run(CASE)
