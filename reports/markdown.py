"""A page of Markdown for a CI job's summary: the verdict, the executors, the findings in one line each."""

from __future__ import annotations

from fuzz.records import Campaign, Finding
from fuzz.report import Report
from fuzz.summary import (
    Blame,
    ExecutorRow,
    blamed,
    disagreements,
    executor_rows,
    in_agreement,
    outcome,
    plural,
    split,
)
from oracle.verdict import first_bad
from reports import text
from reports.changes import changes
from reports.rows import error_rows, mutant_rows
from tenferro_ref.escape import code, markdown

#: Findings listed; CI services cut a job summary at about a megabyte.
MAX_FINDINGS = 50
_SIGNS = {"agree": "✅", "known": "🔶", "new": "❌", "vacuous": "⛔"}
_HEADS = ("Executor", "Programs", "Agree", "Disagree", "Undecided", "Refused", "Decided", "Tight", "Worst ULP", "Time")


#: Begins the page; not shown.
MARK = "<!-- tenferro-ref report -->"


def summary(report: Report | Campaign) -> str:
    """The report as `summary.md`."""
    campaign, before = (report, None) if isinstance(report, Campaign) else (report.campaign, report.before)
    verdict = outcome(campaign)
    new, known = split(campaign.findings)
    lines = [MARK, f"# {_SIGNS[verdict.kind]} {markdown(verdict.sentence)}", ""]
    if verdict.vacuous:
        lines += ["**This run proves nothing. It is not a pass:**", ""]
        lines += [*(f"- {markdown(text.clip(reason, 300))}" for reason in verdict.vacuous), ""]
    if before is not None:
        lines += [
            f"{changes(before, campaign).sentence} Held against seed {before.seed}, {markdown(before.started)}.",
            "",
        ]
    if blames := blamed(campaign.findings):
        agree, ran = in_agreement(campaign)
        lines += [
            f"Who disagrees: {'; '.join(map(_blame, blames[:8]))}. {agree} of {plural(ran, 'executor')} never did.",
            "",
        ]
    lines += [f"Seed `{campaign.seed}`, run again with {code(campaign.command)}", ""]
    lines += [f"> ⚠ {markdown(text.clip(w, 300))}  " for w in verdict.warnings]
    lines += ["", *_table(executor_rows(campaign)), ""]
    if campaign.errors:
        lines += [_errors(campaign), ""]
    for heading, findings in (("New", new), ("Known", known)):
        if findings:
            lines += [f"## {heading}: {len(findings):,}", ""]
            lines += [_finding(f) for f in findings[:MAX_FINDINGS]]
            if len(findings) > MAX_FINDINGS:
                lines.append(f"- and {len(findings) - MAX_FINDINGS:,} more in the report")
            lines.append("")
    if campaign.mutants:
        lines += ["## Seeded faults", "", *_mutants(campaign)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _table(rows: tuple[ExecutorRow, ...]) -> list[str]:
    if not rows:
        return ["No executor."]
    lines = ["| " + " | ".join(_HEADS) + " |", "| --- |" + " ---: |" * (len(_HEADS) - 1)]
    for row in rows:
        v = row.totals.verdicts
        cells = [markdown(text.clip(row.info.name, 120))]
        if row.info.available or row.ran:
            numbers = (row.programs, v.get("pass", 0), disagreements(v), v.get("undecided", 0), v.get("unsupported", 0))
            cells += [text.count(n) for n in numbers]
            cells += [
                text.share(row.decided_share),
                text.share(row.tight_share),
                text.ulp(row.totals.worst_ulp),
                text.seconds(row.seconds),
            ]
        else:
            cells += [f"not available: {markdown(text.clip(row.info.reason, 200))}", *[""] * (len(_HEADS) - 2)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _blame(blame: Blame) -> str:
    counts = [f"{n:,} {word}" for n, word in ((blame.new, "new"), (blame.known, "known")) if n]
    return f"{markdown(text.clip(blame.executor, 80))}{' (ours)' if blame.ours else ''} {', '.join(counts)}"


def _errors(campaign: Campaign) -> str:
    rows = error_rows(campaign.errors)
    never = ", ".join(row.kind for row in rows if not row.programs)
    programs = plural(sum(row.programs for row in rows), "invalid program")
    wrong = plural(sum(row.wrong for row in rows), "wrong answer")
    return f"{programs}, {wrong}{f'; errors never due: {markdown(never)}' if never else ''}."


def _mutants(campaign: Campaign) -> list[str]:
    lines = ["| Place | Killed | Survived | Change no meaning | Programs, median | Programs, most | Killed by |"]
    lines.append("| --- |" + " ---: |" * 5 + " --- |")
    for place in mutant_rows(campaign.mutants):
        numbers = [place.killed, place.survived, place.equivalent, place.median, place.most]
        cells = [markdown(place.name), *(text.MISSING if n is None else text.count(n) for n in numbers)]
        lines.append("| " + " | ".join([*cells, markdown(text.clip(place.killers, 200))]) + " |")
    return lines


def _finding(finding: Finding) -> str:
    facts = [finding.verdict, finding.executor, f"{finding.op} {finding.dtype}", f"{finding.programs:,} programs"]
    facts += [
        f"{finding.original_instructions} → {finding.instructions} instructions",
        finding.attribution,
        f"first bad build {bad}" if (bad := first_bad(finding.builds)) else "",
        finding.known,
        f"UNCONFIRMED: {finding.unconfirmed}" if finding.unconfirmed else "",
    ]
    said = ", ".join(markdown(text.clip(fact, 120)) for fact in facts if fact)
    return f"- **{markdown(text.clip(finding.title, 200))}** ({said})"
