"""What enclosures are narrower by than the plainest sound bound: each must still hold every evaluation that is allowed."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perturbed import Perturbed

from oracle.case import Case
from oracle.enclosure import IEEE, NUMPY, XLA, enclose, sums
from oracle.enclosure.bounds import any_order
from oracle.enclosure.formats import FORMATS
from oracle.enclosure.sums import _partial_sums
from oracle.peers import NativeExecutor
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


F32 = np.float32
NAN, INF = float("nan"), float("inf")
SIGNED = st.floats(-(2.0**20), 2.0**20, width=32).filter(lambda v: abs(v) >= 2.0**-20)


def built(dtype, shapes, make):
    b = GraphBuilder()
    return b.build(make(b, *(b.input(dtype, s) for s in shapes)))


# --- chains ---------------------------------------------------------------------------------------------------------


def test_a_chain_goes_on_in_a_contraction_of_one_term():
    """Its links have the shapes of the operands, not of the result."""
    b = GraphBuilder()
    x, s = b.input(DType.F64, (2, 1)), b.input(DType.F64, ())
    whole, spread = (b.apply(ops.BroadcastInDim(shape, ()), s) for shape in ((2, 1), (3, 1)))
    program = b.build(b.apply(ops.DotGeneral((1,), (1,), (), ()), b.apply(ops.Divide(), x, whole), spread))
    (made,) = enclose(program, [np.array([[1.5], [2.5]]), np.array(0.3)], XLA)
    assert made.contains(np.array([[1.5] * 3, [2.5] * 3])).all()
    assert (made.hi - made.lo < 1e-14).all()


def test_the_quotient_of_two_zeros_is_nan_however_the_root_is_taken():
    program = built(DType.F32, [(2,), (2,)], lambda b, x, y: b.apply(ops.Divide(), x, b.apply(ops.Sqrt(), y)))
    (e,) = enclose(program, [np.array([0, -0.0], F32), np.zeros(2, F32)], XLA)
    assert e.empty.all()


# --- sums -----------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.lists(SIGNED, min_size=3, max_size=30))
def test_the_bound_is_within_that_of_jeannerod_and_rump(terms):
    f, x = FORMATS[DType.F32], np.array(terms, np.float64)
    n, size = len(terms), np.abs(x).sum()
    error = any_order(f, np.abs(x.sum()), size, n - 1, False, _partial_sums(x))
    assert error <= (n - 1) * f.unit * size * (1 + 2 * n * f.unit + 2.0**-18)
    assert error <= any_order(f, np.abs(x.sum()), size, n - 1, False) * (1 + 2.0**-18)
    assert error >= f.unit * np.abs(x.sum())


def test_the_addend_of_a_contraction_is_rounded_once_for_each_sum():
    p = built(
        DType.F32,
        [(2,), (2,), ()],
        lambda b, x, y, z: b.apply(ops.Add(), b.apply(ops.DotGeneral((0,), (0,), (), ()), x, y), z),
    )
    z = F32(1.5 * 2.0**30)
    (e,) = enclose(p, [np.array([1.1, 1.3], F32), np.ones(2, F32), np.asarray(z)], XLA)
    assert (e.lo, e.hi) == (np.nextafter(z, -F32(INF)), np.nextafter(z, F32(INF)))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([1e-30, -1e-20, 3e-39, 0.7, -1.3, 5e6, 2.0]), min_size=2, max_size=5))
def test_products_that_underflow_are_bounded_in_every_order(factors):
    x = np.array(factors, F32)
    program = built(DType.F32, [x.shape], lambda b, v: b.apply(ops.ReduceProd((0,)), v))
    for model in (IEEE, XLA):
        (e,) = enclose(program, [x], model)
        assert e.decided
        for order in itertools.permutations(x):
            assert e.contains(np.asarray(np.multiply.reduce(np.array(order)))).all()
        for seed in range(4):
            assert e.contains(Perturbed(model, np.random.default_rng(seed)).run(program, [x])[0]).all()


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.C32])
def test_a_contraction_too_large_to_hold_is_enclosed_by_products_of_matrices(dtype, monkeypatch):
    """Around what is enclosed product by product, not much wider; exact where that is; NaN and overflow in their rows alone."""
    rng = np.random.default_rng(3)
    x, y = (np.asfortranarray(rng.standard_normal(s).astype(dtype.numpy)) for s in ((20, 60), (60, 30)))
    x[1], y[:, 2] = np.rint(x[1] * 8), np.rint(y[:, 2] * 8)
    x[3, 4], x[5] = NAN, FORMATS[dtype.real].max
    program = built(dtype, [x.shape, y.shape], lambda b, u, v: b.apply(ops.DotGeneral((1,), (0,), (), ()), u, v))
    for model in (IEEE, XLA):
        (held,) = enclose(program, [x, y], model)
        monkeypatch.setattr(sums, "CHUNK", 1)
        (large,) = enclose(program, [x, y], model)
        monkeypatch.undo()
        for p, q in zip(held.parts, large.parts, strict=True):
            assert ((q.lo <= p.lo) & (p.hi <= q.hi) & (q.nan >= p.nan)).all()
            assert (q.empty[3] == p.empty[3]).all()
            assert (q.lo == q.hi)[1, 2]
            usual = np.delete(np.arange(20), (3, 5))
            assert ((q.hi - q.lo)[usual] <= 5 * (p.hi - p.lo)[usual]).all()
        assert large.decided[usual].all()
        assert large.contains(NativeExecutor().run(Case.of(program, [x, y])).outputs[0]).all()


# --- NaN of complex numbers -----------------------------------------------------------------------------------------

SPOILED = [complex(NAN, 2), complex(-1, NAN), complex(NAN, NAN)]


def complex_array(values, dtype):
    made = np.empty(len(values), dtype.numpy)
    for i, v in enumerate(values):
        made[i] = v
    return made


@pytest.mark.parametrize("dtype", [DType.C32, DType.C64])
@pytest.mark.parametrize(
    "op", [ops.Exp, ops.Expm1, ops.Log, ops.Log1p, ops.Sin, ops.Cos, ops.Sqrt, ops.Rsqrt, ops.Sign, ops.Abs]
)
def test_nan_goes_into_both_parts_of_a_function(op, dtype):
    z = complex_array(SPOILED, dtype)
    program = built(dtype, [z.shape], lambda b, v: b.apply(op(), v))
    (e,) = enclose(program, [z], NUMPY)
    assert all(p.empty.all() for p in e.parts)
    assert e.contains(NativeExecutor().run(Case.of(program, [z])).outputs[0]).all()


@pytest.mark.parametrize("op", [ops.Multiply, ops.Divide])
def test_nan_goes_into_both_parts_of_a_product_unless_an_infinity_may_recover_it(op):
    z = complex_array([*SPOILED, complex(NAN, INF), complex(NAN, 1e30)], DType.C32)
    w = complex_array([1 - 2j, 3 + 0j, 0.5j, 1 + 1j, 1e30 + 1e30j], DType.C32)
    program = built(DType.C32, [z.shape, w.shape], lambda b, x, y: b.apply(op(), x, y))
    (e,) = enclose(program, [z, w], XLA)
    assert all(p.empty.tolist() == [True, True, True, False, False] for p in e.parts)
    assert e.contains(NativeExecutor().run(Case.of(program, [z, w])).outputs[0]).all()


def test_nan_stays_in_the_rows_of_a_contraction_that_it_is_in():
    x = np.array([[1, 2j], [complex(0, NAN), 1], [complex(INF, 0), NAN]], np.complex64, order="F")
    y = np.array([[1 + 1j], [2]], np.complex64, order="F")
    program = built(DType.C32, [x.shape, y.shape], lambda b, u, v: b.apply(ops.DotGeneral((1,), (0,), (), ()), u, v))
    (e,) = enclose(program, [x, y], XLA)
    assert e.decided[:, 0].tolist() == [True, True, True]
    assert not any(p.empty[0, 0] for p in e.parts)
    assert all(p.empty[1:].all() for p in e.parts)
    x[2, 1] = 1
    (e,) = enclose(program, [x, y], XLA)
    assert all((p.lo[2, 0], p.hi[2, 0], p.nan[2, 0]) == (INF, INF, True) for p in e.parts)


def test_the_modulus_of_an_infinity_is_one():
    z = complex_array([complex(INF, 1), complex(-2, -INF), complex(INF, INF), complex(INF, NAN)], DType.C64)
    (e,) = enclose(built(DType.C64, [z.shape], lambda b, v: b.apply(ops.Abs(), v)), [z], XLA)
    assert (e.lo == INF).all()
    assert e.nan.tolist() == [False, False, False, True]


def test_tanh_far_from_the_axis_may_lose_a_nan():
    z = complex_array([complex(NAN, 1), complex(50, NAN)], DType.C32)
    (e,) = enclose(built(DType.C32, [z.shape], lambda b, v: b.apply(ops.Tanh(), v)), [z], XLA)
    assert e.decided.tolist() == [True, False]


def test_the_logarithm_of_a_subnormal_is_that_or_minus_infinity():
    """It may be flushed, and nothing lies between what comes of that."""
    values = [1e-40, -3e-42j, complex(0, 1e-45), complex(-1e-40, 0), 1e-40 + 1e-40j, 3e-45 - 1e-38j]
    z = complex_array(values, DType.C32)
    (e,) = enclose(built(DType.C32, [z.shape], lambda b, v: b.apply(ops.Log(), v)), [z], XLA)
    assert e.decided.all()
    right = np.log(z.astype(complex)).astype(np.complex64)
    flushed = right.copy()
    flushed.real = -INF
    assert e.contains(right).all()
    assert e.contains(flushed).all()
    for wrong in (-60, -120, INF, NAN):
        right.real = wrong
        assert not e.contains(right).any()


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        *((op, DType.F32) for op in (ops.Log(), ops.Rsqrt(), ops.Pow(), ops.Divide())),
        (ops.Log(), DType.C32),
        (ops.Rsqrt(), DType.C32),
    ],
    ids=str,
)
def test_at_a_pole_each_side_of_a_gap_is_enclosed_for_itself(op, dtype):
    """A subnormal may be flushed: the result is that of it or that of zero, and nothing between the two."""
    d = np.array([1e-38, 0.25], dtype.numpy)
    other = np.array([-0.5, -0.5] if op == ops.Pow() else [1, 1], dtype.numpy)
    operands = [d] if op.arity == 1 else [d, other] if op == ops.Pow() else [other, d]
    program = built(dtype, [x.shape for x in operands], lambda b, *v: b.apply(op, *v))
    (e,) = enclose(program, operands, XLA)
    (right,) = NativeExecutor().run(Case.of(program, operands)).outputs
    (flushed,) = (
        NativeExecutor()
        .run(Case.of(program, [np.where(np.abs(x) < 1e-37, 0, x).astype(x.dtype) for x in operands]))
        .outputs
    )
    assert e.contains(right).all()
    assert e.contains(flushed).all()
    between = right * 2
    assert not e.contains(between.astype(dtype.numpy)).any()
    assert e.decided.all() or (op == ops.Rsqrt() and dtype is DType.C32)  # of a complex 1 / 0 NaN may come as well


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64], ids=str)
def test_nothing_is_between_what_a_subnormal_and_what_zero_scales_to(dtype):
    least = float(dtype.finfo.smallest_normal)
    d, scale = np.array([least / 4, least / 8], dtype.numpy), np.array([1 / least, -1 / least], dtype.numpy)
    b = GraphBuilder(policy=ops.STABLEHLO)
    x, y = b.input(dtype, (2,)), b.input(dtype, (2,))
    product = b.apply(ops.Multiply(), b.apply(ops.Abs(), b.apply(ops.Negate(), x)), y)
    root, sign = b.apply(ops.Sqrt(), x), b.apply(ops.Sign(), x)
    wide = b.apply(ops.Convert(DType.F64), x)
    program = b.build(product, b.apply(ops.Divide(), x, b.apply(ops.Divide(), x, x)), root, sign, wide)
    encl = enclose(program, [d, scale], XLA)
    right = NativeExecutor().run(Case.of(program, [d, scale])).outputs
    for k in (0, 2, 3, 4):
        assert encl[k].decided.all()
        assert encl[k].contains(right[k]).all()
        for part in (0.0, 0.5, 0.99):
            scaled = (right[k].astype(np.float64) * part).astype(right[k].dtype)
            assert encl[k].contains(scaled).all() == (part == 0), (k, part)
    assert encl[1].contains(right[1]).all()


def test_an_undecided_select_is_either_branch_and_nothing_between():
    b = GraphBuilder()
    x, y = b.input(DType.F32, (3,)), b.input(DType.F32, (3,))
    square = b.apply(ops.Multiply(), x, x)
    above = b.apply(ops.Compare(ops.CompareDir.Gt), b.apply(ops.Subtract(), square, y), b.apply(ops.Subtract(), y, y))
    program = b.build(b.apply(ops.Select(), above, y, b.apply(ops.Negate(), y)))
    arrays = [F32([1.1, 2.0, NAN]), F32([F32(1.1) * F32(1.1), 3.0, 1.0])]
    (e,) = enclose(program, arrays, XLA)
    assert e.decided.all()
    assert e.contains(arrays[1]).tolist() == [True, True, False]
    assert e.contains(-arrays[1]).tolist() == [True, False, True]
    assert not e.contains(F32([0.3, 0.3, 0.3])).any()


def test_what_is_an_infinity_or_nan_stays_one_in_products_and_quotients():
    z = complex_array([complex(INF, 1), complex(NAN, -INF)], DType.C32)
    zero = np.zeros(2, np.complex64)
    w = complex_array([2 - 3j, 1e20j], DType.C32)

    b = GraphBuilder()
    x, y, v = (b.input(DType.C32, (2,)) for _ in range(3))
    wild = b.apply(ops.Divide(), x, y)  # either infinity or NaN, both parts
    pairs = ((ops.Multiply, wild, v), (ops.Divide, wild, v), (ops.Divide, v, wild), (ops.Divide, wild, wild))
    program = b.build(*(b.apply(op(), *operands) for op, *operands in pairs))
    products, quotients, small, none = enclose(program, [z, zero, w], XLA)
    for e in (products, quotients):
        assert e.decided.all()
        assert not e.contains(w).any()
    assert small.contains(zero).all()
    assert not small.contains(w).any()
    assert all(p.empty.all() for p in none.parts)
    seen = NativeExecutor().run(Case.of(program, [z, zero, w])).outputs
    assert all(e.contains(o).all() for e, o in zip((products, quotients, small, none), seen, strict=True))


def test_the_bits_of_a_zero_have_the_sign_of_the_zero():
    """Of negated numbers the bound is a zero of the other sign."""
    b = GraphBuilder(policy=STABLEHLO)
    negated = b.apply(ops.Negate(), b.apply(ops.Special("tan"), b.input(DType.F64, (3,))))
    x = np.array([-0.0, 0.0, 1.0])
    (e,) = enclose(b.build(b.apply(ops.Bitcast(DType.I64), negated)), [x], IEEE)
    assert e.lo.tolist()[:2] == e.hi.tolist()[:2] == [0, -(2**63)]


def test_the_exponent_of_a_number_that_is_known_nearly_is_known():
    """By its bits, which are ordered as the numbers of one sign are."""
    b = GraphBuilder(policy=ops.STABLEHLO)
    bits = b.apply(ops.Bitcast(DType.I32), b.apply(ops.Exp(), b.input(DType.F32, (3,))))
    by = b.apply(ops.BroadcastInDim((3,), ()), b.apply(ops.Constant.of(23, DType.I32)))
    program = b.build(bits, b.apply(ops.Bits("shift_right_arithmetic"), bits, by))
    x = np.array([0.3, -2.0, 80.0], F32)
    near, exponent = enclose(program, [x], XLA)
    seen = NativeExecutor().run(Case.of(program, [x])).outputs
    assert not near.decided.any()
    assert near.contains(seen[0]).all()
    assert (near.hi - near.lo < 20).all()
    assert exponent.decided.all()
    assert exponent.contains(seen[1]).all()


@pytest.mark.parametrize(("bits", "dtype"), [(DType.I16, DType.BF16), (DType.I32, DType.F32)])
def test_the_bits_of_a_subnormal_are_it_or_zero(bits: DType, dtype: DType) -> None:
    """And so is what a factor makes of them, which need be no subnormal any more."""
    b = GraphBuilder(policy=ops.STABLEHLO)
    number, factor = b.apply(ops.Bitcast(dtype), b.input(bits, (1,))), b.input(dtype, (1,))
    program = b.build(number, b.apply(ops.Multiply(), number, factor))
    inputs = [np.array([2], bits.numpy), np.array([1 / float(dtype.finfo.smallest_normal)], dtype.numpy)]
    for kept, made in zip(
        NativeExecutor().run(Case.of(program, inputs)).outputs, enclose(program, inputs, XLA), strict=True
    ):
        assert made.contains(kept).all()
        assert made.contains(np.zeros_like(kept)).all()
        assert not made.contains(kept / 2).any()
