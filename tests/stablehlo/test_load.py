"""StableHLO in: every form, laws of reading and writing, exactness of what is composed, and every refusal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from io import BytesIO

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fuzz.generate.batches import generate
from tenferro_ref import ops
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.dtype import DType
from tenferro_ref.errors import (
    FormatError,
    LoweringError,
    MissingDependency,
    RankMismatch,
    TenferroError,
    Unsupported,
)
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.engines import reader
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import LoweringView
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.stablehlo.literals import type_text
from tenferro_ref.stablehlo.loader import Loaded, bindings, load, lower_loaded
from tenferro_ref.tensor import Array, same_bits
from tests.libraries import module_or_skip

jaxlib = module_or_skip("jaxlib")


def run(loaded: Loaded, *arguments: Array) -> list[Array]:
    return GraphExecutor(checking=True).eval_exec_ir(compile_std_to_exec(loaded.program), loaded.inputs(arguments))


def module(lines: str, arguments: Sequence[Array], *results: str) -> str:
    """A module of one function: `lines` with `%0`, `%1`, ... for arguments and `-> results` of values `%r0`, ..."""
    types = [type_text(DType.of(a), a.shape) for a in arguments]
    parameters = ", ".join(f"%arg{i}: {t}" for i, t in enumerate(types))
    names = ", ".join(f"%r{i}" for i in range(len(results)))
    return f"func.func @main({parameters}) -> ({', '.join(results)}) {{\n{lines}\nreturn {names} : {', '.join(results)}\n}}\n"


def apply(op: str, *arguments: Array, to: DType | None = None) -> Array:
    """The result of one elementwise op whose operands have one type."""
    given = type_text(DType.of(arguments[0]), arguments[0].shape)
    result = type_text(to or DType.of(arguments[0]), arguments[0].shape)
    names, types = ", ".join(f"%arg{i}" for i in range(len(arguments))), ", ".join([given] * len(arguments))
    (out,) = run(
        load(module(f'%r0 = "stablehlo.{op}"({names}) : ({types}) -> {result}', arguments, result)), *arguments
    )
    return out


# --- forms ------------------------------------------------------------------------------------------------------------

TEXT = """
func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<[1.0, 2.5]> : tensor<2xf32>
  %0 = stablehlo.add %arg0, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""


def forms() -> dict[str, str | bytes]:
    from jaxlib.mlir.dialects import stablehlo

    parsed = bindings.parse(TEXT, "x")
    bytecode = BytesIO()
    parsed.operation.write_bytecode(bytecode)
    portable = {v: stablehlo.serialize_portable_artifact_str(TEXT, v) for v in ("0.9.0", "1.0.0")}
    return {"text": TEXT, "utf-8": TEXT.encode(), "bytecode": bytecode.getvalue(), **portable}


@pytest.mark.parametrize("form", ["text", "utf-8", "bytecode", "0.9.0", "1.0.0"])
def test_every_form_gives_the_same_program(form: str) -> None:
    loaded, expected = load(forms()[form]), load(TEXT)
    assert loaded.program == expected.program
    assert loaded.program.policy == STABLEHLO
    assert [t.shape for t in loaded.arguments] == [(2,)]
    assert same_bits(loaded.bound[0], np.array([1, 2.5], np.float32))
    (out,) = run(loaded, np.array([1, 1], np.float32))
    assert out.tolist() == [2, 3.5]


def test_arrays_of_the_module_are_bound_once_and_splats_are_constants() -> None:
    text = module(
        """%a = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf64>
        %b = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf64>
        %c = stablehlo.constant dense<3.0> : tensor<2xf64>
        %unused = stablehlo.constant dense<[7.0, 8.0]> : tensor<2xf64>
        %i = stablehlo.iota dim = 0 : tensor<2xf64>
        %0 = stablehlo.add %a, %b : tensor<2xf64>
        %1 = stablehlo.add %0, %c : tensor<2xf64>
        %r0 = stablehlo.add %1, %i : tensor<2xf64>""",
        [],
        "tensor<2xf64>",
    )
    loaded = load(text)
    assert [a.tolist() for a in loaded.bound] == [[1, 2], [0, 1]]
    assert run(loaded)[0].tolist() == [5, 8]
    with pytest.raises(RankMismatch):
        loaded.inputs([np.zeros(2)])


def test_written_again_with_its_arrays_it_has_its_signature_back() -> None:
    text = module(
        """%z = stablehlo.constant dense<[(1.0, 0x7F800000), (0xFFC00001, -0.0)]> : tensor<2xcomplex<f32>>
        %p = stablehlo.constant dense<[[true, false, true]]> : tensor<1x3xi1>
        %r0 = stablehlo.add %z, %arg0 : tensor<2xcomplex<f32>>
        %r1 = stablehlo.reshape %p : (tensor<1x3xi1>) -> tensor<3xi1>""",
        [np.zeros(2, np.complex64)],
        "tensor<2xcomplex<f32>>",
        "tensor<3xi1>",
    )
    first = load(text)
    again = load(lower_loaded(first))
    assert again.program.input_types == first.program.input_types
    assert all(same_bits(a, b) for a, b in zip(first.bound, again.bound, strict=True))
    bits = first.bound[0].view(np.uint32).tolist()
    assert bits == [0x3F800000, 0x7F800000, 0xFFC00001, 0x80000000]


def test_a_large_complex_constant_is_read_from_its_hexadecimal_form() -> None:
    z = np.arange(300).astype(np.complex128) * (1 + 0.1j)
    loaded = load(
        module(
            f'%c = stablehlo.constant dense<"0x{z.tobytes().hex()}"> : tensor<300xcomplex<f64>>\n'
            "%r0 = stablehlo.negate %c : tensor<300xcomplex<f64>>",
            [],
            "tensor<300xcomplex<f64>>",
        )
    )
    assert same_bits(loaded.bound[0], z)


# --- laws -------------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(batch=st.integers(0, 10_000))
def test_what_is_emitted_is_read_as_the_same_computation(batch: int) -> None:
    for case in generate(5, batch, 4):
        if any(isinstance(i.op, ops.Extension) for i in case.program.instructions):
            continue  # its runtime and its lowering to standard ops round differently
        try:
            text = lower_to_stablehlo(LoweringView.of(case.program, case.shapes))
            expected = GraphExecutor().eval_exec_ir(compile_std_to_exec(case.program, ()), case.inputs)
        except TenferroError:
            continue  # it has no emission, or no value
        loaded = load(text)
        got = GraphExecutor().eval_exec_ir(compile_std_to_exec(loaded.program, ()), loaded.inputs(case.inputs))
        for a, b in zip(expected, got, strict=True):
            assert a.dtype == b.dtype
            if a.dtype.kind == "V":  # NumPy does not know a NaN of these floats
                a, b = a.astype(np.float64), b.astype(np.float64)
            assert np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"), text
            if a.dtype.kind == "f":
                assert np.array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)])), text


def test_the_transposes_around_a_reshape_cancel() -> None:
    x = np.arange(6.0).reshape(2, 3)
    lines = """%0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>
        %1 = stablehlo.reshape %0 : (tensor<3x2xf64>) -> tensor<2x3xf64>
        %r0 = stablehlo.transpose %1, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>"""
    loaded = load(module(lines, [x], "tensor<3x2xf64>"))
    assert not any(isinstance(i.op, ops.Transpose) for i in loaded.program.instructions)
    assert np.array_equal(run(loaded, x)[0], x.T.reshape(2, 3).T)


# --- what is composed is exact ----------------------------------------------------------------------------------------

floats = st.floats(width=64) | st.sampled_from([0.5, -0.5, 1.5, 2.5, -0.0, 2.0**52 + 1, -(2.0**53)])
lists = st.lists(floats, min_size=1, max_size=8).map(np.array)
int32 = st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3)
pairs = st.lists(st.tuples(int32, int32), min_size=1, max_size=8).map(lambda p: np.array(p, np.int32).T.copy())


@settings(max_examples=40, deadline=None)
@given(x=lists)
@example(np.array([-2.5, -0.5, -0.3, 0.49999999999999994, 1e308, np.inf, -np.inf, np.nan, 5e-324]))
def test_rounding(x: Array) -> None:
    with np.errstate(all="ignore"):
        away = np.where(np.abs(x - np.trunc(x)) >= 0.5, np.trunc(x) + np.copysign(1, x), np.trunc(x))
    expected = {"floor": np.floor(x), "ceil": np.ceil(x), "round_nearest_even": np.rint(x), "round_nearest_afz": away}
    for op, value in expected.items():
        got = apply(op, x)
        assert np.array_equal(got, value, equal_nan=True), op
        assert np.array_equal(np.signbit(got[~np.isnan(x)]), np.signbit(x[~np.isnan(x)])) or op in ("floor", "ceil")
        zero = got == 0
        assert np.array_equal(np.signbit(got[zero]), np.signbit(value[zero])), op


@settings(max_examples=40, deadline=None)
@given(xy=pairs)
@example(np.array([[1, -7, -(2**31), 5, -1], [31, 1, 31, 32, -1]], np.int32))
def test_bits_of_integers(xy: Array) -> None:
    for dtype in (np.int32, np.int64):
        x, y = xy.astype(dtype)
        assert np.array_equal(apply("and", x, y), x & y)
        assert np.array_equal(apply("or", x, y), x | y)
        assert np.array_equal(apply("xor", x, y), x ^ y)
        assert np.array_equal(apply("not", x), ~x)
        width = 8 * dtype().itemsize
        inside = (y >= 0) & (y < width)
        by = np.where(inside, y, 0).astype(dtype)
        unsigned = x.view(f"u{dtype().itemsize}")
        assert np.array_equal(apply("shift_left", x, y), np.where(inside, x << by, 0))
        assert np.array_equal(apply("shift_right_arithmetic", x, y), np.where(inside, x >> by, np.where(x < 0, -1, 0)))
        logical = (unsigned >> by.view(unsigned.dtype)).view(dtype)
        assert np.array_equal(apply("shift_right_logical", x, y), np.where(inside, logical, 0))
        assert apply("popcnt", x).tolist() == [int(v).bit_count() for v in unsigned]


def test_complex_numbers_have_no_remainder() -> None:
    text = body("%r = stablehlo.remainder %x, %x : tensor<4xcomplex<f64>>", *["tensor<4xcomplex<f64>>"] * 2)
    with pytest.raises(Unsupported, match="no total order"):
        load(text)


def test_float_remainder_is_exact() -> None:
    x, y = np.array([5.5, -5.5, -0.0, 1.0, 1e300, np.inf]), np.array([2.0, 2.0, 3.0, 0.0, 0.1, 1.0])
    with np.errstate(all="ignore"):
        assert np.array_equal(apply("remainder", x, y), np.fmod(x, y), equal_nan=True)


@settings(max_examples=40, deadline=None)
@given(xy=pairs)
@example(np.array([[7, -(2**31), -7, 5], [0, -1, 2, -3]], np.int32))
def test_integer_remainder_is_that_of_the_dividend(xy: Array) -> None:
    x, y = xy
    with np.errstate(all="ignore"):
        expected = np.where(y == 0, x, np.where(y == -1, 0, np.fmod(x, np.where(y == 0, 1, y))))
    assert np.array_equal(apply("remainder", x, y), expected)


@settings(max_examples=40, deadline=None)
@given(parts=st.lists(st.tuples(floats, floats), min_size=1, max_size=6))
@example([(-0.0, -0.0), (0.0, np.inf), (np.nan, -np.inf), (-np.inf, np.nan), (-0.0, 5e-324)])
def test_complex_numbers_and_their_parts(parts: list[tuple[float, float]]) -> None:
    re, im = np.array(parts).T.copy()
    z = apply("complex", re, im, to=DType.C64)
    assert np.array_equal(z.real, re, equal_nan=True)
    assert np.array_equal(z.imag, im, equal_nan=True)
    ordinary = ~(np.isnan(re) | np.isnan(im))
    assert np.array_equal(np.signbit(z.real[ordinary]), np.signbit(re[ordinary]))
    assert np.array_equal(np.signbit(z.imag[ordinary]), np.signbit(im[ordinary]))
    assert np.array_equal(apply("real", z, to=DType.F64), re, equal_nan=True)
    got = apply("imag", z, to=DType.F64)
    assert np.array_equal(got, im, equal_nan=True)
    assert np.array_equal(np.signbit(got[ordinary]), np.signbit(im[ordinary]))


@settings(max_examples=40, deadline=None)
@given(points=st.lists(st.tuples(floats, floats), min_size=1, max_size=6))
@example([(y, x) for y in (0.0, -0.0, np.inf, -np.inf, 1.0) for x in (0.0, -0.0, np.inf, -np.inf, -2.0, np.nan)])
def test_atan2(points: list[tuple[float, float]]) -> None:
    y, x = np.array(points).T.copy()
    got, expected = apply("atan2", y, x), np.arctan2(y, x)
    np.testing.assert_allclose(got, expected, rtol=4e-16, atol=0)
    real = ~np.isnan(expected)
    assert np.array_equal(np.signbit(got[real]), np.signbit(expected[real]))


def test_a_conjugate_is_recognised() -> None:
    z = np.array([1 + 2j, complex(np.inf, -0.0)])
    lines = """%a = stablehlo.real %arg0 : (tensor<2xcomplex<f64>>) -> tensor<2xf64>
        %b = stablehlo.imag %arg0 : (tensor<2xcomplex<f64>>) -> tensor<2xf64>
        %n = stablehlo.negate %b : tensor<2xf64>
        %r0 = stablehlo.complex %a, %n : tensor<2xcomplex<f64>>
        %r1 = stablehlo.complex %a, %b : tensor<2xcomplex<f64>>"""
    loaded = load(module(lines, [z], "tensor<2xcomplex<f64>>", "tensor<2xcomplex<f64>>"))
    assert [i.op.name for i in loaded.program.instructions] == ["Conj"]
    conjugate, same = run(loaded, z)
    assert same_bits(conjugate, z.conj())
    assert same_bits(same, z)


def test_a_body_is_mapped_over_arrays() -> None:
    x, y = np.array([[1.0, -2.0], [0.5, 4.0]]), np.array([[3.0, 0.0], [1.0, -1.0]])
    t = "tensor<2x2xf64>"
    lines = f"""%r0 = "stablehlo.map"(%arg0, %arg1) <{{dimensions = array<i64: 0, 1>}}> ({{
        ^bb0(%a: tensor<f64>, %b: tensor<f64>):
          %s = stablehlo.subtract %a, %b : tensor<f64>
          stablehlo.return %s : tensor<f64>
        }}) : ({t}, {t}) -> {t}"""
    assert same_bits(run(load(module(lines, [x, y], t)), x, y)[0], x - y)


OF_THE_REFERENCE = {
    "chlo.erf %arg0 : tensor<3xf32> -> tensor<3xf32>": "f32",
    "stablehlo.cbrt %arg0 : tensor<3xf32>": "f32",
    "stablehlo.atan2 %arg0, %arg0 : tensor<3xf32>": "f32",
    "stablehlo.reduce_precision %arg0, format = e5m3 : tensor<3xf32>": "f32",
    "stablehlo.bitcast_convert %arg0 : (tensor<3xf32>) -> tensor<3xi32>": "i32",
    "stablehlo.popcnt %arg1 : tensor<3xi32>": "i32",
    "stablehlo.shift_left %arg1, %arg1 : tensor<3xi32>": "i32",
    "stablehlo.floor %arg0 : tensor<3xf32>": "f32",
    "stablehlo.round_nearest_afz %arg0 : tensor<3xf32>": "f32",
    "stablehlo.complex %arg0, %arg0 : tensor<3xcomplex<f32>>": "complex<f32>",
    "stablehlo.imag %arg2 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>": "f32",
}


@pytest.mark.parametrize("operation", OF_THE_REFERENCE)
def test_operations_of_the_reference_alone_are_written_as_they_were_read(operation: str) -> None:
    arguments = [np.ones(3, np.float32), np.ones(3, np.int32), np.ones(3, np.complex64)]
    text = module(f"%r0 = {operation}", arguments, f"tensor<3x{OF_THE_REFERENCE[operation]}>")
    loaded = load(text)
    written = lower_loaded(loaded)
    assert operation.partition(" ")[0] in written
    assert load(written).program == loaded.program


# --- refusals ---------------------------------------------------------------------------------------------------------


def body(line: str, argument: str = "tensor<4xf64>", result: str = "tensor<4xf64>") -> str:
    return (
        f"module {{\n  func.func @main(%x: {argument}) -> {result} {{\n    {line}\n    return %r : {result}\n  }}\n}}\n"
    )


REFUSED = {
    "a dynamic extent": (body("%r = stablehlo.negate %x : tensor<?xf64>", *["tensor<?xf64>"] * 2), "m:2:3", "?"),
    "a collective": (body('%r = "stablehlo.all_reduce"(%x) ({\n^bb0(%a: tensor<f64>, %b: tensor<f64>):\n'
        '%0 = stablehlo.add %a, %b : tensor<f64>\nstablehlo.return %0 : tensor<f64>}) '
        '{replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf64>) -> tensor<4xf64>'), "m:3:10", "several devices"),
    "a loop without its inputs": (body("%r = stablehlo.while(%i = %x) : tensor<4xf64> cond {\n"
        "%z = stablehlo.slice %i [0:1] : (tensor<4xf64>) -> tensor<1xf64>\n"
        "%s = stablehlo.reshape %z : (tensor<1xf64>) -> tensor<f64>\n"
        "%c = stablehlo.compare LT, %s, %s : (tensor<f64>, tensor<f64>) -> tensor<i1>\nstablehlo.return %c : tensor<i1>\n"
        "} do {\nstablehlo.return %i : tensor<4xf64>\n}"), "m:3:10", "inputs that are not known"),
    "a custom call": (body('%r = stablehlo.custom_call @foo(%x) : (tensor<4xf64>) -> tensor<4xf64>'), "m:3:10", "'foo'"),
    "a function without end": (body("%r = call @main(%x) : (tensor<4xf64>) -> tensor<4xf64>"), "m:3:10", "recursive"),
    "a body that rounds": (body("%z = stablehlo.constant dense<0.0> : tensor<f64>\n"
        "%r = stablehlo.reduce(%x init: %z) across dimensions = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<f64>\n"
        "reducer(%a: tensor<f64>, %b: tensor<f64>) {\n%0 = stablehlo.subtract %a, %b : tensor<f64>\n"
        "stablehlo.return %0 : tensor<f64>\n}", result="tensor<f64>"), "m:4:", "rounds"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_names_the_operation_and_its_place(case: str) -> None:
    text, place, words = REFUSED[case]
    with pytest.raises(LoweringError) as caught:
        load(text, "m")
    assert caught.value.place.startswith(place)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("source", "where", "words"),
    [
        ("module {\n func.func", "m:2:", "@"),
        (body("%r = stablehlo.add %x, %y : tensor<4xf64>"), "m:3:28", "undeclared"),
        (body("%r = stablehlo.transpose %x, dims = [1] : (tensor<4xf64>) -> tensor<4xf64>"), "m:3:10", "permutation"),
        (
            body('%r = "foo.bar"(%x) : (tensor<4xf64>) -> tensor<4xf64>'),
            "m:3:19",
            "an unregistered dialect, one that is not known here",
        ),
        (
            body("%r = x", argument="!foo.t"),
            "m:2:",
            "type created with unregistered dialect, one that is not known here",
        ),
        (b"\xff\xfe\x00", "m", "UTF-8"),
        (b"ML\xefR\x06garbage\x00abc", "m", "bytecode"),
        ("", "m", "no function @main"),
        ("func.func @f() { return }\nfunc.func @g() { return }", "m", "['f', 'g']"),
    ],
)
def test_what_is_no_module_is_a_format_error(source: str | bytes, where: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        load(source, "m")
    assert caught.value.where.startswith(where)
    assert words in str(caught.value)
    assert "allow" not in str(caught.value)  # as MLIR advises for its own tools


def test_without_jaxlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jaxlib.mlir", None)
    bindings.mlir.cache_clear()
    try:
        with pytest.raises(MissingDependency, match=r"tenferro-ref\[jax\]"):
            load(TEXT)
    finally:
        bindings.mlir.cache_clear()


# --- truth values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "means"), [("add", np.any), ("or", np.any), ("multiply", np.all), ("and", np.all)])
@pytest.mark.parametrize("init", ["false", "true"])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_reductions_of_truth_values(name: str, means: Callable[..., Array], init: str, rows: int) -> None:
    """`add` is `or`, and `multiply` is `and`, of i1; the initial value is one more term."""
    x = np.asfortranarray(np.indices((rows, 2**rows))[1] >> np.arange(rows)[:, None] & 1, np.bool_)
    type_, result = f"tensor<{rows}x{2**rows}xi1>", f"tensor<{2**rows}xi1>"
    text = module(
        f"%c = stablehlo.constant dense<{init}> : tensor<i1>\n%r0 = stablehlo.reduce(%arg0 init: %c) applies stablehlo.{name} "
        f"across dimensions = [0] : ({type_}, tensor<i1>) -> {result}",
        [x],
        result,
    )
    (out,) = run(load(text), x)
    assert np.array_equal(out, means(np.vstack([x, np.full((1, 2**rows), init == "true")]), axis=0))


def test_a_defect_of_the_reader_is_not_laid_at_the_door_of_mlir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(reader._ASKED, "signature", lambda request: request["no such key"])
    answer = reader.read({"ask": "signature", "source": TEXT, "where": "x"})
    assert wire.unpack_error(answer["refusal"]).kind == "Internal"
