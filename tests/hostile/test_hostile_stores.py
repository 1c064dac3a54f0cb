"""A findings store may be anybody's: it names nothing to be run, changes nothing by itself, and drives no terminal."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fuzz.findings.bundle import SCRIPT
from fuzz.records import load, to_json
from fuzz.store import Store
from fuzz.store.errors import StoreDamaged
from tenferro_ref.errors import FormatError
from tests.e2e.command import assert_one_line_error
from tests.e2e.command import in_this_process as tenferro_ref
from tests.fuzz.stores import begin, run_batch
from tests.hostile.attacks import ATTACKS, acts, finding, store_of

pytestmark = pytest.mark.once


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.sqlite"


def test_the_executor_of_a_finding_needs_leave(path: Path, tmp_path: Path) -> None:
    owned, out = tmp_path / "owned", tmp_path / "out"
    command = f"external:touch {owned}"
    store_of(path, finding(executor=command))
    run = tenferro_ref("fuzz", "findings", path, "--bundles", out)
    assert_one_line_error(run, 2, str(path), f"touch {owned}", "--allow-commands")
    assert not owned.exists()
    assert not out.exists()
    for allowed in (("--allow-commands",), ("--executor", command)):
        assert tenferro_ref("fuzz", "findings", path, "--bundles", out, *allowed).status == 0
        assert owned.exists()
        owned.unlink()


def test_a_script_in_a_record_is_dropped(path: Path, tmp_path: Path) -> None:
    """Records were written with one until version 5."""
    found = finding(executor="native")
    store_of(path, found)
    with closing(sqlite3.connect(path)) as connection:
        record = json.dumps({**json.loads(to_json(found)), "reproducer": "raise SystemExit('owned')"})
        connection.execute("UPDATE finding SET record = ?", (record,))
        connection.commit()
    assert tenferro_ref("fuzz", "findings", path, "--bundles", tmp_path / "out").status == 0
    assert (tmp_path / "out" / found.id / "reproduce.py").read_bytes() == SCRIPT
    assert tenferro_ref("report", path, "--out", tmp_path / "r").status == 1  # it has no program
    assert "owned" not in (tmp_path / "r" / "campaign.json").read_text()
    record = (tmp_path / "r" / "campaign.json").read_text().replace('"tenferro_campaign": 6', '"tenferro_campaign": 5')
    (tmp_path / "old.json").write_text(record.replace('"signature":', '"reproducer": "owned", "signature":'))
    assert load(tmp_path / "old.json").findings == load(tmp_path / "r" / "campaign.json").findings


@pytest.mark.parametrize("call", ["resume", "reduce"])
@pytest.mark.parametrize("name", ["external:touch {owned}", "pjrt:{owned}.so"])
def test_the_executors_of_a_campaign_need_leave(path: Path, tmp_path: Path, call: str, name: str) -> None:
    owned = tmp_path / "owned"
    store_of(path, executors=("native", name.replace("{owned}", str(owned))))
    run = tenferro_ref("fuzz", call, path)
    assert_one_line_error(run, 2, str(path), str(owned), "--allow-commands")
    assert not owned.exists()


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER t AFTER INSERT ON stream BEGIN UPDATE stream SET executors = '[]'; END",
        "CREATE VIEW v AS SELECT * FROM finding",
    ],
)
def test_a_schema_that_acts_is_refused(path: Path, sql: str) -> None:
    store_of(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(sql)
    for readonly in (True, False):
        with pytest.raises(StoreDamaged, match="a findings store has none"):
            Store(path, readonly=readonly)


def test_its_schema_is_not_trusted(path: Path) -> None:
    store_of(path)
    for readonly in (True, False):
        with Store(path, readonly=readonly) as store:
            assert store.database.row(tuple[Any, ...], "PRAGMA trusted_schema") == (0,)


@pytest.mark.parametrize("call", ["status", "findings", "report"])
def test_who_only_reads_changes_nothing(path: Path, tmp_path: Path, call: str) -> None:
    store_of(path, finding())
    before = path.read_bytes()
    words = ("report", path, "--out", tmp_path / "out") if call == "report" else ("fuzz", call, path)
    assert tenferro_ref(*words).status == (call == "report")  # the store has no program, so its report proves nothing
    assert path.read_bytes() == before
    with Store(path, readonly=True) as store, pytest.raises(Exception, match="readonly"):
        store.mark("x", "known")


@pytest.mark.parametrize("words", ATTACKS)
def test_what_is_listed_is_one_line_without_effects(path: Path, tmp_path: Path, words: str) -> None:
    found = finding(signature=words, title=words, executor=words, reason=words, verdict=words)
    store_of(path, found, executors=("native", words))
    with Store(path) as store:
        store.mark(found.signature, "reported", words)
    run = tenferro_ref("fuzz", "findings", path)
    assert run.status == 0, run
    assert len(run.out.splitlines()) == 1
    assert not acts(run.out)
    for call in (
        ("fuzz", "findings", path, "--json"),
        ("fuzz", "status", path),
        ("report", path, "--out", tmp_path / "r"),
    ):
        run = tenferro_ref(*call)
        assert run.status == (call[0] == "report"), run
        assert not acts(run.out.replace("\x7f", ""))
    written = [
        path for path in (tmp_path / "r").rglob("*.*") if path.suffix in (".md", ".xml", ".html", ".csv", ".sarif")
    ]
    assert {path.parent.name for path in written} == {"r", "peers"}
    for page in written:
        assert not acts(page.read_text("utf-8").replace("\r\n", "\n"))
        assert re.fullmatch(r"[\w@.-]+", page.name, re.ASCII)


def test_what_is_left_of_a_store_that_was_cut_off_is_saved(path: Path, tmp_path: Path) -> None:
    store_of(path, finding())
    with Store(path) as store:
        run_batch(store, begin(store), bad=(0, 1, 2, 3))  # what is written last stands last
    os.truncate(path, path.stat().st_size - 4096)
    assert_one_line_error(tenferro_ref("fuzz", "status", path), 2, "malformed")
    run = tenferro_ref("fuzz", "status", path, "--salvage", tmp_path / "whole")
    assert run.status == 0, run
    assert "LOST     suspect: " in run.out
    with Store(tmp_path / "whole", readonly=True) as store:
        assert [f.finding for f in store.findings()] == [finding()]


@pytest.mark.parametrize("column", ["answer", "program", "inputs"])
def test_a_row_that_cannot_be_decoded_is_named(path: Path, tmp_path: Path, column: str) -> None:
    with Store(path, create=True) as store:
        stream = begin(store)
        run_batch(store, stream, bad=(0, 1, 2, 3))
        with store.database.write() as write:
            value = b"\0" * 9 if column == "inputs" else "\0" * 9
            write.execute(f"UPDATE suspect SET {column} = ?, instructions = 0 WHERE number = 2", (value,))
        with pytest.raises(FormatError, match="suspect, batch 0, number 2:"):
            store.claim_group(stream.id, "w", 9)
    run = tenferro_ref("fuzz", "status", path, "--check")
    assert run.status == 1
    (problem,) = [line for line in run.out.splitlines() if line.startswith("PROBLEM")]
    assert problem.startswith("PROBLEM  campaign 1: suspect, batch 0, number 2: ")
    run = tenferro_ref("fuzz", "status", path, "--salvage", tmp_path / "whole")
    assert f"LOST     {problem[9:]}".replace("campaign 1: ", "campaign 1: left out: ") in run.out.splitlines()


def test_what_is_whole_in_a_damaged_store_is_saved(path: Path, tmp_path: Path) -> None:
    store_of(path, finding())
    lost = store_of(path, executors=("native", "native-nopasses"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE stream SET plan = '{' WHERE id = ?", (lost.id,))
        connection.execute("INSERT INTO finding VALUES ('torn', '[', x'00', 0, 0, 1)")
        connection.commit()
    assert_one_line_error(tenferro_ref("fuzz", "status", path), 2, "not JSON")
    run = tenferro_ref("fuzz", "status", path, "--check", "--salvage", tmp_path / "whole")
    assert run.status == 0, run
    assert [line.split(":")[0] for line in run.out.splitlines() if line.startswith("LOST")] == [
        "LOST     a finding", "LOST     finding", f"LOST     campaign {lost.id}",
    ]  # fmt: skip
    with Store(tmp_path / "whole", readonly=True) as store:
        assert [f.finding for f in store.findings()] == [finding()]
        assert len(store.streams()) == 1
    again = tenferro_ref("fuzz", "status", path, "--salvage", tmp_path / "whole")
    assert_one_line_error(again, 2, "is there; give another name")


@pytest.mark.parametrize("page", range(1, 24, 3))
def test_a_page_of_junk(path: Path, tmp_path: Path, page: int) -> None:
    store_of(path, *(finding(signature=f"s{i}", reason="x" * 900) for i in range(30)))
    with path.open("r+b") as file:
        file.seek(4096 * page)
        file.write(b"\xaa" * 4096)
    run = tenferro_ref("fuzz", "status", path, "--check", "--salvage", tmp_path / "whole")
    assert run.status == 0 or run.err.startswith("error: "), run
    if run.status == 0:
        with Store(tmp_path / "whole") as store:
            store.database.check()
