"""Classes of numbers: the functions that make n numbers of one class, from plain ones to everything that breaks kernels.

About half of the bugs of tensor compilers need special values, so that an array of a hostile program is of one hostile
class. `FLOAT_CLASSES`, `INT_CLASSES` and `BOOL_CLASSES` name them; the order in which a class draws from its generator is
part of what a seed means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.random import Generator

from fuzz.generate.values.special import KNEES, SPECIALS, Array, limits, nan
from tenferro_ref.dtype import DType

#: Makes a flat array of so many numbers of a dtype that is not complex.
NumberClass: TypeAlias = Callable[[Generator, int, DType], Array]


def _by_name(*makers: NumberClass) -> dict[str, NumberClass]:
    return {maker.__name__.removeprefix("_"): maker for maker in makers}


def _signs(rng: Generator, n: int) -> Array:
    return 1.0 - 2.0 * (rng.random(n) < 0.5)


# --- of integers and floats -------------------------------------------------------------------------------------------


def _simple(rng: Generator, n: int, dtype: DType) -> Array:
    """0, 1 and 2."""
    return rng.integers(0, 3, n).astype(dtype.numpy)


def _indices(rng: Generator, n: int, dtype: DType) -> Array:
    """Integers that index small axes, some of them out of range."""
    return np.where(rng.random(n) < 0.7, rng.integers(0, 4, n), rng.integers(-6, 10, n)).astype(dtype.numpy)


def _special(rng: Generator, n: int, dtype: DType) -> Array:
    return SPECIALS[dtype][rng.integers(0, len(SPECIALS[dtype]), n)]


def _corners(rng: Generator, n: int, dtype: DType) -> Array:
    """Every special value and every knee, in turn."""
    return np.resize(np.concatenate([SPECIALS[dtype], KNEES[dtype]]), n)


def _first_of_pairs(rng: Generator, n: int, dtype: DType) -> Array:
    """Beside `second_of_pairs`, the first of each pair of special values."""
    return np.resize(np.repeat(SPECIALS[dtype], len(SPECIALS[dtype])), n)


def _second_of_pairs(rng: Generator, n: int, dtype: DType) -> Array:
    return np.resize(SPECIALS[dtype], n)


def _pairs(rng: Generator, n: int, dtype: DType) -> Array:
    """Of shape (n / 2, 2): every pair of special values in a row."""
    return np.concatenate([_first_of_pairs(rng, n - n // 2, dtype), _second_of_pairs(rng, n // 2, dtype)])


def corner_classes(dtype: DType, arity: int) -> tuple[tuple[str, ...], int]:
    """The classes of arrays that together have every special number of a real dtype, or every pair of them; how many elements."""
    special = len(SPECIALS[dtype])
    if arity == 2:
        return ("first_of_pairs", "second_of_pairs"), special * special
    return ("corners",), special + len(KNEES[dtype])


# --- of floats --------------------------------------------------------------------------------------------------------


def _exact(rng: Generator, n: int, dtype: DType) -> Array:
    """Small integers and powers of two: every order of adding and multiplying them gives the same bits."""
    powers = np.ldexp(_signs(rng, n), rng.integers(-6, 7, n))
    return np.where(rng.random(n) < 0.6, rng.integers(-8, 9, n), powers).astype(dtype.numpy)


def _ordinary(rng: Generator, n: int, dtype: DType) -> Array:
    return np.asarray(rng.standard_normal(n) * (1.0, 1.0, 0.125, 8.0)[int(4 * rng.random())], dtype.numpy)


def _positive(rng: Generator, n: int, dtype: DType) -> Array:
    return rng.uniform(0.0625, 4.0, n).astype(dtype.numpy)


def _unit(rng: Generator, n: int, dtype: DType) -> Array:
    return rng.uniform(-1.0, 1.0, n).astype(dtype.numpy)


def _sprinkled(rng: Generator, n: int, dtype: DType) -> Array:
    """Ordinary numbers with a few special ones among them."""
    return np.where(rng.random(n) < 0.15, _special(rng, n, dtype), _ordinary(rng, n, dtype))


def _zeros(rng: Generator, n: int, dtype: DType) -> Array:
    """Both zeros."""
    return np.array([0.0, -0.0], dtype.numpy)[rng.integers(0, 2, n)]


def _subnormal(rng: Generator, n: int, dtype: DType) -> Array:
    """Both sides of the smallest normal, down to the last bit."""
    info = limits(dtype)
    tiny, depth = float(info.smallest_normal), rng.integers(-2, info.nmant + 1, n)
    return np.copysign(np.ldexp(rng.uniform(0.5, 1.0, n) * tiny, -depth), rng.random(n) - 0.5).astype(dtype.numpy)


def _wide(rng: Generator, n: int, dtype: DType) -> Array:
    """Huge beside tiny: the exponent is uniform."""
    exponents = rng.integers(limits(dtype).minexp, limits(dtype).maxexp, n)
    return np.asarray(np.ldexp(rng.uniform(1.0, 2.0, n) * _signs(rng, n), exponents), dtype.numpy)


def _ties(rng: Generator, n: int, dtype: DType) -> Array:
    """A few values and their neighbours: equal, or one or two ULPs apart."""
    bases = np.concatenate([[1.0, 0.5, -1.0, 3.0], rng.standard_normal(2)]).astype(dtype.numpy)
    value = bases[rng.integers(0, len(bases), n) if rng.random() < 0.5 else np.full(n, rng.integers(0, len(bases)))]
    bits = f"<i{dtype.itemsize}"
    array: Array = (value.view(bits) + rng.integers(-2, 3, n).astype(bits)).view(dtype.numpy)
    return array


def _limits(rng: Generator, n: int, dtype: DType) -> Array:
    """Near the largest value: sums and products overflow."""
    largest = float(limits(dtype).max)
    return np.asarray(rng.uniform(0.25, 1.0, n) * largest * np.where(rng.random(n) < 0.3, -1.0, 1.0), dtype.numpy)


def _knees(rng: Generator, n: int, dtype: DType) -> Array:
    return KNEES[dtype][rng.integers(0, len(KNEES[dtype]), n)]


def _periods(rng: Generator, n: int, dtype: DType) -> Array:
    """Nearest values to multiples of pi/2: argument reduction."""
    turns = rng.integers(0, 2 ** rng.integers(2, 20), n) * _signs(rng, n)
    return np.asarray(turns * (np.pi / 2), dtype.numpy)


def _bits(rng: Generator, n: int, dtype: DType) -> Array:
    """Every bit at random; a NaN is the quiet one, since moving a signalling one may change it."""
    array = np.frombuffer(rng.bytes(n * dtype.itemsize), dtype.numpy)
    return np.where(np.isnan(array), nan(dtype, 1), array)


def _halves(rng: Generator, n: int, dtype: DType) -> Array:
    """Integers and a half, most of them small: ties of rounding to an integer."""
    most = 2.0 ** min(limits(dtype).nmant, 30)
    wide = np.floor(rng.uniform(-most, most, n) / 2)
    return np.asarray(np.where(rng.random(n) < 0.75, rng.integers(-3, 12, n), wide) + 0.5, dtype.numpy)


def _midpoints(rng: Generator, n: int, dtype: DType) -> Array:
    """Halfway between two neighbours of a narrower float (24, 11 or 8 bits), or next to that: ties of rounding to it."""
    bits = rng.choice([b for b in (8, 11, 24) if b <= limits(dtype).nmant] or [2], n)
    odd = np.asarray((rng.integers(2 ** (bits - 1), 2**bits) * 2 + 1) * _signs(rng, n), dtype.numpy)
    near = np.nextafter(odd, rng.choice([-np.inf, np.inf], n).astype(dtype.numpy))
    return np.asarray(np.ldexp(np.where(rng.random(n) < 0.7, odd, near), rng.integers(-12, 4, n) - bits), dtype.numpy)


FLOAT_CLASSES = _by_name(
    _simple, _exact, _ordinary, _positive, _unit, _special, _sprinkled, _zeros, _subnormal, _wide, _ties, _limits, _knees,
    _periods, _bits, _indices, _halves, _corners, _first_of_pairs, _second_of_pairs, _pairs, _midpoints,
)  # fmt: skip


# --- of integers and Bool ---------------------------------------------------------------------------------------------


def _small(rng: Generator, n: int, dtype: DType) -> Array:
    return rng.integers(-8, 9, n).astype(dtype.numpy)


def _powers(rng: Generator, n: int, dtype: DType) -> Array:
    """Powers of two and their neighbours, both signs, up to the top bit."""
    bits = rng.integers(0, 8 * dtype.itemsize - 1, n)
    return np.asarray((np.int64(1) << bits) * _signs(rng, n).astype(np.int64) + rng.integers(-1, 2, n), dtype.numpy)


def _far(rng: Generator, n: int, dtype: DType) -> Array:
    """Indices, many of them far outside of every axis; some are inside once their upper bits are lost."""
    signed = [0, 1, 2, -1, 100, -100, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
    far = [*signed, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1, 2**63, 2**63 + 1, 2**64 - 1]
    bottom, top = dtype.limits
    return rng.choice(np.array([v for v in far if bottom <= v <= top], dtype.numpy), n)


def _integer_midpoints(rng: Generator, n: int, dtype: DType) -> Array:
    """Halfway between two neighbours of a float (53, 24, 11 or 8 bits), or next to that: ties of conversion to it.

    Of large ones a wider float may lose what is next to a tie, so that they are in every array.
    """
    width = max(2, dtype.bits - 2)
    bits = rng.choice([b for b in (8, 11, 24, 53) if b < width] or [width - 1], n)
    odd = rng.integers(2 ** (bits - 1), 2**bits) * 2 + 1
    shift = np.where(rng.random(n) < 0.4, width - bits - 1, rng.integers(0, width - bits))
    shifted = (odd << shift) + np.where(rng.random(n) < 0.7, 0, rng.integers(-1, 2, n))
    return np.asarray(shifted * np.where(rng.random(n) < 0.5, -1, 1), dtype.numpy)


def _integer_bits(rng: Generator, n: int, dtype: DType) -> Array:
    return np.frombuffer(rng.bytes(n * dtype.itemsize), dtype.numpy)


def _coins(rng: Generator, n: int, dtype: DType) -> Array:
    return np.asarray(rng.random(n) < (0.1, 0.5, 0.9)[int(3 * rng.random())])


def _all_alike(rng: Generator, n: int, dtype: DType) -> Array:
    return np.full(n, rng.random() < 0.5)


INT_CLASSES = _by_name(
    _simple, _small, _special, _powers, _indices, _far, _corners, _first_of_pairs, _second_of_pairs, _pairs
)
INT_CLASSES |= {"bits": _integer_bits, "midpoints": _integer_midpoints}
BOOL_CLASSES: dict[str, NumberClass] = {"simple": _coins, "uniform": _all_alike}


def classes(dtype: DType) -> dict[str, NumberClass]:
    """The classes of a dtype, by name; a complex array has two halves of a float class."""
    if dtype is DType.Bool:
        return BOOL_CLASSES
    return INT_CLASSES if dtype.is_int else FLOAT_CLASSES
