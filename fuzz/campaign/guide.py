"""Guided campaigns: what a batch contains, and who compiles it, follows from what earlier rounds of batches have shown.

A mix is what differs from the campaign's configuration. Of the executors that compile, which is what costs, each batch has one; all
others answer every batch. A mix, or a compiler, has paid once for each kind of disagreement that no earlier batch showed. The
choice is a function of the seed and of what the store keeps of the rounds up to the last but one, so that any number of workers,
and a campaign that is resumed, come to the same programs.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from fuzz.generate.config import CAMPAIGN, Config
from fuzz.generate.settings import config_of
from fuzz.store import Store, Stream
from oracle.peers import Peer
from tenferro_ref.dtype import DType
from tenferro_ref.ops import CONTRACTIONS, INDEXING, REDUCTIONS

#: Batches a round; a batch waits until all but the round before its own are done.
ROUND = 8
#: Of this share of the batches, every choice has the same chance, but for what it costs.
_EVEN = 0.2
#: What a choice has paid counts for less with each round: what it can show is soon seen.
_KEPT = 0.9
#: What the usual mix counts as having paid before the first batch: it has some of everything.
_USUAL = 1.0


@dataclass(frozen=True, slots=True)
class Draw:
    """What a batch contains, and the executors that answer it."""

    mix: str
    executors: tuple[str, ...]


@dataclass
class _Choice:
    """Draws one of several names by chance.

    A name's chance is in proportion to how many kinds of disagreement it has shown a batch, over what a batch of it costs.

    Attributes
    ----------
    costs
        Processor time of a batch of each name, beside one of the others.
    paid, tried
        Kinds of disagreement first shown by each name, and batches of it; older ones count for less.
    """

    costs: Mapping[str, float]
    paid: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)

    def draw(self, even: bool, at: float) -> str:
        weights = {
            name: (1.0 if even else (0.5 + self.paid[name]) / (1.0 + self.tried[name])) / cost
            for name, cost in self.costs.items()
        }
        at *= sum(weights.values())
        for name, weight in weights.items():
            at -= weight
            if at < 0:
                return name
        return next(iter(weights), "")

    def count(self, name: str, paid: int) -> None:
        """Count a batch of that choice."""
        self.paid[name] += paid
        self.tried[name] += 1

    def fade(self) -> None:
        for counts in (self.paid, self.tried):
            for name in counts:
                counts[name] *= _KEPT  # type: ignore[assignment]  # Counter adds floats as well


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
    "constants": {"folded": 60.0},
    "hostile values": {"regime": "hostile"},
    "modules": {"modules": 0.5},
}
#: Processor time of a batch in those mixes, beside one in the others (docs/measurements/campaigns.md).
_COSTS = {"long": 1.3, "short": 0.7}


def mixed(config: Config, mix: str) -> Config:
    """The configuration in that mix; what it sets itself stays."""
    return replace(config, **{k: v for k, v in MIXES[mix].items() if getattr(config, k) == getattr(CAMPAIGN, k)})


def is_open(store: Store, stream: Stream, number: int) -> bool:
    """Whether all is known that the draw of a batch depends on."""
    sql = "SELECT count(*) FROM batch WHERE stream = ? AND number < ? AND digest <> ''"
    ((sealed,),) = store.database.rows(tuple[int], sql, (stream.id, _before(stream, number)))
    return sealed >= _known_places(stream, number)


def draw_of(store: Store, stream: Stream, number: int) -> Draw:
    """The draw of a batch that is open; the usual mix and all executors where a campaign is not guided."""
    place = number // stream.plan.shards
    return next(islice(draws(store, stream, _before(stream, number)), place, None))


def draws(store: Store, stream: Stream, before: int) -> Iterator[Draw]:
    """The draws of all batches in turn, by what those before batch `before` have shown."""
    usual = Draw(USUAL, stream.available)
    if not config_of(stream.plan.generate).guided:
        while True:
            yield usual
    peers = {name: Peer.parse(name) for name in stream.available}
    compilers = _Choice({name: peer.cost for name, peer in peers.items() if peer.cost})
    mixes = _Choice({mix: _COSTS.get(mix, 1.0) for mix in MIXES}, Counter({USUAL: _USUAL}))
    news, drawn = _news(store, stream, before), list[tuple[str, str]]()
    while True:
        place = len(drawn)
        if place % ROUND == 0 and place >= 2 * ROUND:  # the round before the last one counts from now on
            for old in range(place - 2 * ROUND, place - ROUND):
                mix, compiler = drawn[old]
                shown = news.get(old, {}).values()
                mixes.count(mix, len(shown))
                compilers.count(compiler, sum(compiler in executors for executors in shown))
            mixes.fade()
            compilers.fade()
        data = hashlib.sha256(
            f"mix {stream.plan.seed} {place * stream.plan.shards + stream.plan.shard}".encode()
        ).digest()
        even, *at = (int.from_bytes(data[i : i + 4], "big") / 2**32 for i in (0, 4, 8))
        mix, compiler = (c.draw(even < _EVEN, x) for c, x in zip((mixes, compilers), at, strict=True))
        drawn.append((mix, compiler))
        yield replace(
            usual, mix=mix, executors=tuple([n for n in usual.executors if n == compiler or n not in compilers.costs])
        )


def _news(store: Store, stream: Stream, before: int) -> dict[int, dict[tuple[str, str], list[str]]]:
    """By the place of a batch, the kinds of disagreement that no earlier batch had shown, and who showed each."""
    sql = "SELECT DISTINCT batch, op, attribution, executor FROM suspect WHERE stream = ? AND batch < ? ORDER BY batch"
    firsts, news = dict[tuple[str, str], int](), dict[int, dict[tuple[str, str], list[str]]]()
    for batch, op, attribution, executor in store.database.rows(tuple[int, str, str, str], sql, (stream.id, before)):
        if firsts.setdefault((op, attribution), batch) == batch:
            news.setdefault(batch // stream.plan.shards, {}).setdefault((op, attribution), []).append(executor)
    return news


def _known_places(stream: Stream, number: int) -> int:
    """How many batches of the stream come before the round before that of a batch."""
    return max(0, (number // stream.plan.shards // ROUND - 1) * ROUND)


def _before(stream: Stream, number: int) -> int:
    return _known_places(stream, number) * stream.plan.shards
