"""Algebras and the engine that runs programs over them: laws, both paths, passes, and other people's algorithms."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fuzz.generate import Config
from fuzz.generate.strategies import graphs
from tenferro_ref import ops
from tenferro_ref.compiler import DECOMPOSED, DEFAULT_PIPELINE, compile_std_to_exec
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, Unsupported, UnsupportedOp, UsageError
from tenferro_ref.ops import OPS, Policy
from tenferro_ref.program import GraphBuilder
from tenferro_ref.runtime import ALGEBRAS, GraphExecutor, SemiringBackend
from tenferro_ref.runtime.semiring import SEMIRING, NumpyCore, NumpyFastPath
from tests.build import contents, hostile

TROPICAL = ["max-plus", "min-plus", "max-times"]
NAMES = list(ALGEBRAS)
#: Bool and integer arithmetic, and empty sums, are admitted as StableHLO admits them.
POLICY = Policy(dtypes="stablehlo", empty_reduction="identity")
#: Contractions of any dim lists among sums, products, reductions and moves.
PROGRAMS = Config(
    ops=(ops.Add, ops.Multiply, ops.ReduceSum, ops.DotGeneral, ops.Transpose, ops.Reshape, ops.Reverse, ops.Tril, ops.Triu, ops.EmbedDiag, ops.ExtractDiag, ops.Pad),
    weights=(("DotGeneral", 6.0),), max_instructions=6, max_elements=500, usual_elements=40, symbolic=0,
)  # fmt: skip


def dtypes_of(name):
    return {"boolean": [DType.Bool], "standard": [DType.I32, DType.I64]}.get(name, [DType.F32, DType.F64])


def exact(name, dtype, shape, rng):
    """Elements whose sums and products are exact, the identities among them."""
    algebra = ALGEBRAS[name]
    if name == "boolean":
        return np.asarray(rng.random(shape) < 0.5)
    values = 2.0 ** rng.integers(-3, 4, shape) if name == "max-times" else rng.integers(-4, 5, shape).astype(float)
    values = np.where(rng.random(shape) < 0.2, algebra.zero, values)
    return np.asarray(values).astype(dtype.numpy)


def elements(name, dtype, shape, rng):
    """Any elements where the order of a sum does not show in bits, else exact ones."""
    if name in TROPICAL:
        return np.asarray(hostile(dtype, int(np.prod(shape)), rng)).reshape(shape)
    return exact(name, dtype, shape, rng)


# --- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_semiring_laws(name, seed):
    algebra, rng = ALGEBRAS[name], np.random.default_rng(seed)
    plus, times = algebra.plus, algebra.times
    dtype = dtypes_of(name)[-1]
    x, y, z = (exact(name, dtype, (16,), rng) for _ in range(3))
    zero, one = np.full(16, algebra.zero, x.dtype), np.full(16, algebra.one, x.dtype)

    def equal(a, b):
        np.testing.assert_array_equal(a, b)

    equal(plus(x, y), plus(y, x))
    equal(plus(plus(x, y), z), plus(x, plus(y, z)))
    equal(times(times(x, y), z), times(x, times(y, z)))
    equal(times(x, plus(y, z)), plus(times(x, y), times(x, z)))
    equal(times(plus(x, y), z), plus(times(x, z), times(y, z)))
    equal(plus(x, zero), x)
    equal(times(x, one), x)
    equal(times(one, x), x)
    equal(times(x, zero), zero)
    equal(times(zero, x), zero)
    equal(plus.fold(np.stack([x, y, z]), (0,)), plus(plus(x, y), z))


@pytest.mark.parametrize("name", TROPICAL)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from([DType.F32, DType.F64]))
def test_tropical_sums_do_not_depend_on_order_in_bits(name, seed, dtype):
    rng, plus = np.random.default_rng(seed), ALGEBRAS[name].plus
    x, y, z = (hostile(dtype, 64, rng) for _ in range(3))
    assert contents([plus(x, y)]) == contents([plus(y, x)])
    assert contents([plus(plus(x, y), z)]) == contents([plus(x, plus(y, z))])
    assert contents([plus(x, x)]) == contents([plus.fold(x[np.newaxis], (0,))])
    total = plus.fold(np.stack([x, y, z], axis=1), (1,))
    assert contents([total]) == contents([plus(z, plus(y, x))])


def test_extrema_of_zeros_infinities_and_nans():
    inf, nan = np.inf, np.nan
    x, y = np.array([0.0, -0.0, -0.0, nan, 1, -inf, inf]), np.array([-0.0, 0.0, -0.0, 1, nan, -3, 7])
    largest, smallest = ALGEBRAS["max-plus"].plus(x, y), ALGEBRAS["min-plus"].plus(x, y)
    assert contents([largest]) == contents([np.array([0.0, 0.0, -0.0, nan, nan, -3, inf])])
    assert contents([smallest]) == contents([np.array([-0.0, -0.0, -0.0, nan, nan, -inf, 7])])
    assert ALGEBRAS["max-plus"].plus(np.array(1.0), np.array(2.0)).shape == ()


# --- programs ---------------------------------------------------------------------------------------------------------


def backends(name):
    """With the fast path, and with the required one only."""
    core = NumpyCore(ALGEBRAS[name])
    return SemiringBackend.of(name), SemiringBackend(core)


def run_all(name, graph, inputs, orders=((), DEFAULT_PIPELINE, DECOMPOSED)):
    """The results of one path, after seeing that every path, pass order and way of execution gives the same bits."""
    expected = None
    for order, backend in product(orders, backends(name)):
        program = compile_std_to_exec(graph, order, verify=True)
        for way in (
            GraphExecutor(backend).eval_exec_ir,
            GraphExecutor(backend, checking=True, fusion_threshold=0).eval_exec_ir,
            GraphExecutor(backend, checking=True, decline_reused=False).eval_exec_ir,
            GraphExecutor(backend, checking=True).eval_unsegmented,
            GraphExecutor(backend, reclaim=False).eval_unsegmented,
        ):
            results = contents(way(program, inputs))
            assert expected is None or results == expected
            expected = results
    return GraphExecutor(SemiringBackend.of(name)).eval_exec_ir(compile_std_to_exec(graph), inputs)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_all_ways_to_run_a_program_agree(name, data, seed):
    """Fast and required path, passes in any order, segmented or not: the same bits."""
    graph = data.draw(graphs(replace(PROGRAMS, dtypes=tuple(dtypes_of(name)))))
    assume(ALGEBRAS[name].dtypes >= {t.dtype for t in graph.slot_types.values()})
    graph = replace(graph, policy=POLICY)
    rng = np.random.default_rng(seed)
    inputs = [elements(name, t.dtype, t.shape, rng) for t in graph.input_types]
    order = data.draw(st.permutations(DECOMPOSED))[: data.draw(st.integers(0, 4))]
    run_all(name, graph, inputs, [(), DEFAULT_PIPELINE, DECOMPOSED, order])


# --- which path runs --------------------------------------------------------------------------------------------------


class Spy:
    """A core and a fast path that record what they are asked for; the fast path declines."""

    def __init__(self, name):
        self.algebra, self.core, self.calls = ALGEBRAS[name], NumpyCore(ALGEBRAS[name]), []

    def batched_gemm(self, lhs, rhs):
        self.calls.append(("batched_gemm", lhs.shape, rhs.shape))
        return self.core.batched_gemm(lhs, rhs)

    def reduce_sum(self, x, axes):
        self.calls.append(("reduce_sum", x.shape, axes))
        return self.core.reduce_sum(x, axes)

    def contract(self, op, lhs, rhs):
        self.calls.append("contract")

    def elementwise_mul(self, lhs, rhs):
        self.calls.append("elementwise_mul")


def some_program():
    b = GraphBuilder()
    x, y, s = b.input("F64", (2, 3, 4)), b.input("F64", (2, 4, 5)), b.input("F64", ())
    dot = b.apply(ops.DotGeneral((2,), (1,), (0,), (0,)), x, y)  # [3, 5, 2]
    return b.build(b.apply(ops.ReduceSum((2,)), b.apply(ops.Multiply(), b.apply(ops.Multiply(), dot, dot), s)))


def test_the_required_path_is_gemm_and_reduction_only():
    inputs = [np.ones((2, 3, 4)), np.ones((2, 4, 5)), np.array(2.0)]
    gemms = [
        ("batched_gemm", (3, 4, 2), (4, 5, 2)),
        ("batched_gemm", (1, 1, 30), (1, 1, 30)),
        ("batched_gemm", (1, 1, 1), (1, 30, 1)),
        ("reduce_sum", (3, 5, 2), (2,)),
    ]
    for program in (compile_std_to_exec(some_program(), order) for order in ((), DEFAULT_PIPELINE)):
        spy = Spy("max-plus")
        (result,) = GraphExecutor(SemiringBackend(spy)).eval_exec_ir(program, inputs)
        assert spy.calls == gemms
        assert result.tolist() == [[6.0] * 5] * 3  # 1 + 1, doubled, + 2
        spy.calls.clear()
        GraphExecutor(SemiringBackend(spy, spy)).eval_exec_ir(program, inputs)  # asked first, declines
        asked = ["contract", "elementwise_mul", "elementwise_mul"]
        assert spy.calls == [c for pair in zip(asked, gemms, strict=False) for c in pair] + gemms[3:]
        spy.calls.clear()
        GraphExecutor(SemiringBackend(spy, NumpyFastPath(spy.algebra))).eval_exec_ir(program, inputs)
        assert spy.calls == gemms[3:]


@dataclass(frozen=True)
class Recorded:
    """A fast path that records the contractions it is asked for."""

    name: str
    asked: list[ops.DotGeneral] = field(default_factory=list)

    def contract(self, op, lhs, rhs):
        self.asked.append(op)
        return NumpyFastPath(ALGEBRAS[self.name]).contract(op, lhs, rhs)

    def elementwise_mul(self, lhs, rhs):
        return None


CONTRACTIONS = {
    "everything": ((2, 3, 2, 5, 4), (4, 2, 2, 3, 6), ops.DotGeneral((4, 2), (0, 1), (0, 1), (2, 3))),
    "vectors": ((3, 2), (3, 2), ops.DotGeneral((0, 1), (0, 1), (), ())),
    "units": ((1, 3, 1, 2), (1, 2, 1), ops.DotGeneral((2, 3), (0, 1), (), ())),
    "batch first": ((7, 3, 4), (7, 4, 5), ops.DotGeneral((2,), (1,), (0,), (0,))),
    "outer, then a batch": ((2, 3, 4), (4, 2, 5), ops.DotGeneral((0,), (1,), (2,), (0,))),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", CONTRACTIONS)
def test_what_the_decomposer_spells_out_is_one_call_of_the_fast_path(name, case):
    """And the call is the contraction as it was written; one by one, and without a fast path, the steps run."""
    lhs, rhs, op = CONTRACTIONS[case]
    b = GraphBuilder(policy=POLICY)
    x, y = (b.input(dtypes_of(name)[-1].name, shape) for shape in (lhs, rhs))
    graph = b.build(b.apply(op, x, y))
    rng = np.random.default_rng(1)
    inputs = [exact(name, t.dtype, t.shape, rng) for t in graph.input_types]
    program = compile_std_to_exec(graph, DECOMPOSED, verify=True)
    assert len(program.instructions) > 1
    fast = Recorded(name)
    executor = GraphExecutor(SemiringBackend(NumpyCore(ALGEBRAS[name]), fast), checking=True)
    results = contents(executor.eval_exec_ir(program, inputs))
    assert fast.asked == [op]
    assert contents(executor.eval_unsegmented(program, inputs)) == results
    assert len(fast.asked) == 2
    assert fast.asked[1] != op
    assert contents(GraphExecutor(SemiringBackend(NumpyCore(ALGEBRAS[name]))).eval_exec_ir(program, inputs)) == results


def test_steps_whose_results_are_read_elsewhere_run():
    """As do those whose operand is reclaimed before the contraction; what is left is still one call."""
    b = GraphBuilder()
    x, y, z = b.input("F64", (3, 2, 4)), b.input("F64", (8, 5)), b.input("F64", (12, 2))
    turned = x.transpose(1, 0, 2)
    flat = turned.reshape(6, 4)
    between = b.apply(ops.Reverse((0,)), z.transpose(1, 0))
    cut = z.reshape(3, 4, 2)
    kept = b.apply(ops.DotGeneral((1,), (1,), (), ()), flat, cut)  # [6, 3, 2]
    later = b.apply(ops.Reverse((1,)), x)
    unpaired = later.reshape(3, 8) @ y
    step = between.transpose(1, 0)
    last = b.apply(ops.Reverse((0,)), between)
    program = compile_std_to_exec(b.build(kept.reshape(6, 6), turned, unpaired, step @ last), (), verify=True)
    shapes = [t.static_shape for t in program.input_types]
    inputs = [np.arange(np.prod(shape), dtype=np.float64).reshape(shape) for shape in shapes]
    fast = Recorded("max-plus")
    executor = GraphExecutor(SemiringBackend(NumpyCore(ALGEBRAS["max-plus"]), fast), checking=True)
    results = contents(executor.eval_exec_ir(program, inputs))
    assert [(op.lhs_contracting_dims, op.rhs_contracting_dims) for op in fast.asked] == [
        ((2,), (1,)),
        *[((1,), (0,))] * 2,
    ]
    assert contents(executor.eval_unsegmented(program, inputs)) == results


# --- fills, empty sums, refusals --------------------------------------------------------------------------------------


def empty_contraction(policy, free):
    b = GraphBuilder(policy=policy)
    x, y = b.input("F64", (free, 0)), b.input("F64", (0, 3))
    return b.build(x @ y), [np.ones((free, 0)), np.ones((0, 3))]


@pytest.mark.parametrize("name", TROPICAL)
def test_a_contraction_over_nothing(name):
    """An error where the result has elements, unless the policy gives the identity of plus (SEMANTICS 6.1)."""
    graph, inputs = empty_contraction(Policy(), 2)
    for backend in backends(name):
        for way in (GraphExecutor(backend).eval_exec_ir, GraphExecutor(backend).eval_unsegmented):
            with pytest.raises(InvalidArgument, match=f"nothing to sum over in {name}"):
                way(compile_std_to_exec(graph), inputs)
    (result,) = run_all(name, *empty_contraction(Policy(empty_reduction="identity"), 2))
    assert result.tolist() == [[ALGEBRAS[name].zero] * 3] * 2
    (result,) = run_all(name, *empty_contraction(Policy(), 0))
    assert result.shape == (0, 3)


@pytest.mark.parametrize(
    "op", [ops.Exp(), ops.ReduceProd((0,)), ops.Convert(DType.F32), ops.PadToMatch(0), ops.Scatter((), (0,), (0,), 1)]
)
def test_ops_without_a_meaning_are_refused_before_anything_runs(op):
    b = GraphBuilder()
    x = b.input("F64", (3,))
    operands = {ops.PadToMatch: (x, x), ops.Scatter: (x, b.input("I64", (1, 1)), b.input("F64", (1,)))}.get(
        type(op), (x,)
    )
    program = compile_std_to_exec(b.build(b.apply(ops.ReduceSum((0,)), x), b.apply(op, *operands)), ())
    spy = Spy("max-plus")
    for way in (GraphExecutor(SemiringBackend(spy)).eval_exec_ir, GraphExecutor(SemiringBackend(spy)).eval_unsegmented):
        with pytest.raises(UnsupportedOp, match="semiring kernels: ") as caught:
            way(program, [])  # not even the inputs are looked at
        assert caught.value.op == op.name
    assert spy.calls == []


@pytest.mark.parametrize(
    ("name", "dtype"), [("max-plus", "I32"), ("min-plus", "C64"), ("max-times", "Bool"), ("boolean", "F64")]
)
def test_dtypes_that_are_no_elements_of_the_algebra(name, dtype):
    b = GraphBuilder(policy=POLICY)
    x = b.input(dtype, (2, 2))
    chosen = {"Add": (ops.Add(), x, x), "Multiply": (ops.Multiply(), x, x), "ReduceSum": (ops.ReduceSum((0,)), x),
           "DotGeneral": (ops.DotGeneral((1,), (0,), (), ()), x, x), "Tril": (ops.Tril(0), x)}  # fmt: skip
    for op, (first, *operands) in chosen.items():
        program = compile_std_to_exec(b.build(b.apply(first, *operands)))
        for backend in backends(name):
            with pytest.raises(Unsupported, match=f"{dtype} is not an element of {name}") as caught:
                GraphExecutor(backend).eval_exec_ir(program, [np.ones((2, 2), x.dtype.numpy)])
            assert caught.value.op == op


def test_every_op_has_a_row_or_a_reason():
    assert SEMIRING.holes(OPS) == []
    assert all(len(reason) > 10 for op in OPS if (reason := SEMIRING.reason(op)) is not None)


def test_an_algebra_that_there_is_not():
    with pytest.raises(UsageError, match="no algebra 'max_plus'; did you mean 'max-plus'"):
        SemiringBackend.of("max_plus")
