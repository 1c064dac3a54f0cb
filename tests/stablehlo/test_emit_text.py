"""The text of every form, and every refusal."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import numpy as np
import pytest

from tenferro_ref.dims import DimOp, InputDim
from tenferro_ref.dtype import DType
from tenferro_ref.errors import (
    Internal,
    InvalidArgument,
    InvalidProgram,
    LoweringError,
    NonStaticShape,
    ShapeMismatch,
    UnsupportedDType,
    UnsupportedOp,
)
from tenferro_ref.ops import (
    ENGINE,
    FAMILIES,
    OPS,
    PHASE1,
    STABLEHLO,
    Abs,
    Add,
    BroadcastInDim,
    Clamp,
    Compare,
    CompareDir,
    Concatenate,
    Conj,
    Constant,
    Convert,
    Cos,
    Divide,
    DotGeneral,
    DynamicSlice,
    DynamicTruncate,
    DynamicUpdateSlice,
    EmbedDiag,
    Exp,
    Expm1,
    Extension,
    ExtractDiag,
    Gather,
    GatherDynamicSliceSizes,
    Log,
    Log1p,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Op,
    Pad,
    PadToMatch,
    Policy,
    Pow,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reshape,
    Reverse,
    Rsqrt,
    Scatter,
    Select,
    ShapeOf,
    Sign,
    Sin,
    Slice,
    Sqrt,
    Tanh,
    TensorType,
    Transpose,
    Tril,
    Triu,
)
from tenferro_ref.program import GraphBuilder, GraphProgram, LoweringView, to_exec
from tenferro_ref.stablehlo import EMIT, Body, Value, fingerprint, lower_into, lower_to_stablehlo
from tenferro_ref.stablehlo.extensions import EXTENSIONS
from tests.stablehlo.emit_cases import moves, ordinary, program_of, scatters


def program(op: Op, *operands: str, policy: Policy = ENGINE) -> GraphProgram:
    """One op on inputs written as `F64 2 3`."""
    b = GraphBuilder(policy=policy)
    values = [b.input(o.split()[0], [int(e) if e.isdigit() else e for e in o.split()[1:]]) for o in operands]
    return b.build(*b.apply_many(op, *values))


def lines(op: Op, *operands: str, policy: Policy = ENGINE) -> list[str]:
    """The body of `program`."""
    text = lower_to_stablehlo(LoweringView.of(program(op, *operands, policy=policy)))
    return [line.strip() for line in text.splitlines()[2:-3]]


def test_every_op_has_a_row_or_a_reason() -> None:
    assert EMIT.holes(OPS) == []
    assert set(PHASE1) <= set(EMIT)


def test_module_with_one_result() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (2, 3)), b.input("F64", (2, 3))
    assert lower_to_stablehlo(LoweringView.of(b.build(-(x + y)))) == dedent(
        """\
        module {
          func.func @main(%arg0: tensor<2x3xf64>, %arg1: tensor<2x3xf64>) -> tensor<2x3xf64> {
            %0 = stablehlo.add %arg0, %arg1 : tensor<2x3xf64>
            %1 = stablehlo.negate %0 : tensor<2x3xf64>
            return %1 : tensor<2x3xf64>
          }
        }
        """
    )


def test_module_with_no_result_and_with_several() -> None:
    b = GraphBuilder()
    x = b.input("F32")
    y = x + x
    assert lower_to_stablehlo(LoweringView.of(GraphBuilder().build())) == (
        "module {\n  func.func @main() -> () {\n    return\n  }\n}\n"
    )
    text = lower_to_stablehlo(LoweringView.of(b.build(y, x)))
    assert "(%arg0: tensor<f32>) -> (tensor<f32>, tensor<f32>) {" in text
    assert "    return %0, %arg0 : tensor<f32>, tensor<f32>\n" in text


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (Negate(), "negate"), (Abs(), "abs"), (Exp(), "exponential"), (Log(), "log"), (Sin(), "sine"), (Cos(), "cosine"),
        (Tanh(), "tanh"), (Sqrt(), "sqrt"), (Rsqrt(), "rsqrt"), (Expm1(), "exponential_minus_one"),
        (Log1p(), "log_plus_one"),
    ],
)  # fmt: skip
def test_unary(op: Op, name: str) -> None:
    assert lines(op, "F32 2") == [f"%0 = stablehlo.{name} %arg0 : tensor<2xf32>"]


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (Add(), "add"), (Multiply(), "multiply"), (Divide(), "divide"), (Pow(), "power"), (Maximum(), "maximum"),
        (Minimum(), "minimum"),
    ],
)  # fmt: skip
def test_binary(op: Op, name: str) -> None:
    assert lines(op, "F64 2 1", "F64 2 1") == [f"%0 = stablehlo.{name} %arg0, %arg1 : tensor<2x1xf64>"]


def test_a_scalar_operand_is_broadcast() -> None:
    assert lines(Divide(), "F64", "F64 2 3") == [
        "%0 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f64>) -> tensor<2x3xf64>",
        "%1 = stablehlo.divide %0, %arg1 : tensor<2x3xf64>",
    ]
    assert lines(Pow(), "F32 0", "F32") == [
        "%0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<0xf32>",
        "%1 = stablehlo.power %arg0, %0 : tensor<0xf32>",
    ]
    assert lines(Add(), "F64", "F64") == ["%0 = stablehlo.add %arg0, %arg1 : tensor<f64>"]


def test_a_real_scalar_beside_a_complex_tensor_is_converted() -> None:
    assert lines(Multiply(), "C32 2", "F32") == [
        "%0 = stablehlo.convert %arg1 : (tensor<f32>) -> tensor<complex<f32>>",
        "%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<complex<f32>>) -> tensor<2xcomplex<f32>>",
        "%2 = stablehlo.multiply %arg0, %1 : tensor<2xcomplex<f32>>",
    ]
    assert lines(Divide(), "F64", "C64")[0] == "%0 = stablehlo.convert %arg0 : (tensor<f64>) -> tensor<complex<f64>>"


def test_abs_and_conj_of_complex() -> None:
    assert lines(Abs(), "C32 2") == ["%0 = stablehlo.abs %arg0 : (tensor<2xcomplex<f32>>) -> tensor<2xf32>"]
    assert lines(Conj(), "C64 2") == [
        "%0 = stablehlo.imag %arg0 : (tensor<2xcomplex<f64>>) -> tensor<2xf64>",
        "%1 = stablehlo.negate %0 : tensor<2xf64>",
        "%2 = stablehlo.real %arg0 : (tensor<2xcomplex<f64>>) -> tensor<2xf64>",
        "%3 = stablehlo.complex %2, %1 : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xcomplex<f64>>",
    ]
    assert lines(Conj(), "F64 2") == []


def test_sign_gives_plus_zero() -> None:
    assert lines(Sign(), "F64 2") == [
        "%0 = stablehlo.sign %arg0 : tensor<2xf64>",
        "%1 = stablehlo.constant dense<0.0> : tensor<f64>",
        "%2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f64>) -> tensor<2xf64>",
        "%3 = stablehlo.compare EQ, %0, %2, FLOAT : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xi1>",
        "%4 = stablehlo.select %3, %2, %0 : tensor<2xi1>, tensor<2xf64>",
    ]
    assert lines(Sign(), "I32 2") == ["%0 = stablehlo.sign %arg0 : tensor<2xi32>"]


@pytest.mark.parametrize(
    ("dtype", "element", "kind"),
    [("F32", "f32", "FLOAT"), ("I64", "i64", "SIGNED"), ("Bool", "i1", "UNSIGNED"), ("C64", "complex<f64>", "FLOAT")],
)
def test_compare(dtype: str, element: str, kind: str) -> None:
    types = f"(tensor<2x{element}>, tensor<2x{element}>) -> tensor<2xi1>"
    assert lines(Compare(CompareDir.Eq), f"{dtype} 2", f"{dtype} 2") == [
        f"%0 = stablehlo.compare EQ, %arg0, %arg1, {kind} : {types}"
    ]


@pytest.mark.parametrize("direction", list(CompareDir))
def test_compare_directions(direction: CompareDir) -> None:
    assert f"compare {direction.value.upper()}," in lines(Compare(direction), "F32", "F32")[0]


def test_select_and_clamp() -> None:
    assert lines(Select(), "Bool 2", "F32 2", "F32 2") == [
        "%0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<2xi1>, tensor<2xf32>"
    ]
    # the engine's order is (input, lower, upper)
    assert lines(Clamp(), "F64 2", "F64 2", "F64 2") == ["%0 = stablehlo.clamp %arg1, %arg0, %arg2 : tensor<2xf64>"]


def test_constant() -> None:
    assert lines(Constant.of(2.0, DType.F64)) == ["%0 = stablehlo.constant dense<2.0> : tensor<f64>"]
    assert lines(Constant(DType.Bool, b"\x07")) == ["%0 = stablehlo.constant dense<true> : tensor<i1>"]


def test_convert() -> None:
    assert lines(Convert(DType.I32), "F64 2") == ["%0 = stablehlo.convert %arg0 : (tensor<2xf64>) -> tensor<2xi32>"]
    assert lines(Convert(DType.C64), "C32") == [
        "%0 = stablehlo.convert %arg0 : (tensor<complex<f32>>) -> tensor<complex<f64>>"
    ]
    assert lines(Convert(DType.F64), "C64") == ["%0 = stablehlo.real %arg0 : (tensor<complex<f64>>) -> tensor<f64>"]
    assert lines(Convert(DType.I32), "C64")[1] == "%1 = stablehlo.convert %0 : (tensor<f64>) -> tensor<i32>"
    assert lines(Convert(DType.Bool), "C64") == [
        "%0 = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f64>>",
        "%1 = stablehlo.compare NE, %arg0, %0, FLOAT : (tensor<complex<f64>>, tensor<complex<f64>>) -> tensor<i1>",
    ]


def test_transpose_and_broadcast() -> None:
    assert lines(Transpose((1, 2, 0)), "F64 2 3 4") == [
        "%0 = stablehlo.transpose %arg0, dims = [1, 2, 0] : (tensor<2x3x4xf64>) -> tensor<3x4x2xf64>"
    ]
    assert lines(BroadcastInDim((4, 3, 2), (2, 0)), "F32 2 1") == [
        "%0 = stablehlo.broadcast_in_dim %arg0, dims = [2, 0] : (tensor<2x1xf32>) -> tensor<4x3x2xf32>"
    ]


def test_reshape_reverses_reshapes_reverses() -> None:
    assert lines(Reshape((3, 2)), "F64 2 3") == [
        "%0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>",
        "%1 = stablehlo.reshape %0 : (tensor<3x2xf64>) -> tensor<2x3xf64>",
        "%2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>",
    ]


@pytest.mark.parametrize(
    ("source", "target"),
    [((2, 3), (2, 1, 3)), ((1, 2, 1, 3), (2, 3)), ((), (1, 1)), ((1,), ()), ((2, 3), (2, 3)), ((2, 0), (0, 5, 3))],
)
def test_reshape_where_only_unit_axes_move_is_bare(source: tuple[int, ...], target: tuple[int, ...]) -> None:
    (line,) = lines(Reshape(target), " ".join(["F64", *map(str, source)]))
    assert line.startswith("%0 = stablehlo.reshape %arg0 :")


def test_reshape_from_and_to_one_axis_transposes_once() -> None:
    assert [line.split()[2] for line in lines(Reshape((6,)), "F64 2 3")] == ["stablehlo.transpose", "stablehlo.reshape"]
    assert [line.split()[2] for line in lines(Reshape((2, 3)), "F64 1 6")] == [
        "stablehlo.reshape",
        "stablehlo.transpose",
    ]


@pytest.mark.parametrize(
    ("op", "init", "body"),
    [
        (ReduceSum((0, 2)), "0.0", "add"),
        (ReduceProd((0, 2)), "1.0", "multiply"),
        (ReduceMax((0, 2)), "0xFF800000", "maximum"),
        (ReduceMin((2, 0)), "0x7F800000", "minimum"),
    ],
)
def test_reductions(op: Op, init: str, body: str) -> None:
    assert lines(op, "F32 2 3 4") == [
        f"%0 = stablehlo.constant dense<{init}> : tensor<f32>",
        f"%1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.{body} across dimensions = [0, 2] : "
        "(tensor<2x3x4xf32>, tensor<f32>) -> tensor<3xf32>",
    ]


def test_reduction_identities_of_other_dtypes() -> None:
    def init(op: Op, dtype: str) -> str:
        return lines(op, f"{dtype} 2", policy=STABLEHLO)[0].partition("dense<")[2].partition("> :")[0]

    assert init(ReduceMax((0,)), "I32") == "-2147483648"
    assert init(ReduceMin((0,)), "I64") == "9223372036854775807"
    assert [init(op((0,)), "Bool") for op in (ReduceSum, ReduceProd, ReduceMax, ReduceMin)] == [
        "false", "true", "false", "true",
    ]  # fmt: skip
    assert init(ReduceSum((0,)), "C64") == "(0.0, 0.0)"


def test_a_reduction_over_no_axis_is_a_copy_for_every_dtype() -> None:
    for dtype in DType:
        assert lines(ReduceMax(()), f"{dtype} 2") == []


def test_dot_without_batch_needs_no_transpose() -> None:
    assert lines(DotGeneral((1,), (0,), (), ()), "F64 2 3", "F64 3 4") == [
        "%0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : "
        "(tensor<2x3xf64>, tensor<3x4xf64>) -> tensor<2x4xf64>"
    ]


def test_batched_dot_moves_batch_to_the_end_even_if_all_extents_are_equal() -> None:
    assert lines(DotGeneral((2,), (1,), (0,), (0,)), "F32 2 2 2", "F32 2 2 2") == [
        "%0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1], "
        "precision = [DEFAULT, DEFAULT] : (tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>",
        "%1 = stablehlo.transpose %0, dims = [1, 2, 0] : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>",
    ]
    two = lines(DotGeneral((3,), (3,), (0, 1), (1, 0)), "F32 2 3 4 5", "F32 3 2 6 5")
    assert two[0].endswith("-> tensor<2x3x4x6xf32>")
    assert "dims = [2, 3, 0, 1]" in two[1]


def test_batch_only_dot_needs_no_transpose() -> None:
    (line,) = lines(DotGeneral((1,), (1,), (0,), (0,)), "F32 2 3", "F32 2 3")
    assert line.endswith("-> tensor<2xf32>")
    (line,) = lines(DotGeneral((), (), (), ()), "F32", "F32")
    assert "contracting_dims = [] x []" in line


# --- diagonals, triangles, windows ------------------------------------------------------------------------------------


def test_extract_diag_is_a_gather() -> None:
    assert lines(ExtractDiag(2, 0), "F64 2 3 4") == [
        "%0 = stablehlo.iota dim = 0 : tensor<2x2xi64>",
        '%1 = "stablehlo.gather"(%arg0, %0) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], '
        "collapsed_slice_dims = [0, 2], start_index_map = [0, 2], index_vector_dim = 1>, indices_are_sorted = false, "
        "slice_sizes = array<i64: 1, 3, 1>}> : (tensor<2x3x4xf64>, tensor<2x2xi64>) -> tensor<3x2xf64>",
    ]
    assert lines(ExtractDiag(0, 1), "Bool 0 3") == [
        "%0 = stablehlo.constant dense<false> : tensor<i1>",
        "%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i1>) -> tensor<0xi1>",
    ]


def test_embed_diag_is_masked() -> None:
    assert lines(EmbedDiag(1, 0), "F64 2 3") == [
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
    assert lines(Tril(0), "Bool 2 3") == [
        "%0 = stablehlo.iota dim = 0 : tensor<2x3xi64>",
        "%1 = stablehlo.iota dim = 1 : tensor<2x3xi64>",
        "%2 = stablehlo.compare GE, %0, %1, SIGNED : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi1>",
        "%3 = stablehlo.constant dense<false> : tensor<i1>",
        "%4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i1>) -> tensor<2x3xi1>",
        "%5 = stablehlo.select %2, %arg0, %4 : tensor<2x3xi1>, tensor<2x3xi1>",
    ]
    batched = lines(Triu(2**63 - 1), "F32 2 3 4")
    assert batched[2] == "%2 = stablehlo.constant dense<3> : tensor<i64>"  # no I64 addition may wrap
    assert batched[4:7] == [
        "%4 = stablehlo.add %0, %3 : tensor<2x3xi64>",
        "%5 = stablehlo.compare LE, %4, %1, SIGNED : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi1>",
        "%6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<2x3xi1>) -> tensor<2x3x4xi1>",
    ]


def test_slice_and_reverse() -> None:
    assert lines(Slice((1, 0), (4, 3), (2, 1)), "F64 5 3") == [
        "%0 = stablehlo.slice %arg0 [1:4:2, 0:3] : (tensor<5x3xf64>) -> tensor<2x3xf64>"
    ]
    assert lines(Slice((0,), (5,), (2**64 - 1,)), "F64 5")[0].startswith("%0 = stablehlo.slice %arg0 [0:5:5] :")
    assert lines(Slice((), (), ()), "F64") == ["%0 = stablehlo.slice %arg0 [] : (tensor<f64>) -> tensor<f64>"]
    assert lines(Reverse((1, 0)), "C32 2 3") == [
        "%0 = stablehlo.reverse %arg0, dims = [1, 0] : tensor<2x3xcomplex<f32>>"
    ]


def test_pads() -> None:
    assert lines(Pad((-1, 2), (0, -3), (1, 0)), "I32 2 3") == [
        "%0 = stablehlo.constant dense<0> : tensor<i32>",
        "%1 = stablehlo.pad %arg0, %0, low = [-1, 2], high = [0, -3], interior = [1, 0] : "
        "(tensor<2x3xi32>, tensor<i32>) -> tensor<2x2xi32>",
    ]
    assert lines(PadToMatch(1), "F64 2 3", "Bool 9 5") == [
        "%0 = stablehlo.constant dense<0.0> : tensor<f64>",
        "%1 = stablehlo.pad %arg0, %0, low = [0, 0], high = [0, 2], interior = [0, 0] : "
        "(tensor<2x3xf64>, tensor<f64>) -> tensor<2x5xf64>",
    ]
    assert lines(PadToMatch(1), "F64 2 3", "Bool 9 2") == []


def test_concatenate_and_shape_of() -> None:
    assert lines(Concatenate(1), "F64 2 3", "F64 2 0", "F64 2 1") == [
        "%0 = stablehlo.concatenate %arg0, %arg1, %arg2, dim = 1 : "
        "(tensor<2x3xf64>, tensor<2x0xf64>, tensor<2x1xf64>) -> tensor<2x4xf64>"
    ]
    assert lines(ShapeOf(1), "I32 2 3") == ["%0 = stablehlo.constant dense<3.0> : tensor<f64>"]


def test_dynamic_slices_take_scalar_starts() -> None:
    scalars = [
        "%0 = stablehlo.slice %arg{} [0:1] : (tensor<2xi32>) -> tensor<1xi32>",
        "%1 = stablehlo.reshape %0 : (tensor<1xi32>) -> tensor<i32>",
        "%2 = stablehlo.slice %arg{} [1:2] : (tensor<2xi32>) -> tensor<1xi32>",
        "%3 = stablehlo.reshape %2 : (tensor<1xi32>) -> tensor<i32>",
    ]
    assert lines(DynamicSlice((1, 2)), "F64 2 3", "I32 2") == [
        *(line.format(1) for line in scalars),
        "%4 = stablehlo.dynamic_slice %arg0, %1, %3, sizes = [1, 2] : "
        "(tensor<2x3xf64>, tensor<i32>, tensor<i32>) -> tensor<1x2xf64>",
    ]
    assert lines(DynamicUpdateSlice(), "F64 2 3", "F64 1 2", "I32 2") == [
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
    assert lines(Gather((0,), (1,), (1,), 1, (2, 1)), "F64 2 3", "I64 4") == [f"%0 = {form.format(1, 'tensor<4xi64>')}"]
    assert lines(Gather((0,), (1,), (1,), 0, (2, 1)), "F64 2 3", "I32 1 4") == [
        f"%0 = {form.format(0, 'tensor<1x4xi32>')}"
    ]
    assert "slice_sizes = array<i64>}" in lines(Gather((), (), (), 0, ()), "F64", "I64 0")[0]


def test_slice_sizes_of_a_gather_are_evaluated() -> None:
    op = GatherDynamicSliceSizes((0,), (1,), (1,), 1, (DimOp("min", InputDim(2, 0), 2), 1))
    graph = program(op, "F64 n 3", "I64 4", "Bool m")
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
    rows = Scatter((1,), (0,), (0,), 1)
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
    windows = Scatter((1,), (0,), (1, 0), 1)
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
    text = lines(Scatter((), (0,), (0,), 1), "Bool 5", "I32 3", "Bool 3", policy=STABLEHLO)
    assert "%sum = stablehlo.add %lhs, %rhs : tensor<i1>" in text


# --- extensions -------------------------------------------------------------------------------------------------------


class _Family:
    """One op: a matrix gives its row sums and its transpose."""

    def infer(self, op: Extension, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (x,) = inputs
        return x.with_shape(x.shape[:1]), x.with_shape(x.shape[::-1])


def _two_results(op: Extension, body: Body, outputs: tuple[TensorType, ...], x: Value) -> list[Value]:
    b = GraphBuilder()
    sums = b.apply(ReduceSum((1,)), b.input(x.dtype, x.shape))
    (inlined,) = lower_into(body, LoweringView.of(b.build(sums)), [x])
    return [inlined, body.transpose(x, (1, 0))]


@pytest.fixture
def two_results(monkeypatch: pytest.MonkeyPatch) -> Extension:
    monkeypatch.setitem(FAMILIES, "test.family.v1", _Family())
    monkeypatch.setitem(EXTENSIONS, ("test.family.v1", "two"), _two_results)
    return Extension.of("test.family.v1", "two", {})


def test_an_extension_with_several_results(two_results: Extension) -> None:
    b = GraphBuilder()
    sums, transposed = b.apply_many(two_results, b.input("F64", ("n", 3)))
    program = b.build(-transposed, sums)
    assert lower_to_stablehlo(LoweringView.of(program, ((2, 3),))).splitlines()[1:-2] == [
        "  func.func @main(%arg0: tensor<2x3xf64>) -> (tensor<3x2xf64>, tensor<2xf64>) {",
        "    %0 = stablehlo.constant dense<0.0> : tensor<f64>",
        "    %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [1] : "
        "(tensor<2x3xf64>, tensor<f64>) -> tensor<2xf64>",
        "    %2 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>",
        "    %3 = stablehlo.negate %2 : tensor<3x2xf64>",
        "    return %3, %1 : tensor<3x2xf64>, tensor<2xf64>",
    ]


def test_an_extension_without_lowering(two_results: Extension) -> None:
    error = refusal(program(replace(two_results, op="three"), "F64 2 3"))
    assert error.facts() == {
        "op": "Extension",
        "reason": "three of 'test.family.v1' has no lowering to StableHLO",
    }
    assert refusal(program(two_results, "F64 2 3"), phase1_only=True).facts()["reason"] == "outside Phase 1"


def test_a_lowering_that_breaks_its_familys_rule(two_results: Extension, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (
        lambda op, body, outputs, x: [x, x],
        lambda op, body, outputs, x: _two_results(op, body, outputs, x)[:1],
    ):
        monkeypatch.setitem(EXTENSIONS, ("test.family.v1", "two"), wrong)
        with pytest.raises(Internal, match=r"gave F64\[2.*\]; its rule says F64\[2\], F64\[3, 2\]"):
            lower_to_stablehlo(LoweringView.of(program(two_results, "F64 2 3")))


# --- symbolic programs ------------------------------------------------------------------------------------------------


def test_symbolic_programs_are_lowered_at_concrete_shapes() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", ("n", 3)), b.input("F64", ("n",))
    graph = b.build(b.apply(Reshape((3, InputDim(1, 0))), x, y))
    with pytest.raises(NonStaticShape, match="axis 0 of output 0 is symbolic"):
        LoweringView.of(graph)
    assert "-> tensor<3x5xf64> {" in lower_to_stablehlo(LoweringView.of(graph, ((5, 3), (5,))))
    assert lower_to_stablehlo(LoweringView.of(to_exec(graph), ((5, 3), (5,)))) == lower_to_stablehlo(
        LoweringView.of(graph, ((5, 3), (5,)))
    )


def test_extents_of_symbolic_programs_are_constants_of_the_text() -> None:
    graph = program(ShapeOf(0), "F64 n")
    assert "dense<7.0>" in lower_to_stablehlo(LoweringView.of(graph, ((7,),)))
    graph = program(PadToMatch(0), "F64 n", "F64 m")
    assert "high = [4]" in lower_to_stablehlo(LoweringView.of(graph, ((1,), (5,))))
    assert "pad" not in lower_to_stablehlo(LoweringView.of(graph, ((5,), (1,))))
    graph = program(Scatter((1,), (0,), (0,), 1), "F64 n m", "I64 3", "F64 3 w")
    with pytest.raises(InvalidArgument, match="window extent 5 exceeds operand extent 4"):
        lower_to_stablehlo(LoweringView.of(graph, ((2, 4), (3,), (3, 5))))


def test_what_symbols_left_open_is_checked_at_concrete_shapes() -> None:
    graph = program(Add(), "F64 n", "F64 m")
    assert lower_to_stablehlo(LoweringView.of(graph, ((2,), (2,))))
    with pytest.raises(ShapeMismatch):
        lower_to_stablehlo(LoweringView.of(graph, ((2,), (3,))))
    with pytest.raises(InvalidArgument, match="extent 0"):
        lower_to_stablehlo(LoweringView.of(program(ReduceSum((0,)), "F64 n"), ((0,),)))


# --- refusals ---------------------------------------------------------------------------------------------------------


def refusal(graph: GraphProgram, *, phase1_only: bool = False) -> LoweringError:
    with pytest.raises(LoweringError) as error:
        lower_to_stablehlo(LoweringView.of(graph), phase1_only=phase1_only)
    return error.value


def test_integer_faults_cannot_be_said() -> None:
    for op in (Divide(), Pow()):
        error = refusal(program(op, "I32 2", "I32 2"))
        assert isinstance(error, UnsupportedOp)
        assert (error.op, "integer_faults" in error.reason) == (op.name, True)
    assert lines(Divide(), "I32", "I32", policy=STABLEHLO) == ["%0 = stablehlo.divide %arg0, %arg1 : tensor<i32>"]
    assert lines(Pow(), "I64", "I64", policy=STABLEHLO) == ["%0 = stablehlo.power %arg0, %arg1 : tensor<i64>"]


def test_float_indices_cannot_be_said() -> None:
    for op, operands in [
        (Gather((), (0,), (0,), 1, (1,)), ["F64 4", "F32 2"]),
        (GatherDynamicSliceSizes((), (0,), (0,), 1, (1,)), ["F64 4", "F64 2"]),
        (Scatter((), (0,), (0,), 1), ["F64 4", "F64 2", "F64 2"]),
        (DynamicSlice((2,)), ["I32 4", "F64 1"]),
        (DynamicUpdateSlice(), ["I32 4", "I32 2", "F32 1"]),
    ]:
        error = refusal(program(op, *operands))
        assert isinstance(error, UnsupportedOp)
        assert (error.op, "float index" in error.reason) == (op.name, True)


def test_bounded_extents() -> None:
    error = refusal(program(DynamicTruncate(0), "F64 2", "F64"))
    assert error.facts() == {"op": "DynamicTruncate", "output_index": 0, "axis": 0, "extent": "an upper bound"}


def test_a_slot_without_value() -> None:
    exec_program = to_exec(program(Negate(), "F64 2"))
    (negate,) = exec_program.instructions
    broken = replace(exec_program, instructions=(replace(negate, input_slots=(1,)),))
    with pytest.raises(InvalidProgram, match="Negate reads slot 1, which has no value there"):
        lower_to_stablehlo(LoweringView.of(broken))


def test_phase1_takes_only_its_ops_and_dtypes() -> None:
    def dtype_refusal(graph: GraphProgram) -> tuple[str, str]:
        error = refusal(graph, phase1_only=True)
        assert isinstance(error, UnsupportedDType)
        return error.dtype, error.context

    assert dtype_refusal(program(Add(), "I32", "I32")) == ("I32", "program input")
    assert dtype_refusal(program(Constant.of(1, DType.C32))) == ("C32", "constant")
    assert dtype_refusal(program(Convert(DType.Bool), "F32")) == ("Bool", "convert target")
    for dtype in (DType.F32, DType.F64):
        cases = [*ordinary(dtype), *moves(dtype), *scatters(dtype)]
        outside = {type(op): program_of([(op, operands)])[0] for op, operands in cases if type(op) not in PHASE1}
        assert len(outside) == len(OPS) - len(PHASE1) - len((DynamicTruncate, Extension))
        for op, graph in outside.items():
            if all(t.dtype is dtype for t in graph.input_types):
                error = refusal(graph, phase1_only=True)
                assert error.facts() == {"op": op.__name__, "reason": "outside Phase 1"}
    graph = program(Add(), "F32 2", "F32")
    assert lower_to_stablehlo(LoweringView.of(graph), phase1_only=True) == lower_to_stablehlo(LoweringView.of(graph))


# --- around it --------------------------------------------------------------------------------------------------------


def test_two_programs_in_one_module() -> None:
    body = Body()
    results = [result for op in (Negate(), Exp()) for result in lower_into(body, LoweringView.of(program(op, "F32 2")))]
    assert body.module(results).splitlines()[1:5] == [
        "  func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {",
        "    %0 = stablehlo.negate %arg0 : tensor<2xf32>",
        "    %1 = stablehlo.exponential %arg1 : tensor<2xf32>",
        "    return %0, %1 : tensor<2xf32>, tensor<2xf32>",
    ]


def test_fingerprint() -> None:
    assert fingerprint("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert np.unique([fingerprint(t) for t in ("module {}", "module { }", "")]).size == 3
