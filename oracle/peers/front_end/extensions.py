"""Words for ops of the extension families: the function of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import signature
from typing import Any
from zlib import crc32

from oracle.peers.front_end.equations import spelled
from oracle.peers.front_end.refusals import check_refusals
from oracle.peers.front_end.table import PHRASES, WORDS, Origins
from tenferro_ref import frontend as tn
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
        equation = einsum.parse(op)
        check_refusals(equation, operands)
        return spelled(equation, operands, crc32(f"{op.config}{[v.shape for v in operands]}".encode()))
    if op.family == fft.FAMILY:
        return _FFT[op.op](*operands, config.get("n"), config.get("axis", -1), config.get("norm", "Backward").lower())
    if op.key == (linalg.FAMILY, "HouseholderQrQColumns"):
        config = {"start": 0, **config}  # without either end it would be the thin one
    function = _LINALG.get(op.op) if op.family == linalg.FAMILY else None
    # a derivative's epsilon is no argument of what it is not about
    if function is None or not config.keys() <= signature(function).parameters.keys():
        return None
    results = function(*operands, **config)
    made = results if isinstance(results, tuple) else (results,)
    return _beside_nothing(op, function, config, operands, made) if all(v.type.is_static for v in operands) else made


def _beside_nothing(
    op: ops.Extension, function: Function, config: dict[str, Any], operands: tuple[Value, ...], made: tuple[Value, ...]
) -> tuple[Value, ...]:
    """The results, and beside them those for matrices without rows and columns, of which only parity, rank and the like say anything."""
    pairs = zip(operands, linalg.OPS[op.op].operands, strict=True)
    empty = [v[(slice(0),) * len(axes)] if axes else v for v, (_, axes) in pairs]
    results = function(*empty, **(config | ({"start": 0, "end": 0} if "start" in config else {})))
    return tuple(
        _joined(op, *pair) for pair in zip(made, results if isinstance(results, tuple) else (results,), strict=True)
    )


def _joined(op: ops.Extension, result: Value, nothing: Value) -> Value:
    if result.shape == nothing.shape:  # a number for each matrix, or nothing on either side
        if result.dtype.is_complex or 0 in result.shape:
            return result
        return result + nothing if op.op in ("LogAbsDetFromLuFactor", "RankRevealingQr") else result * nothing
    missing = [(0, a - b) for a, b in zip(result.type.static_shape, nothing.type.static_shape, strict=True)]
    return tn.concatenate([result, tn.pad(nothing, [(0, 0), *missing[1:]])], 0)


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
