"""`ROWS`: what each op of StableHLO becomes, by its name without the dialect; and what rows share.

A row gets the operation (its attributes) and the values of its operands, and gives the values of its results. The rows are
in the sibling modules, each of which fills in its own when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tenferro_ref import ops
from tenferro_ref.ops import Op, TensorType
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader.bindings import attribute, tensor_type
from tenferro_ref.stablehlo.loader.tracer import Tracer

#: `row(tracer, operation, *operands) -> results`
Row = Callable[..., Sequence[Value]]
ROWS: dict[str, Row] = {}


def row(*names: str) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """The decorated function gives the one result of each op named."""

    def add(function: Callable[..., Value]) -> Callable[..., Value]:
        for name in names:
            ROWS[name] = lambda *given: (function(*given),)
        return function

    return add


def result_type(op: Any) -> TensorType:
    return tensor_type(op.operation.results[0].type, "result")


def result_shape(op: Any) -> tuple[int, ...]:
    return tuple(e for e in result_type(op).shape if isinstance(e, int))


def axes_of(op: Any, name: str) -> tuple[int, ...]:
    return tuple(attribute(op, name, ()))


#: What the bodies of reductions and scatters apply.
BODIES: dict[str, Op] = {
    "add": ops.Add(),
    "multiply": ops.Multiply(),
    "maximum": ops.Maximum(),
    "minimum": ops.Minimum(),
}


def row_major(b: Tracer, x: Value, shape: tuple[int, ...]) -> Value:
    """Column-major between reversed axes. The orders differ only where two extents other than 1 change."""
    proper = [tuple(e for e in s if e != 1) for s in (x.shape, shape)]
    if proper[0] == proper[1] or max(map(len, proper)) < 2 or prod(shape) == 0:
        return x if x.shape == shape else b.apply(ops.Reshape(shape), x)
    x = b.transpose(x, range(x.ndim)[::-1])
    if x.shape != shape[::-1]:
        x = b.apply(ops.Reshape(shape[::-1]), x)
    return b.transpose(x, range(len(shape))[::-1])
