"""Steps to smaller modules, and the reduction that takes them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fuzz.findings.reduce_module import native_value, reduce_module
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.stablehlo import Source
from tenferro_ref.stablehlo.smaller import smaller
from tenferro_ref.tensor import Array
from tests.libraries import module_or_skip

module_or_skip("jaxlib")

BIG = """module {
  func.func @main(%a: tensor<6x4xf32>, %b: tensor<6x4xf32>, %n: tensor<3xi32>) -> (tensor<6x4xf32>, tensor<3xi32>, tensor<6x4xf32>) {
    %0 = call @f(%a) : (tensor<6x4xf32>) -> tensor<6x4xf32>
    %1 = stablehlo.add %0, %b : tensor<6x4xf32>
    %2 = stablehlo.atan2 %1, %b : tensor<6x4xf32>
    %3 = stablehlo.multiply %2, %1 : tensor<6x4xf32>
    %4 = stablehlo.add %n, %n : tensor<3xi32>
    %5 = stablehlo.sine %3 : tensor<6x4xf32>
    return %3, %4, %5 : tensor<6x4xf32>, tensor<3xi32>, tensor<6x4xf32>
  }
  func.func private @f(%a: tensor<6x4xf32>) -> tensor<6x4xf32> {
    %0 = stablehlo.exponential %a : tensor<6x4xf32>
    return %0 : tensor<6x4xf32>
  }
}
"""


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    with Reader() as made:
        yield made


def test_every_step_gives_a_module_that_is_read_and_smaller(reader: Reader) -> None:
    source = reader.source(BIG, "big")
    modules = reader.smaller(source)
    assert {m.step.partition(" ")[0] for m in modules} == {"result", "calls", "value", "operation", "extent"}
    for module in modules:
        smaller = reader.source(module.code, "smaller")
        assert len(smaller.arguments) == len(module.arguments)


JOINED = """module {
  func.func @main(%a: tensor<6xf32>, %b: tensor<f32>) -> tensor<f32> {
    %0 = "stablehlo.reduce"(%a, %b) <{dimensions = array<i64: 0>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %m = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.negate %0 : tensor<f32>
    return %1 : tensor<f32>
  }
}
"""


def test_the_last_elements_are_kept_where_the_first_do_not_show_it(reader: Reader) -> None:
    text = "func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> { return %a : tensor<2x3xf32> }"
    argument = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    for wrong in (0.0, 5.0):
        reduced = reduce_module(reader.source(text, "m"), (argument,), lambda _, a, w=wrong: w in a[0], reader)
        assert [a.tolist() for a in reduced.arguments] == [[[wrong]]]


def test_the_body_of_a_reduction_stays_as_it_is(reader: Reader) -> None:
    """One that gives its first operand, or a constant, depends on an order and on how often an initial value enters."""
    modules = [m.code for m in reader.smaller(reader.source(JOINED, "joined"))]
    assert any("negate" not in code for code in modules)
    assert all("maximum" in code for code in modules if "reduce" in code)


LOOP = """module {
  func.func @main(%a: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<4xf32> attributes {} cond {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %y = "stablehlo.if"(%p) ({
        %s = stablehlo.sine %x : tensor<4xf32>
        %t = stablehlo.atan2 %s, %x : tensor<4xf32>
        stablehlo.return %t : tensor<4xf32>
      }, {
        stablehlo.return %x : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      stablehlo.return %j, %y : tensor<i32>, tensor<4xf32>
    }
    return %0#1 : tensor<4xf32>
  }
}
"""


def test_loops_and_branches_are_taken_apart(reader: Reader) -> None:
    arguments = (np.ones(4, np.float32), np.array(True))
    reduced = reduce_module(reader.source(LOOP, "loop"), arguments, lambda source, _: source.has("atan2"), reader)
    assert {name for name, _ in reduced.source.ops} == {"atan2", "func.return"}


def test_a_loop_carries_no_more_than_it_must(reader: Reader) -> None:
    """The other values are as they begin, in the loop and after it."""
    text = """module {
  func.func @main(%a: tensor<4xf32>, %n: tensor<i32>) -> tensor<i32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:3 = stablehlo.while(%x = %a, %i = %zero, %y = %a) : tensor<4xf32>, tensor<i32>, tensor<4xf32> cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %s = stablehlo.sine %x : tensor<4xf32>
      stablehlo.return %s, %j, %x : tensor<4xf32>, tensor<i32>, tensor<4xf32>
    }
    return %0#1 : tensor<i32>
  }
}"""
    arguments = (np.ones(4, np.float32), np.array(3, np.int32))

    def shows(source: Source, arguments: tuple[Array, ...]) -> bool:
        try:
            return source.has("while") and list(native_value(reader)(source, arguments).flat) == [3]
        except UnsupportedOp:  # endless
            return False

    reduced = reduce_module(reader.source(text, "loop"), arguments, shows, reader)
    assert {name for name, _ in reduced.source.ops} == {"while", "compare", "add", "constant", "return", "func.return"}
    assert [str(t) for t in reduced.source.arguments] == ["I32[]"]


def test_a_step_that_makes_a_loop_endless_costs_little(reader: Reader) -> None:
    text = """func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.while(%i = %n) : tensor<i32> cond {
    %c = stablehlo.compare EQ, %i, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    stablehlo.return %i : tensor<i32>
  }
  return %0 : tensor<i32>
}"""
    with pytest.raises(UnsupportedOp, match="more than 16,384 operations"):
        native_value(reader)(reader.source(text, "endless"), (np.array(0, np.int32),))


def test_only_what_is_looked_for_is_left(reader: Reader) -> None:
    def shows(source: Source, arguments: tuple[Array, ...]) -> bool:
        return source.has("atan2") and all(
            a.shape == t.static_shape for a, t in zip(arguments, source.arguments, strict=True)
        )

    arguments = (np.ones((6, 4), np.float32), np.zeros((6, 4), np.float32), np.arange(3, dtype=np.int32))
    reduced = reduce_module(reader.source(BIG, "big"), arguments, shows, reader)
    assert {name for name, _ in reduced.source.ops} == {"atan2", "func.return"}
    assert all(t.static_shape == (1, 1) for t in (*reduced.source.arguments, *reduced.source.results))
    assert "calls inlined" in reduced.steps


def test_what_cannot_be_left_out_becomes_an_argument(reader: Reader) -> None:
    """Ones in its place, or its own operand, would not show it; its value, which is asked for, does."""
    sines = np.sin(np.full((6, 4), 0.5, np.float32))

    def shows(source: Source, arguments: tuple[Array, ...]) -> bool:
        shown = [a for a in arguments if a.flat[0] == sines[0, 0]]
        return source.has("atan2") and (source.has("sine") or len(shown) == 1)

    text = """module {
  func.func @main(%a: tensor<6x4xf32> {a.b = 1 : i32}, %b: tensor<6x4xf32>) -> tensor<6x4xf32> {
    %0 = stablehlo.sine %a : tensor<6x4xf32>
    %1 = stablehlo.atan2 %b, %0 : tensor<6x4xf32>
    return %1 : tensor<6x4xf32>
  }
}"""
    arguments = (np.full((6, 4), 0.5, np.float32), np.ones((6, 4), np.float32))
    asked = []

    def value_of(source: Source, arguments: tuple[Array, ...]) -> Array:
        asked.append({name for name, _ in source.ops})
        return sines

    reduced = reduce_module(reader.source(text, "sine"), arguments, shows, reader, value_of=value_of)
    assert {name for name, _ in reduced.source.ops} == {"atan2", "func.return"}
    assert reduced.arguments[-1].flat[0] == sines[0, 0]
    assert {"sine", "func.return"} in asked
    kept = reduce_module(reader.source(text, "sine"), arguments, shows, reader)
    assert kept.source.has("sine")


def test_a_module_without_what_is_looked_for_stays(reader: Reader) -> None:
    source = reader.source(BIG, "big")
    reduced = reduce_module(
        source,
        (np.ones((6, 4), np.float32), np.ones((6, 4), np.float32), np.arange(3, dtype=np.int32)),
        lambda source, arguments: False,
        reader,
        budget_seconds=5,
    )
    assert (reduced.source, reduced.steps) == (source, ())


@pytest.mark.parametrize(
    "element", ["i1", "i4", "ui8", "i64", "f4E2M1FN", "f8E5M2", "bf16", "f64", "complex<f32>", "complex<f64>"]
)
def test_a_result_of_any_type_is_left_out_for_a_constant(element: str) -> None:
    type_ = f"tensor<2x3x{element}>"
    code = f"""func.func @main(%a: {type_}) -> {type_} {{
  %0 = stablehlo.broadcast_in_dim %a, dims = [0, 1] : ({type_}) -> {type_}
  %1 = stablehlo.reshape %0 : ({type_}) -> {type_}
  return %1 : {type_}
}}"""
    steps = {step.step: step.code for step in smaller(code)}
    assert f": {type_}\n" in steps["operation 0 as a constant"].partition("stablehlo.constant dense<")[2]
    assert "extent 3 as 1" in steps, "the steps that come after it"
