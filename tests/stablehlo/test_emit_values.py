"""Emitted text really compiles, and computes what it should: by the plugins, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.pjrt import Client
from tenferro_ref.program import GraphBuilder
from tenferro_ref.tensor import Array, same_bits, type_of
from tests.build import dot, integers
from tests.known import known
from tests.op_examples import MOVES, PAIRS, examples
from tests.plugins import CPU_PLUGINS, on_one_build
from tests.stablehlo.conftest import RunExamples, RunXla

pytestmark = pytest.mark.once

SPECIAL: dict[DType, list[Array]] = {
    DType.F64: [
        *np.array([0.1, np.nextafter(1, 2), 5e-324, 1e-310, np.inf, -np.inf, -0.0, 0.0, 1e16, 2.0**53, -3.0, 1e300]),
        *np.array([0x7FF8000000001234, 0xFFF8000000001234, 0x7FF0000000001234], np.uint64).view(np.float64),
    ],
    DType.F32: [
        *np.array([0.1, 1.0000001, 1e-45, 1e-40, np.inf, -np.inf, -0.0, 0.0, 1e16, 2.0**24, -3.0, 1e30], np.float32),
        *np.array([0x7FC01234, 0xFFC01234, 0x7F801234], np.uint32).view(np.float32),
    ],
    DType.I32: list(np.array([-(2**31), 2**31 - 1, 0, -1], np.int32)),
    DType.I64: list(np.array([-(2**63), 2**63 - 1, 2**53 + 1], np.int64)),
    DType.Bool: list(np.array([True, False])),
    DType.C32: list(np.array([complex(0.1, -0.0), complex(-np.inf, np.nan), 1j], np.complex64)),
    DType.C64: list(np.array([complex(0.1, -0.0), complex(np.inf, 5e-324), 1j])),
}  # fmt: skip


def test_constants_come_back_bit_for_bit(run_xla: RunXla) -> None:
    b = GraphBuilder()
    values = [(dtype, np.asarray(v)) for dtype, values in SPECIAL.items() for v in values]
    outputs = [b.apply(ops.Constant(dtype, v.tobytes())) for dtype, v in values]
    for (dtype, want), got in zip(values, run_xla(b.build(*outputs), []), strict=True):
        assert same_bits(got, want), (dtype, want, got)


def factorisations(n: int) -> list[tuple[int, ...]]:
    found = {shape for rank in (1, 2, 3) for shape in product(range(1, n + 1), repeat=rank) if np.prod(shape) == n}
    return sorted(found)


@on_one_build
def test_reshape_is_column_major(run_xla: RunXla) -> None:
    b = GraphBuilder()
    cases = [(source, target) for n in (6, 8) for source in factorisations(n) for target in factorisations(n)][::3]
    cases += [
        ((), (1, 1)),
        ((1, 1), ()),
        ((2, 0, 3), (0,)),
        ((0,), (4, 0)),
        ((2, 3, 4), (4, 3, 2)),
        ((4, 6), (2, 3, 4)),
    ]
    arrays = {source: np.arange(np.prod(source), dtype=np.float64).reshape(source) for source, _ in cases}
    inputs = {source: b.input("F64", source) for source in arrays}
    outputs = [b.apply(ops.Reshape(target), inputs[source]) for source, target in cases]
    for (source, target), got in zip(cases, run_xla(b.build(*outputs), list(arrays.values()), "fast"), strict=True):
        np.testing.assert_array_equal(got, arrays[source].reshape(target, order="F"), err_msg=f"{source} -> {target}")


def products() -> Iterator[ops.DotGeneral]:
    """Dim lists for each place of a batch, a contracting and a free axis in either operand."""
    for left, right in product(permutations(range(3)), repeat=2):
        yield ops.DotGeneral((left.index(1),), (right.index(1),), (left.index(0),), (right.index(0),))


@on_one_build
def test_dot_general(run_xla: RunXla) -> None:
    cases = []
    for (batch, contracting, *free), op in product(((2, 2, 2, 2), (2, 3, 4, 5)), products()):
        shapes = [[extent] * 3 for extent in free]
        for shape, b, c in zip(
            shapes,
            (op.lhs_batch_dims, op.rhs_batch_dims),
            (op.lhs_contracting_dims, op.rhs_contracting_dims),
            strict=True,
        ):
            shape[b[0]], shape[c[0]] = batch, contracting
        cases.append((*shapes, op))
    cases += [
        ((2, 3, 4, 5), (3, 2, 6, 5), ops.DotGeneral((3,), (3,), (0, 1), (1, 0))),  # batch lists in different orders
        ((2, 3), (4,), ops.DotGeneral((), (), (), ())),  # outer product
        ((2, 3), (2, 3), ops.DotGeneral((1,), (1,), (0,), (0,))),  # batch only
        ((2, 3), (3, 2), ops.DotGeneral((0, 1), (1, 0), (), ())),  # rank 0
        ((2, 0), (0, 3), ops.DotGeneral((1,), (0,), (), ())),  # K = 0 gives zeros
        ((0, 2, 3), (0, 3, 4), ops.DotGeneral((2,), (1,), (0,), (0,))),
        ((), (), ops.DotGeneral((), (), (), ())),
    ]
    b = GraphBuilder()
    arrays = [integers(shape, i) for i, case in enumerate(cases) for shape in case[:2]]
    values = [b.input("F64", a.shape) for a in arrays]
    outputs = [b.apply(op, *values[2 * i : 2 * i + 2]) for i, (*_, op) in enumerate(cases)]
    for i, ((*_, op), got) in enumerate(zip(cases, run_xla(b.build(*outputs), arrays), strict=True)):
        np.testing.assert_array_equal(got, dot(op, *arrays[2 * i : 2 * i + 2]))


@on_one_build
def test_results_that_are_known(run_examples: RunExamples) -> None:
    """Signs of zeros are asserted where no difference is declared (SEMANTICS 7.5): of Sign."""
    asked = [e for op, dtype in PAIRS for e in known(op, dtype) if "xla" not in e.without]
    wrong = []
    for example, got in zip(asked, run_examples(asked), strict=True):
        right = np.array_equal(got, example.result, equal_nan=got.dtype.kind in "fc")
        if not right or (isinstance(example.op, ops.Sign) and np.signbit(got[example.result == 0]).any()):
            wrong.append((example.op, example.operands, got))
    assert wrong == []


@pytest.mark.parametrize("dtype", list(ENGINE_DTYPES))
def test_every_op_compiles_for_every_dtype_that_its_rule_admits(
    run_examples: RunExamples, xla_client: Client, dtype: DType
) -> None:
    """On one plugin each; moves and scatters run in test_emit_indexing."""
    asked = [
        e
        for op, d in PAIRS
        if d is dtype and op not in (*MOVES, ops.Scatter, ops.DynamicTruncate)
        for e in examples(op, d)[:7]
    ][CPU_PLUGINS.index(xla_client.plugin.ref.name) :: 3]
    for example, got in zip(asked, run_examples(asked, "fast"), strict=True):
        operands = tuple(type_of(np.asarray(a)) for a in example.operands)
        assert example.op.result_types(operands, example.policy) == (type_of(got),), example.op
