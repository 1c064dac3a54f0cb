"""`conformance`: folders of modules that state their own results."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from fuzz.checking.conformance import NATIVE, Outcome, conform
from fuzz.records import encode
from oracle.peers import Pool
from tenferro_ref.console import json_option, print_json, print_table, progress_bar, say, split
from tenferro_ref.errors import UsageError


@click.command()
@click.argument("folders", nargs=-1, required=True)
@click.option("--executors", default=NATIVE, metavar="LIST", help="Names separated by commas; default: native alone.")
@json_option
def conformance(folders: tuple[str, ...], executors: str, as_json: bool) -> int:
    """Run the .mlir files in FOLDERS that state their results, and count what holds.

    Files are in the style of StableHLO's test data: functions with `check.expect_eq`, `expect_almost_eq` or `expect_close`, as
    custom calls or as ops of the `check` dialect. Each function runs as it stands on the executors of StableHLO. Exit status 1
    if a statement does not hold somewhere; what is not read, or what an executor lacks, is counted by itself.
    """
    files = [path for folder in folders for path in _files(Path(folder))]
    pool, outcomes = Pool(), []
    try:
        chosen = pool.select(split(executors)).executors
        with progress_bar("conformance", len(files)) as update:
            seen: set[str] = set()
            for outcome in conform(files, chosen, pool.reader):
                outcomes.append(outcome)
                seen.add(outcome.name.partition(" ")[0])
                update(len(seen), len(files), "conformance")
                if as_json:
                    print_json(encode(outcome) | {"holds": outcome.holds})
                else:
                    _print(outcome)
    finally:
        pool.close()
    if outcomes and not any(outcome.executors or outcome.unsupported for outcome in outcomes):
        raise UsageError(detail=f"none of {len(outcomes)} files could be run; the first: {outcomes[0].read}")
    if not outcomes:
        raise UsageError(detail=f"{', '.join(folders)}: no file there states a result")
    if not as_json:
        _print_score(outcomes, [executor.name for executor in chosen])
    return int(not all(outcome.holds for outcome in outcomes))


def _files(folder: Path) -> list[Path]:
    if not folder.exists():
        raise UsageError(detail=f"{folder}: no such file or folder")
    return [folder] if folder.is_file() else sorted(folder.rglob("*.mlir"))


def _print(outcome: Outcome) -> None:
    for name, reason in ({"read": outcome.read} | outcome.executors).items():
        if reason:
            say(f"{outcome.name}: {name}: {reason}")


def _print_score(outcomes: list[Outcome], names: list[str]) -> None:
    say(f"read as programs: {sum(not o.read for o in outcomes)} of {len(outcomes)}")
    rows = []
    for name in names:
        count = Counter("holds" if not o.executors[name] else "wrong" for o in outcomes if name in o.executors)
        lacks = sum(name in o.unsupported for o in outcomes)
        asked = count["holds"] + count["wrong"] + lacks
        rows.append([name, str(count["holds"]), str(count["wrong"]), str(lacks), str(len(outcomes) - asked)])
    print_table(("executor", "holds", "wrong", "unsupported", "not run"), rows)
