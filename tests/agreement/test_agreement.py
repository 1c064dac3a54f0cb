"""Agreement: the native kernel of each op and dtype against implementations that are not ours.

JAX (calls of jax.lax, compiled by XLA:CPU) and jaxlib's StableHLO interpreter (on the emitted text) answer the same
examples. Everybody must be inside the enclosure of its arithmetic, which for integers, Bool and moved values is one value,
and must give the same kind of value as the engine; what differs is declared in `DIFFERENCES`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from oracle.case import Case
from oracle.enclosure import MODELS, enclose
from oracle.peers import Executor, NativeExecutor, Pool
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import ENGINE, OPS, STABLEHLO, Op, Policy
from tenferro_ref.program import GraphBuilder
from tenferro_ref.tensor import same_bits
from tests.agreement.agreement_cases import CASES, PAIRS, Array, Example
from tests.agreement.differences import DIFFERENCES, Difference, denormal
from tests.libraries import executor_or_skip

OTHERS = ("interpreter", "jax")


@pytest.fixture(scope="module")
def executors() -> Iterator[dict[str, Executor]]:
    pool = Pool()
    yield {"native": NativeExecutor(), **{name: executor_or_skip(pool, name) for name in OTHERS}}
    pool.close()


def build(examples: Sequence[Example], policy: Policy) -> Case:
    """One program with an instruction, its own inputs and an output for each example."""
    b, arrays, outputs = GraphBuilder(policy=policy), [], []
    for example in examples:
        operands = [b.input(DType.of(a), a.shape) for a in map(np.asarray, example.operands)]
        arrays += map(np.asarray, example.operands)
        outputs.append(b.apply(example.op, *operands))
    return Case.of(b.build(*outputs), arrays)


def kinds(x: Array) -> Array:
    """NaN, each infinity, each zero, denormal, or none of these, for real floats; all alike for others."""
    if x.dtype.kind != "f":
        return np.zeros(x.shape, int)
    zero = np.where(np.signbit(x), 4, 5)
    special = [np.isnan(x), x == np.inf, x == -np.inf, x == 0, denormal(x)]
    return np.select(special, [1, 2, 3, zero, 6], 0)


def disagreements(
    executor: Executor, case: Case, examples: Sequence[Example], differences: Sequence[Difference]
) -> list[str]:
    """Elements outside their enclosures or of another kind than the native ones, without a row that says why."""
    native = NativeExecutor().run(case).outputs
    others = executor.run(case).outputs
    found = []
    for example, enclosure, mine, other in zip(
        examples, enclose(case.program, case.inputs, MODELS[executor.model]), native, others, strict=True
    ):
        assert (other.dtype, other.shape) == (mine.dtype, mine.shape)
        operands = [np.asarray(a) for a in example.operands]
        odd = ~enclosure.contains(other) | (kinds(mine) != kinds(other))
        dtypes = {DType.of(a) for a in (*operands, mine)}
        for row in differences:
            if odd.any() and any(row.concerns(example.op, d, executor.name) for d in dtypes):
                odd &= ~np.asarray(row.where(operands, mine, other))
        for index in map(tuple, np.argwhere(odd)[:3]):
            at = [a[index] if a.shape == odd.shape else a for a in operands]
            found.append(f"{executor.name}: {example.op} of {at} is {mine[index]!r}, there {other[index]!r}")
    return found


@pytest.mark.parametrize(("op", "dtype"), PAIRS, ids=[f"{op.__name__}-{dtype.name}" for op, dtype in PAIRS])
def test_kernels_agree(executors: dict[str, Executor], op: type[Op], dtype: DType) -> None:
    examples = CASES[op](op, dtype)
    if op is ops.DynamicTruncate:
        return check_truncation(examples)
    groups: dict[tuple[Policy, tuple[str, ...]], list[Example]] = {}
    for example in examples:
        groups.setdefault((example.policy, tuple(sorted(example.without))), []).append(example)
    for (policy, without), members in groups.items():
        asked = [e for name, e in executors.items() if name not in without]
        assert len(asked) > 1, "nobody else's opinion"
        case = build(members, policy)
        assert [line for e in asked for line in disagreements(e, case, members, DIFFERENCES)] == []
    return None


def check_truncation(examples: Sequence[Example]) -> None:
    """The extent is decided at run time, which no static shape can say: against a formula."""
    for example in examples:
        x, size = example.operands
        exact = int(size) if size.dtype.kind == "i" else math.floor(abs(float(size)) + 0.5) * (1 if size >= 0 else -1)
        (got,) = NativeExecutor().run(build([example], ENGINE)).outputs
        assert same_bits(got, x[:, : min(max(exact, 0), x.shape[1])]), float(size)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
@pytest.mark.parametrize(
    ("op", "number", "indices"),
    [(ops.Gather, 1, 1), (ops.Scatter, 0, 1), (ops.DynamicSlice, 1, 1), (ops.DynamicUpdateSlice, 1, 2)],
)
def test_float_indices_are_the_integers_that_they_hold(op: type[Op], number: int, indices: int, dtype: DType) -> None:
    """That they must be exact nobody else can check, so nobody else takes them."""
    example = CASES[op](op, DType.F64)[number]
    floats = [a.astype(dtype.numpy) if i == indices else a for i, a in enumerate(example.operands)]
    (want,), (got,) = (
        NativeExecutor().run(build([e], ENGINE)).outputs for e in (example, Example(example.op, tuple(floats)))
    )
    assert same_bits(want, got)


def test_every_op_is_asked_something() -> None:
    assert CASES.holes(OPS) == []
    assert {op for op, _ in PAIRS} == {op for op in OPS if op in CASES}


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row.reason)
def test_every_declared_difference_is_there(executors: dict[str, Executor], row: Difference) -> None:
    op, operands = row.example
    example = Example(op, operands)
    assert any(row.concerns(op, DType.of(a), name) for a in operands for name in row.executors)
    case = build([example], ENGINE)
    for name in row.executors:
        assert disagreements(executors[name], case, [example], ()) != [], f"{name} agrees: take it off the row"
        assert disagreements(executors[name], case, [example], [row]) == []


# --- errors that are values elsewhere ---------------------------------------------------------------------------------

ZERO, LOWEST, SEVEN = (np.array([v], np.int32) for v in (0, -(2**31), 7))
NOTHING = np.zeros((2, 0))
FAULTS: list[tuple[Op, tuple[Array, ...], list[float]]] = [
    (ops.Divide(), (SEVEN, ZERO), [-1]),
    (ops.Divide(), (LOWEST, ZERO), [-1]),
    (ops.Pow(), (SEVEN, -SEVEN), [0]),
    (ops.Pow(), (ZERO - 1, -SEVEN), [-1]),
    (ops.ReduceSum((1,)), (NOTHING,), [0, 0]),
    (ops.ReduceProd((1,)), (NOTHING,), [1, 1]),
    (ops.ReduceMax((1,)), (NOTHING,), [-np.inf, -np.inf]),
    (ops.ReduceMin((1,)), (NOTHING,), [np.inf, np.inf]),
]


@pytest.mark.parametrize(("op", "operands", "value"), FAULTS, ids=lambda v: str(v) if isinstance(v, Op) else "")
def test_what_is_an_error_here_is_a_value_under_stablehlos_policy(
    executors: dict[str, Executor], op: Op, operands: tuple[Array, ...], value: list[float]
) -> None:
    example = Example(op, operands)
    with pytest.raises(TenferroError) as caught:
        executors["native"].run(build([example], ENGINE))
    assert caught.value.kind == "InvalidArgument"
    for name, executor in executors.items():
        if name == "interpreter" and isinstance(op, ops.Divide):
            continue  # its process ends at an integer division by zero
        (got,) = executor.run(build([example], STABLEHLO)).outputs
        assert got.tolist() == value, name


def test_scatter_clamps_here_and_skips_under_stablehlos_policy(executors: dict[str, Executor]) -> None:
    """The example of SEMANTICS 2.4."""
    example = Example(ops.Scatter((), (0,), (0,), 1), (np.zeros(4), np.array([-1, 2, 4]), np.array([5.0, 6.0, 7.0])))
    for policy, value in ((ENGINE, [5, 0, 6, 7]), (STABLEHLO, [0, 0, 6, 0])):
        for name, executor in executors.items():
            (got,) = executor.run(build([example], policy)).outputs
            assert got.tolist() == value, (name, policy)
