"""Counts of a campaign as a store keeps them: sums and maxima by key, and points of the accuracy plot."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from fuzz.store.database import Database
from fuzz.store.errors import StoreDamaged
from oracle.verdict import Verdict

#: Points of the accuracy plot kept for each executor.
WIDTHS = 4000

Key = tuple[str, ...]

#: Words that follow the kind in a key; those of `_VERDICTS` end with a verdict.
_WORDS = {
    "verdict": 2, "number": 2, "seconds": 2, "cell": 4, "beside": 4, "refusal": 4, "held": 4, "feature": 1, "phase": 1, "opcode": 2,
    "fault": 2, "due": 3, "worst": 1, "cell_ulp": 3, "example": 4, "ulps": 4,
}  # fmt: skip
_VERDICT_WORDS = frozenset(verdict.value for verdict in Verdict)
_VERDICTS = frozenset({"verdict", "cell", "beside", "due", "example"})
_PEAKS = frozenset({"worst", "cell_ulp", "example"})
#: Kinds whose values need not be whole.
_REAL = frozenset({"seconds", "phase", "worst", "cell_ulp"})


@dataclass
class Counts:
    """Sums and maxima by key, and points.

    Attributes
    ----------
    sums
        `("verdict", executor, verdict)`, `("number", executor, what)`, `("seconds", executor, phase)`,
        `("cell", op, dtype, executor, verdict)`, `("beside", op, dtype, executor, verdict)`,
        `("refusal", op, dtype, executor, reason)`, `("held", op, dtype, executor, "elements" or "decided" or "tight")`,
        `("ulps", op, dtype, executor, bins of input and distance)`, `("feature", what)`, `("phase", what)`, `("opcode", executor, opcode)`,
        `("fault", kind of error, what)`, `("due", kind of error, executor, verdict)`.
    peaks
        `("worst", executor)`, `("cell_ulp", op, dtype, executor)`, and the number of the last program that is in a count `cell`:
        `("example", op, dtype, executor, verdict)`.
    widths
        Points of the accuracy plot by executor.
    """

    sums: Counter[Key] = field(default_factory=Counter)
    peaks: dict[Key, float] = field(default_factory=dict)
    widths: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    def add_seconds(self, key: Key, seconds: float) -> None:
        self.sums[key] += seconds  # type: ignore[assignment]  # Counter adds floats as well

    def raise_peak(self, key: Key, value: float) -> None:
        self.peaks[key] = max(self.peaks.get(key, 0.0), value)

    def update(self, other: Counts) -> None:
        self.sums.update(other.sums)
        for key, value in other.peaks.items():
            self.raise_peak(key, value)
        for name, points in other.widths.items():
            self.widths[name] += points

    def part(self, *prefix: str) -> dict[str, int]:
        """The sums whose key is `prefix` and one more word, by that word."""
        n = len(prefix)  # few of many are sorted
        return dict(sorted((key[n], v) for key, v in self.sums.items() if len(key) == n + 1 and key[:n] == prefix))

    @classmethod
    def of(cls, database: Database, stream: int) -> Counts:
        """The counts of a stream."""
        counts = cls()
        sql = "SELECT kind, key, value FROM tally WHERE stream = ?"
        for kind, key, value in database.rows(tuple[str, str, float | int], sql, (stream,)):
            words = _words(key)
            whole = isinstance(value, int) or (kind == "example" and value.is_integer())
            if not _is_key(kind, words) or not (whole or kind in _REAL):
                raise StoreDamaged(path=database.path, detail=f"the count {kind} {key} is {value}")
            (counts.peaks if kind in _PEAKS else counts.sums)[kind, *words] = value  # type: ignore[assignment]
        sql = "SELECT executor, width, distance FROM width WHERE stream = ? ORDER BY rowid"
        for executor, width, distance in database.rows(tuple[str, float, float], sql, (stream,)):
            counts.widths[executor].append((width, distance))
        return counts

    def add_to(self, write: sqlite3.Connection, stream: int) -> None:
        """Add these counts to those of a stream, inside a transaction of the caller's."""
        for combine, entries in (("value + excluded.value", self.sums), ("max(value, excluded.value)", self.peaks)):
            write.executemany(
                f"INSERT INTO main.tally VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET value = {combine}",  # noqa: S608
                [(stream, key[0], json.dumps(key[1:]), value) for key, value in entries.items()],
            )
        for executor, points in self.widths.items():
            sql = "SELECT count(*) FROM main.width WHERE stream = ? AND executor = ?"
            (have,) = write.execute(sql, (stream, executor)).fetchone()
            rows = [(stream, executor, *point) for point in points[: max(WIDTHS - have, 0)]]
            write.executemany("INSERT INTO main.width VALUES (?, ?, ?, ?)", rows)


def _words(key: str) -> Key:
    """The words of a key; none if it is no list of words."""
    try:
        words = json.loads(key)
    except (ValueError, RecursionError):
        return ()
    return tuple(words) if isinstance(words, list) and all(isinstance(word, str) for word in words) else ()


def _is_key(kind: str, words: Key) -> bool:
    return _WORDS.get(kind) == len(words) and (kind not in _VERDICTS or words[-1] in _VERDICT_WORDS)
