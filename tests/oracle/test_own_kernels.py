"""Our kernels inside a plugin's programs: any op, what StableHLO lacks, and a disagreement bisected by replacing instructions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracle.attribution import instructions
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, Pool
from oracle.peers.pjrt import PjrtExecutor
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.extensions import linalg
from tenferro_ref.program import GraphBuilder
from tests.plugins import ONE_BUILD, plugin_or_skip

pytestmark = pytest.mark.once


def executor(pool: Pool, name: str) -> PjrtExecutor:
    plugin_or_skip(name.partition(":")[2].partition("@")[0])
    made = pool.make(name)
    assert isinstance(made, PjrtExecutor)
    return made


@pytest.mark.parametrize("plugin", ONE_BUILD)
def test_every_instruction_can_be_ours(pool: Pool, plugin: str) -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (3, 4)), b.input("F64", (4, 2))
    z = b.apply(ops.Sin(), x) @ y
    program = b.build(z.sum([0]), b.apply(ops.Reshape((2, 3)), z), z > 0.5)
    rng = np.random.default_rng(1)
    case = Case(program, (rng.random((3, 4)), np.asfortranarray(rng.random((4, 2)))))
    native = NativeExecutor().run(case).outputs
    peer = executor(pool, f"pjrt:{plugin}")
    everything = frozenset(range(len(program.instructions)))
    for got, want in zip(replace(peer, replaced=everything).run(case).outputs, native, strict=True):
        np.testing.assert_array_equal(got, want, strict=True)
    for number in everything:
        assert (
            judge(replace(peer, replaced=frozenset([number])), Reference(case, NativeExecutor())).verdict
            is Verdict.PASS
        )


@pytest.mark.parametrize("plugin", ONE_BUILD)
def test_what_stablehlo_has_no_form_for(pool: Pool, plugin: str) -> None:
    b = GraphBuilder()
    x = b.input("F64", (3, 3))
    program = b.build(linalg.eigvals(x @ x.T + 1.0))
    case = Case(program, (np.diag([1.0, 2.0, 4.0]),))
    with pytest.raises(UnsupportedOp):
        executor(pool, f"pjrt:{plugin}").run(case)
    peer = executor(pool, f"pjrt-kernels:{plugin}")
    np.testing.assert_allclose(peer.run(case).outputs[0], NativeExecutor().run(case).outputs[0])
    assert judge(peer, Reference(case, NativeExecutor())).verdict is not Verdict.UNSUPPORTED


def test_an_error_of_a_kernel_is_one_of_the_execution(pool: Pool) -> None:
    b = GraphBuilder()
    case = Case(b.build(linalg.cholesky(b.input("F64", (2, 2)))), (np.array([[1.0, 2.0], [2.0, 1.0]]),))
    peer = replace(executor(pool, "pjrt:xla081"), replaced=frozenset([0]))
    answer = judge(peer, Reference(case, NativeExecutor()))
    assert "custom call @tenferro_ref.kernel" in answer.reason
    assert peer.worker.deaths == 0


def test_a_disagreement_is_bisected(pool: Pool) -> None:
    """Finding 0001: by the plugins' defaults maximum(1, NaN) is 1."""
    b = GraphBuilder()
    x, y = b.input("F32", (4,)), b.input("F32", (4,))
    program = b.build(b.apply(ops.Negate(), b.apply(ops.Maximum(), b.apply(ops.Negate(), x), y)))
    nan = np.float32(np.nan)
    case = Case(program, (np.array([1, nan, 2, 3], np.float32), np.array([nan, 1, 2, 3], np.float32)))
    peer = executor(pool, "pjrt:xla081@defaults")
    assert judge(peer, Reference(case, NativeExecutor())).verdict.is_disagreement
    assert [program.instructions[n].op.name for n in instructions(peer, case)] == ["Maximum"]
