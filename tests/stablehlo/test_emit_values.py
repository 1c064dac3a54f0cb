"""Emitted text really compiles, and computes what it should: by the plugins, against NumPy."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import STABLEHLO, TensorType
from tenferro_ref.program import GraphBuilder
from tenferro_ref.tensor import Array, same_bits
from tests.build import dot, integers
from tests.stablehlo.conftest import RunXla
from tests.stablehlo.emit_cases import ordinary, program_of

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


def test_dot_general_with_equal_and_with_unequal_extents(run_xla: RunXla) -> None:
    b = GraphBuilder()
    outputs, arrays, wanted = [], [], []
    names = {"batch": 0, "contracting": 1, "free": 2}
    for extents in ((2, 2, 2, 2), (2, 3, 4, 5)):
        for left, right in product(permutations(names.values()), repeat=2):
            lhs = [extents[a] for a in left]
            rhs = [extents[3] if a == 2 else extents[a] for a in right]
            op = ops.DotGeneral((left.index(1),), (right.index(1),), (left.index(0),), (right.index(0),))
            arrays += [integers(lhs, len(arrays)), integers(rhs, len(arrays) + 1)]
            wanted.append(dot(op, *arrays[-2:]))
            outputs.append(b.apply(op, b.input("F64", lhs), b.input("F64", rhs)))
    for got, want in zip(run_xla(b.build(*outputs), arrays), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_dot_general_corner_cases(run_xla: RunXla) -> None:
    b = GraphBuilder()
    outputs, arrays, wanted = [], [], []
    for lhs, rhs, *dims in [
        ((2, 3, 4, 5), (3, 2, 6, 5), (3,), (3,), (0, 1), (1, 0)),  # batch lists in different orders
        ((2, 3), (4,), (), (), (), ()),  # outer product
        ((2, 3), (2, 3), (1,), (1,), (0,), (0,)),  # batch only
        ((2, 3), (3, 2), (0, 1), (1, 0), (), ()),  # rank 0
        ((2, 0), (0, 3), (1,), (0,), (), ()),  # K = 0 gives zeros
        ((0, 2, 3), (0, 3, 4), (2,), (1,), (0,), (0,)),
        ((), (), (), (), (), ()),
    ]:
        op = ops.DotGeneral(*dims)
        arrays += [integers(lhs, len(arrays)), integers(rhs, len(arrays) + 1)]
        wanted.append(dot(op, *arrays[-2:]))
        outputs.append(b.apply(op, b.input("F64", lhs), b.input("F64", rhs)))
    for got, want in zip(run_xla(b.build(*outputs), arrays), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_scalar_operands(run_xla: RunXla) -> None:
    b = GraphBuilder()
    scalar, matrix = np.array(3.0), integers((2, 3))
    x, y = b.input("F64"), b.input("F64", (2, 3))
    z = b.input("C64", (2, 3))
    complexes = matrix + 1j * matrix[::-1]
    program = b.build(
        b.apply(ops.Add(), x, y), b.apply(ops.Add(), y, x), b.apply(ops.Divide(), y, x), b.apply(ops.Multiply(), x, x),
        b.apply(ops.Pow(), y, x), b.apply(ops.Multiply(), x, z), b.apply(ops.Add(), z, x),
    )  # fmt: skip
    wanted = [
        scalar + matrix, matrix + scalar, matrix / scalar, scalar * scalar, matrix**scalar, scalar * complexes,
        complexes + scalar,
    ]  # fmt: skip
    for got, want in zip(run_xla(program, [scalar, matrix, complexes]), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-15)


def test_sign_has_no_negative_zero(run_xla: RunXla) -> None:
    values = np.array([-0.0, 0.0, -2.0, 3.0, np.inf, -np.inf, np.nan])
    b = GraphBuilder()
    (got,) = run_xla(b.build(b.apply(ops.Sign(), b.input("F64", (7,)))), [values])
    np.testing.assert_array_equal(got, [0, 0, -1, 1, 1, -1, np.nan])
    assert not np.signbit(got[:2]).any()


def test_maximum_minimum_clamp_and_their_nans(run_xla: RunXla) -> None:
    b = GraphBuilder()
    x, y, z = (b.input("F64", (5,)) for _ in range(3))
    arrays = [np.array(a) for a in ([1, np.nan, 2, 9, 5.0], [2, 1, np.nan, 3, 7.0], [3, 4, 5, 7, 1.0])]
    maximum, minimum, clamp = run_xla(
        b.build(b.apply(ops.Maximum(), x, y), b.apply(ops.Minimum(), x, y), b.apply(ops.Clamp(), x, y, z)), arrays
    )
    np.testing.assert_array_equal(maximum, [2, np.nan, np.nan, 9, 7])
    np.testing.assert_array_equal(minimum, [1, np.nan, np.nan, 3, 5])
    np.testing.assert_array_equal(clamp, [2, np.nan, np.nan, 7, 1])


def test_reductions(run_xla: RunXla) -> None:
    b = GraphBuilder(policy=STABLEHLO)
    x, i, p = b.input("F64", (2, 3, 4)), b.input("I32", (2, 3)), b.input("Bool", (2, 3))
    empty = b.input("F32", (0, 2))
    arrays = [
        integers((2, 3, 4)),
        integers((2, 3)).astype(np.int32),
        integers((2, 3)) > 0,
        np.zeros((0, 2), np.float32),
    ]
    folds = {ops.ReduceSum: np.sum, ops.ReduceProd: np.prod, ops.ReduceMax: np.max, ops.ReduceMin: np.min}
    outputs = [b.apply(op(axes), x) for op in folds for axes in ((0,), (2, 0), (0, 1, 2))]
    outputs += [b.apply(op((1,)), i) for op in folds] + [b.apply(op((1,)), p) for op in folds]
    outputs += [b.apply(op((0,)), empty) for op in folds]
    wanted = [fold(arrays[0], axes) for fold in folds.values() for axes in ((0,), (2, 0), (0, 1, 2))]
    wanted += [fold(arrays[1], 1) for fold in folds.values()]
    wanted += [arrays[2].any(1), arrays[2].all(1)] * 2
    wanted += [np.full(2, v) for v in (0, 1, -np.inf, np.inf)]
    for got, want in zip(run_xla(b.build(*outputs), arrays), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_casts(run_xla: RunXla) -> None:
    """SEMANTICS 1.4, from every dtype to every dtype."""
    arrays = {
        DType.F64: np.array([1.9, -1.9, np.nan, 1e30, -1e30, 0.0, 0.3]),
        DType.I64: np.array([2**32 + 5, -1, 0]),
        DType.Bool: np.array([True, False]),
        DType.C64: np.array([1.5 - 2j, 2j, 0j, complex(np.nan, 0)]),
        DType.C32: np.array([1.5 - 2j, 2j, 0j], np.complex64),
    }
    b = GraphBuilder()
    inputs = [b.input(dtype, a.shape) for dtype, a in arrays.items()]
    outputs = [(x.dtype, to, b.apply(ops.Convert(to), x)) for x in inputs for to in DType]
    results = run_xla(b.build(*(v for _, _, v in outputs)), list(arrays.values()))
    got = {(source, to): result.tolist() for (source, to, _), result in zip(outputs, results, strict=True)}
    assert got[DType.F64, DType.I32] == [1, -1, 0, 2**31 - 1, -(2**31), 0, 0]
    assert got[DType.F64, DType.I64] == [1, -1, 0, 2**63 - 1, -(2**63), 0, 0]
    assert got[DType.F64, DType.Bool] == [True, True, True, True, True, False, True]
    assert got[DType.I64, DType.I32] == [5, -1, 0]
    assert got[DType.I64, DType.C64] == [2**32 + 5, -1, 0]
    assert got[DType.Bool, DType.C32] == [1, 0]
    assert got[DType.C64, DType.Bool] == [True, True, False, True]
    assert got[DType.C64, DType.F32][:3] == [1.5, 0, 0]
    assert got[DType.C64, DType.I64][:3] == [1, 0, 0]
    assert got[DType.C32, DType.C64] == [1.5 - 2j, 2j, 0j]


@pytest.mark.parametrize("dtype", list(DType))
def test_every_op_compiles_for_every_dtype_that_its_rule_admits(run_xla: RunXla, dtype: DType) -> None:
    cases = ordinary(dtype)
    program, arrays = program_of(cases, STABLEHLO)
    for (op, _), slot, got in zip(cases, program.output_slots, run_xla(program, arrays, "fast"), strict=True):
        assert TensorType(DType.of(got), got.shape) == program.slot_types[slot], op


def test_complex_conjugate_and_modulus(run_xla: RunXla) -> None:
    b = GraphBuilder()
    x = b.input("C32", (2,))
    values = np.array([3 - 4j, 1j], np.complex64)
    conj, modulus = run_xla(b.build(b.apply(ops.Conj(), x), b.apply(ops.Abs(), x)), [values])
    np.testing.assert_array_equal(conj, values.conj())
    np.testing.assert_array_equal(modulus, [5, 1])
