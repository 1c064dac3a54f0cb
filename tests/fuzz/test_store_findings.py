"""What a store counts and finds: tallies add up, marks last, shards merge."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.campaign.audit import audit
from fuzz.campaign.recorded import recorded
from fuzz.campaign.tally import Tally
from fuzz.cli.listing import line
from fuzz.findings.listed import listed
from fuzz.generate.batches import generate
from fuzz.store import Counts, Disagreement, Store
from fuzz.store.counts import WIDTHS
from fuzz.store.merge import merge
from oracle.verdict import ExecutorInfo, Verdict
from tenferro_ref.errors import (
    FormatError,
    UsageError,
)
from tests.fuzz.stores import PLAN, answer, begin, cases_of, run_batch, settle


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.sqlite"


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
                part.blame(case, "Add(Multiply)", "F32", replace(answer("native"), verdict=Verdict.CRASH))
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
    def test_a_finding_names_all_cells_that_led_to_it(self) -> None:
        with Store() as store:
            stream = begin(store)
            run_batch(store, stream, bad=(0, 1, 2))
            with store.database.write() as write:
                write.execute("UPDATE suspect SET op = 'Exp(Add)', dtype = 'F64' WHERE number = 1")
            settle(store, stream)
            (found,) = recorded(store, [stream]).findings
            assert found.located == (("Add", "F32", "other"), ("Exp", "F64", "other"))
            assert found.unconfirmed == ""
            for why, shown in (("", "its bundle does not show it"), ("mismatch of another kind",) * 2):
                with store.database.write() as write:  # earlier stores do not say why
                    write.execute(
                        "UPDATE finding SET record = json_set(record, '$.unconfirmed', ?), confirmed = 0", (why,)
                    )
                (row,) = listed(store)
                assert row.record.unconfirmed == shown
                assert line(row).endswith(f", UNCONFIRMED: {shown}]")
                assert line(replace(row, status="regressed")).split()[:2] == ["REGRESSED", row.id]
            store.confirm(row.finding)
            (row,) = listed(store)
            assert row.record.unconfirmed == "mismatch of another kind"
            store.confirm(replace(row.finding, unconfirmed=""))
            (row,) = listed(store)
            assert (row.record.unconfirmed, row.stored.confirmed, row.stored.afresh) == ("", True, True)

    def test_the_smallest_suspect_is_reduced(self) -> None:
        with Store() as store:
            stream = begin(store)
            job = run_batch(store, stream, bad=(0, 1, 2, 3))
            group = store.claim_group(stream.id, "w", 5)
            assert job
            assert group
            sizes = [len(c.program.instructions) for c in cases_of(PLAN, job)]
            assert len(group.smallest.case.program.instructions) == min(sizes)
            assert (group.programs, group.also) == (4, ())
            assert store.claim_group(stream.id, "v", 5) is None
            store.release("w")
            assert store.claim_group(stream.id, "v", 0) is None
            assert store.claim_group(stream.id, "v", 1) is not None

    def test_what_is_unlike_the_others_is_reduced_first(self) -> None:
        with Store() as store:
            stream = begin(store)
            job = store.claim(stream.id, "w")
            assert job
            groups = (("pow of I64", "Pow"), ("pow of I64", "Pow"), ("pow of I32", "Pow"), ("exp", "Exp"))
            cases = cases_of(PLAN, job)
            shown = [
                Disagreement(n, case, answer("other", Verdict.MISMATCH), group, op, "F32", "native")
                for n, (case, (group, op)) in enumerate(zip(cases, groups, strict=True))
            ]
            store.put_programs(job, cases)
            store.seal(job, "w", cases, Tally(), shown)
            assert [group.name for group in iter(lambda: store.claim_group(stream.id, "w", 5), None)] == [
                "pow of I64",
                "exp",
                "pow of I32",
            ]

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

    @pytest.mark.parametrize(
        ("build", "status"), [("0.81, StableHLO 1.13.3", "known"), ("0.115, StableHLO 1.20.0", "new")]
    )
    def test_a_finding_is_known_on_the_builds_that_its_rules_name(self, build: str, status: str) -> None:
        """Another one that shows it has regressed, and nobody knows."""
        known = "Log1p | F64 | expected finite, got other finite | every lane"
        with Store() as store:
            stream = store.begin(PLAN, [ExecutorInfo("other", True, build=f"cpu, PJRT {build}")], (), "")
            run_batch(store, stream, bad=(0,))
            settle(store, stream, signature=known, executor="native", build="cpu, PJRT 0.81, StableHLO 1.13.3")
            (row,) = listed(store)
        assert row.status == status
        if status == "new":
            assert (row.why, row.record.known) == ("the rules of 0002-f64-log1p-many-ulps say nothing of other", "")


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
