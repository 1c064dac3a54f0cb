"""Parts of a campaign that are worked on elsewhere: cut out of a store as a store of its own, and taken back when done.

A part has one stream, with the batches or the one kind of disagreement that somebody holds, and all that is known of them.
Taking it back is one transaction; what the part was to do stays held until then, so that nothing is counted twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from fuzz.store.database import MEMORY
from fuzz.store.merge import attached, copy_stream, merge_findings
from fuzz.store.store import Job, Kin, Plan, Store, Stream
from tenferro_ref.errors import Internal

#: The only stream of a part.
_ID = 1
#: Suspects of a kind that go along, the smallest first: one is reduced, the others say who else shows it.
_SUSPECTS = 50
_IN_FLIGHT = ("program", "answer", "strike")


def cut_batches(store: Store, stream: Stream, jobs: Sequence[Job]) -> bytes:
    """The part that works on `jobs`, successive batches of the stream, and reduces nothing."""
    first, last = jobs[0], jobs[-1]
    end = last.number * stream.plan.batch + last.programs
    plan = dataclasses.replace(stream.plan, programs=end, minutes=None, shard=first.number, max_findings=0)
    with _part(stream, plan) as part:
        for job in jobs:
            _copy(store, part, "batch", "stream = ? AND number = ?", (job.stream, job.number))
            for table in _IN_FLIGHT:
                _copy(store, part, table, "stream = ? AND batch = ?", (job.stream, job.number))
        return _content(part)


def cut_kin(store: Store, stream: Stream, kin: Kin) -> bytes:
    """The part that reduces one kind of disagreement, and works on no batch."""
    with _part(stream, dataclasses.replace(stream.plan, programs=0, minutes=None, max_findings=1)) as part:
        _copy(store, part, "kin", "stream = ? AND name = ?", (kin.stream, kin.name))
        order = f"stream = ? AND kin = ? ORDER BY instructions, batch, number, rowid LIMIT {_SUSPECTS}"
        _copy(store, part, "suspect", order, (kin.stream, kin.name))
        return _content(part)


def absorb(store: Store, stream: Stream, path: str | Path, owner: str) -> None:
    """Take back the part at `path`, which `owner` holds in `store`.

    Raises
    ------
    Internal
        It is not held by `owner`: somebody has done it already.
    """
    with Store(path) as part:
        (source,) = part.streams()
        tally = part.tally(source.id)
    with attached(store, path) as write:
        for number, digest in write.execute("SELECT number, digest FROM source.batch WHERE digest <> ''").fetchall():
            sealed = write.execute(
                "UPDATE main.batch SET digest = ?, owner = ''"
                " WHERE stream = ? AND number = ? AND digest = '' AND owner = ?",
                (digest, stream.id, number, owner),
            )
            if sealed.rowcount != 1:
                raise Internal(detail=f"batch {number} is not held by {owner}")
            for table in _IN_FLIGHT:
                write.execute(f"DELETE FROM main.{table} WHERE stream = ? AND batch = ?", (stream.id, number))  # noqa: S608
        store.add_tally(stream.id, tally)
        if source.plan.max_findings:  # the suspects are ours, what they came to is theirs
            for name, claims, signature in write.execute("SELECT name, claims, signature FROM source.kin").fetchall():
                write.execute(
                    "UPDATE main.kin SET owner = '', claims = ?, signature = ? WHERE stream = ? AND name = ? AND owner = ?",
                    (claims, signature, stream.id, name, owner),
                )
            merge_findings(store, write)
        else:
            copy_stream(write, "suspect", source.id, stream.id)
            write.execute("INSERT OR IGNORE INTO main.kin (stream, name) SELECT ?, name FROM source.kin", (stream.id,))


def _part(stream: Stream, plan: Plan) -> Store:
    part = Store(MEMORY)
    part.begin(plan, stream.executors, stream.environment, stream.started)
    return part


def _copy(store: Store, part: Store, table: str, which: str, values: Sequence[object]) -> None:
    """Copy rows, whose first column is the stream."""
    rows = [(_ID, *row[1:]) for row in store.database.all(f"SELECT * FROM {table} WHERE {which}", values)]  # noqa: S608
    if rows:
        with part.database.write() as write:
            write.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)  # noqa: S608


def _content(part: Store) -> bytes:
    """The store as the bytes of its file; what is held here is for the first who asks there."""
    with part.database.write() as write:
        for table in ("batch", "kin"):
            write.execute(f"UPDATE {table} SET owner = '', claims = max(claims - 1, 0)")  # noqa: S608
    return part.database.connection.serialize()
