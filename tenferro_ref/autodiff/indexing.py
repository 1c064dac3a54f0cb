"""Derivative rules of ops that index, cut and pad (SEMANTICS B.2).

They hold for all starts, as the program runs: a start outside the bounds is clamped, and so is that of the transpose; under
the policy "skip", where a Scatter leaves such a window out, the transpose of a Gather clamps the indices itself, and that of
a Scatter gives zeros for the window.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.autodiff.elementwise import T, X, not_linear
from tenferro_ref.autodiff.rules import (
    JVP,
    TRANSPOSE,
    Cotangents,
    Operand,
    Optional,
    constant_extent,
    constant_extents,
    expanded,
    linear,
    or_zeros,
    zeros,
)
from tenferro_ref.dims import DimExpr, InputDim, expr_of, substitute
from tenferro_ref.dtype import DType
from tenferro_ref.ops import TensorType
from tenferro_ref.program import Value
from tenferro_ref.program.value import dim_exprs


@JVP.row(ops.Scatter)
def _(op: ops.Scatter, x: X, y: X, t: T) -> Optional:
    if t[2] is None:
        return t[0]
    return y[0].builder.apply(op, or_zeros(t[0], x[0]), x[1], t[2])


@JVP.row(ops.DynamicUpdateSlice)
def _(op: ops.DynamicUpdateSlice, x: X, y: X, t: T) -> Optional:
    if t[0] is None and t[1] is None:  # starts may be floats, and have a tangent
        return None
    return y[0].builder.apply(op, or_zeros(t[0], x[0]), or_zeros(t[1], x[1]), x[2])


@JVP.row(ops.Concatenate)
def _(op: ops.Concatenate, x: X, y: X, t: T) -> Optional:
    return y[0].builder.apply(op, *(or_zeros(u, v) for u, v in zip(t, x, strict=True)))


# --- transposes -------------------------------------------------------------------------------------------------------


@TRANSPOSE.row(ops.Gather, ops.GatherDynamicSliceSizes)
def _(op: ops.Gather | ops.GatherDynamicSliceSizes, x: tuple[Operand, ...], g: Value) -> Cotangents:
    if not isinstance(x[1], Value):
        raise not_linear(op)
    scatter = ops.Scatter(op.offset_dims, op.collapsed_slice_dims, op.start_index_map, op.index_vector_dim)
    indices = x[1]
    if g.builder.policy.scatter_bounds == "skip":
        limits = _last_starts(op, x[0].type, indices.dtype, constant_sizes(op), op.start_index_map)
        starts = [tn.clip(c, 0, limit) for c, limit in zip(_components(op, indices), limits, strict=True)]
        if starts:  # an index vector may have no components
            indices = starts[0] if op.index_vector_dim == indices.ndim else tn.stack(starts, op.index_vector_dim)
    value = g.builder.apply(scatter, zeros(g.builder, x[0].type), indices, g)
    return (value, *[None] * (len(x) - 1))


def constant_sizes(op: ops.Gather | ops.GatherDynamicSliceSizes) -> tuple[int, ...]:
    """The extents of the windows of a Gather; errors as `constant_extents`."""
    return tuple(constant_extent(op, size) for size in op.slice_sizes)


def _last_starts(
    op: ops.Op, operand: TensorType, indices: DType, sizes: Sequence[int], axes: Sequence[int]
) -> list[int]:
    """For each component of an index vector the last start at which a window fits; the dtype's largest number, if that is less."""
    bits = indices.bits - (not indices.is_unsigned) if indices.is_int else 63
    return [min(constant_extent(op, operand.shape[axis]) - sizes[axis], 2**bits - 1) for axis in axes]


def _components(op: ops.Gather | ops.GatherDynamicSliceSizes | ops.Scatter, indices: Value) -> list[Value]:
    """The components of the index vectors, each with the axes that the vectors are arranged along."""
    at = op.index_vector_dim
    if at == indices.ndim:
        return [indices]
    return [indices[(slice(None),) * at + (k,)] for k in range(constant_extent(op, indices.shape[at]))]


@TRANSPOSE.row(ops.DynamicSlice)
def _(op: ops.DynamicSlice, x: tuple[Operand, ...], g: Value) -> Cotangents:
    if not isinstance(x[1], Value):
        raise not_linear(op)
    return g.builder.apply(ops.DynamicUpdateSlice(), zeros(g.builder, x[0].type), g, x[1]), None


@TRANSPOSE.row(ops.Scatter)
def _(op: ops.Scatter, x: tuple[Operand, ...], g: Value) -> Cotangents:
    operand, indices, updates = x
    if not isinstance(indices, Value):
        raise not_linear(op)
    if not linear(updates):
        return g, None, None
    windows = iter([updates.type.shape[axis] for axis in op.update_window_dims])
    sizes = [1 if axis in op.inserted_window_dims else next(windows) for axis in range(operand.type.rank)]
    dims = (op.update_window_dims, op.inserted_window_dims, op.scatter_dims_to_operand_dims, op.index_vector_dim)
    static = tuple(size for size in sizes if isinstance(size, int))
    if len(static) == len(sizes):
        value = g.builder.apply(ops.Gather(*dims, static), g, indices)
    else:
        exprs, providers = dim_exprs(op.name, g, sizes, ())
        value = g.builder.apply(
            ops.GatherDynamicSliceSizes(*dims, _behind_indices(exprs, (g, *providers))), g, indices, *providers
        )
    if g.builder.policy.scatter_bounds == "skip":
        static_sizes = [constant_extent(op, size) for size in sizes]
        limits = _last_starts(op, operand.type, indices.dtype, static_sizes, op.scatter_dims_to_operand_dims)
        for start, limit in zip(_components(op, indices), limits, strict=True):
            inside = (start >= 0) & (start <= limit)
            value = tn.where(expanded(inside, op.update_window_dims, value.type, [value]), value, 0.0)
    return g if linear(operand) else None, None, value


def _behind_indices(exprs: Sequence[DimExpr], operands: Sequence[Value]) -> tuple[DimExpr, ...]:
    """Expressions over operands as ones over the first of them, indices, and the others."""
    shapes = [[InputDim(i + (i > 0), axis) for axis in range(v.ndim)] for i, v in enumerate(operands)]
    return tuple(expr_of(substitute(e, shapes)) for e in exprs)


@TRANSPOSE.row(ops.DynamicUpdateSlice)
def _(op: ops.DynamicUpdateSlice, x: tuple[Operand, ...], g: Value) -> Cotangents:
    operand, update, starts = x
    if not isinstance(starts, Value):
        raise not_linear(op)
    apply = g.builder.apply
    rest = apply(op, g, zeros(g.builder, update.type), starts) if linear(operand) else None
    part = apply(ops.DynamicSlice(constant_extents(op, update.type)), g, starts) if linear(update) else None
    return rest, part, None


@TRANSPOSE.row(ops.Slice)
def _(op: ops.Slice, x: tuple[Operand, ...], g: Value) -> Cotangents:
    extents, counts = constant_extents(op, x[0].type), constant_extents(op, g.type)
    ends = [
        start + (count - 1) * stride + 1 if count else start
        for start, count, stride in zip(op.starts, counts, op.strides, strict=True)
    ]
    high = tuple(extent - end for extent, end in zip(extents, ends, strict=True))
    pad = ops.Pad(op.starts, high, tuple(stride - 1 for stride in op.strides))
    return (g.builder.apply(pad, g),)


@TRANSPOSE.row(ops.Pad)
def _(op: ops.Pad, x: tuple[Operand, ...], g: Value) -> Cotangents:
    """Slice out the elements that the Pad kept; zeros for those that negative edges cropped."""
    kept = [
        _kept(n, m, low, interior + 1)
        for n, m, low, interior in zip(
            constant_extents(op, x[0].type),
            constant_extents(op, g.type),
            op.edge_padding_low,
            op.interior_padding,
            strict=True,
        )
    ]
    starts, limits, strides = (tuple(axis[i] for axis in kept) for i in range(3))
    value = g.builder.apply(ops.Slice(starts, limits, strides), g)
    low, high = (tuple(axis[i] for axis in kept) for i in (3, 4))
    if any((*low, *high)):
        value = value.builder.apply(ops.Pad(low, high, (0,) * len(low)), value)
    return (value,)


def _kept(extent: int, padded: int, low: int, step: int) -> tuple[int, int, int, int, int]:
    """Start, limit, stride of the kept elements of one axis, and how many are cropped before and behind them.

    Element k of the operand is at `low + k * step` of the result.
    """
    first = max(0, -(low // step))
    behind = max(0, min(extent, -(-(padded - low) // step)))
    if behind <= first:
        return 0, 0, step, 0, extent
    start = low + first * step
    return start, start + (behind - first - 1) * step + 1, step, first, extent - behind


@TRANSPOSE.row(ops.Concatenate)
def _(op: ops.Concatenate, x: tuple[Operand, ...], g: Value) -> Cotangents:
    extents = constant_extents(op, g.type)
    results: list[Optional] = []
    start = 0
    for operand in x:
        end = start + constant_extent(op, operand.type.shape[op.axis])
        starts = tuple(start if axis == op.axis else 0 for axis in range(len(extents)))
        limits = tuple(end if axis == op.axis else extent for axis, extent in enumerate(extents))
        part = ops.Slice(starts, limits, (1,) * len(extents))
        results.append(g.builder.apply(part, g) if linear(operand) else None)
        start = end
    return tuple(results)


@TRANSPOSE.row(ops.DynamicTruncate)
def _(op: ops.DynamicTruncate, x: tuple[Operand, ...], g: Value) -> Cotangents:
    if not isinstance(x[1], Value):
        raise not_linear(op)
    return tn.pad_to_match(g, zeros(g.builder, x[0].type), op.axis), None


@TRANSPOSE.row(ops.PadToMatch)
def _(op: ops.PadToMatch, x: tuple[Operand, ...], g: Value) -> Cotangents:
    type_ = x[0].type
    if type_.is_static and g.type.is_static:
        part = ops.Slice((0,) * type_.rank, constant_extents(op, type_), (1,) * type_.rank)
        return g.builder.apply(part, g), None
    size = tn.shape_of(zeros(g.builder, type_), op.axis)
    return tn.truncate(g, size, op.axis), None
