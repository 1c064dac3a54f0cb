"""TF32: a contraction in F32 may read its operands with 11 bits.

Precision `DEFAULT` leaves to a platform how it multiplies (StableHLO, `dot_general`); XLA multiplies on the tensor cores of NVIDIA in
TF32, which has the exponents of F32 and 10 bits after the first. Libraries round to nearest, the hardware cuts off. Measured on an H100
(docs/measurements/gpu.md): off by 3.8e-4 of the sum of the terms' sizes, and by 1.5e-7 with precision `HIGHEST`.

*Bound.* An operand is anything between the two numbers of TF32 around it; what has 11 bits is itself. Products are added before they are
rounded, with more exponents than those of F32, so that one that is too large need not make the sum infinite.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oracle.enclosure.formats import FORMATS, Array
from oracle.enclosure.rule import Context
from oracle.enclosure.value import Interval
from tenferro_ref.dtype import DType

BITS = 11
#: The exponent of the least subnormal number.
LEAST = -126 - (BITS - 1)


def is_free(c: Context) -> bool:
    """Whether a contraction may be one of the tensor cores."""
    return c.model.tf32 and c.dtype is DType.F32


def read(c: Context, x: Interval) -> Interval:
    """What a contraction may read of an operand."""
    if not is_free(c):
        return x
    lo, hi = _rounded(x.lo, np.floor), _rounded(x.hi, np.ceil)
    if np.array_equal(lo, x.lo) and np.array_equal(hi, x.hi):
        return x
    pos, neg = x.pos_zero | ((lo == 0) & (x.lo > 0)), x.neg_zero | ((hi == 0) & (x.hi < 0))
    return replace(x.plain(), lo=lo, hi=hi, pos_zero=pos, neg_zero=neg)


def relative(c: Context, operands: int) -> float:
    """What reading adds to the relative error of a product of many operands, taken two at a time: each is read, and each partial product."""
    if not is_free(c.real):
        return 0.0
    return float((1 + 2.0 ** (1 - BITS)) ** (2 * operands - 1) - 1)


def _rounded(v: Array, towards: np.ufunc) -> Array:
    """Rounded to BITS bits; beyond the largest number infinite."""
    known = np.isfinite(v)
    _, exponent = np.frexp(np.where(known, v, 0))
    step = np.ldexp(1.0, np.maximum(exponent - BITS, LEAST))
    near = np.where(known, towards(np.where(known, v, 0) / step) * step, v)
    return np.where(np.abs(near) > FORMATS[DType.F32].max, np.copysign(np.inf, near), near)
