"""Orders that StableHLO leaves open: of equal elements in a sort, and beside a NaN."""

from __future__ import annotations

import itertools

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

F32, I32 = np.float32, np.int32
LESS = "%r = stablehlo.compare LT, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>"
TOTAL = LESS.replace("FLOAT", "TOTALORDER")
#: By a number and what stands beside it, as JAX writes it.
CANONICAL = """%o = stablehlo.constant dense<0.0> : tensor<f32>
  %q = stablehlo.constant dense<0x7FC00000> : tensor<f32>
  %xa = stablehlo.compare EQ, %x, %o, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %xb = stablehlo.select %xa, %o, %x : tensor<i1>, tensor<f32>
  %xc = stablehlo.compare NE, %x, %x, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %xd = stablehlo.select %xc, %q, %xb : tensor<i1>, tensor<f32>
  %ya = stablehlo.compare EQ, %y, %o, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %yb = stablehlo.select %ya, %o, %y : tensor<i1>, tensor<f32>
  %yc = stablehlo.compare NE, %y, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %yd = stablehlo.select %yc, %q, %yb : tensor<i1>, tensor<f32>
  %l = stablehlo.compare LT, %xd, %yd, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %e = stablehlo.compare EQ, %xd, %yd, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %n = stablehlo.compare LT, %u, %v, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %w = stablehlo.and %e, %n : tensor<i1>
  %r = stablehlo.or %l, %w : tensor<i1>"""
#: Holds of no pair that it does not hold of the other way round, but is no order.
ODD = """%o = stablehlo.constant dense<1> : tensor<i32>
  %s = stablehlo.and %u, %o : tensor<i32>
  %t = stablehlo.and %v, %o : tensor<i32>
  %r = stablehlo.compare NE, %s, %t, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>"""


def sort(shape: str, lines: str, stable: bool, axis: int = 0) -> str:
    a, b = f"tensor<{shape}xf32>", f"tensor<{shape}xi32>"
    return f"""func.func @main(%a: {a}, %b: {b}) -> ({a}, {b}) {{
      %0:2 = "stablehlo.sort"(%a, %b) <{{dimension = {axis} : i64, is_stable = {str(stable).lower()}}}> ({{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>, %u: tensor<i32>, %v: tensor<i32>):
        {lines}
        stablehlo.return %r : tensor<i1>
      }}) : ({a}, {b}) -> ({a}, {b})
      return %0#0, %0#1 : {a}, {b}
    }}"""


def both(text: str, *arrays: Array) -> tuple[tuple[Array, ...], list[Enclosure]]:
    """What is computed, and what is permitted."""
    loaded = load(text, "m")
    inputs = loaded.inputs([column_major(a) for a in arrays])
    return NativeExecutor().run(Case.of(loaded.program, inputs)).outputs, enclose(loaded.program, inputs, XLA)


def permits(made: list[Enclosure], *values: Array) -> bool:
    return all(bool(e.contains(np.asarray(v)).all()) for e, v in zip(made, values, strict=True))


def test_equal_elements_of_a_sort_that_need_not_be_stable_are_in_any_order() -> None:
    keys, numbers = (np.arange(20) % 4).astype(F32), np.arange(20, dtype=I32)
    outputs, made = both(sort("20", LESS, False), keys, numbers)
    stable = np.argsort(keys, kind="stable")
    assert outputs[1].tolist() == stable.tolist()
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(20)
        order = order[np.argsort(keys[order], kind="stable")]
        assert permits(made, keys[order], order.astype(I32))
    assert not permits(made, keys[stable], np.roll(stable, 5).astype(I32))
    assert not permits(made, np.roll(keys[stable], 1), stable.astype(I32))
    assert made[0].decided.all()


def test_equal_elements_of_a_stable_sort_keep_their_order() -> None:
    keys, numbers = (np.arange(6) % 2).astype(F32), np.arange(6, dtype=I32)
    _, made = both(sort("6", LESS, True), keys, numbers)
    assert all(e.decided.all() for e in made)
    assert not permits(made, np.sort(keys), np.array([2, 0, 4, 1, 3, 5], I32))


def test_zeros_of_two_signs_are_equal_in_the_order_of_floats_alone() -> None:
    x, numbers = np.array([0.0, 7, -0.0, 7], F32), np.arange(4, dtype=I32)
    swapped = np.array([-0.0, 0.0, 7, 7], F32), np.array([2, 0, 3, 1], I32)
    assert permits(both(sort("4", LESS, False), x, numbers)[1], *swapped)
    assert not permits(both(sort("4", LESS, True), x, numbers)[1], *swapped)
    _, made = both(sort("4", TOTAL, False), x, numbers)
    assert made[0].decided.all()
    assert permits(made, *swapped)
    assert not permits(made, np.array([0.0, -0.0, 7, 7], F32), swapped[1])


def test_a_comparison_that_holds_of_equal_elements_keeps_no_order_of_them() -> None:
    x, numbers = np.array([1, 0, 1], F32), np.arange(3, dtype=I32)
    _, made = both(sort("3", LESS.replace("LT", "LE"), True), x, numbers)
    for places in ([1, 0, 2], [1, 2, 0]):
        assert permits(made, np.sort(x), np.array(places, I32))
    assert not permits(made, np.sort(x), np.array([0, 1, 2], I32))


def test_by_two_keys_there_are_no_equal_elements_but_zeros_of_two_signs() -> None:
    x, numbers = np.array([1, -0.0, 1, 0.0], F32), np.array([3, 1, 2, 1], I32)
    _, made = both(sort("4", CANONICAL, False), x, numbers)
    for zeros in ([-0.0, 0.0], [0.0, -0.0]):
        assert permits(made, np.array([*zeros, 1, 1], F32), np.array([1, 1, 2, 3], I32))
    assert not permits(made, np.array([0.0, -0.0, 1, 1], F32), np.array([1, 1, 3, 2], I32))


@pytest.mark.parametrize("stable", [True, False])
def test_beside_a_nan_the_order_of_floats_is_none(stable: bool) -> None:
    """In the line that has one; the other line is held to its order."""
    x = np.array([[5, 4, np.nan, 2, 1], [5, 4, 3, 2, 1]], F32)
    numbers = np.broadcast_to(np.arange(5, dtype=I32), (2, 5))
    _, made = both(sort("2x5", LESS, stable, 1), x, numbers)
    backward = np.arange(4, -1, -1)
    for order in itertools.permutations(range(5)):
        places = [list(order), backward.tolist()]
        assert permits(made, np.take_along_axis(x, np.array(places), 1), np.array(places, I32))
    assert not permits(made, np.array([[5, 4, 9, 2, 1], x[1, ::-1]], F32), np.array([backward, backward], I32))
    assert not permits(made, np.array([x[0], x[1]], F32), np.array([backward, backward], I32))
    assert not permits(made, np.array([x[0], x[1, ::-1]], F32), np.array([backward + 1, backward], I32))
    _, total = both(sort("2x5", CANONICAL, stable, 1), x, numbers)
    assert total[1].decided.all()
    assert not permits(total, x, numbers)


def test_a_comparator_that_is_no_order_asks_for_no_order() -> None:
    x, numbers = np.array([3, 2, 1], F32), np.array([1, 2, 3], I32)
    _, made = both(sort("3", ODD, True), x, numbers)
    for order in itertools.permutations(range(3)):
        assert permits(made, x[list(order)], numbers[list(order)])
    assert not permits(made, x + 1, numbers)


# --- reductions -------------------------------------------------------------------------------------------------------

GREATER = "%c = stablehlo.compare GT, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>"
FIRST = f"""{GREATER}
  %r = stablehlo.select %c, %x, %y : tensor<i1>, tensor<f32>
  %s = stablehlo.select %c, %u, %v : tensor<i1>, tensor<i32>"""
#: argmax as JAX writes it, by the second body as TensorFlow does.
OF_JAX = f"""{GREATER}
  %d = stablehlo.compare NE, %x, %x, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %e = stablehlo.or %c, %d : tensor<i1>
  %f = stablehlo.compare EQ, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %g = stablehlo.compare LT, %u, %v, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %h = stablehlo.and %f, %g : tensor<i1>
  %i = stablehlo.or %e, %h : tensor<i1>
  %r = stablehlo.select %e, %x, %y : tensor<i1>, tensor<f32>
  %s = stablehlo.select %i, %u, %v : tensor<i1>, tensor<i32>"""
OF_TENSORFLOW = f"""{GREATER.replace("GT", "GE")}
  %e = stablehlo.compare EQ, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %m = stablehlo.minimum %u, %v : tensor<i32>
  %n = stablehlo.select %c, %u, %v : tensor<i1>, tensor<i32>
  %r = stablehlo.select %c, %x, %y : tensor<i1>, tensor<f32>
  %s = stablehlo.select %e, %m, %n : tensor<i1>, tensor<i32>"""
LEAST = """%c = stablehlo.compare LT, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %r = stablehlo.minimum %x, %y : tensor<f32>
  %s = stablehlo.select %c, %u, %v : tensor<i1>, tensor<i32>"""


def fold(shape: str, lines: str, start: str = "0xFF800000", place: int = 0, *, window: int = 0) -> str:
    """A reduction of the last of two axes, or of windows along it."""
    rows, columns = (int(extent) for extent in shape.split("x"))
    made = f"{rows}x{columns - window + 1}" if window else f"{rows}"
    types = [f"tensor<{s}x{e}>" for s in (shape, made) for e in ("f32", "i32")]
    name = "reduce_window" if window else "reduce"
    attribute = f"window_dimensions = array<i64: 1, {window}>" if window else "dimensions = array<i64: 1>"
    return f"""func.func @main(%a: {types[0]}, %b: {types[1]}) -> ({types[2]}, {types[3]}) {{
      %p = stablehlo.constant dense<{start}> : tensor<f32>
      %q = stablehlo.constant dense<{place}> : tensor<i32>
      %0:2 = "stablehlo.{name}"(%a, %b, %p, %q) <{{{attribute}}}> ({{
      ^bb0(%x: tensor<f32>, %u: tensor<i32>, %y: tensor<f32>, %v: tensor<i32>):
        {lines}
        stablehlo.return %r, %s : tensor<f32>, tensor<i32>
      }}) : ({types[0]}, {types[1]}, tensor<f32>, tensor<i32>) -> ({types[2]}, {types[3]})
      return %0#0, %0#1 : {types[2]}, {types[3]}
    }}"""


NUMBERS = np.array([[0, 1, 2, 3], [0, 1, 2, 3]], I32)
BESIDE = np.array([[5, 3, np.nan, 1], [5, 3, 2, 1]], F32)


@pytest.mark.parametrize("window", [0, 4])
def test_what_a_comparison_picks_beside_a_nan_depends_on_the_tree(window: int) -> None:
    """From the left it is the 1, in halves the 5; in the line without one it is the 5."""
    _, made = both(fold("2x4", FIRST, window=window), BESIDE, NUMBERS)
    for value, place in ((5, 0), (1, 3), (np.nan, 2)):
        answer = [np.array([value, 5], F32), np.array([place, 0], I32)]
        assert permits(made, *(v.reshape(e.shape) for v, e in zip(answer, made, strict=True)))
    for value, other, place in ((7, 5, 0), (5, 3, 0), (5, 5, 1)):
        answer = [np.array([value, other], F32), np.array([0, place], I32)]
        assert not permits(made, *(v.reshape(e.shape) for v, e in zip(answer, made, strict=True)))


@pytest.mark.parametrize(
    ("lines", "start", "due"), [(FIRST, "0xFF800000", 0), (OF_TENSORFLOW, "0xFF800000", 0), (LEAST, "0x7F800000", 3)]
)
def test_what_a_comparison_picks_of_numbers_is_decided(lines: str, start: str, due: int) -> None:
    (values, places), made = both(fold("2x4", lines, start), np.array([[5, 3, 2, 1], [5, 2, 3, 1]], F32), NUMBERS)
    assert places.tolist() == [due, due]
    assert all(e.decided.all() for e in made)
    assert not permits(made, values, places[:1].repeat(2) ^ 1)


def test_argmax_of_jax_finds_the_first_nan_in_every_tree() -> None:
    (_, places), made = both(fold("2x4", OF_JAX), BESIDE, NUMBERS)
    assert places.tolist() == [2, 0]
    assert made[1].decided.all()
    _, other = both(fold("2x4", OF_TENSORFLOW), BESIDE, NUMBERS)
    assert other[1].decided.tolist() == [False, True]


def test_an_initial_value_may_stand_behind_the_elements() -> None:
    """Of equal ones the last is picked, which it is then."""
    _, made = both(fold("1x2", FIRST, "5.0", 9), np.array([[5, 5]], F32), NUMBERS[:1, :2])
    assert made[0].decided.all()
    for place in (1, 9):
        assert permits(made, np.array([5], F32), np.array([place], I32))
    assert not permits(made, np.array([5], F32), np.array([0], I32))


def test_a_body_that_picks_by_no_order_picks_any() -> None:
    lines = FIRST.replace("GT, %x, %y", "EQ, %x, %y")
    x = np.array([[5, 5, 2, 1]], F32)
    _, made = both(fold("1x4", lines), x, NUMBERS[:1])
    for place in range(4):
        assert permits(made, x[:, place], NUMBERS[0, [place]])
    assert not permits(made, np.array([6], F32), np.array([0], I32))


def test_an_initial_value_enters_a_sum_beside_another_result_as_often_as_one_alone() -> None:
    lines = """%r = stablehlo.maximum %x, %y : tensor<f32>
      %s = stablehlo.add %u, %v : tensor<i32>"""
    text = fold("1x2", lines, "0.0", 100).replace("xf32", "xi32").replace("tensor<f32>", "tensor<i32>")
    text = text.replace("stablehlo.maximum", "stablehlo.xor").replace("dense<0.0>", "dense<0>")
    x = np.array([[1, 2]], I32)
    _, made = both(text, x, x)
    for times in range(4):
        assert permits(made, np.array([3], I32), np.array([3 + 100 * times], I32))
    assert not permits(made, np.array([3], I32), np.array([-1], I32))
    assert not permits(made, np.array([2], I32), np.array([3], I32))


def test_a_body_that_is_not_known_to_be_associative_is_refused() -> None:
    lines = """%r = stablehlo.maximum %x, %y : tensor<f32>
      %d = stablehlo.add %u, %u : tensor<i32>
      %s = stablehlo.add %d, %v : tensor<i32>"""
    with pytest.raises(UnsupportedOp, match="need not be associative"):
        load(fold("1x4", lines))
    load(fold("1x1", lines))
