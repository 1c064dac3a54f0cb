"""Elementwise and structural ops, and the arrays that a module brings along. What needs more than an op or two is in
`composed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_ref import ops
from tenferro_ref.ops import CompareDir, Op
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import composed, windows
from tenferro_ref.stablehlo.loader.bindings import attribute, dense, refuse
from tenferro_ref.stablehlo.loader.composed import select, spread, static
from tenferro_ref.stablehlo.loader.table import ROWS, axes_of, result_shape, result_type, row, row_major
from tenferro_ref.stablehlo.loader.tracer import Tracer

# --- elementwise ------------------------------------------------------------------------------------------------------

_SAME: dict[str, Op] = {
    "abs": ops.Abs(), "add": ops.Add(), "cosine": ops.Cos(), "divide": ops.Divide(), "exponential": ops.Exp(),
    "exponential_minus_one": ops.Expm1(), "log": ops.Log(), "log_plus_one": ops.Log1p(), "maximum": ops.Maximum(), "minimum": ops.Minimum(),
    "multiply": ops.Multiply(), "negate": ops.Negate(), "power": ops.Pow(), "rsqrt": ops.Rsqrt(), "sine": ops.Sin(), "sqrt": ops.Sqrt(),
    "tanh": ops.Tanh(),
}  # fmt: skip
_COMPOSED: dict[str, Callable[..., Value]] = {
    "atan2": composed.atan2, "ceil": composed.ceil, "complex": composed.complex_, "floor": composed.floor,
    "imag": composed.imag, "is_finite": composed.is_finite, "logistic": composed.logistic, "popcnt": composed.popcnt,
    "real": composed.real, "shift_left": composed.shift_left,
    "shift_right_arithmetic": composed.shift_right_arithmetic, "shift_right_logical": composed.shift_right_logical,
    "sign": composed.sign, "subtract": composed.subtract, "tan": composed.tan,
}  # fmt: skip

for _name, _op in _SAME.items():
    ROWS[_name] = lambda b, op, *given, _op=_op: (b.apply(_op, *given),)
for _name, _function in _COMPOSED.items():
    ROWS[_name] = lambda b, op, *given, _function=_function: (_function(*given),)
for _name in ("and", "or", "xor", "not"):
    ROWS[_name] = lambda b, op, *given, _name=_name: (composed.logical(_name, *given),)
ROWS["optimization_barrier"] = lambda b, op, *given: given


@row("round_nearest_even", "round_nearest_afz")
def _(b: Tracer, op: Any, x: Value) -> Value:
    return composed.round_nearest(x, op.operation.name.endswith("even"))


@row("remainder")
def _(b: Tracer, op: Any, x: Value, y: Value) -> Value:
    if not x.dtype.is_int:
        raise refuse(op, f"the exact remainder of {x.dtype} is no composition of the engine's ops")
    return composed.remainder(x, y)


@row("compare")
def _(b: Tracer, op: Any, x: Value, y: Value) -> Value:
    if x.dtype.is_float and "TOTALORDER" in attribute(op, "compare_type", ""):
        raise refuse(op, "the engine has no total order of floats")
    direction = attribute(op, "comparison_direction").split()[-1].rstrip(">")
    if direction == "NE":
        return ~b.apply(ops.Compare(CompareDir.Eq), x, y)
    return b.apply(ops.Compare(CompareDir[direction.capitalize()]), x, y)


@row("select")
def _(b: Tracer, op: Any, pred: Value, on_true: Value, on_false: Value) -> Value:
    return select(pred if pred.ndim == on_true.ndim else spread(pred, static(on_true)), on_true, on_false)


@row("clamp")
def _(b: Tracer, op: Any, lower: Value, x: Value, upper: Value) -> Value:
    bounds = (v if v.ndim == x.ndim else spread(v, static(x)) for v in (lower, upper))
    return b.apply(ops.Clamp(), x, *bounds)


@row("convert")
def _(b: Tracer, op: Any, x: Value) -> Value:
    return x.astype(result_type(op).dtype)


@row("reduce_precision")
def _(b: Tracer, op: Any, x: Value) -> Value:
    info = np.finfo(x.dtype.value)
    if attribute(op, "exponent_bits") < info.nexp or attribute(op, "mantissa_bits") < info.nmant:
        raise refuse(op, f"the engine has no format narrower than {x.dtype}")
    return x


# --- arrays that the module brings along ------------------------------------------------------------------------------


@row("constant")
def _(b: Tracer, op: Any) -> Value:
    return b.array(dense(op, result_type(op)))


@row("iota")
def _(b: Tracer, op: Any) -> Value:
    shape, axis = result_shape(op), attribute(op, "iota_dimension")
    line = b.array(np.arange(shape[axis]).astype(result_type(op).dtype.numpy))
    return line if len(shape) == 1 else b.apply(ops.BroadcastInDim(shape, (axis,)), line)


# --- structural -------------------------------------------------------------------------------------------------------


@row("transpose")
def _(b: Tracer, op: Any, x: Value) -> Value:
    return b.transpose(x, axes_of(op, "permutation"))


@row("reshape")
def _(b: Tracer, op: Any, x: Value) -> Value:
    return row_major(b, x, result_shape(op))


@row("broadcast_in_dim")
def _(b: Tracer, op: Any, x: Value) -> Value:
    shape, dims = result_shape(op), axes_of(op, "broadcast_dimensions")
    return x if x.shape == shape and dims == tuple(range(x.ndim)) else b.apply(ops.BroadcastInDim(shape, dims), x)


@row("reverse")
def _(b: Tracer, op: Any, x: Value) -> Value:
    return b.apply(ops.Reverse(axes_of(op, "dimensions")), x)


@row("concatenate")
def _(b: Tracer, op: Any, *parts: Value) -> Value:
    return b.apply(ops.Concatenate(attribute(op, "dimension")), *parts)


@row("slice")
def _(b: Tracer, op: Any, x: Value) -> Value:
    return b.apply(ops.Slice(*(axes_of(op, name) for name in ("start_indices", "limit_indices", "strides"))), x)


@row("pad")
def _(b: Tracer, op: Any, x: Value, value: Value) -> Value:
    edges = (axes_of(op, name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding"))
    return windows.pad(b, x, value, *edges)
