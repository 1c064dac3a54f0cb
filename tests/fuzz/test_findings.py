"""What is known about third-party builds: every page has its reproducer, every reproducer still shows what it says."""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.findings.known import DEFAULT_RULES, Known, load_known, match
from fuzz.records import Campaign, Finding, from_json, to_json
from oracle.peers import Pool
from oracle.verdict import Build, Verdict
from reports.html import write_html
from reports.markdown import write_markdown
from tenferro_ref.errors import FormatError
from tests.libraries import peer_or_skip
from tests.reports import sample

FINDINGS = Path(__file__).resolve().parents[2] / "docs" / "findings"
PAGES = sorted(p.stem for p in FINDINGS.glob("[0-9]*.md"))
REPRODUCERS = sorted(FINDINGS.glob("[0-9]*.py"))
ALWAYS = datetime.date(2999, 1, 1)


#: What no campaign meets: rank 0 is not scattered onto, integers are not divided, and what is emitted avoids the other two.
UNMET = {
    "0018-scatter-onto-rank-0",
    "0022-scatter-window-partly-outside",
    "0023-interpreter-scatter-writes-into-its-operand",
}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.close()


def test_pages_rules_and_reproducers_belong_together() -> None:
    assert PAGES
    assert {rule.page for rule in load_known(DEFAULT_RULES)} == set(PAGES) - UNMET
    assert set(PAGES) >= UNMET
    assert {path.stem for path in REPRODUCERS} == set(PAGES)
    index = (FINDINGS / "index.md").read_text("utf-8")
    for page in PAGES:
        assert f"({page}.md)" in index


@pytest.mark.parametrize("path", REPRODUCERS, ids=lambda p: p.stem)
def test_a_reproducer_shows_its_finding(path: Path, pool: Pool) -> None:
    """Exit status 1: the build on which it was found still disagrees. When this fails, the page needs a new date."""
    named = re.search(r"'(pjrt:[\w-]+@[\w-]+|interpreter|iree)'", path.read_text("utf-8"))
    assert named
    peer_or_skip(pool, named[1])
    root = str(FINDINGS.parents[1])
    run = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": root}, check=False
    )
    assert run.returncode == 1, run
    assert re.match(rf"{re.escape(named[1])} (mismatch|error|crash|timeout) ", run.stdout)


FINDING = replace(
    sample.rich().findings[0], signature="Exp > Log | F32 | expected inf, got finite | rewrite: algsimp",
    verdict="mismatch", executor="pjrt:xla081@parity",
)  # fmt: skip


def test_every_report_says_which_build_was_the_first(tmp_path: Path) -> None:
    asked = (
        Build("old", "0.81", Verdict.PASS),
        Build("new", "0.115", Verdict.MISMATCH),
        Build("gone", reason="absent: pip install gone"),
    )
    campaign = replace(sample.rich(), findings=(replace(FINDING, builds=asked),))
    assert from_json(Campaign, to_json(campaign)) == campaign
    html = write_html(campaign, tmp_path).read_text("utf-8")
    assert "new (PJRT API 0.115), not yet in old" in html
    assert "old pass, new mismatch, gone (absent: pip install gone)" in html
    assert "first bad build new (PJRT API 0.115), not yet in old" in write_markdown(campaign, tmp_path).read_text(
        "utf-8"
    )


def test_a_record_without_builds_is_read() -> None:
    content = json.loads(to_json(FINDING))
    del content["builds"]
    assert from_json(Finding, json.dumps(content)) == FINDING


class TestRules:
    def test_a_rule_matches_by_pattern(self) -> None:
        rule = Known("0001-x", "*Exp > Log* | * | rewrite: algsimp", ALWAYS)
        assert match(FINDING, (rule,)) == "0001-x"

    @pytest.mark.parametrize(
        "change",
        [
            {"signature": "Log | F32 | expected inf, got finite | every lane"},
            {"verdict": "crash"},
            {"executor": "native"},
        ],
    )
    def test_everything_that_a_rule_names_must_match(self, change: dict[str, str]) -> None:
        rule = Known("0001-x", "*Exp > Log* | * | rewrite: algsimp", ALWAYS, executor="pjrt*")
        assert match(replace(FINDING, **change), (rule,)) == ""

    @pytest.mark.parametrize(
        ("who", "known"), [("every lane", True), ("only jax", True), ("only jax-eager", True), ("only iree", False)]
    )
    def test_jax_has_one_lane_which_is_every_lane(self, who: str, known: bool) -> None:
        rule = Known("0001-x", "Log1p | F64 | * | every lane", ALWAYS)
        finding = replace(FINDING, signature=f"Log1p | F64 | expected finite, got other finite | {who}")
        assert (match(finding, (rule,)) == "0001-x") is known

    def test_a_rule_expires(self) -> None:
        rule = Known("0001-x", "*", datetime.date(2026, 1, 31))
        assert match(FINDING, (rule,), datetime.date(2026, 1, 31)) == "0001-x"
        assert match(FINDING, (rule,), datetime.date(2026, 2, 1)) == ""

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("[[known]", "not TOML"),
            ("[other]", "only"),
            ("[[known]]\npage = 'x'\n", "required"),
            ("[[known]]\npage = 'x'\nsignature = '*'\nexpires = 'soon'\n", "expires"),
            ("[[known]]\npage = 'x'\nsignature = '*'\nexpires = 2027-01-01\ncolour = 'red'\n", "colour"),
        ],
    )
    def test_the_rules_file_is_read_strictly(self, tmp_path: Path, text: str, words: str) -> None:
        path = tmp_path / "known.toml"
        path.write_text(text)
        with pytest.raises(FormatError, match=words):
            load_known(path)
