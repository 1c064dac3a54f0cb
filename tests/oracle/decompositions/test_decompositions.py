"""Decompositions: native results keep every invariant, and each kind of fault breaks one."""

import numpy as np
import pytest

from fuzz.generate.ops.linalg import PREPARED
from oracle.checks import UNCHECKED, checks, compare
from oracle.decompositions.factors import smallest
from oracle.decompositions.measures import scale_of, wide
from oracle.decompositions.spectra import true_eigenvalues, true_singular
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import NumericalFailure, UnsupportedOp
from tenferro_ref.extensions import linalg
from tenferro_ref.extensions.linalg import LINALG

pytestmark = pytest.mark.once


DTYPES = [DType.F32, DType.F64, DType.C32, DType.C64]
HOUSEHOLDER = tuple(name for name in linalg.OPS if name.startswith("Householder"))
RECTANGULAR = ("Lu", "LuFactor", "Svd", "SvdFull", "SvdVals", "Qr", "RankRevealingQr", *HOUSEHOLDER)
SQUARE = ("Cholesky", "FullPivLu", "Eigh", "EighVals", "Eig", "EigVals")
SOLVERS = ("Solve", "FullPivLuSolve", "TriangularSolve", "LuSolvePrepared")


def op(name, **config):
    return ops.Extension.of(linalg.FAMILY, name, config)


def drawn(rng, dtype, shape):
    z = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.is_complex else 0)
    return np.asarray(z, dtype.numpy, order="F")


def operands(name, rng, dtype, m, n):
    """Batches of two matrices: ill conditioned ones too, symmetric and definite where that is asked for."""
    a = drawn(rng, dtype, (m, n, 2))
    a[:, 0] *= 1e-4
    if name in PREPARED and name in HOUSEHOLDER:
        other, places = PREPARED[name]
        made = LINALG.execute(op(other), [a[..., 0]])
        given = [made[place] for place in places]
        return [*given, a[..., 1]] if name == "HouseholderQrAppend" else given
    if name in HOUSEHOLDER:
        return [a[..., 0]]
    if name in ("Cholesky", "Eigh", "EighVals"):
        a = np.einsum("ikb,jkb->ijb", a, a.conj()) + (np.eye(m)[..., None] if name == "Cholesky" else 0)
    a = np.asarray(a, dtype.numpy, order="F")
    if name not in SOLVERS:
        return [a]
    if name == "TriangularSolve":
        a += 2 * np.eye(m, dtype=dtype.numpy)[..., None]
    b = drawn(rng, dtype, (m, 3, 2))
    if name == "LuSolvePrepared":
        packed, pivots, _ = LINALG.execute(op("LuFactor"), [a])
        return [a, packed, pivots, b]
    return [a, b]


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


# --- what need not be finite --------------------------------------------------------------------------------------------


def alone(name, given, made, **config):
    return checks(
        op(name, **config), [np.asarray(x)[..., np.newaxis] for x in given], [x[..., np.newaxis] for x in made]
    )


def growing(dtype):
    """A system whose solution is beyond the format, though no two of its elements are."""
    f = np.finfo(dtype.numpy)
    large = float(f.max) ** 0.24
    t = np.diag(np.full(4, 1 / large)) + np.diag(np.full(3, large), -1)
    return t.astype(dtype.numpy), np.ones((4, 1), dtype.numpy)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_solution_that_overflows_need_not_be_finite(dtype):
    """By substitution, with given factors, and by an elimination that finds such factors."""
    t, b = growing(dtype)
    beyond = np.full_like(b, np.inf)
    pivots = np.arange(1, 5, dtype=np.int32)
    packed = np.triu(np.tril(t).T, 1) + np.diag(np.diag(t))  # U; L is 1
    up, right = {"lower": False, "transpose_a": True}, {"left_side": False, "transpose_a": True}
    assert alone("TriangularSolve", [t, b], [beyond]) == [UNCHECKED]
    assert alone("TriangularSolve", [t[::-1, ::-1], b], [beyond], lower=False) == [UNCHECKED]
    assert alone("TriangularSolve", [t.T, b], [beyond], **up) == [UNCHECKED]
    assert alone("TriangularSolve", [t, b.T], [beyond.T], **right) == [UNCHECKED]
    for transpose_a in (False, True):
        given = [t, packed, pivots, b]
        assert alone("LuSolvePrepared", given, [beyond], transpose_a=transpose_a) == [UNCHECKED]
    assert alone("Solve", [packed, b], [beyond]) == [UNCHECKED]
    assert alone("FullPivLuSolve", [packed, b], [beyond], transpose_a=True) == [UNCHECKED]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_solution_that_no_order_makes_infinite_has_to_be_finite(name, dtype):
    """Also of moderate elements that are far apart, and behind a permutation."""
    far = np.float64(np.finfo(dtype.numpy).max) ** 0.2
    for seed in range(6):
        given = operands(name, np.random.default_rng(seed), dtype, 5, 5)
        if name != "TriangularSolve" and seed % 2:
            given[0][:, 2] *= dtype.numpy.type(1 / far)
            given[0][3] *= dtype.numpy.type(far**0.5)
        if name == "LuSolvePrepared":
            given[1:3] = LINALG.execute(op("LuFactor"), given[:1])[:2]
        for flag in (False, True) if name != "Solve" else (None,):
            flags = {} if flag is None else {"transpose_a": flag}
            made = np.full_like(given[-1], np.inf)
            assert [c.holds for c in checks(op(name, **flags), given, [made])] == [False] * 2


def test_a_singular_matrix_need_not_have_a_solution():
    """A pivot that is a rounding error may be zero, or another one."""
    a, b, beyond = (
        np.array([[1, 1], [1, 1 + 2.0**-23]], np.float32),
        np.ones((2, 1), np.float32),
        np.full((2, 1), np.nan),
    )
    for name in ("Solve", "FullPivLuSolve"):
        assert alone(name, [a, b], [beyond.astype(np.float32)]) == [UNCHECKED]
        assert not alone(name, [a, b], [np.array([[2], [0]], np.float32)])[0].holds
        assert not alone(name, [a.astype(float), b.astype(float)], [beyond])[0].holds  # there it is none
    assert alone("TriangularSolve", [np.float32([[1, 0], [1, 0]]), b], [beyond], lower=True) == [UNCHECKED]


def test_a_pivot_that_overflows_makes_any_solution():
    a, b = np.array([[3e38, 3e38], [-3e38, 3e38]], np.float32), np.full((2, 1), 1e38, np.float32)
    made = np.array([[1 / 3], [0]], np.float32)  # 1e38 / inf is 0
    assert alone("Solve", [a, b], [made]) == [UNCHECKED]
    assert not alone("Solve", [a / 32, b / 32], [made])[0].holds


def nearly_singular(rng, dtype, n, smallest):
    q = np.linalg.qr(drawn(rng, DType.C64 if dtype.is_complex else DType.F64, (n, n)))[0]
    a = (q * np.append(rng.uniform(1, 6, n - 1), smallest)) @ q.conj().T
    a = (a + a.conj().T) / 2
    return np.asfortranarray(a, dtype.numpy)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cholesky_is_asked_for_what_every_order_of_its_sums_gives(dtype):
    """Theorem 10.7: matrices on either side of what decides; in between the native kernel goes either way."""
    rng, unit = np.random.default_rng(9), float(np.finfo(dtype.numpy).eps) / 2
    seen = {True: 0, False: 0, None: 0}
    for times in (-1e3, -30, -1, 0, 1, 30, 100, 1e3):
        for n in (2, 3, 5):
            for _ in range(5):
                a = nearly_singular(rng, dtype, n, times * unit)
                powers = 2.0 ** rng.integers(-9, 9, n)  # on which nothing depends
                a = np.asfortranarray(a * powers[:, None] * powers, dtype.numpy)
                least, most = smallest(scale_of(a, flushes=False), wide(a))
                runs = None if least <= 0 <= most else least > 0
                seen[runs] += 1
                made = np.full_like(a, np.nan)
                assert checks(op("Cholesky"), [a], [made])[0].holds is (runs is not True)
                try:
                    made = LINALG.execute(op("Cholesky"), [a])
                except NumericalFailure:
                    assert runs is not True
                else:
                    assert runs is not False
                    found = checks(op("Cholesky"), [a], made)
                    assert all(c.holds for c in found)
                    assert (found == [UNCHECKED]) is (runs is not True)
    assert min(seen.values()) > 10


def test_a_matrix_that_rounding_makes_indefinite_need_not_have_a_factor():
    """Its smallest eigenvalue is 4e-8; two of four builds of XLA, and LAPACK, happen to get a pivot above zero."""
    rows = [[3.8155823, 0.5663955, 0.8338678], [0.5663955, 4.103346, 1.5387701], [0.8338678, 1.5387701, 0.6803842]]
    a = np.array(rows, np.float32)
    nan = np.full_like(a, np.nan)
    assert alone("Cholesky", [a], [nan]) == [UNCHECKED]
    assert [c.name for c in alone("Cholesky", [a.astype(float)], [nan.astype(float)])] == ["finite"]


def test_the_diagonal_of_a_complex_matrix_is_real_or_nothing_is_asked():
    a = np.array([[2 + 1j, 1], [1, 3]], np.complex64)
    ignored, carried = (np.linalg.cholesky(np.diag(d) + np.array([[0, 1], [1, 0]])) for d in ([2, 3], [2.1, 3]))
    for low in (ignored, carried):
        assert alone("Cholesky", [a], [low.astype(np.complex64)]) == [UNCHECKED]
    real = a.real.astype(np.complex64)
    held = [all(c.holds for c in alone("Cholesky", [real], [low.astype(np.complex64)])) for low in (ignored, carried)]
    assert held == [True, False]


@pytest.mark.parametrize("dtype", DTYPES[2:], ids=str)
def test_the_diagonal_of_a_computed_complex_matrix_is_real_but_for_rounding_errors(dtype):
    """They may be ignored, or kept in the pivots, whose phases they turn; others turn by no more."""
    rng, turned = np.random.default_rng(2), 0.0
    for _ in range(40):
        q = drawn(rng, dtype, (4, 4))
        a = q @ q.conj().T
        real = np.diag(a).real
        np.fill_diagonal(a, real * (1 + 1j * rng.choice([-2, 2], 4) * dtype.finfo.eps))
        carried = np.zeros_like(a)
        for j in range(4):
            left = a[j:, j] - carried[j:, :j] @ carried[j, :j].conj()
            carried[j:, j] = left / np.sqrt(left[0])
        (ignored,) = LINALG.execute(op("Cholesky"), [np.asfortranarray(a)])
        for low in (ignored, carried):
            found = alone("Cholesky", [a], [low])
            assert len(found) == 3
            assert all(c.holds for c in found)
        turned = max(turned, np.abs(np.diag(carried).imag / np.diag(carried).real).max())
        wrong = ignored * np.array([1, 1, 1, np.exp(0.01j)], dtype.numpy)
        assert not all(c.holds for c in alone("Cholesky", [a], [wrong]))
    assert turned > 20 * dtype.finfo.eps


def test_nothing_is_asked_of_products_of_what_is_no_reflector():
    large = np.full((3, 2), 1e9, np.float32)
    given, beyond = [large, large[0]], np.full((3, 2), np.inf, np.float32)
    for made in (beyond, large):
        assert checks(op("HouseholderQrThinQ"), given, [made]) == [UNCHECKED]
        assert checks(
            op("HouseholderQrAppend"), [*given, large[:, :1]], [np.hstack([made, made[:, :1]]), made[:, 0]]
        ) == [UNCHECKED]
    state = LINALG.execute(op("HouseholderQrFactor"), [np.eye(3, 2, dtype=np.float32) + 1])
    for made in (beyond, large):
        assert not checks(op("HouseholderQrThinQ"), state, [made])[0].holds


# --- which elements count -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", [*RECTANGULAR[:7], *SQUARE, *SOLVERS, "HouseholderQrFactor"])
def test_one_small_element_excuses_no_nan(name, dtype):
    """Of a matrix that is far from singular, or is divided by norms alone."""
    given = operands(name, np.random.default_rng(3), dtype, 4, 4)
    given = given if name == "HouseholderQrFactor" else [x[..., :1] for x in given]
    given[0] /= np.abs(given[0]).max()
    given[0][0, 3] = given[0][3, 0] = dtype.finfo.tiny
    if name == "LuSolvePrepared":
        given[1:3] = LINALG.execute(op("LuFactor"), given[:1])[:2]
    made = LINALG.execute(op(name), given)
    found = checks(op(name), given, made)
    assert all(c.holds and c.decided for c in found)
    for k in (k for k, x in enumerate(made) if x.dtype.kind != "i"):
        wrong = [x.copy() for x in made]
        wrong[k][(0,) * wrong[k].ndim] = np.nan
        assert [c.name for c in checks(op(name), given, wrong)] == ["finite"]


def test_what_is_divided_by_counts():
    """Reciprocals of a diagonal, and of pivots, may be infinite, and so may those of a norm."""
    tiny, one = np.float32(1e-30), np.ones((), np.float32)
    nan, b = np.full((2, 2), np.nan, np.float32), np.ones((2, 1), np.float32)
    a = np.diag(np.float32([1, tiny]))

    def asked(name, given, made, **config):
        return [c.name for c in alone(name, given, made, **config)]

    for unit, due in ((False, "unchecked"), (True, "finite")):
        assert asked("TriangularSolve", [a, b], [nan[:, :1]], unit_diagonal=unit) == [due]
    assert asked("LuSolvePrepared", [a, a, np.int32([1, 2]), b], [nan[:, :1]]) == ["unchecked"]
    for matrix, due in ((a, "finite"), (a * tiny, "unchecked")):
        assert asked("Qr", [matrix], [nan, nan]) == [due]
    low = np.float32([[1, 0], [1e-18, 1]])
    for times, due in ((1, "finite"), (1e-12, "finite"), (1e-20, "unchecked")):  # a pivot is a root
        assert asked("Cholesky", [(low + low.T) * np.float32(times)], [nan]) == [due]
    two = np.eye(2, dtype=np.float32)
    for matrix in (a, np.float32([[1, 1], [tiny, tiny]]), np.float32([[1, tiny], [1, 0]])):
        assert asked("Lu", [matrix], [two, nan, nan, one]) == ["unchecked"]
    for matrix in (np.float32([[1, 1], [1, 1]]), np.float32([[1, tiny], [tiny, -1]])):
        assert asked("Lu", [matrix], [two, nan, nan, one]) == ["finite"]
    assert asked("Lu", [np.float32([[1, tiny, 3]])], [two[:1, :1], nan[:1, :1], np.ones((1, 3)), one]) == ["finite"]
    tall = np.float32([[2, tiny], [tiny, 1], [0, 1]])
    assert asked("Lu", [tall], [np.eye(3), np.full((3, 2), np.nan), two, one]) == ["finite"]


def test_a_phase_is_a_quotient_of_moduli():
    """That of a complex number may be divided by a square."""
    a, nan = np.diag(np.float32([1, 1e-30])), np.full((2, 2), np.nan, np.float32)
    state = [a, np.zeros(2, np.float32)]
    for gauge, due in (("Raw", "finite"), ("PositiveDiagonal", "unchecked")):
        assert [c.name for c in checks(op("Qr", gauge=gauge), [a], [nan, nan])] == [due]
        assert [c.name for c in checks(op("HouseholderQrThinQ", gauge=gauge), state, [nan])] == [due]
        assert [c.name for c in checks(op("HouseholderQrR", gauge=gauge), state, [nan])] == [due]


def test_a_complex_pivot_may_be_divided_by_as_a_square():
    a, b = np.diag([1, 1e-30]), np.ones((2, 1))
    for dtype, due in ((np.complex64, "unchecked"), (np.float32, "finite")):
        given = [a.astype(dtype), b.astype(dtype)]
        assert [c.name for c in alone("Solve", given, [given[1] * np.nan])] == [due]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("beside", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("name", ["Cholesky", "Eigh", "EighVals"])
def test_the_upper_triangle_is_not_read(name, beside, dtype):
    """Whatever is in it excuses nothing."""
    given = operands(name, np.random.default_rng(7), dtype, 4, 4)
    given[0][:, :, 0] *= dtype.numpy.type(1e4)
    due = LINALG.execute(op(name), given)
    given[0][np.triu_indices(4, 1)] = beside
    made = LINALG.execute(op(name), given)
    assert all(np.array_equal(x, y) for x, y in zip(due, made, strict=True))
    found = checks(op(name), given, made)
    assert all(c.holds and c.decided for c in found)
    for value in (7, np.nan):
        assert compare(op(name), given, [x * 0 + x.dtype.type(value) for x in made]).outside >= 2


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_a_triangular_solve_reads_its_triangle(lower, unit, dtype):
    rng = np.random.default_rng(8)
    a, b = drawn(rng, dtype, (4, 4)) + 3 * np.eye(4, dtype=dtype.numpy), drawn(rng, dtype, (4, 4))
    outside = (np.triu if lower else np.tril)(np.ones((4, 4), bool), (1 if lower else -1) * (not unit))
    for flags in ({}, {"left_side": False}, {"transpose_a": True}):
        solve = op("TriangularSolve", lower=lower, unit_diagonal=unit, **flags)
        for beside in (np.nan, np.inf, 1e30):
            given = [np.asfortranarray(np.where(outside, dtype.numpy.type(beside), a)), b]
            (x,) = LINALG.execute(solve, given)
            assert [c.holds and c.decided for c in checks(solve, given, [x])] == [True]
            for wrong in (x * dtype.numpy.type(1.01), x * np.nan):
                assert [c.holds for c in checks(solve, given, [wrong])] == [False]
        given = [np.where(outside, a, dtype.numpy.type(np.nan)), b]
        assert checks(solve, given, [x]) == [UNCHECKED]
