"""The report in a real browser: opened from disk, counted from its DOM, used by keyboard, nothing fetched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reports import write_html
from reports.matrix import matrix
from tests.browser import Browser, chromium_or_skip
from tests.reports import sample

CELLS = """return [...document.querySelectorAll("#support .c")].map(c => c.dataset).map(
    d => [d.op, d.executor, d.dtype, d.verdict, Number(d.programs)])"""
SHOWN = "return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility()).length"
PRESS = """(document.activeElement ?? document.body).dispatchEvent(
    new KeyboardEvent("keydown", {key: arguments[0], bubbles: true, cancelable: true}))"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_or_skip() as browser:
        yield browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    for name in ("rich", "hostile", "empty"):
        write_html(getattr(sample, name)(), folder / name)
    return folder


@pytest.fixture
def report(chromium: Browser, folder: Path) -> Iterator[Browser]:
    """The rich report, freshly opened; whatever the test does, nothing goes wrong in the console and nothing is fetched."""
    page = folder / "rich" / "index.html"
    chromium.size(1280, 900)
    chromium.open(page)
    yield chromium
    assert chromium.console_errors() == []
    assert {url.partition("#")[0] for url in chromium.requests()} == {page.resolve().as_uri()}


def shown(browser: Browser, selector: str) -> int:
    count: int = browser.script(SHOWN, selector)
    return count


def press(browser: Browser, key: str) -> None:
    browser.script(PRESS, key)


def test_the_matrix_counted_from_the_dom(report: Browser) -> None:
    cells: list[list[Any]] = report.script(CELLS)
    expected = [[e.op, e.executor, e.dtype, e.state.slug, e.programs] for e in matrix(sample.rich()).entries()]
    assert cells == expected
    campaign = sample.rich()
    counted: Counter[str] = Counter()
    for _, executor, _, _, programs in cells:
        counted[executor] += programs
    recorded: Counter[str] = Counter()
    for cell in campaign.cells:
        recorded[cell.executor] += sum(cell.verdicts.values())
    assert counted == recorded


def test_the_dtype_switch_leaves_one_dtype(report: Browser) -> None:
    assert shown(report, "#support .c") == 40 * 7 * 7
    report.script("document.querySelector('#controls [name=dtype][value=F64]').click()")
    assert shown(report, "#support .c") == shown(report, "#support .c[data-dtype=F64]") == 40 * 7
    report.script("document.querySelector('#controls [name=dtype][value=\"\"]').click()")
    assert shown(report, "#support .c") == 40 * 7 * 7


def test_only_rows_with_disagreements(report: Browser) -> None:
    report.script("document.querySelector('#controls [name=problems]').click()")
    rows = report.script(
        "return [...document.querySelectorAll('tr.op')].filter(e => !e.hidden).map(e => e.dataset.row)"
    )
    assert rows == ["Divide", "Maximum", "Log", "Scatter"]
    assert report.texts("#shown") == ["4 of 40 operations"]
    report.script("document.querySelector('#controls [name=column][value=\"3\"]').click()")
    rows = report.script(
        "return [...document.querySelectorAll('tr.op')].filter(e => !e.hidden).map(e => e.dataset.row)"
    )
    assert rows == ["Maximum", "Log", "Scatter"]  # Divide disagrees in the column that is hidden now


def test_the_filter_narrows_ops_and_findings(report: Browser) -> None:
    press(report, "/")
    assert report.script("return document.activeElement.id") == "filter"
    report.driver.switch_to.active_element.send_keys("scatter")
    assert shown(report, "tr.op") == 1
    assert shown(report, "details.card") == 1
    report.driver.switch_to.active_element.send_keys("\ue00c")  # Escape
    assert shown(report, "tr.op") == 40
    assert shown(report, "details.card") == 4


def test_stepping_through_findings_by_keyboard(report: Browser) -> None:
    focused = "return document.activeElement.closest('details')?.querySelector('.title').textContent"
    press(report, "j")
    first = report.script(focused)
    press(report, "j")
    assert report.script(focused) == "An empty Scatter aborts the process" != first
    press(report, "k")
    assert report.script(focused) == first
    press(report, "e")
    assert shown(report, "details.card .body") == 4
    press(report, "e")
    assert shown(report, "details.card .body") == 0
    press(report, "?")
    assert report.script("return document.querySelector('#help').open") is True


def test_a_finding_opens_and_its_reproducer_is_copied(report: Browser) -> None:
    report.script("document.querySelectorAll('details.card')[1].querySelector('summary').click()")
    assert shown(report, "details.card[open]") == 2
    copied = report.driver.execute_async_script(
        """const done = arguments[0];
        const button = document.querySelector("details.card [data-copy$='-py']");
        Object.defineProperty(navigator, "clipboard", {value: {writeText: async text => done(text)}});
        button.click();"""
    )
    assert copied == sample.REPRODUCER


def test_copying_falls_back_to_a_selection(report: Browser) -> None:
    selected = report.driver.execute_async_script(
        """const done = arguments[0];
        const button = document.querySelector("details.card [data-copy$='-py']");
        Object.defineProperty(navigator, "clipboard", {value: undefined});
        document.execCommand = () => false;
        button.click();
        setTimeout(() => done([getSelection().toString(), button.textContent]), 50);"""
    )
    assert [words.strip() for words in selected] == [sample.REPRODUCER.strip(), "Selected: press Ctrl+C"]


def test_a_cell_leads_to_its_finding(report: Browser) -> None:
    report.script("document.querySelector('#support a[data-op=Divide]').click()")
    opened = "return document.querySelector('details.card:target')?.open"
    assert report.script(opened) is True


@pytest.mark.parametrize("name", ["rich", "hostile", "empty"])
@pytest.mark.parametrize("width", [400, 1280])
def test_no_page_is_wider_than_the_screen(chromium: Browser, folder: Path, name: str, width: int) -> None:
    chromium.size(width, 900)
    chromium.open(folder / name / "index.html")
    chromium.script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert chromium.script("return document.documentElement.scrollWidth") <= width
    assert chromium.script("return window.evil") is None
    assert chromium.console_errors() == []
    assert len(chromium.requests()) == 1


def test_without_scripts_everything_can_be_read(chromium: Browser, folder: Path) -> None:
    chromium.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        chromium.size(1280, 900)
        chromium.open(folder / "rich" / "index.html")
    finally:
        chromium.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert shown(chromium, ".js") == 0
    assert shown(chromium, "#support .c") == 40 * 7 * 7
    assert shown(chromium, "details.card") == 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes(report: Browser, scheme: str) -> None:
    report.prefer(scheme)
    colour = report.script("return getComputedStyle(document.documentElement).backgroundColor")
    assert colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}[scheme]


def test_a_missing_browser_skips_or_fails_when_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for name in ("CHROMIUM", "CHROMEDRIVER", "TENFERRO_REQUIRE_BROWSER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(pytest.skip.Exception, match="chromium is not installed"), chromium_or_skip():
        pass
    monkeypatch.setenv("TENFERRO_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="TENFERRO_REQUIRE_BROWSER"), chromium_or_skip():
        pass
