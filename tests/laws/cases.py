"""Programs for laws: written down as functions, or generated from a seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.generate import Config
from fuzz.generate.batches import generate
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import DEFAULT_POLICY, Policy
from tenferro_ref.program import GraphBuilder, Value

Array = np.ndarray[Any, Any]
Trace = Callable[..., Value | tuple[Value, ...]]
#: Laws that go through elements one by one.
SMALL = Config(max_instructions=8, max_elements=200, usual_elements=40, symbolic=0)


def case_of(
    trace: Trace,
    *inputs: object,
    shapes: tuple[tuple[int | str, ...], ...] | None = None,
    policy: Policy = DEFAULT_POLICY,
) -> Case:
    """The program that `trace` builds from its inputs, which are symbolic where `shapes` says so."""
    arrays = [np.asarray(x) for x in inputs]
    b = GraphBuilder(policy=policy)
    of = [a.shape for a in arrays] if shapes is None else shapes
    outputs = trace(*(b.input(DType.of(a), shape) for a, shape in zip(arrays, of, strict=True)))
    return Case.of(b.build(*(outputs if isinstance(outputs, tuple) else (outputs,))), arrays)


def apply(op: Any, *operands: Value) -> Value:
    """One instruction."""
    return operands[0].builder.apply(op, *operands)


def spread(x: Value, *shape: Any, dims: tuple[int, ...]) -> Value:
    return apply(ops.BroadcastInDim(shape, dims), x)


def numbers(*shape: int) -> Array:
    """Numbers of many magnitudes, so that the order of a sum shows."""
    return np.asarray(np.tan(np.arange(1, math.prod(shape) + 1) * 1.3)).reshape(shape)


def generated(seed: int, count: int, config: Config = SMALL) -> list[Case]:
    """Programs of a seed, sixteen a batch, so that they are of many kinds."""
    batches = range(-(-count // 16))
    return [case for batch in batches for case in generate(seed, batch, min(16, count - 16 * batch), config)]


def same(a: Array, b: Array) -> bool:
    """The same dtype, shape and bits."""
    return (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes("C") == b.tobytes("C")
