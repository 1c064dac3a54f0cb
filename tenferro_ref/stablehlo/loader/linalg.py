"""Rows of linear algebra and transforms: ops of extension families. Batch axes are first in StableHLO, last in the engine."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tenferro_ref import ops
from tenferro_ref.errors import FormatError
from tenferro_ref.extensions import fft, lapack, linalg
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader.bindings import Operation, tensor_type
from tenferro_ref.stablehlo.loader.tracer import ROWS, Tracer


def _matrices(b: Tracer, x: Value, to_last: bool) -> Value:
    batch = x.ndim - 2
    return b.transpose(x, [batch, batch + 1, *range(batch)] if to_last else [*range(2, x.ndim), 0, 1])


def _adjoint(b: Tracer, a: Value) -> Value:
    turned = b.transpose(a, [1, 0, *range(2, a.ndim)])
    return b.apply(ops.Conj(), turned) if a.dtype.is_complex else turned


@ROWS.row("cholesky")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    """The engine's is the lower factor, from the lower triangle: the upper one is the adjoint of the adjoint's."""
    a, lower = _matrices(b, x, True), op.attribute("lower", False)
    factor = b.apply(ops.Extension.of(linalg.FAMILY, "Cholesky", {}), a if lower else _adjoint(b, a))
    return _matrices(b, factor if lower else _adjoint(b, factor), False)


@ROWS.row("triangular_solve")
def _(b: Tracer, op: Operation, a: Value, rhs: Value) -> Value:
    kind, matrix = op.enum("transpose_a"), _matrices(b, a, True)
    config = {name: bool(op.attribute(name)) for name in ("left_side", "lower", "unit_diagonal")}
    config["transpose_a"] = kind != "NO_TRANSPOSE"
    if kind == "ADJOINT" and a.dtype.is_complex:
        matrix = b.apply(ops.Conj(), matrix)
    solve = ops.Extension.of(linalg.FAMILY, "TriangularSolve", config)
    return _matrices(b, b.apply(solve, matrix, _matrices(b, rhs, True)), False)


@ROWS.row("custom_call")
def _(b: Tracer, op: Operation, *operands: Value) -> Sequence[Value]:
    """LAPACK's routines, as JAX calls them on CPU."""
    routine = routine_of(op)
    results = list(b.apply_many(routine, *operands))
    raw = op.raw.operation.results
    if len(raw) == len(results):
        for i in lapack.garbage(routine, len(results)):
            if any(True for _ in raw[i].uses):
                raise op.refusal(f"a result is used that {routine.op} leaves without a meaning")
            # factors that gesdd is not asked for have the extents of thin or of full ones: nobody reads them
            type_ = tensor_type(raw[i].type, "result")
            results[i] = b.array(np.zeros(type_.static_shape, type_.dtype.numpy))
    if [tensor_type(r.type, "result") for r in raw] != [v.type for v in results]:
        raise op.refusal(f"{routine.op} has other results: {', '.join(str(v.type) for v in results)}")
    return results


def routine_of(op: Operation) -> ops.Extension:
    """The routine that a custom call calls.

    Raises
    ------
    UnsupportedOp
        None that is known, or not as JAX calls it.
    """
    target = op.attribute("call_target_name")
    found = re.fullmatch(r"lapack_[sdcz](\w+)_ffi", target)
    name = lapack.COMPLEX_NAMES.get(found[1], found[1]) if found else ""
    if name not in lapack.ROUTINES:
        raise op.refusal(f"nothing is known of the target {target!r}")
    return ops.Extension.of(lapack.FAMILY, name, _flags(op, target, lapack.ROUTINES[name].flags))


#: A letter, a number, or a boolean.
_FLAG = re.compile(r"(?P<name>\w+) = (?:(?P<letter>\d+) : ui8|(?P<number>\d+) : i32|(?P<bool>true|false))")


def _flags(op: Operation, target: str, known: dict[str, str]) -> dict[str, str]:
    """The flags of a call, letters by name; whatever else the call says must be what JAX says."""
    attributes = op.raw.attributes
    text = str(attributes["mhlo.backend_config"]) if "mhlo.backend_config" in attributes else "{}"
    entries = [entry for entry in re.split(r",\s*", text.strip("{}")) if entry]
    found = [entry for entry in map(_FLAG.fullmatch, entries) if entry]
    flags = {
        x["name"]: chr(int(x["letter"])) if x["letter"] else x["number"] or {"true": "T", "false": "F"}[x["bool"]]
        for x in found
    }
    if "gehrd" in target:
        rows = tensor_type(op.raw.operands[0].type, "operand").static_shape[-1]
        if (flags.pop("low", ""), flags.pop("high", "")) != ("1", str(rows)):
            raise op.refusal(f"{target} must reduce all rows (low = 1, high = {rows}), not {text}")
    if len(found) < len(entries) or flags.keys() != known.keys():
        raise op.refusal(f"{target} has the flags {', '.join(known) or 'none'} in mhlo.backend_config, not {text}")
    rank = max(tensor_type(v.type, "operand").rank for v in op.raw.operands)
    for name, values in (("operand_layouts", op.raw.operands), ("result_layouts", op.raw.operation.results)):
        ranks = [tensor_type(v.type, "value").rank for v in values]
        expected = [[*range(r - 2, r), *reversed(range(r - 2))] if r == rank else [*reversed(range(r))] for r in ranks]
        layouts = list(attributes[name]) if name in attributes else []
        if [[int(axis) for axis in re.findall(r"\d+", str(x).partition(":")[0])] for x in layouts] != expected:
            raise op.refusal(f"{name} must have matrices column by column, batch axes first")
    return flags


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
