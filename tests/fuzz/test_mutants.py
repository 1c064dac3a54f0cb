"""Seeded faults: each, switched on alone, is found and shrunk to at most four instructions."""

from __future__ import annotations

import numpy as np
import pytest

from fuzz.mutants import CATALOGUE, Mutant, find, hunt
from oracle.executors import NativeExecutor
from oracle.judge import Reference, judge
from tenferro_ref.errors import UsageError
from tenferro_ref.ops import Maximum
from tenferro_ref.program import GraphBuilder, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.tensor import same_bits
from tests.plugins import plugin_or_skip

#: Faults of the XLA path need a plugin to show; those of the native path show against enclosures and among variants.
THROUGH_XLA = ("emitter", "layout")
SEED = 20261121


@pytest.mark.parametrize("mutant", CATALOGUE, ids=lambda m: m.name)
def test_every_mutant_is_killed_and_its_evidence_is_small(mutant: Mutant) -> None:
    if mutant.place in THROUGH_XLA:
        plugin_or_skip("xla081")
        executors = ["pjrt:xla081"]
    else:
        executors = ["native-unsegmented", "native-nopasses"]
    kill = hunt(mutant, executors, seed=SEED, max_programs=2000, reduce_seconds=30)
    assert kill.killed, f"{mutant.name} survived {kill.programs} programs"
    assert kill.case is not None
    assert len(kill.case.program.instructions) <= 4, kill.case.program
    # the fault is gone with the hunt
    native = NativeExecutor()
    assert judge(native, Reference(kill.case, native)).verdict.value == "pass"


def test_a_fault_is_there_only_while_it_is_switched_on() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (1,)), b.input("F64", (1,))
    program = to_exec(b.build(b.apply(Maximum(), x, y)))
    inputs = [np.array([1.0]), np.array([np.nan])]

    def run() -> np.ndarray:
        return GraphExecutor().eval_exec_ir(program, inputs)[0]

    before = run()
    with find("maximum-ignores-nan").patch():
        assert run()[0] == 1.0
    assert np.isnan(before[0])
    assert same_bits(run(), before)


def test_unknown_mutants_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no-such"):
        find("no-such")
