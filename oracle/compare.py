"""Comparison of one executor's outputs with a reference: with enclosures, or bit for bit.

Lives here: which elements are wrong, which are decided, how far they are from the native answer, and all of that in words.
What an enclosure is, and what a verdict follows from, does not live here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.enclosure import Enclosure
from oracle.ulp import ordinals, spacing_at, steps, ulp_distance
from oracle.verdict import Comparison
from tenferro_ref.dtype import DType
from tenferro_ref.tensor import Array

#: Points of the accuracy plot that one comparison contributes.
SAMPLE = 8


def compare(
    reference: Sequence[Enclosure],
    strict: Sequence[Enclosure] | None,
    observed: Sequence[Array],
    native: Sequence[Array],
    *,
    brief: bool = False,
) -> Comparison:
    """Hold the outputs of an executor against enclosures.

    Parameters
    ----------
    reference
        One enclosure an output, under the executor's arithmetic model.
    strict
        The same under IEEE arithmetic: what is outside these and inside `reference` counts as forgiven.
    observed
        The executor's outputs; a wrong number, dtype or shape of them is a mismatch of all elements.
    native
        The native answer, from which ULP distances are counted.
    brief
        Where something is outside, say how much and nothing else.
    """
    elements = sum(e.lo.size for e in reference)
    if len(observed) != len(reference):
        return _misfit(elements, None, str(len(reference)), str(len(observed)), "outputs")
    for i, (e, o) in enumerate(zip(reference, observed, strict=True)):
        if o.dtype != e.dtype.numpy:
            return _misfit(elements, i, e.dtype.name, str(o.dtype), "dtype")
        if o.shape != e.shape:
            return _misfit(elements, i, str(list(e.shape)), str(list(o.shape)), "shape")
    insides = [e.contains(o) for e, o in zip(reference, observed, strict=True)]
    outside = elements - sum(int(np.count_nonzero(inside)) for inside in insides)
    if outside and brief:
        return Comparison(elements, outside=outside)
    decided, forgiven = sum(int(np.count_nonzero(e.decided)) for e in reference), 0
    first: tuple[int, tuple[int, ...]] | None = None
    worst: float | None = None
    points: list[_Points] = []
    for i, (e, o, n, inside) in enumerate(zip(reference, observed, native, insides, strict=True)):
        if outside and first is None and not inside.all():
            first = i, tuple(int(k) for k in np.argwhere(~inside)[0])
        if strict is not None:
            forgiven += int(np.count_nonzero(inside & ~strict[i].contains(o)))
        if (e.dtype.is_float or e.dtype.is_complex) and o.size and n.shape == o.shape and n.dtype == o.dtype:
            same = o.tobytes() == n.tobytes()
            distance = np.where(np.isfinite(o), 0.0, np.nan) if same else ulp_distance(o, n)
            known = ~np.isnan(distance)
            if known.any():
                worst = max(worst or 0.0, float(distance[known].max()))
                points.append(_Points(e, o.dtype, np.flatnonzero(known & _bounded(e)), distance))
    widths = _sample(points)
    if first is None:
        return Comparison(elements, decided, 0, forgiven, worst, widths=widths)
    i, index = first
    words = _words(reference[i], observed[i], index)
    return Comparison(elements, decided, outside, forgiven, worst, i, index, *words, widths)


def compare_stacked(
    reference: Sequence[Enclosure],
    strict: Sequence[Enclosure] | None,
    observed: Sequence[Sequence[Array]],
    native: Sequence[Sequence[Array]],
) -> list[Comparison | None]:
    """What `compare` says of each input set, all at once; None where it has to be asked: something is outside.

    Parameters
    ----------
    reference, strict
        One enclosure an output, with the sets along its last axis.
    observed, native
        For each set, one array an output. Points of the accuracy plot are those of the first set.
    """
    n = len(observed)
    fits = [
        len(outputs) == len(reference)
        and all(o.dtype == e.dtype.numpy and o.shape == e.shape[:-1] for e, o in zip(reference, outputs, strict=True))
        for outputs in observed
    ]
    if not all(fits):
        return [None] * n
    inside, decided, forgiven, elements = np.ones(n, bool), np.zeros(n, int), np.zeros(n, int), 0
    worst = np.full(n, np.nan)
    for i, e in enumerate(reference):
        axes = tuple(range(len(e.shape) - 1))
        elements += e.lo[..., 0].size
        o = np.stack([outputs[i] for outputs in observed], -1)
        within = e.contains(o)
        inside &= within.all(axes)
        if strict is not None:
            forgiven += np.count_nonzero(within & ~strict[i].contains(o), axes)
        decided += np.count_nonzero(e.decided, axes)
        if o.size and (e.dtype.is_float or e.dtype.is_complex):
            distance = ulp_distance(o, np.stack([outputs[i] for outputs in native], -1))
            worst = np.fmax(worst, np.fmax.reduce(distance.reshape(-1, n)))
    first = [e.map(lambda a: a[..., 0]) for e in reference] if inside[0] else []
    widths = compare(first, None, observed[0], native[0]).widths if first else ()

    def told(k: int) -> Comparison | None:
        ulp = None if np.isnan(worst[k]) else float(worst[k])
        counts = elements, int(decided[k]), 0, int(forgiven[k]), ulp
        return Comparison(*counts, widths=() if k else widths) if inside[k] else None

    return list(map(told, range(n)))


def _misfit(elements: int, output: int | None, expected: str, observed: str, what: str) -> Comparison:
    return Comparison(
        elements=elements,
        outside=max(elements, 1),
        worst_output=output,
        worst_index=None if output is None else (),
        observed=observed,
        expected=expected,
        value_class=f"{what} {expected}, got {observed}",
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """Elements of an output whose width and distance from native can be shown: their places in memory order."""

    enclosure: Enclosure
    dtype: np.dtype[Any]
    places: Array
    distance: Array


def _bounded(e: Enclosure) -> Array:
    """Where all bounds are finite."""
    return np.asarray(np.logical_and.reduce([np.isfinite(b) for p in e.parts for b in (p.lo, p.hi)]))


def _width(e: Enclosure, dtype: np.dtype[Any], places: Array) -> Array:
    """Width of the enclosure in ULPs of the dtype, at some bounded elements; NaN or infinite where it overflows.

    Of complex numbers the wider side, in ULPs of the largest modulus.
    """
    sides = [(p.lo.ravel()[places], p.hi.ravel()[places]) for p in e.parts]
    if e.imag is not None:
        with np.errstate(invalid="ignore", over="ignore"):
            width = np.maximum(*(hi - lo for lo, hi in sides))
            size = np.hypot(*(np.maximum(np.abs(lo), np.abs(hi)) for lo, hi in sides))
        return np.where(np.isfinite(size), width, np.nan) / spacing_at(np.where(np.isfinite(size), size, 1.0), dtype)
    return steps(*(ordinals(b.astype(dtype)) for b in sides[0]))


def _sample(points: Sequence[_Points]) -> tuple[tuple[float, float], ...]:
    """Evenly spaced elements: log2 of the width (a single value has half an ULP) and the distance from native."""
    ends = np.cumsum([p.places.size for p in points])
    if not points or not ends[-1]:
        return ()
    chosen = np.unique(np.linspace(0, ends[-1] - 1, SAMPLE).astype(int))
    sample: list[tuple[float, float]] = []
    for p, end in zip(points, ends, strict=True):
        places = p.places[chosen[(end - p.places.size <= chosen) & (chosen < end)] - (end - p.places.size)]
        width = _width(p.enclosure, p.dtype, places)
        logs, distance = np.log2(np.maximum(width, 0.5)), p.distance.ravel()[places]
        kept = np.isfinite(width)
        sample += zip(np.round(logs[kept], 3).tolist(), distance[kept].tolist(), strict=True)
    return tuple(sample)


# --- words ----------------------------------------------------------------------------------------------------------


def _words(e: Enclosure, o: Array, index: tuple[int, ...]) -> tuple[str, str, str]:
    """Observed, expected, and the class of the disagreement at one element."""
    value = o[index]
    if e.imag is not None:
        parts = zip(("real", "imaginary"), e.parts, (o.real, o.imag), strict=True)
        name, part, seen = next(p for p in parts if not p[1].contains(p[2])[index])
        return str(value), interval_words(e, index), f"{_words(part, seen, index)[2]} ({name} part)"
    lo, hi, nan = e.lo[index], e.hi[index], bool(e.nan[index])
    if not e.dtype.is_float:
        one = lo == hi
        if o.dtype == bool:
            expected = str(bool(lo)).lower() if one else "either"
            return str(bool(value)).lower(), expected, f"expected {expected}, got {str(bool(value)).lower()}"
        expected = str(int(lo)) if one else f"[{int(lo)}, {int(hi)}]"
        return str(int(value)), expected, "expected integer, got other integer"
    expected = interval_words(e, index)
    kind = _kind(float(value))
    if lo > hi:
        wanted = "NaN"
    elif lo == hi == 0:
        signs = [s for s, flag in (("+0", e.pos_zero[index]), ("-0", e.neg_zero[index])) if flag]
        wanted = signs[0] if len(signs) == 1 else "zero"
    elif lo == hi:
        wanted = _kind(float(lo))
    elif nan and not (np.isfinite(lo) and np.isfinite(hi)):
        wanted = "NaN or a range"
    elif not np.isfinite(hi) and not np.isfinite(lo):
        wanted = "a range"
    else:
        wanted = "finite" if np.isfinite(lo) and np.isfinite(hi) else "a half-line"
    if kind == wanted == "finite" or (wanted not in ("NaN", "inf", "-inf") and kind == "finite"):
        kind = "other finite"
    return str(value), expected, f"expected {wanted}, got {kind}"


def _kind(value: float) -> str:
    if value != value:
        return "NaN"
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "-0" if np.signbit(value) else "+0"
    return "finite"


def interval_words(e: Enclosure, index: tuple[int, ...]) -> str:
    """`NaN`, `2.5`, `-0`, `[1, 2] or NaN`; of complex numbers `(1) + ([2, 3]) i`."""
    if e.imag is not None:
        re, im = (interval_words(p, index) for p in e.parts)
        return f"({re}) + ({im}) i"
    lo, hi = float(e.lo[index]), float(e.hi[index])
    if lo > hi:
        return "NaN"

    def shown(v: float) -> str:
        return str(np.float32(v) if e.dtype is DType.F32 else v)

    pos, neg = bool(e.pos_zero[index]), bool(e.neg_zero[index])
    if lo == hi == 0:
        text = "+-0" if pos and neg else "-0" if neg else "+0"
    elif lo == hi:
        text = shown(lo)
    else:
        text = f"[{shown(lo)}, {shown(hi)}]"
        if lo <= 0 <= hi and pos != neg:
            text += " (no -0)" if pos else " (no +0)"
        elif lo <= 0 <= hi and not pos:
            text += " (no 0)"
    return text + (" or NaN" if e.nan[index] else "")


# --- bit for bit ----------------------------------------------------------------------------------------------------


def compare_bits(a: Sequence[Array], b: Sequence[Array]) -> Comparison:
    """Hold `b` against `a`, bit for bit; every element is decided.

    NaN payloads and signs of zero count.
    """
    elements = sum(x.size for x in a)
    if len(a) != len(b):
        return _misfit(elements, None, str(len(a)), str(len(b)), "outputs")
    outside = 0
    worst: float | None = None
    first: tuple[int, tuple[int, ...]] | None = None
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x.dtype != y.dtype:
            return _misfit(elements, i, str(x.dtype), str(y.dtype), "dtype")
        if x.shape != y.shape:
            return _misfit(elements, i, str(list(x.shape)), str(list(y.shape)), "shape")
        if x.tobytes() == y.tobytes():
            if x.dtype.kind == "f" and np.isfinite(x).any():
                worst = worst or 0.0
            continue
        differs = _other_bits(x, y)
        outside += int(np.count_nonzero(differs))
        if first is None:
            first = i, tuple(int(k) for k in np.argwhere(differs)[0])
        if x.dtype.kind == "f":
            distance = ulp_distance(x, y)
            known = distance[~np.isnan(distance)]
            if known.size:
                worst = max(worst or 0.0, float(known.max()))
    if first is None:
        return Comparison(elements, elements, worst_ulp=worst)
    i, index = first
    expected, observed = a[i][index], b[i][index]
    value_class = f"expected {_bit_kind(expected)}, got {_bit_kind(observed)}"
    if _bit_kind(expected) == _bit_kind(observed):
        value_class = f"expected {_bit_kind(expected)}, got other {_bit_kind(observed)}"
    return Comparison(elements, elements, outside, 0, worst, i, index, str(observed), str(expected), value_class)


def _other_bits(x: Array, y: Array) -> Array:
    size = x.dtype.itemsize
    rows = [np.ascontiguousarray(v).reshape(-1).view(np.uint8).reshape(-1, size) for v in (x, y)]
    return np.asarray((rows[0] != rows[1]).any(1).reshape(x.shape))


def _bit_kind(value: Any) -> str:
    if isinstance(value, np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, np.integer):
        return "integer"
    if isinstance(value, np.complexfloating):
        return "complex"
    return _kind(float(value))
