"""What became of the seeded faults, by the part of the system that they break."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from fuzz.records import SeededFault

ALL = "all"


@dataclass(frozen=True, slots=True)
class MutantRow:
    """One place; `median` and `most` are the programs that killing took, None where programs killed nothing.

    `oracles` is who killed how many, the most successful first.
    """

    name: str
    killed: int
    survived: int
    equivalent: int
    median: int | None
    most: int | None
    oracles: tuple[tuple[str, int], ...]

    @property
    def killers(self) -> str:
        return ", ".join(f"{name} {count:,}" for name, count in self.oracles)


def mutant_rows(mutants: Iterable[SeededFault]) -> tuple[MutantRow, ...]:
    """One row a place, by name, and all of them together at the end."""
    faults = tuple(mutants)
    places = sorted({fault.place for fault in faults})
    rows = [_row(place, [f for f in faults if f.place == place]) for place in places]
    return (*rows, _row(ALL, faults))


def _row(name: str, faults: Iterable[SeededFault]) -> MutantRow:
    faults = list(faults)
    killed = [f for f in faults if f.killed]
    needed = [f.programs for f in killed if f.programs]
    equivalent = sum(f.equivalent and not f.killed for f in faults)
    return MutantRow(
        name=name,
        killed=len(killed),
        survived=len(faults) - len(killed) - equivalent,
        equivalent=equivalent,
        median=round(median(needed)) if needed else None,
        most=max(needed, default=None),
        oracles=tuple(Counter(f.by or "unknown" for f in killed).most_common()),
    )
