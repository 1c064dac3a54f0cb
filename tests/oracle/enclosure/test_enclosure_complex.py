"""Complex numbers: rectangles, exact where arithmetic is, open where implementations differ."""

import numpy as np
import pytest
from perturbed import Perturbed

from oracle.case import Case
from oracle.compare import compare
from oracle.enclosure import IEEE, MODELS, NUMPY, XLA, enclose
from oracle.enclosure.complexes import QUOTIENT
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import STABLEHLO, CompareDir
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


C64 = np.complex128
Z = C64([1 + 2j, -3 + 0.5j, 2j, -4])


def one(op, *arrays, model=IEEE):
    b = GraphBuilder()
    arrays = [np.asarray(a) for a in arrays]
    return enclose(b.build(b.apply(op, *(b.input(DType.of(a), a.shape) for a in arrays))), arrays, model)[0]


def is_point(e, expected):
    return all(((p.lo == v) & (p.hi == v)).all() for p, v in zip(e.parts, (expected.real, expected.imag), strict=True))


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_gaussian_integers_are_exact(model):
    rng = np.random.default_rng(0)
    x, y = (C64(rng.integers(-5, 6, (4, 3)) + 1j * rng.integers(-5, 6, (4, 3))) for _ in range(2))
    assert is_point(one(ops.Add(), x, y, model=model), x + y)
    assert is_point(one(ops.Multiply(), x, y, model=model), x * y)
    assert is_point(one(ops.ReduceSum((0,)), x, model=model), x.sum(0))
    assert is_point(one(ops.ReduceProd((1,)), x, model=model), x.prod(1))
    assert is_point(one(ops.DotGeneral((1,), (1,), (), ()), x, y, model=model), x @ y.T)
    assert is_point(
        one(ops.DotGeneral((), (), (0,), (0,)), x, y, model=model), (x[:, :, None] * y[:, None]).transpose(1, 2, 0)
    )


@pytest.mark.parametrize("shape", [(4, 3), (2, 2), (3, 8)])
def test_zeros_of_a_contraction(shape):
    """BLAS gives -0 for the real part where the sum as it stands is +0, in some kernels."""
    zeros = np.zeros(shape, C64)
    rng = np.random.default_rng(1)
    for part in (zeros.real, zeros.imag):
        part[rng.random(shape) < 0.5] = -0.0
    for x, y in ((zeros, zeros), (np.ones(shape, C64), 1j * np.ones(shape, C64))):
        made = one(ops.DotGeneral((1,), (1,), (), ()), x, y, model=MODELS["numpy"])
        assert made.contains(x @ y.T).all()
        assert is_point(made, x @ y.T)


def test_parts_move_and_convert():
    assert is_point(one(ops.Conj(), Z), Z.conj())
    assert one(ops.Convert(DType.F64), Z).lo.tolist() == Z.real.tolist()
    assert one(ops.Convert(DType.I32), Z).lo.tolist() == [1, -3, 0, -4]
    assert one(ops.Convert(DType.Bool), C64([0, 1j, np.nan, -0.0])).lo.tolist() == [0, 1, 1, 0]
    assert is_point(one(ops.Convert(DType.C64), np.array([2.0, -1.0])), C64([2, -1]))
    assert is_point(one(ops.Convert(DType.C32), Z), Z)
    assert one(ops.Compare(CompareDir.Eq), Z, Z * C64([1, 1, 1j, 1])).lo.tolist() == [1, 1, 0, 1]
    assert is_point(one(ops.Select(), np.array([True, False] * 2), Z, -Z), np.where([True, False] * 2, Z, -Z))
    assert is_point(one(ops.ReduceMax(()), Z), Z)
    assert is_point(one(ops.Multiply(), Z, np.array(2.0)), Z * 2)
    assert is_point(one(ops.Add(), np.array(2.0), Z), Z + 2)


INF, NAN = np.inf, np.nan
NONE = complex(NAN, NAN)


@pytest.mark.parametrize(
    ("op", "operands", "admitted", "refused"),
    [
        (ops.Multiply(), (INF, complex(INF, NAN)), (NONE, complex(INF, -INF)), (1, complex(INF, 0))),
        (ops.Divide(), (1, 0), (NONE, complex(INF, NAN)), (0, INF)),
        (ops.Divide(), (1, complex(INF, 0)), (0, NONE), (INF, 1)),
        (ops.Divide(), (complex(0, INF), 2), (complex(NAN, INF), NONE), (0, 1)),
        (ops.Divide(), (complex(INF, 0), complex(1, INF)), (NONE,), (0, complex(NAN, 0))),
        (ops.Pow(), (0, 1 + 1j), (0, NONE), (1, INF)),
        (ops.Pow(), (0, -1), (NONE, complex(INF, NAN)), (0, 1)),
        (ops.Pow(), (complex(1, INF), -2), (0, NONE), (INF, 1)),
        (ops.Pow(), (complex(NAN, 1), 2), (NONE,), (0, complex(NAN, 0))),
        (ops.Pow(), (complex(INF, 1), 0), (1, NONE), (0, INF)),
        (ops.Exp(), (1000,), (INF, complex(INF, NAN)), (NONE, complex(INF, 1))),
        (ops.Exp(), (complex(1, INF),), (NONE,), (1, INF)),
        (ops.Exp(), (complex(INF, INF),), (complex(INF, NAN), NONE), (1, INF)),
        (ops.Exp(), (complex(-INF, NAN),), (0, NONE), (1, INF)),
        (ops.Log(), (complex(-INF, INF),), (complex(INF, 3 * np.pi / 4),), (INF, NONE)),
        (ops.Log(), (0,), (-INF,), (0, NONE, complex(-INF, 1))),
        (ops.Log1p(), (-1,), (-INF,), (0, NONE)),
        (ops.Sqrt(), (complex(-INF, 2),), (complex(0, INF),), (complex(0, -INF), INF, NONE)),
        (ops.Rsqrt(), (0,), (complex(INF, NAN), INF), (0, 1)),
        (ops.Rsqrt(), (complex(1, INF),), (0, NONE), (1, INF)),
        (ops.Sin(), (complex(0, INF),), (complex(0, INF), complex(NAN, INF)), (complex(0, -INF), NONE, 1)),
        (ops.Cos(), (complex(INF, 0),), (complex(NAN, 0), NONE), (1, INF)),
        (ops.Tanh(), (complex(-INF, NAN),), (-1, complex(-1, NAN)), (1, NONE)),
        (ops.Sign(), (complex(2, INF),), (complex(0, NAN), NONE), (1, 1j)),
    ],
)
def test_special_values_are_lists(op, operands, admitted, refused):
    """What C99's Annex G names and what formulas by parts give, and nothing else."""
    e = one(op, *(C64([z]) for z in operands), model=XLA)
    assert e.decided.all()
    assert all(e.contains(C64([z])).all() for z in admitted)
    assert not any(e.contains(C64([z])).any() for z in refused)


def test_what_implementations_disagree_about_is_open():
    assert not one(ops.Pow(), C64([1e30]), C64([20])).decided.any()
    assert not one(ops.Pow(), C64([2]), C64([complex(INF, 1)])).decided.any()


def test_annex_g_is_demanded_where_nothing_is_computed_by_parts():
    z = C64([complex(NAN, INF), complex(-INF, NAN)])
    assert one(ops.Abs(), z, model=NUMPY).lo.tolist() == [INF, INF]
    assert not one(ops.Abs(), z, model=NUMPY).nan.any()
    assert one(ops.Abs(), z, model=XLA).nan.all()
    assert not one(ops.Exp(), z[1:], model=NUMPY).contains(C64([NONE])).any()


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_the_squared_modulus_of_a_divisor_may_overflow(model):
    """Where the textbook's quotient is NaN, infinite or 0; Smith's denominator overflows at most where the result is tiny."""
    numerators = C64([1, 1 + 1j, 1e100j, 1e-280, 1 - 1j])
    divisors = C64([1e-200, 1e200 - 1e190j, 3e-180 + 4e-180j, 1e-200 + 1e-200j, 1.7e308 + 1.7e308j])
    e = one(ops.Divide(), numerators, divisors, model=model)
    true = numerators.astype(np.clongdouble) / divisors
    assert e.decided.all()
    assert e.contains(true.astype(complex)).all()
    assert not e.contains(C64([np.inf, 0, np.inf, 0, np.inf])).any()
    assert e.contains(C64([0, 0, 0, 0, 0])).tolist() == [False] * 4 + [True]
    assert not e.contains((true * (1 + 2.0**-48)).astype(complex))[:4].any()


@pytest.mark.parametrize("model", [IEEE, XLA], ids=lambda m: m.name)
def test_a_quotient_is_off_by_its_units_at_most(model):
    """Smith's, with and without FMA: never more, and some more than half of that."""
    rng = np.random.default_rng(4)
    x, y = (C64(rng.standard_normal(20000) + 1j * rng.standard_normal(20000)) for _ in range(2))
    made = Perturbed(model, rng).smith(x, y).astype(np.clongdouble)
    true = x.astype(np.clongdouble) * y.conj() / np.abs(y.astype(np.clongdouble)) ** 2
    error = (np.abs(made - true) / np.abs(true)).max() * 2.0**53
    assert QUOTIENT / 3 < error < QUOTIENT


@pytest.mark.parametrize(
    ("op", "z", "expected"),
    [
        (ops.Exp(), complex(800, 2), complex(-np.inf, np.inf)),
        (ops.Exp(), complex(np.inf, -1), complex(np.inf, -np.inf)),
        (ops.Exp(), complex(-np.inf, 2), complex(-0.0, 0)),
        (ops.Exp(), complex(1e300, 1e-20), complex(np.inf, np.inf)),
        (ops.Expm1(), complex(-np.inf, 2), complex(-1, 0)),
        (ops.Expm1(), complex(np.inf, 3), complex(-np.inf, np.inf)),
        (ops.Sin(), complex(1, 1e5), complex(np.inf, np.inf)),
        (ops.Sin(), complex(2, -np.inf), complex(np.inf, np.inf)),
        (ops.Cos(), complex(2, 1e5), complex(-np.inf, -np.inf)),
        (ops.Cos(), complex(-2, np.inf), complex(-np.inf, np.inf)),
    ],
)
def test_limits_that_all_formulas_share(op, z, expected):
    for model in MODELS.values():
        e = one(op, C64([z]), model=model)
        assert e.decided.all()
        assert e.contains(C64([expected])).all()
        assert not e.contains(C64([complex(np.nan, np.nan)])).any()
        if np.isinf(expected):
            assert is_point(e, C64([expected]))


AXIS = [0.0, -0.0, 1e-30, 0.5, 1.0, 4.0, 30.0, -1e-30, -0.5, -1.0, -4.0, -30.0]


@pytest.mark.parametrize("dtype", [DType.C32, DType.C64], ids=str)
@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
@pytest.mark.parametrize(
    ("op", "above", "turned"),
    [
        (ops.Exp(), -INF, None),
        (ops.Expm1(), -INF, None),
        (ops.Sin(), -INF, 0),
        (ops.Cos(), -INF, 1),
        (ops.Tanh(), -INF, 0),
        (ops.Sqrt(), -1e-40, None),
        (ops.Rsqrt(), 1e-40, None),
        (ops.Log(), 1e-40, None),
        (ops.Log1p(), -1, None),
        (ops.Sign(), -INF, None),
    ],
    ids=str,
)
def test_a_function_of_a_real_number_has_no_imaginary_part(op, above, turned, dtype, model):
    """Nor has one of an imaginary number the part with a factor sin 0 or sinh 0. Either zero is admitted."""
    z = np.array([complex(x, y) for x in AXIS if x > above for y in (0.0, -0.0)], dtype.numpy)
    parts = [one(op, z, model=model).parts[1]]
    if turned is not None:
        parts.append(
            one(op, np.array([complex(y, x) for x in AXIS for y in (0.0, -0.0)], dtype.numpy), model=model).parts[
                turned
            ]
        )
    for part in parts:
        assert (part.lo == 0).all()
        assert (part.hi == 0).all()
        assert (part.pos_zero & part.neg_zero).all()
        assert not part.nan.any()


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_the_real_part_is_that_of_the_real_function_at_0_and_1(model):
    for op, at, value in (
        (ops.Exp(), 0, 1),
        (ops.Cos(), 0, 1),
        (ops.Sin(), 0, 0),
        (ops.Tanh(), 0, 0),
        (ops.Expm1(), 0, 0),
        (ops.Log1p(), 0, 0),
        (ops.Sqrt(), 0, 0),
        (ops.Log(), 1, 0),
        (ops.Sign(), 1, 1),
    ):
        assert is_point(one(op, np.complex64(at), model=model), complex(value)), op


def test_what_overflows_beside_a_zero_may_be_nan_by_parts():
    assert one(ops.Exp(), C64(1000), model=XLA).parts[1].nan
    assert not one(ops.Exp(), C64(1000), model=IEEE).parts[1].nan


def test_the_axis_of_one_element_says_nothing_of_another():
    made = one(ops.Exp(), C64([2, 2 + 1e-9j, complex(2, NAN)])).parts[1]
    assert (made.lo == made.hi).tolist() == [True, False, False]
    assert made.empty.tolist() == [False, False, True]


def test_a_part_that_may_not_overflow_is_open():
    """exp(709.9) overflows, and times cos(pi / 2) does not: some formulas multiply, others scale."""
    e = one(ops.Exp(), C64([complex(709.9, np.pi / 2)]))
    assert not e.decided.any()
    assert e.contains(C64([complex(1, np.inf)])).all()


def test_powers_of_large_and_small_bases_and_of_zero():
    e = one(ops.Pow(), C64([1e200, 1e-200, 1e-200 + 1e-200j, 0]), C64([-2.5, 1.25, 1 + 1e-9j, 2]))
    assert e.decided.all()
    assert e.contains(C64([0, 1e-250, 1e-200 + 1e-200j, 0])).tolist() == [True, True, False, True]
    assert not e.contains(C64([1e-200, 0, 0, 1e-200])).any()


def test_away_from_the_cut():
    for f in (ops.Sqrt(), ops.Log()):
        assert (one(f, C64([complex(-4, 1e-3)])).imag.lo > 0).all()


def test_a_small_part_is_as_accurate_as_the_modulus():
    e = one(ops.Divide(), C64([1 + 1e-20j]), C64([3]))
    ulp = np.spacing(1 / 3)
    assert e.contains(C64([1 / 3 + 2 * ulp * 1j])).all()
    assert not e.contains(C64([1 / 3 + 20 * ulp * 1j])).any()


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_the_modulus_and_sign_of_tiny_numbers_are_known(model):
    """The product of the ends of a part underflows; the modulus is normal, but small."""
    z = C64([complex(3e-170, -4e-170), complex(4e-200, 3e-200), complex(-3e-305, 4e-305)])
    modulus = one(ops.Abs(), z, model=model)
    assert modulus.contains(np.abs(z)).all()
    assert not modulus.contains(np.abs(z) * (1 - 1e-9)).any()
    assert not modulus.contains(np.zeros(3)).any()
    sign = one(ops.Sign(), z, model=model)
    assert sign.contains(C64([0.6 - 0.8j, 0.8 + 0.6j, -0.6 + 0.8j])).all()
    assert not sign.contains(C64([0.61 - 0.8j, 0.81 + 0.6j, -0.61 + 0.8j])).any()
    assert not sign.contains(np.full(3, complex(NAN, NAN))).any()


def test_what_is_emitted_keeps_the_sign_of_a_conjugated_zero():
    """The native executor's passes may take a Conj to the operands of a sum that cancels; no one does in a module."""
    z = C64([complex(-4, 0.0)])
    held = {name: one(ops.Conj(), z, model=MODELS[name]) for name in ("interpreter", "xla", "numpy")}
    assert [name for name, e in held.items() if e.contains(z).all()] == ["numpy"]
    assert all(e.contains(np.conj(z)).all() for e in held.values())


def test_a_logarithm_that_is_off_is_multiplied_by_the_exponent():
    """|x| is 1 - 1.1e-8, which F32 rounds to 1: its power of 2e9 is 1 instead of 4e-11, as all plugins have it."""
    x, y = np.complex64([0.7501125 + 0.66131026j]), np.complex64([2.147484e9 + 0.004512418j])
    e = one(ops.Pow(), x, y, model=XLA)
    assert e.contains(np.complex64([0.12848355 + 0.9884292j])).all()
    usual = one(ops.Pow(), x, np.complex64([20.5 + 0.5j]), model=XLA)
    assert max(float((p.hi - p.lo)[0]) for p in usual.parts) < 1e-4
    # of C64 by more than there are exponents: the plugins' result is infinite, the true one 2e-53
    far = one(
        ops.Pow(), C64([0.8853533037361403 - 0.46491883975969583j]), C64([-(2.0**63) + 1.0954964732403722j]), model=XLA
    )
    assert far.contains(C64([complex(-INF, -INF)])).all()


def test_sign_abs_and_powers():
    assert is_point(one(ops.Sign(), C64([0, complex(-0.0, 0)])), C64([0, 0]))
    assert one(ops.Sign(), C64([3 + 4j])).contains(C64([0.6 + 0.8j])).all()
    modulus = one(ops.Abs(), C64([3 + 4j, 0, complex(0, -np.inf)]))
    assert modulus.dtype is DType.F64
    assert modulus.contains(np.array([5.0, 0.0, np.inf])).all()
    assert (modulus.lo[1], modulus.hi[1]) == (0, 0)
    assert not modulus.contains(np.array([5.1, 0.1, np.nan]))[:2].any()
    assert one(ops.Pow(), C64([2j]), C64([2])).contains(C64([-4])).all()
    assert not one(ops.Pow(), C64([2j]), C64([2])).contains(C64([-4.0001])).any()


def test_fma_is_admitted_under_xla_only():
    a, square = 1 + 2.0**-52, 1 + 2.0**-51  # rounded, a * a is the square; 2**-104 is left of it
    x, y = C64([complex(a, square)]), C64([complex(a, 1)])
    for model, admitted in ((XLA, True), (NUMPY, False)):
        e = one(ops.Multiply(), x, y, model=model).parts[0]
        assert e.contains(np.array([0.0])).all()
        assert bool(e.contains(np.array([2.0**-104])).all()) is admitted


def test_comparison_names_the_part():
    b = GraphBuilder()
    program = b.build(b.apply(ops.Exp(), b.input(DType.C64, (4,))))
    e = enclose(program, [Z], NUMPY)
    right = np.exp(Z)
    good = compare(e, None, [right], [right])
    assert (good.elements, good.decided, good.outside, good.worst_ulp) == (4, 4, 0, 0.0)
    assert 0 < max(w for w, _ in good.widths) < 4
    wrong = right.copy()
    wrong[2] += 1e-9j
    bad = compare(e, None, [wrong], [right])
    assert (bad.outside, bad.worst_index) == (1, (2,))
    assert bad.value_class == "expected finite, got other finite (imaginary part)"
    assert bad.expected.endswith("i")
    assert bad.worst_ulp > 1e6


@pytest.mark.parametrize("model", [IEEE, XLA])
@pytest.mark.parametrize(("size", "open_"), [(2.0, False), (2.0**60, True)])
def test_a_zero_does_not_keep_the_other_factors_of_a_product_from_overflowing(size, open_, model):
    """(2^60)^3 is infinite in C32 in any order that leaves the zero to the end, and infinity times zero is NaN."""
    x = np.array([size + 1j, 1 + size * 1j, size, 0], np.complex64)
    with np.errstate(all="ignore"):
        late, early = (np.prod(x[order]) for order in ([0, 1, 2, 3], [3, 0, 1, 2]))
    assert np.isnan(late) == open_
    assert early == 0
    e = one(ops.ReduceProd((0,)), x, model=model)
    for outcome in (late, early):
        assert e.contains(np.asarray(outcome, np.complex64)).all()
    assert bool(e.parts[0].nan) == open_


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_the_real_part_of_a_contraction_may_be_either_zero(dtype):
    """BLAS sums the products of the real and of the imaginary parts apart, and some of its kernels subtract the first sum."""
    x = np.asfortranarray(np.array([[0, 0], [0, -1]], dtype))
    for a, b in ((x, x), (0 * x, x)):
        e = one(ops.DotGeneral((1,), (1,), (), ()), a, b, model=NUMPY)
        for sign in (1.0, -1.0):
            zero = np.zeros((2, 2), dtype)
            zero.real = np.copysign(0, sign)
            assert e.contains(zero)[0, 1]
        assert not one(ops.DotGeneral((1,), (1,), (), ()), a, b, model=IEEE).parts[0].neg_zero[0, 1]


@pytest.mark.parametrize("model", [IEEE, XLA])
def test_a_power_of_which_the_reciprocal_overflows_is_open(model):
    """(2^64 i)^-2 is -2^-128, a subnormal of C32; 1 / (2^64 i)^2 is the reciprocal of an infinity."""
    x, y = np.complex64([2.0**64 * 1j, 2.0**50 * 1j]), np.complex64([-2, -2])
    e = one(ops.Pow(), x, y, model=model)
    assert e.parts[0].nan.tolist() == [True, False]
    assert e.contains(np.complex64([complex(np.nan, np.nan), -(2.0**-100)])).all()


@pytest.mark.parametrize("model", [IEEE, XLA])
@pytest.mark.parametrize(
    ("x", "y", "outcome"),
    [(0.01953125 - 0.032989502j, -17 - 87j, 0.0), (2.0**64 * 1j, 2 + 64j, complex(np.nan, np.nan))],
    ids=["exp(-Im y arg x) underflows", "|x|^Re y overflows"],
)
def test_a_power_of_usual_size_whose_factors_are_not_is_open(x, y, outcome, model):
    """|x|^Re y exp(-Im y arg x): 1e24 times 7e-40 in C32, where `xla` may flush the subnormal; 2^128 times 2e-44."""
    e = one(ops.Pow(), np.complex64([x]), np.complex64([y]), model=model)
    with np.errstate(all="ignore"):
        assert e.contains(np.complex64(np.complex128([x]) ** np.complex128([y]))).all()
    assert model is IEEE or e.contains(np.complex64([outcome])).all()


def test_a_sum_whose_terms_are_conjugated_cancels_to_either_zero() -> None:
    """ConjSinking makes -(1) + 1 of -(1 - 1): +0 in place of -0."""
    b = GraphBuilder()
    x = b.input("C64", (2,))
    case = Case.of(b.build(b.apply(ops.Conj(), x.sum(0))), [np.array([1 + 1j, 1 - 1j])])
    assert judge(NativeExecutor(), Reference(case, NativeExecutor())).verdict is Verdict.PASS
    assert (
        judge(NativeExecutor("native-nopasses", passes=()), Reference(case, NativeExecutor())).verdict is Verdict.PASS
    )


def test_the_product_of_two_real_numbers_as_complex_ones_goes_unrounded_into_a_sum() -> None:
    """x y - 0 0 is x y: a compiler knows the zeros of the imaginary parts."""
    x, y = (np.random.default_rng(seed).standard_normal(8).astype(np.float32) for seed in (1, 2))
    x[-1] = 3e38  # beside a product that overflows, too
    y[-1] = 2.0
    with np.errstate(over="ignore"):
        z = x * y
    fused = (x.astype(np.float64) * y - z).astype(np.float32)
    for whole in (True, False):
        b = GraphBuilder(policy=STABLEHLO)
        p, q, r = (b.input("F32", (8,)) for _ in range(3))
        to_complex, to_real = ops.Convert(DType.C32), ops.Convert(DType.F32)
        product = b.apply(to_complex, p) * b.apply(to_complex, q)
        made = product - b.apply(to_complex, r) if whole else b.apply(to_real, product) - r
        strict, free = (enclose(b.build(made), [x, y, z], m)[0].parts[0] for m in (IEEE, XLA))
        assert free.contains(fused).all()
        assert not strict.contains(fused).all()
        assert free.decided[:-1].all()


@pytest.mark.parametrize("moved", ["", "Concatenate", "Select"])
def test_the_zero_imaginary_part_of_a_sum_of_real_numbers_is_known(moved: str) -> None:
    """(x + s)^2 + (x + s) of complex numbers whose imaginary parts are all zeros that a compiler wrote: one rounding is left out."""
    x, s = np.float32([0.0, 0.25]), np.float32(-1.1442413)
    b = GraphBuilder(policy=STABLEHLO)
    z = b.apply(ops.Add(), b.apply(ops.Convert(DType.C32), b.input("F32", (2,))), b.input("F32", ()))
    if moved == "Concatenate":
        z = b.apply(ops.Slice((0,), (2,), (1,)), b.apply(ops.Concatenate(0), z, z))
    elif moved == "Select":
        z = b.apply(ops.Select(), b.apply(ops.Compare(CompareDir.Eq), z, z), z, -z)
    program = b.build(z * z + z)
    strict, free = (enclose(program, [x, s], m)[0].parts[0] for m in (IEEE, XLA))
    sums = (x + s).astype(np.float64)
    fused = (sums * sums + sums).astype(np.float32)
    assert free.contains(fused).all()
    assert free.decided.all()
    assert not strict.contains(fused).all()
