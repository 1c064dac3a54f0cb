"""Contractions whose result has another element type than the operands."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from oracle.case import Case
from oracle.enclosure import XLA, Enclosure, enclose
from oracle.peers import NativeExecutor
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.stablehlo.loader import load
from tenferro_ref.tensor import Array, column_major
from tests.libraries import module_or_skip

module_or_skip("jaxlib")

F16, BF16, F32, I8, I32 = np.float16, ml_dtypes.bfloat16, np.float32, np.int8, np.int32


def dot(n: int, given: str, result: str, more: str = "") -> str:
    a, b, c = f"tensor<1x{n}x{given}>", f"tensor<{n}x1x{given}>", f"tensor<1x1x{result}>"
    return f"""func.func @main(%a: {a}, %b: {b}) -> {c} {{
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]{more} : ({a}, {b}) -> {c}
      return %0 : {c} }}"""


def convolution(n: int, given: str, result: str) -> str:
    a, b, c = f"tensor<1x{n}x1x{given}>", f"tensor<{n}x1x1x{given}>", f"tensor<1x1x1x{result}>"
    return f"""func.func @main(%a: {a}, %b: {b}) -> {c} {{
      %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{stride = [1]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({a}, {b}) -> {c}
      return %0 : {c} }}"""


def both(form: str, given: str, result: str, x: Array, y: Array, more: str = "") -> tuple[Array, Enclosure]:
    """What is computed of two vectors, and what is permitted."""
    if form == "dot":
        text, arrays = dot(x.size, given, result, more), [x[None, :], y[:, None]]
    else:
        text, arrays = convolution(x.size, given, result), [x[None, :, None], y[:, None, None]]
    loaded = load(text, "m")
    inputs = loaded.inputs([column_major(a) for a in arrays])
    (outputs,) = NativeExecutor().run(Case.of(loaded.program, inputs)).outputs
    return outputs.ravel(), enclose(loaded.program, inputs, XLA)[0]


@pytest.mark.parametrize("form", ["dot", "convolution"])
def test_to_a_narrower_float_operands_or_results_are_converted(form: str) -> None:
    x, y = np.array([3e5, 0], F32), np.array([1e-4, 1], F32)
    computed, made = both(form, "f32", "f16", x, y)
    assert computed == F16(30)
    shape = (1,) * (2 + (form == "convolution"))
    for permitted in (F16(30), F16(np.inf)):
        assert made.contains(np.full(shape, permitted)).all()
    for wrong in (F16(31), F16(29), F16(-30), F16(np.nan)):
        assert not made.contains(np.full(shape, wrong)).all()


@pytest.mark.parametrize("form", ["dot", "convolution"])
def test_to_a_wider_type_products_are_wide(form: str) -> None:
    shape = (1,) * (2 + (form == "convolution"))
    x = np.full(3, 100, I8)
    computed, made = both(form, "i8", "i32", x, x)
    assert computed == I32(30_000)
    assert not made.contains(np.full(shape, 48, I32)).all()  # which it is in eight bits
    odd = np.array([1.0078125], BF16)
    computed, made = both(form, "bf16", "f32", odd, odd)
    assert computed == F32(1.0078125**2)
    assert not made.contains(np.full(shape, 1.015625, F32)).all()


def test_integers_wrap_around_before_a_sum_as_after_it() -> None:
    x = np.array([70_000, 3], I32)
    computed, made = both("dot", "i32", "i8", x, x)
    due = np.array((70_000**2 + 9) & 0xFF, np.uint8).astype(I8)
    assert computed == due
    assert made.contains(np.full((1, 1), due)).all()
    assert made.decided.all()


def algorithm(precision: str, sums: str, products: int = 1) -> str:
    return (
        f", algorithm = <lhs_precision_type = {precision}, rhs_precision_type = {precision}, accumulation_type = {sums}, "
        f"lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = {products}, "
        "allow_imprecise_accumulation = false>"
    )


@pytest.mark.parametrize(("precision", "rounded"), [("bf16", 1.0), ("tf32", 1.0009765625)])
def test_an_algorithm_may_round_the_operands(precision: str, rounded: float) -> None:
    x = np.array([1 + 2**-10 + 2**-14], F32)
    _, made = both("dot", "f32", "f32", x, np.ones(1, F32), algorithm(precision, "f32"))
    for permitted in (x[0], F32(rounded)):
        assert made.contains(np.full((1, 1), permitted)).all()
    for wrong in (1.01, 0.99):
        assert not made.contains(np.full((1, 1), wrong, F32)).all()
    _, plain = both("dot", "f32", "f32", x, np.ones(1, F32))
    assert not plain.contains(np.full((1, 1), rounded, F32)).all()


def test_an_algorithm_may_add_up_in_a_narrower_type() -> None:
    _, made = both("dot", "f32", "f32", np.full(8, 1e4, F32), np.ones(8, F32), algorithm("f16", "f16"))
    for permitted in (8e4, np.inf):
        assert made.contains(np.full((1, 1), permitted, F32)).all()
    assert not made.contains(np.full((1, 1), -8e4, F32)).all()


def test_an_algorithm_of_several_products_is_refused() -> None:
    with pytest.raises(UnsupportedOp, match="components"):
        load(dot(1, "f32", "f32", algorithm("bf16", "f32", 3)), "m")


def test_a_convolution_of_nothing() -> None:
    a, b, c = "tensor<1x0x2xf32>", "tensor<3x2x4xf32>", "tensor<1x0x4xf32>"
    text = f"""func.func @main(%a: {a}, %b: {b}) -> {c} {{
      %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{stride = [1]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({a}, {b}) -> {c}
      return %0 : {c} }}"""
    loaded = load(text, "m")
    inputs = loaded.inputs([np.zeros((1, 0, 2), F32), column_major(np.ones((3, 2, 4), F32))])
    (output,) = NativeExecutor().run(Case.of(loaded.program, inputs)).outputs
    assert output.shape == (1, 0, 4)
