"""`fuzz replay`, `fuzz reduce`, `fuzz merge`: what is done with what campaigns find."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from fuzz.campaign.work import environment, reduce_rest
from fuzz.campaign.worksite import Progress, Worksite
from fuzz.cli.listing import campaign_option, line
from fuzz.findings import bundle, corpus
from fuzz.findings.environments import FreshEnvironments
from fuzz.findings.known import load_known
from fuzz.findings.listed import Listed, listed
from fuzz.findings.reduce import Size
from fuzz.findings.suspect import inspect
from fuzz.findings.triage import to_finding
from fuzz.store import Lock, Store
from fuzz.store.merge import merge as merge_stores
from oracle.case import Case
from oracle.peers import ANY, Executor, Pool
from oracle.verdict import Answer, Verdict
from tenferro_ref import escape
from tenferro_ref.console import CountRange, RealRange, allow_option, json_option, print_json, progress_bar, say, split
from tenferro_ref.errors import EnvironmentFault, FormatError, MissingDependency, UsageError
from tenferro_ref.files import write_atomically


def allowed_names(allow_commands: bool, *names: str) -> tuple[str, ...]:
    """`Pool.allowed`: a file may name any executor, or those that the call names as well."""
    return (ANY,) if allow_commands else names


def write_bundles(store: Store, rows: list[Listed], folder: Path, allowed: Sequence[str]) -> None:
    streams = store.streams()
    facts = streams[-1].environment if streams else ()
    with contextlib.closing(Pool(allowed=allowed)) as pool:
        for row in rows:
            executor = pool.recorded(row.record.executor, f"{store.path}: finding {row.id}")
            bundle.write_bundle(folder / row.id, row.record, executor, row.stored.case, facts)


def write_corpus(rows: list[Listed], folder: Path) -> None:
    for row in rows:
        finding, case = row.finding, row.stored.case
        if case.refusal is not None:
            raise UsageError(detail=f"{row.id}: an invalid program has no text form, and so no file of the corpus")
        expected = {"native": Verdict.PASS, finding.executor: Verdict(finding.verdict)}
        entry = corpus.Entry(row.id, finding.title, case, expected)
        write_atomically(folder / f"{row.id}.toml", corpus.text(entry))


# --- replay -----------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("targets", metavar="BUNDLE|FILE.toml...", nargs=-1, required=True)
@click.option("--executors", "--executor", default="", metavar="LIST", help="Instead of the recorded ones.")
@click.option("--fresh-venv", is_flag=True, help="Do it in a virtual environment made for the bundle.")
@click.option(
    "--bundle", "bundle_folder", metavar="DIR", help="Write a case of the corpus that disagrees as a bundle there."
)
@allow_option
@json_option
def replay(
    targets: tuple[str, ...], executors: str, fresh_venv: bool, bundle_folder: str | None, allow_commands: bool, as_json: bool
) -> int:  # fmt: skip
    """Run bundles or cases of the corpus again: exit status 1 while one disagrees, 0 when that is gone."""
    status = 0
    for target in targets:
        if len(targets) > 1 and not as_json:
            say(f"{target}:")
        allowed = allowed_names(allow_commands)
        status = max(status, _replay_one(target, executors, fresh_venv, bundle_folder, allowed, as_json))
    return status


def _replay_one(
    target: str, executors: str, fresh_venv: bool, bundle_folder: str | None, allowed: Sequence[str], as_json: bool
) -> int:
    path = Path(target)
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
            why = bundle.confirm(path, environments, allowed=allowed)
        say(f"not shown in a fresh environment: {why}" if why else "still fails in a fresh environment")
        return 0 if why else 1
    with contextlib.closing(Pool(allowed=allowed)) as pool:
        results = [bundle.replay(path, pool, name) for name in (split(executors) if executors else ("",))]
    for result in results:
        _print_replay(target, result, as_json)
    return 0 if all(result.outcome == "gone" for result in results) else 1


def _print_replay(target: str, result: bundle.Replay, as_json: bool) -> None:
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
            answer = entry.judge(executor, pool.reader)
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
    if not wrong:
        raise UsageError(detail=f"{entry.name}: no executor disagrees, so there is nothing to bundle")
    executor, answer = wrong[0]
    if isinstance(entry.case, corpus.ModuleCase):
        raise UsageError(
            detail=f"{entry.name}: its module is no program, which a bundle needs; the file says all there is"
        )
    case = entry.case if isinstance(entry.case, Case) else entry.case.case(pool.reader)
    suspect = inspect(executor, case, answer, pool)
    also = tuple(other.executor for _, other in wrong[1:])
    finding, case = to_finding(
        suspect, pool, load_known(), programs=0, also=also, budget_seconds=0.0, builds_seconds=entry.seconds
    )
    bundle.write_bundle(folder / finding.id, finding, executor, case, environment())
    click.echo(f"bundle: {escape.line(str(folder / finding.id))}", err=True)


# --- reduce and merge -------------------------------------------------------------------------------------------------


@click.command()
@click.argument("target", metavar="STORE|BUNDLE")
@click.option("--seconds", type=RealRange(0, min_open=True), default=60.0, show_default=True, help="Budget each.")
@click.option("--max-findings", type=CountRange(1), default=1000, show_default=True)
@campaign_option
@click.option("--bundles", metavar="DIR", help="Folder of the findings' bundles; default: STORE.findings.")
@allow_option
def reduce(
    target: str, seconds: float, max_findings: int, campaign: int | None, bundles: str | None, allow_commands: bool
) -> None:
    """Reduce what a campaign left unreduced, or a bundle further, which becomes another one where its signature changes."""
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
    finding, smaller = to_finding(suspect, pool, (), programs=0, also=(), budget_seconds=seconds, progress=show)
    target = folder if finding.signature == facts.signature else folder.parent / finding.id
    bundle.write_bundle(target, finding, executor, smaller, facts.environment)
    say(f"{finding.signature}: {finding.original_instructions} -> {finding.instructions} instructions, {target}")


@click.command()
@click.argument("target", metavar="A")
@click.argument("sources", nargs=-1, required=True, metavar="B...")
def merge(target: str, sources: tuple[str, ...]) -> None:
    """Bring the campaigns and findings of stores B into store A, which is made if it is not there."""
    for source in sources:
        if not Path(source).is_file():
            raise FormatError(where=source, detail="no such findings store")
        with Store(source, readonly=True) as store:
            store.database.check()  # before A is made
    with Store(target, create=True) as store, Lock(target):
        for source in sources:
            merge_stores(store, source)
        rows = listed(store)
        programs = sum(store.done(s.id)[0] for s in store.streams())
    for row in rows:
        say(line(row))
    say(f"{target}: {programs} programs, {len(rows)} findings")
