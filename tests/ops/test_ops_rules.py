"""Every op's shape and dtype rule on concrete shapes (SEMANTICS 1.2, 1.3, 2); what they refuse is in test_ops_faults.py."""

from __future__ import annotations

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dims import DimOp
from tenferro_ref.dtype import ANY, COMPLEX, ENGINE_DTYPES, FLOAT, INEXACT, INT, NUMERIC, REAL, DType
from tenferro_ref.errors import (
    InvalidArgument,
    Unsupported,
)
from tenferro_ref.ops import (
    ARITHMETIC,
    BY_NAME,
    CONTRACTIONS,
    DEFAULT_POLICY,
    ELEMENTWISE,
    INDEXING,
    MAX_ELEMENTS,
    MAX_RANK,
    OPS,
    PHASE1,
    REDUCTIONS,
    STABLEHLO,
    STRUCTURAL,
    Category,
    CompareDir,
    Op,
    Policy,
    TensorType,
)
from tests.op_types import C32, C64, F32, F64, GATHER_ROWS, I32, I64, LT, MIXED, Bool, D, t, x

# --- what comes out ---------------------------------------------------------------------------------------------------

RULES: list[tuple[Op, tuple[TensorType, ...], TensorType]] = [
    # elementwise, with the scalar exceptions
    *((op(), (x(2, 0), x(2, 0)), x(2, 0)) for op in (*ARITHMETIC, ops.Maximum, ops.Minimum)),
    *((op(), (x(), x(2, 3)), x(2, 3)) for op in ARITHMETIC),
    *((op(), (x(2, 3), x()), x(2, 3)) for op in ARITHMETIC),
    *((op(), (t(F32), t(C32, 4)), t(C32, 4)) for op in MIXED),
    *((op(), (t(C64, 4), t(F64)), t(C64, 4)) for op in MIXED),
    *((op(), (t(C64), t(F64)), t(C64)) for op in MIXED),
    *((op(), (x(2, 3),), x(2, 3)) for op in ELEMENTWISE if op.arity == 1),
    (ops.Abs(), (t(C32, 2),), t(F32, 2)),
    (ops.Abs(), (t(C64, 2),), t(F64, 2)),
    (LT, (x(2), x(2)), t(Bool, 2)),
    (ops.Compare(CompareDir.Eq), (t(C64), t(C64)), t(Bool)),
    (ops.Select(), (t(Bool, 2), t(I32, 2), t(I32, 2)), t(I32, 2)),
    (ops.Clamp(), (x(2), x(2), x(2)), x(2)),
    # structural
    (ops.Transpose((2, 0, 1)), (x(2, 3, 4),), x(4, 2, 3)),
    (ops.Transpose(()), (x(),), x()),
    (ops.Reshape((3, 0)), (x(0, 5),), x(3, 0)),
    (ops.Reshape((1, 1)), (x(),), x(1, 1)),
    (ops.Reshape(()), (x(1),), x()),
    (ops.Reshape((DimOp("mul", D(0, 0), D(1, 1)),)), (x(2, 3), x(7, 3)), x(6)),
    (ops.BroadcastInDim((3, 2, 4), (1,)), (x(2),), x(3, 2, 4)),
    (ops.BroadcastInDim((3, 2), (1, 0)), (x(2, 3),), x(3, 2)),
    (ops.BroadcastInDim((5, 2), (0, 1)), (x(1, 2),), x(5, 2)),
    (ops.BroadcastInDim((0, 2), (0,)), (x(1),), x(0, 2)),
    (ops.BroadcastInDim((D(1, 0), 2), (1,)), (x(2), x(9)), x(9, 2)),
    *((ops.Convert(d), (t(I32, 2),), t(d, 2)) for d in ENGINE_DTYPES),
    (ops.ExtractDiag(0, 1), (x(3, 5),), x(3)),
    (ops.ExtractDiag(1, 0), (x(5, 3, 7),), x(3, 7)),
    (ops.ExtractDiag(2, 0), (x(5, 3, 4),), x(3, 4)),
    (ops.ExtractDiag(0, 2), (x(5, 3, 4),), x(4, 3)),
    (ops.EmbedDiag(0, 0), (x(3),), x(3, 3)),
    (ops.EmbedDiag(0, 2), (x(3, 4),), x(3, 4, 3)),
    (ops.EmbedDiag(1, 0), (x(3, 4),), x(4, 3, 4)),
    (ops.Tril(-7), (x(2, 3, 4),), x(2, 3, 4)),
    (ops.Triu(7), (x(2, 3),), x(2, 3)),
    # reductions
    *((op((2, 0)), (x(2, 3, 4),), x(3)) for op in REDUCTIONS),
    *((op((0, 1)), (x(2, 3),), x()) for op in REDUCTIONS),
    *((op(()), (t(d, 0, 3),), t(d, 0, 3)) for op in REDUCTIONS for d in ENGINE_DTYPES if op is not ops.ReduceSumSquares),
    *((op((1,)), (x(0, 3),), x(0)) for op in REDUCTIONS),
    # indexing
    (GATHER_ROWS, (x(5, 3), t(I64, 4, 1)), x(4, 3)),
    (ops.Gather((1,), (0,), (0,), 1, (1, 3)), (x(5, 3), t(F32, 4)), x(4, 3)),
    (ops.Gather((0, 2), (), (1, 0), 0, (2, 3)), (x(5, 3), t(I32, 2, 7)), x(2, 7, 3)),
    (ops.Gather((), (0, 1), (0, 1), 0, (1, 1)), (x(5, 3), t(I32, 2)), x()),
    (ops.GatherDynamicSliceSizes((1,), (0,), (0,), 1, (1, D(2, 0))), (x(5, 3), t(I64, 4, 1), x(2)), x(4, 2)),
    (ops.Scatter((1,), (0,), (0,), 1), (x(5, 3), t(I64, 4, 1), x(4, 2)), x(5, 3)),
    (ops.Scatter((0,), (), (0,), 0), (x(5), t(I64, 1), x(5)), x(5)),
    (ops.Slice((1, 0, 2), (5, 3, 2), (3, 2, 1)), (x(5, 4, 4),), x(2, 2, 0)),
    (ops.Slice((), (), ()), (x(),), x()),
    (ops.DynamicSlice((2, 0)), (x(5, 3), t(I32, 2)), x(2, 0)),
    (ops.DynamicSlice(()), (x(), t(I64, 0)), x()),
    (ops.DynamicUpdateSlice(), (x(5, 3), x(2, 3), t(F64, 2)), x(5, 3)),
    (ops.Pad((1, -1, 0), (2, 0, 0), (0, 0, 2)), (x(3, 3, 3),), x(6, 2, 7)),
    (ops.Pad((2,), (1,), (5,)), (x(0),), x(3)),
    (ops.Pad((-3,), (0,), (1,)), (x(3),), x(2)),
    (ops.Concatenate(1), (x(2, 1), x(2, 0), x(2, 4)), x(2, 5)),
    (ops.Concatenate(0), (t(Bool, 3),), t(Bool, 3)),
    (ops.Reverse((1, 0)), (x(2, 3),), x(2, 3)),
    (ops.ShapeOf(1), (t(Bool, 2, 3),), t(F64)),
    (ops.PadToMatch(0), (t(I32, 2, 3), t(C64, 5, 9)), t(I32, 5, 3)),
    (ops.PadToMatch(1), (x(2, 3), x(2, 1)), x(2, 3)),
    # contraction
    *((op((1,), (0,), (), ()), (x(2, 3), x(3, 4)), x(2, 4)) for op in CONTRACTIONS),
    (ops.DotGeneral((2,), (1,), (0,), (0,)), (x(7, 3, 4), x(7, 4, 5)), x(3, 5, 7)),
    (ops.DotGeneral((), (), (1, 0), (0, 1)), (x(2, 3), x(3, 2, 5)), x(5, 3, 2)),
    (ops.DotGeneral((), (), (), ()), (x(2), x(3)), x(2, 3)),
    (ops.DotGeneral((0,), (0,), (), ()), (x(0), x(0)), x()),
    (ops.Constant(F32, b"\0\0\x80\x3f"), (), t(F32)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "inputs", "result"), RULES, ids=lambda v: str(v) if isinstance(v, TensorType | Op) else ""
)
def test_result_type(op: Op, inputs: tuple[TensorType, ...], result: TensorType) -> None:
    assert op.result_types(inputs) == (result,)


def test_every_op_has_a_rule_here_or_in_the_symbolic_tests() -> None:
    elsewhere = {ops.DynamicTruncate, ops.Extension}  # always bounded; needs a family
    assert {type(op) for op, _, _ in RULES} | elsewhere == set(OPS)


# --- dtypes -----------------------------------------------------------------------------------------------------------

BOOL = frozenset({Bool})
#: What each op does with its data operand's dtype: admitted by the engine, admitted beyond that under StableHLO.
ADMITTED: list[tuple[Op, int, frozenset[DType], frozenset[DType]]] = [
    *((op(), 2, NUMERIC, BOOL) for op in (ops.Add, ops.Multiply)),
    *((op(), 2, NUMERIC, frozenset()) for op in (ops.Subtract, ops.Divide, ops.Pow)),
    (ops.Remainder(), 2, REAL, frozenset()),
    *((op(), 2, REAL, BOOL) for op in (ops.Maximum, ops.Minimum)),
    *((op(), 1, NUMERIC, frozenset()) for op in (ops.Negate, ops.Abs, ops.Sign)),
    *((op(), 1, INEXACT, frozenset()) for op in (ops.Conj, ops.Exp, ops.Log, ops.Sin, ops.Cos, ops.Tanh, ops.Sqrt, ops.Rsqrt, ops.Expm1, ops.Log1p)),
    *((ops.Compare(d), 2, REAL, BOOL) for d in CompareDir if d is not CompareDir.Eq),
    (ops.Compare(CompareDir.Eq), 2, ANY, frozenset()),
    (ops.Clamp(), 3, FLOAT, INT),
    *((op((0,)), 1, NUMERIC, BOOL) for op in (ops.ReduceSum, ops.ReduceProd)),
    *((op((0,)), 1, REAL, BOOL) for op in (ops.ReduceMax, ops.ReduceMin)),
    *((ops.ReduceSumSquares(axes), 1, FLOAT, frozenset()) for axes in ((0,), ())),
    *((op((0,), (0,), (), ()), 2, INEXACT, INT | BOOL) for op in CONTRACTIONS),
    *((op, 1, ANY, frozenset()) for op in (
        ops.Transpose((0,)), ops.Reshape((2,)), ops.BroadcastInDim((2,), (0,)), ops.EmbedDiag(0, 0), ops.Slice((0,), (1,), (1,)),
        ops.Pad((1,), (1,), (0,)), ops.Concatenate(0), ops.Reverse((0,)), ops.ShapeOf(0), ops.Convert(F32),
    )),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "operands", "engine", "beyond"), ADMITTED, ids=lambda v: str(v) if isinstance(v, Op) else ""
)
def test_dtype_policy(op: Op, operands: int, engine: frozenset[DType], beyond: frozenset[DType]) -> None:
    for policy, admitted in ((DEFAULT_POLICY, engine), (STABLEHLO, engine | beyond)):
        for dtype in ENGINE_DTYPES:
            inputs = (t(dtype, 2),) * operands
            if dtype in admitted:
                op.result_types(inputs, policy)
                continue
            with pytest.raises(Unsupported) as caught:
                op.result_types(inputs, policy)
            assert caught.value.op == op.name
            assert dtype.name in caught.value.detail
            remedy = 'Policy(dtypes="stablehlo") may have it'
            assert (remedy in caught.value.detail) == (policy is DEFAULT_POLICY and dtype in beyond)


def test_every_op_has_its_dtypes_here() -> None:
    """In the table, or in one of the next two tests; a Constant holds any dtype, and of an Extension its family decides."""
    indexed = {ops.Select, ops.ExtractDiag, ops.Tril, ops.Triu, ops.Gather, ops.GatherDynamicSliceSizes, ops.Scatter}
    indexed |= {ops.DynamicSlice, ops.DynamicUpdateSlice, ops.DynamicTruncate, ops.PadToMatch}
    assert {type(op) for op, *_ in ADMITTED} | indexed | {ops.Constant, ops.Extension} == set(OPS)


def test_any_dtype_passes_the_ops_with_index_operands() -> None:
    for dtype in ENGINE_DTYPES:
        assert ops.Select().result_types((t(Bool, 5), t(dtype, 5), t(dtype, 5)))[0].dtype is dtype
        for index in FLOAT | INT:
            assert GATHER_ROWS.result_types((t(dtype, 5, 3), t(index, 4, 1)))[0].dtype is dtype
            assert ops.DynamicSlice((1,)).result_types((t(dtype, 5), t(index, 1)))[0].dtype is dtype
            assert ops.DynamicUpdateSlice().result_types((t(dtype, 5), t(dtype, 1), t(index, 1)))[0].dtype is dtype
        for op in (ops.Tril(0), ops.Triu(0), ops.ExtractDiag(0, 1)):
            assert op.result_types((t(dtype, 2, 2),))[0].dtype is dtype
        for size in (F32, F64, I64):
            assert ops.DynamicTruncate(0).result_types((t(dtype, 5), t(size)))[0].dtype is dtype
        for other in ENGINE_DTYPES:  # only the reference's shape is read
            assert ops.PadToMatch(0).result_types((t(dtype, 5), t(other, 6)))[0].dtype is dtype


def test_scatter_adds_numbers_only() -> None:
    scatter = ops.Scatter((1,), (0,), (0,), 1)
    for dtype in ENGINE_DTYPES:
        inputs = (t(dtype, 5, 3), t(I64, 4, 1), t(dtype, 4, 3))
        if dtype is Bool:
            with pytest.raises(Unsupported):
                scatter.result_types(inputs)
            assert scatter.result_types(inputs, STABLEHLO) == (t(Bool, 5, 3),)
        else:
            assert scatter.result_types(inputs) == (t(dtype, 5, 3),)


@pytest.mark.parametrize("op", [LT, ops.Maximum(), ops.Minimum(), ops.Clamp(), ops.Remainder()])
@pytest.mark.parametrize("dtype", sorted(COMPLEX, key=str))
@pytest.mark.parametrize("policy", [DEFAULT_POLICY, STABLEHLO])
def test_complex_numbers_have_no_order(op: Op, dtype: DType, policy: Policy) -> None:
    with pytest.raises(Unsupported, match="no total order"):
        op.result_types((t(dtype, 2),) * op.arity, policy)


# --- policies, sizes, constants, the vocabulary -----------------------------------------------------------------------


def test_empty_reduction_is_a_policy() -> None:
    for op in REDUCTIONS:
        with pytest.raises(InvalidArgument, match='empty_reduction="identity"'):
            op((0,)).result_types((x(0, 3),))  # type: ignore[call-arg]
        assert op((0,)).result_types((x(0, 3),), Policy(empty_reduction="identity")) == (x(3),)  # type: ignore[call-arg]
        with pytest.raises(Unsupported):  # each flag on its own
            op((0,)).result_types((t(Bool, 2),), Policy(empty_reduction="identity"))  # type: ignore[call-arg]


def test_sizes_beyond_memory_and_sense_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="at most 64"):
        ops.BroadcastInDim((1,) * (MAX_RANK + 1), ()).result_types((x(),))
    ops.BroadcastInDim((1,) * MAX_RANK, ()).result_types((x(),))
    with pytest.raises(InvalidArgument, match="more elements"):
        ops.BroadcastInDim((MAX_ELEMENTS, 2), ()).result_types((x(),))
    with pytest.raises(InvalidArgument, match="more elements"):  # 0 extents do not hide the others
        ops.BroadcastInDim((0, MAX_ELEMENTS, 2), ()).result_types((x(),))
    ops.BroadcastInDim((0, MAX_ELEMENTS), ()).result_types((x(),))
    with pytest.raises(InvalidArgument):
        ops.DotGeneral((), (), (), ()).result_types((x(2**30), x(2**30)))


def test_the_same_attributes_of_another_op_are_another_op() -> None:
    assert ops.Tril(1) != ops.Triu(1)
    assert ops.ReduceSum((0,)).result_types((t(I64, 2),)) == (t(I64),)
    with pytest.raises(Unsupported):
        ops.ReduceMax((0,)).result_types((t(C64, 2),))
    assert ops.ReduceSum((0,)).result_types((t(C64, 2),)) == (t(C64),)


@pytest.mark.parametrize("dtype", list(ENGINE_DTYPES))
def test_constants_hold_little_endian_bytes(dtype: DType) -> None:
    constant = ops.Constant.of(1, dtype)
    assert len(constant.data) == dtype.itemsize
    assert constant.value == 1
    assert constant.value.dtype == dtype.numpy
    assert constant.result_types(()) == (t(dtype),)
    assert ops.Constant.of(constant.value, dtype) == constant


def test_constants_keep_every_bit() -> None:
    assert ops.Constant.of(-0.0, F64).data == bytes(7) + b"\x80"
    payload = np.array([0x7FF8000000001234], np.uint64).view(np.float64)[0]
    assert ops.Constant.of(payload, F64).data.hex() == "341200000000f87f"
    assert ops.Constant.of(1e300, F32).value == np.inf
    assert ops.Constant.of(1 + 2j, C32).data.hex() == "0000803f00000040"


def test_any_nonzero_bool_byte_is_true() -> None:
    assert [bool(ops.Constant(Bool, bytes([b])).value) for b in (0, 1, 2, 255)] == [False, True, True, True]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(2.5, I32), (float("nan"), I64), (float("inf"), I32), (2**31, I32), (-(2**63) - 1, I64), (1j, F64), (2j, I32)],
)
def test_constants_that_the_dtype_cannot_hold(value: complex, dtype: DType) -> None:
    with pytest.raises(InvalidArgument) as caught:
        ops.Constant.of(value, dtype)
    assert caught.value.argument == "value"


def test_integer_constants_reach_the_ends_of_their_range() -> None:
    assert ops.Constant.of(2**63 - 1, I64).value == 2**63 - 1
    assert ops.Constant.of(-(2**31), I32).value == -(2**31)


def test_extension_configurations_are_canonical() -> None:
    one = ops.Extension.of("f.v1", "Op", {"b": [1], "a": None})
    assert one == ops.Extension.of("f.v1", "Op", {"a": None, "b": [1]})
    assert one.config == '{"a":null,"b":[1]}'


def test_vocabulary() -> None:
    assert len(OPS) == len(set(OPS)) == len(BY_NAME)
    assert set(PHASE1) < set(OPS)
    assert all(BY_NAME[op.__name__] is op for op in OPS)
    assert {*ELEMENTWISE, *STRUCTURAL, *REDUCTIONS, *INDEXING, *CONTRACTIONS, ops.Extension, ops.Constant} == set(OPS)
    assert all(op.__doc__ for op in OPS)


def test_categories_are_those_of_segmentation() -> None:
    host = {ops.ShapeOf, ops.DynamicTruncate, ops.PadToMatch, ops.Constant}
    ffi = {*CONTRACTIONS, ops.Extension}
    for op in OPS:
        expected = Category.HOST if op in host else Category.FFI if op in ffi else Category.BACKEND
        assert op.category is expected
