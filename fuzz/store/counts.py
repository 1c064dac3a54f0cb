"""Counts of a campaign as a store keeps them: sums and maxima by key, and points of the accuracy plot."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

#: Points of the accuracy plot kept for each executor.
WIDTHS = 4000

Key = tuple[str, ...]


@dataclass
class Counts:
    """Sums and maxima by key, and points.

    Attributes
    ----------
    sums
        `("verdict", executor, verdict)`, `("number", executor, what)`, `("seconds", executor, phase)`,
        `("cell", op, dtype, executor, verdict)`, `("feature", what)`, `("phase", what)`, `("opcode", executor, opcode)`,
        `("fault", kind of error, what)`, `("due", kind of error, executor, verdict)`.
    peaks
        `("worst", executor)`, `("cell_ulp", op, dtype, executor)`.
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
        n = len(prefix)
        return {key[n]: value for key, value in sorted(self.sums.items()) if key[:n] == prefix and len(key) == n + 1}
