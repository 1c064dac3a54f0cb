"""All faults, in the order in which they are drawn."""

from __future__ import annotations

from functools import lru_cache

from fuzz.generate.config import DEFAULT, Config
from fuzz.generate.faults import arguments, axes, extensions, graph, indexing, operands
from fuzz.generate.faults.fault import Fault
from tenferro_ref.ops import Extension

FAULTS: tuple[Fault, ...] = (
    *operands.FAULTS, *axes.FAULTS, *arguments.FAULTS, *graph.FAULTS, *indexing.FAULTS,
    *extensions.FAULTS,
)  # fmt: skip


@lru_cache(64)
def faults(config: Config = DEFAULT, kind: str | None = None, *, late: bool = False) -> tuple[Fault, ...]:
    """The faults that can be made with the ops of a config, with those that only values show if `late`."""
    known = {*config.ops, Extension, None}
    return tuple(f for f in FAULTS if f.op in known and kind in (None, f.kind) and late >= f.late)


def kinds(*, late: bool = False) -> tuple[str, ...]:
    """Kinds of error that invalid programs raise, with those that only values show if `late`."""
    return tuple(dict.fromkeys(fault.kind for fault in FAULTS if late >= fault.late))
