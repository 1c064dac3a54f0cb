"""Words for ops of the extension families: the function of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import signature
from typing import Any
from zlib import crc32

from oracle.peers.front_end.equations import spelled
from oracle.peers.front_end.table import PHRASES, WORDS, Origins
from tenferro_ref import ops
from tenferro_ref.extensions import einsum, fft, linalg
from tenferro_ref.ops import TensorType
from tenferro_ref.program import Value

Function = Callable[..., Value | tuple[Value, ...]]

_LINALG: dict[str, Function] = {
    "Cholesky": linalg.cholesky, "Lu": linalg.lu, "LuFactor": linalg.lu_factor, "LuSolvePrepared": linalg.lu_solve_prepared,
    "FullPivLu": linalg.full_piv_lu, "FullPivLuSolve": linalg.full_piv_lu_solve, "Svd": linalg.svd, "SvdFull": linalg.svd_full,
    "SvdVals": linalg.svdvals, "Qr": linalg.qr, "RankRevealingQr": linalg.rank_revealing_qr,
    "HouseholderQrFactor": linalg.householder_qr, "HouseholderQrFromFactors": linalg.householder_qr_from_factors,
    "HouseholderQrAppend": linalg.householder_qr_append, "HouseholderQrR": linalg.householder_qr_r,
    "HouseholderQrThinQ": linalg.householder_qr_q, "HouseholderQrQColumns": linalg.householder_qr_q, "Eigh": linalg.eigh, "EighVals": linalg.eigvalsh, "Eig": linalg.eig,
    "EigVals": linalg.eigvals, "TriangularSolve": linalg.triangular_solve, "Solve": linalg.solve,
}  # fmt: skip
_FFT: dict[str, Function] = {"fft": fft.fft, "ifft": fft.ifft, "rfft": fft.rfft, "irfft": fft.irfft}


@WORDS.row(ops.Extension)
def _extension(op: ops.Extension, result: TensorType, *operands: Value) -> Value | tuple[Value, ...] | None:
    config: dict[str, Any] = json.loads(op.config)
    if op.family == einsum.FAMILY:
        return spelled(einsum.parse(op), operands, crc32(f"{op.config}{[v.shape for v in operands]}".encode()))
    if op.family == fft.FAMILY:
        transform = fft.transform(op, operands[0].ndim)
        return _FFT[op.op](*operands, transform.n, config.get("axis", -1), transform.norm.lower())
    if op.key == (linalg.FAMILY, "HouseholderQrQColumns"):
        config = {"start": 0, **config}  # without either end it would be the thin one
    function = _LINALG.get(op.op) if op.family == linalg.FAMILY else None
    # a derivative's epsilon is no argument of what it is not about
    if function is None or not config.keys() <= signature(function).parameters.keys():
        return None
    return function(*operands, **config)


@PHRASES.row(ops.Extension)
def _determinant(origins: Origins, op: ops.Extension, result: TensorType, *operands: Value) -> Value | None:
    """Sign or logarithm of a determinant, where the factors that are read are those of the matrix."""
    if op.family != linalg.FAMILY or op.op not in ("SignDetFromLuFactor", "LogAbsDetFromLuFactor"):
        return None
    a, *factors = operands
    for factor, index in zip(factors, (0, 2), strict=False):
        origin = origins.get(factor)
        if origin is None or (origin.op, origin.index) != (_LU_FACTOR, index) or origin.operands[0] is not a:
            return None
    return linalg.slogdet(a)[op.op == "LogAbsDetFromLuFactor"]


_LU_FACTOR = ops.Extension.of(linalg.FAMILY, "LuFactor", {})
