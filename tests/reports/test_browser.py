"""The report in a real browser: opened from disk, counted from its DOM, used by keyboard, nothing fetched."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from fuzz.report import Report
from reports.matrix import matrix
from reports.parity import SINGLE_FILE, SITE
from tests.browser import Browser, chromium_or_skip
from tests.reports import sample

pytestmark = pytest.mark.once
#: As the pages of the rich campaign look, and longer.
LONG = pytest.mark.nightly


CELLS = """return [...document.querySelectorAll("#support .c")].map(c => c.dataset).map(
    d => [d.op, d.executor, d.dtype, d.verdict, Number(d.programs)])"""
SHOWN = "return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility()).length"
#: Text whose colour is too near to what is behind it, by WCAG 2.1 AA: at least 4.5, of large text 3.
CONTRAST = """
    const parse = (text) => { const c = document.createElement("canvas").getContext("2d", {willReadFrequently: true}); c.fillStyle = text; c.fillRect(0, 0, 1, 1); return [...c.getImageData(0, 0, 1, 1).data]; };
    const cache = new Map();
    const colour = (text) => { if (!cache.has(text)) cache.set(text, parse(text)); return cache.get(text); };
    const over = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] / 255 + under[i] * (1 - top[3] / 255)).concat(255);
    const background = (e) => {
      const layers = [];
      for (; e; e = e.parentElement) { const c = colour(getComputedStyle(e).backgroundColor); layers.push(c); if (c[3] === 255) break; }
      return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 255]);
    };
    const light = (c) => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
    const bad = {};
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode, e = node.parentElement;
      if (!node.data.trim() || !e.checkVisibility({visibilityProperty: true, opacityProperty: true}) || e.closest("script, style, .sr, .skip, svg")) continue;
      const style = getComputedStyle(e), back = background(e), front = over(colour(style.color), back);
      const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
      const ratio = (a + 0.05) / (b + 0.05), large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 600);
      if (ratio < (large ? 3 : 4.5)) { const key = `${e.tagName}.${e.className} ${style.color} on ${back}`; bad[key] = ratio.toFixed(2); }
    }
    return bad;
"""
AXE = """const done = arguments[0]; axe.run(document, {resultTypes: ["violations"]}).then(
    r => done(r.violations.filter(v => v.impact !== "minor").map(v => [v.id, v.impact, v.nodes[0].html])))"""
PRESS = """(document.activeElement ?? document.body).dispatchEvent(
    new KeyboardEvent("keydown", {key: arguments[0], bubbles: true, cancelable: true}))"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_or_skip() as browser:
        yield browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    for name in ("rich", "known_only", "short", "hostile", "empty"):
        SITE.write(Report(getattr(sample, name)()), folder / name)
    SINGLE_FILE.write(Report(sample.rich()), folder / "single")
    return folder


@pytest.fixture
def report(chromium: Browser, folder: Path) -> Iterator[Browser]:
    """The rich report, freshly opened; whatever the test does, nothing goes wrong in the console and nothing is fetched."""
    page = folder / "rich" / "index.html"
    chromium.size(1280, 900)
    chromium.open(page)
    yield chromium
    assert chromium.console_errors() == []
    own = {(folder / "rich" / name).resolve().as_uri() for name in ("index.html", "report.css", "report.js")}
    pages = {re.split("[#?]", url)[0] for url in chromium.requests()}
    assert own <= pages
    assert all(url.startswith((folder / "rich").resolve().as_uri()) for url in pages)


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
    report.script("document.querySelector('#controls [name=column][value=\"1\"]').click()")
    rows = report.script(
        "return [...document.querySelectorAll('tr.op')].filter(e => !e.hidden).map(e => e.dataset.row)"
    )
    assert rows == ["Maximum", "Log", "Scatter"]  # Divide disagrees in the column that is hidden now


def test_the_filter_narrows_ops_and_findings(report: Browser) -> None:
    press(report, "/")
    assert report.script("return document.activeElement.id") == "filter"
    report.driver.switch_to.active_element.send_keys("scatter")
    assert shown(report, "tr.op") == 1
    assert shown(report, "#findings tr.finding") == 1
    report.driver.switch_to.active_element.send_keys("\ue00c")  # Escape
    assert shown(report, "tr.op") == 40
    assert shown(report, "#findings tr.finding") == 4


def test_what_is_chosen_is_kept_in_the_address(report: Browser) -> None:
    report.script("document.querySelector('#controls [name=dtype][value=F64]').click()")
    report.script("const f = document.querySelector('#filter'); f.value = 'div'; f.dispatchEvent(new Event('input'))")
    assert report.driver.current_url.endswith("index.html?q=div&dtype=F64")
    report.driver.refresh()
    assert shown(report, "tr.op") == 1
    assert shown(report, "#support .c") == 7
    assert report.script("return document.querySelector('#filter').value") == "div"


def test_a_click_on_a_heading_sorts(report: Browser) -> None:
    column = "return [...document.querySelectorAll('#executors tbody tr:not(:has(.absent))')].map(r => r.cells[3].textContent)"
    report.script("document.querySelectorAll('#executors th .sort')[3].click()")
    assert report.script(column) == ["37", "9", "9", "4", "0", "0", "0"]
    report.script("document.querySelectorAll('#executors th .sort')[3].click()")
    assert report.script(column) == ["0", "0", "0", "4", "9", "9", "37"]


def test_stepping_through_findings_by_keyboard(report: Browser) -> None:
    focused = "return document.activeElement.closest('tr.finding')?.querySelector('a').textContent"
    press(report, "j")
    first = report.script(focused)
    press(report, "j")
    assert report.script(focused) == "An empty Scatter aborts the process" != first
    press(report, "k")
    assert report.script(focused) == first
    report.script("document.activeElement.click()")
    assert report.texts("h1") == [f"✖ new {first}"]
    press(report, "j")
    assert report.texts("h1") == ["✖ new An empty Scatter aborts the process"]
    press(report, "?")
    assert report.script("return document.querySelector('#help').open") is True


@pytest.fixture
def finding(report: Browser, folder: Path) -> Iterator[Browser]:
    report.open(folder / "rich" / "findings" / f"{sample.rich().findings[1].id}.html")
    yield report
    report.open(folder / "rich" / "index.html")


def test_the_reproducer_is_copied(finding: Browser) -> None:
    copied = finding.driver.execute_async_script(
        """const done = arguments[0];
        Object.defineProperty(navigator, "clipboard", {value: {writeText: async text => done(text)}});
        document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "c", bubbles: true, cancelable: true}));"""
    )
    assert copied.endswith(f"tenferro-ref fuzz replay findings/{sample.rich().findings[1].id}")


def test_copying_falls_back_to_a_selection(finding: Browser) -> None:
    selected = finding.driver.execute_async_script(
        """const done = arguments[0];
        const button = document.querySelector("[data-copy$='-run']");
        Object.defineProperty(navigator, "clipboard", {value: undefined});
        document.execCommand = () => false;
        button.click();
        setTimeout(() => done([getSelection().toString(), button.textContent]), 50);"""
    )
    assert selected[0].strip().endswith(f"tenferro-ref fuzz replay findings/{sample.rich().findings[1].id}")
    assert selected[1] == "Selected: press Ctrl+C"


def test_a_cell_leads_to_its_finding(report: Browser) -> None:
    report.script("document.querySelector('#support a[data-op=Divide]').click()")
    assert report.script("return document.querySelector('article').dataset.id") == sample.rich().findings[3].id


def test_every_link_leads_to_a_file_and_every_fragment_to_a_place(chromium: Browser, folder: Path) -> None:
    """Over all pages of the site, the links of the pages that they lead to among them."""
    pages, missing = sorted((folder / "rich").rglob("*.html")), []
    ids = {p: set(re.findall(r'\bid="([^"]+)"', p.read_text())) for p in pages}
    for page in pages:
        for address in re.findall(r'\b(?:href|src)="([^"]+)"', page.read_text()):
            path, _, fragment = address.partition("#")
            target = (page.parent / unquote(path)).resolve() if path else page
            if not path.startswith("data:") and (not target.is_file() or (fragment and fragment not in ids[target])):
                missing.append((page.name, address))
    assert missing == []


def test_a_run_that_proves_nothing_says_so_on_the_first_screen(chromium: Browser, folder: Path) -> None:
    chromium.size(1280, 900)
    chromium.open(folder / "short" / "index.html")
    assert chromium.script("return document.querySelector('.verdict').dataset.outcome") == "vacuous"
    words = chromium.script("return document.querySelector('.verdict').innerText")
    assert "This run proves nothing" in words
    assert sample.SHORT in words
    assert sample.ABSENT in words
    assert chromium.script("return document.querySelector('#vacuity').getBoundingClientRect().bottom") < 900
    assert chromium.console_errors() == []


def kinds(folder: Path) -> list[Path]:
    """The index, and some pages of each kind."""
    pages = [folder / "index.html"]
    for kind, most in (("findings", 3), ("peers", 2), ("ops", 1), ("known", 1)):
        pages += sorted((folder / kind).glob("*.html"))[:most]
    return pages


@pytest.mark.parametrize("name", ["rich", *(pytest.param(n, marks=LONG) for n in ("short", "hostile", "empty"))])
@pytest.mark.parametrize("width", [400, pytest.param(1280, marks=LONG)])
def test_no_page_is_wider_than_the_screen(chromium: Browser, folder: Path, name: str, width: int) -> None:
    chromium.size(width, 900)
    for page in kinds(folder / name):
        chromium.open(page)
        chromium.script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert chromium.script("return document.documentElement.scrollWidth") <= width, page
        assert chromium.script("return window.evil") is None
        assert chromium.console_errors() == []
        own = [(folder / name / file).resolve().as_uri() for file in ("report.css", "report.js")]
        assert chromium.requests() == [page.resolve().as_uri(), *own]


def test_without_scripts_everything_can_be_read(chromium: Browser, folder: Path) -> None:
    chromium.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        chromium.size(1280, 900)
        chromium.open(folder / "rich" / "index.html")
    finally:
        chromium.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert shown(chromium, ".js") == 0
    assert shown(chromium, "#support .c") == 40 * 7 * 7
    assert shown(chromium, "#findings tr.finding") == 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes(report: Browser, scheme: str) -> None:
    report.prefer(scheme)
    colour = report.script("return getComputedStyle(document.documentElement).backgroundColor")
    assert colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}[scheme]


@pytest.mark.parametrize(
    "name", ["rich", *(pytest.param(n, marks=LONG) for n in ("short", "hostile", "single")), "empty"]
)
def test_axe_finds_no_violation(chromium: Browser, folder: Path, name: str) -> None:
    """Neither of the pages of a site nor of one file; axe-core is what code hosts and browsers check with."""
    pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    axe = (resources.files("axe_core_python") / "axe.min.js").read_text("utf-8")
    for page in kinds(folder / name):
        chromium.open(page)
        # of a long page, rows look alike: the first ones are enough
        chromium.script(
            "document.querySelectorAll('tbody, ul, .plots, main').forEach(e => [...e.children].slice(e.matches('main') ? 16 : 6).forEach(c => c.remove()))"
        )
        chromium.script(axe)
        chromium.driver.set_script_timeout(120)
        found = chromium.driver.execute_async_script(AXE)
        assert found == [], page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["rich", *(pytest.param(n, marks=LONG) for n in ("known_only", "short"))])
def test_all_text_stands_out_from_what_is_behind_it(chromium: Browser, folder: Path, name: str, scheme: str) -> None:
    chromium.size(1280, 900)
    chromium.prefer(scheme)
    for page in kinds(folder / name):
        chromium.open(page)
        chromium.script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert chromium.script(CONTRAST) == {}, page


def test_headings_follow_each_other_and_every_table_has_its_heads(report: Browser) -> None:
    levels = report.script("return [...document.querySelectorAll('main :is(h1,h2,h3,h4)')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    assert (
        report.script("return document.querySelectorAll('table:not(:has(th[scope=col], th[scope=row]))').length") == 0
    )
    assert report.script("return document.querySelectorAll('th:not([scope])').length") == 0


@pytest.mark.parametrize("width", [420, 1280])
def test_the_first_screen_says_whether_all_agree_how_many_are_new_and_whose(report: Browser, width: int) -> None:
    report.size(width, 900)
    report.script("window.scrollTo(0, 0)")
    place = "const r = document.querySelector('.verdict').getBoundingClientRect(); return r.top >= 0 && r.bottom <= 900"
    assert report.script(place)
    words = report.script("return document.querySelector('.verdict').innerText")
    assert "2 new disagreements, and 2 known ones, in 2,000 programs." in words
    assert f"Who disagrees: {sample.NEW} 2 new; {sample.OLD} 1 new; {sample.XLA} 2 known." in words
    assert "3 of 7 executors never disagreed." in words


def test_a_missing_browser_skips_or_fails_when_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for name in ("CHROMIUM", "CHROMEDRIVER", "TENFERRO_REQUIRE_BROWSER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(pytest.skip.Exception, match="chromium is not installed"), chromium_or_skip():
        pass
    monkeypatch.setenv("TENFERRO_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="TENFERRO_REQUIRE_BROWSER"), chromium_or_skip():
        pass
