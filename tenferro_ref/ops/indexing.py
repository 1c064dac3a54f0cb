"""Indexing, slicing, padding and the host ops on shapes (SEMANTICS 2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tenferro_ref.dims import DimExpr, Extent, Unknown, UpperBound, combine, equal_extents, expr_of, substitute
from tenferro_ref.dtype import ANY, FLOAT, INT, NUMERIC, DType
from tenferro_ref.errors import (
    AxisOutOfBounds,
    DTypeMismatch,
    InvalidArgument,
    RankMismatch,
    ShapeMismatch,
    Unsupported,
)
from tenferro_ref.ops.base import (
    Category,
    Op,
    Policy,
    TensorType,
    check_axes,
    check_axis,
    check_length,
    constant_extent,
)

#: Dtypes of index tensors; floats must hold exact integers, which only the running program can check.
INDEX = INT | FLOAT


def _check_index(dtype: DType) -> None:
    if dtype.engine not in INDEX:
        raise InvalidArgument(op="index_tensor", argument="dtype", detail=f"{dtype} cannot index")


def _check_ascending(op: Op, axes: Sequence[int], role: str) -> None:
    if list(axes) != sorted(axes):
        raise InvalidArgument(op=op.name, argument=role, detail=f"{list(axes)} must be ascending")


def _index_batch(op: Op, indices: TensorType, index_vector_dim: int, vector_length: int) -> list[Extent]:
    """Batch extents of an index tensor: its shape without the axis that holds the index vectors.

    `index_vector_dim == rank` means an implicit trailing axis of extent 1.
    """
    if not 0 <= index_vector_dim <= indices.rank:
        raise AxisOutOfBounds(op=op.name, axis=index_vector_dim, rank=indices.rank + 1)
    length: Extent = 1 if index_vector_dim == indices.rank else indices.shape[index_vector_dim]
    if equal_extents(length, vector_length) is False:
        raise InvalidArgument(
            op=op.name, argument="start_index_map", detail=f"{vector_length} axes for index vectors of length {length}"
        )
    return [e for i, e in enumerate(indices.shape) if i != index_vector_dim]


def _gather_shape(
    op: Gather | GatherDynamicSliceSizes, operand: TensorType, indices: TensorType, sizes: Sequence[Extent]
) -> list[Extent]:
    check_length(op, sizes, operand.rank)
    check_axes(op, op.collapsed_slice_dims, operand.rank, "collapsed_slice_dims")
    check_axes(op, op.start_index_map, operand.rank, "start_index_map")
    _check_ascending(op, op.offset_dims, "offset_dims")
    _check_ascending(op, op.collapsed_slice_dims, "collapsed_slice_dims")
    batch = _index_batch(op, indices, op.index_vector_dim, len(op.start_index_map))
    for axis, (size, extent) in enumerate(zip(sizes, operand.shape, strict=True)):
        whole = constant_extent(op, extent, "operand shape") if isinstance(extent, int) else None
        if isinstance(size, int) and (size < 0 or (whole is not None and size > whole)):
            raise InvalidArgument(
                op=op.name, argument="slice_sizes", detail=f"slice size {size} does not fit axis {axis} of {operand}"
            )
    for axis in op.collapsed_slice_dims:
        if equal_extents(sizes[axis], 1) is False:
            raise InvalidArgument(
                op=op.name, argument="slice_sizes", detail=f"collapsed axis {axis} has slice size {sizes[axis]}, not 1"
            )
    window = [size for axis, size in enumerate(sizes) if axis not in op.collapsed_slice_dims]
    check_length(op, op.offset_dims, len(window))
    rank = len(batch) + len(window)
    check_axes(op, op.offset_dims, rank, "offset_dims")
    windows, batches = iter(window), iter(batch)
    return [next(windows) if axis in op.offset_dims else next(batches) for axis in range(rank)]


@dataclass(frozen=True, slots=True)
class Gather(Op):
    """StableHLO's gather without operand batching axes; starts are clamped. Inputs (operand, indices)."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int
    slice_sizes: tuple[int, ...]
    arity: ClassVar = 2

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        operand, indices = inputs
        _check_index(indices.dtype)
        return operand.with_shape(_gather_shape(self, operand, indices, self.slice_sizes))


@dataclass(frozen=True, slots=True)
class GatherDynamicSliceSizes(Op):
    """Gather whose slice sizes are dim expressions over the shapes of this instruction's inputs."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int
    slice_sizes: tuple[DimExpr, ...]
    arity: ClassVar = 2
    variadic: ClassVar = True

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        operand, indices = inputs[:2]
        _check_index(indices.dtype)
        shapes = [t.shape for t in inputs]
        sizes = [substitute(expr, shapes) for expr in self.slice_sizes]
        return operand.with_shape(_gather_shape(self, operand, indices, sizes))


@dataclass(frozen=True, slots=True)
class Scatter(Op):
    """Add each update window into a copy of the operand; duplicates accumulate. Inputs (operand, indices, updates)."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    index_vector_dim: int
    arity: ClassVar = 3
    dtypes: ClassVar = NUMERIC
    stablehlo_dtypes: ClassVar = frozenset({DType.Bool})

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        operand, indices, updates = inputs
        _check_index(indices.dtype)
        if operand.dtype is not updates.dtype:
            raise DTypeMismatch(op=self.name, lhs=operand.dtype.name, rhs=updates.dtype.name)
        check_axes(self, self.update_window_dims, updates.rank, "update_window_dims")
        check_axes(self, self.inserted_window_dims, operand.rank, "inserted_window_dims")
        check_axes(self, self.scatter_dims_to_operand_dims, operand.rank, "scatter_dims_to_operand_dims")
        _check_ascending(self, self.update_window_dims, "update_window_dims")
        _check_ascending(self, self.inserted_window_dims, "inserted_window_dims")
        batch = _index_batch(self, indices, self.index_vector_dim, len(self.scatter_dims_to_operand_dims))
        check_length(self, self.update_window_dims, operand.rank - len(self.inserted_window_dims))
        if updates.rank != len(batch) + len(self.update_window_dims):
            raise RankMismatch(op=self.name, expected=len(batch) + len(self.update_window_dims), actual=updates.rank)
        scatter = [e for i, e in enumerate(updates.shape) if i not in self.update_window_dims]
        if any(equal_extents(a, b) is False for a, b in zip(batch, scatter, strict=True)):
            raise ShapeMismatch(op=self.name, lhs=indices.shape, rhs=updates.shape)
        kept = [e for i, e in enumerate(operand.shape) if i not in self.inserted_window_dims]
        for extent, dim in zip(kept, self.update_window_dims, strict=True):
            window = updates.shape[dim]
            if isinstance(window, int) and isinstance(extent, int) and window > extent:
                raise InvalidArgument(
                    op=self.name, argument="updates", detail=f"window extent {window} exceeds operand extent {extent}"
                )
        return operand


@dataclass(frozen=True, slots=True)
class Slice(Op):
    """Elements `starts[i], starts[i] + strides[i], ...` below `limits[i]` of each axis."""

    starts: tuple[int, ...]
    limits: tuple[int, ...]
    strides: tuple[int, ...]

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        (x,) = inputs
        for values in (self.starts, self.limits, self.strides):
            check_length(self, values, x.rank)
        shape: list[int] = []
        for axis, (start, limit, stride) in enumerate(zip(self.starts, self.limits, self.strides, strict=True)):
            extent = constant_extent(self, x.shape[axis], "operand shape")
            if limit > extent:
                words = f"{self.name}: limit {limit} on axis {axis} is beyond its extent {extent}"
                raise AxisOutOfBounds(op=self.name, axis=axis, rank=x.rank).saying(words)
            if stride < 1:
                raise InvalidArgument(op=self.name, argument="strides", detail=f"stride {stride} on axis {axis}")
            if not 0 <= start <= limit:
                wrong = "is negative" if start < 0 else f"beyond limit {limit}"
                raise InvalidArgument(op=self.name, argument="starts", detail=f"start {start} {wrong} on axis {axis}")
            shape.append(-((start - limit) // stride))
        return x.with_shape(shape)


def _check_starts(op: Op, starts: TensorType, rank: int) -> None:
    _check_index(starts.dtype)
    if starts.rank != 1:
        raise RankMismatch(op=op.name, expected=1, actual=starts.rank)
    if equal_extents(starts.shape[0], rank) is False:
        raise ShapeMismatch(op=op.name, lhs=starts.shape, rhs=(rank,))


@dataclass(frozen=True, slots=True)
class DynamicSlice(Op):
    """Window of `slice_sizes` at runtime `starts`, which are clamped so that it fits. Inputs (operand, starts)."""

    slice_sizes: tuple[int, ...]
    arity: ClassVar = 2

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        operand, starts = inputs
        check_length(self, self.slice_sizes, operand.rank)
        _check_starts(self, starts, operand.rank)
        for axis, (size, extent) in enumerate(zip(self.slice_sizes, operand.shape, strict=True)):
            if size < 0 or (isinstance(extent, int) and size > extent):
                raise InvalidArgument(
                    op=self.name, argument="slice_sizes", detail=f"size {size} does not fit axis {axis} of {operand}"
                )
        return operand.with_shape(self.slice_sizes)


@dataclass(frozen=True, slots=True)
class DynamicUpdateSlice(Op):
    """Operand with `update` written at runtime `starts`, clamped so that it fits. Inputs (operand, update, starts)."""

    arity: ClassVar = 3
    same_dtype: ClassVar = 2

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        operand, update, starts = inputs
        if update.rank != operand.rank:
            raise RankMismatch(op=self.name, expected=operand.rank, actual=update.rank)
        _check_starts(self, starts, operand.rank)
        for axis, (size, extent) in enumerate(zip(update.shape, operand.shape, strict=True)):
            if isinstance(size, int) and isinstance(extent, int) and size > extent:
                raise InvalidArgument(
                    op=self.name, argument="update", detail=f"extent {size} does not fit axis {axis} of {operand}"
                )
        return operand


@dataclass(frozen=True, slots=True)
class Pad(Op):
    """Pad with zero; negative edges crop after the interior expansion."""

    edge_padding_low: tuple[int, ...]
    edge_padding_high: tuple[int, ...]
    interior_padding: tuple[int, ...]

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        (x,) = inputs
        for values in (self.edge_padding_low, self.edge_padding_high, self.interior_padding):
            check_length(self, values, x.rank)
        config = zip(x.shape, self.edge_padding_low, self.edge_padding_high, self.interior_padding, strict=True)
        return x.with_shape(self._extent(axis, *entry) for axis, entry in enumerate(config))

    def _extent(self, axis: int, extent: Extent, low: int, high: int, interior: int) -> Extent:
        if interior < 0:
            raise InvalidArgument(
                op=self.name, argument="interior_padding", detail=f"{interior} on axis {axis} is negative"
            )
        edges = low + high
        if isinstance(extent, int):
            result = edges + ((extent - 1) * (interior + 1) + 1 if extent else 0)
            if result < 0:
                raise InvalidArgument(
                    op=self.name, argument="edge_padding", detail=f"axis {axis} would have extent {result}"
                )
            return result
        spread: Extent = extent
        if interior:
            # (n - 1) (interior + 1) + 1, and 0 of no element
            wide = combine("mul", extent, interior + 1)
            spread = combine("sub", combine("max", wide, interior), interior)
        return combine("add", spread, edges) if edges >= 0 else combine("sub", spread, -edges)


@dataclass(frozen=True, slots=True)
class Concatenate(Op):
    """Operands one after another along `axis`."""

    axis: int
    variadic: ClassVar = True

    def check_dtypes(self, inputs: tuple[TensorType, ...], policy: Policy) -> None:  # type: ignore[override]
        for other in inputs[1:]:
            if other.dtype is not inputs[0].dtype:
                raise DTypeMismatch(op=self.name, lhs=inputs[0].dtype.name, rhs=other.dtype.name)

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        first = inputs[0]
        check_axis(self, self.axis, first.rank)
        total: Extent = first.shape[self.axis]
        for other in inputs[1:]:
            if other.rank != first.rank:
                raise RankMismatch(op=self.name, expected=first.rank, actual=other.rank)
            for axis, (a, b) in enumerate(zip(first.shape, other.shape, strict=True)):
                if axis != self.axis and equal_extents(a, b) is False:
                    raise ShapeMismatch(op=self.name, lhs=first.shape, rhs=other.shape)
            total = combine("add", total, other.shape[self.axis])
        return first.with_shape((*first.shape[: self.axis], total, *first.shape[self.axis + 1 :]))


@dataclass(frozen=True, slots=True)
class Reverse(Op):
    """Elements of each of `axes` in reverse order."""

    axes: tuple[int, ...]

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        check_axes(self, self.axes, inputs[0].rank)
        return inputs[0]


@dataclass(frozen=True, slots=True)
class ShapeOf(Op):
    """The extent of `axis` as a rank-0 F64."""

    axis: int
    category: ClassVar = Category.HOST

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        check_axis(self, self.axis, inputs[0].rank)
        return TensorType(DType.F64, ())


@dataclass(frozen=True, slots=True)
class DynamicTruncate(Op):
    """The first `size` elements of `axis`, size known at run time and clamped to [0, extent]. Inputs (data, size)."""

    axis: int
    category: ClassVar = Category.HOST
    arity: ClassVar = 2
    dtypes: ClassVar = ANY

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        data, size = inputs
        check_axis(self, self.axis, data.rank)
        if size.dtype not in (DType.F32, DType.F64, DType.I64):
            raise Unsupported(op=self.name, detail=f"size dtype {size.dtype}; F32, F64 or I64 is needed")
        if size.rank != 0:
            raise RankMismatch(op=self.name, expected=0, actual=size.rank)
        shape: list[Extent] = list(data.shape)
        extent = shape[self.axis]
        shape[self.axis] = extent if isinstance(extent, Unknown) else UpperBound(expr_of(extent))
        return data.with_shape(shape)


@dataclass(frozen=True, slots=True)
class PadToMatch(Op):
    """Zero-pad the high end of `axis` up to the reference's extent; unchanged when already as long.

    Inputs (data, reference); only the reference's shape is read.
    """

    axis: int
    category: ClassVar = Category.HOST
    arity: ClassVar = 2
    needs_zero: ClassVar = True

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        data, reference = inputs
        if reference.rank != data.rank:
            raise RankMismatch(op=self.name, expected=data.rank, actual=reference.rank)
        check_axis(self, self.axis, data.rank)
        shape: list[Extent] = list(data.shape)
        extent, target = shape[self.axis], reference.shape[self.axis]
        shape[self.axis] = extent if equal_extents(extent, target) else combine("max", extent, target)
        return data.with_shape(shape)
