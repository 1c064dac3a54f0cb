"""Promotion and numbers beside values: the table of SEMANTICS 1.1, and NumPy 2 for scalars."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.errors import (
    DTypeMismatch,
    Unsupported,
)
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import GraphBuilder, Value, to_exec
from tenferro_ref.runtime import GraphExecutor

F32, F64, I32, I64, Bool, C32, C64 = ENGINE_DTYPES

#: SEMANTICS 1.1, written out: row with column.
TABLE = """
      F32 F64 I32 I64 Bool C32 C64
F32   F32 F64 F64 F64 F32  C32 C64
F64   F64 F64 F64 F64 F64  C64 C64
I32   F64 F64 I32 I64 I32  C64 C64
I64   F64 F64 I64 I64 I64  C64 C64
Bool  F32 F64 I32 I64 Bool C32 C64
C32   C32 C64 C64 C64 C32  C32 C64
C64   C64 C64 C64 C64 C64  C64 C64
"""
PROMOTION = {
    (DType[row], column): DType[cell]
    for head, *rows in [[line.split() for line in TABLE.strip().splitlines()]]
    for row, *cells in rows
    for column, cell in zip(map(DType.__getitem__, head), cells, strict=True)
}


def promoting() -> dict[str, Callable[[Value, Value], Value]]:
    """What promotes two operands to their common dtype, which is then the result's."""
    return {
        "add": lambda x, y: x + y,
        "subtract": lambda x, y: x - y,
        "multiply": lambda x, y: x * y,
        "divide": lambda x, y: x / y,
        "pow": lambda x, y: x**y,
        "maximum": tn.maximum,
        "minimum": tn.minimum,
        "where": lambda x, y: tn.where(x.builder.input(Bool, (2,)), x, y),
        "concatenate": lambda x, y: tn.concatenate([x, y]),
        "matmul": lambda x, y: x @ y,
        "clip": lambda x, y: tn.clip(x, y, x),
        "scatter_add": lambda x, y: tn.scatter_add(x, x.builder.input(I64, (2,)), y),
        "dynamic_update_slice": lambda x, y: tn.dynamic_update_slice(x, y, [0]),
    }


@pytest.mark.parametrize("name", promoting())
@pytest.mark.parametrize(("a", "c"), list(itertools.product(ENGINE_DTYPES, ENGINE_DTYPES)), ids=str)
def test_every_pair_promotes_as_the_table_says(name: str, a: DType, c: DType) -> None:
    b = GraphBuilder(policy=STABLEHLO)
    x, y = b.input(a, (2,)), b.input(c, (2,))
    common = PROMOTION[a, c]
    try:
        z = promoting()[name](x, y)
    except Unsupported:  # the op has no meaning in the common dtype; promotion is not to blame
        assert common in (Bool, C32, C64)
        return
    assert z.dtype is common
    converts = {i.input_slots[0]: i.op.to for i in b.build(z).instructions if isinstance(i.op, ops.Convert)}
    assert converts == {v.slot: common for v in (x, y) if v.dtype is not common}


@pytest.mark.parametrize(("a", "c"), list(itertools.product(ENGINE_DTYPES, ENGINE_DTYPES)), ids=str)
def test_comparisons_promote_their_operands_and_give_bool(a: DType, c: DType) -> None:
    b = GraphBuilder()
    x, y = b.input(a, (2,)), b.input(c, (2,))
    for z in (x == y, x != y):
        assert z.dtype is Bool
    if PROMOTION[a, c] in (C32, C64, Bool):
        with pytest.raises(Unsupported):
            _ = x < y
    else:
        assert (x < y).dtype is Bool


@pytest.mark.parametrize(("a", "c"), list(itertools.product((I32, I64), (I32, I64))), ids=str)
def test_division_like_ops_keep_integers_or_give_f64_as_the_builder_says(a: DType, c: DType) -> None:
    for division, expected in (("integer", PROMOTION[a, c]), ("float", F64)):
        b = GraphBuilder(division=division)  # type: ignore[arg-type]
        x, y = b.input(a, (2,)), b.input(c, (2,))
        assert [(x / y).dtype, (x**y).dtype] == [expected] * 2
        assert [(3 / x).dtype, (x**2).dtype] == [a if division == "integer" else F64] * 2
        assert (x + y).dtype is PROMOTION[a, c]  # the others are not division-like


def test_integer_quotients_and_powers() -> None:
    x, y = np.array([7, -7, 2], np.int32), np.array([2, 2, 3], np.int32)
    for division, quotient, power in (
        ("integer", np.array([3, -3, 0], np.int32), np.array([49, 49, 8], np.int32)),
        ("float", np.array([3.5, -3.5, 2 / 3]), np.array([49.0, 49.0, 8.0])),
    ):
        b = GraphBuilder(division=division)  # type: ignore[arg-type]
        p, q = b.input(I32, (3,)), b.input(I32, (3,))
        for got, want in zip(
            GraphExecutor().eval_exec_ir(to_exec(b.build(p / q, p**q)), [x, y]), (quotient, power), strict=True
        ):
            assert got.dtype == want.dtype
            assert np.array_equal(got, want)


def test_the_raw_builder_promotes_nothing() -> None:
    b = GraphBuilder()
    for a, c in itertools.combinations(DType, 2):
        with pytest.raises((DTypeMismatch, Unsupported)):
            b.apply(ops.Maximum(), b.input(a, (2,)), b.input(c, (2,)))


# --- numbers beside values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scalar", [np.float32(1.5), np.float64(1.5), np.int32(3), np.int64(3), np.bool_(True), np.complex64(1j)]
)
@pytest.mark.parametrize("dtype", list(ENGINE_DTYPES), ids=str)
def test_numpy_scalars_keep_their_dtype_on_both_sides(scalar: np.generic, dtype: DType) -> None:
    b = GraphBuilder(policy=STABLEHLO)
    x = b.input(dtype, (2,))
    expected = PROMOTION[dtype, DType.of(np.asarray(scalar))]
    assert (x + scalar).dtype is expected
    assert (scalar + x).dtype is expected


def test_scalars_meet_values_as_numpy_2_has_it() -> None:
    """NEP 50: a Python number adapts unless that loses a fraction or a part."""
    for dtype in ENGINE_DTYPES:
        array = np.ones(2, dtype.numpy)
        b = GraphBuilder(policy=STABLEHLO)
        x = b.input(dtype, (2,))
        for number in (True, 2, 2.5, 1j):
            assert (x + number).dtype is DType.of(np.asarray(array + number)), (dtype, number)
