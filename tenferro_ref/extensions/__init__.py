"""The engine's extension families, linalg, fft and einsum (SEMANTICS 6), and lapack, which modules of StableHLO call.

A family is one `Family` record in a module of its own, with functions that append its ops to a program. Importing this
package registers them; a family from elsewhere is registered in the same way (docs/how-to/add-an-extension-family.md).
"""

from tenferro_ref.extensions import einsum, fft, lapack, linalg
from tenferro_ref.extensions.family import Family, family_of, register, standard_ops_of

__all__ = ["Family", "einsum", "family_of", "fft", "lapack", "linalg", "register", "standard_ops_of"]
