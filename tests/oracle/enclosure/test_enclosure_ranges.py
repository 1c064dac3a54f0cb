"""Special functions of arguments that are not known exactly, and the ranges that their results stay in."""

import numpy as np
import pytest

from oracle.enclosure import IEEE, MODELS, enclose
from oracle.enclosure.value import hull, point
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


def of_interval(op, *ends, dtype=DType.F64, model=IEEE):
    """The enclosure of an op, each of whose operands lies between two numbers (or two arrays of numbers)."""
    b = GraphBuilder(policy=STABLEHLO)
    sides = [[point(np.atleast_1d(np.asarray(v, dtype.numpy))) for v in pair] for pair in ends]
    operands = [hull(*pair) for pair in sides]
    return enclose(b.build(b.apply(op, *(b.input(dtype, x.shape) for x in operands))), operands, model)[0]


@pytest.mark.parametrize("model", [m for m in MODELS.values() if not m.excess], ids=lambda m: m.name)
def test_what_is_lost_on_the_way_does_not_leave_the_range_of_the_function(model):
    """A function in F16 loses a subnormal's worth, but cosh stays at least 1 and the error function at most that."""
    for function, x, outside in (("cosh", 0.001, 0.9995), ("erf", 4.0, 1.001), ("erfc", -4.0, 2.002)):
        made = of_interval(ops.Special(function), (x, x), dtype=DType.F16, model=model)
        assert made.contains(np.array([round(outside)], np.float16)).all()
        assert not made.contains(np.array([outside], np.float16)).any(), function


NAN, INF = float("nan"), float("inf")


def held(made, *values):
    """Which of the values one element may have."""
    return [bool(made.contains(np.full(1, v, made.dtype.numpy))[0]) for v in values]


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_the_quotient_by_a_zero_of_either_sign_is_either_infinity(model):
    b = GraphBuilder()
    x, y, v = (b.input(DType.F32, (1,)) for _ in range(3))
    zero = b.apply(ops.Maximum(), x, y)
    program = b.build(*(b.apply(ops.Divide(), v, zero), b.apply(ops.Rsqrt(), zero), b.apply(ops.Pow(), zero, v)))
    arrays = [np.array([w], np.float32) for w in (0.0, -0.0, -3.0)]
    for made in enclose(program, arrays, model):
        assert made.decided.all()
        assert held(made, INF, -INF, NAN, 0.0, 1e30) == [True, True, False, False, False]


def test_nothing_is_between_the_quotients_by_numbers_of_either_sign():
    made = of_interval(ops.Divide(), (3.0, 6.0), (-2.0, 1.5))
    assert held(made, -INF, -1.5, -1.4, 0.0, 1.9, 2.0, INF, NAN) == [True, True, False, False, False, True, True, False]


def test_an_angle_beside_a_zero_of_either_sign_is_one_of_two():
    atan2 = ops.Special2("atan2")
    made = of_interval(atan2, (0.0, -0.0), (-2.0, -2.0))
    assert held(made, np.pi, -np.pi, 0.0, 3.0) == [True, True, False, False]
    assert made.decided.all()
    made = of_interval(atan2, (-1e-3, -1e-6), (-2.0, 3.0))
    assert held(made, -3.1412, -1e-6, 0.0, np.pi) == [True, True, False, False]
    made = of_interval(atan2, (0.0, 1.0), (0.0, 2.0))
    assert held(made, 0.0, np.pi / 2, -0.0, 1.6, -0.1) == [True, True, False, False, False]
    made = of_interval(atan2, (-1.0, 1.0), (-2.0, -1.0))
    assert held(made, np.pi, -np.pi, -2.5, 2.5, 0.0, 1.0) == [True, True, True, True, False, False]


def test_an_angle_asks_the_flags_of_a_zero_for_its_sign_not_its_bounds():
    b = GraphBuilder(policy=STABLEHLO)
    t = b.apply(ops.Special("atan"), b.input(DType.F64, (3,)))
    x = np.array([-0.0, 0.0, 0.0])  # of several, a bound may be a zero of the other sign
    (made,) = enclose(b.build(b.apply(ops.Special2("atan2"), t, -t)), [x], IEEE)
    assert made.contains(np.arctan2(x, -x)).all()
    assert not made.contains(-np.arctan2(x, -x)).any()


def test_a_power_between_two_whole_ones_of_a_negative_number_is_nan():
    made = of_interval(ops.Pow(), (-2.0, -2.0), (0.2, 0.7))
    assert held(made, NAN, -1.5, 1.5, 0.0) == [True, False, False, False]
    made = of_interval(ops.Pow(), (-INF, -0.0), (-0.7, -0.2))
    assert held(made, NAN, INF, 0.0, 2.0, -1.0) == [True, True, True, True, False]
    assert held(of_interval(ops.Pow(), (-2.0, -2.0), (0.5, 1.5)), -2.0, NAN) == [True, True]


#: Function, interval, its true range.
RANGES = [
    ("cosh", (-2.0, -1.0), (1.543080634815244, 3.762195691083631)),
    ("cosh", (-2.0, 1.0), (1.0, 3.762195691083631)),
    ("tan", (2.0, 4.5), (-2.185039863261519, 4.637332054551185)),
    ("tan", (1e6, 1e6 + 0.125), (-0.37362445398759902, -0.2368497358532655)),
    ("lgamma", (0.5, 3.0), (-0.12148629053584961, 0.6931471805599453)),
    ("lgamma", (-2.75, -2.25), (-0.1186299910, 0.5555015450)),
    ("lgamma", (-2.5, -0.5), (-0.056243716497674, INF)),
    ("digamma", (-2.75, -2.25), (-1.9590552650, 4.1585835647)),
    ("bessel_i1e", (1.0, 3.0), (0.1968267133, 0.2190919749)),
    ("bessel_i1e", (-50.0, 2.0), (-0.2190919749, 0.2190919749)),
    ("asin", (0.5, 1.5), (0.5235987755982989, 1.5707963267948966)),
]


@pytest.mark.parametrize("model", [m for m in MODELS.values() if not m.excess], ids=lambda m: m.name)
@pytest.mark.parametrize(("function", "interval", "true"), RANGES)
def test_a_function_of_an_interval_has_the_range_of_the_function(function, interval, true, model):
    made = of_interval(ops.Special(function), interval, model=model)
    assert (float(made.lo[0]), float(made.hi[0])) == pytest.approx(true, rel=1e-8)
    assert bool(made.nan[0]) == (function == "asin")


@pytest.mark.parametrize(
    ("function", "order", "interval", "true"),
    [
        ("polygamma", (0.0, 0.0), (-2.75, -2.25), (-1.9590552650, 4.1585835647)),
        ("polygamma", (1.0, 1.0), (2.0, 3.0), (0.3949340668, 0.6449340668)),
        ("polygamma", (1.0, 1.0), (-0.75, -0.25), (8.9330310926, 18.9751069323)),
        ("zeta", (2.0, 2.0), (2.0, 3.0), (0.3949340668, 0.6449340668)),
        ("zeta", (2.0, 3.0), (1.0, 1.0), (1.2020569032, 1.6449340668)),
        ("zeta", (3.0, 3.0), (-0.75, -0.25), (-61.3486833918, 62.2934995984)),
    ],
)
def test_polygamma_and_zeta_between_poles_have_the_range_of_the_function(function, order, interval, true):
    made = of_interval(ops.Special2(function), order, interval)
    assert made.decided.all()
    assert (float(made.lo[0]), float(made.hi[0])) == pytest.approx(true, rel=1e-6)


def test_over_a_pole_nothing_is_known_but_of_the_logarithm_of_gamma():
    for op in (ops.Special("tan"), ops.Special("digamma")):
        made = of_interval(op, (-1.75, 1.75))
        assert held(made, 1e30, -1e30, INF, NAN) == [True] * 4
    made = of_interval(ops.Special("lgamma"), (-1.75, 1.75))
    assert held(made, 1e300, INF, -0.12, -0.13, NAN) == [True, True, True, False, False]


def test_a_limit_that_is_zero_has_either_sign_of_intervals_too():
    for function in ("erfc", "bessel_i1e"):
        assert held(of_interval(ops.Special(function), (3.0, INF)), 0.0, -0.0, NAN) == [True, True, False]
