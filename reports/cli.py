"""`report`: the report of a findings store, or of a recorded campaign."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from fuzz import records
from fuzz.campaign.recorded import recorded
from fuzz.cli.floor import floor_options, with_vacuity
from fuzz.store import Store, is_database
from reports import site
from tenferro_ref.errors import UsageError


@click.command()
@click.argument("store")
@click.option("--out", default="parity-report", show_default=True, metavar="DIR")
@click.option("--campaign", type=int, metavar="N", help="Number in `fuzz status`; default: the latest.")
@click.option("--mutants", metavar="FILE", help="What `mutants run --out` wrote: shown as a table.")
@floor_options
def report(store: str, out: str, campaign: int | None, mutants: str | None, **limits: Any) -> int:
    """Write the report of a findings store, or of a recorded campaign (`campaign.json`, or the folder that holds it).

    Exit status 1 if the campaign proves less than its options demand.
    """
    path = Path(store)
    if not path.exists():
        raise UsageError(detail=f"{store}: no such file or folder")
    record = with_vacuity(_read(path, campaign), limits)
    if mutants:
        record = dataclasses.replace(record, mutants=records.load_mutants(mutants))
    click.echo(str(site.write(record, Path(out))))
    return 1 if record.vacuous else 0


def _read(path: Path, campaign: int | None) -> records.Campaign:
    if is_database(path):
        with Store(path, readonly=True) as store:
            return recorded(store, store.shards(campaign))
    if campaign is not None:
        raise UsageError(detail=f"{path}: one campaign, no findings store: leave out --campaign")
    return records.load(path / "campaign.json" if path.is_dir() else path)
