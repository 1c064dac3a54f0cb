"""Custom algebras: the engine that runs an ExecProgram over any semiring (SEMANTICS 6.1)."""

from tenferro_ref.runtime.semiring.algebra import ALGEBRAS, Algebra
from tenferro_ref.runtime.semiring.backend import SEMIRING, SemiringBackend
from tenferro_ref.runtime.semiring.core import NumpyCore, NumpyFastPath, SemiringCore, SemiringFastPath
