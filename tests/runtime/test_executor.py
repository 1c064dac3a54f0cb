"""The executor: validation, lifetime of buffers, aliasing of results, errors on both paths, fast paths, extensions."""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.dtype import DType
from tenferro_ref.errors import (
    Internal,
    InvalidArgument,
    InvalidCompiledGraph,
    MissingValue,
    ResourceExhausted,
    ShapeMismatch,
    UnsupportedOp,
)
from tenferro_ref.ops import (
    FAMILIES,
    Abs,
    Add,
    BroadcastInDim,
    Conj,
    Constant,
    Convert,
    Divide,
    DotGeneral,
    DynamicTruncate,
    EmbedDiag,
    Exp,
    Extension,
    Multiply,
    Negate,
    Policy,
    ReduceSum,
    Reshape,
    TensorType,
    Transpose,
    Tril,
)
from tenferro_ref.program import ExecProgram, GraphBuilder, GraphProgram, Instruction, to_exec
from tenferro_ref.runtime import GraphExecutor, NumpyBackend, register_runtime
from tenferro_ref.runtime import extension as extension_module
from tenferro_ref.runtime.backend import NumpySession
from tenferro_ref.runtime.fusion import FUSIBLE, FUSIBLE_DTYPES
from tenferro_ref.tensor import Tensor

X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], order="F")


def exec_of(*outputs):
    return to_exec(outputs[0].builder.build(*outputs))


def paths(**options):
    executor = GraphExecutor(**options)
    return executor.eval_exec_ir, executor.eval_unsegmented


def both(program, inputs, **options):
    """Results of both paths, which must be the same bit for bit."""
    a, b = (path(program, inputs) for path in paths(**options))
    assert [(x.dtype, x.shape, x.tobytes("F")) for x in a] == [(x.dtype, x.shape, x.tobytes("F")) for x in b]
    return a


def raises_on_both(error, program, inputs, match=None, **options):
    caught = []
    for path in paths(**options):
        with pytest.raises(error, match=match) as info:
            path(program, inputs)
        caught.append(info.value)
    assert caught[0].to_json() == caught[1].to_json()
    return caught[0]


# --- results ----------------------------------------------------------------------------------------------------------


def test_a_whole_program():
    b = GraphBuilder()
    x, w = b.input("F64", (2, 3)), b.input("F64", (3, 4))
    program = exec_of((x @ w + 1.0).sum([0]))
    w_value = np.arange(12.0).reshape(3, 4)
    (result,) = both(program, [X, w_value])
    assert np.array_equal(result, (X @ w_value + 1).sum(0))


def test_inputs_may_have_any_strides_and_are_not_touched():
    b = GraphBuilder()
    x = b.input("F64", (3, 2))
    program = exec_of(-(x * x), x.reshape(6))
    base = np.arange(24.0).reshape(4, 6)
    given = Tensor.of(base).transpose((1, 0))[::2, ::-2]
    before = base.tobytes()
    for checking in (False, True):
        square, flat = both(program, [given], checking=checking)
        assert base.tobytes() == before
        assert np.array_equal(square, -(given.data**2))
        assert flat.tolist() == given.data.ravel("F").tolist()


def test_read_only_and_unaligned_inputs():
    b = GraphBuilder()
    x = b.input("F32", (3,))
    program = exec_of(x + x, x)
    raw = b"\0" + np.array([1, 2, 3], np.float32).tobytes()
    given = np.frombuffer(raw, np.float32, offset=1)
    double, same = both(program, [given], checking=True)
    assert double.tolist() == [2, 4, 6]
    same[0] = 9
    assert given[0] == 1


def test_bool_bytes_other_than_one_are_true():
    b = GraphBuilder()
    x = b.input("Bool", (3,))
    given = np.array([0, 2, 255], np.uint8).view(np.bool_)
    assert both(exec_of(b.apply(Convert(DType.I32), x)), [given])[0].tolist() == [0, 1, 1]
    assert both(exec_of(x), [given])[0].tobytes() == b"\0\1\1"


@pytest.mark.parametrize("checking", [False, True])
def test_outputs_share_memory_with_nothing(checking):
    b = GraphBuilder()
    x = b.input("F64", (2, 3))
    view = x.reshape(6)
    twice = x + x
    program = exec_of(
        x, x, view, b.apply(Transpose((0, 1)), x), twice, twice, twice.reshape(3, 2), twice.astype(DType.F64)
    )
    given = X.copy(order="F")
    for path in paths(checking=checking):
        results = path(program, [given])
        for i, a in enumerate(results):
            assert a.flags.f_contiguous
            assert a.flags.writeable
            assert not np.shares_memory(a, given)
            assert not any(np.shares_memory(a, c) for c in results[:i])
        results[0][...] = 7
        assert np.array_equal(given, X)


def test_rank_zero_results_are_arrays():
    b = GraphBuilder()
    x = b.input("F64", ())
    c = b.constant(2.5)
    program = exec_of(x + c, c, -x, b.apply(Exp(), x), x)
    for result in both(program, [np.array(1.0)]):
        assert type(result) is np.ndarray
        assert result.shape == ()


def test_programs_without_instructions_inputs_or_outputs():
    assert GraphExecutor().eval_exec_ir(to_exec(GraphBuilder().build()), []) == []
    b = GraphBuilder()
    assert both(exec_of(b.constant(3.0)), [])[0] == 3.0
    assert both(to_exec(b.build()), []) == []


def test_truncated_extents_flow_on_at_run_time():
    b = GraphBuilder()
    x, n = b.input("F64", (5,)), b.input("I64", ())
    t = b.apply(DynamicTruncate(0), x, n)
    s = b.apply(ReduceSum((0,)), t)
    program = exec_of(t, s, b.apply(Negate(), t))
    for count in (0, 3, 9, -1):
        if count > 0:
            t_value, s_value, _ = both(program, [np.arange(5.0), np.array(count)], checking=True)
            assert t_value.shape == (min(count, 5),)
            assert s_value == sum(range(min(count, 5)))
        else:
            error = raises_on_both(InvalidArgument, program, [np.arange(5.0), np.array(count)])
            assert error.op == "ReduceSum"


def test_symbolic_programs():
    b = GraphBuilder()
    x, y = b.input("F64", ("n", 2)), b.input("F64", ("n",))
    program = exec_of(x + x, y)
    assert both(program, [np.ones((4, 2)), np.ones(4)])[0].shape == (4, 2)
    raises_on_both(ShapeMismatch, program, [np.ones((4, 2)), np.ones(5)])


# --- inputs and validation --------------------------------------------------------------------------------------------


def test_inputs_that_do_not_fit():
    b = GraphBuilder()
    program = exec_of(-b.input("F64", (2, 3)))
    raises_on_both(InvalidCompiledGraph, program, [X, X], "expected 1 inputs, got 2")
    raises_on_both(InvalidCompiledGraph, program, [X.astype(np.float32)], "declares F64")
    raises_on_both(ShapeMismatch, program, [X.T])
    raises_on_both(InvalidArgument, program, [X.astype(np.float16)], "float16")
    raises_on_both(InvalidArgument, program, [X.astype(">f8")])


def chain():
    b = GraphBuilder()
    x = b.input("F64", (3,))
    y = -x
    z = y + y
    return exec_of(z * x)


def change(program, index, **fields):
    instructions = list(program.instructions)
    instructions[index] = replace(instructions[index], **fields)
    return replace(program, instructions=tuple(instructions))


ONES = np.ones(3)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (change(chain(), 0, input_slots=(4,)), r"slot 4 out of range"),
        (change(chain(), 0, input_slots=(-1,)), r"slot -1 out of range"),
        (change(chain(), 1, output_slots=(9,)), r"slot 9 out of range"),
        (change(chain(), 1, output_slots=(1,)), r"slot 1 is written twice"),
        (change(chain(), 1, output_slots=(0,)), r"slot 0 is written twice"),
        (change(chain(), 1, output_slots=()), r"expected 1 outputs, got 0"),
        (change(chain(), 0, input_slots=(0, 0), last_use=(False, False)), r"Negate\): expected 1 inputs, got 2"),
        (change(chain(), 2, last_use=(True,)), r"1 last_use flags for 2 inputs"),
        (replace(chain(), output_slots=(7,)), r"slot 7 out of range"),
        (replace(chain(), n_slots=5, output_slots=(4,)), r"output slot 4 is never written"),
        (replace(chain(), input_types=()), r"every input slot needs a type"),
    ],
)
def test_malformed_programs_are_refused_before_anything_runs(broken, message):
    raises_on_both(InvalidCompiledGraph, broken, [ONES], message)


def test_reading_a_slot_before_it_is_written():
    program = change(chain(), 0, input_slots=(2,))
    assert raises_on_both(MissingValue, program, [ONES]).slot == 2


# --- buffers ----------------------------------------------------------------------------------------------------------


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
    bx = b.apply(BroadcastInDim((3, 3), (0,)), x)
    other = y if kind == "pair" else b.apply(BroadcastInDim((3, 3), (1,)), x)
    program = exec_of(b.apply(Multiply(), bx, other))
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


@pytest.mark.parametrize("dtype", list(DType))
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
    t = b.apply(Transpose((1, 0)), x)
    program = exec_of(b.apply(Transpose((1, 0)), t))
    value = np.array([[1, 0], [1, 1]]).astype(dtype.numpy)
    executor = GraphExecutor(Backend(), checking=True)
    (result,) = executor.eval_exec_ir(program, [value])
    assert np.array_equal(result, value)
    dead = made[0]
    expected = {"f": np.isnan, "c": np.isnan, "i": lambda a: a == np.iinfo(a.dtype).min, "b": lambda a: a == ~value.T}
    assert expected[dead.dtype.kind](dead).all()


def test_poison_never_reaches_a_live_value():
    """Reshapes, identity converts and transposes of unit axes are views in the kernels; their sources are poisoned."""
    b = GraphBuilder()
    x = b.input("F64", (1, 6))
    y = -x
    r = y.reshape(6)
    t = b.apply(Transpose((1, 0)), y)
    c = b.apply(Convert(DType.F64), t)
    program = exec_of(r, b.apply(Reshape((2, 3)), c), b.apply(Abs(), c))
    value = np.arange(6.0).reshape(1, 6)
    r_value, c_value, _ = both(program, [value], checking=True)
    assert r_value.tolist() == [-0.0, -1, -2, -3, -4, -5]
    assert c_value.ravel("F").tolist() == r_value.tolist()
    assert value.tolist() == [[0, 1, 2, 3, 4, 5]]


def test_backend_is_told_of_each_dead_buffer_once_and_never_of_an_input():
    told = []

    class Session(NumpySession):
        def reclaim_buffer(self, array):
            told.append(array.tolist())

    class Backend(NumpyBackend):
        def with_backend_session(self):
            return Session()

        def reclaim_buffer(self, array):
            told.append(array.tolist())

    b = GraphBuilder()
    x = b.input("F64", (2,))
    y = -x
    d = b.apply(DotGeneral((0,), (0,), (), ()), y + y, y)
    program = exec_of(b.apply(Exp(), b.apply(Negate(), d)))
    for path in ("eval_exec_ir", "eval_unsegmented"):
        told.clear()
        executor = GraphExecutor(Backend())
        getattr(executor, path)(program, [np.array([1.0, 2.0])])
        assert sorted(map(str, told)) == sorted(["[-1.0, -2.0]", "[-2.0, -4.0]", "10.0", "-10.0"])
        told.clear()
        getattr(GraphExecutor(Backend(), reclaim=False), path)(program, [np.array([1.0, 2.0])])
        assert told == []


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0, 16384])
def test_the_first_error_in_program_order_is_met_on_both_paths(threshold):
    """A value-dependent fault precedes a type fault behind it, and the other way round."""

    def program(first, second):
        types = (TensorType(DType.I32, (2,)), TensorType(DType.I32, (3,)))
        ops = {"value": (Divide(), (0, 0)), "type": (Add(), (0, 1))}
        instructions = [
            Instruction(ops[first][0], ops[first][1], (2,)),
            Instruction(ops[second][0], ops[second][1], (3,)),
        ]
        graph = GraphProgram(tuple(instructions), (0, 1), types, (2, 3), 4)
        bare = tuple(
            type(chain().instructions[0])(i.op, i.input_slots, i.output_slots, (types[0],), (False, False))
            for i in instructions
        )
        return ExecProgram(bare, graph.input_slots, types, graph.output_slots, 4)

    inputs = [np.zeros(2, np.int32), np.zeros(3, np.int32)]
    raises_on_both(InvalidArgument, program("value", "type"), inputs, "zero", fusion_threshold=threshold)
    raises_on_both(ShapeMismatch, program("type", "value"), inputs, fusion_threshold=threshold)


def test_policy_reaches_the_kernels():
    b = GraphBuilder(policy=Policy(integer_faults="stablehlo"))
    x = b.input("I32", (2,))
    assert both(exec_of(b.apply(Divide(), x, x)), [np.array([0, 5], np.int32)])[0].tolist() == [-1, 1]


def test_a_value_larger_than_memory_is_a_typed_error():
    b = GraphBuilder()
    x = b.input("F64", ())
    program = exec_of(b.apply(Negate(), b.apply(BroadcastInDim((2**29, 2**29), ()), x)))
    assert raises_on_both(ResourceExhausted, program, [np.array(1.0)]).where == "BroadcastInDim"


def test_empty_tensors_with_huge_extents():
    """They take no memory, and neither may the work on them."""
    b = GraphBuilder()
    x = b.input("F32", ())
    wide = b.apply(BroadcastInDim((0, 2**40), ()), x)
    program = exec_of(b.apply(Tril(1), wide), b.apply(ReduceSum((1,)), wide), b.apply(EmbedDiag(0, 1), wide))
    assert [r.shape for r in both(program, [np.float32(1)])] == [(0, 2**40), (0,), (0, 0, 2**40)]
    b = GraphBuilder()
    program = exec_of(b.apply(BroadcastInDim((0, 2**59), ()), b.input("C64", ())))
    raises_on_both(ResourceExhausted, program, [np.complex128(1)])


def test_the_largest_rank():
    b = GraphBuilder()
    x = b.input("F64", (1,) * 62 + (2, 3))
    t = b.apply(Transpose(tuple(reversed(range(64)))), x)
    s = b.apply(ReduceSum((0,)), b.apply(Exp(), t) + t)
    dot = b.apply(DotGeneral(tuple(range(62)), tuple(range(2, 64)), (), ()), x, t)
    program = exec_of(t, s, dot, b.apply(Multiply(), x, x))
    value = np.arange(6.0).reshape(program.input_types[0].shape)
    t_value, s_value, dot_value, _ = both(program, [value], checking=True, fusion_threshold=0)
    flat = value.reshape(2, 3)
    assert np.array_equal(t_value.reshape(3, 2), flat.T)
    assert np.allclose(s_value.ravel(), (np.exp(flat) + flat).sum(1))
    assert np.array_equal(dot_value, np.multiply.outer(flat, flat.T))


def test_out_of_memory_is_a_typed_error():
    class Session(NumpySession):
        def execute_backend_op(self, op, policy, operands):
            raise MemoryError

    class Backend(NumpyBackend):
        def with_backend_session(self):
            return Session()

    error = raises_on_both(ResourceExhausted, chain(), [ONES], backend=Backend())
    assert error.where == "Negate"


def test_a_backend_that_breaks_an_ops_rule_is_caught():
    class Session(NumpySession):
        def execute_backend_op(self, op, policy, operands):
            (result,) = super().execute_backend_op(op, policy, operands)
            return (self.spoil(result),)

    for spoil in (lambda a: a.astype(np.float32), lambda a: a[:-1], lambda a: a.reshape(1, -1)):

        class Backend(NumpyBackend):
            def with_backend_session(self, spoil=spoil):
                return Session.__new__(type("S", (Session,), {"__slots__": (), "spoil": staticmethod(spoil)}))

        raises_on_both(Internal, chain(), [ONES], "its rule says", backend=Backend())


def test_numpy_warnings_stay_silent():
    b = GraphBuilder()
    x = b.input("F64", (2,))
    d = b.apply(DotGeneral((0,), (0,), (), ()), x, x)
    program = exec_of(b.apply(Exp(), x / x), d * d)
    both(program, [np.array([0.0, 1e300])])  # overflow and 0/0: the test suite turns warnings into errors


# --- fast paths -------------------------------------------------------------------------------------------------------


class Spy(NumpyBackend):
    """Counts what the sessions are asked for."""

    def __init__(self):
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
    program = exec_of(b.apply(Exp(), -x))
    for size, calls in ((16383, ["Negate", "Exp"]), (16384, ["fused"]), (50000, ["fused"])):
        assert calls_of(program, [np.linspace(-1, 1, size)]) == calls
    assert calls_of(program, [np.linspace(-1, 1, 5)], fusion_threshold=5) == ["fused"]
    assert calls_of(program, [np.zeros(0)], fusion_threshold=0) == ["fused"]


def test_the_ops_that_fuse():
    names = (
        """Add Multiply Negate Conj Divide Abs Maximum Minimum Clamp Exp Log Sin Cos Tanh Sqrt Rsqrt Pow Expm1 Log1p"""
    )
    assert {op.__name__ for op in FUSIBLE} == set(names.split())
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
    program = exec_of(b.apply(Exp(), b.apply(Add(), x, y)))  # [n] + [m] is a run-time matter
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
    "scalar inside": (True, lambda b, x, y, i, c: b.apply(Multiply(), x, -c)),
    "scalars only": (True, lambda b, x, y, i, c: -(c + c)),
    "broadcast input": (True, lambda b, x, y, i, c: -b.apply(Add(), x, spread(b, y))),
    "integers": (False, lambda b, x, y, i, c: -(i + i)),
    "compare": (False, lambda b, x, y, i, c: -x < x),
    "broadcast of an intermediate": (False, lambda b, x, y, i, c: x + spread(b, -y)),
    "broadcast of an input used elsewhere": (False, lambda b, x, y, i, c: b.apply(Add(), spread(b, y), spread(b, y))),
    "two shapes": (False, lambda b, x, y, i, c: b.apply(Add(), x, spread(b, y)) + spread(b, -y)),
}


def spread(b, value):
    return b.apply(BroadcastInDim((4,), (0,)), value)


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
    wide, other = (b.apply(BroadcastInDim((3, 2), ()), s) for s in (c, d))
    alone = b.apply(BroadcastInDim((5,), ()), e)
    program = exec_of(-x + wide, -other, alone, b.apply(Add(), wide, b.apply(Multiply(), x, other)))
    inputs = [np.arange(6.0).reshape(3, 2), np.array(0.5), np.array(np.nan), np.array(3.0)]
    assert calls_of(program, inputs, fusion_threshold=0) == ["fused"]
    results = GraphExecutor(fusion_threshold=0, checking=True).eval_exec_ir(program, inputs)
    assert [r.shape for r in results] == [(3, 2), (3, 2), (5,), (3, 2)]


def test_a_multiply_of_broadcasts_needs_no_broadcast_in_memory():
    b = GraphBuilder()
    x, y = b.input("C64", (3,)), b.input("C64", (2, 4))
    product = b.apply(
        Multiply(), b.apply(BroadcastInDim((4, 3, 2), (1,)), x), b.apply(BroadcastInDim((4, 3, 2), (2, 0)), y)
    )
    inputs = [np.arange(3) * (1 + 2j), np.arange(8).reshape(2, 4) - 3j]
    assert calls_of(exec_of(product), inputs) == ["broadcast multiply"]
    first = b.apply(BroadcastInDim((4, 3, 2), (1,)), x)
    product = b.apply(Multiply(), first, b.apply(BroadcastInDim((4, 3, 2), (2, 0)), y))
    program = exec_of(product, first)  # a second output: the fast path writes one slot only
    assert "broadcast multiply" not in calls_of(program, inputs)


def test_multiply_of_a_broadcast_by_itself_and_by_a_scalar():
    for build in (lambda b, w, s: b.apply(Multiply(), w, w), lambda b, w, s: b.apply(Multiply(), s, w)):
        b = GraphBuilder()
        y, s = b.input("F32", (3,)), b.input("F32", ())
        program = exec_of(build(b, b.apply(BroadcastInDim((3, 2), (0,)), y), s))
        inputs = [np.array([1, 2, 3], np.float32), np.array(2, np.float32)]
        assert calls_of(program, inputs) == ["broadcast multiply"]


def test_real_scalar_beside_a_complex_broadcast():
    b = GraphBuilder()
    y, s = b.input("C32", (3,)), b.input("F32", ())
    program = exec_of(b.apply(Multiply(), s, b.apply(BroadcastInDim((3, 2), (0,)), y)))
    calls_of(program, [np.array([1, 2j, 3], np.complex64), np.array(2, np.float32)])


def test_segments_are_computed_once_a_program_and_forgotten_with_it():
    program = chain()
    executor = GraphExecutor()
    executor.eval_exec_ir(program, [ONES])
    first = executor.segments(program)
    assert executor.segments(program)[0] is first[0]
    del program
    gc.collect()
    assert not executor._prepared


# --- extensions -------------------------------------------------------------------------------------------------------

FAMILY = "tests.divmod.v1"


class Family:
    def infer(self, op, inputs):
        return (inputs[0], TensorType(DType.I32, inputs[0].shape))


@dataclass
class Runtime:
    """Whole part and number of halves; misbehaves on demand."""

    fault: str = ""

    def execute(self, op, inputs):
        (x,) = inputs
        if self.fault == "raise":
            raise ValueError("did not converge")
        if self.fault == "typed":
            raise InvalidArgument(op="Extension", argument="rank", detail="no")
        if self.fault == "count":
            return [x]
        if self.fault == "dtype":
            return [np.floor(x), x]
        return [np.floor(x), np.asarray(np.floor(2 * x).astype(np.int32))]


@pytest.fixture
def program(monkeypatch):
    monkeypatch.setitem(FAMILIES, FAMILY, Family())
    return split(3)


def split(extent):
    b = GraphBuilder()
    x = b.input("F64", (extent,))
    whole, halves = b.apply_many(Extension.of(FAMILY, "Split", {}), x + 0.0)
    return exec_of(-whole, halves)


HALVES = np.array([0.5, 1.0, 2.75])


def test_extension_runs_through_its_runtime(program):
    for checking in (False, True):
        whole, halves = both(program, [HALVES], extensions={FAMILY: Runtime()}, checking=checking)
        assert whole.tolist() == [0, -1, -2]
        assert halves.tolist() == [1, 2, 5]


def test_missing_runtime_names_the_family(program):
    error = raises_on_both(UnsupportedOp, program, [HALVES], FAMILY, extensions={})
    assert error.op == "Extension"


def test_unknown_family_names_the_family(program, monkeypatch):
    fresh = split("n")
    monkeypatch.delitem(FAMILIES, FAMILY)
    raises_on_both(UnsupportedOp, fresh, [np.ones(4)], FAMILY, extensions={})


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        ("raise", Internal, r"'tests.divmod.v1' failed in Split: did not converge"),
        ("typed", InvalidArgument, "rank: no"),
        ("count", InvalidArgument, r"gave 1 results for 2"),
        ("dtype", Internal, "its rule says"),
    ],
)
def test_extension_failures_are_typed(program, fault, kind, message):
    raises_on_both(kind, program, [HALVES], message, extensions={FAMILY: Runtime(fault)})


def test_first_registration_of_a_family_stays(program, monkeypatch):
    monkeypatch.setattr(extension_module, "RUNTIMES", {})
    monkeypatch.setattr("tenferro_ref.runtime.executor.RUNTIMES", extension_module.RUNTIMES)
    register_runtime(FAMILY, Runtime())
    register_runtime(FAMILY, Runtime("raise"))
    assert both(program, [HALVES])[1].tolist() == [1, 2, 5]


def test_constants_are_uploaded_and_outputs_downloaded():
    seen = []

    class Backend(NumpyBackend):
        def upload_host_tensor(self, array):
            seen.append(("up", array.shape))
            return array

        def download_to_host(self, array):
            seen.append(("down", array.shape))
            return array

    b = GraphBuilder()
    x = b.input("F64", (2,))
    GraphExecutor(Backend()).eval_exec_ir(exec_of(b.apply(Add(), x, b.apply(Constant.of(1, DType.F64)))), [np.ones(2)])
    assert seen == [("up", ()), ("down", (2,))]


def test_a_fused_result_that_is_its_operand_outlives_it() -> None:
    """Conj of a real scalar is the scalar: it must not share the buffer that is poisoned after its last use."""
    b = GraphBuilder()
    x, zero = b.input("F64"), b.constant(-0.0, DType.F64)
    program = compile_std_to_exec(b.build(b.apply(Divide(), x, zero), b.apply(Conj(), zero), b.apply(Conj(), zero)))
    outputs = GraphExecutor(checking=True, fusion_threshold=0).eval_exec_ir(program, [np.array(0.0)])
    assert [float(o) for o in outputs[1:]] == [0.0, 0.0]
    assert all(np.signbit(o) for o in outputs[1:])
