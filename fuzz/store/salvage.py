"""What can still be read of a damaged store, row by row, into a new one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from fuzz.records import Finding, from_json
from fuzz.store.merge import OF_A_STREAM
from fuzz.store.store import Store
from tenferro_ref.errors import TenferroError

_TABLES = ("stream", *OF_A_STREAM, "finding", "mark")


def copy_readable(source: Store, target: Store) -> list[str]:
    """Copy the rows of `source` that can be read into `target`, which is empty; what could not be, in words."""
    lost = []
    with target.database.write() as write:
        write.execute("PRAGMA defer_foreign_keys = ON")
        for table in _TABLES:
            kept = 0
            for row in _rows(source.database.connection, table):
                if table == "finding" and (why := _unreadable(row)):
                    lost.append(f"a finding: left out: {why}")
                    continue
                try:
                    write.execute(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
                    kept += 1
                except sqlite3.IntegrityError:  # a value that the schema does not allow
                    lost.append(f"a row of {table}: left out")
            if (there := _count(source.database.connection, table)) is None or kept < there:
                lost.append(f"{table}: {kept} of {'an unknown number of' if there is None else there} rows")
    return lost


def streams_of(store: Store) -> list[int]:
    """Numbers of the streams, whether or not they can be decoded."""
    return [number for (number,) in store.database.rows(tuple[int], "SELECT id FROM stream ORDER BY id")]


def forget(store: Store, stream: int) -> None:
    """Remove a stream and all that belongs to it."""
    with store.database.write() as write:
        for table in OF_A_STREAM:
            write.execute(f"DELETE FROM {table} WHERE stream = ?", (stream,))  # noqa: S608
        write.execute("DELETE FROM stream WHERE id = ?", (stream,))


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """The rows from the first to the page that cannot be read, then from the last back to it."""
    for order in ("ASC", "DESC"):
        try:
            yield from connection.execute(f"SELECT * FROM {table} ORDER BY 1 {order}")  # noqa: S608
            return
        except sqlite3.DatabaseError:
            continue


def _count(connection: sqlite3.Connection, table: str) -> int | None:
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608
    except sqlite3.DatabaseError:
        return None


def _unreadable(row: tuple[Any, ...]) -> str:
    try:
        from_json(Finding, row[1], "finding")
    except (TenferroError, TypeError, ValueError) as error:
        return str(error)
    return ""
