"""Programs with what they may give, and whether their enclosures say the same; what such programs are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.case import Case
from oracle.enclosure import XLA, enclose
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import CompareDir
from tenferro_ref.program import Value
from tests.laws.cases import Array, Trace, apply, case_of, spread


@dataclass(frozen=True, eq=False)
class Freedom:
    """A program with one output, and what it may give.

    Attributes
    ----------
    may
        Results, each of the output's shape: all that there are but for `ulps`, in those of the largest of each element.
    zeros
        All zeros that there are, too.
    """

    about: str
    case: Case
    may: tuple[Array, ...]
    ulps: float
    zeros: bool


def freedom(
    about: str, trace: Trace, inputs: Sequence[Array], may: Sequence[Array], ulps: float = 0.0, *, zeros: bool = False
) -> Freedom:
    """As `Freedom`; `trace` makes the program from its inputs."""
    return Freedom(about, case_of(trace, *inputs), tuple(may), ulps, zeros)


def broken(free: Freedom) -> str:
    """Where the enclosure is not what the program may give, "" for nowhere."""
    (found,) = enclose(free.case.program, free.case.inputs, XLA)
    for result in free.may:
        if not found.contains(result).all():
            return f"{free.about}: {result} is left out of [{found.lo}, {found.hi}]"
    wide = np.stack(free.may).astype(np.float64)
    none, some = np.isnan(wide).all(axis=0), np.isnan(wide).any(axis=0)
    if np.any((found.nan & ~some) | (none & ~found.empty)):
        return f"{free.about}: NaN, or a number, that nothing gives"
    zero, minus = wide == 0, np.signbit(wide)
    if free.zeros and any(
        np.any(possible & ~given.any(axis=0))
        for possible, given in ((found.pos_zero, zero & ~minus), (found.neg_zero, zero & minus))
    ):
        return f"{free.about}: nothing gives a zero of one of the signs"
    with np.errstate(invalid="ignore", over="ignore"):
        slack = free.ulps * np.spacing(np.abs(wide).max(axis=0).astype(found.dtype.numpy)).astype(np.float64)
        outside = (found.lo < np.fmin.reduce(wide) - slack) | (found.hi > np.fmax.reduce(wide) + slack)
    return f"{free.about}: nothing gives the ends of [{found.lo}, {found.hi}]" if outside.any() else ""


# --- what the programs are made of ------------------------------------------------------------------------------------


def draw(kind: Any, seed: int, count: int = 24) -> Array:
    """Numbers of both signs between 1 and 2."""
    rng = np.random.default_rng(seed)
    return np.asarray((rng.uniform(1, 2, count) * rng.choice([-1, 1], count)).astype(kind))


def rows(*arrays: Array) -> Array:
    return np.asfortranarray(np.stack(arrays))


def grid(kind: Any, *values: float, axes: int) -> list[Array]:
    """Every value against every other."""
    line = np.array(values, kind)
    return [np.ascontiguousarray(a).ravel() for a in np.meshgrid(*[line] * axes)]


def const(x: Value, value: Any) -> Value:
    return x.builder.constant(value, DType.of(np.asarray(value)))


def times(a: Value, *factors: Any) -> Value:
    for factor in factors:
        a = apply(ops.Multiply(), a, factor if isinstance(factor, Value) else const(a, factor))
    return a


def over(a: Value, *divisors: Any) -> Value:
    for divisor in divisors:
        a = apply(ops.Divide(), a, divisor if isinstance(divisor, Value) else const(a, divisor))
    return a


def plus(made: Callable[..., Value]) -> Trace:
    """The last input is added to what is made of the others."""
    return lambda *v: apply(ops.Add(), made(*v[:-1]), v[-1])


def total(x: Value, axis: int = 0) -> Value:
    return apply(ops.ReduceSum((axis,)), x)


def contraction(x: Value, y: Value, *, batched: bool = False) -> Value:
    batch = (1,) if batched else ()
    return apply(ops.DotGeneral((0,), (0,), batch, batch), x, y)


def zero_above(x: Value, y: Value, other: Value) -> Value:
    """+0 where x is larger than y, else `other`."""
    zeros = apply(ops.BroadcastInDim(x.type.static_shape, ()), x.builder.constant(0, x.dtype))
    return apply(ops.Select(), apply(ops.Compare(ops.CompareDir.Gt), x, y), zeros, other)


def either(first: Value, second: Value) -> Value:
    """One of the two; which of them, no platform agrees on: an exponential is compared with its true value."""
    at = first.builder.constant(1.5, DType.F32)
    true = np.exp(np.longdouble(1.5))
    edge = np.float32(true)
    edge = edge if edge > true else np.nextafter(edge, np.float32(np.inf))
    smaller = apply(ops.Compare(CompareDir.Lt), apply(ops.Exp(), at), first.builder.constant(edge, DType.F32))
    return apply(ops.Select(), spread(smaller, *first.shape, dims=()), first, second)
