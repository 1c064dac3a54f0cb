"""The verdict that each answer deserves: errors that are due, failures, matrices that are refused, results right and wrong.

Three executors, one that is a native variant, one that is none and a command under test, give programs every answer that
makes a difference. What an answer deserves is known because of how it was made, not from looking at it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest

from fuzz.generate.faults import faults, simplest_of
from fuzz.generate.faults.batches import invalid_case
from oracle.case import Case, Refusal, live
from oracle.enclosure import ENCLOSE, IEEE, NUMPY, XLA, enclose
from oracle.judge import Reference, judge
from oracle.peers import Execution, Executor, ExternalExecutor, ForeignRefusal, NativeExecutor, attempt
from oracle.verdict import MISFITS, Answer, Verdict
from tenferro_ref import errors, ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import (
    Internal,
    InvalidProgram,
    NonStaticShape,
    PjrtCall,
    TenferroError,
    UnsupportedDType,
    UnsupportedOp,
    WorkerDied,
)
from tenferro_ref.extensions import linalg
from tenferro_ref.program import Value
from tests.laws.answers import SLOW, wrong_elements, wrong_forms
from tests.laws.by_element import by_bits, by_element, facts
from tests.laws.cases import Array, apply, case_of, generated
from tests.laws.corners import corners

pytestmark = pytest.mark.once


# --- executors that answer what they are told to ----------------------------------------------------------------------


@dataclass(eq=False)
class Script:
    """Results, one after the other, the last one again and again; None for what the native executor gives."""

    results: Sequence[Execution | TenferroError | None] = ()
    asked: int = 0

    def answer(self, case: Case) -> Execution:
        result = self.results[min(self.asked, len(self.results) - 1)]
        self.asked += 1
        if isinstance(result, TenferroError):
            raise result
        return result or NativeExecutor().run(case)


@dataclass(frozen=True)
class Variant(NativeExecutor):
    """A native variant; `bits` says whether it must keep them."""

    name: str = "native-scripted"
    script: Script = field(default_factory=Script)
    bits: bool = False

    def run(self, case: Case) -> Execution:
        return self.script.answer(case)

    def bit_exact(self, case: Case) -> bool:
        return self.bits


@dataclass(frozen=True)
class Command(ExternalExecutor):
    """A command under test."""

    script: Script = field(default_factory=Script)

    def run(self, case: Case) -> Execution:
        return self.script.answer(case)


@dataclass(frozen=True)
class Plugin(Executor):
    """What is neither."""

    script: Script
    name: str = "pjrt:scripted"

    def run(self, case: Case) -> Execution:
        return self.script.answer(case)


Who = Callable[..., tuple[Executor, ...]]


def command(*results: Execution | TenferroError | None) -> tuple[Executor, ...]:
    return (Command("command", script=Script(results)),)


def ours(*results: Execution | TenferroError | None) -> tuple[Executor, ...]:
    """Who is run by this package, by its rules and its lowering."""
    return Variant(script=Script(results)), Plugin(Script(results))


def everybody(*results: Execution | TenferroError | None) -> tuple[Executor, ...]:
    return *ours(*results), *command(*results)


# --- what an answer deserves ------------------------------------------------------------------------------------------


class Due(NamedTuple):
    """An answer and what it deserves.

    Attributes
    ----------
    error
        What the answer has to keep and its reason to quote.
    words
        What else the reason has to name.
    way
        What came instead of the error that is due: the value class.
    facts
        Those of the comparison, if there is one.
    bits
        The outputs that were compared bit for bit.
    """

    executor: Executor
    verdict: Verdict
    error: TenferroError | None = None
    words: tuple[str, ...] = ()
    way: str | None = None
    facts: tuple[object, ...] | None = None
    bits: tuple[Array, ...] = ()


def each(who: Who, verdict: Verdict, *said: TenferroError) -> Iterator[Due]:
    for error in said:
        for executor in who(error):
            yield Due(executor, verdict, error)


def error_of(kind: str, op: str | None, axis: int | None = None) -> TenferroError:
    """An error of our taxonomy of which only this is known."""
    known = {"op": op, "axis": axis}
    of: type[TenferroError] = getattr(errors, kind)
    made: TenferroError = of(**{f.name: known.get(f.name, ()) for f in dataclasses.fields(of)})
    return made


def foreign(kind: str, op: str | None, axis: int | None) -> TenferroError:
    """An error as a command words it."""
    return ForeignRefusal(op or "", kind, "planted", axis)


PLANTED = Internal(detail="planted")
#: What may happen when a program is run, whether an error is due or not.
FAILURES: tuple[tuple[TenferroError, Verdict], ...] = (
    (WorkerDied(worker="w", how="timeout after 1 s", stderr_tail=""), Verdict.TIMEOUT),
    (WorkerDied(worker="w", how="signal 11", stderr_tail=""), Verdict.CRASH),
    (PjrtCall("PJRT_Client_Compile", "UNIMPLEMENTED", "planted"), Verdict.UNSUPPORTED),
    (PjrtCall("PJRT_Client_Compile", "INTERNAL", "planted"), Verdict.ERROR),
)
#: Refusals to lower. Of the first two kinds a command may say that it does not do such programs.
LOWERING = (
    UnsupportedOp(op="Sort", reason="planted"),
    UnsupportedDType(dtype="F16", context="planted"),
    NonStaticShape(op="Exp", output_index=0, axis=0, extent="i"),
    InvalidProgram(detail="planted"),
)
OPEN = ("UnsupportedOp", "UnsupportedDType")


def another(kind: str) -> str:
    return "RankMismatch" if kind == "ShapeMismatch" else "ShapeMismatch"


def of_invalid(due: Refusal, native: TenferroError) -> Iterator[Due]:
    """An invalid program: the error that is due, others, and a result."""
    kind, op, axis = due.kind, due.op, due.axis

    def wrong(who: Who, way: str, *said: TenferroError) -> Iterator[Due]:
        for error in said:
            for executor in who(error):
                if isinstance(executor, ExternalExecutor) and error.kind in OPEN:
                    yield Due(executor, Verdict.UNSUPPORTED, error)
                else:
                    yield Due(executor, Verdict.MISMATCH, error, (str(due), due.fault, error.kind), way)

    yield Due(NativeExecutor(), Verdict.PASS, native)
    yield from each(everybody, Verdict.PASS, error_of(kind, op, axis))
    # a command need not say where; and where that is open, it may say what it likes
    silent = [foreign(kind, *said) for said in ((None, None), (op, None), (None, axis), (op, axis))]
    yield from each(command, Verdict.PASS, *silent)
    for error in (foreign(kind, "Elsewhere", axis), foreign(kind, "Elsewhere", None)):
        yield from wrong(command, "error of another op", error) if op else each(command, Verdict.PASS, error)
    if op:
        yield from wrong(everybody, "error of another op", error_of(kind, "Elsewhere", axis))
    if axis is None:
        yield from each(command, Verdict.PASS, foreign(kind, op, 3))
    else:
        yield from wrong(everybody, "error of another axis", error_of(kind, op, axis + 1))
        yield from wrong(command, "error of another axis", foreign(kind, op, axis + 1))
    for error in (error_of(another(kind), op), PLANTED):
        yield from wrong(everybody, f"{error.kind} instead", error)
    yield from wrong(command, "Strange instead", foreign("Strange", op, axis))
    for refusal in (e for e in LOWERING if e.kind != kind):
        way = f"{refusal.kind} instead"
        yield from wrong(command, way, refusal, foreign(refusal.kind, op, axis))
        # who is lowered cannot say what only values show
        yield from each(ours, Verdict.UNSUPPORTED, refusal) if due.late else wrong(ours, way, refusal)
    for executor in everybody(Execution((np.zeros(3),))):
        yield Due(executor, Verdict.MISMATCH, None, ("gives a result", str(due), due.fault), "no error")


def of_refused(case: Case, native: TenferroError) -> Iterator[Due]:
    """A program that the native executor refuses, though nobody knows that it is due: an error that agrees is right."""
    op, axis = (native.facts().get(fact) for fact in ("op", "axis"))
    matrix = any(isinstance(ins.op, ops.Extension) and ins.op.op == op for ins in case.program.instructions)
    yield Due(NativeExecutor(), Verdict.UNDECIDED if matrix else Verdict.ERROR, native)
    yield from each(everybody, Verdict.PASS, dataclasses.replace(native))
    yield from each(command, Verdict.PASS, foreign(native.kind, None, None), foreign(native.kind, op, axis))
    yield from each(command, Verdict.UNSUPPORTED, foreign("Strange", op, axis))
    yield from each(command, Verdict.ERROR, foreign(native.kind, "Elsewhere", axis))
    other = error_of(another(native.kind), op), error_of(native.kind, "Elsewhere"), PLANTED
    yield from each(everybody, Verdict.ERROR, *other)
    # what of a matrix is open to who has no errors is not to those who have them
    for executor in everybody(Execution((np.zeros(3),))):
        open_ = matrix and not isinstance(executor, NativeExecutor)
        yield Due(executor, Verdict.UNDECIDED if open_ else Verdict.MISMATCH, native)


def of_valid(case: Case, native: Execution) -> Iterator[Due]:
    """A program that the native executor computes: results, right or not, and errors."""
    said = PLANTED, error_of("ShapeMismatch", "Add"), error_of("InvalidArgument", "Cholesky")
    yield from each(everybody, Verdict.ERROR, *said)
    # a command may have errors of its own; one of ours that calls the program invalid is wrong
    yield from each(command, Verdict.UNSUPPORTED, foreign("Strange", "Add", None), foreign("UnsupportedOp", None, None))
    yield from each(command, Verdict.ERROR, foreign("ShapeMismatch", "Add", None), foreign("RankMismatch", None, None))
    if sum(a.size for a in native.outputs) > SLOW:
        return
    given = [native.outputs]
    if any(a.size for a in native.outputs):
        given += [wrong_elements(native.outputs, int(case.fingerprint[:8], 16)), *wrong_forms(native.outputs)]
    for outputs in given:
        exact, found = Variant(script=Script([Execution(outputs)]), bits=True), by_bits(native.outputs, outputs)
        yield Due(exact, Verdict.MISMATCH if found[2] else Verdict.PASS, facts=found, bits=outputs)
    try:
        models = {model.name: enclose(live(case.program), case.inputs, model) for model in (IEEE, NUMPY, XLA)}
    except UnsupportedOp as error:
        if not any(isinstance(i.op, ops.Extension) and i.op.family == linalg.FAMILY for i in case.program.instructions):
            yield from (Due(executor, Verdict.UNDECIDED, error) for executor in everybody(native))
        return
    strict = models[IEEE.name]
    for outputs in given:
        for executor in (*everybody(Execution(outputs)), *([NativeExecutor()] if outputs is native.outputs else [])):
            found = by_element(strict, None, outputs, native.outputs)
            if found[2]:
                found = by_element(models[executor.model], strict, outputs, native.outputs)
            right = Verdict.PASS if found[1] or not found[0] else Verdict.UNDECIDED
            yield Due(executor, Verdict.MISMATCH if found[2] else right, facts=found)


def of_any(case: Case) -> Iterator[Due]:
    """Every answer to a program, the right ones first."""
    native = attempt(NativeExecutor(), case)
    if isinstance(native, Execution):
        yield from of_valid(case, native)
    else:
        yield from of_invalid(case.refusal, native) if case.refusal else of_refused(case, native)
    if case.refusal is None:
        yield from each(everybody, Verdict.UNSUPPORTED, *LOWERING)
    for error, verdict in FAILURES:
        yield from each(everybody, verdict, error)


def check(due: Due, answer: Answer) -> None:
    """The answer is what it should be."""
    comparison, index = answer.comparison, answer.comparison.worst_index
    assert (answer.executor, answer.verdict) == (due.executor.name, due.verdict), answer.reason
    assert answer.error == (None if due.error is None else due.error.to_json())
    for word in (*due.words, *([] if due.error is None else [str(due.error)])):
        assert word in answer.reason
    if due.way is not None:
        assert comparison.value_class == due.way
    if due.facts is None:
        return
    assert facts(comparison) == due.facts
    assert 0 < answer.seconds["compare"] < 100
    if comparison.worst_output is not None:
        # of an output of another dtype or shape no element is the wrong one
        whole = comparison.value_class.startswith(MISFITS)
        place = "" if whole else list(index or ())
        assert answer.reason.startswith(f"output {comparison.worst_output}{place}: {comparison.value_class}")
        if due.bits and index:
            assert comparison.observed == str(due.bits[comparison.worst_output][index])


def check_all(case: Case, dues: Iterator[Due]) -> None:
    reference = Reference(case, NativeExecutor())
    for due in dues:
        check(due, judge(due.executor, reference))


# --- programs ---------------------------------------------------------------------------------------------------------

GOOD, BAD = np.array([[4.0, 2.0], [2.0, 5.0]]), np.array([[-1.0, 0.0], [0.0, 1.0]])


def undecided_extent(x: Value, y: Value) -> Value:
    """One element or two, as the logarithm is rounded."""
    return apply(ops.DynamicTruncate(0), x, apply(ops.Convert(DType.I64), apply(ops.Exp(), apply(ops.Log(), y))))


def undecided() -> list[Case]:
    """One that no enclosure knows, and a sum that may overflow on the way, of which it decides nothing."""
    large = np.finfo(np.float64).max * np.array([1, 1, -1, -1])
    return [case_of(undecided_extent, np.arange(4.0), np.float64(2)), case_of(lambda x: x.sum(0), large)]


def test_valid_programs() -> None:
    for case in (*undecided(), *generated(4, 12), *(c.case for c in corners()[5::20])):
        check_all(case, of_any(case))
    for case in undecided():
        assert judge(NativeExecutor(), Reference(case, NativeExecutor())).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize("turn", range(12))
def test_invalid_programs(turn: int) -> None:
    case = invalid_case(1, 0, turn, turn)
    check_all(case, of_any(case))


def test_programs_whose_error_only_values_show() -> None:
    late = [simplest_of(fault.name) for fault in faults(late=True) if fault.late]
    assert any(late)
    for case in filter(None, late):
        check_all(case, of_any(case))


def test_matrices_that_are_refused() -> None:
    case = case_of(linalg.cholesky, BAD)
    check_all(case, of_any(case))
    quotient = case_of(lambda x, y: apply(ops.Divide(), x, y), *(np.array(v, np.int32) for v in ([6, 4], [0, 1])))
    check_all(quotient, of_any(quotient))


def test_a_refusal_of_what_no_output_depends_on_is_right() -> None:
    def beside(a: Value) -> Value:
        linalg.cholesky(a)
        return apply(ops.Exp(), a)

    refused, case = attempt(NativeExecutor(), case_of(linalg.cholesky, BAD)), case_of(beside, BAD)
    assert isinstance(refused, TenferroError)
    check_all(case, each(everybody, Verdict.PASS, dataclasses.replace(refused)))
    with pytest.raises(TenferroError, match="positive definite"):
        NativeExecutor("all", passes=()).run(case)


def stages(case: Case, unknown: TenferroError | None) -> Iterator[Due]:
    """Factors of a decomposition are asked for in a second run; `unknown` is what keeps the rest from being enclosed."""
    native = NativeExecutor().run(case)
    right = Verdict.UNDECIDED if unknown else Verdict.PASS
    yield from (Due(executor, right, unknown) for executor in (NativeExecutor(), *everybody(native, None)))
    more = (LOWERING[0], Verdict.UNDECIDED), (PLANTED, Verdict.ERROR), *FAILURES
    for error, verdict in more:
        yield from (Due(executor, verdict, error) for executor in everybody(native, error))
    if not unknown:
        for outputs in (wrong_elements(native.outputs, 0), *wrong_forms(native.outputs)):
            yield from (Due(executor, Verdict.MISMATCH) for executor in everybody(Execution(outputs)))
        yield from (Due(executor, Verdict.MISMATCH) for executor in everybody(native, Execution(())))


def test_decompositions_are_judged_in_stages() -> None:
    unknown = UnsupportedOp(op="DynamicTruncate", reason="enclosure: the extent of the result is not decided")
    for trace, inputs, error in (
        (linalg.cholesky, (GOOD,), None),
        (lambda a: apply(ops.Exp(), linalg.cholesky(a)), (GOOD,), None),
        (lambda a, y: undecided_extent(linalg.cholesky(a), y), (GOOD, np.float64(2)), unknown),
    ):
        case = case_of(trace, *inputs)
        check_all(case, of_any(case))
        check_all(case, stages(case, error))


def test_a_defect_of_an_enclosure_is_an_error() -> None:
    case = case_of(lambda x: apply(ops.Exp(), x), np.array([0.5, 2.0]))
    defect = Internal(detail="KeyError in an enclosure: 'planted'")
    with mock.patch.dict(ENCLOSE._rows, {ops.Exp: mock.Mock(side_effect=KeyError("planted"))}):
        check_all(case, (Due(executor, Verdict.ERROR, defect) for executor in everybody(NativeExecutor().run(case))))
