"""`fuzz run`, `fuzz resume`, `fuzz status`: campaigns over a findings store."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import click

from fuzz.campaign.audit import audit, write_whole
from fuzz.campaign.cluster import Cluster, connected, run_on_cluster
from fuzz.campaign.recorded import reported
from fuzz.campaign.supervisor import Tick
from fuzz.campaign.work import begin
from fuzz.campaign.workers import run_workers
from fuzz.cli.findings import allowed_names
from fuzz.cli.floor import floor_options, with_vacuity
from fuzz.cli.listing import campaign_option, line, store_argument
from fuzz.findings import bundle
from fuzz.findings.environments import FreshEnvironments
from fuzz.findings.listed import Listed, listed
from fuzz.generate.batches import check_settings
from fuzz.records import Campaign
from fuzz.store import Lock, Plan, Store, Stream
from fuzz.summary import outcome
from oracle.peers import DERIVATIVES, Pool
from oracle.peers.errors import CommandRefused
from tenferro_ref.console import (
    CountRange,
    RealRange,
    ReportSite,
    allow_option,
    draw_seed,
    generate_option,
    json_option,
    print_json,
    print_table,
    progress_bar,
    report_site,
    say,
    seed_option,
    split,
)
from tenferro_ref.errors import FormatError, Interrupted, MissingDependency, UsageError

DEFAULT_PROGRAMS = 1000
#: What `all` is here: every plugin in these lanes, those of other people's executors that keep up, and the checks of derivatives.
LANES, OTHERS = ("parity", "defaults"), ("native-reloaded", "native-algebras", "interpreter", "jax", *DERIVATIVES)

workers_option = click.option("--workers", type=CountRange(1, 256), help="Processes; default: one a core.")
scheduler_option = click.option(
    "--scheduler", metavar="ADDRESS", help="Run on a dask cluster, as tcp://host:8786 (needs the extra `dask`)."
)


def _limits(command: Any) -> Any:
    """What `run` and `resume` share: limits of the run, and what it must do to count as evidence."""
    for option in (
        click.option("--programs", type=CountRange(1), help="How many programs, over all shards."),
        click.option("--minutes", type=RealRange(0, min_open=True), help="How long to generate and check."),
        click.option("--reduce-seconds", type=RealRange(0), help="Budget for reducing one disagreement."),
        click.option(
            "--max-findings",
            type=CountRange(0),
            help="Groups of disagreements reduced at most; 1000 if a campaign begins without.",
        ),
        click.option("--bundles", metavar="DIR", help="Folder of the findings' bundles; default: STORE.findings."),
        click.option("--out", metavar="DIR", help="Write the report there at the end."),
        click.option(
            "--fresh-venv/--no-fresh-venv",
            default=True,
            show_default=True,
            help="At the end, run the bundles of new findings in a virtual environment made for them.",
        ),
    ):
        command = option(command)
    return floor_options(command)


@click.command()
@store_argument
@click.option("--executors", default="all", show_default=True, metavar="LIST", help="Names separated by commas.")
@click.option(
    "--shard", default="0/1", metavar="I/N", help="Take every N-th batch of 32 programs, from batch I (0 <= I < N)."
)
@click.option(
    "--input-sets",
    type=CountRange(1, 256),
    default=1,
    show_default=True,
    help="Sets of inputs for each program, which is compiled once; each counts as a program.",
)
@generate_option
@workers_option
@scheduler_option
@_limits
@seed_option
@json_option
def run(
    store: str, executors: str, shard: str, input_sets: int, generate: tuple[str, ...], workers: int | None,
    scheduler: str | None, seed: int | None, as_json: bool, **limits: Any,
) -> int:  # fmt: skip
    """Begin a campaign; exit status 1 on a new disagreement, or if the campaign proves nothing."""
    chosen, (index, count), site = draw_seed(seed), _shard(shard), _report_site(limits)
    if limits["programs"] is None and limits["minutes"] is None:
        limits["programs"] = DEFAULT_PROGRAMS
    options = {
        "programs": limits["programs"],
        "minutes": limits["minutes"],
        "shard": shard if count > 1 else None,
        "input-sets": input_sets if input_sets > 1 else None,
    }
    if not Path(store).name:
        raise UsageError(detail=f"STORE {store!r}: names no file; give the store a name, as night.sqlite")
    again = Path(store).with_stem(f"{Path(store).stem}-again")  # this store has the campaign already
    words = ["tenferro-ref", "fuzz", "run", str(again), "--seed", str(chosen), "--executors", executors]
    words += [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    command = shlex.join([*words, *(word for setting in generate for word in ("--generate", setting))])
    check_settings(generate)
    # as many programs a batch, and so a module, as with one set of inputs
    batch = Plan(chosen).batch * input_sets
    batches = ceil(limits["programs"] / batch) if limits["programs"] else None
    if batches is not None and index >= batches:
        raise UsageError(
            detail=f"--shard {shard}: it has no batch: {limits['programs']} programs are {batches} of {batch}"
        )
    plan = Plan(
        chosen, shard=index, shards=count, command=command, batch=batch, input_sets=input_sets, generate=generate
    )
    with _crew(workers, scheduler) as crew, Store(store, create=True) as opened, Lock(store) as lock:
        with contextlib.closing(Pool()) as pool:
            selection = pool.select(split(executors), lanes=LANES, others=OTHERS)
            stream = begin(opened, _with_limits(plan, limits), selection)
            # an executor that was asked for by name must take part; a command by a relative path has the whole one there
            named = [pool.make(name).name for name in split(executors) if name != "all"]
        allowed = [executor.name for executor in selection.executors]
        return _work(opened, stream, crew, lock, allowed, named, site, as_json, limits)


@click.command()
@store_argument
@campaign_option
@workers_option
@scheduler_option
@_limits
@allow_option
@json_option
def resume(
    store: str, campaign: int | None, workers: int | None, scheduler: str | None, allow_commands: bool, as_json: bool,
    **limits: Any,
) -> int:  # fmt: skip
    """Go on with a campaign that was ended or killed, or with other limits than it had."""
    site = _report_site(limits)
    with _crew(workers, scheduler) as crew, Store(store) as opened, Lock(store) as lock:
        stream = opened.stream(campaign if campaign is not None else opened.shards()[-1].id)
        allowed = allowed_names(allow_commands)
        for name in stream.available:
            Pool(allowed=allowed).permit(name, store)
        plan = _with_limits(stream.plan, limits)
        if plan != stream.plan:
            opened.extend(stream.id, plan)
        return _work(opened, opened.stream(stream.id), crew, lock, allowed, [], site, as_json, limits)


def _report_site(limits: dict[str, Any]) -> ReportSite | None:
    """The writer of the report that `--out` asks for; what is wrong with its folder is an error before any work."""
    return report_site(Path(limits["out"])) if limits["out"] else None


@contextlib.contextmanager
def _crew(workers: int | None, scheduler: str | None) -> Iterator[int | Cluster]:
    """Who works: so many processes here, or a cluster, which must answer before anything is written."""
    if scheduler is None:
        yield workers or os.cpu_count() or 1
    elif workers is not None:
        raise UsageError(detail="--workers is for this machine; on a cluster, each thread of its workers takes a part")
    else:
        with connected(scheduler) as cluster:
            yield cluster


def _work(
    store: Store,
    stream: Stream,
    crew: int | Cluster,
    lock: Lock,
    allowed: Sequence[str],
    named: list[str],
    site: ReportSite | None,
    as_json: bool,
    limits: dict[str, Any],
) -> int:
    if not as_json:
        say(f"seed {stream.plan.seed}")
    bundles = Path(limits["bundles"] or f"{store.path}.findings")
    with progress_bar("checking programs", stream.plan.programs) as update:

        def show(tick: Tick) -> None:
            progress = tick.progress
            note = f"checking programs ({progress.disagreements} disagreements, {tick.slots} workers)"
            update(progress.done, progress.total, note)

        try:
            if isinstance(crew, Cluster):
                deaths = run_on_cluster(store.path, stream, crew, bundles=bundles, tick=show)
            else:
                deaths = run_workers(store.path, stream, crew, lock=lock, bundles=bundles, tick=show, allowed=allowed)
        except KeyboardInterrupt:
            done, words = store.done(stream.id)[0], f"`tenferro-ref fuzz resume {shlex.quote(str(store.path))}` goes on"
            raise Interrupted(detail=f"after {done} programs: {words}") from None
    streams = [store.stream(stream.id)]
    unproved = _confirm_afresh(store, streams, bundles, allowed) if limits["fresh_venv"] else ""
    report = reported(store, streams, bundles)
    campaign = with_vacuity(report.campaign, limits, named)
    page = site.write(dataclasses.replace(report, campaign=campaign), Path(limits["out"])) if site else None
    findings = listed(store, streams)
    if as_json:
        print_json(
            {
                **_stream_facts(store, streams[0]), "vacuous": campaign.vacuous, "worker_deaths": deaths,
                "report": page and str(page), "no_fresh_venv": unproved,
                "new": [f.finding.signature for f in findings if f.is_new],
                "known": {f.finding.signature: f.why for f in findings if not f.is_new},
            }
        )  # fmt: skip
    else:
        _print_summary(campaign, findings, deaths, page)
        if unproved:
            say(f"new findings were not run in a fresh virtual environment: {unproved}")
    return 1 if campaign.vacuous or outcome(campaign).kind in ("new", "vacuous") else 0


def _confirm_afresh(store: Store, streams: list[Stream], bundles: Path, allowed: Sequence[str]) -> str:
    """Run the bundles of new findings where nothing of this installation can help them; why not, if it cannot be done."""
    rows = [row for row in listed(store, streams) if row.is_new and row.stored.confirmed and not row.stored.afresh]
    if not rows:
        return ""
    with FreshEnvironments() as environments, progress_bar("running new findings afresh", len(rows)) as update:
        for number, row in enumerate(rows):
            update(number, len(rows), "running new findings in a fresh virtual environment")
            try:
                why = bundle.confirm(bundles / row.id, environments, allowed=allowed)
                store.confirm(dataclasses.replace(row.finding, unconfirmed=why))
            except (CommandRefused, FormatError, MissingDependency) as error:  # a bundle may have been moved away
                return str(error)
    return ""


def _print_summary(campaign: Campaign, findings: list[Listed], deaths: int, page: Path | None) -> None:
    for finding in findings:
        say(line(finding))
    for totals in campaign.totals:
        if totals.unexplained:
            count = f"{totals.unexplained} disagreements were not reduced (`fuzz reduce`)"
            say(f"NEW      {totals.executor}: {count}")
    for reason in campaign.vacuous:
        say(f"VACUOUS  {reason}")
    new = sum(f.is_new for f in findings)
    died = f", {deaths} workers died and were replaced" if deaths else ""
    say(
        f"{campaign.programs} programs in {campaign.seconds['total']:.1f} s: {new} new disagreements, "
        f"{len(findings) - new} known{died}; again with --seed {campaign.seed}"
    )
    if page:
        say(f"report: {page}")


@click.command()
@store_argument
@click.option("--check", is_flag=True, help="Check the laws of the store: nothing lost, nothing twice.")
@click.option(
    "--salvage",
    metavar="NEW",
    help="Write the campaigns and findings of a damaged store that are whole to a new store.",
)
@json_option
def status(store: str, check: bool, salvage: str | None, as_json: bool) -> int:
    """Print how far the campaigns of a store are."""
    if salvage is not None:
        with Store(store, readonly=True, cut_off=True) as opened:
            for words in write_whole(opened, salvage):
                say(f"LOST     {words}")
        store = salvage
    with Store(store, readonly=True) as opened:
        rows = [_stream_facts(opened, stream) for stream in opened.streams()]
        problems = audit(opened, regenerate=3) if check else []
    if as_json:
        for row in rows:
            print_json(row)
    else:
        heads = "campaign,seed,shard,programs,of,minutes,a second,disagree,groups,reduced,open"
        print_table(heads.split(","), [_cells(row) for row in rows])
    for problem in problems:
        say(f"PROBLEM  {problem}")
    if check and not problems and not as_json:
        say("the store is sound")
    return 1 if problems else 0


def _stream_facts(store: Store, stream: Stream) -> dict[str, Any]:
    programs, answers = store.done(stream.id)
    reduced, groups = store.group_counts(stream.id)
    opened = "SELECT count(*) FROM batch WHERE stream = ? AND digest = ''"
    (batches,) = store.database.row(tuple[int], opened, (stream.id,))
    counts = store.counts(stream.id)
    return {
        "campaign": stream.id,
        "seed": stream.plan.seed,
        "shard": f"{stream.plan.shard}/{stream.plan.shards}",
        "started": stream.started,
        "programs": programs,
        "limit": {"programs": stream.plan.programs, "minutes": stream.plan.minutes},
        "seconds": round(stream.elapsed, 3),
        "open": {"batches": batches, "answers": answers},
        "disagreements": store.disagreements(stream.id),
        "kinds": {"all": groups, "reduced": reduced},
        "executors": {name: counts.part("verdict", name) for name in stream.available},
        "missing": {info.name: info.reason for info in stream.executors if not info.available},
    }


def _cells(row: dict[str, Any]) -> list[str]:
    limit, seconds = row["limit"], row["seconds"]
    end = [f"{limit['programs']}"] if limit["programs"] else []
    end += [f"{limit['minutes']:g} min"] if limit["minutes"] else []
    rate = f"{row['programs'] / seconds:.1f}" if seconds else ""
    cells = (
        row["campaign"], row["seed"], row["shard"], row["programs"], " / ".join(end), f"{seconds / 60:.1f}", rate,
        row["disagreements"], row["kinds"]["all"], row["kinds"]["reduced"], row["open"]["batches"],
    )  # fmt: skip
    return [str(cell) for cell in cells]


def _with_limits(plan: Plan, limits: dict[str, Any]) -> Plan:
    names = ("programs", "minutes", "reduce_seconds", "max_findings")
    return dataclasses.replace(plan, **{name: limits[name] for name in names if limits[name] is not None})


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if not match or not int(match[1]) < int(match[2]):
        raise UsageError(detail=f"--shard {text}: must be I/N with 0 <= I < N, as 0/4 for the first of four")
    return int(match[1]), int(match[2])
