"""Equal programs: what is written another way gives the same bits, and shows a fault that kernel and enclosure share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from fuzz.findings.suspect import inspect
from fuzz.findings.triage import to_finding
from fuzz.generate import Config
from fuzz.generate.batches import generate
from oracle.case import Case
from oracle.enclosure import ENCLOSE
from oracle.equivalent import equivalent
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, Pool
from oracle.peers.native import RewrittenExecutor
from oracle.verdict import Verdict
from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import GraphBuilder
from tenferro_ref.runtime.kernels import KERNELS

SINES = Config(ops=(ops.Sin, ops.Add, ops.Negate, ops.Transpose), dtypes=(DType.F64,), symbolic=0, motifs=False)


def _verdict(executor: NativeExecutor, case: Case) -> Verdict:
    return judge(executor, Reference(case, NativeExecutor())).verdict


@pytest.mark.once
def test_equal_programs_give_the_same_bits() -> None:
    rewritten, pool = 0, Pool()
    for case in generate(31, 0, 64):
        assert _verdict(pool.make("native-rewritten"), case) in (Verdict.PASS, Verdict.UNSUPPORTED)
        other = equivalent(case).program
        assert other.output_types == case.program.output_types
        rewritten += len(other.instructions) > len(case.program.instructions)
    assert rewritten > 50


@pytest.mark.parametrize("dtype", ["I32", "I64", "F64", "C32"])
def test_every_elementwise_op_is_rewritten(dtype: str) -> None:
    config = Config(ops=ops.ELEMENTWISE, dtypes=(DType[dtype],), symbolic=0, max_instructions=1)
    for case in generate(5, 0, 24, config):
        shapes = [t.shape for t in case.program.slot_types.values()]
        assert (equivalent(case).program != case.program) or max(map(len, shapes)) == 0


def _wrong_at_the_end(right: Any) -> Any:
    """A kernel that gives 0.5 for the last of more than three elements."""

    def wrong(op: ops.Op, x: Any) -> Any:  # the right one is a ufunc
        result = np.asfortranarray(right(x))
        if result.size > 3:
            result.flat[-1] = 0.5
        return result

    return wrong


def _blind_at_the_end(right: Any) -> Any:
    """An enclosure that admits every number there."""

    def wrong(op: ops.Op, context: Any, x: Any) -> Any:
        enclosed = right(op, context, x)
        lo, hi = np.array(enclosed.lo), np.array(enclosed.hi)
        if lo.size > 3:
            lo.flat[-1], hi.flat[-1] = -np.inf, np.inf
        return replace(enclosed, lo=lo, hi=hi)

    return wrong


@pytest.mark.once
def test_a_fault_that_kernel_and_enclosure_share_shows_in_an_equal_program_alone(pool: Pool) -> None:
    others = [pool.make(n) for n in ("native", "native-unsegmented", "native-nopasses", "native-fused", "native-drawn")]
    with (
        mock.patch.dict(KERNELS._rows, {ops.Sin: _wrong_at_the_end(KERNELS[ops.Sin])}),
        mock.patch.dict(ENCLOSE._rows, {ops.Sin: _blind_at_the_end(ENCLOSE[ops.Sin])}),
    ):
        rewritten = pool.make("native-rewritten")
        for case in generate(8, 0, 40, SINES):
            if _verdict(rewritten, case) is Verdict.MISMATCH:
                break
        else:
            pytest.fail("it is not found")
        assert {_verdict(executor, case) for executor in others} == {Verdict.PASS}
        answer = judge(rewritten, Reference(case, NativeExecutor()))
        suspect = inspect(rewritten, case, answer, pool)
        finding, small = to_finding(suspect, pool, (), programs=1, also=(), budget_seconds=10.0)
    assert [ins.op.name for ins in small.program.instructions] == ["Sin"]
    assert finding.executor == "native-rewritten"


def test_a_program_with_an_extent_that_only_a_run_knows_stays_as_it_is() -> None:
    b = GraphBuilder()
    x, size = b.input("F64", (3,)), b.input("F64", ())
    case = Case.of(b.build(-tn.truncate(x, size, 0)), [np.ones(3), np.array(2.0)])
    assert equivalent(case) is case


def test_an_equal_program_need_not_keep_the_zeros_of_a_conjugation_that_moves() -> None:
    """ConjSinking takes the one of the first program to the operand, and not those of the second, which are pieces."""
    b = GraphBuilder()
    x, y = b.input("C32", (2, 2)), b.input("C32", (2, 2))
    program = b.build(b.apply(ops.DotGeneral((1,), (1,), (), ()), y, b.apply(ops.Conj(), b.apply(ops.Tril(0), x))))
    case = Case.of(program, [np.zeros((2, 2), np.complex64), np.diag([0, -1]).astype(np.complex64)])
    rewritten = RewrittenExecutor("native-rewritten")
    assert _verdict(rewritten, case) is Verdict.PASS
    assert not rewritten.bit_exact(case)
    b = GraphBuilder()
    assert rewritten.bit_exact(Case.of(b.build(b.input("C32", (2, 2)) * b.input("C32", (2, 2))), case.inputs))
