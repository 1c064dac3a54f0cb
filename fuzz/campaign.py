"""A campaign: generate programs, judge every executor on each, triage what disagrees, record it all.

Executors that share a worker process run in one thread; while the workers compile, the main thread generates and
evaluates the next batch. Nothing here prints.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import platform
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from fuzz.generate import describe, generate
from fuzz.known import load_known
from fuzz.records import Campaign, Cell, Finding, Totals
from fuzz.triage import Suspect, inspect, to_finding
from oracle.case import Case
from oracle.executors import Executor, NativeExecutor, PjrtExecutor, Pool, Selection
from oracle.judge import Reference, judge_many
from oracle.verdict import Answer, Verdict
from tenferro_ref import __version__
from tenferro_ref.ops import ELEMENTWISE, INDEXING, REDUCTIONS, STRUCTURAL, Constant, DotGeneral, Extension

BATCH = 32
#: Points of the accuracy plot kept an executor.
_WIDTHS = 4000


@dataclass(frozen=True)
class Settings:
    """What to run.

    Attributes
    ----------
    programs, minutes
        Whichever is reached first ends the generation; None is no limit, at least one must be given.
    reduce_seconds
        Budget for reducing one suspect.
    max_findings
        Suspects reduced at most; groups beyond that are listed unreduced in the counts.
    """

    seed: int
    programs: int | None = 400
    minutes: float | None = None
    workers: int = os.cpu_count() or 1
    reduce_seconds: float = 20.0
    max_findings: int = 40
    command: str = ""


_GROUPS = {
    op.__name__: group
    for group, ops in (
        ("elementwise", ELEMENTWISE),
        ("structural", (*STRUCTURAL, Constant)),
        ("reduction", REDUCTIONS),
        ("indexing", INDEXING),
        ("contraction", (DotGeneral,)),
        ("extension", (Extension,)),
    )
    for op in ops
}


@dataclass
class Progress:
    """Told to the caller now and then; `phase` is "check" or "reduce"."""

    phase: str
    done: int
    total: int | None
    disagreements: int


@dataclass
class _Tally:
    verdicts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    cells: dict[tuple[str, str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    cell_ulp: dict[tuple[str, str, str], float] = field(default_factory=dict)
    numbers: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    seconds: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    worst_ulp: dict[str, float] = field(default_factory=dict)
    widths: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    generator: Counter[str] = field(default_factory=Counter)

    def add(self, case: Case, answer: Answer) -> None:
        name, comparison = answer.executor, answer.comparison
        self.verdicts[name][answer.verdict.value] += 1
        self.numbers[name].update(
            elements=comparison.elements, decided=comparison.decided, forgiven=comparison.forgiven
        )
        self.seconds[name].update(answer.seconds)
        room = _WIDTHS - len(self.widths[name])
        self.widths[name] += comparison.widths[: max(room, 0)]
        if comparison.worst_ulp is not None:
            self.worst_ulp[name] = max(self.worst_ulp.get(name, 0.0), comparison.worst_ulp)
        if answer.verdict.is_disagreement:
            return  # the op to blame is known only after triage
        types = case.program.slot_types
        for op, dtype in {(i.op.name, types[i.output_slots[0]].dtype.name) for i in case.program.instructions}:
            self.cells[op, dtype, name][answer.verdict.value] += 1
        last = case.program.instructions[-1] if case.program.instructions else None
        if last is not None and comparison.worst_ulp is not None:
            key = (last.op.name, types[last.output_slots[0]].dtype.name, name)
            self.cell_ulp[key] = max(self.cell_ulp.get(key, 0.0), comparison.worst_ulp)

    def blame(self, suspect: Suspect) -> None:
        op = suspect.op.partition("(")[0] or "(none)"
        self.cells[op, suspect.dtype, suspect.executor.name][suspect.answer.verdict.value] += 1


def run_campaign(
    settings: Settings, selection: Selection, pool: Pool, progress: Callable[[Progress], None] = lambda _: None
) -> Campaign:
    """Run a campaign to its end.

    Returns
    -------
    Campaign
        What a report shows; the programs depend on `settings.seed` alone.
    """
    started = datetime.datetime.now(datetime.UTC)
    clock = time.perf_counter()
    tally = _Tally()
    suspects: list[Suspect] = []
    phases: dict[str, float] = {"generate": 0.0}
    groups = _groups(selection.executors)
    programs = batch = 0
    with ThreadPoolExecutor(max_workers=max(1, min(settings.workers, len(groups)))) as threads:
        pending: list[tuple[list[Reference], list[Future[list[list[Answer]]]]]] = []
        while not _enough(settings, programs, clock):
            start = time.perf_counter()
            count = BATCH if settings.programs is None else min(BATCH, settings.programs - programs)
            cases = generate(settings.seed, batch, BATCH)[:count]
            phases["generate"] += time.perf_counter() - start
            references = [Reference(case, NativeExecutor()) for case in cases]
            for reference in references:
                reference.prepare(executor.model for executor in selection.executors)
            pending.append((references, [threads.submit(_judge_group, group, references) for group in groups]))
            if len(pending) > 1:
                suspects += _collect(*pending.pop(0), tally, pool)
            programs, batch = programs + len(cases), batch + 1
            progress(Progress("check", programs, settings.programs, len(suspects)))
        for references, futures in pending:
            suspects += _collect(references, futures, tally, pool)
    phases["check"] = time.perf_counter() - clock - phases["generate"]
    findings, unexplained = _findings(settings, suspects, tally, pool, progress)
    phases["total"] = time.perf_counter() - clock
    phases["reduce"] = phases["total"] - phases["check"] - phases["generate"]
    return Campaign(
        seed=settings.seed,
        started=started.isoformat(timespec="seconds"),
        command=settings.command,
        programs=programs,
        seconds={k: round(v, 3) for k, v in phases.items()},
        executors=(*(e.info() for e in selection.executors), *selection.missing),
        totals=tuple(_totals(e.name, tally, unexplained[e.name]) for e in selection.executors),
        cells=tuple(
            Cell(op, dtype, name, dict(verdicts), tally.cell_ulp.get((op, dtype, name)), _GROUPS.get(op, ""))
            for (op, dtype, name), verdicts in sorted(tally.cells.items())
        ),
        findings=findings,
        generator=dict(sorted(tally.generator.items())),
        environment=environment(),
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


def _enough(settings: Settings, programs: int, clock: float) -> bool:
    if settings.programs is not None and programs >= settings.programs:
        return True
    return settings.minutes is not None and time.perf_counter() - clock >= 60 * settings.minutes


def _groups(executors: Sequence[Executor]) -> list[list[Executor]]:
    """Executors that share a worker run one after another; the native ones form a group."""
    groups: dict[object, list[Executor]] = {}
    for executor in executors:
        key = executor.worker.name if isinstance(executor, PjrtExecutor) else "native"
        groups.setdefault(key, []).append(executor)
    return list(groups.values())


def _judge_group(group: Sequence[Executor], references: Sequence[Reference]) -> list[list[Answer]]:
    """Answers by reference, then executor."""
    by_executor = [judge_many(executor, references) for executor in group]
    return [list(answers) for answers in zip(*by_executor, strict=True)]


def _collect(
    references: Sequence[Reference], futures: Sequence[Future[list[list[Answer]]]], tally: _Tally, pool: Pool
) -> list[Suspect]:
    suspects = []
    answers_by_group = [future.result() for future in futures]
    for i, reference in enumerate(references):
        tally.generator.update(describe(reference.case))
        for answers in answers_by_group:
            for answer in answers[i]:
                tally.add(reference.case, answer)
                if answer.verdict.is_disagreement:
                    suspects.append(inspect(pool.make(answer.executor), reference.case, answer, pool))
    return suspects


def _findings(
    settings: Settings,
    suspects: Sequence[Suspect],
    tally: _Tally,
    pool: Pool,
    progress: Callable[[Progress], None],
) -> tuple[tuple[Finding, ...], Counter[str]]:
    """One finding a signature, and how many disagreements of each executor are in none.

    Only one suspect of each group is reduced, the smallest; groups beyond `max_findings` stay unexplained.
    """
    groups: dict[tuple[str, ...], list[Suspect]] = {}
    for suspect in suspects:
        tally.blame(suspect)
        groups.setdefault(suspect.group, []).append(suspect)
    findings: dict[str, Finding] = {}
    unexplained: Counter[str] = Counter()
    ranked = sorted(groups.values(), key=len, reverse=True)
    for done, group in enumerate(ranked):
        progress(Progress("reduce", done, len(ranked), len(suspects)))
        if done >= settings.max_findings:
            unexplained.update(s.executor.name for s in group)
            continue
        smallest = min(group, key=lambda s: len(s.case.program.instructions))
        also = tuple(sorted({s.executor.name for s in group} - {smallest.executor.name}))
        programs = len({s.case.fingerprint for s in group})
        finding = to_finding(
            smallest, pool, load_known(), programs=programs, also=also, budget_seconds=settings.reduce_seconds
        )
        findings[finding.signature] = _merge(findings.get(finding.signature), finding)
    return tuple(sorted(findings.values(), key=lambda f: (bool(f.known), -f.programs, f.signature))), unexplained


def _merge(old: Finding | None, new: Finding) -> Finding:
    if old is None:
        return new
    keep, other = (old, new) if old.instructions <= new.instructions else (new, old)
    also = tuple(sorted({*old.also, *new.also, other.executor} - {keep.executor}))
    return dataclasses.replace(keep, also=also, programs=old.programs + new.programs)


def _totals(name: str, tally: _Tally, unexplained: int) -> Totals:
    numbers = tally.numbers[name]
    return Totals(
        executor=name,
        verdicts={v.value: tally.verdicts[name][v.value] for v in Verdict if tally.verdicts[name][v.value]},
        elements=numbers["elements"],
        decided=numbers["decided"],
        forgiven=numbers["forgiven"],
        worst_ulp=tally.worst_ulp.get(name),
        seconds={k: round(v, 3) for k, v in tally.seconds[name].items()},
        widths=tuple(tally.widths[name]),
        unexplained=unexplained,
    )
