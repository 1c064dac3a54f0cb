"""The findings of a store with their history: who saw them, when, and what people decided."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from fuzz.findings.known import load_known, match_all, uncovered
from fuzz.findings.naming import of_cell
from fuzz.records import Finding
from fuzz.store import Mark, Store, StoredFinding, Stream
from fuzz.store.sightings import located, sightings
from tenferro_ref.errors import TenferroError

#: "regressed": seen again after it was marked as fixed.
NEW, REGRESSED = "new", "regressed"


@dataclass(frozen=True, slots=True)
class Listed:
    """A finding and its history.

    Attributes
    ----------
    status
        new, known, reported, fixed, regressed.
    why
        The page that describes it, or the note of the last mark.
    programs, executors
        How many programs showed it, on which executors, over the streams asked for.
    first, last
        When it was seen, in seconds since 1970, over the whole store; None if no campaign here saw it.
    number
        Of the first program that showed it, in its campaign.
    located
        The (op, dtype, executor) of the cells of a matrix whose disagreements led to it, over the streams asked for.
    """

    id: str
    stored: StoredFinding
    status: str
    why: str
    programs: int
    executors: tuple[str, ...]
    first: float | None
    last: float | None
    marks: tuple[Mark, ...]
    number: int | None = None
    located: tuple[tuple[str, str, str], ...] = ()

    @property
    def finding(self) -> Finding:
        """The finding as it was recorded."""
        return self.stored.finding

    @property
    def is_new(self) -> bool:
        """Neither a page nor a person explains it: it makes a run fail."""
        return self.status in (NEW, REGRESSED)

    @property
    def record(self) -> Finding:
        """The finding as a report shows it."""
        known = "" if self.is_new else self.why
        if self.marks and known:
            known = f"{self.status} {date(self.marks[-1].at)}: {known}"
        elif self.marks and not self.is_new:
            known = f"marked as {self.status} {date(self.marks[-1].at)}"
        doubt = (self.finding.unconfirmed or "its bundle does not show it") if self.stored.confirmed is False else ""
        also = tuple(e for e in self.executors if e != self.finding.executor)
        return dataclasses.replace(
            self.finding, known=known, programs=self.programs, also=also, first_program=self.number,
            located=self.located, unconfirmed=doubt,
        )  # fmt: skip


def date(at: float) -> str:
    """The day, UTC."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).date().isoformat()


def listed(store: Store, streams: Sequence[Stream] | None = None) -> list[Listed]:
    """The findings that `streams` saw (None: all of the store), new ones first, then by programs."""
    within = None if streams is None else [s.id for s in streams]
    seen, places = sightings(store, within), located(store, within)
    marks, rules = store.marks(), load_known()
    builds = {info.name: info.build for stream in store.streams() for info in stream.executors}
    findings = store.findings()
    rows = []
    for stored, page in zip(findings, match_all((f.finding for f in findings), rules), strict=True):
        signature = stored.finding.signature
        if streams is not None and signature not in seen:
            continue
        programs, first, last, executors, number = seen.get(signature, (0, None, None, (), None))
        history = tuple(marks.get(signature, ()))
        status, why = _status(page, history, last)
        if status == "known" and (
            beyond := uncovered(stored.finding, {e: builds.get(e, "") for e in executors}, rules)
        ):
            status, why = NEW, f"the rules of {page} say nothing of {', '.join(beyond)}"
        cells = tuple(dict.fromkeys((of_cell(op), dtype, e) for op, dtype, e in places.get(signature, ())))
        rows.append(
            Listed(stored.finding.id, stored, status, why, programs, executors, first, last, history, number, cells)
        )
    return sorted(rows, key=lambda r: (not r.is_new, -r.programs, r.finding.signature))


def _status(page: str, marks: Sequence[Mark], last: float | None) -> tuple[str, str]:
    """A mark goes before the page that a rule names, a later sighting before "fixed"."""
    if not marks:
        return ("known", page) if page else (NEW, "")
    mark = marks[-1]
    if mark.status == "fixed" and last is not None and last > mark.at:
        return REGRESSED, f"marked as fixed {date(mark.at)}, seen {date(last)}"
    return mark.status, mark.note


def ids(path: str) -> list[tuple[str, str]]:
    """Ids of the findings of a store with their signatures, for completion; none where it cannot be read."""
    try:
        with Store(path, readonly=True) as store:
            return [(row.id, row.finding.signature) for row in listed(store)]
    except TenferroError:
        return []
