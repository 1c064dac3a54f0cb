"""`MOTIFS`: the table of motifs, each with a function that grows it and one that finds it in any program."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from fuzz.generate.config import Config, admitted
from fuzz.generate.describe import has_path
from fuzz.generate.growth import Growth
from fuzz.generate.ops import usable
from oracle.case import Case
from tenferro_ref.ops import BY_NAME, DEFAULT_POLICY, OPS, Op, Policy

Found: TypeAlias = Callable[[Case], bool]


class Motif(NamedTuple):
    """A sequence of instructions that a program may contain.

    Attributes
    ----------
    name
        A formula, the names of ops that follow one another ("Slice > Gather"), or a word of its own.
    group
        Those that are chosen among together (`GROUPS`), "" for one by itself.
    ops
        What it is made of; it needs dtypes that all of them admit.
    size
        The most instructions that it has, adapters not counted.
    weight
        Its chance, beside others without a group; with 0 it is in those programs alone that must have it.
    grow
        Appends it to a growing program, or nothing where there is nothing to work on.
    found
        Whether a program has it, however it came about.
    policy
        The policy of programs that must have it.
    """

    name: str
    group: str
    ops: tuple[type[Op], ...]
    size: int
    weight: float
    grow: Callable[[Growth], object]
    found: Found
    policy: Policy = DEFAULT_POLICY

    def usable(self, config: Config) -> bool:
        """Whether programs of a config can have it."""
        if self.policy != DEFAULT_POLICY and not config.policies:
            return False
        return all(
            usable(op, config) and (admitted(op, config.dtypes, self.policy) or not op.same_dtype) for op in self.ops
        )


MOTIFS: dict[str, Motif] = {}
#: Motifs of which one is chosen once their group is, with the weight of the group.
GROUPS: dict[str, float] = {"inexact": 11, "real": 5, "integer": 5, "chain": 20, "ties": 2}


def motif(
    size: int,
    weight: float,
    found: str | Found,
    *ops: type[Op],
    name: str = "",
    group: str = "",
    policy: Policy = DEFAULT_POLICY,
) -> Callable[[Callable[[Growth], object]], Callable[[Growth], object]]:
    """Enter a motif; `found` may be paths (see `has_path`), one of which a program that has the motif has, with the ops of all."""
    paths = [path.split(" > ") for path in found.split(" | ")] if isinstance(found, str) else []
    named = {BY_NAME[name] for path in paths for name in path}

    def add(grow: Callable[[Growth], object]) -> Callable[[Growth], object]:
        known = name or grow.__name__
        on_paths: Found = lambda case: any(has_path(case.program, path) for path in paths)  # noqa: E731
        recognise = on_paths if isinstance(found, str) else found
        MOTIFS[known] = Motif(
            known, group, tuple(sorted({*ops, *named}, key=OPS.index)), size, weight, grow, recognise, policy
        )
        return grow

    return add
