"""Decompositions: where a result need not be finite, or is not asked for, and what of an operand is read."""

import numpy as np
import pytest

from oracle.checks import UNCHECKED, checks, compare
from oracle.decompositions.factors import smallest
from oracle.decompositions.measures import scale_of, wide
from tenferro_ref.dtype import DType
from tenferro_ref.errors import NumericalFailure
from tenferro_ref.extensions.linalg import LINALG
from tests.oracle.decompositions.drawn_matrices import (
    DTYPES,
    RECTANGULAR,
    SOLVERS,
    SQUARE,
    drawn,
    op,
    operands,
)

pytestmark = pytest.mark.once


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
