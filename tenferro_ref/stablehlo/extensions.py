"""How ops of extension families are written in StableHLO, by family id and op name.

A family's op without an entry has no lowering and is refused (`emit.extension`). What standard ops can say (einsum) never
comes here: `tenferro_ref.extensions.standard` has replaced it. XLA has no errors of its own for the values of a matrix:
where the native runtime refuses one (singular, not positive definite), XLA's result is NaN or infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import NoReturn, TypeAlias

from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.extensions import einsum, fft, linalg
from tenferro_ref.ops import Extension, TensorType
from tenferro_ref.stablehlo.literals import Shape
from tenferro_ref.stablehlo.writer import Body, Value

#: `lowering(op, body, outputs, *operands) -> results`, one result of each type in `outputs`; it raises `UnsupportedOp` for
#: a configuration that it cannot say.
Lowering: TypeAlias = Callable[..., Sequence[Value]]
EXTENSIONS: dict[tuple[str, str], Lowering] = {}

_Row: TypeAlias = Callable[[Extension, Body, Shape, tuple[Value, ...]], Value]


def _register(family: str, *ops: str) -> Callable[[_Row], _Row]:
    """Register a row of one result; a result without elements takes no operation at all."""

    def add(row: _Row) -> _Row:
        def lowering(op: Extension, body: Body, outputs: tuple[TensorType, ...], *operands: Value) -> Sequence[Value]:
            (type_,) = outputs
            shape = tuple(e for e in type_.shape if isinstance(e, int))
            return [body.filled(0, type_.dtype, shape) if 0 in shape else row(op, body, shape, operands)]

        for name in ops:
            EXTENSIONS[family, name] = lowering
        return row

    return add


# --- linalg -----------------------------------------------------------------------------------------------------------


def _batch_first(body: Body, x: Value) -> Value:
    return x if x.rank == 2 else body.transpose(x, [*range(2, x.rank), 0, 1])


def _batch_last(body: Body, x: Value) -> Value:
    return x if x.rank == 2 else body.transpose(x, [x.rank - 2, x.rank - 1, *range(x.rank - 2)])


@_register(linalg.FAMILY, "Cholesky")
def _(op: Extension, body: Body, shape: Shape, operands: tuple[Value, ...]) -> Value:
    (a,) = (_batch_first(body, x) for x in operands)
    factor = body.line(f"cholesky {a.name}, lower = true : {a.type}", a.dtype, a.shape)
    # the other triangle is left open
    row, column = (body.iota(a.shape, a.rank - 2), body.iota(a.shape, a.rank - 1))
    below = body.compare("GE", row, column)
    return _batch_last(body, body.select(below, factor, body.filled(0, a.dtype, a.shape)))


@_register(linalg.FAMILY, "TriangularSolve")
def _(op: Extension, body: Body, shape: Shape, operands: tuple[Value, ...]) -> Value:
    flags = linalg.config_of(op)
    a, b = (_batch_first(body, x) for x in operands)
    said = {key: "true" if flags[key] else "false" for key in ("left_side", "lower", "unit_diagonal")}
    attrs = ", ".join(f"{key} = {value}" for key, value in said.items())
    transpose = "TRANSPOSE" if flags["transpose_a"] else "NO_TRANSPOSE"
    attrs += f", transpose_a = #stablehlo<transpose {transpose}>"
    return _batch_last(body, body.generic("triangular_solve", [a, b], attrs, b.dtype, b.shape))


# --- fft --------------------------------------------------------------------------------------------------------------


@_register(fft.FAMILY, "fft", "ifft", "rfft", "irfft")
def _(op: Extension, body: Body, shape: Shape, operands: tuple[Value, ...]) -> Value:
    (x,) = operands
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
    return _axis_back(body, result, spec.axis)


def _scale(norm: str, n: int, inverse: bool) -> float:
    """What the result of StableHLO's transform, scaled by 1/n in the inverse direction, has to be multiplied by."""
    wanted = {"Backward": (1.0, 1 / n), "Ortho": (1 / sqrt(n), 1 / sqrt(n)), "Forward": (1 / n, 1.0)}[norm][inverse]
    return wanted * n if inverse else wanted


def _moved(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :], shape[axis])


def _axis_last(body: Body, x: Value, axis: int) -> Value:
    return x if axis == x.rank - 1 else body.transpose(x, _moved(tuple(range(x.rank)), axis))


def _axis_back(body: Body, x: Value, axis: int) -> Value:
    last = x.rank - 1
    return x if axis == last else body.transpose(x, [*range(axis), last, *range(axis, last)])


def _fitted(body: Body, x: Value, extent: int) -> Value:
    """The last axis cut off, or filled up with zeros."""
    given, none = x.shape[-1], (0,) * x.rank
    if extent < given:
        return body.slice(x, none, (*x.shape[:-1], extent))
    if extent > given:
        return body.pad(x, none, (*none[:-1], extent - given), none, (*x.shape[:-1], extent))
    return x


# --- einsum -----------------------------------------------------------------------------------------------------------


def _not_concrete(op: Extension, *_: object) -> NoReturn:
    raise UnsupportedOp(
        op=op.op, reason="it is lowered to standard ops only where all extents of its operands are exact"
    )


EXTENSIONS[einsum.FAMILY, "einsum"] = _not_concrete
