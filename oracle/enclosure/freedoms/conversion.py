"""Conversion: a result in BF16 that is converted to F32 may go there unrounded.

XLA computes BF16 in F32, and rounds each result but the one that a Convert to F32 reads: its pass `float-normalization-bf16` leaves the two
conversions out, unless `xla_allow_excess_precision` is off (it is on by default; measured 2026-11-23 on three builds). What a Convert gave is
rounded there, and so is what goes on to another op, or to F64.

*Bound.* That of `excess`.
"""

from __future__ import annotations

from oracle.enclosure.freedoms.excess import unrounded
from oracle.enclosure.freedoms.real import ROUNDING
from oracle.enclosure.model import Model
from oracle.enclosure.value import Enclosure, Interval
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op


def of_operand(model: Model, op: Op, maker: Op | None, x: Enclosure) -> Enclosure:
    """An operand of `op`, given what made it."""
    if not (model.excess_converted and isinstance(op, ops.Convert) and op.to is DType.F32 and x.dtype is DType.BF16):
        return x
    rounded = isinstance(maker, ROUNDING) and not isinstance(maker, ops.Convert)
    return unrounded(x) if rounded and isinstance(x, Interval) else x
