"""What a comparison counts is what going through the elements one by one gives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.case import Case, live
from oracle.compare import compare, compare_bits
from oracle.enclosure import IEEE, XLA, Enclosure, enclose
from oracle.peers import NativeExecutor
from oracle.ulp import ulp_distance
from tenferro_ref.errors import TenferroError
from tests.laws.answers import SLOW, end, wrong_elements, wrong_forms
from tests.laws.by_element import by_bits, by_element, distance, facts
from tests.laws.cases import Array, generated
from tests.laws.corners import corners

pytestmark = pytest.mark.once


@cache
def compared() -> list[tuple[Case, tuple[Array, ...], list[Enclosure], list[Enclosure]]]:
    """Programs with their native results and both kinds of enclosures."""
    found = []
    for case in (*generated(3, 40), *(c.case for c in corners())):
        try:
            native = NativeExecutor().run(case).outputs
            strict, wide = (enclose(live(case.program), case.inputs, model) for model in (IEEE, XLA))
        except TenferroError:
            continue
        if sum(a.size for a in native) <= SLOW:
            found.append((case, native, strict, wide))
    return found


def answers(native: tuple[Array, ...], wide: list[Enclosure], seed: int) -> Iterator[tuple[Array, ...]]:
    """Right results, both ends of what is right, wrong ones, and ones of another form."""
    yield native
    for upper in (False, True):
        yield tuple(end(e, upper) for e in wide)
    yield wrong_elements(native, seed)
    yield from wrong_forms(native)


def test_counts_against_enclosures() -> None:
    assert len(compared()) > 60
    for case, native, strict, wide in compared():
        for got in answers(native, wide, int(case.fingerprint[:8], 16)):
            for reference, finer in ((strict, None), (wide, strict)):
                assert facts(compare(reference, finer, got, native)) == by_element(reference, finer, got, native)


def test_counts_bit_for_bit() -> None:
    for case, native, _, wide in compared():
        for got in answers(native, wide, int(case.fingerprint[:8], 16)):
            assert facts(compare_bits(native, got)) == by_bits(native, got)


def test_native_answers_of_another_form_are_at_no_known_distance() -> None:
    for _, native, strict, _ in compared()[::4]:
        for other in wrong_forms(native)[:2]:
            assert facts(compare(strict, None, native, other)) == by_element(strict, None, native, other)


def test_the_words_are_about_the_first_element_outside() -> None:
    for case, native, strict, _ in compared():
        got = wrong_elements(native, int(case.fingerprint[:8], 16))
        for found in (compare(strict, None, got, native), compare_bits(native, got)):
            if found.worst_output is not None and found.worst_index is not None:
                value = got[found.worst_output][found.worst_index]
                assert found.observed in (str(value), str(value).lower())
                assert found.expected != found.observed
                assert found.value_class


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_between_the_numbers_where_a_way_of_counting_ends(dtype: Any) -> None:
    info = np.finfo(dtype)
    line = np.array([0, info.smallest_subnormal, info.smallest_normal, info.smallest_normal * 2, 1, -info.max], dtype)
    for x, y in itertools.product(line, line):
        assert ulp_distance(x.reshape(1), y.reshape(1))[0] == pytest.approx(distance(x, y), rel=1e-12)


@given(st.floats(), st.floats())
def test_distances_between_any_numbers(x: float, y: float) -> None:
    found = float(ulp_distance(np.array([x]), np.array([y]))[0])
    expected = distance(np.float64(x), np.float64(y))
    assert math.isnan(found) if math.isnan(expected) else found == pytest.approx(expected, rel=1e-12)


@given(st.complex_numbers(), st.complex_numbers())
def test_complex_distances_are_in_units_of_the_larger_number(x: complex, y: complex) -> None:
    found = float(ulp_distance(np.array([x]), np.array([y]))[0])
    expected = distance(np.complex128(x), np.complex128(y))
    assert math.isnan(found) if math.isnan(expected) else found == pytest.approx(expected, rel=1e-9)
