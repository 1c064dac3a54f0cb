"""Derivatives: programs to programs, by rules that are rows of two more tables (SEMANTICS B).

`jvp`, `vjp`, `transpose` and `grad` make ordinary programs: they run on every executor, are held to enclosures, and can be
differentiated again.
"""

from tenferro_ref.autodiff import (
    decompositions,
    elementwise,
    extensions,
    indexing,
    structural,
)
from tenferro_ref.autodiff.rules import JVP, TRANSPOSE
from tenferro_ref.autodiff.transform import Derivative, grad, jvp, transpose, vjp

__all__ = ["JVP", "TRANSPOSE", "Derivative", "grad", "jvp", "transpose", "vjp"]
