"""What the rules decide, one property a test: overflow, sums, three-valued logic."""

import numpy as np
import pytest

from oracle.enclosure import COMPLEX, ENCLOSE, IEEE, NUMPY, XLA, enclose
from oracle.enclosure.value import Enclosure
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import OPS, STABLEHLO, CompareDir, Policy
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


F32, F64 = np.float32, np.float64


def run(make, *arrays, model=XLA, policy=None) -> Enclosure:
    """The enclosure of the program that `make(builder, *inputs)` builds."""
    b = GraphBuilder() if policy is None else GraphBuilder(policy=policy)
    arrays = [np.asarray(a) for a in arrays]
    result = make(b, *(b.input(DType.of(a), a.shape) for a in arrays))
    return enclose(b.build(result), arrays, model)[0]


def apply(op):
    return lambda b, *x: b.apply(op, *x)


def interval(e: Enclosure) -> tuple[float, float]:
    return float(e.lo.ravel()[0]), float(e.hi.ravel()[0])


def test_every_op_has_a_row_or_a_reason():
    for table in (ENCLOSE, COMPLEX):
        assert not table.holes(OPS)
    assert [op for op in OPS if op not in ENCLOSE] == []
    assert [op for op in OPS if op not in COMPLEX] == [
        ops.Maximum,
        ops.Minimum,
        ops.Clamp,
        ops.Remainder,
        ops.ReduceSumSquares,
    ]


# --- overflow and underflow -----------------------------------------------------------------------------------------


def test_overflow_is_decided():
    e = run(lambda b, x: b.apply(ops.Log(), b.apply(ops.Exp(), x)), F32([89.0, 88.0]))
    assert e.lo[0] == e.hi[0] == np.inf
    assert e.decided.all()
    assert 87.99 < e.lo[1] < 88 < e.hi[1] < 88.01
    assert not e.contains(F32([89.0, 88.0]))[0]


def test_overflow_that_the_budget_straddles_is_undecided():
    edge = F32(np.log(float(np.finfo(F32).max)))
    e = run(apply(ops.Exp()), [edge])
    assert np.isfinite(e.lo).all()
    assert (e.hi == np.inf).all()
    assert not e.decided.any()


def test_underflow_is_decided_under_ieee_and_flushed_under_xla():
    tiny = run(apply(ops.Exp()), F32([-100.0, -110.0]), model=IEEE)
    assert 0 < tiny.lo[0] < tiny.hi[0] < 1e-42
    assert tiny.lo[1] == tiny.hi[1] == 0
    flushed = run(apply(ops.Exp()), F32([-100.0]))
    assert flushed.lo[0] == 0 < flushed.hi[0]
    assert flushed.pos_zero[0]
    assert not flushed.neg_zero[0]


# --- sums -----------------------------------------------------------------------------------------------------------


def test_two_terms_round_once_and_more_get_the_any_order_bound():
    two = run(apply(ops.ReduceSum((0,))), F32([1.0, 1e-3]))
    assert interval(two) == (float(F32(1.001)),) * 2
    x = np.random.default_rng(0).standard_normal(1000).astype(F32)
    e = run(apply(ops.ReduceSum((0,))), x)
    bound = 1000 * 2.0**-24 * float(np.abs(x).sum())
    assert bound / 2 < float(e.hi - e.lo) < bound  # partial sums are less than half of all magnitudes
    assert e.contains(np.asarray(x.sum()))


def test_partial_sums_that_may_overflow_are_not_decided():
    big = float(np.finfo(F32).max)
    e = run(apply(ops.ReduceSum((0,))), F32([big, big, -big, 1.0]))
    assert e.hi == np.inf
    assert e.lo < big
    both = run(apply(ops.ReduceSum((0,))), F32([big, big, -big, -big]))
    assert both.nan
    certain = run(apply(ops.ReduceSum((0,))), F32([big, big, big]))
    assert interval(certain) == (np.inf, np.inf)
    assert not certain.nan
    total = apply(ops.ReduceSum((0,)))
    merged = run(lambda b, v: total(b, b.apply(ops.ReduceSum((1,)), v)), F32([[big, -big / 2]] * 2))
    assert merged.hi == np.inf
    assert merged.contains(np.asarray(F32(big)))


def test_infinities_and_nan_in_sums():
    inf, nan = np.inf, np.nan
    assert interval(run(apply(ops.ReduceSum((0,))), F32([inf, 1, 2]))) == (inf, inf)
    assert run(apply(ops.ReduceSum((0,))), F32([inf, -inf, 2])).empty
    assert run(apply(ops.ReduceSum((0,))), F32([nan, 1, 2])).empty
    assert run(apply(ops.DotGeneral((0,), (0,), (), ())), F32([inf, 1, 2]), F32([0, 1, 2])).empty
    dot = run(apply(ops.DotGeneral((0,), (0,), (), ())), F32([inf, 1, 2]), F32([-1, 1, 2]))
    assert interval(dot) == (-inf, -inf)


def test_zeros_of_sums():
    minus = F32([-0.0, -0.0, -0.0])
    assert run(apply(ops.ReduceSum((0,))), minus, model=IEEE).contains(np.asarray(F32(0.0)))
    assert not run(apply(ops.ReduceSum((0,))), minus, model=IEEE).neg_zero
    assert run(apply(ops.ReduceSum((0,))), minus).neg_zero
    assert not run(apply(ops.ReduceSum((0,))), F32([-0.0, 0.0, -0.0])).neg_zero
    assert run(apply(ops.ReduceSum(())), minus, model=IEEE).contains(minus).all()


def test_empty_sums_and_contractions_are_zero():
    e = run(apply(ops.ReduceSum((0,))), np.zeros((0, 2), F32), policy=STABLEHLO)
    assert e.contains(np.zeros(2, F32)).all()
    assert (e.lo == e.hi).all()
    d = run(apply(ops.DotGeneral((1,), (0,), (), ())), np.zeros((2, 0), F32), np.zeros((0, 3), F32))
    assert d.shape == (2, 3)
    assert d.contains(np.zeros((2, 3), F32)).all()


@pytest.mark.parametrize("op", [ops.ReduceSum((0,)), ops.DotGeneral((0,), (0,), (), ())], ids=lambda op: op.name)
def test_the_zero_of_no_terms_may_be_left_out_of_an_addition(op):
    """A compiler knows it: all three builds of XLA give -0 for `-0 + sum of nothing`. The zero of a term is added."""

    def total(b, x, y):
        return b.apply(ops.Add(), x, b.apply(op, *[y] * op.arity))

    minus = np.asarray(F32(-0.0))
    for terms, model, left_out in (([], XLA, True), ([], IEEE, False), ([0.0], XLA, False)):
        e = run(total, minus, F32(terms), model=model, policy=STABLEHLO)
        assert e.contains(np.asarray(F32(0.0))).all()
        assert e.contains(minus).all() == left_out


def test_large_contractions_are_cut_into_chunks():
    rng = np.random.default_rng(1)
    x, y = rng.integers(-3, 4, (150, 120)).astype(F32), rng.integers(-3, 4, (120, 130)).astype(F32)
    e = run(apply(ops.DotGeneral((1,), (0,), (), ())), x, y)
    assert (e.lo == x @ y).all()
    assert (e.hi == x @ y).all()


def test_products_in_any_order():
    e = run(apply(ops.ReduceProd((0,))), F32([1.1, 1.2, 1.3, -1.7]))
    assert e.lo < -1.1 * 1.2 * 1.3 * 1.7 < e.hi
    assert float(e.hi - e.lo) < 8 * 2.0**-23 * 3
    wild = run(apply(ops.ReduceProd((0,))), F32([1e30, 1e30, 1e-30, 1e-30]))
    assert wild.contains(np.asarray(F32(1.0)))
    assert wild.contains(np.asarray(F32(np.inf)))
    assert run(apply(ops.ReduceMax((0,))), F32([1, np.nan, 2])).empty


# --- undecided values -----------------------------------------------------------------------------------------------


def blurred(b, x):
    """A value of a few ULP."""
    return b.apply(ops.Exp(), x)


def test_comparison_select_and_conversion_of_overlapping_values():
    x = F32([1.0])
    e = run(lambda b, v: b.apply(ops.Compare(CompareDir.Lt), blurred(b, v), blurred(b, v)), x)
    assert e.can_true.all()
    assert e.can_false.all()
    assert not e.decided.any()
    apart = run(lambda b, v, w: b.apply(ops.Compare(CompareDir.Lt), blurred(b, v), blurred(b, w)), x, F32([2.0]))
    assert apart.decided.all()
    assert apart.can_true.all()

    def pick(b, v, p, q):
        return b.apply(ops.Select(), b.apply(ops.Compare(CompareDir.Le), blurred(b, v), blurred(b, v)), p, q)

    assert interval(run(pick, x, F32([-3.0]), F32([8.0]))) == (-3, 8)
    three = run(lambda b, v: b.apply(ops.Convert(DType.I32), blurred(b, v)), F32([np.log(3.0), 1.0]))
    assert (three.lo.tolist(), three.hi.tolist()) == ([2, 2], [3, 2])
    assert three.decided.tolist() == [False, True]


def test_integers_that_may_wrap_become_everything():
    def wraps(b, v):
        near = b.apply(ops.Convert(DType.I32), b.apply(ops.Exp(), v))
        big = b.constant(2**31 - 3, DType.I32).broadcast_to((1,))
        return b.apply(ops.Add(), near, big)

    e = run(wraps, F32([np.log(3.0)]))
    assert (e.lo[0], e.hi[0]) == (-(2**31), 2**31 - 1)


def test_log_and_sqrt_of_an_interval_across_zero_may_be_nan():
    e = run(lambda b, v: b.apply(ops.Log(), b.apply(ops.Sin(), v)), np.array([np.pi * 2**20]).astype(F32))
    assert e.nan.any() or e.decided.all()
    x, eps = F32([0.1]), F32([-0.1])
    near = run(
        lambda b, v, w: b.apply(ops.Sqrt(), b.apply(ops.Add(), blurred(b, v), b.apply(ops.Negate(), blurred(b, v)))),
        x,
        eps,
    )
    assert near.nan.all()
    assert not near.empty.any()
    assert near.lo[0] == 0


def test_sine_over_a_wide_interval():
    def scaled(b, v, w):
        return b.apply(ops.Sin(), b.apply(ops.Multiply(), blurred(b, v), w))

    assert interval(run(scaled, F32([1.0]), F32([1e9]))) == (-1, 1)
    lo, hi = interval(run(scaled, F32([0.0]), F32([np.pi / 2])))  # around the maximum
    assert hi == 1
    assert 1 - 1e-6 < lo < 1
    cosine = run(lambda b, v: b.apply(ops.Cos(), b.apply(ops.Log(), v)), F32([1.0]))
    assert interval(cosine)[1] == 1


def test_infinite_angles_and_logs_of_negatives_are_nan():
    assert run(apply(ops.Sin()), F32([np.inf, -np.inf])).empty.all()
    assert run(apply(ops.Log()), F32([-1.0])).empty.all()
    assert interval(run(apply(ops.Log()), F32([-0.0]))) == (-np.inf, -np.inf)
    assert interval(run(apply(ops.Rsqrt()), F32([-0.0]))) == (-np.inf, -np.inf)
    assert interval(run(apply(ops.Tanh()), F32([np.inf]))) == (1, 1)


def test_pow_of_intervals():
    square = run(lambda b, v, w: b.apply(ops.Pow(), b.apply(ops.Negate(), blurred(b, v)), w), F32([1e-8]), F32([2.0]))
    assert 0.99 < square.lo[0] <= 1 <= square.hi[0] < 1.01
    assert not square.nan[0]
    unknown = run(lambda b, v, w: b.apply(ops.Pow(), w, blurred(b, v)), F32([1e-8]), F32([-2.0]))
    assert unknown.nan[0]
    assert unknown.lo[0] <= -2
    assert unknown.hi[0] >= 2
    assert interval(run(apply(ops.Pow()), F32([np.nan]), F32([0.0]))) == (1, 1)
    assert interval(run(apply(ops.Pow()), F32([1.0]), F32([np.nan]))) == (1, 1)


def test_extrema_of_intervals_propagate_nan():
    e = run(lambda b, v, w: b.apply(ops.Maximum(), blurred(b, v), w), F32([1.0, np.nan]), F32([2.5, 1.0]))
    assert 2.71 < e.lo[0] < e.hi[0] < 2.72
    assert e.empty[1]


def test_concatenate_keeps_each_part():
    x = np.arange(6, dtype=F32).reshape(2, 3) + 1
    e = run(lambda b, u, v: b.apply(ops.Concatenate(1), u, blurred(b, v)), x, x)
    assert e.contains(np.concatenate([x, np.exp(x)], 1)).all()
    assert (e.lo == e.hi)[:, :3].all()


def test_constants_and_all_slots():
    b = GraphBuilder()
    x = b.input("F64", ())
    program = b.build(b.apply(ops.Add(), x, b.apply(ops.Constant.of(0.1, DType.F64))))
    slots = enclose(program, [np.asarray(0.2)], IEEE, all_slots=True)
    assert sorted(slots) == [0, 1, 2]
    assert float(slots[2].lo) == 0.1 + 0.2
    assert slots[1].const
    assert not slots[2].const


@pytest.mark.parametrize("model", [IEEE, NUMPY, XLA], ids=lambda m: m.name)
def test_a_sum_of_sums_over_nothing(model):
    b = GraphBuilder(policy=Policy(empty_reduction="identity"))
    x = b.input("F64", (0, 3))
    (e,) = enclose(b.build(x.sum(1).sum(0)), [np.zeros((0, 3))], model)
    assert e.lo == e.hi == 0


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_sum_of_the_reference_starts_from_the_positive_zero(n):
    """Its own kernels do (SEMANTICS 2.3); a platform may start from its first term."""
    x = np.full(n, -0.0)
    own, xla = (run(apply(ops.ReduceSum((0,))), x, model=model) for model in (NUMPY, XLA))
    assert own.contains(np.array(0.0))
    assert not own.contains(np.array(-0.0))
    assert xla.contains(np.array(-0.0))
