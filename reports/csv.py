"""The matrix as CSV: a line for each (op, dtype, executor) that a program of the campaign said something about, or could have."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import astuple

from fuzz.records import Campaign
from oracle.verdict import Verdict
from reports.matrix import matrix
from tenferro_ref.escape import line

_VERDICTS = tuple(verdict.value for verdict in Verdict)
#: Counts by verdict are of programs that say something about the op; `beside` counts those that say it of another.
HEADS = (
    "group", "op", "dtype", "executor", "state", "programs", *_VERDICTS, "beside", "elements", "decided", "tight",
    "worst_ulp_alone", "findings", "refusals",
)  # fmt: skip


def matrix_csv(campaign: Campaign) -> str:
    """The campaign's matrix as `matrix.csv` (RFC 4180): numbers are numbers, empty where there is none."""
    file = io.StringIO(newline="")
    out = csv.writer(file)
    out.writerow(HEADS)
    grid = matrix(campaign)
    for group, rows in grid.groups:
        for e in (entry for row in rows for cell in row.cells for entry in cell.entries):
            if e.state.slug == "not-admitted":
                continue
            counts = [e.verdicts.get(verdict, 0) for verdict in _VERDICTS]
            ids = " ".join(dict.fromkeys(finding.id for finding in e.findings))
            words = map(_harmless, (group, e.op, e.dtype, e.executor, e.state.slug))
            ulp = "" if e.worst_ulp is None else repr(e.worst_ulp)
            held = [count if e.held.elements else "" for count in astuple(e.held)]
            out.writerow(
                [*words, e.programs, *counts, sum(e.beside.values()), *held, ulp, ids, _harmless("; ".join(e.refusals))]
            )
    return file.getvalue()


def _harmless(text: str) -> str:
    """One line that no spreadsheet takes for a formula."""
    words = line(text)
    return f"'{words}" if re.match(r"\s*[=+\-@]", words) else words
