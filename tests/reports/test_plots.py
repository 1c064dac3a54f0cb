"""The accuracy plots: what is counted, and that any numbers can be drawn."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.records import Totals
from reports.plots import accuracy_plots

pytestmark = pytest.mark.once


NUMBERS = st.floats() | st.floats(-4, 30)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=40))
@settings(max_examples=40, deadline=None)
def test_any_numbers_can_be_drawn(widths: list[tuple[float, float]]) -> None:
    plots = accuracy_plots([Totals("x", {}, widths=tuple(widths))])
    numbers = [w for w in widths if not any(map(math.isnan, w))]
    assert len(plots) == bool(numbers)
    for plot in plots:
        assert plot.sampled == len(numbers)
        svg = ET.fromstring(plot.svg.replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1))
        assert svg.tag == "svg"
        assert "nan" not in plot.svg


def test_what_is_beyond_the_diagonal() -> None:
    # two complex numbers at opposite corners are farther apart than each side is wide
    inside = ((3.0, 8.0 * 2**0.5), (3.0, 0.0), (-math.inf, 0.0), (math.inf, 1e9), (math.log2(5), 5.0))
    (plot,) = accuracy_plots([Totals("x", {}, widths=(*inside, (3.0, 11.5), (-math.inf, 1.0)))])
    assert (plot.sampled, plot.identical, plot.beyond) == (7, 2, 2)


def test_all_executors_share_a_scale_and_no_id() -> None:
    plots = accuracy_plots(
        [Totals("a", {}, widths=((2.0, 1.0),)), Totals("b", {}), Totals("c", {}, widths=((40.0, 9e9),))]
    )
    assert [p.executor for p in plots] == ["a", "c"]
    ticks = [[t.text for t in ET.fromstring(p.svg.replace("xlink:", "")).iter("text")] for p in plots]
    assert ticks[0] == ticks[1]
    assert "2⁴⁰" in ticks[0]


def test_small_and_without_colours_of_its_own() -> None:
    (plot,) = accuracy_plots([Totals("x", {}, widths=tuple((i / 10, float(j)) for i in range(200) for j in range(20)))])
    assert len(plot.svg) < 40_000
    assert "#" not in plot.svg.replace("url(#", "").replace('href="#', "")
    assert "var(--data)" in plot.svg
