"""The laws of a store: nothing lost, nothing twice. What the torture test checks, and `fuzz status --check`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fuzz.campaign.guide import draws
from fuzz.campaign.programs import unlike_its_seed
from fuzz.store import Store, Stream
from fuzz.store.errors import StoreDamaged
from fuzz.store.salvage import copy_readable, forget, streams_of, unreadable_findings, unreadable_rows
from oracle.verdict import Verdict
from tenferro_ref.errors import FormatError, UsageError


def audit(store: Store, *, regenerate: int = 0) -> list[str]:
    """What is wrong with the store, in words; empty if nothing is.

    Parameters
    ----------
    regenerate
        Make so many of the sealed batches of each stream again, and compare their programs with what was counted.

    Raises
    ------
    StoreDamaged
        Its pages contradict each other.
    """
    store.database.check()
    problems = [f"campaign {s.id}: {words}" for s in store.streams() for words in _stream(store, s, regenerate)]
    return [*problems, *unreadable_findings(store)]


def write_whole(source: Store, path: str | Path) -> list[str]:
    """Write what is whole in a store, campaigns and findings, to a new one; what was left out, in words.

    Raises
    ------
    UsageError
        There is something at `path`.
    OutputError
        It cannot be written.
    """
    if os.path.lexists(path):
        raise UsageError(detail=f"{path}: is there; give another name")
    with Store(path, create=True) as target:
        lost = copy_readable(source, target)
        for number in streams_of(target):
            try:
                problems = list(_stream(target, target.stream(number), 0))
            except (StoreDamaged, FormatError) as error:
                problems = [str(error)]
            if problems:
                forget(target, number)
                lost.append(f"campaign {number}: left out: {problems[0]}")
    return lost


def _stream(store: Store, stream: Stream, regenerate: int) -> Iterator[str]:
    plan, rows, key = stream.plan, store.database.rows, (stream.id,)
    batches = rows(
        tuple[int, int, int, str],
        "SELECT number, programs, counted, digest FROM batch WHERE stream = ? ORDER BY number",
        key,
    )
    for place, (number, programs, counted, _) in enumerate(batches):
        if number != plan.shard + place * plan.shards:
            yield f"batch {number} is where {plan.shard + place * plan.shards} belongs"
        # it may have less than the plan says, or more: campaigns are given other limits
        if not 0 <= counted < programs <= plan.batch:
            yield f"batch {number} has {programs} programs, {counted} counted before; a whole one has {plan.batch}"
    yield from unreadable_rows(store, stream.id)
    for number in unlike_its_seed(store, stream, regenerate):
        yield f"batch {number} was counted with other programs than its seed gives"

    asked, before = Counter[str](), batches[-1][0] + 1 if batches else 0
    for (_, programs, counted, mark), draw in zip(batches, draws(store, stream, before), strict=False):
        asked.update(dict.fromkeys(draw.executors, programs if mark else counted))
    counts = store.counts(stream.id)
    disagreements: Counter[str] = Counter()
    for executor in stream.available:
        verdicts = counts.part("verdict", executor)
        if sum(verdicts.values()) != asked[executor]:
            yield f"{executor}: {sum(verdicts.values())} verdicts on {asked[executor]} programs"
        disagreements[executor] = sum(n for v, n in verdicts.items() if Verdict(v).is_disagreement)
    by_executor = "SELECT executor, count(*) FROM suspect WHERE stream = ? GROUP BY 1"
    kept = Counter(dict(rows(tuple[str, int], by_executor, key)))
    if +kept != +disagreements:
        yield f"disagreements counted {dict(+disagreements)}, kept {dict(kept)}"

    opened = {number for number, _, _, mark in batches if not mark}
    for table in ("program", "answer", "strike"):
        sql = f"SELECT DISTINCT batch FROM {table} WHERE stream = ?"  # noqa: S608
        if stale := {number for (number,) in rows(tuple[int], sql, key)} - opened:
            yield f"rows of {table} are left of batches {sorted(stale)}"
    unlisted = "SELECT kin FROM suspect WHERE stream = ? EXCEPT SELECT name FROM kin WHERE stream = ?"
    if lost := rows(tuple[str], unlisted, key * 2):
        yield f"{len(lost)} groups of disagreements are not listed"
    named = "SELECT signature FROM kin WHERE stream = ? AND signature <> '' EXCEPT SELECT signature FROM finding"
    if lost := rows(tuple[str], named, key):
        yield f"{len(lost)} signatures have no finding"
