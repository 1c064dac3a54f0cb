"""Recipes of arrays and constants: a class of numbers and a seed.

Which class goes with which share of the programs is a *regime*: "ordinary" programs stay finite for the most part (a program
whose every element is NaN proves little), "hostile" ones mix everything, "exact" ones hold small integers and powers of two,
so that every order of evaluation gives the same bits.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.random import PCG64, Generator

from fuzz.generate.choices import Choices, Weighted
from fuzz.generate.config import Regime
from fuzz.generate.values.classes import classes
from fuzz.generate.values.matrices import MATRICES, matrices
from fuzz.generate.values.special import SPECIALS, Array
from tenferro_ref.dtype import DType

#: Shares of the programs; two thirds of those that would be exact must have a motif that is not, and are ordinary.
REGIMES: Weighted[Regime] = Weighted([("ordinary", 30), ("hostile", 35), ("exact", 35)])

#: Density of a recipe from which all elements are of its class.
FULL = 32


class Recipe(NamedTuple):
    """How to make an array.

    Attributes
    ----------
    kind
        A class of the dtype (`classes`), or one of `MATRICES`, which are full whatever the density.
    density
        Of `FULL`: the share of elements that are of the class; the others are 1. A lower density keeps a subset, so that
        shrinking it leaves the elements that matter.
    overrides
        Single elements with special values: (position, index of the special value) pairs.
    """

    kind: str
    seed: int
    density: int = FULL
    overrides: tuple[tuple[int, int], ...] = ()


_HOSTILE: list[tuple[str, float]] = [
    ("simple", 0.5), ("ordinary", 3), ("positive", 1), ("special", 4), ("sprinkled", 5), ("zeros", 1), ("subnormal", 2),
    ("wide", 3), ("ties", 3), ("limits", 1.5), ("knees", 3), ("periods", 1.5), ("exact", 1), ("bits", 1),
    ("halves", 1), ("midpoints", 1),
]  # fmt: skip
_FLOAT_MIX: dict[Regime, Weighted[str]] = {
    "ordinary": Weighted([("simple", 0.2), ("ordinary", 4), ("positive", 4), ("unit", 2)]),
    "hostile": Weighted(_HOSTILE),
    "exact": Weighted([("simple", 0.5), ("exact", 9)]),
}
_INT_MIX: dict[Regime, Weighted[str]] = {
    "ordinary": Weighted([("simple", 1), ("small", 9)]),
    "hostile": Weighted([("simple", 0.5), ("small", 2), ("special", 4), ("powers", 2), ("bits", 2), ("midpoints", 1)]),
    "exact": Weighted([("simple", 1), ("small", 9)]),
}
_BOOL_MIX: Weighted[str] = Weighted([("simple", 9), ("uniform", 1)])


def draw_recipe(choices: Choices, dtype: DType, regime: Regime) -> Recipe:
    """A recipe; an array of the ordinary or exact regime has no overrides, apart from the odd signed zero."""
    mix = _BOOL_MIX if dtype is DType.Bool else (_INT_MIX if dtype.is_int else _FLOAT_MIX)[regime]
    kind, seed, density = mix(choices), choices.integer(2), min(FULL, choices.integer(1))
    if not choices.chance(25 if regime == "hostile" else 3):
        return Recipe(kind, seed, density)
    known = len(SPECIALS[dtype]) if regime == "hostile" else min(4, len(SPECIALS[dtype]))
    overrides = tuple((choices.integer(2), choices.pick(known)) for _ in range(1 + choices.pick(2)))
    return Recipe(kind, seed, density, overrides)


def array_of(recipe: Recipe, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The array of a recipe, column-major."""
    n = prod(shape)
    with np.errstate(all="ignore"):
        flat = _elements(recipe, dtype, shape) if n and recipe.density else np.ones(n, dtype.numpy)
    if recipe.overrides and n:
        flat = flat.copy()
        for position, special in recipe.overrides:
            flat[position % n] = SPECIALS[dtype][special]
    return flat.reshape(shape, order="F")


def _elements(recipe: Recipe, dtype: DType, shape: tuple[int, ...]) -> Array:
    rng, n = Generator(PCG64(recipe.seed)), prod(shape)
    if recipe.kind in MATRICES:
        return matrices(recipe.kind, rng, dtype, shape).ravel("F")
    numbers = classes(dtype)[recipe.kind]
    if dtype.is_complex:
        flat = np.empty(n, dtype.numpy)
        flat.real, flat.imag = numbers(rng, n, dtype.real), numbers(rng, n, dtype.real)
    else:
        flat = numbers(rng, n, dtype)
    if recipe.density < FULL:
        return np.where(FULL * rng.random(n) < recipe.density, flat, np.ones(1, dtype.numpy))
    return flat


_ROUND = (0, 1, 2, -1, -2, 4, 3, -3, 7, -8)
_PLAIN = (0.0, 1.0, 2.0, -1.0, 0.5, -0.5, 3.0, 0.1, -2.0, 1 / 3, 10.0, -0.0, 3.141592653589793, 1e-3, 100.0, -1.5)


def draw_scalar(choices: Choices, dtype: DType, regime: Regime) -> Any:
    """A constant: small and round numbers in the ordinary and exact regimes, anything in the hostile one."""
    if regime == "hostile" and choices.chance(60):
        return SPECIALS[dtype][choices.pick(len(SPECIALS[dtype]))]
    if regime == "hostile" and dtype is not DType.Bool:
        return array_of(draw_recipe(choices, dtype, regime), dtype, (1,))[0]
    plain = _ROUND if regime == "exact" or not (dtype.is_float or dtype.is_complex) else _PLAIN
    return np.array(choices.choose(plain)).astype(dtype.numpy)[()]  # a negative number wraps where there is none
