"""Every error that an op's shape and dtype rule can give, and the axis or argument that it names (SEMANTICS 1.2, 2)."""

from __future__ import annotations

import pytest

from tenferro_ref import ops
from tenferro_ref.dims import DimOp
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
    REDUCTIONS,
    Op,
    TensorType,
)
from tests.op_types import C32, C64, F32, F64, GATHER_ROWS, I32, I64, LT, MIXED, Bool, D, t, x

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
    # ops of the reference alone
    (ops.Special("floor"), (x(),), InvalidArgument, "function"),
    (ops.Special2("erf"), (x(), x()), InvalidArgument, "function"),
    (ops.Bits("nand"), (t(I32), t(I32)), InvalidArgument, "function"),
    (ops.Bits("and"), (t(I32),), InvalidCompiledGraph, None),
    (ops.Bits("popcnt"), (t(I32), t(I32)), InvalidCompiledGraph, None),
    (ops.ReducePrecision(0, 3), (x(),), InvalidArgument, "exponent_bits"),
    (ops.ReducePrecision(5, -1), (x(),), InvalidArgument, "mantissa_bits"),
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


@pytest.mark.parametrize(
    ("starts", "limits", "words"),
    [
        ((0, 0), (5, 3), "Slice: limit 5 on axis 0 is beyond its extent 2"),
        ((0, -1), (2, 3), "Slice: starts: start -1 is negative on axis 1"),
        ((0, 2), (2, 1), "Slice: starts: start 2 beyond limit 1 on axis 1"),
    ],
)
def test_a_bound_of_a_slice_is_said_by_what_it_exceeds(
    starts: tuple[int, ...], limits: tuple[int, ...], words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        ops.Slice(starts, limits, (1, 1)).result_types((x(2, 3),))
    assert str(caught.value) == words


def test_range_is_checked_before_repeats_and_overlap() -> None:
    with pytest.raises(AxisOutOfBounds):
        ops.DotGeneral((1, 1), (0, 9), (1,), ()).result_types((x(2, 3), x(3, 4)))
    with pytest.raises(DuplicateAxis):
        ops.DotGeneral((1, 1), (0,), (1,), ()).result_types((x(2, 3), x(3, 4)))
    with pytest.raises(AxisOutOfBounds):
        ops.Transpose((5, 5)).result_types((x(2, 3),))
