"""The engine of the algebras in campaigns: over the standard algebra, and by definition over the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fuzz.generate import Config
from fuzz.generate.batches import generate
from oracle.algebras import MEANINGS, read
from oracle.case import Case
from oracle.judge import Reference, judge, judge_many, prepare
from oracle.peers import DrawnExecutor, Execution, Executor, Pool, attempt, configured
from oracle.peers.algebras import part_of
from oracle.peers.native import NativeExecutor
from oracle.peers.semirings import fits
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.dtype import FLOAT
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import OPS, STABLEHLO
from tenferro_ref.program import GraphBuilder
from tenferro_ref.runtime import GraphExecutor, SemiringBackend
from tenferro_ref.runtime.semiring import SEMIRING, algebra, backend, core
from tests.build import contents, numbered

pytestmark = pytest.mark.once

ALGEBRAIC = Config(ops=tuple(op for op in OPS if op in SEMIRING))
CASES = generate(22, 0, 160)
FITTING = [case for case in generate(21, 0, 200, ALGEBRAIC) if fits(case.program, "fast")]


def prepared(cases: Iterable[Case]) -> list[Reference]:
    """Cases that `native` has run, and that are compared with their enclosures."""
    references = [Reference(case, NativeExecutor()) for case in cases]
    prepare(references)
    return references


def verdicts(executor: Executor, references: Sequence[Reference]) -> list[Verdict]:
    return [answer.verdict for answer in judge_many(executor, references)]


def bits(result: Execution | TenferroError) -> object:
    return contents(result.outputs) if isinstance(result, Execution) else str(result)


def as_ever(references: Iterable[Reference]) -> bool:
    """The native executor, which has no algebra, gives the bits that it gave when the references were made."""
    return all(bits(attempt(NativeExecutor(), reference.case)) == bits(reference.execution) for reference in references)


@pytest.fixture(scope="module")
def sound() -> list[Reference]:
    return prepared(CASES)


@pytest.fixture(scope="module")
def fitting() -> list[Reference]:
    return prepared(FITTING)


# --- over the standard algebra ----------------------------------------------------------------------------------------


def test_programs_that_fit_have_the_same_bits(fitting: list[Reference]) -> None:
    assert len(FITTING) > 80
    assert set(verdicts(configured(semiring="fast"), fitting)) == {Verdict.PASS}
    required = verdicts(configured(semiring="required"), fitting)
    assert set(required) == {Verdict.PASS, Verdict.UNSUPPORTED}
    assert required.count(Verdict.PASS) > 20
    assert configured(semiring="required").bit_exact(FITTING[0])


def test_what_fits_nothing_is_refused_and_not_drawn() -> None:
    drawn = DrawnExecutor("native-drawn")
    assert {drawn.settled(case).semiring for case in FITTING} == {"", "fast", "required"}
    b = GraphBuilder()
    case = Case.of(b.build(b.apply(ops.Exp(), b.input("F64", (2,)))), [np.ones(2)])
    assert drawn.settled(case).semiring == ""
    assert verdicts(configured(semiring="fast"), prepared([case])) == [Verdict.UNSUPPORTED]
    b = GraphBuilder(policy=STABLEHLO)
    assert not fits(b.build(-b.input("F16", (2,))), "fast")


def _row_major(self: backend.Semiring, op: ops.DotGeneral, lhs: Any, rhs: Any) -> Any:
    form = backend.matrix_form(op, lhs.shape, rhs.shape)
    left = lhs.transpose(form.lhs_axes).reshape(form.m, form.k, form.b)
    right = rhs.transpose(form.rhs_axes).reshape(form.k, form.n, form.b)
    return self.core.batched_gemm(left, right).reshape(form.shape, order="F")


def test_a_required_path_that_errs_is_found(fitting: list[Reference], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend.Semiring, "contract", _row_major)
    assert as_ever(fitting)
    assert Verdict.MISMATCH in verdicts(configured(semiring="required"), fitting)


# --- over the others --------------------------------------------------------------------------------------------------

EXECUTOR = Pool().make("native-algebras")


def test_half_of_all_programs_have_a_part_that_is_checked(sound: list[Reference]) -> None:
    found = [answer.verdict for answer in judge_many(EXECUTOR, sound)]
    assert set(found) <= {Verdict.PASS, Verdict.UNSUPPORTED, Verdict.UNDECIDED}  # passes move roundings of a few
    assert found.count(Verdict.PASS) > len(CASES) // 2


def _ignores_nan(self: algebra._Extremum, x: Any, axes: tuple[int, ...]) -> Any:
    return np.asfortranarray((np.fmin if self.sign < 0 else np.fmax).reduce(x, axis=axes))


def _forgets_the_last(self: core.NumpyFastPath, op: ops.DotGeneral, lhs: Any, rhs: Any) -> Any:
    if op.lhs_contracting_dims and lhs.shape[op.lhs_contracting_dims[0]] > 1:
        lhs = np.delete(lhs, -1, op.lhs_contracting_dims[0])
        rhs = np.delete(rhs, -1, op.rhs_contracting_dims[0])
    return _CONTRACT(self, op, lhs, rhs)


_CONTRACT = core.NumpyFastPath.contract


@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [
        (algebra._Extremum, "fold", _ignores_nan),
        (core.NumpyFastPath, "contract", _forgets_the_last),
        (core.NumpyFastPath, "elementwise_mul", lambda self, x, y: self.algebra.plus(x, y)),
        (backend.Semiring, "reduce_sum", lambda self, x, axes: self.core.algebra.plus.fold(x, axes[:1]) if axes else x),
        (SEMIRING, "Pad", backend._move),
        (SEMIRING, "Tril", backend._move),
    ],
)
def test_an_algebra_that_errs_is_found(
    module: Any, name: str, fault: Callable[..., Any], sound: list[Reference], monkeypatch: pytest.MonkeyPatch
) -> None:
    if module is SEMIRING:
        monkeypatch.setitem(SEMIRING._rows, getattr(ops, name), fault)
    else:
        monkeypatch.setattr(module, name, fault)
    assert any(judge(EXECUTOR, reference).verdict is Verdict.ERROR for reference in sound)
    assert as_ever(sound)


def test_an_algebra_that_refuses_a_product_without_elements_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a sum of nothing that has elements is refused: the others run under the policy that refuses it."""
    cases = []
    for left, right in (((0, 3), (3, 2)), ((2, 0), (0, 3))):
        b = GraphBuilder()
        program = b.build(b.input("F64", left) @ b.input("F64", right))
        cases.append(Case.of(program, [np.ones(left), np.ones(right)]))
    assert verdicts(EXECUTOR, prepared(cases)) == [Verdict.PASS, Verdict.PASS]
    nothing = backend.Semiring._nothing

    def refuses(self: backend.Semiring, op: ops.DotGeneral, shape: tuple[int, ...], dtype: Any) -> Any:
        return (
            nothing(self, op, (1,), dtype)
            if self.policy.empty_reduction == "error"
            else nothing(self, op, shape, dtype)
        )

    monkeypatch.setattr(backend.Semiring, "_nothing", refuses)
    assert verdicts(EXECUTOR, prepared(cases)) == [Verdict.ERROR, Verdict.PASS]


def test_a_part_is_cut_from_what_has_no_meaning() -> None:
    """Exp and its neighbours stay outside; indices are no elements, and what moves elements alone is no part."""
    b = GraphBuilder()
    x, at = b.input("F64", (3, 3)), b.input("F64", (2,))
    window = b.apply(ops.DynamicSlice((2, 2)), b.apply(ops.Exp(), x @ x), at)
    program = b.build(window + window, b.apply(ops.Sin(), at))
    values = {slot: np.zeros(t.static_shape) for slot, t in program.slot_types.items()}
    part = part_of(program, values, FLOAT)
    assert part is not None
    assert [ins.op.name for ins in part.program.instructions] == ["DotGeneral", "DynamicSlice", "Add"]
    assert [a.shape for a in part.inputs] == [(3, 3), (3, 3), (2,)]
    truths = part_of(program, values, FLOAT, boolean=True)
    assert truths is not None
    assert [a.dtype.kind for a in truths.inputs] == ["b", "b", "f"]
    b = GraphBuilder()
    program = b.build(b.input("F64", (3, 2)).T)
    assert part_of(program, {0: np.zeros((3, 2)), 1: np.zeros((2, 3))}, FLOAT) is None


def test_definitions_of_a_known_product() -> None:
    b = GraphBuilder()
    program = b.build(b.input("F64", (1, 2)) @ b.input("F64", (2, 1)), b.apply(ops.Tril(-2), b.input("F64", (1, 1))))
    inputs = [np.array([[2.0, -3.0]]), np.array([[5.0], [7.0]]), np.ones((1, 1))]
    expected = {"max-plus": (7.0, -np.inf), "min-plus": (4.0, np.inf), "max-times": (10.0, 0.0)}
    for name, numbers in expected.items():
        assert tuple(float(a[0, 0]) for a in read(program, inputs, name)) == numbers
    zeros = np.array([0.0, -0.0, np.nan])
    assert contents([MEANINGS["max-plus"].plus(zeros, zeros[::-1])]) == contents([np.array([np.nan, -0.0, np.nan])])


def test_conjugates_of_what_is_real_mean_nothing() -> None:
    """Of Bools they were integers, which the Boolean algebra refused."""
    b = GraphBuilder(policy=STABLEHLO)
    x = b.input("Bool", (2, 2))
    program = b.build(b.apply(ops.DotGeneralWithConj((1,), (0,), (), (), lhs_conj=True), x, x))
    array = numbered(2, 2) > 2
    (out,) = GraphExecutor(SemiringBackend.of("boolean")).eval_exec_ir(compile_std_to_exec(program), [array])
    assert out.tolist() == (array @ array).tolist()


def test_errors_that_are_due_come_from_it_too() -> None:
    b = GraphBuilder()
    x = b.input("I32", (1,))
    case = Case.of(b.build(x / x), [np.zeros(1, np.int32)])
    assert judge(EXECUTOR, Reference(case, NativeExecutor())).verdict is Verdict.PASS
    assert judge(EXECUTOR, Reference(replace(case, inputs=(np.ones(1, np.int32),)), NativeExecutor())).verdict is (
        Verdict.UNSUPPORTED
    )
    wrong = replace(case, program=replace(case.program, output_slots=(99,)))
    assert judge(EXECUTOR, Reference(wrong, NativeExecutor())).verdict is Verdict.PASS
