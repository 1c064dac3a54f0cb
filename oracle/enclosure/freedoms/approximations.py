"""Approximations: a quotient or a square root in F32 may come of an instruction that is faster than a correctly rounded one.

NVIDIA's `div.full.f32` is at most 2 ULP off, and `sqrt.approx.f32` at most 2^-23 of the result (PTX ISA, floating point instructions).
Measured of XLA on an H100 (jax-cuda13-pjrt 0.11.2, docs/measurements/gpu.md): 1.65 and 0.90 ULP; in F64 both are correctly rounded.
Narrow floats are computed in F32 and rounded.

*Bound.* ULPS of the rounded value, and never over zero. A complex quotient is made of Smith's r and one division for each part, each off by 3 units of
rounding more than `QUOTIENT` counts: those of r go into the denominator, at most half of them, and into the numerator, `sqrt(1/2)`; those
of the last division come whole. Together `UNITS`.
"""

from __future__ import annotations

import numpy as np

from oracle.enclosure.bounds import Bounds
from oracle.enclosure.formats import FORMATS, Array
from oracle.enclosure.rule import Context
from tenferro_ref.dtype import DType

#: How far a quotient or root in F32 may be from the one that is rounded once.
ULPS = 2.0
#: Units of rounding that a complex quotient is off besides.
UNITS = 3 * (0.5 + 0.5**0.5 + 1)


def granted(c: Context) -> bool:
    """Whether quotients and roots of this format may be approximated."""
    return c.model.approximate and c.dtype is not DType.F64


def units_of_one(c: Context) -> float:
    """Units of rounding of this format that one quotient or root in a chain of them may be off besides its rounding.

    An ULP of F32 is at most two units of F32; those of narrow formats are longer.
    """
    return 2 * ULPS * FORMATS[DType.F32].unit / c.format.unit if granted(c) else 0.0


def within(c: Context, low: Array, high: Array, exact: Bounds) -> Bounds:
    """Bounds of a rounded quotient or root, given those of it rounded once, and the exact ones, which are rounded to F32 first."""
    if not granted(c):
        return low, high
    f = FORMATS[DType.F32]
    ends = (low, high) if c.dtype is DType.F32 else tuple(map(f.nearest, exact))
    off = [ULPS * f.ulp(np.where(np.isfinite(v), np.abs(v), 0)).astype(float) for v in ends]
    least = np.where(ends[0] > 0, np.maximum(ends[0] - off[0], 0), ends[0] - off[0])
    greatest = np.where(ends[1] < 0, np.minimum(ends[1] + off[1], 0), ends[1] + off[1])
    still = [(v == 0) | ~np.isfinite(v) for v in (low, high)]
    return (
        np.where(still[0], low, np.fmin(low, c.format.nearest(least))),
        np.where(still[1], high, np.fmax(high, c.format.nearest(greatest))),
    )


def units(c: Context, known: float) -> float:
    """Units of rounding that a complex quotient may be off its modulus, given those of correctly rounded divisions."""
    return known + UNITS if c.model.approximate and c.dtype is DType.C32 else known
