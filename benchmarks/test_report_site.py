"""What the report of a long campaign costs: 5,000 programs, 200 findings, with a page for each finding, op and executor.

Run: tox run -e bench, or `pytest benchmarks/test_report_site.py --benchmark-only -s` for this file alone. CPU time and size of the site are
printed, and held to what a reader should have to wait for and to send: 20 seconds and 15 MB.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzz.report import Report, Run
from reports.parity import SITE
from tests.reports import sample

SECONDS, BYTES = 20.0, 15_000_000


def long_report() -> Report:
    """The sample campaign at that size: findings on every op, with long programs, held against the run before it."""
    campaign = sample.rich()
    first = campaign.findings[0]
    ops = sorted({cell.op for cell in campaign.cells})
    lines = "".join(f"  %{n} = Add(%{n - 1}, %{n - 2}) : F32[2]\n" for n in range(3, 40))
    findings = tuple(
        replace(
            first,
            signature=f"{ops[n % len(ops)]} | F32 | {n}",
            title=f"{ops[n % len(ops)]} number {n}",
            op=ops[n % len(ops)],
            known="" if n % 2 else "0001-fast-min-max-drops-nan",
            program_text=first.program_text.replace("}\n", lines + "}\n"),
            values=first.values * 24,
            first_program=25 * n,
            explanation=replace(first.explanation, steps=first.explanation.steps * 40),
        )
        for n in range(200)
    )
    campaign = replace(campaign, programs=5000, findings=findings)
    before = replace(campaign, findings=findings[:150], seed=1)
    return Report(campaign, before, tuple(map(Run.of, (before, campaign))))


def test_the_site_of_a_long_campaign(benchmark: Any, tmp_path: Path) -> None:
    report = long_report()
    benchmark.pedantic(SITE.write, (report, tmp_path), rounds=2, warmup_rounds=1)
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    pages = len(list(tmp_path.rglob("*.html")))
    start = time.process_time()  # of this process alone, which a busy machine changes least
    SITE.write(report, tmp_path)
    seconds = time.process_time() - start
    benchmark.extra_info.update(seconds=seconds, megabytes=size / 1e6, pages=pages)
    print(f"\n{pages} pages in {seconds:.1f} s, {size / 1e6:.1f} MB")
    assert pages > 200 + 40 + 9
    assert seconds < SECONDS
    assert size < BYTES
