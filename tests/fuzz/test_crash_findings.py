"""A program that ends a plugin's process: run again, and a CRASH finding with the process's last words if it repeats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fuzz.findings.suspect import inspect
from fuzz.findings.triage import to_finding
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, Pool
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


@pytest.mark.parametrize("repeats", [True, False], ids=["it repeats", "it does not"])
@pytest.mark.nightly
def test_a_crash(
    fake_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: Pool, repeats: bool
) -> None:
    monkeypatch.setenv("FAKE_PJRT_MODE", "compile_segv")
    monkeypatch.setenv("FAKE_PJRT_TRIGGER", "abs")
    if not repeats:
        once = tmp_path / "once"
        once.touch()
        monkeypatch.setenv("FAKE_PJRT_ONCE", str(once))
    b = GraphBuilder()
    case = Case.of(b.build(b.apply(ops.Abs(), b.input("F64", ()))), [np.array(1.0)])  # a copy of the input is right
    executor = pool.make(f"pjrt:{fake_library}")
    answer = judge(executor, Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.CRASH
    assert "signal SIGSEGV" in answer.reason
    assert "the fake plugin was asked for compile_segv" in answer.reason

    finding, reduced = to_finding(
        inspect(executor, case, answer, pool), pool, (), programs=1, also=(), budget_seconds=1.0
    )
    assert finding.verdict == "crash"
    assert "the fake plugin was asked for compile_segv" in finding.reason
    if repeats:
        assert [ins.op for ins in reduced.program.instructions] == [ops.Abs()]
        assert finding.attribution == "every lane"
        assert [build.verdict for build in finding.builds] == [Verdict.CRASH]
    else:
        assert finding.attribution == "does not repeat"
        assert reduced is case
        assert finding.builds == ()
