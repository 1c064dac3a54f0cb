"""`JAX`: each op as calls of `jax.lax`, the third way of saying what an op is.

A row is `row(lax, op, result, policy, *operands)`: `lax` is the module, `result` the type that the op's rule gives,
operands are JAX arrays or tracers. Where the engine's meaning is not lax's (column-major Reshape, the axis order of
DotGeneral, implicit index axes), the row makes up the difference; what stays different is listed in
`tests/agreement/differences.py`. Extension ops are in `jax_extensions`. JAX itself is not imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from oracle.extents import extents
from oracle.peers.engines.jax_extensions import JAX_EXTENSION
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.ops import INTEGER_FAULTS, Op, Policy, TensorType
from tenferro_ref.table import Table

Row: TypeAlias = Callable[..., Any]
JAX: Table[Row] = Table("jax.lax")


# --- elementwise ------------------------------------------------------------------------------------------------------


def _named(name: str) -> Row:
    def row(lax: Any, op: Op, result: TensorType, policy: Policy, *operands: Any) -> Any:
        return getattr(lax, name)(*operands)

    return row


for _op, _name in {
    ops.Negate: "neg", ops.Abs: "abs", ops.Sign: "sign", ops.Exp: "exp", ops.Log: "log", ops.Sin: "sin", ops.Cos: "cos", ops.Tanh: "tanh",
    ops.Sqrt: "sqrt", ops.Rsqrt: "rsqrt", ops.Expm1: "expm1", ops.Log1p: "log1p", ops.Maximum: "max", ops.Minimum: "min", ops.Select: "select",
}.items():  # fmt: skip
    JAX[_op] = _named(_name)


_ARITHMETIC: dict[type[Op], str] = {
    ops.Add: "add", ops.Subtract: "sub", ops.Multiply: "mul", ops.Divide: "div", ops.Pow: "pow",
    ops.Remainder: "rem",
}  # fmt: skip


@JAX.row(*_ARITHMETIC)
def _arithmetic(lax: Any, op: Op, result: TensorType, policy: Policy, x: Any, y: Any) -> Any:
    integer = result.dtype.is_int
    what = INTEGER_FAULTS.get(type(op))
    if integer and what is not None and policy.integer_faults == "error":
        raise UnsupportedOp(op=op.name, reason=f'{what} must be an error under integer_faults="error"; XLA has none')
    x, y = (_to(lax, v, result) for v in (x, y))
    if result.dtype is DType.Bool:
        return lax.bitwise_or(x, y) if isinstance(op, ops.Add) else lax.bitwise_and(x, y)
    if integer and isinstance(op, ops.Pow):
        return _integer_pow(lax, x, y)
    return getattr(lax, _ARITHMETIC[type(op)])(x, y)


def _to(lax: Any, x: Any, type_: TensorType) -> Any:
    """A rank-0 operand with the dtype and shape of the one beside it."""
    x = lax.convert_element_type(x, type_.dtype.numpy)
    return lax.broadcast_in_dim(x, type_.shape, ()) if x.ndim < type_.rank else x


def _integer_pow(lax: Any, x: Any, y: Any) -> Any:
    """lax.pow has no integers: squared and multiplied, bit by bit; `1 / x**-y` in integers where y is negative."""
    zero, one, minus = (lax.full_like(x, v) for v in (0, 1, -1))

    def step(bit: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        power, base = state
        taken = lax.ne(lax.bitwise_and(lax.shift_right_logical(y, lax.full_like(y, bit)), one), zero)
        return lax.select(taken, lax.mul(power, base), power), lax.mul(base, base)

    power, _ = lax.fori_loop(0, 8 * x.dtype.itemsize, step, (one, x))
    odd = lax.ne(lax.bitwise_and(y, one), zero)
    unit = lax.select(lax.eq(x, one), one, lax.select(lax.eq(x, minus), lax.select(odd, minus, one), zero))
    return lax.select(lax.lt(y, zero), unit, power)


@JAX.row(ops.Conj)
def _conj(lax: Any, op: Op, result: TensorType, policy: Policy, x: Any) -> Any:
    return lax.conj(x) if result.dtype.is_complex else x


@JAX.row(ops.Compare)
def _compare(lax: Any, op: ops.Compare, result: TensorType, policy: Policy, x: Any, y: Any) -> Any:
    return getattr(lax, op.dir.name.lower())(x, y)


@JAX.row(ops.Clamp)
def _clamp(lax: Any, op: Op, result: TensorType, policy: Policy, x: Any, lower: Any, upper: Any) -> Any:
    return lax.clamp(lower, x, upper)


# --- structural -------------------------------------------------------------------------------------------------------


@JAX.row(ops.Constant)
def _constant(lax: Any, op: ops.Constant, result: TensorType, policy: Policy) -> Any:
    return lax.full((), op.value, op.dtype.numpy)


@JAX.row(ops.Convert)
def _convert(lax: Any, op: ops.Convert, result: TensorType, policy: Policy, x: Any) -> Any:
    if np.iscomplexobj(x) and not op.to.is_complex:
        if op.to is DType.Bool:
            return lax.ne(x, lax.full_like(x, 0))
        x = lax.real(x)
    return lax.convert_element_type(x, op.to.numpy)


@JAX.row(ops.Transpose)
def _transpose(lax: Any, op: ops.Transpose, result: TensorType, policy: Policy, x: Any) -> Any:
    return lax.transpose(x, op.perm)


@JAX.row(ops.Reshape)
def _reshape(lax: Any, op: ops.Reshape, result: TensorType, policy: Policy, x: Any, *providers: Any) -> Any:
    """Row-major lax.reshape of the reversed axes."""
    reversed_ = lax.reshape(lax.transpose(x, range(x.ndim)[::-1]), result.shape[::-1])
    return lax.transpose(reversed_, range(result.rank)[::-1])


@JAX.row(ops.BroadcastInDim)
def _broadcast(lax: Any, op: ops.BroadcastInDim, result: TensorType, policy: Policy, x: Any, *providers: Any) -> Any:
    """lax wants increasing dims."""
    order = sorted(range(x.ndim), key=op.dims.__getitem__)
    return lax.broadcast_in_dim(lax.transpose(x, order), result.shape, sorted(op.dims))


@JAX.row(ops.ExtractDiag)
def _extract_diag(lax: Any, op: ops.ExtractDiag, result: TensorType, policy: Policy, x: Any) -> Any:
    rest = [a for a in range(x.ndim) if a not in (op.axis_a, op.axis_b)]
    i = np.arange(min(x.shape[op.axis_a], x.shape[op.axis_b]))
    diagonal = lax.transpose(x, (op.axis_a, op.axis_b, *rest))[i, i]
    place = op.axis_a - (op.axis_a > op.axis_b)
    return lax.transpose(diagonal, (*range(1, place + 1), 0, *range(place + 1, diagonal.ndim)))


@JAX.row(ops.EmbedDiag)
def _embed_diag(lax: Any, op: ops.EmbedDiag, result: TensorType, policy: Policy, x: Any) -> Any:
    axes = [a for a in range(result.rank) if a != op.axis_b]
    spread = lax.broadcast_in_dim(x, result.shape, axes)
    i, j = (lax.broadcasted_iota(np.int32, result.shape, a) for a in (axes[op.axis_a], op.axis_b))
    return lax.select(lax.eq(i, j), spread, lax.full_like(spread, 0))


@JAX.row(ops.Tril, ops.Triu)
def _triangle(lax: Any, op: ops.Tril | ops.Triu, result: TensorType, policy: Policy, x: Any) -> Any:
    row, col = (lax.broadcasted_iota(np.int64, x.shape, a) for a in (0, 1))
    k = max(-(2**31), min(op.k, 2**31))  # beyond any extent nothing changes, and `col - k` cannot wrap
    shifted = lax.sub(col, lax.full_like(col, k))
    keep = lax.ge(row, shifted) if isinstance(op, ops.Tril) else lax.le(row, shifted)
    return lax.select(keep, x, lax.full_like(x, 0))


# --- reductions and contraction ---------------------------------------------------------------------------------------

_REDUCE: dict[type[Op], tuple[str, str]] = {
    ops.ReduceSum: ("reduce_sum", "reduce_or"),
    ops.ReduceProd: ("reduce_prod", "reduce_and"),
    ops.ReduceMax: ("reduce_max", "reduce_or"),
    ops.ReduceMin: ("reduce_min", "reduce_and"),
}


@JAX.row(*_REDUCE)
def _reduce(lax: Any, op: ops.ReduceSum, result: TensorType, policy: Policy, x: Any) -> Any:
    numeric, logical = _REDUCE[type(op)]
    return getattr(lax, logical if result.dtype is DType.Bool else numeric)(x, op.axes) if op.axes else x


@JAX.row(ops.ReduceSumSquares)
def _sum_of_squares(lax: Any, op: ops.ReduceSumSquares, result: TensorType, policy: Policy, x: Any) -> Any:
    squares = lax.mul(x, x)
    return lax.reduce_sum(squares, op.axes) if op.axes else squares


@JAX.row(ops.DotGeneralWithConj)
def _dot_with_conj(lax: Any, op: ops.DotGeneralWithConj, result: TensorType, policy: Policy, x: Any, y: Any) -> Any:
    operands = op.conjugated(lax.conj, x, y) if result.dtype.is_complex else (x, y)
    return _dot_general(lax, op.plain, result, policy, *operands)


@JAX.row(ops.DotGeneral)
def _dot_general(lax: Any, op: ops.DotGeneral, result: TensorType, policy: Policy, x: Any, y: Any) -> Any:
    contracting = (op.lhs_contracting_dims, op.rhs_contracting_dims)
    batch = (op.lhs_batch_dims, op.rhs_batch_dims)
    product = lax.dot_general(x, y, (contracting, batch), precision="highest")
    batches = len(op.lhs_batch_dims)
    return lax.transpose(product, (*range(batches, product.ndim), *range(batches)))  # batch axes go last


# --- indexing ---------------------------------------------------------------------------------------------------------


def _integers(op: Op, indices: Any) -> Any:
    if indices.dtype.kind not in "iu":  # narrow floats are of no kind that NumPy knows
        reason = "a float index that is no exact integer must be an error, JAX has none; convert the indices to I64"
        raise UnsupportedOp(op=op.name, reason=reason)
    return indices


def _indices(lax: Any, indices: Any, index_vector_dim: int) -> Any:
    """Index vectors on the last axis."""
    if index_vector_dim == indices.ndim:
        return lax.expand_dims(indices, (index_vector_dim,))
    axes = [a for a in range(indices.ndim) if a != index_vector_dim]
    return lax.transpose(indices, (*axes, index_vector_dim))


@JAX.row(ops.Gather, ops.GatherDynamicSliceSizes)
def _gather(
    lax: Any,
    op: ops.Gather | ops.GatherDynamicSliceSizes,
    result: TensorType,
    policy: Policy,
    x: Any,
    indices: Any,
    *more: Any,
) -> Any:
    dimensions = lax.GatherDimensionNumbers(op.offset_dims, op.collapsed_slice_dims, op.start_index_map)
    sizes = extents(op.slice_sizes, [v.shape for v in (x, indices, *more)])
    vectors = _indices(lax, _integers(op, indices), op.index_vector_dim)
    return lax.gather(x, vectors, dimensions, sizes, mode=lax.GatherScatterMode.CLIP)


@JAX.row(ops.Scatter)
def _scatter(lax: Any, op: ops.Scatter, result: TensorType, policy: Policy, x: Any, indices: Any, updates: Any) -> Any:
    dimensions = lax.ScatterDimensionNumbers(
        op.update_window_dims, op.inserted_window_dims, op.scatter_dims_to_operand_dims
    )
    vectors = _indices(lax, _integers(op, indices), op.index_vector_dim)
    mode = lax.GatherScatterMode.CLIP if policy.scatter_bounds == "clamp" else lax.GatherScatterMode.FILL_OR_DROP
    if result.dtype is DType.Bool:  # or, as Add is for Bool
        counts = lax.scatter_add(_int(lax, x), vectors, _int(lax, updates), dimensions, mode=mode)
        return lax.gt(counts, lax.full_like(counts, 0))
    return lax.scatter_add(x, vectors, updates, dimensions, mode=mode)


def _int(lax: Any, x: Any) -> Any:
    return lax.convert_element_type(x, np.int32)


@JAX.row(ops.Slice)
def _slice(lax: Any, op: ops.Slice, result: TensorType, policy: Policy, x: Any) -> Any:
    return lax.slice(x, op.starts, op.limits, op.strides)


@JAX.row(ops.DynamicSlice)
def _dynamic_slice(lax: Any, op: ops.DynamicSlice, result: TensorType, policy: Policy, x: Any, starts: Any) -> Any:
    starts = list(_integers(op, starts))
    return lax.dynamic_slice(x, starts, op.slice_sizes, allow_negative_indices=False) if x.ndim else x


@JAX.row(ops.DynamicUpdateSlice)
def _update_slice(lax: Any, op: Op, result: TensorType, policy: Policy, x: Any, update: Any, starts: Any) -> Any:
    starts = list(_integers(op, starts))
    return lax.dynamic_update_slice(x, update, starts, allow_negative_indices=False) if x.ndim else update


@JAX.row(ops.Pad)
def _pad(lax: Any, op: ops.Pad, result: TensorType, policy: Policy, x: Any) -> Any:
    config = list(zip(op.edge_padding_low, op.edge_padding_high, op.interior_padding, strict=True))
    return lax.pad(x, lax.full((), 0, x.dtype), config)


@JAX.row(ops.PadToMatch)
def _pad_to_match(lax: Any, op: ops.PadToMatch, result: TensorType, policy: Policy, x: Any, reference: Any) -> Any:
    high = [max(0, reference.shape[a] - e) if a == op.axis else 0 for a, e in enumerate(x.shape)]
    return lax.pad(x, lax.full((), 0, x.dtype), [(0, h, 0) for h in high])


@JAX.row(ops.Concatenate)
def _concatenate(lax: Any, op: ops.Concatenate, result: TensorType, policy: Policy, *operands: Any) -> Any:
    return lax.concatenate(operands, op.axis)


@JAX.row(ops.Reverse)
def _reverse(lax: Any, op: ops.Reverse, result: TensorType, policy: Policy, x: Any) -> Any:
    return lax.rev(x, op.axes)


@JAX.row(ops.ShapeOf)
def _shape_of(lax: Any, op: ops.ShapeOf, result: TensorType, policy: Policy, x: Any) -> Any:
    return lax.full((), float(x.shape[op.axis]), np.float64)


JAX.unsupported("the extent of the result depends on a value, which a traced function cannot say", ops.DynamicTruncate)


@JAX.row(ops.Extension)
def _extension(lax: Any, op: ops.Extension, results: tuple[TensorType, ...], policy: Policy, *operands: Any) -> Any:
    """The one row that is given all result types and gives all results: it may have several, and other calls than lax's."""
    return JAX_EXTENSION[op.key](op, results, *operands)
