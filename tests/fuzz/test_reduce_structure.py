"""The reducer: outputs, inputs, constants, dead code, details."""

from __future__ import annotations

import numpy as np
import pytest

from fuzz.findings.reduce.draft import Draft
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dims import InputDim
from tenferro_ref.ops import Policy
from tenferro_ref.program import GraphBuilder
from tests.fuzz.reductions import has, ops_of, reduced

pytestmark = pytest.mark.once


def test_repeated_and_aliasing_outputs_stay_only_where_needed() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (2,)), b.input("F64", (2,))
    z = -x
    program = b.build(x, z, z, y)
    start = Case.of(program, [np.ones(2), np.ones(2)])

    def repeated(case: Case) -> bool:
        slots = case.program.output_slots
        return len(set(slots)) < len(slots)

    case = reduced(start, repeated).case
    assert len(case.program.output_slots) == 2
    assert len(case.program.instructions) <= 1

    def aliased(case: Case) -> bool:
        return any(s in case.program.input_slots for s in case.program.output_slots) and bool(case.program.instructions)

    case = reduced(start, aliased).case
    assert ops_of(case) == ["Negate"]
    assert len(case.program.output_slots) == 2
    assert len(case.program.input_slots) == 1


def test_dead_code_stays_where_the_failure_needs_it() -> None:
    b = GraphBuilder()
    x = b.input("F64", (3,))
    b.input("F64", ())
    b.apply(ops.Exp(), x)
    b.apply(ops.Abs(), x)
    start = Case.of(b.build(-x), [np.ones(3), np.asarray(1.0)])
    reduction = reduced(start, has("Exp"))
    assert ops_of(reduction.case) == ["Exp"]
    assert len(reduction.case.program.input_slots) == 1
    assert reduction.case.program.output_slots == reduction.case.program.instructions[0].output_slots

    def dead_exp(case: Case) -> bool:
        read = {s for i in case.program.instructions for s in i.input_slots} | set(case.program.output_slots)
        return any(i.op.name == "Exp" and not read.intersection(i.output_slots) for i in case.program.instructions)

    case = reduced(start, dead_exp).case
    assert ops_of(case) == ["Exp"]
    assert len(case.program.input_slots) == 1


def test_two_inputs_of_one_type_become_one() -> None:
    b = GraphBuilder()
    xs = [b.input("F64", (2,)) for _ in range(4)]
    program = b.build(b.apply(ops.Multiply(), b.apply(ops.Add(), xs[0], xs[1]), b.apply(ops.Add(), xs[2], xs[3])))
    start = Case.of(program, [np.full(2, float(i)) for i in range(4)])
    fails = has("Add", "Multiply")
    case = reduced(start, fails).case
    assert len(case.program.input_slots) == 1
    assert ops_of(case) == ["Add", "Multiply"]


def test_constants_become_simple_or_inputs() -> None:
    b = GraphBuilder()
    program = b.build(b.input("F64", (3,)) * 3.14159 + 2.71828)
    start = Case.of(program, [np.ones(3)])
    case = reduced(start, has("Constant")).case
    assert ops_of(case) == ["Constant"]
    assert [ins.op.value for ins in case.program.instructions if isinstance(ins.op, ops.Constant)] == [0.0]
    assert not case.inputs
    case = reduced(start, has("Multiply")).case
    assert ops_of(case) == ["Multiply"]


def test_policy_flags_and_name_go_unless_needed() -> None:
    b = GraphBuilder("a name", Policy("skip", "stablehlo", "identity", "stablehlo"))
    start = Case.of(b.build(-b.input("F64", ())), [np.asarray(2.5)])
    case = reduced(start, lambda c: c.program.policy.empty_reduction == "identity").case
    assert case.program.policy == Policy(empty_reduction="identity")
    assert case.program.name == ""


def test_dropping_the_input_that_named_a_symbol_renames_it() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", ("n",)), b.input("F64", (2, "n"))
    program = b.build(-x, -y)
    start = Case.of(program, [np.ones(3), np.ones((2, 3))])
    draft = Draft.of(start)
    draft.outputs = draft.outputs[1:]
    draft.prune()
    case = draft.build()
    assert case is not None
    assert case.program.input_types[0].shape == (2, InputDim(0, 1))
    assert case.program.symbols == ((InputDim(0, 1), "n"),)
