"""The judge: each verdict is reached, and by the right executor."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from oracle.case import Case
from oracle.compare import compare_sets
from oracle.compilation import compiled
from oracle.judge import Reference, first_wrong_slot, judge, judge_many, prepare
from oracle.peers import Execution, Executor, NativeExecutor, PjrtExecutor, Pool, native_variants
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.errors import MissingEnv, TenferroError, UsageError
from tenferro_ref.extensions.linalg import cholesky
from tenferro_ref.ops import Policy
from tenferro_ref.pjrt import PluginRef
from tenferro_ref.program import GraphBuilder
from tenferro_ref.runtime import KERNELS
from tenferro_ref.tensor import Array
from tests.plugins import ONE_BUILD, plugin_or_skip

pytestmark = pytest.mark.once


@pytest.fixture
def case() -> Case:
    b = GraphBuilder()
    x, y = b.input("F64", (2, 3)), b.input("F64", (3, 2))
    program = b.build(b.apply(ops.Exp(), x @ y), x.sum([0]), b.apply(ops.Negate(), x))
    rng = np.random.default_rng(0)
    return Case.of(program, [rng.standard_normal((2, 3)), rng.standard_normal((3, 2))])


@dataclass
class Scripted(Executor):
    """An executor that gives what it is told: outputs, or an error."""

    answer: tuple[Array, ...] | TenferroError
    bits: bool = False
    name: str = "scripted"
    model: str = "xla"

    def run(self, case: Case) -> Execution:
        if isinstance(self.answer, TenferroError):
            raise self.answer
        return Execution(self.answer)

    def bit_exact(self, case: Case) -> bool:
        return self.bits


def native_outputs(case: Case) -> tuple[Array, ...]:
    return NativeExecutor().run(case).outputs


@pytest.mark.parametrize("executor", native_variants(), ids=lambda e: e.name)
def test_every_native_variant_passes(case: Case, executor: NativeExecutor) -> None:
    answer = judge(executor, Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.PASS, answer.reason
    assert answer.comparison.elements == answer.comparison.decided == 4 + 3 + 6


@pytest.mark.parametrize("name", ONE_BUILD)
def test_every_plugin_passes(case: Case, name: str, pool: Pool) -> None:
    plugin = plugin_or_skip(name)
    answer = judge(pool.pjrt(plugin, "parity"), Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.PASS, answer.reason
    assert {"lower", "compile", "execute", "compare"} <= answer.seconds.keys()


def test_one_flipped_bit_is_a_mismatch_of_a_bit_exact_executor(case: Case) -> None:
    outputs = [a.copy("F") for a in native_outputs(case)]
    outputs[0][1, 0] = np.nextafter(outputs[0][1, 0], 1)
    answer = judge(Scripted(tuple(outputs), bits=True), Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.MISMATCH
    assert answer.comparison.outside == 1
    assert (answer.comparison.worst_output, answer.comparison.worst_index) == (0, (1, 0))
    # the same answer is within what any correct implementation may give
    assert judge(Scripted(tuple(outputs)), Reference(case, NativeExecutor())).verdict is Verdict.PASS


def test_a_native_executor_that_is_wrong_is_caught_by_the_enclosure(case: Case) -> None:
    class Wrong(NativeExecutor):
        def run(self, case: Case) -> Execution:
            execution = NativeExecutor.run(self, case)
            return replace(execution, outputs=tuple(a + 1 for a in execution.outputs))

    wrong = Wrong()
    assert judge(wrong, Reference(case, wrong)).verdict is Verdict.MISMATCH


def test_a_defect_of_a_kernel_is_an_error_of_the_native_executor(case: Case) -> None:
    def broken(*_: object) -> Array:
        raise TypeError("no such thing")

    with mock.patch.dict(KERNELS._rows, {ops.Exp: broken}):
        answer = judge(NativeExecutor(), Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.ERROR
    assert "Internal" in answer.reason
    assert "TypeError in the native executor" in answer.reason


def test_what_decides_nothing_is_undecided() -> None:
    """inf - inf of two overlapping enclosures leaves nothing pinned down."""
    b = GraphBuilder(policy=Policy())
    x = b.input("F64", (1,))
    big = b.apply(ops.Exp(), x)
    case = Case.of(b.build(big - b.apply(ops.Exp(), x)), [np.array([709.782712893384])])
    answer = judge(Scripted((np.zeros(1),)), Reference(case, NativeExecutor()))
    assert answer.verdict in (Verdict.UNDECIDED, Verdict.PASS)
    assert answer.comparison.decided == (answer.verdict is Verdict.PASS)


def test_the_first_wrong_slot_is_found_behind_later_instructions(pool: Pool) -> None:
    plugin = plugin_or_skip("xla081")
    b = GraphBuilder()
    x = b.input("F64", (2,))
    log = b.apply(ops.Log(), b.apply(ops.Exp(), x))
    case = Case.of(b.build(b.apply(ops.Negate(), log + x)), [np.array([1000.0, 1.0])])
    assert first_wrong_slot(pool.pjrt(plugin, "parity"), case) == log.slot


def test_fast_min_max_is_what_the_defaults_lane_gets_wrong(pool: Pool) -> None:
    plugin = plugin_or_skip("xla081")
    b = GraphBuilder()
    x, y = b.input("F64", (2,)), b.input("F64", (2,))
    case = Case.of(b.build(b.apply(ops.Maximum(), x, y)), [np.array([1.0, 2.0]), np.array([np.nan, 1.0])])
    reference = Reference(case, NativeExecutor())
    assert judge(pool.pjrt(plugin, "parity"), reference).verdict is Verdict.PASS
    assert judge(pool.pjrt(plugin, "defaults"), reference).verdict is Verdict.MISMATCH


class TestNames:
    def test_executors_of_one_plugin_share_a_worker(self, pool: Pool) -> None:
        plugin = plugin_or_skip("xla081")
        first, second = pool.pjrt(plugin, "parity"), pool.pjrt(plugin, "defaults")
        assert isinstance(first, PjrtExecutor)
        assert first.worker is second.worker

    @pytest.mark.parametrize("name", ["", "nativ", "native-without:Magic", "pjrt:xla-cpu-pjrt@warp", "jax2"])
    def test_unknown_names(self, pool: Pool, name: str) -> None:
        if name.startswith("pjrt"):
            plugin_or_skip("xla081")
        with pytest.raises(UsageError):
            pool.make(name)

    @pytest.mark.parametrize(("value", "state"), [(None, "unset"), ("", "empty")])
    def test_pjrt_needs_its_variable(self, pool: Pool, value: str | None, state: str) -> None:
        with mock.patch.dict("os.environ", {"TENFERRO_PJRT_PLUGIN": value or ""}):
            if value is None:
                os.environ.pop("TENFERRO_PJRT_PLUGIN")
            with pytest.raises(MissingEnv, match=f"is {state}"):
                pool.select(["pjrt"])


def test_cases_that_share_a_module_are_answered_one_by_one(pool: Pool, case: Case) -> None:
    """The fast lane compiles them together; a case that cannot be lowered takes nobody with it."""
    plugin = plugin_or_skip("xla081")
    b = GraphBuilder()
    x, y = b.input("I32", (2,)), b.input("I32", (2,))
    refused = Case.of(b.build(x / y), [np.array([4, 2], np.int32), np.array([2, 1], np.int32)])
    executor = pool.pjrt(plugin, "fast")
    cases = [case, refused, Case(replace(case.program), case.inputs)]
    answers = judge_many(executor, [Reference(c, NativeExecutor()) for c in cases])
    assert [a.verdict for a in answers] == [Verdict.PASS, Verdict.UNSUPPORTED, Verdict.PASS]
    results = executor.run_many(cases)
    assert isinstance(results[0], Execution)
    assert results[0].shared


def test_a_case_that_ends_the_worker_is_split_from_its_company(fake_library: Path, case: Case, pool: Pool) -> None:
    """Crash on exponential: its neighbours, in the same module at first, still get their answers."""
    environment = {"FAKE_PJRT_MODE": "compile_segv", "FAKE_PJRT_TRIGGER": "exponential"}
    ref = PluginRef("fake", str(fake_library), "test", environment=environment)
    b = GraphBuilder()
    x = b.input("F64", (2,))
    harmless = Case.of(b.build(x), [np.array([1.0, 2.0])])
    answers = judge_many(pool.pjrt(ref, "fast"), [Reference(c, NativeExecutor()) for c in (harmless, case, harmless)])
    assert [a.verdict for a in answers] == [Verdict.PASS, Verdict.CRASH, Verdict.PASS]


def test_what_is_inside_the_strictest_model_is_not_held_to_another(case: Case) -> None:
    """And the same bits from somebody else are not compared again."""
    reference = Reference(case, NativeExecutor())
    outputs = native_outputs(case)
    with mock.patch("oracle.reference.compare_sets", wraps=compare_sets) as compared:
        first = judge(Scripted(outputs, name="first"), reference)
        second = judge(Scripted(tuple(a.copy("F") for a in outputs), name="second", model="numpy"), reference)
    assert first.verdict is second.verdict is Verdict.PASS
    assert first.comparison == second.comparison
    assert [len(call.args[0]) for call in compared.call_args_list if call.args[0]] == [1]
    assert (first.executor, second.executor) == ("first", "second")


def test_what_no_output_depends_on_is_not_enclosed() -> None:
    """An op without an enclosure leaves the rest undecided, but not where nobody looks."""
    b = GraphBuilder()
    x = b.input("F64", (2, 2))
    factor = cholesky(x)
    case = Case.of(b.build(x + x), [np.eye(2)])
    assert any(slot == factor.slot for ins in case.program.instructions for slot in ins.output_slots)
    answer = judge(Scripted((np.eye(2) * 2,)), Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.PASS
    assert answer.comparison.decided == 4


def test_cases_of_one_program_are_input_sets_of_one_executable(pool: Pool, case: Case) -> None:
    """Beside another program with fewer sets, and one whose shapes differ."""
    plugin = plugin_or_skip("xla081")
    b = GraphBuilder()
    x = b.input("F64", ("n",))
    symbolic = b.build(x + x)
    cases = [
        Case.of(symbolic, [np.ones(2)]), case, Case.of(symbolic, [np.ones(3)]), Case(case.program, (case.inputs[0], case.inputs[1] * 2)),
        Case.of(symbolic, [np.full(2, 3.0)]), Case(case.program, (case.inputs[0] * 3, case.inputs[1])),
    ]  # fmt: skip
    executor = pool.pjrt(plugin, "fast")
    assert executor.options  # the plugin is asked which flags it knows
    with mock.patch.object(executor.worker, "request", wraps=executor.worker.request) as asked:
        results = executor.run_many(cases)
    assert [len(call.args[0]["input_sets"]) for call in asked.call_args_list] == [3]
    for one, result in zip(cases, results, strict=True):
        assert isinstance(result, Execution)
        for got, expected in zip(result.outputs, native_outputs(one), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_an_input_set_that_ends_the_worker_is_split_from_the_others(fake_library: Path, pool: Pool) -> None:
    """Crash on execution of one program: each of its input sets is told so, the other program is not."""
    environment = {"FAKE_PJRT_MODE": "compile_segv", "FAKE_PJRT_TRIGGER": "exponential"}
    ref = PluginRef("fake", str(fake_library), "test", environment=environment)
    b, c = GraphBuilder(), GraphBuilder()
    harmless, deadly = b.build(b.input("F64", (2,))), c.build(c.apply(ops.Exp(), c.input("F64", (2,))))
    cases = [Case.of(p, [np.full(2, float(i))]) for i in range(3) for p in (harmless, deadly)]
    answers = judge_many(pool.pjrt(ref, "fast"), [Reference(one, NativeExecutor()) for one in cases])
    assert [a.verdict for a in answers] == [Verdict.PASS, Verdict.CRASH] * 3


# --- input sets -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bent(NativeExecutor):
    """Right, but for one input set."""

    wrong: int = -1
    by: float = 1.0

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        results = NativeExecutor().run_many(cases)
        bent = results[self.wrong]
        assert isinstance(bent, Execution)
        results[self.wrong] = Execution((bent.outputs[0] * self.by, *bent.outputs[1:]))
        return results

    def bit_exact(self, case: Case) -> bool:
        return False


def sets_of(case: Case, count: int) -> list[Case]:
    rng = np.random.default_rng(1)
    return [
        replace(case, inputs=tuple(np.asfortranarray(rng.standard_normal(a.shape)) for a in case.inputs))
        for _ in range(count)
    ]


def test_input_sets_are_compiled_once_and_judged_as_each_alone(case: Case) -> None:
    references = [Reference(one, NativeExecutor()) for one in sets_of(case, 6)]
    with mock.patch("oracle.peers.native.compiled", wraps=compiled) as compiles:
        prepare(references)
        assert compiles.call_count == 1
    (sets,) = {reference.sets for reference in references}
    assert sets.references == tuple(references)
    for reference in references:
        alone, own = Reference(reference.case, NativeExecutor()), judge(NativeExecutor(), reference)
        assert own.verdict is Verdict.PASS
        compared = replace(own.comparison, widths=())
        assert compared == replace(judge(NativeExecutor(), alone).comparison, widths=())
        assert [e.lo.tolist() for e in reference.enclosures("xla")] == [e.lo.tolist() for e in alone.enclosures("xla")]


def test_a_set_without_an_enclosure_leaves_the_others_theirs() -> None:
    """How much is left of an axis is decided by one set, and undecided by the other."""
    b = GraphBuilder()
    x, n = b.input("F64", (4,)), b.input("F64", ())
    program = b.build(b.apply(ops.DynamicTruncate(0), x, b.apply(ops.Exp(), n)).sum(0))
    sets = [(np.arange(4.0), np.array(v)) for v in (0.0, np.log(0.5))]
    case = Case.of(program, sets[0])
    references = [Reference(one, NativeExecutor()) for one in (case, replace(case, inputs=sets[1]))]
    prepare(references)
    answers = judge_many(Bent("bent", model="xla", wrong=0), references)
    assert [a.verdict for a in answers] == [Verdict.PASS, Verdict.UNDECIDED]


def integers(divisor: int) -> Case:
    """A quotient of integers, which the engine refuses for 0."""
    b = GraphBuilder()
    x, y = b.input("I32", (2,)), b.input("I32", (2,))
    return Case.of(b.build(b.apply(ops.Divide(), x, y)), [np.full(2, v, np.int32) for v in (6, divisor)])
