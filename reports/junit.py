"""JUnit XML for CI servers.

Test names are those of matrix cells, so that a server can follow one of them from night to night. A known disagreement is
skipped with the name of its page, as an expected failure is elsewhere; only what is new fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from fuzz.records import Campaign, Finding
from fuzz.summary import ExecutorRow, executor_rows, outcome, unexplained
from reports.matrix import Entry, Matrix, blames, matrix
from reports.text import shorten
from tenferro_ref.escape import visible

_FAILING = ("crash", "disagree-new")
_SKIPPED = ("disagree-known", "undecided", "refused", "beside")
_ABSENT = ("not-generated", "not-admitted")


def junit_xml(campaign: Campaign) -> bytes:
    """The campaign as `junit.xml`.

    Suites: `campaign` (`vacuity` fails if the run proves too little; each executor took part and has no disagreement without
    a finding), one a matrix column, `findings` for those that no cell shows, and `mutants` for seeded faults.
    """
    root = ET.Element("testsuites", name="tenferro-ref", time=f"{campaign.seconds.get('total', 0.0):.3f}")
    grid = matrix(campaign)
    _campaign_suite(root, campaign)
    for executor in grid.executors:
        _executor_suite(root, campaign, grid, executor)
    cells = {(e.op, e.executor, e.dtype) for e in grid.entries()}
    placeless = [f for f in campaign.findings if not any(key in cells for key in blames(f))]
    if placeless:
        suite = _suite(root, "findings", campaign)
        for finding in placeless:
            _judge(_case(suite, "findings", finding.signature), [finding])
    if campaign.mutants:
        _mutant_suite(root, campaign)
    for suite in root:
        _count(suite)
    for total in ("tests", "failures", "skipped"):
        root.set(total, str(sum(int(suite.get(total, "0")) for suite in root)))
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _campaign_suite(root: ET.Element, campaign: Campaign) -> None:
    suite = _suite(root, "campaign", campaign)
    case = _case(suite, "campaign", "vacuity")
    if reasons := outcome(campaign).vacuous:
        _add(case, "failure", f"this run proves nothing: {reasons[0]}", "\n".join(reasons))
    for row in executor_rows(campaign):
        case = _case(suite, "campaign", f"{row.info.name} takes part", row)
        if not row.info.available:
            _add(case, "skipped", row.info.reason or "not available", "")
        case = _case(suite, "campaign", f"{row.info.name}: every disagreement is in a finding")
        if loose := unexplained(campaign, row.info.name):
            _add(case, "failure", f"{loose} disagreeing programs are in no finding", "")


def _executor_suite(root: ET.Element, campaign: Campaign, grid: Matrix, executor: str) -> None:
    suite = _suite(root, executor, campaign)
    for entry in grid.entries():
        if entry.executor == executor and entry.state.slug not in _ABSENT:
            case = _case(suite, executor, f"{entry.op}[{entry.dtype}]")
            if entry.findings:
                _judge(case, list(entry.findings))
            elif entry.state.slug in _FAILING:
                _add(case, "failure", _counts(entry), "")
            elif entry.state.slug in _SKIPPED:
                _add(case, "skipped", f"{entry.state.meaning} ({_counts(entry)})", "")


def _mutant_suite(root: ET.Element, campaign: Campaign) -> None:
    suite = _suite(root, "mutants", campaign)
    for fault in campaign.mutants:
        case = _case(suite, f"mutants.{fault.place}", fault.name)
        if fault.equivalent and not fault.killed:
            _add(case, "skipped", "changes no meaning", "")
        elif not fault.killed:
            _add(case, "failure", f"survived {fault.programs} programs" if fault.programs else "no law fails", "")


def _counts(entry: Entry) -> str:
    counts = [f"{n} {verdict}" for verdict, n in entry.verdicts.items()]
    counts += [f"{n} {verdict} on account of another op" for verdict, n in entry.beside.items()]
    return "; ".join([", ".join(counts), *entry.refusals])


def _judge(case: ET.Element, findings: list[Finding]) -> None:
    """Fail on the new ones; skip where all are known."""
    new = [f for f in findings if not f.known]
    if new:
        body = "\n\n".join("\n".join(_facts(f)) for f in new)
        _add(case, "failure", "; ".join(f.title for f in new), body)
    else:
        pages = ", ".join(dict.fromkeys(f.known for f in findings))
        _add(case, "skipped", f"known: {pages}", "")


def _facts(finding: Finding) -> Iterator[str]:
    yield finding.signature
    if finding.unconfirmed:
        yield f"unconfirmed: {finding.unconfirmed}"
    yield finding.reason
    yield shorten(finding.program_text)[0]


def _suite(root: ET.Element, name: str, campaign: Campaign) -> ET.Element:
    return ET.SubElement(root, "testsuite", name=visible(name), timestamp=visible(campaign.started))


def _case(suite: ET.Element, classname: str, name: str, row: ExecutorRow | None = None) -> ET.Element:
    seconds = f"{row.seconds if row else 0.0:.3f}"
    return ET.SubElement(suite, "testcase", classname=visible(classname), name=visible(name), time=seconds)


def _add(case: ET.Element, tag: str, message: str, body: str) -> None:
    element = ET.SubElement(case, tag, message=visible(shorten(message, 5, 1_000)[0]))
    element.text = visible(body) or None


def _count(suite: ET.Element) -> None:
    suite.set("tests", str(len(suite)))
    for tag, total in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(total, str(sum(case.find(tag) is not None for case in suite)))
    suite.set("time", f"{sum(float(case.get('time', '0')) for case in suite):.3f}")
