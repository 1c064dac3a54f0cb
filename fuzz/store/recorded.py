"""What a store holds as the records that reports read, and each finding with its history."""

from __future__ import annotations

import dataclasses
import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fuzz.findings.known import load_known, match
from fuzz.records import Campaign, Finding
from fuzz.store.store import Found, Mark, Store, Stream
from fuzz.store.tally import Tally
from tenferro_ref.errors import UsageError

#: "regressed": seen again after somebody marked it as fixed.
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
        How many programs showed it, on whom, over the streams asked for.
    first, last
        When it was seen, in seconds since 1970, over the whole store; None if no campaign here saw it.
    """

    id: str
    found: Found
    status: str
    why: str
    programs: int
    executors: tuple[str, ...]
    first: float | None
    last: float | None
    marks: tuple[Mark, ...]

    @property
    def is_new(self) -> bool:
        """Nobody has explained it: it makes a run fail."""
        return self.status in (NEW, REGRESSED)

    @property
    def record(self) -> Finding:
        """The finding as a report shows it."""
        keep, known = self.found.finding, "" if self.is_new else self.why
        if self.marks and known != "":
            known = f"{self.status} {date(self.marks[-1].at)}: {known}"
        elif self.marks and not self.is_new:
            known = f"marked as {self.status} {date(self.marks[-1].at)}"
        also = tuple(e for e in self.executors if e != keep.executor)
        return dataclasses.replace(keep, known=known, programs=self.programs, also=also)


def date(at: float) -> str:
    """The day, UTC."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).date().isoformat()


def listed(store: Store, streams: Sequence[Stream] | None = None) -> list[Listed]:
    """The findings that `streams` saw (None: all of the store), those nobody explained first, then by programs."""
    where, ids = _within(streams)
    seen = {
        signature: (programs, first, last)
        for signature, programs, first, last in store.database.all(
            f"SELECT signature, count(DISTINCT fingerprint), min(seen), max(seen) {_SUSPECTS} {where} GROUP BY 1", ids
        )
    }
    executors: dict[str, list[str]] = {}
    for signature, executor in store.database.all(f"SELECT DISTINCT signature, executor {_SUSPECTS} {where}", ids):
        executors.setdefault(signature, []).append(executor)
    marks = store.marks()
    rows = []
    for found in store.findings():
        signature = found.finding.signature
        if streams is not None and signature not in seen:
            continue
        programs, first, last = seen.get(signature, (0, None, None))
        history = tuple(marks.get(signature, ()))
        status, why = _status(found.finding, history, last)
        names = tuple(sorted(executors.get(signature, [])))
        rows.append(Listed(found.finding.id, found, status, why, programs, names, first, last, history))
    return sorted(rows, key=lambda r: (not r.is_new, -r.programs, r.found.finding.signature))


def _status(finding: Finding, marks: Sequence[Mark], last: float | None) -> tuple[str, str]:
    """A mark goes before the rules of `fuzz.findings.known`, a later sighting before "fixed"."""
    if not marks:
        page = match(finding, load_known())
        return ("known", page) if page else (NEW, "")
    mark = marks[-1]
    if mark.status == "fixed" and last is not None and last > mark.at:
        return REGRESSED, f"marked as fixed {date(mark.at)}, seen {date(last)}"
    return mark.status, mark.note


_SUSPECTS = "FROM suspect JOIN kin ON kin.stream = suspect.stream AND kin.name = suspect.kin WHERE signature <> ''"


def _within(streams: Sequence[Stream] | None) -> tuple[str, list[int]]:
    if streams is None:
        return "", []
    return f"AND suspect.stream IN ({', '.join('?' * len(streams))})", [s.id for s in streams]


def shards(store: Store, number: int | None = None) -> list[Stream]:
    """All shards of the campaign to which stream `number` belongs, or of the one that was begun last.

    Raises
    ------
    UsageError
        There is none.
    """
    streams = store.streams()
    if not streams:
        raise UsageError(detail=f"{store.path}: no campaign was begun in this store")
    campaign = (streams[-1] if number is None else store.stream(number)).campaign
    return [s for s in streams if s.campaign == campaign]


def recorded(store: Store, streams: Sequence[Stream]) -> Campaign:
    """One campaign, all of the given shards of it together."""
    tally = Tally()
    for stream in streams:
        tally.update(store.tally(stream.id))
    where, ids = _within(streams)
    suspects = store.database.all(
        "SELECT executor, count(*) FROM suspect JOIN kin ON kin.stream = suspect.stream AND kin.name = suspect.kin"  # noqa: S608
        f" WHERE signature = '' {where} GROUP BY 1",
        ids,
    )
    phases = tally.part("phase")
    order = {name: i for i, name in enumerate(("generate", "check", "reduce"))}
    first = streams[0]
    return Campaign(
        seed=first.plan.seed,
        started=first.started,
        command=first.plan.command,
        programs=sum(store.done(s.id)[0] for s in streams),
        seconds={
            **{k: round(phases[k], 3) for k in sorted(phases, key=lambda k: order.get(k, 9))},
            "total": round(sum(s.elapsed for s in streams), 3),
        },
        executors=tuple({info.name: info for s in streams for info in s.executors}.values()),
        totals=tally.totals(first.available, Counter(dict(suspects))),
        cells=tally.cells(),
        findings=tuple(row.record for row in listed(store, streams)),
        generator=tally.part("feature"),
        environment=first.environment,
        surveys=tally.surveys(first.available),
        errors=tally.errors(first.plan.faults()),
    )
