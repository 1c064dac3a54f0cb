"""Triage of what gives no result: ends of processes, errors, outputs that are missing, defects of an enclosure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fuzz.findings.alike import how_of
from fuzz.findings.suspect import Suspect
from fuzz.findings.triage import to_finding
from oracle.case import Case
from oracle.peers import Execution, NativeExecutor, Pool
from oracle.peers.errors import EngineFault
from oracle.verdict import Answer, Verdict
from tenferro_ref.errors import WorkerDied
from tenferro_ref.ops import Add, Exp, Negate, Sqrt
from tenferro_ref.program import GraphBuilder
from tests.fuzz.faulty_executors import Wrong, chain, suspect_of


@dataclass
class Failing(Wrong):
    """Ends, or refuses in these words, where there is a negation; alone it refuses in the words of `alone`.

    Where it ends, a check of that file failed, if one is named; another one where the negation is alone.
    """

    words: str = ""
    alone: str = ""
    file: str = ""
    file_alone: str = ""
    failures: int = 0

    def run(self, case: Case) -> Execution:
        instructions = case.program.instructions
        if not any(isinstance(ins.op, Negate) for ins in instructions):
            return NativeExecutor().run(case)
        self.failures += 1
        if words := self.alone if len(instructions) == 1 and self.alone else self.words:
            raise EngineFault(engine=self.name, detail=words)
        file = self.file_alone if len(instructions) == 1 and self.file_alone else self.file
        tail = (
            f"F0000 00:00:01.7 12 {file}:17] Check failed: a == b ({'1' * 300} vs. 2)\n  @ 0x1 (unknown)"
            if file
            else ""
        )
        raise WorkerDied(worker=self.name, how="signal SIGABRT", stderr_tail=tail)


@pytest.mark.parametrize(("words", "verdict"), [("", Verdict.CRASH), ("error: no negation", Verdict.ERROR)])
def test_the_instruction_that_fails_alone_names_a_failure(words: str, verdict: Verdict, pool: Pool) -> None:
    executor = Failing(words=words)
    first, second = (suspect_of(executor, chain(*ops), verdict) for ops in ((Exp, Negate, Exp), (Negate, Sqrt, Sqrt)))
    assert first.op == second.op == "Negate"
    assert first.group == second.group
    executor.failures = 0
    finding, _ = to_finding(first, pool, (), programs=1, also=())
    assert (finding.instructions, finding.verdict) == (1, verdict.value)
    # each of them ends a process: from the whole program it takes as many as it has operands and values to simplify
    assert executor.failures < 12


def test_an_instruction_that_fails_alone_in_other_words_is_not_the_cause(pool: Pool) -> None:
    suspect = suspect_of(
        Failing(words="error: no fusion", alone="error: no negation"), chain(Exp, Negate), Verdict.ERROR
    )
    assert suspect.op == "Negate(Exp)"
    finding, _ = to_finding(suspect, pool, (), programs=1, also=())
    assert "no fusion" in finding.reason
    assert finding.instructions == 2


def test_the_check_that_failed_names_a_death(pool: Pool) -> None:
    finding, _ = to_finding(
        suspect_of(Failing(file="xla/hlo/shape_util.cc"), chain(Exp, Negate), Verdict.CRASH),
        pool,
        (),
        programs=1,
        also=(),
    )
    assert finding.signature == "Negate | F64 | WorkerDied in shape_util.cc | only wrong"


def test_a_signal_names_a_death_without_words(pool: Pool) -> None:
    suspect = suspect_of(Failing(), chain(Exp, Negate), Verdict.CRASH)
    finding, _ = to_finding(suspect, pool, (), programs=1, also=())
    assert finding.signature == "Negate | F64 | WorkerDied by SIGABRT | only wrong"


def test_the_innermost_check_names_a_death() -> None:
    """Whether the line is cut off in front or not."""
    line = "F0000 00:00:01.7 12 simplifier.cc:17] Non-OK-status: it() status: INTERNAL: RET_CHECK failure (xla/computation.cc:9) a"
    for tail in (line, line[-70:]):
        error = WorkerDied(worker="x", how="signal SIGABRT", stderr_tail=tail)
        answer = Answer("x", Verdict.CRASH, reason=f"{error.kind}: {error}", error=error.to_json())
        assert how_of(answer) == "WorkerDied in computation.cc"


def test_what_is_logged_before_a_death_does_not_name_it() -> None:
    tail = "I0000 00:00:1795842536.641195 18117 rsqrt.cc:179] Falling back to 1 / sqrt(x)"
    error = WorkerDied(worker="x", how="signal SIGSEGV", stderr_tail=tail)
    answer = Answer("x", Verdict.CRASH, reason=f"{error.kind}: {error}", error=error.to_json())
    assert how_of(answer) == "WorkerDied by SIGSEGV"


def test_a_death_of_another_check_is_another_one(pool: Pool) -> None:
    executor = Failing(file="xla/shape_util.cc", file_alone="xla/layout.cc")
    suspect = suspect_of(executor, chain(Exp, Negate), Verdict.CRASH)
    assert suspect.op == "Negate(Exp)"
    finding, _ = to_finding(suspect, pool, (), programs=1, also=())
    assert "shape_util.cc" in finding.signature
    assert finding.instructions == 2


def test_instructions_of_a_long_program_are_not_asked_one_by_one() -> None:
    executor = Failing()
    assert suspect_of(executor, chain(*[Exp] * 30, Negate), Verdict.CRASH).op == "Negate(Exp)"
    assert executor.failures == 1


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ('loc("a":8:10): error: op of 3 axes', 'loc("a":9:1): error: op of 4 axes', True),
        ("error: cannot do 'a': %0 = 'a'(%1)", "error: cannot do 'a': %7 = 'a'(%0)", True),
        ("error: cannot do 'a'", "error: cannot do 'b'", False),
        ("no such 1\n  at line 3", "no such 2\n  at line 4", True),
    ],
)
def test_errors_are_told_apart_by_their_words(one: str, other: str, alike: bool) -> None:
    def suspect(words: str, op: str) -> Suspect:
        error = EngineFault(engine="x", detail=words)
        answer = Answer("wrong", Verdict.ERROR, reason=f"{error.kind}: {error}", error=error.to_json())
        return Suspect(Wrong(), chain(Exp), answer, op, "F64", "only wrong")

    assert (suspect(one, "Exp").group == suspect(other, "Log").group) is alike


class Silent(Wrong):
    """Gives no output at all."""

    def run(self, case: Case) -> Execution:
        return Execution(())


def test_outputs_that_are_missing_are_a_finding_and_no_end_of_the_campaign(pool: Pool) -> None:
    suspect = suspect_of(Silent(), chain(Negate, Exp))
    finding, case = to_finding(suspect, pool, (), programs=1, also=())
    assert len(case.program.instructions) <= 1
    assert finding.values == ()


def test_a_defect_of_an_enclosure_is_reduced_as_well(monkeypatch: pytest.MonkeyPatch, pool: Pool) -> None:
    """It is ours, and shows as an internal error of every executor that is held to enclosures."""

    def broken(*_: object) -> None:
        raise OverflowError("too large")

    monkeypatch.setattr("oracle.enclosure.arithmetic.contraction.addition", broken)
    b = GraphBuilder()
    x = b.input("F64", (3,))
    case = Case.of(b.build(b.apply(Exp(), b.apply(Add(), b.apply(Negate(), x), x))), [np.array([1.0, 2.0, 3.0])])
    suspect = suspect_of(NativeExecutor(), case, Verdict.ERROR)
    finding, small = to_finding(suspect, pool, (), programs=1, also=())
    assert finding.signature == "Add | F64 | internal error | native"
    assert len(small.program.instructions) == 1
