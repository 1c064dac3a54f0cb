"""Bodies of reductions, sorts and scatters: functions that they call, and what they have beside operations on scalars."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.case import Case
from oracle.enclosure import XLA, enclose
from oracle.peers import NativeExecutor
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.isolation.engines.reader import evaluate
from tenferro_ref.stablehlo.loader import load
from tenferro_ref.tensor import Array
from tests.libraries import module_or_skip

module_or_skip("jaxlib")

CALLED = """
func.func private @less(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func private @endless(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i1> {
  %0 = func.call @endless(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %0 : tensor<i1>
}"""


def sorting(lines: str) -> str:
    return f"""func.func @main(%x: tensor<5xi32>) -> tensor<5xi32> {{
      %r = "stablehlo.sort"(%x) <{{dimension = 0 : i64, is_stable = true}}> ({{
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        {lines}
        stablehlo.return %c : tensor<i1>
      }}) : (tensor<5xi32>) -> tensor<5xi32>
      return %r : tensor<5xi32>
    }}{CALLED}"""


def run(text: str, *arrays: Array) -> Array:
    loaded = load(text, "m", evaluate=evaluate)
    (result,) = NativeExecutor().run(Case.of(loaded.program, loaded.inputs(arrays))).outputs
    return result


LESS = "%c = stablehlo.compare LT, %d, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>"


@pytest.mark.parametrize(
    "lines",
    [
        "%c = func.call @less(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        f"%d = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<i32>) -> tensor<i32>\n{LESS}",
        f"%d = stablehlo.reshape %a : (tensor<i32>) -> tensor<i32>\n{LESS}",
    ],
)
def test_a_comparator_may_call_a_function_and_move_a_scalar(lines: str) -> None:
    x = np.array([3, -1, 7, 0, 3], np.int32)
    assert run(sorting(lines), x).tolist() == sorted(x.tolist())


def test_a_sum_that_a_body_calls_is_a_sum() -> None:
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<f32> {{
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %r = stablehlo.reduce(%x init: %z) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      reducer(%a: tensor<f32>, %b: tensor<f32>) {{
        %s = func.call @sum(%b, %a) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}
      return %r : tensor<f32>
    }}{CALLED}"""
    assert [i.op.name for i in load(text).program.instructions] == ["ReduceSum"]
    assert run(text, np.arange(4, dtype=np.float32)) == 6


LARGEST = """func.func @main(%x: tensor<5xcomplex<f32>>) -> tensor<complex<f32>> {
  %i = stablehlo.constant dense<(0xFF800000, 0.0)> : tensor<complex<f32>>
  %r = stablehlo.reduce(%x init: %i) across dimensions = [0] : (tensor<5xcomplex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
  reducer(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>) {
    %0 = stablehlo.KEY %a : (tensor<complex<f32>>) -> tensor<f32>
    %1 = stablehlo.KEY %b : (tensor<complex<f32>>) -> tensor<f32>
    %2 = stablehlo.imag %a : (tensor<complex<f32>>) -> tensor<f32>
    %3 = stablehlo.imag %b : (tensor<complex<f32>>) -> tensor<f32>
    %equal = stablehlo.compare EQ, %0, %1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %greater = stablehlo.compare GT, %0, %1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %then = stablehlo.compare GT, %2, %3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %which = stablehlo.select %equal, %then, %greater : tensor<i1>, tensor<i1>
    %taken = stablehlo.select %which, %a, %b : tensor<i1>, tensor<complex<f32>>
    stablehlo.return %taken : tensor<complex<f32>>
  }
  return %r : tensor<complex<f32>>
}"""


def test_the_largest_complex_number_is_that_of_its_parts_in_turn() -> None:
    """As `jnp.max` writes it; a modulus is rounded, and which of two close ones is the larger depends on how."""
    x = np.array([1 + 5j, 3 - 2j, -4 + 9j, 3 + 1j, 2 + 8j], np.complex64)
    assert run(LARGEST.replace("KEY", "real"), x) == 3 + 1j
    with pytest.raises(UnsupportedOp, match="its body rounds"):
        load(LARGEST.replace("KEY", "abs"))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("%d = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<i32>) -> tensor<3xi32>\n"
         "%s = stablehlo.slice %d [0:1] : (tensor<3xi32>) -> tensor<1xi32>\n"
         "%e = stablehlo.reshape %s : (tensor<1xi32>) -> tensor<i32>\n"
         "%c = stablehlo.compare LT, %e, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>", "broadcast_in_dim"),
        ("%d = stablehlo.dot_general %a, %b, contracting_dims = [] x [] : (tensor<i32>, tensor<i32>) -> tensor<i32>\n"
         + LESS, "dot_general"),
        ("%c = func.call @endless(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i1>", "recursive"),
    ],
)  # fmt: skip
def test_a_body_that_is_about_more_than_scalars_is_refused_with_its_place(lines: str, words: str) -> None:
    with pytest.raises(UnsupportedOp, match=words) as caught:
        load(sorting(lines), "m")
    assert caught.value.place.startswith("m:2:")


# --- initial values that are not neutral ------------------------------------------------------------------------------


def permits(text: str, arrays: list[Array], value: list[float]) -> bool:
    loaded = load(text, evaluate=evaluate)
    (made,) = enclose(loaded.program, loaded.inputs(arrays), XLA)
    dtype = loaded.program.output_types[0].dtype.numpy
    return bool(np.all(made.contains(np.array(value).astype(dtype).reshape(made.shape))))


REDUCE = """func.func @main(%x: tensor<2x1x{0}>) -> tensor<{2}x{0}> {{
  %i = stablehlo.constant dense<{3}> : tensor<{0}>
  %r = stablehlo.reduce(%x init: %i) applies stablehlo.{1} across dimensions = {4} : (tensor<2x1x{0}>, tensor<{0}>) -> tensor<{2}x{0}>
  return %r : tensor<{2}x{0}>
}}"""


@pytest.mark.parametrize(("shape", "axes"), [("2x1", "[]"), ("2", "[1]")])
@pytest.mark.parametrize("element", ["i32", "f32", "i8"])
@pytest.mark.parametrize(
    ("body", "with_it"), [("add", [6, 7]), ("multiply", [5, 10]), ("maximum", [5, 5]), ("minimum", [1, 2])]
)
def test_an_initial_value_may_be_left_out_where_there_is_an_element(
    body: str, with_it: list[float], element: str, shape: str, axes: str
) -> None:
    x = np.array([[1], [2]], {"i32": np.int32, "f32": np.float32, "i8": np.int8}[element])
    text = REDUCE.format(element, body, shape, "5.0" if element == "f32" else "5", axes)
    assert permits(text, [x], [1, 2])
    assert permits(text, [x], with_it)
    assert not permits(text, [x], [0, 120])
    assert run(text, x).ravel().tolist() == with_it


@pytest.mark.parametrize(("element", "dtype"), [("i32", np.int32), ("f32", np.float32)])
def test_the_padding_of_a_window_may_count_or_not(element: str, dtype: type) -> None:
    """Windows of two beside the edge: one with a padding and an element, one with two elements, one with padding alone."""
    start, type_ = "3.0" if element == "f32" else "3", f"tensor<{{}}x{element}>"
    text = f"""func.func @main(%x: {type_.format(2)}) -> {type_.format(4)} {{
      %i = stablehlo.constant dense<{start}> : tensor<{element}>
      %r = "stablehlo.reduce_window"(%x, %i) <{{window_dimensions = array<i64: 2>, padding = dense<[[1, 2]]> : tensor<1x2xi64>}}> ({{
      ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
        %s = stablehlo.add %a, %b : tensor<{element}>
        stablehlo.return %s : tensor<{element}>
      }}) : ({type_.format(2)}, tensor<{element}>) -> {type_.format(4)}
      return %r : {type_.format(4)}
    }}"""
    x = np.array([10, 20], dtype)
    for ways in ([10, 30, 20, 3], [13, 33, 23, 3], [16, 33, 26, 9]):
        assert permits(text, [x], ways)
    assert not permits(text, [x], [10, 30, 20, 0])
    assert not permits(text, [x], [9, 30, 20, 3])
    assert run(text, x).tolist() == [16, 33, 26, 9]


@pytest.mark.parametrize("start", [1.0, 1e-3, 0.0, -0.0])
def test_beside_a_padding_that_does_not_count_minus_zero_stays(start: float) -> None:
    text = f"""func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {{
      %i = stablehlo.constant dense<{start!r}> : tensor<f32>
      %r = "stablehlo.reduce_window"(%x, %i) <{{window_dimensions = array<i64: 2>, padding = dense<[[2, 0]]> : tensor<1x2xi64>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : (tensor<2xf32>, tensor<f32>) -> tensor<3xf32>
      return %r : tensor<3xf32>
    }}"""
    x = np.array([-0.0, 1.0], np.float32)
    assert permits(text, [x], [start, -0.0, 1])
    assert permits(text, [x], [start, start, 1])
    assert not permits(text, [x], [start, 4, 1])
    assert np.signbit(start) or not permits(text, [x], [-0.0, start, 1])  # where there is padding alone


def test_a_product_over_padding_may_begin_with_its_initial_value_once() -> None:
    """A window of 1 and a padding of -1/2: -1/2 where that is all that counts, 1/4 where an initial value does besides."""
    text = """func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
      %i = stablehlo.constant dense<-0.5> : tensor<f32>
      %r = "stablehlo.reduce_window"(%x, %i) <{window_dimensions = array<i64: 2>, padding = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.multiply %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
      return %r : tensor<1xf32>
    }"""
    x = np.array([1], np.float32)
    for way in (1, -0.5, 0.25, -0.125):
        assert permits(text, [x], [way])
    assert not permits(text, [x], [-1])
    assert run(text, x).tolist() == [0.25]


def pooled(elements: int, windows: int, attributes: str, start: str, body: str = "add") -> str:
    """A `select_and_scatter` of `GE` along one axis."""
    x, s = (f"tensor<{n}xf32>" for n in (elements, windows))
    return f"""func.func @main(%x: {x}, %s: {s}) -> {x} {{
      %i = stablehlo.constant dense<{start}> : tensor<f32>
      %r = "stablehlo.select_and_scatter"(%x, %s, %i) <{{{attributes}}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }}, {{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.{body} %a, %b : tensor<f32>
        stablehlo.return %c : tensor<f32>
      }}) : ({x}, {s}, tensor<f32>) -> {x}
      return %r : {x}
    }}"""


def test_of_an_element_that_no_window_selects_there_is_the_initial_value() -> None:
    text = pooled(3, 2, "window_dimensions = array<i64: 2>", "5.0")
    arrays = [np.array([1, 9, 2], np.float32), np.array([10, 20], np.float32)]
    for middle in (30, 35, 45):  # not at all, once, and once more than there are updates
        assert permits(text, arrays, [5, middle, 5])
    assert not permits(text, arrays, [0, 35, 5])


def test_which_element_a_window_with_a_nan_selects_is_left_open() -> None:
    """[1, NaN, 0] of `GE`: compared from the left it is the 0, from the right the 1. Beside it a window that all orders agree on."""
    attributes = "window_dimensions = array<i64: 3>, window_strides = array<i64: 3>"
    text = pooled(6, 2, attributes, "0.0")
    arrays = [np.array([1, np.nan, 0, np.nan, 2, 1], np.float32), np.array([10, 20], np.float32)]
    assert permits(text, arrays, [10, 0, 0, 0, 20, 0])
    assert permits(text, arrays, [0, 0, 10, 0, 20, 0])
    assert not permits(text, arrays, [0, 0, 10, 0, 0, 20])
    assert run(text, *arrays).tolist() == [0, 0, 10, 0, 20, 0]


@pytest.mark.parametrize(
    ("body", "start", "due"), [("multiply", "1.0", [-10, 1, -20]), ("maximum", "-100.0", [-10, -100, -20])]
)
def test_what_is_selected_may_be_multiplied_or_compared(body: str, start: str, due: list[float]) -> None:
    text = pooled(3, 2, "window_dimensions = array<i64: 2>", start, body)
    assert run(text, np.array([9, 1, 2], np.float32), np.array([-10, -20], np.float32)).tolist() == due


def test_indices_that_are_declared_unique_and_are_not_have_no_defined_result() -> None:
    text = """func.func @main(%x: tensor<3xf32>, %u: tensor<2xf32>) -> tensor<3xf32> {{
      %at = stablehlo.constant dense<[[{0}], [1]]> : tensor<2x1xi32>
      %r = "stablehlo.scatter"(%x, %at, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
          scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        stablehlo.return %b : tensor<f32>
      }}) : (tensor<3xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<3xf32>
      return %r : tensor<3xf32>
    }}"""
    x, updates = np.arange(3, dtype=np.float32), np.array([10, 20], np.float32)
    assert run(text.format(2), x, updates).tolist() == [0, 20, 10]
    with pytest.raises(UnsupportedOp, match="unique_indices rules out"):
        load(text.format(1), evaluate=evaluate)


@pytest.mark.parametrize("body", ["add", "maximum"])
def test_a_window_of_a_scatter_that_is_partly_outside_has_no_one_meaning(body: str) -> None:
    """StableHLO's specification skips the elements that are outside, XLA the whole window (finding 0022)."""
    text = f"""func.func @main(%x: tensor<4xf32>, %i: tensor<1x1xi64>, %u: tensor<1x2xf32>) -> tensor<4xf32> {{
      %r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.{body} %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : (tensor<4xf32>, tensor<1x1xi64>, tensor<1x2xf32>) -> tensor<4xf32>
      return %r : tensor<4xf32>
    }}"""
    x, u = np.arange(4, dtype=np.float32), np.full((1, 2), 9, np.float32, order="F")
    for start, partly in ((-2, False), (-1, True), (0, False), (2, False), (3, True), (4, False), (2**62, False)):
        inputs = (x, np.full((1, 1), start, np.int64, order="F"), u)
        if partly:
            with pytest.raises(UnsupportedOp, match="partly outside"):
                load(text, inputs=inputs, evaluate=evaluate)
            continue
        loaded = load(text, inputs=inputs, evaluate=evaluate)
        (result,) = NativeExecutor().run(Case.of(loaded.program, loaded.inputs(inputs))).outputs
        due = x.copy()
        if 0 <= start <= 2:
            due[start : start + 2] = 9 if body == "maximum" else due[start : start + 2] + 9
        np.testing.assert_array_equal(result, due)


# --- the order in which a body is applied -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "lines", "words"),
    [
        ("i32", "%c = stablehlo.subtract %a, %b : tensor<i32>", "stablehlo.subtract"),
        (
            "f32",
            "%d = stablehlo.maximum %a, %b : tensor<f32>\n%c = stablehlo.negate %d : tensor<f32>",
            "stablehlo.negate",
        ),
        ("f32", "%d = stablehlo.multiply %a, %b : tensor<f32>\n%c = stablehlo.add %d, %a : tensor<f32>", "rounds"),
        ("i32", "%c = stablehlo.xor %a, %b : tensor<i32>", ""),
    ],
)
def test_a_body_that_tells_left_from_right_has_no_one_meaning(dtype: str, lines: str, words: str) -> None:
    text = f"""func.func @main(%x: tensor<4x{dtype}>, %z: tensor<{dtype}>) -> tensor<{dtype}> {{
      %r = stablehlo.reduce(%x init: %z) across dimensions = [0] : (tensor<4x{dtype}>, tensor<{dtype}>) -> tensor<{dtype}>
      reducer(%a: tensor<{dtype}>, %b: tensor<{dtype}>) {{
        {lines}
        stablehlo.return %c : tensor<{dtype}>
      }}
      return %r : tensor<{dtype}>
    }}"""
    if not words:
        assert run(text, np.array([1, 2, 4, 8], np.int32), np.array(0, np.int32)) == 15
        return
    with pytest.raises(UnsupportedOp, match=words):
        load(text, "m")


SCALED = """func.func @main(%x: tensor<24xf32>) -> tensor<24xf32> {{
  %c = stablehlo.constant dense<3.0> : tensor<24xf32>
  %d = stablehlo.constant dense<7.3> : tensor<24xf32>
  %v = stablehlo.multiply %x, %c : tensor<24xf32>
  {steps}
  %r = stablehlo.multiply %w, %d : tensor<24xf32>
  return %r : tensor<24xf32>
}}"""


@pytest.mark.parametrize(
    "steps",
    [
        """%b = stablehlo.bitcast_convert %v : (tensor<24xf32>) -> tensor<24x2xi16>
        %w = stablehlo.bitcast_convert %b : (tensor<24x2xi16>) -> tensor<24xf32>""",
        """%p = stablehlo.reshape %v : (tensor<24xf32>) -> tensor<12x2xf32>
        %b = stablehlo.bitcast_convert %p : (tensor<12x2xf32>) -> tensor<12xi64>
        %q = stablehlo.bitcast_convert %b : (tensor<12xi64>) -> tensor<12x2xf32>
        %w = stablehlo.reshape %q : (tensor<12x2xf32>) -> tensor<24xf32>""",
        """%s = stablehlo.constant dense<24> : tensor<1xi32>
        %w = stablehlo.dynamic_broadcast_in_dim %v, %s, dims = [0] : (tensor<24xf32>, tensor<1xi32>) -> tensor<24xf32>""",
        """%i = stablehlo.constant dense<-0.0> : tensor<f32>
        %p = stablehlo.reshape %v : (tensor<24xf32>) -> tensor<24x1xf32>
        %w = stablehlo.reduce(%p init: %i) applies stablehlo.add across dimensions = [1] : (tensor<24x1xf32>, tensor<f32>) -> tensor<24xf32>""",
        """%i = stablehlo.constant dense<-500.0> : tensor<f32>
        %p = stablehlo.reshape %v : (tensor<24xf32>) -> tensor<24x1xf32>
        %w = stablehlo.reduce(%p init: %i) applies stablehlo.maximum across dimensions = [1] : (tensor<24x1xf32>, tensor<f32>) -> tensor<24xf32>""",
    ],
    ids=["bits in halves", "bits of two", "its own shape", "a sum of one", "the greatest of one"],
)
def test_what_gives_a_product_back_may_be_left_out_of_its_factors(steps: str) -> None:
    """`(x 3) 7.3` may be `x (3 7.3)`, which is another number for most x."""
    x = np.linspace(0.5, 1.5, 24, dtype=np.float32)
    gathered = x * (np.float32(3) * np.float32(7.3))
    assert permits(SCALED.format(steps=steps), [x], gathered.tolist())
    assert run(SCALED.format(steps=steps), x).tolist() != gathered.tolist()
