"""IREE's engine: what it keeps."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.case import Case
from oracle.peers import Pool
from tenferro_ref import ops
from tenferro_ref.program import GraphBuilder
from tests.libraries import executor_or_skip

pytestmark = pytest.mark.once


def test_a_module_is_compiled_once_whatever_the_values(pool: Pool) -> None:
    b = GraphBuilder()
    program = b.build(b.apply(ops.Negate(), b.input("F32", (2,))))
    executor = executor_or_skip(pool, "iree")
    runs = [executor.run(Case.of(program, [np.full(2, n, np.float32)])) for n in range(5)]
    assert [run.outputs[0].tolist() for run in runs] == [[-n, -n] for n in range(5)]
    first, *later = (run.seconds["compile"] for run in runs)
    assert min(later) < first / 10
