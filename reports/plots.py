"""Accuracy plots as inline SVG: distance from the native answer against width of the enclosure, one figure an executor.

Colours are CSS variables of the page, so that one figure serves light, dark and print. Nothing here touches pyplot or
any state that outlives a call; equal input gives equal bytes.
"""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from fuzz.records import Campaign, Totals

#: Stand-ins that Matplotlib draws with, and what replaces them in the SVG.
_INK, _GRID, _DATA, _EDGE = "#010203", "#010204", "#010205", "#010206"
_VARIABLES = {_INK: "var(--ink-2)", _GRID: "var(--line)", _DATA: "var(--data)", _EDGE: "var(--edge)"}
_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "tenferro-ref", "font.size": 8.0, "path.simplify": False}
#: Bins hold this many points or more for each step of ink.
_STEPS = ((1, 0.28), (4, 0.5), (16, 0.74), (64, 1.0))
#: log2 values are clamped here; 0 itself (log2 of -inf) has a bin of its own, one gap below the smallest.
_TOP = 64
_ZERO_GAP = 2

Point = tuple[float, float]
#: log2 of √2, and of what the records round off.
_SLACK = 0.5 + 0.001


@dataclass(frozen=True, slots=True)
class Plot:
    """One figure with what it shows in words.

    Attributes
    ----------
    svg
        An `<svg>` element; its text is generated here, never taken from a record.
    beyond
        Sampled elements farther from the native answer than their enclosure is wide, by more than √2: two complex numbers in
        one enclosure may be so far apart.
    """

    executor: str
    svg: str
    sampled: int
    identical: int
    beyond: int


@dataclass(frozen=True, slots=True)
class _Scale:
    """The bins that all figures of a report share, so that they can be compared at a glance."""

    low: int
    high: int

    @property
    def zero(self) -> int:
        """Where exactly 0 is drawn."""
        return self.low - _ZERO_GAP

    def place(self, log2: float) -> int:
        return self.zero if log2 == -math.inf else math.floor(min(max(log2, self.low), self.high))


def accuracy_plots(totals: Iterable[Totals]) -> tuple[Plot, ...]:
    """One plot for each executor that has a sample of widths."""
    samples = {t.executor: _points(t.widths) for t in totals}
    samples = {e: points for e, points in samples.items() if points}
    finite = [v for points in samples.values() for p in points for v in p if math.isfinite(v)]
    low = max(-_TOP, math.floor(min(finite, default=0)))
    scale = _Scale(min(low, 0), min(_TOP, max(8, math.ceil(max(finite, default=0)))))
    return tuple(_plot(i, e, points, scale) for i, (e, points) in enumerate(samples.items()))


def discovery_plot(campaign: Campaign) -> Plot | None:
    """Findings seen against programs checked; None where it is not known when they were seen, or there is none."""
    seen = sorted(f.first_program + 1 for f in campaign.findings if f.first_program is not None)
    if not seen or campaign.programs < 2:
        return None
    steps = [(0, 0), *((x, n + up) for n, x in enumerate(seen) for up in (0, 1)), (campaign.programs, len(seen))]
    with matplotlib.rc_context(_SETTINGS):
        figure, axes = _axes((6.4, 2.2), (0.08, 0.2, 0.9, 0.75))
        axes.plot(*zip(*steps, strict=True), color=_DATA, linewidth=1.4)
        axes.set_xlim(0, campaign.programs)
        axes.set_ylim(0, len(seen) * 1.08)
        axes.set_xlabel("programs", color=_INK)
        axes.set_ylabel("findings", color=_INK)
        label = f"{len(seen):,} findings in {campaign.programs:,} programs, the last after {seen[-1]:,}"
        return Plot("", _svg(figure, "discovery", label), len(seen), 0, 0)


def _points(widths: Sequence[tuple[float, float]]) -> list[Point]:
    """(log2 width, log2 distance); a distance of 0 becomes -inf. Points without a number are left out."""
    return [
        (width, math.log2(distance) if distance > 0 else -math.inf)
        for width, distance in widths
        if not (math.isnan(width) or math.isnan(distance))
    ]


def _plot(number: int, executor: str, points: list[Point], scale: _Scale) -> Plot:
    beyond = sum(distance > width + _SLACK for width, distance in points)
    identical = sum(distance == -math.inf for _, distance in points)
    bins = Counter((scale.place(width), scale.place(distance)) for width, distance in points)
    label = f"{len(points):,} elements, {identical:,} identical to native, {beyond:,} beyond the edge"
    with matplotlib.rc_context(_SETTINGS):
        figure, axes = _axes((3.5, 2.75), (0.17, 0.165, 0.8, 0.8))
        _draw(axes, bins, scale)
        return Plot(executor, _svg(figure, f"plot{number}", label), len(points), identical, beyond)


def _axes(size: Point, place: tuple[float, float, float, float]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size)
    FigureCanvasSVG(figure)
    axes = figure.add_axes(place)
    axes.tick_params(color=_GRID, labelcolor=_INK, length=2.5, pad=2)
    axes.grid(color=_GRID, linewidth=0.5)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set(color=_GRID, linewidth=0.8)
    return figure, axes


def _svg(figure: Figure, prefix: str, label: str) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(buffer.getvalue(), prefix, label)


def _draw(axes: Axes, bins: Counter[tuple[int, int]], scale: _Scale) -> None:
    for at_least, alpha in _STEPS:
        below = next((n for n, _ in _STEPS if n > at_least), math.inf)
        squares = [_square(x, y) for (x, y), n in sorted(bins.items()) if at_least <= n < below]
        if squares:
            patch = PathPatch(Path.make_compound_path(*squares), facecolor=_DATA, edgecolor="none", alpha=alpha)
            axes.add_patch(patch)
    axes.plot([scale.low, scale.high + 1], [scale.low, scale.high + 1], color=_EDGE, linewidth=1.2, dashes=(3, 2))
    axes.set_xlim(scale.zero - 0.5, scale.high + 1.5)
    axes.set_ylim(scale.zero - 0.5, scale.high + 1.5)
    ticks, labels = _ticks(scale)
    axes.set_xticks(ticks, labels)
    axes.set_yticks(ticks, labels)
    axes.set_xlabel("width of the enclosure, ULP", color=_INK)
    axes.set_ylabel("distance from native, ULP", color=_INK)


def _square(x: int, y: int) -> Path:
    a, b = 0.04, 0.96
    return Path([(x + a, y + a), (x + b, y + a), (x + b, y + b), (x + a, y + b), (x + a, y + a)], closed=True)


def _ticks(scale: _Scale) -> tuple[list[float], list[str]]:
    step = next(s for s in (2, 4, 8, 16, 32, 64) if (scale.high - scale.low) / s <= 7)
    powers = range(math.ceil(scale.low / step) * step, scale.high + 1, step)
    return [scale.zero + 0.5, *map(float, powers)], ["0", *map(power, powers)]


def power(exponent: int) -> str:
    """2 to that power, as it is written on an axis."""
    if 0 <= exponent <= 9:
        return str(2**exponent)
    return "2" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _inline(document: str, prefix: str, label: str) -> str:
    """The `<svg>` element alone: sized by the page, ids unique in it, colours as variables."""
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", svg, flags=re.S)  # would apply to the whole page
    svg = re.sub(r'<g id="[^"]+"', "<g", svg)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", svg)
    svg = re.sub(
        r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', rf'<svg viewBox="\1" role="img" aria-label="{label}">', svg, count=1
    )
    svg = re.sub(r"font(-family)?: ([^;\"]*?px )?'[^;\"]*(?=[;\"])", _font, svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    svg = re.sub(r"(\.\d\d)\d+", r"\1", svg)
    return re.sub(r"\s*\n\s*", "", svg)


def _font(match: re.Match[str]) -> str:
    return f"font-size: {match[2].strip()}" if match[2] else "font-family: inherit"
