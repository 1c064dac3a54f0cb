"""The checks of derivative rules: what they hold true, what they refuse, and what they do not claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest

from oracle import linearity
from oracle.case import Case
from oracle.derivation import derived, derived_alike, plain_seed, replayed
from oracle.enclosure import IEEE, REAL, enclose
from oracle.judge import Reference, judge
from oracle.peers import Executor, NativeExecutor, Pool
from oracle.verdict import Answer, Verdict
from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.autodiff import JVP
from tenferro_ref.autodiff.errors import UnsupportedMetadata
from tenferro_ref.dtype import DType
from tenferro_ref.errors import Internal
from tenferro_ref.extensions import linalg
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import GraphBuilder, Value
from tests.libraries import module_or_skip

pytestmark = pytest.mark.once

TRANSFORMS = (("jvp",), ("vjp",), ("jvp", "vjp"))


def case_of(function: Callable[..., Value], *inputs: np.ndarray) -> Case:
    b = GraphBuilder()
    return Case.of(b.build(function(*(b.input(_dtype(a), a.shape) for a in inputs))), inputs)


def _dtype(array: np.ndarray) -> str:
    return DType.of(array).name


def verdict(executor: Executor, case: Case | None) -> Answer:
    assert case is not None
    return judge(executor, Reference(case, NativeExecutor()))


def _log_det(a: Value) -> Value:
    """log |det| times the phase of the determinant."""
    sign, logarithm = linalg.slogdet(a)
    return sign * logarithm


X = np.array([0.3, -1.25, 2.0, 0.7])
Z = X * (0.5 + 1.5j)
PROGRAMS: dict[str, Case] = {
    "product": case_of(lambda x, y: x * y, X, X[::-1].copy()),
    "complex": case_of(lambda x, y: tn.exp(x * y) / y, Z, Z[::-1].copy()),
    "modulus": case_of(lambda z: abs(z), Z),
    "matrix": case_of(lambda x, y: tn.tanh(x.reshape(2, 2) @ y.reshape(2, 2)).sum(0), X, X),
    "product with zeros": case_of(lambda x: x.prod(), np.array([0.0, 3.0, 0.0, 4.0, 2.0])),
    "repeated indices": case_of(lambda x, i: tn.take(x, i) * 3.0, X, np.array([1, 1, 0])),
    "system": case_of(lambda a, b: linalg.solve(a.reshape(2, 2), b.reshape(2, 2)), Z, X + 1j),
    "factors": case_of(lambda a: linalg.qr(a.reshape(2, 2))[1], Z + np.array([3, 0, 0, 2])),
    "definite": case_of(lambda a: linalg.cholesky(a.reshape(2, 2)), np.array([3.0, 1.0, 9.0, 2.0])),
    "one-sided": case_of(lambda a: linalg.eigvalsh(a.reshape(2, 2)), X),
    "determinant": case_of(lambda a: _log_det(a.reshape(2, 2)), Z[::-1] * np.array([1, 2, 3, 1j])),
    "mixed": case_of(lambda x, i: x * i.astype("F64"), X, np.arange(4)),
}


@pytest.mark.parametrize("transforms", TRANSFORMS, ids=" of ".join)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("check", ["derivative-adjoint", "derivative-differences", "derivative-jax"])
def test_right_rules_pass_and_are_decided(check: str, name: str, transforms: tuple[str, ...], pool: Pool) -> None:
    if check.endswith("jax"):
        module_or_skip("jax")
    answer = verdict(pool.make(check), derived(PROGRAMS[name], transforms, plain_seed))
    assert answer.verdict is Verdict.PASS, answer.reason
    assert answer.comparison.decided == answer.comparison.elements > 0


@pytest.mark.parametrize("check", ["derivative-adjoint", "derivative-differences", "derivative-jax"])
def test_what_overflows_on_the_way_is_no_number(check: str, pool: Pool) -> None:
    """In one formula of the derivative x ** 4 is infinite, and 1 over it would be 0, whatever stands beside it."""
    if check.endswith("jax"):
        module_or_skip("jax")
    case = derived(case_of(lambda x: x / x, np.array([2.0**32, np.inf], np.float32)), ("jvp", "vjp"), plain_seed)
    assert verdict(pool.make(check), case).verdict in (Verdict.PASS, Verdict.UNDECIDED)


def test_what_jax_cannot_differentiate_is_unsupported(pool: Pool) -> None:
    """It differentiates what no output needs as well, and not the eigenvectors that are in a derivative of eigenvalues."""
    module_or_skip("jax")
    b = GraphBuilder()
    x, y = b.input("F64", (1, 1)), b.input("F64")
    linalg.eigvals(x)
    case = derived(Case.of(b.build(y), [np.ones((1, 1)), np.array(1.0)]), ("jvp", "vjp"), plain_seed)
    answer = verdict(pool.make("derivative-jax"), case)
    assert answer.verdict is Verdict.UNDECIDED
    assert "not supported" in answer.reason


def test_both_sides_are_narrow() -> None:
    """What shows nothing because it is wide would pass, too."""
    case = derived(PROGRAMS["complex"], ("jvp", "vjp"), plain_seed)
    assert case is not None
    for one, other in zip(*Pool().make("derivative-adjoint").sides(case), strict=True):  # type: ignore[attr-defined]
        assert max(one.hi - one.lo, other.hi - other.lo) < 1e-9 * abs(one.lo)


def test_a_wrong_tangent_is_seen_by_difference_quotients(pool: Pool) -> None:
    check = pool.make("derivative-differences")
    for dtype in (np.float64, np.float32):
        b = GraphBuilder()
        x = b.input("F64" if dtype is np.float64 else "F32", (4,))
        case = derived(Case.of(b.build(tn.sin(x)), [X.astype(dtype)]), ("jvp",), plain_seed)
        with mock.patch.dict(JVP._rows, {ops.Sin: lambda op, x, y, t: t[0] * tn.cos(x[0]) * 1.01}):
            assert verdict(check, case).verdict is Verdict.MISMATCH
        assert verdict(check, case).verdict is Verdict.PASS
    for kinked in (case_of(abs, np.array([0.0, 1.0])), case_of(tn.maximum, X, X)):
        answer = verdict(check, derived(kinked, ("jvp",), plain_seed))
        assert answer.verdict is Verdict.UNDECIDED
        assert "may have a kink" in answer.reason


def test_wrong_tangents_of_factors_are_seen_by_difference_quotients(pool: Pool) -> None:
    """JAX has no elimination with full pivoting, and the vjp is the transpose of a wrong jvp."""
    a = np.array([[1.0, 9.0, 2.0], [1.0, 1.0, 5.0], [3.0, 0.5, 1.0]])
    case = derived(case_of(lambda x: linalg.full_piv_lu(x)[2], a), ("vjp",), plain_seed)
    check, key = pool.make("derivative-differences"), (linalg.FAMILY, "FullPivLu")
    right = JVP[key]
    assert verdict(check, case).verdict is Verdict.PASS

    def wrong(op: Any, x: Any, y: Any, t: Any) -> Any:
        p, lower, upper, q, parity = y
        return right(op, x, (p, lower, upper, q.transpose(1, 0), parity), t)

    with mock.patch.dict(JVP._rows, {key: wrong}):
        assert verdict(check, case).verdict is Verdict.MISMATCH
        assert verdict(pool.make("derivative-adjoint"), case).verdict is Verdict.PASS


def test_factors_that_jump_are_not_compared(pool: Pool) -> None:
    """Two pivots are equal, and which one is taken depends on the step."""
    tie = derived(case_of(lambda x: linalg.lu(x)[2], np.array([[1.0, 5.0], [-1.0, 2.0]])), ("jvp",), plain_seed)
    answer = verdict(pool.make("derivative-differences"), tie)
    assert answer.verdict is Verdict.UNDECIDED
    assert "may jump" in answer.reason


def test_a_rule_that_makes_no_program_is_a_defect(pool: Pool) -> None:
    """It raises while the derivative is made, which must not look like an op without a rule."""
    primal = case_of(tn.sin, X)
    case = derived(primal, ("vjp",), plain_seed)
    with mock.patch.dict(JVP._rows, {ops.Sin: lambda op, x, y, t: t[0] * x[0].reshape(2, 3)}):
        with pytest.raises(Internal, match="a derivative rule"):
            derived(primal, ("vjp",), plain_seed)
        assert derived_alike(case, primal) is None  # type: ignore[arg-type]
        assert verdict(pool.make("derivative-adjoint"), case).verdict is Verdict.ERROR


def test_a_rule_that_misses_constant_extents_where_all_are_is_a_defect() -> None:
    def refusing(*_: object) -> None:
        raise UnsupportedMetadata(op="Sin", detail="an extent is not constant")

    b = GraphBuilder()
    x = b.input("F64", ("n",))
    symbolic = Case.of(b.build(tn.sin(x)), [X])
    with mock.patch.dict(JVP._rows, {ops.Sin: refusing}):
        with pytest.raises(Internal, match="whose extents are constant"):
            derived(case_of(tn.sin, X), ("vjp",), plain_seed)
        assert derived(symbolic, ("vjp",), plain_seed) is None


def test_the_gradient_and_the_transpose_are_the_vjp(pool: Pool) -> None:
    check = pool.make("derivative-adjoint")
    scalar = derived(case_of(lambda x: tn.sin(x).sum(), X), ("vjp",), plain_seed)
    linear = derived(case_of(lambda x, y: x * y.sum() + x, X, X), ("vjp",), plain_seed)
    assert (verdict(check, scalar).comparison.elements, verdict(check, linear).comparison.elements) == (5, 5)

    def twice(right: Any) -> Any:
        def wrong(program: Any, *rest: Any) -> Any:
            made = right(program, *rest)
            b = GraphBuilder()
            outputs = replayed(b, made.program, [b.typed_input(t) for t in made.program.input_types])
            return dataclasses.replace(made, program=b.build(*(v + v for v in outputs)))

        return wrong

    for name, case in (("grad", scalar), ("transpose", linear)):
        with mock.patch.object(linearity, name, twice(getattr(linearity, name))):
            assert verdict(check, case).verdict is Verdict.MISMATCH


def test_nan_is_wrong_where_the_program_is_smooth_and_its_values_are_ordinary(pool: Pool) -> None:
    """A product rule that divides by the factors."""
    module_or_skip("jax")

    def wrong(op: Any, x: Any, y: Any, t: Any) -> Any:
        return (y[0] / x[0] * t[0]).sum(op.axes)

    check = pool.make("derivative-jax")
    for factors, due in (([0.0, 3.0, 4.0], Verdict.MISMATCH), ([1e-30, 0.0, 4.0], Verdict.PASS)):
        case = derived(case_of(lambda x: x.prod(), np.array(factors)), ("vjp",), plain_seed)
        with mock.patch.dict(JVP._rows, {ops.ReduceProd: wrong}):
            assert verdict(check, case).verdict is due, factors
        assert verdict(check, case).verdict is Verdict.PASS


def test_a_derivative_that_is_nan_at_the_modulus_of_a_complex_zero_is_wrong(pool: Pool) -> None:
    """In real arithmetic that modulus is exactly 0, for which JAX's rule tests before it divides."""
    module_or_skip("jax")

    def wrong(op: Any, x: Any, y: Any, t: Any) -> Any:
        return (x[0].builder.apply(ops.Conj(), x[0]) * t[0]).astype(y[0].dtype) / y[0]

    check = pool.make("derivative-jax")
    case = derived(case_of(abs, np.array([0, 1, 2j])), ("jvp",), plain_seed)
    with mock.patch.dict(JVP._rows, {ops.Abs: wrong}):
        assert verdict(check, case).verdict is Verdict.MISMATCH
    assert verdict(check, case).verdict is Verdict.PASS


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0])
def test_a_derivative_that_is_nan_at_a_whole_power_of_0_is_wrong(exponent: float, pool: Pool) -> None:
    """The result divided by the base; of other exponents, and of those that have a tangent, nothing is claimed at 0."""
    module_or_skip("jax")

    def wrong(op: Any, x: Any, y: Any, t: Any) -> Any:
        return t[0] * (x[1] * y[0] / x[0]) if t[1] is None else right(op, x, y, t)

    right, check = JVP[ops.Pow], pool.make("derivative-jax")
    base = np.array([0.0, -2.0, 3.0])
    for function, inputs, due in (
        (lambda x: x**exponent, (base,), Verdict.MISMATCH),
        (lambda x, n: x ** n.astype("F64"), (base, np.full(3, int(exponent))), Verdict.MISMATCH),
        (lambda x: x ** (exponent - 0.5), (abs(base),), Verdict.PASS),
        (lambda x: x**-exponent, (base,), Verdict.PASS),
        (lambda x, y: x**y, (base, np.full(3, exponent)), Verdict.PASS),
    ):
        case = derived(case_of(function, *inputs), ("jvp",), plain_seed)
        with mock.patch.dict(JVP._rows, {ops.Pow: wrong}):
            assert verdict(check, case).verdict is due
        assert verdict(check, case).verdict is Verdict.PASS


def test_phases_of_vectors_and_packed_factors_are_not_compared(pool: Pool) -> None:
    module_or_skip("jax")
    vectors = case_of(lambda a: linalg.svd(a.reshape(2, 2))[0], Z + np.array([3, 0, 0, 1]))
    packed = case_of(lambda a: linalg.lu_factor(a.reshape(2, 2))[0] * a.reshape(2, 2), X)
    for case in (vectors, packed):
        made = derived(case, ("jvp",), plain_seed)
        assert verdict(pool.make("derivative-adjoint"), made).verdict is Verdict.PASS
        for check in ("derivative-jax", "derivative-differences"):
            assert verdict(pool.make(check), made).verdict is Verdict.UNDECIDED
    moduli = case_of(lambda a: abs(linalg.svd(a.reshape(2, 2))[0]), Z + np.array([3, 0, 0, 1]))
    assert verdict(pool.make("derivative-jax"), derived(moduli, ("jvp",), plain_seed)).verdict is Verdict.PASS


def test_the_product_of_both_factors_has_no_phase(pool: Pool) -> None:
    """U V^H has the tangent of the nearest unitary matrix, which a wrong sign of what turns the vectors changes."""
    module_or_skip("jax")

    def nearest(a: Value) -> Value:
        u, _, vh = linalg.svd(a.reshape(2, 2))
        return u.builder.apply(ops.DotGeneral((1,), (0,), (), ()), u, vh)

    def plain(a: Value) -> Value:
        u, _, vh = linalg.svd(a.reshape(2, 2))
        return u.builder.apply(ops.DotGeneral((1,), (1,), (), ()), u, vh)

    check, key = pool.make("derivative-jax"), (linalg.FAMILY, "Svd")
    a = Z + np.array([3, 0, 0, 1])
    case, right = derived(case_of(nearest, a), ("jvp",), plain_seed), JVP[key]

    def turned_too_far(op: Any, x: Any, y: Any, t: Any) -> Any:
        """The tangent of U with another phase, so that U V^H is no longer what it should be."""
        du, ds, dvh = right(op, x, y, t)
        return du + y[0] * ds.astype(du.dtype) * 1j, ds, dvh

    assert verdict(check, case).verdict is Verdict.PASS
    with mock.patch.dict(JVP._rows, {key: turned_too_far}):
        assert verdict(check, case).verdict is Verdict.MISMATCH
    assert verdict(check, derived(case_of(plain, a), ("jvp",), plain_seed)).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize("name", ["eigh", "svd"])
@pytest.mark.parametrize("dtype", ["F64", "C64"])
def test_tangents_are_as_small_as_the_op_asks_for(name: str, dtype: str, pool: Pool) -> None:
    """The derivative is then that of no function, so that difference quotients say nothing."""
    module_or_skip("jax")

    def moduli(a: Value, eps: float = 0.5) -> Value:
        return abs(getattr(linalg, name)(a.reshape(2, 2), derivative_eps=eps)[1 if name == "eigh" else 0])

    x = (X if dtype == "F64" else Z) + np.array([3, 0, 0, 1])
    case, check = derived(case_of(moduli, x), ("jvp",), plain_seed), pool.make("derivative-jax")
    assert verdict(check, case).verdict is Verdict.PASS
    assert verdict(check, derived(case_of(moduli, x), ("vjp",), plain_seed)).verdict is Verdict.PASS
    assert verdict(pool.make("derivative-adjoint"), case).verdict is Verdict.PASS
    assert verdict(pool.make("derivative-differences"), case).verdict is Verdict.UNDECIDED
    assert verdict(check, derived(case_of(moduli, x), ("jvp", "jvp"), plain_seed)).verdict is Verdict.UNDECIDED
    with mock.patch("tenferro_ref.extensions.linalg.derivative_eps", return_value=linalg.DERIVATIVE_EPS):
        assert verdict(check, case).verdict is Verdict.MISMATCH


def test_a_wrong_tangent_is_seen_by_jax_alone(pool: Pool) -> None:
    module_or_skip("jax")
    case = derived(case_of(tn.sin, X), ("vjp",), plain_seed)
    with mock.patch.dict(JVP._rows, {ops.Sin: lambda op, x, y, t: t[0] * tn.sin(x[0])}):
        assert verdict(pool.make("derivative-jax"), case).verdict is Verdict.MISMATCH
        # the vjp is the transpose of a wrong jvp: the two agree
        assert verdict(pool.make("derivative-adjoint"), case).verdict is Verdict.PASS
    assert verdict(pool.make("derivative-jax"), case).verdict is Verdict.PASS


def test_a_derivative_that_is_left_out_must_be_zero(pool: Pool) -> None:
    module_or_skip("jax")
    case = derived(case_of(lambda x, y: x * y, X, X), ("vjp",), plain_seed)
    with mock.patch.dict(JVP._rows, {ops.Multiply: lambda op, x, y, t: t[0] * x[1]}):
        answer = verdict(pool.make("derivative-jax"), case)
    assert answer.verdict is Verdict.MISMATCH
    assert answer.comparison.worst_output == 1


def test_at_a_kink_the_derivative_is_that_of_the_contract(pool: Pool) -> None:
    """JAX takes 1 for the derivative of abs at 0, the contract 0 (SEMANTICS B.2)."""
    module_or_skip("jax")
    for transforms in TRANSFORMS[:2]:
        case = derived(case_of(abs, np.array([0.0, -0.0, -1.0])), transforms, plain_seed)
        assert verdict(pool.make("derivative-jax"), case).verdict is Verdict.PASS


def test_an_index_beyond_i32_is_outside(pool: Pool) -> None:
    """JAX's transpose of a scatter reads it as another one (finding 0097)."""
    module_or_skip("jax")
    add = ops.Scatter((1,), (), (0,), 1)
    scattered = case_of(lambda x, i, u: x.builder.apply(add, x, i, u), X, np.array([[2**32], [1]]), np.ones((2, 1)))
    case = derived(replace(scattered, program=replace(scattered.program, policy=STABLEHLO)), ("vjp",), plain_seed)
    assert verdict(pool.make("derivative-jax"), case).verdict is Verdict.PASS


def test_where_a_value_is_infinite_nothing_is_claimed(pool: Pool) -> None:
    case = derived(case_of(tn.log, np.array([0.0])), ("vjp",), plain_seed)
    answer = verdict(pool.make("derivative-adjoint"), case)
    assert (answer.verdict, answer.comparison.decided) == (Verdict.UNDECIDED, 0)


def test_other_programs_are_not_their_concern(pool: Pool) -> None:
    assert verdict(pool.make("derivative-adjoint"), case_of(tn.sin, X)).verdict is Verdict.UNSUPPORTED


def test_real_arithmetic_has_the_number_and_what_it_is_rounded_to() -> None:
    b = GraphBuilder()
    x, y = b.input("F32", (3,)), b.input("F32", (3,))
    program = b.build(x * y, x + y, x / y)
    inputs = [np.float32([1 / 3, 2.0, 0.1]), np.float32([3.0, 0.5, 0.2])]
    exact = [f(*(a.astype(np.float64) for a in inputs)) for f in (np.multiply, np.add, np.divide)]
    for true, rounded, real in zip(exact, enclose(program, inputs, IEEE), enclose(program, inputs, REAL), strict=True):
        assert (real.lo <= true).all()
        assert (true <= real.hi).all()
        assert ((real.lo <= rounded.lo) & (rounded.hi <= real.hi)).all()
        # what is exact stays one value
        assert real.lo[1] == real.hi[1]
        assert real.lo[0] < real.hi[0]


@pytest.mark.parametrize(("x", "y"), [(1 + 2.0**-52, -1.0), (2.0**53, -1.0), (1 + 2.0**-52, 1.0)])
def test_a_sum_that_is_rounded_at_the_end_of_its_binade_is_not_exact(x: float, y: float, pool: Pool) -> None:
    """1 + 2^-52 + 1 is rounded to 2, and so is the sum that says how large it may be."""
    b = GraphBuilder()
    difference = b.build(b.input("F64", ()) - b.input("F64", ()))
    (made,) = enclose(difference, [np.array(x), np.array(y)], REAL)
    true = Fraction(x) - Fraction(y)
    assert Fraction(float(made.lo)) <= true <= Fraction(float(made.hi))
    case = derived(case_of(lambda p, q: p - q, np.array(x), np.array(y)), ("vjp",), plain_seed)
    answer = verdict(pool.make("derivative-differences"), case)
    assert not answer.verdict.is_disagreement, answer.reason
