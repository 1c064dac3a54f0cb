"""The judge: the verdict on the answer of an executor, given the reference of its case.

An executor that must keep bits is compared with the native answer bit for bit. Everybody else, the native executor
included, is held to enclosures: what is inside the strictest model is right on every platform; what is not is held to
the executor's own model, and outside that it is wrong, whatever the others say.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

from oracle.by_input import errors_by_input
from oracle.case import Case, Refusal, error_words
from oracle.compare import compare, compare_bits
from oracle.identities import compare_sides
from oracle.peers import DerivativeExecutor, Execution, Executor, ForeignRefusal, NativeExecutor, attempt
from oracle.reference import Reference, compare_all, prepare
from oracle.staged import decomposing, judge_stages, refuses, refuses_dead
from oracle.unfounded import unfounded
from oracle.unmade import why
from oracle.verdict import Answer, Comparison, Verdict
from tenferro_ref.errors import (
    EnvironmentFault,
    Internal,
    LoweringError,
    PjrtCall,
    TenferroError,
    Unsupported,
    UnsupportedDType,
    UnsupportedOp,
    ValidationError,
    WorkerDied,
    defects_in,
)


def judge(executor: Executor, reference: Reference) -> Answer:
    """The verdict on `executor` for one case; never raises for what the executor does."""
    own = executor == reference.native
    return judge_result(executor, reference, reference.execution if own else attempt(executor, reference.case))


def judge_result(
    executor: Executor, reference: Reference, result: Execution | TenferroError, model: str | None = None
) -> Answer:
    """The verdict on what an executor gave for one case; held to `model` instead of its own if that is not None."""
    (answer,) = _judge_results(executor, [reference], [result], model)
    return answer


def judge_many(executor: Executor, references: Sequence[Reference]) -> list[Answer]:
    """`judge` for several cases, which may share a module.

    A case that disagrees when it shared a module with others is run again alone, since only that can be reduced. If it is right
    alone, it is wrong all the same.
    """
    if all(executor == reference.native for reference in references):
        return _judge_results(executor, references, [reference.execution for reference in references])
    results = executor.run_many([reference.case for reference in references])
    answers = _judge_results(executor, references, results)
    for i, (reference, result) in enumerate(zip(references, results, strict=True)):
        if answers[i].verdict.is_disagreement and isinstance(result, Execution) and result.shared:
            alone = judge(executor, reference)
            answers[i] = alone if alone.verdict.is_disagreement else answers[i]
    return answers


def _judge_results(
    executor: Executor,
    references: Sequence[Reference],
    results: Sequence[Execution | TenferroError],
    model: str | None = None,
) -> list[Answer]:
    """The verdicts on what an executor gave, whose elements are compared together."""
    if isinstance(executor, DerivativeExecutor):
        return [
            _unmade(executor.name, case) if case.unmade else _judge_derivative(executor, case)
            for case in (reference.case for reference in references)
        ]
    start = time.perf_counter()
    enclosed = {
        reference: result.outputs
        for reference, result in zip(references, results, strict=True)
        if _comparable(reference, result) and isinstance(result, Execution) and not _by_bits(executor, reference)
    }
    compared = compare_all(enclosed, model or executor.model)
    share = (time.perf_counter() - start) / max(1, len(references))
    answers = []
    for reference, result in zip(references, results, strict=True):
        start = time.perf_counter()
        if reference.case.unmade:
            answer = _unmade(executor.name, reference.case)
        elif reference in compared and (reason := reference.open_way(model or executor.model)):
            answer = Answer(executor.name, Verdict.UNDECIDED, reason=reason)
        elif reference in compared:
            answer = _compared(executor, reference, compared[reference])
            if executor != reference.native and isinstance(native := reference.execution, Execution):
                by_input = errors_by_input(reference.case, native.outputs, enclosed[reference])
                answer = dataclasses.replace(answer, by_input=by_input)
        else:
            answer = _uncompared(executor, reference, result)
        if _comparable(reference, result) and isinstance(result, Execution):
            seconds = {**result.seconds, "compare": time.perf_counter() - start + share}
            answer = dataclasses.replace(answer, seconds=seconds)
        answers.append(answer)
    return answers


def _comparable(reference: Reference, result: Execution | TenferroError) -> bool:
    """Whether there are outputs on both sides, where no error is due."""
    there = isinstance(result, Execution) and isinstance(reference.execution, Execution)
    return there and reference.case.refusal is None and not reference.case.unmade


def _unmade(name: str, case: Case) -> Answer:
    """The verdict where there is nothing to run, for a defect of this project, which every executor shares."""
    error = why(case)
    if error is None:
        return Answer(name, Verdict.PASS, reason="it can be made now")
    return Answer(name, Verdict.ERROR, reason=f"{error.kind}: {error}", error=error.to_json())


def _by_bits(executor: Executor, reference: Reference) -> bool:
    return executor != reference.native and executor.bit_exact(reference.case)


def _uncompared(executor: Executor, reference: Reference, result: Execution | TenferroError) -> Answer:
    """The verdict where nothing is held to an enclosure."""
    if reference.case.refusal is not None:
        return _refusal(executor, reference, reference.case.refusal, result)
    expected = reference.execution
    if isinstance(result, TenferroError):
        return _failed(executor, result, reference)
    if isinstance(expected, Execution):
        return _verdict(executor.name, compare_bits(expected.outputs, result.outputs))
    if refuses(expected) and executor.peer.family != "native":
        # singular, not positive definite, not finite: StableHLO has no errors, and leaves the result open
        reason = f"the native executor refuses the values of a matrix: {expected}"
        return Answer(executor.name, Verdict.UNDECIDED, reason=reason, error=expected.to_json())
    reason = f"gave a result where the native executor raises {expected.kind}: {expected}"
    return Answer(executor.name, Verdict.MISMATCH, reason=reason, error=expected.to_json())


def _failed(executor: Executor, error: TenferroError, reference: Reference) -> Answer:
    record, expected = error.to_json(), reference.execution
    if isinstance(expected, TenferroError) and error is not expected and _raises(error, expected):
        return Answer(executor.name, Verdict.PASS, reason=f"raises as the native executor does: {error}", error=record)
    if error is expected and refuses(error):
        if wrong := unfounded(reference.case):
            return Answer(executor.name, Verdict.ERROR, reason=f"{error.kind}: {error}; {wrong}", error=record)
        reason = f"the reference itself refuses the values of a matrix: {error}"
        return Answer(executor.name, Verdict.UNDECIDED, reason=reason, error=record)
    if error is not expected and refuses_dead(error, reference.case):
        # a refusal is no effect that the passes keep: removing what nothing reads is right, and so is running it
        return Answer(executor.name, Verdict.PASS, reason=f"refuses what no output depends on: {error}", error=record)
    return failed(executor.name, error)


def failed(name: str, error: TenferroError) -> Answer:
    """The verdict on an executor that gave this error for something sound."""
    if isinstance(error, WorkerDied):
        verdict = Verdict.TIMEOUT if error.how.startswith("timeout") else Verdict.CRASH
    elif error.kind in _INVALID:  # a command may leave out facts, and calls a valid program invalid nevertheless
        verdict = Verdict.ERROR
    elif isinstance(error, LoweringError) or (isinstance(error, PjrtCall) and error.code == "UNIMPLEMENTED"):
        verdict = Verdict.UNSUPPORTED
    else:
        verdict = Verdict.ERROR
    return Answer(name, verdict, reason=f"{error.kind}: {error}", error=error.to_json())


#: The least share of the elements of a program that must be decided for a pass.
FLOOR = 0.1
#: Kinds of errors that say of a program, or of its inputs, that they are wrong; `Unsupported` may speak of the engine, and is left out.
_INVALID = frozenset(kind.__name__ for kind in ValidationError.__subclasses__()) - {Unsupported.__name__}
#: What a command under test may say instead: that it does not do such programs at all.
_UNSUPPORTED = (UnsupportedOp.__name__, UnsupportedDType.__name__)


def _refusal(executor: Executor, reference: Reference, due: Refusal, result: Execution | TenferroError) -> Answer:
    """The verdict where an error is due, also on the native executor: the program is invalid by construction."""
    if isinstance(result, EnvironmentFault):
        return _failed(executor, result, reference)
    error = result if isinstance(result, TenferroError) else None
    record = None if error is None else error.to_json()
    if error is not None and _raises(error, due):
        return Answer(executor.name, Verdict.PASS, reason=f"raises what is due: {error}", error=record)
    foreign = executor.peer.family == "external"
    if error is not None and (error.kind in _UNSUPPORTED if foreign else due.late and isinstance(error, LoweringError)):
        return Answer(executor.name, Verdict.UNSUPPORTED, reason=f"{error.kind}: {error}", error=record)
    outcome, way = "gives a result", "no error"
    if error is not None:
        facts = error.facts()
        outcome = f"raises {error_words(error.kind, facts.get('op'), facts.get('axis'))} ({error})"
        other = "op" if facts.get("op") not in (due.op, None, "") else "axis"
        way = f"error of another {other}" if error.kind == due.kind else f"{error.kind} instead"
    reason = f"{outcome} where {due} is due ({due.fault})"
    return Answer(executor.name, Verdict.MISMATCH, Comparison(value_class=way), reason, record)


def _raises(error: TenferroError, due: TenferroError | Refusal) -> bool:
    """Whether kind, op and axis agree (SEMANTICS 2.7); a command under test may leave out op and axis. A defect is never due."""
    facts, wanted = error.facts(), due.facts() if isinstance(due, TenferroError) else {"op": due.op, "axis": due.axis}

    def agrees(fact: str) -> bool:
        own, expected = facts.get(fact), wanted.get(fact)
        return own == expected or (isinstance(error, ForeignRefusal) and (own in (None, "") or expected is None))

    return not isinstance(error, Internal) and error.kind == due.kind and agrees("op") and agrees("axis")


def _compared(executor: Executor, reference: Reference, result: Comparison | TenferroError) -> Answer:
    """The verdict on outputs that were held to enclosures, unless these raised an error."""
    if isinstance(result, Comparison):
        return _verdict(executor.name, result)
    if isinstance(result, UnsupportedOp) and decomposing(reference.case.program):
        return _staged(executor, reference)
    verdict = Verdict.UNDECIDED if isinstance(result, UnsupportedOp) else Verdict.ERROR
    return Answer(executor.name, verdict, reason=str(result), error=result.to_json())


def _judge_derivative(executor: DerivativeExecutor, case: Case) -> Answer:
    """The verdict on the rules by which a derivative program was made."""
    if case.derivation is None:
        error: TenferroError = UnsupportedOp(op="program", reason=f"{executor.name} is about derivative programs")
        return Answer(executor.name, Verdict.UNSUPPORTED, reason=str(error), error=error.to_json())
    start = time.perf_counter()
    try:
        with defects_in("a derivative rule"):
            answer = _verdict(executor.name, compare_sides(*executor.sides(case)))
    except (LoweringError, ValidationError) as error:  # no enclosure, no rule of JAX's, or a value that is refused
        return Answer(executor.name, Verdict.UNDECIDED, reason=str(error), error=error.to_json())
    except TenferroError as error:
        return Answer(executor.name, Verdict.ERROR, reason=f"{error.kind}: {error}", error=error.to_json())
    return dataclasses.replace(answer, seconds={"compare": time.perf_counter() - start})


def _staged(executor: Executor, reference: Reference) -> Answer:
    try:
        return _verdict(executor.name, judge_stages(executor, reference.case))
    except UnsupportedOp as error:
        return Answer(executor.name, Verdict.UNDECIDED, reason=str(error), error=error.to_json())
    except TenferroError as error:
        return _failed(executor, error, reference)


def _verdict(name: str, comparison: Comparison) -> Answer:
    if comparison.outside:
        return Answer(name, Verdict.MISMATCH, comparison, comparison.reason)
    if comparison.decided < FLOOR * comparison.elements:
        some = f"{comparison.decided} of {comparison.elements} elements" if comparison.decided else "no element"
        return Answer(name, Verdict.UNDECIDED, comparison, f"the enclosure decides {some}")
    return Answer(name, Verdict.PASS, comparison)


def all_slots(case: Case) -> Case:
    """The same case with every computed slot as an output, in order of computation."""
    slots = tuple(s for ins in case.program.instructions for s in ins.output_slots)
    return Case(dataclasses.replace(case.program, output_slots=slots), case.inputs)


def first_wrong_slot(executor: Executor, case: Case) -> int | None:
    """The first computed slot whose value is outside its enclosure when every slot is an output.

    None where the program cannot be run so, or where watching makes the disagreement go away (XLA fuses differently).
    """
    watched = all_slots(case)
    reference = Reference(watched, NativeExecutor())
    try:
        execution = executor.run(watched)
        enclosures = reference.enclosures(executor.model)
    except TenferroError:
        return None
    native = reference.execution
    if isinstance(native, TenferroError):
        return None
    # outputs that are missing are none that is wrong
    answers = zip(watched.program.output_slots, execution.outputs, native.outputs, enclosures, strict=False)
    for slot, observed, expected, enclosure in answers:
        if compare([enclosure], None, [observed], [expected]).outside:
            return slot
    return None


__all__ = [
    "Reference",
    "all_slots",
    "failed",
    "first_wrong_slot",
    "judge",
    "judge_many",
    "judge_result",
    "prepare",
]
