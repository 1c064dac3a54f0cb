"""How a generated module comes to have each operation that programs lack."""

from fuzz.generate.modules.statements import (
    contractions,
    control,
    elementwise,
    indexing,
    lapack,
    linalg,
    order,
    reductions,
    structural,
)
from fuzz.generate.modules.statements.elementwise import read
from fuzz.generate.modules.statements.table import STATEMENTS, Statement

#: Statements that stand by themselves: few executors have their operations, or what must not stand beside them is said there.
ALONE = frozenset(name for name in STATEMENTS if name.startswith(("custom_call", "chlo.scan")))

__all__ = [
    "ALONE",
    "STATEMENTS",
    "Statement",
    "contractions",
    "control",
    "elementwise",
    "indexing",
    "lapack",
    "linalg",
    "order",
    "read",
    "reductions",
    "structural",
]
