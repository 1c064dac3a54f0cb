"""LAPACK's routines in modules, as JAX calls them: read, run and judged by what the executor's own factors are."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from fuzz.checking import check
from fuzz.checking.subject import function_subject, given_subject
from oracle.case import Case
from oracle.checks import UNCHECKED, checks
from oracle.given_case import given_case
from oracle.judge import Reference, judge
from oracle.peers import Execution, NativeExecutor, Pool
from oracle.staged import decomposing
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import (
    DTypeMismatch,
    InvalidCompiledGraph,
    RankMismatch,
    ShapeMismatch,
    Unsupported,
    UnsupportedOp,
)
from tenferro_ref.extensions import lapack
from tenferro_ref.isolation.engines.reader import evaluate
from tenferro_ref.ops import TensorType
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import load, lower_to_stablehlo
from tests.libraries import module_or_skip

jax = module_or_skip("jax")
jnp, lax = module_or_skip("jax.numpy"), module_or_skip("jax.lax")

pytestmark = pytest.mark.once

RANDOM = np.random.RandomState(0)
TALL = RANDOM.randn(2, 5, 3).astype(np.float32)
SQUARE = RANDOM.randn(2, 4, 4).astype(np.float32)
COMPLEX = (RANDOM.randn(2, 4, 4) + 1j * RANDOM.randn(2, 4, 4)).astype(np.complex64)


def gram(a):
    return a @ jnp.conj(jnp.swapaxes(a, -1, -2))


def reflectors(a):
    packed, tau = jnp.linalg.qr(a, mode="raw")
    return packed.mT, tau


FUNCTIONS = {
    "LU": (lax.linalg.lu, SQUARE), "LU, complex": (lax.linalg.lu, COMPLEX), "LU, tall": (lax.linalg.lu, TALL),
    "QR": (jnp.linalg.qr, TALL), "QR, complex": (jnp.linalg.qr, COMPLEX),
    "complete QR": (lambda a: jnp.linalg.qr(a, mode="complete"), TALL),
    "SVD": (lambda a: jnp.linalg.svd(a, full_matrices=False), TALL), "full SVD": (jnp.linalg.svd, TALL),
    "singular values": (lambda a: jnp.linalg.svd(a, compute_uv=False), TALL),
    "rank": (jnp.linalg.matrix_rank, TALL), "rank, wide": (jnp.linalg.matrix_rank, TALL.swapaxes(1, 2)),
    "eigh": (jnp.linalg.eigh, SQUARE), "eigh, complex": (jnp.linalg.eigh, COMPLEX),
    "eigh, upper": (lambda a: lax.linalg.eigh(a, lower=False), SQUARE),
    "eig": (jnp.linalg.eig, SQUARE), "eig, complex": (jnp.linalg.eig, COMPLEX),
    "left eigenvectors": (lambda a: lax.linalg.eig(a, compute_left_eigenvectors=True), SQUARE),
    "eigenvalues": (jnp.linalg.eigvals, SQUARE),
    "Cholesky": (lambda a: jnp.linalg.cholesky(gram(a)), COMPLEX),
    "upper Cholesky": (lambda a: jnp.linalg.cholesky(gram(a), upper=True), SQUARE),
    "adjoint solve": (
        lambda a: lax.linalg.triangular_solve(a, a[..., :2], left_side=True, transpose_a=True, conjugate_a=True), COMPLEX),
    "right solve": (lambda a: lax.linalg.triangular_solve(a, a[..., :2, :]), SQUARE),
    "multiplied by Q": (lambda a: lax.linalg.ormqr(*reflectors(a), a), TALL),
    "multiplied by Q, adjoint from the right, complex": (
        lambda a: lax.linalg.ormqr(*reflectors(a), a, left=False, transpose=True), COMPLEX),
    "QR with pivots": (lambda a: lax.linalg.qr(a, pivoting=True), TALL),
    "SVD by QR": (lambda a: lax.linalg.svd(a, algorithm=lax.linalg.SvdAlgorithm.QR), TALL),
    "Hessenberg": (lax.linalg.hessenberg, SQUARE), "Hessenberg, complex": (lax.linalg.hessenberg, COMPLEX),
    "tridiagonal": (lax.linalg.tridiagonal, SQUARE), "tridiagonal, complex": (lax.linalg.tridiagonal, COMPLEX),
    "tridiagonal, upper": (lambda a: lax.linalg.tridiagonal(a, lower=False), SQUARE),
    "tridiagonal, upper, complex": (lambda a: lax.linalg.tridiagonal(a, lower=False), COMPLEX),
    "Schur": (lax.linalg.schur, SQUARE), "Schur, complex": (lax.linalg.schur, COMPLEX),
    "Schur form": (lambda a: lax.linalg.schur(a, compute_schur_vectors=False), SQUARE),
    "tridiagonal solve": (
        lambda a: lax.linalg.tridiagonal_solve(a[..., 0], a[..., 1], a[..., 2], a[..., :3]), SQUARE),
    "solve": (lambda a: jnp.linalg.solve(a, a[..., :2]), SQUARE),
}  # fmt: skip


def described(words: str) -> TensorType:
    """The type of words like "f8[3, 2]"."""
    dtype, _, shape = words.partition("[")
    return TensorType(DType.of(np.empty(0, dtype)), tuple(json.loads(f"[{shape}")))


def text_of(name: str) -> str:
    function, argument = FUNCTIONS[name]
    return jax.jit(function, keep_unused=True).lower(argument).as_text()


class Off(NativeExecutor):
    """The native executor with one result that is off by a little."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place

    def run(self, case: Case) -> Execution:
        outputs = list(super().run(case).outputs)
        x = outputs[self.place]
        outputs[self.place] = x + 1 if x.dtype.kind == "i" else x * x.dtype.type(1.02) + x.dtype.type(1e-2)
        return Execution(tuple(outputs), {})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_routines_hold_and_nothing_else_does(name: str) -> None:
    loaded = load(text_of(name), name, evaluate=evaluate, inputs=[FUNCTIONS[name][1]])
    case = Case.of(loaded.program, loaded.inputs([FUNCTIONS[name][1]]))
    answer = judge(NativeExecutor(), Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.PASS, answer.reason
    assert answer.comparison.decided == answer.comparison.elements
    for ins in decomposing(case.program):
        without = lapack.garbage(ins.op, len(ins.output_slots))
        slots = tuple(slot for i, slot in enumerate(ins.output_slots) if i not in without)
        alone = Case(replace(case.program, output_slots=(*slots, *ins.input_slots)), case.inputs)
        for place in range(len(slots)):
            wrong = judge(Off(place), Reference(alone, NativeExecutor()))
            assert wrong.verdict is Verdict.MISMATCH, (ins.op.op, place, wrong)


def test_the_triangle_beside_a_cholesky_factor_keeps_the_matrix() -> None:
    potrf, a, info = (
        ops.Extension.of(lapack.FAMILY, "potrf", {"uplo": "L"}),
        np.array([[4.0, 2.0], [2.0, 5.0]]),
        np.array(0, np.int32),
    )
    kept, cut = np.array([[2.0, 2.0], [1.0, 2.0]]), np.array([[2.0, 0.0], [1.0, 2.0]])
    assert all(check.holds for check in checks(potrf, [a], [kept, info]))
    assert [check.name for check in checks(potrf, [a], [cut, info]) if not check.holds] == ["other triangle"]


class Beside(NativeExecutor):
    """The native executor with anything in the triangle beside its second result, a factor."""

    def __init__(self, k: int, beside: float) -> None:
        super().__init__()
        self.k, self.beside = k, beside

    def bit_exact(self, case: Case) -> bool:
        return False

    def run(self, case: Case) -> Execution:
        outputs = [*super().run(case).outputs]
        outside = np.triu(np.ones((4, 4), bool), 1)
        x = outputs[1]
        outputs[1] = np.where(outside if self.k > 0 else outside.T, x.dtype.type(self.beside), x)
        return Execution(tuple(outputs), {})


CHOLESKY = """func.func @main(%a: tensor<2x4x4x{t}>) -> (tensor<2x4x4x{t}>, tensor<2x4x4x{t}>) {{
  %0 = stablehlo.cholesky %a, lower = {lower} : tensor<2x4x4x{t}>
  %1 = stablehlo.add %a, %a : tensor<2x4x4x{t}>
  return %1, %0 : tensor<2x4x4x{t}>, tensor<2x4x4x{t}>
}}"""


@pytest.mark.parametrize("beside", [7.0, np.nan])
@pytest.mark.parametrize(("t", "a"), [("f32", SQUARE), ("complex<f32>", COMPLEX)])
@pytest.mark.parametrize("lower", [True, False])
def test_stablehlo_leaves_the_triangle_beside_a_factor_open(
    lower: bool, t: str, a: np.ndarray, beside: float, pool: Pool
) -> None:
    """That of a module as it is given; the program that it stands for has zeros there, and so has that as a module."""
    a = np.asfortranarray(gram(a) + np.eye(4, dtype=a.dtype))
    case = given_case(pool.reader.source(CHOLESKY.format(t=t, lower=str(lower).lower()), "m"), [a], pool.reader)
    emitted = lower_to_stablehlo(LoweringView.of(case.program))
    again = given_case(pool.reader.source(emitted, "m"), list(case.inputs), pool.reader)
    one = 1 if lower else -1
    for each, open_ in ((case, True), (case.written, False), (again, False)):
        reference = Reference(each, NativeExecutor())
        assert judge(NativeExecutor(), reference).verdict is Verdict.PASS
        for k, value, holds in ((one, beside, open_), (-one, beside, False)):
            answer = judge(Beside(k, value), reference)
            assert answer.verdict is (Verdict.PASS if holds else Verdict.MISMATCH), answer


def asked(name: str, given: list[np.ndarray], made: list[np.ndarray], flushes: bool = True, **flags: str):
    return checks(ops.Extension.of(lapack.FAMILY, name, flags), given, made, flushes=flushes)


@pytest.mark.parametrize("uplo", "LU")
def test_info_of_a_cholesky_factor(uplo: str) -> None:
    """Of what is definite for every order of the sums, of what is not for any, and between them."""
    low = np.array([[2, 0], [1, 2]], np.float32)
    factor = low if uplo == "L" else low.T
    ok, failed = np.array(0, np.int32), np.array(2, np.int32)
    due = {True: low @ low.T, False: np.float32([[1, 2], [2, 1]]), None: np.float32([[1, 1], [1, 1]])}
    for runs, a in due.items():
        kept = np.where(factor == 0, a, factor)
        whole, broken = (asked("potrf", [a], [kept, info], uplo=uplo) for info in (ok, failed))
        if runs is None:
            assert whole == broken == [UNCHECKED]
            continue
        assert all(c.holds for c in whole) is runs
        assert [c.name for c in broken if not c.holds] == ["info"] * runs
    nan = np.full_like(low, np.nan)
    asked_for = {runs: asked("potrf", [a], [nan, failed], uplo=uplo) for runs, a in due.items()}
    assert asked_for.pop(True)[0].name == "finite"
    assert set(map(tuple, asked_for.values())) == {(UNCHECKED,)}


def test_a_subnormal_matrix_may_be_none_to_a_cholesky_factorisation() -> None:
    """Read as zeros it is not definite."""
    made = [np.zeros((2, 2), np.float32), np.array(1, np.int32)]
    small = np.diag(np.array([1e-42, 2e-42], np.float32))
    assert asked("potrf", [small], made) == [UNCHECKED]
    for given, flushes in ((small, False), (small * np.float32(1e9), True)):
        assert "info" in {c.name for c in asked("potrf", [given], made, flushes) if not c.holds}
    zero = np.zeros((2, 2), np.float32)
    assert [c.holds for c in asked("potrf", [zero], [zero, np.array(0, np.int32)])] == [False, True]


def test_a_routine_need_not_give_what_overflows() -> None:
    t = np.array([[1e-9, 0, 0], [1e9, 1e-9, 0], [0, 1e9, 1e-9]], np.float32)
    b, beyond = np.ones((3, 1), np.float32), np.array([[1e9], [-1e27], [np.inf]], np.float32)
    assert asked("trsm", [t, b], [beyond]) == [UNCHECKED]
    assert asked("trsm", [t.T, b.T], [beyond.T], side="R", uplo="U") == [UNCHECKED]
    assert [c.name for c in asked("trsm", [t, b * 0 + np.float32(1e-4)], [beyond], diag="U")] == ["finite"]
    large = np.full((3, 2), 1e9, np.float32)
    for name, given, shape in (("orgqr", [large, large[0]], (3, 2)), ("ormqr", [large, large[0], large], (3, 2))):
        for value in (1, np.inf):
            assert asked(name, given, [np.full(shape, value, np.float32)]) == [UNCHECKED]


@pytest.mark.parametrize("beside", [np.nan, 1e30])
@pytest.mark.parametrize("uplo", "LU")
def test_the_triangle_that_a_routine_does_not_read_may_be_anything(uplo: str, beside: float) -> None:
    """It excuses nothing, and stays beside a factor."""
    whole = (SQUARE[0] @ SQUARE[0].T + np.eye(4, dtype=np.float32)).astype(np.float32)
    half = np.tril if uplo == "L" else np.triu
    a = np.where(half(np.ones((4, 4), bool)), whole, np.float32(beside))
    b = np.ones((4, 2), np.float32)
    calls: dict[str, tuple[list[np.ndarray], dict[str, str]]] = {
        "potrf": ([a], {}), "sytrd": ([a], {}), "syevd": ([a], {"mode": "V"}), "trsm": ([a, b], {"side": "L"}),
    }  # fmt: skip
    for name, (given, flags) in calls.items():
        made = lapack.LAPACK.execute(ops.Extension.of(lapack.FAMILY, name, {"uplo": uplo, **flags}), given)
        found = asked(name, given, made, uplo=uplo, **flags)
        assert all(c.holds and c.decided for c in found), name
        for times in (2, np.nan):
            wrong = np.where(half(np.ones(made[0].shape, bool)), made[0] * np.float32(times), made[0])
            assert not all(c.holds for c in asked(name, given, [wrong, *made[1:]], uplo=uplo, **flags)), name
    unit = a.copy()
    np.fill_diagonal(unit, beside)
    made = lapack.LAPACK.execute(ops.Extension.of(lapack.FAMILY, "trsm", {"uplo": uplo, "diag": "U"}), [unit, b])
    assert [c.holds and c.decided for c in asked("trsm", [unit, b], made, uplo=uplo, diag="U")] == [True]


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("name", sorted(lapack.ROUTINES))
def test_matrices_without_elements_and_of_one(name: str, size: int) -> None:
    routine = lapack.ROUTINES[name]
    given = [np.full((size,) * (2 if axes == "r" else len(axes)), 1, np.float32) for _, axes in routine.operands]
    if name == "geqp3":
        given[1] = np.zeros(size, np.int32)  # no column must come first
    if name in ("orgqr", "ormqr"):
        given[1] *= 2  # 1 - 2 v v^H is a reflection
    flags = {flag: letters[0] for flag, letters in routine.flags.items()}
    found = asked(name, given, lapack.LAPACK.execute(ops.Extension.of(lapack.FAMILY, name, flags), given), **flags)
    assert [check.name for check in found if not check.holds or not check.decided] == []


def test_info_of_a_tridiagonal_system() -> None:
    """It may be the place of a pivot that is a rounding error."""
    one, zeros = np.ones(2, np.float32), np.zeros((2, 1), np.float32)
    failed, b = np.array(2, np.int32), np.float32([[1], [0]])
    for diagonal, name in ((np.float32([1, 1 + 2.0**-23]), "unchecked"), (np.float32([1, 3]), "info")):
        found = asked("gtsv", [one, diagonal, one, b], [one, one, one, zeros, failed])
        assert found[0].name == name
        assert found[0].holds is (name == "unchecked")
        assert not all(c.holds for c in asked("gtsv", [one, diagonal, one, b], [one, one, one, zeros, failed * 0]))


@pytest.mark.parametrize("name", ["solve", "singular values", "complete QR", "eig", "Schur", "tridiagonal solve"])
def test_a_client_that_has_the_routines_runs_the_module_itself(name: str, pool: Pool) -> None:
    function, argument = FUNCTIONS[name]
    checked = check(
        function_subject(lambda a: jnp.exp(function(a)[0]), [argument[0]], pool.reader), [pool.make("jax")], pool
    )
    (judged,) = checked.answers
    assert judged.answer.verdict is Verdict.PASS, judged.answer.reason
    assert judged.evidence == "proved"


@pytest.mark.parametrize("note", ["", '{jax.note = "a branch may have attributes"} '], ids=["plain", "noted"])
def test_routines_in_branches_are_judged(note: str, pool: Pool) -> None:
    """Also in a branch of a branch; of those that are not taken nothing is known, nor asked."""

    def either(a, b):
        def solved(a, b):
            return lax.cond(a[0, 0] > -5, lambda a, b: jnp.linalg.solve(a, b), lambda a, b: b, a, b)

        return lax.cond(a.sum() > b[0, 0], solved, lambda a, b: jnp.linalg.qr(a)[0] @ b, a, b)

    a = np.asfortranarray(np.eye(3) * 2 + 0.1).astype(np.float32)
    b = np.ones((3, 2), np.float32, order="F")
    text = jax.jit(either).lower(a, b).as_text().replace("}) : (tensor<i32>", f"}}) {note}: (tensor<i32>")
    assert note in text
    checked = check(given_subject(pool.reader.source(text, "m"), [a, b], pool.reader), [pool.make("jax")], pool)
    (judged,) = checked.answers
    assert judged.answer.verdict is Verdict.PASS, judged.answer.reason
    assert judged.evidence == "proved"


def test_routines_in_loops_are_judged(pool: Pool) -> None:
    """Also in a loop in a loop, and where the factors decide when it ends."""

    def iterated(a):
        def turn(state):
            i, a = state
            a = lax.fori_loop(0, i, lambda _, x: x @ jnp.linalg.qr(x)[0], a)
            q, r = jnp.linalg.qr(a)
            return i + 1, r @ q

        def goes_on(state):
            i, a = state
            return (i < 3) & (jnp.abs(a[0, 0]) > 1e-3) & (jnp.linalg.det(a) != 0)

        return lax.while_loop(goes_on, turn, (0, a))

    checked = check(function_subject(iterated, [SQUARE[0]], pool.reader), [pool.make("jax")], pool)
    (judged,) = checked.answers
    assert judged.answer.verdict is Verdict.PASS, judged.answer.reason
    assert judged.evidence == "proved"


def test_a_routine_in_a_long_loop_is_not_watched(pool: Pool) -> None:
    def often(a):
        return lax.fori_loop(0, 300, lambda _, x: jnp.linalg.qr(x)[0], a)

    checked = check(function_subject(often, [SQUARE[0]], pool.reader), [pool.make("jax")], pool)
    assert checked.answers[0].answer.verdict is Verdict.UNDECIDED
    assert "inside a loop" in checked.answers[0].answer.reason


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mode = 83", "mode = 84", "none of A, S, N"),
        ("{mode = 83 : ui8}", "{mode = 83 : ui8, more = 1 : ui8}", "has the flags mode"),
        ("{mode = 83 : ui8}", "{}", "has the flags mode"),
        ("mode = 83 : ui8", "mode = 83 : i32", "none of A, S, N"),
        ("mode = 83 : ui8", "mode = 83 : i64", "has the flags mode"),
        ("dense<[1, 2, 0]>", "dense<[2, 1, 0]>", "column by column"),
        ("sgesdd", "sgesvj", "nothing is known"),
        ("mode = 83", "mode = 65", "other results"),
    ],
)
def test_calls_that_are_not_as_jax_makes_them_are_refused(old: str, new: str, words: str) -> None:
    text = text_of("SVD")
    assert old in text
    with pytest.raises((UnsupportedOp, lapack.InvalidArgument), match=words):
        load(text.replace(old, new), "changed")


A, TALL_A, TAU, LINE = "f8[3, 3]", "f8[5, 3]", "f8[3]", "f8[5]"


@pytest.mark.parametrize(
    ("name", "operands", "kind"),
    [
        ("gtsv", [LINE, LINE, TAU, "f8[5, 2]"], ShapeMismatch), ("gtsv", [LINE, LINE, "f4[5]", "f8[5, 2]"], DTypeMismatch),
        ("gtsv", [LINE, LINE, "f8[5, 1]", "f8[5, 2]"], ShapeMismatch), ("orgqr", [TALL_A, "f8[4]"], ShapeMismatch),
        ("orgqr", ["f8[3, 5]", TAU], ShapeMismatch), ("orgqr", [TALL_A, "f8[]"], ShapeMismatch),
        ("ormqr", [TALL_A, TAU, "f8[4, 2]"], ShapeMismatch), ("ormqr", [TALL_A, TAU, "c16[5, 2]"], DTypeMismatch),
        ("geqp3", [TALL_A, TAU], DTypeMismatch), ("geqp3", [TALL_A, "i4[5]"], ShapeMismatch),
        ("trsm", [A, "f8[2, 3]"], ShapeMismatch), ("trsm", [A, "f8[3]"], ShapeMismatch), ("trsm", [A, "f8[]"], ShapeMismatch),
        ("trsm", ["f8[2, 3, 3]", "f8[3, 3, 2]"], ShapeMismatch), ("getrf", [TAU], RankMismatch), ("syevd", [TALL_A], ShapeMismatch),
        ("getrf", ["i4[3, 3]"], Unsupported), ("trsm", [A], InvalidCompiledGraph),
    ],
)  # fmt: skip
def test_operands_that_do_not_fit_are_refused_by_the_rule(name: str, operands: list[str], kind: type) -> None:
    types = list(map(described, operands))
    with pytest.raises(kind):
        ops.Extension.of(lapack.FAMILY, name, {}).infer(ops.DEFAULT_POLICY, *types)


def test_fewer_reflectors_than_there_can_be() -> None:
    types = [described(TALL_A), described("f8[2]")]
    assert ops.Extension.of(lapack.FAMILY, "orgqr", {}).infer(ops.DEFAULT_POLICY, *types) == (types[0],)


def test_a_hessenberg_form_of_some_of_the_rows_is_refused() -> None:
    text = text_of("Hessenberg").replace("low = 1", "low = 2")
    with pytest.raises(UnsupportedOp, match="must reduce all rows"):
        load(text, "changed")


def test_a_result_without_a_meaning_must_not_be_used() -> None:
    text = text_of("full SVD").replace("mode = 65", "mode = 78")
    with pytest.raises(UnsupportedOp, match="leaves without a meaning"):
        load(text, "changed")


def test_a_subnormal_pivot_may_be_a_zero_to_info():
    for value, dtype in ((1e-39, np.float32), (1e-310, np.float64), (1e-39 + 1e-39j, np.complex64)):
        a = np.array([[value]], dtype)
        for info, flushes in itertools.product((0, 1, 2), (False, True)):
            found = asked("getrf", [a], [a, np.array([1], np.int32), np.array(info, np.int32)], flushes=flushes)
            assert all(c.holds for c in found) == (info == 0 or (info == 1 and flushes))


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.C32, DType.C64], ids=str)
def test_eigenvalues_of_small_and_large_matrices_are_scaled_back(dtype):
    """SciPy's routine does not: finding 0203."""
    a = np.array([[2, 1], [1, 3]], dtype.numpy)
    for scale in (dtype.finfo.tiny * 4, 1, dtype.finfo.max / 4):
        made = lapack.LAPACK.execute(ops.Extension.of(lapack.FAMILY, "geev", {}), [a * a.dtype.type(scale)])
        values = made[0] if dtype.is_complex else made[0] + 1j * made[1]
        assert np.allclose(np.sort(values.real / scale), [1.3819660, 3.6180340], rtol=1e-5)
        assert all(c.holds for c in asked("geev", [a * a.dtype.type(scale)], made, flushes=False))


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.C32, DType.C64], ids=str)
def test_a_subnormal_pivot_below_a_zero_is_exchanged(dtype):
    """OpenBLAS leaves it where it is: finding 0213."""
    a = np.array([[0, 1], [dtype.finfo.tiny / 8, 2]], dtype.numpy)
    made = lapack.LAPACK.execute(ops.Extension.of(lapack.FAMILY, "getrf", {}), [a])
    assert [made[0].tolist(), made[1].tolist(), int(made[2])] == [a[::-1].tolist(), [2, 2], 0]
    assert all(c.holds for c in asked("getrf", [a], made, flushes=False))


def test_imaginary_parts_of_eigenvalues_may_be_subnormal():
    least = np.finfo(np.float32).smallest_subnormal
    a = np.array([[0, 64], [-128, 0]], np.float32) * least
    made = lapack.LAPACK.execute(ops.Extension.of(lapack.FAMILY, "gees", {}), [a])
    assert abs(made[3][0]) in (90 * least, 91 * least)
    for flushes in (False, True):
        assert all(c.holds for c in asked("gees", [a], made, flushes=flushes))


def test_eigenvectors_are_asked_for_as_rows_and_columns_are_scaled_and_exchanged():
    """A zero row and column isolate an eigenvalue, so that the others are scaled in another order."""
    a = np.array([[0, 0, 0, 0], [0, 3, 1e-10, 2.5e-21], [0, 1, 2e-10, -1e-20], [0, 0.25, -1e-10, 4e-20]])
    made = lapack.LAPACK.execute(ops.Extension.of(lapack.FAMILY, "geev", {}), [a])
    assert all(c.holds for c in asked("geev", [a], made, flushes=False))
    made[3][1:, 0] *= 1 + 1e-3
    made[3][2:, 0] *= 1 + 1e-3
    assert not all(c.holds for c in asked("geev", [a], made, flushes=False))


def test_complex_schur_vectors_are_unitary():
    """SciPy's are not: finding 0239."""
    a = np.array([[1 + 2j, 3 + 1j], [(-2 + 6j) * 1e-153, (4 + 8j) * 1e-153]])
    made = lapack.LAPACK.execute(ops.Extension.of(lapack.FAMILY, "gees", {}), [a])
    assert all(c.holds for c in asked("gees", [a], made, flushes=False))
