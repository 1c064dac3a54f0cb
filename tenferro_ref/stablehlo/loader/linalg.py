"""Rows of linear algebra and transforms: ops of extension families. Batch axes are first in StableHLO, last in the engine."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tenferro_ref import ops
from tenferro_ref.errors import FormatError
from tenferro_ref.extensions import fft, linalg
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.tracer import ROWS, Tracer


def _matrices(b: Tracer, x: Value, to_last: bool) -> Value:
    batch = x.ndim - 2
    return b.transpose(x, [batch, batch + 1, *range(batch)] if to_last else [*range(2, x.ndim), 0, 1])


def _adjoint(b: Tracer, a: Value) -> Value:
    turned = b.transpose(a, [1, 0, *range(2, a.ndim)])
    return b.apply(ops.Conj(), turned) if a.dtype.is_complex else turned


def _cholesky(b: Tracer, x: Value, lower: bool) -> Value:
    """The engine's is the lower factor, from the lower triangle: the upper one is the adjoint of the adjoint's."""
    a = _matrices(b, x, True)
    factor = b.apply(ops.Extension.of(linalg.FAMILY, "Cholesky", {}), a if lower else _adjoint(b, a))
    return _matrices(b, factor if lower else _adjoint(b, factor), False)


def _triangular_solve(b: Tracer, a: Value, rhs: Value, adjoint: bool, config: dict[str, bool]) -> Value:
    matrix = _matrices(b, a, True)
    if adjoint and a.dtype.is_complex:
        matrix = b.apply(ops.Conj(), matrix)
    solve = ops.Extension.of(linalg.FAMILY, "TriangularSolve", config)
    return _matrices(b, b.apply(solve, matrix, _matrices(b, rhs, True)), False)


@ROWS.row("cholesky")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    return _cholesky(b, x, op.attribute("lower", False))


@ROWS.row("triangular_solve")
def _(b: Tracer, op: Operation, a: Value, rhs: Value) -> Value:
    kind = op.enum("transpose_a")
    config = {name: bool(op.attribute(name)) for name in ("left_side", "lower", "unit_diagonal")}
    config["transpose_a"] = kind != "NO_TRANSPOSE"
    return _triangular_solve(b, a, rhs, kind == "ADJOINT", config)


@ROWS.row("custom_call")
def _(b: Tracer, op: Operation, *operands: Value) -> Sequence[Value]:
    """What JAX calls on CPU for the two ops above; LAPACK's flags are letters."""
    target = op.attribute("call_target_name")
    found = re.fullmatch(r"lapack_[sdcz](potrf|trsm)_ffi", target)
    if found is None:
        raise op.refusal(f"nothing is known of the target {target!r}")
    flags = {
        name: chr(int(code))
        for name, code in re.findall(r"(\w+) = (\d+) : ui8", str(op.raw.attributes["mhlo.backend_config"]))
    }
    if found[1] == "potrf":  # a matrix that has no factor is the engine's error
        info = b.array(np.zeros(operands[0].shape[:-2], np.int32))  # type: ignore[arg-type]
        return _cholesky(b, operands[0], flags["uplo"] == "L"), info
    config = {"left_side": flags["side"] == "L", "lower": flags["uplo"] == "L", "unit_diagonal": flags["diag"] == "U"}
    config["transpose_a"] = flags["trans_x"] != "N"
    return (_triangular_solve(b, operands[0], operands[1], flags["trans_x"] == "C", config),)


@ROWS.row("fft")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    """Over several axes one after another, the last one first (it is the real one), or last for an inverse real one."""
    kind = op.enum("fft_type").lower()
    lengths = op.axes("fft_length")
    first = x.ndim - len(lengths)
    steps = [(first + i, n, kind) for i, n in enumerate(lengths)]
    if kind in ("fft", "ifft") and lengths != x.shape[x.ndim - len(lengths) :]:  # MLIR's verifier lets it pass
        detail = f"fft_length {list(lengths)} is not what the innermost axes of {list(x.shape)} have"
        raise FormatError(where="stablehlo.fft", detail=detail)
    complex_kind = {"rfft": "fft", "irfft": "ifft"}.get(kind, kind)
    steps[:-1] = [(axis, n, complex_kind) for axis, n, _ in steps[:-1]]
    for axis, n, name in steps if kind == "irfft" else reversed(steps):
        x = b.apply(ops.Extension.of(fft.FAMILY, name, {"n": n, "axis": axis, "norm": "Backward"}), x)
    return x
