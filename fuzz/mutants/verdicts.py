"""What verdict an answer deserves, said a second time: errors that are due, failures, matrices that are refused, results.

Three executors, one that is a native variant, one that is none and a command under test, give a program every answer that
makes a difference. What each deserves is known because of how the answer was made, not from looking at it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeAlias
from unittest import mock

import numpy as np

from fuzz.generate.faults import faults, simplest_of
from fuzz.mutants.directed import apply, case_of
from fuzz.mutants.elements import SLOW, by_bits, by_element, facts
from fuzz.mutants.witnesses import Planted, Planter
from oracle.case import Case, Refusal, live
from oracle.enclosure import IEEE, NUMPY, XLA, enclose
from oracle.judge import Reference, judge
from oracle.peers import Execution, Executor, ExternalExecutor, ForeignRefusal, NativeExecutor, attempt
from oracle.peers.base import DEFECTS
from oracle.verdict import Answer, Verdict
from tenferro_ref import errors
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
from tenferro_ref.ops import Convert, DynamicTruncate, Exp, Extension, Log, ReduceSum
from tenferro_ref.program import Value
from tenferro_ref.tensor import Array

# --- programs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Staged:
    """A program by hand that has a decomposition.

    Attributes
    ----------
    dead
        What running an op that no output depends on raises.
    unknown
        What keeps the rest from being enclosed.
    """

    case: Case
    dead: TenferroError | None = None
    unknown: TenferroError | None = None


_GOOD, _BAD = np.array([[4.0, 2.0], [2.0, 5.0]]), np.array([[-1.0, 0.0], [0.0, 1.0]])


def _undecided_extent(x: Value, y: Value) -> Value:
    """One element or two, as the logarithm is rounded."""
    return apply(DynamicTruncate(0), x, apply(Convert(DType.I64), apply(Exp(), apply(Log(), y))))


@cache
def staged() -> dict[str, Staged]:
    """By fingerprint."""

    def beside(a: Value) -> Value:
        linalg.cholesky(a)
        return apply(Exp(), a)

    two, alone = np.float64(2), case_of(linalg.cholesky, _BAD)
    error = attempt(NativeExecutor(), alone)
    unknown = UnsupportedOp(op="DynamicTruncate", reason="enclosure: the extent of the result is not decided")
    found = [
        Staged(case_of(linalg.cholesky, _GOOD)),
        Staged(case_of(lambda a: apply(Exp(), linalg.cholesky(a)), _GOOD)),
        Staged(case_of(lambda a, y: _undecided_extent(linalg.cholesky(a), y), _GOOD, two), unknown=unknown),
        Staged(case_of(beside, _BAD), dead=error if isinstance(error, TenferroError) else None),
        Staged(alone),
    ]
    return {s.case.fingerprint: s for s in found}


def by_hand() -> list[Case]:
    """Programs with decompositions, one that no enclosure knows, one that none decides, and all whose error only values show."""
    late = [simplest_of(fault.name) for fault in faults(late=True) if fault.late]
    odd = case_of(_undecided_extent, np.arange(4.0), np.float64(2))
    large = np.finfo(np.float64).max * np.array([1, 1, -1, -1])
    anything = case_of(lambda x: apply(ReduceSum((0,)), x), large)  # it may overflow on the way
    return [*(s.case for s in staged().values()), odd, anything, *filter(None, late)]


# --- executors that say what they are told ----------------------------------------------------------------------------


@dataclass(eq=False)
class _Script:
    """Results, one after the other, the last one again and again; None for what the native executor gives."""

    results: Sequence[Execution | TenferroError | None]
    asked: int = 0

    def say(self, case: Case) -> Execution:
        result = self.results[min(self.asked, len(self.results) - 1)]
        self.asked += 1
        if isinstance(result, TenferroError):
            raise result
        return result or NativeExecutor().run(case)


_SILENT = _Script(())


@dataclass(frozen=True)
class _Variant(NativeExecutor):
    """A native variant; `bits` says whether it must keep them."""

    name: str = "native-variant"
    script: _Script = _SILENT
    bits: bool = False

    def run(self, case: Case) -> Execution:
        return self.script.say(case)

    def bit_exact(self, case: Case) -> bool:
        return self.bits


@dataclass(frozen=True)
class _Command(ExternalExecutor):
    """A command under test."""

    script: _Script = _SILENT

    def run(self, case: Case) -> Execution:
        return self.script.say(case)


@dataclass(frozen=True)
class _Plugin(Executor):
    """What is neither."""

    script: _Script
    name: str = "plugin"
    model: str = XLA.name

    def run(self, case: Case) -> Execution:
        return self.script.say(case)


def _command(*results: Execution | TenferroError | None) -> tuple[Executor, ...]:
    return (_Command("told", script=_Script(results)),)


def _ours(*results: Execution | TenferroError | None) -> tuple[Executor, ...]:
    """Who is run by this package, by its rules and its lowering."""
    return _Variant(script=_Script(results)), _Plugin(_Script(results))


def _all(*results: Execution | TenferroError | None) -> tuple[Executor, ...]:
    return *_ours(*results), *_command(*results)


# --- what they say, and what that deserves ----------------------------------------------------------------------------


class Said(NamedTuple):
    """An answer and its due.

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
    defect
        A rule of enclosures has a defect.
    """

    executor: Executor
    verdict: Verdict
    error: TenferroError | None = None
    words: tuple[str, ...] = ()
    way: str | None = None
    facts: tuple[object, ...] | None = None
    bits: tuple[Array, ...] = ()
    defect: bool = False


_Who: TypeAlias = Callable[[TenferroError], tuple[Executor, ...]]


def _each(who: _Who, verdict: Verdict, *said: TenferroError) -> Iterator[Said]:
    for error in said:
        for executor in who(error):
            yield Said(executor, verdict, error)


def _error(kind: str, op: str | None, axis: int | None = None) -> TenferroError:
    """An error of our taxonomy of which only this is known."""
    known = {"op": op, "axis": axis}
    of: type[TenferroError] = getattr(errors, kind)
    made: TenferroError = of(**{f.name: known.get(f.name, ()) for f in dataclasses.fields(of)})
    return made


def _foreign(kind: str, op: str | None, axis: int | None) -> TenferroError:
    """An error as a command words it."""
    return ForeignRefusal(op or "", kind, "planted", axis)


_PLANTED = Internal(detail="planted")
_RESULT = Execution((np.zeros(3),))
#: What may happen to whoever runs a program, whether an error is due or not.
_FAILURES: tuple[tuple[TenferroError, Verdict], ...] = (
    (WorkerDied(worker="w", how="timeout after 1 s", stderr_tail=""), Verdict.TIMEOUT),
    (WorkerDied(worker="w", how="signal 11", stderr_tail=""), Verdict.CRASH),
    (PjrtCall("PJRT_Client_Compile", "UNIMPLEMENTED", "planted"), Verdict.UNSUPPORTED),
    (PjrtCall("PJRT_Client_Compile", "INTERNAL", "planted"), Verdict.ERROR),
)
#: Refusals to lower. Of some kinds a command may say that it does not do such programs.
_LOWERING = (
    UnsupportedOp(op="Sort", reason="planted"),
    UnsupportedDType(dtype="F16", context="planted"),
    NonStaticShape(op="Exp", output_index=0, axis=0, extent="i"),
    InvalidProgram(detail="planted"),
)
_OPEN = ("UnsupportedOp", "UnsupportedDType")


def _another(kind: str) -> str:
    return "RankMismatch" if kind == "ShapeMismatch" else "ShapeMismatch"


def _due(due: Refusal, native: TenferroError) -> Iterator[Said]:
    """An invalid program: the error that is due, others, and a result."""
    kind, op, axis = due.kind, due.op, due.axis

    def wrong(who: _Who, way: str, *said: TenferroError) -> Iterator[Said]:
        for error in said:
            for executor in who(error):
                if executor.peer.family == "external" and error.kind in _OPEN:
                    yield Said(executor, Verdict.UNSUPPORTED, error)
                else:
                    yield Said(executor, Verdict.MISMATCH, error, (str(due), due.fault, error.kind), way)

    yield Said(NativeExecutor(), Verdict.PASS, native)
    yield from _each(_all, Verdict.PASS, _error(kind, op, axis))
    # a command need not say where; and where that is open, it may say what it likes
    silent = [_foreign(kind, *said) for said in ((None, None), (op, None), (None, axis), (op, axis))]
    yield from _each(_command, Verdict.PASS, *silent)
    for foreign in (_foreign(kind, "Elsewhere", axis), _foreign(kind, "Elsewhere", None)):
        yield from wrong(_command, "error of another op", foreign) if op else _each(_command, Verdict.PASS, foreign)
    if op:
        yield from wrong(_all, "error of another op", _error(kind, "Elsewhere", axis))
    if axis is None:
        yield from _each(_command, Verdict.PASS, _foreign(kind, op, 3))
    else:
        yield from wrong(_all, "error of another axis", _error(kind, op, axis + 1))
        yield from wrong(_command, "error of another axis", _foreign(kind, op, axis + 1))
    for error in (_error(_another(kind), op), _PLANTED):
        yield from wrong(_all, f"{error.kind} instead", error)
    yield from wrong(_command, "Strange instead", _foreign("Strange", op, axis))
    for refusal in (e for e in _LOWERING if e.kind != kind):
        yield from wrong(_command, f"{refusal.kind} instead", refusal, _foreign(refusal.kind, op, axis))
        # who is lowered cannot say what only values show
        yield from (
            _each(_ours, Verdict.UNSUPPORTED, refusal) if due.late else wrong(_ours, f"{refusal.kind} instead", refusal)
        )
    for executor in _all(_RESULT):
        yield Said(executor, Verdict.MISMATCH, None, ("gives a result", str(due), due.fault), "no error")


def _raised(case: Case, native: TenferroError) -> Iterator[Said]:
    """A program that the native executor refuses, though nobody knows that it is due: an error that agrees is right."""
    op, axis = (native.facts().get(fact) for fact in ("op", "axis"))
    matrix = any(isinstance(ins.op, Extension) and ins.op.op == op for ins in case.program.instructions)
    yield Said(NativeExecutor(), Verdict.UNDECIDED if matrix else Verdict.ERROR, native)
    yield from _each(_all, Verdict.PASS, dataclasses.replace(native))
    yield from _each(_command, Verdict.PASS, _foreign(native.kind, None, None), _foreign(native.kind, op, axis))
    yield from _each(
        _command, Verdict.UNSUPPORTED, _foreign("Strange", op, axis), _foreign(native.kind, "Elsewhere", axis)
    )
    yield from _each(_all, Verdict.ERROR, _error(_another(native.kind), op), _error(native.kind, "Elsewhere"), _PLANTED)
    # what of a matrix is open to who has no errors is not to those who have them
    for executor in _all(_RESULT):
        open_ = matrix and executor.peer.family != "native"
        yield Said(executor, Verdict.UNDECIDED if open_ else Verdict.MISMATCH, native)


def _computed(case: Case, native: Execution) -> Iterator[Said]:
    """A program that the native executor computes."""
    known = staged().get(case.fingerprint)
    yield from _each(
        _all, Verdict.ERROR, _PLANTED, _error("ShapeMismatch", "Add"), _error("InvalidArgument", "Cholesky")
    )
    if known and known.dead:
        yield from _each(_all, Verdict.PASS, dataclasses.replace(known.dead))
    yield from _compared(case, native)
    defect = Internal(detail="KeyError in an enclosure: 'planted'")
    yield from (Said(executor, Verdict.ERROR, defect, defect=True) for executor in _all(native))
    if known and not known.dead:
        yield from _stages(known, native)


def _compared(case: Case, native: Execution) -> Iterator[Said]:
    """Results, right or not."""
    given = [native.outputs]
    if any(a.size for a in native.outputs):
        given += [wrong.run(case).outputs for wrong in (Planted(), Planter())]
    if sum(a.size for a in native.outputs) > SLOW:
        return
    for outputs in given:
        exact, found = _Variant(script=_Script([Execution(outputs)]), bits=True), by_bits(native.outputs, outputs)
        yield Said(exact, Verdict.MISMATCH if found[2] else Verdict.PASS, facts=found, bits=outputs)
    try:
        models = {model.name: enclose(live(case.program), case.inputs, model) for model in (IEEE, NUMPY, XLA)}
    except UnsupportedOp as error:
        if not _decomposing(case):
            yield from (Said(executor, Verdict.UNDECIDED, error) for executor in _all(native))
        return
    strict = models[IEEE.name]
    for outputs in given:
        for executor in (*_all(Execution(outputs)), *([NativeExecutor()] if outputs is native.outputs else [])):
            found = by_element(strict, None, outputs, native.outputs)
            if found[2]:
                found = by_element(models[executor.model], strict, outputs, native.outputs)
            right = Verdict.PASS if found[1] or not found[0] else Verdict.UNDECIDED
            yield Said(executor, Verdict.MISMATCH if found[2] else right, facts=found)


def _decomposing(case: Case) -> bool:
    ops = [ins.op for ins in case.program.instructions]
    return any(isinstance(op, Extension) and op.family == linalg.FAMILY for op in ops)


def _stages(known: Staged, native: Execution) -> Iterator[Said]:
    """Factors are asked for: a second run."""
    right = Verdict.UNDECIDED if known.unknown else Verdict.PASS
    yield from (Said(executor, right, known.unknown) for executor in (NativeExecutor(), *_all(native, None)))
    more = (_LOWERING[0], Verdict.UNDECIDED), (_PLANTED, Verdict.ERROR), *_FAILURES
    for error, verdict in more:
        yield from (Said(executor, verdict, error) for executor in _all(native, error))
    if not known.unknown:
        yield from (
            Said(executor, Verdict.MISMATCH) for executor in (Planted(), Planter(), *_all(native, Execution(())))
        )


def _said(case: Case) -> Iterator[Said]:
    """Every answer, the right ones first."""
    native = attempt(NativeExecutor(), case)
    if isinstance(native, Execution):
        yield from _computed(case, native)
    else:
        yield from _due(case.refusal, native) if case.refusal else _raised(case, native)
    if case.refusal is None:
        yield from _each(_all, Verdict.UNSUPPORTED, *_LOWERING)
    for error, verdict in _FAILURES:
        yield from _each(_all, verdict, error)


# --- verdicts ---------------------------------------------------------------------------------------------------------


#: What the clock says first; a comparison takes a few of its ticks.
_NOW = 10**6


def _answers(case: Case) -> Iterator[tuple[Said, Answer | Exception]]:
    """What the judge says of each, by a clock that ticks when it is looked at."""
    known, enclosing = (
        Reference(case, NativeExecutor()),
        mock.patch("oracle.judge.enclose", side_effect=KeyError("planted")),
    )
    with mock.patch("oracle.judge.time.perf_counter", side_effect=itertools.count(_NOW)):
        for said in _said(case):
            reference = Reference(case, NativeExecutor()) if said.defect else known
            try:
                with enclosing if said.defect else nullcontext():
                    answer = judge(said.executor, reference)
            except (*DEFECTS, TenferroError) as error:
                yield said, error
            else:
                yield said, answer


def _fault(said: Said, answer: Answer) -> str:
    """How an answer is not what it should be."""
    comparison, record = answer.comparison, None if said.error is None else said.error.to_json()
    if (answer.executor, answer.verdict) != (said.executor.name, said.verdict):
        return f"judged {answer.verdict}, not {said.verdict}, of {answer.executor}"
    if answer.error != record:
        return f"judged with the error {answer.error}, not {record}"
    words = *said.words, *([] if said.error is None else [str(said.error)])
    if missing := [word for word in words if word not in answer.reason]:
        return f"judged without a word of {missing}"
    if said.facts is None:
        right = said.way in (None, comparison.value_class)
        return "" if right else f"judged as {comparison.value_class!r}, not {said.way!r}"
    if facts(comparison) != said.facts:
        return f"compared by {facts(comparison)}, not {said.facts}"
    output, index = comparison.worst_output, comparison.worst_index
    if output is not None and not answer.reason.startswith(f"output {output}{list(index or ())}: "):
        return "judged for another element"
    if said.bits and index and output is not None and comparison.observed != str(said.bits[output][index]):
        return "judged with what was observed for what was expected"
    return "" if _lasted(answer) else f"judged for {answer.seconds} ticks of the clock"


def _lasted(answer: Answer) -> bool:
    """A comparison takes time, and ends before the clock is twice what it was."""
    return 0 < answer.seconds.get("compare", 0) < _NOW


def told(case: Case) -> Hashable:
    """How the answers look."""
    return tuple(
        repr(got if isinstance(got, Exception) else (dataclasses.replace(got, seconds={}), _lasted(got)))
        for _, got in _answers(case)
    )


def verdicts(case: Case) -> str:
    """Which answer gets a verdict that it does not deserve, "" for none."""
    crash: Exception | None = None
    for said, got in _answers(case):
        if isinstance(got, TenferroError):
            return f"{got.kind} escapes the judge"
        if isinstance(got, Exception):
            crash = crash or got
        elif fault := _fault(said, got):
            return f"of {said.executor.name}: {fault}"
    if crash:
        raise crash
    return ""


__all__ = ["by_hand", "told", "verdicts"]
