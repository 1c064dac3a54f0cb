"""`report`: the report of a findings store, or of a recorded campaign."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fuzz import records
from fuzz.campaign.recorded import reported
from fuzz.cli.floor import floor_options, with_vacuity
from fuzz.report import Report
from fuzz.store import Store, is_database
from reports.changes import changes
from reports.parity import SINGLE_FILE, SITE
from tenferro_ref.errors import UsageError
from tenferro_ref.escape import visible


@click.command()
@click.argument("store")
@click.option("--out", default="parity-report", show_default=True, metavar="DIR")
@click.option("--campaign", type=int, metavar="N", help="Number in `fuzz status`; default: the latest.")
@click.option("--against", metavar="OTHER", help="Say what is different from that store or campaign.")
@click.option("--mutants", metavar="FILE", help="What `mutants run --out` wrote: shown as a table.")
@click.option("--single-file", is_flag=True, help="All pages in one file, index.html.")
@floor_options
def report(
    store: str, out: str, campaign: int | None, against: str | None, mutants: str | None, single_file: bool, **limits: Any
) -> int:  # fmt: skip
    """Write the report of a findings store, or of a recorded campaign (`campaign.json`, or the folder that holds it).

    Exit status 1 if the campaign proves less than its options demand.

    Says what is different from the run before in the same store, or from the one that --against names.
    """
    shown = _read(Path(store), campaign)
    if against is not None:
        shown = replace(shown, before=_read(Path(against), None).campaign)
    record = with_vacuity(shown.campaign, limits)
    if mutants:
        record = replace(record, mutants=records.load_mutants(mutants))
    site = SINGLE_FILE if single_file else SITE
    page = site.write(replace(shown, campaign=record), Path(out))
    if shown.before is not None:
        click.echo(changes(shown.before, record).sentence)
    for reason in record.vacuous:
        click.echo(f"VACUOUS  {visible(reason)}")
    click.echo(str(page))
    return 1 if record.vacuous else 0


def _read(path: Path, campaign: int | None) -> Report:
    if not path.exists():
        raise UsageError(detail=f"{path}: no such file or folder")
    if is_database(path):
        with Store(path, readonly=True) as store:
            return reported(store, store.shards(campaign), Path(f"{path}.findings"))
    if campaign is not None:
        raise UsageError(detail=f"{path}: one campaign, no findings store: leave out --campaign")
    folder = path if path.is_dir() else path.parent
    return Report(records.load(folder / "campaign.json" if path.is_dir() else path), bundles=folder / "findings")
