"""Hunting a mutant: how many programs until an oracle sees it, and how small the evidence gets; else, does a law fail?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from fuzz.findings.reduce import reduce_case
from fuzz.findings.suspect import evaluate_all
from fuzz.mutants.catalogue import find
from fuzz.mutants.laws import Tests
from fuzz.mutants.looks import BY_LAWS, CRASHES, OWN, SECONDS, fresh, limited, look, watch
from fuzz.mutants.mutant import Mutant
from fuzz.mutants.programs import Item, programs
from fuzz.mutants.rewrite import prepare
from oracle.case import Case
from oracle.judge import Reference, judge, judge_many
from oracle.peers import Executor, NativeExecutor, Peer, Pool
from oracle.verdict import Verdict

#: Programs that are compiled alone before modules hold many.
_ALONE = 8
#: Seconds for a plugin, whose process may have to start first.
_PATIENCE = 60.0
#: Recorded as the executor of a fault that no program showed, but a law, or no law either, but a unit test.
LAW, UNIT_TEST = "law", "unit test"


@dataclass(frozen=True, eq=False)
class Kill:
    """What became of a mutant.

    Attributes
    ----------
    programs
        How many were looked at, the killing one included; 0 if a law saw it, or laws alone were asked.
    entered, changed
        How many of them entered the changed code, and how many looked different for it.
    executor, reason
        Who saw it first and what it saw; "" if it survived. `law`, `unit test`: the test that `reason` names.
    case
        The reduced program, None if it survived or a law saw it.
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


def activate(name: str) -> None:
    """Switch a mutant on for the rest of this process: what a plugin's worker, and a run of laws, do at their start."""
    patch = find(name).patch()
    patch.__enter__()
    _ACTIVE.append(patch)


#: Patches end when they are garbage-collected.
_ACTIVE: list[AbstractContextManager[Any]] = []


class Hunter:
    """Hunts mutants one after the other; the workers of plugins live as long as it does.

    Parameters
    ----------
    executors
        Executors that judge, and no law; empty for those that `looks.watch` names for the mutant's place, and then the laws.
    """

    def __init__(self, seed: int, executors: Sequence[str] = (), *, max_programs: int = 2000) -> None:
        self.seed = seed
        self.executors = tuple(executors)
        self.max_programs = max_programs
        self.sane = Pool()
        self.tests = Tests(seed)

    def __enter__(self) -> Hunter:
        return self

    def __exit__(self, *_: object) -> None:
        self.sane.close()

    def hunt(self, mutant: Mutant, *, reduce_seconds: float = 0.0) -> Kill:
        """Check programs with the fault switched on until an executor disagrees that agrees without it; then ask the laws,
        and then the unit tests.

        Raises
        ------
        Internal
            The laws cannot be run, or one fails without the fault.
        """
        start = time.perf_counter()
        kill = Kill(mutant, 0)
        first = mutant.place in BY_LAWS or mutant.in_worker  # there each program is a journey to another process
        if not self.executors and first:
            kill = self._ask_tests(kill, LAW)
        if not kill.killed and (self.executors or mutant.place not in BY_LAWS):
            kill = self._ask_executors(mutant, reduce_seconds)
        if not kill.killed and not self.executors and not first:
            kill = self._ask_tests(kill, LAW)
        if not kill.killed and not self.executors:
            kill = self._ask_tests(kill, UNIT_TEST)
        return replace(kill, seconds=time.perf_counter() - start)

    def _ask_tests(self, kill: Kill, kind: str) -> Kill:
        mutant = kill.mutant
        if kind == LAW:
            reason = self.tests.broken_law(mutant.place, mutant.name)
        else:
            reason = self.tests.broken_unit_test(mutant.site.module, mutant.name) if mutant.site else ""
        return replace(kill, programs=0, executor=kind, reason=reason) if reason else kill

    def _ask_executors(self, mutant: Mutant, reduce_seconds: float) -> Kill:
        if not mutant.in_worker:
            return self._hunt(mutant, self.sane, reduce_seconds)
        pool = Pool(preload=f"fuzz.mutants.hunt:activate:{mutant.name}")
        try:
            return self._hunt(mutant, pool, reduce_seconds)
        finally:
            pool.close()

    def _hunt(self, mutant: Mutant, pool: Pool, reduce_seconds: float) -> Kill:
        known, kind = programs(self.seed, mutant.place), watch(mutant.place)
        names = self.executors or kind.executors
        codes = None if mutant.site is None or kind.look is None else prepare(mutant.site).codes
        entered = changed = 0

        def evidence(name: str, case: Case) -> str:
            """The reason of a disagreement that is there with the fault and not without."""
            with mutant.patch():
                reason = _reason(pool, name, case)
            return reason if reason and not _reason(self.sane, name, case) else ""

        for number in count():
            chunk = [i for i in known.chunk(number) if i.number <= self.max_programs]
            if not chunk:
                break
            items = [i for i in chunk if codes is None or not codes.isdisjoint(i.entered)]
            with mutant.patch():
                suspects = [i for i in items if kind.look is None or look(kind, i.case) != i.look]
                # one module for all that is left, once single programs have shown nothing
                together = [n for n in names if Peer.parse(n).family == "pjrt"] if changed > _ALONE else []
                loud = {name: _loud(pool, name, suspects) for name in together}
            entered += len(items)
            for item in suspects:
                changed += 1
                for name in names:
                    reason = evidence(name, item.case) if item.number in loud.get(name, {item.number}) else ""
                    if not reason:
                        continue
                    case, size = item.case, len(item.case.primal.instructions)
                    if reduce_seconds:
                        still = lambda smaller, name=name: bool(evidence(name, smaller))  # noqa: E731
                        case = reduce_case(case, still, evaluate=evaluate_all, budget_seconds=reduce_seconds).case
                    return Kill(mutant, item.number, name, reason, case, size, entered, changed)
        return Kill(mutant, self.max_programs, entered=entered, changed=changed)


def _loud(pool: Pool, name: str, items: list[Item]) -> set[int]:
    """Which of these disagree, as far as one look at all of them together tells."""
    references = [Reference(fresh(i.case), NativeExecutor()) for i in items]
    try:
        answers = judge_many(_executor(pool, name), references)
    except CRASHES:
        return {i.number for i in items}
    return {i.number for i, a in zip(items, answers, strict=True) if a.verdict.is_disagreement}


def _reason(pool: Pool, name: str, case: Case) -> str:
    """What an executor has to say against a case, "" for nothing."""
    case = fresh(case)
    try:
        with limited(_PATIENCE if Peer.parse(name).family in ("pjrt", "derivative") else SECONDS):
            answer = judge(_executor(pool, name), Reference(case, NativeExecutor()))
    except CRASHES as error:  # what no typed error foresees is a disagreement too
        return f"{name} raises {type(error).__name__}: {error}"
    # an executor that neither refused the program nor left it open without the fault must not do so with it
    if answer.verdict is Verdict.UNSUPPORTED:
        return f"{name} raises {answer.reason}"
    return answer.reason if answer.verdict.is_disagreement or answer.verdict is Verdict.UNDECIDED else ""


def _executor(pool: Pool, name: str) -> Executor:
    return OWN[name] if name in OWN else pool.make(name)


def hunt(
    mutant: Mutant, executors: Sequence[str] = (), *, seed: int, max_programs: int = 2000, reduce_seconds: float = 20.0
) -> Kill:
    """Hunt one mutant; see `Hunter`."""
    with Hunter(seed, executors, max_programs=max_programs) as hunter:
        return hunter.hunt(mutant, reduce_seconds=reduce_seconds)


__all__ = ["LAW", "UNIT_TEST", "Hunter", "Kill", "activate", "find", "hunt"]
