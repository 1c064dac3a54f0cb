"""Anchors: every op at every dtype, followed by every op on its result; what chance alone reaches late.

Most programs have one, long ones up to three: two genes of each grow these two ops, whatever their bytes are. Batches take
the anchors in turn, so that the one covered least is next; Hypothesis draws their number.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from itertools import cycle, zip_longest
from typing import Any, NamedTuple

from fuzz.generate.config import Config, admitted, result_dtype
from fuzz.generate.ops import NEEDS_AXES, usable
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import DEFAULT_POLICY, REDUCTIONS, Policy


class Anchor(NamedTuple):
    """An op at a dtype, and the op that reads its result."""

    op: type[Any]
    dtype: DType
    reader: type[Any]

    @property
    def rank(self) -> int:
        """Rank that the operand of the first op should have for its result to suit the second."""
        return (2 if self.reader in NEEDS_AXES else 1) + (self.op in REDUCTIONS or self.op is ops.ExtractDiag)


@lru_cache(64)
def anchors(config: Config, policy: Policy = DEFAULT_POLICY) -> tuple[Anchor, ...]:
    """All of them in the order of batches: each pair of ops at one dtype, then at another, and so on.

    Under another policy than the engine's only those whose first op behaves otherwise there. After every fourth comes one of
    those that begin with something in `config.rare`, in turn.
    """
    readable = {op for op in config.ops if usable(op, config) and op is not ops.DynamicTruncate}
    known = sorted(readable, key=lambda op: op.__name__)
    dtypes = {op: admitted(op, config.dtypes, policy) for op in known}
    touched = {op: [d for d in dtypes[op] if _touches(policy, op, d)] for op in known}
    columns = [
        sorted((Anchor(a, d, b) for d in touched[a] if _reads(dtypes[b], a, d)), key=_shuffled)
        for a, b in sorted(((a, b) for a in known for b in known if b.arity), key=_shuffled)
    ]
    whole = [anchor for tier in zip_longest(*columns) for anchor in tier if anchor is not None]
    rare = sorted((a for a in whole if (a.op, a.dtype) in config.rare), key=lambda a: _shuffled(("rare", *a)))
    again = cycle(rare)
    return tuple(
        a for i, anchor in enumerate(whole) for a in ((anchor, next(again)) if rare and not i % 4 else (anchor,))
    )


def _shuffled(entry: tuple[Any, ...]) -> bytes:
    """Sorts into an order that is the same everywhere, and looks random."""
    return hashlib.sha256(" ".join(getattr(x, "__name__", str(x)) for x in entry).encode()).digest()


def _touches(policy: Policy, op: type[Any], dtype: DType) -> bool:
    """Whether the policy makes a difference to an op at a dtype."""
    return (
        policy == DEFAULT_POLICY
        or dtype not in admitted(op, (dtype,))
        or (op is ops.Scatter and policy.scatter_bounds == "skip")
        or (op in REDUCTIONS and policy.empty_reduction == "identity")
    )


def _reads(known: tuple[DType, ...], op: type[Any], dtype: DType) -> bool:
    """Whether a reader of the dtypes `known` admits the result of `op` at `dtype`."""
    if op is ops.Convert:
        return bool(known)
    return result_dtype(op, dtype) in known
