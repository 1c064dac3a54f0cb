"""A defect of this project where a case is made: found, reduced and reported as a disagreement; it ends no campaign."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import oracle.unmade
from fuzz.campaign.work import run_campaign
from fuzz.findings.bundle import replay
from fuzz.records import Campaign
from fuzz.store import Plan
from fuzz.store.model import pack, unpack
from oracle.case import Case
from oracle.derivation import derived, plain_seed, underived
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, Pool
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.autodiff import JVP
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once

#: Batches of so many programs, one in two of which is of the kind that is asked for.
PLAN = Plan(5, programs=96, batch=32, max_findings=2, reduce_seconds=10)


def broken_rule(*_: object) -> None:
    raise KeyError("slot")


def campaign(bundles: Path, **shares: str) -> Campaign:
    """Run natively, with these shares of kinds of programs."""
    generate = tuple(f"{kind}={share}" for kind, share in shares.items())
    with closing(Pool()) as pool:
        return run_campaign(replace(PLAN, generate=generate), pool.select(["native"]), pool, bundles=bundles)


def still_fails(folder: Path) -> bool:
    with closing(Pool()) as pool:
        return replay(folder, pool).outcome == "still fails"


def test_a_rule_with_a_defect_is_a_finding_of_its_op_alone(tmp_path: Path) -> None:
    with mock.patch.dict(JVP._rows, {ops.Log1p: broken_rule}):  # which no other rule writes
        (finding,) = campaign(tmp_path, derivatives="1/2", ops="Log1p,Multiply,Add").findings
        assert finding.verdict == "error"
        assert "KeyError" in finding.reason
        assert "a derivative rule" in finding.reason
        assert finding.signature.split(" | ")[0] in ("jvp of Log1p", "vjp of Log1p", "vjp of jvp of Log1p")
        assert finding.signature.endswith("this project")
        assert finding.instructions == 1
        assert still_fails(tmp_path / finding.id)
    assert not still_fails(tmp_path / finding.id)


def test_a_module_that_the_reader_refuses_is_a_finding_reduced_to_what_it_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jaxlib", reason="modules are read by MLIR, the extra jax")
    load = oracle.unmade.load

    def refusing(code: str, *args: Any, **kwargs: Any) -> object:
        if "stablehlo.sort" in code:
            raise UnsupportedOp(op="stablehlo.sort", reason="for a test")
        return load(code, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(oracle.unmade, "load", refusing)
        (finding,) = campaign(tmp_path, modules="1/2").findings
        assert finding.verdict == "error"
        assert "for a test" in finding.reason
        assert finding.attribution == "this project"
        assert finding.stablehlo.count('= "stablehlo.sort"') + finding.stablehlo.count("= stablehlo.sort") == 1
        assert finding.stablehlo.count("stablehlo.") < 8, finding.stablehlo
        assert still_fails(tmp_path / finding.id)
    assert not still_fails(tmp_path / finding.id)


def test_a_derivative_that_could_not_be_made_is_kept_as_one() -> None:
    builder = GraphBuilder("sine")
    x = builder.input(DType.F32, (2,))
    primal = Case.of(builder.build(builder.apply(ops.Sin(), x)), [np.ones(2, np.float32)])
    case = unpack(*pack(underived(primal, ("vjp",))))
    assert case.unmade
    made = derived(primal, ("vjp",), plain_seed)
    assert made is not None
    assert not made.unmade
    answer = judge(NativeExecutor(), Reference(case, NativeExecutor()))
    assert (answer.verdict, answer.reason) == (Verdict.PASS, "it can be made now")
