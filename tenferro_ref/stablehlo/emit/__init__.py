"""Lowering to StableHLO (SEMANTICS 7): the table `EMIT` of what each op becomes, and programs as modules.

Rows are grouped by the kinds of ops; `lower` walks a program; `policy` adds what a program's policy asks for beyond
StableHLO's meaning of an op. How lines are written is in `tenferro_ref.stablehlo.writer` and `literals`.
"""

from tenferro_ref.stablehlo.emit import contraction, elementwise, extension, indexing, reference, structural
from tenferro_ref.stablehlo.emit.kernel_call import ATTRIBUTE, NONE, TARGET, OwnKernels
from tenferro_ref.stablehlo.emit.lower import fingerprint, lower_into, lower_to_stablehlo
from tenferro_ref.stablehlo.emit.table import EMIT, EMIT_EXTENSION

__all__ = [
    "ATTRIBUTE",
    "EMIT",
    "EMIT_EXTENSION",
    "NONE",
    "TARGET",
    "OwnKernels",
    "fingerprint",
    "lower_into",
    "lower_to_stablehlo",
]
