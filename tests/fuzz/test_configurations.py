"""Configurations of the native executor: spelled in names, drawn with programs, kept and simplified in findings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fuzz.findings.reduce import simplify_configuration
from fuzz.findings.suspect import inspect
from fuzz.findings.triage import to_finding
from fuzz.generate.batches import generate
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import DrawnExecutor, NativeExecutor, Pool, configured, native, native_variants
from oracle.peers.forms import EXEC_FORMS, FORMS
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.compiler import DEFAULT_PIPELINE, PASSES, PassResult
from tenferro_ref.errors import UsageError
from tenferro_ref.program import ExecProgram, GraphBuilder, GraphProgram
from tenferro_ref.runtime.contraction import Contraction
from tenferro_ref.runtime.run import Run
from tenferro_ref.stablehlo.loader import Loaded, load
from tests.libraries import module_or_skip

pytestmark = pytest.mark.once


DRAWN = DrawnExecutor("native-drawn")
OPTIONAL = "DotDecomposer"


def negated(seed: int) -> Case:
    b = GraphBuilder()
    x = b.input("F64", (3,))
    return Case.of(b.build(-x + x), [np.arange(3.0) + seed])


def test_names_say_configurations_and_pools_understand_them(pool: Pool) -> None:
    for case in generate(3, 0, 64):
        drawn = DRAWN.settled(case)
        assert pool.make(drawn.name) == drawn
    assert pool.make("native:") == pool.make("native") == configured()
    only = pool.make("native:passes=+unsegmented+fusion=7+block=5")
    assert only == NativeExecutor(only.name, passes=(), segmented=False, fusion_threshold=7, block=5)
    assert "unsegmented" in dict(only.info().facts)["execution"]


@pytest.mark.parametrize("word", ["passes=NoSuch", "fusion=-1", "fusion=x", "block=0", "slowly", "passes"])
def test_unknown_options_are_usage_errors(word: str) -> None:
    with pytest.raises(UsageError, match=word.partition("=")[0]):
        Pool().make(f"native:{word}")


def test_every_option_and_every_order_of_two_passes_is_drawn_within_600_programs() -> None:
    drawn = [DRAWN.settled(case) for case in generate(5, 0, 600)]
    for option in (
        "segmented",
        "reclaim",
        "checking",
        "decline_reused",
        "contracts",
        "strided",
        "warm",
        "sized",
        "symbolic",
        "twice",
        "filed",
    ):
        assert {getattr(executor, option) for executor in drawn} == {True, False}
    assert {executor.form for executor in drawn} == FORMS.keys() | EXEC_FORMS.keys()
    assert {executor.fusion_threshold for executor in drawn} == {0, 1, 64, 16384}
    assert {executor.block for executor in drawn} == {3, 7, 64, 16384}
    orders = {(a, b) for e in drawn for i, a in enumerate(e.passes) for b in e.passes[i + 1 :]}
    assert orders == {(a, b) for a in PASSES for b in PASSES}  # a pass after itself as well
    assert {len(executor.passes) for executor in drawn} >= set(range(6))
    assert sum(executor.passes == DEFAULT_PIPELINE for executor in drawn) > 30


def test_drawn_configurations_give_what_the_default_gives() -> None:
    for case in generate(5, 0, 100):
        assert judge(DRAWN, Reference(case, NativeExecutor())).verdict is not Verdict.MISMATCH, DRAWN.settled(case)


def test_contractions_that_are_spelled_out_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one program of ten at least, so that a campaign is about them."""
    seen: list[Contraction] = []
    contract = Run._contract
    monkeypatch.setattr(Run, "_contract", lambda self, found: seen.append(found) or contract(self, found))
    executor, programs = Pool().make("native-contracted"), 0
    for case in generate(6, 0, 100):
        answer = judge(executor, Reference(case, NativeExecutor()))
        assert answer.verdict is not Verdict.MISMATCH, case
        programs += bool(seen)
        seen.clear()
    assert programs >= 10


@pytest.mark.parametrize("form", list(filter(None, FORMS)))
def test_a_reader_that_errs_is_found(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = FORMS[form]

    def wrong(program: GraphProgram) -> GraphProgram:
        program = read(program)
        ins = tuple(replace(i, op=ops.Abs()) if isinstance(i.op, ops.Negate) else i for i in program.instructions)
        return replace(program, instructions=ins)

    monkeypatch.setitem(FORMS, form, wrong)
    reference = Reference(negated(1), NativeExecutor())
    assert judge(configured(form=form), reference).verdict is Verdict.MISMATCH
    assert judge(configured(form=""), reference).verdict is Verdict.PASS


def test_what_is_written_as_stablehlo_and_read_again_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    module_or_skip("jaxlib")
    executor = Pool().make("native-reloaded")
    for case in generate(7, 0, 100):
        answer = judge(executor, Reference(case, NativeExecutor()))
        assert not answer.verdict.is_disagreement, (case, answer.reason)

    def wrong(text: str) -> Loaded:
        loaded = load(text)
        ins = tuple(
            replace(i, op=ops.Abs()) if isinstance(i.op, ops.Negate) else i for i in loaded.program.instructions
        )
        return replace(loaded, program=replace(loaded.program, instructions=ins))

    monkeypatch.setattr(native, "load", wrong)
    assert judge(executor, Reference(negated(1), NativeExecutor())).verdict is Verdict.MISMATCH


def test_the_drawn_executor_is_among_the_variants_and_settles() -> None:
    assert DRAWN in native_variants()
    case = negated(0)
    assert DRAWN.settled(case).name.startswith("native:")
    assert NativeExecutor().settled(case) == NativeExecutor()


def test_configurations_become_as_simple_as_can_be() -> None:
    def fails(executor: NativeExecutor) -> bool:
        return "TransposeFolding" in executor.passes and executor.fusion_threshold == 1

    start = configured(
        passes=(OPTIONAL, "TransposeFolding", OPTIONAL),
        segmented=False,
        fusion_threshold=1,
        reclaim=False,
        checking=False,
        contracts=True,
        form="text",
    )
    assert simplify_configuration(start, fails) == configured(fusion_threshold=1)

    def fails_alone(executor: NativeExecutor) -> bool:
        return fails(executor) and executor.passes != DEFAULT_PIPELINE

    assert simplify_configuration(start, fails_alone) == configured(passes=("TransposeFolding",), fusion_threshold=1)


def test_a_finding_keeps_the_configuration_and_simplifies_it(monkeypatch: pytest.MonkeyPatch, pool: Pool) -> None:
    def wrong(program: ExecProgram) -> PassResult:
        bad = (replace(ins, op=ops.Abs()) if isinstance(ins.op, ops.Negate) else ins for ins in program.instructions)
        return PassResult(replace(program, instructions=tuple(bad)))

    case = next(c for c in map(negated, range(100)) if OPTIONAL in DRAWN.settled(c).passes)
    monkeypatch.setitem(PASSES, OPTIONAL, wrong)
    answer = judge(DRAWN, Reference(case, NativeExecutor()))
    assert (answer.executor, answer.verdict) == ("native-drawn", Verdict.MISMATCH)
    suspect = inspect(DRAWN, case, answer, pool)
    assert suspect.executor == DRAWN.settled(case)
    finding, small = to_finding(suspect, pool, (), programs=1, also=())
    assert finding.executor == f"native:passes={OPTIONAL}"
    assert judge(pool.make(finding.executor), Reference(small, NativeExecutor())).verdict is Verdict.MISMATCH
