"""Why a campaign proves nothing: a run that is green because it did nothing must not be green."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import ceil

from fuzz.records import Campaign, Totals


@dataclass(frozen=True, slots=True)
class Floor:
    """The least that a campaign must do.

    Attributes
    ----------
    programs
        How many must have been checked.
    decided
        Share of the compared elements that each executor's reference must have pinned down.
    executors
        Patterns of names; one executor at least of each must have answered programs.
    """

    programs: int = 1
    decided: float = 0.05
    executors: tuple[str, ...] = ()


def vacuous(campaign: Campaign, floor: Floor) -> tuple[str, ...]:
    """In words what falls short of `floor`; empty if nothing does."""
    return tuple(_short(campaign, floor))


def absent(campaign: Campaign, patterns: Iterable[str]) -> Iterator[str]:
    """In words which patterns of names no executor has that answered a program."""
    reasons = {i.name: "it answered no program" if i.available else i.reason for i in campaign.executors}
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in _ran(campaign)):
            why = next(
                (reason for name, reason in reasons.items() if fnmatchcase(name, pattern)), "it was not selected"
            )
            yield f"executor {pattern} took no part: {why}"


def _ran(campaign: Campaign) -> dict[str, Totals]:
    return {t.executor: t for t in campaign.totals if t.answered or (campaign.only_errors and t.due)}


def _short(campaign: Campaign, floor: Floor) -> Iterator[str]:
    if campaign.programs < floor.programs:
        yield f"{campaign.programs} programs were checked, at least {floor.programs} are asked for"
    ran = _ran(campaign)
    if not ran:
        yield "no executor answered a single program"
    yield from absent(campaign, floor.executors)
    for name, totals in ran.items() if not campaign.only_errors else ():
        if totals.decided < floor.decided * totals.elements or not totals.elements:
            least = f"at least {ceil(floor.decided * totals.elements)} ({100 * floor.decided:.6g} %) are asked for"
            yield f"{name}: {totals.decided} of {totals.elements} elements were decided, {least}"
