"""Comparisons said a second time, element by element and as plainly as possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from oracle.enclosure import Enclosure
from oracle.verdict import Comparison
from tenferro_ref.dtype import DType
from tests.laws.cases import Array

#: Elements, decided, outside, forgiven, largest distance, and the first element outside: its output and index.
Facts = tuple[object, ...]


def facts(c: Comparison) -> Facts:
    """What a comparison counted."""
    return c.elements, c.decided, c.outside, c.forgiven, _digits(c.worst_ulp), c.worst_output, c.worst_index


def _digits(distance: float | None) -> str:
    """Distances are exact up to 2**53 only."""
    return f"{distance:.12g}" if distance is not None else ""


def distance(x: Any, y: Any) -> float:
    """How many normal numbers and zeros lie between two numbers; NaN where one is not finite.

    Of complex numbers the modulus of the difference, in units of the larger one's last place.
    """
    if x.dtype.kind == "c":
        if not (np.isfinite(x) and np.isfinite(y)):
            return math.nan
        real = np.finfo(x.dtype)
        wide, other = np.clongdouble(x), np.clongdouble(y)
        size = min(max(abs(wide), abs(other), real.smallest_normal), np.longdouble(real.max) / 2)
        return float(abs(wide - other) / np.spacing(size.astype(real.dtype)))
    if not (math.isfinite(x) and math.isfinite(y)):
        return math.nan
    info = DType.of(x).finfo

    def place(v: Any) -> int:
        if abs(v) < info.smallest_normal:
            return 0
        mantissa, exponent = math.frexp(abs(float(v)))
        binade = int((exponent - info.minexp - 1) * 2**info.nmant)
        steps = 1 + binade + int((mantissa - 0.5) * 2 ** (info.nmant + 1))
        return -steps if v < 0 else steps

    return float(abs(place(x) - place(y)))


def _inside(e: Enclosure, value: Any, index: tuple[int, ...]) -> bool:
    if len(e.parts) > 1:
        real, imag = e.parts
        return _inside(real, value.real, index) and _inside(imag, value.imag, index)
    if not e.dtype.is_float:
        return int(e.lo[index]) <= int(value) <= int(e.hi[index])
    if math.isnan(value):
        return bool(e.nan[index])
    if value == 0 and not (e.neg_zero if math.copysign(1, value) < 0 else e.pos_zero)[index]:
        return False
    if e.gap is not None and e.gap[0][index] < value < e.gap[1][index]:
        return False
    return bool(e.lo[index] <= value <= e.hi[index])


def _decided(e: Enclosure, index: tuple[int, ...]) -> bool:
    if len(e.parts) > 1:
        return all(_decided(part, index) for part in e.parts)
    lo, hi = e.lo[index], e.hi[index]
    if not e.dtype.is_float:
        return bool(lo == hi)
    known = bool(lo == hi) or (e.gap is not None and bool(lo == e.gap[0][index]) and bool(hi == e.gap[1][index]))
    if e.nan[index]:
        return bool(lo > hi) or known
    return known or (math.isfinite(lo) and math.isfinite(hi))


def _misfit(types: Sequence[tuple[Any, Any]], got: Sequence[Array], elements: int) -> Facts | None:
    """What is counted where results are not as many, or of the dtypes and shapes, as they should be."""
    if len(types) != len(got):
        return elements, 0, max(elements, 1), 0, "", None, None
    for i, (due, a) in enumerate(zip(types, got, strict=True)):
        if due != (a.dtype, a.shape):
            return elements, 0, max(elements, 1), 0, "", i, ()
    return None


class _Count:
    """Elements outside and the first of them, and the largest distance."""

    def __init__(self) -> None:
        self.outside = 0
        self.worst: float | None = None
        self.first: tuple[object, object] = (None, None)

    def look(self, output: int, index: tuple[int, ...], wrong: bool, away: float) -> None:
        self.outside += wrong
        if wrong and self.first == (None, None):
            self.first = output, index
        self.worst = self.worst if math.isnan(away) else max(self.worst or 0.0, away)


def by_element(
    enclosures: Sequence[Enclosure], strict: Sequence[Enclosure] | None, got: Sequence[Array], native: Sequence[Array]
) -> Facts:
    """What holding results against enclosures gives; `strict` as in `oracle.compare`."""
    elements = sum(a.size for a in enclosures)
    if misfit := _misfit([(e.dtype.numpy, e.shape) for e in enclosures], got, elements):
        return misfit
    decided = forgiven = 0
    count = _Count()
    for i, (e, a, n) in enumerate(zip(enclosures, got, native, strict=True)):
        inexact = e.dtype.is_float or e.dtype.is_complex  # NumPy has another kind for BF16 than for F32
        alike = inexact and (n.shape, n.dtype) == (a.shape, a.dtype)
        for index in np.ndindex(a.shape):
            inside = _inside(e, a[index], index)
            decided += _decided(e, index)
            forgiven += inside and strict is not None and not _inside(strict[i], a[index], index)
            count.look(i, index, not inside, distance(a[index], n[index]) if alike else math.nan)
    return elements, decided, count.outside, forgiven, _digits(count.worst), *count.first


def by_bits(native: Sequence[Array], got: Sequence[Array]) -> Facts:
    """What holding results against native ones, bit for bit, gives."""
    elements = sum(a.size for a in native)
    if misfit := _misfit([(a.dtype, a.shape) for a in native], got, elements):
        return misfit
    count = _Count()
    for i, (a, b) in enumerate(zip(native, got, strict=True)):
        for index in np.ndindex(a.shape):
            away = distance(a[index], b[index]) if DType.of(a).is_float else math.nan
            count.look(i, index, a[index].tobytes() != b[index].tobytes(), away)
    return elements, elements, count.outside, 0, _digits(count.worst), *count.first
