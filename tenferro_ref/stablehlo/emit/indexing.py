"""Emission of the indexing, slicing and padding ops, in StableHLO's meaning of them.

StableHLO clamps the starts of gather, dynamic_slice and dynamic_update_slice as the engine does. It does not clamp those
of scatter: `policy` has placed them before a row here sees them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dims import evaluate
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op
from tenferro_ref.stablehlo.emit.table import EMIT
from tenferro_ref.stablehlo.literals import Shape, type_text
from tenferro_ref.stablehlo.writer import Body, SsaValue


@EMIT.row(ops.Slice)
def _(op: ops.Slice, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    # a stride beyond the extent picks one element, whatever it is; it may be larger than any I64
    strides = tuple(min(stride, max(extent, 1)) for stride, extent in zip(op.strides, x.shape, strict=True))
    return body.slice(x, op.starts, op.limits, strides)


@EMIT.row(ops.Pad)
def _(op: ops.Pad, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    return body.pad(x, op.edge_padding_low, op.edge_padding_high, op.interior_padding, shape)


@EMIT.row(ops.PadToMatch)
def _(op: ops.PadToMatch, body: Body, shape: Shape, x: SsaValue, reference: SsaValue) -> SsaValue:
    if shape == x.shape:
        return x
    none = (0,) * x.rank
    return body.pad(x, none, [want - extent for want, extent in zip(shape, x.shape, strict=True)], none, shape)


@EMIT.row(ops.Concatenate)
def _(op: ops.Concatenate, body: Body, shape: Shape, *operands: SsaValue) -> SsaValue:
    return body.call("concatenate", operands, operands[0].dtype, shape, f", dim = {op.axis}")


@EMIT.row(ops.Reverse)
def _(op: ops.Reverse, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    return body.line(f"reverse {x.name}, dims = {list(op.axes)} : {x.type}", x.dtype, shape)


@EMIT.row(ops.ShapeOf)
def _(op: ops.ShapeOf, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
    return body.constant(np.float64(x.shape[op.axis]), DType.F64)


# a lowering may no more turn a bound into an exact extent than a pass may (SEMANTICS 3), even where the size is a constant;
# programs are refused with NonStaticShape before this is asked
EMIT.unsupported("the extent of its result depends on data: it is an upper bound, not static", ops.DynamicTruncate)


# --- dynamic slices ---------------------------------------------------------------------------------------------------


@EMIT.row(ops.DynamicSlice)
def _(op: ops.DynamicSlice, body: Body, shape: Shape, x: SsaValue, starts: SsaValue) -> SsaValue:
    return body.call("dynamic_slice", [x, *body.elements(starts)], x.dtype, shape, f", sizes = {list(shape)}")


@EMIT.row(ops.DynamicUpdateSlice)
def _(op: Op, body: Body, shape: Shape, x: SsaValue, update: SsaValue, starts: SsaValue) -> SsaValue:
    return body.call("dynamic_update_slice", [x, update, *body.elements(starts)], x.dtype, shape)


# --- gather and scatter -----------------------------------------------------------------------------------------------


def gather(
    body: Body,
    x: SsaValue,
    indices: SsaValue,
    offset_dims: Sequence[int],
    collapsed_slice_dims: Sequence[int],
    start_index_map: Sequence[int],
    index_vector_dim: int,
    slice_sizes: Sequence[int],
    shape: Shape,
) -> SsaValue:
    """StableHLO's gather; `shape` is the result's."""
    numbers = (
        f"offset_dims = {list(offset_dims)}, collapsed_slice_dims = {list(collapsed_slice_dims)}, "
        f"start_index_map = {list(start_index_map)}, index_vector_dim = {index_vector_dim}"
    )
    sizes = f"array<i64: {', '.join(map(str, slice_sizes))}>" if slice_sizes else "array<i64>"
    attrs = f"dimension_numbers = #stablehlo.gather<{numbers}>, indices_are_sorted = false, slice_sizes = {sizes}"
    return body.generic("gather", [x, indices], attrs, x.dtype, shape)


@EMIT.row(ops.Gather, ops.GatherDynamicSliceSizes)
def _(
    op: ops.Gather | ops.GatherDynamicSliceSizes,
    body: Body,
    shape: Shape,
    x: SsaValue,
    indices: SsaValue,
    *providers: SsaValue,
) -> SsaValue:
    shapes = [v.shape for v in (x, indices, *providers)]
    sizes = [evaluate(size, shapes) for size in op.slice_sizes]
    return gather(
        body, x, indices, op.offset_dims, op.collapsed_slice_dims, op.start_index_map, op.index_vector_dim, sizes, shape
    )


@EMIT.row(ops.Scatter)
def _(op: ops.Scatter, body: Body, shape: Shape, x: SsaValue, indices: SsaValue, updates: SsaValue) -> SsaValue:
    numbers = (
        f"update_window_dims = {list(op.update_window_dims)}, inserted_window_dims = {list(op.inserted_window_dims)}, "
        f"scatter_dims_to_operand_dims = {list(op.scatter_dims_to_operand_dims)}, "
        f"index_vector_dim = {op.index_vector_dim}"
    )
    attrs = (
        f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, indices_are_sorted = false, unique_indices = false"
    )
    element = type_text(x.dtype, ())
    region = (
        f"    ^bb0(%lhs: {element}, %rhs: {element}):\n"
        f"      %sum = stablehlo.add %lhs, %rhs : {element}\n"
        f"      stablehlo.return %sum : {element}\n"
    )
    return body.generic("scatter", [x, indices, updates], attrs, x.dtype, shape, region)
