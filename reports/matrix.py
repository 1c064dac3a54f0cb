"""The op x executor x dtype matrix: one clear state a cell.

A cell says only what is known of its op: what programs with it gave that passed, and the disagreements and refusals that are
on account of the op itself. Programs that disagreed or were refused on account of another op are mentioned beside that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from fuzz.records import Campaign, Cell, Finding, Held
from fuzz.summary import disagreements, executor_names, peers_first, unexplained
from oracle.verdict import Verdict


@dataclass(frozen=True, slots=True)
class State:
    """How a cell looks: never by colour alone."""

    slug: str
    symbol: str
    word: str
    meaning: str


#: Worst first: the state of an op over several dtypes is the first that any of them has.
STATES: tuple[State, ...] = (
    State("crash", "‡", "crash", "the executor died or hung; nothing in docs/findings/ describes it"),
    State("disagree-new", "✖", "new", "disagrees, and nothing in docs/findings/ describes it"),
    State("disagree-known", "◆", "known", "disagrees in a way that docs/findings/ describes"),
    State("agree", "✓", "agrees", "every element that its reference decides agrees"),
    State("undecided", "?", "undecided", "ran, but nothing was decided: no evidence either way"),
    State("refused", "⊘", "refused", "the executor refuses the op at this dtype with a typed reason"),
    State("beside", "~", "beside", "every program with it was refused, or disagreed, on account of another op"),
    State("not-generated", "·", "not generated", "no program of this campaign has the op at this dtype"),
    State("not-admitted", "∅", "not admitted", "no result of the op has this dtype"),
)
BY_SLUG = {s.slug: s for s in STATES}
_RANK = {s.slug: i for i, s in enumerate(STATES)}
#: Orders of columns and headings; what is not named here comes after, in order of appearance.
_DTYPES = ("F32", "F64", "I32", "I64", "Bool", "C32", "C64")
_GROUPS = ("elementwise", "structural", "reduction", "indexing", "contraction", "extension")
_DEATHS = (Verdict.CRASH.value, Verdict.TIMEOUT.value)


@dataclass(frozen=True, slots=True)
class Entry:
    """One (op, executor, dtype).

    Attributes
    ----------
    programs, verdicts
        How many programs, and how many by verdict name.
    worst_ulp
        Over the programs of this op alone.
    wrong
        Programs that disagreed on account of the op.
    findings
        The findings that blame this entry.
    beside
        Programs that were refused or disagreed on account of another op, by verdict name.
    refusals
        Why the executor refuses the op.
    examples
        The number of a program by verdict.
    ulps
        Elements by bins of input and error (`fuzz.records.Cell`).
    held
        Compared elements of these programs.
    """

    op: str
    executor: str
    dtype: str
    state: State
    programs: int
    verdicts: dict[str, int]
    worst_ulp: float | None
    wrong: int
    findings: tuple[Finding, ...]
    beside: dict[str, int]
    refusals: tuple[str, ...]
    examples: dict[str, int]
    ulps: dict[str, int]
    held: Held


@dataclass(frozen=True, slots=True)
class Summary:
    """One (op, executor) over all dtypes; `programs` and `wrong` count a program once a dtype."""

    executor: str
    state: State
    programs: int
    wrong: int
    worst_ulp: float | None
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Row:
    op: str
    cells: tuple[Summary, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows by group, in order of first appearance; columns are executors; each cell has one entry a dtype."""

    executors: tuple[str, ...]
    dtypes: tuple[str, ...]
    groups: tuple[tuple[str, tuple[Row, ...]], ...]

    def entries(self) -> Iterable[Entry]:
        """All entries, those that were not generated included."""
        return (e for _, rows in self.groups for row in rows for cell in row.cells for e in cell.entries)


def matrix(campaign: Campaign) -> Matrix:
    """The matrix of a campaign; executors without any cell get no column."""
    cells = {(c.op, c.executor, c.dtype): c for c in campaign.cells}
    present = {c.executor for c in campaign.cells}
    executors = peers_first(e for e in executor_names(campaign) if e in present)
    dtypes = tuple(_sorted((c.dtype for c in campaign.cells), _DTYPES))
    new = {e for e in executors if unexplained(campaign, e)}
    new |= {e for f in campaign.findings if not f.known for e in (f.executor, *f.also)}
    blamed: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in campaign.findings:
        for key in blames(finding):
            blamed.setdefault(key, []).append(finding)
    groups: dict[str, list[Row]] = {}
    for op, group in {c.op: c.group for c in campaign.cells}.items():
        row = []
        for executor in executors:
            keys = [(op, executor, dtype) for dtype in dtypes]
            entries = [_entry(k, cells.get(k), blamed.get(k, []), executor in new) for k in keys]
            row.append(_summary(executor, [_admitted(entry, campaign.admitted.get(op)) for entry in entries]))
        groups.setdefault(group or "operations", []).append(Row(op, tuple(row)))
    return Matrix(executors, dtypes, tuple((name, tuple(groups[name])) for name in _sorted(groups, _GROUPS)))


def _sorted(names: Iterable[str], order: tuple[str, ...]) -> list[str]:
    return sorted(dict.fromkeys(names), key=lambda n: order.index(n) if n in order else len(order))


def blames(finding: Finding) -> Iterable[tuple[str, str, str]]:
    """The (op, executor, dtype) that a finding is about: where programs that led to it were located, and its reduced program's only op.

    Of a record that does not say where, those of the finding's own op: several where it names several, "A+B(attribute)".
    """
    executors = dict.fromkeys((finding.executor, *finding.also))
    cells = [(op, executor, dtype) for op, dtype, executor in finding.located]
    if not cells:
        ops = re.findall(r"\w+", re.sub(r"\(.*?\)", "", finding.op))
        cells = [(op, executor, finding.dtype) for executor in executors for op in ops]
    if finding.instructions == 1 and (only := re.match(r"(\w+)(?:\(\w*\))? \| (\w+) \| ", finding.signature)):
        cells += [(only[1], executor, only[2]) for executor in executors]
    return dict.fromkeys(cells)


def _entry(key: tuple[str, str, str], cell: Cell | None, findings: list[Finding], unknown: bool) -> Entry:
    """`unknown`: whether the executor has disagreements that no page describes, as one without a finding may be."""
    verdicts = {k: n for k, n in cell.verdicts.items() if n} if cell else {}
    wrong = disagreements(verdicts)
    new = [f for f in findings if not f.known]
    if new:
        slug = "crash" if any(f.verdict in _DEATHS for f in new) else "disagree-new"
    elif findings:
        slug = "disagree-known"
    elif wrong and unknown:
        slug = "crash" if any(verdicts.get(v) for v in _DEATHS) else "disagree-new"
    elif wrong:  # an older record does not say by which finding
        slug = "disagree-known"
    elif verdicts.get(Verdict.PASS.value):
        slug = "agree"
    elif verdicts.get(Verdict.UNDECIDED.value):
        slug = "undecided"
    elif verdicts:
        slug = "refused"
    else:
        slug = "beside" if cell and cell.beside else "not-generated"
    worst = cell.worst_ulp if cell else None
    beside = cell.beside if cell else {}
    refusals = tuple(sorted(cell.refusals, key=lambda reason: -cell.refusals[reason])) if cell else ()
    return Entry(
        *key, BY_SLUG[slug], sum(verdicts.values()), verdicts, worst, wrong, tuple(findings), beside,
        refusals, cell.examples if cell else {},
        cell.ulps if cell else {}, cell.held if cell else Held(),
    )  # fmt: skip


def _admitted(entry: Entry, dtypes: tuple[str, ...] | None) -> Entry:
    """An entry without programs, as one that there cannot be where the op gives no result of the dtype."""
    if entry.state.slug == "not-generated" and dtypes is not None and entry.dtype not in dtypes:
        return replace(entry, state=BY_SLUG["not-admitted"])
    return entry


def _summary(executor: str, entries: list[Entry]) -> Summary:
    state = min((e.state for e in entries), key=lambda s: _RANK[s.slug])
    ulps = [e.worst_ulp for e in entries if e.worst_ulp is not None]
    programs, wrong = sum(e.programs for e in entries), sum(e.wrong for e in entries)
    return Summary(executor, state, programs, wrong, max(ulps, default=None), tuple(entries))
