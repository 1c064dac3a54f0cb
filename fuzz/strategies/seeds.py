"""`generator`: NumPy's generator of a seed, without what seeding one costs (more than the elements of a small array).

The words that NumPy makes of a seed are made for all seeds of two bytes at once, by the same arithmetic
(`numpy.random.SeedSequence`), so that the numbers are those of `Generator(PCG64(seed))`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

_Words = NDArray[np.uint32]
_SEEDS = 2**16
_POOL = 4


def generator(seed: int) -> Generator:
    """`Generator(PCG64(seed))`."""
    known: Any = _Known(_words()[seed]) if 0 <= seed < _SEEDS else seed
    return Generator(PCG64(known))


class _Known(ISeedSequence):
    """A seed sequence that has made its words already."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self.words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        return self.words


@cache
def _words() -> NDArray[np.uint64]:
    """For each seed the four words that PCG64 begins with."""
    hashed = _Hash(0x43B0D7E5, 0x931E8875)
    pool = [hashed(np.full(_SEEDS, 0, np.uint32) if i else np.arange(_SEEDS, dtype=np.uint32)) for i in range(_POOL)]
    for source in range(_POOL):
        for target in range(_POOL):
            if target != source:
                mixed = np.uint32(0xCA01F9DD) * pool[target] - np.uint32(0x4973F715) * hashed(pool[source])
                pool[target] = mixed ^ mixed >> np.uint32(16)
    hashed = _Hash(0x8B51F9DD, 0x58F38DED)
    words = np.stack([hashed(pool[i % _POOL]) for i in range(2 * _POOL)], axis=1)
    return words.astype("<u4").view("<u8").astype(np.uint64)


class _Hash:
    """NumPy's hash of 32-bit words, whose constant moves on with every call."""

    def __init__(self, constant: int, factor: int) -> None:
        self.constant, self.factor = constant, factor

    def __call__(self, words: _Words) -> _Words:
        words = words ^ np.uint32(self.constant)
        self.constant = self.constant * self.factor & 0xFFFFFFFF
        words = words * np.uint32(self.constant)
        return words ^ words >> np.uint32(16)
