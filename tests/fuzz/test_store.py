"""The findings store: its errors are typed, its transactions are whole, and batches are the campaign."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz.campaign.audit import audit
from fuzz.campaign.tally import Tally
from fuzz.generate.batches import generate
from fuzz.store import MEMORY, Counts, Lock, Store, digest, is_database
from fuzz.store import database as database_module
from fuzz.store.errors import StoreDamaged, StoreLocked, StoreVersion
from fuzz.store.model import campaign_key, pack, unpack
from fuzz.store.schema import MIGRATIONS
from tenferro_ref.errors import (
    FormatError,
    Internal,
    OutputError,
    TenferroError,
    UsageError,
)
from tests.fuzz.stores import PLAN, answer, begin, cases_of, run_all, run_batch


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.sqlite"


class TestTheFile:
    def test_it_is_there_again_when_it_is_opened_again(self, path: Path) -> None:
        with Store(path, create=True) as store:
            stream = begin(store)
            run_batch(store, stream, bad=(1,))
            tally = store.counts(stream.id)
        with Store(path) as store:
            assert store.streams() == [stream]
            assert store.counts(stream.id) == tally
            assert audit(store, regenerate=9) == []
        assert is_database(path)
        assert not is_database(path.with_name("absent"))

    def test_absent(self, path: Path) -> None:
        with pytest.raises(FormatError, match="no such findings store"):
            Store(path)
        assert not path.exists()

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(FormatError, match="a folder"):
            Store(tmp_path, create=True)

    @pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be taken for one" * 20])
    def test_something_else(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        with pytest.raises(StoreDamaged):
            Store(path)
        assert path.read_bytes() == content

    def test_somebody_elses_database(self, path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE theirs (x)")
        connection.close()
        with pytest.raises(StoreDamaged, match="something else"):
            Store(path, create=True)

    def test_a_later_version(self, path: Path) -> None:
        Store(path, create=True).close()
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 99")
        connection.close()
        before = path.read_bytes()
        with pytest.raises(StoreVersion, match="schema version 99"):
            Store(path)
        assert path.read_bytes() == before

    def test_an_earlier_version_is_migrated_at_once(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with Store(path, create=True) as store:
            begin(store)
        later = (*MIGRATIONS, ("ALTER TABLE mark ADD COLUMN who TEXT NOT NULL DEFAULT ''",))
        monkeypatch.setattr(database_module, "MIGRATIONS", later)
        monkeypatch.setattr(database_module.migrate, "__defaults__", (later,))
        with Store(path) as store:
            assert store.database.row(tuple[Any, ...], "PRAGMA user_version") == (len(later),)
            assert store.database.rows(tuple[Any, ...], "SELECT who FROM mark") == []
            assert len(store.streams()) == 1

    def test_a_migration_that_fails_leaves_the_old_schema(self, path: Path) -> None:
        with Store(path, create=True) as store:
            broken = (*MIGRATIONS, ("CREATE TABLE half (x)", "CREATE TABLE half (x)"))
            with pytest.raises(StoreDamaged, match="already exists"):
                database_module.migrate(store.database, broken)
            assert store.database.row(tuple[Any, ...], "PRAGMA user_version") == (len(MIGRATIONS),)
            assert store.database.row(tuple[Any, ...], "SELECT count(*) FROM sqlite_master WHERE name = 'half'") == (0,)

    def test_damage_in_the_middle(self, path: Path) -> None:
        with Store(path, create=True) as store:
            stream = begin(store)
            run_all(store, stream, bad=(0, 1, 2, 3))
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(os.urandom(size - 8192))
        with pytest.raises(StoreDamaged), Store(path) as store:
            audit(store)

    def test_a_full_disk_loses_nothing_that_was_committed(self, path: Path) -> None:
        """The limit on pages is SQLite's own way of running out of room."""
        with Store(path, create=True) as store:
            stream = begin(store)
            run_batch(store, stream)
            before = store.counts(stream.id)
            store.database.rows(tuple[Any, ...], "VACUUM")  # the rows that the first batch had leave room for another
            (pages,) = store.database.row(tuple[Any, ...], "PRAGMA page_count")
            store.database.row(tuple[Any, ...], f"PRAGMA max_page_count = {pages}")
            with pytest.raises(OutputError, match="disk is full; nothing is lost") as caught:
                run_all(store, stream, bad=(0, 1, 2, 3))
            assert caught.value.exit_status == 3
        with Store(path) as store:
            store.release()
            assert store.counts(stream.id).sums >= before.sums
            assert audit(store, regenerate=9) == []
            run_all(store, stream)
            assert audit(store) == []
            assert store.done(stream.id) == (PLAN.programs, 0)

    def test_a_writer_that_holds_it_too_long(self, path: Path) -> None:
        with Store(path, create=True) as store, Store(path, busy_seconds=0.05) as other:
            stream = begin(store)
            with store.database.write(), pytest.raises(StoreLocked, match="another process that is writing"):
                other.claim(stream.id, "w")
            assert other.claim(stream.id, "w") is not None

    def test_only_one_campaign_at_a_time(self, path: Path) -> None:
        with Lock(path), pytest.raises(StoreLocked, match=f"process {os.getpid()}"):
            Lock(path)
        Lock(path).__exit__()

    def test_a_folder_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        for make in (lambda: Store(tmp_path / "file" / "s.sqlite", create=True), lambda: Lock(tmp_path / "file" / "s")):
            with pytest.raises(TenferroError) as caught:
                make()
            assert caught.value.exit_status == 3

    @pytest.mark.parametrize("name", ["a\0b"])
    def test_an_impossible_name(self, name: str) -> None:
        with pytest.raises(FormatError):
            Store(name, create=True)


class TestBatches:
    def test_they_are_the_campaign_and_no_more(self) -> None:
        with Store() as store:
            stream = begin(store)
            jobs = [job for _ in range(5) if (job := store.claim(stream.id, "w"))]
            assert [(j.number, j.programs) for j in jobs] == [(0, 4), (1, 4), (2, 2)]

    @pytest.mark.parametrize("count", [1, 2, 3, 7])
    def test_shards_split_the_same_stream(self, count: int) -> None:
        with Store() as store:
            taken = []
            for index in range(count):
                stream = begin(store, replace(PLAN, shard=index, shards=count, programs=22))
                while job := store.claim(stream.id, "w"):
                    taken.append((job.number, job.programs))
            assert sorted(taken) == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4), (5, 2)]

    def test_a_later_end_completes_the_last_batch_first(self) -> None:
        """What was counted stays; the campaign is the one that had the later end from its beginning."""
        with Store() as store, Store() as whole:
            stream = begin(store)
            run_all(store, stream, bad=(1,))
            store.extend(stream.id, replace(PLAN, programs=15))
            assert audit(store, regenerate=9) == []
            batch = store.claim(stream.id, "dies")
            assert batch is not None
            assert (batch.number, batch.programs, batch.counted) == (2, 4, 2)
            assert store.done(stream.id) == (10, 0)
            assert audit(store, regenerate=9) == []
            store.release()
            run_all(store, store.stream(stream.id), bad=(1,))
            assert audit(store, regenerate=9) == []
            longer = begin(whole, replace(PLAN, programs=15))
            run_all(whole, longer, bad=(1,))
            assert store.done(stream.id) == whole.done(longer.id) == (15, 0)
            assert store.counts(stream.id) == whole.counts(longer.id)

    def test_an_end_that_is_past_is_refused(self) -> None:
        with Store() as store:
            stream = begin(store)
            run_all(store, stream)
            with pytest.raises(UsageError, match=r"--programs 8: the campaign is past that \(10 programs"):
                store.extend(stream.id, replace(PLAN, programs=8))
            store.extend(stream.id, replace(PLAN, programs=9))  # within the last batch
            assert store.claim(stream.id, "w") is None
            assert audit(store) == []

    def test_what_was_left_comes_before_what_is_fresh(self) -> None:
        with Store() as store:
            stream = begin(store)
            first, second = store.claim(stream.id, "a"), store.claim(stream.id, "b")
            store.release("a")
            again = store.claim(stream.id, "c")
            assert first
            assert second
            assert again == replace(first, claims=2)
            store.put_answers(again, [(0, answer("native"))])
            store.release()
            assert store.claim(stream.id, "d") == replace(first, claims=1)

    def test_time_ends_it(self) -> None:
        with Store() as store:
            stream = begin(store, replace(PLAN, minutes=1.0))
            job = store.claim(stream.id, "a")
            store.add_elapsed(stream.id, 61.0)
            assert store.claim(stream.id, "b") is None
            store.release()
            assert store.claim(stream.id, "b") == replace(job, claims=2)

    def test_programs_and_answers_come_back_as_they_were(self) -> None:
        with Store() as store:
            stream = begin(store)
            job = store.claim(stream.id, "w")
            assert job
            cases = cases_of(PLAN, job)
            store.put_programs(job, cases)
            assert digest(store.programs(job)) == digest(cases)
            store.put_answers(job, [(0, answer("native")), (3, answer("other"))])
            assert store.answers(job) == {(0, "native"): answer("native"), (3, "other"): answer("other")}

    def test_an_answer_cannot_come_twice(self) -> None:
        with Store() as store:
            job = store.claim(begin(store).id, "w")
            assert job
            store.put_answers(job, [(0, answer("native"))])
            with pytest.raises(StoreDamaged, match="UNIQUE"):
                store.put_answers(job, [(1, answer("native")), (0, answer("native"))])
            assert store.answers(job).keys() == {(0, "native")}

    def test_only_the_holder_seals_and_only_once(self) -> None:
        with Store() as store:
            stream = begin(store)
            job = store.claim(stream.id, "w")
            assert job
            cases = cases_of(PLAN, job)
            tally = Tally()
            tally.add_cases([cases[0]])
            with pytest.raises(Internal):
                store.seal(job, "somebody else", cases, tally, [])
            store.seal(job, "w", cases, tally, [])
            with pytest.raises(Internal):
                store.seal(job, "w", cases, tally, [])
            assert store.counts(stream.id) == Counts(tally.sums, tally.peaks, tally.widths)

    def test_strikes_add_up(self) -> None:
        with Store() as store:
            job = store.claim(begin(store).id, "w")
            assert job
            assert [store.strike(job, 1, "native") for _ in range(3)] == [1, 2, 3]
            assert store.strike(job, 2, "native") == 1

    def test_a_campaign_is_begun_once(self) -> None:
        with Store() as store:
            begin(store)
            with pytest.raises(UsageError, match="fuzz resume"):
                begin(store, replace(PLAN, programs=99))
            with pytest.raises(UsageError, match="1 shards, not 2"):
                begin(store, replace(PLAN, shards=2))
            begin(store, replace(PLAN, seed=8))
            with pytest.raises(UsageError, match="no campaign number 9"):
                store.stream(9)

    def test_limits_are_no_part_of_its_identity(self) -> None:
        assert campaign_key(PLAN, ["native"]) == campaign_key(replace(PLAN, programs=1, shard=1, shards=2), ["native"])
        assert campaign_key(PLAN, ["native"]) != campaign_key(PLAN, ["native", "other"])

    def test_the_audit_sees_what_is_lost_and_what_is_there_twice(self) -> None:
        def broken(sql: str) -> list[str]:
            with Store() as store:
                stream = begin(store)
                run_all(store, stream, bad=(1,))
                with store.database.write() as write:
                    assert write.execute(sql).rowcount > 0
                return audit(store, regenerate=9)

        for sql, words in {
            "DELETE FROM batch WHERE number = 1": "belongs",
            "UPDATE tally SET value = value + 1 WHERE kind = 'verdict'": "verdicts on 10 programs",
            "DELETE FROM suspect WHERE batch = 0": "disagreements counted",
            "UPDATE batch SET digest = 'x' WHERE number = 0": "other programs",
            "INSERT INTO answer VALUES (1, 0, 0, 'native', '{}')": "rows of answer are left",
            "DELETE FROM kin": "not listed",
            "UPDATE kin SET signature = 'nowhere'": "have no finding",
        }.items():
            assert any(words in problem for problem in broken(sql)), sql


def test_cases_keep_their_bits() -> None:
    for case in generate(3, 0, 16):
        again = unpack(*pack(case))
        assert again.fingerprint == case.fingerprint
        assert all(np.asarray(a).flags.f_contiguous for a in again.inputs)


def test_a_store_in_memory_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Store(MEMORY) as store:
        begin(store)
    assert list(tmp_path.iterdir()) == []
