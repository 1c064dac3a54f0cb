"""The table of rules, one row an op, and what a rule is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Concatenate, TypeAlias

from oracle.enclosure.formats import FORMATS, Format
from oracle.enclosure.model import Model
from oracle.enclosure.value import Enclosure, Interval
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

    def budget(self, op: str) -> float:
        return self.model.budget(op, self.dtype)


@cache
def contexts_of(model: Model, policy: Policy) -> dict[DType, Context]:
    """The context of each dtype of a result."""
    return {dtype: Context(model, policy, dtype) for dtype in DType}


Bounds: TypeAlias = tuple[Any, Any]
#: `rule(op, context, *operands)`, of which no operand is complex, nor the result. Shapes and dtypes fit.
Rule: TypeAlias = Callable[Concatenate[Any, Context, ...], Interval]
#: The same, where an operand or the result is complex.
ComplexRule: TypeAlias = Callable[Concatenate[Any, Context, ...], Enclosure]

ENCLOSE: Table[Rule] = Table("enclosure")
COMPLEX: Table[ComplexRule] = Table("enclosure of complex numbers")
COMPLEX.unsupported("complex numbers have no order", ops.Maximum, ops.Minimum, ops.Clamp)
