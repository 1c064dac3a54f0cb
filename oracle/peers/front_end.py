"""A program in the words of the front end: operators, slices, methods and functions in place of ops.

Each row of `WORDS` writes an instruction as a person would who has NumPy in mind. That makes the same op, or a composition which moves elements
there and back; results must have the same bits. What the front end cannot say so is appended as the op that it is.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.dims import Extent, InputDim, is_exact
from tenferro_ref.extensions import einsum as einsum_family
from tenferro_ref.ops import ARITHMETIC, CompareDir, Op, TensorType, free_axes
from tenferro_ref.program import GraphBuilder, GraphProgram, Value
from tenferro_ref.table import Table

#: `row(op, result, *operands)` is the value, or None where there are no words for this op with these attributes.
Row: TypeAlias = Callable[..., Value | None]
WORDS: Table[Row] = Table("words of the front end")


def as_values(program: GraphProgram) -> GraphProgram:
    """The program, built anew by the front end; outputs with symbolic extents go through a window of themselves."""
    b = GraphBuilder(program.name, program.policy, symbols=program.symbols)
    values = {slot: b.typed_input(type_) for slot, type_ in zip(program.input_slots, program.input_types, strict=True)}
    constants: dict[int, ops.Constant] = {}
    for ins in program.instructions:
        if isinstance(ins.op, ops.Constant):
            constants[ins.output_slots[0]] = ins.op
        operands = [values[slot] for slot in ins.input_slots]
        result = program.slot_types[ins.output_slots[0]]
        written = None
        if type(ins.op) in WORDS:
            spoken = _with_number(ins.op, operands, [constants.get(slot) for slot in ins.input_slots])
            written = WORDS[type(ins.op)](ins.op, result, *(spoken or [b]))
        made = b.apply_many(ins.op, *operands) if written is None else (written,)
        values.update(zip(ins.output_slots, made, strict=True))
    return b.build(*(_windowed(values[slot]) for slot in program.output_slots))


def _with_number(op: Op, operands: list[Value], constants: list[ops.Constant | None]) -> list[Any]:
    """The operands; a constant of rank 0 beside another value as the number that a person would write."""
    if isinstance(op, ARITHMETIC) and len({v.dtype for v in operands}) == 1 and constants.count(None) == 1:
        left, right = constants
        constant = left or right
        # a payload of a NaN is in no number
        if constant is not None and ops.Constant.of(constant.value.item(), constant.dtype) == constant:
            return [operands[0], constant.value.item()] if left is None else [constant.value, operands[1]]
    return list(operands)


def _windowed(x: Value) -> Value:
    """Zeros around each symbolic axis, and a slice that leaves them out."""
    symbolic = [not isinstance(extent, int) for extent in x.shape]
    if not any(symbolic):
        return x
    padded = tn.pad(x, [(1, 2) if there else (0, 0) for there in symbolic])
    last = len(symbolic) - symbolic[::-1].index(True)

    def cut(start: int | None, stop: int | None, step: int) -> tuple[Any, ...]:
        return (*(slice(start, stop, step) if there else slice(None) for there in symbolic[:last]), ...)

    if last % 2:
        return padded[cut(1, -2, 1)]
    turned = cut(None, None, -1)
    return padded[turned][cut(2, -1, 1)][turned]


def _alike(*operands: Any, scalars: bool = False) -> bool:
    """Whether the front end neither promotes nor broadcasts them; one of rank 0 may be beside the others."""
    values = [v for v in operands if isinstance(v, Value)]
    shapes = {v.shape for v in values if v.ndim or not scalars}
    return len({v.dtype for v in values}) == 1 and len(shapes) <= 1


def _back(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """The axes counted from the end."""
    return tuple(a - rank for a in axes)


# --- elementwise ------------------------------------------------------------------------------------------------------

_OPERATORS: dict[type[Op], Callable[[Any, Any], Value]] = {
    ops.Add: operator.add, ops.Subtract: operator.sub, ops.Multiply: operator.mul, ops.Divide: operator.truediv,
    ops.Pow: operator.pow,
}  # fmt: skip
_FUNCTIONS: dict[type[Op], Callable[[Value], Value]] = {
    ops.Negate: operator.neg, ops.Abs: abs, ops.Exp: tn.exp, ops.Log: tn.log, ops.Expm1: tn.expm1, ops.Log1p: tn.log1p,
    ops.Sin: tn.sin, ops.Cos: tn.cos, ops.Tanh: tn.tanh, ops.Sqrt: tn.sqrt, ops.Rsqrt: tn.rsqrt, ops.Sign: tn.sign, ops.Conj: tn.conj,
}  # fmt: skip
_COMPARISONS: dict[CompareDir, Callable[[Any, Any], Any]] = {
    CompareDir.Eq: lambda x, y: ~(x != y), CompareDir.Lt: operator.lt, CompareDir.Le: operator.le,
    CompareDir.Gt: operator.gt, CompareDir.Ge: operator.ge,
}  # fmt: skip


@WORDS.row(*_OPERATORS)
def _operator(op: Op, result: TensorType, x: Any, y: Any) -> Value | None:
    return _OPERATORS[type(op)](x, y) if _alike(x, y, scalars=True) else None


@WORDS.row(*_FUNCTIONS)
def _function(op: Op, result: TensorType, x: Value) -> Value:
    return _FUNCTIONS[type(op)](x)


@WORDS.row(ops.Compare)
def _compare(op: ops.Compare, result: TensorType, x: Value, y: Value) -> Value | None:
    made: Value | None = _COMPARISONS[op.dir](x, y) if _alike(x, y) else None
    return made


@WORDS.row(ops.Maximum, ops.Minimum)
def _extremum(op: Op, result: TensorType, x: Value, y: Value) -> Value | None:
    function = tn.maximum if isinstance(op, ops.Maximum) else tn.minimum
    return function(x, y) if _alike(x, y) else None


@WORDS.row(ops.Clamp)
def _clamp(op: Op, result: TensorType, x: Value, lower: Value, upper: Value) -> Value | None:
    return tn.clip(x, lower, upper) if _alike(x, lower, upper) else None


@WORDS.row(ops.Select)
def _select(op: Op, result: TensorType, condition: Value, x: Value, y: Value) -> Value | None:
    if not _alike(x, y) or condition.shape != x.shape:
        return None
    if x.dtype is condition.dtype:
        return (condition & x) | (~condition & y)
    return tn.where(~condition | False, y, x) if result.rank % 2 else tn.where(condition & True, x, y)


@WORDS.row(ops.Convert)
def _convert(op: ops.Convert, result: TensorType, x: Value) -> Value:
    return x.astype(op.to.name)


@WORDS.row(ops.Constant)
def _constant(op: ops.Constant, result: TensorType, b: GraphBuilder) -> Value | None:
    return b.constant(op.value, op.dtype) if ops.Constant.of(op.value, op.dtype) == op else None


# --- shapes -----------------------------------------------------------------------------------------------------------


@WORDS.row(ops.Transpose)
def _transpose(op: ops.Transpose, result: TensorType, x: Value) -> Value:
    axes = range(x.ndim)
    if op.perm == tuple(reversed(axes)):
        return x.T
    for source in axes:
        target = op.perm.index(source)
        if [a for a in op.perm if a != source] == [a for a in axes if a != source] and target != source:
            return tn.moveaxis(x, source, target - x.ndim)
    return x.transpose(*_back(op.perm, x.ndim))


@WORDS.row(ops.Reshape)
def _reshape(op: ops.Reshape, result: TensorType, x: Value, *like: Value) -> Value | None:
    if not all(map(is_exact, result.shape)):
        return None
    shape: tuple[Extent, ...] = result.shape
    if x.type.is_static and result.is_static and shape:
        if prod(result.static_shape[:-1]):
            shape = (*shape[:-1], -1)
        if result.static_shape[0] % 2:
            return x.T.reshape(shape[::-1], order="C", like=like).T
    return x.reshape(shape, like=_providers(result, like))


@WORDS.row(ops.BroadcastInDim)
def _broadcast(op: ops.BroadcastInDim, result: TensorType, x: Value, *like: Value) -> Value | None:
    if not all(map(is_exact, result.shape)):
        return None
    order = sorted(range(x.ndim), key=lambda axis: op.dims[axis])
    turned = x if order == list(range(x.ndim)) else x.transpose(order)
    first = min(op.dims, default=result.rank)
    there = turned[tuple(slice(None) if a in op.dims else None for a in range(first, result.rank))]
    return there.broadcast_to(result.shape, like=_providers(result, like))


def _providers(result: TensorType, like: tuple[Value, ...]) -> tuple[Value, ...]:
    """The values that have the symbolic extents; else the front end takes inputs of the program."""
    return like if result.rank % 2 else ()


@WORDS.row(ops.Reverse)
def _reverse(op: ops.Reverse, result: TensorType, x: Value) -> Value:
    if len(op.axes) == 1:
        return x[(*(slice(None),) * op.axes[0], slice(None, None, -1))]
    return tn.flip(x) if len(op.axes) == x.ndim else tn.flip(x, _back(op.axes, x.ndim))


@WORDS.row(ops.Slice)
def _slice(op: ops.Slice, result: TensorType, x: Value) -> Value | None:
    """Each axis in another way: as an integer and a new axis, backwards and turned, counted from the end, or as it is."""
    if not x.type.is_static:
        return None
    index: list[int | slice] = []
    behind: list[slice | None] = []
    for axis, (start, limit, stride) in enumerate(zip(op.starts, op.limits, op.strides, strict=True)):
        extent, way = x.type.static_shape[axis], (start + limit + axis) % 4
        positions = range(start, limit, stride)
        turned = False
        if len(positions) == 1 and way in (0, 3):
            index.append(start - extent if way else start)
            behind.append(None)
            continue
        if positions and way == 1:
            turned = True
            index.append(slice(positions[-1], start - 1 if start else None, -stride))
        elif positions and way == 2:
            index.append(slice(start - extent, limit - extent or None, stride))
        else:
            index.append(slice(start, limit, stride))
        behind.append(slice(None, None, -1 if turned else None))
    return x[tuple(index)][tuple(behind)]


@WORDS.row(ops.Pad)
def _pad(op: ops.Pad, result: TensorType, x: Value) -> Value:
    edges = list(zip(op.edge_padding_low, op.edge_padding_high, strict=True))
    interior = op.interior_padding[0] if len(set(op.interior_padding)) == 1 else op.interior_padding
    if len(set(edges)) == 1:
        return tn.pad(x, edges[0][0] if edges[0][0] == edges[0][1] else edges[0], interior)
    return tn.pad(x, edges, interior)


@WORDS.row(ops.Concatenate)
def _concatenate(op: ops.Concatenate, result: TensorType, *values: Value) -> Value | None:
    if len({v.dtype for v in values}) > 1:
        return None
    if all(v.shape[op.axis] == 1 for v in values):
        single = (slice(None),) * op.axis
        return tn.stack([v[(*single, 0)] for v in values], op.axis)
    return tn.concatenate(values, op.axis - values[0].ndim)


@WORDS.row(ops.Tril, ops.Triu)
def _triangle(op: ops.Tril | ops.Triu, result: TensorType, x: Value) -> Value:
    function, rank = tn.tril if isinstance(op, ops.Tril) else tn.triu, x.ndim
    if rank == 2:
        return function(x, op.k)
    return function(x.transpose(*range(2, rank), 0, 1), op.k).transpose(rank - 2, rank - 1, *range(rank - 2))


@WORDS.row(ops.ExtractDiag)
def _extract_diag(op: ops.ExtractDiag, result: TensorType, x: Value) -> Value:
    if (op.axis_a, op.axis_b, x.ndim) == (0, 1, 2):
        return tn.diag(x)
    return tn.moveaxis(
        tn.diagonal(x, 0, *_back((op.axis_a, op.axis_b), x.ndim)), -1, op.axis_a - (op.axis_a > op.axis_b)
    )


@WORDS.row(ops.EmbedDiag)
def _embed_diag(op: ops.EmbedDiag, result: TensorType, x: Value) -> Value | None:
    return tn.diag(x) if (op.axis_a, op.axis_b, x.ndim) == (0, 1, 1) else None


# --- sums -------------------------------------------------------------------------------------------------------------

_METHODS = {ops.ReduceSum: "sum", ops.ReduceProd: "prod", ops.ReduceMax: "max", ops.ReduceMin: "min"}


@WORDS.row(*_METHODS)
def _reduction(op: Any, result: TensorType, x: Value) -> Value:
    method = getattr(x, _METHODS[type(op)])
    if op.axes == tuple(range(x.ndim)):
        total: Value = method()
    elif 0 in op.axes:
        total = method(op.axes, keepdims=True)[tuple(0 if a in op.axes else slice(None) for a in range(x.ndim))]
    else:
        total = method(_back(op.axes, x.ndim))
    return total


@WORDS.row(ops.DotGeneral, ops.DotGeneralWithConj)
def _contraction(op: ops.DotGeneral, result: TensorType, x: Value, y: Value) -> Value | None:
    """`@` where there is one contracted axis, and one free one on each side of a batch; `tensordot` without a batch."""
    if x.dtype is not y.dtype:
        return None
    if isinstance(op, ops.DotGeneralWithConj) and x.dtype.is_complex:
        x, y = op.conjugated(tn.conj, x, y)
    left, right, batch = op.lhs_contracting_dims, op.rhs_contracting_dims, op.lhs_batch_dims
    if not batch:
        if left == (x.ndim - 1,) and right == (max(y.ndim - 2, 0),) and (y.ndim <= 2 or x.ndim == 1):
            return x @ y
        n = len(left)
        ends = left == tuple(range(x.ndim - n, x.ndim)) and right == tuple(range(n))
        return tn.tensordot(x, y, n if ends else (_back(left, x.ndim), _back(right, y.ndim)))
    rows, columns = free_axes(x.ndim, left, batch), free_axes(y.ndim, right, op.rhs_batch_dims)
    if not len(left) == len(rows) == len(columns) == 1:
        return None
    if [x.shape[a] for a in batch] != [y.shape[a] for a in op.rhs_batch_dims]:
        return None
    n = len(batch)
    product = x.transpose(*batch, *rows, *left) @ y.transpose(*op.rhs_batch_dims, *right, *columns)
    return product.transpose(n, n + 1, *range(n))


@WORDS.row(ops.Extension)
def _extension(op: ops.Extension, result: TensorType, *operands: Value) -> Value | None:
    config = json.loads(op.config)
    if op.key != (einsum_family.FAMILY, "einsum") or config.keys() != {"equation"}:
        return None
    return tn.einsum(config["equation"], *operands)


# --- indices ----------------------------------------------------------------------------------------------------------


def _flat_indices(indices: Value, vector: int) -> Value | None:
    """Indices of one axis as `take` has them; None where each is a vector of several."""
    if vector == indices.ndim:
        return indices
    return indices[..., 0] if vector == indices.ndim - 1 and indices.shape[vector] == 1 else None


@WORDS.row(ops.Gather, ops.GatherDynamicSliceSizes)
def _gather(op: Any, result: TensorType, x: Value, indices: Value, *like: Value) -> Value | None:
    flat = _flat_indices(indices, op.index_vector_dim)
    if flat is None or like or len(op.start_index_map) != 1:
        return None
    (a,), rank = op.start_index_map, x.ndim - 1 + flat.ndim
    window = (*range(a), *range(a + flat.ndim, rank))
    sizes = tuple(1 if i == a else e if isinstance(e, int) else InputDim(0, i) for i, e in enumerate(x.shape))
    if (op.offset_dims, op.collapsed_slice_dims, op.slice_sizes) != (window, (a,), sizes):
        return None
    return tn.take(x, flat, a - x.ndim)


@WORDS.row(ops.Scatter)
def _scatter(op: ops.Scatter, result: TensorType, x: Value, indices: Value, updates: Value) -> Value | None:
    flat = _flat_indices(indices, op.index_vector_dim)
    axes = op.scatter_dims_to_operand_dims
    if flat is None or len(axes) != 1 or op.inserted_window_dims != axes or x.dtype is not updates.dtype:
        return None
    (a,) = axes
    window = (*range(a), *range(a + flat.ndim, x.ndim - 1 + flat.ndim))
    static = all(v.type.is_static for v in (x, flat, updates))
    if not static or op.update_window_dims != window or updates.shape != (*x.shape[:a], *flat.shape, *x.shape[a + 1 :]):
        return None
    return tn.scatter_add(x, flat, updates, a - x.ndim)


def _positions(starts: Value, rank: int) -> Value | list[Value]:
    """The starts as one value, or one by one."""
    return list(starts) if rank and rank % 2 == 0 and starts.shape == (rank,) else starts


@WORDS.row(ops.DynamicSlice)
def _dynamic_slice(op: ops.DynamicSlice, result: TensorType, x: Value, starts: Value) -> Value:
    return tn.dynamic_slice(x, _positions(starts, x.ndim), op.slice_sizes)


@WORDS.row(ops.DynamicUpdateSlice)
def _update(op: Op, result: TensorType, x: Value, update: Value, starts: Value) -> Value | None:
    if x.dtype is not update.dtype:
        return None
    return tn.dynamic_update_slice(x, update, _positions(starts, x.ndim))


@WORDS.row(ops.ShapeOf)
def _shape_of(op: ops.ShapeOf, result: TensorType, x: Value) -> Value:
    return tn.shape_of(x, op.axis - x.ndim)


@WORDS.row(ops.DynamicTruncate)
def _truncate(op: ops.DynamicTruncate, result: TensorType, x: Value, size: Value) -> Value:
    return tn.truncate(x, size, op.axis - x.ndim)


@WORDS.row(ops.PadToMatch)
def _pad_to_match(op: ops.PadToMatch, result: TensorType, x: Value, reference: Value) -> Value:
    return tn.pad_to_match(x, reference, op.axis - x.ndim)


WORDS.unsupported("NumPy's remainder has the sign of the divisor, so the front end has no operator", ops.Remainder)
WORDS.unsupported("the front end squares and sums in two ops", ops.ReduceSumSquares)
