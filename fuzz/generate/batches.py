"""Batches of cases: what a campaign runs on.

The bytes that `fuzz.generate.decode` reads come from a hash of (seed, batch, number), not from Hypothesis: its draws cost as
much as decoding does, and it mutates earlier examples, so that half of a batch would be near-copies. Every case made here is
one that `fuzz.generate.strategies.cases` can draw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice

from fuzz.generate.anchors import anchors
from fuzz.generate.config import DEFAULT, Config
from fuzz.generate.decode import GENE, decode, motifs
from fuzz.generate.derivatives import in_turn, of_drawn
from fuzz.generate.header import HEADER, numbered
from fuzz.generate.settings import config_of
from oracle.case import Case

#: Attempts a case, before a batch of too small a space is returned short.
_ATTEMPTS = 16
#: Bytes that decide how long a program is; in what share of programs its length is up to what.
_LENGTH = 4
_LONG = ((0.12, 40), (0.02, 64), (0.005, 200))
#: Anchors that a batch walks past; batches that are larger meet some of the next one's.
_STRIDE = 64
#: Motifs that a batch walks past: one for each of its programs but two, if it has 32.
_MOTIF_STRIDE = 30


def generate(seed: int, batch: int, count: int = 64, config: Config = DEFAULT) -> list[Case]:
    """The cases of one batch, distinct by fingerprint.

    The same (seed, batch, config) gives the same cases in every process, and a smaller `count` the first ones of them.
    Shorter only if the config admits no more distinct cases.
    """
    return list(islice(distinct(seed, batch, count, config), count))


def distinct(seed: int, batch: int, count: int, config: Config = DEFAULT) -> Iterator[Case]:
    """The distinct cases among the attempts that `count` cases may take."""
    seen: set[str] = set()
    for number in range(_ATTEMPTS * count):
        case = decode_number(seed, batch, number, config)
        if case.fingerprint not in seen:
            seen.add(case.fingerprint)
            yield case


def check_settings(settings: Sequence[str]) -> None:
    """Check settings before any work.

    Raises
    ------
    UsageError
        What `config_of` raises, or no program fits the settings.
    """
    decode_number(0, 0, 0, config_of(settings))


def decode_number(seed: int, batch: int, number: int, config: Config) -> Case:
    """Case `number` of a batch, duplicates counted."""
    derivative = in_turn(config, seed, batch, number)
    if derivative is not None:
        return derivative
    stream = hashlib.shake_256(f"tenferro-ref {seed} {batch} {number}".encode())
    start = _LENGTH + HEADER
    drawn = stream.digest(_LENGTH)
    length = _length(config, int.from_bytes(drawn[:2], "big"), int.from_bytes(drawn[2:], "big"))
    data = stream.digest(start + GENE * length)
    numbers = _anchor(seed, batch, number, config), _motif(seed, batch, number, config)
    header = numbered(data[_LENGTH:start], *numbers)
    case = decode(config, header, [data[start + GENE * i :][:GENE] for i in range(length)])
    return of_drawn(case, config, seed, batch, number)


def _length(config: Config, kind: int, share: int) -> int:
    """How many genes: up to the usual number mostly, few programs longer, fewer much longer."""
    least, most = config.min_instructions, config.usual
    for rarity, longest in _LONG:
        if kind >= 65536 - 65536 * rarity:
            least, most = most, max(most, min(longest, config.max_instructions))
    return least + share * (most - least + 1) // 65536


def _anchor(seed: int, batch: int, number: int, config: Config) -> int:
    """Number of the case's anchor: one after the other from a place that depends on the seed, but one in eight have none."""
    if not config.anchors or config.weights or number % 8 == 7:
        return 0
    count = len(anchors(config))
    # a turn is no multiple of the stride, so that the next one meets those which this one leaves out
    turn = count + (_STRIDE // 2 + 1 - count) % _STRIDE
    start = int.from_bytes(hashlib.sha256(f"anchor {seed}".encode()).digest()[:4], "big")
    place = (start + _STRIDE * batch + number) % turn
    return place + 1 if place < count else 0


def _motif(seed: int, batch: int, number: int, config: Config) -> int:
    """Number of the motif that the case has, one after the other, but for one in sixteen, which have none."""
    count = len(motifs(config))
    if not count or config.weights or number % 16 == 1:
        return 0
    start = int.from_bytes(hashlib.sha256(f"motif {seed}".encode()).digest()[:4], "big")
    return 1 + (start + _MOTIF_STRIDE * batch + number - (number + 14) // 16) % count
