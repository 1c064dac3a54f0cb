"""Where the executors come from: what several of one family share is said once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fuzz.summary import is_ours, without_lane
from oracle.verdict import ExecutorInfo

Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Family:
    """The native executors, the lanes of a plugin, or one other executor.

    Attributes
    ----------
    facts
        What all members have in common.
    members
        Each with what is its own; empty for a family of one, whose facts are all in `facts`.
    """

    name: str
    facts: Facts
    members: tuple[tuple[str, Facts], ...]


def families(infos: Sequence[ExecutorInfo]) -> tuple[Family, ...]:
    """The executors that are available, by family, in order of appearance."""
    groups: dict[str, list[ExecutorInfo]] = {}
    for info in infos:
        if info.available:
            groups.setdefault("native" if is_ours(info.name) else without_lane(info.name), []).append(info)
    return tuple(_family(name, group) for name, group in groups.items())


def _family(name: str, group: Sequence[ExecutorInfo]) -> Family:
    if len(group) == 1:
        return Family(group[0].name, group[0].facts, ())
    common = tuple(fact for fact in group[0].facts if all(fact in info.facts for info in group))
    members = tuple((info.name, tuple(fact for fact in info.facts if fact not in common)) for info in group)
    return Family(name, common, members)
