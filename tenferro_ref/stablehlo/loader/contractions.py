"""The row of `dot_general`, and contractions whose result has another dtype than the operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.orders import either
from tenferro_ref.stablehlo.loader.tracer import ROWS, Tracer


@ROWS.row("dot_general")
def _(b: Tracer, op: Operation, lhs: Value, rhs: Value) -> Value:
    dims = op.fields("dot_dimension_numbers")
    lists = [
        tuple(dims.get(f"{side}_{role}_dimensions", ()))
        for role in ("contracting", "batching")
        for side in ("lhs", "rhs")
    ]
    product = in_dtype(b, op.result.dtype, lhs, rhs, lambda x, y: b.apply(ops.DotGeneral(*lists), x, y))
    batches = len(lists[2])
    frees = product.ndim - batches
    return b.transpose(product, [*range(frees, product.ndim), *range(frees)])


def in_dtype(b: Tracer, dtype: DType, lhs: Value, rhs: Value, contract: Callable[[Value, Value], Value]) -> Value:
    """What `contract` makes of both operands, in a dtype.

    StableHLO says of no dtype that products are computed in it. A wider one than that of the operands has all of their numbers; where
    it has not, XLA converts what comes out, IREE and the interpreter convert what goes in, and it is either.
    """
    converted = contract(lhs.astype(dtype), rhs.astype(dtype))
    if lhs.dtype is not rhs.dtype or _has_all(dtype, lhs.dtype):
        return converted
    return either(b, contract(lhs, rhs).astype(dtype), converted)


def _has_all(dtype: DType, of: DType) -> bool:
    """Whether numbers of another dtype stay what they are; integers wrap around before a sum as they do after it."""
    return of.bits < dtype.bits or (of.is_int and dtype.is_int) or np.can_cast(of.numpy, dtype.numpy)
