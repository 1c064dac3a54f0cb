"""What the rules decide, one property a test: overflow, contraction, sums, three-valued logic, moves."""

import numpy as np
import pytest

from oracle.enclosure import COMPLEX, ENCLOSE, IEEE, NUMPY, XLA, enclose
from oracle.enclosure.value import Enclosure
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import OPS, STABLEHLO, CompareDir, Policy
from tenferro_ref.program import GraphBuilder

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
    assert [op for op in OPS if op not in COMPLEX] == [ops.Maximum, ops.Minimum, ops.Clamp]


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


def test_denormals_may_be_flushed_to_the_zero_of_their_sign():
    e = run(apply(ops.Negate()), F32([1e-42, -1e-42, 2e-38]))
    assert e.contains(F32([-1e-42, 0.0, -2e-38])).all()
    assert e.contains(F32([-0.0, 1e-42, -2e-38])).all()
    assert not e.contains(F32([0.0, -0.0, -0.0])).any()
    assert run(apply(ops.Negate()), F32([1e-42]), model=NUMPY).contains(F32([-0.0])).sum() == 0


def test_a_result_that_rounds_up_to_the_smallest_normal_may_be_flushed():
    tiny = float(np.finfo(F32).smallest_normal)
    x, y = F32([tiny * (1 + 2.0**-23)]), F32([1 - 2.0**-23])
    assert x * y == F32(tiny)
    e = run(apply(ops.Multiply()), x, y)
    assert e.contains(F32([0.0])).all()
    assert e.contains(F32([tiny])).all()


# --- contraction and rewrites ---------------------------------------------------------------------------------------


def product_plus(b, x, y, z):
    return b.apply(ops.Add(), b.apply(ops.Multiply(), x, y), z)


@pytest.mark.parametrize("kind", [F32, F64])
def test_fma_is_admitted_under_xla_only(kind):
    x = kind(1 + np.finfo(kind).eps)
    residue = float(np.finfo(kind).eps) ** 2  # what only one rounding leaves of x * x - (1 + 2 eps)
    minus = kind(-(x * x))
    e = run(product_plus, x, x, minus)
    assert e.contains(np.asarray(kind(residue)))
    assert e.contains(np.asarray(kind(0)))
    assert interval(run(product_plus, x, x, minus, model=IEEE)) == (0, 0)


@pytest.mark.parametrize("kind", [F32, F64])
def test_fma_of_exact_products_stays_one_value(kind):
    e = run(product_plus, kind(3), kind(2), kind(-6))
    assert interval(e) == (0, 0)
    assert e.pos_zero
    assert not e.neg_zero


def test_fma_reaches_through_moves_and_into_sums():
    x = F32(1 + 2.0**-12)

    def moved(b, a, c):
        product = b.apply(ops.BroadcastInDim((2,), ()), b.apply(ops.Negate(), b.apply(ops.Multiply(), a, a)))
        return b.apply(ops.Add(), product, c)

    exact = F32(2.0**-24)
    assert run(moved, x, F32([x * x, x * x])).contains(F32([-exact, -exact])).all()
    summed = run(
        lambda b, a, c: b.apply(ops.ReduceSum((0,)), b.apply(ops.Multiply(), a, c)), F32([x, 1]), F32([x, -x * x])
    )
    assert summed.contains(np.asarray(exact))


def test_fma_of_an_overflowing_product_is_finite():
    big = F32(2e38)
    e = run(product_plus, big, F32(2), F32(-3e38))
    assert e.contains(np.asarray(F32(1e38)))
    assert e.contains(np.asarray(F32(np.inf)))


def test_division_by_a_constant_may_be_a_multiplication():
    def by(value):
        return lambda b, x: b.apply(ops.Divide(), x, b.constant(value, DType.F32))

    x = F32([5.0])
    other = x * (F32(1) / F32(3))
    differs = F32([7.0])
    candidates = np.arange(1, 40, dtype=F32)
    rounded_twice = candidates * (F32(1) / F32(3))
    assert (rounded_twice != candidates / F32(3)).any()
    assert run(by(3.0), candidates).contains(rounded_twice).all()
    assert not run(by(3.0), candidates, model=IEEE).contains(rounded_twice).all()
    assert run(by(3.0), x).contains(other).all()
    # not by a variable, and not where the reciprocal is denormal: x / 3e38 is not 0
    assert not run(apply(ops.Divide()), candidates, np.full_like(candidates, 3)).contains(rounded_twice).all()
    assert not run(by(3e38), F32([3e38])).contains(F32([0.0])).any()
    assert differs.size


def test_division_by_a_broadcast_may_be_a_multiplication_and_contract():
    x, y = np.arange(1, 65, dtype=F32), F32([3])

    def by(b, v, w):
        return b.apply(ops.Divide(), v, b.apply(ops.BroadcastInDim((64,), (0,)), w))

    def plus(b, v, w):
        return b.apply(ops.Add(), by(b, v, w), b.apply(ops.Negate(), by(b, v, w)))

    assert run(by, x, y).contains(x * (F32(1) / y)).all()
    assert not run(by, x, y, model=IEEE).contains(x * (F32(1) / y)).all()
    scalar = run(apply(ops.Divide()), x, np.asarray(y[0]))
    assert scalar.contains(x * (F32(1) / y)).all()
    residue = (x.astype(float) * float(F32(1) / y[0]) - (x * (F32(1) / y)).astype(float)).astype(F32)
    assert run(plus, x, y).contains(residue).all()


def test_a_contraction_may_start_from_an_addend():
    """(c + p) + q where c + (p + q) is exact otherwise: every order of the three."""
    x, y, c = F32([[1, 1]]), F32([[2.0**-24], [2.0**-24]]), F32([[1]])
    e = run(lambda b, u, v, w: b.apply(ops.Add(), b.apply(ops.DotGeneral((1,), (0,), (), ()), u, v), w), x, y, c)
    assert e.contains(F32([[1]])).all()
    assert e.contains(F32([[1 + 2.0**-23]])).all()
    small = run(lambda b, u, v, w: b.apply(ops.Add(), b.apply(ops.DotGeneral((1,), (0,), (), ()), u, v), w), x, x.T, c)
    assert interval(small) == (3, 3)


def test_merged_sums_may_overflow_where_nested_ones_do_not():
    big = float(np.finfo(F32).max)
    e = run(lambda b, v: b.apply(ops.ReduceSum((0,)), b.apply(ops.ReduceSum((1,)), v)), F32([[big, -big / 2]] * 2))
    assert e.hi == np.inf
    assert e.contains(np.asarray(F32(big)))


def test_chains_of_divisions_widen_and_a_root_too():
    rng = np.random.default_rng(0)
    a, b_, c = (rng.uniform(1, 2, 200).astype(F32) for _ in range(3))
    over = run(lambda b, x, y, z: b.apply(ops.Divide(), b.apply(ops.Divide(), x, y), z), a, b_, c)
    assert over.contains(a / (b_ * c)).all()
    under = run(lambda b, x, y, z: b.apply(ops.Divide(), x, b.apply(ops.Divide(), y, z)), a, b_, c)
    assert under.contains((a * c) / b_).all()
    root = run(lambda b, x, y: b.apply(ops.Divide(), x, b.apply(ops.Sqrt(), y)), a, b_)
    assert root.contains(a * (1 / np.sqrt(b_)).astype(F32)).all()
    assert (over.hi - over.lo).max() < 8 * 2.0**-23 * 2
    plain = run(lambda b, x, y, z: b.apply(ops.Divide(), b.apply(ops.Divide(), x, y), z), a, b_, c, model=IEEE)
    assert (plain.lo == plain.hi).all()


def test_constants_of_a_product_may_be_gathered():
    def twice(b, x):
        return b.apply(
            ops.Multiply(), b.apply(ops.Multiply(), x, b.constant(0.1, DType.F32)), b.constant(0.7, DType.F32)
        )

    x = np.arange(1, 200, dtype=F32)
    gathered = x * (F32(0.1) * F32(0.7))
    assert run(twice, x).contains(gathered).all()
    assert not run(twice, x, model=IEEE).contains(gathered).all()


def test_a_rewrite_that_loses_an_overflow_is_not_admitted():
    """(a / b) / c as a / (b * c) where b * c overflows is wrong, and stays outside."""
    e = run(
        lambda b, x, y, z: b.apply(ops.Divide(), b.apply(ops.Divide(), x, y), z), F32([1e30]), F32([1e20]), F32([1e20])
    )
    assert not e.contains(F32([0.0])).any()
    assert run(lambda b, x: b.apply(ops.Sqrt(), b.apply(ops.Multiply(), x, x)), F32([1e30])).lo[0] == np.inf


def test_x_plus_constant_zero_may_keep_minus_zero():
    e = run(lambda b, x: b.apply(ops.Add(), x, b.constant(0.0, DType.F32)), F32([-0.0]))
    assert e.pos_zero[0]
    assert e.neg_zero[0]
    assert not run(apply(ops.Add()), F32([-0.0]), F32([0.0])).neg_zero[0]


# --- sums -----------------------------------------------------------------------------------------------------------


def test_sums_of_small_integers_are_exact_in_any_order():
    x = np.arange(-50, 51, dtype=F32)
    for model in (IEEE, XLA):
        e = run(apply(ops.ReduceSum((0,))), x, model=model)
        assert interval(e) == (0, 0)
    d = run(apply(ops.DotGeneral((0,), (0,), (), ())), x, x)
    assert interval(d) == (85850.0, 85850.0)
    nested = run(lambda b, v: b.apply(ops.ReduceSum((0,)), b.apply(ops.ReduceSum((0,)), v)), np.full((3, 4), 7, F32))
    assert interval(nested) == (84, 84)


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


def test_batched_contraction_has_the_axes_of_the_engine():
    rng = np.random.default_rng(1)
    x, y = rng.integers(-3, 4, (2, 5, 3, 4)).astype(F64), rng.integers(-3, 4, (4, 2, 6)).astype(F64)
    e = run(apply(ops.DotGeneral((3,), (0,), (0,), (1,))), x, y)
    expected = np.einsum("bikl,lbj->ikjb", x, y)
    assert e.shape == expected.shape
    assert e.contains(expected).all()
    assert (e.lo == e.hi).all()


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


def test_the_last_product_of_a_reduction_contracts_with_an_addition():
    def make(b, x, y):
        return b.apply(ops.Add(), b.apply(ops.ReduceProd((0,)), x), y)

    x, y = np.array([1.125, 1.8751951852730122]), np.array(-1.0)
    twice, once = np.array(1.1095945834321386), np.array(1.1095945834321388)  # roundings; XLA:CPU gives the latter
    e = run(make, x, y)
    assert e.contains(twice)
    assert e.contains(once)
    assert float(e.hi - e.lo) <= 2 * np.spacing(1.1)
    assert not run(make, x, y, model=IEEE).contains(once)


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
    maybe_nan = run(
        lambda b, v: b.apply(ops.Convert(DType.I32), b.apply(ops.Log(), b.apply(ops.Sin(), v))), F32([np.pi])
    )
    assert maybe_nan.lo[0] < 0 <= maybe_nan.hi[0] or maybe_nan.decided.all()


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
    square = run(lambda b, v, w: b.apply(ops.Pow(), b.apply(ops.Negate(), blurred(b, v)), w), F32([0.0]), F32([2.0]))
    assert 0.99 < square.lo[0] <= 1 <= square.hi[0] < 1.01
    assert not square.nan[0]
    unknown = run(lambda b, v, w: b.apply(ops.Pow(), w, blurred(b, v)), F32([0.0]), F32([-2.0]))
    assert unknown.nan[0]
    assert unknown.lo[0] <= -2
    assert unknown.hi[0] >= 2
    assert interval(run(apply(ops.Pow()), F32([np.nan]), F32([0.0]))) == (1, 1)
    assert interval(run(apply(ops.Pow()), F32([1.0]), F32([np.nan]))) == (1, 1)


def test_extrema_of_intervals_propagate_nan():
    e = run(lambda b, v, w: b.apply(ops.Maximum(), blurred(b, v), w), F32([1.0, np.nan]), F32([2.5, 1.0]))
    assert 2.71 < e.lo[0] < e.hi[0] < 2.72
    assert e.empty[1]


# --- moves ----------------------------------------------------------------------------------------------------------

X = np.arange(6, dtype=F32).reshape(2, 3) + 1
CUBE = np.arange(24, dtype=F32).reshape(2, 3, 4)
MOVES = [
    (ops.Transpose((1, 0)), X, X.T),
    (ops.Reshape((3, 2)), X, X.reshape((3, 2), order="F")),
    (ops.BroadcastInDim((3, 5, 2), (2, 0)), X, np.broadcast_to(X.T[:, None, :], (3, 5, 2))),
    (ops.BroadcastInDim((4, 3), (0, 1)), X[:1], np.broadcast_to(X[:1], (4, 3))),
    (ops.Reverse((1,)), X, X[:, ::-1]),
    (ops.Slice((0, 1), (2, 3), (1, 2)), X, X[:, 1::2]),
    (ops.Pad((1, 0), (0, -1), (0, 1)), X, np.array([[0, 0, 0, 0], [1, 0, 2, 0], [4, 0, 5, 0]], F32)),
    (ops.Tril(0), X, np.tril(X)),
    (ops.Triu(1), X, np.triu(X, 1)),
    (ops.ExtractDiag(0, 1), X, np.array([1, 5], F32)),
    (ops.ExtractDiag(2, 0), CUBE, np.stack([CUBE[i, :, i] for i in range(2)], 1)),
    (ops.EmbedDiag(0, 1), X[:, 0], np.diag(X[:, 0])),
    (ops.EmbedDiag(1, 0), X, np.stack([np.where(np.arange(3) == i, X, 0) for i in range(3)])),
    (ops.ReduceMax((0,)), X, X.max(0)),
    (ops.ReduceSum((0, 1)), X, X.sum()),
    (ops.ShapeOf(1), X, np.float64(3)),
]


@pytest.mark.parametrize(("op", "x", "expected"), MOVES, ids=lambda v: v.name if hasattr(v, "name") else "")
def test_moves(op, x, expected):
    for model in (IEEE, XLA):
        e = run(apply(op), x, model=model)
        assert e.shape == np.shape(expected)
        assert e.decided.all()
        assert e.contains(np.asarray(expected)).all()


def test_concatenate_keeps_each_part():
    e = run(lambda b, x, y: b.apply(ops.Concatenate(1), x, blurred(b, y)), X, X)
    assert e.contains(np.concatenate([X, np.exp(X)], 1)).all()
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
