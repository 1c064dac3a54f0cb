"""The text of every elementwise, structural and reduction form; modules and fingerprints."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.ops import OPS, PHASE1, STABLEHLO, CompareDir, Op
from tenferro_ref.program import GraphBuilder, LoweringView
from tenferro_ref.stablehlo import EMIT, Body, fingerprint, lower_into, lower_to_stablehlo
from tests.build import lines, one_op


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
        (ops.Negate(), "negate"), (ops.Abs(), "abs"), (ops.Exp(), "exponential"), (ops.Log(), "log"), (ops.Sin(), "sine"), (ops.Cos(), "cosine"),
        (ops.Tanh(), "tanh"), (ops.Sqrt(), "sqrt"), (ops.Rsqrt(), "rsqrt"), (ops.Expm1(), "exponential_minus_one"),
        (ops.Log1p(), "log_plus_one"),
    ],
)  # fmt: skip
def test_unary(op: Op, name: str) -> None:
    assert lines(op, "F32 2") == [f"%0 = stablehlo.{name} %arg0 : tensor<2xf32>"]


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (ops.Add(), "add"), (ops.Multiply(), "multiply"), (ops.Divide(), "divide"), (ops.Pow(), "power"), (ops.Maximum(), "maximum"),
        (ops.Minimum(), "minimum"),
    ],
)  # fmt: skip
def test_binary(op: Op, name: str) -> None:
    assert lines(op, "F64 2 1", "F64 2 1") == [f"%0 = stablehlo.{name} %arg0, %arg1 : tensor<2x1xf64>"]


def test_a_scalar_operand_is_broadcast() -> None:
    assert lines(ops.Divide(), "F64", "F64 2 3") == [
        "%0 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f64>) -> tensor<2x3xf64>",
        "%1 = stablehlo.divide %0, %arg1 : tensor<2x3xf64>",
    ]
    assert lines(ops.Pow(), "F32 0", "F32") == [
        "%0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<0xf32>",
        "%1 = stablehlo.power %arg0, %0 : tensor<0xf32>",
    ]
    assert lines(ops.Add(), "F64", "F64") == ["%0 = stablehlo.add %arg0, %arg1 : tensor<f64>"]


def test_a_real_scalar_beside_a_complex_tensor_is_converted() -> None:
    assert lines(ops.Multiply(), "C32 2", "F32") == [
        "%0 = stablehlo.convert %arg1 : (tensor<f32>) -> tensor<complex<f32>>",
        "%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<complex<f32>>) -> tensor<2xcomplex<f32>>",
        "%2 = stablehlo.multiply %arg0, %1 : tensor<2xcomplex<f32>>",
    ]
    assert (
        lines(ops.Divide(), "F64", "C64")[0] == "%0 = stablehlo.convert %arg0 : (tensor<f64>) -> tensor<complex<f64>>"
    )


def test_abs_and_conj_of_complex() -> None:
    assert lines(ops.Abs(), "C32 2") == ["%0 = stablehlo.abs %arg0 : (tensor<2xcomplex<f32>>) -> tensor<2xf32>"]
    assert lines(ops.Conj(), "C64 2") == [
        "%0 = stablehlo.imag %arg0 : (tensor<2xcomplex<f64>>) -> tensor<2xf64>",
        "%1 = stablehlo.negate %0 : tensor<2xf64>",
        "%2 = stablehlo.real %arg0 : (tensor<2xcomplex<f64>>) -> tensor<2xf64>",
        "%3 = stablehlo.complex %2, %1 : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xcomplex<f64>>",
    ]
    assert lines(ops.Conj(), "F64 2") == []


def test_sign_gives_plus_zero() -> None:
    assert lines(ops.Sign(), "F64 2") == [
        "%0 = stablehlo.sign %arg0 : tensor<2xf64>",
        "%1 = stablehlo.constant dense<0.0> : tensor<f64>",
        "%2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f64>) -> tensor<2xf64>",
        "%3 = stablehlo.compare EQ, %0, %2, FLOAT : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xi1>",
        "%4 = stablehlo.select %3, %2, %0 : tensor<2xi1>, tensor<2xf64>",
    ]
    assert lines(ops.Sign(), "I32 2") == ["%0 = stablehlo.sign %arg0 : tensor<2xi32>"]


@pytest.mark.parametrize(
    ("dtype", "element", "kind"),
    [("F32", "f32", "FLOAT"), ("I64", "i64", "SIGNED"), ("Bool", "i1", "UNSIGNED"), ("C64", "complex<f64>", "FLOAT")],
)
def test_compare(dtype: str, element: str, kind: str) -> None:
    types = f"(tensor<2x{element}>, tensor<2x{element}>) -> tensor<2xi1>"
    assert lines(ops.Compare(CompareDir.Eq), f"{dtype} 2", f"{dtype} 2") == [
        f"%0 = stablehlo.compare EQ, %arg0, %arg1, {kind} : {types}"
    ]


@pytest.mark.parametrize("direction", list(CompareDir))
def test_compare_directions(direction: CompareDir) -> None:
    assert f"compare {direction.value.upper()}," in lines(ops.Compare(direction), "F32", "F32")[0]


def test_select_and_clamp() -> None:
    assert lines(ops.Select(), "Bool 2", "F32 2", "F32 2") == [
        "%0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<2xi1>, tensor<2xf32>"
    ]
    # the engine's order is (input, lower, upper)
    assert lines(ops.Clamp(), "F64 2", "F64 2", "F64 2") == ["%0 = stablehlo.clamp %arg1, %arg0, %arg2 : tensor<2xf64>"]


def test_constant() -> None:
    assert lines(ops.Constant.of(2.0, DType.F64)) == ["%0 = stablehlo.constant dense<2.0> : tensor<f64>"]
    assert lines(ops.Constant(DType.Bool, b"\x07")) == ["%0 = stablehlo.constant dense<true> : tensor<i1>"]


def test_convert() -> None:
    assert lines(ops.Convert(DType.I32), "F64 2") == ["%0 = stablehlo.convert %arg0 : (tensor<2xf64>) -> tensor<2xi32>"]
    assert lines(ops.Convert(DType.C64), "C32") == [
        "%0 = stablehlo.convert %arg0 : (tensor<complex<f32>>) -> tensor<complex<f64>>"
    ]
    assert lines(ops.Convert(DType.F64), "C64") == ["%0 = stablehlo.real %arg0 : (tensor<complex<f64>>) -> tensor<f64>"]
    assert lines(ops.Convert(DType.I32), "C64")[1] == "%1 = stablehlo.convert %0 : (tensor<f64>) -> tensor<i32>"
    assert lines(ops.Convert(DType.Bool), "C64") == [
        "%0 = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f64>>",
        "%1 = stablehlo.compare NE, %arg0, %0, FLOAT : (tensor<complex<f64>>, tensor<complex<f64>>) -> tensor<i1>",
    ]


def test_transpose_and_broadcast() -> None:
    assert lines(ops.Transpose((1, 2, 0)), "F64 2 3 4") == [
        "%0 = stablehlo.transpose %arg0, dims = [1, 2, 0] : (tensor<2x3x4xf64>) -> tensor<3x4x2xf64>"
    ]
    assert lines(ops.BroadcastInDim((4, 3, 2), (2, 0)), "F32 2 1") == [
        "%0 = stablehlo.broadcast_in_dim %arg0, dims = [2, 0] : (tensor<2x1xf32>) -> tensor<4x3x2xf32>"
    ]


def test_reshape_reverses_reshapes_reverses() -> None:
    assert lines(ops.Reshape((3, 2)), "F64 2 3") == [
        "%0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>",
        "%1 = stablehlo.reshape %0 : (tensor<3x2xf64>) -> tensor<2x3xf64>",
        "%2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>",
    ]


@pytest.mark.parametrize(
    ("source", "target"),
    [((2, 3), (2, 1, 3)), ((1, 2, 1, 3), (2, 3)), ((), (1, 1)), ((1,), ()), ((2, 3), (2, 3)), ((2, 0), (0, 5, 3))],
)
def test_reshape_where_only_unit_axes_move_is_bare(source: tuple[int, ...], target: tuple[int, ...]) -> None:
    (line,) = lines(ops.Reshape(target), " ".join(["F64", *map(str, source)]))
    assert line.startswith("%0 = stablehlo.reshape %arg0 :")


def test_reshape_from_and_to_one_axis_transposes_once() -> None:
    assert [line.split()[2] for line in lines(ops.Reshape((6,)), "F64 2 3")] == [
        "stablehlo.transpose",
        "stablehlo.reshape",
    ]
    assert [line.split()[2] for line in lines(ops.Reshape((2, 3)), "F64 1 6")] == [
        "stablehlo.reshape",
        "stablehlo.transpose",
    ]


@pytest.mark.parametrize(
    ("op", "init", "body"),
    [
        (ops.ReduceSum((0, 2)), "0.0", "add"),
        (ops.ReduceProd((0, 2)), "1.0", "multiply"),
        (ops.ReduceMax((0, 2)), "0xFF800000", "maximum"),
        (ops.ReduceMin((2, 0)), "0x7F800000", "minimum"),
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

    assert init(ops.ReduceMax((0,)), "I32") == "-2147483648"
    assert init(ops.ReduceMin((0,)), "I64") == "9223372036854775807"
    assert [init(op((0,)), "Bool") for op in (ops.ReduceSum, ops.ReduceProd, ops.ReduceMax, ops.ReduceMin)] == [
        "false", "true", "false", "true",
    ]  # fmt: skip
    assert init(ops.ReduceSum((0,)), "C64") == "(0.0, 0.0)"


def test_a_reduction_over_no_axis_is_a_copy_for_every_dtype() -> None:
    for dtype in ENGINE_DTYPES:
        assert lines(ops.ReduceMax(()), f"{dtype} 2") == []


def test_dot_without_batch_needs_no_transpose() -> None:
    assert lines(ops.DotGeneral((1,), (0,), (), ()), "F64 2 3", "F64 3 4") == [
        "%0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : "
        "(tensor<2x3xf64>, tensor<3x4xf64>) -> tensor<2x4xf64>"
    ]


def test_batched_dot_moves_batch_to_the_end_even_if_all_extents_are_equal() -> None:
    assert lines(ops.DotGeneral((2,), (1,), (0,), (0,)), "F32 2 2 2", "F32 2 2 2") == [
        "%0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1], "
        "precision = [DEFAULT, DEFAULT] : (tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>",
        "%1 = stablehlo.transpose %0, dims = [1, 2, 0] : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>",
    ]
    two = lines(ops.DotGeneral((3,), (3,), (0, 1), (1, 0)), "F32 2 3 4 5", "F32 3 2 6 5")
    assert two[0].endswith("-> tensor<2x3x4x6xf32>")
    assert "dims = [2, 3, 0, 1]" in two[1]


def test_batch_only_dot_needs_no_transpose() -> None:
    (line,) = lines(ops.DotGeneral((1,), (1,), (0,), (0,)), "F32 2 3", "F32 2 3")
    assert line.endswith("-> tensor<2xf32>")
    (line,) = lines(ops.DotGeneral((), (), (), ()), "F32", "F32")
    assert "contracting_dims = [] x []" in line


def test_two_programs_in_one_module() -> None:
    body = Body()
    results = [
        result for op in (ops.Negate(), ops.Exp()) for result in lower_into(body, LoweringView.of(one_op(op, "F32 2")))
    ]
    assert body.module(results).splitlines()[1:5] == [
        "  func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {",
        "    %0 = stablehlo.negate %arg0 : tensor<2xf32>",
        "    %1 = stablehlo.exponential %arg1 : tensor<2xf32>",
        "    return %0, %1 : tensor<2xf32>, tensor<2xf32>",
    ]


def test_fingerprint() -> None:
    assert fingerprint("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert np.unique([fingerprint(t) for t in ("module {}", "module { }", "")]).size == 3
