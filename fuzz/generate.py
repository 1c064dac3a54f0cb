"""Batches of cases in bulk: what a campaign runs on.

The bytes that `fuzz.strategies.decode` reads come from a hash of (seed, batch, number), not from Hypothesis: its draws
cost as much as decoding does, and it mutates earlier examples, so that half of a batch would be near-copies. Every case
made here is one that `fuzz.strategies.cases` can draw.
"""

from __future__ import annotations

import hashlib

from fuzz.describe import describe
from fuzz.strategies import DEFAULT, GENE, HEADER, Config, decode
from oracle.case import Case

#: Attempts a case, before a batch of too small a space is returned short.
_ATTEMPTS = 16


def generate(seed: int, batch: int, count: int = 64, config: Config = DEFAULT) -> list[Case]:
    """The cases of one batch, distinct by fingerprint.

    The same (seed, batch, config) gives the same cases in every process, and a smaller `count` the first ones of them.
    Shorter only where the config admits no more distinct cases.
    """
    cases: dict[str, Case] = {}
    for number in range(_ATTEMPTS * count):
        if len(cases) == count:
            break
        case = decode_number(seed, batch, number, config)
        cases.setdefault(case.fingerprint, case)
    return list(cases.values())


def decode_number(seed: int, batch: int, number: int, config: Config) -> Case:
    """Case `number` of a batch, duplicates counted."""
    spread = config.max_instructions - config.min_instructions + 1
    stream = hashlib.shake_256(f"tenferro-ref {seed} {batch} {number}".encode())
    data = stream.digest(2 + HEADER + GENE * config.max_instructions)
    length = config.min_instructions + int.from_bytes(data[:2], "big") * spread // 65536
    first = 2 + HEADER
    return decode(config, data[2:first], [data[first + GENE * i :][:GENE] for i in range(length)])


__all__ = ["decode_number", "describe", "generate"]
