"""`Choices`: decisions read from bytes.

A program is decoded from a header and a list of genes, one gene a step of growth. Every byte string decodes to a valid
program, so the same decoder serves Hypothesis (few, coarse draws that shrink byte by byte and gene by gene) and batches
(bytes of a hash). A decision takes whole bytes, whatever its number of choices, so that a smaller byte is a simpler choice
and leaves its neighbours alone; byte 0, and every byte after the end, is the simplest choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Choices:
    """Reads decisions from the bytes of a header or of one gene; after their end, only the simplest."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def byte(self) -> int:
        """The next byte."""
        at = self.at
        self.at = at + 1
        return self.data[at] if at < len(self.data) else 0

    def integer(self, size: int) -> int:
        """`size` bytes as an unsigned integer."""
        value = int.from_bytes(self.data[self.at : self.at + size], "big")
        self.at += size
        return value

    def pick(self, n: int) -> int:
        """One of `range(n)`, as evenly as one byte allows (two from n = 33 on)."""
        return self.byte() * n >> 8 if n <= 32 else self.integer(2) * n >> 16

    def chance(self, percent: float) -> bool:
        """True in `percent` of the cases; False is simpler."""
        return self.byte() >= 256 - 2.56 * percent

    def choose(self, options: Sequence[T]) -> T:
        """One of `options`, the first being the simplest."""
        return options[self.pick(len(options))]

    def near(self, n: int) -> int:
        """One of `range(n)`, small ones more often (density 1/sqrt)."""
        byte = self.byte()
        return byte * byte * n >> 16

    def permutation(self, n: int) -> tuple[int, ...]:
        """A permutation of `range(n)`; the identity is the simplest."""
        order = list(range(n))
        for i in range(n - 1):
            j = i + self.pick(n - i)
            order[i], order[j] = order[j], order[i]
        return tuple(order)


class Weighted(Generic[T]):
    """A choice among at most 1,024 entries with weights, the first entry being the simplest.

    Every entry has at least one place in 1,024, so that none is unreachable.
    """

    __slots__ = ("_places",)

    def __init__(self, weights: Sequence[tuple[T, float]]) -> None:
        total, reached = sum(weight for _, weight in weights), 0.0
        self._places: list[T] = []
        for entry, weight in weights:
            reached += weight
            self._places += [entry] * max(1, round(1024 * reached / total) - len(self._places))

    def entries(self) -> list[T]:
        """What can be chosen, in order."""
        return list(dict.fromkeys(self._places))

    def __call__(self, choices: Choices) -> T:
        return self._places[choices.pick(len(self._places))]
