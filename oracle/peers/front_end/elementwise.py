"""Words for elementwise ops and constants: operators, functions, comparisons."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.peers.front_end.table import PHRASES, WORDS, Origins, alike
from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.dtype import ENGINE_DTYPES
from tenferro_ref.ops import CompareDir, Op, TensorType
from tenferro_ref.program import GraphBuilder, Value

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
    return _OPERATORS[type(op)](x, y) if alike(x, y, scalars=True) else None


@WORDS.row(*_FUNCTIONS)
def _function(op: Op, result: TensorType, x: Value) -> Value:
    return _FUNCTIONS[type(op)](x)


@WORDS.row(ops.Compare)
def _compare(op: ops.Compare, result: TensorType, x: Value, y: Value) -> Value | None:
    made: Value | None = _COMPARISONS[op.dir](x, y) if alike(x, y) else None
    return made


@WORDS.row(ops.Maximum, ops.Minimum)
def _extremum(op: Op, result: TensorType, x: Value, y: Value) -> Value | None:
    function = tn.maximum if isinstance(op, ops.Maximum) else tn.minimum
    return function(x, y) if alike(x, y) else None


@WORDS.row(ops.Clamp)
def _clamp(op: Op, result: TensorType, x: Value, lower: Value, upper: Value) -> Value | None:
    return tn.clip(x, lower, upper) if alike(x, lower, upper) else None


@WORDS.row(ops.Select)
def _select(op: Op, result: TensorType, condition: Value, x: Value, y: Value) -> Value | None:
    if not alike(x, y) or condition.shape != x.shape:
        return None
    if x.dtype is condition.dtype:
        return (condition & x) | (~condition & y)
    return tn.where(~condition | False, y, x) if result.rank % 2 else tn.where(condition & True, x, y)


@WORDS.row(ops.Convert)
def _convert(op: ops.Convert, result: TensorType, x: Value) -> Value:
    return (+x).astype(op.to.name)


@WORDS.row(ops.Constant)
def _constant(op: ops.Constant, result: TensorType, b: GraphBuilder) -> Value | None:
    return b.constant(op.value, op.dtype) if ops.Constant.of(op.value, op.dtype) == op else None


# --- operands that operators bring to one type --------------------------------------------------------------------------


@PHRASES.row(*_OPERATORS, ops.Compare, ops.Maximum, ops.Minimum)
def _unprepared(origins: Origins, op: Any, result: TensorType, x: Value, y: Value) -> Value | None:
    """The operator on values of other dtypes or shapes, where a Convert or a BroadcastInDim made its operands as it would."""
    if not alike(x, y) or not x.type.is_static:
        return None
    left = _before(origins, x, y)
    right = _before(origins, y, left)
    if (left is x and right is y) or np.broadcast_shapes(left.type.static_shape, right.type.static_shape) != x.shape:
        return None
    if isinstance(op, ops.Compare):
        compared: Value = _COMPARISONS[op.dir](left, right)
        return compared
    known = {**_OPERATORS, ops.Maximum: tn.maximum, ops.Minimum: tn.minimum}
    return known[type(op)](left, right)


def _before(origins: Origins, x: Value, other: Value) -> Value:
    """What `x` was made of, if it becomes `x` again beside `other`."""
    origin = origins.get(x)
    if origin is None or not origin.operands:
        return x
    source = origin.operands[0]
    if isinstance(origin.op, ops.Convert):
        known = {source.dtype, other.dtype} <= {*ENGINE_DTYPES}
        # the engine promotes as NumPy does, whose table is not ours
        return source if known and np.promote_types(source.dtype.numpy, other.dtype.numpy) == x.dtype.numpy else x
    if isinstance(origin.op, ops.BroadcastInDim) and source.type.is_static:
        aligned = origin.op.dims == tuple(range(x.ndim - source.ndim, x.ndim))
        return source if aligned and other.dtype is x.dtype else x
    return x
