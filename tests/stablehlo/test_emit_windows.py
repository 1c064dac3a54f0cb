"""The text of diagonals, triangles, windows, gathers and scatters."""

from __future__ import annotations

from tenferro_ref import ops
from tenferro_ref.dims import DimOp, InputDim
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import lower_to_stablehlo
from tests.build import lines, one_op


def test_extract_diag_is_a_gather() -> None:
    assert lines(ops.ExtractDiag(2, 0), "F64 2 3 4") == [
        "%0 = stablehlo.iota dim = 0 : tensor<2x2xi64>",
        '%1 = "stablehlo.gather"(%arg0, %0) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], '
        "collapsed_slice_dims = [0, 2], start_index_map = [0, 2], index_vector_dim = 1>, indices_are_sorted = false, "
        "slice_sizes = array<i64: 1, 3, 1>}> : (tensor<2x3x4xf64>, tensor<2x2xi64>) -> tensor<3x2xf64>",
    ]
    assert lines(ops.ExtractDiag(0, 1), "Bool 0 3") == [
        "%0 = stablehlo.constant dense<false> : tensor<i1>",
        "%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i1>) -> tensor<0xi1>",
    ]


def test_embed_diag_is_masked() -> None:
    assert lines(ops.EmbedDiag(1, 0), "F64 2 3") == [
        "%0 = stablehlo.iota dim = 0 : tensor<3x3xi64>",
        "%1 = stablehlo.iota dim = 1 : tensor<3x3xi64>",
        "%2 = stablehlo.compare EQ, %0, %1, SIGNED : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>",
        "%3 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<2x3xf64>) -> tensor<3x2x3xf64>",
        "%4 = stablehlo.broadcast_in_dim %2, dims = [2, 0] : (tensor<3x3xi1>) -> tensor<3x2x3xi1>",
        "%5 = stablehlo.constant dense<0.0> : tensor<f64>",
        "%6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f64>) -> tensor<3x2x3xf64>",
        "%7 = stablehlo.select %4, %3, %6 : tensor<3x2x3xi1>, tensor<3x2x3xf64>",
    ]


def test_triangles_are_masked_on_the_first_two_axes() -> None:
    assert lines(ops.Tril(0), "Bool 2 3") == [
        "%0 = stablehlo.iota dim = 0 : tensor<2x3xi64>",
        "%1 = stablehlo.iota dim = 1 : tensor<2x3xi64>",
        "%2 = stablehlo.compare GE, %0, %1, SIGNED : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi1>",
        "%3 = stablehlo.constant dense<false> : tensor<i1>",
        "%4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i1>) -> tensor<2x3xi1>",
        "%5 = stablehlo.select %2, %arg0, %4 : tensor<2x3xi1>, tensor<2x3xi1>",
    ]
    batched = lines(ops.Triu(2**63 - 1), "F32 2 3 4")
    assert batched[2] == "%2 = stablehlo.constant dense<3> : tensor<i64>"  # no I64 addition may wrap
    assert batched[4:7] == [
        "%4 = stablehlo.add %0, %3 : tensor<2x3xi64>",
        "%5 = stablehlo.compare LE, %4, %1, SIGNED : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi1>",
        "%6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<2x3xi1>) -> tensor<2x3x4xi1>",
    ]


def test_slice_and_reverse() -> None:
    assert lines(ops.Slice((1, 0), (4, 3), (2, 1)), "F64 5 3") == [
        "%0 = stablehlo.slice %arg0 [1:4:2, 0:3] : (tensor<5x3xf64>) -> tensor<2x3xf64>"
    ]
    assert lines(ops.Slice((0,), (5,), (2**64 - 1,)), "F64 5")[0].startswith("%0 = stablehlo.slice %arg0 [0:5:5] :")
    assert lines(ops.Slice((), (), ()), "F64") == ["%0 = stablehlo.slice %arg0 [] : (tensor<f64>) -> tensor<f64>"]
    assert lines(ops.Reverse((1, 0)), "C32 2 3") == [
        "%0 = stablehlo.reverse %arg0, dims = [1, 0] : tensor<2x3xcomplex<f32>>"
    ]


def test_pads() -> None:
    assert lines(ops.Pad((-1, 2), (0, -3), (1, 0)), "I32 2 3") == [
        "%0 = stablehlo.constant dense<0> : tensor<i32>",
        "%1 = stablehlo.pad %arg0, %0, low = [-1, 2], high = [0, -3], interior = [1, 0] : "
        "(tensor<2x3xi32>, tensor<i32>) -> tensor<2x2xi32>",
    ]
    assert lines(ops.PadToMatch(1), "F64 2 3", "Bool 9 5") == [
        "%0 = stablehlo.constant dense<0.0> : tensor<f64>",
        "%1 = stablehlo.pad %arg0, %0, low = [0, 0], high = [0, 2], interior = [0, 0] : "
        "(tensor<2x3xf64>, tensor<f64>) -> tensor<2x5xf64>",
    ]
    assert lines(ops.PadToMatch(1), "F64 2 3", "Bool 9 2") == []


def test_concatenate_and_shape_of() -> None:
    assert lines(ops.Concatenate(1), "F64 2 3", "F64 2 0", "F64 2 1") == [
        "%0 = stablehlo.concatenate %arg0, %arg1, %arg2, dim = 1 : "
        "(tensor<2x3xf64>, tensor<2x0xf64>, tensor<2x1xf64>) -> tensor<2x4xf64>"
    ]
    assert lines(ops.ShapeOf(1), "I32 2 3") == ["%0 = stablehlo.constant dense<3.0> : tensor<f64>"]


def test_dynamic_slices_take_scalar_starts() -> None:
    scalars = [
        "%0 = stablehlo.slice %arg{} [0:1] : (tensor<2xi32>) -> tensor<1xi32>",
        "%1 = stablehlo.reshape %0 : (tensor<1xi32>) -> tensor<i32>",
        "%2 = stablehlo.slice %arg{} [1:2] : (tensor<2xi32>) -> tensor<1xi32>",
        "%3 = stablehlo.reshape %2 : (tensor<1xi32>) -> tensor<i32>",
    ]
    assert lines(ops.DynamicSlice((1, 2)), "F64 2 3", "I32 2") == [
        *(line.format(1) for line in scalars),
        "%4 = stablehlo.dynamic_slice %arg0, %1, %3, sizes = [1, 2] : "
        "(tensor<2x3xf64>, tensor<i32>, tensor<i32>) -> tensor<1x2xf64>",
    ]
    assert lines(ops.DynamicUpdateSlice(), "F64 2 3", "F64 1 2", "I32 2") == [
        *(line.format(2) for line in scalars),
        "%4 = stablehlo.dynamic_update_slice %arg0, %arg1, %1, %3 : "
        "(tensor<2x3xf64>, tensor<1x2xf64>, tensor<i32>, tensor<i32>) -> tensor<2x3xf64>",
    ]


def test_gather() -> None:
    form = (
        '"stablehlo.gather"(%arg0, %arg1) <{{dimension_numbers = #stablehlo.gather<offset_dims = [0], '
        "collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = {}>, indices_are_sorted = false, "
        "slice_sizes = array<i64: 2, 1>}}> : (tensor<2x3xf64>, {}) -> tensor<2x4xf64>"
    )
    # an index_vector_dim beyond the last axis is an implicit one in StableHLO too
    assert lines(ops.Gather((0,), (1,), (1,), 1, (2, 1)), "F64 2 3", "I64 4") == [
        f"%0 = {form.format(1, 'tensor<4xi64>')}"
    ]
    assert lines(ops.Gather((0,), (1,), (1,), 0, (2, 1)), "F64 2 3", "I32 1 4") == [
        f"%0 = {form.format(0, 'tensor<1x4xi32>')}"
    ]
    assert "slice_sizes = array<i64>}" in lines(ops.Gather((), (), (), 0, ()), "F64", "I64 0")[0]


def test_slice_sizes_of_a_gather_are_evaluated() -> None:
    op = ops.GatherDynamicSliceSizes((0,), (1,), (1,), 1, (DimOp("min", InputDim(2, 0), 2), 1))
    graph = one_op(op, "F64 n 3", "I64 4", "Bool m")
    assert "slice_sizes = array<i64: 2, 1>" in lower_to_stablehlo(LoweringView.of(graph, ((7, 3), (4,), (5,))))
    assert "slice_sizes = array<i64: 1, 1>" in lower_to_stablehlo(LoweringView.of(graph, ((7, 3), (4,), (1,))))


SCATTER = """%{n} = "stablehlo.scatter"(%arg0, %{i}, %arg2) <{{scatter_dimension_numbers = #stablehlo.scatter<\
update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [{axes}], index_vector_dim = 1>, \
indices_are_sorted = false, unique_indices = false}}> ({{
^bb0(%lhs: tensor<i32>, %rhs: tensor<i32>):
%sum = stablehlo.add %lhs, %rhs : tensor<i32>
stablehlo.return %sum : tensor<i32>
}}) : (tensor<5x4xi32>, {types}) -> tensor<5x4xi32>"""


def test_scatter_clamps_what_stablehlo_would_skip() -> None:
    rows = ops.Scatter((1,), (0,), (0,), 1)
    types = "tensor<3xi64>, tensor<3x4xi32>"
    assert lines(rows, "I32 5 4", "I64 3", "I32 3 4") == [
        "%0 = stablehlo.constant dense<0> : tensor<i64>",
        "%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i64>) -> tensor<3xi64>",
        "%2 = stablehlo.constant dense<4> : tensor<i64>",
        "%3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i64>) -> tensor<3xi64>",
        "%4 = stablehlo.clamp %1, %arg1, %3 : tensor<3xi64>",
        *SCATTER.format(n=5, i=4, axes=0, types=types).splitlines(),
    ]
    skipping = lines(rows, "I32 5 4", "I64 3", "I32 3 4", policy=STABLEHLO)
    assert skipping == SCATTER.format(n=0, i="arg1", axes=0, types=types).splitlines()


def test_scatter_leaves_no_window_partly_outside() -> None:
    windows = ops.Scatter((1,), (0,), (1, 0), 1)
    types = "tensor<3x2xi32>, tensor<3x2xi32>"
    text = lines(windows, "I32 5 4", "I32 3 2", "I32 3 2", policy=STABLEHLO)
    assert text == [
        "%0 = stablehlo.constant dense<0> : tensor<i32>",
        "%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<3x2xi32>",
        "%2 = stablehlo.constant dense<[2, 4]> : tensor<2xi32>",
        "%3 = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<2xi32>) -> tensor<3x2xi32>",
        "%4 = stablehlo.clamp %1, %arg1, %3 : tensor<3x2xi32>",
        "%5 = stablehlo.constant dense<[4, 5]> : tensor<2xi32>",
        "%6 = stablehlo.broadcast_in_dim %5, dims = [1] : (tensor<2xi32>) -> tensor<3x2xi32>",
        "%7 = stablehlo.compare EQ, %4, %arg1, SIGNED : (tensor<3x2xi32>, tensor<3x2xi32>) -> tensor<3x2xi1>",
        "%8 = stablehlo.select %7, %arg1, %6 : tensor<3x2xi1>, tensor<3x2xi32>",
        *SCATTER.format(n=9, i=8, axes="1, 0", types=types).splitlines(),
    ]


def test_bool_scatter_is_a_logical_or_where_it_is_admitted() -> None:
    text = lines(ops.Scatter((), (0,), (0,), 1), "Bool 5", "I32 3", "Bool 3", policy=STABLEHLO)
    assert "%sum = stablehlo.add %lhs, %rhs : tensor<i1>" in text
