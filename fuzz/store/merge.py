"""One store from several: what the shards of an array job, or two machines, have found.

A stream that both have is the same work (its programs follow from its seed): the one that is further on is kept whole, so
that merging twice, or a store with itself, changes nothing. Findings are the same if their signatures are.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from fuzz.records import Finding, from_json
from fuzz.store.database import address
from fuzz.store.store import Store
from tenferro_ref.errors import UsageError

#: Tables whose rows belong to a stream, by its id in the first column.
OF_A_STREAM = ("batch", "program", "answer", "strike", "tally", "width", "suspect", "kin")


def merge(target: Store, source: str | Path) -> None:
    """Bring all of `source` into `target`, in one transaction; `source` is not changed.

    Raises
    ------
    UsageError
        The two have one campaign in different numbers of shards: their programs overlap.
    """
    with attached(target, source) as write:
        _streams(target, write)
        merge_findings(target, write)
        write.execute("INSERT OR IGNORE INTO mark SELECT * FROM source.mark")


@contextlib.contextmanager
def attached(target: Store, source: str | Path) -> Iterator[sqlite3.Connection]:
    """One transaction on `target` that sees the other store as `source`."""
    with Store(source, readonly=True) as other:  # checks version and identity
        other.database.check()
    if other.database.copied:
        Store(source).close()  # what is older is migrated
    database = target.database
    with database.errors():
        database.connection.execute("ATTACH DATABASE ? AS source", (address(source, "ro"),))
    try:
        with database.write() as write:
            yield write
    finally:
        with database.errors():
            database.connection.execute("DETACH DATABASE source")


def copy_stream(write: sqlite3.Connection, table: str, theirs: int, ours: int | None) -> None:
    """Add the rows of their stream to ours."""
    columns = ", ".join(name for _, name, *_ in write.execute(f"PRAGMA main.table_info({table})"))
    rest = columns.removeprefix("stream, ")
    write.execute(
        f"INSERT INTO main.{table} ({columns}) SELECT ?, {rest} FROM source.{table} WHERE stream = ?",  # noqa: S608
        (ours, theirs),
    )


def _streams(target: Store, write: sqlite3.Connection) -> None:
    rows = write.execute("SELECT id, campaign, shard, shards FROM source.stream ORDER BY id").fetchall()
    for theirs, campaign, shard, shards in rows:
        for (others,) in write.execute("SELECT DISTINCT shards FROM stream WHERE campaign = ?", (campaign,)):
            if others != shards:
                raise UsageError(
                    detail=f"{target.path}: has campaign {campaign} in {others} shards, the other store in {shards}: "
                    "their programs overlap"
                )
        ours = write.execute("SELECT id FROM stream WHERE campaign = ? AND shard = ?", (campaign, shard)).fetchone()
        if ours is None:
            columns = "campaign, shard, shards, plan, executors, environment, started, elapsed"
            number = write.execute(
                f"INSERT INTO stream ({columns}) SELECT {columns} FROM source.stream WHERE id = ?",  # noqa: S608
                (theirs,),
            ).lastrowid
        elif _progress(write, "source.", theirs) > _progress(write, "main.", ours[0]):
            (number,) = ours
            write.execute(
                "UPDATE stream SET (plan, elapsed) = (SELECT plan, elapsed FROM source.stream WHERE id = ?) WHERE id = ?",
                (theirs, number),
            )
        else:
            continue
        for table in OF_A_STREAM:
            write.execute(f"DELETE FROM main.{table} WHERE stream = ?", (number,))  # noqa: S608
            copy_stream(write, table, theirs, number)
        for table in ("batch", "kin"):
            write.execute(f"UPDATE main.{table} SET owner = '' WHERE stream = ?", (number,))  # noqa: S608


def _progress(write: sqlite3.Connection, schema: str, stream: int) -> tuple[int, int, int]:
    """How far a stream is: programs counted, groups of disagreements reduced, answers to open batches."""
    counts = (
        f"SELECT ifnull(sum(iif(digest = '', counted, programs)), 0) FROM {schema}batch WHERE stream = ?",  # noqa: S608
        f"SELECT count(*) FROM {schema}kin WHERE stream = ? AND signature <> ''",  # noqa: S608
        f"SELECT count(*) FROM {schema}answer WHERE stream = ?",  # noqa: S608
    )
    programs, groups, answers = (int(write.execute(sql, (stream,)).fetchone()[0]) for sql in counts)
    return programs, groups, answers


def merge_findings(target: Store, write: sqlite3.Connection) -> None:
    """The smaller of two findings of one signature stays, with the earlier date."""
    for row in write.execute(
        "SELECT signature, record, inputs, found, seconds, confirmed FROM source.finding"
    ).fetchall():
        signature, record, _, found, *_ = row
        ours = write.execute("SELECT record FROM main.finding WHERE signature = ?", (signature,)).fetchone()
        if ours is not None:
            size = [from_json(Finding, text, target.path).instructions for text in (record, ours[0])]
            if size[0] < size[1]:
                write.execute(
                    "UPDATE main.finding SET (record, inputs, confirmed) ="
                    " (SELECT record, inputs, confirmed FROM source.finding WHERE signature = ?) WHERE signature = ?",
                    (signature, signature),
                )
            write.execute("UPDATE main.finding SET found = min(found, ?) WHERE signature = ?", (found, signature))
        else:
            write.execute("INSERT INTO main.finding VALUES (?, ?, ?, ?, ?, ?)", row)
