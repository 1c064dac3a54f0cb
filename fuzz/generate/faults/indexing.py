"""Faults of ops that index, cut, pad and take diagonals: more ways for `invalid` to break a program."""

from __future__ import annotations

from math import inf, nan
from typing import Any

from fuzz.generate.faults.invalid import Bad, fault, full, of_rank, operand, outside
from fuzz.generate.growth import Growth, shape_of
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op
from tenferro_ref.program import Value

_GATHERS = (ops.Gather, ops.GatherDynamicSliceSizes)


def _matrix(g: Growth) -> Value:
    return g.fresh(g.genes.choose((DType.F64, DType.F32, DType.I64)), g.genes.choose(((3, 2), (2, 4), (4, 3, 2))))


def _vectors(g: Growth, length: int, dtype: DType = DType.I32) -> Value:
    """Two index vectors."""
    return g.fresh(dtype, (2, length))


def _rows(op: type[Any], x: Value, **changes: Any) -> Op:
    """A gather of rows of `x`, or a scatter of rows into it, with some attributes broken."""
    rank = x.type.rank
    window = tuple(range(1, rank))
    if op is ops.Scatter:
        given = {"update_window_dims": window, "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
    else:
        sizes = (1, *shape_of(x)[1:])
        given = {"offset_dims": window, "collapsed_slice_dims": (0,), "start_index_map": (0,), "slice_sizes": sizes}
    result: Op = op(**(given | {"index_vector_dim": 1} | changes))
    return result


def _with_updates(g: Growth, op: type[Any], x: Value, indices: Value) -> tuple[Value, ...]:
    return (x, indices, g.fresh(x.dtype, (2, *shape_of(x)[1:]))) if op is ops.Scatter else (x, indices)


def _entry(values: tuple[int, ...], axis: int, value: int) -> tuple[int, ...]:
    return (*values[:axis], value, *values[axis + 1 :])


# --- index tensors ----------------------------------------------------------------------------------------------------


@fault("InvalidArgument", *_GATHERS, ops.Scatter)
def index_tensor_of_no_integers(g: Growth, op: type[Any]) -> Bad:
    x, indices = _matrix(g), _vectors(g, 1, g.genes.choose((DType.Bool, DType.C64, DType.C32)))
    return Bad(_rows(op, x), _with_updates(g, op, x, indices), argument="dtype", blamed="index_tensor")


@fault("InvalidArgument", *_GATHERS, ops.Scatter)
def index_vectors_too_long(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    return Bad(_rows(op, x), _with_updates(g, op, x, _vectors(g, 2 + g.genes.pick(3))), argument="start_index_map")


@fault("AxisOutOfBounds", *_GATHERS, ops.Scatter)
def index_vector_axis_out_of_range(g: Growth, op: type[Any]) -> Bad:
    x, axis = _matrix(g), g.genes.choose((3, -1, 9))
    return Bad(_rows(op, x, index_vector_dim=axis), _with_updates(g, op, x, _vectors(g, 1)), axis)


@fault("AxisOutOfBounds", *_GATHERS, ops.Scatter)
def mapped_axis_out_of_range(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    axis = outside(g, x.type.rank)
    name = "scatter_dims_to_operand_dims" if op is ops.Scatter else "start_index_map"
    return Bad(_rows(op, x, **{name: (axis,)}), _with_updates(g, op, x, _vectors(g, 1)), axis)


@fault("DuplicateAxis", *_GATHERS, ops.Scatter)
def mapped_axis_twice(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    axis = g.genes.pick(x.type.rank)
    name = "scatter_dims_to_operand_dims" if op is ops.Scatter else "start_index_map"
    return Bad(_rows(op, x, **{name: (axis, axis)}), _with_updates(g, op, x, _vectors(g, 2)), axis)


@fault("InvalidArgument", *_GATHERS)
def slice_larger_than_the_operand(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    sizes = _entry((1, *shape_of(x)[1:]), x.type.rank - 1, shape_of(x)[-1] + 1 + g.genes.pick(3))
    return Bad(_rows(op, x, slice_sizes=sizes), (x, _vectors(g, 1)), argument="slice_sizes")


@fault("InvalidArgument", *_GATHERS)
def collapsed_axis_of_a_longer_slice(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    return Bad(_rows(op, x, slice_sizes=(2, *shape_of(x)[1:])), (x, _vectors(g, 1)), argument="slice_sizes")


@fault("DTypeMismatch", ops.Scatter)
def updates_of_another_dtype(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    other = DType.F32 if x.dtype is not DType.F32 else DType.F64
    return Bad(_rows(op, x), (x, _vectors(g, 1), g.fresh(other, (2, *shape_of(x)[1:]))))


@fault("ShapeMismatch", ops.Scatter)
def as_many_updates_as_index_vectors(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    return Bad(_rows(op, x), (x, _vectors(g, 1), g.fresh(x.dtype, (3, *shape_of(x)[1:]))))


@fault("InvalidArgument", ops.Scatter)
def window_larger_than_the_operand(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    updates = g.fresh(x.dtype, (2, *(e + 1 for e in shape_of(x)[1:])))
    return Bad(_rows(op, x), (x, _vectors(g, 1), updates), argument="updates")


# --- values that only a run shows -------------------------------------------------------------------------------------

#: No index, in an index tensor of floats.
_NO_INDEX = (0.5, nan, 2.0**60, -inf)


@fault("InvalidArgument", *_GATHERS, ops.Scatter, late=True)
def index_that_is_none(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    indices = full(g, g.genes.choose(_NO_INDEX), DType.F64, (2, 1))
    return Bad(_rows(op, x), _with_updates(g, op, x, indices), blamed="index_tensor")


@fault("InvalidArgument", ops.DynamicSlice, ops.DynamicUpdateSlice, late=True)
def start_that_is_none(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    starts = full(g, g.genes.choose(_NO_INDEX), DType.F64, (x.type.rank,))
    return Bad(
        op(shape_of(x)) if op is ops.DynamicSlice else op(),
        (x, starts) if op is ops.DynamicSlice else (x, x, starts),
        blamed="index_tensor",
    )


@fault("InvalidArgument", ops.DynamicTruncate, late=True)
def size_that_is_none(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    return Bad(op(0), (x, full(g, g.genes.choose((nan, inf)), DType.F64)))


# --- windows ----------------------------------------------------------------------------------------------------------


@fault("RankMismatch", ops.Slice, ops.Pad, ops.DynamicSlice)
def lists_too_long_or_short(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    ones = (1,) * g.genes.choose((x.type.rank - 1, x.type.rank + 1))
    zeros = (0,) * len(ones)
    if op is ops.DynamicSlice:
        return Bad(op(ones), (x, g.fresh(DType.I32, (x.type.rank,))))
    return Bad(op(zeros, ones, ones) if op is ops.Slice else op(zeros, zeros, zeros), (x,))


@fault("AxisOutOfBounds", ops.Slice)
def limit_beyond_the_extent(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    shape, axis = shape_of(x), g.genes.pick(x.type.rank)
    limits = _entry(shape, axis, shape[axis] + 1 + g.genes.pick(5))
    return Bad(op((0,) * len(shape), limits, (1,) * len(shape)), (x,), axis)


@fault("InvalidArgument", ops.Slice)
def start_beyond_the_limit(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    shape, axis = shape_of(x), g.genes.pick(x.type.rank)
    start = g.genes.choose((shape[axis] + 1, -1))
    return Bad(op(_entry((0,) * len(shape), axis, start), shape, (1,) * len(shape)), (x,), argument="starts")


@fault("InvalidArgument", ops.Slice)
def stride_of_nothing(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    shape = shape_of(x)
    strides = _entry((1,) * len(shape), g.genes.pick(len(shape)), g.genes.choose((0, -1)))
    return Bad(op((0,) * len(shape), shape, strides), (x,), argument="strides")


@fault("InvalidArgument", ops.DynamicSlice)
def dynamic_slice_that_does_not_fit(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    shape, axis = shape_of(x), g.genes.pick(x.type.rank)
    sizes = _entry(shape, axis, g.genes.choose((shape[axis] + 1, -1)))
    return Bad(op(sizes), (x, g.fresh(DType.I64, (len(shape),))), argument="slice_sizes")


@fault("ShapeMismatch", ops.DynamicSlice, ops.DynamicUpdateSlice)
def start_vector_of_another_length(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    starts = g.fresh(DType.I32, (x.type.rank + g.genes.choose((1, -1)),))
    return Bad(op(shape_of(x)), (x, starts)) if op is ops.DynamicSlice else Bad(op(), (x, x, starts))


@fault("RankMismatch", ops.DynamicSlice, ops.DynamicUpdateSlice)
def starts_that_are_no_vector(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    starts = g.fresh(DType.I32, g.genes.choose(((), (x.type.rank, 1))))
    return Bad(op(shape_of(x)), (x, starts)) if op is ops.DynamicSlice else Bad(op(), (x, x, starts))


@fault("InvalidArgument", ops.DynamicUpdateSlice)
def update_larger_than_the_operand(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    shape, axis = shape_of(x), g.genes.pick(x.type.rank)
    update = g.fresh(x.dtype, _entry(shape, axis, shape[axis] + 1))
    return Bad(op(), (x, update, g.fresh(DType.I32, (len(shape),))), argument="update")


@fault("DTypeMismatch", ops.DynamicUpdateSlice)
def update_of_another_dtype(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    other = DType.F32 if x.dtype is not DType.F32 else DType.F64
    return Bad(op(), (x, g.fresh(other, shape_of(x)), g.fresh(DType.I32, (x.type.rank,))))


@fault("InvalidArgument", ops.Pad)
def padding_that_cannot_be(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    shape, axis = shape_of(x), g.genes.pick(x.type.rank)
    zeros = (0,) * len(shape)
    if g.genes.pick(2):
        return Bad(op(zeros, zeros, _entry(zeros, axis, -1)), (x,), argument="interior_padding")
    return Bad(op(_entry(zeros, axis, -shape[axis] - 1), zeros, zeros), (x,), argument="edge_padding")


@fault("Unsupported", ops.DynamicTruncate)
def size_of_a_dtype_that_is_not_admitted(g: Growth, op: type[Any]) -> Bad:
    return Bad(op(0), (_matrix(g), g.fresh(g.genes.choose((DType.I32, DType.Bool, DType.C64)), ())))


@fault("RankMismatch", ops.DynamicTruncate, ops.PadToMatch)
def control_operand_of_another_rank(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    return Bad(op(0), (x, g.fresh(DType.F64, (1,) if op is ops.DynamicTruncate else (*shape_of(x), 2))))


# --- one axis ---------------------------------------------------------------------------------------------------------


@fault("AxisOutOfBounds", ops.Concatenate, ops.Reverse, ops.ShapeOf, ops.DynamicTruncate, ops.PadToMatch)
def own_axis_out_of_range(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, ops.Add, 1)
    axis = outside(g, x.type.rank)
    beside = {ops.Concatenate: (x, x), ops.DynamicTruncate: (x, g.fresh(DType.F64, ())), ops.PadToMatch: (x, x)}
    return Bad(op((axis,) if op is ops.Reverse else axis), beside.get(op, (x,)), axis)


@fault("DuplicateAxis", ops.Reverse, ops.ExtractDiag)
def own_axis_twice(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    axis = g.genes.pick(x.type.rank)
    return Bad(op((axis, axis)) if op is ops.Reverse else op(axis, axis), (x,), axis)


@fault("AxisOutOfBounds", ops.ExtractDiag, ops.EmbedDiag)
def diagonal_axis_out_of_range(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    axis = g.genes.choose((x.type.rank + 1, -1, 2**31))
    return Bad(op(0, axis) if g.genes.pick(2) else op(axis, 0), (x,), axis)


@fault("ShapeMismatch", ops.Concatenate)
def parts_of_other_extents(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    return Bad(op(0), (x, g.fresh(x.dtype, (2, *(e + 1 for e in shape_of(x)[1:])))))


@fault("RankMismatch", ops.Concatenate)
def parts_of_other_ranks(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    return Bad(op(0), (x, g.fresh(x.dtype, (*shape_of(x), 1))))


@fault("DTypeMismatch", ops.Concatenate)
def parts_of_other_dtypes(g: Growth, op: type[Any]) -> Bad:
    x = _matrix(g)
    return Bad(op(0), (x, g.fresh(DType.F32 if x.dtype is not DType.F32 else DType.F64, shape_of(x))))


@fault("RankMismatch", ops.Tril, ops.Triu)
def triangle_of_a_vector(g: Growth, op: type[Any]) -> Bad:
    x = of_rank(g, [DType.F64, DType.F32, DType.I64], 0)
    return Bad(op(0), (x if x.type.rank < 2 else g.fresh(x.dtype, (3,)),))
