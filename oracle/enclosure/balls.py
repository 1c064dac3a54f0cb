"""Balls: complex numbers within a radius of a centre in the wide type, with which quotients and functions are enclosed.

An error is counted in units of the *modulus*, since no algorithm keeps a small part accurate beside a large one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from oracle.enclosure.formats import Array, Format
from oracle.enclosure.rule import Context
from oracle.enclosure.value import Enclosure, Interval, Rectangle, rectangle


def certainly_finite(x: Enclosure) -> Array:
    if x.number:
        return np.ones(x.shape, bool)
    return np.asarray(np.logical_and.reduce([(p.lo > -np.inf) & (p.hi < np.inf) & ~p.nan for p in x.parts]))


@dataclass(frozen=True, slots=True, eq=False)
class Ball:
    """Wide complex numbers within `rad` of `mid`, where `ok`."""

    mid: Array
    rad: Array
    ok: Array

    @property
    def size(self) -> Array:
        """Largest modulus."""
        return np.asarray(np.abs(self.mid) + self.rad)

    @property
    def least(self) -> Array:
        """Smallest modulus."""
        return np.asarray(np.maximum(np.abs(self.mid) - self.rad, 0))


def complex_of(re: Array, im: Array) -> Array:
    """Not `re + 1j * im`, which loses signs of zero."""
    shape = re.shape if re.shape == im.shape else np.broadcast_shapes(re.shape, im.shape)
    made: Array = np.empty(shape, np.result_type(re.dtype, np.complex64))
    made.real, made.imag = re, im
    return made


def ball(f: Format, x: Enclosure) -> Ball:
    """The ball around a rectangle; anything that may be infinite or NaN is not `ok`."""
    re, im = x.parts
    ok = certainly_finite(x)
    if x.number and re.is_point and im.is_point:
        return Ball(complex_of(re.lo.astype(f.wide), im.lo.astype(f.wide)), np.zeros(x.shape, f.wide), ok)
    ends = np.array((re.lo, re.hi, im.lo, im.hi))
    ends = (ends if x.number else np.where(ok, ends, 1.0)).astype(f.wide)
    mid = complex_of(ends[0] / 2 + ends[1] / 2, ends[2] / 2 + ends[3] / 2)
    rad = np.hypot(ends[1] - ends[0], ends[3] - ends[2]) / 2
    noise = 8 * f.wide_unit
    return Ball(mid, np.where(rad > 0, rad * (1 + noise) + noise * np.abs(mid), 0), ok)


def enclosed(
    c: Context, ulps: Array | float, *balls: Ball, limit: float = 4.0, exact: Array | None = None
) -> Rectangle:
    """The rectangle of results within `ulps` ULPs of the modulus of a number in one of the balls; anything elsewhere.

    `limit`: a modulus within this factor of the largest value may overflow on the way.
    """
    real = c.real
    f = real.format
    tiny = 4 * real.lost_below
    sizes = [b.size for b in balls]
    ok = reduce(np.logical_and, (b.ok & (size < f.max / limit) for b, size in zip(balls, sizes, strict=True)))
    errors = [
        b.rad + (ulps + f.slack) * f.ulp(np.where(ok, size, 1.0)) + tiny for b, size in zip(balls, sizes, strict=True)
    ]
    if exact is not None:
        errors = [np.where(exact, 0, e) for e in errors]
    every_ok = np.count_nonzero(ok) == ok.size
    centres = [np.array((b.mid.real, b.mid.imag)) for b in balls]
    if not every_ok:
        centres = [np.where(ok, m, 0) for m in centres]
    low = reduce(np.minimum, (m - e for m, e in zip(centres, errors, strict=True)))
    high = reduce(np.maximum, (m + e for m, e in zip(centres, errors, strict=True)))
    if not every_ok:
        low, high = np.where(ok, low, -np.inf), np.where(ok, high, np.inf)
    low, high = f.widened(low, high)
    every = np.ones(low.shape, bool)
    nan = ~every if every_ok else np.broadcast_to(~ok, low.shape)
    whole = real.build(low, high, nan, every, every)
    made: list[Interval] = [whole.map(lambda a, k=k: a[k, ...]) for k in (0, 1)]  # type: ignore[misc]
    if len(balls) == 1:
        return rectangle(*made)
    # of two balls that are apart in a part, what is between them is no result
    ends = [f.widened(m - e, m + e) for m, e in zip(centres, errors, strict=True)]
    below = reduce(np.minimum, (high for _, high in ends))
    above = reduce(np.maximum, (low for low, _ in ends))
    between = ok & (below < above)
    gaps = np.where(between, below, np.inf), np.where(between, above, -np.inf)
    return rectangle(*(replace(p, gap=(gaps[0][k], gaps[1][k])) for k, p in enumerate(made)))
