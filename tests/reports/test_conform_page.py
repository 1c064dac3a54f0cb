"""The page of a plugin's conformance in a real browser: opened from disk, counted from its DOM, nothing fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.conform.record import Check, Conformance, Report, Section, load
from reports.conform import SITE
from tests.browser import chromium_or_skip

pytestmark = pytest.mark.once

HOSTILE = "<script>document.title = 'taken'</script>\x1b[31m"
CELLS = (
    Check("Exp F32 special", "known", "inf is not in NaN", page="0001-fast-min-max-drops-nan", op="Exp", dtype="F32", values="special"),
    Check("Exp F32 ordinary", "holds", op="Exp", dtype="F32", values="ordinary"),
    Check("Exp C64 ordinary", "skipped", "unsupported", op="Exp", dtype="C64", values="ordinary"),
)  # fmt: skip
RESULT = Conformance(
    HOSTILE, "2026-11-22T12:00:00+00:00", 12.5, "", (("platform", HOSTILE),),
    (
        Section("operations", "Operations", CELLS, 3.0),
        Section("errors", "Wrong calls", (Check("null", "crashes", HOSTILE), Check("text", "holds")), 1.0),
    ),
)  # fmt: skip


@pytest.mark.parametrize("verdict", ["does not conform", "conforms", "no client", "not tested"])
def test_the_page_says_what_the_record_says(verdict: str, tmp_path: Path) -> None:
    sections = (
        RESULT.sections
        if verdict == "does not conform"
        else (
            Section("errors", "Wrong calls", (Check("text", "skipped" if verdict == "not tested" else "holds"),), 1.0),
        )
    )
    result = Conformance(
        RESULT.plugin, RESULT.started, 1.0, HOSTILE if verdict == "no client" else "", RESULT.facts, sections
    )
    page = SITE.write(Report(result, RESULT), tmp_path)
    assert load(tmp_path / "conform.json") == result
    with chromium_or_skip() as browser:
        browser.open(page)
        assert verdict in browser.texts("h1")[0]
        assert browser.script("return document.querySelector('.verdict').dataset.outcome") == verdict
        assert browser.script("return document.title").endswith(verdict)
        assert len(browser.texts("main section[data-section]")) == len(sections)
        squares = browser.script(
            "return [...document.querySelectorAll('.cells .c')].map(c => c.getAttribute('aria-label'))"
        )
        wrong = browser.texts(".wrong tbody tr")
        if verdict == "does not conform":
            assert squares == ["special known", "ordinary holds", "ordinary skipped"]
            assert len(wrong) == 2
            assert browser.texts("#changes .empty") == ["Every check came out the same."]
        else:
            assert (squares, wrong) == ([], [])
            assert len(browser.texts("#changes tbody tr")) == (5 if verdict == "not tested" else 4)
        assert browser.script("return document.documentElement.scrollWidth <= window.innerWidth")


def test_the_badge_is_a_picture(tmp_path: Path) -> None:
    SITE.write(Report(RESULT), tmp_path)
    with chromium_or_skip() as browser:
        browser.open(tmp_path / "badge.svg")
        assert browser.texts("title") == ["PJRT: 2 of 5 do not hold"]
