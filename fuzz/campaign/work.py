"""A campaign: generate programs, judge every executor on each, triage what disagrees, write it all into a store.

`work` is the only loop: `parity` runs it here over a store in memory, `fuzz run` in several processes over a file
(`fuzz.campaign.workers`). Executors that share a worker process run in one thread; while the workers compile, the main thread
generates and evaluates the next batch. Nothing here prints.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import gc
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from fuzz.findings.bundle import confirm, write_bundle
from fuzz.findings.known import load_known
from fuzz.findings.triage import Suspect, inspect, to_finding
from fuzz.records import Campaign, Finding
from fuzz.store import Doubt, Job, Kin, Plan, Store, Stream, digest
from fuzz.store.recorded import recorded
from fuzz.store.tally import Tally
from oracle.case import Case
from oracle.judge import Reference, judge, judge_many, prepare
from oracle.peers import Executor, NativeExecutor, Pool, Selection
from oracle.verdict import Answer, Verdict
from tenferro_ref import __version__
from tenferro_ref.errors import UsageError, WorkerDied

#: A batch that was taken so often without one answer is run a program at a time ...
_CLAIMS = 2
#: ... and a program that was begun so often, alone, without an answer has ended this process each time.
_STRIKES = 2
#: Batches that wait for their turn while one is compiled: what takes longer in one is made up for by another.
_AHEAD = 2
#: Objects made between two looks for circles among them; with Python's 700 that takes a tenth of a campaign's time.
_ALLOCATIONS = 100_000
#: Priority of a campaign beside the workers of its plugins.
_NICE = 10
#: How much longer than the first a second attempt at reducing may take.
_PATIENCE = 2
#: Opcodes are asked for of a module in so many programs, and of large modules in so many batches: some 3 and 30 ms each.
_SURVEYED, _SURVEYED_BATCHES = 8, 8
#: A kind of disagreement that has waited for so many seconds is reduced before more programs are checked, as long as reducing
#: has not taken more than this share of the time.
_WAIT, _SHARE = 15.0, 0.5
#: What dies of it, as the error in the answer says, and the attribution.
_THIS, _DEADLY = "of the campaign", "ends the process"


@dataclass
class Progress:
    """Told to the caller now and then; `phase` is "check" or "reduce"."""

    phase: str
    done: int
    total: int | None
    disagreements: int


Report = Callable[[Progress], None]


def run_campaign(
    plan: Plan,
    selection: Selection,
    pool: Pool,
    progress: Report = lambda _: None,
    *,
    threads: int = 1,
    bundles: Path | None = None,
) -> Campaign:
    """Run a campaign to its end, in this process.

    Parameters
    ----------
    threads
        Executors that run at a time.
    bundles
        Folder for the bundles of findings; None for none.

    Returns
    -------
    Campaign
        What a report shows; the programs depend on `plan.seed` alone.
    """
    with Store() as store:
        stream = begin(store, plan, selection)
        site = Worksite(
            store,
            stream,
            selection.executors,
            pool,
            threads=threads,
            bundles=bundles,
            confirms=False,
            progress=progress,
        )
        work(site, reduce_early=False)
        return recorded(store, [store.stream(stream.id)])


def begin(store: Store, plan: Plan, selection: Selection) -> Stream:
    """Write down a new campaign, or a shard of one."""
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    infos = (*(e.info() for e in selection.executors), *selection.missing)
    return store.begin(plan, infos, environment(), started)


@dataclass
class Worksite:
    """What one worker needs: the store, its executors, and who it is.

    Attributes
    ----------
    owner
        By which the store knows this worker.
    bundles
        Folder for the bundles of findings; None for none.
    confirms
        Whether each bundle is run in a clean interpreter.
    keeps_time
        Whether this worker counts the stream's time; with several workers somebody else does.
    seconds, spent
        By phase: since the last `flush`, and ever.
    """

    store: Store
    stream: Stream
    executors: Sequence[Executor]
    pool: Pool
    owner: str = "here"
    threads: int = 1
    bundles: Path | None = None
    confirms: bool = True
    keeps_time: bool = True
    progress: Report = lambda _: None
    seconds: Counter[str] = field(default_factory=Counter)
    spent: Counter[str] = field(default_factory=Counter)
    _lap: float = field(default_factory=time.perf_counter)

    @cached_property
    def groups(self) -> list[list[Executor]]:
        """Executors that share a worker process run one after another; the native ones form a group."""
        groups: dict[object, list[Executor]] = {}
        for executor in self.executors:
            groups.setdefault(getattr(executor, "worker", None) or type(executor), []).append(executor)
        return list(groups.values())

    @cached_property
    def by_name(self) -> dict[str, Executor]:
        return {executor.name: executor for executor in self.executors}

    def lap(self, phase: str) -> None:
        """Count the time since the last call under `phase`."""
        now = time.perf_counter()
        for counter in (self.seconds, self.spent):
            counter[phase] += now - self._lap  # type: ignore[assignment]  # Counter adds floats as well
        self._lap = now

    def flush(self) -> None:
        """Write the time down."""
        if self.keeps_time:
            self.store.add_elapsed(self.stream.id, sum(self.seconds.values()))
        self.store.add_seconds(self.stream.id, dict(self.seconds))
        self.seconds.clear()

    def tell(self, phase: str) -> None:
        if phase == "check":
            done, total = self.store.done(self.stream.id)[0], self.stream.plan.programs
        else:
            done, total = self.store.kin_counts(self.stream.id)
        self.progress(Progress(phase, done, total, self.store.suspects(self.stream.id)))


@dataclass(frozen=True, eq=False)
class _Batch:
    """A batch at work: its programs, what they should give, and the answers so far; all of them are in the store too."""

    job: Job
    cases: Sequence[Case]
    references: Sequence[Reference]
    answers: dict[tuple[int, str], Answer]
    #: What an executor is left with of a module after optimisation.
    opcodes: list[tuple[str, list[str]]] = field(default_factory=list)


def work(site: Worksite, *, reduce_early: bool) -> None:
    """Take batches until there are none, and reduce what disagrees: at once, or when all is checked."""
    for executor in site.executors:
        executor.open()  # in this thread: the kernel ends a worker process with the thread that started it
    with _one_of_many(), ThreadPoolExecutor(max_workers=max(1, min(site.threads, len(site.groups)))) as threads:
        pending: list[tuple[_Batch, list[Future[None]]]] = []
        for batch in _batches(site):
            if batch.job.claims > _CLAIMS:
                while pending:  # whatever else is at work must not be what ends this process now
                    _finish(site, *pending.pop(0))
                _run_carefully(site, batch)
                _finish(site, batch, [])
                continue
            _prepare(site, batch)
            pending.append((batch, [threads.submit(_judge_group, site, group, batch) for group in site.groups]))
            if len(pending) > _AHEAD:
                _finish(site, *pending.pop(0))
                if reduce_early:
                    _reduce_some(site)
        for entry in pending:
            _finish(site, *entry)
        while _reduce_one(site):
            pass
    site.flush()


@contextlib.contextmanager
def _one_of_many() -> Iterator[None]:
    """What suits a process beside as many others as there are cores.

    BLAS has one thread: matrices are small, and a second thread spins for a while after each product, to nobody's use. A batch
    is thousands of objects that refer to each other in no circle, and all go when it is sealed. Where a plugin compiles on
    every core, it goes first: there is time to prepare the next batch while it does not.
    """
    usual, priority = gc.get_threshold(), os.getpriority(os.PRIO_PROCESS, 0)
    gc.set_threshold(_ALLOCATIONS, *usual[1:])
    os.setpriority(os.PRIO_PROCESS, 0, max(priority, _NICE))  # of this thread, and those that it starts
    try:
        with threadpool_limits(1, "blas"):
            yield
    finally:
        gc.set_threshold(*usual)
        with contextlib.suppress(PermissionError):  # going back is not everybody's right
            os.setpriority(os.PRIO_PROCESS, 0, priority)


def reduce_rest(site: Worksite) -> None:
    """Reduce what disagrees and is not reduced yet."""
    for executor in site.executors:
        executor.open()
    with _one_of_many():
        while _reduce_one(site):
            pass
    site.flush()


def _batches(site: Worksite) -> Iterator[_Batch]:
    while job := site.store.claim(site.stream.id, site.owner):
        site.lap("check")
        cases = site.store.programs(job)
        if not cases:
            cases = site.stream.plan.cases(job.number)[: job.programs]
            site.store.put_programs(job, cases)
        site.lap("generate")
        batch = _Batch(job, cases, [Reference(c, NativeExecutor()) for c in cases], site.store.answers(job))
        yield batch


def _prepare(site: Worksite, batch: _Batch) -> None:
    """Compute what the programs should give, where somebody has not answered yet."""
    prepare(
        [
            reference
            for number, reference in enumerate(batch.references)
            if any((number, executor.name) not in batch.answers for executor in site.executors)
        ]
    )


def _judge_group(site: Worksite, group: Sequence[Executor], batch: _Batch) -> None:
    """Judge what is not answered yet; answers are kept as soon as the module that gave them is done.

    The native ones, which cost less than a transaction, are kept together.
    """
    numbers = range(len(batch.cases))
    size = max(executor.programs_a_module for executor in group) * site.stream.plan.input_sets
    if all(executor.peer.family == "native" for executor in group):
        size = len(numbers)
    for start in range(0, len(numbers), size):
        answers: list[tuple[int, Answer]] = []
        for executor in group:
            todo = [n for n in numbers[start : start + size] if (n, executor.name) not in batch.answers]
            answers += zip(todo, judge_many(executor, [batch.references[n] for n in todo]), strict=True)
        if answers:
            _keep(site, batch, answers)
        if not start // size % _SURVEYED:
            _survey(group, batch, numbers[start : start + size])


def _survey(group: Sequence[Executor], batch: _Batch, numbers: range) -> None:
    """Ask the compilers what they left of the module that begins with these programs, while they have it."""
    often = not batch.job.number % _SURVEYED_BATCHES
    for executor in group:
        if executor.peer.family == "pjrt" and (often or executor.programs_a_module == 1):
            verdicts = {batch.answers[n, executor.name].verdict for n in numbers}
            if verdicts.isdisjoint((Verdict.ERROR, Verdict.TIMEOUT, Verdict.CRASH)):
                batch.opcodes.append((executor.name, executor.opcodes([batch.references[n].case for n in numbers])))


def _keep(site: Worksite, batch: _Batch, answers: Sequence[tuple[int, Answer]]) -> None:
    site.store.put_answers(batch.job, answers)
    batch.answers.update({(number, answer.executor): answer for number, answer in answers})


def _run_carefully(site: Worksite, batch: _Batch) -> None:
    """Answer a program at a time, each announced: the one that ends this process is known at the next attempt."""
    for number, reference in enumerate(batch.references):
        for executor in site.executors:
            if (number, executor.name) in batch.answers:
                continue
            if site.store.strike(batch.job, number, executor.name) > _STRIKES:
                error = WorkerDied(worker=_THIS, how=f"ended {_STRIKES} times", stderr_tail="")
                answer = Answer(executor.name, Verdict.CRASH, reason=f"{error.kind}: {error}", error=error.to_json())
            else:
                answer = judge(executor, reference)
            _keep(site, batch, [(number, answer)])


def _finish(site: Worksite, batch: _Batch, futures: Sequence[Future[None]]) -> None:
    """Wait for the answers, count them, look at what disagrees, seal the batch."""
    for future in futures:
        future.result()
    tally, doubts = Tally(), []
    tally.add_cases(batch.cases)
    for number, case in enumerate(batch.cases):
        for executor in site.executors:
            answer = batch.answers[number, executor.name]
            tally.add_answer(case, answer)
            if answer.verdict.is_disagreement:
                if (answer.error or {}).get("worker") == _THIS:  # it must not be run again
                    suspect = Suspect(executor, case, answer, "", "", _DEADLY)
                else:
                    suspect = inspect(executor, case, answer, site.pool)
                if case.refusal is None:
                    tally.blame(suspect.op, suspect.dtype, executor.name, answer.verdict)
                kin = json.dumps(suspect.group)
                doubts.append(Doubt(number, case, answer, kin, suspect.op, suspect.dtype, suspect.attribution))
    for name, opcodes in batch.opcodes:
        tally.add_opcodes(name, opcodes)
    site.store.seal(batch.job, site.owner, batch.cases, tally, doubts)
    site.lap("check")
    site.flush()
    site.tell("check")


def _reduce_some(site: Worksite) -> None:
    """Reduce one kind, and then those that have waited long, unless reducing has had more than its share of the time."""
    while _reduce_one(site):
        seen = site.store.longest_waiting(site.stream.id)
        if seen is None or time.time() - seen < _WAIT or site.spent["reduce"] > _SHARE * sum(site.spent.values()):
            return


def _reduce_one(site: Worksite) -> bool:
    """Make a finding of one kind of disagreement; False if there is none to take."""
    site.lap("check")
    plan = site.stream.plan
    kin = site.store.claim_kin(site.stream.id, site.owner, plan.max_findings)
    if kin is None:
        return False
    site.tell("reduce")
    doubt = kin.smallest
    executor = site.by_name[doubt.answer.executor]
    suspect = Suspect(executor, doubt.case, doubt.answer, doubt.op, doubt.dtype, doubt.attribution)
    finding, case = _reduced(site, kin, suspect)
    confirmed = None
    if site.bundles is not None:
        folder = site.bundles / finding.id
        # a configuration that was drawn has been settled, and made simpler
        named = executor if finding.executor == executor.name else site.pool.make(finding.executor)
        write_bundle(folder, finding, named, case, site.stream.environment)
        confirmed = confirm(folder, allowed=(executor.name,)) if site.confirms else None
    site.store.settle(kin, finding, case, confirmed)
    site.lap("reduce")
    site.flush()
    return True


def _reduced(site: Worksite, kin: Kin, suspect: Suspect) -> tuple[Finding, Case]:
    """The finding; where the budget ran out and nobody knows the signature, after a second and longer attempt.

    A program that is not minimal has a signature of its own, which would make something known look new.
    """
    budget = site.stream.plan.reduce_seconds
    attempt = partial(to_finding, pool=site.pool, known=load_known(), programs=kin.programs, also=kin.also)
    finding, case = attempt(suspect, budget_seconds=budget)
    if finding.known or finding.reduce_seconds < budget or not budget:
        return finding, case
    again = dataclasses.replace(suspect, case=case)
    longer, case = attempt(again, budget_seconds=_PATIENCE * budget)
    seconds = finding.reduce_seconds + longer.reduce_seconds
    original = finding.original_instructions
    return dataclasses.replace(longer, original_instructions=original, reduce_seconds=seconds), case


def check_generator(store: Store, stream: Stream) -> None:
    """Make the first sealed batch again.

    Raises
    ------
    UsageError
        This version generates other programs than the campaign began with.
    """
    row = store.database.one(
        "SELECT number, programs, digest FROM batch WHERE stream = ? AND digest <> '' ORDER BY number LIMIT 1",
        (stream.id,),
    )
    plan = stream.plan
    if row and digest(plan.cases(row[0])[: row[1]]) != row[2]:
        raise UsageError(
            detail=f"{store.path}: this version generates other programs from seed {plan.seed}; begin a new campaign"
        )


def environment() -> tuple[tuple[str, str], ...]:
    """Versions and machine, for reports and bundles."""
    return (
        ("tenferro-ref", __version__),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("system", f"{platform.system()} {platform.machine()}"),
        ("processor", _processor()),
        ("cores", str(os.cpu_count())),
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or "unknown"
