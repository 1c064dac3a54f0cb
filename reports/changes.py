"""What is different between two runs, and how the runs of a store went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fuzz.records import Campaign, Finding
from fuzz.report import Run
from fuzz.summary import plural
from reports.matrix import Matrix, State, matrix

#: States that say nothing of an op: a change to or from them is one of what was generated.
_SILENT = frozenset({"not-generated", "not-admitted", "beside"})


@dataclass(frozen=True, slots=True)
class CellChange:
    """An (op, dtype, executor) that looks otherwise than before."""

    op: str
    dtype: str
    executor: str
    before: State
    now: State


@dataclass(frozen=True, slots=True)
class Changes:
    """From one run to another: findings that came and went, cells that changed, executors that only one of them has."""

    before: Campaign
    appeared: tuple[Finding, ...]
    gone: tuple[Finding, ...]
    cells: tuple[CellChange, ...]
    joined: tuple[str, ...]
    left: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What changed, in words."""
        parts = [plural(len(self.appeared), "finding") + " appeared"] if self.appeared else []
        parts += [plural(len(self.gone), "finding") + " not seen again"] if self.gone else []
        parts += [plural(len(self.cells), "cell") + " of the matrix changed"] if self.cells else []
        return f"Since then: {', '.join(parts)}." if parts else "Nothing is different from then."


def changes(before: Campaign, now: Campaign, grid: Matrix | None = None) -> Changes:
    """What `now` shows that `before` did not, and the other way round; `grid` is the matrix of `now`."""
    ids = ({f.id for f in before.findings}, {f.id for f in now.findings})
    ran = tuple([t.executor for t in campaign.totals] for campaign in (before, now))
    states = {(e.op, e.dtype, e.executor): e.state for e in matrix(before).entries()}
    cells = tuple(
        CellChange(e.op, e.dtype, e.executor, old, e.state)
        for e in (grid or matrix(now)).entries()
        if (old := states.get((e.op, e.dtype, e.executor)))
        and old != e.state
        and not {old.slug, e.state.slug} & _SILENT
    )
    return Changes(
        before,
        tuple(f for f in now.findings if f.id not in ids[0]),
        tuple(f for f in before.findings if f.id not in ids[1]),
        cells,
        tuple(name for name in ran[1] if name not in ran[0]),
        tuple(name for name in ran[0] if name not in ran[1]),
    )


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of a store beside those before it: findings first seen in it, and all that were seen by then."""

    run: Run
    first: int
    seen: int


def run_rows(runs: Sequence[Run]) -> tuple[RunRow, ...]:
    """The runs in the order in which they were begun; none where there is only one."""
    rows, seen = [], set[str]()
    for run in runs:
        first = {*run.new, *run.known} - seen
        seen |= first
        rows.append(RunRow(run, len(first), len(seen)))
    return tuple(rows) if len(rows) > 1 else ()
