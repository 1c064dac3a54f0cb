"""The pages of the parity report, as a site of many files or all in one; both open from disk, without network.

What the numbers mean is decided in `summary`, `matrix` and their neighbours; this module hands them to the templates. A page is the body
that its template gives, in the frame `page.html.j2`; one file is all bodies in one frame, with links that are fragments.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from fuzz.records import Campaign, Finding, ValueRow
from fuzz.report import Report
from fuzz.summary import ExecutorRow, blamed, executor_rows, in_agreement, is_variant, outcome, split
from oracle.peers import Peer
from oracle.verdict import first_bad
from reports.changes import changes, run_rows
from reports.graph import Drawing, drawing, slots_written
from reports.heat import COLUMNS, ROWS, X_TICKS, Y_TICKS, heat_maps
from reports.matrix import STATES, Entry, Matrix, blames, matrix
from reports.pages import known_page
from reports.plots import accuracy_plots, discovery_plot
from reports.rows import error_rows, families, mutant_rows, opcode_table, pair_table
from reports.templating import Text, asset, environment

PHASES = ("generate", "lower", "compile", "keep", "load", "heal", "execute", "compare", "check", "reduce", "report")
#: Rows of a finding's value table that are shown.
MAX_VALUES = 48


@dataclass(frozen=True, slots=True)
class Page:
    """One page: the kind that its template is named after, what it is about, its file, and its fragment in one file."""

    kind: str
    key: str
    path: str
    title: str

    @property
    def anchor(self) -> str:
        return self.path.removesuffix(".html").replace("/", "-")

    @property
    def up(self) -> str:
        """The folder of the report, as seen from the page."""
        return "../" * self.path.count("/")


@dataclass(frozen=True, slots=True)
class Card:
    """A finding with everything that the template would otherwise have to compute.

    `key` is its id, made unique; `wants` is what reproducing it does beside loading an installed plugin ("runs a command").
    """

    finding: Finding
    key: str
    slug: str
    program: Text
    stablehlo: Text
    reason: Text
    inputs: tuple[tuple[str, Text], ...]
    values: tuple[ValueRow, ...]
    values_left_out: int
    page: str
    first_bad: str
    builds: str
    bundled: bool
    wants: str
    graph: Drawing | None


class _Site:
    """The pages of one report, and the links between them."""

    def __init__(self, report: Report, bundled: Collection[str], single: bool) -> None:
        self.report, self.campaign, self.single = report, report.campaign, single
        self.grid = matrix(self.campaign)
        self.rows = executor_rows(self.campaign)
        self.plots = accuracy_plots(self.campaign.totals)
        new, known = split(self.campaign.findings)
        self.cards = _cards((*new, *known), bundled)
        self.new = len(new)
        self.blamed: dict[tuple[str, str, str], str] = {}
        for card in self.cards:
            for key in blames(card.finding):
                self.blamed.setdefault(key, card.key)
        self.pages: dict[tuple[str, str], Page] = {}
        self.taken: set[str] = set()
        self._add("index", "", "index", outcome(self.campaign).sentence)
        for card in self.cards:
            self._add("finding", card.key, f"findings/{card.key}", card.finding.title)
        for op in dict.fromkeys(e.op for e in self.grid.entries()):
            self._add("op", op, f"ops/{_slug(op)}", op)
        for row in self.rows:
            self._add("peer", row.info.name, f"peers/{_slug(row.info.name)}", row.info.name)
        for name in dict.fromkeys(card.page for card in self.cards if card.page):
            self._add("known", name, f"known/{_slug(name)}", name)

    def _add(self, kind: str, key: str, stem: str, title: str) -> None:
        while stem.lower() in self.taken:  # file systems may not tell A from a
            stem += "-" + hashlib.sha256(key.encode("utf-8", "backslashreplace")).hexdigest()[:8]
        self.taken.add(stem.lower())
        self.pages[kind, key] = Page(kind, key, f"{stem}.html", title)

    def body(self, page: Page) -> Markup:
        """What stands between head and foot of a page."""
        bodies = {
            "index": self._index,
            "finding": self._finding,
            "op": self._op,
            "peer": self._peer,
            "known": self._known,
        }
        template = environment().get_template(f"{page.kind}.html.j2")
        context = {"page": page, "single": self.single, "level": 2 if self.single and page.kind != "index" else 1}
        context |= {
            "link": self._linker(page),
            "cards": self.cards,
            "blamed_by": self.blamed,
            "campaign": self.campaign,
        }
        context |= {"up": "" if self.single else page.up, "text_of": Text.of}
        context["of"] = (
            f": {page.key[:80]}" if self.single and page.key else ""
        )  # regions of one document have names of their own
        return Markup(template.render(**context, **bodies[page.kind](page.key)))  # noqa: S704 - an escaping template's

    def frame(self, page: Page, bodies: Iterable[Markup]) -> str:
        """A document with those bodies."""
        script = asset("report.js")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        return environment().get_template("page.html.j2").render(
            page=page,
            bodies=bodies,
            link=self._linker(page),
            campaign=self.campaign,
            new=self.new,
            cards=self.cards,
            up=page.up,
            css=Markup(asset("report.css")) if self.single else "",  # noqa: S704 - our own files
            js=Markup(script) if self.single else "",  # noqa: S704
            js_source=f"'sha256-{digest}'" if self.single else "'self'",
        )  # fmt: skip

    def _linker(self, here: Page) -> Any:
        """`link(kind, key, fragment)`: the address of a page as seen from `here`; "" where there is no such page."""

        def link(kind: str, key: str = "", fragment: str = "") -> str:
            page = self.pages.get((kind, key))
            if page is None:
                return ""
            if self.single:
                return "#" + (fragment or page.anchor)
            if page == here and fragment:
                return "#" + fragment
            return here.up + quote(page.path) + ("#" + fragment if fragment else "")

        return link

    # --- what each kind of page shows ---------------------------------------------------------------------------------

    def _index(self, _: str) -> dict[str, Any]:
        campaign, plots = self.campaign, self.plots
        return {
            "outcome": outcome(campaign),
            "rows": self.rows,
            "blamed": blamed(campaign.findings),
            "in_agreement": in_agreement(campaign),
            "changes": changes(self.report.before, campaign, self.grid) if self.report.before else None,
            "runs": run_rows(self.report.runs),
            "discovery": discovery_plot(campaign),
            "matrix": self.grid,
            "states": STATES,
            "plots": [plot for plot in plots if not is_variant(plot.executor)],
            "variants": [plot for plot in plots if is_variant(plot.executor)],
            "families": families(campaign.executors),
            "new": self.cards[: self.new],
            "known": self.cards[self.new :],
            "phases": _phases([campaign.seconds]),
            "work": _phases(t.seconds for t in campaign.totals),
            "generated": _histograms(campaign.generator),
            "pairs": pair_table(campaign.generator),
            "errors": error_rows(campaign.errors),
            "opcodes": opcode_table(campaign.surveys),
            "mutants": mutant_rows(campaign.mutants) if campaign.mutants else (),
            "survivors": [m for m in campaign.mutants if not (m.killed or m.equivalent)],
        }

    def _finding(self, key: str) -> dict[str, Any]:
        keys = [card.key for card in self.cards]
        at = keys.index(key)
        beside = {"earlier": keys[at - 1] if at else "", "later": keys[at + 1] if at + 1 < len(keys) else ""}
        card = self.cards[at]
        seen = [(run, card.finding.id in (*run.new, *run.known)) for run in self.report.runs]
        return {"card": card, "timeline": seen if len(seen) > 1 else (), **beside}

    def _op(self, name: str) -> dict[str, Any]:
        cells = next(row.cells for _, rows in self.grid.groups for row in rows if row.op == name)
        cards = [c for c in self.cards if any(op == name for op, _, _ in blames(c.finding))]
        entries = [e for cell in cells for e in cell.entries]
        axes = {"columns": COLUMNS, "rows": ROWS, "x_ticks": X_TICKS, "y_ticks": Y_TICKS}
        about = {
            "about": cards,
            "refusals": _refusals(entries),
            "heat": heat_maps(e for e in entries if not is_variant(e.executor)),
            "axes": axes,
        }
        return {"cells": cells, "dtypes": self.grid.dtypes, **about}

    def _peer(self, name: str) -> dict[str, Any]:
        row: ExecutorRow = next(row for row in self.rows if row.info.name == name)
        entries = [e for e in self.grid.entries() if e.executor == name]
        cards = [c for c in self.cards if name in (c.finding.executor, *c.finding.also)]
        return {
            "row": row,
            "about": cards,
            "refusals": _refusals(entries),
            "dtypes": self.grid.dtypes,
            "groups": _column(self.grid, name),
            "tally": [(state, sum(e.state == state for e in entries)) for state in STATES],
            "plots": [plot for plot in self.plots if plot.executor == name],
        }

    def _known(self, name: str) -> dict[str, Any]:
        about = [c for c in self.cards if c.page == name]
        return {
            "text": known_page(
                name, lambda other: self._linker(self.pages["known", name])("known", other), 2 if self.single else 1
            ),
            "about": about,
        }


def render(report: Report | Campaign, bundled: Collection[str] = ()) -> str:
    """The whole report as one HTML document. Equal reports give equal documents.

    Parameters
    ----------
    bundled
        Ids of the findings whose bundle lies in `findings/` beside the document.
    """
    site = _Site(Report(report) if isinstance(report, Campaign) else report, bundled, single=True)
    return site.frame(site.pages["index", ""], [site.body(page) for page in site.pages.values()])


def site_pages(report: Report, bundled: Collection[str] = ()) -> dict[str, str]:
    """The report as a site: content by file name, the index first."""
    site = _Site(report, bundled, single=False)
    files = {page.path: site.frame(page, [site.body(page)]) for page in site.pages.values()}
    return {**files, "report.css": asset("report.css"), "report.js": asset("report.js")}


def _slug(name: str) -> str:
    """A file name that says which executor or op it is about, whatever is in its name."""
    return re.sub(r"[^A-Za-z0-9@_]+", "-", name).strip("-")[:60] or "unnamed"


def _cards(findings: Iterable[Finding], bundled: Collection[str]) -> list[Card]:
    cards: list[Card] = []
    seen: dict[str, int] = {}
    for finding in findings:
        seen[finding.id] = number = seen.get(finding.id, 0) + 1
        cards.append(_card(finding, finding.id if number == 1 else f"{finding.id}-{number}", finding.id in bundled))
    return cards


def _card(finding: Finding, key: str, bundled: bool) -> Card:
    values = sorted(finding.values, key=lambda v: not v.outside)[:MAX_VALUES]
    return Card(
        finding=finding,
        key=key,
        slug="disagree-known" if finding.known else "disagree-new",
        program=Text.of(finding.program_text, finding.explanation.guilty_lines),
        stablehlo=Text.of(finding.stablehlo, finding.explanation.guilty_stablehlo),
        reason=Text.of(finding.reason, lines=40, characters=4_000),
        inputs=tuple((name, Text.of(value, lines=20, characters=2_000)) for name, value in finding.inputs),
        values=tuple(values),
        values_left_out=len(finding.values) - len(values),
        page=finding.known if known_page(finding.known) else "",
        first_bad=first_bad(finding.builds),
        builds=", ".join(map(str, finding.builds)),
        bundled=bundled,
        wants=Peer.parse(finding.executor).code,
        graph=drawing(finding.program_json, slots_written(finding.program_text, finding.explanation.guilty_lines)),
    )


def _refusals(entries: Iterable[Entry]) -> list[tuple[str, list[Entry]]]:
    """The entries that were refused, by reason."""
    reasons: dict[str, list[Entry]] = {}
    for entry in entries:
        for reason in entry.refusals:
            reasons.setdefault(reason, []).append(entry)
    return sorted(reasons.items(), key=lambda item: -len(item[1]))


def _column(grid: Matrix, executor: str) -> list[tuple[str, list[tuple[str, tuple[Entry, ...]]]]]:
    """The ops of one executor by group, each with its entries by dtype."""
    return [
        (group, [(row.op, cell.entries) for row in rows for cell in row.cells if cell.executor == executor])
        for group, rows in grid.groups
        if executor in grid.executors
    ]


def _phases(records: Iterable[dict[str, float]]) -> dict[str, float]:
    """Seconds by phase, summed over the records, in the order in which the phases happen."""
    seconds: dict[str, float] = {}
    for record in records:
        for phase, spent in record.items():
            seconds[phase] = seconds.get(phase, 0.0) + spent
    seconds.pop("total", None)
    return dict(sorted(seconds.items(), key=lambda item: PHASES.index(item[0]) if item[0] in PHASES else len(PHASES)))


def _histograms(counts: dict[str, int]) -> dict[str, list[tuple[str, int]]]:
    """`{"instructions": [("1-4", 10), ...]}` from `{"instructions: 1-4": 10, ...}`."""
    groups: dict[str, list[tuple[str, int]]] = {}
    for key, n in counts.items():
        group, colon, name = key.partition(": ")
        if group in ("op", "pair"):  # those are the matrix and a table of their own
            continue
        groups.setdefault(group if colon else "counts", []).append((name if colon else key, n))
    return {group: sorted(counts, key=lambda entry: _naturally(entry[0])) for group, counts in groups.items()}


def _naturally(name: str) -> tuple[int, str]:
    """`3-5` before `10-14`, numbers before words."""
    digits = re.match(r"\d{1,9}", name)
    return (int(digits[0]) if digits else 10**9, name)
