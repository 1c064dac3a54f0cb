"""The record of a plugin's conformance: what was looked at, and how it came out. What `conform.json` holds.

Known is not passed: a check that fails as a page of docs/findings/ describes has the outcome `known`, and counts as failed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from fuzz.records import encode, from_json
from tenferro_ref.errors import FormatError
from tenferro_ref.files import read_text

VERSION = 1

#: "known": fails, and a page of docs/findings/ describes it. "skipped": the plugin or this machine has not got it.
Outcome: TypeAlias = Literal["holds", "fails", "crashes", "hangs", "known", "skipped"]
#: Worst first.
OUTCOMES: tuple[Outcome, ...] = ("crashes", "hangs", "fails", "known", "skipped", "holds")
#: Those that make a plugin non-conforming.
WRONG = frozenset({"crashes", "hangs", "fails", "known"})


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    name
        Unique in its section: "F32, zero extents", "Exp F32 special".
    detail
        Why it does not hold, or was skipped.
    page
        Name of the page in docs/findings/ that describes it.
    op, dtype, values
        Of a cell: op, dtype and class of values; "" for other checks.
    programs
        How many programs with their inputs a cell stands for.
    """

    name: str
    outcome: Outcome
    detail: str = ""
    page: str = ""
    op: str = ""
    dtype: str = ""
    values: str = ""
    programs: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """Checks of one kind, with the wall time that they took."""

    name: str
    title: str
    checks: tuple[Check, ...]
    seconds: float

    @property
    def outcome(self) -> Outcome:
        """The worst; "skipped" only if nothing holds."""
        asked = [c.outcome for c in self.checks if c.outcome != "skipped"]
        return min(asked, key=OUTCOMES.index, default="skipped")

    @property
    def counts(self) -> dict[str, int]:
        """Checks by outcome, worst first."""
        counted = Counter(c.outcome for c in self.checks)
        return {o: counted[o] for o in OUTCOMES if counted[o]}


@dataclass(frozen=True, slots=True)
class Conformance:
    """How a plugin came out.

    Attributes
    ----------
    plugin
        As it was named.
    no_client
        Why the plugin makes no client here, so that nothing but its loading was tested; "" if it makes one.
    facts
        Where it is from and what it says of itself.
    """

    plugin: str
    started: str
    seconds: float
    no_client: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    tenferro_conform: int = field(default=VERSION)

    @property
    def counts(self) -> dict[str, int]:
        """Checks by outcome, worst first."""
        counted = Counter(c.outcome for section in self.sections for c in section.checks)
        return {o: counted[o] for o in OUTCOMES if counted[o]}

    @property
    def wrong(self) -> int:
        """Checks that do not hold, known ones among them."""
        return sum(n for outcome, n in self.counts.items() if outcome in WRONG)

    @property
    def verdict(self) -> str:
        """In a word or two: what the badge says."""
        if self.wrong:
            return "does not conform"
        if self.no_client:
            return "no client"
        return "conforms" if self.counts.get("holds") else "not tested"

    def checks(self) -> Iterator[tuple[str, Check]]:
        """All checks, by "section: name"."""
        return ((f"{s.name}: {c.name}", c) for s in self.sections for c in s.checks)


def wrong(section: Section) -> list[Check]:
    """What does not hold, worst first."""
    return sorted((c for c in section.checks if c.outcome in WRONG), key=lambda c: OUTCOMES.index(c.outcome))


def dumps(conformance: Conformance) -> str:
    """A record as JSON; its mark comes first, by which the file is known as one that may be replaced."""
    content = encode(conformance)
    return json.dumps({"tenferro_conform": content.pop("tenferro_conform"), **content}, allow_nan=False) + "\n"


def load(path: Path) -> Conformance:
    """Read a record.

    Raises
    ------
    FormatError
        Not what `dumps` writes, or of another version.
    """
    record = from_json(Conformance, read_text(path), str(path))
    if record.tenferro_conform != VERSION:
        raise FormatError(str(path), f"a record of version {record.tenferro_conform}; this reads {VERSION}")
    return record


def only(
    conformance: Conformance, sections: Collection[str], dtypes: Collection[str], ops: Collection[str]
) -> Conformance:
    """The record without other sections, and without the cells of other element types and ops (all of them if `ops` is empty)."""

    def asked(check: Check) -> bool:
        return not check.op or (check.dtype in dtypes and (not ops or check.op in ops))

    chosen = (s for s in conformance.sections if s.name in sections)
    return replace(conformance, sections=tuple(replace(s, checks=tuple(filter(asked, s.checks))) for s in chosen))


@dataclass(frozen=True, slots=True)
class Change:
    """A check that came out otherwise in another build; an outcome is "" where it was not looked at."""

    name: str
    before: str
    after: str
    detail: str


def changes(before: Conformance, after: Conformance) -> list[Change]:
    """What is different, worst first."""
    old, new = dict(before.checks()), dict(after.checks())
    found = []
    for name in dict.fromkeys((*old, *new)):
        was, now = (side[name].outcome if name in side else "" for side in (old, new))
        if was != now:
            found.append(Change(name, was, now, new[name].detail if name in new else ""))
    order = (*OUTCOMES, "")
    return sorted(found, key=lambda c: (order.index(c.after), c.name))


@dataclass(frozen=True, slots=True)
class Report:
    """What a report shows: a record, and the one that it is compared with."""

    result: Conformance
    other: Conformance | None = None
