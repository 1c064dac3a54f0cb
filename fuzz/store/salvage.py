"""What can still be read of a damaged store, row by row, into a new one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from fuzz.records import Finding, from_json
from fuzz.store.merge import OF_A_STREAM
from fuzz.store.model import unpack
from fuzz.store.store import Store
from oracle.verdict import Answer
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
                if table == "finding" and (why := _unreadable(record=row[1])):
                    lost.append(f"a finding: left out: {why}")
                    continue
                try:
                    sql = f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(row))})"  # noqa: S608
                    kept += write.execute(sql, row).rowcount  # a row that is met from either end counts once
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


#: Tables whose rows hold what only this project decodes, and the columns of that.
_ENCODED = {"suspect": ("answer", "program", "inputs"), "answer": ("answer",), "program": ("program", "inputs")}


def unreadable_rows(store: Store, stream: int) -> Iterator[str]:
    """Rows of a stream that SQLite reads, and of which something cannot be decoded; in words."""
    for table, columns in _ENCODED.items():
        sql = f"SELECT batch, number, {', '.join(columns)} FROM {table} WHERE stream = ? ORDER BY 1, 2"  # noqa: S608
        for batch, number, *values in store.database.rows(tuple[Any, ...], sql, (stream,)):
            if why := _unreadable(**dict(zip(columns, values, strict=True))):
                yield f"{table}, batch {batch}, number {number}: {why}"


def unreadable_findings(store: Store) -> Iterator[str]:
    """As `unreadable_rows`, of findings."""
    for signature, record in store.database.rows(tuple[Any, ...], "SELECT signature, record FROM finding ORDER BY 1"):
        if why := _unreadable(record=record):
            yield f"finding {signature}: {why}"


def _unreadable(*, record: Any = None, answer: Any = None, program: Any = None, inputs: Any = None) -> str:
    """Why one of the values of a row, which may be of any type, cannot be decoded."""
    try:
        if record is not None:
            from_json(Finding, record, "record")
        if answer is not None:
            from_json(Answer, answer, "answer")
        if program is not None:
            unpack(program, inputs, "program")
    except (TenferroError, TypeError, ValueError) as error:
        return str(error)
    return ""
