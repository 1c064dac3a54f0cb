"""Laws of the executor on generated programs: every way to run a program gives the same bits and touches no input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from fuzz.generate import DEFAULT
from fuzz.generate.strategies import cases
from tenferro_ref import ops
from tenferro_ref.errors import TenferroError
from tenferro_ref.program import GraphBuilder, to_exec
from tenferro_ref.runtime import GraphExecutor, NumpyBackend
from tenferro_ref.runtime.fusion import FUSIBLE
from tests.build import COMPLEXES, FLOATS, contents, hostile

UNARY = [op for op in ops.ELEMENTWISE if op.arity == 1 and op in FUSIBLE]
BINARY = [ops.Add, ops.Multiply, ops.Divide, ops.Pow]
EXTREMA = [ops.Maximum, ops.Minimum]


def outcome(way, program, inputs):
    """Contents of the results, or the kind and facts of the error."""
    try:
        return contents(way(program, inputs))
    except TenferroError as error:
        return error.kind, error.facts()


def check(program, inputs, thresholds=(0, 16384), blocks=(1, 3)):
    program.verify()
    before = contents(inputs)
    expected = outcome(GraphExecutor().eval_unsegmented, program, inputs)
    ways = [GraphExecutor(checking=True).eval_unsegmented, GraphExecutor(reclaim=False).eval_unsegmented]
    for threshold in thresholds:
        ways.append(GraphExecutor(fusion_threshold=threshold).eval_exec_ir)
        ways.append(GraphExecutor(checking=True, fusion_threshold=threshold, decline_reused=False).eval_exec_ir)
        ways.append(GraphExecutor(reclaim=False, fusion_threshold=threshold).eval_exec_ir)
    ways += [GraphExecutor(NumpyBackend(block), fusion_threshold=0).eval_exec_ir for block in blocks]
    for way in ways:
        assert outcome(way, program, inputs) == expected
        assert contents(inputs) == before


#: Chains of elementwise ops, which are fused.
CHAINS = replace(
    DEFAULT, ops=(*(op for op in DEFAULT.ops if op in FUSIBLE), ops.BroadcastInDim), dtypes=tuple(FLOATS + COMPLEXES), min_instructions=4,
    max_elements=1_000,
)  # fmt: skip
SMALL = replace(DEFAULT, max_instructions=10, max_elements=1_000)


def inputs_of(program, seed):
    rng = np.random.default_rng(seed)
    return [hostile(t.dtype, int(np.prod(t.shape)), rng).reshape(t.shape, order="F") for t in program.input_types]


@settings(max_examples=240, deadline=None)
@given(cases(CHAINS) | cases(SMALL))
def test_programs_give_the_same_bits_in_every_way(case):
    """The same error where the program raises one."""
    check(to_exec(case.program), case.inputs)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEXES)
def test_large_tensors_give_the_same_bits_fused_and_unfused(dtype):
    """Every fusible op over several blocks of hostile values, block edges not multiples of a vector."""
    shape = (131, 257)
    b = GraphBuilder()
    x, y, row, c = b.input(dtype, shape), b.input(dtype, shape), b.input(dtype, (257,)), b.input(dtype, ())
    wide = b.apply(ops.BroadcastInDim(shape, (1,)), row)
    outputs = [b.apply(op(), x) for op in UNARY if op is not ops.Abs or dtype.is_float]
    outputs += [b.apply(op(), x, y) for op in BINARY] + [b.apply(op(), x, c) for op in BINARY]
    outputs += [b.apply(ops.Multiply(), c, y), b.apply(ops.Add(), wide, outputs[0])]
    if dtype.is_float:
        outputs += [b.apply(op(), x, y) for op in EXTREMA] + [b.apply(ops.Clamp(), x, y, outputs[-1])]
    program = to_exec(b.build(*outputs))
    (segment,) = GraphExecutor().segments(program)
    assert segment.kind == "fused"
    check(program, inputs_of(program, 5), thresholds=(16384,), blocks=(8191,))
