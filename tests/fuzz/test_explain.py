"""What explains a finding: the guilty instruction in program and StableHLO, the steps, the freedoms, the snapshots."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from fuzz.explanation import Explanation
from fuzz.findings.explain import explained
from oracle.case import Case, Refusal
from oracle.enclosure.model import FREEDOMS
from oracle.peers import Execution, NativeExecutor
from oracle.peers.modules import module_text
from tenferro_ref import ops
from tenferro_ref.program import GraphBuilder, print_program
from tests.reports import sample


@dataclass(frozen=True)
class _Wrong(NativeExecutor):
    """Takes the square root where a logarithm is asked for; not a variant that must keep bits."""

    name: str = "wrong"

    def run(self, case: Case) -> Execution:
        program = case.program
        swapped = [replace(i, op=ops.Sqrt()) if isinstance(i.op, ops.Log) else i for i in program.instructions]
        return NativeExecutor.run(self, replace(case, program=replace(program, instructions=tuple(swapped))))

    def bit_exact(self, case: Case) -> bool:
        return False


def chain() -> Case:
    """A sum, its logarithm, and what is made of that."""
    b = GraphBuilder()
    total = b.input("F64", (2, 3)).sum([1])
    return Case.of(b.build(b.apply(ops.Exp(), b.apply(ops.Log(), total))), [np.arange(1.0, 7.0).reshape(2, 3)])


def explanation(case: Case, **changes: object) -> Explanation:
    found = replace(
        sample.finding(verdict="mismatch", values=(), explanation=Explanation(), **changes),
        program_text=print_program(case.program),
        stablehlo=module_text(case) if case.refusal is None else "",
    )
    return explained(found, _Wrong(), case).explanation


def test_the_guilty_instruction_is_marked_in_both_forms() -> None:
    case, got = chain(), explanation(chain())
    assert [print_program(case.program).split("\n")[n].split()[2][:4] for n in got.guilty_lines] == ["Log("]
    lines = module_text(case).split("\n")
    assert [lines[n].split()[2] for n in got.guilty_stablehlo] == ["stablehlo.log"]


def test_an_instruction_of_several_statements_is_marked_whole() -> None:
    b = GraphBuilder()
    case = Case.of(b.build(b.input("F64", (2, 3)).sum([1])), [np.ones((2, 3))])
    got = explanation(case)
    lines = module_text(case).split("\n")
    assert [lines[n].split()[2].partition("(")[0] for n in got.guilty_stablehlo] == [
        "stablehlo.constant",
        "stablehlo.reduce",
    ]


def test_the_steps_follow_the_program() -> None:
    got = explanation(chain())
    assert [step.value.partition("(")[0] for step in got.steps if step.index == "[1]"] == [
        "%1 = ReduceSum", "%2 = Log", "%3 = Exp",
    ]  # fmt: skip
    assert "No tolerance is involved" in got.why
    assert (got.model, got.freedoms) == (
        "numpy",
        tuple(FREEDOMS[name] for name in ("contraction_zero", "conj_moves", "narrow_sums")),
    )


@pytest.mark.parametrize("verdict", ["crash", "error", "timeout"])
def test_other_verdicts_have_no_steps(verdict: str) -> None:
    found = sample.finding(verdict=verdict, op="Log", values=(), program_text=print_program(chain().program))
    got = explained(found, _Wrong(), chain()).explanation
    assert "The program is valid" in got.why
    assert (got.steps, got.freedoms) == ((), ())
    assert len(got.guilty_lines) == 1


def test_an_invalid_program_says_which_rule_it_breaks() -> None:
    case = replace(chain(), refusal=Refusal("axis out of range: ReduceSum", "AxisOutOfBounds", "ReduceSum", 3, at=0))
    got = explanation(case)
    assert "made to break one rule (axis out of range: ReduceSum)" in got.why
    assert (got.guilty_lines, got.guilty_stablehlo, got.snapshots) == ((1,), (), ())


def test_snapshots_are_those_of_the_passes_that_change_something() -> None:
    b = GraphBuilder()
    x = b.input("F64", (2, 3))
    case = Case.of(b.build(x.transpose([1, 0]).transpose([1, 0]) + x), [np.ones((2, 3))])
    first, *after = explanation(case).snapshots
    assert first.name == "before the passes"
    assert after
    assert all(snapshot.changes and snapshot.text != first.text for snapshot in after)


def test_segments_say_what_is_cut_fused_and_reclaimed() -> None:
    b = GraphBuilder()
    x = b.input("F64", (2, 2))
    product = x @ x
    case = Case.of(b.build(b.apply(ops.Exp(), b.apply(ops.Log(), product))), [np.ones((2, 2))])
    contraction, rest = explanation(case).segments
    assert (contraction.kind, contraction.fuses, contraction.reclaimed) == ("ffi", False, ("%0",))
    assert rest.instructions == ("%2 = Log(%1)", "%3 = Exp(%2)")
    assert (rest.kind, rest.fuses, rest.reclaimed) == ("fused", True, ("%1", "%2"))
