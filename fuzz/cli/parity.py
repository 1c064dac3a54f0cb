"""`parity`: the main job, from generated programs to the HTML report."""

from __future__ import annotations

import dataclasses
import os
import shlex
from functools import partial
from pathlib import Path

import click

from fuzz.campaign.vacuity import absent
from fuzz.campaign.work import run_campaign
from fuzz.campaign.workers import reduce_in_workers
from fuzz.campaign.worksite import Progress
from fuzz.generate.batches import check_settings
from fuzz.records import Campaign
from fuzz.report import Report
from fuzz.store import Lock, Plan
from fuzz.summary import outcome
from oracle.peers import PjrtExecutor, Pool
from tenferro_ref.console import (
    CountRange,
    RealRange,
    draw_seed,
    generate_option,
    json_option,
    print_json,
    progress_bar,
    report_site,
    say,
    seed_option,
    split,
)
from tenferro_ref.errors import Interrupted, MissingDependency

DEFAULT_PROGRAMS = 200


@click.command()
@click.option("--out", default="parity-report", show_default=True, metavar="DIR", help="Folder of the report.")
@click.option("--programs", type=CountRange(1), help=f"How many programs; default {DEFAULT_PROGRAMS}.")
@click.option("--minutes", type=RealRange(0, min_open=True), help="How long to generate and check.")
@click.option("--executors", default="all", show_default=True, metavar="LIST", help="Names separated by commas.")
@click.option(
    "--workers",
    type=CountRange(1),
    default=os.cpu_count() or 1,
    help="Executors that run at a time, and processes that reduce disagreements.",
)
@generate_option
@seed_option
@json_option
def parity(
    out: str, programs: int | None, minutes: float | None, executors: str, workers: int, generate: tuple[str, ...],
    seed: int | None, as_json: bool,
) -> int:  # fmt: skip
    """Generate programs, run them on every executor, shrink what disagrees, write the report.

    Plugins run in the lane `parity`, the last also in `defaults`: compiling is nearly all of the time, and the lanes differ in one option.
    `fuzz run` takes both lanes of all.
    """
    folder = Path(out)
    site = report_site(folder)
    chosen = draw_seed(seed)
    count = programs if programs is not None or minutes is not None else DEFAULT_PROGRAMS
    words = ["tenferro-ref", "parity", "--seed", str(chosen), "--executors", executors]
    limits = (("--programs", count), ("--minutes", minutes))
    words += [word for name, value in limits if value is not None for word in (name, str(value))]
    command = shlex.join([*words, *(word for setting in generate for word in ("--generate", setting))])
    check_settings(generate)
    plan = Plan(chosen, count, minutes, command=command, generate=generate)
    pool = Pool()
    try:
        selection = pool.select(split(executors), last=("defaults",), others=("native-reloaded", "interpreter"))
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

            # beside the report until that is written: `fuzz resume` goes on with a run that was killed
            store = folder / f"campaign-{chosen}.sqlite"
            with Lock(store) as lock:
                campaign = run_campaign(
                    plan, selection, pool, report_progress, threads=workers, bundles=folder / "findings", path=store,
                    reduce=partial(reduce_in_workers, workers=workers, lock=lock),
                )  # fmt: skip
        # an executor that was asked for by name must take part
        named = [pool.make(name).name for name in split(executors) if name != "all"]
        campaign = dataclasses.replace(campaign, vacuous=(*campaign.vacuous, *absent(campaign, named)))
    finally:
        pool.close()
    page = site.write(Report(campaign), folder)
    for ending in ("", ".lock"):  # all of it is in the report
        Path(f"{store}{ending}").unlink(missing_ok=True)
    if as_json:
        print_json(_summary(campaign, page))
    else:
        _print_summary(campaign, page)
    if campaign.interrupted:
        again = f"`{command}` runs it whole; `tenferro-ref fuzz run STORE` keeps what it has, and `fuzz resume STORE` goes on"
        raise Interrupted(detail=f"after {campaign.programs} programs; {again}")
    return 0 if outcome(campaign).kind in ("agree", "known") else 1


def _summary(campaign: Campaign, page: Path) -> dict[str, object]:
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


def _print_summary(campaign: Campaign, page: Path) -> None:
    for totals in campaign.totals:
        verdicts = ", ".join(f"{n} {name}" for name, n in totals.verdicts.items())
        share = (
            f", {totals.decided / totals.elements:.1%} of {totals.elements} elements decided" if totals.elements else ""
        )
        say(f"  {totals.executor}: {verdicts}{share}")
    for info in campaign.executors:
        if not info.available:
            say(f"  {info.name}: not available: {info.reason}")
    for reason in campaign.vacuous:
        say(f"VACUOUS  {reason}")
    new = [f for f in campaign.findings if not f.known]
    known = [f for f in campaign.findings if f.known]
    for finding in new:
        sure = f", UNCONFIRMED: {finding.unconfirmed}" if finding.unconfirmed else ""
        say(f"NEW    {finding.signature}  [{finding.executor}, {finding.programs} programs{sure}]")
    for finding in known:
        say(f"known  {finding.signature}  [docs/findings/{finding.known}.md, {finding.programs} programs]")
    verdict = f"{len(new)} new disagreements" if new else "no new disagreement"
    say(
        f"{campaign.programs} programs in {campaign.seconds['total']:.1f} s: {verdict}, {len(known)} known; "
        f"again with --seed {campaign.seed}"
    )
    say(f"report: {page}")
