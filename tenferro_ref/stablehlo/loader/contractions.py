"""The row of `dot_general`, and contractions whose result has another dtype than the operands."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader.bindings import Operation, element_type
from tenferro_ref.stablehlo.loader.orders import either
from tenferro_ref.stablehlo.loader.tracer import ROWS, Tracer

#: Bits of the exponent, and of the fraction, of the format that NVIDIA's tensor cores read F32 in.
_TF32 = (8, 10)


@ROWS.row("dot_general")
def _(b: Tracer, op: Operation, lhs: Value, rhs: Value) -> Value:
    dims = op.fields("dot_dimension_numbers")
    lists = [
        tuple(dims.get(f"{side}_{role}_dimensions", ()))
        for role in ("contracting", "batching")
        for side in ("lhs", "rhs")
    ]

    def contract(x: Value, y: Value) -> Value:
        return b.apply(ops.DotGeneral(*lists), x, y)

    product = in_dtype(b, op.result.dtype, lhs, rhs, contract)
    if "algorithm" in op.raw.attributes:
        product = either(b, product, _by_algorithm(b, op, lhs, rhs, contract))
    batches = len(lists[2])
    frees = product.ndim - batches
    return b.transpose(product, [*range(frees, product.ndim), *range(frees)])


def _by_algorithm(b: Tracer, op: Operation, lhs: Value, rhs: Value, contract: Callable[[Value, Value], Value]) -> Value:
    """The contraction as `algorithm` has it: operands rounded to their precision types, products and sums in the accumulation type.

    Raises
    ------
    UnsupportedOp
        Operands in several components, of which more than one product is made.
    UnsupportedDType
        A type that the engine does not have.
    """
    entries = dict(re.findall(r"(\w+) = (\w+)", str(op.raw.attributes["algorithm"])))
    if any(entries[name] != "1" for name in ("lhs_component_count", "rhs_component_count", "num_primitive_operations")):
        raise op.refusal("algorithms that split their operands into components are not read")
    sums = element_type(entries["accumulation_type"], "accumulation_type")
    operands = []
    for side, x in (("lhs", lhs), ("rhs", rhs)):
        name = f"{side}_precision_type"
        if entries[name] == "tf32":
            rounded = b.apply(ops.ReducePrecision(*_TF32), x)
        else:
            rounded = x.astype(element_type(entries[name], name))
        operands.append(rounded.astype(sums))
    return contract(*operands).astype(op.result.dtype)


def in_dtype(b: Tracer, dtype: DType, lhs: Value, rhs: Value, contract: Callable[[Value, Value], Value]) -> Value:
    """The contraction of both operands, with a result of this dtype.

    StableHLO does not say in which dtype products and sums are computed. If the result's dtype has all numbers of the operands',
    operands are converted to it first. Otherwise XLA converts the result, IREE and the interpreter convert the operands: it is either.
    """
    converted = contract(lhs.astype(dtype), rhs.astype(dtype))
    if lhs.dtype is not rhs.dtype or _has_all(dtype, lhs.dtype):
        return converted
    return either(b, contract(lhs, rhs).astype(dtype), converted)


def _has_all(dtype: DType, of: DType) -> bool:
    """Whether numbers of another dtype stay what they are; integers wrap around before a sum as they do after it."""
    return of.bits < dtype.bits or (of.is_int and dtype.is_int) or np.can_cast(of.numpy, dtype.numpy)
