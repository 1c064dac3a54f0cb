"""All pairs of hostile values: under IEEE arithmetic the enclosure of a correctly rounded op is exactly NumPy's result."""

from dataclasses import replace

import numpy as np
import pytest
from enclosure_programs import hostile

from fuzz.generate.config import admitted
from fuzz.generate.values.special import SPECIALS
from oracle.enclosure import IEEE, MODELS, enclose
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import ELEMENTWISE, STABLEHLO
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


FLOATS = (DType.F32, DType.F64)


def pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    values = hostile(dtype)
    return tuple(a.ravel() for a in np.meshgrid(values, values))


def enclosure_of(op, arrays, model):
    b = GraphBuilder()
    inputs = [b.input(DType.of(a), a.shape) for a in arrays]
    return enclose(b.build(b.apply(op, *inputs)), arrays, model)[0]


def assert_single(e, expected, zero_sign=True):
    """The enclosure is the one value `expected`, NaN for NaN."""
    nan = np.isnan(expected)
    assert (e.nan == nan).all()
    assert (e.empty == nan).all()
    v = expected.astype(float)
    assert ((e.lo == v) & (e.hi == v))[~nan].all()
    zero = expected == 0
    if zero_sign:
        assert (e.neg_zero[zero] == np.signbit(expected[zero])).all()
        assert (e.pos_zero[zero] != np.signbit(expected[zero])).all()
    assert e.decided.all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_pow_has_the_special_cases_of_c(dtype, model):
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = np.power(a.astype(np.longdouble), b.astype(np.longdouble)).astype(dtype.numpy)
    e = enclosure_of(ops.Pow(), [a, b], model)
    assert e.contains(expected).all()
    if model is IEEE:
        assert e.decided.mean() > 0.98  # max**1 may overflow within the budget
        assert (e.nan == np.isnan(expected)).all()
        special = np.isin(expected, [0, 1, np.inf, -np.inf]) & np.isin(a, [0, 1, -1, np.inf])
        assert (e.lo == e.hi)[special].all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
@pytest.mark.parametrize(
    ("op", "f"),
    [
        (ops.Exp, np.exp),
        (ops.Expm1, np.expm1),
        (ops.Log, np.log),
        (ops.Log1p, np.log1p),
        (ops.Sin, np.sin),
        (ops.Cos, np.cos),
        (ops.Tanh, np.tanh),
        (ops.Sqrt, np.sqrt),
        (ops.Rsqrt, lambda v: 1 / np.sqrt(v)),
        (ops.Negate, np.negative),
        (ops.Abs, np.abs),
        (ops.Sign, np.sign),
    ],
    ids=lambda v: v.__name__,
)
def test_functions_of_hostile_values(op, f, dtype, model):
    """The reference is x87 arithmetic rounded once (NumPy's own functions are what `numpy` has budgets for)."""
    x = hostile(dtype)
    with np.errstate(all="ignore"):
        expected = f(x) if op is ops.Sqrt else f(x.astype(np.longdouble)).astype(dtype.numpy)
    e = enclosure_of(op(), [x], model)
    assert e.contains(expected).all()
    assert (e.empty == np.isnan(expected))[np.abs(x) >= np.finfo(dtype.numpy.name).smallest_normal].all()
    if model is IEEE:
        assert e.decided.all()


@pytest.mark.parametrize("dtype", [*FLOATS, DType.F16, DType.BF16], ids=str)
@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
@pytest.mark.parametrize(
    ("op", "at", "value"),
    [
        (ops.Exp(), 0, 1),
        (ops.Cos(), 0, 1),
        (ops.Special("cosh"), 0, 1),
        (ops.Special("erfc"), 0, 1),
        (ops.Tanh(), 20.8, 1),
        (ops.Tanh(), 1e3, 1),
    ],
    ids=str,
)
def test_what_no_formula_rounds_is_one_value(op, at, value, dtype, model):
    x = np.array([at, -at], float).astype(dtype.numpy)
    b = GraphBuilder(policy=STABLEHLO)
    one = b.apply(op, b.input(dtype, x.shape))
    (e,) = enclose(b.build(b.apply(ops.Convert(DType.I32), b.apply(ops.Abs(), one))), [x], replace(model, excess=False))
    assert (e.lo == value).all()
    assert (e.hi == value).all()


@pytest.mark.parametrize(("dtype", "near"), [(DType.F32, 9.9), (DType.F32, 19.9), (DType.F64, 19.9)], ids=str)
def test_a_tangent_that_a_formula_may_cut_off_is_an_interval(dtype, near):
    """NumPy and XLA:CPU have the number below 1 there."""
    e = enclosure_of(ops.Tanh(), [np.array([near, -near], dtype.numpy)], MODELS["xla"])
    assert (e.lo < e.hi).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_clamp(dtype):
    a, b = pairs(dtype)
    c = np.roll(b, 7)
    e = enclosure_of(ops.Clamp(), [a, b, c], IEEE)
    assert_single(e, np.minimum(c, np.maximum(b, a)), zero_sign=False)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("to", [DType.F32, DType.F64, DType.I32, DType.I64, DType.Bool], ids=str)
def test_conversions_of_known_values(dtype, to):
    x = hostile(dtype)
    with np.errstate(all="ignore"):
        if to.is_int:
            limits = np.iinfo(to.numpy.name)
            saturated = [0 if v != v else int(max(min(v, limits.max), limits.min)) for v in x.tolist()]
            expected = np.array(saturated, to.numpy)
        else:
            expected = x.astype(to.numpy)
    e = enclosure_of(ops.Convert(to), [x], IEEE)
    assert e.decided.all()
    assert e.contains(expected).all()
    if to.is_float:
        assert_single(e, expected)


@pytest.mark.parametrize("dtype", [DType.I32, DType.I64])
def test_integers_are_exact_and_wrap(dtype):
    limits = np.iinfo(dtype.numpy.name)
    v = np.array([0, 1, -1, 2, -7, 46341, limits.min, limits.max, limits.min + 1, limits.max - 1], dtype.numpy)
    a, b = (m.ravel() for m in np.meshgrid(v, v))
    with np.errstate(all="ignore"):
        cases = [
            (ops.Add(), [a, b], a + b),
            (ops.Multiply(), [a, b], a * b),
            (ops.Negate(), [a], -a),
            (ops.Abs(), [a], np.abs(a)),
        ]
        cases += [(ops.Maximum(), [a, b], np.maximum(a, b)), (ops.Sign(), [a], np.sign(a))]
    for op, arrays, expected in cases:
        e = enclosure_of(op, arrays, IEEE)
        assert e.decided.all()
        assert e.contains(expected).all(), op
    for to in (DType.I32, DType.I64, DType.F32, DType.F64, DType.Bool):
        e = enclosure_of(ops.Convert(to), [v], IEEE)
        assert e.decided.all()
        assert e.contains(v.astype(to.numpy)).all()


def test_integer_division_truncates():
    v = np.array([-7, 7, -(2**31), 9, 0, 8], np.int32)
    w = np.array([2, -2, -1, 4, 5, -8], np.int32)
    e = enclosure_of(ops.Divide(), [v, w], IEEE)
    assert e.lo.tolist() == [-3, -3, -(2**31), 2, 0, -1]
    assert e.decided.all()


def test_integer_power_wraps():
    e = enclosure_of(ops.Pow(), [np.array([3, -2, 7, 5], np.int32), np.array([4, 31, 0, 20], np.int32)], IEEE)
    assert e.lo.tolist() == [81, -(2**31), 1, (5**20 + 2**31) % 2**32 - 2**31]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_remainder_of_known_values_is_exact(dtype, model):
    """However large the quotient; not where an operand may be flushed."""
    a, b = pairs(dtype)
    a, b = np.append(a, dtype.numpy.type(2.0**100)), np.append(b, dtype.numpy.type(7.3))
    with np.errstate(all="ignore"):
        expected = np.fmod(a, b)
    e = enclosure_of(ops.Remainder(), [a, b], model)
    if model is IEEE:
        assert_single(e, expected, zero_sign=False)
    assert e.contains(expected).all()
    least = np.finfo(dtype.numpy.name).smallest_normal
    normal = (np.abs(a) >= least) & (np.abs(b) >= least) & (np.abs(expected) >= least)
    assert (e.lo == e.hi)[normal].all()


INTEGER_OPS = [op for op in ELEMENTWISE if DType.I32 in op.dtypes and op not in (ops.Compare, ops.Select)]


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
@pytest.mark.parametrize("op", INTEGER_OPS, ids=lambda op: op.__name__)
def test_an_elementwise_op_of_integers_has_one_value(op, model):
    """On all special numbers and their pairs or triples, under StableHLO's policy; negative exponents had any value."""
    for dtype in (d for d in SPECIALS if d.is_int and d in admitted(op, tuple(SPECIALS), STABLEHLO)):
        numbers = np.asarray(SPECIALS[dtype])
        arrays = [a.ravel() for a in np.meshgrid(*[numbers] * op.arity)]
        b = GraphBuilder(policy=STABLEHLO)
        program = b.build(b.apply(op(), *(b.input(dtype, a.shape) for a in arrays)))
        (e,) = enclose(program, arrays, model)
        assert np.all(e.lo == e.hi), dtype
