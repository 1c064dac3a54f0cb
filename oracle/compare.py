"""Comparison of an executor's outputs with enclosures, or with the native answer bit for bit.

Here is counted which elements are wrong, which are decided, and how far they are from the native answer, and the first wrong
one is put in words. What an enclosure is, and what a verdict follows from, does not live here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, islice
from typing import Any

import numpy as np

from oracle.case import in_parts
from oracle.enclosure import Enclosure, Interval, joined, of_set, some_sets
from oracle.ulp import ordinals, spacing_at, steps, ulp_distance
from oracle.verdict import Comparison
from tenferro_ref.dtype import DType
from tenferro_ref.tensor import Array

#: Points of the accuracy plot that one comparison contributes.
SAMPLE = 8


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """The outputs that an executor gave for the input sets of a program, and what they are held to.

    Attributes
    ----------
    enclosures
        One an output, under the executor's arithmetic model; the last axis is that of the input sets.
    strict
        The same under IEEE arithmetic, or None: what is outside these and inside `enclosures` counts as forgiven.
    observed
        The outputs, of each input set.
    native
        The native answers, from which distances are counted, likewise.
    """

    enclosures: Sequence[Enclosure]
    strict: Sequence[Enclosure] | None
    observed: Sequence[Sequence[Array]]
    native: Sequence[Sequence[Array]]

    def size(self) -> int:
        """Elements of all outputs and input sets."""
        return sum(e.size for e in self.enclosures)

    def misfit(self, place: int) -> Comparison | None:
        """A wrong number, dtype or shape of the outputs of one input set: a mismatch of all elements."""
        outputs, elements = self.observed[place], self.size() // len(self.observed)
        if len(outputs) != len(self.enclosures):
            return _misfit(elements, None, str(len(self.enclosures)), str(len(outputs)), "number of outputs")
        for i, (e, o) in enumerate(zip(self.enclosures, outputs, strict=True)):
            if o.dtype != e.dtype.numpy:
                return _misfit(elements, i, e.dtype.name, _dtype_words(o), "dtype")
            if o.shape != e.shape[:-1]:
                return _misfit(elements, i, str(list(e.shape[:-1])), str(list(o.shape)), "shape")
        return None

    def of(self, places: Sequence[int]) -> Observation:
        """The observation of some of the input sets."""
        strict = None if self.strict is None else [some_sets(e, places) for e in self.strict]
        observed, native = ([outputs[place] for place in places] for outputs in (self.observed, self.native))
        return Observation([some_sets(e, places) for e in self.enclosures], strict, observed, native)

    def pieces(self, first: int) -> Iterator[_Piece]:
        """The outputs that have elements; the input sets are numbered from `first`."""
        count = len(self.observed)
        for i, e in enumerate(self.enclosures):
            if e.size:
                sets = np.tile(np.arange(first, first + count), e.size // count)
                strict = None if self.strict is None else self.strict[i]
                o, n = ([outputs[i] for outputs in many] for many in (self.observed, self.native))
                same = all(a is b for a, b in zip(o, n, strict=True))
                yield _Piece(e, strict, np.stack(o, -1).ravel(), None if same else _beside(o, n), sets)

    def explained(self, place: int, comparison: Comparison) -> Comparison:
        """The comparison of one input set with its first wrong element, if there is one, in words."""
        if not comparison.outside:
            return comparison
        held = [(of_set(e, place), o) for e, o in zip(self.enclosures, self.observed[place], strict=True)]
        i, outside = next((i, ~inside) for i, (e, o) in enumerate(held) if not (inside := e.contains(o)).all())
        index = tuple(int(k) for k in np.argwhere(outside)[0])
        seen, expected, value_class = _words(*held[i], index)
        return replace(
            comparison, worst_output=i, worst_index=index, observed=seen, expected=expected, value_class=value_class
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """An output of all input sets, in a line, and of which set each element is; `native` is None where it is the same."""

    enclosure: Enclosure
    strict: Enclosure | None
    observed: Array
    native: Array | None
    sets: Array


def _beside(observed: Sequence[Array], native: Sequence[Array]) -> Array:
    """Native answers in a line; NaN, from which nothing is at a known distance, for one of another form."""
    fitting = [
        n
        if (n.shape, n.dtype) == (o.shape, o.dtype)
        else np.full_like(o, 0 if DType.of(o).kind in ("bool", "int", "uint") else np.nan)
        for o, n in zip(observed, native, strict=True)
    ]
    return np.stack(fitting, -1).ravel()


def compare(
    enclosures: Sequence[Enclosure],
    strict: Sequence[Enclosure] | None,
    observed: Sequence[Array],
    native: Sequence[Array],
) -> Comparison:
    """Hold the outputs of one input set to enclosures without an axis of the sets (see `Observation`)."""
    own, finer = ([e.map(lambda a: a[..., np.newaxis]) for e in model or ()] for model in (enclosures, strict))
    ((comparison,),) = compare_sets([Observation(own, finer if strict else None, [observed], [native])])
    return comparison


def compare_sets(observations: Sequence[Observation]) -> list[list[Comparison]]:
    """The comparison of each input set of each program.

    Points of the accuracy plot are those of a program's first set, and of sets with something wrong.
    """
    results: list[list[Comparison | None]] = [[o.misfit(i) for i in range(len(o.observed))] for o in observations]
    fitting = [(n, [i for i, misfit in enumerate(sets) if misfit is None]) for n, sets in enumerate(results)]
    left = [(n, places, observations[n].of(places)) for n, places in fitting if places]
    for part in in_parts(left, lambda entry: entry[2].size()):
        with np.errstate(all="ignore"):  # a signaling NaN among them is no fault of this program
            counted = iter(_counted([o for _, _, o in part]))
            for n, places, o in part:
                for k, place in enumerate(places):
                    results[n][place] = o.explained(k, next(counted))
    return [[c for c in sets if c is not None] for sets in results]


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """All elements of one dtype.

    Attributes
    ----------
    sets
        Of which input set each element is.
    distance
        ULPs from the native answer.
    bounded
        Whether the accuracy plot can show it: bounds are finite, and the distance is known.
    """

    enclosure: Enclosure
    dtype: np.dtype[Any]
    sets: Array
    distance: Array
    bounded: Array


def _counted(observations: Sequence[Observation]) -> list[Comparison]:
    """The counts for each input set of programs whose outputs fit."""
    *firsts, n = accumulate((len(o.observed) for o in observations), initial=0)
    pieces: dict[DType, list[_Piece]] = {dtype: [] for dtype in DType}  # in one order, whatever is compared at once
    for o, first in zip(observations, firsts, strict=True):
        for piece in o.pieces(first):
            pieces[piece.enclosure.dtype].append(piece)
    counts, worst = np.zeros((5, n), np.int64), np.full(n, np.nan)
    lines: list[_Line] = []
    for dtype, same in pieces.items():
        if not same:
            continue
        e = joined([p.enclosure for p in same])
        seen = np.concatenate([p.observed for p in same])
        sets = np.concatenate([p.sets for p in same])
        inside = e.contains(seen)
        finer = [p.strict for p in same if p.strict is not None]
        forgiven = inside & ~joined(finer).contains(seen) if finer else np.zeros(seen.shape, bool)
        counts += [
            np.bincount(sets[mask], minlength=n) for mask in (slice(None), e.decided, ~inside, forgiven, e.tight)
        ]
        if dtype.is_float or dtype.is_complex:
            if all(p.native is None for p in same):
                distance = np.where(np.isfinite(seen), 0.0, np.nan)
            else:
                native = np.concatenate([p.observed if p.native is None else p.native for p in same])
                distance = ulp_distance(seen, native)
            np.fmax.at(worst, sets, distance)
            lines.append(_Line(e, seen.dtype, sets, distance, ~np.isnan(distance) & _bounded(e)))
    plotted = counts[2] > 0
    plotted[firsts] = True
    return [
        Comparison(elements, decided, outside, forgiven, None if np.isnan(ulp) else ulp, widths=points, tight=tight)
        for (elements, decided, outside, forgiven, tight), ulp, points in zip(
            counts.T.tolist(), worst.tolist(), _sample(lines, plotted), strict=True
        )
    ]


def _dtype_words(array: Array) -> str:
    """Our name of its dtype, or NumPy's."""
    try:
        return DType.of(array).name
    except KeyError:
        return str(array.dtype)


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


def _bounded(e: Enclosure) -> Array:
    """Where all bounds are finite."""
    return np.asarray(np.logical_and.reduce([np.isfinite(b) for p in e.parts for b in (p.lo, p.hi)]))


def _width(e: Enclosure, dtype: np.dtype[Any], places: Array) -> Array:
    """Width of the enclosure in ULPs of the dtype, at some bounded elements; NaN or infinite where it overflows.

    Of complex numbers the wider side, in ULPs of the largest modulus.
    """
    sides = [(p.lo.ravel()[places], p.hi.ravel()[places]) for p in e.parts]
    if len(sides) == 2:
        with np.errstate(invalid="ignore", over="ignore"):
            width = np.maximum(*(hi - lo for lo, hi in sides))
            size = np.hypot(*(np.maximum(np.abs(lo), np.abs(hi)) for lo, hi in sides))
        return np.where(np.isfinite(size), width, np.nan) / spacing_at(np.where(np.isfinite(size), size, 1.0), dtype)
    return steps(*(ordinals(b.astype(dtype)) for b in sides[0]))


def _sample(lines: Sequence[_Line], plotted: Array) -> list[tuple[tuple[float, float], ...]]:
    """Evenly spaced elements of each input set that is `plotted`: log2 of the width (half an ULP for a single value), distance."""
    shown = [np.flatnonzero(line.bounded & plotted[line.sets]) for line in lines]
    sets = np.concatenate([np.zeros(0, np.int64), *(line.sets[at] for line, at in zip(lines, shown, strict=True))])
    order = np.argsort(sets, kind="stable")
    counts = np.bincount(sets, minlength=plotted.size)
    places = [begin + _spread(count) for begin, count in zip(np.cumsum(counts) - counts, counts.tolist(), strict=True)]
    chosen = order[np.concatenate(places)]
    logs, distance = np.empty((2, chosen.size))
    end = 0
    for line, all_shown in zip(lines, shown, strict=True):
        here = (end <= chosen) & (chosen < end + all_shown.size)
        at = all_shown[chosen[here] - end]
        logs[here] = np.round(np.log2(np.maximum(_width(line.enclosure, line.dtype, at), 0.5)), 3)
        distance[here] = line.distance[at]
        end += all_shown.size
    points = zip(np.isfinite(logs).tolist(), zip(logs.tolist(), distance.tolist(), strict=True), strict=True)
    return [tuple(point for kept, point in islice(points, p.size) if kept) for p in places]


@lru_cache(4096)
def _spread(count: int) -> Array:
    """Up to `SAMPLE` of so many, evenly spaced."""
    return np.unique(np.linspace(0, count - 1, SAMPLE).astype(np.int64)) if count else np.zeros(0, np.int64)


# --- words ----------------------------------------------------------------------------------------------------------


def _words(e: Enclosure, o: Array, index: tuple[int, ...]) -> tuple[str, str, str]:
    """Observed, expected, and the class of the disagreement at one element."""
    value = o[index]
    if not isinstance(e, Interval):
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
    elif _one_side_is_a_value(e, index):
        wanted = "either of two"
    elif nan and not (np.isfinite(lo) and np.isfinite(hi)):
        wanted = "NaN or a range"
    elif not np.isfinite(hi) and not np.isfinite(lo):
        wanted = "a range"
    else:
        wanted = "finite" if np.isfinite(lo) and np.isfinite(hi) else "a half-line"
    if kind == wanted == "finite" or (wanted not in ("NaN", "inf", "-inf") and kind == "finite"):
        kind = "other finite"
    return str(value), expected, f"expected {wanted}, got {kind}"


def _one_side_is_a_value(e: Interval, index: tuple[int, ...]) -> bool:
    """A number, or one on the other side of a gap: that of a flushed operand or of the operand itself, for instance."""
    if e.gap is None or e.nan[index]:
        return False
    below, above = (float(end[index]) for end in e.gap)
    return bool(below < above and (e.lo[index] == below or e.hi[index] == above))


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
    if not isinstance(e, Interval):
        re, im = (interval_words(p, index) for p in e.parts)
        return f"({re}) + ({im}) i"
    lo, hi = float(e.lo[index]), float(e.hi[index])
    if lo > hi:
        return "NaN"

    def shown(v: float) -> str:
        return str(v if e.dtype is DType.F64 else np.float64(v).astype(e.dtype.numpy))

    pos, neg = bool(e.pos_zero[index]), bool(e.neg_zero[index])
    if lo == hi == 0:
        text = "+-0" if pos and neg else "-0" if neg else "+0"
    elif lo == hi:
        text = shown(lo)
    else:
        text = f"[{shown(lo)}, {shown(hi)}]"
        below, above = (0.0, 0.0) if e.gap is None else (g[index] for g in e.gap)
        if below < above:
            pieces = (shown(a) if a == b else f"[{shown(a)}, {shown(b)}]" for a, b in ((lo, below), (above, hi)))
            text = " or ".join(pieces)
        if lo <= 0 <= hi and pos != neg:
            text += " (no -0)" if pos else " (no +0)"
        elif lo <= 0 <= hi and not pos and not below < 0 < above:
            text += " (no 0)"
    return text + (" or NaN" if e.nan[index] else "")


# --- bit for bit ----------------------------------------------------------------------------------------------------


def compare_bits(a: Sequence[Array], b: Sequence[Array]) -> Comparison:
    """Hold `b` against `a`, bit for bit; every element is decided.

    NaN payloads and signs of zero count.
    """
    elements = sum(x.size for x in a)
    if len(a) != len(b):
        return _misfit(elements, None, str(len(a)), str(len(b)), "number of outputs")
    outside = 0
    worst: float | None = None
    first: tuple[int, tuple[int, ...]] | None = None
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x.dtype != y.dtype:
            return _misfit(elements, i, _dtype_words(x), _dtype_words(y), "dtype")
        if x.shape != y.shape:
            return _misfit(elements, i, str(list(x.shape)), str(list(y.shape)), "shape")
        if x.tobytes() == y.tobytes():
            if DType.of(x).is_float and np.isfinite(x).any():
                worst = worst or 0.0
            continue
        differs = _other_bits(x, y)
        outside += int(np.count_nonzero(differs))
        if first is None:
            first = i, tuple(int(k) for k in np.argwhere(differs)[0])
        if DType.of(x).is_float:
            distance = ulp_distance(x, y)
            known = distance[~np.isnan(distance)]
            if known.size:
                worst = max(worst or 0.0, float(known.max()))
    if first is None:
        return Comparison(elements, elements, worst_ulp=worst, tight=elements)
    i, index = first
    expected, observed = a[i][index], b[i][index]
    value_class = f"expected {_bit_kind(expected)}, got {_bit_kind(observed)}"
    if _bit_kind(expected) == _bit_kind(observed):
        value_class = f"expected {_bit_kind(expected)}, got other {_bit_kind(observed)}"
    return Comparison(
        elements, elements, outside, 0, worst, i, index, str(observed), str(expected), value_class, tight=elements
    )


def _other_bits(x: Array, y: Array) -> Array:
    size = x.dtype.itemsize
    rows = [np.ascontiguousarray(v).reshape(-1).view(np.uint8).reshape(-1, size) for v in (x, y)]
    return np.asarray((rows[0] != rows[1]).any(1).reshape(x.shape))


def _bit_kind(value: Any) -> str:
    if isinstance(value, np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, np.complexfloating):
        return "complex"
    if DType.of(np.asarray(value)).is_int:
        return "integer"
    return _kind(float(value))
