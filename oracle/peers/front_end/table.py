"""The tables of words: what the front end says for an op, row by row, and what all rows need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tenferro_ref import ops
from tenferro_ref.ops import Op
from tenferro_ref.program import Value
from tenferro_ref.table import Table

#: `row(op, result, *operands)` is the value, the values of an op with several, or None where there are no words for this op with these
#: attributes.
Row: TypeAlias = Callable[..., Value | tuple[Value, ...] | None]
WORDS: Table[Row] = Table("words of the front end")


@dataclass(frozen=True, slots=True)
class Origin:
    """What made a value: result `index` of an op on these operands."""

    op: Op
    operands: tuple[Value, ...]
    index: int


Origins: TypeAlias = Mapping[Value, Origin]
#: As `WORDS`, with the origins of all values before the operands: words for an op together with what made its operands.
PHRASES: Table[Row] = Table("phrases of the front end")


def alike(*operands: Any, scalars: bool = False) -> bool:
    """Whether the front end neither promotes nor broadcasts them; one of rank 0 may be beside the others."""
    values = [v for v in operands if isinstance(v, Value)]
    shapes = {v.shape for v in values if v.ndim or not scalars}
    return len({v.dtype for v in values}) == 1 and len(shapes) <= 1


def back(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """The axes counted from the end."""
    return tuple(a - rank for a in axes)


def with_axis(x: Value, axis: int) -> Value:
    """The value with a new axis of extent 1."""
    return x[(*[slice(None)] * axis, None)]


WORDS.unsupported("NumPy's remainder has the sign of the divisor, so the front end has no operator", ops.Remainder)
WORDS.unsupported("the front end squares and sums in two ops", ops.ReduceSumSquares)
