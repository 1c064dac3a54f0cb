"""Invalid programs in campaigns: in turn, beside the others, judged by the error that is due, and findings like any."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from fuzz.campaign.audit import audit
from fuzz.campaign.programs import cases_of
from fuzz.campaign.recorded import recorded
from fuzz.campaign.vacuity import Floor, vacuous
from fuzz.campaign.work import begin, run_campaign, work
from fuzz.campaign.worksite import Worksite
from fuzz.findings.bundle import confirm, read_bundle, replay, write_bundle
from fuzz.generate import DEFAULT
from fuzz.generate.faults import faults, kinds, simplest_of
from fuzz.generate.faults.batches import in_turn, invalid_case, invalid_places
from fuzz.generate.faults.fault import Fault
from fuzz.generate.input_sets import batch_of
from fuzz.generate.settings import config_of
from fuzz.records import Campaign, dumps, load
from fuzz.store import Plan, Store
from fuzz.store.merge import merge
from fuzz.store.store import pack, unpack
from fuzz.summary import outcome
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import (
    Execution,
    Executor,
    ExternalExecutor,
    NativeExecutor,
    Pool,
    Selection,
    native_variants,
)
from oracle.verdict import Verdict
from reports.html import render
from reports.rows import error_rows
from tenferro_ref import ops
from tenferro_ref.errors import (
    AxisOutOfBounds,
    InvalidArgument,
    NumericalFailure,
    ShapeMismatch,
    TenferroError,
    UsageError,
)
from tenferro_ref.isolation import Worker
from tests.e2e.command import ROOT
from tools.torture import _differences

pytestmark = pytest.mark.once


#: Programs of a campaign with the usual share of invalid ones by which every kind of error, every rule, and every fault was due.
KINDS_REACHED, RULES_REACHED, FAULTS_REACHED = 11 * 20, 89 * 20, 200 * 20
ONLY = ("invalid=1",)
#: Programs of whole batches of 16, of which each has another fault until all were due.
ALL = -(-len(faults(late=True)) // 16) * 16


def invalid_of(plan: Plan, batches: int) -> list[Case]:
    return [case for number in range(batches) for case in cases_of(plan, number) if case.refusal]


# --- which programs are invalid ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 77])
def test_every_kind_every_rule_and_every_fault_is_reached(seed: int) -> None:
    plan, everything = Plan(seed), faults(late=True)

    def dues(programs: int) -> list[Fault]:
        return [
            in_turn(seed, turn // len(everything))[turn % len(everything)]
            for batch in range(-(-programs // plan.batch))
            for turn in invalid_places(seed, batch, plan.batch, DEFAULT.invalid).values()
        ]

    assert {due.kind for due in dues(KINDS_REACHED)} == {*kinds(late=True)}
    assert {due.rule for due in dues(RULES_REACHED)} == {fault.rule for fault in everything}
    assert {due.name for due in dues(FAULTS_REACHED)} == {fault.name for fault in everything}
    made = [case.refusal.fault for case in invalid_of(plan, 4) if case.refusal]
    assert made == [due.name for due in dues(4 * plan.batch)]


@pytest.mark.parametrize("input_sets", [1, 4])
def test_all_other_programs_are_what_they_would_be_without(input_sets: int) -> None:
    plan = Plan(3, batch=32 * input_sets, input_sets=input_sets)
    for words, number in (("invalid=0", 0), ("invalid=1/32", input_sets), ("invalid=0.5", 16 * input_sets)):
        usual_shares = ("derivatives=0", "modules=0", f"linalg={DEFAULT.linalg:g}")
        cases = cases_of(replace(plan, generate=(words, *usual_shares)), 1)
        usual = batch_of(3, 1, plan.batch, input_sets)
        assert sum(case.refusal is not None for case in cases) == number
        assert all(c.refusal or c.fingerprint == u.fingerprint for c, u in zip(cases, usual, strict=True))


def test_what_a_batch_has_does_not_depend_on_the_others() -> None:
    """Nor on how it is cut short."""
    rates = [sum(len(invalid_places(9, batch, 32, rate)) for batch in range(50)) for rate in (0.0, 1 / 48, 0.3, 1.0)]
    assert rates == [0, 33, 480, 1600]
    places = invalid_places(9, 7, 32, 0.3)
    again = [invalid_case(9, 7, place, turn).fingerprint for place, turn in places.items()]
    assert again == [case.fingerprint for case in cases_of(Plan(9, generate=("invalid=0.3",)), 7) if case.refusal]


@pytest.mark.parametrize("words", [["ops=Exp,Log"], ["dtypes=Bool"], ["rank=0"], ["elements=1"], ["instructions=20"]])
def test_any_configuration_has_faults_that_raise_what_is_due(words: list[str]) -> None:
    plan = Plan(2, generate=(*words, *ONLY))
    for case in cases_of(plan, 0):
        assert judge(NativeExecutor(), Reference(case, NativeExecutor())).verdict is Verdict.PASS
        assert len(case.program.instructions) <= 25


@pytest.mark.parametrize("rate", ["2", "-1", "x", "1/0", "1e-3", ""])
def test_a_rate_that_is_none(rate: str) -> None:
    with pytest.raises(UsageError, match="a share, 0 to 1"):
        config_of([f"invalid={rate}"])


def test_it_comes_back_from_a_store_as_it_was() -> None:
    for case in (*cases_of(Plan(4, generate=ONLY), 0), *cases_of(Plan(4), 0)):
        back = unpack(*pack(case))
        assert (back.fingerprint, back.refusal, back.program) == (case.fingerprint, case.refusal, case.program)


# --- what is right ----------------------------------------------------------------------------------------------------


def transposed() -> Case:
    case = simplest_of("axis out of range: Transpose")
    assert case is not None
    assert case.refusal is not None
    assert (case.refusal.kind, case.refusal.op, case.refusal.axis) == ("AxisOutOfBounds", "Transpose", 1)
    return case


@pytest.mark.parametrize(
    ("line", "verdict", "words"),
    [
        ('{"error": {"kind": "AxisOutOfBounds", "op": "Transpose", "axis": 1, "rank": 1, "message": "x"}}', "pass", "is due"),
        ('{"error": {"kind": "AxisOutOfBounds", "op": "Transpose", "message": "x"}}', "pass", "is due"),
        ('{"error": {"kind": "AxisOutOfBounds"}}', "pass", "is due"),
        (
            '{"error": {"kind": "AxisOutOfBounds", "op": "Transpose", "axis": 0, "message": "no"}}',
            "mismatch",
            "raises AxisOutOfBounds of Transpose, axis 0 (no) where AxisOutOfBounds of Transpose, axis 1 is due "
            "(axis out of range: Transpose)",
        ),
        ('{"error": {"kind": "AxisOutOfBounds", "op": "Add"}}', "mismatch", "raises AxisOutOfBounds of Add"),
        ('{"error": {"kind": "Other", "op": "Transpose"}}', "mismatch", "raises Other of Transpose"),
        ('{"error": {"kind": "UnsupportedOp", "op": "Transpose"}}', "unsupported", "UnsupportedOp"),
        ("nothing", "crash", "without a line of JSON"),
    ],
)  # fmt: skip
def test_what_a_command_may_say(line: str, verdict: str, words: str) -> None:
    command = ExternalExecutor(f"sh -c {shlex.quote(f'echo {shlex.quote(line)} >&2; exit 3')} sh")
    answer = judge(command, Reference(transposed(), NativeExecutor()))
    assert (answer.verdict.value, words in answer.reason) == (verdict, True), answer


def test_a_fault_of_the_graph_has_no_op(pool: Pool) -> None:
    case = simplest_of("slot written twice")
    assert case is not None
    line = '{"error": {"kind": "InvalidCompiledGraph", "op": "Negate", "message": "x"}}'
    command = ExternalExecutor(f"sh -c {shlex.quote(f'echo {shlex.quote(line)} >&2; exit 3')} sh")
    assert judge(command, Reference(case, NativeExecutor())).verdict is Verdict.PASS


LATE = [fault for fault in faults(late=True) if fault.late]


@pytest.mark.parametrize("fault", [fault.name for fault in LATE])
def test_what_only_values_show_is_raised_or_refused(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """StableHLO cannot raise, so that nobody may be asked, but extents are known when it is written; a command must raise."""
    case = simplest_of(fault)
    assert case is not None
    assert case.program.slot_types
    reference = Reference(case, NativeExecutor())
    for native in native_variants()[:3]:
        assert judge(native, reference).verdict is Verdict.PASS

    def start(worker: Worker) -> NoReturn:
        raise AssertionError(f"{worker.name} was asked")

    monkeypatch.setattr(Worker, "_ensure_started", start)
    written = Verdict.PASS if case.program.symbols else Verdict.UNSUPPORTED
    assert judge(Pool().make("interpreter"), reference).verdict is written
    assert judge(Seeded("quiet", accepts), reference).verdict is Verdict.PASS  # it accepts something else
    silent = judge(Seeded("quiet", accepts, (InvalidArgument, NumericalFailure, ShapeMismatch), ""), reference)
    assert (silent.verdict, silent.comparison.value_class) == (Verdict.MISMATCH, "no error")


# --- findings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seeded(Executor):
    """A native executor with a fault in how it handles an error: by default a Transpose whose axis is out of bounds."""

    name: str
    handle: Callable[[Any], Execution]
    error: Any = AxisOutOfBounds
    op: str = "Transpose"
    model: str = "numpy"

    def run(self, case: Case) -> Execution:
        try:
            return NativeExecutor().run(case)
        except self.error as error:
            if self.op in (error.op, ""):
                return self.handle(error)
            raise


def accepts(_: TenferroError) -> Execution:
    return Execution((np.zeros(3),))


def wrong_axis(error: AxisOutOfBounds) -> Execution:
    raise AxisOutOfBounds(op=error.op, axis=error.axis + 1, rank=error.rank)


ACCEPTING, MISNAMING = Seeded("accepting", accepts), Seeded("misnaming", wrong_axis)
PLAN = Plan(seed=5, programs=ALL, batch=16, reduce_seconds=5.0, generate=ONLY)


def selection(*more: Any) -> Selection:
    return Selection((NativeExecutor(), NativeExecutor("native-unsegmented", segmented=False), *more), ())


@pytest.fixture(scope="module")
def campaign(pool: Pool) -> Campaign:
    return run_campaign(PLAN, selection(ACCEPTING, MISNAMING), pool)


def test_a_seeded_bug_is_one_finding_with_a_readable_reason(campaign: Campaign) -> None:
    accepting, misnaming = sorted(campaign.findings, key=lambda f: f.executor)
    fault = "axis out of range: Transpose | AxisOutOfBounds"
    assert accepting.signature == f"{fault} | no error | only accepting"
    assert accepting.title == "axis out of range: Transpose: no error"
    assert accepting.reason.startswith("gives a result where AxisOutOfBounds of Transpose, axis ")
    assert misnaming.signature == f"{fault} | error of another axis | only misnaming"
    assert "raises AxisOutOfBounds of Transpose, axis " in misnaming.reason
    for finding in (accepting, misnaming):
        assert (finding.op, finding.instructions, finding.verdict) == ("Transpose", 1, "mismatch")
        assert "Transpose(%0)" in finding.program_text
    assert {t.executor: t.unexplained for t in campaign.totals} == dict.fromkeys(
        ("native", "native-unsegmented", "accepting", "misnaming"), 0
    )


def test_a_fault_in_values_keeps_them_when_it_is_reduced(pool: Pool) -> None:
    quiet = Seeded("quiet", accepts, NumericalFailure, "Divide")
    found = run_campaign(PLAN, selection(quiet), pool).findings
    (finding,) = (f for f in found if f.signature.startswith("integer zero"))
    assert finding.signature == "integer zero divisor: Divide | NumericalFailure | no error | only quiet"
    assert "Divide(%" in finding.program_text
    assert '"data": "00000000' in finding.program_text
    assert finding.instructions <= 4


def test_a_defect_of_our_rules_is_one_finding_for_all(monkeypatch: pytest.MonkeyPatch, pool: Pool) -> None:
    """All native executors, and those that the harness refuses for, infer by the same rules."""
    rule = ops.Transpose.result_types

    def lenient(self: ops.Transpose, operands: Any, policy: Any) -> Any:
        try:
            return rule(self, operands, policy)
        except AxisOutOfBounds:
            raise AxisOutOfBounds(op="Transpose", axis=99, rank=0) from None

    monkeypatch.setattr(ops.Transpose, "result_types", lenient)
    (finding,) = run_campaign(PLAN, selection(), pool).findings
    assert finding.signature == "axis out of range: Transpose | AxisOutOfBounds | error of another axis | native"
    assert finding.also == ("native-unsegmented",)


def test_a_defect_in_a_rule_is_a_finding_and_no_end_of_the_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: ops.Transpose, operands: Any, policy: Any) -> Any:
        raise IndexError("tuple index out of range")

    reference = Reference(transposed(), NativeExecutor())
    monkeypatch.setattr(ops.Transpose, "result_types", broken)
    answer = judge(NativeExecutor(), reference)
    assert (answer.verdict, answer.comparison.value_class) == (Verdict.MISMATCH, "Internal instead")


# --- records and reports ----------------------------------------------------------------------------------------------


def test_they_count_as_programs_and_decide_nothing(campaign: Campaign, tmp_path: Path) -> None:
    totals = {t.executor: t for t in campaign.totals}
    assert totals["native"].verdicts == {"pass": ALL}
    assert (totals["native"].elements, totals["native"].widths, totals["native"].due) == (0, (), ALL)
    assert campaign.cells == ()
    assert sum(error.programs for error in campaign.errors) == campaign.programs == ALL
    assert {error.kind for error in campaign.errors} == {*kinds(late=True)}
    assert all(all(error.faults.values()) for error in campaign.errors)
    (tmp_path / "campaign.json").write_text(dumps(campaign))
    assert load(tmp_path / "campaign.json") == campaign


def test_a_campaign_of_nothing_else_proves_something(campaign: Campaign) -> None:
    agreeing = replace(campaign, findings=(), totals=campaign.totals[:2])
    assert vacuous(agreeing, Floor(ALL, executors=("native",))) == ()
    assert outcome(agreeing).kind == "agree"
    silent = replace(agreeing, totals=tuple(replace(t, due=0, verdicts={"unsupported": ALL}) for t in agreeing.totals))
    assert outcome(silent).kind == "vacuous"
    assert vacuous(silent, Floor())


def test_who_only_refuses_what_is_invalid_took_no_part(pool: Pool) -> None:
    """For a plugin the harness refuses: an executor that does no valid program must not look as if it did."""
    campaign = run_campaign(Plan(5, programs=32), selection(), pool)
    (only,) = (t for t in campaign.totals if t.executor == "native-unsegmented")
    idle = replace(only, verdicts={"pass": 1, "unsupported": 31}, due=1, elements=0, decided=0)
    assert not campaign.only_errors
    (words,) = vacuous(replace(campaign, totals=(campaign.totals[0], idle)), Floor(executors=("native-u*",)))
    assert "took no part" in words


def test_the_report_shows_the_kinds_and_what_was_never_reached(campaign: Campaign, pool: Pool) -> None:
    page = render(campaign)
    assert all(f'data-error="{kind}"' in page for kind in kinds(late=True))
    assert "never reached" not in page
    (row,) = (row for row in error_rows(campaign.errors) if row.kind == "AxisOutOfBounds")
    assert row.who == f"accepting {row.wrong // 2}, misnaming {row.wrong // 2}"
    assert row.right + row.wrong == 4 * row.programs
    short = run_campaign(replace(PLAN, programs=3), selection(), pool)
    page = render(short)
    assert page.count("never reached") == len(kinds(late=True)) - 3
    assert "that no program broke" in page
    assert 'id="h-errors"' not in render(
        run_campaign(replace(PLAN, programs=2, generate=("invalid=0",)), selection(), pool)
    )


# --- stores and bundles -----------------------------------------------------------------------------------------------


def site(store: Store, pool: Pool, number: int = 1) -> Worksite:
    stream = store.stream(number)
    return Worksite(store, stream, selection(ACCEPTING).executors, pool)


def test_two_shards_and_a_resumed_one_are_the_whole(tmp_path: Path, pool: Pool) -> None:
    plan = replace(PLAN, programs=96, generate=("invalid=1/4", "instructions=1-3"), max_findings=1)
    with Store(tmp_path / "whole", create=True) as store:
        begin(store, plan, selection(ACCEPTING))
        work(site(store, pool), alone=True)
        assert audit(store, regenerate=9) == []
        whole = recorded(store, store.shards())
    for shard in (0, 1):
        with Store(tmp_path / str(shard), create=True) as store:
            stream = begin(store, replace(plan, shard=shard, shards=2), selection(ACCEPTING))
            job = store.claim(stream.id, "dies")
            assert job is not None
            store.put_programs(job, cases_of(stream.plan, job.number))  # and is killed
            store.release()
        with Store(tmp_path / str(shard)) as store:
            work(site(store, pool), alone=True)
    with Store(tmp_path / "merged", create=True) as store:
        for shard in (0, 1):
            merge(store, tmp_path / str(shard))
        assert audit(store, regenerate=9) == []
        merged = recorded(store, store.shards())
    assert _differences(merged, whole) == []
    assert merged.errors == whole.errors
    assert sum(error.programs for error in merged.errors) == 24


def test_a_bundle_says_what_is_due_and_is_confirmed(tmp_path: Path, pool: Pool) -> None:
    """A command that accepts everything: the invalid program alone shows it."""
    np.savez(tmp_path / "out.npz", out0=np.zeros(3))
    name = f"external:sh -c 'cp {tmp_path}/out.npz \"$3\"' sh"
    command = pool.make(name)
    plan = replace(PLAN, programs=1, batch=1)
    campaign = run_campaign(plan, Selection((command,), ()), pool)
    (finding,) = campaign.findings
    with Store() as store:
        begin(store, plan, Selection((command,), ()))
        work(Worksite(store, store.stream(1), (command,), pool), alone=False)
        (found,) = store.findings()
        case = found.case
    folder = tmp_path / "bundle"
    write_bundle(folder, finding, command, case, ())
    facts, again = read_bundle(folder)
    assert (facts.refusal, again.fingerprint) == (case.refusal, case.fingerprint)
    readme = (folder / "README.md").read_text()
    assert f"it must raise {case.refusal}, before anything is compiled or run" in readme
    assert confirm(folder, allowed=(name,)) == ""
    with closing(Pool(allowed=(name,))) as allowing:
        assert replay(folder, allowing).outcome == "still fails"
        assert replay(folder, allowing, "native").outcome == "gone"


def test_every_process_makes_the_same_ones() -> None:
    """Sets of dtypes and ops are in another order in each process, which must not show."""
    made = (
        "from fuzz.campaign.programs import cases_of; from fuzz.store import Plan, digest\n"
        "plan = Plan(7, programs=10**6, generate=('invalid=1',))\n"
        "print([digest(cases_of(plan, b)) for b in range(10)])"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", made], cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True,
            text=True, check=True,
        ).stdout
        for seed in "01"
    }  # fmt: skip
    assert len(seen) == 1
