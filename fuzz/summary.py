"""What a campaign came to, in numbers and in one sentence: what every output format says first.

Does not live here: how any of it is laid out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from fuzz.records import Campaign, Finding, Totals
from oracle.peers import Peer
from oracle.verdict import ExecutorInfo, Verdict

DISAGREEMENTS = tuple(v.value for v in Verdict if v.is_disagreement)
OutcomeKind = Literal["agree", "known", "new", "vacuous"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on a whole campaign.

    Attributes
    ----------
    kind
        `new` if anything disagrees that no page in docs/findings/ describes, else `vacuous` if it proves too little.
    sentence
        The verdict in words.
    vacuous
        Why the run proves less than its options demand; may stand beside new disagreements.
    warnings
        What weakens the evidence: executors that are absent or compared nothing, disagreements without a finding.
    """

    kind: OutcomeKind
    sentence: str
    warnings: tuple[str, ...]
    vacuous: tuple[str, ...] = ()


def outcome(campaign: Campaign) -> Outcome:
    """The verdict on a campaign. A campaign that compared nothing, or less than it had to, is `vacuous`, never `agree`."""
    new, known = split(campaign.findings)
    loose = {e: n for e in executor_names(campaign) if (n := unexplained(campaign, e))}
    checked = plural(campaign.programs, "program")
    warnings = tuple(_warnings(campaign, loose))
    nothing = _nothing(campaign)
    vacuous = campaign.vacuous or ((nothing,) if nothing else ())
    if new:
        also = f", and {plural(len(known), 'known one')}" if known else ""
        sentence = f"{plural(len(new), 'new disagreement')}{also}, in {checked}."
        return Outcome("new", sentence, warnings, vacuous)
    if loose:
        worst = max(loose.values())
        sentence = f"New disagreements: {plural(worst, 'program')} of {campaign.programs:,} disagreed, and no finding says why."
        return Outcome("new", sentence, warnings, vacuous)
    if vacuous:
        why = f": {vacuous[0]}" if len(vacuous) == 1 else f", for {len(vacuous)} reasons"
        sentence = f"Nothing was tested: {nothing}." if nothing else f"This run proves nothing{why}."
        return Outcome("vacuous", sentence, warnings, vacuous)
    if known:
        sentence = f"No new disagreement in {checked}; {plural(len(known), 'known one')} seen again."
        return Outcome("known", sentence, warnings)
    ran = sum(row.ran for row in executor_rows(campaign))
    who = f"{ran} executors agree" if ran > 1 else "One executor agrees with its reference"
    return Outcome("agree", f"{who} on {checked}.", warnings)


def _nothing(campaign: Campaign) -> str:
    """Why the campaign is no evidence of anything at all, "" if it is some."""
    if campaign.programs == 0:
        return "no program was generated"
    if not any(i.available for i in campaign.executors) and not campaign.totals:
        return "no executor was available"
    if campaign.only_errors:
        return "" if any(t.due for t in campaign.totals) else "no executor answered a single program"
    if not any(t.answered for t in campaign.totals):
        return "no executor ran a single program"
    if not any(t.decided for t in campaign.totals):
        return "not one element was decided by its reference"
    return ""


def _warnings(campaign: Campaign, loose: dict[str, int]) -> Iterable[str]:
    totals = {t.executor: t for t in campaign.totals}
    if campaign.interrupted:
        yield "the run was interrupted: programs after these were not checked, and not every disagreement is reduced"
    for info in campaign.executors:
        if not info.available:
            yield f"{info.name} did not take part: {info.reason or 'no reason given'}"
        elif info.name not in totals or not sum(totals[info.name].verdicts.values()):
            yield f"{info.name} is available, yet it was given no program"
        elif totals[info.name].elements and totals[info.name].decided * 2 < totals[info.name].elements:
            yield f"{info.name}: less than half of the compared elements were decided"
    for executor, count in loose.items():
        yield f"{executor}: {plural(count, 'disagreeing program')} in no finding"
    if survived := [m.name for m in campaign.mutants if not (m.killed or m.equivalent)]:
        yield f"{plural(len(survived), 'seeded fault')} survived: a fault like {survived[0]} would not be noticed"


def split(findings: Iterable[Finding]) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """New findings and known ones, each with what was seen most often first."""
    ordered = sorted(findings, key=lambda f: (-f.programs, f.signature, f.executor))
    return tuple(f for f in ordered if not f.known), tuple(f for f in ordered if f.known)


@dataclass(frozen=True, slots=True)
class Blame:
    """How many findings show on an executor, in whatever lane; `ours` for the native ones."""

    executor: str
    new: int
    known: int

    @property
    def ours(self) -> bool:
        return is_ours(self.executor)


def is_ours(executor: str) -> bool:
    """Whether it is the native executor, in whatever configuration."""
    return Peer.parse(executor).family == "native"


def without_lane(executor: str) -> str:
    """A plugin's name for all of its lanes; other names as they are."""
    return str(replace(Peer.parse(executor), lane=""))


def is_variant(executor: str) -> bool:
    """Whether it is the native executor in another configuration than the usual one."""
    return is_ours(executor) and executor != "native"


def peers_first(executors: Iterable[str]) -> tuple[str, ...]:
    """The native executor, then all others, then the native one's other configurations; else in the given order."""
    return tuple(sorted(executors, key=lambda name: (name != "native", is_variant(name))))


def blamed(findings: Iterable[Finding]) -> tuple[Blame, ...]:
    """Who disagrees, those with most that is new first."""
    counts: dict[str, list[int]] = {}
    for finding in findings:
        for name in {without_lane(e) for e in (finding.executor, *finding.also)}:
            counts.setdefault(name, [0, 0])[bool(finding.known)] += 1
    blames = (Blame(name, new, known) for name, (new, known) in counts.items())
    return tuple(sorted(blames, key=lambda b: (-b.new, -b.known, b.executor)))


def in_agreement(campaign: Campaign) -> tuple[int, int]:
    """How many executors never disagreed, and how many took part."""
    ran = [row for row in executor_rows(campaign) if row.ran]
    return sum(not disagreements(row.totals.verdicts) for row in ran), len(ran)


def unexplained(campaign: Campaign, executor: str) -> int:
    """How many disagreeing programs of `executor` are in no finding: these count as new.

    Where the campaign did not count them: those that the findings of this executor leave over.
    """
    left = 0
    for totals in (t for t in campaign.totals if t.executor == executor):
        if totals.unexplained is None:
            explained = sum(f.programs for f in campaign.findings if executor in (f.executor, *f.also))
            left += max(0, disagreements(totals.verdicts) - explained)
        else:
            left += totals.unexplained
    return left


def disagreements(verdicts: dict[str, int]) -> int:
    """How many of the counted verdicts are disagreements."""
    return sum(verdicts.get(v, 0) for v in DISAGREEMENTS)


def executor_names(campaign: Campaign) -> tuple[str, ...]:
    """All executors that the records mention: those of the command line in their order, then the others."""
    mentioned = [t.executor for t in campaign.totals] + [c.executor for c in campaign.cells]
    return tuple(dict.fromkeys([i.name for i in campaign.executors] + mentioned))


@dataclass(frozen=True, slots=True)
class ExecutorRow:
    """One executor: where it comes from and what it came to."""

    info: ExecutorInfo
    totals: Totals

    @property
    def ran(self) -> bool:
        return bool(sum(self.totals.verdicts.values()))

    @property
    def programs(self) -> int:
        return sum(self.totals.verdicts.values())

    @property
    def decided_share(self) -> float | None:
        """Between 0 and 1; None where nothing was compared."""
        return self.totals.decided / self.totals.elements if self.totals.elements else None

    @property
    def tight_share(self) -> float | None:
        """Between 0 and 1; None where nothing was compared."""
        return self.totals.tight / self.totals.elements if self.totals.elements else None

    @property
    def seconds(self) -> float:
        return sum(self.totals.seconds.values())


def executor_rows(campaign: Campaign) -> tuple[ExecutorRow, ...]:
    """One row an executor, in display order; an executor without totals gets empty ones."""
    infos = {i.name: i for i in campaign.executors}
    totals = {t.executor: t for t in campaign.totals}
    return tuple(
        ExecutorRow(infos.get(name, ExecutorInfo(name, True)), totals.get(name, Totals(name, {})))
        for name in executor_names(campaign)
    )


def plural(count: int, noun: str) -> str:
    """`1 program`, `2,000 programs`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
