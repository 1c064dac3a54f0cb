"""Invalid cases in batches: which places of a batch have one, and with which fault.

They stand in for programs of the batch; the other programs are what they would be without them. The faults come in turn: one
of each rule, then another of each, so that the rule covered least is next (as anchors, docs/adr/0008), and kinds of error among
rules in the same way.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from functools import lru_cache

from fuzz.generate.choices import Choices
from fuzz.generate.config import DEFAULT, Config
from fuzz.generate.decode import GENE
from fuzz.generate.faults.decode import LONGEST, decode_fault
from fuzz.generate.faults.fault import Fault
from fuzz.generate.faults.table import faults
from fuzz.generate.header import HEADER, numbered
from oracle.case import Case


def with_refusals(seed: int, batch: int, count: int, config: Config, valid: Callable[[], list[Case]]) -> list[Case]:
    """The cases of `valid`, of which there are `count`, with invalid ones in some places.

    Which places, and what is there, depends on seed, batch, count and config alone. `valid` is not called if all are invalid.
    """
    places = invalid_places(seed, batch, count, config.invalid)
    cases: list[Case] = valid() if len(places) < count else []
    for place, turn in places.items():
        cases[place : place + 1] = [invalid_case(seed, batch, place, turn, config)]
    return cases


def invalid_places(seed: int, batch: int, count: int, share: float) -> dict[int, int]:
    """The places of the batch that have an invalid case, in order, each with how many come before it in the campaign."""
    first, end = (int(n * count * share) for n in (batch, batch + 1))
    drawn = sorted(range(count), key=lambda place: _hash(f"place {seed} {batch} {place}"))[: end - first]
    return {place: first + i for i, place in enumerate(sorted(drawn))}


def invalid_case(seed: int, batch: int, place: int, turn: int, config: Config = DEFAULT) -> Case:
    """An invalid case: the fault follows from how many came before, all else from seed, batch and place."""
    round_, entry = divmod(turn, len(faults(config, late=True)))
    stream = hashlib.shake_256(f"tenferro-ref invalid {seed} {batch} {place}".encode())
    longest = max(LONGEST, config.min_instructions)
    data = stream.digest(1 + HEADER + GENE * (1 + longest))
    length = config.min_instructions + data[0] * (longest + 1 - config.min_instructions) // 256
    header, genes = numbered(data[1 : 1 + HEADER], 0, 0), data[1 + HEADER :]
    first, *rest = (genes[GENE * i :][:GENE] for i in range(1 + length))
    return decode_fault(config, in_turn(seed, round_, config)[entry], header, rest, Choices(first))


@lru_cache(64)
def in_turn(seed: int, round_: int, config: Config = DEFAULT) -> tuple[Fault, ...]:
    """All faults of a config: one of each rule, then another one of each, in another order each time."""
    taken: Counter[tuple[int, str]] = Counter()
    rules: Counter[str] = Counter()
    order = []
    for fault in sorted(faults(config, late=True), key=lambda fault: _hash(f"fault {seed} {round_} {fault.name}")):
        rules[fault.rule] += 1
        taken[rules[fault.rule], fault.kind] += 1
        order.append((rules[fault.rule], taken[rules[fault.rule], fault.kind], fault))
    return tuple(fault for *_, fault in sorted(order, key=lambda entry: entry[:2]))


def _hash(key: str) -> bytes:
    """Sorts into an order that is the same everywhere, and looks random."""
    return hashlib.sha256(key.encode()).digest()
