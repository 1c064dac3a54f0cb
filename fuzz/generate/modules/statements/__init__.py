"""How a generated module comes to have each operation that programs lack."""

from fuzz.generate.modules.statements import contractions, control, elementwise, indexing, reductions, structural
from fuzz.generate.modules.statements.elementwise import read
from fuzz.generate.modules.statements.table import STATEMENTS, Statement

__all__ = [
    "STATEMENTS",
    "Statement",
    "contractions",
    "control",
    "elementwise",
    "indexing",
    "read",
    "reductions",
    "structural",
]
