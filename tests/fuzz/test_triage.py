"""Triage: what disagreements have in common, and the first wrong instruction alone."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
import pytest

from fuzz.findings.alike import value_class
from fuzz.findings.suspect import Suspect, inspect
from fuzz.findings.triage import printed, to_finding
from oracle.attribution import EVERY_LANE, UNCLEAR
from oracle.case import Case
from oracle.given_case import given_case
from oracle.judge import Reference, judge
from oracle.peers import Execution, NativeExecutor, Pool
from oracle.peers.errors import EngineFault
from oracle.verdict import Answer, Comparison, Verdict
from tenferro_ref.ops import Exp, Negate, Op, Sign, Sqrt
from tenferro_ref.program import GraphBuilder, parse
from tenferro_ref.runtime.kernels import run_kernel
from tests.fuzz.faulty_executors import Wrong, chain, suspect_of
from tests.plugins import plugin_or_skip


def test_what_follows_the_first_wrong_instruction_makes_no_kind_of_its_own() -> None:
    executor = Wrong()
    suspects = [suspect_of(executor, chain(Exp, Negate, op)) for op in (Exp, Sqrt)]
    assert len({s.answer.comparison.value_class for s in suspects}) == 2
    assert suspects[0].group == suspects[1].group == suspect_of(executor, chain(Negate)).group
    assert suspects[0].op == "Negate"


@pytest.mark.parametrize(("together", "op"), [(1, "Sqrt(Negate)"), (16, "Negate")])
def test_where_no_slot_can_be_watched_each_instruction_is_asked_alone(together: int, op: str) -> None:
    """By those who answer for all of them in one module."""
    executor = Wrong(outputs=1, programs_a_module=together)
    assert suspect_of(executor, chain(Exp, Negate, Sqrt)).op == op


def test_an_instruction_that_is_right_alone_is_named_with_its_operands(pool: Pool) -> None:
    suspect = suspect_of(Wrong(after=Exp), chain(Exp, Negate, Exp))
    assert suspect.op == "Negate(Exp)"
    finding, small = to_finding(suspect, pool, (), programs=1, also=())
    assert [ins.op.name for ins in small.program.instructions][:2] == ["Exp", "Negate"]
    assert finding.original_instructions == 3


def test_a_reduction_begins_with_the_first_wrong_instruction(pool: Pool) -> None:
    case = chain(*[Sqrt] * 16, Negate, Exp, *[Sqrt] * 15, values=(0.5,))
    executor = Wrong()
    suspect = suspect_of(executor, case)
    executor.runs = 0
    finding, small = to_finding(suspect, pool, (), programs=1, also=())
    assert finding.signature == "Negate | F64 | expected finite, got other finite | only wrong"
    assert (finding.original_instructions, finding.instructions) == (33, 1)
    assert executor.runs < 25
    assert small.inputs[0].tolist() == 1.0
    # without a budget the program stays as it was
    finding, same = to_finding(suspect, pool, (), programs=1, also=(), budget_seconds=0.0)
    assert same.fingerprint == case.fingerprint
    assert finding.instructions == 33


@pytest.mark.parametrize("final", ["rewrite: algsimp", UNCLEAR])
def test_what_only_a_smaller_program_tells_is_asked_of_that(
    monkeypatch: pytest.MonkeyPatch, final: str, pool: Pool
) -> None:
    """A lane hangs over the square root; without that, all can be asked."""

    def told(executor: object, case: Case, pool: Pool) -> str:
        return UNCLEAR if "Sqrt" in {ins.op.name for ins in case.program.instructions} else final

    for module in ("suspect", "triage"):
        monkeypatch.setattr(f"fuzz.findings.{module}.attribute", told)
    suspect = suspect_of(Wrong(after=Exp), chain(Sqrt, Exp, Negate, Exp))
    assert suspect.attribution == UNCLEAR
    finding, small = to_finding(suspect, pool, (), programs=1, also=())
    assert finding.attribution == final
    assert finding.signature == f"Exp > Negate | F64 | expected finite, got other finite | {final}"
    assert finding.instructions == len(small.program.instructions) == 2


def test_of_two_wrong_outputs_the_worst_is_looked_into_alone(pool: Pool) -> None:
    """The other one may have another cause, of which nothing may come into this one's attribution and reduction."""
    b = GraphBuilder()
    x, y = b.input("F64", (1,)), b.input("F64", (1,))
    case = Case.of(
        b.build(b.apply(Negate(), b.apply(Exp(), x)), b.apply(Negate(), y)), [np.array([1.0]), np.array([0.5])]
    )
    executor = Wrong()
    suspect = inspect(executor, case, judge(executor, Reference(case, NativeExecutor())), pool)
    assert len(suspect.case.program.output_slots) == 1
    assert (suspect.answer.verdict, suspect.op) == (Verdict.MISMATCH, "Negate")


TWO_CAUSES = """
func.func @main(%a: tensor<4xf64>, %b: tensor<f64>) -> (tensor<f64>, tensor<2x2xi32>) {
  %0 = stablehlo.reduce(%a init: %b) applies stablehlo.maximum across dimensions = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<f64>
  %c = stablehlo.constant dense<[-7, 33]> : tensor<2xi8>
  %1 = stablehlo.bitcast_convert %c : (tensor<2xi8>) -> tensor<2x2xui4>
  %2 = stablehlo.convert %1 : (tensor<2x2xui4>) -> tensor<2x2xi32>
  return %0, %2 : tensor<f64>, tensor<2x2xi32>
}
"""


@pytest.mark.once
def test_of_two_wrong_results_of_a_module_the_worst_is_looked_into_alone() -> None:
    """By one a NaN is lost (0001), in the other constants are folded wrongly (0153): no lane tells for both."""
    plugin_or_skip("xla081")
    with contextlib.closing(Pool()) as pool:
        executor, source = pool.make("pjrt:xla081@defaults"), pool.reader.source(TWO_CAUSES, "two causes")
        case = given_case(source, (np.array([1.0, np.nan, 2.0, -3.0]), np.array(1.0)), pool.reader)
        answer = judge(executor, Reference(case, NativeExecutor()))
        assert answer.comparison.outside > 1
        suspect = inspect(executor, case, answer, pool)
        assert suspect.attribution == "option: xla_cpu_enable_fast_min_max"
        assert [a.shape for a in suspect.case.arguments] == [(4,), ()]
        assert len(suspect.case.program.output_slots) == 1


CHAIN = """
func.func @main(%a: tensor<4xf64>) -> tensor<4xf64> {
  %0 = stablehlo.exponential %a : tensor<4xf64>
  %1 = stablehlo.negate %0 : tensor<4xf64>
  %2 = stablehlo.exponential %1 : tensor<4xf64>
  return %2 : tensor<4xf64>
}
"""


@dataclass
class AsGiven(Wrong):
    """Wrong about modules that were handed in alone; counts the other programs."""

    others: int = 0

    def run(self, case: Case) -> Execution:
        if case.source is not None:
            return super().run(case)
        self.others += 1
        return NativeExecutor().run(case)


@pytest.mark.once
def test_a_module_that_disagrees_only_as_it_is_given_is_not_reduced_as_a_program() -> None:
    with contextlib.closing(Pool()) as pool:
        case = given_case(pool.reader.source(CHAIN, "a chain"), (np.array([3.0, 2.0, 5.0, 1.0]),), pool.reader)
        suspect = suspect_of(executor := AsGiven(), case)
        executor.others = 0
        finding, reduced = to_finding(suspect, pool, (), programs=1, also=())
        assert finding.signature.startswith("negate | F64")
        assert reduced.source is not None
        assert executor.others <= 2


@dataclass
class OnceEach(AsGiven):
    """Wrong about a module of three operations, and about each smaller one in its first run alone."""

    seen: set[str] = field(default_factory=set)

    def run(self, case: Case) -> Execution:
        code = "" if case.source is None else str(case.source.code)
        again = code in self.seen and len(case.program.instructions) < 3
        self.seen.add(code)
        return super().run(replace(case, source=None) if again else case)


@pytest.mark.once
def test_a_module_that_disagrees_by_chance_is_shown_with_the_answer_that_did() -> None:
    with contextlib.closing(Pool()) as pool:
        case = given_case(pool.reader.source(CHAIN, "a chain"), (np.array([3.0, 2.0, 5.0, 1.0]),), pool.reader)
        finding, reduced = to_finding(suspect_of(OnceEach(), case), pool, (), programs=1, also=())
        assert len(reduced.program.instructions) < 3
        assert (finding.verdict, finding.value_class) == ("mismatch", "expected finite, got other finite")


@pytest.mark.parametrize("element", ["rewrite: algsimp", EVERY_LANE])
def test_of_two_wrong_elements_the_first_is_looked_into_alone(monkeypatch: pytest.MonkeyPatch, element: str) -> None:
    """No lane is right about both, since they are wrong for two causes."""

    def told(executor: object, case: Case, pool: Pool) -> str:
        return EVERY_LANE if case.inputs[0].size > 1 else element

    for module in ("suspect", "triage"):
        monkeypatch.setattr(f"fuzz.findings.{module}.attribute", told)
    suspect = suspect_of(Wrong(), chain(Negate, values=(-1.0, 3.0, 5.0)))  # the first is right
    assert suspect.attribution == element
    assert suspect.case.inputs[0].tolist() == ([3.0] if element != EVERY_LANE else [-1.0, 3.0, 5.0])


def test_two_causes_are_told_apart_when_the_program_is_small(monkeypatch: pytest.MonkeyPatch, pool: Pool) -> None:
    """Wrong elements were asked about one by one in the whole program only, where that may fail."""

    def told(executor: object, case: Case, pool: Pool) -> str:
        return EVERY_LANE if case.inputs[0].size > 1 else "rewrite: algsimp"

    for module in ("suspect", "triage"):
        monkeypatch.setattr(f"fuzz.findings.{module}.attribute", told)
    case, executor = chain(Exp, Negate, values=(-1.0, 3.0, 5.0)), Wrong()
    answer = judge(executor, Reference(case, NativeExecutor()))
    whole = Suspect(executor, case, answer, "Negate", "F64", EVERY_LANE)
    finding, small = to_finding(whole, pool, (), programs=1, also=())
    assert finding.attribution == "rewrite: algsimp"
    assert small.inputs[0].size == 1


def test_a_reduction_begins_with_the_output_that_was_attributed(monkeypatch: pytest.MonkeyPatch, pool: Pool) -> None:
    """Of the whole program, which has another wrong output, the attribution is another."""

    def told(executor: object, case: Case, pool: Pool) -> str:
        return UNCLEAR if len(case.program.output_slots) > 1 else "rewrite: algsimp"

    for module in ("suspect", "triage"):
        monkeypatch.setattr(f"fuzz.findings.{module}.attribute", told)
    b = GraphBuilder()
    x, y = b.input("F64", (1,)), b.input("F64", (1,))
    outputs = b.apply(Negate(), b.apply(Exp(), x)), b.apply(Negate(), b.apply(Exp(), y))
    case, executor = Case.of(b.build(*outputs), [np.array([1.0]), np.array([0.5])]), Wrong(after=Exp)
    answer = judge(executor, Reference(case, NativeExecutor()))
    suspect = inspect(executor, case, answer, pool)
    finding, _ = to_finding(replace(suspect, case=case, answer=answer), pool, (), programs=1, also=())
    assert finding.signature == "Exp > Negate | F64 | expected finite, got other finite | rewrite: algsimp"


def test_a_reduction_begins_with_the_wrong_element(pool: Pool) -> None:
    values = np.full(1000, -1.0)  # these are right
    values[637] = 3.0
    executor = Wrong()
    suspect = suspect_of(executor, chain(Negate, values=values.tolist()))
    executor.runs = 0
    _, small = to_finding(suspect, pool, (), programs=1, also=())
    assert small.inputs[0].tolist() == 1.0
    assert executor.runs < 12


def test_a_negation_after_a_wrong_infinity_is_reduced_away(pool: Pool) -> None:
    """The class of its negation is another one by its sign alone."""
    suspect = suspect_of(Wrong(after=Exp), chain(Exp, Negate, Negate, values=(1000.0,)))
    assert suspect.answer.comparison.value_class == "expected inf, got -inf"
    finding, _ = to_finding(suspect, pool, (), programs=1, also=())
    assert finding.signature == "Exp > Negate | F64 | expected -inf, got inf | only wrong"


def test_what_reads_a_wrong_number_is_reduced_away(pool: Pool) -> None:
    """The class of its result is another one: a root of a number that should be negative."""
    suspect = suspect_of(Wrong(after=Exp, outputs=1), chain(Exp, Negate, Sqrt, Exp))
    assert suspect.answer.comparison.value_class == "expected NaN, got finite"
    finding, small = to_finding(suspect, pool, (), programs=1, also=())
    assert finding.signature == "Exp > Negate | F64 | expected finite, got other finite | only wrong"
    assert (finding.original_instructions, len(small.program.instructions)) == (4, 2)


@dataclass
class Arbitrary(Wrong):
    """Where exp of what is computed is NaN it gives these numbers in turn."""

    numbers: tuple[float, ...] = (0.0, 0.5, np.inf, 2.0)

    def run(self, case: Case) -> Execution:
        self.runs += 1
        program = case.program
        values = dict(zip(program.input_slots, case.inputs, strict=True))
        for ins in program.instructions:
            (values[ins.output_slots[0]],) = run_kernel(ins.op, program.policy, *(values[s] for s in ins.input_slots))
            if isinstance(ins.op, Exp) and ins.input_slots[0] not in program.input_slots:
                result = values[ins.output_slots[0]]
                result[np.isnan(result)] = self.numbers[self.runs % len(self.numbers)]
        return Execution(tuple(values[s] for s in program.output_slots))


@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("after", [(), (Sqrt, Negate), (Sign, Sqrt)])
def test_any_number_where_nan_is_due_is_one_class(first: int, after: tuple[type[Op], ...], pool: Pool) -> None:
    """Else neither the reduction would go on nor the signature be the same next time."""
    executor = Arbitrary(runs=first)
    suspect = suspect_of(executor, chain(Sqrt, Exp, *after, values=(-4.0,)))
    finding, small = to_finding(suspect, pool, (), programs=1, also=())
    assert finding.signature == "Sqrt > Exp | F64 | expected NaN, got a number | only wrong"
    assert suspect.group[3] == finding.value_class == "expected NaN, got a number"
    assert small.inputs[0].shape == ()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("expected NaN, got -inf", "expected NaN, got a number"),
        ("expected NaN, got +0 (imaginary part)", "expected NaN, got a number (imaginary part)"),
        ("expected NaN, got other NaN", "expected NaN, got other NaN"),
        ("expected NaN or a range, got inf", "expected NaN or a range, got inf"),
        ("expected finite, got NaN", "expected finite, got NaN"),
        ("", ""),
    ],
)
def test_other_classes_are_what_they_are(words: str, expected: str) -> None:
    assert value_class(words) == expected == value_class(expected)


@pytest.mark.parametrize("first", range(5))
def test_what_is_right_by_chance_is_asked_again(first: int, pool: Pool) -> None:
    executor = Arbitrary(numbers=(0.0, np.nan, 0.5, np.nan, np.nan))
    case = chain(Sqrt, Exp, Sqrt, Negate, values=(-4.0,))
    answer = next(
        a for _ in range(5) if (a := judge(executor, Reference(case, NativeExecutor()))).verdict.is_disagreement
    )
    executor.runs = first
    finding, _ = to_finding(Suspect(executor, case, answer, "", "", "only wrong"), pool, (), programs=1, also=())
    assert finding.attribution == "only wrong"
    assert finding.instructions < len(case.program.instructions)


@dataclass
class Once(Wrong):
    """Wrong in its first run, and never again."""

    def _at(self, maker: type[Op] | None) -> bool:
        return self.runs == 1


def test_of_what_does_not_repeat_the_wrong_output_is_shown(pool: Pool) -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (2,)), b.input("F64", (3,))
    case = Case.of(b.build(b.apply(Exp(), x), b.apply(Negate(), b.apply(Sqrt(), y))), [np.ones(2), np.ones(3)])
    executor = Once()
    answer = judge(executor, Reference(case, NativeExecutor()))
    finding, shown = to_finding(Suspect(executor, case, answer, "", "", ""), pool, (), programs=1, also=())
    assert finding.signature == "Sqrt > Negate | F64 | expected finite, got other finite | does not repeat"
    assert [a.shape for a in shown.inputs] == [(3,)]


@dataclass
class DiesOnce(Wrong):
    """Fails in its first run, and is wrong in the others."""

    def run(self, case: Case) -> Execution:
        if not self.runs:
            self.runs += 1
            raise EngineFault(engine=self.name, detail="a process that ended")
        return super().run(case)


def test_a_failure_that_does_not_repeat_is_not_reported_as_what_does(pool: Pool) -> None:
    case, executor = chain(Exp, Negate, Exp), DiesOnce()
    answer = judge(executor, Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.ERROR
    finding, _ = to_finding(Suspect(executor, case, answer, "", "", ""), pool, (), programs=1, also=())
    assert (finding.verdict, finding.attribution) == ("error", "does not repeat")


@dataclass
class DiesOnceAsGiven(AsGiven):
    """Fails in its first run, and is wrong about modules that were handed in afterwards."""

    dead: bool = False

    def run(self, case: Case) -> Execution:
        if not self.dead:
            self.dead = True
            raise EngineFault(engine=self.name, detail="a process that ended")
        return super().run(case)


@pytest.mark.once
def test_a_failure_of_a_module_that_does_not_repeat_is_not_reported_as_what_does() -> None:
    """Of a module that is wrong only as it is given, so that it is not reduced as a program."""
    with contextlib.closing(Pool()) as pool:
        case = given_case(pool.reader.source(CHAIN, "a chain"), (np.array([3.0, 2.0, 5.0, 1.0]),), pool.reader)
        executor = DiesOnceAsGiven()
        answer = judge(executor, Reference(case, NativeExecutor()))
        assert answer.verdict is Verdict.ERROR
        finding, _ = to_finding(Suspect(executor, case, answer, "", "", ""), pool, (), programs=1, also=())
        assert (finding.verdict, finding.attribution) == ("error", "does not repeat")


def test_what_is_wrong_inside_a_decomposition_is_no_output() -> None:
    """Stages are judged by more values than a program has outputs; the worst of them may be behind the last one."""
    case = Case.of(parse("graph (%0: F64[2]) -> (%0, %1) slots 2 {\n  %1 = Negate(%0) : F64[2]\n}\n"), [np.ones(2)])
    staged = Answer("native", Verdict.MISMATCH, Comparison(4, outside=1, worst_output=6, worst_index=(0,)))
    with contextlib.closing(Pool()) as pool:
        suspect = inspect(NativeExecutor(), case, staged, pool)
    assert suspect.case is case


@pytest.mark.parametrize(("shape", "numbers"), [((64,), 64), ((65,), 6), ((9, 9), 36), ((1, 2, 2, 2, 8, 8, 8), 64)])
def test_a_report_shows_few_elements_of_a_large_array(shape: tuple[int, ...], numbers: int) -> None:
    assert len(re.findall(r"\d+", printed(np.arange(prod(shape)).reshape(shape)))) == numbers
