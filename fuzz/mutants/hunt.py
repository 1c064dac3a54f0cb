"""Hunting a mutant: how many programs until some oracle sees it, and how small the evidence gets."""

from __future__ import annotations

import dataclasses
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fuzz.generate import generate
from fuzz.mutants.catalogue import BY_NAME, Mutant
from fuzz.reduce import reduce_case
from fuzz.triage import evaluate_all
from oracle.case import Case
from oracle.executors import Execution, NativeExecutor, Pool
from oracle.judge import Reference, judge
from tenferro_ref.errors import Internal, UsageError

BATCH = 32
#: Faults of the judge itself: right answers may be refused, or wrong ones accepted.
JUDGING = ("comparison", "enclosure")
#: Seconds after which a program that does not end is given up.
SECONDS = 20.0
_CRASHES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class _Planted(NativeExecutor):
    """Gives the native answer with one element made wrong beyond any rounding: a judge that accepts it is broken."""

    name: str = "planted"

    def run(self, case: Case) -> Execution:
        execution = NativeExecutor.run(self, case)
        digest = int(case.fingerprint[:12], 16)
        filled = [i for i, a in enumerate(execution.outputs) if a.size]
        if not filled:
            raise Internal(detail="no element to plant an error in")
        chosen = filled[digest % len(filled)]
        outputs = [a.copy("F") for a in execution.outputs]
        flat = outputs[chosen].reshape(-1, order="F")
        at = digest // 7 % flat.size
        flat[at] = _wrong(flat[at], digest // 1009 % 4)
        outputs[chosen] = flat.reshape(outputs[chosen].shape, order="F")
        return dataclasses.replace(execution, outputs=tuple(outputs))

    def bit_exact(self, case: Case) -> bool:
        return False


def _wrong(value: Any, kind: int) -> Any:
    """Another value: a number elsewhere, its negative, NaN or infinity for a number, a number for NaN."""
    dtype = value.dtype.type
    if value.dtype.kind == "b":
        return not value
    if value.dtype.kind == "i":
        return dtype(0 if value == np.iinfo(dtype).max else value + 1)
    if not np.isfinite(value):
        return dtype(1)
    with np.errstate(over="ignore"):
        return (dtype(value * dtype(1.01) + dtype(1)), dtype(-value - dtype(0.5)), dtype(np.nan), dtype(np.inf))[kind]


_PLANTED = _Planted()


@contextmanager
def _limited(seconds: float = SECONDS) -> Iterator[None]:
    """Raises TimeoutError inside the block when it takes too long: a changed loop may not end. Main thread only."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no end after {seconds:g} s")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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
        try:
            with _limited():
                executor = _PLANTED if name == _PLANTED.name else pool.make(name)
                answer = judge(executor, Reference(case, NativeExecutor()))
        except _CRASHES as error:  # what no typed error foresees is a disagreement too
            return f"{name} raises {type(error).__name__}: {error}"
        if name == _PLANTED.name:
            return "" if answer.verdict.is_disagreement else "a planted error is accepted"
        return answer.reason if answer.verdict.is_disagreement else ""

    def evidence(name: str, case: Case) -> str:
        """The reason of a disagreement that is there with the fault and not without."""
        with here():
            reason = disagrees(broken, name, case)
        return reason if reason and not disagrees(sane, name, case) else ""

    try:
        names = [e.name for e in broken.select(executors).executors]
        if mutant.place in JUDGING:
            names.append(_PLANTED.name)
        for number, case in _programs(seed, max_programs):
            with here():
                loud = [name for name in names if disagrees(broken, name, case)]
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
