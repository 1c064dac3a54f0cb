"""Every op's shape and dtype rule, and every error it can give, on concrete shapes (SEMANTICS 1.2, 1.3, 2)."""

from __future__ import annotations

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dims import DimOp, InputDim
from tenferro_ref.dtype import ANY, COMPLEX, FLOAT, INEXACT, INT, NUMERIC, REAL, DType
from tenferro_ref.errors import (
    AxisOutOfBounds,
    AxisRoleConflict,
    DTypeMismatch,
    DuplicateAxis,
    InvalidArgument,
    InvalidCompiledGraph,
    RankMismatch,
    ShapeMismatch,
    TenferroError,
    Unsupported,
    UnsupportedOp,
    ValidationError,
)
from tenferro_ref.ops import (
    ARITHMETIC,
    BY_NAME,
    ELEMENTWISE,
    ENGINE,
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

F32, F64, I32, I64, Bool, C32, C64 = DType


def t(dtype: DType, *shape: int) -> TensorType:
    return TensorType(dtype, shape)


def x(*shape: int) -> TensorType:
    return TensorType(F64, shape)


# --- what comes out ---------------------------------------------------------------------------------------------------

LT = ops.Compare(CompareDir.Lt)
#: Those that take a real scalar beside a complex tensor.
MIXED = (ops.Add, ops.Subtract, ops.Multiply, ops.Divide)
D = InputDim
GATHER_ROWS = ops.Gather((1,), (0,), (0,), 1, (1, 3))
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
    *((ops.Convert(d), (t(I32, 2),), t(d, 2)) for d in DType),
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
    *((op(()), (t(d, 0, 3),), t(d, 0, 3)) for op in REDUCTIONS for d in DType),
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
    (ops.DotGeneral((1,), (0,), (), ()), (x(2, 3), x(3, 4)), x(2, 4)),
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


# --- what is refused: op, operands, kind, and the axis or argument that the error names -------------------------------

ROWS, UPDATES = t(I64, 4, 1), x(4, 3)
FAULTS: list[tuple[Op, tuple[TensorType, ...], type[TenferroError], object]] = [
    # operand counts
    (ops.Add(), (x(),), InvalidCompiledGraph, None),
    (ops.Negate(), (x(), x()), InvalidCompiledGraph, None),
    (ops.Select(), (t(Bool), x()), InvalidCompiledGraph, None),
    (ops.Concatenate(0), (), InvalidCompiledGraph, None),
    (ops.Reshape(()), (), InvalidCompiledGraph, None),
    (ops.BroadcastInDim((), ()), (), InvalidCompiledGraph, None),
    (ops.GatherDynamicSliceSizes((), (), (), 0, ()), (x(),), InvalidCompiledGraph, None),
    (ops.Constant(F64, bytes(8)), (x(),), InvalidCompiledGraph, None),
    # shapes of elementwise ops
    *((op(), (x(2), x(3)), ShapeMismatch, None) for op in (*ARITHMETIC, ops.Maximum, ops.Minimum)),
    *((op(), (x(2), x(1, 2)), ShapeMismatch, None) for op in (*ARITHMETIC, ops.Maximum, ops.Minimum)),
    *((op(), (x(1), x(3)), ShapeMismatch, None) for op in ARITHMETIC),
    *((op(), (x(), x(3)), ShapeMismatch, None) for op in (ops.Maximum, ops.Minimum)),
    (LT, (x(), x(3)), ShapeMismatch, None),
    (ops.Select(), (t(Bool), x(3), x(3)), ShapeMismatch, None),
    (ops.Select(), (t(Bool, 3), x(3), x(2)), ShapeMismatch, None),
    (ops.Clamp(), (x(3), x(), x()), ShapeMismatch, None),
    # dtypes of operands among each other
    *((op(), (t(F32), t(F64)), DTypeMismatch, None) for op in (*ARITHMETIC, ops.Maximum, ops.Minimum)),
    *((op(), (t(I32, 2), t(F64, 2)), DTypeMismatch, None) for op in ARITHMETIC),
    *((op(), (t(F32), t(C64, 2)), DTypeMismatch, None) for op in MIXED),
    *((op(), (t(F64, 2), t(C64, 2)), DTypeMismatch, None) for op in MIXED),
    *((op(), (t(F64, 2), t(C64)), DTypeMismatch, None) for op in MIXED),
    *((op(), (t(I64), t(C64, 2)), DTypeMismatch, None) for op in MIXED),
    (ops.Pow(), (t(F64), t(C64, 2)), DTypeMismatch, None),
    (LT, (t(I32), t(I64)), DTypeMismatch, None),
    (ops.Select(), (t(F64), x(), x()), DTypeMismatch, None),
    (ops.Select(), (t(Bool), t(F32), x()), DTypeMismatch, None),
    (ops.Clamp(), (x(), x(), t(F32)), DTypeMismatch, None),
    (ops.Concatenate(0), (x(1), t(F32, 1)), DTypeMismatch, None),
    (ops.DotGeneral((), (), (), ()), (x(), t(F32)), DTypeMismatch, None),
    (ops.DynamicUpdateSlice(), (x(1), t(F32, 1), t(I64, 1)), DTypeMismatch, None),
    (ops.Scatter((1,), (0,), (0,), 1), (x(5, 3), ROWS, t(F32, 4, 3)), DTypeMismatch, None),
    # structural
    (ops.Transpose((0,)), (x(2, 3),), RankMismatch, None),
    (ops.Transpose((0, 2)), (x(2, 3),), AxisOutOfBounds, 2),
    (ops.Transpose((-1, 0)), (x(2, 3),), AxisOutOfBounds, -1),
    (ops.Transpose((1, 1)), (x(2, 3),), DuplicateAxis, (1, "perm")),
    (ops.Reshape((5,)), (x(2, 3),), ShapeMismatch, None),
    (ops.Reshape((0,)), (x(),), ShapeMismatch, None),
    (ops.Reshape((-1,)), (x(2, 3),), InvalidArgument, "shape"),
    (ops.Reshape((D(1, 0),)), (x(2),), InvalidArgument, "InputOutOfBounds"),
    (ops.Reshape((D(0, 1),)), (x(2),), InvalidArgument, "AxisOutOfBounds"),
    (ops.Reshape((DimOp("sub", 1, D(0, 0)),)), (x(2),), InvalidArgument, "SubUnderflow"),
    (ops.Reshape((2**40, 2**40)), (x(2),), InvalidArgument, "MulOverflow"),
    (ops.BroadcastInDim((2, 3), (0,)), (x(2, 3),), RankMismatch, None),
    (ops.BroadcastInDim((2, 3), (2,)), (x(2),), AxisOutOfBounds, 2),
    (ops.BroadcastInDim((2, 3), (1, 1)), (x(1, 3),), DuplicateAxis, (1, "dims")),
    (ops.BroadcastInDim((2, 3), (0,)), (x(3),), ShapeMismatch, None),
    (ops.BroadcastInDim((2, 0), (1,)), (x(2),), ShapeMismatch, None),
    (ops.BroadcastInDim((-2,), ()), (x(),), InvalidArgument, "shape"),
    (ops.ExtractDiag(0, 0), (x(2, 2),), DuplicateAxis, (0, "axis_b")),
    (ops.ExtractDiag(2, 0), (x(2, 2),), AxisOutOfBounds, 2),
    (ops.ExtractDiag(0, 2), (x(2, 2),), AxisOutOfBounds, 2),
    (ops.EmbedDiag(1, 0), (x(2),), AxisOutOfBounds, 1),
    (ops.EmbedDiag(0, 2), (x(2),), AxisOutOfBounds, 2),
    (ops.EmbedDiag(0, -1), (x(2),), AxisOutOfBounds, -1),
    *((op(0), (x(3),), RankMismatch, None) for op in (ops.Tril, ops.Triu)),
    # reductions
    *((op((2,)), (x(2, 3),), AxisOutOfBounds, 2) for op in REDUCTIONS),
    *((op((1, 1)), (x(2, 3),), DuplicateAxis, (1, "axes")) for op in REDUCTIONS),
    *((op((0,)), (x(0, 3),), InvalidArgument, "axes") for op in REDUCTIONS),
    *((op((5,)), (x(0, 3),), AxisOutOfBounds, 5) for op in REDUCTIONS),
    # gather
    (ops.Gather((1,), (0,), (0,), 1, (1,)), (x(5, 3), ROWS), RankMismatch, None),
    (ops.Gather((1,), (2,), (0,), 1, (1, 3)), (x(5, 3), ROWS), AxisOutOfBounds, 2),
    (ops.Gather((1,), (0, 0), (0,), 1, (1, 3)), (x(5, 3), ROWS), DuplicateAxis, (0, "collapsed_slice_dims")),
    (ops.Gather((1,), (0,), (2,), 1, (1, 3)), (x(5, 3), ROWS), AxisOutOfBounds, 2),
    (ops.Gather((1,), (0,), (1, 1), 1, (1, 3)), (x(5, 3), t(I64, 4, 2)), DuplicateAxis, (1, "start_index_map")),
    (ops.Gather((1, 0), (), (0,), 1, (1, 3)), (x(5, 3), ROWS), InvalidArgument, "offset_dims"),
    (ops.Gather((), (1, 0), (0,), 1, (1, 1)), (x(5, 3), ROWS), InvalidArgument, "collapsed_slice_dims"),
    (ops.Gather((1,), (0,), (0,), 3, (1, 3)), (x(5, 3), ROWS), AxisOutOfBounds, 3),
    (ops.Gather((1,), (0,), (0,), -1, (1, 3)), (x(5, 3), ROWS), AxisOutOfBounds, -1),
    (ops.Gather((1,), (0,), (0, 1), 1, (1, 3)), (x(5, 3), ROWS), InvalidArgument, "start_index_map"),
    (ops.Gather((1,), (0,), (0,), 1, (1, 4)), (x(5, 3), ROWS), InvalidArgument, "slice_sizes"),
    (ops.Gather((1,), (0,), (0,), 1, (1, -1)), (x(5, 3), ROWS), InvalidArgument, "slice_sizes"),
    (ops.Gather((1,), (0,), (0,), 1, (2, 3)), (x(5, 3), ROWS), InvalidArgument, "slice_sizes"),
    (ops.Gather((0, 1), (0,), (0,), 1, (1, 3)), (x(5, 3), ROWS), RankMismatch, None),
    (ops.Gather((2,), (0,), (0,), 1, (1, 3)), (x(5, 3), ROWS), AxisOutOfBounds, 2),
    (ops.Gather((1, 1), (), (0,), 1, (1, 3)), (x(5, 3), ROWS), DuplicateAxis, (1, "offset_dims")),
    (GATHER_ROWS, (x(5, 3), t(Bool, 4, 1)), InvalidArgument, "dtype"),
    (GATHER_ROWS, (x(5, 3), t(C64, 4, 1)), InvalidArgument, "dtype"),
    (ops.GatherDynamicSliceSizes((1,), (0,), (0,), 1, (1, D(2, 0))), (x(5, 3), ROWS), InvalidArgument, "InputOutOfBounds"),
    # scatter
    (ops.Scatter((2,), (0,), (0,), 1), (x(5, 3), ROWS, UPDATES), AxisOutOfBounds, 2),
    (ops.Scatter((1,), (2,), (0,), 1), (x(5, 3), ROWS, UPDATES), AxisOutOfBounds, 2),
    (ops.Scatter((1,), (0,), (7,), 1), (x(5, 3), ROWS, UPDATES), AxisOutOfBounds, 7),
    (ops.Scatter((1, 1), (0,), (0,), 1), (x(5, 3), ROWS, UPDATES), DuplicateAxis, (1, "update_window_dims")),
    (ops.Scatter((1, 0), (), (0,), 1), (x(5, 3), ROWS, UPDATES), InvalidArgument, "update_window_dims"),
    (ops.Scatter((1,), (0,), (0,), 5), (x(5, 3), ROWS, UPDATES), AxisOutOfBounds, 5),
    (ops.Scatter((1,), (0,), (0, 1), 1), (x(5, 3), ROWS, UPDATES), InvalidArgument, "start_index_map"),
    (ops.Scatter((1,), (), (0,), 1), (x(5, 3), ROWS, UPDATES), RankMismatch, None),
    (ops.Scatter((0,), (0,), (0,), 1), (x(5, 3), ROWS, x(3)), RankMismatch, None),
    (ops.Scatter((1,), (0,), (0,), 1), (x(5, 3), ROWS, x(2, 3)), ShapeMismatch, None),
    (ops.Scatter((1,), (0,), (0,), 1), (x(5, 3), ROWS, x(4, 9)), InvalidArgument, "updates"),
    (ops.Scatter((1,), (0,), (0,), 1), (x(5, 3), t(Bool, 4, 1), UPDATES), InvalidArgument, "dtype"),
    # slices
    (ops.Slice((0,), (1, 1), (1, 1)), (x(2, 3),), RankMismatch, None),
    (ops.Slice((0, 0), (1,), (1, 1)), (x(2, 3),), RankMismatch, None),
    (ops.Slice((0, 0), (1, 1), (1,)), (x(2, 3),), RankMismatch, None),
    (ops.Slice((0, 0), (2, 4), (1, 1)), (x(2, 3),), AxisOutOfBounds, 1),
    (ops.Slice((0, 2), (2, 1), (1, 1)), (x(2, 3),), InvalidArgument, "starts"),
    (ops.Slice((0, -1), (2, 1), (1, 1)), (x(2, 3),), InvalidArgument, "starts"),
    (ops.Slice((0, 0), (2, -1), (1, 1)), (x(2, 3),), InvalidArgument, "starts"),
    (ops.Slice((0, 0), (2, 3), (1, 0)), (x(2, 3),), InvalidArgument, "strides"),
    (ops.Slice((0, 0), (2, 3), (-1, 1)), (x(2, 3),), InvalidArgument, "strides"),
    (ops.DynamicSlice((1,)), (x(2, 3), t(I64, 2)), RankMismatch, None),
    (ops.DynamicSlice((1, 4)), (x(2, 3), t(I64, 2)), InvalidArgument, "slice_sizes"),
    (ops.DynamicSlice((1, -1)), (x(2, 3), t(I64, 2)), InvalidArgument, "slice_sizes"),
    (ops.DynamicSlice((1, 1)), (x(2, 3), t(I64, 3)), ShapeMismatch, None),
    (ops.DynamicSlice((1, 1)), (x(2, 3), t(I64)), RankMismatch, None),
    (ops.DynamicSlice((1, 1)), (x(2, 3), t(Bool, 2)), InvalidArgument, "dtype"),
    (ops.DynamicUpdateSlice(), (x(2, 3), x(2), t(I64, 2)), RankMismatch, None),
    (ops.DynamicUpdateSlice(), (x(2, 3), x(3, 3), t(I64, 2)), InvalidArgument, "update"),
    (ops.DynamicUpdateSlice(), (x(2, 3), x(1, 1), t(I64, 1)), ShapeMismatch, None),
    (ops.DynamicUpdateSlice(), (x(2, 3), x(1, 1), t(C32, 2)), InvalidArgument, "dtype"),
    (ops.Pad((0,), (0, 0), (0, 0)), (x(2, 3),), RankMismatch, None),
    (ops.Pad((0, 0), (0,), (0, 0)), (x(2, 3),), RankMismatch, None),
    (ops.Pad((0, 0), (0, 0), (0,)), (x(2, 3),), RankMismatch, None),
    (ops.Pad((0,), (0,), (-1,)), (x(3),), InvalidArgument, "interior_padding"),
    (ops.Pad((-2,), (-2,), (0,)), (x(3),), InvalidArgument, "edge_padding"),
    (ops.Pad((-1,), (0,), (5,)), (x(0),), InvalidArgument, "edge_padding"),
    (ops.Pad((2**62,), (0,), (0,)), (x(3),), InvalidArgument, "shape"),
    (ops.Concatenate(2), (x(2, 3),), AxisOutOfBounds, 2),
    (ops.Concatenate(0), (x(),), AxisOutOfBounds, 0),
    (ops.Concatenate(0), (x(2, 3), x(2)), RankMismatch, None),
    (ops.Concatenate(0), (x(2, 3), x(2, 4)), ShapeMismatch, None),
    (ops.Reverse((2,)), (x(2, 3),), AxisOutOfBounds, 2),
    (ops.Reverse((0, 0)), (x(2, 3),), DuplicateAxis, (0, "axes")),
    (ops.ShapeOf(0), (x(),), AxisOutOfBounds, 0),
    (ops.DynamicTruncate(1), (x(2), t(I64)), AxisOutOfBounds, 1),
    *((ops.DynamicTruncate(0), (x(2), t(d)), Unsupported, None) for d in (I32, Bool, C32, C64)),
    (ops.DynamicTruncate(0), (x(2), t(I64, 1)), RankMismatch, None),
    (ops.PadToMatch(1), (x(2), x(2)), AxisOutOfBounds, 1),
    (ops.PadToMatch(0), (x(2), x(2, 3)), RankMismatch, None),
    # contraction, in the order of SEMANTICS 2.5
    (ops.DotGeneral((2,), (0,), (), ()), (x(2, 3), x(3, 4)), AxisOutOfBounds, 2),
    (ops.DotGeneral((1,), (-1,), (), ()), (x(2, 3), x(3, 4)), AxisOutOfBounds, -1),
    (ops.DotGeneral((1,), (0,), (0,), (2,)), (x(2, 3), x(3, 4)), AxisOutOfBounds, 2),
    (ops.DotGeneral((1, 1), (0, 1), (), ()), (x(2, 3), x(3, 3)), DuplicateAxis, (1, "lhs_contracting_dims")),
    (ops.DotGeneral((0, 1), (0, 0), (), ()), (x(2, 3), x(3, 3)), DuplicateAxis, (0, "rhs_contracting_dims")),
    (ops.DotGeneral((), (), (0, 0), (0, 1)), (x(2, 3), x(2, 2)), DuplicateAxis, (0, "lhs_batch_dims")),
    (ops.DotGeneral((), (), (0, 1), (1, 1)), (x(2, 3), x(2, 2)), DuplicateAxis, (1, "rhs_batch_dims")),
    (ops.DotGeneral((0,), (0,), (0,), (1,)), (x(2, 3), x(2, 2)), AxisRoleConflict, 0),
    (ops.DotGeneral((0,), (1,), (1,), (1,)), (x(2, 3), x(2, 2)), AxisRoleConflict, 1),
    (ops.DotGeneral((1,), (), (), ()), (x(2, 3), x(3, 4)), InvalidArgument, "contracting_dims"),
    (ops.DotGeneral((), (), (0,), ()), (x(2, 3), x(3, 4)), InvalidArgument, "batch_dims"),
    (ops.DotGeneral((0,), (0,), (), ()), (x(2, 3), x(3, 4)), ShapeMismatch, None),
    (ops.DotGeneral((), (), (0,), (0,)), (x(2, 3), x(3, 4)), ShapeMismatch, None),
    # constants and extensions
    (ops.Constant(F64, bytes(4)), (), InvalidArgument, "data"),
    (ops.Constant(Bool, b""), (), InvalidArgument, "data"),
    (ops.Extension("no.such.family.v1", "Op"), (x(),), UnsupportedOp, None),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "kind", "named"), FAULTS)
def test_fault(op: Op, inputs: tuple[TensorType, ...], kind: type[TenferroError], named: object) -> None:
    with pytest.raises(TenferroError) as caught:
        op.result_types(inputs)
    error = caught.value
    assert type(error) is kind
    assert len(str(error).splitlines()) == 1
    assert isinstance(error, ValidationError | InvalidCompiledGraph | UnsupportedOp)
    if isinstance(error, DuplicateAxis):
        assert (error.axis, error.role) == named
    elif isinstance(error, AxisOutOfBounds | AxisRoleConflict):
        assert error.axis == named
    elif isinstance(error, InvalidArgument):
        assert error.argument == named
    if isinstance(error, ValidationError):
        expected = {"dtype": "index_tensor"}.get(str(named), op.name)
        assert error.op == ("DimExpr" if str(named)[0].isupper() and named is not None else expected)


def test_range_is_checked_before_repeats_and_overlap() -> None:
    with pytest.raises(AxisOutOfBounds):
        ops.DotGeneral((1, 1), (0, 9), (1,), ()).result_types((x(2, 3), x(3, 4)))
    with pytest.raises(DuplicateAxis):
        ops.DotGeneral((1, 1), (0,), (1,), ()).result_types((x(2, 3), x(3, 4)))
    with pytest.raises(AxisOutOfBounds):
        ops.Transpose((5, 5)).result_types((x(2, 3),))


# --- dtypes -----------------------------------------------------------------------------------------------------------

BOOL = frozenset({Bool})
#: What each op does with its data operand's dtype: admitted by the engine, admitted beyond that under StableHLO.
ADMITTED: list[tuple[Op, int, frozenset[DType], frozenset[DType]]] = [
    *((op(), 2, NUMERIC, BOOL) for op in (ops.Add, ops.Multiply)),
    *((op(), 2, NUMERIC, frozenset()) for op in (ops.Subtract, ops.Divide, ops.Pow)),
    *((op(), 2, REAL, BOOL) for op in (ops.Maximum, ops.Minimum)),
    *((op(), 1, NUMERIC, frozenset()) for op in (ops.Negate, ops.Abs, ops.Sign)),
    *((op(), 1, INEXACT, frozenset()) for op in (ops.Conj, ops.Exp, ops.Log, ops.Sin, ops.Cos, ops.Tanh, ops.Sqrt, ops.Rsqrt, ops.Expm1, ops.Log1p)),
    *((ops.Compare(d), 2, REAL, BOOL) for d in CompareDir if d is not CompareDir.Eq),
    (ops.Compare(CompareDir.Eq), 2, ANY, frozenset()),
    (ops.Clamp(), 3, FLOAT, INT),
    *((op((0,)), 1, NUMERIC, BOOL) for op in (ops.ReduceSum, ops.ReduceProd)),
    *((op((0,)), 1, REAL, BOOL) for op in (ops.ReduceMax, ops.ReduceMin)),
    (ops.DotGeneral((0,), (0,), (), ()), 2, INEXACT, INT | BOOL),
    *((op, 1, ANY, frozenset()) for op in (
        ops.Transpose((0,)), ops.Reshape((2,)), ops.BroadcastInDim((2,), (0,)), ops.EmbedDiag(0, 0), ops.Slice((0,), (1,), (1,)),
        ops.Pad((1,), (1,), (0,)), ops.Concatenate(0), ops.Reverse((0,)), ops.ShapeOf(0), ops.Convert(F32),
    )),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "operands", "engine", "beyond"), ADMITTED, ids=lambda v: str(v) if isinstance(v, Op) else ""
)
def test_dtype_policy(op: Op, operands: int, engine: frozenset[DType], beyond: frozenset[DType]) -> None:
    for policy, admitted in ((ENGINE, engine), (STABLEHLO, engine | beyond)):
        for dtype in DType:
            inputs = (t(dtype, 2),) * operands
            if dtype in admitted:
                op.result_types(inputs, policy)
                continue
            with pytest.raises(Unsupported) as caught:
                op.result_types(inputs, policy)
            assert caught.value.op == op.name
            assert dtype.name in caught.value.detail


def test_any_dtype_passes_the_ops_with_index_operands() -> None:
    for dtype in DType:
        for index in FLOAT | INT:
            assert GATHER_ROWS.result_types((t(dtype, 5, 3), t(index, 4, 1)))[0].dtype is dtype
            assert ops.DynamicSlice((1,)).result_types((t(dtype, 5), t(index, 1)))[0].dtype is dtype
            assert ops.DynamicUpdateSlice().result_types((t(dtype, 5), t(dtype, 1), t(index, 1)))[0].dtype is dtype
        for op in (ops.Tril(0), ops.Triu(0), ops.ExtractDiag(0, 1)):
            assert op.result_types((t(dtype, 2, 2),))[0].dtype is dtype
        for size in (F32, F64, I64):
            assert ops.DynamicTruncate(0).result_types((t(dtype, 5), t(size)))[0].dtype is dtype
        for other in DType:  # only the reference's shape is read
            assert ops.PadToMatch(0).result_types((t(dtype, 5), t(other, 6)))[0].dtype is dtype


def test_scatter_adds_numbers_only() -> None:
    scatter = ops.Scatter((1,), (0,), (0,), 1)
    for dtype in DType:
        inputs = (t(dtype, 5, 3), ROWS, t(dtype, 4, 3))
        if dtype is Bool:
            with pytest.raises(Unsupported):
                scatter.result_types(inputs)
            assert scatter.result_types(inputs, STABLEHLO) == (t(Bool, 5, 3),)
        else:
            assert scatter.result_types(inputs) == (t(dtype, 5, 3),)


@pytest.mark.parametrize("op", [LT, ops.Maximum(), ops.Minimum(), ops.Clamp()])
@pytest.mark.parametrize("dtype", sorted(COMPLEX, key=str))
@pytest.mark.parametrize("policy", [ENGINE, STABLEHLO])
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


@pytest.mark.parametrize("dtype", list(DType))
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
    assert {*ELEMENTWISE, *STRUCTURAL, *REDUCTIONS, *INDEXING, ops.DotGeneral, ops.Extension, ops.Constant} == set(OPS)
    assert all(op.__doc__ for op in OPS)


def test_categories_are_those_of_segmentation() -> None:
    host = {ops.ShapeOf, ops.DynamicTruncate, ops.PadToMatch, ops.Constant}
    ffi = {ops.DotGeneral, ops.Extension}
    for op in OPS:
        expected = Category.HOST if op in host else Category.FFI if op in ffi else Category.BACKEND
        assert op.category is expected
