"""`check --bisect`: which instruction of a plugin's program is at fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fuzz.checking import judged
from tenferro_ref import ops
from tenferro_ref.program import GraphBuilder, dumps
from tests.e2e.command import in_this_process
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once


def test_a_plugin_that_disagrees_is_bisected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin_or_skip("xla081")
    b = GraphBuilder()
    x, y = b.input("F32", (2,)), b.input("F32", (2,))
    (tmp_path / "p.json").write_text(dumps(b.build(b.apply(ops.Negate(), b.apply(ops.Maximum(), x, y)))))
    np.savez(tmp_path / "in.npz", in0=np.array([1, 2], np.float32), in1=np.array([np.nan, 1], np.float32))
    monkeypatch.setattr(judged, "_known", lambda *asked: "")
    monkeypatch.setattr(judged, "_builds", lambda *asked: ())
    name = "pjrt:xla081@defaults"
    done = in_this_process(
        "check", tmp_path / "p.json", "--inputs", tmp_path / "in.npz", "--executors", name, "--bisect", "--json"
    )
    assert done.status == 1
    rows = {row["executor"]: row for row in done.rows}
    assert rows[name]["bisected"] == f"{name}: right when our kernel computes instruction 0 (Maximum)"
    assert rows[name]["instructions"] == [0]
    assert "instructions" not in rows["native"]
