"""Rows of operations that stand for several: normalisation of batches, and shapes given as values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import free_axes
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.composed import broadcast, full, iota, pad, static
from tenferro_ref.stablehlo.loader.tracer import ROWS, Tracer, numbers

# --- normalisation ----------------------------------------------------------------------------------------------------


def _along(b: Tracer, x: Value, shape: tuple[int, ...], axis: int) -> Value:
    return b.apply(ops.BroadcastInDim(shape, (axis,)), x)


def _epsilon(op: Operation, like: Value) -> Value:
    """The attribute, which is of F32 whatever the operands are."""
    return full(like, float(np.float32(str(op.raw.attributes["epsilon"]).split(" ")[0])))


@ROWS.row("batch_norm_inference")
def _(b: Tracer, op: Operation, x: Value, scale: Value, offset: Value, mean: Value, variance: Value) -> Value:
    return _normalised(b, op, x, scale, offset, mean, variance)


def _normalised(b: Tracer, op: Operation, x: Value, scale: Value, offset: Value, mean: Value, variance: Value) -> Value:
    axis, shape = op.attribute("feature_index"), static(x)
    scale, offset, mean, variance = (_along(b, v, shape, axis) for v in (scale, offset, mean, variance))
    deviation = b.apply(ops.Sqrt(), variance + _epsilon(op, variance))
    return scale * ((x + -mean) / deviation) + offset


def _moments(b: Tracer, op: Operation, x: Value) -> tuple[Value, Value]:
    """Mean and variance of each feature."""
    axis, shape = op.attribute("feature_index"), static(x)
    axes = free_axes(x.ndim, (axis,))
    sums = b.apply(ops.ReduceSum(axes), x)
    count = full(sums, float(np.prod([shape[a] for a in axes])))
    mean = sums / count
    centred = x + -_along(b, mean, shape, axis)
    return mean, b.apply(ops.ReduceSum(axes), centred * centred) / count


@ROWS.row("batch_norm_training")
def _(b: Tracer, op: Operation, x: Value, scale: Value, offset: Value) -> Sequence[Value]:
    mean, variance = _moments(b, op, x)
    return _normalised(b, op, x, scale, offset, mean, variance), mean, variance


@ROWS.row("batch_norm_grad")
def _(b: Tracer, op: Operation, x: Value, scale: Value, mean: Value, variance: Value, grad: Value) -> Sequence[Value]:
    """StableHLO's specification, term by term."""
    axis, shape = op.attribute("feature_index"), static(x)
    axes = free_axes(x.ndim, (axis,))
    count = full(x, float(np.prod([shape[a] for a in axes])))
    scale, mean, variance = (_along(b, v, shape, axis) for v in (scale, mean, variance))
    spread_out = variance + _epsilon(op, variance)
    centred = x + -mean
    product = b.apply(ops.ReduceSum(axes), grad * centred)
    grad_offset = b.apply(ops.ReduceSum(axes), grad)
    first = grad * count
    second = _along(b, grad_offset, shape, axis)
    third = _along(b, product, shape, axis) * centred / spread_out
    deviation = b.apply(ops.Sqrt(), spread_out)
    grad_x = scale / deviation / count * (first + -second + -third)
    inverse = b.apply(ops.Rsqrt(), spread_out)
    grad_scale = b.apply(ops.ReduceSum(axes), grad * centred * inverse)
    return grad_x, grad_scale, grad_offset


# --- shapes given as values -------------------------------------------------------------------------------------------


@ROWS.row("dynamic_reshape")
def _(b: Tracer, op: Operation, x: Value, shape: Value) -> Value:
    return b.reshape(x, numbers(b, op, shape))


@ROWS.row("dynamic_broadcast_in_dim")
def _(b: Tracer, op: Operation, x: Value, shape: Value) -> Value:
    return broadcast(x, numbers(b, op, shape), op.axes("broadcast_dimensions"))


@ROWS.row("dynamic_iota")
def _(b: Tracer, op: Operation, shape: Value) -> Value:
    return iota(b, numbers(b, op, shape), op.attribute("iota_dimension"), op.result.dtype)


@ROWS.row("dynamic_pad")
def _(b: Tracer, op: Operation, x: Value, value: Value, *edges: Value) -> Value:
    return pad(x, value, *(numbers(b, op, v) for v in edges))


@ROWS.row("real_dynamic_slice")
def _(b: Tracer, op: Operation, x: Value, *ends: Value) -> Value:
    return b.apply(ops.Slice(*(numbers(b, op, v) for v in ends)), x)


@ROWS.row("get_dimension_size")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    return b.constant(static(x)[op.attribute("dimension")], DType.I32)
