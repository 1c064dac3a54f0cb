"""The HTML report: one file that opens from disk, without network, with or without JavaScript.

What the numbers mean is decided in `summary` and `matrix`; this module hands them to the templates. Everything that a
record says is escaped there (autoescape), and a content security policy lets only the script of this package run.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fuzz.records import Campaign, Finding, ValueRow
from fuzz.summary import blamed, disagreements, executor_rows, in_agreement, is_variant, outcome, plural, split
from oracle.verdict import Verdict, first_bad
from reports import text
from reports.environment import families
from reports.errors import error_rows
from reports.matrix import BY_SLUG, STATES, blames, matrix
from reports.mutants import mutant_rows
from reports.opcodes import opcode_table
from reports.plots import accuracy_plots
from tenferro_ref.escape import visible

PHASES = ("generate", "lower", "compile", "load", "execute", "compare", "check", "reduce", "report")
#: Rows of a finding's value table that are shown.
MAX_VALUES = 48


@dataclass(frozen=True, slots=True)
class Text:
    """A text as it is shown, with a note on what was left out."""

    shown: str
    note: str

    @classmethod
    def of(cls, whole: str, **limits: int) -> Text:
        return cls(*text.shorten(visible(whole), **limits))


@dataclass(frozen=True, slots=True)
class Card:
    """A finding with everything that the template would otherwise have to compute."""

    finding: Finding
    anchor: str
    program: Text
    stablehlo: Text
    reason: Text
    reproduce: Text
    inputs: tuple[tuple[str, Text], ...]
    values: tuple[ValueRow, ...]
    values_left_out: int
    page: str
    first_bad: str
    builds: str


def render(campaign: Campaign, findings_url: str = "../docs/findings/") -> str:
    """The report as one HTML document. Equal campaigns give equal documents.

    Parameters
    ----------
    findings_url
        Where the pages of known findings are, seen from the report.
    """
    new, known = split(campaign.findings)
    cards = _cards((*new, *known), findings_url)
    grid = matrix(campaign)
    anchors: dict[tuple[str, str, str], str] = {}
    for card in cards:
        for key in blames(card.finding):
            anchors.setdefault(key, card.anchor)
    plots = accuracy_plots(campaign.totals)
    page = environment().get_template("index.html.j2")
    return page.render(
        campaign=campaign,
        outcome=outcome(campaign),
        rows=executor_rows(campaign),
        blamed=blamed(campaign.findings),
        in_agreement=in_agreement(campaign),
        matrix=grid,
        states=STATES,
        plots=[plot for plot in plots if not is_variant(plot.executor)],
        variants=[plot for plot in plots if is_variant(plot.executor)],
        families=families(campaign.executors),
        new=cards[: len(new)],
        known=cards[len(new) :],
        anchors=anchors,
        phases=_phases([campaign.seconds]),
        work=_phases(t.seconds for t in campaign.totals),
        generated=_histograms(campaign.generator),
        errors=error_rows(campaign.errors),
        opcodes=opcode_table(campaign.surveys),
        mutants=mutant_rows(campaign.mutants) if campaign.mutants else (),
        survivors=[m for m in campaign.mutants if not (m.killed or m.equivalent)],
        **assets(),
    )


def _cards(findings: Iterable[Finding], findings_url: str) -> list[Card]:
    cards: list[Card] = []
    taken: set[str] = set()
    for finding in findings:
        anchor = text.anchor(finding.signature, finding.executor)
        while anchor in taken:
            anchor = text.anchor(anchor)
        taken.add(anchor)
        cards.append(_card(finding, anchor, findings_url))
    return cards


def _card(finding: Finding, anchor: str, findings_url: str) -> Card:
    values = sorted(finding.values, key=lambda v: not v.outside)[:MAX_VALUES]
    page = finding.known if finding.known.endswith(".md") else f"{finding.known}.md"
    described = finding.known and " " not in finding.known  # else it is what somebody said of the finding
    return Card(
        finding=finding,
        anchor=anchor,
        program=Text.of(finding.program_text),
        stablehlo=Text.of(finding.stablehlo),
        reason=Text.of(finding.reason, lines=40, characters=4_000),
        reproduce=Text(f"tenferro-ref fuzz replay findings/{finding.id}\n", ""),
        inputs=tuple((name, Text.of(value, lines=20, characters=2_000)) for name, value in finding.inputs),
        values=tuple(values),
        values_left_out=len(finding.values) - len(values),
        page=findings_url + quote(page.encode("utf-8", "backslashreplace")) if described else "",
        first_bad=first_bad(finding.builds),
        builds=", ".join(map(str, finding.builds)),
    )


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
        if group == "op":  # that is the matrix
            continue
        groups.setdefault(group if colon else "counts", []).append((name if colon else key, n))
    return {group: sorted(counts, key=lambda entry: _naturally(entry[0])) for group, counts in groups.items()}


def _naturally(name: str) -> tuple[int, str]:
    """`3-5` before `10-14`, numbers before words."""
    digits = re.match(r"\d{1,9}", name)
    return (int(digits[0]) if digits else 10**9, name)


def _verdict_counts(verdicts: dict[str, int]) -> str:
    """`118 pass, 2 mismatch`, mildest first."""
    known = [v.value for v in Verdict]
    ordered = sorted(verdicts, key=lambda v: known.index(v) if v in known else len(known))
    return ", ".join(f"{verdicts[v]:,} {v}" for v in ordered if verdicts[v])


@cache
def assets() -> dict[str, Any]:
    """Style sheet and script of this package, and the hash under which the page lets the script run."""
    static = resources.files("reports") / "static"
    css, js = (static.joinpath(name).read_text("utf-8") for name in ("report.css", "report.js"))
    digest = base64.b64encode(hashlib.sha256(js.encode()).digest()).decode()
    return {"css": Markup(css), "js": Markup(js), "js_hash": digest}  # noqa: S704 - our own files


@cache
def environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters |= {
        "clip": text.clip,
        "count": text.count,
        "share": text.share,
        "ulp": text.ulp,
        "seconds": text.seconds,
        "plural": plural,
        "disagreements": disagreements,
        "verdicts": _verdict_counts,
        "breakable": lambda name: Markup("<wbr>").join(re.split("(?<=[a-z])(?=[A-Z])", name)),
        "safe_svg": lambda plot: Markup(plot.svg),  # noqa: S704 - drawn by `plots` from numbers only
    }
    environment.globals |= {"by_slug": BY_SLUG}
    return environment
