"""SARIF 2.1.0, which code hosts and editors read: a result a finding, at the guilty line of its bundle's program."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from fuzz.records import Campaign, Finding
from fuzz.summary import outcome, split
from oracle.verdict import Verdict
from reports.text import shorten
from tenferro_ref.escape import line, visible

_RULES = {
    Verdict.MISMATCH: "A result is outside the set of all values that a correct implementation may give.",
    Verdict.CRASH: "The executor's process ended.",
    Verdict.TIMEOUT: "The executor gave no answer in time.",
    Verdict.ERROR: "The executor fails on a valid program, or accepts an invalid one, or raises another error than is due.",
}


def sarif(campaign: Campaign, bundled: Collection[str]) -> str:
    """The campaign as `findings.sarif`: new findings are errors, known ones notes. Addresses are relative to the report.

    Parameters
    ----------
    bundled
        Ids of the findings whose bundles are in the report's folder: only of these there is a file to point at.
    """
    new, known = split(campaign.findings)
    verdict = outcome(campaign)
    driver = {
        "name": "tenferro-ref",
        "version": dict(campaign.environment).get("tenferro-ref", "0"),
        "rules": [{"id": kind.value, "shortDescription": {"text": words}} for kind, words in _RULES.items()],
    }
    notes = [{"level": "warning", "message": {"text": line(words)}} for words in (*verdict.vacuous, *verdict.warnings)]
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": not verdict.vacuous, "toolExecutionNotifications": notes}],
        "originalUriBaseIds": {"REPORT": {"description": {"text": "The folder of the report."}}},
        "results": [_result(finding, finding.id in bundled) for finding in (*new, *known)],
        "properties": {"seed": campaign.seed, "programs": campaign.programs, "verdict": verdict.sentence},
    }
    document = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=1)


def _result(finding: Finding, bundled: bool) -> dict[str, Any]:
    facts = [finding.title, f"on {', '.join((finding.executor, *finding.also))}", finding.attribution, finding.reason]
    facts += [f"unconfirmed: {finding.unconfirmed}"] if finding.unconfirmed else []
    message = "; ".join(filter(None, (line(shorten(fact, 5, 500)[0]) for fact in facts)))
    place: dict[str, Any] = {
        "artifactLocation": {"uri": f"findings/{finding.id}/program.txt", "uriBaseId": "REPORT"},
        "region": {"startLine": min(finding.explanation.guilty_lines, default=0) + 1},
    }
    result: dict[str, Any] = {
        "ruleId": visible(finding.verdict),
        "level": "note" if finding.known else "error",
        "message": {"text": message},
        "locations": [{"physicalLocation": place}] if bundled else [],
        "partialFingerprints": {"signature/v1": finding.id},
        "properties": {"signature": visible(finding.signature), "programs": finding.programs},
    }
    if finding.known:
        result["suppressions"] = [{"kind": "external", "justification": line(finding.known)}]
    return result
