"""The table of emission; its rows are in the sibling modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tenferro_ref.table import Table

#: `row(op, body, shape, *operands) -> result`, where `shape` is the result's. The row of Extension takes the types of all
#: outputs in its place and gives all results.
Row: TypeAlias = Callable[..., Any]
EMIT: Table[Row] = Table("stablehlo")
