"""Emission of extension ops: the row of Extension in `EMIT`, and the rows of linalg and fft in `EMIT_EXTENSION`.

XLA has no errors of its own for the values of a matrix: where the native runtime refuses one (singular, not positive
definite), XLA's result is NaN or infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TypeAlias

from tenferro_ref import ops
from tenferro_ref.errors import Internal, UnsupportedOp
from tenferro_ref.extensions import fft, lapack, linalg
from tenferro_ref.ops import Extension, TensorType
from tenferro_ref.stablehlo.emit.table import EMIT, EMIT_EXTENSION
from tenferro_ref.stablehlo.literals import Shape
from tenferro_ref.stablehlo.writer import Body, SsaValue

Types: TypeAlias = tuple[TensorType, ...]


@EMIT.row(ops.Extension)
def _(op: Extension, body: Body, outputs: Types, *operands: SsaValue) -> Sequence[SsaValue]:
    """Results without elements take no operation at all."""
    if op.key not in EMIT_EXTENSION:
        raise UnsupportedOp(op=op.name, reason=f"{op.op} of {op.family!r} has no lowering to StableHLO")
    shapes = [t.static_shape for t in outputs]
    if all(0 in shape for shape in shapes):
        return [body.filled(0, t.dtype, shape) for t, shape in zip(outputs, shapes, strict=True)]
    results = EMIT_EXTENSION[op.key](op, body, outputs, *operands)
    types = tuple(TensorType(v.dtype, v.shape) for v in results)
    if types != outputs:
        actual, declared = (", ".join(map(str, t)) for t in (types, outputs))
        raise Internal(detail=f"the lowering of {op.op} of {op.family!r} gave {actual}; its rule says {declared}")
    return results


# --- linalg -----------------------------------------------------------------------------------------------------------


def _batch_first(body: Body, x: SsaValue) -> SsaValue:
    return x if x.rank == 2 else body.transpose(x, [*range(2, x.rank), 0, 1])


def _batch_last(body: Body, x: SsaValue) -> SsaValue:
    return x if x.rank == 2 else body.transpose(x, [x.rank - 2, x.rank - 1, *range(x.rank - 2)])


@EMIT_EXTENSION.row((linalg.FAMILY, "Cholesky"))
def _(op: Extension, body: Body, outputs: Types, a: SsaValue) -> Sequence[SsaValue]:
    a = _batch_first(body, a)
    factor = body.line(f"cholesky {a.name}, lower = true : {a.type}", a.dtype, a.shape)
    # StableHLO leaves the other triangle open
    row, column = (body.iota(a.shape, a.rank - 2), body.iota(a.shape, a.rank - 1))
    below = body.compare("GE", row, column)
    return [_batch_last(body, body.select(below, factor, body.filled(0, a.dtype, a.shape)))]


@EMIT_EXTENSION.row((linalg.FAMILY, "TriangularSolve"))
def _(op: Extension, body: Body, outputs: Types, a: SsaValue, b: SsaValue) -> Sequence[SsaValue]:
    flags = linalg.config_of(op)
    transpose = "TRANSPOSE" if flags.pop("transpose_a") else "NO_TRANSPOSE"
    return [_batch_last(body, _solved(body, _batch_first(body, a), _batch_first(body, b), flags, transpose))]


def _solved(body: Body, a: SsaValue, b: SsaValue, flags: dict[str, bool], transpose: str) -> SsaValue:
    attrs = ", ".join(f"{key} = {str(flag).lower()}" for key, flag in flags.items())
    attrs += f", transpose_a = #stablehlo<transpose {transpose}>"
    return body.generic("triangular_solve", [a, b], attrs, b.dtype, b.shape)


@EMIT_EXTENSION.row((lapack.FAMILY, "potrf"))
def _(op: Extension, body: Body, outputs: Types, a: SsaValue) -> Sequence[SsaValue]:
    lower = lapack.config_of(op)["uplo"] == "L"
    factor = body.line(f"cholesky {a.name}, lower = {str(lower).lower()} : {a.type}", a.dtype, a.shape)
    row, column = (body.iota(a.shape, a.rank - 2), body.iota(a.shape, a.rank - 1))
    inside = body.compare("GE" if lower else "LE", row, column)
    return [body.select(inside, factor, a), body.filled(0, outputs[1].dtype, outputs[1].static_shape)]


@EMIT_EXTENSION.row((lapack.FAMILY, "trsm"))
def _(op: Extension, body: Body, outputs: Types, a: SsaValue, b: SsaValue) -> Sequence[SsaValue]:
    letters = lapack.config_of(op)
    flags = {
        "left_side": letters["side"] == "L",
        "lower": letters["uplo"] == "L",
        "unit_diagonal": letters["diag"] == "U",
    }
    transpose = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[letters["trans_x"]]
    return [_solved(body, a, b, flags, transpose)]


# --- fft --------------------------------------------------------------------------------------------------------------


@EMIT_EXTENSION.row(*fft.FFT.keys)
def _(op: Extension, body: Body, outputs: Types, x: SsaValue) -> Sequence[SsaValue]:
    shape = outputs[0].static_shape
    spec = fft.transform(op, x.rank)
    inverse, real = op.op.startswith("i"), "r" in op.op
    length = spec.n or (shape[spec.axis] if inverse or not real else x.shape[spec.axis])
    out = _moved(shape, spec.axis)
    x = _fitted(body, _axis_last(body, x, spec.axis), length // 2 + 1 if inverse and real else length)
    if op.op == "fft" and not x.dtype.is_complex:
        x = body.convert(x, x.dtype.complex)
    dtype = x.dtype.real if inverse and real else x.dtype.complex
    result = body.call("fft", [x], dtype, out, f", type = {op.op.upper()}, length = [{length}]")
    factor = _scale(spec.norm, length, inverse)
    if factor != 1:
        result = body.same("multiply", result, body.filled(factor, dtype, out))
    return [_axis_back(body, result, spec.axis)]


def _scale(norm: str, n: int, inverse: bool) -> float:
    """The factor from StableHLO's transform, which scales the inverse direction by 1/n, to the one of this norm."""
    wanted = {"Backward": (1.0, 1 / n), "Ortho": (1 / sqrt(n), 1 / sqrt(n)), "Forward": (1 / n, 1.0)}[norm][inverse]
    return wanted * n if inverse else wanted


def _moved(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :], shape[axis])


def _axis_last(body: Body, x: SsaValue, axis: int) -> SsaValue:
    return x if axis == x.rank - 1 else body.transpose(x, _moved(tuple(range(x.rank)), axis))


def _axis_back(body: Body, x: SsaValue, axis: int) -> SsaValue:
    last = x.rank - 1
    return x if axis == last else body.transpose(x, [*range(axis), last, *range(axis, last)])


def _fitted(body: Body, x: SsaValue, extent: int) -> SsaValue:
    """The last axis cut off, or padded with zeros."""
    missing, none, shape = extent - x.shape[-1], (0,) * x.rank, (*x.shape[:-1], extent)
    if missing < 0:
        return body.slice(x, none, shape)
    return body.pad(x, none, (*none[:-1], missing), none, shape) if missing else x


EMIT_EXTENSION.unsupported(
    "StableHLO has no operation for it", *EMIT_EXTENSION.holes([*linalg.LINALG.keys, *lapack.LAPACK.keys])
)
