"""What a report shows: a campaign, the run that it is held against, and the runs of its store.

How it is laid out is `reports`; how it is read from a store is `fuzz.campaign.recorded`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fuzz.records import Campaign


@dataclass(frozen=True, slots=True)
class Run:
    """One campaign of a store in a few numbers.

    Attributes
    ----------
    decided
        Share of the compared elements that the reference pins down, over all executors; None where nothing was compared.
    new, known
        Ids of the findings that its programs showed, by what is known of them today.
    """

    seed: int
    started: str
    programs: int
    decided: float | None
    new: tuple[str, ...]
    known: tuple[str, ...]

    @classmethod
    def of(cls, campaign: Campaign) -> Run:
        elements = sum(t.elements for t in campaign.totals)
        decided = sum(t.decided for t in campaign.totals) / elements if elements else None
        new, known = (tuple(f.id for f in campaign.findings if bool(f.known) is old) for old in (False, True))
        return cls(campaign.seed, campaign.started, campaign.programs, decided, new, known)


@dataclass(frozen=True, slots=True)
class Report:
    """A campaign with what stands beside it.

    Attributes
    ----------
    before
        The run that it is held against: the one before it in its store, or one that was asked for.
    runs
        All campaigns of its store, this one among them, in the order in which they were begun.
    bundles
        The folder in which the findings' bundles are, a folder an id.
    """

    campaign: Campaign
    before: Campaign | None = None
    runs: tuple[Run, ...] = ()
    bundles: Path | None = None
