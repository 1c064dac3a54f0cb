"""The table of statements: by the name of an operation of StableHLO, how a generated module comes to have it.

Names with more than one form have the form behind a space: `reduce_window sums`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from fuzz.generate.modules.draft import Draft
from tenferro_ref.stablehlo.writer import SsaValue
from tenferro_ref.table import Table

#: Appends an operation and what it needs; gives its results.
Statement: TypeAlias = Callable[[Draft], "SsaValue | Sequence[SsaValue]"]
STATEMENTS: Table[Statement] = Table("operations of generated modules")
