"""Values of inputs and constants, by class: what arrays hold, from plain numbers to everything that breaks kernels.

About half of the bugs of tensor compilers need special values, so an array mostly is of one hostile class, with now and
then single elements overridden. A `Recipe` is a few drawn integers; the elements are made by NumPy from its seed. Which
class goes with which share of the programs is a *regime*: "ordinary" programs stay finite for the most part (a program
whose every element is NaN proves little), "hostile" ones mix everything, "exact" ones hold small integers and powers of
two, so that every order of evaluation gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from hypothesis import strategies as st
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from fuzz.generate.genes import Genes, Weighted
from fuzz.generate.values.matrices import MATRICES, matrices
from tenferro_ref.dtype import DType

#: Dtypes are drawn, so NumPy's types cannot follow them.
Array: TypeAlias = NDArray[Any]
Regime: TypeAlias = Literal["ordinary", "hostile", "exact"]
#: Program regimes and their shares.
REGIMES: Weighted[Regime] = Weighted([("ordinary", 50), ("hostile", 35), ("exact", 15)])


#: Density of a recipe from which all elements are of its class.
FULL = 32


class Recipe(NamedTuple):
    """How to make an array of a class.

    Attributes
    ----------
    kind
        A class of the dtype, or one of `MATRICES`, which are full whatever the density.
    density
        Of `FULL`: the share of elements that are of the class; the others are 1. A lower density keeps a subset, so that
        shrinking it leaves the elements that matter.
    overrides
        (position, special) pairs.
    """

    kind: str
    seed: int
    density: int = FULL
    overrides: tuple[tuple[int, int], ...] = ()


# --- special values ---------------------------------------------------------------------------------------------------

_KNEES_F64 = (
    709.782712893384, 709.7827128933841, -708.3964185322641, -745.1332191019411, -745.1332191019412, 710.4758600739439,
    22.0, 19.0615474653984, 36.7368005696771, -37.42994775023705, 1e-16, 1.4916681462400413e154, 1.3407807929942597e154,
    2.0**1023, 2.0**63, -(2.0**63), 9223372036854774784.0, 4503599627370497.5,
)  # fmt: skip
_KNEES_F32 = (
    88.72283172607422, 88.72283935546875, -87.33654022216797, -103.97207641601562, -103.97208404541016,
    9.010913848876953, 8.317766189575195, -17.32868, 1e-8, 1.8446742974197924e19, 1.8446744073709552e19, 2.0**127,
    2.0**63, 16777217.0, 8388609.5,
)  # fmt: skip
_KNEES = (
    -1.0, -0.9999999, -0.41, -0.5, 0.5, 1.5, 2.5, -2.5, 0.9999999403953552, 1.0000001192092896, 1.5707963267948966,
    3.141592653589793, 2.0**31, 2147483520.0, -(2.0**31), 0.7071067811865476, 2.718281828459045, 3.0, 1024.0, 1e5, 1e15,
)  # fmt: skip


@cache
def _finfo(dtype: DType) -> Any:
    return np.finfo(np.dtype(dtype.value))


def _nan(dtype: DType, payload: int) -> Any:
    quiet, int_ = (0x7FC00000, "<u4") if dtype is DType.F32 else (0x7FF8000000000000, "<u8")
    return np.array(quiet | payload, int_).view(dtype.numpy)[()]


@cache
def specials(dtype: DType) -> Array:
    """The special values of a dtype, simplest first."""
    if dtype is DType.Bool:
        return np.array([False, True])
    if dtype.is_int:
        info: Any = np.iinfo(np.dtype(dtype.value))
        near = [0, 1, -1, 2, info.max, info.min, info.max - 1, info.min + 1, 2**24 + 1, 2**16, -(2**16), 46341, 7]
        wide = [2**53 + 1, 2**31, -(2**31) - 1, 2**32, 3037000500] if dtype is DType.I64 else []
        return np.array(near + wide, dtype.numpy)
    if dtype.is_complex:
        parts = [0.0, 1.0, -1.0, -0.0, np.inf, -np.inf, np.nan, float(_finfo(dtype).max)]
        return np.array([complex(a, b) for b in parts for a in parts], dtype.numpy)
    limits = _finfo(dtype)
    tiny, least = float(limits.smallest_normal), float(limits.smallest_subnormal)
    plain = [0.0, 1.0, -0.0, -1.0, np.nan, np.inf, -np.inf, float(limits.max), -float(limits.max)]
    small = [tiny, -tiny, tiny - least, least, -least, 2 * tiny, float(limits.eps), float(limits.epsneg)]
    array = np.array(plain + small + [2.0, 0.5, float(limits.max) / 2, 1 + float(limits.eps)], dtype.numpy)
    return np.concatenate([array, [_nan(dtype, 0x123)], -array[4:5]]).astype(dtype.numpy)


@cache
def _knees(dtype: DType) -> Array:
    """Arguments where a function overflows, saturates or changes branch, and their neighbours."""
    own = _KNEES_F32 if dtype is DType.F32 else _KNEES_F64
    mid = np.array(_KNEES + own, dtype.numpy)
    inf = mid.dtype.type(np.inf)
    return np.concatenate([mid, -mid, np.nextafter(mid, inf), np.nextafter(mid, -inf)])


# --- classes of floats ------------------------------------------------------------------------------------------------

Maker: TypeAlias = Callable[[Generator, int, DType], Array]


def _signs(rng: Generator, n: int) -> Array:
    return 1.0 - 2.0 * (rng.random(n) < 0.5)


def _simple(rng: Generator, n: int, dtype: DType) -> Array:
    """0, 1 and 2."""
    return rng.integers(0, 3, n).astype(dtype.numpy)


def _indices(rng: Generator, n: int, dtype: DType) -> Array:
    """Integers that index small axes, some of them out of range."""
    return np.where(rng.random(n) < 0.7, rng.integers(0, 4, n), rng.integers(-3, 12, n)).astype(dtype.numpy)


def _exact(rng: Generator, n: int, dtype: DType) -> Array:
    powers = np.ldexp(_signs(rng, n), rng.integers(-6, 7, n))
    return np.where(rng.random(n) < 0.6, rng.integers(-8, 9, n), powers).astype(dtype.numpy)


def _ordinary(rng: Generator, n: int, dtype: DType) -> Array:
    return np.asarray(rng.standard_normal(n) * (1.0, 1.0, 0.125, 8.0)[int(4 * rng.random())], dtype.numpy)


def _positive(rng: Generator, n: int, dtype: DType) -> Array:
    return rng.uniform(0.0625, 4.0, n).astype(dtype.numpy)


def _unit(rng: Generator, n: int, dtype: DType) -> Array:
    return rng.uniform(-1.0, 1.0, n).astype(dtype.numpy)


def _special(rng: Generator, n: int, dtype: DType) -> Array:
    return specials(dtype)[rng.integers(0, len(specials(dtype)), n)]


def _sprinkled(rng: Generator, n: int, dtype: DType) -> Array:
    """Ordinary numbers with a few specials among them."""
    return np.where(rng.random(n) < 0.15, _special(rng, n, dtype), _ordinary(rng, n, dtype))


def _zeros(rng: Generator, n: int, dtype: DType) -> Array:
    return np.array([0.0, -0.0], dtype.numpy)[rng.integers(0, 2, n)]


def _subnormal(rng: Generator, n: int, dtype: DType) -> Array:
    """Both sides of the smallest normal, down to the last bit."""
    limits = _finfo(dtype)
    tiny, depth = float(limits.smallest_normal), rng.integers(-2, limits.nmant + 1, n)
    return np.copysign(np.ldexp(rng.uniform(0.5, 1.0, n) * tiny, -depth), rng.random(n) - 0.5).astype(dtype.numpy)


def _wide(rng: Generator, n: int, dtype: DType) -> Array:
    """Huge beside tiny: the exponent is uniform."""
    limits = _finfo(dtype)
    exponents = rng.integers(limits.minexp, limits.maxexp, n)
    return np.asarray(np.ldexp(rng.uniform(1.0, 2.0, n) * _signs(rng, n), exponents), dtype.numpy)


def _ties(rng: Generator, n: int, dtype: DType) -> Array:
    """A few values and their neighbours: equal, or one or two ULPs apart."""
    bases = np.concatenate([[1.0, 0.5, -1.0, 3.0], rng.standard_normal(2)]).astype(dtype.numpy)
    value = bases[rng.integers(0, len(bases), n) if rng.random() < 0.5 else np.full(n, rng.integers(0, len(bases)))]
    integers = value.view("<i4" if dtype is DType.F32 else "<i8") + rng.integers(-2, 3, n).astype(f"<i{dtype.itemsize}")
    array: Array = integers.view(dtype.numpy)
    return array


def _limits(rng: Generator, n: int, dtype: DType) -> Array:
    """Near the largest value: sums and products overflow."""
    top = float(_finfo(dtype).max)
    return np.asarray(rng.uniform(0.25, 1.0, n) * top * np.where(rng.random(n) < 0.3, -1.0, 1.0), dtype.numpy)


def _at_knees(rng: Generator, n: int, dtype: DType) -> Array:
    return _knees(dtype)[rng.integers(0, len(_knees(dtype)), n)]


def _periods(rng: Generator, n: int, dtype: DType) -> Array:
    """Nearest values to multiples of pi/2: argument reduction."""
    turns = rng.integers(0, 2 ** rng.integers(2, 20), n) * _signs(rng, n)
    return np.asarray(turns * (np.pi / 2), dtype.numpy)


def _bits(rng: Generator, n: int, dtype: DType) -> Array:
    """Every bit at random; NaNs are made quiet, since moving a signalling one may change it."""
    array = np.frombuffer(rng.bytes(n * dtype.itemsize), dtype.numpy)
    return np.where(np.isnan(array), _nan(dtype, 1), array)


FLOAT_CLASSES: dict[str, Maker] = {
    "simple": _simple,
    "exact": _exact,
    "ordinary": _ordinary,
    "positive": _positive,
    "unit": _unit,
    "special": _special,
    "sprinkled": _sprinkled,
    "zeros": _zeros,
    "subnormal": _subnormal,
    "wide": _wide,
    "ties": _ties,
    "limits": _limits,
    "knees": _at_knees,
    "periods": _periods,
    "bits": _bits,
    "indices": _indices,
}


# --- classes of integers and Bool -------------------------------------------------------------------------------------


def _small(rng: Generator, n: int, dtype: DType) -> Array:
    return rng.integers(-8, 9, n).astype(dtype.numpy)


def _powers(rng: Generator, n: int, dtype: DType) -> Array:
    """Powers of two and their neighbours, both signs, up to the top bit."""
    bits = rng.integers(0, 8 * dtype.itemsize - 1, n)
    return np.asarray((np.int64(1) << bits) * _signs(rng, n).astype(np.int64) + rng.integers(-1, 2, n), dtype.numpy)


def _full(rng: Generator, n: int, dtype: DType) -> Array:
    return np.frombuffer(rng.bytes(n * dtype.itemsize), dtype.numpy)


INT_CLASSES: dict[str, Maker] = {
    "simple": _simple,
    "small": _small,
    "special": _special,
    "powers": _powers,
    "bits": _full,
    "indices": _indices,
}


def _coin(rng: Generator, n: int, dtype: DType) -> Array:
    return np.asarray(rng.random(n) < (0.1, 0.5, 0.9)[int(3 * rng.random())])


def _constantly(rng: Generator, n: int, dtype: DType) -> Array:
    return np.full(n, rng.random() < 0.5)


BOOL_CLASSES: dict[str, Maker] = {"simple": _coin, "uniform": _constantly}


def classes(dtype: DType) -> dict[str, Maker]:
    """The classes of a dtype, by name; a complex array has two halves of a float class."""
    if dtype is DType.Bool:
        return BOOL_CLASSES
    return INT_CLASSES if dtype.is_int else FLOAT_CLASSES


_HOSTILE: list[tuple[str, float]] = [
    ("simple", 0.5), ("ordinary", 3), ("positive", 1), ("special", 4), ("sprinkled", 5), ("zeros", 1), ("subnormal", 2),
    ("wide", 3), ("ties", 3), ("limits", 1.5), ("knees", 3), ("periods", 1.5), ("exact", 1), ("bits", 1),
]  # fmt: skip
_FLOAT_MIX: dict[Regime, Weighted[str]] = {
    "ordinary": Weighted([("simple", 0.2), ("ordinary", 4), ("positive", 4), ("unit", 2)]),
    "hostile": Weighted(_HOSTILE),
    "exact": Weighted([("simple", 0.5), ("exact", 9)]),
}
_INT_MIX: dict[Regime, Weighted[str]] = {
    "ordinary": Weighted([("simple", 1), ("small", 9)]),
    "hostile": Weighted([("simple", 0.5), ("small", 2), ("special", 4), ("powers", 2), ("bits", 2)]),
    "exact": Weighted([("simple", 1), ("small", 9)]),
}
_BOOL_MIX: Weighted[str] = Weighted([("simple", 9), ("uniform", 1)])


def draw_recipe(genes: Genes, dtype: DType, regime: Regime) -> Recipe:
    """A recipe; an array of the ordinary or exact regime has no overrides, apart from the odd signed zero."""
    mix = _BOOL_MIX if dtype is DType.Bool else (_INT_MIX if dtype.is_int else _FLOAT_MIX)[regime]
    kind, seed, density = mix(genes), genes.integer(2), min(FULL, genes.integer(1))
    if not genes.chance(25 if regime == "hostile" else 3):
        return Recipe(kind, seed, density)
    known = len(specials(dtype)) if regime == "hostile" else min(4, len(specials(dtype)))
    overrides = tuple((genes.integer(2), genes.pick(known)) for _ in range(1 + genes.pick(2)))
    return Recipe(kind, seed, density, overrides)


def make(recipe: Recipe, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The array of a recipe, column-major."""
    with np.errstate(all="ignore"):
        return make_quietly(recipe, dtype, shape)


def make_quietly(recipe: Recipe, dtype: DType, shape: tuple[int, ...]) -> Array:
    """`make` where NumPy is told to be silent: telling it costs as much as a small array."""
    n = prod(shape)
    if not recipe.density or not n:
        flat: Array = np.ones(n, dtype.numpy)
    elif recipe.kind in MATRICES:
        flat = matrices(recipe.kind, Generator(PCG64(recipe.seed)), dtype, shape).ravel("F")
    else:
        rng = Generator(PCG64(recipe.seed))
        maker = classes(dtype)[recipe.kind]
        if dtype.is_complex:
            flat = np.empty(n, dtype.numpy)
            halves: Array = flat.view(dtype.real.numpy)
            halves[0::2], halves[1::2] = maker(rng, n, dtype.real), maker(rng, n, dtype.real)
        else:
            flat = maker(rng, n, dtype)
        if recipe.density < FULL:
            flat = np.where(FULL * rng.random(n) < recipe.density, flat, np.ones(1, dtype.numpy))
    if recipe.overrides and n:
        flat = flat.copy()
        for position, special in recipe.overrides:
            flat[position % n] = specials(dtype)[special]
    return flat.reshape(shape, order="F")


def scalar(genes: Genes, dtype: DType, regime: Regime) -> Any:
    """A constant: small and round numbers in the ordinary and exact regimes, anything in the hostile one."""
    if regime == "hostile" and genes.chance(60):
        return specials(dtype)[genes.pick(len(specials(dtype)))]
    if regime == "hostile" and dtype is not DType.Bool:
        return make(draw_recipe(genes, dtype, regime), dtype, (1,))[0]
    plain = _ROUND if regime == "exact" or not (dtype.is_float or dtype.is_complex) else _PLAIN
    return np.array(genes.choose(plain), dtype.numpy)[()]


_ROUND = (0, 1, 2, -1, -2, 4, 3, -3, 7, -8)
_PLAIN = (0.0, 1.0, 2.0, -1.0, 0.5, -0.5, 3.0, 0.1, -2.0, 1 / 3, 10.0, -0.0, 3.141592653589793, 1e-3, 100.0, -1.5)


def values(dtype: DType, shape: tuple[int, ...], regime: Regime = "hostile") -> st.SearchStrategy[Array]:
    """Arrays of a dtype and shape, column-major; shrinks towards all ones, then zeros and small integers."""
    return st.binary(min_size=12, max_size=12).map(
        lambda data: make(draw_recipe(Genes(data), dtype, regime), dtype, shape)
    )


__all__ = ["REGIMES", "Recipe", "Regime", "classes", "draw_recipe", "make", "scalar", "specials", "values"]
