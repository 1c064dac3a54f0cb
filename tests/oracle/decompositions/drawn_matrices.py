"""Operands of decompositions: matrices that are drawn."""

import numpy as np

from fuzz.generate.ops.linalg import PREPARED
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.extensions import linalg
from tenferro_ref.extensions.linalg import LINALG

DTYPES = [DType.F32, DType.F64, DType.C32, DType.C64]
HOUSEHOLDER = tuple(name for name in linalg.OPS if name.startswith("Householder"))
RECTANGULAR = ("Lu", "LuFactor", "Svd", "SvdFull", "SvdVals", "Qr", "RankRevealingQr", *HOUSEHOLDER)
SQUARE = ("Cholesky", "FullPivLu", "Eigh", "EighVals", "Eig", "EigVals")
SOLVERS = ("Solve", "FullPivLuSolve", "TriangularSolve", "LuSolvePrepared")


def op(name, **config):
    return ops.Extension.of(linalg.FAMILY, name, config)


def drawn(rng, dtype, shape):
    z = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.is_complex else 0)
    return np.asarray(z, dtype.numpy, order="F")


def operands(name, rng, dtype, m, n):
    """Batches of two matrices: ill conditioned ones too, symmetric and definite where that is asked for."""
    a = drawn(rng, dtype, (m, n, 2))
    a[:, 0] *= 1e-4
    if name in PREPARED and name in HOUSEHOLDER:
        other, places = PREPARED[name]
        made = LINALG.execute(op(other), [a[..., 0]])
        given = [made[place] for place in places]
        return [*given, a[..., 1]] if name == "HouseholderQrAppend" else given
    if name in HOUSEHOLDER:
        return [a[..., 0]]
    if name in ("Cholesky", "Eigh", "EighVals"):
        a = np.einsum("ikb,jkb->ijb", a, a.conj()) + (np.eye(m)[..., None] if name == "Cholesky" else 0)
    a = np.asarray(a, dtype.numpy, order="F")
    if name not in SOLVERS:
        return [a]
    if name == "TriangularSolve":
        a += 2 * np.eye(m, dtype=dtype.numpy)[..., None]
    b = drawn(rng, dtype, (m, 3, 2))
    if name == "LuSolvePrepared":
        packed, pivots, _ = LINALG.execute(op("LuFactor"), [a])
        return [a, packed, pivots, b]
    return [a, b]
