"""What findings are called."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fuzz.findings.known import DEFAULT_RULES, fits, load_known
from fuzz.findings.naming import chain, named, signature
from oracle.case import Case
from oracle.verdict import Answer, Comparison, Verdict
from tenferro_ref.program import parse
from tenferro_ref.stablehlo import Source

WRONG = Answer("pjrt:x@parity", Verdict.MISMATCH, Comparison(value_class="expected finite, got other finite"))


def scatter(dtype: str, op: str = "Scatter") -> Case:
    made = {
        "Scatter": '%3 = Scatter(%0, %1, %2) {"update_window_dims": [], "inserted_window_dims": [0],'
        ' "scatter_dims_to_operand_dims": [0], "index_vector_dim": 0} : F32[300]',
        "DynamicUpdateSlice": "%3 = DynamicUpdateSlice(%0, %2, %1) : F32[300]",
    }[op]
    update = "F32[]" if op == "Scatter" else "F32[1]"
    head = f'graph policy {{"dtypes": "stablehlo"}} (%0: F32[300], %1: {dtype}[1], %2: {update}) -> (%3) slots 4'
    program = parse(f"{head} {{\n  {made}\n}}\n")
    return Case(program, tuple(np.zeros(t.static_shape, t.dtype.numpy, order="F") for t in program.input_types))


@pytest.mark.parametrize("op", ["Scatter", "DynamicUpdateSlice"])
@pytest.mark.parametrize(("dtype", "suffix"), [("I32", ""), ("I64", ""), ("F32", ""), ("U8", "(U8)"), ("U32", "(U32)")])
def test_indices_of_a_type_that_the_engine_lacks_are_named(op: str, dtype: str, suffix: str) -> None:
    case = scatter(dtype, op)
    assert named(case.program, 0) == f"{op}{suffix}"
    assert signature(case, WRONG, "every lane").startswith(f"{op}{suffix} | F32 | expected finite")


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("F4E2M1FN", "Convert(F4E2M1FN)"), ("F8E4M3FN", "Convert(F8E4M3FN)"), ("F32", "Convert(F32)"), ("I4", "Convert")],
)
def test_a_conversion_of_a_float_to_an_integer_is_named(dtype: str, name: str) -> None:
    head = f'graph policy {{"dtypes": "stablehlo"}} (%0: {dtype}[]) -> (%1) slots 2'
    program = parse(f'{head} {{\n  %1 = Convert(%0) {{"to": "I32"}} : I32[]\n}}\n')
    assert named(program, 0) == name


@pytest.mark.parametrize(
    ("pattern", "dtype", "fitting"),
    [("Scatter", "I32", True), ("Scatter", "U8", True), ("Scatter(U8)", "U8", True), ("Scatter(U8)", "I32", False), ("Scatter(U8)", "I8", False)],
)  # fmt: skip
def test_a_rule_may_be_about_one_type_of_indices(pattern: str, dtype: str, fitting: bool) -> None:
    name = signature(scatter(dtype), WRONG, "every lane")
    assert fits(f"{pattern} | F32 | expected finite, got * | every lane", name) is fitting


@pytest.mark.parametrize(("dtype", "known"), [("I32", True), ("I8", True), ("F32", False), ("F64", False)])
@pytest.mark.parametrize("how", ["expected false, got true", "expected true, got false"])
def test_integers_that_wrap_are_told_from_a_nan_that_is_compared(dtype: str, known: bool, how: str) -> None:
    """The absolute value of the least integer is negative (0067); that of a NaN, which is no number, has another cause."""
    program = parse(
        f'graph policy {{"dtypes": "stablehlo"}} (%0: {dtype}[1], %1: {dtype}[1]) -> (%3) slots 4 {{\n'
        f'  %2 = Abs(%0) : {dtype}[1]\n  %3 = Compare(%2, %1) {{"dir": "Ge"}} : Bool[1]\n}}\n'
    )
    chain = " > ".join(named(program, i) for i in range(len(program.instructions)))
    rules = [rule for rule in load_known(DEFAULT_RULES) if rule.page.startswith("0067")]
    assert any(fits(s, f"{chain} | Bool | {how} | rewrite: algsimp") for r in rules for s in r.signatures) is known


@pytest.mark.parametrize(("wrong", "dtype"), [(None, "F32"), (0, "F32"), (1, "C32"), (7, "F32")])
def test_the_dtype_of_a_signature_is_that_of_the_wrong_output(wrong: int | None, dtype: str) -> None:
    """A stage of a decomposition may be beyond the outputs."""
    program = parse(
        "graph (%0: F32[], %1: C32[]) -> (%2, %3) slots 4 {\n  %2 = Abs(%1) : F32[]\n  %3 = Negate(%1) : C32[]\n}\n"
    )
    answer = Answer(
        "pjrt:x@parity", Verdict.MISMATCH, Comparison(worst_output=wrong, value_class="expected finite, got NaN")
    )
    case = Case(program, (np.zeros((), np.float32), np.zeros((), np.complex64)))
    assert (
        signature(case, answer, "every lane") == f"Abs(C32) > Negate | {dtype} | expected finite, got NaN | every lane"
    )


@pytest.mark.parametrize(("start", "suffix"), [("i8", "(I8)"), ("ui32", "(U32)"), ("i32", ""), ("i64", "")])
def test_starts_of_a_type_that_the_engine_lacks_are_named_in_a_module(start: str, suffix: str) -> None:
    text = f"""func.func @main(%x: tensor<9xi8>, %u: tensor<2xi8>, %i: tensor<{start}>) -> tensor<2xi8> {{
  %0 = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<9xi8>, tensor<2xi8>, tensor<{start}>) -> tensor<9xi8>
  %1 = "stablehlo.dynamic_slice"(%0, %i) <{{slice_sizes = array<i64: 2>}}> : (tensor<9xi8>, tensor<{start}>) -> tensor<2xi8>
  %2 = stablehlo.slice %1 [0:2] : (tensor<2xi8>) -> tensor<2xi8>
  return %2 : tensor<2xi8>
}}"""
    case = replace(scatter("I32"), source=Source(text, (), ()))
    assert chain(case) == [f"dynamic_update_slice{suffix}", f"dynamic_slice{suffix}", "slice"]


def test_floats_of_less_than_eight_bits_that_are_converted_are_named_in_a_module() -> None:
    text = """func.func @main(%x: tensor<9xf32>) -> tensor<9xi32> {
  %0 = stablehlo.convert %x : (tensor<9xf32>) -> tensor<9xf4E2M1FN>
  %1 = "stablehlo.convert"(%0) : (tensor<9xf4E2M1FN>) -> tensor<9xf64>
  %2 = stablehlo.convert %1 : (tensor<9xf64>) -> tensor<9xi32>
  return %2 : tensor<9xi32>
}"""
    case = replace(scatter("I32"), source=Source(text, (), ()))
    assert chain(case) == ["convert", "convert(F4E2M1FN)", "convert"]


def test_conversions_on_one_line_are_named_each_by_its_own_operand() -> None:
    text = (
        "{%1 = stablehlo.convert %0 : (tensor<f32>) -> tensor<f4E2M1FN> "
        '%2 = "stablehlo.convert"(%1) : (tensor<f4E2M1FN>) -> tensor<f32>}'
    )
    assert chain(replace(scatter("I32"), source=Source(text, (), ()))) == ["convert", "convert(F4E2M1FN)"]
