"""NumPy's functions over values of a program: `exp`, `where`, `concatenate`, `take`, `pad`, ...

Each applies the op of the same meaning to its operands, promoted and broadcast as in `program.value`. Where the engine's axes differ from
NumPy's (Tril, ExtractDiag, DotGeneral), Transposes are inserted. A NumPy function without an op is not offered.

    from tenferro_ref import frontend as tn
    from tenferro_ref.program import GraphBuilder

    b = GraphBuilder("softmax")
    x = b.input("F64", ("n", 10))
    e = tn.exp(x - x.max(1, keepdims=True))
    program = b.build(e / e.sum(1, keepdims=True))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_ref import ops
from tenferro_ref.dims import InputDim, product
from tenferro_ref.dtype import DType
from tenferro_ref.errors import AxisOutOfBounds, RankMismatch, UsageError
from tenferro_ref.extensions import einsum as einsum_family
from tenferro_ref.extensions.equations import Labels
from tenferro_ref.ops import Op
from tenferro_ref.program.slicing import as_integer, as_integers
from tenferro_ref.program.value import (
    Axes,
    Operand,
    Value,
    broadcast,
    builder_of,
    choose,
    elementwise,
    normal_axes,
    promoted,
)


def _as_value(operand: object, what: str) -> Value:
    """What must be a Value, not a number or an array; UsageError if it is not."""
    if not isinstance(operand, Value):
        raise UsageError(detail=f"{type(operand).__name__} where a Value is needed: {what}")
    return operand


def _one_axis(axis: int, rank: int) -> int:
    """An axis as `normal_axes` has it; UsageError if it is none, or several."""
    return normal_axes(as_integer(axis, "axis"), rank)[0]


def _unary(op: type[Op]) -> Callable[[Value], Value]:
    def function(x: Value) -> Value:
        return _as_value(x, f"operand of {op.__name__}").builder.apply(op(), x)

    function.__name__, function.__doc__ = op.__name__.lower(), op.__doc__
    return function


exp, log, expm1, log1p = _unary(ops.Exp), _unary(ops.Log), _unary(ops.Expm1), _unary(ops.Log1p)
sin, cos, tanh = _unary(ops.Sin), _unary(ops.Cos), _unary(ops.Tanh)
sqrt, rsqrt = _unary(ops.Sqrt), _unary(ops.Rsqrt)
sign, conj = _unary(ops.Sign), _unary(ops.Conj)


def maximum(x: Operand, y: Operand) -> Value:
    """The larger of two, NaN if either is NaN."""
    return elementwise(ops.Maximum(), x, y)


def minimum(x: Operand, y: Operand) -> Value:
    """The smaller of two, NaN if either is NaN."""
    return elementwise(ops.Minimum(), x, y)


def clip(x: Value, lower: Operand | None = None, upper: Operand | None = None) -> Value:
    """`min(upper, max(lower, x))`: a Clamp of floats with both bounds, else Maximum and Minimum."""
    _as_value(x, "operand of clip")
    if lower is not None and upper is not None:
        values = promoted(x.builder, x, lower, upper)
        if values[0].dtype.is_float:
            return x.builder.apply(ops.Clamp(), *broadcast("Clamp", *values))
        x, lower, upper = values
    if lower is not None:
        x = maximum(lower, x)
    return x if upper is None else minimum(upper, x)


def where(condition: Value, x: Operand, y: Operand) -> Value:
    """`x` where `condition`, a Bool value, holds, else `y`."""
    return choose(_as_value(condition, "condition of where"), x, y)


def mean(x: Value, axis: Axes | None = None, *, keepdims: bool = False) -> Value:
    """Arithmetic mean; of integers in F64."""
    if _as_value(x, "operand of mean").dtype.is_int:
        x = x.astype(DType.F64)
    axes = tuple(range(x.ndim)) if axis is None else normal_axes(axis, x.ndim)
    total = x.sum(axes, keepdims=keepdims)
    count = product([x.shape[a] for a in axes])
    if isinstance(count, int):
        return total / count
    for a in axes:
        total = total / shape_of(x, a).astype(x.dtype.real).astype(x.dtype)
    return total


# --- order and pieces -------------------------------------------------------------------------------------------------


def _listed(values: Sequence[Operand], function: str) -> Sequence[Operand]:
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise UsageError(detail=f"{function}: {type(values).__name__} where a sequence of values is needed")
    return values


def concatenate(values: Sequence[Value], axis: int = 0) -> Value:
    """The values, promoted, one after another along `axis`."""
    builder = builder_of(*_listed(values, "concatenate"))
    a = _one_axis(axis, _as_value(values[0], "first of the values").ndim)
    return builder.apply(ops.Concatenate(a), *promoted(builder, *values))


def stack(values: Sequence[Operand], axis: int = 0) -> Value:
    """The values, promoted, along a new axis; numbers beside values of rank 0."""
    builder = builder_of(*_listed(values, "stack"))
    lifted = promoted(builder, *values)
    for v in lifted:
        if v.ndim != lifted[0].ndim:
            raise UsageError(detail=f"stack: ranks {lifted[0].ndim} and {v.ndim}; all values have one shape")
    a = _one_axis(axis, lifted[0].ndim + 1)
    if not 0 <= a <= lifted[0].ndim:
        raise AxisOutOfBounds(op="stack", axis=a, rank=lifted[0].ndim + 1)
    return concatenate([v[(slice(None),) * a + (None,)] for v in lifted], a)


def flip(x: Value, axis: Axes | None = None) -> Value:
    """Elements in reverse order along `axis`, or along all axes."""
    rank = _as_value(x, "operand of flip").ndim
    return x.builder.apply(ops.Reverse(tuple(range(rank)) if axis is None else normal_axes(axis, rank)), x)


def moveaxis(x: Value, source: int, destination: int) -> Value:
    """Axis `source` at position `destination`, the others in order."""
    a, b = (_one_axis(axis, _as_value(x, "operand of moveaxis").ndim) for axis in (source, destination))
    for axis in (a, b):
        if not 0 <= axis < x.ndim:  # a list has room for any position
            raise AxisOutOfBounds(op="Transpose", axis=axis, rank=x.ndim)
    order = [i for i in range(x.ndim) if i != a]
    order.insert(b, a)
    return x.transpose(order)


Widths = int | Sequence[int] | Sequence[Sequence[int]]


def pad(x: Value, pad_width: Widths, interior: int | Sequence[int] = 0) -> Value:
    """Zeros around `x`; negative widths crop.

    Parameters
    ----------
    pad_width
        As in `numpy.pad`: zeros before and after, a pair for each axis or for all; one number for both sides.
    interior
        Zeros between neighbouring elements, for all axes or each.
    """
    edges = _edges(pad_width, _as_value(x, "operand of pad").ndim)
    several = isinstance(interior, Sequence)
    between = (
        as_integers(interior, "interior padding") if several else (as_integer(interior, "interior padding"),) * x.ndim
    )
    return x.builder.apply(ops.Pad(tuple(low for low, _ in edges), tuple(high for _, high in edges), between), x)


def _edges(pad_width: Widths, rank: int) -> list[tuple[int, int]]:
    """NumPy's forms of pad widths, which are broadcast to a pair for each axis: one is for both sides, one entry for all axes."""
    entries: Sequence[Any] = pad_width if isinstance(pad_width, Sequence) else (pad_width,)
    if not any(isinstance(entry, Sequence) for entry in entries):
        entries = [entries] * bool(entries)  # none at all for a value of rank 0
    pairs = [as_integers(entry, "pad width") for entry in entries]
    for pair in pairs:
        if len(pair) not in (1, 2) or len(pair) != len(pairs[0]):
            raise UsageError(detail=f"{pair} where a pair of pad widths is needed: before and after")
    if len(pairs) not in (1, rank):
        raise RankMismatch("Pad", rank, len(pairs)).saying(f"pad: {len(pairs)} pairs of widths for {rank} axes")
    return [(pair[0], pair[-1]) for pair in (pairs * rank if len(pairs) == 1 else pairs)]


def _triangle(op: ops.Tril | ops.Triu, x: Value) -> Value:
    """NumPy's rows and columns are the last two axes, the engine's the first two."""
    if _as_value(x, f"operand of {op.name}").ndim <= 2:
        return x.builder.apply(op, x)
    front = x.transpose(x.ndim - 2, x.ndim - 1, *range(x.ndim - 2))
    return x.builder.apply(op, front).transpose(*range(2, x.ndim), 0, 1)


def tril(x: Value, k: int = 0) -> Value:
    """Lower triangle of the last two axes."""
    return _triangle(ops.Tril(as_integer(k, "diagonal")), x)


def triu(x: Value, k: int = 0) -> Value:
    """Upper triangle of the last two axes."""
    return _triangle(ops.Triu(as_integer(k, "diagonal")), x)


def diagonal(x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """The diagonal of two axes, as a new last axis."""
    a, b = (_one_axis(axis, _as_value(x, "operand of diagonal").ndim) for axis in (axis1, axis2))
    shifted = b if offset > 0 else a
    if offset and 0 <= shifted < x.ndim:
        x = x[(slice(None),) * shifted + (slice(abs(offset), None),)]
    return moveaxis(x.builder.apply(ops.ExtractDiag(a, b), x), a - (a > b), -1)


def diag(x: Value) -> Value:
    """The square matrix with this diagonal (rank 1), or the diagonal of a matrix; RankMismatch of another rank."""
    if _as_value(x, "operand of diag").ndim == 1:
        return x.builder.apply(ops.EmbedDiag(0, 1), x)
    if x.ndim != 2:
        raise RankMismatch("diag", 2, x.ndim).saying(f"diag: the operand is of rank {x.ndim}, not 1 or 2")
    return diagonal(x)


# --- contraction ------------------------------------------------------------------------------------------------------


def tensordot(x: Value, y: Value, axes: int | tuple[Axes, Axes] = 2) -> Value:
    """Contraction of the given axes, or of the last `axes` of `x` with the first of `y`."""
    x, y = promoted(builder_of(x, y), x, y)
    if isinstance(axes, int):
        if not 0 <= axes <= min(x.ndim, y.ndim):
            raise UsageError(detail=f"tensordot: {axes} axes of operands of rank {x.ndim} and {y.ndim}")
        left, right = tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes))
    elif not isinstance(axes, Sequence) or len(axes) != 2:
        raise UsageError(
            detail=f"{axes!r} where a number of axes, or the axes of each operand, are needed: axes of tensordot"
        )
    else:
        left, right = normal_axes(axes[0], x.ndim), normal_axes(axes[1], y.ndim)
    return x.builder.apply(ops.DotGeneral(left, right, (), ()), x, y)


def einsum(equation: str | Labels, *operands: Value, path: einsum_family.Path = "auto") -> Value:
    """`numpy.einsum`: one op of the einsum family (SEMANTICS 6), in each of the ways that `extensions.einsum.einsum` has to write it."""
    return einsum_family.einsum(equation, *operands, path=path)


# --- indices that are values ------------------------------------------------------------------------------------------


def _whole(x: Value, axis: int) -> tuple[int | InputDim, ...]:
    """Slice sizes that take all of every axis but one element of `axis`."""
    return tuple(1 if i == axis else e if isinstance(e, int) else InputDim(0, i) for i, e in enumerate(x.shape))


def _indexed_axis(op: str, axis: int, x: Value) -> int:
    """An axis that `x` has; AxisOutOfBounds names the op that it is for, whose attributes would have as many entries as the axis says."""
    a = _one_axis(axis, x.ndim)
    if not 0 <= a < x.ndim:
        raise AxisOutOfBounds(op=op, axis=a, rank=x.ndim)
    return a


def take(x: Value, indices: Value, axis: int = 0) -> Value:
    """`numpy.take(x, indices, axis, mode="clip")`: a Gather, whose starts are clamped."""
    a = _indexed_axis("Gather", axis, _as_value(x, "operand of take"))
    sizes = _whole(x, a)
    _as_value(indices, "indices")
    offset = (*range(a), *range(a + indices.ndim, x.ndim - 1 + indices.ndim))
    if any(isinstance(e, InputDim) for e in sizes):
        return x.builder.apply(ops.GatherDynamicSliceSizes(offset, (a,), (a,), indices.ndim, sizes), x, indices)
    constant = tuple(e for e in sizes if isinstance(e, int))
    return x.builder.apply(ops.Gather(offset, (a,), (a,), indices.ndim, constant), x, indices)


def scatter_add(x: Value, indices: Value, updates: Operand, axis: int = 0) -> Value:
    """`x` with `updates[..., i, ...]` added at position `indices[i]` of `axis`; repeated positions accumulate.

    `updates` has, or is broadcast to, the shape of `take(x, indices, axis)`. A position outside is clamped (or skipped, as
    the program's policy says).
    """
    a = _indexed_axis("Scatter", axis, _as_value(x, "operand of scatter_add"))
    _as_value(indices, "indices")
    data, added = promoted(x.builder, x, updates)
    shape = (*x.shape[:a], *indices.shape, *x.shape[a + 1 :])
    window = (*range(a), *range(a + indices.ndim, len(shape)))
    return x.builder.apply(
        ops.Scatter(window, (a,), (a,), indices.ndim), data, indices, added.broadcast_to(shape, like=(indices, x))
    )


def _starts(x: Value, starts: Value | Sequence[Operand]) -> Value:
    if isinstance(starts, Value):
        return starts
    if not isinstance(starts, Sequence):
        raise UsageError(
            detail=f"{type(starts).__name__} where a Value, or a position for each axis, is needed: starts"
        )
    if len(starts) != x.ndim:
        raise RankMismatch(op="DynamicSlice", expected=x.ndim, actual=len(starts))
    lifted = promoted(x.builder, *starts)
    return concatenate([v.reshape(1) for v in lifted])


def dynamic_slice(x: Value, starts: Value | Sequence[Operand], sizes: Sequence[int]) -> Value:
    """A window at positions known at run time, clamped so that it fits; `starts` has one position per axis."""
    window = ops.DynamicSlice(as_integers(sizes, "size"))
    return _as_value(x, "operand of dynamic_slice").builder.apply(window, x, _starts(x, starts))


def dynamic_update_slice(x: Value, update: Operand, starts: Value | Sequence[Operand]) -> Value:
    """`x` with `update` written at positions known at run time, clamped so that it fits."""
    data, window = promoted(_as_value(x, "operand of dynamic_update_slice").builder, x, update)
    return x.builder.apply(ops.DynamicUpdateSlice(), data, window, _starts(x, starts))


# --- shapes at run time -----------------------------------------------------------------------------------------------


def shape_of(x: Value, axis: int) -> Value:
    """The extent of `axis` as a rank-0 F64."""
    return x.builder.apply(ops.ShapeOf(_one_axis(axis, _as_value(x, "operand of shape_of").ndim)), x)


def truncate(x: Value, size: Operand, axis: int = 0) -> Value:
    """The first `size` elements of `axis`, clamped; an extent that is only bounded."""
    a = _one_axis(axis, _as_value(x, "operand of truncate").ndim)
    (length,) = promoted(x.builder, size)
    return x.builder.apply(ops.DynamicTruncate(a), x, length)


def pad_to_match(x: Value, reference: Value, axis: int = 0) -> Value:
    """Zeros behind `x` up to the extent of `reference`."""
    a = _one_axis(axis, _as_value(x, "operand of pad_to_match").ndim)
    return x.builder.apply(ops.PadToMatch(a), x, _as_value(reference, "reference"))
