"""ConjSinking and DotConjFolding, sentence by sentence of SEMANTICS A.3 and A.4."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.compiler import DEFAULT_PIPELINE, PassResult, compile_std_to_exec, run_passes
from tenferro_ref.dtype import DType
from tenferro_ref.program import GraphBuilder, GraphProgram, Value, to_exec
from tenferro_ref.runtime import GraphExecutor

Build = Callable[[Value, Value], Value]


def conj(x: Value) -> Value:
    return x.builder.apply(ops.Conj(), x)


def matrix_product(x: Value, y: Value) -> Value:
    return x.builder.apply(ops.DotGeneral((1,), (0,), (), ()), x, y)


def program(build: Build, dtype: str = "C64") -> GraphProgram:
    b = GraphBuilder()
    return b.build(build(b.input(dtype, (3, 3)), b.input(dtype, (3, 3))))


def numbers(seed: int, dtype: DType) -> np.ndarray:
    """Gaussian integers, exact in every order."""
    rng = np.random.default_rng(seed)
    re, im = rng.integers(1, 5, (2, 3, 3))
    return (re + 1j * im if dtype.is_complex else re).astype(dtype.numpy)


def after(name: str, graph: GraphProgram) -> PassResult:
    """What a pass makes of a program, which gives the same values."""
    (result,) = run_passes(to_exec(graph), [name], verify=True)
    inputs = [numbers(i, t.dtype) for i, t in enumerate(graph.input_types)]
    executor = GraphExecutor(checking=True)
    for got, want in zip(
        executor.eval_exec_ir(result.program, inputs), executor.eval_exec_ir(to_exec(graph), inputs), strict=True
    ):
        np.testing.assert_array_equal(got, want)  # up to the sign of a zero
    return result


def live_ops(result: PassResult) -> list[str]:
    (clean,) = run_passes(result.program, ["DeadCodeElimination"])
    return [i.op.name for i in clean.program.instructions]


def test_a_double_conj_goes_for_readers_and_outputs() -> None:
    b = GraphBuilder()
    x = b.input("C64", (2,))
    twice = conj(conj(x))
    (result,) = run_passes(to_exec(b.build(twice, -twice)), ["ConjSinking"], verify=True)
    assert result.program.output_slots[0] == x.slot
    assert not result.inexact
    assert live_ops(result) == ["Negate"]


SUNK: dict[str, tuple[Build, list[str]]] = {
    "all operands": (lambda x, y: conj(x * y), ["Conj", "Conj", "Multiply"]),
    "one operand twice": (lambda x, y: conj(x + x), ["Conj", "Add"]),
    "the operand of a Conj": (lambda x, y: conj(conj(x) / y), ["Conj", "Divide"]),
    "a contraction": (lambda x, y: conj(matrix_product(x, y)), ["Conj", "Conj", "DotGeneral"]),
    "operand 0": (lambda x, y: conj(x.T), ["Conj", "Transpose"]),
    "two sweeps": (lambda x, y: conj(-(x.sum(0))), ["Conj", "ReduceSum", "Negate"]),
    "a Convert of complex numbers": (lambda x, y: conj(x.astype("C32")), ["Conj", "Convert"]),
    "not a difference": (lambda x, y: conj(x - y), ["Subtract", "Conj"]),
    "not a power": (lambda x, y: conj(x**y), ["Pow", "Conj"]),
}


@pytest.mark.parametrize("name", SUNK)
def test_conj_sinks(name: str) -> None:
    build, names = SUNK[name]
    result = after("ConjSinking", program(build))
    assert live_ops(result) == names
    assert bool(result.changes) == (not name.startswith("not "))


@pytest.mark.parametrize("dtype", ["I64", "F64"])
def test_a_convert_from_real_numbers_keeps_its_conj(dtype: str) -> None:
    result = after("ConjSinking", program(lambda x, y: conj(x.astype("C64")), dtype))
    assert result.changes == ()


FOLDED: dict[str, tuple[Build, list[str], tuple[bool, bool]]] = {
    "lhs": (lambda x, y: matrix_product(conj(x), y), ["DotGeneralWithConj"], (True, False)),
    "both": (lambda x, y: matrix_product(conj(x), conj(y)), ["DotGeneralWithConj"], (True, True)),
    "through a chain": (lambda x, y: matrix_product(x, conj(y).T), ["Transpose", "DotGeneralWithConj"], (False, True)),
    "not through a sum": (lambda x, y: matrix_product(conj(x) + x, y), ["Conj", "Add", "DotGeneral"], (False, False)),
}


@pytest.mark.parametrize("name", FOLDED)
def test_dots_take_in_a_conj(name: str) -> None:
    build, names, flags = FOLDED[name]
    result = after("DotConjFolding", program(build))
    assert live_ops(result) == names
    dot = result.program.instructions[-1].op
    assert (getattr(dot, "lhs_conj", False), getattr(dot, "rhs_conj", False)) == flags


def test_a_chain_that_is_read_twice_stops() -> None:
    b = GraphBuilder()
    turned = conj(b.input("C64", (3, 3))).T
    assert after("DotConjFolding", b.build(matrix_product(turned, turned))).changes == ()


def test_a_flag_is_toggled_back() -> None:
    def build(x: Value, y: Value) -> Value:
        return x.builder.apply(ops.DotGeneralWithConj((1,), (0,), (), (), lhs_conj=True), conj(x), y)

    result = after("DotConjFolding", program(build))
    assert type(result.program.instructions[-1].op) is ops.DotGeneral


def test_the_default_pipeline_leaves_no_conj_before_a_contraction() -> None:
    graph = program(lambda x, y: matrix_product(conj(x.T + x), conj(conj(y))))
    compiled = compile_std_to_exec(graph, DEFAULT_PIPELINE, verify=True)
    assert "Conj" not in [i.op.name for i in compiled.instructions[-1:]]
    inputs = [numbers(i, DType.C64) for i in range(2)]
    np.testing.assert_array_equal(
        GraphExecutor().eval_exec_ir(compiled, inputs)[0], (inputs[0].T + inputs[0]).conj() @ inputs[1]
    )
