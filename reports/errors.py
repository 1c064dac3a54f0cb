"""Error parity: the kinds of error that invalid programs had to raise, which were reached, and who raised something else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fuzz.records import ErrorKind
from fuzz.summary import disagreements
from oracle.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One kind: how many of the ways to break a rule were reached, and the names of the others.

    `right` and `wrong` count answers; `who` names the executors that gave wrong ones.
    """

    kind: str
    programs: int
    reached: int
    ways: int
    never: tuple[str, ...]
    right: int
    wrong: int
    who: str


def error_rows(errors: Iterable[ErrorKind]) -> tuple[ErrorRow, ...]:
    """One row a kind, by name."""
    return tuple(map(_row, sorted(errors, key=lambda error: error.kind)))


def _row(error: ErrorKind) -> ErrorRow:
    never = tuple(sorted(name for name, count in error.faults.items() if not count))
    wrong = {name: disagreements(verdicts) for name, verdicts in error.verdicts.items()}
    return ErrorRow(
        kind=error.kind,
        programs=error.programs,
        reached=len(error.faults) - len(never),
        ways=len(error.faults),
        never=never,
        right=sum(verdicts.get(Verdict.PASS.value, 0) for verdicts in error.verdicts.values()),
        wrong=sum(wrong.values()),
        who=", ".join(f"{name} {count:,}" for name, count in wrong.items() if count),
    )
