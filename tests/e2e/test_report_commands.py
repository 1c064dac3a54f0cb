"""Reports through the command line: what is different between runs, and that every command that a report names does what it says."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from fuzz import records
from tests.e2e.command import in_this_process as tenferro_ref
from tests.reports.dom import Page, parse

pytestmark = pytest.mark.once

#: Runs programs natively, kept running, and says 1 more than they give.
ENGINE = f"""#!{sys.executable}
import json, sys
import numpy as np
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.dtype import DType
from tenferro_ref.program import loads
from tenferro_ref.runtime import GraphExecutor
for line in sys.stdin:
    request = json.loads(line)
    inputs = [
        np.frombuffer(bytes.fromhex(t["data"]), DType[t["dtype"]].numpy).reshape(t["shape"], order="F")
        for t in request["inputs"]
    ]
    outputs = GraphExecutor().eval_exec_ir(compile_std_to_exec(loads(json.dumps(request["program"]))), inputs)
    rows = [(DType.of(a).name, a.shape, (a + 1).astype(a.dtype).tobytes("F").hex()) for a in outputs]
    print(json.dumps({{"outputs": [dict(zip(("dtype", "shape", "data"), row)) for row in rows]}}), flush=True)
"""
MIX = ("--generate", "ops=Add,Negate", "--generate", "dtypes=F64", "--generate", "invalid=0")


def page(folder: Path, name: str = "index.html") -> Page:
    return parse((folder / name).read_text("utf-8"))


def section(folder: Path) -> str:
    """What the index says of the runs before."""
    (found,) = page(folder).select("section", id="changes")
    return found.text


def test_runs_of_a_store_are_held_against_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call = ("fuzz", "run", "s.sqlite", "--programs", 6, "--executors", "native,native-nopasses", "--workers", 1, *MIX)
    for seed in (3, 4):
        assert tenferro_ref(*call, "--seed", seed).status == 0
    run = tenferro_ref("report", "s.sqlite", "--out", "both")
    assert run.out.splitlines()[0] == "Nothing is different from then."
    assert [row.attrs["data-run"] for row in page(tmp_path / "both").select("tr", data_run=None)] == ["3", "4"]
    assert tenferro_ref("report", "s.sqlite", "--campaign", 1, "--out", "first", "--single-file").status == 0
    assert "Held against" not in section(tmp_path / "first")
    run = tenferro_ref("report", "first", "--against", "both/campaign.json", "--out", "third")
    assert run.status == 0, run
    assert "Held against the run with seed 4" in section(tmp_path / "third")
    again = records.load(tmp_path / "first" / "campaign.json").command
    assert again.startswith("tenferro-ref fuzz run s-again.sqlite --seed 3 ")
    run = tenferro_ref(*shlex.split(again)[1:], "--out", "again", "--workers", 1)
    assert run.status == 0, run
    first, second = (records.load(tmp_path / name / "campaign.json") for name in ("first", "again"))
    assert (first.cells, first.generator) == (second.cells, second.generator)


@pytest.mark.nightly
def test_the_commands_on_a_findings_page_show_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tmp_path / "engine"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    run = tenferro_ref(
        "fuzz", "run", "s.sqlite", "--programs", 2, "--seed", 3, "--executors", f"external-served:{engine}", "--workers", 1,
        "--reduce-seconds", 1, "--max-findings", 1, "--no-fresh-venv", "--out", "report", *MIX,
    )  # fmt: skip
    assert run.status == 1, run
    (finding,) = records.load(tmp_path / "report" / "campaign.json").findings
    monkeypatch.chdir(tmp_path / "report")
    (command,) = commands(page(Path(), f"findings/{finding.id}.html"))
    run = tenferro_ref(*command)
    assert run.status == 1, run
    assert "still fails" in run.out
    assert tenferro_ref("report", "campaign.json", "--out", tmp_path / "elsewhere").status == 0
    short = tenferro_ref("report", "campaign.json", "--out", tmp_path / "short", "--min-programs", 10**6)
    assert short.status == 1
    assert "VACUOUS" in short.out
    (tmp_path / "bare").mkdir()
    monkeypatch.chdir(tmp_path / "bare")
    (tmp_path / "report" / "campaign.json").rename("campaign.json")
    assert tenferro_ref("report", "campaign.json", "--out", ".").status == 0
    for command in commands(page(Path(), f"findings/{finding.id}.html")):
        run = tenferro_ref(*[str(tmp_path / "s.sqlite") if word == "STORE" else word for word in command])
    assert "still fails" in run.out


def commands(found: Page) -> list[list[str]]:
    (block,) = (e for e in found.select("pre", id=None) if e.attrs["id"].endswith("-run"))
    return [shlex.split(line)[1:] for line in block.text.splitlines() if re.match("tenferro-ref ", line)]
