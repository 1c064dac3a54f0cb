"""Parts of a campaign that are worked on elsewhere: cut out of a store as a store of its own, and taken back when done.

A part has one stream, with the batches or the one group of disagreements that a supervisor holds, and all that is recorded
of them. Taking it back is one transaction; what the part was to do stays held until then, so that nothing is counted twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzz.store.database import MEMORY
from fuzz.store.merge import attached, copy_stream, merge_findings
from fuzz.store.model import Batch, Group, Plan, Stream
from fuzz.store.store import IN_FLIGHT, Store
from tenferro_ref.errors import Internal

#: The only stream of a part.
_ID = 1
#: Disagreements of a group that go along, the smallest first: one is reduced, the others say who else shows it.
_DISAGREEMENTS = 50


def cut_batches(store: Store, stream: Stream, batches: Sequence[Batch]) -> bytes:
    """The part that works on `batches`, successive ones of the stream, and reduces nothing."""
    first, last = batches[0], batches[-1]
    end = last.number * stream.plan.batch + last.programs
    plan = dataclasses.replace(stream.plan, programs=end, minutes=None, shard=first.number, max_findings=0)
    with _part(stream, plan) as part:
        for batch in batches:
            _copy(store, part, "batch", "stream = ? AND number = ?", (batch.stream, batch.number))
            for table in IN_FLIGHT:
                _copy(store, part, table, "stream = ? AND batch = ?", (batch.stream, batch.number))
        return _content(part)


def cut_group(store: Store, stream: Stream, group: Group) -> bytes:
    """The part that reduces one group of disagreements, and works on no batch."""
    with _part(stream, dataclasses.replace(stream.plan, programs=0, minutes=None, max_findings=1)) as part:
        _copy(store, part, "kin", "stream = ? AND name = ?", (group.stream, group.name))
        order = f"stream = ? AND kin = ? ORDER BY instructions, batch, number, rowid LIMIT {_DISAGREEMENTS}"
        _copy(store, part, "suspect", order, (group.stream, group.name))
        return _content(part)


def absorb(store: Store, stream: Stream, path: str | Path, owner: str) -> None:
    """Take back the part at `path`, which `owner` holds in `store`.

    Raises
    ------
    Internal
        It is not held by `owner`: it was taken back already.
    """
    with Store(path) as part:
        (source,) = part.streams()
        counts = part.counts(source.id)
    with attached(store, path) as write:
        for number, digest in write.execute("SELECT number, digest FROM source.batch WHERE digest <> ''").fetchall():
            sealed = write.execute(
                "UPDATE main.batch SET digest = ?, owner = '', counted = 0"
                " WHERE stream = ? AND number = ? AND digest = '' AND owner = ?",
                (digest, stream.id, number, owner),
            )
            if sealed.rowcount != 1:
                raise Internal(detail=f"batch {number} is not held by {owner}")
            for table in IN_FLIGHT:
                write.execute(f"DELETE FROM main.{table} WHERE stream = ? AND batch = ?", (stream.id, number))  # noqa: S608
        counts.add_to(write, stream.id)
        if source.plan.max_findings:  # the disagreements are here already, what they came to comes back
            for name, claims, signature in write.execute("SELECT name, claims, signature FROM source.kin").fetchall():
                settled = write.execute(
                    "UPDATE main.kin SET owner = '', claims = ?, signature = ? WHERE stream = ? AND name = ? AND owner = ?",
                    (claims, signature, stream.id, name, owner),
                )
                if settled.rowcount != 1:
                    raise Internal(detail=f"group {name} is not held by {owner}")
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
    sql = f"SELECT * FROM {table} WHERE {which}"  # noqa: S608
    rows = [(_ID, *row[1:]) for row in store.database.rows(tuple[Any, ...], sql, values)]
    if rows:
        with part.database.write() as write:
            write.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)  # noqa: S608


def _content(part: Store) -> bytes:
    """The store as the bytes of its file; the machine that gets it holds nothing yet."""
    with part.database.write() as write:
        for table in ("batch", "kin"):
            write.execute(f"UPDATE {table} SET owner = '', claims = max(claims - 1, 0)")  # noqa: S608
    return part.database.connection.serialize()
