"""What an engine says and does is a verdict on that engine: it ends nobody else, fills no disk, and sees no secret."""

from __future__ import annotations

import json
import os
import shlex
import time
from pathlib import Path
from typing import IO

import pytest

from oracle.judge import Reference, judge
from oracle.peers import ExternalExecutor, ForeignRefusal, NativeExecutor, PjrtExecutor, Pool, external
from oracle.verdict import Answer, Verdict
from tenferro_ref import children
from tenferro_ref.errors import FormatError, RankMismatch
from tenferro_ref.isolation import wire
from tests.hostile.attacks import ATTACKS, program

pytestmark = pytest.mark.once

TOKEN = "ghp_do_not_show_this"


def answer(folder: Path, script: str, seconds: float = 20.0) -> Answer:
    """The verdict on a command that runs `script` on `$1`, `$2` and `$3`: program, inputs and outputs."""
    (folder / "engine.sh").write_text(script)
    command = f"sh {shlex.quote(str(folder / 'engine.sh'))}"
    return judge(ExternalExecutor(command, seconds), Reference(program(), NativeExecutor()))


def refusal(folder: Path, line: str) -> Answer:
    (folder / "refusal.json").write_text(line)
    return answer(folder, f"cat {shlex.quote(str(folder / 'refusal.json'))} >&2\nexit 3\n")


@pytest.mark.parametrize("kind", [*ATTACKS, "", "two words", "x" * 81, "é", 3, None, True, ["Kind"], {"a": 1}])
def test_a_kind_that_is_no_identifier_is_a_malformed_refusal(tmp_path: Path, kind: object) -> None:
    got = refusal(tmp_path, json.dumps({"error": {"kind": kind, "op": "Add", "message": "m"}}))
    assert got.verdict is Verdict.ERROR
    assert got.reason.startswith("EngineFault: ")
    assert "malformed refusal: kind: must be an identifier" in got.reason


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "Foreign", "op": {"a": 1}}, {"kind": "Foreign", "message": ["m"]}, {"kind": "Foreign", "axis": "1"},
        {"kind": "Foreign", "axis": True}, {"kind": "RankMismatch", "op": "Add", "expected": "two", "actual": [3]},
        {"kind": "ShapeMismatch", "op": "Add", "lhs": [[[2]]], "rhs": [3]},
        {"kind": "AxisOutOfBounds", "op": "Add", "axis": 1.5, "rank": 2},
        {"kind": "WorkerDied", "worker": 1, "how": None, "stderr_tail": []},
    ],
)  # fmt: skip
def test_fields_of_other_types_are_a_malformed_refusal(tmp_path: Path, fields: dict[str, object]) -> None:
    got = refusal(tmp_path, json.dumps({"error": fields}))
    assert got.verdict is Verdict.ERROR, got
    assert "malformed refusal" in got.reason


@pytest.mark.parametrize(
    "line",
    ["[" * 100_000, '{"error": {"kind": ' + "[" * 60_000, '{"error": {"kind": "Big", "axis": 1' + "0" * 5000 + "}}"],
    ids=["brackets", "brackets inside", "digits"],
)
def test_what_no_parser_can_read_is_no_refusal(tmp_path: Path, line: str) -> None:
    got = refusal(tmp_path, line)
    assert got.verdict is Verdict.CRASH
    assert "without a line of JSON" in got.reason


def test_a_refusal_cannot_take_the_place_of_the_class_that_names_itself(tmp_path: Path) -> None:
    fields = {"kind": "ForeignRefusal", "op": "Add", "name": ATTACKS[0], "message": "m", "axis": None}
    got = refusal(tmp_path, json.dumps({"error": fields}))
    assert (got.verdict, got.reason) == (Verdict.UNSUPPORTED, "ForeignRefusal: m")


def test_records_of_errors_are_decoded_by_type() -> None:
    error = RankMismatch(op="Add", expected=1, actual=2)
    assert wire.unpack_error(wire.pack_error(error)).facts() == error.facts()
    for packed in (None, [], {"kind": ["x"], "facts": {}}, {"kind": "RankMismatch", "facts": 3}):
        with pytest.raises(FormatError):
            wire.unpack_error(packed)
    with pytest.raises(FormatError, match="Expected `int`, got `str`"):
        wire.unpack_error({"kind": "RankMismatch", "facts": {"op": "Add", "expected": "1", "actual": 2}})
    foreign = ForeignRefusal("Add", "x", "m", None)
    for packed in ({"kind": "NoSuch", "facts": {}}, {"kind": "ForeignRefusal", "facts": foreign.facts()}):
        with pytest.raises(KeyError):
            wire.unpack_error(packed)


def test_a_flood_of_messages_stays_small_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def tail(log: IO[bytes], size: int) -> bytes:
        seen.append(os.fstat(log.fileno()))
        return read(log, size)

    read = children.tail
    monkeypatch.setattr(children, "tail", tail)
    monkeypatch.setattr(children, "LOG_BYTES", 1 << 16)
    got = answer(tmp_path, "yes flood >&2\n", seconds=2)
    assert got.verdict is Verdict.TIMEOUT
    assert "\0" not in got.reason
    assert len(json.dumps(got.error)) < 20_000
    (status,) = seen
    assert status.st_blocks * 512 < max(status.st_size / 2, 1 << 28)


def test_outputs_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external, "_OUTPUT_BYTES", 1 << 20)
    start = time.monotonic()
    got = answer(tmp_path, "exec cat /dev/zero > $3\n", seconds=60)
    assert got.verdict is Verdict.CRASH
    assert "outputs beyond 1 MiB" in got.reason
    assert time.monotonic() - start < 50


def test_a_command_sees_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", TOKEN)
    monkeypatch.setenv("TENFERRO_OWN", "passed")
    got = answer(tmp_path, "env >&2\nexit 4\n")
    assert got.error is not None
    assert TOKEN not in json.dumps(got.error) + got.reason
    assert "TENFERRO_OWN=passed" in got.error["stderr_tail"]


def test_a_worker_process_sees_no_token(fake_library: Path, monkeypatch: pytest.MonkeyPatch, pool: Pool) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.delenv("FAKE_PJRT_MODE", raising=False)
    executor = pool.make(f"pjrt:{fake_library}")
    assert isinstance(executor, PjrtExecutor)
    executor.open()
    assert executor.worker.pid is not None
    variables = Path(f"/proc/{executor.worker.pid}/environ").read_bytes()
    assert b"PATH=" in variables
    assert TOKEN.encode() not in variables


def test_the_list_of_variables() -> None:
    given = {
        "PATH": "/bin", "LC_ALL": "C", "PYTHONPATH": "/x", "OMP_NUM_THREADS": "1", "XLA_FLAGS": "f", "PIP_INDEX_URL": TOKEN,
        "HTTPS_PROXY": TOKEN, "GITHUB_TOKEN": TOKEN, "MY_ENGINE": "1", "PATHOLOGY": TOKEN, "LD_PRELOAD": TOKEN,
    }  # fmt: skip
    few = {"PATH", "LC_ALL", "OMP_NUM_THREADS", "XLA_FLAGS"}
    assert children.environment(given=given).keys() == few | {"PYTHONPATH"}
    assert children.environment(given=given, python=False, MORE="1").keys() == few | {"MORE"}
    assert children.environment(given=given, python=False, pip=True).keys() == few | {"PIP_INDEX_URL", "HTTPS_PROXY"}
    more = children.environment(given={**given, children.EXTRA_VARIABLE: "MY_ENGINE, NO_SUCH"}, python=False)
    assert more.keys() == few | {"MY_ENGINE", children.EXTRA_VARIABLE}
