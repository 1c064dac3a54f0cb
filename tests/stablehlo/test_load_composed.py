"""Compositions hold what implementations give at limits, and say something wherever a function is regular."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracle.enclosure import IEEE, XLA, Interval, enclose
from tenferro_ref import ops
from tenferro_ref.autodiff import jvp, vjp
from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.loader import load
from tenferro_ref.tensor import same_bits
from tests.autodiff.products import run
from tests.libraries import module_or_skip

module_or_skip("jaxlib")

TAN = """func.func @main(%z: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %r = stablehlo.tan %z : tensor<4xcomplex<f32>>
  return %r : tensor<4xcomplex<f32>>
}"""


LOGISTIC = """func.func @main(%x: {0}) -> {0} {{
  %r = stablehlo.logistic %x : {0}
  return %r : {0}
}}"""


def test_the_tangent_of_a_complex_number_has_the_limits_of_c() -> None:
    z = np.array([complex(0, np.nan), complex(0, np.inf), complex(0, -np.inf), complex(1, 1e-30)], np.complex64)
    loaded = load(TAN)
    (made,) = enclose(loaded.program, loaded.inputs([z]), XLA)
    due = np.array([complex(0, np.nan), 1j, -1j, np.tan(np.float32(1))], np.complex64)
    assert made.contains(due).all()
    assert made.decided.all()
    assert not made.contains(np.full(4, 7 + 7j, np.complex64)).any()


def test_logistic_may_be_a_subnormal_where_the_exponential_of_the_negated_argument_overflows() -> None:
    code = LOGISTIC.format("tensor<5xf32>")
    x = np.array([-103.972069, -89.0, 0.0, 89.0, 16.5], np.float32)
    loaded = load(code)
    (made,) = enclose(loaded.program, loaded.inputs([x]), XLA)
    assert made.contains(
        np.array([2.0**-149, np.exp(np.float64(-89)), 0.5, 1.0, 1 - 2.0**-24], np.float32)
    ).all()  # rounded once
    assert made.contains(np.array([0.0, 0.0, 0.5, 1.0, 1 - 2.0**-23], np.float32)).all()  # 1 / (1 + inf)
    assert not made.contains(np.array([2.0**-140, 2.0**-126, 0.25, 0.9, 0.9], np.float32)).any()


def test_the_gradient_of_logistic_at_zero_is_a_quarter() -> None:
    code = LOGISTIC.format("tensor<3xf64>")
    loaded = load(code)
    x = np.array([0.0, 2.0, -2.0])
    forward = jvp(loaded.program).program
    *_, tangent = run(forward, [*loaded.inputs([x]), np.ones(3)])
    y = 1 / (1 + np.exp(-x))
    np.testing.assert_allclose(tangent, y * (1 - y), rtol=1e-14)


def test_logistic_of_a_narrow_float_is_rounded_in_steps_or_once() -> None:
    code = LOGISTIC.format("tensor<1xbf16>")
    loaded = load(code)
    (made,) = enclose(loaded.program, loaded.inputs([np.array([-5.0], DType.BF16.numpy)]), XLA)
    in_steps, once, neither = ([v] for v in (0.0067138671875, 0.006683349609375, 0.00665283203125))
    assert made.contains(np.array(in_steps, DType.BF16.numpy)).all()
    assert made.contains(np.array(once, DType.BF16.numpy)).all()  # 0.0066929 is the true value
    assert not made.contains(np.array(neither, DType.BF16.numpy)).any()


def test_a_chlo_op_that_must_be_decomposed_leaves_the_others_of_its_module_as_they_are() -> None:
    """The enclosure of the polynomial that a decomposition of erf is would refuse what other polynomials give."""
    module_or_skip("jaxlib")
    program = load("""
    func.func @main(%x: tensor<2xf32>, %z: tensor<1xcomplex<f32>>) -> (tensor<2xf32>, tensor<1xcomplex<f32>>, tensor<1xcomplex<f32>>) {
      %0 = chlo.acos %z : tensor<1xcomplex<f32>> -> tensor<1xcomplex<f32>>
      %1 = chlo.erf %x : tensor<2xf32> -> tensor<2xf32>
      %2 = chlo.tan %0 : tensor<1xcomplex<f32>> -> tensor<1xcomplex<f32>>
      return %1, %0, %2 : tensor<2xf32>, tensor<1xcomplex<f32>>, tensor<1xcomplex<f32>>
    }""").program
    assert [i.op.function for i in program.instructions if isinstance(i.op, ops.Special)] == ["erf"]
    z = np.array([0.25 + 0.5j], np.complex64)
    erf, acos, tan = run(program, [np.array([0, np.inf], np.float32), z])
    np.testing.assert_array_equal(erf, np.array([0, 1], np.float32))
    np.testing.assert_allclose(acos, np.arccos(z), rtol=1e-6)
    np.testing.assert_allclose(tan, np.tan(np.arccos(z)), rtol=1e-6)


def test_the_square_of_a_complex_number_is_that_of_chlo() -> None:
    """Its real part is a product, which is more precise than a difference of squares, and all executors compute it."""
    module_or_skip("jaxlib")
    loaded = load("""
    func.func @main(%z: tensor<1xcomplex<f32>>) -> tensor<1xcomplex<f32>> {
      %0 = chlo.square %z : tensor<1xcomplex<f32>> -> tensor<1xcomplex<f32>>
      return %0 : tensor<1xcomplex<f32>>
    }""")
    z = np.array([0.21700493 - 0.28332156j], np.complex64)
    re, im = z.real, z.imag
    right, naive = (re - im) * (re + im), re * re - im * im
    assert right != naive
    (made,) = run(loaded.program, [z])
    assert (made.real, made.imag) == (right, 2 * re * im)
    (enclosed,) = enclose(loaded.program, [z], XLA)
    assert not enclosed.contains((naive + 1j * made.imag).astype(np.complex64)).any()


@pytest.mark.parametrize("dtype", [d for d in DType if d.is_float and d.bits <= 8 and d is not DType.F8E8M0FNU])
def test_every_number_of_eight_bits_is_finite_or_not(dtype: DType) -> None:
    """Some formats have no infinity, some no NaN."""
    x = np.arange(2**dtype.bits, dtype=np.uint8).view(dtype.numpy)
    of, to = (f"tensor<{x.size}x{element}>" for element in (dtype.value.element, "i1"))
    loaded = load(f"""func.func @main(%x: {of}) -> {to} {{
      %r = stablehlo.is_finite %x : ({of}) -> {to}
      return %r : {to}
    }}""")
    (made,) = enclose(loaded.program, loaded.inputs([x]), XLA)
    np.testing.assert_array_equal(made.lo, np.isfinite(x.astype(np.float64)))
    np.testing.assert_array_equal(made.hi, made.lo)


def test_a_product_in_a_part_of_a_complex_number_may_go_unrounded_into_a_sum() -> None:
    """Also when the number is moved meanwhile; what no rounding explains is outside."""
    x, y = np.array([1.1, 1.7], np.float32), np.array([1.37, 1.43], np.float32)
    left = (x.astype(np.float64) * y - x * y).astype(np.float32)
    assert left.all()
    for parts, taken in (("%p, %x", "real"), ("%x, %p", "imag")):
        text = f"""func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>, %z: tensor<2xf32>) -> tensor<2xf32> {{
          %p = stablehlo.multiply %x, %y : tensor<2xf32>
          %c = stablehlo.complex {parts} : tensor<2xcomplex<f32>>
          %r = stablehlo.reverse %c, dims = [0] : tensor<2xcomplex<f32>>
          %t = stablehlo.{taken} %r : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
          %d = stablehlo.subtract %t, %z : tensor<2xf32>
          return %d : tensor<2xf32>
        }}"""
        loaded = load(text)
        (made,) = enclose(loaded.program, loaded.inputs([x, y, (x * y)[::-1].copy()]), XLA)
        assert made.contains(left[::-1]).all()
        assert made.contains(np.zeros(2, np.float32)).all()
        assert not made.contains(np.full(2, 1e-3, np.float32)).any()


def test_a_complex_number_has_the_parts_that_it_is_made_of_bit_for_bit() -> None:
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5], np.float32)
    re, im = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(values, values))
    text = """func.func @main(%x: tensor<36xf32>, %y: tensor<36xf32>) -> tensor<36xcomplex<f32>> {
      %c = stablehlo.complex %x, %y : tensor<36xcomplex<f32>>
      return %c : tensor<36xcomplex<f32>>
    }"""
    loaded = load(text)
    (made,) = run(loaded.program, [re, im])
    assert same_bits(made.real.copy(), re)
    assert same_bits(made.imag.copy(), im)


def test_the_tangent_of_a_complex_number_is_that_of_its_parts() -> None:
    text = """func.func @main(%x: tensor<2xf64>) -> tensor<2xcomplex<f64>> {
      %o = stablehlo.constant dense<3.0> : tensor<2xf64>
      %y = stablehlo.multiply %x, %o : tensor<2xf64>
      %c = stablehlo.complex %o, %y : tensor<2xcomplex<f64>>
      return %c : tensor<2xcomplex<f64>>
    }"""
    x, t, g = np.array([1.0, 2.0]), np.array([1.0, 10.0]), np.array([5 + 7j, 1 - 1j])
    loaded = load(text)
    program, inputs = loaded.program, loaded.inputs([x])
    np.testing.assert_array_equal(run(jvp(program).program, [*inputs, t])[-1], 3j * t)
    np.testing.assert_array_equal(run(vjp(program).program, [*inputs, g])[-1], 3 * g.imag)


WHOLE = {"floor": np.floor, "ceil": np.ceil, "round_nearest_even": np.rint}


def rounding(function: str, shape: str) -> str:
    return f"""func.func @main(%x: {shape}) -> {shape} {{
      %0 = stablehlo.exponential %x : {shape}
      %1 = stablehlo.{function} %0 : {shape}
      return %1 : {shape}
    }}"""


@pytest.mark.parametrize("function", ["round_nearest_even", "round_nearest_afz", "floor", "ceil"])
def test_a_computed_number_beside_a_whole_one_is_rounded_to_one_of_two(function: str) -> None:
    loaded = load(rounding(function, "tensor<2xf32>"))
    x = np.log(np.array([2, 3], np.float32))
    (made,) = enclose(loaded.program, loaded.inputs([x]), XLA)
    due = {"floor": [[2, 3], [1, 2]], "ceil": [[2, 3], [3, 4]]}.get(function, [[2, 3]])
    for values in ([2, 3], [1, 2], [3, 4], [1.37, 2.6], [2.5, 3.5]):
        assert made.contains(np.array(values, np.float32)).all() == (values in due)
    assert made.decided.all()


@pytest.mark.parametrize("function", WHOLE)
def test_whole_numbers_of_an_interval_are_those_of_what_is_in_it(function: str) -> None:
    rng = np.random.default_rng(0)
    lo, hi = np.sort(np.round(rng.uniform(-3, 3, (2, 400)), 1).astype(np.float32).astype(np.float64), 0)
    zero, never = (lo <= 0) & (hi >= 0), np.zeros(400, bool)
    program = load(rounding(function, "tensor<400xf32>")).program
    last = replace(program.instructions[1], input_slots=(0,))
    alone = replace(program, instructions=(last,))
    (made,) = enclose(alone, [Interval(DType.F32, lo, hi, never, zero, zero)], IEEE)
    seen = WHOLE[function](np.clip(np.linspace(lo, hi, 200), lo, hi)).astype(np.float32)
    for values in (seen.min(0), seen.max(0), seen[100]):
        assert made.contains(values).all()
    assert not made.contains(seen.min(0) - 1).any()
    assert not made.contains(seen.max(0) + 1).any()
    assert not made.contains(seen.min(0) + np.float32(0.5))[seen.max(0) - seen.min(0) < 2].any()


def test_halves_go_away_from_zero_or_to_the_even_number_and_keep_their_sign() -> None:
    x = np.array([0.5, 1.5, -0.5, -2.5, 0.49999997, -0.0, 8388609, np.inf, -0.3], np.float32)
    for function, due in (
        ("round_nearest_afz", [1, 2, -1, -3, 0.0, -0.0, 8388609, np.inf, -0.0]),
        ("round_nearest_even", [0, 2, -0.0, -2, 0.0, -0.0, 8388609, np.inf, -0.0]),
    ):
        text = rounding(function, "tensor<9xf32>").replace("exponential", "optimization_barrier")
        loaded = load(text)
        (made,) = run(loaded.program, [x])
        assert same_bits(made, np.array(due, np.float32))
        (of,) = enclose(loaded.program, [x], IEEE)
        assert of.contains(made).all()
        assert of.decided[np.isfinite(x)].all()
