"""Faults of ops that index, cut, pad and take diagonals."""

from __future__ import annotations

from math import inf, nan
from typing import Any

from fuzz.generate.faults import fault as f
from fuzz.generate.faults.fault import Faults, Faulty, changed, matrix
from fuzz.generate.growth import Growth
from fuzz.generate.shapes import shape_of
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op
from tenferro_ref.program import Value

FAULTS = Faults()

_GATHERS = (ops.Gather, ops.GatherDynamicSliceSizes)
_INDEXED = (*_GATHERS, ops.Scatter)


# --- index tensors ----------------------------------------------------------------------------------------------------


def _vectors(g: Growth, length: int = 1, dtype: DType = DType.I32) -> Value:
    """Two index vectors."""
    return g.fresh(dtype, (2, length))


def _rows(g: Growth, op: type[Any], x: Value, indices: Value, **broken: Any) -> tuple[Op, tuple[Value, ...]]:
    """A gather of two rows of `x`, or a scatter of two rows into it, with some attributes broken; and its operands."""
    window, row = tuple(range(1, x.type.rank)), shape_of(x)[1:]
    attributes: dict[str, Any] = {"index_vector_dim": 1}
    if op is ops.Scatter:
        attributes |= {"update_window_dims": window, "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
        return op(**attributes | broken), (x, indices, g.fresh(x.dtype, (2, *row)))
    attributes |= {
        "offset_dims": window,
        "collapsed_slice_dims": (0,),
        "start_index_map": (0,),
        "slice_sizes": (1, *row),
    }
    return op(**attributes | broken), (x, indices)


def _mapping(op: type[Any], *axes: int) -> dict[str, tuple[int, ...]]:
    """The attribute that maps index vectors to axes."""
    return {"scatter_dims_to_operand_dims" if op is ops.Scatter else "start_index_map": axes}


@FAULTS.instruction("InvalidArgument", *_INDEXED)
def index_tensor_of_no_integers(g: Growth, op: type[Any]) -> Faulty:
    x, dtype = matrix(g), g.choices.choose((DType.Bool, DType.C64, DType.C32))
    return Faulty(*_rows(g, op, x, _vectors(g, 1, dtype)), argument="dtype", blamed="index_tensor")


@FAULTS.instruction("InvalidArgument", *_INDEXED)
def index_vectors_too_long(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    return Faulty(*_rows(g, op, x, _vectors(g, 2 + g.choices.pick(3))), argument="start_index_map")


@FAULTS.instruction("AxisOutOfBounds", *_INDEXED)
def index_vector_axis_out_of_range(g: Growth, op: type[Any]) -> Faulty:
    x, axis = matrix(g), g.choices.choose((3, -1, 9))
    return Faulty(*_rows(g, op, x, _vectors(g), index_vector_dim=axis), axis)


@FAULTS.instruction("AxisOutOfBounds", *_INDEXED)
def mapped_axis_out_of_range(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    axis = f.outside(g, x.type.rank)
    return Faulty(*_rows(g, op, x, _vectors(g), **_mapping(op, axis)), axis)


@FAULTS.instruction("DuplicateAxis", *_INDEXED)
def mapped_axis_twice(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    axis = f.any_axis(g, x)
    return Faulty(*_rows(g, op, x, _vectors(g, 2), **_mapping(op, axis, axis)), axis)


@FAULTS.instruction("InvalidArgument", *_GATHERS)
def slice_larger_than_the_operand(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    sizes = (1, *shape_of(x)[1:-1], shape_of(x)[-1] + 1 + g.choices.pick(3))
    return Faulty(*_rows(g, op, x, _vectors(g), slice_sizes=sizes), argument="slice_sizes")


@FAULTS.instruction("InvalidArgument", *_GATHERS)
def collapsed_axis_of_a_longer_slice(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    return Faulty(*_rows(g, op, x, _vectors(g), slice_sizes=(2, *shape_of(x)[1:])), argument="slice_sizes")


def _scatter(x: Value) -> Op:
    """A scatter of rows into `x`."""
    return ops.Scatter(tuple(range(1, x.type.rank)), (0,), (0,), 1)


@FAULTS.instruction("DTypeMismatch", ops.Scatter)
def updates_of_another_dtype(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    return Faulty(_scatter(x), (x, _vectors(g), g.fresh(f.another_dtype(x.dtype), (2, *shape_of(x)[1:]))))


@FAULTS.instruction("ShapeMismatch", ops.Scatter)
def as_many_updates_as_index_vectors(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    return Faulty(_scatter(x), (x, _vectors(g), g.fresh(x.dtype, (3, *shape_of(x)[1:]))))


@FAULTS.instruction("InvalidArgument", ops.Scatter)
def window_larger_than_the_operand(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    updates = g.fresh(x.dtype, (2, *(e + 1 for e in shape_of(x)[1:])))
    return Faulty(_scatter(x), (x, _vectors(g), updates), argument="updates")


# --- values that only a run shows -------------------------------------------------------------------------------------

#: Elements of an index tensor of floats that are no index.
_NO_INDEX = (0.5, nan, 1.5, 2.0**60, 0.5, -inf)


@FAULTS.instruction("InvalidArgument", *_INDEXED, late=True)
def index_that_is_none(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    indices = f.full(g, g.choices.choose(_NO_INDEX), DType.F64, (2, 1))
    return Faulty(*_rows(g, op, x, indices), blamed="index_tensor")


def _window(op: type[Any], x: Value, starts: Value) -> tuple[Op, tuple[Value, ...]]:
    """A DynamicSlice of all of `x`, or a DynamicUpdateSlice of all of it."""
    return (op(shape_of(x)), (x, starts)) if op is ops.DynamicSlice else (op(), (x, x, starts))


@FAULTS.instruction("InvalidArgument", ops.DynamicSlice, ops.DynamicUpdateSlice, late=True)
def start_that_is_none(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    starts = f.full(g, g.choices.choose(_NO_INDEX), DType.F64, (x.type.rank,))
    return Faulty(*_window(op, x, starts), blamed="index_tensor")


@FAULTS.instruction("InvalidArgument", ops.DynamicTruncate, late=True)
def size_that_is_none(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    return Faulty(op(0), (x, f.full(g, g.choices.choose((nan, inf)), DType.F64)))


# --- windows ----------------------------------------------------------------------------------------------------------


@FAULTS.instruction("RankMismatch", ops.Slice, ops.Pad, ops.DynamicSlice)
def lists_too_long_or_short(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    ones = (1,) * g.choices.choose((x.type.rank - 1, x.type.rank + 1))
    zeros = (0,) * len(ones)
    if op is ops.DynamicSlice:
        return Faulty(op(ones), (x, g.fresh(DType.I32, (x.type.rank,))))
    return Faulty(op(zeros, ones, ones) if op is ops.Slice else op(zeros, zeros, zeros), (x,))


@FAULTS.instruction("AxisOutOfBounds", ops.Slice)
def limit_beyond_the_extent(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    shape, axis = shape_of(x), f.any_axis(g, x)
    limits = changed(shape, axis, shape[axis] + 1 + g.choices.pick(5))
    return Faulty(op((0,) * len(shape), limits, (1,) * len(shape)), (x,), axis)


@FAULTS.instruction("InvalidArgument", ops.Slice)
def start_beyond_the_limit(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    shape, axis = shape_of(x), f.any_axis(g, x)
    start = g.choices.choose((shape[axis] + 1, -1))
    return Faulty(op(changed((0,) * len(shape), axis, start), shape, (1,) * len(shape)), (x,), argument="starts")


@FAULTS.instruction("InvalidArgument", ops.Slice)
def stride_of_nothing(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    shape = shape_of(x)
    strides = changed((1,) * len(shape), g.choices.pick(len(shape)), g.choices.choose((0, -1)))
    return Faulty(op((0,) * len(shape), shape, strides), (x,), argument="strides")


@FAULTS.instruction("InvalidArgument", ops.DynamicSlice)
def dynamic_slice_that_does_not_fit(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    shape, axis = shape_of(x), f.any_axis(g, x)
    sizes = changed(shape, axis, g.choices.choose((shape[axis] + 1, -1)))
    return Faulty(op(sizes), (x, g.fresh(DType.I64, (len(shape),))), argument="slice_sizes")


@FAULTS.instruction("ShapeMismatch", ops.DynamicSlice, ops.DynamicUpdateSlice)
def start_vector_of_another_length(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    starts = g.fresh(DType.I32, (x.type.rank + g.choices.choose((1, -1)),))
    return Faulty(*_window(op, x, starts))


@FAULTS.instruction("RankMismatch", ops.DynamicSlice, ops.DynamicUpdateSlice)
def starts_that_are_no_vector(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    starts = g.fresh(DType.I32, g.choices.choose(((), (x.type.rank, 1))))
    return Faulty(*_window(op, x, starts))


@FAULTS.instruction("InvalidArgument", ops.DynamicUpdateSlice)
def update_larger_than_the_operand(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    shape, axis = shape_of(x), f.any_axis(g, x)
    update = g.fresh(x.dtype, changed(shape, axis, shape[axis] + 1))
    return Faulty(op(), (x, update, g.fresh(DType.I32, (len(shape),))), argument="update")


@FAULTS.instruction("DTypeMismatch", ops.DynamicUpdateSlice)
def update_of_another_dtype(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    other = f.another_dtype(x.dtype)
    return Faulty(op(), (x, g.fresh(other, shape_of(x)), g.fresh(DType.I32, (x.type.rank,))))


@FAULTS.instruction("InvalidArgument", ops.Pad)
def padding_that_cannot_be(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    shape, axis = shape_of(x), f.any_axis(g, x)
    zeros = (0,) * len(shape)
    if g.choices.pick(2):
        return Faulty(op(zeros, zeros, changed(zeros, axis, -1)), (x,), argument="interior_padding")
    return Faulty(op(changed(zeros, axis, -shape[axis] - 1), zeros, zeros), (x,), argument="edge_padding")


@FAULTS.instruction("Unsupported", ops.DynamicTruncate)
def size_of_a_dtype_that_is_not_admitted(g: Growth, op: type[Any]) -> Faulty:
    return Faulty(op(0), (matrix(g), g.fresh(g.choices.choose((DType.I32, DType.Bool, DType.C64)), ())))


@FAULTS.instruction("RankMismatch", ops.DynamicTruncate, ops.PadToMatch)
def control_operand_of_another_rank(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    return Faulty(op(0), (x, g.fresh(DType.F64, (1,) if op is ops.DynamicTruncate else (*shape_of(x), 2))))


# --- one axis ---------------------------------------------------------------------------------------------------------


@FAULTS.instruction("AxisOutOfBounds", ops.Concatenate, ops.Reverse, ops.ShapeOf, ops.DynamicTruncate, ops.PadToMatch)
def own_axis_out_of_range(g: Growth, op: type[Any]) -> Faulty:
    x = f.operand(g, ops.Add, 1)
    axis = f.outside(g, x.type.rank)
    beside = {ops.Concatenate: (x, x), ops.DynamicTruncate: (x, g.fresh(DType.F64, ())), ops.PadToMatch: (x, x)}
    return Faulty(op((axis,) if op is ops.Reverse else axis), beside.get(op, (x,)), axis)


@FAULTS.instruction("DuplicateAxis", ops.Reverse, ops.ExtractDiag)
def own_axis_twice(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    axis = f.any_axis(g, x)
    return Faulty(op((axis, axis)) if op is ops.Reverse else op(axis, axis), (x,), axis)


@FAULTS.instruction("AxisOutOfBounds", ops.ExtractDiag, ops.EmbedDiag)
def diagonal_axis_out_of_range(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    axis = g.choices.choose((x.type.rank + 1, -1, 2**31))
    return Faulty(op(0, axis) if g.choices.pick(2) else op(axis, 0), (x,), axis)


@FAULTS.instruction("ShapeMismatch", ops.Concatenate)
def parts_of_other_extents(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    return Faulty(op(0), (x, g.fresh(x.dtype, (2, *(e + 1 for e in shape_of(x)[1:])))))


@FAULTS.instruction("RankMismatch", ops.Concatenate)
def parts_of_other_ranks(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    return Faulty(op(0), (x, g.fresh(x.dtype, (*shape_of(x), 1))))


@FAULTS.instruction("DTypeMismatch", ops.Concatenate)
def parts_of_other_dtypes(g: Growth, op: type[Any]) -> Faulty:
    x = matrix(g)
    return Faulty(op(0), (x, g.fresh(f.another_dtype(x.dtype), shape_of(x))))


@FAULTS.instruction("RankMismatch", ops.Tril, ops.Triu)
def triangle_of_a_vector(g: Growth, op: type[Any]) -> Faulty:
    x = f.of_rank(g, [DType.F64, DType.F32, DType.I64], 0)
    return Faulty(op(0), (x if x.type.rank < 2 else g.fresh(x.dtype, (3,)),))
