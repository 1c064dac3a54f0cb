"""The HTML report as a document: what is in it, what is only text in it, and that it needs nothing else."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from fuzz.records import Campaign
from fuzz.report import Report
from reports.html import MAX_VALUES, render, site_pages
from tests.hostile.attacks import acts
from tests.reports import sample
from tests.reports.dom import Page, parse

pytestmark = pytest.mark.once


ALL = ("rich", "clean", "known_only", "short", "empty", "hostile", "many")


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    """Every sample, rendered and parsed once; parsing checks that tags nest."""
    return {name: parse(render(getattr(sample, name)())) for name in ALL}


def cells(page: Page) -> Counter[tuple[str, ...]]:
    names = ("data-op", "data-executor", "data-dtype", "data-verdict", "data-programs")
    return Counter(tuple(e.attrs[n] for n in names) for e in page.select(data_op=None))


def test_sections_in_order(pages: dict[str, Page]) -> None:
    expected = [
        "index",
        "changes",
        "executors",
        "matrix",
        "accuracy",
        "findings",
        "mutants",
        "generated",
        "environment",
    ]
    for name, page in pages.items():
        absent = {"mutants"} - ({"mutants"} if name in ("short", "hostile") else set())
        absent |= set() if name in ("rich", "known_only", "many") else {"changes"}
        shown = [e for e in expected if e not in absent]
        assert [e.attrs["id"] for e in page.select("section", aria_labelledby=None)] == shown


def test_why_a_run_proves_nothing_stands_above_everything_else(pages: dict[str, Page]) -> None:
    (banner,) = pages["short"].select("div", data_outcome="vacuous")
    assert sample.SHORT in banner.text
    assert sample.ABSENT in banner.text
    assert not pages["clean"].select(id="vacuity")
    both = parse(render(replace(sample.rich(), vacuous=(sample.SHORT,))))
    assert both.select("div", data_outcome="new")
    assert sample.SHORT in both.select(id="vacuity")[0].text


def test_seeded_faults_by_place(pages: dict[str, Page]) -> None:
    rows = {e.attrs["data-place"]: e.text.split() for e in pages["short"].select("tr", data_place=None)}
    assert list(rows) == ["emitter", "reclaim", "all"]
    assert rows["reclaim"] == ["reclaim", "2", "1", "1", "24", "40", "native-nopasses", "2"]
    (section,) = pages["short"].select("section", id="mutants")
    assert "no-fold" in section.text
    assert "order-of-a-set" not in section.text


def test_errors_that_were_due_and_kinds_never_reached(pages: dict[str, Page]) -> None:
    page = pages["rich"]
    rows = {e.attrs["data-error"]: e.text.split() for e in page.select("tr", data_error=None)}
    assert list(rows) == ["AxisOutOfBounds", "AxisRoleConflict"]
    assert rows["AxisOutOfBounds"] == ["AxisOutOfBounds", "12", "2", "3", "23", "1", sample.PLUGINS[0], "1"]
    assert rows["AxisRoleConflict"][:4] == ["AxisRoleConflict", "never", "reached", "0"]
    (section,) = page.select("section", id="generated")
    assert "2 rules that no program broke" in section.text
    assert "never: Slice" in section.text
    assert not pages["empty"].select("tr", data_error=None)


def test_opcodes_by_executor_and_by_element_type(pages: dict[str, Page]) -> None:
    page = pages["rich"]
    executors = {e.attrs["data-survey"]: e.text.split()[-4:] for e in page.select("tr", data_survey=None)}
    assert executors == {sample.PLUGINS[0]: ["60", "4", "5", "2"], sample.PLUGINS[3]: ["63", "4", "4", "0"]}
    rows = {e.attrs["data-opcode"]: e.text.split() for e in page.select("tr", data_opcode=None)}
    heads = [e.text for e in page.select("th", scope="col")]
    assert heads[heads.index("Opcode") :][:6] == ["Opcode", "f32", "f64", "tuple", "u32", "never left by"]
    assert rows == {
        "add": ["add", "·", "·", "·", "14"],
        "dot": ["dot", "22", "1", "·", "·"],
        "fusion kCustom": ["fusion", "kCustom", "9", "·", "·", "·", sample.PLUGINS[0]],
        "fusion kLoop": ["fusion", "kLoop", "71", "·", "·", "·"],
        "while": ["while", "·", "·", "1", "·", sample.PLUGINS[3]],
    }
    assert not pages["empty"].select(id="h-opcodes")


def test_the_matrix_says_what_the_campaign_says(pages: dict[str, Page]) -> None:
    campaign = sample.rich()
    shown = {k[:3]: (k[3], int(k[4])) for k in cells(pages["rich"])}
    assert len(shown) == 40 * 7 * 7
    for cell in campaign.cells:
        verdict, programs = shown.pop((cell.op, cell.executor, cell.dtype))
        assert programs == sum(cell.verdicts.values())
        if set(cell.verdicts) == {"pass"}:
            assert verdict == "agree"
    assert set(shown.values()) == {("not-generated", 0)}
    assert Counter(k[3] for k in cells(pages["rich"])) == {
        "agree": 1442, "not-generated": 477, "refused": 32, "undecided": 4, "disagree-new": 2, "disagree-known": 2, "crash": 1,
    }  # fmt: skip


def test_a_blamed_cell_links_to_its_finding(pages: dict[str, Page]) -> None:
    page = pages["rich"]
    ids = {e.attrs["id"] for e in page.select("article", data_finding=None)}
    links = {e.attrs["href"][1:] for e in page.select("a", data_op=None)}
    assert links == ids == {f"findings-{f.id}" for f in sample.rich().findings}


def test_new_findings_come_first(pages: dict[str, Page]) -> None:
    cards = pages["rich"].select("article", data_finding=None)
    assert [c.attrs["data-finding"] for c in cards] == ["disagree-new"] * 2 + ["disagree-known"] * 2


def test_a_finding_shows_everything(pages: dict[str, Page]) -> None:
    card = pages["rich"].select("article", data_finding="disagree-new")[0]
    finding = sample.rich().findings[1]
    for words in (finding.title, finding.signature, finding.attribution, finding.reason, finding.program_text,
                  finding.stablehlo, f"tenferro-ref fuzz replay findings/{finding.id}", finding.id,
                  "reduced from 31 instructions to 2", "9 programs", "[89.0]",
                  "inf (exactly)", "89.0 (0x42b20000)", "outside", sample.NEW):  # fmt: skip
        assert words in card.text


def test_a_known_finding_leads_to_a_copy_of_its_page() -> None:
    finding = replace(sample.rich().findings[0], known="0001-fast-min-max-drops-nan")
    page = parse(render(replace(sample.rich(), findings=(finding,))))
    (link,) = (e for e in page.select("a") if e.text == finding.known)
    (copy,) = page.select("article", id=link.attrs["href"][1:])
    assert "propagate NaN" in copy.text
    assert "<!--" not in copy.text
    documents = site_pages(Report(replace(sample.known_only(), findings=(finding,))))
    assert "known/0001-fast-min-max-drops-nan.html" in documents
    assert {text.count("<h1") for name, text in documents.items() if name.endswith(".html")} == {1}


def test_of_a_page_that_there_is_not_the_name_is_shown(pages: dict[str, Page]) -> None:
    assert "0001-fast-min-max" in pages["rich"].select("article", data_finding="disagree-known")[0].text
    assert not [e for e in pages["rich"].select("a") if e.text == "0001-fast-min-max"]


def test_executors_that_are_absent_say_why(pages: dict[str, Page]) -> None:
    (row,) = pages["rich"].select("tr", data_executor="jax")
    assert row.attrs["data-available"] == "false"
    assert "not available" in row.text
    assert "pip install tenferro-ref[jax]" in row.text


def test_every_number_of_the_summary(pages: dict[str, Page]) -> None:
    tiles = " ".join(pages["rich"].select("dl", class_="tiles")[0].text.split())
    for words in ("Programs2,000", "7 of 9", "1,433,284", "98.0 %", "1,648 0.1 %", "2 new, 2 known"):
        assert words in tiles


@pytest.mark.parametrize(
    ("name", "kind"),
    [("rich", "new"), ("clean", "agree"), ("known_only", "known"), ("empty", "vacuous"), ("hostile", "new")],
)
def test_verdict(pages: dict[str, Page], name: str, kind: str) -> None:
    (verdict,) = pages[name].select("div", data_outcome=None)
    assert verdict.attrs["data-outcome"] == kind
    assert ("not a pass" in verdict.text) == (kind == "vacuous")


def test_ids_are_unique_and_links_inside_the_page_lead_somewhere(pages: dict[str, Page]) -> None:
    for page in pages.values():
        ids = [e.attrs["id"] for e in page.select(id=None)]
        assert len(ids) == len(set(ids))
        targets = [
            e.attrs[a] for e in page.elements for a in ("href", "xlink:href") if e.attrs.get(a, "").startswith("#")
        ]
        assert {t[1:] for t in targets} <= set(ids)
        assert {e.attrs["data-copy"] for e in page.select(data_copy=None)} <= set(ids)
        clips = [u for e in page.elements for u in re.findall(r"url\(#(.*?)\)", e.attrs.get("clip-path", ""))]
        assert set(clips) <= set(ids)


def test_tables_are_labelled(pages: dict[str, Page]) -> None:
    for page in pages.values():
        assert all("scope" in e.attrs for e in page.select("th"))
        assert all(e.attrs["title"] and e.attrs["aria-label"] for e in page.select(data_op=None))
        assert all(e.attrs.get("aria-label") or e.text.strip() for e in page.select("button"))


def test_nothing_is_fetched(pages: dict[str, Page]) -> None:
    """No address but fragments, `data:` and the two files beside the page."""
    for name in ALL:
        page = pages[name]
        addresses = {
            v for e in page.elements for k, v in e.attrs.items() if k in ("src", "href", "xlink:href", "action")
        }
        outside = {a for a in addresses if not a.startswith(("#", "data:"))}
        assert outside == {"campaign.json", "matrix.csv", "findings.sarif", "junit.xml", "summary.md"}
        assert not page.select("img")
        assert not page.select("iframe")
        assert "default-src 'none'" in page.select("meta", http_equiv=None)[0].attrs["content"]
        styles = "".join(e.text for e in page.select("style"))
        assert "url(" not in styles
        assert "@import" not in styles


def test_hostile_text_stays_text(pages: dict[str, Page]) -> None:
    page = pages["hostile"]
    assert len(page.select("script")) == 1
    assert not [k for e in page.elements for k in e.attrs if k.startswith("on")]
    assert "{{ 7*7 }}" in page.select("main")[0].text
    assert page.select(data_op=sample.EVIL, data_executor=None)
    html = render(sample.hostile())
    assert "\u202e" not in html
    assert "\x00" not in html
    assert "\\ud800" in html


def test_hostile_text_stays_text_on_every_page_of_a_site() -> None:
    files = site_pages(Report(sample.hostile(), sample.hostile()))
    assert {name.partition("/")[0] for name in files} == {
        "index.html",
        "findings",
        "ops",
        "peers",
        "report.css",
        "report.js",
    }
    for name, content in files.items():
        assert re.fullmatch(r"(\w+/)?[\w@.-]+", name, re.ASCII)
        if name.endswith(".html"):
            page = parse(content)
            assert [e.attrs["src"].rpartition("/")[2] for e in page.select("script")] == ["report.js"]
            assert not [k for e in page.elements for k in e.attrs if k.startswith("on")]
            assert not page.select("img")
            assert not acts(content)


def test_long_text_is_cut_with_a_note() -> None:
    html = render(sample.hostile())
    assert len(html) < 600_000
    assert "lines) left out here; campaign.json has all of it" in html
    assert f"{100 - MAX_VALUES} more values left out here" in html


def test_the_outside_value_survives_the_cut(pages: dict[str, Page]) -> None:
    card = pages["hostile"].select("article", data_finding="disagree-new")[0]
    assert len([e for e in card.page.select("tr", class_="outside") if card.start < e.start < card.end]) == 1


def test_the_same_signature_twice_has_two_anchors(pages: dict[str, Page]) -> None:
    assert len(pages["hostile"].select("article", data_finding=None)) == 3


def test_anchors_outlive_the_campaign() -> None:
    def anchors(campaign: Campaign) -> set[str]:
        return {e.attrs["id"] for e in parse(render(campaign)).select("article", data_finding=None)}

    one = sample.rich()
    other = replace(one, seed=1, findings=tuple(replace(f, programs=1, title="x") for f in reversed(one.findings)))
    assert anchors(one) == anchors(other)


def test_200_findings(pages: dict[str, Page]) -> None:
    cards = pages["many"].select("article", data_finding=None)
    assert Counter(c.attrs["data-finding"] for c in cards) == {"disagree-new": 100, "disagree-known": 100}


def test_what_lanes_of_a_plugin_share_is_said_once(pages: dict[str, Page]) -> None:
    cards = {e.attrs["data-family"]: e.text for e in pages["rich"].select("section", data_family=None)}
    assert list(cards) == ["native", sample.XLA, sample.OLD + "@parity", sample.NEW + "@parity"]
    assert cards["native"].count("passes all") == 2  # they differ in that
    assert cards[sample.XLA].count("sha256") == cards[sample.XLA].count("0.106") == 1
    assert "(the plugin's own)" in cards[sample.XLA]
    (environment,) = pages["rich"].select("section", id="environment")
    assert "jax is not installed" in environment.text


def test_counts_are_in_the_order_of_their_numbers() -> None:
    generator = {f"instructions: {n}": 1 for n in ("10-14", "15-50", "3-5", "51 or more")} | {"op: Add F32": 3}
    page = parse(render(replace(sample.clean(), generator=generator)))
    (figure,) = page.select("figure", class_="histogram")  # ops are in the matrix
    order = [figure.text.index(n) for n in ("3-5", "10-14", "15-50", "51 or more")]
    assert order == sorted(order)


def test_plots_of_the_native_executor_are_folded() -> None:
    rich = sample.rich()
    totals = [replace(t, widths=((1.0, 0.0),)) for t in rich.totals]
    page = parse(render(replace(rich, totals=tuple(totals))))
    (folded,) = (e for e in page.select("details", class_="more") if "2 other configurations" in e.text)
    assert all(name.partition(":")[2] in folded.text for name in sample.NATIVE[1:])
    figures = [f.attrs["data-executor"] for f in page.select("figure", class_="plot")]
    assert figures == ["native", *sample.PLUGINS, *sample.NATIVE[1:]]


def test_plots_show_who_has_widths(pages: dict[str, Page]) -> None:
    figures = pages["rich"].select("figure", class_="plot")
    assert [f.attrs["data-executor"] for f in figures] == list(sample.PLUGINS)
    assert all("2 above the diagonal" in f.text for f in figures)
    assert all("width of the enclosure, ULP" in f.text for f in figures)
    assert not pages["empty"].select("svg")


# --- contrast: text on its background in both schemes, WCAG 2.1 AA

PAIRS = [
    ("ink", "bg"), ("ink", "bg-2"), ("ink-2", "bg"), ("ink-2", "bg-2"), ("ink-2", "bg-3"), ("link", "bg"), ("link", "bg-2"),
    ("bad", "bg"), ("bad", "bg-2"), ("known", "known-bg"), ("ok", "ok-bg"), ("new", "new-bg"), ("und", "und-bg"),
    ("ref", "ref-bg"), ("crash", "crash-bg"), ("known", "bg"), ("bg", "ink-2"),
]  # fmt: skip


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    parts = (int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4))
    r, g, b = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast(pages: dict[str, Page], scheme: int) -> None:
    css = pages["empty"].select("style")[0].text
    block = re.findall(r":root \{(.*?)\}", css, flags=re.S)[scheme]
    colours = dict(re.findall(r"--([\w-]+): (#\w+);", block))
    for ink, paper in PAIRS:
        light, dark = sorted((_luminance(colours[ink]), _luminance(colours[paper])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, paper)
