"""Lowering to StableHLO (SEMANTICS 7): the table `EMIT` of what each op becomes, and programs as modules.

Rows are grouped by the kinds of ops; `lower` walks a program; `policy` makes up for the places where the program's policy
asks for another meaning than StableHLO's. How lines are written lives in `writer` and `literals`.
"""

from tenferro_ref.stablehlo.emit import contraction, elementwise, extension, indexing, structural
from tenferro_ref.stablehlo.emit.lower import fingerprint, lower_into, lower_to_stablehlo
from tenferro_ref.stablehlo.emit.table import EMIT, Row

__all__ = [
    "EMIT",
    "Row",
    "contraction",
    "elementwise",
    "extension",
    "fingerprint",
    "indexing",
    "lower_into",
    "lower_to_stablehlo",
    "structural",
]
