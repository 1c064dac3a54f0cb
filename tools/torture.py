"""The torture test: workers are killed at random all through a campaign, and the store must not notice.

`python -m tools.torture --kills 200` runs it over the native executors, takes copies of the store on the way, and compares the
end with a campaign of the same seed that nobody disturbed.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from fuzz.campaign.audit import audit
from fuzz.campaign.recorded import recorded
from fuzz.campaign.supervisor import Tick
from fuzz.campaign.work import begin, work
from fuzz.campaign.workers import run_workers
from fuzz.campaign.worksite import Worksite
from fuzz.records import Campaign
from fuzz.store import Lock, Plan, Store, Stream
from oracle.peers import Pool

EXECUTORS = ("native-unsegmented", "native-nopasses")


@dataclasses.dataclass(frozen=True)
class Torture:
    """What came of it: `problems` is empty if nothing was lost and nothing came twice."""

    kills: int
    deaths: int
    copies: int
    programs: int
    problems: tuple[str, ...]


def torture(
    folder: Path,
    plan: Plan,
    executors: Sequence[str] = EXECUTORS,
    *,
    kills: int,
    every: float = 1.0,
    workers: int = 2,
    seed: int = 0,
) -> Torture:
    """Run `plan` in `folder` while workers are killed, `every` so many seconds on average, until there were `kills`.

    Between two kills something gets done, however slow the machine. The plan should be long enough for all of them; what
    is left of it is done in peace.
    """
    rng = random.Random(seed)  # noqa: S311 - which worker dies is no secret
    path = folder / "tortured.sqlite"
    problems: list[str] = []
    done = copies = 0
    due = time.monotonic() + every
    before: tuple[int, int] | None = None

    def kill(tick: Tick) -> None:
        nonlocal done, copies, due, before
        if done >= kills or time.monotonic() < due or not tick.pids or store.done(stream.id) == before:
            return
        before = store.done(stream.id)
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(tick.pids), signal.SIGKILL)
            done += 1
        due = time.monotonic() + rng.uniform(0, 2 * every)
        if done % 10 == 1:  # a copy, as somebody might take one at any moment
            problems.extend(_check_copy(path, folder / f"copy{copies}.sqlite"))
            copies += 1

    pool = Pool()
    try:
        selection = pool.select(executors)
        with Lock(path) as lock, Store(path, create=True) as store:
            stream = begin(store, plan, selection)
            deaths = run_workers(path, stream, workers, lock=lock, tick=kill, allowed=stream.available)
            problems += audit(store, regenerate=10**9)
            tortured = recorded(store, [store.stream(stream.id)])
            left = _left(store, stream)
        with Store() as store:
            stream = begin(store, plan, selection)
            work(Worksite(store, stream, selection.executors, pool), alone=False)
            undisturbed = recorded(store, [store.stream(stream.id)])
    finally:
        pool.close()
    problems += left
    problems += _differences(tortured, undisturbed)
    return Torture(done, deaths, copies, tortured.programs, tuple(problems))


def _check_copy(path: Path, target: Path) -> list[str]:
    """Copy the store while it is being written to, and check the copy."""
    source, copy = sqlite3.connect(path), sqlite3.connect(target)
    with contextlib.closing(source), contextlib.closing(copy):
        source.backup(copy)
    with Store(target) as store:
        return [f"copy: {words}" for words in audit(store)]


def _left(store: Store, stream: Stream) -> list[str]:
    (open_batches,) = store.database.row(
        tuple[int], "SELECT count(*) FROM batch WHERE digest = '' AND stream = ?", (stream.id,)
    )
    return [f"{open_batches} batches were never finished"] if open_batches else []


def _differences(one: Campaign, other: Campaign) -> list[str]:
    """What two campaigns of one seed must have in common: everything but times."""

    def facts(campaign: Campaign) -> dict[str, object]:
        return {
            "programs": campaign.programs,
            "generator": campaign.generator,
            "cells": campaign.cells,
            "errors": campaign.errors,
            **{t.executor: dataclasses.replace(t, seconds={}, widths=(), unexplained=None) for t in campaign.totals},
        }

    a, b = facts(one), facts(other)
    return [f"{name}: {a[name]} with kills, {b[name]} without" for name in a if a[name] != b[name]]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.torture", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--every", type=float, default=1.5, help="seconds between two kills, on average")
    parser.add_argument("--programs", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--executors", default=",".join(EXECUTORS))
    given = parser.parse_args()
    plan = Plan(given.seed, programs=given.programs, reduce_seconds=1.0, max_findings=3)
    with tempfile.TemporaryDirectory() as folder:
        result = torture(
            Path(folder), plan, given.executors.split(","), kills=given.kills, every=given.every, workers=given.workers
        )  # fmt: skip
    for problem in result.problems:
        print(f"PROBLEM  {problem}")
    print(
        f"{result.programs} programs, {result.kills} kills, {result.deaths} deaths, {result.copies} copies checked: "
        f"{len(result.problems)} problems"
    )
    return 1 if result.problems or result.kills < given.kills else 0


if __name__ == "__main__":
    sys.exit(main())
