"""The report's matrix, from an executor that refuses one op: only that op is shown as refused, with the reason."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fuzz import records
from tests.e2e.command import in_this_process as tenferro_ref

pytestmark = pytest.mark.once

ENGINE = f"""#!/bin/sh
if grep -q '"Cos"' "$1"; then
  echo '{json.dumps({"error": {"kind": "UnsupportedOp", "op": "Cos", "reason": "no cosine here"}})}' >&2
  exit 3
fi
exec {sys.executable} -m tenferro_ref exec "$1" --inputs "$2" --out "$3"
"""


@pytest.mark.nightly
def test_a_refusal_is_shown_at_the_op_that_it_names(tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    run = tenferro_ref(
        "parity", "--seed", 5, "--programs", 12, "--generate", "ops=Cos,Exp,Add,Multiply", "--generate", "dtypes=F64",
        "--generate", "invalid=0", "--executors", f"external:{engine}", "--out", tmp_path / "report",
    )  # fmt: skip
    assert run.status == 0, run
    campaign = records.load(tmp_path / "report" / "campaign.json")
    cells = {c.op: c for c in campaign.cells if c.executor == f"external:{engine}"}
    refused = cells["Cos"].verdicts["unsupported"]
    assert cells["Cos"].refusals == {"no cosine here": refused}
    assert sum(c.beside.get("unsupported", 0) for c in cells.values()) > 0
    assert all("unsupported" not in c.verdicts for op, c in cells.items() if op != "Cos")
    assert "no cosine here" in (tmp_path / "report" / "index.html").read_text("utf-8")
