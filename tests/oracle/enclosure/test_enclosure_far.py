"""Reductions beside an infinity, an overflow or an underflow: what no tree gives is outside, what some tree gives is inside."""

import functools

import numpy as np
import pytest

from oracle.enclosure import IEEE, XLA, enclose
from oracle.enclosure.formats import FORMATS
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.extensions import einsum
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once

NAN, INF = float("nan"), float("inf")
MAX = float(np.finfo(np.float32).max)
TINY = float(np.finfo(np.float32).smallest_normal)


def reduced(op, dtype, values, model=IEEE):
    b = GraphBuilder(policy=ops.STABLEHLO)
    x = np.array(values).astype(dtype.numpy)
    (e,) = enclose(b.build(b.apply(op((0,)), b.input(dtype, x.shape))), [x], model)
    return e


def trees(f, values):
    """What all trees over the values give."""

    @functools.cache
    def of(chosen):
        if len(chosen) == 1:
            return [values[chosen[0]]]
        first, *rest = chosen
        splits = [[r for k, r in enumerate(rest) if bits >> k & 1] for bits in range(2 ** len(rest) - 1)]
        pairs = (((first, *own), tuple(r for r in rest if r not in own)) for own in splits)
        made = [f(a, b) for left, right in pairs for a in of(left) for b in of(right)]
        return list({np.asarray(v).tobytes(): v for v in made}.values())

    with np.errstate(all="ignore"):
        return of(tuple(range(len(values))))


# --- products -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [IEEE, XLA], ids=lambda m: m.name)
@pytest.mark.parametrize(
    ("dtype", "values", "lo", "hi", "nan"),
    [
        (DType.F32, [2, 3, INF], INF, INF, False),
        (DType.F32, [2, -3, INF], -INF, -INF, False),
        (DType.F32, [1e-30, -INF, -1e-30], INF, INF, True),
        (DType.F32, [0, 2, INF], INF, -INF, True),
        (DType.F32, [2e38, 0.5, -1], np.float32(-1e38), np.float32(-1e38), False),
        (DType.F32, [MAX, 1, 1], MAX, MAX, False),
        (DType.F32, [0, 1e30, -1e30], 0, 0, True),
        (DType.F64, [1e200, 1e200, 1e200], INF, INF, False),
        (DType.F8E4M3FN, [448, 1, 0.5], 224, 224, False),
    ],
    ids=str,
)
def test_a_product_beside_an_infinity_or_an_overflow_is_what_some_order_gives(dtype, values, lo, hi, nan, model):
    e = reduced(ops.ReduceProd, dtype, values, model)
    assert (float(e.lo), float(e.hi), bool(e.nan)) == (lo, hi, nan)


def test_the_sign_of_a_product_that_may_overflow_and_underflow_is_that_of_its_factors():
    e = reduced(ops.ReduceProd, DType.F32, [1e30, 1e30, -1e-30, 1e-30])
    assert (float(e.lo), float(e.hi), bool(e.nan), bool(e.pos_zero)) == (-INF, 0, True, False)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16, DType.F8E4M3FN, DType.F8E5M2], ids=str)
def test_every_tree_of_a_product_is_inside(dtype):
    rng, t = np.random.default_rng(3), dtype.numpy.type
    info = dtype.finfo
    most, least, last = (float(v) for v in (info.max, info.smallest_normal, info.smallest_subnormal))
    pool = [most, most / 2, most**0.5, least, 2 * least, least**0.5, last, 3 * last, 1, 0.5, 1.5, 0.9, 1.25, 0]
    for _ in range(60):
        values = [t(rng.choice(pool) * rng.choice([1, 1, -1])) for _ in range(rng.integers(3, 6))]
        e = reduced(ops.ReduceProd, dtype, values)
        for v in trees(lambda a, b: a * b, values):
            assert e.contains(np.asarray(v)), (values, v, e)


def test_a_long_product_of_a_short_format_is_inside():
    """As many roundings as that format has digits: no relative error below one bounds them from below."""
    values = np.array([1.25, -1.0, 0.875, 1.0, -0.375, -1.25, 1.0, 6.0, -16.0, -0.875]).astype(DType.F8E5M2.numpy)
    e = reduced(ops.ReduceProd, DType.F8E5M2, values)
    assert e.contains(np.asarray(functools.reduce(lambda a, b: a * b, values)))
    assert float(e.hi) < 0
    assert reduced(ops.ReduceProd, DType.F8E5M2, [1.25] * 9).contains(np.asarray(DType.F8E5M2.numpy.type(8)))


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F8E4M3FN, DType.F4E2M1FN], ids=str)
def test_beside_zero_is_the_least_subnormal_number(dtype):
    f = FORMATS[dtype]
    least = np.array([f.least_subnormal])
    assert (f.least_at_or_above(least / 4) == least).all()
    assert (f.greatest_at_or_below(-least / 4) == -least).all()


# --- sums -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [IEEE, XLA], ids=lambda m: m.name)
@pytest.mark.parametrize(
    ("dtype", "values", "lo", "hi"),
    [
        (DType.F32, [MAX, 0, 0], MAX, MAX),
        (DType.F32, [MAX, 1, 1], np.nextafter(np.float32(MAX), np.float32(0)), MAX),
        (DType.F8E4M3FN, [448, 0, 0], 448, 448),
        (DType.F8E4M3FN, [256, 128, 32], 416, 416),
    ],
    ids=str,
)
def test_a_sum_near_the_largest_number_overflows_only_in_some_order(dtype, values, lo, hi, model):
    e = reduced(ops.ReduceSum, dtype, values, model)
    assert not e.nan
    assert lo - (hi - lo) <= float(e.lo) <= lo
    assert float(e.hi) == hi


def test_the_largest_number_less_itself_is_no_infinity():
    e = reduced(ops.ReduceSum, DType.F32, [MAX, -MAX, 1])
    assert e.decided
    assert e.contains(np.float32(0))
    assert e.contains(np.float32(1))


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16, DType.F8E4M3FN, DType.F8E5M2], ids=str)
def test_every_tree_of_a_sum_is_inside(dtype):
    rng, t = np.random.default_rng(4), dtype.numpy.type
    most, step = float(dtype.finfo.max), FORMATS[dtype].ulp(np.float64(dtype.finfo.max))
    pool = [most, most - step, most / 2, most / 4, step, step / 2, step / 4, step / 8, step / 3, 1, 0]
    for _ in range(60):
        values = [t(rng.choice(pool) * rng.choice([1, 1, -1])) for _ in range(rng.integers(3, 6))]
        e = reduced(ops.ReduceSum, dtype, values)
        for v in trees(lambda a, b: a + b, values):
            assert e.contains(np.asarray(v + t(0))), (values, v, e)


# --- einsum ---------------------------------------------------------------------------------------------------------


def summed(equation, *values, model=IEEE):
    arrays = [np.array(v, np.float32, order="F") for v in values]
    b = GraphBuilder()
    (e,) = enclose(b.build(einsum.einsum(equation, *(b.input("F32", a.shape) for a in arrays))), arrays, model)
    return e


@pytest.mark.parametrize("model", [IEEE, XLA], ids=lambda m: m.name)
@pytest.mark.parametrize(
    ("equation", "values", "lo", "hi", "nan"),
    [
        ("a,a,a->", ([1, 2], [3, 4], [1, INF]), INF, INF, False),
        ("a,a,a->", ([1, 2], [-3, -4], [1, INF]), -INF, -INF, False),
        ("a,a,a->", ([1, 0], [3, 4], [1, INF]), INF, INF, True),
        ("a,a,a->", ([1e30, 1], [3, 4], [1e20, 1]), INF, INF, False),
        ("a,a,a->", ([1e30, 1], [1e30, 1], [0, 0]), 0, INF, True),
        ("a,a,a->", ([-1e30, 1], [1e30, 1], [1, 1]), -INF, INF, True),
    ],
    ids=str,
)
def test_an_einsum_of_factors_of_one_sign_has_that_of_their_product(equation, values, lo, hi, nan, model):
    e = summed(equation, *values, model=model)
    assert (float(e.lo), float(e.hi), bool(e.nan)) == (lo, hi, nan)


@pytest.mark.parametrize("model", [IEEE, XLA], ids=lambda m: m.name)
def test_a_sum_of_positive_zeros_is_one(model):
    zeros = [0.0, 0.0]
    for equation, values in (("a->", [zeros]), ("a,a->", [zeros, zeros]), ("a,a,a->", [zeros, [1.0, 0.0], zeros])):
        e = summed(equation, *values, model=model)
        assert e.contains(np.float32(0)), equation
        assert not e.contains(np.float32(-0.0)), equation
    for equation, values in (
        ("a->a", [[-0.0]]),
        ("a,a->", [zeros, [-1.0, -1.0]]),
        ("a,a,a->", [zeros, [-1.0, 0.0], zeros]),
    ):
        e = summed(equation, *values, model=model)
        assert e.contains(np.zeros(e.shape, np.float32)).all(), equation
        assert e.contains(np.full(e.shape, -0.0, np.float32)).all(), equation


@pytest.mark.parametrize("model", [IEEE, XLA], ids=lambda m: m.name)
@pytest.mark.parametrize(("value", "least"), [(-0.0, 0.0), (-2.938736e-39, 0.0), (-1.0, 1.0)])
def test_a_sum_of_negative_zeros_that_is_positive_turns_the_sign_of_what_it_is_multiplied_with(value, least, model):
    """The sum over m is +0 from an initial value of +0; that of a subnormal number where it is flushed."""
    e = summed("m,l->l", [value], [-0.0 if least == 0 else -1.0], model=model)
    assert e.contains(np.array([least], np.float32)).all()
    if model is XLA or value in (0, -1):  # IEEE flushes nothing
        assert e.contains(np.array([-0.0], np.float32)).all() == (least == 0)


def test_what_underflows_beside_a_large_factor_is_not_exact():
    e = summed("i,i,i->i", [-1e20], [1.4e-45], [-0.5])
    assert e.contains(np.zeros(1, np.float32)).all()
    assert e.contains(
        np.array([7e-26], np.float32) * 0 + np.float32(1e20) * np.float32(1.4e-45) * np.float32(0.5)
    ).all()


# --- complex products -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [IEEE, XLA], ids=lambda m: m.name)
@pytest.mark.parametrize("dtype", [DType.C32, DType.C64], ids=str)
def test_a_complex_product_near_the_ends_of_the_range_is_decided(dtype, model):
    """Moduli bound the real products and their sums; what underflows is off by subnormal numbers."""
    f, rng = FORMATS[dtype.real], np.random.default_rng(5)
    for size in (f.max / 2, f.max**0.5, 1.0, f.min_normal, f.min_normal / 4):
        values = (np.exp(1j * rng.uniform(0, 7, 4)) * size**0.25).astype(dtype.numpy)
        e = reduced(ops.ReduceProd, dtype, values, model)
        assert e.decided, size
        for v in trees(lambda a, b: a * b, list(values)):
            assert e.contains(np.asarray(v)), (size, v, e)
        true = np.prod(values.astype(np.clongdouble))
        for part, p in ((true.real, e.real), (true.imag, e.imag)):
            assert p.hi - p.lo <= 2.0**4 * f.unit * 4 * abs(true) + 200 * f.min_normal
            assert p.lo <= part <= p.hi
