"""Hunting a mutant: how many programs until some oracle sees it, and how small the evidence gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from fuzz.generate import generate
from fuzz.mutants.catalogue import BY_NAME, Mutant
from fuzz.reduce import reduce_case
from fuzz.triage import evaluate_all
from oracle.case import Case
from oracle.executors import NativeExecutor, Pool
from oracle.judge import Reference, judge
from tenferro_ref.errors import UsageError

BATCH = 32


@dataclass(frozen=True, eq=False)
class Kill:
    """What became of a mutant.

    Attributes
    ----------
    programs
        How many were checked, the killing one included.
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


def activate(name: str) -> None:
    """Switch a mutant on for the rest of this process: what a worker does at its start."""
    find(name).patch().__enter__()


def hunt(
    mutant: Mutant, executors: Sequence[str], *, seed: int, max_programs: int = 2000, reduce_seconds: float = 20.0
) -> Kill:
    """Check generated programs with the fault switched on until an executor disagrees that agrees without it.

    Parameters
    ----------
    executors
        Names; `native` is always among them.
    """
    preload = f"fuzz.mutants.hunt:activate:{mutant.name}" if mutant.in_worker else ""
    broken, sane = Pool(preload=preload), Pool()
    here = nullcontext if mutant.in_worker else mutant.patch

    def disagrees(pool: Pool, name: str, case: Case) -> str:
        answer = judge(pool.make(name), Reference(case, NativeExecutor()))
        return answer.reason if answer.verdict.is_disagreement else ""

    def evidence(name: str, case: Case) -> str:
        """The reason of a disagreement that is there with the fault and not without."""
        with here():
            reason = disagrees(broken, name, case)
        return reason if reason and not disagrees(sane, name, case) else ""

    try:
        names = [e.name for e in broken.select(executors).executors]
        for number, case in _programs(seed, max_programs):
            with here():
                reference = Reference(case, NativeExecutor())
                loud = [n for n in names if judge(broken.make(n), reference).verdict.is_disagreement]
            for name in loud:
                reason = evidence(name, case)
                if reason:
                    still = partial(_shows, evidence, name)
                    small = reduce_case(case, still, evaluate=evaluate_all, budget_seconds=reduce_seconds).case
                    return Kill(mutant, number, name, reason, small, len(case.program.instructions))
        return Kill(mutant, max_programs)
    finally:
        broken.close()
        sane.close()


def _shows(evidence: Callable[[str, Case], str], name: str, case: Case) -> bool:
    return bool(evidence(name, case))


def _programs(seed: int, count: int) -> Iterator[tuple[int, Case]]:
    number = 0
    for batch in range(-(-count // BATCH)):
        for case in generate(seed, batch, BATCH)[: count - number]:
            number += 1
            yield number, case
