"""The engine's extension families: linalg, fft and einsum (SEMANTICS 6).

A family is here with its metadata rule, its lowering to standard ops if it has one (`standard`), and functions that append
its ops to a program. Importing this package makes the rules known to `tenferro_ref.ops.FAMILIES`, and so to builders and
readers; the runtimes (`*_runtime`) are `tenferro_ref.runtime`'s to register, StableHLO is written in
`tenferro_ref.stablehlo.extensions`.
"""

from tenferro_ref.extensions import einsum, fft, linalg
from tenferro_ref.ops import FAMILIES

for _family in (einsum, fft, linalg):
    FAMILIES.setdefault(_family.FAMILY, _family)

__all__ = ["einsum", "fft", "linalg"]
