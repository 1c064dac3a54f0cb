"""Programs with decompositions: factors by their invariants, the rest by enclosures, on every executor that has the op."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import Execution, NativeExecutor, Pool
from oracle.verdict import Verdict
from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.extensions import linalg
from tenferro_ref.program import GraphBuilder
from tests.plugins import ONE_BUILD, plugin_or_skip

pytestmark = pytest.mark.once

DTYPES = {"F32": np.float32, "F64": np.float64, "C32": np.complex64, "C64": np.complex128}


def solved(dtype: str, batch: tuple[int, ...] = (2,)) -> Case:
    """exp of the solution of L x = b, L the Cholesky factor of X X^H + I."""
    b = GraphBuilder()
    x, one, rhs = (b.input(dtype, (3, n, *batch)) for n in (3, 3, 2))
    gram = tn.einsum("ik...,jk...->ij...".replace("...", "z" * len(batch)), x, tn.conj(x))
    factor = linalg.cholesky(gram + one)
    program = b.build(tn.exp(linalg.triangular_solve(factor, rhs)), factor)
    rng = np.random.default_rng(7)

    def draw(*shape: int) -> np.ndarray:
        z = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype[0] == "C" else 0)
        return z.astype(DTYPES[dtype])

    unit = np.broadcast_to(np.eye(3).reshape(3, 3, *(1,) * len(batch)), (3, 3, *batch)).astype(DTYPES[dtype])
    return Case.of(program, [draw(3, 3, *batch), unit, draw(3, 2, *batch)])


def decomposed(op: str) -> Case:
    b = GraphBuilder()
    x = b.input("F64", (4, 4))
    outputs = getattr(linalg, op)(x)
    values = outputs if isinstance(outputs, tuple) else (outputs,)
    a = np.random.default_rng(1).standard_normal((4, 4))
    return Case.of(b.build(*values, values[0] * 2.0), [a @ a.T + np.eye(4)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["native", "native-unsegmented", "native-nopasses"])
def test_native_executors_pass(dtype: str, name: str) -> None:
    answer = judge(Pool().make(name), Reference(solved(dtype), NativeExecutor()))
    assert answer.verdict is Verdict.PASS, answer.reason
    assert answer.comparison.decided == answer.comparison.elements > 20


@pytest.mark.parametrize("plugin", ONE_BUILD)
def test_plugins_pass(plugin: str, pool: Pool) -> None:
    plugin_or_skip(plugin)
    for dtype in DTYPES:
        answer = judge(pool.make(f"pjrt:{plugin}@fast"), Reference(solved(dtype, ()), NativeExecutor()))
        assert answer.verdict is Verdict.PASS, (dtype, answer.reason)


@dataclass(frozen=True)
class _Bent(NativeExecutor):
    """Multiplies one of the outputs that it is asked for."""

    output: int = 0
    factor: float = 1.0
    name: str = "bent"

    def run(self, case: Case) -> Execution:
        execution = NativeExecutor.run(self, case)
        outputs = list(execution.outputs)
        outputs[self.output] = outputs[self.output] * np.asarray(self.factor, outputs[self.output].dtype)
        return replace(execution, outputs=tuple(outputs))

    def bit_exact(self, case: Case) -> bool:
        return False


def _of_nan(shown: str) -> Case:
    """Of a matrix that is not finite, computed in the program: the solution, what is computed from it, and that matrix."""
    b = GraphBuilder()
    x, rhs = b.input("F64", (2, 2)), b.input("F64", (2, 1))
    doubled = x + x
    solution = linalg.solve(doubled, rhs)
    outputs = {"solution": solution, "later": tn.exp(solution), "matrix": doubled}
    return Case.of(
        b.build(*(outputs[name] for name in shown.split())), [np.array([[1.0, np.nan], [2.0, 3.0]]), np.ones((2, 1))]
    )


@pytest.mark.parametrize("shown", ["solution", "later", "solution later"])
def test_where_no_output_was_compared_nothing_passes(shown: str) -> None:
    """Any answer passed, as proved."""
    for executor in (NativeExecutor(), _Bent(factor=42.0)):
        answer = judge(executor, Reference(_of_nan(shown), NativeExecutor()))
        assert (answer.verdict, answer.comparison.decided) == (Verdict.UNDECIDED, 0)
    answer = judge(NativeExecutor(), Reference(_of_nan(shown + " matrix"), NativeExecutor()))
    assert answer.verdict is Verdict.PASS
    assert answer.comparison.decided < answer.comparison.elements


def test_outputs_without_elements_pass() -> None:
    b = GraphBuilder()
    x, rhs = b.input("F64", (2, 2)), b.input("F64", (2, 0))
    case = Case.of(b.build(linalg.solve(x, rhs)), [np.full((2, 2), np.nan), np.ones((2, 0))])
    answer = judge(NativeExecutor(), Reference(case, NativeExecutor()))
    assert (answer.verdict, answer.comparison.elements) == (Verdict.PASS, 0)


@pytest.mark.parametrize("op", ["cholesky", "lu", "qr", "svd", "eigh", "svdvals"])
def test_a_wrong_factor_is_caught_and_a_right_one_is_not(op: str) -> None:
    reference = Reference(decomposed(op), NativeExecutor())
    assert judge(_Bent(), reference).verdict is Verdict.PASS
    answer = judge(_Bent(factor=1 + 1e-6), reference)
    assert answer.verdict is Verdict.MISMATCH
    assert "at most" in answer.reason


@pytest.mark.parametrize("output", range(6))
def test_each_output_is_held_to_something_and_named_by_its_number(output: int) -> None:
    """An input given back, factors, and what is computed of them; those that come twice, too, as they do in modules."""
    b = GraphBuilder()
    x = b.input("F64", (4, 4))
    factor = linalg.cholesky(x)
    double = factor * 2.0
    a = np.random.default_rng(1).standard_normal((4, 4))
    case = Case.of(b.build(x, factor, double, factor, b.constant(3.0), double), [a @ a.T + np.eye(4)])
    assert judge(_Bent(output=output), Reference(case, NativeExecutor())).verdict is Verdict.PASS
    answer = judge(_Bent(output=output, factor=2.0), Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.MISMATCH
    assert answer.comparison.worst_output == output


def test_what_is_computed_from_the_factors_is_held_to_them() -> None:
    case = decomposed("svd")
    doubled = len(case.program.output_slots) - 1
    answer = judge(_Bent(output=doubled, factor=1 + 1e-6), Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.MISMATCH
    assert answer.comparison.value_class == "expected finite, got other finite"


@dataclass(frozen=True)
class _Fused(NativeExecutor):
    """Adds to the last output but one, which it computed as a product with a reciprocal, before that is rounded."""

    name: str = "fused"
    model: str = "xla"
    off: float = 0.0

    def run(self, case: Case) -> Execution:
        execution = NativeExecutor.run(self, case)
        _, b, addend = (x.astype(np.float64) for x in case.inputs)
        total = (b * np.float64(np.float32(1) / case.inputs[0]) + addend + self.off).astype(np.float32)
        program = case.program
        place = program.output_slots.index(program.instructions[-1].output_slots[0])
        outputs = tuple(total if i == place else x for i, x in enumerate(execution.outputs))
        return replace(execution, outputs=outputs)

    def bit_exact(self, case: Case) -> bool:
        return False


def test_the_solution_of_one_equation_may_go_unrounded_into_a_sum() -> None:
    b = GraphBuilder()
    x, y = b.input("F32", (1, 1)), b.input("F32", (1, 1))
    program = b.build(linalg.triangular_solve(x, y) + b.input("F32", (1, 1)))
    case = Case.of(program, [np.full((1, 1), v, np.float32) for v in (1.125, 1.5, 1.0)])
    reference = Reference(case, NativeExecutor())
    assert _Fused().run(case).outputs[0] != NativeExecutor().run(case).outputs[0]
    assert judge(_Fused(), reference).verdict is Verdict.PASS
    # only where products may be fused, and no further than that
    assert judge(_Fused(model="ieee"), reference).verdict is Verdict.MISMATCH
    assert judge(_Fused(off=-3e-7), reference).verdict is Verdict.MISMATCH
    assert judge(_Fused(off=6e-7), reference).verdict is Verdict.MISMATCH


def _with_dead_cholesky(also: str = "") -> Case:
    """2 |w| for eigenvalues w, and a Cholesky factor of the same indefinite matrix that nothing reads."""
    b = GraphBuilder()
    x = b.input("F64", (2, 2))
    linalg.cholesky(x)
    outputs = [linalg.eigvalsh(x) * 2.0, *([getattr(linalg, also)(x)] if also else [])]
    return Case.of(b.build(*outputs), [-np.eye(2)])


def test_a_matrix_that_only_dead_code_refuses_may_be_refused_or_not() -> None:
    reference = Reference(_with_dead_cholesky(), NativeExecutor())
    for name in ("native", "native-unsegmented", "native-nopasses", "native:passes=TransposeFolding"):
        answer = judge(Pool().make(name), reference)
        assert answer.verdict is Verdict.PASS, (name, answer.reason)
    assert "refuses what no output depends on" in judge(Pool().make("native-nopasses"), reference).reason
    assert judge(_Bent(factor=1.001), reference).verdict is Verdict.MISMATCH


def test_what_the_reference_refuses_says_nothing_about_it() -> None:
    case = _with_dead_cholesky(also="cholesky")
    assert judge(NativeExecutor(), Reference(case, NativeExecutor())).verdict is Verdict.UNDECIDED
    assert judge(Pool().make("native-nopasses"), Reference(case, NativeExecutor())).verdict is Verdict.PASS


def test_matrices_without_elements_are_not_asked_for() -> None:
    """XLA divides by zero in a module that gives the factors of an empty matrix beside their determinant."""

    class AsGiven(NativeExecutor):
        def run(self, case: Case) -> Execution:
            assert len(case.program.output_slots) == 1
            return super().run(case)

    b = GraphBuilder(policy=ops.STABLEHLO)
    _, _, upper, _ = linalg.lu(b.input("F32", (0, 0)))
    case = Case.of(b.build(b.apply(ops.ReduceSum((0, 1)), upper)), [np.zeros((0, 0), np.float32)])
    executor = AsGiven("as given")
    answer = judge(executor, Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.PASS, answer.reason
    assert answer.comparison.decided == answer.comparison.elements == 1
