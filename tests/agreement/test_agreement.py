"""Agreement: the native kernel of each op and dtype against implementations that are not ours.

JAX (calls of jax.lax, compiled by XLA:CPU) and jaxlib's StableHLO interpreter (on the emitted text) answer the same
examples. Everybody must be inside the enclosure of its arithmetic, which for integers, Bool and moved values is one value,
and must give the same kind of value as the engine; what differs is declared in `DIFFERENCES`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from oracle.case import Case
from oracle.enclosure import MODELS, enclose
from oracle.peers import Executor, NativeExecutor, Pool
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import DEFAULT_POLICY, OPS, Op, Policy
from tenferro_ref.tensor import Array, same_bits
from tests.agreement.differences import DIFFERENCES, Difference, subnormal
from tests.known import Example
from tests.libraries import executor_or_skip
from tests.op_examples import EXAMPLES, PAIRS, examples, program_of

pytestmark = pytest.mark.once

OTHERS = ("interpreter", "jax")


def case_of(examples: Sequence[Example], policy: Policy) -> Case:
    return Case.of(*program_of(examples, policy))


def kinds(x: Array) -> Array:
    """NaN, each infinity, each zero, subnormal, or none of these, for real floats; all alike for others."""
    if x.dtype.kind != "f":
        return np.zeros(x.shape, int)
    zero = np.where(np.signbit(x), 4, 5)
    special = [np.isnan(x), x == np.inf, x == -np.inf, x == 0, subnormal(x)]
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


@pytest.mark.parametrize("name", ["interpreter", pytest.param("jax", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("op", dict.fromkeys(op for op, _ in PAIRS), ids=lambda op: op.__name__)
def test_kernels_agree(pool: Pool, op: type[Op], name: str) -> None:
    """With every dtype that it admits, in as few programs as policies and executors allow."""
    asked = [example for other, dtype in PAIRS if other is op for example in examples(op, dtype)]
    if op is ops.DynamicTruncate:
        return check_truncation(asked)
    groups: dict[tuple[Policy, tuple[str, ...]], list[Example]] = {}
    for example in asked:
        groups.setdefault((example.policy, tuple(sorted(example.without))), []).append(example)
    for (policy, without), members in groups.items():
        assert not set(OTHERS) <= set(without), "nobody else's opinion"
        chosen = [NativeExecutor(), *([] if name in without else [executor_or_skip(pool, name)])]
        case = case_of(members, policy)
        assert [line for e in chosen for line in disagreements(e, case, members, DIFFERENCES)] == []
    return None


def check_truncation(examples: Sequence[Example]) -> None:
    """The extent is decided at run time, which no static shape can say: against a formula."""
    for example in examples:
        x, size = example.operands
        exact = int(size) if size.dtype.kind == "i" else math.floor(abs(float(size)) + 0.5) * (1 if size >= 0 else -1)
        (got,) = NativeExecutor().run(case_of([example], DEFAULT_POLICY)).outputs
        assert same_bits(got, x[:, : min(max(exact, 0), x.shape[1])]), float(size)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
@pytest.mark.parametrize(
    ("op", "indices"), [(ops.Gather, 1), (ops.Scatter, 1), (ops.DynamicSlice, 1), (ops.DynamicUpdateSlice, 2)]
)
def test_float_indices_are_the_integers_that_they_hold(op: type[Op], indices: int, dtype: DType) -> None:
    """That they must be exact nobody else can check, so nobody else takes them."""
    exact = [e for e in examples(op, DType.F64) if (abs(e.operands[indices].astype(float)) < 2**24).all()]
    assert len(exact) > 3
    for example in exact:
        floats = [a.astype(dtype.numpy) if i == indices else a for i, a in enumerate(example.operands)]
        (want,), (got,) = (
            NativeExecutor().run(case_of([e], example.policy)).outputs
            for e in (example, Example(example.op, tuple(floats)))
        )
        assert same_bits(want, got)


def test_every_op_is_asked_something() -> None:
    assert EXAMPLES.holes(OPS) == []
    assert {op for op, _ in PAIRS} == {op for op in OPS if op in EXAMPLES}


@pytest.mark.parametrize(
    ("name", "row"),
    [
        pytest.param(name, row, id=f"{name}-{row.reason}", marks=[pytest.mark.nightly] if name == "jax" else [])
        for row in DIFFERENCES
        for name in row.executors
    ],
)
def test_every_declared_difference_is_there(pool: Pool, name: str, row: Difference) -> None:
    op, operands = row.example
    example = Example(op, operands)
    assert any(row.concerns(op, DType.of(a), name) for a in operands)
    case, executor = case_of([example], DEFAULT_POLICY), executor_or_skip(pool, name)
    assert disagreements(executor, case, [example], ()) != [], f"{name} agrees: take it off the row"
    assert disagreements(executor, case, [example], [row]) == []
