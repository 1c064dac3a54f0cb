"""The tables of emission; their rows are in the sibling modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tenferro_ref.stablehlo.writer import SsaValue
from tenferro_ref.table import Table

#: `row(op, body, shape, *operands) -> result`, where `shape` is the result's. The row of Extension takes the types of all
#: outputs in its place and gives all results.
Row: TypeAlias = Callable[..., SsaValue | Sequence[SsaValue]]
EMIT: Table[Row] = Table("stablehlo")

#: `row(op, body, output types, *operands) -> results`, one of each type; raises `UnsupportedOp` for a configuration that
#: StableHLO has no form for.
ExtensionRow: TypeAlias = Callable[..., Sequence[SsaValue]]
#: By family and op. Families that are made of standard ops (einsum) need no rows here.
EMIT_EXTENSION: Table[ExtensionRow] = Table("stablehlo")
