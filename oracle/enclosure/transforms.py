"""How far a transform may be off, which `docs/explanation/enclosures.md` proves: of any length by its norm, and by parts where weights are quarter turns."""

from __future__ import annotations

from functools import cache
from itertools import count
from math import frexp, pi

import numpy as np

from oracle.enclosure.balls import Ball, complex_of
from oracle.enclosure.complexes import PRODUCT
from oracle.enclosure.formats import Array, Format, quantum
from oracle.enclosure.rule import Context

#: Units of rounding that weights (points of the unit circle) are off: a product of two whose angles, at most pi/4, meet three
#: roundings, and whose sine and cosine are off by an ULP each.
WEIGHT = 2 * (0.75 * pi + 2**0.5) + PRODUCT
#: A product by a weight.
_TWIDDLE = PRODUCT + WEIGHT


@cache
def relative_error(n: int, real: bool = False) -> float:
    """Units of rounding that an element of a transform of length n may be off, relative to the 2-norm of all of them.

    For transforms of mixed radix, and Bluestein's where a prime factor is larger than 11; docs/explanation/enclosures.md has the proof.
    A real one may be a complex one of half the length.
    """
    halves = 2**0.5 * relative_error(n // 2) + 3 + _TWIDDLE if real and n % 2 == 0 else 0.0
    whole = _bluestein(n) if _factors(n)[-1:] > [11] else 0.0
    return max(halves, 3 + _radix(n)[0], 3 + whole)


@cache
def _radix(n: int) -> tuple[float, float]:
    """Stage by stage, one for each prime factor: errors of elements, and of their 2-norm."""
    element = norm = 0.0
    for p in _factors(n):
        each = 1.0 if p == 2 else p + 3 + 2**0.5 * WEIGHT
        element += _TWIDDLE + (max(each, _bluestein(p)) if p > 11 else each)
        norm += _TWIDDLE + (1.0 if p == 2 else p**0.5 * each)
    return element, norm


def _bluestein(n: int) -> float:
    """A convolution by transforms of the least power of two, or the least product of factors up to 11, that is long enough."""
    smooth = next(m for m in count(2 * n - 1) if _factors(m)[-1:] <= [11])
    inner = [2 * norm + element for element, norm in map(_radix, (1 << (2 * n - 2).bit_length(), smooth))]
    return 2**0.5 * (max(inner) + PRODUCT + 1) + 2 * _TWIDDLE + WEIGHT


def _factors(n: int) -> list[int]:
    """Prime factors, ascending."""
    found, p = [], 2
    while n > 1:
        while n % p == 0:
            found.append(p)
            n //= p
        p = p + 1 if p * p <= n else n
    return found


def is_convolved(n: int) -> bool:
    """Whether a transform of length n, or a stage of it, may be a convolution."""
    return _factors(n)[-1:] > [11]


def error(c: Context, x: Ball, axis: int, n: int, scale: float, *, real: bool, half: bool) -> Array:
    """How far results may be off, the same in both parts of a complex number, by the norm of all of them."""
    f, sizes = c.real.format, x.size
    doubled = 2.0 if half else 1.0  # the other half of the spectrum
    norm = np.sqrt(doubled * (sizes**2).sum(axis, keepdims=True)) * np.sqrt(n) * scale
    spread = doubled * x.rad.sum(axis, keepdims=True) * scale
    roundings = relative_error(n, real)
    bound = sum(roundings * unit / (1 - roundings * unit) for unit in (f.unit, f.wide_unit))
    off = bound * norm + spread + 64 * c.real.lost_below * n**1.5 * max(scale, 1.0)
    off = np.where(sizes.any(axis, keepdims=True), off, 0)  # of zeros all algorithms make zeros
    return complex_of(off, off)


def fits(f: Format, x: Ball, axis: int, n: int, *, half: bool) -> Array:
    """Whether nothing on the way to the results leaves the range: the convolution's sums, or twice the sum of all elements."""
    doubled = 2.0 if half else 1.0
    if is_convolved(n):
        return np.asarray(np.sqrt(doubled * (x.size**2).sum(axis, keepdims=True)) * n**1.5 < f.max / 16)
    return np.asarray(doubled * x.size.sum(axis, keepdims=True) < f.max / 4)


#: How far a weight that is a quarter turn may be off: tables are made in double, and need not be made in octants.
_TURN = WEIGHT * 2.0**-53


def without_imaginary_ends(x: Ball, axis: int, n: int) -> tuple[Ball, Array]:
    """The spectrum of n real numbers without the imaginary parts of its first and middle element, and what may come of the latter.

    Of the middle one's a sum by definition keeps the sine of each multiple of pi, up to n, as far as that is off.
    """
    mid = x.mid.copy()
    elements = np.moveaxis(mid, axis, -1)
    elements.imag[..., :1] = 0
    middle = elements[..., n // 2 : n // 2 + 1 - n % 2].imag
    left = n * _TURN * np.abs(middle).sum(-1, keepdims=True)
    middle[...] = 0
    return Ball(mid, x.rad, x.ok), np.moveaxis(left, -1, axis)


def by_quarter_turns(n: int, *, half: bool) -> range:
    """Which results of a transform of length n, of a spectrum of real numbers (`half`) or not, are sums of elements turned by right angles."""
    if n in (1, 2, 4):
        return range(n)
    # where real numbers are made by one of half the length, the first one meets all weights
    return range(0 if half or is_convolved(n) else 1)


def error_by_parts(c: Context, x: Ball, axis: int, n: int, scale: float, *, inverse: bool, half: bool) -> Array:
    """How far each part of the results `by_quarter_turns` may be off, as complex numbers."""
    f, results, own = c.real.format, np.array(by_quarter_turns(n, half=half)), np.arange(n)
    mid, rad = (np.moveaxis(v, axis, -1) for v in (x.mid, x.rad))
    places = np.minimum(own, n - own) if half else own  # the other half of a spectrum is the mirror image
    own, places = (v[places < mid.shape[-1]] for v in (own, places))
    # real and imaginary parts along the first axis: those that are turned change places
    parts = np.stack([mid.real, mid.imag])[..., places]
    spreads = np.stack([rad, rad if np.iscomplexobj(mid) else np.zeros_like(rad)])[..., places]
    sizes = np.abs(parts) + spreads
    turned = (np.outer(own, results) * 4 // n % 2).astype(f.wide)
    terms, spread = (v @ (1 - turned) + v[::-1] @ turned for v in (sizes, spreads))
    # what the first element meets, and what goes into the first result, is not turned
    off = _TURN * (sizes.sum(0) @ np.outer(own > 0, half | (results > 0)).astype(f.wide))
    least = quantum(parts).min((0, -1), initial=np.inf)[..., np.newaxis]
    down = min(scale, 1 / n) if inverse else scale  # a larger factor may be 1/n and its product with n
    whole = frexp(scale)[0] == frexp(down)[0] == 0.5
    exact = ~rad.any(-1, keepdims=True) & (sizes.sum((0, -1))[..., np.newaxis] * f.unit < least) & whole
    exact &= (least >= c.real.zero_below) & (least * down >= 2 * c.real.lost_below)
    exact = exact & (off < least * f.unit / 4)  # of a sum that is not zero, nothing of it stays
    roundings = n if whole else n + 3
    rounded = (f.gamma(roundings) + 4 * roundings * f.wide_unit) * terms * scale
    lost = np.where(terms + off > 0, 4 * (n + 1) * scale / down * c.real.lost_below, 0)
    tiny = np.where(off > 0, n * f.least_subnormal, 0)
    error = np.where(exact, tiny, rounded + lost) + (off + spread) * scale
    return np.moveaxis(complex_of(error[0], error[1]), -1, axis)
