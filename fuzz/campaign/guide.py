"""Guided campaigns: which mix of programs a batch has follows from what earlier rounds of batches have shown.

A mix is what differs from the campaign's configuration. It has paid, once, for each group of disagreements that no earlier batch showed. The
choice is a function of the seed and of what the store keeps of the rounds up to the last but one, so that any number of workers,
and a campaign that is resumed, come to the same programs.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from typing import Any

from fuzz.generate.config import DEFAULT, Config
from fuzz.store import Store, Stream
from tenferro_ref.dtype import DType
from tenferro_ref.ops import CONTRACTIONS, INDEXING, REDUCTIONS

#: Batches a round; a batch waits until all but the round before its own are done.
ROUND = 8
#: Of this share of the batches, every mix has the same chance.
_EVEN = 0.3


def _weighted(factor: float, *names: str) -> dict[str, Any]:
    return {"weights": tuple((name, factor) for name in names)}


USUAL = "usual"
#: By name: the fields of the configuration that a mix sets.
MIXES: dict[str, dict[str, Any]] = {
    USUAL: {},
    "long": {"min_instructions": 15, "max_instructions": 40},
    "short": {"max_instructions": 4},
    "chains": _weighted(8, "chain"),
    "formulas": _weighted(6, "inexact", "real"),
    "integers": {"dtypes": (DType.I32, DType.I64)} | _weighted(8, "integer"),
    "complex": {"dtypes": (DType.C32, DType.C64)},
    "single precision": {"dtypes": (DType.F32, DType.I32)},
    "windows": _weighted(4, *(op.__name__ for op in INDEXING)),
    "sums": _weighted(5, *(op.__name__ for op in (*CONTRACTIONS, *REDUCTIONS))),
    "decompositions": {"linalg": 60.0},
    "policies": {"policies": 60.0},
}


def mixed(config: Config, mix: str) -> Config:
    """The configuration in that mix; what it sets itself stays."""
    return replace(config, **{k: v for k, v in MIXES[mix].items() if getattr(config, k) == getattr(DEFAULT, k)})


def is_open(store: Store, stream: Stream, number: int) -> bool:
    """Whether all is known that the mix of a batch depends on."""
    sql = "SELECT count(*) FROM batch WHERE stream = ? AND number < ? AND digest <> ''"
    ((sealed,),) = store.database.rows(tuple[int], sql, (stream.id, _before(stream, number)))
    return sealed >= _known_places(stream, number)


def mix_of(store: Store, stream: Stream, number: int) -> str:
    """The mix of a batch that is open."""
    sql = "SELECT kin, min(batch) FROM suspect WHERE stream = ? AND batch < ? GROUP BY kin"
    rows = store.database.rows(tuple[str, int], sql, (stream.id, _before(stream, number)))
    news = Counter(first // stream.plan.shards for _, first in rows)
    paid, tried, mixes = Counter[str](), Counter[str](), list[str]()
    for place in range(number // stream.plan.shards + 1):
        if place % ROUND == 0 and place >= 2 * ROUND:  # the round before the last one counts from now on
            for old in range(place - 2 * ROUND, place - ROUND):
                paid[mixes[old]] += news[old]
                tried[mixes[old]] += 1
        mixes.append(_drawn(stream.plan.seed, place * stream.plan.shards + stream.plan.shard, paid, tried))
    return mixes[-1]


def _drawn(seed: int, number: int, paid: Counter[str], tried: Counter[str]) -> str:
    """A mix by chance, in proportion to what it has paid a batch."""
    data = hashlib.sha256(f"mix {seed} {number}".encode()).digest()
    even = int.from_bytes(data[:4], "big") < _EVEN * 2**32
    weights = {m: 1.0 if even else (0.5 + paid[m]) / (1.0 + tried[m]) for m in MIXES}
    at = int.from_bytes(data[4:8], "big") / 2**32 * sum(weights.values())
    for mix, weight in weights.items():
        at -= weight
        if at < 0:
            return mix
    return USUAL


def _known_places(stream: Stream, number: int) -> int:
    """How many batches of the stream come before the round before that of a batch."""
    return max(0, (number // stream.plan.shards // ROUND - 1) * ROUND)


def _before(stream: Stream, number: int) -> int:
    return _known_places(stream, number) * stream.plan.shards
