"""Fast paths: what fuses and from which size on, broadcasts in products, segments."""

from __future__ import annotations

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, ShapeMismatch
from tenferro_ref.ops import ELEMENTWISE, STABLEHLO
from tenferro_ref.program import GraphBuilder
from tenferro_ref.runtime import GraphExecutor, NumpyBackend
from tenferro_ref.runtime.backend import NumpySession
from tenferro_ref.runtime.fusion import FUSIBLE, FUSIBLE_DTYPES
from tests.build import ONES, chain, exec_of


class Spy(NumpyBackend):
    """Counts what the sessions are asked for."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def with_backend_session(self):
        calls = self.calls

        class Session(NumpySession):
            def execute_backend_op(self, op, policy, operands):
                calls.append(op.name)
                return super().execute_backend_op(op, policy, operands)

            def execute_fused(self, plan, policy, type_, values):
                calls.append("fused")
                return super().execute_fused(plan, policy, type_, values)

            def broadcast_multiply(self, shape, lhs, rhs):
                calls.append("broadcast multiply")
                return super().broadcast_multiply(shape, lhs, rhs)

        return Session()


def calls_of(program, inputs, **options):
    spy = Spy()
    results = GraphExecutor(spy, **options).eval_exec_ir(program, inputs)
    expected = GraphExecutor().eval_unsegmented(program, inputs)
    assert [r.tobytes("F") for r in results] == [e.tobytes("F") for e in expected]
    return spy.calls


def test_fusion_starts_at_the_threshold():
    b = GraphBuilder()
    x = b.input("F64", ("n",))
    program = exec_of(b.apply(ops.Exp(), -x))
    for size, calls in ((16383, ["Negate", "Exp"]), (16384, ["fused"]), (50000, ["fused"])):
        assert calls_of(program, [np.linspace(-1, 1, size)]) == calls
    assert calls_of(program, [np.linspace(-1, 1, 5)], fusion_threshold=5) == ["fused"]
    assert calls_of(program, [np.zeros(0)], fusion_threshold=0) == ["fused"]


def test_the_ops_that_fuse():
    assert {op.__name__ for op in ELEMENTWISE if op not in FUSIBLE} == {"Sign", "Compare", "Select"}
    assert set(ELEMENTWISE) > FUSIBLE
    assert {d.name for d in FUSIBLE_DTYPES} == {"F32", "F64", "C32", "C64"}


def test_segments_only_where_a_run_has_two_instructions():
    """Else a session an instruction, as on the unsegmented path."""

    class Backend(NumpyBackend):
        sessions = 0

        def with_backend_session(self):
            self.sessions += 1
            return super().with_backend_session()

    x, y = (GraphBuilder().input("F64", (2, 2)) for _ in range(2))
    single = exec_of(-((-x) @ x))
    double = exec_of(-((-y) @ y) + y)
    for program, way, sessions in (
        (single, GraphExecutor.eval_exec_ir, 2),
        (single, GraphExecutor.eval_unsegmented, 2),
        (double, GraphExecutor.eval_exec_ir, 2),
        (double, GraphExecutor.eval_unsegmented, 3),
    ):
        backend = Backend()
        way(GraphExecutor(backend), program, [np.ones((2, 2))])
        assert backend.sessions == sessions


def test_a_program_that_runs_again_on_other_types_is_checked_again():
    b = GraphBuilder()
    x, y = b.input("F64", ("n",)), b.input("F64", ("m",))
    program = exec_of(b.apply(ops.Exp(), b.apply(ops.Add(), x, y)))  # [n] + [m] is a run-time matter
    for threshold in (0, 16384):
        executor = GraphExecutor(fusion_threshold=threshold)
        for way in (executor.eval_exec_ir, executor.eval_unsegmented):
            for sizes, fits in (((3, 3), True), ((3, 4), False), ((3, 3), True), ((5, 5), True)):
                inputs = [np.zeros(n) for n in sizes]
                if fits:
                    assert way(program, inputs)[0].tolist() == [1.0] * sizes[0]
                else:
                    with pytest.raises(ShapeMismatch):
                        way(program, inputs)


FUSION = {
    "unary": (True, lambda b, x, y, i, c: -(x + x)),
    "scalar operand": (True, lambda b, x, y, i, c: -(x * c)),
    "scalar inside": (True, lambda b, x, y, i, c: b.apply(ops.Multiply(), x, -c)),
    "scalars only": (True, lambda b, x, y, i, c: -(c + c)),
    "broadcast input": (True, lambda b, x, y, i, c: -b.apply(ops.Add(), x, spread(b, y))),
    "integers": (False, lambda b, x, y, i, c: -(i + i)),
    "compare": (False, lambda b, x, y, i, c: -x < x),
    "broadcast of an intermediate": (False, lambda b, x, y, i, c: x + spread(b, -y)),
    "broadcast of an input used elsewhere": (
        False,
        lambda b, x, y, i, c: b.apply(ops.Add(), spread(b, y), spread(b, y)),
    ),
    "broadcast to a scalar": (
        False,
        lambda b, x, y, i, c: -b.apply(ops.Multiply(), x, b.apply(ops.BroadcastInDim((), ()), c)),
    ),
    "two shapes": (False, lambda b, x, y, i, c: b.apply(ops.Add(), x, spread(b, y)) + spread(b, -y)),
}


def spread(b, value):
    return b.apply(ops.BroadcastInDim((4,), (0,)), value)


@pytest.mark.parametrize("name", FUSION)
def test_what_fuses_and_what_does_not(name):
    fuses, build = FUSION[name]
    b = GraphBuilder()
    value = build(b, b.input("F64", (4,)), b.input("F64", (1,)), b.input("I32", (4,)), b.input("F64", ()))
    inputs = [np.arange(4.0), np.ones(1), np.arange(4, dtype=np.int32), np.array(3.0)]
    assert (calls_of(exec_of(value), inputs, fusion_threshold=0) == ["fused"]) is fuses


def test_a_scalar_that_is_spread_is_not_written_out():
    """Fused, it stays a scalar; where only such scalars meet, the result is written out at the end."""
    b = GraphBuilder()
    x, c, d, e = b.input("F64", (3, 2)), *(b.input("F64", ()) for _ in range(3))
    wide, other = (b.apply(ops.BroadcastInDim((3, 2), ()), s) for s in (c, d))
    alone = b.apply(ops.BroadcastInDim((5,), ()), e)
    program = exec_of(-x + wide, -other, alone, b.apply(ops.Add(), wide, b.apply(ops.Multiply(), x, other)))
    inputs = [np.arange(6.0).reshape(3, 2), np.array(0.5), np.array(np.nan), np.array(3.0)]
    assert calls_of(program, inputs, fusion_threshold=0) == ["fused"]
    results = GraphExecutor(fusion_threshold=0, checking=True).eval_exec_ir(program, inputs)
    assert [r.shape for r in results] == [(3, 2), (3, 2), (5,), (3, 2)]


def test_a_multiply_of_broadcasts_needs_no_broadcast_in_memory():
    b = GraphBuilder()
    x, y = b.input("C64", (3,)), b.input("C64", (2, 4))
    product = b.apply(
        ops.Multiply(),
        b.apply(ops.BroadcastInDim((4, 3, 2), (1,)), x),
        b.apply(ops.BroadcastInDim((4, 3, 2), (2, 0)), y),
    )
    inputs = [np.arange(3) * (1 + 2j), np.arange(8).reshape(2, 4) - 3j]
    assert calls_of(exec_of(product), inputs) == ["broadcast multiply"]
    first = b.apply(ops.BroadcastInDim((4, 3, 2), (1,)), x)
    product = b.apply(ops.Multiply(), first, b.apply(ops.BroadcastInDim((4, 3, 2), (2, 0)), y))
    program = exec_of(product, first)  # a second output: the fast path writes one slot only
    assert "broadcast multiply" not in calls_of(program, inputs)


def test_a_program_that_runs_again_is_not_planned_again():
    program, other = chain(), chain()
    executor = GraphExecutor()
    executor.eval_exec_ir(program, [ONES])
    plan = executor._last
    executor.eval_unsegmented(program, [2 * ONES])
    assert executor._last is plan
    executor.eval_exec_ir(other, [ONES])
    assert executor._last.program is other


@pytest.mark.parametrize("reads", [1, 2, 3])
def test_a_plan_that_another_thread_leaves_is_not_run(reads: int) -> None:
    """One executor in two threads gave the results of the other's program."""

    class Shared(GraphExecutor):
        left, own, other = 0, None, None

        @property
        def _last(self):
            self.left -= 1
            return self.other if self.left < 0 else self.own

        @_last.setter
        def _last(self, plan):
            self.own = plan

    x = GraphBuilder().input("F64", ONES.shape)
    program, other = exec_of(x + x), exec_of(x * 5.0)
    executor = Shared()
    executor.eval_exec_ir(other, [ONES])
    executor.other = executor.own
    executor.eval_exec_ir(program, [ONES])
    executor.left = reads
    assert (executor.eval_exec_ir(program, [ONES])[0] == 2).all()


def test_a_fused_result_that_is_its_operand_outlives_it() -> None:
    """Conj of a real scalar is the scalar: it must not share the buffer that is poisoned after its last use."""
    b = GraphBuilder()
    x, zero = b.input("F64"), b.constant(-0.0, DType.F64)
    program = compile_std_to_exec(
        b.build(b.apply(ops.Divide(), x, zero), b.apply(ops.Conj(), zero), b.apply(ops.Conj(), zero))
    )
    outputs = GraphExecutor(checking=True, fusion_threshold=0).eval_exec_ir(program, [np.array(0.0)])
    assert [float(o) for o in outputs[1:]] == [0.0, 0.0]
    assert all(np.signbit(o) for o in outputs[1:])


@pytest.mark.parametrize("dtype", ["BF16", "F16"])
def test_a_product_of_narrow_floats_has_the_same_nan_in_one_call_and_in_two(dtype: str) -> None:
    b = GraphBuilder(policy=STABLEHLO)
    x, y = b.input(dtype, (3,)), b.input(dtype, ())
    program = b.build(b.apply(ops.Multiply(), x, b.apply(ops.BroadcastInDim((3,), ()), y)))
    numbers = np.array([-3, 1, -1], np.int16).view(x.dtype.numpy)  # NaNs with a minus sign among them
    arrays = [numbers, np.array(2, x.dtype.numpy)]
    calls_of(compile_std_to_exec(program), arrays)  # which compares the bits


def test_a_block_has_elements():
    with pytest.raises(InvalidArgument, match="block"):
        NumpyBackend(0)
