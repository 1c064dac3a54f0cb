"""`ROWS`: what each op of StableHLO becomes, by its name without the dialect; the rows are in the sibling modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tenferro_ref.program import Value
from tenferro_ref.table import Table

#: `row(tracer, operation, *operands) -> result or results`: appends ops of the engine to the tracer's program.
Row: TypeAlias = Callable[..., Value | Sequence[Value]]
ROWS: Table[Row] = Table("StableHLO loader")
