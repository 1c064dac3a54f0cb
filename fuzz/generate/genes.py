"""Genes: the bytes that decisions are read from.

A program is decoded from a header and a list of genes, one gene a step of growth. Every byte string decodes to a valid
program, so the same decoder serves Hypothesis (few, coarse draws that shrink byte by byte and gene by gene) and the bulk
generator (bytes of a seeded generator). A decision takes whole bytes, whatever its number of choices, so that a smaller
byte is a simpler choice and leaves its neighbours alone; byte 0, and every byte after the end, is the simplest choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Genes:
    """A reader of decisions; it never runs dry."""

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
        """One of `range(n)`, as evenly as one byte (two from n = 33 on) can say."""
        return self.byte() * n >> 8 if n <= 32 else self.integer(2) * n >> 16

    def chance(self, percent: float) -> bool:
        """True in `percent` of the cases; no is simpler."""
        return self.byte() >= 256 - 2.56 * percent

    def choose(self, choices: Sequence[T]) -> T:
        """One of `choices`, the first being the simplest."""
        return choices[self.pick(len(choices))]

    def near(self, n: int) -> int:
        """One of `range(n)`, small ones more often (density 1/sqrt)."""
        byte = self.byte()
        return byte * byte * n >> 16

    def permutation(self, n: int) -> tuple[int, ...]:
        """A permutation of `range(n)`; identity is simplest."""
        order = list(range(n))
        for i in range(n - 1):
            j = i + self.pick(n - i)
            order[i], order[j] = order[j], order[i]
        return tuple(order)


class Weighted(Generic[T]):
    """A choice among entries with weights, the first entry being the simplest; at most 1,024 entries."""

    __slots__ = ("_table",)

    def __init__(self, weights: Sequence[tuple[T, float]]) -> None:
        total, reached = sum(weight for _, weight in weights), 0.0
        self._table: list[T] = []
        for entry, weight in weights:
            reached += weight
            # at least one place each: nothing that is named is unreachable
            self._table += [entry] * max(1, round(1024 * reached / total) - len(self._table))

    def entries(self) -> list[T]:
        """What can be chosen, in order."""
        return list(dict.fromkeys(self._table))

    def __call__(self, genes: Genes) -> T:
        return self._table[genes.pick(len(self._table))]
