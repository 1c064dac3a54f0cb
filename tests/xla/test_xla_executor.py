from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.dtype import ENGINE_DTYPES
from tenferro_ref.errors import (
    InvalidArgument,
    InvalidCompiledGraph,
    InvalidProgram,
    PjrtCall,
    PlacementMismatch,
    ShapeMismatch,
    UnsupportedOp,
)
from tenferro_ref.extensions import linalg
from tenferro_ref.pjrt import Client
from tenferro_ref.placement import HOST
from tenferro_ref.program import GraphBuilder, GraphProgram, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.tensor import Tensor
from tenferro_ref.xla import XlaExecutor


@pytest.fixture
def executor(xla_client: Client) -> Iterator[XlaExecutor]:
    with XlaExecutor(xla_client, {"xla_cpu_enable_fast_min_max": False}) as executor:
        yield executor


@pytest.fixture
def untouched() -> XlaExecutor:
    """An executor whose plugin must not be called: there is none."""

    class NoClient:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"the client was asked for {name}")

    return XlaExecutor(NoClient())  # type: ignore[arg-type]


def affine() -> GraphProgram:
    b = GraphBuilder()
    x, w = b.input("F64", (2, 3)), b.input("F64", (3, 4))
    return b.build(x @ w + 1.0)


def test_run_with_inputs(executor: XlaExecutor) -> None:
    x, w = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    result = executor.run_with_inputs(affine(), [x, w])
    np.testing.assert_array_equal(result, x @ w + 1)
    assert result.flags.f_contiguous
    np.testing.assert_array_equal(executor.run_with_inputs(to_exec(affine()), [Tensor.of(x), w]), x @ w + 1)


@pytest.mark.parametrize("alone", [np.zeros((2, 3)), 3])
def test_inputs_are_a_list(untouched: XlaExecutor, alone: object) -> None:
    for takes_inputs in (untouched.run_with_inputs, untouched.execute):
        with pytest.raises(InvalidArgument, match="expected a list of arrays"):
            takes_inputs(affine(), alone)  # type: ignore[arg-type]


def test_strided_inputs_and_many_outputs(executor: XlaExecutor) -> None:
    b = GraphBuilder()
    x, y = b.input("F32", (2, 3, 4)), b.input("F32", (2, 4, 3))
    program = b.build(b.apply(ops.DotGeneral((2,), (1,), (0,), (0,)), x, y), b.apply(ops.Reshape((6, 4)), x), x)
    xs = np.arange(24, dtype=np.float32).reshape(4, 3, 2).transpose(2, 1, 0)[:, ::-1]
    ys = np.broadcast_to(np.arange(3, dtype=np.float32), (2, 4, 3))
    dot, reshaped, same = executor.run_many_with_inputs(program, [xs, ys])
    np.testing.assert_array_equal(dot, np.einsum("bij,bjk->ikb", xs, ys))
    np.testing.assert_array_equal(reshaped, xs.reshape((6, 4), order="F"))
    np.testing.assert_array_equal(same, xs)


def test_no_outputs_and_rank_0(executor: XlaExecutor) -> None:
    b = GraphBuilder()
    x = b.input("F64")
    assert executor.run_many_with_inputs(b.build(), [np.array(2.0)]) == []
    result = executor.run_with_inputs(b.build(x * x), [np.array(3.0)])
    assert (result.shape, float(result)) == ((), 9.0)


def test_one_symbolic_program_at_two_shapes_is_compiled_twice(executor: XlaExecutor) -> None:
    b = GraphBuilder()
    x = b.input("F64", ("n", 2))
    program = b.build(x.sum([0]))
    for n in (3, 5, 3):
        np.testing.assert_array_equal(executor.run_with_inputs(program, [np.ones((n, 2))]), [n, n])
    assert len(executor) == 2


def test_a_closed_client(xla_client: Client) -> None:
    client = Client(xla_client.plugin)
    executor = XlaExecutor(client)
    inputs = [np.zeros((2, 3)), np.zeros((3, 4))]
    executor.run_with_inputs(affine(), inputs)
    client.close()
    with pytest.raises(PjrtCall, match="closed"):
        executor.run_with_inputs(affine(), inputs)


def test_options_reach_the_compiler(xla_client: Client) -> None:
    b = GraphBuilder()
    program = b.build(b.apply(ops.Maximum(), b.input("F64", (2,)), b.input("F64", (2,))))
    executor = XlaExecutor(xla_client, {"xla_no_such_flag": True})
    with pytest.raises(PjrtCall, match="xla_no_such_flag"):
        executor.run_with_inputs(program, [np.zeros(2)] * 2)


def test_inputs_are_checked_first(untouched: XlaExecutor) -> None:
    b = GraphBuilder()
    program = b.build(linalg.eigvals(b.input("F64", (2, 2))))  # cannot be lowered either
    run = untouched.run_with_inputs
    with pytest.raises(InvalidCompiledGraph, match="expected 1 inputs, got 2"):
        run(program, [np.zeros((2, 2))] * 2)
    with pytest.raises(InvalidCompiledGraph, match="F32"):
        run(program, [np.zeros((2, 2), np.float32)])
    with pytest.raises(ShapeMismatch):
        run(program, [np.zeros((3, 2))])
    with pytest.raises(InvalidCompiledGraph, match="F16"):
        run(program, [np.zeros((2, 2), np.float16)])


def test_lowering_comes_before_any_call_of_the_plugin(untouched: XlaExecutor) -> None:
    b = GraphBuilder()
    x = b.input("F64", (2, 2))
    with pytest.raises(UnsupportedOp):
        untouched.run_with_inputs(b.build(linalg.eigvals(x)), [np.zeros((2, 2))])
    for outputs in ([], [x, x]):
        with pytest.raises(InvalidProgram, match=f"takes one output, this program has {len(outputs)}"):
            untouched.run_with_inputs(b.build(*outputs), [np.zeros((2, 2))])


def test_phase1_only(xla_client: Client) -> None:
    b = GraphBuilder()
    x = b.input("F64", (2,))
    with XlaExecutor(xla_client, phase1_only=True) as executor:
        np.testing.assert_array_equal(executor.run_with_inputs(b.build(x + x), [np.ones(2)]), [2, 2])
        with pytest.raises(UnsupportedOp, match="outside Phase 1"):
            executor.run_with_inputs(b.build(b.apply(ops.Maximum(), x, x)), [np.ones(2)])


def test_every_dtype_goes_in_and_out(executor: XlaExecutor) -> None:
    b = GraphBuilder()
    values = [b.input(d, (2, 3)) for d in ENGINE_DTYPES]
    arrays = [np.arange(6).reshape(2, 3).astype(d.numpy) for d in ENGINE_DTYPES]
    for got, want in zip(executor.run_many_with_inputs(b.build(*values), arrays), arrays, strict=True):
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype


def test_programs_of_one_normal_form_are_compiled_once(executor: XlaExecutor) -> None:
    """Names, slots, the order of independent instructions and dead code are no part of the key; a constant is."""
    results = []
    for swapped, dead, value in ((False, 0, 2.0), (True, 3, 2.0), (False, 0, 3.0)):
        b = GraphBuilder(name=f"{swapped}")
        x, y = b.input("F64", ("n",) if swapped else ("rows",)), b.input("F64", (3,))
        for _ in range(dead):
            _ = x * x
        if swapped:
            right, left = tn.exp(y), tn.sin(x)
        else:
            left, right = tn.sin(x), tn.exp(y)
        program = b.build(b.apply(ops.Add(), left, right) * value)
        results.append(executor.run_with_inputs(program, [np.ones(3), np.ones(3)]))
    assert executor.statistics == {"compiled": 2, "kept": 1}
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(results[2], 1.5 * results[0])


def test_tensors_are_where_they_were_put(executor: XlaExecutor, xla_client: Client) -> None:
    """On the host or on one device; executors of either take nothing of the other unless a transfer was asked for by name."""
    b = GraphBuilder()
    x = b.input("F64", (2,))
    program = b.build(x + x)
    array = np.ones(2)
    here, elsewhere = xla_client.put(array), xla_client.put(array, len(xla_client.devices) - 1)
    assert (Tensor.of(array).placement, here.placement) == (HOST, xla_client.placements[0])
    (result,) = executor.execute(program, [here])
    assert result.placement == here.placement
    np.testing.assert_array_equal(result.numpy(), [2, 2])
    np.testing.assert_array_equal(elsewhere.numpy(), array)
    wrong = [array, *([elsewhere] if elsewhere.placement != here.placement else [])]
    for given in wrong:
        with pytest.raises(PlacementMismatch, match=f"expected on {here.placement}"):
            executor.execute(program, [given])  # type: ignore[list-item]
    for on_host in (executor.run_many_with_inputs, GraphExecutor().eval_exec_ir):
        with pytest.raises(PlacementMismatch, match=rf"is on {here.placement}, expected on the host.*numpy\(\)"):
            on_host(to_exec(program), [here])  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match="devices"):
        xla_client.put(array, len(xla_client.devices))
