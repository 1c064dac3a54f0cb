"""Evidence of the interpreter: sees what is wrong, allows what rounding may do, and claims nothing where it knows nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from unittest import mock

import numpy as np
import pytest

from fuzz.checking import check
from fuzz.checking.subject import given_subject
from oracle.case import Case
from oracle.evidence import Evidence, judge_by_evidence
from oracle.peers import Execution, Executor, Pool
from oracle.peers.jax import JaxExecutor
from oracle.verdict import Answer, Verdict
from tenferro_ref.errors import WorkerDied
from tenferro_ref.stablehlo import Source
from tenferro_ref.tensor import Array
from tests.libraries import module_or_skip

pytestmark = pytest.mark.once

module_or_skip("jaxlib")

SUM = """func.func @main(%a: tensor<64xf32>) -> (tensor<f32>, tensor<64xi32>, tensor<64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.convert %a : (tensor<64xf32>) -> tensor<64xi32>
  return %0, %1, %a : tensor<f32>, tensor<64xi32>, tensor<64xf32>
}
"""
INPUT = np.random.default_rng(0).standard_normal(64).astype(np.float32) * 10


@dataclass
class Said(Executor):
    """An executor that gives these outputs."""

    outputs: tuple[Array, ...]
    name: str = "pjrt:told"

    def run_source(self, source: Source, inputs: object) -> Execution:
        return Execution(self.outputs)


def evidence(pool: Pool, text: str, *inputs: Array) -> Evidence:
    return Evidence(pool.reader.source(text, "m"), inputs, pool.make("interpreter"), pool.reader)


def judged(pool: Pool, change: int | None = None, by: float = 0.0) -> Answer:
    """The answer of an executor that gives what the interpreter does, but for one result that is off."""
    held = evidence(pool, SUM, INPUT)
    outputs = [a.copy() for a in held.interpreter.run_source(held.source, [INPUT]).outputs]
    if change is not None:
        outputs[change][...] = outputs[change] + np.array(by, outputs[change].dtype)
    return judge_by_evidence(Said(tuple(outputs)), held)


def test_the_same_values_pass_and_nothing_counts_as_decided(pool: Pool) -> None:
    answer = judged(pool)
    assert (answer.verdict, answer.reason) == (Verdict.PASS, "as the interpreter")
    assert answer.comparison.elements == 129
    assert answer.comparison.decided == 0


@pytest.mark.parametrize(
    ("change", "by", "passes"),
    [(0, 1e-6, True), (0, 1e-2, False), (0, np.nan, False), (1, 1, False), (2, 1e-9, True), (2, 1e-3, False)],
)
def test_rounding_passes_and_more_does_not(pool: Pool, change: int, by: float, passes: bool) -> None:
    answer = judged(pool, change, by)
    assert answer.verdict is (Verdict.PASS if passes else Verdict.MISMATCH)
    assert passes or answer.comparison.worst_output == change


def test_results_of_another_shape_are_wrong(pool: Pool) -> None:
    assert judge_by_evidence(Said((np.zeros(3, np.float32),)), evidence(pool, SUM, INPUT)).verdict is Verdict.MISMATCH


def test_an_overflow_that_the_twin_has_not_is_left_open(pool: Pool) -> None:
    text = "func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.exponential %a : tensor<f32> return %0 : tensor<f32> }"
    held = evidence(pool, text, np.float32(100))
    answer = judge_by_evidence(Said((np.array(3e38, np.float32),)), held)
    assert (answer.verdict, answer.reason) == (Verdict.UNDECIDED, "the interpreter and its twin agree on no element")


SMALL = """func.func @main(%a: tensor<3xf32>) -> (tensor<3xi1>, tensor<3xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<3xf32>
  %0 = stablehlo.compare GT, %a, %z : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  return %0, %a : tensor<3xi1>, tensor<3xf32> }"""


@pytest.mark.parametrize(("place", "passes"), [(0, True), (1, False), (2, False)])
def test_what_follows_of_a_subnormal_that_is_flushed_is_left_open(pool: Pool, place: int, passes: bool) -> None:
    a = np.array([1e-40, 1.0, -1.0], np.float32)
    held = evidence(pool, SMALL, a)
    outputs = [x.copy() for x in held.interpreter.run_source(held.source, [a]).outputs]
    outputs[0][place] = not outputs[0][place]
    answer = judge_by_evidence(Said(tuple(outputs)), held)
    assert answer.verdict is (Verdict.PASS if passes else Verdict.MISMATCH)


def test_random_numbers_have_no_evidence(pool: Pool) -> None:
    text = """func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<2xf32> {
      %s = stablehlo.constant dense<2> : tensor<1xi64>
      %0 = stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<2xf32>
      return %0 : tensor<2xf32> }"""
    answer = judge_by_evidence(Said((np.zeros(2, np.float32),)), evidence(pool, text, np.float32(0), np.float32(1)))
    assert answer.verdict is Verdict.UNDECIDED
    assert "not determined" in answer.reason


def test_the_interpreter_is_no_evidence_for_itself(pool: Pool) -> None:
    held = evidence(pool, SUM, INPUT)
    assert judge_by_evidence(held.interpreter, held).verdict is Verdict.UNDECIDED


def test_the_interpreter_may_fail_all_the_same(pool: Pool) -> None:
    text = """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @nobody_has_it(%a) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32> }"""
    held = evidence(pool, text, np.ones(2, np.float32))
    answer = judge_by_evidence(held.interpreter, held)
    assert (answer.verdict, "the interpreter does not have it" in answer.reason) == (Verdict.UNSUPPORTED, True)
    with mock.patch.object(type(held.interpreter), "run_source", side_effect=WorkerDied("it", "signal SIGABRT", "")):
        held = evidence(pool, SUM, INPUT)
        assert judge_by_evidence(held.interpreter, held).verdict is Verdict.CRASH


def test_narrow_floats_inside_a_module_of_f64_count(pool: Pool) -> None:
    text = """func.func @main(%a: tensor<4xf64>) -> tensor<4xf64> {
      %0 = stablehlo.convert %a : (tensor<4xf64>) -> tensor<4xf32>
      %1 = stablehlo.sine %0 : tensor<4xf32>
      %2 = stablehlo.convert %1 : (tensor<4xf32>) -> tensor<4xf64>
      return %2 : tensor<4xf64> }"""
    a = np.array([0.1, 0.7, 1.3, 2.9])
    answer = judge_by_evidence(
        Said((np.sin(a.astype(np.float32)).astype(np.float64) * (1 + 1e-7),)), evidence(pool, text, a)
    )
    assert answer.verdict is Verdict.PASS


def test_the_program_as_written_is_held_to_the_interpreter_too(pool: Pool) -> None:
    text = """func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
      %0 = stablehlo.remainder %a, %b : tensor<3xf32>
      return %0 : tensor<3xf32>
    }"""
    arrays = [np.array([3.5, -7.0, 9.25], np.float32), np.array([2.0, 3.0, 4.0], np.float32)]
    subject = given_subject(pool.reader.source(text, "m"), arrays, pool.reader)

    class OffAsGiven(JaxExecutor):
        def run_source(self, source: Source, inputs: Sequence[Array]) -> Execution:
            return Execution(tuple(x + np.float32(0.5) for x in super().run_source(source, inputs).outputs))

    jax = pool.make("jax")
    off = OffAsGiven(**{f.name: getattr(jax, f.name) for f in fields(jax) if f.init})
    with mock.patch("fuzz.checking.judged._unproved", return_value=True):  # as where there is no enclosure
        (found,) = check(subject, [off], pool).answers
    assert (found.answer.verdict, found.evidence) == (Verdict.MISMATCH, "interpreter")
    assert found.written == "only as given (as written: pass)"


@pytest.mark.parametrize("seen", [[1, 2], [6, 7]])
def test_an_initial_value_that_is_left_out_is_not_held_to_the_interpreter(pool: Pool, seen: list[int]) -> None:
    text = """func.func @main(%a: tensor<2x1xi32>) -> tensor<2xi32> {
      %c = stablehlo.constant dense<5> : tensor<i32>
      %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x1xi32>, tensor<i32>) -> tensor<2xi32>
      return %0 : tensor<2xi32> }"""
    a = np.array([[1], [2]], np.int32)
    subject = given_subject(pool.reader.source(text, "m"), [a], pool.reader)

    class OfCases(Said):
        def run(self, case: Case) -> Execution:
            return Execution(self.outputs)

    (found,) = check(subject, [OfCases((np.array(seen, np.int32),))], pool).answers
    assert (found.answer.verdict, found.evidence) == (Verdict.UNDECIDED, "none")


def test_large_elements_say_nothing_of_small_ones(pool: Pool) -> None:
    """The distance to the twin of 1e10 is no allowance for 1, 2, 3."""
    text = """func.func @main(%x: tensor<63xf32>) -> tensor<63xf32> {
      %0 = stablehlo.exponential %x : tensor<63xf32>
      %1 = stablehlo.composite "some.thing" %0 {decomposition = @f} : (tensor<63xf32>) -> tensor<63xf32>
      return %1 : tensor<63xf32>
    }
    func.func private @f(%x: tensor<63xf32>) -> tensor<63xf32> { return %x : tensor<63xf32> }"""
    x = np.concatenate([np.linspace(22, 24, 60), np.log([1, 2, 3])]).astype(np.float32)
    held = evidence(pool, text, x)
    (right,) = held.interpreter.run_source(held.source, [x]).outputs
    wrong = np.where(np.arange(63) < 60, right, np.float32([*[0] * 60, -500, 700, -900]))
    assert judge_by_evidence(Said((right,)), held).verdict is Verdict.PASS
    assert judge_by_evidence(Said((wrong,)), held).verdict is Verdict.MISMATCH
