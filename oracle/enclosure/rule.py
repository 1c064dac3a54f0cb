"""The tables of rules, one row an op, and the context of a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Concatenate, TypeAlias

import numpy as np

from oracle.enclosure.formats import FORMATS, NO_NAN, Array, Format
from oracle.enclosure.freedoms import excess, flush
from oracle.enclosure.model import Model
from oracle.enclosure.value import Enclosure, Interval, ordered
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Policy
from tenferro_ref.table import Table


@dataclass(frozen=True, slots=True)
class Context:
    """What a rule knows beside its operands: the model, the program's policy, and the result's dtype."""

    model: Model
    policy: Policy
    dtype: DType

    @property
    def format(self) -> Format:
        return FORMATS[self.dtype]

    @property
    def real(self) -> Context:
        """That of the parts of a complex result."""
        return Context(self.model, self.policy, self.dtype.real)

    @property
    def lost_below(self) -> float:
        """The magnitude below which a result may be lost: by underflow, or because it is flushed."""
        return flush.lost_below(self.model, self.format)

    @property
    def zero_below(self) -> float:
        """The magnitude below which an operand may be read as zero."""
        return flush.zero_below(self.model, self.format)

    def budget(self, op: str) -> float:
        """ULPs that the result of a function may be away from the true value."""
        return self.model.budget(op, self.dtype)

    def build(self, lo: Array, hi: Array, nan: Array, pos: Array, neg: Array, *, inexact: bool = True) -> Interval:
        """The enclosure of a result from its rounded bounds (see `value.ordered`), flushed where the model flushes.

        Parameters
        ----------
        inexact
            The result was rounded, not only selected.
        """
        reach = flush.zero_below(self.model, FORMATS[self.dtype])
        made = ordered(self.dtype, lo, hi, nan, pos, neg, reach)
        if self.dtype in NO_NAN and np.count_nonzero(made.nan):
            return everywhere(made, made.nan, self.format.max)
        # nothing is near zero, and nothing to flush, where both flags are one array
        if made.pos_zero is not made.neg_zero:
            made = flush.of_result(self.model, made, inexact=inexact)
        return excess.of_result(self.model, made) if inexact else made


def everywhere(x: Interval, mask: Array, size: float) -> Interval:
    """Any number up to a magnitude where the mask holds, and no NaN."""
    lo, hi = np.where(mask, -size, x.lo), np.where(mask, size, x.hi)
    return Interval(x.dtype, lo, hi, x.nan & ~mask, x.pos_zero | mask, x.neg_zero | mask)


def saturated(x: Interval, largest: float) -> Interval:
    """Of a format that has neither infinities nor NaN: its largest number in place of an infinity, and any number in place of NaN."""
    if x.number and x.finite:
        return x
    lo, hi = (np.clip(v, -largest, largest) for v in (x.lo, x.hi))
    return everywhere(replace(x, lo=lo, hi=hi, gap=None), x.nan, largest)


def without_infinities(x: Interval, largest: float) -> Interval:
    """Of a format that has NaN in place of infinities: a bound that is one says that NaN is possible, two of one sign that nothing else is."""
    if x.finite:
        return x
    some = (x.lo <= x.hi) & (x.lo < np.inf) & (x.hi > -np.inf)
    if x.gap is not None:  # infinities beside a gap
        below, above = x.gap
        low, high = np.where(below == -np.inf, above, x.lo), np.where(above == np.inf, below, x.hi)
        some &= (low <= high) & (low < np.inf) & (high > -np.inf)
        inside = np.isfinite(below) & np.isfinite(above) & (below >= low) & (above <= high)
        gap = np.where(inside, below, np.inf), np.where(inside, above, -np.inf)
    else:
        low, high, gap = x.lo, x.hi, None
    nan = x.nan | ~some | np.isinf(x.lo) | np.isinf(x.hi)
    lo = np.where(some, np.maximum(low, -largest), np.inf)
    hi = np.where(some, np.minimum(high, largest), -np.inf)
    return replace(x, lo=lo, hi=hi, nan=nan, pos_zero=x.pos_zero & some, neg_zero=x.neg_zero & some, gap=gap)


@cache
def contexts_of(model: Model, policy: Policy) -> dict[DType, Context]:
    """The context of each dtype of a result."""
    return {dtype: Context(model, policy, dtype) for dtype in DType}


#: `rule(op, context, *operands)`, of which no operand is complex, nor the result. Shapes and dtypes fit.
Rule: TypeAlias = Callable[Concatenate[Any, Context, ...], Interval]
#: The same, where an operand or the result is complex.
ComplexRule: TypeAlias = Callable[Concatenate[Any, Context, ...], Enclosure]

ENCLOSE: Table[Rule] = Table("enclosure")
COMPLEX: Table[ComplexRule] = Table("enclosure of complex numbers")
COMPLEX.unsupported("complex numbers have no order", ops.Maximum, ops.Minimum, ops.Clamp, ops.Remainder)
COMPLEX.unsupported("the op takes no complex numbers", ops.ReduceSumSquares)
