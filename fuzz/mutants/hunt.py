"""Hunting a mutant: how many programs until some oracle sees it, and how small the evidence gets."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from fuzz.findings.reduce import reduce_case
from fuzz.findings.triage import evaluate_all
from fuzz.mutants.catalogue import BY_NAME, Mutant
from fuzz.mutants.directed import refused
from fuzz.mutants.freedoms import taken
from fuzz.mutants.looks import CRASHES, JUDGED, SECONDS, SIMPLIFIED, SMALL, fresh, limited, look, watch
from fuzz.mutants.programs import Item, programs
from fuzz.mutants.promises import again, comparison, enclosed, layout, passes
from fuzz.mutants.rewrite import Site, patched, prepare
from fuzz.mutants.stacks import stacks
from fuzz.mutants.transfers import transfers
from fuzz.mutants.verdicts import verdicts
from fuzz.mutants.witnesses import Reloaded, Standard, ownership, segmentation, tropical
from oracle.case import Case
from oracle.judge import Reference, judge, judge_many
from oracle.peers import Executor, NativeExecutor, Peer, Pool
from oracle.verdict import Verdict
from tenferro_ref.errors import UsageError

#: Witnesses that are executors, by name.
_OWN: dict[str, Executor] = {
    e.name: e for e in (*JUDGED, SIMPLIFIED, SMALL, Reloaded(), Standard(fast=True), Standard("semiring-required"))
}
#: Witnesses that are none.
_REASONS: dict[str, Callable[[Case], str]] = {
    "tropical": tropical,
    "ownership": ownership,
    "segmentation": segmentation,
    "refused": refused,
    "passes": passes,
    "layout": layout,
    "comparison": comparison,
    "verdicts": verdicts,
    "enclosed": enclosed,
    "freedoms": taken,
    "stacks": stacks,
    "again": again,
    "transfers": transfers,
}
#: Programs that are compiled alone before modules hold many.
_ALONE = 8
#: Seconds for a plugin, whose process may have to start first.
_PATIENCE = 60.0
_PLANTED = frozenset(e.name for e in JUDGED)


@dataclass(frozen=True, eq=False)
class Kill:
    """What became of a mutant.

    Attributes
    ----------
    programs
        How many were looked at, the killing one included.
    entered, changed
        How many of them entered the changed code, and how many looked different for it.
    executor, reason
        Who saw it first and what it saw; "" if it survived.
    case
        The reduced program, None if it survived.
    """

    mutant: Mutant
    programs: int
    executor: str = ""
    reason: str = ""
    case: Case | None = None
    original_instructions: int = 0
    entered: int = 0
    changed: int = 0
    seconds: float = 0.0

    @property
    def killed(self) -> bool:
        return bool(self.executor)


def find(name: str) -> Mutant:
    """The mutant of that name.

    Raises
    ------
    UsageError
        There is none.
    """
    if name not in BY_NAME:
        raise UsageError(detail=f"unknown mutant {name!r}; `tenferro-ref mutants list` shows all")
    return BY_NAME[name]


def activate(which: str) -> None:
    """Switch a mutant on for the rest of this process: what a worker does at its start."""
    patch = find(which).patch() if which in BY_NAME else patched(Site.from_token(which))
    patch.__enter__()
    _ACTIVE.append(patch)


#: A patch that nobody holds ends.
_ACTIVE: list[AbstractContextManager[Any]] = []


class Hunter:
    """Hunts mutants one after the other; the workers of plugins live as long as it does.

    Parameters
    ----------
    executors
        Who is asked; empty for those that `corpus.watch` names for the mutant's place.
    """

    def __init__(self, seed: int, executors: Sequence[str] = (), *, max_programs: int = 2000) -> None:
        self.seed = seed
        self.executors = tuple(executors)
        self.max_programs = max_programs
        self.sane = Pool()

    def __enter__(self) -> Hunter:
        return self

    def __exit__(self, *_: object) -> None:
        self.sane.close()

    def hunt(self, mutant: Mutant, *, reduce_seconds: float = 0.0) -> Kill:
        """Check programs with the fault switched on until a witness disagrees that agrees without it."""
        token = "" if mutant.site is None else mutant.site.to_token()
        if not mutant.in_worker:
            return self._hunt(mutant, self.sane, reduce_seconds)
        pool = Pool(preload=f"fuzz.mutants.hunt:activate:{token or mutant.name}")
        try:
            return self._hunt(mutant, pool, reduce_seconds)
        finally:
            pool.close()

    def _hunt(self, mutant: Mutant, pool: Pool, reduce_seconds: float) -> Kill:
        start = time.perf_counter()
        known, kind = programs(self.seed, mutant.place), watch(mutant.place)
        names = self.executors or kind.witnesses
        codes = None if mutant.site is None or kind.look is None else prepare(mutant.site).codes
        entered = changed = 0

        def evidence(name: str, case: Case) -> str:
            """The reason of a disagreement that is there with the fault and not without."""
            with mutant.patch():
                reason = self._reason(pool, name, case)
            return reason if reason and not self._reason(self.sane, name, case) else ""

        for number in count():
            chunk = [i for i in known.chunk(number) if i.number <= self.max_programs]
            if not chunk:
                break
            items = [i for i in chunk if codes is None or not codes.isdisjoint(i.entered)]
            with mutant.patch():
                suspects = [i for i in items if kind.look is None or look(kind, i.case) != i.look]
                # one module for all that is left, once single programs have shown nothing
                together = [n for n in names if Peer.parse(n).family == "pjrt"] if changed > _ALONE else []
                loud = {name: self._loud(pool, name, suspects) for name in together}
            for item in items:
                entered += 1
                if item not in suspects:
                    continue
                changed += 1
                for name in names:
                    reason = evidence(name, item.case) if item.number in loud.get(name, {item.number}) else ""
                    if reason:
                        case, size = item.case, len(item.case.program.instructions)
                        if reduce_seconds:
                            still = partial(_shows, evidence, name)
                            case = reduce_case(case, still, evaluate=evaluate_all, budget_seconds=reduce_seconds).case
                        seconds = time.perf_counter() - start
                        return Kill(mutant, item.number, name, reason, case, size, entered, changed, seconds)
        seconds = time.perf_counter() - start
        return Kill(mutant, self.max_programs, entered=entered, changed=changed, seconds=seconds)

    def _loud(self, pool: Pool, name: str, items: list[Item]) -> set[int]:
        """Which of these disagree, as far as one look at all of them together tells."""
        references = [Reference(fresh(i.case), NativeExecutor()) for i in items]
        try:
            answers = judge_many(_executor(pool, name), references)
        except CRASHES:
            return {i.number for i in items}
        return {i.number for i, a in zip(items, answers, strict=True) if a.verdict.is_disagreement}

    def _reason(self, pool: Pool, name: str, case: Case) -> str:
        """What a witness has to say against a case, "" for nothing."""
        case = fresh(case)
        try:
            with limited(_PATIENCE if Peer.parse(name).family == "pjrt" else SECONDS):
                if name in _REASONS:
                    return _REASONS[name](case)
                answer = judge(_executor(pool, name), Reference(case, NativeExecutor()))
        except CRASHES as error:  # what no typed error foresees is a disagreement too
            return f"{name} raises {type(error).__name__}: {error}"
        if name in _PLANTED:
            return "" if answer.verdict.is_disagreement else "a planted error is accepted"
        if answer.verdict in (Verdict.UNSUPPORTED, Verdict.UNDECIDED):  # it was neither without the fault
            return f"{name} raises {answer.reason}" if answer.verdict is Verdict.UNSUPPORTED else answer.reason
        return answer.reason if answer.verdict.is_disagreement else ""


def _executor(pool: Pool, name: str) -> Executor:
    return _OWN[name] if name in _OWN else pool.make(name)


def hunt(
    mutant: Mutant, executors: Sequence[str] = (), *, seed: int, max_programs: int = 2000, reduce_seconds: float = 20.0
) -> Kill:
    """Hunt one mutant; see `Hunter`."""
    with Hunter(seed, executors, max_programs=max_programs) as hunter:
        return hunter.hunt(mutant, reduce_seconds=reduce_seconds)


def _shows(evidence: Callable[[str, Case], str], name: str, case: Case) -> bool:
    return bool(evidence(name, case))


__all__ = ["Hunter", "Kill", "activate", "find", "hunt"]
