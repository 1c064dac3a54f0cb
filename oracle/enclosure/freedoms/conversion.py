"""Conversion: a result in BF16 that is converted to F32, or in a float of 8 bits or fewer that is converted to F16, may go there unrounded.

XLA computes BF16 in F32, and 8 bits in F16, and rounds each result but the one that a Convert to that format reads: its passes
`float-normalization-bf16` and the like leave the two conversions out, unless `xla_allow_excess_precision` is off (it is on by default;
measured 2026-11-23 and 2026-11-24 on three builds). What a Convert gave is rounded there, and so is what goes on to another op, or to F64.
Functions that CHLO defines by formulas in F32 begin with such a Convert of BF16, and end with one back; what the other ones give
(`erf`, `tan`, `atan2`, `cbrt`, `logistic`) goes to a Convert unrounded as any result does (measured 2026-11-30). So it does through moves that XLA takes
out, as a Reshape and one back; of a Reshape alone it is rounded first (measured 2026-11-30; `pieces.py` says what is all of an earlier value).

*Bound.* That of `excess`. Beyond the largest value of a format without infinities F16 has a number or an infinity. A root in
8 bits is rounded to F16 first: F16 has 11 digits, and a root of 5 digits is the same as if rounded once with 12 (Figueroa 1995).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oracle.enclosure.formats import FORMATS, NO_INFINITY, NO_NAN, Array, Format
from oracle.enclosure.freedoms.excess import unrounded
from oracle.enclosure.freedoms.real import ROUNDING
from oracle.enclosure.model import Model
from oracle.enclosure.value import Enclosure, Interval
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op


def computed_in(dtype: DType) -> DType | None:
    """The format in which XLA computes a narrow float, if it is one that it converts to unrounded."""
    if dtype is DType.BF16:
        return DType.F32
    return DType.F16 if dtype.is_narrow_float and dtype.bits <= 8 else None


#: Functions of BF16 for which CHLO has a formula in F32.
_BY_FORMULA = frozenset({"bessel_i1e", "cosh", "digamma", "erf_inv", "erfc", "lgamma", "polygamma", "sinh", "zeta"})
_FUNCTIONS = (ops.Special, ops.Special2)


def _converts(op: Op | None) -> bool:
    """Whether an op converts its operand first, and what it gives last."""
    return isinstance(op, ops.Convert) or (isinstance(op, _FUNCTIONS) and op.function in _BY_FORMULA)


def of_operand(model: Model, op: Op, maker: Op | None, x: Enclosure) -> Enclosure:
    """An operand of `op`, given what made it."""
    if not (model.excess_converted and _converts(op) and isinstance(x, Interval)):
        return x
    to = op.to if isinstance(op, ops.Convert) else DType.F32
    return _beyond(unrounded(x)) if _rounds(maker) and to is computed_in(x.dtype) else x


def _rounds(maker: Op | None) -> bool:
    """Whether an op rounds its result last; `logistic` is loaded as either of two ways, the last step of each of which does."""
    if isinstance(maker, ops.Repeated):
        return maker.function == "logistic"
    return isinstance(maker, (*ROUNDING, *_FUNCTIONS)) and not _converts(maker)


def _beyond(x: Interval) -> Interval:
    """With what overflowed, where the format has NaN or its largest value for that."""
    if x.dtype not in NO_INFINITY | NO_NAN:
        return x
    most = FORMATS[x.dtype].max
    lo, hi = np.where(x.lo <= -most, -np.inf, x.lo), np.where(x.hi >= most, np.inf, x.hi)
    if x.dtype in NO_NAN:
        return replace(x, lo=lo, hi=hi, nan=np.isinf(lo) & np.isinf(hi))
    # NaN is one, or either of two numbers beyond the range; of others than it alone, all between
    below, above = np.where(x.empty, -most, np.inf), np.where(x.empty, most, -np.inf)
    return replace(x, lo=np.where(x.nan, -np.inf, lo), hi=np.where(x.nan, np.inf, hi), gap=(below, above))


def of_root(model: Model, f: Format, low: Array, high: Array) -> tuple[Array, Array]:
    """Bounds of a root, rounded, given those before that."""
    lo, hi = f.nearest(low), f.nearest(high)
    if not model.excess_converted or computed_in(f.dtype) is not DType.F16:
        return lo, hi
    first, last = (f.nearest(FORMATS[DType.F16].nearest(v)) for v in (low, high))
    return np.fmin(lo, first), np.fmax(hi, last)
