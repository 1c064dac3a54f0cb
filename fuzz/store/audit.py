"""The laws of a store: nothing lost, nothing twice. What the torture test checks, and `fuzz status --check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fuzz.store.store import Store, Stream, digest
from oracle.verdict import Verdict


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
    return [f"campaign {s.id}: {words}" for s in store.streams() for words in _stream(store, s, regenerate)]


def _stream(store: Store, stream: Stream, regenerate: int) -> Iterator[str]:
    plan, rows = stream.plan, store.database.all
    batches = rows("SELECT number, programs, owner, digest FROM batch WHERE stream = ? ORDER BY number", (stream.id,))
    for place, (number, programs, _, mark) in enumerate(batches):
        if number != plan.shard + place * plan.shards:
            yield f"batch {number} is where {plan.shard + place * plan.shards} belongs"
        whole = plan.batch if plan.programs is None else min(plan.batch, plan.programs - number * plan.batch)
        if mark and programs != whole and place + 1 < len(batches):
            yield f"batch {number} has {programs} programs, not {whole}"
    sealed = [(number, programs, mark) for number, programs, _, mark in batches if mark]
    for number, programs, mark in sealed[:regenerate]:
        if digest(plan.cases(number)[:programs]) != mark:
            yield f"batch {number} was counted with other programs than its seed gives"

    counted = sum(programs for _, programs, _ in sealed)
    tally = store.tally(stream.id)
    disagreements: Counter[str] = Counter()
    for executor in stream.available:
        verdicts = tally.part("verdict", executor)
        if sum(verdicts.values()) != counted:
            yield f"{executor}: {sum(verdicts.values())} verdicts on {counted} programs"
        disagreements[executor] = sum(n for v, n in verdicts.items() if Verdict(v).is_disagreement)
    suspects = Counter(dict(rows("SELECT executor, count(*) FROM suspect WHERE stream = ? GROUP BY 1", (stream.id,))))
    if +suspects != +disagreements:
        yield f"disagreements counted {dict(+disagreements)}, kept {dict(suspects)}"

    opened = {number for number, _, _, mark in batches if not mark}
    for table in ("program", "answer", "strike"):
        sql = f"SELECT DISTINCT batch FROM {table} WHERE stream = ?"  # noqa: S608
        if stale := {number for (number,) in rows(sql, (stream.id,))} - opened:
            yield f"rows of {table} are left of batches {sorted(stale)}"
    orphans = rows(
        "SELECT kin FROM suspect WHERE stream = ? EXCEPT SELECT name FROM kin WHERE stream = ?", (stream.id, stream.id)
    )
    if orphans:
        yield f"{len(orphans)} kinds of disagreement are not listed"
    nowhere = rows(
        "SELECT signature FROM kin WHERE stream = ? AND signature <> '' EXCEPT SELECT signature FROM finding",
        (stream.id,),
    )
    if nowhere:
        yield f"{len(nowhere)} signatures have no finding"
