"""States of matrix cells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fuzz.records import Campaign, Cell, Finding, Totals
from reports.matrix import STATES, Entry, matrix
from tests.reports import sample

NEW = sample.finding(executor="xla", known="", programs=2)
KNOWN = sample.finding(executor="xla", programs=2)


def campaign(verdicts: dict[str, int], *findings: Finding) -> Campaign:
    total = Totals("xla", verdicts, 9, 9)
    cell = Cell("Maximum", "F32", "xla", verdicts, 3.0, "elementwise")
    return replace(sample.empty(), totals=(total,), cells=(cell,), findings=findings)


def only(verdicts: dict[str, int], *findings: Finding) -> Entry:
    (entry,) = matrix(campaign(verdicts, *findings)).entries()
    return entry


@pytest.mark.parametrize(
    ("verdicts", "findings", "state"),
    [
        ({"pass": 3}, (), "agree"),
        ({"pass": 1, "undecided": 8, "unsupported": 4}, (), "agree"),
        ({"undecided": 8, "unsupported": 4}, (), "undecided"),
        ({"unsupported": 4}, (), "refused"),
        ({}, (), "not-generated"),
        ({"pass": 0}, (), "not-generated"),
        ({"pass": 1, "mismatch": 2}, (NEW,), "disagree-new"),
        ({"pass": 1, "mismatch": 2}, (KNOWN,), "disagree-known"),
        ({"pass": 1, "mismatch": 2}, (KNOWN, NEW), "disagree-new"),
        ({"pass": 1, "crash": 2}, (replace(NEW, verdict="crash"),), "crash"),
        ({"pass": 1, "timeout": 2}, (replace(NEW, verdict="timeout"),), "crash"),
        ({"pass": 1, "crash": 2}, (replace(KNOWN, verdict="crash"),), "disagree-known"),
        ({"pass": 1, "mismatch": 2}, (), "disagree-new"),
        ({"pass": 1, "error": 2}, (), "disagree-new"),
        ({"pass": 1, "crash": 2}, (), "crash"),
    ],
)
def test_state(verdicts: dict[str, int], findings: tuple[Finding, ...], state: str) -> None:
    assert only(verdicts, *findings).state.slug == state


@pytest.mark.parametrize("passed", [0, 7])
def test_an_op_in_which_a_disagreement_was_located_never_agrees(passed: int) -> None:
    """A finding has the op of one of the disagreements that led to it."""
    counts = {"pass": passed, "mismatch": 2}
    for found, state in ((KNOWN, "disagree-known"), (NEW, "disagree-new")):
        found = replace(found, op="Minimum", signature="Minimum | F32 | x | y")
        entry = only(counts, found)  # a record that does not say where
        assert (entry.state.slug, entry.wrong, entry.findings) == (state, 2, ())
        places = (("Exp", "F32", "xla"), ("Maximum", "F32", "xla"))
        found = replace(found, located=places)
        entry = only(counts, found)
        assert (entry.state.slug, entry.wrong, entry.findings) == (state, 2, (found,))


def test_the_only_op_of_a_reduced_program_is_blamed() -> None:
    found = replace(NEW, op="Minimum", located=(("Minimum", "F32", "xla"),))
    named = {
        "Maximum | F32 | x | y": True,
        "Maximum(F32) | F32 | x": True,
        "Maximum | F64 | x": False,
        "Maximum": False,
    }
    for signature, blamed in named.items():
        assert bool(only({"pass": 3}, replace(found, instructions=1, signature=signature)).findings) == blamed
        assert not only({"pass": 3}, replace(found, instructions=2, signature=signature)).findings


def test_what_is_on_account_of_another_op_stands_beside() -> None:
    cell = Cell("Maximum", "F32", "xla", {}, None, "elementwise", {"unsupported": 3, "mismatch": 1})
    refused = replace(cell, verdicts={"unsupported": 2}, refusals={"no maximum": 2})
    for found, state in ((cell, "beside"), (refused, "refused"), (replace(refused, verdicts={"pass": 1}), "agree")):
        (entry,) = matrix(replace(campaign({}), cells=(found,))).entries()
        assert (entry.state.slug, entry.wrong) == (state, 0)
        assert (entry.programs, entry.refusals) == (sum(found.verdicts.values()), tuple(found.refusals))


def test_a_dtype_that_the_op_does_not_give_is_not_admitted() -> None:
    cells = (Cell("Maximum", "F32", "xla", {"pass": 1}), Cell("Abs", "F64", "xla", {"pass": 1}))
    grid = matrix(replace(campaign({}), cells=cells, admitted={"Maximum": ("F32",)}))
    states = {(e.op, e.dtype): e.state.slug for e in grid.entries()}
    assert states["Maximum", "F64"] == "not-admitted"
    assert states["Abs", "F32"] == "not-generated"  # nothing is known of it


@pytest.mark.parametrize(
    ("changes", "blamed"),
    [
        ({"op": "Exp+Maximum"}, True),
        ({"op": "Maximum(axis)"}, True),
        ({"op": "Minimum(Maximum)"}, False),
        ({"executor": "other", "also": ("xla",)}, True),
        ({"executor": "other"}, False),
        ({"dtype": "F64"}, False),
    ],
)
def test_which_cell_a_finding_blames(changes: dict[str, object], blamed: bool) -> None:
    entry = only({"pass": 3}, replace(NEW, instructions=2, **changes))  # type: ignore[arg-type]
    assert bool(entry.findings) == blamed


def test_an_op_is_as_bad_as_its_worst_dtype() -> None:
    cells = (Cell("Maximum", "F64", "xla", {"pass": 5}, 7.0), Cell("Maximum", "F32", "xla", {"pass": 2, "mismatch": 2}))
    grid = matrix(replace(campaign({"pass": 7, "mismatch": 2}, NEW), cells=cells))
    ((_, (row,)),) = grid.groups
    (cell,) = row.cells
    assert grid.dtypes == ("F32", "F64")
    assert (cell.state.slug, cell.programs, cell.wrong, cell.worst_ulp) == ("disagree-new", 9, 2, 7.0)


def test_the_matrix_is_full_and_grouped() -> None:
    grid = matrix(sample.rich())
    ops = sum(map(len, sample.OPS.values()))
    assert len(list(grid.entries())) == ops * len(grid.executors) * len(grid.dtypes)
    assert [name for name, _ in grid.groups] == list(sample.OPS)
    assert grid.dtypes == sample.DTYPES
    assert grid.executors == ("native", *sample.PLUGINS, *sample.NATIVE[1:])  # what others say is looked at first
    assert sum(e.programs for e in grid.entries()) == sum(sum(c.verdicts.values()) for c in sample.rich().cells)


def test_states_differ_in_symbol_and_word() -> None:
    for names in zip(*((s.slug, s.symbol, s.word, s.meaning) for s in STATES), strict=True):
        assert len(set(names)) == len(STATES)
