"""Laws of the executor on generated programs: every way to run a program gives the same bits and touches no input."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import CompareDir
from tenferro_ref.program import GraphBuilder, to_exec
from tenferro_ref.runtime import GraphExecutor, NumpyBackend
from tenferro_ref.runtime.backend import NumpySession
from tenferro_ref.runtime.fusion import evaluate_plan
from tests.build import COMPLEXES, FLOATS, hostile

UNARY = [
    ops.Negate,
    ops.Conj,
    ops.Abs,
    ops.Exp,
    ops.Log,
    ops.Sin,
    ops.Cos,
    ops.Tanh,
    ops.Sqrt,
    ops.Rsqrt,
    ops.Expm1,
    ops.Log1p,
]
BINARY = [ops.Add, ops.Multiply, ops.Divide, ops.Pow]
EXTREMA = [ops.Maximum, ops.Minimum]


class SmallBlocks(NumpyBackend):
    """Fuses in blocks of a few elements, so that small programs cross block edges."""

    def __init__(self, block):
        self.block = block

    def with_backend_session(self):
        block = self.block

        class Session(NumpySession):
            def execute_fused(self, plan, policy, type_, values):
                return evaluate_plan(plan, policy, type_, values, block)

        return Session()


def contents(arrays):
    return [(a.dtype, a.shape, a.tobytes("F")) for a in arrays]


def check(program, inputs, thresholds=(0, 16384), blocks=(1, 3)):
    program.verify()
    before = contents(inputs)
    expected = contents(GraphExecutor().eval_unsegmented(program, inputs))
    ways = [GraphExecutor(checking=True).eval_unsegmented, GraphExecutor(reclaim=False).eval_unsegmented]
    for threshold in thresholds:
        ways.append(GraphExecutor(fusion_threshold=threshold).eval_exec_ir)
        ways.append(GraphExecutor(checking=True, fusion_threshold=threshold, decline_reused=False).eval_exec_ir)
        ways.append(GraphExecutor(reclaim=False, fusion_threshold=threshold).eval_exec_ir)
    ways += [GraphExecutor(SmallBlocks(block), fusion_threshold=0).eval_exec_ir for block in blocks]
    for way in ways:
        assert contents(way(program, inputs)) == expected
        assert contents(inputs) == before


@st.composite
def elementwise_programs(draw):
    """Fusible chains over one shape, with scalars and broadcasts in between."""
    dtype = draw(st.sampled_from(FLOATS + COMPLEXES))
    shape = tuple(draw(st.lists(st.integers(0, 5), min_size=0, max_size=3)))
    b = GraphBuilder()
    values = [b.input(dtype, shape), b.input(dtype, shape), b.input(dtype, ())]
    if shape:
        values.append(b.apply(ops.BroadcastInDim(shape, (len(shape) - 1,)), b.input(dtype, shape[-1:])))
        values.append(b.apply(ops.BroadcastInDim(shape, ()), values[2]))
    for _ in range(draw(st.integers(1, 10))):
        kind = draw(st.sampled_from(["unary", "binary", "extremum"]))
        x, y = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        if kind == "unary":
            op = draw(st.sampled_from(UNARY))
            if op is not ops.Abs or dtype.is_float:
                values.append(b.apply(op(), x))
        elif kind == "binary":
            values.append(b.apply(draw(st.sampled_from(BINARY))(), x, y))
        elif dtype.is_float and x.shape == y.shape:
            values.append(b.apply(draw(st.sampled_from(EXTREMA))(), x, y))
            values.append(b.apply(ops.Clamp(), y, x, values[-1]))
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    return to_exec(b.build(values[-1], *outputs))


@st.composite
def mixed_programs(draw):
    """All kinds of segments, several dtypes and shapes."""
    dtype = draw(st.sampled_from(list(DType)))
    m, n = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    b = GraphBuilder()
    values = [b.input(dtype, (m, n)), b.input(dtype, (m, n))]
    for _ in range(draw(st.integers(1, 10))):
        x, y = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        choices = [ops.Transpose((1, 0)), ops.Reverse((0,)), ops.Pad((1, -1), (0, 1), (1, 0)), ops.Slice((0, 0), (1, 1), (1, 1)),
                   ops.Convert(draw(st.sampled_from(list(DType)))), ops.Compare(CompareDir.Eq), ops.Concatenate(0)]  # fmt: skip
        if x.dtype is not DType.Bool:
            choices += [
                ops.Negate(),
                ops.ReduceSum((1,)),
                ops.ReduceProd((0,)),
                ops.Sign(),
                ops.Add(),
                ops.Multiply(),
                ops.Abs(),
            ]
        if x.dtype.is_float or x.dtype.is_int:
            choices += [ops.ReduceMax((0,)), ops.Maximum()]
        if x.dtype in FLOATS + COMPLEXES:
            choices += [ops.DotGeneral((0,), (0,), (), ()), ops.DotGeneral((), (), (1,), (1,)), ops.Tanh()]
        op = draw(st.sampled_from(choices))
        if op.arity == 2:
            if x.type != y.type:
                continue
            result = b.apply(op, x, y)
        elif isinstance(op, ops.Concatenate):
            result = b.apply(op, x, x)
        else:
            if isinstance(op, ops.Slice) and 0 in x.shape:
                continue
            if isinstance(op, ops.ReduceProd | ops.ReduceMax | ops.ReduceSum) and 0 in x.shape:
                continue
            if isinstance(op, ops.Pad) and x.shape[1] == 0:
                continue
            result = b.apply(op, x)
        if result.dtype is DType.Bool and result.shape == x.shape:
            values.append(b.apply(ops.Select(), result, x, x))
        if result.type.rank == 1:
            wide = (*result.shape, 3)
            result = b.apply(ops.Multiply() if result.dtype is not DType.Bool else ops.Compare(CompareDir.Eq),
                             *(b.apply(ops.BroadcastInDim(wide, (0,)), result) for _ in range(2)))  # fmt: skip
        if result.type.rank == 2:
            values.append(result)
    size = b.apply(ops.ShapeOf(0), values[-1])
    shorter = b.apply(ops.DynamicTruncate(0), values[-1], b.apply(ops.Add(), size, b.constant(-1.0)))
    padded = b.apply(ops.PadToMatch(0), shorter, values[0])
    outputs = draw(st.lists(st.sampled_from(values), max_size=3))
    return to_exec(b.build(values[-1], shorter, padded, *outputs))


def inputs_of(program, seed):
    rng = np.random.default_rng(seed)
    return [hostile(t.dtype, int(np.prod(t.shape)), rng).reshape(t.shape, order="F") for t in program.input_types]


@settings(max_examples=120, deadline=None)
@given(elementwise_programs(), st.integers(0, 2**32 - 1))
def test_elementwise_programs_give_the_same_bits_in_every_way(program, seed):
    check(program, inputs_of(program, seed))


@settings(max_examples=120, deadline=None)
@given(mixed_programs(), st.integers(0, 2**32 - 1))
def test_mixed_programs_give_the_same_bits_in_every_way(program, seed):
    check(program, inputs_of(program, seed))


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


@pytest.mark.parametrize("dtype", FLOATS + COMPLEXES)
def test_intermediates_that_are_read_again_keep_their_values(dtype):
    """Fused chains share scratch memory: what is still to be read must not be written over."""
    b = GraphBuilder()
    x, y = b.input(dtype, (61,)), b.input(dtype, (61,))
    values = [x * y, x + y]
    for op, i, j in product((ops.Add(), ops.Multiply()), range(2), range(3)):
        values.append(b.apply(op, values[-1 - i], values[-1 - j]))
        values.append(b.apply(ops.Exp() if i == j else ops.Negate(), values[-2]))
    program = to_exec(b.build(b.apply(ops.Add(), values[-1], values[0]), values[5]))
    assert len(GraphExecutor().segments(program)) == 1
    check(program, inputs_of(program, 11), thresholds=(0,), blocks=(1, 7, 61))
    tame = [(np.random.default_rng(12).standard_normal(61) / 8).astype(dtype.numpy)] * 2
    check(program, tame, thresholds=(0,), blocks=(1, 7, 61))


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEXES, DType.I64])
def test_products_of_broadcasts_give_the_same_bits_without_the_broadcasts(dtype):
    b = GraphBuilder()
    x, y, z = b.input(dtype, (67,)), b.input(dtype, (31,)), b.input(dtype, (67, 31))
    bx, by = b.apply(ops.BroadcastInDim((67, 31), (0,)), x), b.apply(ops.BroadcastInDim((67, 31), (1,)), y)
    triplet = b.apply(ops.Multiply(), bx, by)
    pair = b.apply(ops.Multiply(), z, b.apply(ops.BroadcastInDim((67, 31), (1,)), y))
    program = to_exec(b.build(triplet, pair))
    assert [s.kind for s in GraphExecutor().segments(program)] == ["triplet", "pair"]
    check(program, inputs_of(program, 9))
