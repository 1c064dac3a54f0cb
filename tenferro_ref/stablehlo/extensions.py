"""How ops of extension families are written in StableHLO, by family id and op name.

A family's op without an entry has no lowering and is refused (`emit.extension`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tenferro_ref.stablehlo.writer import Value

#: `lowering(op, body, outputs, *operands) -> results`, one result of each type in `outputs`; it raises `UnsupportedOp` for
#: a configuration that it cannot say.
Lowering: TypeAlias = Callable[..., Sequence[Value]]
EXTENSIONS: dict[tuple[str, str], Lowering] = {}
