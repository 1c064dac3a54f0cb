"""What a report draws of programs and errors: graphs, segments, timelines, heat maps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fuzz.report import Report, Run
from reports.graph import MAX_NODES, drawing
from reports.heat import COLUMNS, ZERO, heat_maps
from reports.html import site_pages
from reports.matrix import matrix
from reports.rows import pair_table
from tenferro_ref import frontend as tn
from tenferro_ref.extensions import linalg
from tenferro_ref.program import GraphBuilder, dumps
from tests.reports import sample
from tests.reports.dom import Page, parse

pytestmark = pytest.mark.once


def chain(length: int) -> str:
    b = GraphBuilder()
    value = b.input("F64", (3,))
    for _ in range(length):
        value = tn.exp(value)
    return dumps(b.build(value))


def test_a_program_is_drawn_in_layers() -> None:
    b = GraphBuilder()
    x, y, alone = (b.input("F64", (2, 2)) for _ in range(3))
    z = tn.exp(x) + y * y
    found = drawing(dumps(b.build(z, alone.sum())), {5})
    assert found is not None
    assert [(n.label, n.slug) for n in found.nodes] == [
        ("%0 input", "input"), ("%1 input", "input"), ("%2 input", "input"), ("%3 Exp", "inner"),
        ("%4 Multiply", "inner"), ("%5 Add", "guilty"), ("%6 ReduceSum", "output"),
    ]  # fmt: skip
    height = {n.label: n.y for n in found.nodes}
    assert height["%0 input"] < height["%3 Exp"] < height["%5 Add"] > height["%4 Multiply"] > height["%1 input"]
    assert len(found.edges) == 5, "an operand read twice is one line"
    boxes = [(n.x - n.w / 2, n.y - n.h / 2, n.x + n.w / 2, n.y + n.h / 2) for n in found.nodes]
    for n, (left, top, right, bottom) in enumerate(boxes):
        assert 0 <= left < right <= found.width
        assert 0 <= top < bottom <= found.height
        assert all(right <= a or c <= left or bottom <= b or d <= top for a, b, c, d in boxes[n + 1 :])


def test_what_is_no_program_or_no_picture_is_not_drawn() -> None:
    assert drawing(chain(MAX_NODES - 1)) is not None
    for text in ("", "{}", "[" * 10_000, chain(MAX_NODES)):
        assert drawing(text) is None


def test_heat_maps_put_values_in_order() -> None:
    campaign = sample.rich()
    (cell,) = (c for c in campaign.cells if (c.op, c.dtype, c.executor) == ("Exp", "F32", sample.PLUGINS[0]))
    bins = {"-8 0": 1, "--8 1": 4, "0 0": 2, "+-8 1": 16, "+8 99": 64, "nonsense": 5, "+0 1": -3}
    grid = matrix(replace(campaign, cells=(replace(cell, ulps=bins),)))
    (found,) = heat_maps(grid.entries())
    assert found.squares == ((0, 0, 1), (ZERO - 1, 1, 2), (ZERO, 0, 1), (ZERO + 1, 1, 3), (COLUMNS - 1, 21, 4))
    assert (found.elements, found.identical) == (87, 3)
    assert sum(share for _, share in found.bars) == pytest.approx(1)


def test_the_pages_show_them() -> None:
    campaign = sample.rich()
    before = replace(campaign, seed=7, findings=campaign.findings[1:])
    pages = site_pages(Report(campaign, before, (Run.of(before), Run.of(campaign))))

    def page(name: str) -> Page:
        return parse(pages[name])

    finding = page(f"findings/{campaign.findings[0].id}.html")
    assert [e.attrs["data-seen"] for e in finding.select("li", data_seen=None)] == ["no", "yes"]
    assert [e.attrs["data-segment"] for e in finding.select("tr", data_segment=None)] == ["fused"]
    (graph,) = finding.select("svg")
    assert graph.attrs["aria-label"].endswith("%0 input, %1 input, %2 Maximum")
    executors = [e.attrs["data-executor"] for e in page("ops/Exp.html").select("figure", data_dtype="F32")]
    assert sorted(executors) == sorted(sample.PLUGINS)
    assert not page("ops/Add.html").select("figure", data_dtype=None)


def test_op_pairs_are_a_table() -> None:
    table = pair_table({"pair: Exp > Log": 70, "pair: Log > Add": 3, "pair: nonsense": 1, "rank: 0": 5})
    assert table.ops == ("Add", "Exp", "Log")
    assert table.rows == ((0, 0, 0), (0, 0, 70), (3, 0, 0))
    page = parse(site_pages(Report(sample.rich()))["index.html"])
    (drawn,) = page.select("svg", class_="pairs")
    assert drawn.attrs["aria-label"] == "2 pairs of 2 ops were generated"
    assert [e.attrs["class"] for e in page.select("rect", width="11")] == ["i4", "i1"]


def test_each_result_of_an_instruction_leads_to_who_reads_it() -> None:
    b = GraphBuilder()
    q, r = linalg.qr(b.input("F64", (3, 2)))
    found = drawing(dumps(b.build(-r, q)))
    assert found is not None
    assert len(found.nodes) == 3
    assert len(found.edges) == 2, "from the input to the factors, and from the second one to its negative"
