"""`STRATEGY`: for each op, how an instruction of it joins a growing program.

A row finds or makes operands, decodes attributes and appends the instruction. The rows are in `fuzz.generate.ops`; importing
that package fills the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from fuzz.generate.config import Config
from fuzz.generate.growth import Growth
from tenferro_ref import ops
from tenferro_ref.ops import INDEXING, Op
from tenferro_ref.program import Value
from tenferro_ref.table import Table

#: Appends one instruction of the op (its adapters before it) and returns the result.
Row: TypeAlias = Callable[[Growth, type[Any]], Value]
STRATEGY: Table[Row] = Table("generator")

#: Ops whose rows need a tensor of rank 2 to work on.
NEEDS_AXES = frozenset({*INDEXING, ops.ExtractDiag, ops.EmbedDiag, ops.Tril, ops.Triu, ops.Extension})


def usable(op: type[Op], config: Config) -> bool:
    """Whether programs of a config can have the op, whatever its dtypes."""
    return op in config.ops and op in STRATEGY and (config.max_rank > 1 or op not in NEEDS_AXES)
