"""The verdict on a campaign in one sentence, and the numbers of every format."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.records import Campaign, Totals
from fuzz.summary import executor_rows, outcome, unexplained
from oracle.verdict import ExecutorInfo
from reports import text
from tenferro_ref.escape import visible
from tests.reports import sample


def test_all_agree() -> None:
    verdict = outcome(sample.clean())
    assert (verdict.kind, verdict.sentence, verdict.warnings) == ("agree", "7 executors agree on 2,000 programs.", ())


def test_new_disagreements_come_first_and_known_ones_are_counted() -> None:
    verdict = outcome(sample.rich())
    assert (verdict.kind, verdict.sentence) == ("new", "2 new disagreements, and 2 known ones, in 2,000 programs.")
    assert [w.partition(" ")[0] for w in verdict.warnings] == ["jax", "iree"]


def test_known_disagreements_are_no_failure_but_are_said() -> None:
    verdict = outcome(sample.known_only())
    assert (verdict.kind, verdict.sentence) == (
        "known",
        "No new disagreement in 2,000 programs; 2 known ones seen again.",
    )


def test_an_executor_without_a_program_weakens_the_evidence() -> None:
    assert sum("given no program" in w for w in outcome(sample.known_only()).warnings) == 2


INFO = (ExecutorInfo("native", True), ExecutorInfo("xla", True))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"programs": 0}, "no program was generated"),
        ({"executors": (), "totals": ()}, "no executor was available"),
        ({"executors": (ExecutorInfo("xla", False, "gone"),), "totals": ()}, "no executor was available"),
        ({"totals": ()}, "no executor ran"),
        ({"totals": (Totals("xla", {"unsupported": 9}),)}, "no executor ran"),
        ({"totals": (Totals("xla", {"undecided": 9}, elements=50, decided=0),)}, "not one element"),
    ],
)
def test_what_tested_nothing_never_agrees(changes: dict[str, object], why: str) -> None:
    base = replace(sample.empty(), programs=9, executors=INFO, totals=(Totals("xla", {"pass": 9}, 50, 50),))
    assert outcome(base).kind == "agree"
    verdict = outcome(replace(base, **changes))  # type: ignore[arg-type]
    assert verdict.kind == "vacuous"
    assert "Nothing was tested" in verdict.sentence
    assert why in verdict.sentence


def _loose(totals: Totals) -> Campaign:
    return replace(sample.clean(), totals=(totals,), findings=(sample.finding(executor="xla", programs=3),))


def test_disagreements_without_a_finding_are_new() -> None:
    assert outcome(_loose(Totals("xla", {"pass": 1, "mismatch": 3}, 9, 9))).kind == "known"
    verdict = outcome(_loose(Totals("xla", {"pass": 1, "mismatch": 4}, 9, 9)))
    assert verdict.kind == "new"
    assert verdict.sentence == "New disagreements: 1 program of 2,000 disagreed, and no finding says why."
    assert "xla: 1 disagreeing program in no finding" in verdict.warnings


def test_a_campaign_that_counted_them_is_believed() -> None:
    """One program generated twice is one program of its finding, and two disagreements."""
    twice = _loose(Totals("xla", {"pass": 1, "mismatch": 4}, 9, 9, unexplained=0))
    assert unexplained(twice, "xla") == 0
    assert outcome(twice).kind == "known"
    assert unexplained(_loose(Totals("xla", {"mismatch": 1}, unexplained=2)), "xla") == 2


def test_every_executor_that_any_record_names_has_a_row() -> None:
    campaign = replace(sample.clean(), executors=INFO)
    names = [row.info.name for row in executor_rows(campaign)]
    assert names == ["native", "xla", *sample.NATIVE[1:], *sample.PLUGINS]


@given(st.floats(0, 1))
def test_a_share_is_100_percent_only_if_it_is_all(value: float) -> None:
    assert (text.share(value) == "100 %") == (value == 1)
    assert (text.share(value) == "0 %") == (value == 0)


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, text.MISSING), (float("nan"), text.MISSING), (float("inf"), "∞"), (0.0, "0"), (0.5, "0.5"), (2.25, "2.25"), (12345.0, "12,345"),
     (4.2e9, "4.2e9"), (1e300, "1.0e300")],
)  # fmt: skip
def test_ulps(value: float | None, words: str) -> None:
    assert text.ulp(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0 s"),
        (0.421, "0.42 s"),
        (41, "41.0 s"),
        (59.97, "1 min 00 s"),
        (171.3, "2 min 51 s"),
        (3725, "1 h 02 min"),
    ],
)
def test_durations(value: float, words: str) -> None:
    assert text.seconds(value) == words


@given(st.text(st.sampled_from("ab\n"), max_size=60), st.integers(1, 5), st.integers(1, 30))
def test_a_shortened_text_is_a_beginning_and_says_what_is_missing(whole: str, lines: int, characters: int) -> None:
    head, note = text.shorten(whole, lines, characters)
    assert whole.startswith(head)
    assert len(head) <= characters or head == whole
    assert head.count("\n") < lines
    assert bool(note) == (head != whole)
    if note:
        assert note.startswith(f"{len(whole) - len(head):,} characters")


@given(st.text(st.characters()))
def test_visible_text_can_be_encoded_and_has_no_control_characters(whole: str) -> None:
    shown = visible(whole)
    shown.encode("utf-8")
    assert not {c for c in shown if ord(c) < 32 and c not in "\t\n"}
    assert not set(shown) & set("\u202a\u202e\u2066\u2069\x7f\x85")
