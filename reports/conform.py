"""The report of a plugin's conformance: one HTML file, `conform.json`, and a badge.

Lives here: how a record of `fuzz.conform` is laid out. What was asked, and how it came out, is decided there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from fuzz.conform.record import OUTCOMES, Check, Report, Section, changes, dumps, wrong
from reports.matrix import State
from reports.pages import known_page
from reports.site import Site
from reports.templating import asset, environment
from tenferro_ref.files import Product

#: How an outcome looks: never by colour alone. Slugs are those of the style sheet.
LOOKS = {
    "holds": State("agree", "✓", "holds", "as the C API, StableHLO and the enclosure of the result say"),
    "skipped": State("refused", "⊘", "skipped", "the plugin or this machine has not got it, with the reason"),
    "known": State("disagree-known", "◆", "known", "does not hold, and docs/findings/ describes it: not passed"),
    "fails": State("disagree-new", "✖", "fails", "does not hold"),
    "hangs": State("crash", "∞", "hangs", "no answer in time; the process was ended"),
    "crashes": State("crash", "‡", "crashes", "the process of the plugin ended"),
}
_VERDICT = {"conforms": "agree", "does not conform": "new", "no client": "vacuous", "not tested": "vacuous"}
_COLOURS = {"conforms": "#1c7a43", "does not conform": "#b3261e", "no client": "#525c6a", "not tested": "#525c6a"}


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a section: a row an op, a column a dtype, in each the checks by class of values."""

    dtypes: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Check, ...], ...]], ...]


def grid(section: Section) -> Grid | None:
    """The grid of a section's cells; None if it has none."""
    cells = [check for check in section.checks if check.op]
    if not cells:
        return None
    dtypes = tuple(dict.fromkeys(check.dtype for check in cells))
    by_place: dict[tuple[str, str], list[Check]] = {}
    for check in cells:
        by_place.setdefault((check.op, check.dtype), []).append(check)
    names = dict.fromkeys(check.op for check in cells)
    return Grid(dtypes, tuple((op, tuple(tuple(by_place.get((op, d), ())) for d in dtypes)) for op in names))


def render(report: Report) -> str:
    """The report as one HTML document."""
    result, other = report.result, report.other
    return environment().get_template("conform.html.j2").render(
        result=result,
        kind=_VERDICT[result.verdict],
        looks=LOOKS,
        outcomes=OUTCOMES,
        grids={section.name: grid(section) for section in result.sections},
        wrong={section.name: wrong(section) for section in result.sections},
        other=other,
        changes=() if other is None else changes(other, result),
        pages=_pages(report),
        css=Markup(asset("report.css")),  # noqa: S704 - our own file
    )  # fmt: skip


def badge(report: Report) -> str:
    """The verdict as a small picture, SVG."""
    result = report.result
    total = sum(result.counts.values())
    words = result.verdict if result.verdict != "does not conform" else f"{result.wrong:,} of {total:,} do not hold"
    return environment().get_template("badge.svg.j2").render(
        label="PJRT", words=words, colour=_COLOURS[result.verdict], width=20 + 7 * len(words)
    )  # fmt: skip


def _pages(report: Report) -> dict[str, Markup]:
    """The pages of docs/findings/ that checks refer to, by name; one that links to another leads to its place here."""
    checks = [check for section in report.result.sections for check in section.checks]
    names = [name for name in dict.fromkeys(check.page for check in checks) if known_page(name)]
    return {name: known_page(name, lambda other: f"#known-{other}" if other in names else "") for name in names}


_FORMS = (
    (Product("index.html", '<meta name="generator" content="tenferro-ref conform">'), render),
    (Product("conform.json", '"tenferro_conform"'), lambda report: dumps(report.result)),
    (Product("badge.svg", 'aria-label="PJRT: '), badge),
)


def _files(report: Report, folder: Path) -> Iterator[Product]:
    return (Product(product.name, product.mark, form(report)) for product, form in _FORMS)


SITE = Site(_files, tuple(product for product, _ in _FORMS))
