"""`fuzz findings`, `fuzz replay`, `fuzz reduce`, `fuzz merge`: what is done with what campaigns find."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from fuzz.campaign.work import environment, reduce_rest
from fuzz.campaign.worksite import Progress, Worksite
from fuzz.findings import bundle, corpus
from fuzz.findings.environments import FreshEnvironments
from fuzz.findings.known import load_known, stale
from fuzz.findings.listed import Listed, date, listed
from fuzz.findings.reduce import Size
from fuzz.findings.triage import inspect, to_finding
from fuzz.records import encode
from fuzz.store import STATUSES, Lock, Store
from fuzz.store.merge import merge as merge_stores
from oracle.case import Case
from oracle.peers import ANY, Executor, Pool
from oracle.verdict import Answer, Verdict
from tenferro_ref.console import allow_option, json_option, print_json, progress_bar, say, split
from tenferro_ref.errors import EnvironmentFault, FormatError, MissingDependency, UsageError
from tenferro_ref.files import write_atomically

store_argument = click.argument("store", metavar="STORE")
campaign_option = click.option(
    "--campaign", type=int, metavar="N", help="Number in `fuzz status`; default: the latest."
)


def allowed_names(allow_commands: bool, *names: str) -> tuple[str, ...]:
    """`Pool.allowed`: a file may name any executor, or those that the call names as well."""
    return (ANY,) if allow_commands else names


@click.command()
@store_argument
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--status", "wanted", multiple=True, type=click.Choice([*STATUSES, "regressed"]), help="May be repeated.")
@click.option("--executor", default="*", metavar="PATTERN")
@click.option("--signature", default="*", metavar="PATTERN")
@click.option("--verdict", default="*", metavar="PATTERN")
@campaign_option
@click.option("--mark", type=click.Choice(STATUSES), help="Mark all that is listed; later campaigns know it.")
@click.option("--note", default="", help="With --mark: a page, a link, a reason.")
@click.option("--bundles", metavar="DIR", help="Run what is listed again, and write its bundles.")
@click.option("--corpus", "corpus_folder", metavar="DIR", help="Write what is listed as files of the corpus.")
@allow_option
@json_option
def findings(
    store: str, ids: tuple[str, ...], wanted: tuple[str, ...], executor: str, signature: str, verdict: str,
    campaign: int | None, mark: str | None, note: str, bundles: str | None, corpus_folder: str | None, allow_commands: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """List the findings of a store, or mark them, or write them down."""
    if note and not mark:
        raise UsageError(detail="--note goes with --mark")
    with Store(store, readonly=not mark) as opened:
        streams = None if campaign is None else opened.shards(campaign)

        def select() -> list[Listed]:
            return [
                row
                for row in listed(opened, streams)
                if (not ids or any(row.id.startswith(i) for i in ids))
                and fnmatchcase(row.finding.signature, signature)
                and fnmatchcase(row.finding.verdict, verdict)
                and any(fnmatchcase(e, executor) for e in (*row.executors, row.finding.executor))
            ]

        rows = [row for row in select() if not wanted or row.status in wanted]
        for name in ids:
            if not any(row.id.startswith(name) for row in rows):
                raise UsageError(detail=f"{store}: no finding {name!r} is listed")
        if mark:
            if mark != "new" and not (ids or wanted or (executor, signature, verdict) != ("*", "*", "*")):
                raise UsageError(detail="--mark without an ID or a filter would mark everything")
            if not rows:
                raise UsageError(detail=f"{store}: no finding is listed, so none was marked")
            for row in rows:
                opened.mark(row.finding.signature, mark, note)
            marked = {row.id for row in rows}
            rows = [row for row in select() if row.id in marked]
        if bundles:
            _write_bundles(opened, rows, Path(bundles), allowed_names(allow_commands, executor))
        if corpus_folder:
            _write_corpus(rows, Path(corpus_folder))
    for row in rows:
        if as_json:
            print_json(_finding_json(row))
        else:
            say(line(row))


def line(row: Listed) -> str:
    """A finding in one line."""
    finding, sure = row.finding, {True: "", False: ", UNCONFIRMED", None: ""}[row.stored.confirmed]
    why = f", {row.why}" if row.why else ""
    status = row.status.upper() if row.is_new else row.status
    return f"{status:9}{row.id}  {finding.signature}  [{finding.executor}, {row.programs} programs{why}{sure}]"


def _finding_json(row: Listed) -> dict[str, Any]:
    content: dict[str, Any] = encode(row.record)
    return {
        "id": row.id,
        "status": row.status,
        "why": row.why,
        "confirmed": row.stored.confirmed,
        "confirmed_in_fresh_venv": row.stored.afresh,
        "seconds_to_bundle": round(row.stored.seconds, 3),
        "first_seen": row.first and date(row.first),
        "last_seen": row.last and date(row.last),
        "marks": [{"status": m.status, "note": m.note, "date": date(m.at)} for m in row.marks],
        **content,
    }


def _write_bundles(store: Store, rows: list[Listed], folder: Path, allowed: Sequence[str]) -> None:
    streams = store.streams()
    facts = streams[-1].environment if streams else ()
    with contextlib.closing(Pool(allowed=allowed)) as pool:
        for row in rows:
            executor = pool.recorded(row.record.executor, f"{store.path}: finding {row.id}")
            bundle.write_bundle(folder / row.id, row.record, executor, row.stored.case, facts)


def _write_corpus(rows: list[Listed], folder: Path) -> None:
    for row in rows:
        finding, case = row.finding, row.stored.case
        if case.refusal is not None:
            raise UsageError(detail=f"{row.id}: an invalid program has no text form, and so no file of the corpus")
        expected = {"native": Verdict.PASS, finding.executor: Verdict(finding.verdict)}
        entry = corpus.Entry(row.id, finding.title, case, expected)
        write_atomically(folder / f"{row.id}.toml", corpus.text(entry))


@click.command("stale")
@store_argument
@json_option
def stale_(store: str, as_json: bool) -> None:
    """List the rules of known findings that nothing in a store matches.

    Only rules about builds of which the store has findings are listed. After a long campaign such a rule is too narrow, or what
    its page describes is gone from the builds, or no program draws it any more.
    """
    with Store(store, readonly=True) as opened:
        rules = stale([stored.finding for stored in opened.findings()], load_known())
    for page, signature in rules:
        if as_json:
            print_json({"page": page, "signature": signature})
        else:
            say(f"{page}: {signature}")


# --- replay -----------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("target", metavar="BUNDLE|FILE.toml")
@click.option("--executors", "--executor", default="", metavar="LIST", help="Instead of the recorded ones.")
@click.option("--fresh-venv", is_flag=True, help="Do it in a virtual environment made for the bundle.")
@click.option("--bundle", "bundle_folder", metavar="DIR", help="Write a case of the corpus that disagrees as a bundle.")
@allow_option
@json_option
def replay(
    target: str, executors: str, fresh_venv: bool, bundle_folder: str | None, allow_commands: bool, as_json: bool
) -> int:
    """Run a bundle or a case of the corpus again: exit status 1 while it disagrees, 0 when that is gone."""
    path, allowed = Path(target), allowed_names(allow_commands)
    if path.suffix == ".toml":
        if fresh_venv:
            raise UsageError(detail="--fresh-venv is for bundles; --bundle DIR makes one")
        return _replay_case(path, executors, bundle_folder, allowed, as_json)
    if bundle_folder:
        raise UsageError(detail="--bundle is for files of the corpus (*.toml)")
    if fresh_venv:
        if executors:
            raise UsageError(detail="--fresh-venv runs what the bundle names: leave out --executors")
        with FreshEnvironments() as environments:
            shown = bundle.confirm(path, environments, allowed=allowed)
        say("still fails in a fresh environment" if shown else "not shown in a fresh environment")
        return 1 if shown else 0
    with contextlib.closing(Pool(allowed=allowed)) as pool:
        result = bundle.replay(path, pool, executors)
    answer = result.answer
    if as_json:
        print_json(
            {
                "bundle": target, "outcome": result.outcome, "executor": answer.executor, "verdict": answer.verdict.value,
                "reason": answer.reason, "same_bits": result.same_bits,
            }
        )  # fmt: skip
    else:
        bits = {True: ", the recorded values", False: ", other values than recorded", None: ""}[result.same_bits]
        say(f"{result.outcome}: {answer.executor} {answer.verdict.value} {answer.reason}".rstrip() + bits)
    return 0 if result.outcome == "gone" else 1


def _replay_case(path: Path, executors: str, bundle_folder: str | None, allowed: Sequence[str], as_json: bool) -> int:
    """Judge a case of the corpus on its executors, or on others; an executor that is missing is listed with the reason."""
    entry = corpus.load(path)
    wrong: list[tuple[Executor, Answer]] = []
    with contextlib.closing(Pool(request_seconds=entry.seconds, allowed=allowed)) as pool:
        missing = None
        for name in () if executors else entry.expected:
            pool.permit(name, str(path))
        for name in split(executors) if executors else entry.expected:
            recorded = entry.expected.get(name)
            try:
                executor = pool.make(name)
                executor.open()
            except EnvironmentFault as fault:
                if executors:
                    raise
                missing = fault if recorded and recorded.is_disagreement else missing
                _print_verdict(path, name, recorded, "missing", str(fault), as_json)
                continue
            answer = entry.judge(executor)
            if answer.verdict.is_disagreement:
                wrong.append((executor, answer))
            _print_verdict(path, name, recorded, answer.verdict.value, answer.reason, as_json)
        if bundle_folder:
            _bundle_case(entry, wrong, Path(bundle_folder), pool)
    if missing and not wrong:
        raise MissingDependency(name="every executor that showed this", remedy=str(missing))
    return 1 if wrong else 0


def _print_verdict(path: Path, name: str, recorded: Verdict | None, verdict: str, reason: str, as_json: bool) -> None:
    before = recorded.value if recorded else None
    if as_json:
        print_json({"case": str(path), "executor": name, "recorded": before, "verdict": verdict, "reason": reason})
    else:
        changed = f" (recorded: {before})" if before and before != verdict else ""
        say(f"{name} {verdict}{changed} {reason}".rstrip())


def _bundle_case(entry: corpus.Entry, wrong: list[tuple[Executor, Answer]], folder: Path, pool: Pool) -> None:
    if not isinstance(entry.case, Case):
        raise UsageError(detail=f"{entry.name}: a module has no bundle; its file says all there is")
    if not wrong:
        raise UsageError(detail=f"{entry.name}: no executor disagrees, so there is nothing to bundle")
    executor, answer = wrong[0]
    suspect = inspect(executor, entry.case, answer, pool)
    also = tuple(other.executor for _, other in wrong[1:])
    finding, case = to_finding(suspect, pool, load_known(), programs=1, also=also, budget_seconds=0.0)
    bundle.write_bundle(folder, finding, executor, case, environment())


# --- reduce and merge -------------------------------------------------------------------------------------------------


@click.command()
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
    allowed = allowed_names(allow_commands)
    with contextlib.closing(Pool(allowed=allowed)) as pool, progress_bar("reducing", None) as update:
        if Path(target).is_dir():
            _reduce_bundle(Path(target), seconds, pool, update)
            return
        with Store(target) as store, Lock(target):
            store.release()
            for stream in store.shards(campaign):
                store.retry_groups(stream.id)
                plan = dataclasses.replace(stream.plan, reduce_seconds=seconds, max_findings=max_findings)
                executors = [pool.recorded(name, target) for name in stream.available]

                def show(progress: Progress) -> None:
                    update(progress.done, progress.total, "reducing disagreements")

                folder = Path(bundles or f"{target}.findings")
                changed = dataclasses.replace(stream, plan=plan)
                reduce_rest(Worksite(store, changed, executors, pool, bundles=folder, progress=show))
            for row in listed(store, store.shards(campaign)):
                say(line(row))


def _reduce_bundle(folder: Path, seconds: float, pool: Pool, update: Callable[..., None]) -> None:
    facts, case = bundle.read_bundle(folder)
    result = bundle.replay(folder, pool)
    if result.outcome == "gone":
        raise UsageError(detail=f"{folder}: does not fail any more")

    def show(tests: int, size: Size) -> None:
        update(tests, None, f"reducing: {size}")

    executor = bundle.executor_of(folder, facts, pool)
    suspect = inspect(executor, case, result.answer, pool)
    finding, smaller = to_finding(suspect, pool, (), programs=1, also=(), budget_seconds=seconds, progress=show)
    bundle.write_bundle(folder, finding, executor, smaller, facts.environment)
    say(f"{finding.signature}: {finding.original_instructions} -> {finding.instructions} instructions")


@click.command()
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
        say(line(row))
    say(f"{target}: {programs} programs, {len(rows)} findings")
