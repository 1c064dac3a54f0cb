"""The findings store: its errors are typed, its transactions whole, its marks last, and it merges."""

from __future__ import annotations

import os
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz.campaign.audit import audit
from fuzz.campaign.recorded import recorded
from fuzz.campaign.tally import Tally
from fuzz.findings.listed import listed
from fuzz.generate.batches import generate
from fuzz.records import Finding
from fuzz.store import MEMORY, Batch, Counts, Disagreement, Lock, Plan, Store, Stream, digest, is_database
from fuzz.store import database as database_module
from fuzz.store.counts import WIDTHS
from fuzz.store.errors import StoreDamaged, StoreLocked, StoreVersion
from fuzz.store.merge import merge
from fuzz.store.model import campaign_key, pack, unpack
from fuzz.store.schema import MIGRATIONS
from oracle.case import Case
from oracle.verdict import Answer, Comparison, ExecutorInfo, Verdict
from tenferro_ref.errors import (
    FormatError,
    Internal,
    OutputError,
    TenferroError,
    UsageError,
)
from tests.reports import sample

PLAN = Plan(seed=7, programs=10, batch=4, max_findings=5)
INFOS = (ExecutorInfo("native", True), ExecutorInfo("other", True), ExecutorInfo("gone", False, "not here"))


def begin(store: Store, plan: Plan = PLAN) -> Stream:
    return store.begin(plan, INFOS, (("Python", "3"),), "2026-11-21T00:00:00+00:00")


def cases_of(plan: Plan, job: Batch) -> list[Case]:
    return generate(plan.seed, job.number, plan.batch)[: job.programs]


def answer(executor: str, verdict: Verdict = Verdict.PASS) -> Answer:
    comparison = Comparison(elements=4, decided=3, worst_ulp=float("inf"), widths=((1.0, float("inf")),))
    return Answer(executor, verdict, comparison, seconds={"execute": 0.5})


def run_batch(store: Store, stream: Stream, bad: tuple[int, ...] = (), owner: str = "w") -> Batch | None:
    """One batch from claim to seal; `other` disagrees on the programs numbered `bad`."""
    job = store.claim(stream.id, owner)
    if job is None:
        return None
    cases = store.programs(job) or cases_of(stream.plan, job)
    if not store.programs(job):
        store.put_programs(job, cases)
    tally, disagreements = Tally(), []
    for number, case in list(enumerate(cases))[job.counted :]:
        tally.add_cases([case])
        for name in stream.available:
            verdict = Verdict.MISMATCH if name == "other" and number in bad else Verdict.PASS
            tally.add_answer(case, answer(name, verdict))
            if verdict is Verdict.MISMATCH:
                disagreements.append(Disagreement(number, case, answer(name, verdict), "kin", "Add", "F32", "native"))
    store.seal(job, owner, cases, tally, disagreements)
    return job


def run_all(store: Store, stream: Stream, bad: tuple[int, ...] = ()) -> None:
    while run_batch(store, stream, bad):
        pass


def settle(store: Store, stream: Stream, **changes: object) -> Finding:
    group = store.claim_group(stream.id, "w", PLAN.max_findings)
    assert group is not None
    finding = sample.finding(known="", **changes)
    store.settle(group, finding, group.smallest.case, None)
    return finding


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


class TestTally:
    def test_batches_add_up(self) -> None:
        with Store() as store:
            stream = begin(store, replace(PLAN, programs=None))
            whole = Tally()
            for number in range(3):
                part = Tally()
                for case in generate(PLAN.seed, number, 4):
                    part.add_cases([case])
                    part.add_answer(case, answer("native"))
                part.blame("Add(Multiply)", "F32", "native", Verdict.CRASH)
                job = store.claim(stream.id, "w")
                assert job
                store.seal(job, "w", generate(PLAN.seed, number, 4), part, [])
                whole.update(part)
            assert store.counts(stream.id) == Counts(whole.sums, whole.peaks, whole.widths)
            assert whole.sums["cell", "Add", "F32", "native", "crash"] == 3
            assert whole.peaks["worst", "native"] == float("inf")

    def test_points_of_the_plot_are_a_sample(self) -> None:
        with Store() as store:
            stream = begin(store, replace(PLAN, programs=None))
            for _ in range(3):
                tally = Tally()
                tally.widths["native"] = [(float(i), 0.0) for i in range(WIDTHS // 2 + 10)]
                job = store.claim(stream.id, "w")
                assert job
                store.seal(job, "w", [], tally, [])
            assert len(store.counts(stream.id).widths["native"]) == WIDTHS


class TestFindings:
    def test_the_smallest_suspect_is_reduced(self) -> None:
        with Store() as store:
            stream = begin(store)
            run_batch(store, stream, bad=(0, 1, 2, 3))
            group = store.claim_group(stream.id, "w", 5)
            assert group
            sizes = [len(c.program.instructions) for c in generate(PLAN.seed, 0, 4)]
            assert len(group.smallest.case.program.instructions) == min(sizes)
            assert (group.programs, group.also) == (4, ())
            assert store.claim_group(stream.id, "v", 5) is None
            store.release("w")
            assert store.claim_group(stream.id, "v", 0) is None
            assert store.claim_group(stream.id, "v", 1) is not None

    def test_unreduced_disagreements_are_counted(self) -> None:
        with Store() as store:
            stream = begin(store)
            run_batch(store, stream, bad=(0, 2))
            assert {t.executor: t.unexplained for t in recorded(store, [stream]).totals} == {"native": 0, "other": 2}
            settle(store, stream)
            campaign = recorded(store, [stream])
            assert {t.executor: t.unexplained for t in campaign.totals} == {"native": 0, "other": 0}
            (finding,) = campaign.findings
            assert finding.programs == 2

    def test_of_one_signature_the_smaller_program_stays(self) -> None:
        with Store() as store:
            stream = begin(store)
            run_batch(store, stream, bad=(0,))
            settle(store, stream, instructions=3)
            other = begin(store, replace(PLAN, seed=8))
            run_batch(store, other, bad=(0, 1))
            settle(store, other, instructions=2)
            third = begin(store, replace(PLAN, seed=9))
            run_batch(store, third, bad=(0,))
            settle(store, third, instructions=4)
            (row,) = listed(store)
            assert (row.record.instructions, row.programs) == (2, 4)
            assert [r.programs for r in listed(store, [other])] == [2]

    def test_a_mark_lasts_through_later_campaigns(self) -> None:
        with Store() as store:
            stream = begin(store)
            run_batch(store, stream, bad=(0,))
            signature = settle(store, stream, signature="new | one").signature
            assert listed(store)[0].is_new
            store.mark(signature, "reported", "issue 12")
            other = begin(store, replace(PLAN, seed=8))
            run_batch(store, other, bad=(0,))
            settle(store, other, signature="new | one")
            (row,) = listed(store, [other])
            assert (row.status, row.why) == ("reported", "issue 12")
            assert row.record.known.startswith("reported 20")
            store.mark(signature, "new")
            assert listed(store)[0].is_new
            assert [m.status for m in listed(store)[0].marks] == ["reported", "new"]
            with pytest.raises(UsageError):
                store.mark(signature, "ignored")

    def test_what_was_fixed_and_is_seen_again_has_regressed(self) -> None:
        with Store() as store:
            stream = begin(store)
            run_batch(store, stream, bad=(0,))
            signature = settle(store, stream, signature="new | one").signature
            store.mark(signature, "fixed")
            assert listed(store)[0].status == "fixed"
            other = begin(store, replace(PLAN, seed=8))
            run_batch(store, other, bad=(0,))
            settle(store, other, signature="new | one")
            (row,) = listed(store)
            assert row.status == "regressed"
            assert row.is_new
            assert row.record.known == ""

    def test_the_rules_of_known_findings_hold(self) -> None:
        with Store() as store:
            stream = begin(store)
            run_batch(store, stream, bad=(0,))
            known = "ReduceMax | F32 | expected NaN, got inf | option: xla_cpu_enable_fast_min_max"
            build = "cpu, PJRT 0.81, StableHLO 1.13.3"
            settle(store, stream, signature=known, executor="pjrt:xla081@defaults", build=build)
            (row,) = listed(store)
            assert (row.status, row.why) == ("known", "0001-fast-min-max-drops-nan")
            assert row.record.known == row.why


class TestMerge:
    def shard(self, path: Path, index: int, bad: tuple[int, ...], batches: int = 9, **changes: object) -> Path:
        with Store(path, create=True) as store:
            stream = begin(store, replace(PLAN, shard=index, shards=2, programs=24))
            for _ in range(batches):
                run_batch(store, stream, bad)
            if bad:
                settle(store, stream, signature="new | one", **changes)
        return path

    def test_two_shards_are_the_whole_campaign(self, tmp_path: Path) -> None:
        a = self.shard(tmp_path / "a", 0, (0,), instructions=3)
        b = self.shard(tmp_path / "b", 1, (0, 1), instructions=2)
        with Store() as whole:
            stream = begin(whole, replace(PLAN, programs=24))
            for number in range(6):
                run_batch(whole, stream, (0, 1) if number % 2 else (0,))
            expected = recorded(whole, [stream])
        with Store(tmp_path / "all", create=True) as store:
            merge(store, a)
            merge(store, b)
            assert audit(store, regenerate=9) == []
            campaign = recorded(store, store.shards())
            (row,) = listed(store)
        assert (campaign.programs, campaign.generator, campaign.cells) == (24, expected.generator, expected.cells)
        assert [t.verdicts for t in campaign.totals] == [t.verdicts for t in expected.totals]
        assert (row.record.instructions, row.programs) == (2, 9)

    def test_merging_again_changes_nothing(self, tmp_path: Path) -> None:
        a, b = self.shard(tmp_path / "a", 0, (0,)), self.shard(tmp_path / "b", 1, (0,))
        with Store(b) as store:
            store.mark("new | one", "reported", "issue 12")
        with Store(a) as store:
            merge(store, b)
            once = list(store.database.connection.iterdump())
            merge(store, b)
            assert list(store.database.connection.iterdump()) == once
            assert listed(store)[0].status == "reported"

    def test_of_one_shard_the_state_that_is_further_on_stays(self, tmp_path: Path) -> None:
        early, late = self.shard(tmp_path / "a", 0, (), 1), self.shard(tmp_path / "b", 0, (0,), 2)
        for ours, theirs in ((early, late), (late, early)):
            copy = tmp_path / f"copy-{ours.name}"
            shutil.copy(ours, copy)
            with Store(copy) as store:
                merge(store, theirs)
                assert store.done(1) == (8, 0)
                assert audit(store, regenerate=9) == []
                assert len(listed(store)) == 1

    def test_overlapping_shards_are_refused_and_nothing_is_half_done(self, tmp_path: Path) -> None:
        a = self.shard(tmp_path / "a", 0, (0,))
        with Store(tmp_path / "b", create=True) as store:
            begin(store, replace(PLAN, seed=99))
            begin(store, replace(PLAN, shards=3))
            with pytest.raises(UsageError, match="overlap"):
                merge(store, a)
            assert len(store.streams()) == 2
            assert listed(store) == []

    def test_a_source_that_is_none(self, tmp_path: Path) -> None:
        with Store() as store, pytest.raises(FormatError):
            merge(store, tmp_path / "absent")


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
