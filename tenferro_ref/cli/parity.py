"""`parity`: the main job, from generated programs to the HTML report; `report`: the report of a recorded campaign."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fuzz import records
from fuzz.campaign import Progress, run_campaign
from fuzz.generate import check_words
from fuzz.store import Plan, Store, is_database
from fuzz.store.recorded import recorded, shards
from fuzz.vacuity import Floor, vacuous
from oracle.executors import PjrtExecutor, Pool
from reports import outcome, write_html, write_junit, write_markdown
from tenferro_ref.cli.common import (
    draw_seed,
    generate_option,
    json_option,
    out_directory,
    print_json,
    progress_bar,
    say,
    seed_option,
    split,
)
from tenferro_ref.errors import MissingDependency, UsageError

DEFAULT_PROGRAMS = 200


@click.command()
@click.option("--out", default="parity-report", show_default=True, metavar="DIR", help="Folder of the report.")
@click.option("--programs", type=click.IntRange(1), help=f"How many programs; default {DEFAULT_PROGRAMS}.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="How long to generate and check.")
@click.option("--executors", default="all", show_default=True, metavar="LIST", help="Names separated by commas.")
@click.option("--workers", type=click.IntRange(1), default=os.cpu_count() or 1, help="Executors that run at a time.")
@generate_option
@seed_option
@json_option
def parity(
    out: str, programs: int | None, minutes: float | None, executors: str, workers: int, generate: tuple[str, ...],
    seed: int | None, as_json: bool,
) -> int:  # fmt: skip
    """Generate programs, run them on every executor, shrink what disagrees, write the report."""
    folder = out_directory(out)
    chosen = draw_seed(seed)
    count = programs if programs is not None or minutes is not None else DEFAULT_PROGRAMS
    command = f"tenferro-ref parity --seed {chosen} --executors {executors}"
    command += "".join(f" --{k} {v}" for k, v in (("programs", count), ("minutes", minutes)) if v is not None)
    command += "".join(f" --generate {word}" for word in generate)
    check_words(generate)
    plan = Plan(chosen, count, minutes, command=command, generate=generate)
    pool = Pool()
    try:
        selection = pool.select(split(executors), lanes=("parity", "defaults"), others=("interpreter",))
        if not any(isinstance(e, PjrtExecutor) for e in selection.executors) and executors == "all":
            raise MissingDependency(
                name="a PJRT plugin",
                remedy="pip install xla-cpu-pjrt, or set TENFERRO_PJRT_PLUGIN; "
                "`--executors native,native-unsegmented,native-nopasses` runs without XLA",
            )
        if not as_json:
            click.echo(f"seed {chosen}")
        with progress_bar("checking programs", count) as update:

            def report_progress(progress: Progress) -> None:
                what = "reducing disagreements" if progress.phase == "reduce" else "checking programs"
                update(progress.done, progress.total, f"{what} ({progress.disagreements} disagreements)")

            campaign = run_campaign(
                plan, selection, pool, report_progress, threads=workers, bundles=folder / "findings"
            )
    finally:
        pool.close()
    page = write_report(campaign, folder)
    if as_json:
        print_json(_summary(campaign, page))
    else:
        _print_summary(campaign, page)
    return 0 if outcome(campaign).kind in ("agree", "known") else 1


def floor_options(command: Any) -> Any:
    """The least that a run must do to count as evidence: `min_programs`, `min_decided`, `require`."""
    for option in (
        click.option("--min-programs", type=click.IntRange(1), default=1, help="A run of fewer proves nothing."),
        click.option("--min-decided", type=click.FloatRange(0, 1), default=0.05, help="Share an executor must decide."),
        click.option("--require", default="", metavar="LIST", help="Patterns; one executor of each must take part."),
    ):
        command = option(command)
    return command


def with_vacuity(campaign: records.Campaign, limits: dict[str, Any], named: Sequence[str] = ()) -> records.Campaign:
    """The campaign with the reasons why it proves less than the options ask for; those that it has already stay."""
    required = (*named, *(split(limits["require"]) if limits["require"] else ()))
    reasons = vacuous(campaign, Floor(limits["min_programs"], limits["min_decided"], required))
    return dataclasses.replace(campaign, vacuous=tuple(dict.fromkeys((*campaign.vacuous, *reasons))))


@click.command()
@click.argument("store")
@click.option("--out", default="parity-report", show_default=True, metavar="DIR")
@click.option("--campaign", type=int, metavar="N", help="Number in `fuzz status`; default: the latest.")
@click.option("--mutants", metavar="FILE", help="What `mutants run --out` wrote: shown as a table.")
@floor_options
def report(store: str, out: str, campaign: int | None, mutants: str | None, **limits: Any) -> None:
    """Write the report of a findings store, or of a recorded campaign (`campaign.json`, or the folder that holds it)."""
    path = Path(store)
    if not path.exists():
        raise UsageError(detail=f"{store}: no such file or folder")
    record = with_vacuity(_read(path, campaign), limits)
    if mutants:
        record = dataclasses.replace(record, mutants=records.load_mutants(mutants))
    click.echo(str(write_report(record, out_directory(out))))


def _read(path: Path, campaign: int | None) -> records.Campaign:
    if is_database(path):
        with Store(path, readonly=True) as store:
            return recorded(store, shards(store, campaign))
    if campaign is not None:
        raise UsageError(detail=f"{path}: one campaign, no findings store: leave out --campaign")
    return records.load(path / "campaign.json" if path.is_dir() else path)


def write_report(campaign: records.Campaign, folder: Path) -> Path:
    """All formats of the report into one folder; gives the page."""
    write_junit(campaign, folder)
    write_markdown(campaign, folder)
    return write_html(campaign, folder)


def _summary(campaign: records.Campaign, page: Path) -> dict[str, object]:
    return {
        "seed": campaign.seed,
        "programs": campaign.programs,
        "seconds": campaign.seconds,
        "report": str(page),
        "executors": {t.executor: t.verdicts for t in campaign.totals},
        "missing": {i.name: i.reason for i in campaign.executors if not i.available},
        "vacuous": list(outcome(campaign).vacuous),
        "new": [f.signature for f in campaign.findings if not f.known],
        "known": {f.signature: f.known for f in campaign.findings if f.known},
    }


def _print_summary(campaign: records.Campaign, page: Path) -> None:
    for totals in campaign.totals:
        verdicts = ", ".join(f"{n} {name}" for name, n in totals.verdicts.items())
        share = (
            f", {totals.decided / totals.elements:.1%} of {totals.elements} elements decided" if totals.elements else ""
        )
        say(f"  {totals.executor}: {verdicts}{share}")
    for info in campaign.executors:
        if not info.available:
            say(f"  {info.name}: not available: {info.reason}")
    new = [f for f in campaign.findings if not f.known]
    known = [f for f in campaign.findings if f.known]
    for finding in new:
        say(f"NEW    {finding.signature}  [{finding.executor}, {finding.programs} programs]")
    for finding in known:
        say(f"known  {finding.signature}  [docs/findings/{finding.known}.md, {finding.programs} programs]")
    verdict = f"{len(new)} new disagreements" if new else "no new disagreement"
    say(
        f"{campaign.programs} programs in {campaign.seconds['total']:.1f} s: {verdict}, {len(known)} known; "
        f"again with --seed {campaign.seed}"
    )
    say(f"report: {page}")
