"""The difference between two runs, the runs of a store, and the discovery curve."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fuzz.records import Campaign
from fuzz.report import Report, Run
from reports.changes import changes, run_rows
from reports.html import render
from reports.markdown import summary
from reports.plots import discovery_plot
from tests.reports import sample
from tests.reports.dom import parse

pytestmark = pytest.mark.once


def less(campaign: Campaign, *gone: int) -> Campaign:
    """The campaign without some of its findings, which agree then."""
    kept = tuple(f for i, f in enumerate(campaign.findings) if i not in gone)
    keys = {(f.op, f.dtype, f.executor) for i, f in enumerate(campaign.findings) if i in gone}
    cells = tuple(
        replace(c, verdicts={"pass": 9}) if (c.op, c.dtype, c.executor) in keys else c for c in campaign.cells
    )
    return replace(campaign, findings=kept, cells=cells, seed=campaign.seed - 1)


def test_a_run_is_no_different_from_itself() -> None:
    same = changes(sample.rich(), sample.rich())
    assert (same.appeared, same.gone, same.cells, same.joined, same.left) == ((),) * 5
    assert same.sentence == "Nothing is different from then."


def test_what_came_goes_the_other_way_round() -> None:
    now, before = sample.rich(), less(sample.rich(), 3)
    there, back = changes(before, now), changes(now, before)
    assert there.appeared == back.gone == (now.findings[3],)
    assert there.gone == back.appeared == ()
    assert [(c.op, c.before.slug, c.now.slug) for c in there.cells] == [("Divide", "agree", "disagree-known")]
    assert [(c.op, c.before, c.now) for c in back.cells] == [(c.op, c.now, c.before) for c in there.cells]
    assert there.sentence == "Since then: 1 finding appeared, 1 cell of the matrix changed."


def test_the_first_page_says_what_is_new() -> None:
    now, before = sample.rich(), less(sample.rich(), 1, 2)
    page = parse(render(Report(now, before)))
    (section,) = page.select("section", id="changes")
    assert "An empty Scatter aborts the process" in section.text
    assert f"seed {before.seed}" in section.text
    assert "2 findings appeared" in page.select("section", id="index")[0].text
    assert "Since then: 2 findings appeared" in summary(Report(now, before))


def test_runs_of_a_store_add_up() -> None:
    one, two = less(sample.rich(), 1, 2), less(sample.rich(), 0)
    runs = tuple(map(Run.of, (one, two)))
    assert run_rows(runs[:1]) == ()
    assert [(row.first, row.seen) for row in run_rows(runs)] == [(2, 2), (2, 4)]
    page = parse(render(Report(two, one, runs)))
    assert [row.attrs["data-run"] for row in page.select("tr", data_run=None)] == [str(run.seed) for run in runs]


def test_the_discovery_curve_counts_findings_by_program() -> None:
    campaign = sample.rich()
    plot = discovery_plot(campaign)
    assert plot is not None
    assert "4 findings in 2,000 programs, the last after 13" in plot.svg
    assert discovery_plot(replace(campaign, findings=())) is None
    unknown = tuple(replace(f, first_program=None) for f in campaign.findings)
    assert discovery_plot(replace(campaign, findings=unknown)) is None
