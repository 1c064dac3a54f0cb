"""Comparisons element by element: what `oracle.compare` and `oracle.ulp` count, said a second time as plainly as possible."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from oracle.enclosure import Enclosure
from oracle.ulp import ulp_distance
from tenferro_ref.tensor import Array

#: More elements are not gone through one by one.
SLOW = 240


def _distance(x: Any, y: Any) -> float:
    """How many normal numbers and zeros lie between two numbers; NaN where one is not finite."""
    if x.dtype.kind == "c":
        return float(ulp_distance(x.reshape(1), y.reshape(1))[0])
    if not (math.isfinite(x) and math.isfinite(y)):
        return math.nan
    info = np.finfo(x.dtype)

    def place(v: Any) -> int:
        if abs(v) < info.smallest_normal:
            return 0
        mantissa, exponent = math.frexp(abs(float(v)))
        binade = int((exponent - info.minexp - 1) * 2**info.nmant)
        steps = 1 + binade + int((mantissa - 0.5) * 2 ** (info.nmant + 1))
        return -steps if v < 0 else steps

    return float(abs(place(x) - place(y)))


def distances() -> str:
    """Distances around the numbers where a way of counting them ends."""
    for dtype in (np.float32, np.float64):
        info = np.finfo(dtype)
        line = np.array(
            [0, info.smallest_subnormal, info.smallest_normal, info.smallest_normal * 2, 1, -info.max], dtype
        )
        for x, y in itertools.product(line, line):
            if _shown(float(ulp_distance(x.reshape(1), y.reshape(1))[0])) != _shown(_distance(x, y)):
                return f"{x} and {y} are {_distance(x, y)} apart"
    for x, y in ((3 + 4j, 3 + 4.5j), (1e-3j, 1e-3 + 0j), (1e300 + 0j, 1.5e300 + 1e299j)):
        if not math.isclose(ulp_distance(np.array([x]), np.array([y]))[0], abs(x - y) / math.ulp(max(abs(x), abs(y)))):
            return f"{x} and {y} are another number of ULPs apart"
    return ""


def _inside(e: Enclosure, value: Any, index: tuple[int, ...]) -> bool:
    if e.imag is not None:
        real, imag = e.parts
        return _inside(real, value.real, index) and _inside(imag, value.imag, index)
    if not e.dtype.is_float:
        return int(e.lo[index]) <= int(value) <= int(e.hi[index])
    if math.isnan(value):
        return bool(e.nan[index])
    if value == 0 and not (e.neg_zero if math.copysign(1, value) < 0 else e.pos_zero)[index]:
        return False
    return bool(e.lo[index] <= value <= e.hi[index])


def _decided(e: Enclosure, index: tuple[int, ...]) -> bool:
    if e.imag is not None:
        return all(_decided(part, index) for part in e.parts)
    lo, hi = e.lo[index], e.hi[index]
    if not e.dtype.is_float:
        return bool(lo == hi)
    return bool(lo > hi) if e.nan[index] else bool(lo == hi) or (math.isfinite(lo) and math.isfinite(hi))


def _misfit(wanted: Sequence[tuple[Any, Any]], got: Sequence[Array]) -> tuple[bool, int | None]:
    if len(wanted) != len(got):
        return True, None
    bad = (
        i for i, ((dtype, shape), a) in enumerate(zip(wanted, got, strict=True)) if (dtype, shape) != (a.dtype, a.shape)
    )
    found = next(bad, None)
    return found is not None, found


def facts(c: Any) -> tuple[object, ...]:
    return c.elements, c.decided, c.outside, c.forgiven, _shown(c.worst_ulp), c.worst_output, c.worst_index


def _shown(distance: float | None) -> str:
    """Distances are exact up to 2**53 only."""
    return f"{distance:.12g}" if distance is not None else ""


def by_element(
    enclosures: Sequence[Enclosure], strict: Sequence[Enclosure] | None, got: Sequence[Array], native: Sequence[Array]
) -> tuple[object, ...]:
    elements = sum(a.lo.size for a in enclosures)
    bad, output = _misfit([(e.dtype.numpy, e.shape) for e in enclosures], got)
    if bad:
        return elements, 0, max(elements, 1), 0, "", output, None if output is None else ()
    decided = outside = forgiven = 0
    worst: float | None = None
    first: tuple[object, object] = (None, None)
    for i, (e, a, n) in enumerate(zip(enclosures, got, native, strict=True)):
        for index in np.ndindex(a.shape):
            inside = _inside(e, a[index], index)
            decided += _decided(e, index)
            outside += not inside
            forgiven += inside and strict is not None and not _inside(strict[i], a[index], index)
            if not inside and first == (None, None):
                first = i, index
            if a.dtype.kind in "fc" and (n.shape, n.dtype) == (a.shape, a.dtype):
                away = _distance(a[index], n[index])
                worst = worst if math.isnan(away) else max(worst or 0.0, away)
    return elements, decided, outside, forgiven, _shown(worst), *first


def by_bits(native: Sequence[Array], got: Sequence[Array]) -> tuple[object, ...]:
    elements = sum(a.size for a in native)
    bad, output = _misfit([(a.dtype, a.shape) for a in native], got)
    if bad:
        return elements, 0, max(elements, 1), 0, "", output, None if output is None else ()
    outside, worst = 0, None
    first: tuple[object, object] = (None, None)
    for i, (a, b) in enumerate(zip(native, got, strict=True)):
        for index in np.ndindex(a.shape):
            other = a[index].tobytes() != b[index].tobytes()
            outside += other
            if other and first == (None, None):
                first = i, index
            if a.dtype.kind == "f":
                away = _distance(a[index], b[index])
                worst = worst if math.isnan(away) else max(worst or 0.0, away)
    return elements, elements, outside, 0, _shown(worst), *first


__all__ = ["SLOW", "by_bits", "by_element", "distances", "facts"]
