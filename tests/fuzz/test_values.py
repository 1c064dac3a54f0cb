"""Values: every class does what its name says, and shrinks to plain numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from fuzz.generate.choices import Choices
from fuzz.generate.config import Regime
from fuzz.generate.strategies import arrays
from fuzz.generate.values.classes import classes, corner_classes
from fuzz.generate.values.recipes import FULL, Recipe, array_of, draw_recipe, draw_scalar
from fuzz.generate.values.special import KNEES, SPECIALS
from tenferro_ref.dtype import ENGINE_DTYPES, DType

pytestmark = pytest.mark.once


FLOATS = (DType.F32, DType.F64)
dtypes = st.sampled_from(ENGINE_DTYPES)
shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
regimes: st.SearchStrategy[Regime] = st.sampled_from(("ordinary", "hostile", "exact"))


def array(kind: str, dtype: DType, n: int = 4000, seed: int = 5) -> Any:
    return array_of(Recipe(kind, seed), dtype, (n,))


@given(st.data(), dtypes, shapes, regimes)
def test_arrays_have_their_dtype_shape_and_order(
    data: st.DataObject, dtype: DType, shape: tuple[int, ...], regime: Regime
) -> None:
    drawn = data.draw(arrays(dtype, shape, regime))
    assert drawn.dtype == dtype.numpy
    assert drawn.shape == shape
    assert drawn.flags.f_contiguous


@pytest.mark.parametrize("dtype", DType)
def test_every_class_can_be_made_for_every_dtype(dtype: DType) -> None:
    for kind in classes(dtype):
        assert array_of(Recipe(kind, 9, FULL, ((3, 1), (70000, 0))), dtype, (3, 5)).shape == (3, 5)
        assert array_of(Recipe(kind, 9, 20, ((3, 1),)), dtype, (0, 5)).size == 0


@pytest.mark.parametrize("dtype", FLOATS)
def test_hostile_classes_hold_what_they_say(dtype: DType) -> None:
    limits = dtype.finfo
    special = array("special", dtype)
    least = (limits.smallest_normal, limits.smallest_subnormal, limits.eps)
    assert set(special) >= {limits.max, -limits.max, *least, np.inf, -np.inf}
    assert np.isnan(special).any()
    assert (np.signbit(special) & (special == 0)).any()
    assert len({v.tobytes() for v in special if np.isnan(v)}) >= 3  # payload and sign
    sprinkled = array("sprinkled", dtype)
    assert 0.75 < np.isfinite(sprinkled).mean() < 0.99
    assert set(np.signbit(array("zeros", dtype))) == {True, False}
    assert not array("zeros", dtype).any()
    subnormal = np.abs(array("subnormal", dtype))
    assert 0.5 < (subnormal < limits.smallest_normal).mean() < 1
    assert (subnormal == limits.smallest_subnormal).any()
    wide = np.abs(array("wide", dtype))
    assert wide.min() < 1 / np.sqrt(limits.max)
    assert wide.max() > np.sqrt(limits.max)
    assert np.isfinite(wide).all()
    top = array("limits", dtype)
    with np.errstate(over="ignore"):
        assert np.isinf(top + top[::-1]).any()
    assert np.isfinite(top).all()
    bits = array("bits", dtype, 200_000)
    assert np.isnan(bits).any()
    assert np.isfinite(bits).mean() > 0.9


@pytest.mark.parametrize("dtype", FLOATS)
def test_ties_are_equal_or_neighbours(dtype: DType) -> None:
    ties = np.unique(np.concatenate([array("ties", dtype, 400, seed) for seed in range(4)]))
    gaps = np.diff(ties) / np.spacing(np.abs(ties[1:]))
    assert (gaps <= 2).mean() > 0.5
    assert len(np.unique(array("ties", dtype, 400, 1))) < 40


@pytest.mark.parametrize("dtype", FLOATS)
def test_knees_and_periods_are_where_functions_turn(dtype: DType) -> None:
    knees = array("knees", dtype)
    with np.errstate(all="ignore"):
        finite = np.exp(knees[np.isfinite(knees)])
    assert np.isinf(finite).any()
    assert (finite == 0).any()
    turns = array("periods", dtype).astype(np.float64) / (np.pi / 2)
    assert np.abs(turns - np.round(turns)).max() < 1e-1
    assert np.abs(turns).max() > 100


@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_values_add_up_exactly_in_any_order(dtype: DType) -> None:
    exact = array("exact", dtype, 500)
    assert (exact * 64 == np.round(exact * 64)).all()
    assert np.abs(exact).max() <= 64
    assert exact.sum() == exact[::-1].cumsum()[-1]


@pytest.mark.parametrize("dtype", [DType.I32, DType.I64])
def test_integers_reach_their_extremes(dtype: DType) -> None:
    info = np.iinfo(dtype.numpy)
    special = array("special", dtype)
    assert {info.min, info.max, 0, 1, -1} <= {int(v) for v in special}
    powers = {int(v) for v in array("powers", dtype)}
    assert {2 ** (8 * dtype.itemsize - 2), -(2 ** (8 * dtype.itemsize - 2)), 1025, 1023} <= powers


#: Classes that are asked for by name, and not drawn.
BY_NAME = {"unit", "indices", "far", "corners", "first_of_pairs", "second_of_pairs", "pairs"}


def test_every_class_is_drawn_in_the_hostile_regime() -> None:
    rng = np.random.default_rng(1)
    for dtype in (DType.F64, DType.I32, DType.Bool):
        drawn = Counter(draw_recipe(Choices(rng.bytes(12)), dtype, "hostile").kind for _ in range(1500))
        assert set(drawn) >= set(classes(dtype)) - BY_NAME


@pytest.mark.parametrize("dtype", [d for d in DType if d.is_int or d.is_float], ids=str)
def test_corners_are_every_special_number_and_every_pair(dtype: DType) -> None:
    def bits(kind: str, shape: tuple[int, ...]) -> list[bytes]:
        return [x.tobytes() for x in array_of(Recipe(kind, 0), dtype, shape).ravel("F")]

    special = {x.tobytes() for x in SPECIALS[dtype]}
    (kind,), n = corner_classes(dtype, 1)
    assert set(bits(kind, (n,))) == special | {x.tobytes() for x in KNEES[dtype]}
    kinds, n = corner_classes(dtype, 2)
    every = {(a, b) for a in special for b in special}
    assert set(zip(*(bits(kind, (n,)) for kind in kinds), strict=True)) == every
    flat = bits("pairs", (n, 2))
    assert set(zip(flat[:n], flat[n:], strict=True)) == every


def test_ordinary_programs_have_no_hostile_values() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        drawn = array_of(draw_recipe(Choices(rng.bytes(12)), DType.F32, "ordinary"), DType.F32, (50,))
        assert np.abs(drawn).max() < 100


@given(st.binary(max_size=12), dtypes, regimes)
def test_constants_are_of_their_dtype(data: bytes, dtype: DType, regime: Regime) -> None:
    assert draw_scalar(Choices(data), dtype, regime).dtype == dtype.numpy


def test_hostile_constants_are_special_more_often_than_not() -> None:
    rng = np.random.default_rng(3)
    drawn = [draw_scalar(Choices(rng.bytes(12)), DType.F64, "hostile") for _ in range(500)]
    assert any(np.isnan(v) for v in drawn)
    assert any(np.isinf(v) for v in drawn)
    assert any(v == 0 and np.signbit(v) for v in drawn)
    rounds = {float(v) for v in (draw_scalar(Choices(rng.bytes(12)), DType.F64, "exact") for _ in range(200))}
    assert rounds <= {0.0, 1.0, 2.0, -1.0, -2.0, 4.0, 3.0, -3.0, 7.0, -8.0}


@settings(max_examples=300)
@given(st.data())
def test_overrides_put_specials_among_ordinary_values(data: st.DataObject) -> None:
    position, special = data.draw(st.integers(0, 65535)), data.draw(st.integers(0, 5))
    plain = array_of(Recipe("ordinary", 4), DType.F64, (2, 3))
    changed = array_of(Recipe("ordinary", 4, FULL, ((position, special),)), DType.F64, (2, 3))
    different = plain.tobytes("F") != changed.tobytes("F")
    where = changed.ravel("F")[position % 6]
    assert different
    assert where.tobytes() == SPECIALS[DType.F64][special].tobytes()


@pytest.mark.parametrize(
    ("dtype", "wanted", "shown"),
    [
        (DType.F64, lambda a: True, {1}),
        (DType.F64, lambda a: (a != 0).all(), {1}),
        (DType.F64, lambda a: (a == 0).all(), {0}),
        (DType.I32, lambda a: (a > 0).all(), {1}),
    ],
    ids=["anything", "no zero", "zeros", "positive"],
)
def test_shrinks_to_plain_numbers(dtype: DType, wanted: Callable[[Any], bool], shown: set[int], rng: Random) -> None:
    many = settings(database=None, max_examples=2_000)
    found = find(arrays(dtype, (4,)), lambda a: bool(wanted(a)), settings=many, random=rng)
    assert {float(v) for v in found} <= shown


@pytest.mark.parametrize("dtype", DType)
def test_a_lower_density_keeps_a_subset_of_the_elements(dtype: DType) -> None:
    for kind in classes(dtype):
        full = array_of(Recipe(kind, 3), dtype, (64,))
        kept = np.zeros(64, bool)
        for density in range(FULL + 1):
            diluted = array_of(Recipe(kind, 3, density), dtype, (64,))
            ones = diluted == 1
            same = np.array([a.tobytes() == b.tobytes() for a, b in zip(diluted, full, strict=True)])
            assert (ones | same).all()
            assert (same | ~kept)[~ones | kept].all()
            kept |= same & ~ones
        assert same.all()
        assert (array_of(Recipe(kind, 3, 0), dtype, (64,)) == 1).all()
