"""The table of rules, one row an op, and what a rule is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from oracle.enclosure.formats import FORMATS, Format
from oracle.enclosure.model import Model
from oracle.enclosure.value import Enclosure
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


#: `rule(op, context, *operands)`. The executor sees to shapes, dtypes and complex numbers beforehand.
Rule: TypeAlias = Callable[..., Enclosure]
Bounds: TypeAlias = tuple[Any, Any]

ENCLOSE: Table[Rule] = Table("enclosure")
