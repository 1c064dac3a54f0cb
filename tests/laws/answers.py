"""Answers made from right ones: wrong in one element or in form, or at the ends of what is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oracle.enclosure import Enclosure
from tests.laws.cases import Array

#: More elements are not gone through one by one.
SLOW = 240


def wrong_value(value: Any, kind: int) -> Any:
    """Another value: a number elsewhere, its negative, NaN or infinity for a number, a number for NaN; six kinds."""
    dtype = value.dtype.type
    if value.dtype.kind == "b":
        return not value
    if value.dtype.kind in "iu":
        return dtype(0 if value == np.iinfo(dtype).max else value + 1)
    if value.dtype.kind == "c":
        if kind % 2:
            return complex(value.real, wrong_value(value.imag, kind))
        return complex(wrong_value(value.real, kind), value.imag)
    if not np.isfinite(value):
        return dtype(1)
    with np.errstate(over="ignore"):
        near = dtype(value * dtype(1.01) + dtype(1))
    return (near, dtype(-value - dtype(0.5)), dtype(np.nan), dtype(np.inf), dtype(-np.inf), dtype(value - 1))[kind]


def wrong_elements(outputs: Sequence[Array], seed: int) -> tuple[Array, ...]:
    """One element of each output is wrong beyond any rounding."""
    changed = [a.copy("F") for a in outputs]
    for a in changed:
        if a.size:
            index = np.unravel_index(seed % a.size, a.shape)
            a[index] = wrong_value(a[index], seed // 7 % 6)
    return tuple(changed)


def wrong_forms(outputs: Sequence[Array]) -> list[tuple[Array, ...]]:
    """The outputs, but one in another dtype, one in another shape, one too many, one too few."""
    first, *rest = outputs
    other = np.zeros(first.shape, np.int32 if first.dtype != np.int32 else np.int64, order="F")
    return [(other, *rest), (first[np.newaxis], *rest), (*outputs, first), tuple(rest)]


def end(e: Enclosure, upper: bool) -> Array:
    """An end of each element: NaN where there is no number, a zero of a sign that is possible."""
    sides = []
    for part in e.parts:
        side = part.hi if upper else part.lo
        if part.dtype.is_float:
            zero = np.where(part.pos_zero, 0.0, np.where(part.neg_zero, -0.0, part.hi))
            side = np.where(part.empty, np.nan, np.where(side == 0, zero, side))
        sides.append(side)
    whole = np.empty(e.shape, e.dtype.numpy, order="F")
    for target, side in zip((whole.real, whole.imag) if len(sides) > 1 else (whole,), sides, strict=True):
        target[...] = side
    return whole
