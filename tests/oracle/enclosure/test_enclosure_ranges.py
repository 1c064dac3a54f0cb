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
    """A function in F16 loses a denormal's worth, but cosh stays at least 1 and the error function at most that."""
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


def test_a_power_between_two_whole_ones_of_a_negative_number_is_nan():
    made = of_interval(ops.Pow(), (-2.0, -2.0), (0.2, 0.7))
    assert held(made, NAN, -1.5, 1.5, 0.0) == [True, False, False, False]
    made = of_interval(ops.Pow(), (-INF, -0.0), (-0.7, -0.2))
    assert held(made, NAN, INF, 0.0, 2.0, -1.0) == [True, True, True, True, False]
    assert held(of_interval(ops.Pow(), (-2.0, -2.0), (0.5, 1.5)), -2.0, NAN) == [True, True]
