"""The step that makes numbers simpler: zeros, ones, small integers, few significant bits in inputs and constants.

`weights` defines which numbers are simpler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.findings.reduce.search import Search
from fuzz.findings.reduce.weights import numbers, weight, with_numbers
from tenferro_ref.tensor import Array

Simplify = Callable[[Array], Array]

#: Failed attempts of one rule on one array before the rule is given up: an array of which every element matters would take
#: the whole budget.
_FAILURES = 48


def _constant(value: float) -> Simplify:
    return lambda x: np.full(x.shape, value).astype(x.dtype)


def _floats_only(rule: Simplify) -> Simplify:
    return lambda x: rule(x) if x.dtype.kind == "f" else x


def _magnitude(x: Array) -> Array:
    return np.abs(x) if x.dtype.kind in "fi" else x


def _bits(count: int) -> Simplify:
    """Only the leading bits of the magnitude."""

    def rule(x: Array) -> Array:
        mantissa, exponent = np.frexp(x.astype(np.float64))
        return np.asarray(np.ldexp(np.trunc(mantissa * 2.0**count) * 2.0**-count, exponent))

    return rule


def _half_exponent(x: Array) -> Array:
    """Half the distance of the exponent from that of 1."""
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(mantissa, 1 + np.trunc((exponent - 1) / 2).astype(exponent.dtype)))


def _nearer_exponent(x: Array) -> Array:
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(mantissa, exponent - np.sign(exponent - 1)))


def _halved(x: Any) -> Array:
    """An integer half as large, rounded towards zero through a float, which changes low bits of large ones."""
    return np.asarray(np.trunc(x / 2)) if x.dtype.kind == "i" else x


def _usual_nan(x: Array) -> Array:
    return np.where(np.isnan(x), np.array(np.nan, x.dtype), x)


#: In the order in which they are tried.
RULES: tuple[tuple[str, Simplify], ...] = (
    ("zeros", _constant(0.0)),
    ("ones", _constant(1.0)),
    ("twos", _constant(2.0)),
    ("minus ones", _constant(-1.0)),
    ("halves", _constant(0.5)),
    ("magnitudes", _magnitude),
    ("integers", _floats_only(np.trunc)),
    ("1 bit", _bits(1)),
    ("2 bits", _bits(2)),
    ("4 bits", _bits(4)),
    ("11 bits", _bits(11)),
    ("24 bits", _bits(24)),
    ("exponents halved", _floats_only(_half_exponent)),
    ("exponents nearer 0", _floats_only(_nearer_exponent)),
    ("integers halved", _halved),
    ("usual NaN", _floats_only(_usual_nan)),
)


def simplify_values(search: Search) -> None:
    """Apply each rule to everything at once, then to each array, then to parts of it by bisection."""
    for name, rule in RULES:
        simple = [_apply(rule, part) for part in numbers(search.case)]
        if search.attempt(with_numbers(search.case, simple), f"values: {name}"):
            continue
        for i in range(len(numbers(search.case))):
            _bisect(search, i, name, rule)


def _apply(rule: Simplify, part: Array) -> Array:
    """`part` with the rule applied where that makes an element simpler."""
    with np.errstate(all="ignore"):
        simple = rule(part).astype(part.dtype)
    return np.where(weight(simple) < weight(part), simple, part)


def _bisect(search: Search, i: int, name: str, rule: Simplify) -> None:
    before = numbers(search.case)
    if i >= len(before):  # an accepted step may have pruned an input
        return
    simple = _apply(rule, before[i])
    changed = np.flatnonzero(weight(simple) < weight(before[i]))
    pending, failures = ([changed] if len(changed) else []), 0
    while pending and failures < _FAILURES:
        chosen = pending.pop(0)
        parts = numbers(search.case)
        parts[i] = parts[i].copy()
        parts[i][chosen] = simple[chosen]
        if not search.attempt(with_numbers(search.case, parts), f"values: {name}"):
            failures += 1
            if len(chosen) > 1:
                half = len(chosen) // 2
                pending += [chosen[:half], chosen[half:]]
