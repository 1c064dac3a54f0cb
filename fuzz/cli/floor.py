"""The least that a campaign must do to count as evidence, as options of several commands."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import click

from fuzz.campaign.vacuity import Floor, vacuous
from fuzz.records import Campaign
from oracle.peers import with_whole_paths
from tenferro_ref.console import CountRange, RealRange, split


def floor_options(command: Any) -> Any:
    """The least that a run must do to count as evidence: `min_programs`, `min_decided`, `require`."""
    for option in (
        click.option("--min-programs", type=CountRange(1), default=1, help="A run of fewer proves nothing."),
        click.option("--min-decided", type=RealRange(0, 1), default=0.05, help="Share an executor must decide."),
        click.option("--require", default="", metavar="LIST", help="Patterns; one executor of each must take part."),
    ):
        command = option(command)
    return command


def with_vacuity(campaign: Campaign, limits: dict[str, Any], named: Sequence[str] = ()) -> Campaign:
    """The campaign with the reasons why it proves less than the options ask for; those that it has already stay."""
    required = (*named, *(map(with_whole_paths, split(limits["require"])) if limits["require"] else ()))
    reasons = vacuous(campaign, Floor(limits["min_programs"], limits["min_decided"], required))
    return dataclasses.replace(campaign, vacuous=tuple(dict.fromkeys((*campaign.vacuous, *reasons))))
