"""What campaigns saw, counted over their disagreements: programs, times, executors."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fuzz.records import Time
from fuzz.store.store import GROUPS_WITH_SUSPECTS, Store


def sightings(store: Store, streams: Sequence[int] | None) -> dict[str, tuple[int, float, float, tuple[str, ...], int]]:
    """By signature: programs that showed it, first and last time, executors, and the number of the first such program; within
    `streams`, or the whole store."""
    within, ids = _within(streams)
    sql = f"FROM {GROUPS_WITH_SUSPECTS} WHERE signature <> '' {within}"
    size = "(SELECT ifnull(json_extract(plan, '$.batch'), 32) FROM stream WHERE stream.id = kin.stream)"
    columns = (
        "signature, count(DISTINCT fingerprint), min(seen), max(seen), json_group_array(DISTINCT executor), "
        f"min(batch * {size} + number)"
    )
    # one statement, since a campaign may write between two
    rows = store.database.rows(tuple[str, int, Time, Time, str, int], f"SELECT {columns} {sql} GROUP BY 1", ids)
    return {
        name: (n, first, last, tuple(sorted(msgspec.json.decode(executors, type=list[str]))), number)
        for name, n, first, last, executors, number in rows
    }


def located(store: Store, streams: Sequence[int] | None) -> dict[str, list[tuple[str, str, str]]]:
    """By signature: op, dtype and executor of the disagreements that led to it."""
    within, ids = _within(streams)
    columns = "DISTINCT signature, suspect.op, suspect.dtype, suspect.executor"
    sql = f"SELECT {columns} FROM {GROUPS_WITH_SUSPECTS} WHERE signature <> '' {within} ORDER BY 1, 2, 3, 4"  # noqa: S608
    places: dict[str, list[tuple[str, str, str]]] = {}
    for signature, op, dtype, executor in store.database.rows(tuple[str, str, str, str], sql, ids):
        places.setdefault(signature, []).append((op, dtype, executor))
    return places


def of_no_finding(store: Store, streams: Sequence[int]) -> dict[str, int]:
    """By executor: disagreements whose group led to no finding."""
    within, ids = _within(streams)
    sql = f"SELECT executor, count(*) FROM {GROUPS_WITH_SUSPECTS} WHERE signature = '' {within} GROUP BY 1"  # noqa: S608
    return dict(store.database.rows(tuple[str, int], sql, ids))


def _within(streams: Sequence[int] | None) -> tuple[str, Sequence[int]]:
    return ("", ()) if streams is None else (f"AND kin.stream IN ({', '.join('?' * len(streams))})", streams)
