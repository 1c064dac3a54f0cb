"""Narrow floats: accumulators, ranges, conversions."""

import numpy as np
import pytest

from oracle.enclosure import IEEE, MODELS, NUMPY, XLA, Enclosure, enclose
from oracle.enclosure.value import Interval
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import Unsupported
from tenferro_ref.narrow import narrowed
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import GraphBuilder
from tenferro_ref.runtime.kernels import run_kernel
from tenferro_ref.stablehlo.loader.composed import logistic

pytestmark = pytest.mark.once

DOT = ops.DotGeneral((0,), (0,), (), ())
#: With a square beyond twice the largest value.
LARGE = {
    DType.F16: 400.0,
    DType.F8E5M2: 448.0,
    DType.F8E4M3FN: 24.0,
    DType.F8E4M3B11FNUZ: 24.0,
    DType.F8E3M4: 6.0,
}


def run(make, *arrays, model=XLA) -> Enclosure:
    """The enclosure of the program that `make(builder, *inputs)` builds."""
    b = GraphBuilder(policy=STABLEHLO)
    result = make(b, *(b.input(DType.of(a), a.shape) for a in arrays))
    return enclose(b.build(result), arrays, model)[0]


def apply(op):
    return lambda b, *x: b.apply(op, *x)


def of(dtype: DType, values) -> np.ndarray:
    return np.asarray(narrowed(dtype, np.asarray(values, np.float64)))


def holds(e: Enclosure, value: float) -> bool:
    return bool(e.contains(of(e.dtype, np.full(e.shape, value))).all())


@pytest.mark.parametrize("dtype", LARGE, ids=str)
@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_products_that_overflow_in_a_narrow_format_cancel_in_the_accumulator(dtype, model):
    a = LARGE[dtype]
    e = run(apply(DOT), of(dtype, [a, a, 1]), of(dtype, [a, -a, 5]), model=model)
    assert holds(e, 5.0)
    assert holds(e, np.nan) == model.narrow_sums
    if not (model.narrow_sums and model.contract):  # with both, the first product may go unrounded into the second
        assert e.decided.all()
        assert not holds(e, 4.0)
    one_sign = run(apply(DOT), of(dtype, [a, 1, 1]), of(dtype, [a, 1, 5]), model=model)
    assert holds(one_sign, np.inf)
    assert model.excess or not holds(one_sign, 5.0)


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_a_product_that_is_lost_keeps_its_sign_beside_a_row_that_overflows(model):
    """Half of a negative subnormal is a tie, and rounded to -0; the zero beside it adds nothing."""
    rows, x = of(DType.BF16, [[0, 2], [0.5, 0]]), of(DType.BF16, [-(2.0**-133), 1.7014e38])
    e = run(apply(ops.DotGeneral((1,), (0,), (), ())), rows, x, model=model)
    assert e.contains(of(DType.BF16, [np.inf, -0.0])).all()
    assert not e.contains(of(DType.BF16, [1.0, 1e-38])).any()


def test_products_that_overflow_in_the_accumulator_do_in_the_result():
    x = of(DType.BF16, [3e38, 3e38, 1.0])
    made = {m.name: run(apply(DOT), x, of(DType.BF16, [3e38, -3e38, 5.0]), model=m) for m in (NUMPY, XLA)}
    assert holds(made["numpy"], 5.0)  # the reference adds in F64
    assert not holds(made["xla"], 5.0)
    assert all(holds(e, np.nan) for e in made.values())


@pytest.mark.parametrize("dtype", [DType.F8E4M3FN, DType.F8E4M3FNUZ, DType.F8E5M2FNUZ], ids=str)
def test_of_a_format_without_infinities_what_overflows_is_nan(dtype):
    most = float(dtype.finfo.max)
    e = run(apply(ops.Multiply()), of(dtype, [most, most, 2.0]), of(dtype, [2.0, -2.0, 2.0]))
    assert e.empty.tolist() == [True, True, False]
    # an unknown number, which may overflow
    never = np.zeros((), bool)
    unknown = Interval(dtype, np.asarray(most / 4), np.asarray(most / 2), never, never, never)
    b = GraphBuilder(policy=STABLEHLO)
    product = b.apply(ops.Multiply(), b.input(dtype, ()), b.input(dtype, ()))
    wide = enclose(b.build(product), [unknown, of(dtype, 4.0)], XLA)[0]
    assert wide.nan.all()
    assert wide.hi == most
    assert holds(wide, most)


@pytest.mark.parametrize("model", [IEEE, NUMPY, XLA], ids=lambda m: m.name)
def test_sums_of_many_terms_are_bounded_in_the_shortest_format(model):
    x = of(DType.F8E5M2, np.linspace(-1, 1, 24))
    for e in (run(apply(ops.ReduceSum((0,))), x, model=model), run(apply(DOT), x, x, model=model)):
        assert e.decided.all()
        assert e.hi - e.lo < 24 * 24 * 2.0**-3


@pytest.mark.parametrize("dtype", [DType.F8E5M2, DType.F8E4M3FN, DType.F8E3M4, DType.F4E2M1FN], ids=str)
def test_a_result_in_8_bits_is_converted_to_f16_unrounded(dtype):
    x, y = of(dtype, [3.0, -3.0, 1.5, 4.0]), of(dtype, [1.5, 0.5, 1.5, 4.0])
    before = (x.astype(np.float64) / y.astype(np.float64)).astype(np.float16)

    def converted(to):
        return lambda b, p, q: b.apply(ops.Convert(to), b.apply(ops.Divide(), p, q))

    e = run(converted(DType.F16), x, y)
    assert e.contains(before).all()
    after = run(converted(DType.F16), x, y, model=IEEE)
    assert after.contains(of(DType.F16, of(dtype, before).astype(np.float64))).all()
    rounded = run(converted(DType.F32), x, y)  # which goes on rounded
    assert (rounded.lo == rounded.hi)[x / y > 1].all()


@pytest.mark.parametrize("dtype", [DType.F8E4M3FN, DType.F4E2M1FN], ids=str)
def test_what_is_beyond_the_range_of_8_bits_may_be_a_number_in_f16(dtype):
    most = float(dtype.finfo.max)
    x, y = of(dtype, [most, 1.0]), of(dtype, [2.0, 2.0])
    e = run(lambda b, p, q: b.apply(ops.Convert(DType.F16), b.apply(ops.Multiply(), p, q)), x, y)
    assert e.contains(of(DType.F16, [2 * most, 2.0])).all()
    assert not e.contains(of(DType.F16, [most / 4, 0.5])).any()


def test_a_root_in_five_digits_may_be_rounded_to_f16_first():
    x = of(DType.F8E3M4, [0.96875])
    made = {m.name: run(apply(ops.Sqrt()), x, model=m) for m in (IEEE, NUMPY, XLA)}
    assert [holds(e, 1.0) for e in made.values()] == [False, False, True]
    assert all(holds(e, 0.96875) for e in made.values())


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_a_format_without_zero_has_its_least_value_for_what_is_smaller(model):
    x = np.float32([3e-39, 1e-40, 1.5, 0.0, -1.0, np.inf])
    e = run(apply(ops.Convert(DType.F8E8M0FNU)), x, model=model)
    assert e.lo[:2].tolist() == e.hi[:2].tolist() == [2.0**-127] * 2
    assert e.nan.tolist() == [model.flush] * 2 + [False] + [True] * 3  # flushed before that, to zero
    assert e.empty.tolist() == [False] * 3 + [True] * 3
    assert e.decided.all()
    (native,) = run_kernel(ops.Convert(DType.F8E8M0FNU), STABLEHLO, x)
    assert e.contains(native).all()


UNSIGNED = [DType.F8E4M3B11FNUZ, DType.F8E4M3FNUZ, DType.F8E5M2FNUZ]


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_a_format_without_negative_zero_gives_the_positive_one(dtype: DType) -> None:
    """What underflows in it, or was -0, is +0 for whoever converts it back."""

    def back(b, x):
        return b.apply(ops.Convert(DType.F32), b.apply(ops.Convert(dtype), x))

    made = run(back, np.array([-0.0, -1e-30, 0.0], np.float32), model=IEEE)
    assert isinstance(made, Interval)
    assert made.pos_zero.all()
    assert not made.neg_zero.any()


@pytest.mark.parametrize("value", [1.5, 3.0, -6.0, 12.0, 0.75, 2.0, 3.5, 2.5])
def test_between_two_powers_of_two_the_one_whose_exponent_is_even_is_nearest(value: float) -> None:
    """A format without mantissa: the last bit that is kept is that of the exponent."""
    x = np.array([value], np.float32)
    op = ops.ReducePrecision(8, 0)
    (seen,) = run_kernel(op, STABLEHLO, x)
    made = run(apply(op), x, model=IEEE)
    assert isinstance(made, Interval)
    assert made.lo == made.hi == seen


@pytest.mark.parametrize("bits", [22, 3, 1, 0])
def test_subnormals_are_rounded_where_no_bit_of_the_exponent_goes(bits: int) -> None:
    x = np.array([5.877472e-39, 1.1754942e-38, 1e-45, -3e-39], np.float32)
    op = ops.ReducePrecision(8, bits)
    (seen,) = run_kernel(op, STABLEHLO, x)
    made = run(apply(op), x, model=IEEE)
    assert made.contains(seen).all()
    assert np.count_nonzero(made.decided) == x.size


@pytest.mark.parametrize("bits", [10, 7, 0])
def test_a_format_of_more_exponents_has_no_values_beyond_those_of_the_dtype(bits: int) -> None:
    x = np.array([65519.0, -65504.0, 65504.0, 49152.0], np.float16)
    op = ops.ReducePrecision(8, bits)
    (seen,) = run_kernel(op, STABLEHLO, x)
    made = run(apply(op), x, model=IEEE)
    assert isinstance(made, Interval)
    assert made.contains(seen).all()
    assert np.array_equal(made.lo, seen)


#: Formats that lack infinities, -0 or both, or have another bias than IEEE's.
EIGHT_BITS = [d for d in DType if d.is_float and d.bits <= 8 and d is not DType.F8E8M0FNU]


def every_number(dtype: DType) -> np.ndarray:
    return np.arange(2**dtype.bits, dtype=np.uint8).view(dtype.numpy)


@pytest.mark.parametrize("dtype", EIGHT_BITS)
def test_every_number_of_eight_bits_is_rounded_to_every_smaller_format(dtype: DType) -> None:
    x = every_number(dtype)
    for exponent_bits in range(1, 7):
        for mantissa_bits in range(4):
            op = ops.ReducePrecision(exponent_bits, mantissa_bits)
            (seen,) = run_kernel(op, STABLEHLO, x)
            made = run(apply(op), x, model=IEEE)
            assert made.contains(seen).all(), op
            assert made.decided.all()


def test_a_number_beyond_a_smaller_format_is_nan_where_there_is_no_infinity() -> None:
    (seen,) = run_kernel(ops.ReducePrecision(3, 1), STABLEHLO, np.array([0.125, 14, 3.25], DType.F8E4M3FN.numpy))
    np.testing.assert_array_equal(seen.astype(float), [0, np.nan, 3])


def test_powers_of_two_alone_are_not_rounded_to_zero() -> None:
    b = GraphBuilder(policy=STABLEHLO)
    with pytest.raises(Unsupported, match="has no zero"):
        b.apply(ops.ReducePrecision(3, 1), b.input("F8E8M0FNU", (2,)))


#: Formats whose subnormals are normal numbers of F32.
_SMALLER = [DType.F16, DType.F8E5M2, DType.F8E4M3FN, DType.F8E3M4, DType.F4E2M1FN]


@pytest.mark.parametrize("dtype", _SMALLER, ids=str)
@pytest.mark.parametrize("model", ["xla", "cuda", "iree"])
def test_subnormals_of_a_format_smaller_than_f32_are_never_flushed(dtype: DType, model: str) -> None:
    least, normal = float(dtype.finfo.smallest_subnormal), float(dtype.finfo.smallest_normal)
    x = of(dtype, [s * k * least for k in range(1, int(normal / least)) for s in (1, -1)][:64])
    for op in (ops.Negate(), ops.Abs(), ops.Convert(DType.F32)):
        made = run(apply(op), x, model=MODELS[model])
        assert not made.contains(np.zeros(x.shape, made.dtype.numpy)).any()
    made = run(apply(ops.Multiply()), x, np.ones_like(x), model=MODELS[model])
    assert made.contains(x).all()
    assert model == "iree" or (made.lo == made.hi).all()


@pytest.mark.parametrize("model", ["ieee", "xla", "cuda"])
@pytest.mark.parametrize(("dtype", "count"), [(DType.BF16, 300), (DType.F8E4M3FN, 40), (DType.F16, 3000)])
def test_a_sum_without_negative_terms_is_at_least_the_largest(dtype: DType, count: int, model: str) -> None:
    x = of(dtype, [2.0] + [1.0] * (count - 1))
    for sign in (1, -1):
        terms = of(dtype, sign * x.astype(float))
        for made in (
            run(apply(ops.ReduceSum((0,))), terms, model=MODELS[model]),
            run(apply(DOT), terms, np.ones_like(terms), model=MODELS[model]),
        ):
            assert not made.contains(np.asarray(sign * 1.5).astype(dtype.numpy)).any()
            assert made.contains(np.asarray(sign * 2 ** (dtype.finfo.nmant + 1)).astype(dtype.numpy)).all()


@pytest.mark.parametrize("function", ["erf", "tan", "erfc", "sinh"])
def test_a_function_of_bf16_that_is_converted_to_f32_goes_there_unrounded_but_by_a_formula(function: str) -> None:
    op, x = ops.Special(function), of(DType.BF16, np.linspace(0.3, 0.9, 60))
    (of_f32,) = run_kernel(op, STABLEHLO, x.astype(np.float32))
    made = run(lambda b, x: b.apply(ops.Convert(DType.F32), b.apply(op, x)), x)
    assert made.contains(of_f32).all() == (function in ("erf", "tan"))
    assert made.contains(narrowed(DType.BF16, of_f32).astype(np.float32)).all()


def test_a_logistic_of_bf16_that_is_converted_to_f32_goes_there_unrounded() -> None:
    x = of(DType.BF16, np.linspace(-3, 3, 61))
    of_f32 = 1 / (1 + np.exp(-x.astype(np.float32)))
    made = run(lambda b, x: b.apply(ops.Convert(DType.F32), logistic(x)), x)
    assert made.contains(of_f32).all()
    assert not made.contains(of_f32 * np.float32(1.02)).any()
    rounded = run(lambda b, x: b.apply(ops.Convert(DType.F64), logistic(x)), x)  # which goes on rounded
    assert not rounded.contains(of_f32.astype(np.float64)).all()


@pytest.mark.parametrize("function", ["erfc", "erf_inv", "lgamma", "digamma", "bessel_i1e", "sinh", "cosh"])
def test_a_function_by_a_formula_in_f32_may_read_bf16_unrounded(function: str) -> None:
    """But not what another such function gave, nor what was given."""
    has_roots = function in ("lgamma", "digamma")  # their budgets are half an ULP of 1 or more
    op, x, half = ops.Special(function), of(DType.BF16, np.linspace(0.3, 0.9, 60)), of(DType.BF16, [0.7071] * 60)
    (of_f32,) = run_kernel(op, STABLEHLO, x.astype(np.float32) * half.astype(np.float32))
    right, (given,) = narrowed(DType.BF16, of_f32), run_kernel(op, STABLEHLO, x)

    def made(b, x, y):
        return b.apply(op, b.apply(ops.Multiply(), x, y))

    assert run(made, x, half).contains(right).all()
    assert has_roots or not run(made, x, half, model=IEEE).contains(right).all()
    known = run(apply(op), x)
    assert known.contains(given).all()
    assert has_roots or (known.hi - known.lo <= 2.0**-7 * np.abs(known.hi)).all()
