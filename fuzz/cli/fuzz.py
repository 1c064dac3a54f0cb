"""`fuzz`: campaigns over a findings store, and what is done with what they find."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from fuzz.campaign.cluster import Cluster, connected, run_on_cluster
from fuzz.campaign.work import Progress, Worksite, begin, reduce_rest
from fuzz.campaign.workers import run_workers
from fuzz.cli.floor import floor_options, with_vacuity
from fuzz.findings import bundle
from fuzz.findings.environments import FreshEnvironments
from fuzz.findings.reduce import Size
from fuzz.findings.triage import inspect, to_finding
from fuzz.generate.batches import check_settings
from fuzz.records import Campaign, encode
from fuzz.store import STATUSES, Lock, Plan, Store, Stream
from fuzz.store.audit import audit
from fuzz.store.merge import merge as merge_stores
from fuzz.store.recorded import Listed, date, listed, recorded, shards
from fuzz.summary import outcome
from oracle.peers import ANY, Pool
from oracle.peers.errors import CommandRefused
from tenferro_ref.console import (
    allow_option,
    draw_seed,
    generate_option,
    json_option,
    out_directory,
    print_json,
    print_table,
    progress_bar,
    report_writer,
    say,
    seed_option,
    split,
)
from tenferro_ref.errors import FormatError, MissingDependency, UsageError

DEFAULT_PROGRAMS = 1000
#: What `all` is here: every plugin in these lanes, and those of other people's executors that keep up.
LANES, OTHERS = ("parity", "defaults"), ("interpreter", "jax")

store_argument = click.argument("store", metavar="STORE")
workers_option = click.option("--workers", type=click.IntRange(1, 256), help="Processes; default: one a core.")
scheduler_option = click.option(
    "--scheduler", metavar="ADDRESS", help="Run on a dask cluster, as tcp://host:8786 (needs the extra `dask`)."
)
campaign_option = click.option(
    "--campaign", type=int, metavar="N", help="Number in `fuzz status`; default: the latest."
)


def _limits(command: Any) -> Any:
    """What `run` and `resume` share: limits of the run, and what it must do to count as evidence."""
    for option in (
        click.option("--programs", type=click.IntRange(1), help="How many programs, over all shards."),
        click.option("--minutes", type=click.FloatRange(0, min_open=True), help="How long to generate and check."),
        click.option("--reduce-seconds", type=click.FloatRange(0), help="Budget for reducing one disagreement."),
        click.option("--max-findings", type=click.IntRange(0), help="Kinds of disagreement reduced at most."),
        click.option("--bundles", metavar="DIR", help="Folder of the findings' bundles; default: STORE.findings."),
        click.option("--out", metavar="DIR", help="Write the report there at the end."),
        click.option(
            "--fresh-venv/--no-fresh-venv",
            default=True,
            show_default=True,
            help="At the end, run the scripts of new findings in a virtual environment made for them.",
        ),
    ):
        command = option(command)
    return floor_options(command)


@click.group()
def fuzz() -> None:
    """Campaigns over a findings store (a file)."""


@fuzz.command()
@store_argument
@click.option("--executors", default="all", show_default=True, metavar="LIST", help="Names separated by commas.")
@click.option("--shard", default="0/1", metavar="I/N", help="Take every N-th batch, from batch I (0 <= I < N).")
@click.option(
    "--input-sets",
    type=click.IntRange(1, 256),
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
    chosen, (index, count), folder = draw_seed(seed), _shard(shard), _report_folder(limits)
    asked = limits["programs"] is not None or limits["minutes"] is not None
    programs = limits["programs"] if asked else DEFAULT_PROGRAMS
    command = f"tenferro-ref fuzz run {store} --seed {chosen} --executors {executors}"
    command += "".join(
        f" --{k} {v}"
        for k, v in (
            ("programs", programs),
            ("minutes", limits["minutes"]),
            ("shard", shard if count > 1 else None),
            ("input-sets", input_sets if input_sets > 1 else None),
            *(("generate", word) for word in generate),
        )
        if v is not None
    )
    # as many programs a batch, and so a module, as with one set of inputs
    batch = Plan(chosen).batch * input_sets
    check_settings(generate)
    plan = Plan(
        chosen, shard=index, shards=count, command=command, batch=batch, input_sets=input_sets, generate=generate
    )
    plan = _with_limits(plan, {**limits, "programs": programs})
    with _crew(workers, scheduler) as crew, Store(store, create=True) as opened, Lock(store) as lock:
        pool = Pool()
        try:
            selection = pool.select(split(executors), lanes=LANES, others=OTHERS)
            stream = begin(opened, plan, selection)
        finally:
            pool.close()
        if not as_json:
            say(f"seed {chosen}")
        # an executor that was asked for by name must take part
        named = [name for name in split(executors) if name != "all"]
        allowed = [executor.name for executor in selection.executors]
        return _work(opened, stream, crew, lock, allowed, named, folder, as_json, limits)


@fuzz.command()
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
    folder = _report_folder(limits)
    with _crew(workers, scheduler) as crew, Store(store) as opened, Lock(store) as lock:
        stream = opened.stream(campaign if campaign is not None else shards(opened)[-1].id)
        allowed = _allowed(allow_commands)
        for name in stream.available:
            Pool(allowed=allowed).permit(name, store)
        plan = _with_limits(stream.plan, limits)
        if plan != stream.plan:
            opened.extend(stream.id, plan)
        if not as_json:
            say(f"seed {plan.seed}")
        return _work(opened, opened.stream(stream.id), crew, lock, allowed, [], folder, as_json, limits)


def _allowed(allow_commands: bool, *names: str) -> tuple[str, ...]:
    """What a file may name: anything, or what the call names as well."""
    return (ANY,) if allow_commands else names


def _report_folder(limits: dict[str, Any]) -> Path | None:
    """Where the report goes; what is wrong with that is said before any work."""
    return out_directory(limits["out"]) if limits["out"] else None


@contextmanager
def _crew(workers: int | None, scheduler: str | None) -> Iterator[int | Cluster]:
    """Who works: so many processes here, or a cluster; one that does not answer is known before anything is written."""
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
    folder: Path | None,
    as_json: bool,
    limits: dict[str, Any],
) -> int:
    total = stream.plan.programs
    with progress_bar("checking programs", total) as update:

        def tell(progress: Progress, workers: int) -> None:
            note = f"checking programs ({progress.disagreements} disagreements, {workers} workers)"
            update(progress.done, progress.total, note)

        bundles = Path(limits["bundles"] or f"{store.path}.findings")
        if isinstance(crew, Cluster):
            deaths = run_on_cluster(
                store.path, stream, crew, bundles=bundles, tick=lambda tick: tell(tick.progress, tick.slots)
            )
        else:
            deaths = run_workers(
                store.path, stream, crew, lock=lock, bundles=bundles, allowed=allowed,
                tick=lambda tick: tell(tick.progress, len(tick.pids)),
            )  # fmt: skip
    streams = [store.stream(stream.id)]
    unproved = _confirm_afresh(store, streams, bundles, allowed) if limits["fresh_venv"] else ""
    campaign = with_vacuity(recorded(store, streams), limits, named)
    reasons = campaign.vacuous
    page = report_writer()(campaign, folder) if folder else None
    findings = listed(store, streams)
    if as_json:
        print_json(
            {
                **_stream_facts(store, streams[0]), "vacuous": reasons, "worker_deaths": deaths, "report": page and str(page),
                "no_fresh_venv": unproved,
                "new": [f.found.finding.signature for f in findings if f.is_new],
                "known": {f.found.finding.signature: f.why for f in findings if not f.is_new},
            }
        )  # fmt: skip
    else:
        _print_summary(campaign, findings, reasons, deaths, page)
        if unproved:
            say(f"new findings were not run in a fresh virtual environment: {unproved}")
    return 1 if reasons or outcome(campaign).kind in ("new", "vacuous") else 0


def _confirm_afresh(store: Store, streams: list[Stream], bundles: Path, allowed: Sequence[str]) -> str:
    """Run the scripts of new findings where nothing of this installation can help them; why not, if it cannot be done."""
    rows = [row for row in listed(store, streams) if row.is_new and row.found.confirmed and not row.found.afresh]
    if not rows:
        return ""
    with FreshEnvironments() as environments, progress_bar("running new findings afresh", len(rows)) as update:
        for number, row in enumerate(rows):
            update(number, len(rows), "running new findings in a fresh virtual environment")
            try:
                shown = bundle.confirm(bundles / row.id, environments, allowed=allowed)
                store.confirm(row.found.finding.signature, shown)
            except (CommandRefused, FormatError, MissingDependency) as error:  # a bundle may have been moved away
                return str(error)
    return ""


def _print_summary(
    campaign: Campaign, findings: list[Listed], reasons: tuple[str, ...], deaths: int, page: Path | None
) -> None:
    for finding in findings:
        say(_line(finding))
    for totals in campaign.totals:
        if totals.unexplained:
            say(f"NEW      {totals.executor}: {totals.unexplained} disagreements were not reduced (`fuzz reduce`)")
    for reason in reasons:
        say(f"VACUOUS  {reason}")
    new = sum(f.is_new for f in findings)
    died = f", {deaths} workers died and were replaced" if deaths else ""
    say(
        f"{campaign.programs} programs in {campaign.seconds['total']:.1f} s: {new} new disagreements, "
        f"{len(findings) - new} known{died}; again with --seed {campaign.seed}"
    )
    if page:
        say(f"report: {page}")


@fuzz.command()
@store_argument
@click.option("--check", is_flag=True, help="Check the laws of the store: nothing lost, nothing twice.")
@json_option
def status(store: str, check: bool, as_json: bool) -> int:
    """Say how far the campaigns of a store are."""
    with Store(store, readonly=True) as opened:
        rows = [_stream_facts(opened, stream) for stream in opened.streams()]
        problems = audit(opened, regenerate=3) if check else []
    if as_json:
        for row in rows:
            print_json(row)
    else:
        heads = (
            "campaign",
            "seed",
            "shard",
            "programs",
            "of",
            "minutes",
            "a second",
            "disagree",
            "kinds",
            "reduced",
            "open",
        )
        print_table(heads, [_cells(row) for row in rows])
    for problem in problems:
        say(f"PROBLEM  {problem}")
    if check and not problems and not as_json:
        say("the store is sound")
    return 1 if problems else 0


def _stream_facts(store: Store, stream: Stream) -> dict[str, Any]:
    programs, answers = store.done(stream.id)
    reduced, kinds = store.kin_counts(stream.id)
    (batches,) = store.database.one("SELECT count(*) FROM batch WHERE stream = ? AND digest = ''", (stream.id,))
    tally = store.tally(stream.id)
    return {
        "campaign": stream.id,
        "seed": stream.plan.seed,
        "shard": f"{stream.plan.shard}/{stream.plan.shards}",
        "started": stream.started,
        "programs": programs,
        "limit": {"programs": stream.plan.programs, "minutes": stream.plan.minutes},
        "seconds": round(stream.elapsed, 3),
        "open": {"batches": batches, "answers": answers},
        "disagreements": store.suspects(stream.id),
        "kinds": {"all": kinds, "reduced": reduced},
        "executors": {name: tally.part("verdict", name) for name in stream.available},
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


@fuzz.command()
@store_argument
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--status", "wanted", multiple=True, type=click.Choice([*STATUSES, "regressed"]), help="May be repeated.")
@click.option("--executor", default="*", metavar="PATTERN")
@click.option("--signature", default="*", metavar="PATTERN")
@click.option("--verdict", default="*", metavar="PATTERN")
@campaign_option
@click.option("--mark", type=click.Choice(STATUSES), help="Say this of all that is listed; later campaigns know it.")
@click.option("--note", default="", help="With --mark: a page, a link, a reason.")
@click.option("--bundles", metavar="DIR", help="Run what is listed again, and write its bundles.")
@allow_option
@json_option
def findings(
    store: str, ids: tuple[str, ...], wanted: tuple[str, ...], executor: str, signature: str, verdict: str,
    campaign: int | None, mark: str | None, note: str, bundles: str | None, allow_commands: bool, as_json: bool,
) -> None:  # fmt: skip
    """List the findings of a store, or mark them, or write their bundles."""
    if note and not mark:
        raise UsageError(detail="--note goes with --mark")
    with Store(store, readonly=not mark) as opened:
        streams = None if campaign is None else shards(opened, campaign)

        def select() -> list[Listed]:
            return [
                row
                for row in listed(opened, streams)
                if (not ids or any(row.id.startswith(i) for i in ids))
                and fnmatchcase(row.found.finding.signature, signature)
                and fnmatchcase(row.found.finding.verdict, verdict)
                and any(fnmatchcase(e, executor) for e in (*row.executors, row.found.finding.executor))
            ]

        rows = [row for row in select() if not wanted or row.status in wanted]
        for name in ids:
            if not any(row.id.startswith(name) for row in rows):
                raise UsageError(detail=f"{store}: no finding {name!r} is listed")
        if mark:
            if mark != "new" and not (ids or wanted or (executor, signature, verdict) != ("*", "*", "*")):
                raise UsageError(detail="--mark without an ID or a filter would mark everything")
            for row in rows:
                opened.mark(row.found.finding.signature, mark, note)
            marked = {row.id for row in rows}
            rows = [row for row in select() if row.id in marked]
        if bundles:
            _write_bundles(opened, rows, Path(bundles), _allowed(allow_commands, executor))
    for row in rows:
        if as_json:
            print_json(_finding_json(row))
        else:
            say(_line(row))


def _line(row: Listed) -> str:
    finding, sure = row.found.finding, {True: "", False: ", UNCONFIRMED", None: ""}[row.found.confirmed]
    why = f", {row.why}" if row.why else ""
    status = row.status.upper() if row.is_new else row.status
    return f"{status:9}{row.id}  {finding.signature}  [{finding.executor}, {row.programs} programs{why}{sure}]"


def _finding_json(row: Listed) -> dict[str, Any]:
    content: dict[str, Any] = encode(row.record)
    return {
        "id": row.id,
        "status": row.status,
        "why": row.why,
        "confirmed": row.found.confirmed,
        "confirmed_in_fresh_venv": row.found.afresh,
        "seconds_to_bundle": round(row.found.seconds, 3),
        "first_seen": row.first and date(row.first),
        "last_seen": row.last and date(row.last),
        "marks": [{"status": m.status, "note": m.note, "date": date(m.at)} for m in row.marks],
        **content,
    }


def _write_bundles(store: Store, rows: list[Listed], folder: Path, allowed: Sequence[str]) -> None:
    environments = {s.environment for s in store.streams()[-1:]}
    pool = Pool(allowed=allowed)
    try:
        for row in rows:
            executor = pool.recorded(row.record.executor, f"{store.path}: finding {row.id}")
            environment = next(iter(environments), ())
            bundle.write_bundle(folder / row.id, row.record, executor, row.found.case, environment)
    finally:
        pool.close()


@fuzz.command()
@click.argument("folder", metavar="BUNDLE")
@click.option("--executor", default="", metavar="NAME", help="Another one than it was found on.")
@click.option("--fresh-venv", is_flag=True, help="Do it in a virtual environment made for the bundle.")
@allow_option
@json_option
def replay(folder: str, executor: str, fresh_venv: bool, allow_commands: bool, as_json: bool) -> int:
    """Say whether a bundle still fails: exit status 1 while it does, 0 when it is gone."""
    path = Path(folder)
    if fresh_venv:
        if executor:
            raise UsageError(detail="--fresh-venv runs what the bundle names: leave out --executor")
        with FreshEnvironments() as environments:
            shown = bundle.confirm(path, environments, allowed=_allowed(allow_commands))
        say("still fails in a fresh environment" if shown else "not shown in a fresh environment")
        return 1 if shown else 0
    pool = Pool(allowed=_allowed(allow_commands))
    try:
        result = bundle.replay(path, pool, executor)
    finally:
        pool.close()
    answer = result.answer
    if as_json:
        print_json(
            {
                "bundle": folder, "outcome": result.outcome, "executor": answer.executor, "verdict": answer.verdict.value,
                "reason": answer.reason, "same_bits": result.same_bits,
            }
        )  # fmt: skip
    else:
        bits = {True: ", the recorded values", False: ", other values than recorded", None: ""}[result.same_bits]
        say(f"{result.outcome}: {answer.executor} {answer.verdict.value} {answer.reason}".rstrip() + bits)
    return 0 if result.outcome == "gone" else 1


@fuzz.command()
@click.argument("target", metavar="STORE|BUNDLE")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True, help="Budget each."
)
@click.option("--max-findings", type=click.IntRange(1), default=1000, show_default=True)
@campaign_option
@click.option("--bundles", metavar="DIR", help="Folder of the findings' bundles; default: STORE.findings.")
@allow_option
def reduce(
    target: str, seconds: float, max_findings: int, campaign: int | None, bundles: str | None, allow_commands: bool
) -> None:
    """Reduce what a campaign left unreduced, or a bundle further."""
    pool = Pool(allowed=_allowed(allow_commands))
    try:
        with progress_bar("reducing", None) as update:
            if Path(target).is_dir():
                _reduce_bundle(Path(target), seconds, pool, update)
                return
            with Store(target) as store, Lock(target):
                store.release()
                for stream in shards(store, campaign):
                    store.retry_kins(stream.id)
                    plan = dataclasses.replace(stream.plan, reduce_seconds=seconds, max_findings=max_findings)
                    executors = [pool.recorded(name, target) for name in stream.available]

                    def tell(progress: Progress) -> None:
                        update(progress.done, progress.total, "reducing disagreements")

                    folder = Path(bundles or f"{target}.findings")
                    site = dataclasses.replace(stream, plan=plan)
                    reduce_rest(Worksite(store, site, executors, pool, bundles=folder, progress=tell))
                for row in listed(store, shards(store, campaign)):
                    say(_line(row))
    finally:
        pool.close()


def _reduce_bundle(folder: Path, seconds: float, pool: Pool, update: Callable[..., None]) -> None:
    facts, case = bundle.read_bundle(folder)
    result = bundle.replay(folder, pool)
    if result.outcome == "gone":
        raise UsageError(detail=f"{folder}: does not fail any more")

    def tell(tests: int, size: Size) -> None:
        update(tests, None, f"reducing: {size}")

    executor = bundle.executor_of(folder, facts, pool)
    suspect = inspect(executor, case, result.answer, pool)
    finding, smaller = to_finding(suspect, pool, (), programs=1, also=(), budget_seconds=seconds, progress=tell)
    bundle.write_bundle(folder, finding, executor, smaller, facts.environment)
    say(f"{finding.signature}: {finding.original_instructions} -> {finding.instructions} instructions")


@fuzz.command()
@click.argument("target", metavar="A")
@click.argument("sources", nargs=-1, required=True, metavar="B...")
def merge(target: str, sources: tuple[str, ...]) -> None:
    """Bring the campaigns and findings of stores B into store A, which is made if it is not there."""
    for source in sources:
        if not Path(source).is_file():
            raise FormatError(where=source, detail="no such findings store")
    with Store(target, create=True) as store, Lock(target):
        for source in sources:
            merge_stores(store, source)
        rows = listed(store)
        programs = sum(store.done(s.id)[0] for s in store.streams())
    for row in rows:
        say(_line(row))
    say(f"{target}: {programs} programs, {len(rows)} findings")


def _with_limits(plan: Plan, limits: dict[str, Any]) -> Plan:
    names = ("programs", "minutes", "reduce_seconds", "max_findings")
    return dataclasses.replace(plan, **{name: limits[name] for name in names if limits[name] is not None})


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if not match or not int(match[1]) < int(match[2]):
        raise UsageError(detail=f"--shard {text}: must be I/N with 0 <= I < N, as 0/4 for the first of four")
    return int(match[1]), int(match[2])
