"""Anchors: every op at every dtype, followed by every op on its result; what chance alone reaches late.

A program has one as a rule, a long one up to three: two genes of each grow these two ops instead of what they say. Bulk
generation takes the anchors in turn, so that whatever was covered least is next; Hypothesis draws their number.
"""

from __future__ import annotations

import hashlib
from functools import cache
from itertools import cycle, zip_longest
from typing import Any, NamedTuple

from fuzz.generate.config import Config
from fuzz.generate.ops.extensions import STRATEGY
from fuzz.generate.ops.indexing import NEEDS_AXES
from fuzz.generate.ops.rows import admitted
from tenferro_ref.dtype import DType
from tenferro_ref.ops import (
    ENGINE,
    REDUCTIONS,
    Abs,
    Compare,
    Convert,
    DynamicTruncate,
    ExtractDiag,
    Policy,
    Scatter,
    ShapeOf,
)


class Anchor(NamedTuple):
    """An op at a dtype, and the op that reads its result."""

    op: type[Any]
    dtype: DType
    reader: type[Any]

    @property
    def rank(self) -> int:
        """Rank that the operand of the first op should have for its result to suit the second."""
        return (2 if self.reader in NEEDS_AXES else 1) + (self.op in REDUCTIONS or self.op is ExtractDiag)


@cache
def anchors(config: Config, policy: Policy = ENGINE) -> tuple[Anchor, ...]:
    """All of them in the order of bulk generation: each pair of ops at one dtype, then at another, and so on.

    Under another policy than the engine's only those whose first op it makes a difference to. After every fourth comes one of
    those that begin with something in `config.rare`, in turn.
    """
    known = (op for op in config.vocabulary if op in STRATEGY and op is not DynamicTruncate)  # nothing can read that
    usable = (op for op in known if config.max_rank > 1 or op not in NEEDS_AXES)
    ops = sorted(usable, key=lambda op: op.__name__)
    dtypes = {op: admitted(op, config.dtypes, policy) for op in ops}
    touched = {op: [d for d in dtypes[op] if _touches(policy, op, d)] for op in ops}
    columns = [
        sorted((Anchor(a, d, b) for d in touched[a] if _reads(dtypes[b], a, d)), key=_shuffled)
        for a, b in sorted(((a, b) for a in ops for b in ops if b.arity), key=_shuffled)
    ]
    whole = [anchor for tier in zip_longest(*columns) for anchor in tier if anchor is not None]
    wanted = frozenset(config.rare)
    rare = sorted((a for a in whole if (a.op, a.dtype) in wanted), key=lambda a: _shuffled(("rare", *a)))
    again = cycle(rare)
    return tuple(
        a for i, anchor in enumerate(whole) for a in ((anchor, next(again)) if rare and not i % 4 else (anchor,))
    )


def _shuffled(names: tuple[Any, ...]) -> bytes:
    """An order that is the same everywhere, and no order."""
    return hashlib.sha256(" ".join(getattr(x, "__name__", str(x)) for x in names).encode()).digest()


def _touches(policy: Policy, op: type[Any], dtype: DType) -> bool:
    return (
        policy == ENGINE
        or dtype not in admitted(op, (dtype,))
        or (op is Scatter and policy.scatter_bounds == "skip")
        or (op in REDUCTIONS and policy.empty_reduction == "identity")
    )


def _reads(known: tuple[DType, ...], op: type[Any], dtype: DType) -> bool:
    """Whether a reader of the dtypes `known` admits what `op` makes of `dtype`."""
    if op is Compare:
        return DType.Bool in known
    if op is ShapeOf:
        return DType.F64 in known
    return bool(known) if op is Convert else (dtype.real if op is Abs and dtype.is_complex else dtype) in known
