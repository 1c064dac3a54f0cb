"""Campaigns: one loop, whatever the store; nothing is lost when a process dies, and the same seed gives the same again."""

from __future__ import annotations

import dataclasses
import gc
import os
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from fuzz.campaign import judging, reducing, worksite
from fuzz.campaign.audit import audit
from fuzz.campaign.programs import check_generator
from fuzz.campaign.recorded import recorded
from fuzz.campaign.supervisor import Tick
from fuzz.campaign.vacuity import Floor, vacuous
from fuzz.campaign.work import begin, run_campaign, work
from fuzz.campaign.workers import reduce_in_workers, run_workers
from fuzz.campaign.worksite import Progress, Worksite
from fuzz.findings.suspect import Suspect
from fuzz.generate.batches import generate
from fuzz.records import Campaign, Finding
from fuzz.store import Lock, Plan, Store
from fuzz.store.errors import StoreVersion
from oracle.case import Case
from oracle.peers import Execution, Executor, NativeExecutor, Pool, Selection, native_variants
from oracle.verdict import ExecutorInfo
from tenferro_ref.errors import OutputError, TenferroError, UsageError, WorkerDied
from tests.reports import sample
from tools.torture import EXECUTORS, torture

pytestmark = pytest.mark.once


PLAN = Plan(seed=5, programs=12, batch=4, reduce_seconds=0.2, generate=("derivatives=0", "modules=0"))
NATIVES = native_variants()[:3]


@dataclass(frozen=True)
class Odd(Executor):
    """A native executor that adds one to what programs of more than `limit` instructions give."""

    name: str = "odd"
    model: str = "numpy"
    limit: int = 3

    def run(self, case: Case) -> Execution:
        done = NativeExecutor().run(case)
        if len(case.program.instructions) <= self.limit:
            return done
        return Execution(tuple((o + 1).astype(o.dtype) if o.dtype != bool else ~o for o in done.outputs))


def selection(*more: object) -> Selection:
    return Selection((*NATIVES, *more), (ExecutorInfo("gone", False, "not here"),))  # type: ignore[arg-type]


def facts(campaign: Campaign) -> Campaign:
    """Without what differs from run to run."""
    totals = tuple(replace(t, seconds={}) for t in campaign.totals)
    findings = tuple(replace(f, reduce_seconds=0.0) for f in campaign.findings)
    return replace(campaign, seconds={}, started="", totals=totals, findings=findings)


def _one_answer(folder: Path) -> str:
    """The name of a command that gives the same to every program."""
    np.savez(folder / "out.npz", out0=np.zeros(3))
    return f"external:sh -c 'cp {folder}/out.npz \"$3\"' sh"


#: With room to reduce to the end: budgets that run out make runs differ.
FULL = replace(PLAN, reduce_seconds=60.0, max_findings=1)


class TestOneProcess:
    def test_every_program_is_judged_on_every_executor(self, pool: Pool) -> None:
        told: list[Progress] = []
        campaign = run_campaign(PLAN, selection(), pool, told.append, threads=2)
        assert campaign.programs == 12
        assert [t.verdicts for t in campaign.totals] == [{"pass": 12}] * 3
        assert [i.name for i in campaign.executors] == [*(e.name for e in NATIVES), "gone"]
        assert all((p.phase, p.total) == ("check", 12) and p.done <= 12 for p in told)
        assert len(told) >= 3  # a batch each, and programs of those that are not finished
        assert told[-1].done == 12
        assert {"generate", "check", "total"} <= campaign.seconds.keys()
        assert campaign.seconds["total"] >= campaign.seconds["generate"]

    def test_the_seed_decides(self, pool: Pool) -> None:
        one, two = (facts(run_campaign(PLAN, selection(), pool)) for _ in range(2))
        assert one == two
        assert facts(run_campaign(replace(PLAN, seed=6), selection(), pool)).generator != one.generator

    def test_what_disagrees_becomes_a_finding_or_is_counted(self, pool: Pool) -> None:
        campaign = run_campaign(FULL, selection(Odd()), pool)
        totals = {t.executor: t for t in campaign.totals}["odd"]
        assert totals.verdicts["mismatch"] > 1
        (finding,) = campaign.findings
        assert finding.executor == "odd"
        assert finding.instructions == Odd.limit + 1
        assert finding.programs + (totals.unexplained or 0) == totals.verdicts["mismatch"]

    @pytest.mark.parametrize(
        ("known", "seconds", "attempts"), [("", 9.0, [9.0, 18.0]), ("", 8.9, [9.0]), ("0001-x", 9.0, [9.0])]
    )
    def test_what_ran_out_of_budget_and_looks_new_is_reduced_again(
        self, monkeypatch: pytest.MonkeyPatch, known: str, seconds: float, attempts: list[float]
    ) -> None:
        """A program that is not minimal has a signature of its own."""
        budgets = []

        def to_finding(suspect: Suspect, *, budget_seconds: float, **_: object) -> tuple[Finding, Case]:
            budgets.append(budget_seconds)
            name = f"attempt {len(budgets)}"
            return sample.finding(known=known, signature=name, reduce_seconds=seconds), suspect.case

        monkeypatch.setattr("fuzz.campaign.reducing.to_finding", to_finding)
        plan = replace(PLAN, reduce_seconds=9.0, max_findings=1)
        with closing(Pool()) as pool:  # explaining a finding starts a worker
            (finding,) = run_campaign(plan, selection(Odd()), pool).findings
        assert budgets == attempts
        assert finding.signature == f"attempt {len(attempts)}"
        assert finding.reduce_seconds == seconds * len(attempts)

    def test_no_budget_reduces_nothing_and_hides_nothing(self, pool: Pool) -> None:
        campaign = run_campaign(replace(PLAN, max_findings=0), selection(Odd()), pool)
        totals = {t.executor: t for t in campaign.totals}["odd"]
        assert campaign.findings == ()
        assert totals.unexplained == totals.verdicts["mismatch"]

    def test_a_store_and_memory_give_the_same(self, tmp_path: Path, pool: Pool) -> None:
        with Store(tmp_path / "s", create=True) as store:
            stream = begin(store, FULL, selection(Odd()))
            work(Worksite(store, stream, (*NATIVES, Odd()), pool), alone=True)
            assert audit(store, regenerate=9) == []
            assert facts(recorded(store, [stream])) == facts(run_campaign(FULL, selection(Odd()), pool))

    def test_another_generator_is_refused(self, pool: Pool) -> None:
        with Store() as store:
            stream = begin(store, PLAN, selection())
            work(Worksite(store, stream, NATIVES, pool), alone=True)
            check_generator(store, stream)
            with store.database.write() as write:
                write.execute("UPDATE batch SET digest = 'other'")
            with pytest.raises(UsageError, match="other programs"):
                check_generator(store, stream)

    def test_a_full_disk_ends_it_and_more_room_lets_it_go_on(self, tmp_path: Path, pool: Pool) -> None:
        with Store(tmp_path / "s", create=True) as store:
            stream = begin(store, FULL, selection(Odd()))
            (pages,) = store.database.row(tuple[Any, ...], "PRAGMA page_count")
            store.database.row(tuple[Any, ...], f"PRAGMA max_page_count = {pages + 6}")
            with pytest.raises(OutputError, match="disk is full"):
                work(Worksite(store, stream, (*NATIVES, Odd()), pool), alone=True)
            store.database.row(tuple[Any, ...], "PRAGMA max_page_count = 100000")
            store.release()
            work(Worksite(store, stream, (*NATIVES, Odd()), pool), alone=True)
            assert audit(store, regenerate=9) == []
            assert facts(recorded(store, [stream])) == facts(run_campaign(FULL, selection(Odd()), pool))


#: Works on the store until program 1 of batch 1 is run, which ends the process as native code might.
DEADLY = """
import os, sys
from dataclasses import dataclass
import fuzz.campaign.judging, fuzz.campaign.work
from tests.fuzz.test_campaign import NATIVES, Odd, PLAN
from fuzz.campaign.work import work
from fuzz.campaign.worksite import Worksite
from fuzz.generate.batches import generate
from fuzz.store import Store
from oracle.peers import Pool

fuzz.campaign.work._CLAIMS = fuzz.campaign.judging._STRIKES = 1  # fewer deaths, the same way
victim = generate(PLAN.seed, 1, PLAN.batch)[1].fingerprint

@dataclass(frozen=True)
class Deadly(Odd):
    def run(self, case):
        if case.fingerprint == victim:
            os._exit(77)
        return NATIVES[0].run(case)

with Store(sys.argv[1]) as store:
    store.release()
    work(Worksite(store, store.stream(1), (*NATIVES, Deadly()), Pool(), owner=str(os.getpid())), alone=False)
"""


class TestDeath:
    def test_a_program_that_ends_the_process_is_found_out(self, tmp_path: Path) -> None:
        """It is run alone after a few deaths, then recorded as a crash; everything else is done as ever."""
        path = tmp_path / "s.sqlite"
        with Store(path, create=True) as store:
            stream = begin(store, replace(PLAN, max_findings=0), selection(Odd()))
        root = str(Path(__file__).resolve().parents[2])
        deaths = 0
        while True:
            done = subprocess.run(
                [sys.executable, "-c", DEADLY, path], env={**os.environ, "PYTHONPATH": root}, check=False
            )
            if done.returncode == 0:
                break
            assert done.returncode == 77
            deaths += 1
            assert deaths < 6
        with Store(path) as store:
            assert audit(store, regenerate=9) == []
            campaign = recorded(store, [stream])
            ((fingerprint, text),) = store.database.rows(tuple[Any, ...], "SELECT fingerprint, answer FROM suspect")
        assert {t.executor: t.verdicts for t in campaign.totals}["odd"] == {"pass": 11, "crash": 1}
        assert fingerprint == generate(PLAN.seed, 1, PLAN.batch)[1].fingerprint
        assert "ended 1 times" in text

    def test_killed_workers_lose_nothing_and_do_nothing_twice(self, tmp_path: Path) -> None:
        """`python -m tools.torture --kills 200` is the same at length."""
        result = torture(tmp_path, replace(PLAN, seed=3, programs=96, batch=8), EXECUTORS, kills=2, every=0.4)
        assert result.problems == ()
        assert (result.kills, result.deaths, result.programs) == (2, 2, 96)
        assert result.copies > 0

    def test_as_many_begin_at_a_time_as_there_are_cores(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("fuzz.campaign.workers.os.cpu_count", lambda: 1)
        seen: list[tuple[int, int]] = []
        with Store(tmp_path / "s", create=True) as store, Lock(tmp_path / "s") as lock:
            stream = begin(store, replace(PLAN, programs=120), Selection(NATIVES, ()))

            def tick(now: Tick) -> None:
                held = store.owners(stream.id)
                seen.append((now.slots, len(held)))

            assert run_workers(tmp_path / "s", stream, 3, lock=lock, tick=tick) == 0
            assert store.done(stream.id)[0] == 120
        alone = [held for slots, held in seen if slots == 1]
        assert alone[0] == 0  # the second one is not begun before the first has work
        assert max(slots for slots, _ in seen) > 1

    def test_reducing_in_processes_comes_to_the_same(self, tmp_path: Path) -> None:
        """Of a command that has one answer to everything; the processes are told which commands may run."""
        path, told, plan = tmp_path / "s", list[Progress](), replace(PLAN, programs=8, reduce_seconds=60.0)
        with closing(Pool()) as pool, Lock(path) as lock:
            chosen = Selection((NATIVES[0], pool.make(_one_answer(tmp_path))), ())
            in_processes = partial(reduce_in_workers, workers=2, lock=lock)
            found = run_campaign(plan, chosen, pool, told.append, path=path, reduce=in_processes)
            same = run_campaign(plan, chosen, pool)
        assert len(same.findings) > 2
        assert {f.signature for f in found.findings} == {f.signature for f in same.findings}
        assert [t.verdicts for t in found.totals] == [t.verdicts for t in same.totals]
        reducing = [p for p in told if p.phase == "reduce"]
        assert reducing
        assert {p.total for p in reducing} == {len(same.findings)}
        with Store(path, readonly=True) as store:
            assert audit(store, regenerate=9) == []

    def test_an_interruption_while_processes_reduce_ends_them(self, tmp_path: Path) -> None:
        path = tmp_path / "s"

        def interrupt(progress: Progress) -> None:
            if progress.phase == "reduce":
                raise KeyboardInterrupt

        with closing(Pool()) as pool, Lock(path) as lock:
            chosen = Selection((NATIVES[0], pool.make(_one_answer(tmp_path))), ())
            in_processes = partial(reduce_in_workers, workers=2, lock=lock)
            campaign = run_campaign(replace(PLAN, programs=4), chosen, pool, interrupt, path=path, reduce=in_processes)
        assert campaign.interrupted
        assert campaign.programs == 4
        with Store(path, readonly=True) as store:  # what they held is free
            assert store.owners(store.streams()[0].id) == frozenset()

    def test_workers_that_cannot_begin_say_why(self, tmp_path: Path) -> None:
        path = tmp_path / "s.sqlite"
        with Store(path, create=True) as store, Lock(path) as lock:
            stream = begin(store, PLAN, Selection((*NATIVES, Odd("pjrt:/no/such.so")), ()))
            with pytest.raises(TenferroError, match=r"no/such\.so"):
                run_workers(path, stream, 1, lock=lock)
            with store.database.write() as write:
                write.execute("PRAGMA user_version = 99")
            with pytest.raises(StoreVersion):
                run_workers(path, stream, 1, lock=lock)

    def test_workers_that_only_die_are_not_replaced_for_ever(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("fuzz.campaign.workers._HOPELESS", 1)
        monkeypatch.setattr(sys, "executable", shutil.which("false"))
        with Store(tmp_path / "s", create=True) as store, Lock(tmp_path / "s") as lock:
            stream = begin(store, PLAN, selection())
            with pytest.raises(WorkerDied, match="2 times"):
                run_workers(tmp_path / "s", stream, 1, lock=lock)


class TestVacuity:
    RICH = sample.rich()

    def test_what_is_enough(self) -> None:
        assert vacuous(self.RICH, Floor()) == ()

    @pytest.mark.parametrize(
        ("floor", "words"),
        [
            (Floor(programs=10**6), "at least 1000000"),
            (Floor(executors=("no-such",)), "no-such took no part: it was not selected"),
            (Floor(decided=1.0), "(100 %) are asked for"),
        ],
    )
    def test_what_falls_short(self, floor: Floor, words: str) -> None:
        assert any(words in reason for reason in vacuous(self.RICH, floor))

    def test_an_absent_executor_is_named_with_its_reason(self) -> None:
        info = next(i for i in self.RICH.executors if not i.available)
        (reason,) = vacuous(self.RICH, Floor(executors=(info.name,)))
        assert info.reason in reason

    def test_refusing_everything_is_not_taking_part(self) -> None:
        totals = tuple(dataclasses.replace(t, verdicts={"unsupported": 9}) for t in self.RICH.totals)
        reasons = vacuous(replace(self.RICH, totals=totals), Floor(executors=(totals[0].executor,)))
        assert "no executor answered a single program" in reasons
        assert any("took no part: it answered no program" in reason for reason in reasons)

    def test_nothing_is_vacuous(self) -> None:
        assert vacuous(sample.empty(), Floor())


@pytest.mark.parametrize(("wait", "share", "at_once"), [(0.0, 1.0, True), (3600.0, 1.0, False), (0.0, 0.0, False)])
def test_kinds_that_wait_are_reduced_before_more_is_checked(
    wait: float, share: float, at_once: bool, monkeypatch: pytest.MonkeyPatch, pool: Pool
) -> None:
    """One kind a batch; more where one has waited for too long and reducing has not had its share of the time."""
    monkeypatch.setattr(reducing, "_WAIT", wait)
    monkeypatch.setattr(reducing, "_SHARE", share)
    monkeypatch.setattr(worksite, "_OFTEN", 3600.0)  # a report a batch
    phases: list[str] = []
    executors = (NATIVES[0], Odd(limit=0))
    plan = replace(PLAN, programs=8, batch=2, reduce_seconds=0.05)
    with Store() as store:
        stream = begin(store, plan, Selection(executors, ()))
        site = Worksite(store, stream, executors, pool, progress=lambda p: phases.append(p.phase))
        work(site, alone=False)
        assert store.longest_waiting(stream.id) is None
    assert phases.count("check") == 4
    early = "".join(p[0] for p in phases)
    after_first = early[: early.index("c", 1)].count("r")  # between the first batch and the second
    assert after_first > 1 if at_once else after_first == 1


def test_a_campaign_steps_back_for_its_plugins(monkeypatch: pytest.MonkeyPatch, pool: Pool) -> None:
    """Also the threads that wait for them; afterwards all is as before."""

    def state() -> tuple[int, set[int], int]:
        threads = {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
        return os.getpriority(os.PRIO_PROCESS, 0), threads, gc.get_threshold()[0]

    seen, before, judge = [], state(), judging.judge_many

    def looked(*args: Any) -> Any:
        seen.append(state())
        return judge(*args)

    monkeypatch.setattr(judging, "judge_many", looked)
    run_campaign(replace(PLAN, programs=2), Selection((NativeExecutor(),), ()), pool)
    assert seen
    assert set(map(repr, seen)) == {repr((max(10, before[0]), {1}, 100_000))}
    if os.geteuid() == 0:  # others may not go back
        assert state() == before
    else:
        assert state()[1:] == before[1:]
