"""`DIFFERENCES`: where another implementation gives something else than the engine (SEMANTICS 7.5), each with an example.

Rounding, flushing and the order of a sum are inside the enclosures; here stands what gives another *kind* of value (NaN,
an infinity, a signed zero, zero for a subnormal), and what is outside its enclosure. A row that its example no longer shows
fails, and so does a difference without a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import COMPLEX, FLOAT, DType
from tenferro_ref.ops import Op

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Difference:
    """A declared difference.

    Attributes
    ----------
    ops
        None for every op.
    executors
        Who gives something else; `native` where an enclosure does not admit what the engine's rule gives.
    where
        `where(operands, native, other)`: the elements that it is about.
    example
        Op and operands that show it.
    """

    reason: str
    ops: tuple[type[Op], ...] | None
    dtypes: frozenset[DType]
    executors: tuple[str, ...]
    where: Callable[[Sequence[Array], Array, Array], Any]
    example: tuple[Op, tuple[Array, ...]]

    def concerns(self, op: Op, dtype: DType, executor: str) -> bool:
        return (self.ops is None or type(op) in self.ops) and dtype in self.dtypes and executor in self.executors


def _parts(x: Array) -> tuple[Array, ...]:
    return (x.real, x.imag) if np.iscomplexobj(x) else (x,)


def subnormal(x: Array) -> Array:
    """Elements with a subnormal part."""
    if x.dtype.kind not in "fc":
        return np.zeros(x.shape, bool)
    parts = _parts(x)
    return np.logical_or.reduce([(p != 0) & (np.abs(p) < np.finfo(p.dtype).smallest_normal) for p in parts])


def _flushed(operands: Sequence[Array], native: Array, other: Array) -> Array:
    beside = [subnormal(x) for x in operands if x.shape in ((), native.shape)]
    return reduce(np.logical_or, beside, subnormal(native))


def _both_zero(operands: Sequence[Array], native: Array, other: Array) -> Array:
    return (native == 0) & (other == 0)


def _close(eps: float) -> Callable[[Sequence[Array], Array, Array], Array]:
    """Apart by at most so many machine epsilons of 1."""

    def where(operands: Sequence[Array], native: Array, other: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.abs(other - native) <= eps * np.finfo(native.dtype).eps

    return where


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "XLA:CPU reads and writes subnormals as zeros of their sign",
        None, FLOAT | COMPLEX, ("jax",), _flushed, (ops.Multiply(), (np.array([1e-308]), np.array([0.5]))),
    ),
    Difference(
        "sign(-0) is +0 in the engine, -0 in StableHLO; the emitter makes up for it, jax.lax.sign does not",
        (ops.Sign,), FLOAT, ("jax",), _both_zero, (ops.Sign(), (np.array([-0.0]),)),
    ),
    Difference(
        "max(-0, +0) is the first operand in the engine, +0 in StableHLO",
        (ops.Maximum, ops.ReduceMax), FLOAT, ("interpreter", "jax"), _both_zero,
        (ops.Maximum(), (np.array([-0.0]), np.array([0.0]))),
    ),
    Difference(
        "min(+0, -0) is the first operand in the engine, -0 in StableHLO",
        (ops.Minimum, ops.ReduceMin), FLOAT, ("interpreter", "jax"), _both_zero, (ops.ReduceMin((0,)), (np.array([0.0, -0.0]),)),
    ),
    Difference(
        "a sum over one element is that element in XLA, 0 and the element in the engine",
        (ops.ReduceSum,), FLOAT, ("jax",), _both_zero, (ops.ReduceSum((0,)), (np.array([-0.0]),)),
    ),
    Difference(
        "clamp is built of those two",
        (ops.Clamp,), FLOAT, ("interpreter", "jax"), _both_zero,
        (ops.Clamp(), (np.array([-0.0]), np.array([-1.0]), np.array([0.0]))),
    ),
    Difference(
        "hypot(NaN, inf) is inf in C and in the engine, NaN in XLA",
        (ops.Abs,), COMPLEX, ("jax",), lambda operands, native, other: np.isinf(native) & np.isnan(other),
        (ops.Abs(), (np.array([complex(np.nan, np.inf)]),)),
    ),
    Difference(
        "the interpreter computes exp(z) - 1 and log(1 + z) as written",
        (ops.Expm1, ops.Log1p), COMPLEX, ("interpreter",), _close(8), (ops.Expm1(), (np.array([1e-9 + 1e-9j]),)),
    ),
    Difference(
        "finding 0052: where exp(x) overflows and 1 + (cos(y) - 1) is zero, the real part of expm1 is NaN in XLA",
        (ops.Expm1,), COMPLEX, ("jax",), lambda operands, native, other: np.isnan(other.real) & ~np.isnan(native.real),
        (ops.Expm1(), (np.array([1024 + 45.553093477052j]),)),
    ),
    Difference(
        "finding 0057: near multiples of 2 pi i, XLA computes the real part of expm1 as cos(y) - 1",
        (ops.Expm1,), COMPLEX, ("jax",), _close(8), (ops.Expm1(), (np.array([18.850555419921875j]),)),
    ),
    Difference(
        "finding 0002: log1p of doubles near -0.41 is off by up to 127 ULP in older builds of XLA:CPU",
        (ops.Log1p,), frozenset({DType.F64}), ("jax",), _close(128), (ops.Log1p(), (np.array([-0.41306354339189344]),)),
    ),
    Difference(
        "the real part of XLA:CPU's logarithm of complex doubles is off by 16 ULP of the modulus near |z|, or |1 + z|, = 0.78",
        (ops.Log, ops.Log1p), frozenset({DType.C64}), ("jax",), _close(64), (ops.Log(), (np.array([0.28121066979764925 + 0.722430872307499j]),)),
    ),
)  # fmt: skip
