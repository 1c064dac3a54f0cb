"""Lifetime of buffers: last uses, reclaiming, poison, what the backend is told."""

from __future__ import annotations

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dtype import ENGINE_DTYPES
from tenferro_ref.errors import MissingValue
from tenferro_ref.program import GraphBuilder
from tenferro_ref.runtime import GraphExecutor, NumpyBackend
from tenferro_ref.runtime.backend import NumpySession
from tests.build import ONES, both, chain, change, exec_of, raises_on_both


@pytest.mark.parametrize("checking", [False, True])
@pytest.mark.parametrize("threshold", [0, 16384])
def test_last_use_one_instruction_early_is_a_missing_value(checking, threshold):
    program = change(chain(), 1, last_use=(True, True))
    program = change(program, 0, last_use=(True,))  # the input is read again by instruction 2
    error = raises_on_both(MissingValue, program, [ONES], checking=checking, fusion_threshold=threshold)
    assert error.slot == 0
    assert both(program, [ONES], reclaim=False)[0].tolist() == [-2, -2, -2]


@pytest.mark.parametrize("kind", ["pair", "triplet"])
def test_early_last_use_inside_a_fast_path(kind):
    b = GraphBuilder()
    x, y = b.input("F64", (3,)), b.input("F64", (3, 3))
    bx = b.apply(ops.BroadcastInDim((3, 3), (0,)), x)
    other = y if kind == "pair" else b.apply(ops.BroadcastInDim((3, 3), (1,)), x)
    program = exec_of(b.apply(ops.Multiply(), bx, other))
    assert [s.kind for s in GraphExecutor().segments(program)] == [kind]
    both(program, [ONES, np.ones((3, 3))])
    if kind == "triplet":
        early = change(program, 0, last_use=(True,))
        assert raises_on_both(MissingValue, early, [ONES, np.ones((3, 3))]).slot == 0


def test_an_output_slot_flagged_dead_is_missing():
    b = GraphBuilder()
    x = b.input("F64", (3,))
    y = -x
    program = change(exec_of(y, y + x), 1, last_use=(True, True))
    assert raises_on_both(MissingValue, program, [ONES]).slot == 1


@pytest.mark.parametrize("dtype", list(ENGINE_DTYPES))
def test_checking_overwrites_what_is_reclaimed(dtype):
    """A backend that remembers the buffers it made sees them poisoned, and the results are right all the same."""
    made = []

    class Session(NumpySession):
        def execute_backend_op(self, op, policy, operands):
            results = super().execute_backend_op(op, policy, operands)
            made.extend(results)
            return results

    class Backend(NumpyBackend):
        def with_backend_session(self):
            return Session()

    b = GraphBuilder()
    x = b.input(dtype, (2, 2))
    t = b.apply(ops.Transpose((1, 0)), x)
    program = exec_of(b.apply(ops.Transpose((1, 0)), t))
    value = np.array([[1, 0], [1, 1]]).astype(dtype.numpy)
    executor = GraphExecutor(Backend(), checking=True)
    (result,) = executor.eval_exec_ir(program, [value])
    assert np.array_equal(result, value)
    dead = made[0]
    expected = {"f": np.isnan, "c": np.isnan, "i": lambda a: a == np.iinfo(a.dtype).min, "b": lambda a: a == ~value.T}
    assert expected[dead.dtype.kind](dead).all()
