"""Decompositions: native results keep every invariant, and each kind of fault breaks one."""

import numpy as np
import pytest

from oracle.checks import UNCHECKED, checks, compare
from oracle.decompositions.householder import pivoted
from oracle.decompositions.measures import scale_of, wide
from oracle.decompositions.spectra import true_eigenvalues, true_singular
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import NumericalFailure, UnsupportedOp
from tenferro_ref.extensions.linalg import LINALG
from tests.oracle.decompositions.drawn_matrices import (
    DTYPES,
    HOUSEHOLDER,
    RECTANGULAR,
    SOLVERS,
    SQUARE,
    drawn,
    op,
    operands,
)

pytestmark = pytest.mark.once


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", [*RECTANGULAR, *SQUARE, *SOLVERS])
def test_native_results_hold_and_moved_ones_do_not(name, dtype):
    rng = np.random.default_rng(5)
    for m, n in ((1, 1), (4, 4), (12, 12), *(((7, 4), (3, 6)) if name in RECTANGULAR else ())):
        given = operands(name, rng, dtype, m, n)
        made = LINALG.execute(op(name), given)
        found = checks(op(name), given, made)
        assert len(found) >= 2 or name in HOUSEHOLDER
        assert not [c for c in found if not c.holds]
        c = compare(op(name), given, made)
        assert (c.outside, c.decided) == (0, len(found))
        for k, output in enumerate(made):
            if min(m, n) < 2:
                continue
            wrong = [x.copy() for x in made]
            at = (0,) * (output.ndim - 1)
            wrong[k][at] += wrong[k].dtype.type(1 if output.dtype.kind == "i" else max(abs(output).max(), 1) * 0.05)
            bad = compare(op(name), given, wrong)
            assert bad.outside, (k, checks(op(name), given, wrong))
            assert bad.value_class.startswith(name)
            if output.dtype.kind != "i" and name not in HOUSEHOLDER:
                wrong[k][at] = np.nan
                assert compare(op(name), given, wrong).outside


def broken(name, given, change):
    made = [x.copy() for x in LINALG.execute(op(name), given)]
    change(*made)
    return {c.name for c in checks(op(name), given, made) if not c.holds}


def test_each_invariant_is_asked_for():
    a = drawn(np.random.default_rng(1), DType.F64, (4, 4))
    spd = np.asfortranarray(a @ a.T + np.eye(4))

    def swap(u, s, vt):
        u[:], s[:], vt[:] = u[:, ::-1].copy(), s[::-1].copy(), vt[::-1].copy()

    def flip(u, s, vt):
        s[0], u[:, 0] = -s[0], -u[:, 0]

    def stretch(u, s, vt):
        u[:, 1], vt[1] = u[:, 1] * 2, vt[1] / 2

    assert broken("Svd", [a], swap) == {"order"}
    assert "not negative" in broken("Svd", [a], flip)
    assert broken("Svd", [a], stretch) == {"left vectors", "right vectors"}
    assert broken("Qr", [a], lambda q, r: (q.__imul__(2), r.__itruediv__(2))) == {"orthogonal"}
    assert "upper triangular" in broken("Qr", [a], lambda q, r: r.__setitem__((3, 0), 1e-12))
    assert broken("Cholesky", [spd], lambda low: low.__imul__(-1)) == {"positive diagonal"}
    assert broken("Lu", [a], lambda p, low, up, parity: parity.__imul__(-1)) == {"parity"}
    assert broken("LuFactor", [a], lambda packed, pivots, parity: parity.__imul__(-1)) == {"parity"}
    assert broken("FullPivLu", [a], lambda p, low, up, q, parity: parity.__imul__(-1)) == {"parity"}
    assert "order" in broken("Eigh", [spd], lambda w, v: (w.__setitem__(slice(None), w[::-1].copy()),))
    assert "unit vectors" in broken("Eig", [a], lambda w, v: v.__imul__(1.01))


def test_eigenvalues_are_held_together_as_well():
    """Each of these is an eigenvalue, and their sum is right."""
    a = np.asfortranarray(np.diag([1.0, 2.0, 3.0, 4.0]))
    found = checks(op("EigVals"), [a], [np.array([1, 1, 4, 4], complex)])
    assert [c.name for c in found if not c.holds] == ["squares"]


NOTHING = [(0, 0), (0, 3), (3, 0)]


@pytest.mark.parametrize("shape", NOTHING, ids=str)
@pytest.mark.parametrize("name", [*RECTANGULAR[:7], *SQUARE])
def test_a_matrix_without_elements_has_factors_that_are_held_to_it(name, shape):
    if name in SQUARE and shape != (0, 0):
        return
    given = [np.zeros(shape, order="F")]
    made = LINALG.execute(op(name), given)
    assert all(c.holds for c in checks(op(name), given, made))
    for k, output in enumerate(made):
        for value in (7, -9) if output.size else ():
            wrong = [x.copy() for x in made]
            wrong[k][...] = value
            assert not all(c.holds for c in checks(op(name), given, wrong)), (name, shape, k)


def test_columns_of_a_complex_cholesky_factor_have_no_phases():
    a = np.asfortranarray([[2, 1j], [-1j, 3]])
    (low,) = LINALG.execute(op("Cholesky"), [a])
    assert all(c.holds for c in checks(op("Cholesky"), [a], [low]))
    turned = low * np.exp([1j, 0.1j])
    assert {c.name for c in checks(op("Cholesky"), [a], [turned]) if not c.holds} == {"positive diagonal"}


def test_full_pivoting_takes_the_largest_pivot():
    a = np.asfortranarray([[1.0, 9.0], [2.0, 1.0]])
    p, low, up, parity = LINALG.execute(op("Lu"), [a])
    found = checks(op("FullPivLu"), [a], [p, low, up, np.eye(2), parity])
    assert [c.name for c in found if not c.holds] == ["pivots"]


def test_eigenvectors_of_a_scaled_matrix_are_those_that_balancing_gives():
    rows = np.array([[2.0**-20], [2.0**-20], [1.0]])
    a = np.asfortranarray(rows * np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 10]]))
    values, v = LINALG.execute(op("Eig"), [a])
    assert all(c.holds for c in checks(op("Eig"), [a], [values, v]))
    wrong = v.copy()
    wrong[:, 0] = v[:, 1]
    assert not all(c.holds for c in checks(op("Eig"), [a], [values, wrong]))


def test_a_multiplier_that_underflows_takes_its_row_with_it():
    a = np.asfortranarray(np.array([[3e-38, 3e-38], [1e37, 3e37]], np.float32))
    assert all(c.holds for c in checks(op("Lu"), [a], LINALG.execute(op("Lu"), [a])))


def test_squares_of_eigenvalues_may_be_beyond_any_float():
    a = np.asfortranarray(np.diag([1e300, 2e300]))
    for name in ("Eig", "EigVals"):
        made = LINALG.execute(op(name), [a])
        assert all(c.holds for c in checks(op(name), [a], made))
        found = checks(op(name), [a], [np.array([1e300, 1e300], complex), *made[1:]])
        assert {"trace", "squares"} <= {c.name for c in found if not c.holds}


@pytest.mark.parametrize("name", SOLVERS)
def test_a_solution_below_the_least_normal_number_may_be_zero(name):
    """However large the matrix that it is multiplied with; one that is larger is held to its digits."""
    large = np.asfortranarray(np.diag([3e300, 7e300]))
    given = [large, np.full((2, 1), 1e-9)]
    config = {"left_side": True, "lower": True} if name == "TriangularSolve" else {}
    if name == "LuSolvePrepared":
        packed, pivots, _ = LINALG.execute(op("LuFactor"), [large])
        given = [large, packed, pivots, given[1]]
    for x in (LINALG.execute(op(name, **config), given)[0], np.zeros((2, 1))):
        assert all(c.holds for c in checks(op(name, **config), given, [x]))
    given[-1] = np.full((2, 1), 1.0)
    (x,) = LINALG.execute(op(name, **config), given)
    assert all(c.holds for c in checks(op(name, **config), given, [x]))
    assert not all(c.holds for c in checks(op(name, **config), given, [x * 1.001]))


@pytest.mark.parametrize("name", ["SvdVals", "EighVals", "EigVals"])
def test_nothing_is_assumed_about_the_library_that_the_values_are_held_to(name, monkeypatch):
    """A bad reference decides less; it condemns nothing."""
    (a,) = operands("Eigh", np.random.default_rng(3), DType.F64, 4, 4)
    made = LINALG.execute(op(name), [a])
    tight = {c.name: c for c in checks(op(name), [a], made)}
    for library in ("svd", "eigh"):
        good = getattr(np.linalg, library)

        def bad(x, *rest, good=good, **more):
            return tuple(p * (1 + 1e-6) for p in good(x, *rest, **more))

        monkeypatch.setattr(np.linalg, library, bad)
    loose = {c.name: c for c in checks(op(name), [a], made)}
    assert all(c.holds for c in loose.values())
    key = "backward error" if name == "EigVals" else "values"
    assert loose[key].bound > 1e6 * tight[key].bound


def test_reference_values_are_within_their_radius():
    """Against 50 digits."""
    mpmath = pytest.importorskip("mpmath")
    a = np.random.default_rng(8).standard_normal((4, 4)) * 10.0 ** -np.arange(4)
    with mpmath.workdps(50):
        singular = sorted(map(float, mpmath.svd_r(mpmath.matrix(a.tolist()), compute_uv=False)), reverse=True)
        eigen = sorted(map(float, mpmath.eigsy(mpmath.matrix((a + a.T).tolist()), eigvals_only=True)))
    scale = scale_of(a, flushes=True)
    for (values, off), true in (
        (true_singular(scale, wide(a)), singular),
        (true_eigenvalues(scale, wide(a + a.T)), eigen),
    ):
        assert np.abs(values - true).max() <= off < 1e-13


def test_prepared_solves_are_held_to_the_factors_that_they_were_given():
    rng = np.random.default_rng(6)
    a, other, b = (drawn(rng, DType.C64, (5, k)) for k in (5, 5, 2))
    packed, pivots, _ = LINALG.execute(op("LuFactor"), [other])
    for flags in ({}, {"transpose_a": True}, {"conjugate_a": True}, {"transpose_a": True, "conjugate_a": True}):
        made = LINALG.execute(op("LuSolvePrepared", **flags), [a, packed, pivots, b])
        assert not compare(op("LuSolvePrepared", **flags), [a, packed, pivots, b], made).outside
        assert compare(
            op("LuSolvePrepared", **flags), [other, packed, pivots, b], LINALG.execute(op("Solve"), [a, b])
        ).outside


@pytest.mark.parametrize(
    "flags", [{}, {"left_side": False}, {"lower": False}, {"transpose_a": True}, {"unit_diagonal": True}]
)
def test_triangular_solves_by_their_flags(flags):
    rng = np.random.default_rng(2)
    a, b = drawn(rng, DType.F64, (5, 5)) + 3 * np.eye(5), drawn(rng, DType.F64, (5, 5))
    made = LINALG.execute(op("TriangularSolve", **flags), [a, b])
    assert all(c.holds for c in checks(op("TriangularSolve", **flags), [a, b], made))
    for other in ({"left_side": False}, {"lower": False}, {"transpose_a": True}, {"unit_diagonal": True}, {}):
        if other != flags:
            assert compare(op("TriangularSolve", **other), [a, b], made).outside


def test_a_solve_by_an_inverse_is_no_solve_by_substitution():
    """The third element is `c^2 b_1 + c b_2 + b_3`, which loses what substitution keeps."""
    c = 1001.3
    t = np.asfortranarray([[1, 0, 0], [-c, 1, 0], [0, -c, 1]], np.float32)
    b = np.asfortranarray((t.astype(float) @ np.ones((3, 1))).astype(np.float32))
    assert not compare(op("TriangularSolve"), [t, b], LINALG.execute(op("TriangularSolve"), [t, b])).outside
    inverse = np.array([[1, 0, 0], [c, 1, 0], [c * c, c, 1]], np.float32)
    assert compare(op("TriangularSolve"), [t, b], [inverse @ b]).outside


def test_symmetric_matrices_are_read_from_their_lower_triangle():
    a = np.asfortranarray([[2.0, 99.0], [1.0, 3.0]])
    for name in ("Cholesky", "Eigh", "EighVals"):
        assert not compare(op(name), [a], LINALG.execute(op(name), [a])).outside


def test_nothing_is_asked_of_what_is_not_finite_and_other_families_are_refused():
    a = np.full((2, 2), np.nan)
    assert checks(op("Qr"), [a], [a, a]) == [UNCHECKED]
    large = np.full((2, 2), 1e300)  # whose result may have overflowed
    assert checks(op("Qr"), [large], [a, a]) == [UNCHECKED]
    assert checks(op("Solve"), [a, a[:, :0]], [a[:, :0]]) == []
    found = compare(op("Qr"), [np.stack([a, np.eye(2)], 2)], [np.stack([np.eye(2)] * 2, 2)] * 2)
    assert (found.elements - found.decided, found.outside) == (1, 0)
    with pytest.raises(UnsupportedOp, match="backward-error checks"):
        checks(ops.Extension.of("other.v1", "Svd", {}), [a], [a])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("name", "gauge"), [("Svd", "CanonicalPivot"), ("Qr", "PositiveDiagonal"), ("Eigh", "CanonicalPivot")]
)
def test_gauges_are_asked_for(name, gauge, dtype):
    (a,) = operands(name, np.random.default_rng(4), dtype, 5, 5)
    fixed = op(name, gauge=gauge)
    made = [x.copy() for x in LINALG.execute(fixed, [a])]
    assert not compare(fixed, [a], made).outside
    if name == "Qr":
        made[0][:, 1], made[1][1] = -made[0][:, 1], -made[1][1]
    elif name == "Svd":
        made[0][:, 1], made[2][1] = -made[0][:, 1], -made[2][1]
    else:
        made[1][:, 1] *= -1
    assert not compare(op(name), [a], made).outside
    assert {c.name for c in checks(fixed, [a], made) if not c.holds} == {"gauge"}


DIRECT = ("Lu", "LuFactor", "Cholesky", "TriangularSolve", "Solve", "LuSolvePrepared")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", DIRECT)
def test_native_results_hold_where_nothing_is_flushed(name, dtype):
    """Matrices down to the least subnormal number, and such rows beside usual ones."""
    rng, f, decided = np.random.default_rng(6), np.finfo(dtype.numpy), 0
    for below in (-8, -2, 0, 3, 8, 15, f.nmant - 3):
        least = f.tiny * f.dtype.type(2.0**-below)
        for n in (1, 3, 6):
            given = operands(name, rng, dtype, n, n)
            for row in (slice(None), slice(0, 1), slice(n - 1, n)):
                both = slice(None) if name == "Cholesky" else row
                scaled = [x.copy() for x in given]
                scaled[0][both] *= least
                if name in SOLVERS:
                    scaled[-1][row] *= least
                if name == "LuSolvePrepared":
                    scaled[1:3] = LINALG.execute(op("LuFactor"), scaled[:1])[:2]
                try:
                    made = LINALG.execute(op(name), scaled)
                except NumericalFailure:  # rounded to zeros, it is singular
                    continue
                found = checks(op(name), scaled, made, flushes=False)
                assert [c for c in found if not c.holds] == [], (below, n, row)
                decided += len(found)
    assert decided > 80


def test_wrong_factors_of_a_subnormal_pivot_are_seen():
    """As OpenBLAS 0.3.31 has them: finding 0213."""
    a = np.array([[1e-310, 1.0], [1e-310, 2.0]])[..., np.newaxis]
    p, low, up = np.eye(2), np.array([[1.0, 0.0], [1e-310, 1.0]]), np.array([[1e-310, 1.0], [0.0, 2.0]])
    made = [*(x[..., np.newaxis] for x in (p, low, up)), np.array([1], np.int32)]
    assert not [c for c in checks(op("Lu"), [a], made) if not c.holds]
    assert [c.name for c in checks(op("Lu"), [a], made, flushes=False) if not c.holds] == ["residual"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_subnormal_operand_may_be_read_as_zero_before_a_large_factor(dtype):
    tiny = float(dtype.finfo.tiny) / 2**9
    large = float(dtype.finfo.max) ** 0.25
    a = np.array([[1, tiny], [0, 1]], dtype.numpy)[..., np.newaxis]
    b, due = (np.array([[first], [large]], dtype.numpy)[..., np.newaxis] for first in (0, -tiny * large))
    solve = op("TriangularSolve", left_side=True, lower=False, unit_diagonal=True)
    assert [c.holds for c in checks(solve, [a, b], [due], flushes=False)] == [True]
    assert [c.holds for c in checks(solve, [a, b], [b])] == [True]
    assert [c.holds for c in checks(solve, [a, b], [b], flushes=False)] == [False]
    assert [c.holds for c in checks(solve, [a, b], [due * 2])] == [False]


@pytest.mark.parametrize("dtype", [DType.C32, DType.C64], ids=str)
def test_both_parts_of_a_complex_quotient_may_be_flushed(dtype):
    tiny = float(dtype.finfo.tiny)
    a, b = (np.array([[v]], dtype.numpy)[..., np.newaxis] for v in (2.0**20, (0.9 + 0.9j) * tiny * 2.0**20))
    solve = op("TriangularSolve", left_side=True, lower=False, unit_diagonal=False)
    assert [c.holds for c in checks(solve, [a, b], [0 * b])] == [True]
    assert [c.holds for c in checks(solve, [a, b], [0 * b], flushes=False)] == [False]
    assert [c.holds for c in checks(solve, [a, b], [b / 2**16])] == [False]


def flushing(a, tiny):
    """Q, and the R that its reflectors make of `a`, where each number below `tiny` becomes zero."""

    def kept(x):
        return np.where(np.abs(x) < tiny, 0.0, x)

    q, r = np.eye(len(a)), a.copy()
    for j in range(len(a) - 1):
        x = r[j:, j] / tiny  # LAPACK scales small vectors up
        v, beta = x.copy(), -np.copysign(np.sqrt(x @ x), x[0])
        if not beta:
            continue
        v = v / (x[0] - beta)
        v[0], tau = 1.0, (beta - x[0]) / beta
        sums = np.zeros(len(a))
        for i, row in enumerate(r[j:]):
            sums = kept(sums + kept(v[i] * row))
        r[j:] = kept(r[j:] - kept(np.outer(tau * v, sums)))
        r[j + 1 :, j] = 0
        q[:, j:] -= tau * np.outer(q[:, j:] @ v, v)
    return q, r


def test_reflectors_may_lose_underflows_in_each_product_and_sum():
    rng, tiny = np.random.default_rng(3), float(np.finfo(np.float32).tiny)
    worst = 0.0
    for _ in range(300):
        m = int(rng.integers(2, 6))
        a = (rng.standard_normal((m, m)) * tiny * rng.choice([1, 2, 4, 8])).astype(np.float32)
        a[np.abs(a) < tiny] = 0
        q, r = (x.astype(np.float32) for x in flushing(a.astype(np.float64), tiny))
        off = wide(q) @ wide(r) - wide(a)
        worst = max(worst, float(np.sqrt((off**2).sum(0)).max()) / (tiny * m))
        found = checks(op("Qr"), [a[..., np.newaxis]], [q[..., np.newaxis], r[..., np.newaxis]])
        assert not [c for c in found if not c.holds]
        if np.abs(a).max() > 4 * tiny:
            far = r * np.float32(1 + 16 * m)
            assert [
                c
                for c in checks(op("Qr"), [a[..., np.newaxis]], [q[..., np.newaxis], far[..., np.newaxis]])
                if not c.holds
            ]
    assert worst > 1  # a bound of one for each row does not do


def test_norms_of_what_reflectors_leave_may_be_off_by_underflows():
    tiny = float(np.finfo(np.float32).tiny)
    a = np.diag(np.array([5.2, 2.57, 2.57]) * tiny).astype(np.float32)
    scale, order = scale_of(a, flushes=True), np.arange(3)
    for last, holds in ((2.57, True), (1e4, False)):
        found = pivoted(scale, wide(a), order, np.array([5.2, 0.0, last]) * tiny)
        assert [c.holds for c in found] == [True, holds]
