"""JUnit XML and Markdown, the two that CI servers read."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from reports.junit import _FAILING, junit_xml
from reports.markdown import MARK, summary
from reports.matrix import matrix
from tests.reports import sample

ALL = ("rich", "clean", "known_only", "short", "empty", "hostile", "many")


def junit(name: str) -> ET.Element:
    return ET.fromstring(junit_xml(getattr(sample, name)()))


@pytest.mark.parametrize("name", ALL)
def test_counts_add_up(name: str, tmp_path: Path) -> None:
    root = junit(name)
    for tag, total in (("testcase", "tests"), ("failure", "failures"), ("skipped", "skipped")):
        assert int(root.attrib[total]) == len(list(root.iter(tag)))
        for suite in root:
            assert int(suite.attrib[total]) == len(list(suite.iter(tag)))


def test_new_disagreements_fail_and_known_ones_are_skipped(tmp_path: Path) -> None:
    root = junit("rich")
    failed = {(c.attrib["classname"], c.attrib["name"]) for c in root.iter("testcase") if c.find("failure") is not None}
    assert failed == {
        (f"{sample.OLD}@parity", "Log[F32]"),
        (f"{sample.NEW}@parity", "Log[F32]"),
        (f"{sample.NEW}@parity", "Scatter[I64]"),
    }
    (known,) = (c for c in root.iter("testcase") if c.get("name") == "Maximum[F32]" and c.find("skipped") is not None)
    skipped = known.find("skipped")
    assert skipped is not None
    assert skipped.attrib["message"] == "known: 0001-fast-min-max"


def test_one_test_a_generated_cell(tmp_path: Path) -> None:
    root = junit("rich")
    generated = [e for e in matrix(sample.rich()).entries() if e.state.slug != "not-generated"]
    cells = [c for suite in root if suite.attrib["name"] != "campaign" for c in suite]
    assert len(cells) == len(generated)
    assert len(list(root.iter("failure"))) == sum(e.state.slug in _FAILING for e in generated)


def test_failures_carry_the_program(tmp_path: Path) -> None:
    failure = next(junit("rich").iter("failure"))
    assert failure.text is not None
    assert "%2 = Log(%1)" in failure.text
    assert "algsimp" in failure.text


def test_an_empty_campaign_fails(tmp_path: Path) -> None:
    root = junit("empty")
    assert root.attrib["failures"] == "1"
    assert "no program was generated" in next(root.iter("failure")).attrib["message"]


def failures(root: ET.Element) -> dict[tuple[str | None, str | None], ET.Element]:
    cases = {(c.get("classname"), c.get("name")): c.find("failure") for c in root.iter("testcase")}
    return {name: failure for name, failure in cases.items() if failure is not None}


def test_a_run_that_proves_too_little_is_a_failing_test_of_its_own(tmp_path: Path) -> None:
    vacuity = failures(junit("short"))["campaign", "vacuity"]
    assert vacuity.attrib["message"] == f"this run proves nothing: {sample.SHORT}"
    assert vacuity.text == f"{sample.SHORT}\n{sample.ABSENT}"
    names = [case.get("name") for case in junit("clean").iter("testcase")]
    assert "vacuity" in names
    assert not failures(junit("clean"))


def test_a_seeded_fault_that_survives_fails(tmp_path: Path) -> None:
    root = junit("short")
    (suite,) = (s for s in root if s.attrib["name"] == "mutants")
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["skipped"]) == ("5", "1", "1")
    assert failures(root)["mutants.reclaim", "no-fold"].attrib["message"] == "survived 2000 programs"


def test_a_finding_that_no_cell_shows_fails_all_the_same(tmp_path: Path) -> None:
    root = junit("hostile")
    (suite,) = (s for s in root if s.attrib["name"] == "findings")
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["skipped"]) == ("3", "2", "1")


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("rich", "# ❌ 2 new disagreements, and 2 known ones, in 2,000 programs."),
        ("clean", "# ✅ 7 executors agree on 2,000 programs."),
        ("known_only", "# 🔶 No new disagreement in 2,000 programs; 2 known ones seen again."),
        ("short", "# ⛔ This run proves nothing, for 2 reasons."),
        ("empty", "# ⛔ Nothing was tested: no program was generated."),
    ],
)
def test_markdown_begins_with_the_verdict(name: str, first: str) -> None:
    assert summary(getattr(sample, name)()).splitlines()[:2] == [MARK, first]


def test_markdown_lists_executors_and_findings() -> None:
    page = summary(sample.rich())
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 9
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {11}
    assert "jax is not installed" in page
    assert (
        page.index("## New: 2")
        < page.index("An empty Scatter")
        < page.index("## Known: 2")
        < page.index("Maximum loses")
    )


def test_markdown_says_why_a_run_proves_nothing() -> None:
    page = summary(sample.short())
    assert f"- {sample.SHORT}\n" in page
    assert "This run proves nothing" not in summary(sample.clean())


def test_markdown_shows_the_seeded_faults_by_place() -> None:
    page = summary(sample.short())
    rows = page[page.index("## Seeded faults") :].splitlines()[2:]
    assert rows[2:] == [
        "| emitter | 1 | 0 | 0 | 12 | 12 | loader 1 |",
        "| reclaim | 2 | 1 | 1 | 24 | 40 | native-nopasses 2 |",
        "| all | 3 | 1 | 1 | 12 | 40 | native-nopasses 2, loader 1 |",
    ]
    assert "1 seeded fault survived: a fault like no-fold would not be noticed" in page


def test_markdown_lets_no_markup_through() -> None:
    page = summary(sample.hostile()).removeprefix(MARK)
    prose = "\n".join(line for line in page.splitlines() if not line.startswith("Seed"))  # that one has a code span
    assert not re.findall(r"(?<!\\)<", prose)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in prose.splitlines() if line.startswith("| ")} == {8, 11}
    assert len(page) < 20_000


def test_markdown_of_many_findings_stays_short() -> None:
    page = summary(sample.many())
    assert page.count("- **Finding number") == 100
    assert page.count("and 50 more in the report") == 2
