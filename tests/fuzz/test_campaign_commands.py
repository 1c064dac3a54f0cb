"""`fuzz` as a user runs it: workers are real processes, killed for real; only the command itself runs in this one."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fuzz import records
from fuzz.campaign.audit import audit
from fuzz.campaign.recorded import recorded
from fuzz.findings import corpus
from fuzz.store import Store
from oracle.case import Case
from oracle.peers.external import with_whole_paths
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.program import GraphBuilder
from tests.e2e.command import ROOT, Run, assert_one_line_error
from tests.e2e.command import in_this_process as tenferro_ref
from tests.e2e.command import tenferro_ref as in_a_process

pytestmark = pytest.mark.once


NATIVE = ("--executors", "native-unsegmented,native-nopasses")


def fuzz(*arguments: object) -> Run:
    return tenferro_ref("fuzz", *arguments)


def facts(path: Path) -> dict[str, object]:
    """What a campaign found, without times."""
    with Store(path) as store:
        assert audit(store, regenerate=3) == []
        campaign = recorded(store, store.shards())
        batches = store.database.rows(
            tuple[int, int, str], "SELECT number, programs, digest FROM batch ORDER BY number"
        )
    verdicts = {t.executor: (t.verdicts, t.elements, t.decided) for t in campaign.totals}
    return {"programs": campaign.programs, "generator": campaign.generator, "verdicts": verdicts, "batches": batches}


def test_a_campaign_from_its_beginning_to_its_report(tmp_path: Path) -> None:
    """One store in two shards and one without: merged they are the same."""
    for index in (0, 1):
        store = tmp_path / f"{index}.sqlite"
        run = fuzz(
            "run", store, "--programs", 70, "--seed", 4, "--workers", 1, "--shard", f"{index}/2", *NATIVE, "--json"
        )
        assert run.status == 0, run
        (row,) = run.rows
        assert (row["seed"], row["shard"], row["vacuous"], row["new"]) == (4, f"{index}/2", [], [])
    merged, whole = tmp_path / "all.sqlite", tmp_path / "whole.sqlite"
    assert fuzz("merge", merged, tmp_path / "0.sqlite", tmp_path / "1.sqlite").status == 0
    run = fuzz("run", whole, "--programs", 70, "--seed", 4, "--workers", 1, *NATIVE, "--out", tmp_path / "report")
    assert run.status == 0, run
    assert run.out.splitlines()[0] == "seed 4"
    assert facts(merged) == facts(whole)
    assert {p.name for p in (tmp_path / "report").iterdir()} == {
        "campaign.json", "findings.sarif", "index.html", "junit.xml", "matrix.csv", "ops", "peers", "report.css", "report.js",
        "summary.md",
    }  # fmt: skip
    assert tenferro_ref("report", merged, "--out", tmp_path / "again").status == 0
    assert records.load(tmp_path / "again" / "campaign.json").programs == 70
    rows = fuzz("status", merged, "--check", "--json").rows
    assert [(r["shard"], r["programs"], r["open"]["batches"]) for r in rows] == [("0/2", 38, 0), ("1/2", 32, 0)]
    assert "sound" in fuzz("status", merged, "--check").out


@pytest.mark.nightly
@pytest.mark.parametrize(("workers", "hashes", "threads"), [(4, "7", "1"), (1, "random", "4")])
def test_workers_hash_seeds_and_threads_change_nothing(tmp_path: Path, workers: int, hashes: str, threads: str) -> None:
    assert fuzz("run", tmp_path / "one", "--programs", 70, "--seed", 4, "--workers", 1, *NATIVE).status == 0
    env: dict[str, str | None] = {"PYTHONHASHSEED": hashes, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    call = ("fuzz", "run", tmp_path / "s", "--programs", 70, "--seed", 4, "--workers", workers, *NATIVE)
    assert in_a_process(*call, env=env).status == 0
    assert facts(tmp_path / "s") == facts(tmp_path / "one")


@pytest.mark.nightly
def test_more_workers_than_work_end_cleanly(tmp_path: Path) -> None:
    run = in_a_process("fuzz", "run", tmp_path / "s", "--programs", 40, "--seed", 4, "--workers", 16, *NATIVE)
    assert run.status == 0, run
    assert facts(tmp_path / "s")["programs"] == 40


@pytest.mark.nightly
def test_killed_and_resumed_it_is_as_if_nothing_had_been(tmp_path: Path) -> None:
    """`kill -9` of the whole campaign, twice, at whatever moment."""
    store = tmp_path / "s.sqlite"
    arguments: list[object] = ["run", store, "--seed", 4, "--programs", 48, "--workers", 1, *NATIVE]
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-m", "tenferro_ref", "fuzz", *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
        )
        _wait_for_progress(store, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        arguments = ["resume", store, "--workers", 1]
    # the workers die with their supervisor, so that the store is free at once or very soon
    deadline = time.monotonic() + 10
    while (run := fuzz(*arguments)).status == 3 and time.monotonic() < deadline:
        assert "in use by" in run.err
    assert run.status == 0, run
    assert fuzz("run", tmp_path / "whole", "--seed", 4, "--programs", 48, "--workers", 1, *NATIVE).status == 0
    assert facts(store) == facts(tmp_path / "whole")


@pytest.mark.nightly
def test_with_a_later_end_it_is_the_longer_campaign(tmp_path: Path) -> None:
    """A batch that the first end cut short is completed; an end that is past is refused."""
    store, whole = tmp_path / "s.sqlite", tmp_path / "whole.sqlite"
    assert fuzz("run", store, "--seed", 4, "--programs", 8, "--workers", 1, *NATIVE).status == 0
    assert fuzz("resume", store, "--programs", 40, "--workers", 1).status == 0
    assert fuzz("run", whole, "--seed", 4, "--programs", 40, "--workers", 1, *NATIVE).status == 0
    assert facts(store) == facts(whole)
    assert_one_line_error(fuzz("resume", store, "--programs", 31), 2, "past that (40 programs are checked)")
    assert "sound" in fuzz("status", store, "--check").out


def _wait_for_progress(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Until there is an answer more than at first. Only looks: a second writer would be another test."""
    first = None
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(sqlite3.OperationalError):  # not there yet
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
                done = store.execute("SELECT (SELECT count(*) FROM batch), (SELECT count(*) FROM answer)").fetchone()
            first = first or done
            if done != first:
                return
        time.sleep(0.02)
    assert process.poll() is not None, "no progress"


def test_findings_are_listed_confirmed_replayed_and_marked(
    tmp_path: Path, fake_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fake plugin gives its argument back, which is wrong for nearly every program."""
    store = tmp_path / "s.sqlite"
    monkeypatch.delenv("FAKE_PJRT_MODE", raising=False)
    limits = ("--programs", 2, "--reduce-seconds", 1, "--workers", 1, "--no-fresh-venv")
    # of a seed whose finding is a wrong result, which a replay compares with the recorded one
    run = fuzz("run", store, "--seed", 1, "--executors", f"pjrt:{fake_library}", *limits, "--json")
    assert run.status == 1, run
    (row,) = run.rows
    assert row["new"]
    listed = fuzz("findings", store, "--json").rows
    assert [f["signature"] for f in listed] == row["new"] or {f["signature"] for f in listed} == set(row["new"])
    assert all((f["status"], f["confirmed"]) == ("new", True) for f in listed)
    assert fuzz("findings", store, "--signature", "no such*").out == ""

    bundle = Path(f"{store}.findings") / listed[0]["id"]
    run = fuzz("replay", bundle, "--allow-commands", "--json")
    assert (run.status, run.rows[0]["outcome"], run.rows[0]["same_bits"]) == (1, "still fails", True)
    run = fuzz("replay", bundle, "--executor", "native-nopasses")
    assert (run.status, run.out.split(":")[0]) == (0, "gone")
    run = fuzz("replay", bundle, "--executors", "native-nopasses,native-fused", "--json")
    assert [row["executor"] for row in run.rows] == ["native-nopasses", "native-fused"]
    assert tenferro_ref("report", store, "--single-file", "--out", tmp_path / "one").status == 0
    assert (tmp_path / "one" / "findings" / listed[0]["id"] / "README.md").exists()
    run = fuzz("findings", store, listed[0]["id"], "--bundles", tmp_path / "out", "--allow-commands")
    assert run.status == 0, run
    assert (tmp_path / "out" / listed[0]["id"] / "README.md").exists()

    assert fuzz("findings", store, "--verdict", "mismatch", "--corpus", tmp_path / "corpus").status == 0
    cases = sorted((tmp_path / "corpus").iterdir())
    assert fuzz("replay", cases[0], "--allow-commands").status == 1

    # what is marked is no longer new, in this campaign or in a later one of the same store
    assert fuzz("findings", store, "--mark", "known").status == 2
    nothing = fuzz("findings", store, "--signature", "no such*", "--mark", "known")
    assert_one_line_error(nothing, 2, "no finding is listed, so none was marked")
    run = fuzz("findings", store, *(f["id"] for f in listed), "--mark", "reported", "--note", "issue 12", "--json")
    assert {(f["status"], f["why"]) for f in run.rows} == {("reported", "issue 12")}
    again = fuzz("resume", store, "--allow-commands", "--json")
    assert (again.status, again.rows[0]["new"]) == (0, []), again
    assert fuzz("findings", store, "--status", "new").out == ""


def test_a_campaign_that_proves_nothing_is_not_green(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    short = ("--min-programs", 50, "--require", "pjrt:*")
    run = fuzz("run", store, "--programs", 4, *short, "--workers", 1, *NATIVE, "--out", tmp_path / "report")
    assert run.status == 1
    why = "4 programs were checked, at least 50 are asked for"
    assert f"VACUOUS  {why}" in run.out
    assert "VACUOUS  executor pjrt:* took no part" in run.out
    assert records.load(tmp_path / "report" / "campaign.json").vacuous[0] == why
    # each format says it; so does a report that is made later, if it is asked the same
    assert tenferro_ref("report", store, *short, "--out", tmp_path / "again").status == 1
    for folder in (tmp_path / "report", tmp_path / "again"):
        for name in ("index.html", "summary.md", "junit.xml"):
            page = (folder / name).read_text("utf-8").lower()
            assert why in page
            assert "this run proves nothing" in page
    assert tenferro_ref("report", store, "--out", tmp_path / "unasked").status == 0
    assert records.load(tmp_path / "unasked" / "campaign.json").vacuous == ()
    run = fuzz("resume", store, "--workers", 1, "--min-programs", 4)
    assert (run.status, "VACUOUS" in run.out) == (0, False)


#: Refuses every program.
ENGINE = """#!/bin/sh
echo '{"error": {"kind": "UnsupportedOp"}}' >&2
exit 3
"""


def test_an_engine_by_a_relative_path_must_take_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("engine").write_text(ENGINE)
    Path("engine").chmod(0o755)
    named = ("--executors", "external:./engine", "--programs", 2, "--seed", 1)
    whole = f"external:{tmp_path / 'engine'}"
    for run in (
        fuzz("run", "s.sqlite", *named, "--workers", 1),
        tenferro_ref("parity", *named),
        tenferro_ref("report", "s.sqlite", "--require", "external:./engine", "--out", "r"),
    ):
        assert run.status == 1, run
        assert f"VACUOUS  executor {whole} took no part: it answered no program" in run.out, run


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("python engine ok", "python {}/engine ok"),  # a bundle is replayed in another folder
        ("python engine folder", "python {}/engine folder"),
        ("engine engine", "engine {}/engine"),  # a program of that name is one on PATH
        ("./engine -x", "{}/engine -x"),
        (f"python {'x' * 5000}", f"python {'x' * 5000}"),
    ],
)
def test_a_file_among_the_arguments_of_an_engine_has_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, kept: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("engine").touch()
    Path("folder").mkdir()
    for kind in ("external", "external-served"):
        assert with_whole_paths(f"{kind}:{given}") == f"{kind}:{kept.format(tmp_path)}"


def test_a_shard_without_a_batch_is_refused(tmp_path: Path) -> None:
    run = fuzz("run", tmp_path / "s", "--programs", 30, "--shard", "1/2", *NATIVE)
    assert_one_line_error(run, 2, "it has no batch: 30 programs are 1 of 32")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("shard", ["2/2", "x", "1", "-1/2", "0/0"])
def test_shards_that_are_none(tmp_path: Path, shard: str) -> None:
    assert_one_line_error(fuzz("run", tmp_path / "s", "--shard", shard, *NATIVE), 2, "0 <= I < N")
    assert list(tmp_path.iterdir()) == []


def test_a_case_of_the_corpus_is_replayed(tmp_path: Path, fake_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake plugin gives its argument back: wrong for a negation, right for an absolute value of 1."""
    monkeypatch.delenv("FAKE_PJRT_MODE", raising=False)
    fake = f"pjrt:{fake_library}"

    def case(name: str, op: ops.Op, recorded: Verdict, executor: str = fake) -> Path:
        b = GraphBuilder()
        program = b.build(b.apply(op, b.input("F64", ())))
        expected = {"native": Verdict.PASS, executor: recorded}
        (tmp_path / name).write_text(corpus.text(corpus.Entry(name, "", Case.of(program, [np.array(1.0)]), expected)))
        return tmp_path / name

    wrong, gone = case("wrong.toml", ops.Negate(), Verdict.MISMATCH), case("gone.toml", ops.Abs(), Verdict.CRASH)
    run = fuzz("replay", wrong, "--bundle", tmp_path / "bundle", "--allow-commands", "--json")
    assert run.status == 1, run
    assert [(r["executor"], r["recorded"], r["verdict"]) for r in run.rows] == [
        ("native", "pass", "pass"), (fake, "mismatch", "mismatch")
    ]  # fmt: skip
    (written,) = (tmp_path / "bundle").iterdir()
    assert f"bundle: {written}" in run.err
    assert fuzz("replay", written, "--allow-commands").out.startswith("still fails")
    both = fuzz("replay", gone, wrong, "--allow-commands")
    assert (both.status, [line for line in both.out.splitlines() if line.endswith(":")]) == (
        1,
        [f"{gone}:", f"{wrong}:"],
    )
    assert_one_line_error(fuzz("replay", gone), 2, "--allow-commands")
    run = fuzz("replay", gone, "--allow-commands")
    assert (run.status, run.out) == (0, f"native pass\n{fake} pass (recorded: crash)\n")
    assert fuzz("replay", wrong, "--executors", "native-nopasses").status == 0
    absent = case("absent.toml", ops.Abs(), Verdict.MISMATCH, "pjrt:/no/such.so")
    assert_one_line_error(
        fuzz("replay", absent, "--allow-commands"), 3, "every executor that showed this", "no/such.so"
    )
    module = ROOT / "tests/corpus/0022-scatter-window-partly-outside.toml"
    bad_calls: dict[str, tuple[object, ...]] = {
        "nothing to bundle": (gone, "--allow-commands", "--bundle", tmp_path / "b"),
        "for bundles": (gone, "--fresh-venv"),
        "for files of the corpus": (written, "--bundle", tmp_path / "b"),
        "does not run StableHLO modules": (module, "--executors", "native"),
        "cannot be read": (tmp_path / "none.toml",),
    }
    for words, arguments in bad_calls.items():
        assert_one_line_error(fuzz("replay", *arguments), 2, words)


@pytest.mark.nightly
def test_seeded_faults_are_in_the_report(tmp_path: Path) -> None:
    """As `mutants run` keeps them."""
    store, lines = tmp_path / "s.sqlite", tmp_path / "mutants.jsonl"
    assert fuzz("run", store, "--programs", 2, "--workers", 1, *NATIVE).status == 0
    listed = tenferro_ref("mutants", "list", "--place", "loader", "--json")
    run = tenferro_ref("mutants", "run", "--place", "loader", "--sample", 5, "--executors", "native-reloaded", "--seed", 3,
                       "--programs", 40, "--json", "--out", lines)  # fmt: skip
    out = tmp_path / "report"
    assert tenferro_ref("report", store, "--mutants", lines, "--out", out).status == 0
    faults = records.load(out / "campaign.json").mutants
    assert [f.name for f in faults if not f.equivalent] == [r["name"] for r in run.rows]
    assert any(r["equivalent"] for r in listed.rows)
    assert not any(f.equivalent for f in faults)  # they are not drawn
    assert sum(f.killed for f in faults) == sum(r["killed"] for r in run.rows) > 0
    assert 'data-place="loader"' in (out / "index.html").read_text("utf-8")
    # what is recorded stays when the report is made again from its own folder
    assert tenferro_ref("report", out, "--out", out).status == 0
    assert records.load(out / "campaign.json").mutants == faults
    for words, bad in (
        ("not JSON", "{"),
        ("not the record", "3"),
        ("missing", '{"killed": true}'),
        ("$.", '{"name": 1, "place": "x", "killed": true}'),
    ):
        lines.write_text(f"\n{bad}\n")
        assert_one_line_error(tenferro_ref("report", store, "--mutants", lines, "--out", out), 2, "line 2", words)


def test_a_merge_that_cannot_be_makes_nothing(tmp_path: Path) -> None:
    for name in ("good", "newer"):
        Store(tmp_path / name, create=True).close()
    with contextlib.closing(sqlite3.connect(tmp_path / "newer")) as connection:
        connection.execute("PRAGMA user_version = 99")
    run = fuzz("merge", tmp_path / "all", tmp_path / "good", tmp_path / "newer")
    assert_one_line_error(run, 2, str(tmp_path / "newer"), "99")
    assert {path.name for path in tmp_path.iterdir()} == {"good", "newer"}


def test_bad_calls_are_one_line(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    for command in ("resume", "status", "findings", "reduce"):
        assert_one_line_error(fuzz(command, absent), 2, "no such findings store")
    assert_one_line_error(fuzz("merge", tmp_path / "a", absent), 2, "no such findings store")
    assert_one_line_error(fuzz("replay", absent), 2, "environment.json")
    assert list(tmp_path.iterdir()) == []
    for nowhere in ("", ".", "/"):
        assert_one_line_error(fuzz("run", nowhere, *NATIVE), 2, f"STORE {nowhere!r}", "give the store a name")
    twice = ("--generate", "ops=Exp", "--generate", "rank=2", "--generate", "ops=Log")
    assert_one_line_error(fuzz("run", tmp_path / "s", *NATIVE, *twice), 2, "ops is given 2 times")
    (tmp_path / "text").write_text("text")
    assert_one_line_error(fuzz("status", tmp_path / "text"), 2, "not a findings store")
    assert_one_line_error(fuzz("run", tmp_path / "s", "--out", tmp_path / "text", *NATIVE), 2, "not a folder")
    assert not (tmp_path / "s").exists()
    Store(tmp_path / "empty", create=True).close()
    assert_one_line_error(fuzz("resume", tmp_path / "empty"), 2, "no campaign was begun")
    assert_one_line_error(
        tenferro_ref("report", tmp_path / "empty", "--out", tmp_path / "r"), 2, "no campaign was begun"
    )
    assert_one_line_error(fuzz("findings", tmp_path / "empty", "0000"), 2, "no finding '0000'")
