"""Heat maps of an op's error against the value that it was given, with the histogram of the errors beside them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from oracle.by_input import FAR, FARTHEST, WIDE
from reports.matrix import Entry
from reports.plots import power

#: Columns: negative inputs from the largest, zero, positive ones.
ZERO = 2 * FARTHEST + 1
COLUMNS, ROWS = 2 * ZERO + 1, FAR + 1
#: A square holds this many elements or more for each step of ink.
_STEPS = (1, 4, 16, 64)
#: Labels of columns and of rows; 2**(WIDE * FARTHEST) and more is the last column.
X_TICKS = (
    (0, f"-{power(WIDE * FARTHEST)}"),
    (FARTHEST, "-1"),
    (ZERO, "0"),
    (ZERO + 1 + FARTHEST, "1"),
    (2 * ZERO, power(WIDE * FARTHEST)),
)
Y_TICKS = ((0, "0"), (1, "1"), (10, power(9)), (FAR, power(FAR - 1)))


@dataclass(frozen=True, slots=True)
class HeatMap:
    """One (executor, dtype) of an op.

    Attributes
    ----------
    squares
        Column, row (0 for no error), and step of ink from 1.
    bars
        The histogram: row and share of the elements.
    identical
        Elements without error.
    """

    executor: str
    dtype: str
    squares: tuple[tuple[int, int, int], ...]
    bars: tuple[tuple[int, float], ...]
    elements: int
    identical: int


def heat_maps(entries: Iterable[Entry]) -> tuple[HeatMap, ...]:
    """One for each entry that has elements of known input and error."""
    return tuple(found for entry in entries if (found := _heat_map(entry)).elements)


def _heat_map(entry: Entry) -> HeatMap:
    places: Counter[tuple[int, int]] = Counter()
    for words, count in entry.ulps.items():
        found = re.fullmatch(r"(?:0|([+-])(-?\d)) (\d\d?)", words)
        if found and count > 0:
            x = 0 if found[1] is None else FARTHEST + 1 + max(-FARTHEST, min(int(found[2]), FARTHEST))
            places[ZERO - x if found[1] == "-" else ZERO + x, min(int(found[3]), FAR)] += count
    rows: Counter[int] = Counter()
    for (_, row), count in places.items():
        rows[row] += count
    total = rows.total()
    squares = tuple((x, y, sum(n >= step for step in _STEPS)) for (x, y), n in sorted(places.items()))
    bars = tuple((row, rows[row] / total) for row in sorted(rows))
    return HeatMap(entry.executor, entry.dtype, squares, bars, total, rows[0])
