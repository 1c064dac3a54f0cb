"""Narrow floats: accumulators, ranges, conversions."""

import numpy as np
import pytest

from oracle.enclosure import IEEE, MODELS, NUMPY, XLA, Enclosure, enclose
from oracle.enclosure.value import Interval
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.narrow import narrowed
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import GraphBuilder

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
    if not model.excess:
        assert e.decided.all()
        assert not holds(e, 4.0)
    one_sign = run(apply(DOT), of(dtype, [a, 1, 1]), of(dtype, [a, 1, 5]), model=model)
    assert holds(one_sign, np.inf)
    assert model.excess or not holds(one_sign, 5.0)


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
