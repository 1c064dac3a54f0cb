"""The executor: results, their independence of inputs, validation, errors on both paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import (
    Internal,
    InvalidArgument,
    InvalidCompiledGraph,
    MissingValue,
    NumericalFailure,
    ResourceExhausted,
    ShapeMismatch,
    UsageError,
)
from tenferro_ref.ops import TensorType
from tenferro_ref.program import GraphBuilder, GraphProgram, Instruction, to_exec
from tenferro_ref.runtime import GraphExecutor, NumpyBackend
from tenferro_ref.runtime.backend import NumpySession
from tests.build import ONES, both, chain, change, exec_of, raises_on_both

X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], order="F")


# --- results ----------------------------------------------------------------------------------------------------------


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
    assert both(exec_of(b.apply(ops.Convert(DType.I32), x)), [given])[0].tolist() == [0, 1, 1]
    assert both(exec_of(x), [given])[0].tobytes() == b"\0\1\1"


def test_rank_zero_results_are_arrays():
    b = GraphBuilder()
    x = b.input("F64", ())
    c = b.constant(2.5)
    program = exec_of(x + c, c, -x, b.apply(ops.Exp(), x), x)
    for result in both(program, [np.array(1.0)]):
        assert type(result) is np.ndarray
        assert result.shape == ()


def test_programs_without_instructions_inputs_or_outputs():
    assert GraphExecutor().eval_exec_ir(to_exec(GraphBuilder().build()), []) == []
    b = GraphBuilder()
    assert both(exec_of(b.constant(3.0)), [])[0] == 3.0
    assert both(to_exec(b.build()), []) == []


# --- inputs and validation --------------------------------------------------------------------------------------------


def test_inputs_that_do_not_fit():
    b = GraphBuilder()
    program = exec_of(-b.input("F64", (2, 3)))
    raises_on_both(InvalidCompiledGraph, program, [X, X], "expected 1 inputs, got 2")
    raises_on_both(InvalidCompiledGraph, program, [X.astype(np.float32)], "declares F64")
    raises_on_both(ShapeMismatch, program, [X.T])
    raises_on_both(InvalidCompiledGraph, program, [X.astype(np.float16)], "F16")
    raises_on_both(InvalidArgument, program, [X.astype("longdouble")])
    for alone in (X, 3, None, "X"):
        raises_on_both(InvalidArgument, program, alone, "expected a list of arrays")


def test_what_is_no_exec_program():
    b = GraphBuilder()
    raises_on_both(InvalidCompiledGraph, b.build(-b.input("F64", (2, 3))), [X], "a graph, which is compiled before")
    raises_on_both(InvalidArgument, "graph", [X], "expected an exec program, got str")
    with pytest.raises(InvalidArgument, match="expected an exec program, got int"):
        GraphExecutor().segments(3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"backend": 5}, r"backend: 5 where a TensorBackend is needed, such as NumpyBackend\(\)"),
        ({"backend": NumpyBackend}, "where a TensorBackend is needed"),
        ({"fusion_threshold": None}, "NoneType where an integer is needed: fusion_threshold"),
        ({"fusion_threshold": 1.5}, "float where an integer"),
    ],
)
def test_settings_are_checked_before_anything_runs(settings, words):
    with pytest.raises(UsageError, match=words):
        GraphExecutor(**settings)


def test_reading_a_slot_before_it_is_written():
    program = change(chain(), 0, input_slots=(2,))
    assert raises_on_both(MissingValue, program, [ONES]).slot == 2


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0, 16384])
def test_the_first_error_in_program_order_is_met_on_both_paths(threshold):
    """A value-dependent fault precedes a type fault behind it, and the other way round."""

    def program(first, second):
        types = (TensorType(DType.I32, (2,)), TensorType(DType.I32, (3,)))
        chosen = {"value": (ops.Divide(), (0, 0)), "type": (ops.Add(), (0, 1))}
        instructions = [
            Instruction(chosen[first][0], chosen[first][1], (2,)),
            Instruction(chosen[second][0], chosen[second][1], (3,)),
        ]
        graph = GraphProgram(tuple(instructions), (0, 1), types, (2, 3), 4)
        bare = tuple(
            type(chain().instructions[0])(i.op, i.input_slots, i.output_slots, (types[0],), (False, False))
            for i in instructions
        )
        return replace(graph, instructions=bare, kind="exec")

    inputs = [np.zeros(2, np.int32), np.zeros(3, np.int32)]
    raises_on_both(NumericalFailure, program("value", "type"), inputs, "Zero", fusion_threshold=threshold)
    raises_on_both(ShapeMismatch, program("type", "value"), inputs, fusion_threshold=threshold)


def test_a_value_larger_than_memory_is_a_typed_error():
    b = GraphBuilder()
    x = b.input("F64", ())
    program = exec_of(b.apply(ops.Negate(), b.apply(ops.BroadcastInDim((2**29, 2**29), ()), x)))
    assert raises_on_both(ResourceExhausted, program, [np.array(1.0)]).where == "BroadcastInDim"


def test_empty_tensors_with_huge_extents():
    """They take no memory, and neither may the work on them."""
    b = GraphBuilder()
    x = b.input("F32", ())
    wide = b.apply(ops.BroadcastInDim((0, 2**40), ()), x)
    program = exec_of(
        b.apply(ops.Tril(1), wide), b.apply(ops.ReduceSum((1,)), wide), b.apply(ops.EmbedDiag(0, 1), wide)
    )
    assert [r.shape for r in both(program, [np.float32(1)])] == [(0, 2**40), (0,), (0, 0, 2**40)]
    b = GraphBuilder()
    program = exec_of(b.apply(ops.BroadcastInDim((0, 2**59), ()), b.input("C64", ())))
    raises_on_both(ResourceExhausted, program, [np.complex128(1)])


def test_the_largest_rank():
    b = GraphBuilder()
    x = b.input("F64", (1,) * 62 + (2, 3))
    t = b.apply(ops.Transpose(tuple(reversed(range(64)))), x)
    s = b.apply(ops.ReduceSum((0,)), b.apply(ops.Exp(), t) + t)
    dot = b.apply(ops.DotGeneral(tuple(range(62)), tuple(range(2, 64)), (), ()), x, t)
    program = exec_of(t, s, dot, b.apply(ops.Multiply(), x, x))
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
    d = b.apply(ops.DotGeneral((0,), (0,), (), ()), x, x)
    program = exec_of(b.apply(ops.Exp(), x / x), d * d)
    both(program, [np.array([0.0, 1e300])])  # overflow and 0/0: the test suite turns warnings into errors


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
    GraphExecutor(Backend()).eval_exec_ir(
        exec_of(b.apply(ops.Add(), x, b.apply(ops.Constant.of(1, DType.F64)))), [np.ones(2)]
    )
    assert seen == [("up", ()), ("down", (2,))]


def test_a_malformed_program_is_refused_before_anything_runs():
    """What is malformed is in tests/program/test_program_verify.py."""
    raises_on_both(InvalidCompiledGraph, change(chain(), 0, input_slots=(4,)), [ONES], "slot 4 out of range")
