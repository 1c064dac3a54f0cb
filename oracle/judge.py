"""The judge: one case, its reference (native answer and enclosures), and the verdict on each executor's answer.

An executor that must keep bits is compared with the native answer bit for bit. Everybody else, the native executor
included, is held to enclosures: what is inside the strictest model is right on every platform; what is not is held to
the executor's own model, and outside that it is wrong, whatever the others say.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from oracle.case import Case, Refusal, by_program, error_words, live
from oracle.compare import Asked, compare, compare_bits, compare_many
from oracle.enclosure import MODELS, Enclosure, enclose, enclose_stacked, sets_at_once
from oracle.peers import Execution, Executor, ForeignRefusal, NativeExecutor, attempt, defects_in
from oracle.staged import decomposing, judge_stages, refuses, refuses_dead
from oracle.verdict import Answer, Comparison, Verdict
from tenferro_ref.errors import (
    EnvironmentFault,
    Internal,
    LoweringError,
    PjrtCall,
    TenferroError,
    UnsupportedDType,
    UnsupportedOp,
    WorkerDied,
)
from tenferro_ref.program import GraphProgram
from tenferro_ref.tensor import Array, same_bits

#: Inside this model is right for everybody; outside it but inside the executor's own is forgiven, and counted.
STRICT_MODEL = "ieee"


@dataclass(eq=False)
class Reference:
    """What a case should give: computed once, shared by all executors.

    Attributes
    ----------
    stack
        The input sets of the program that are enclosed together with this one, if they are.
    """

    case: Case
    native: NativeExecutor
    stack: Stack | None = field(default=None, init=False)
    _enclosures: dict[str, list[Enclosure]] = field(default_factory=dict, init=False)
    #: What was found inside a model, by its name.
    _right: list[tuple[str, tuple[Array, ...], Comparison]] = field(default_factory=list, init=False)

    @cached_property
    def execution(self) -> Execution | TenferroError:
        """The native answer, or the error that the native executor raises."""
        return attempt(self.native, self.case)

    @cached_property
    def _live(self) -> GraphProgram:
        """The program without what no output depends on."""
        return live(self.case.program)

    def enclosures(self, model: str) -> list[Enclosure]:
        """One enclosure an output.

        Raises
        ------
        UnsupportedOp
            The program has an op without an enclosure.
        Internal
            A rule has a defect.
        """
        if model not in self._enclosures:
            own = self.stack.enclosures_of(self, model) if self.stack else None
            with defects_in("an enclosure"):
                self._enclosures[model] = own or enclose(self._live, self.case.inputs, MODELS[model])
        return self._enclosures[model]

    def known(self, model: str, outputs: tuple[Array, ...]) -> Comparison | None:
        """What was said of the same bits, if they were inside the strictest model, or inside this one."""
        for held, seen, comparison in self._right:
            if held in (STRICT_MODEL, model) and (
                seen is outputs or (len(seen) == len(outputs) and all(map(same_bits, seen, outputs)))
            ):
                return comparison
        return None

    def note(self, model: str, outputs: tuple[Array, ...], comparison: Comparison) -> None:
        """Remember what is inside a model."""
        self._right.append((model, outputs, comparison))

    def compare(self, model: str, outputs: tuple[Array, ...]) -> Comparison:
        """Hold outputs against the enclosures of the strictest model, and if need be of `model`.

        Raises
        ------
        UnsupportedOp
            The program has an op without an enclosure.
        """
        if known := self.known(model, outputs):
            return known
        native = self.execution.outputs if isinstance(self.execution, Execution) else ()
        strict = self.enclosures(STRICT_MODEL)
        comparison = compare(strict, None, outputs, native)
        if not comparison.outside:
            self.note(STRICT_MODEL, outputs, comparison)
        elif model != STRICT_MODEL:
            comparison = compare(self.enclosures(model), strict, outputs, native)
        return comparison


@dataclass(frozen=True, eq=False)
class Stack:
    """Input sets of one program, enclosed at once; their axis is the last."""

    references: Sequence[Reference]
    _enclosures: dict[str, list[Enclosure] | None] = field(default_factory=dict, init=False)

    @cached_property
    def _places(self) -> Mapping[Reference, int]:
        return {reference: place for place, reference in enumerate(self.references)}

    def enclosures(self, model: str) -> list[Enclosure] | None:
        """One enclosure an output for all sets; None where each has to be enclosed for itself.

        Raises
        ------
        Internal
            A rule has a defect.
        """
        if model not in self._enclosures:
            program = live(self.references[0].case.program)
            sets = [reference.case.inputs for reference in self.references]
            try:
                with defects_in("an enclosure"):
                    self._enclosures[model] = enclose_stacked(program, sets, MODELS[model])
            except UnsupportedOp:  # it may be one set that has none
                self._enclosures[model] = None
        return self._enclosures[model]

    def enclosures_of(self, reference: Reference, model: str) -> list[Enclosure] | None:
        """Those of one set."""
        together, place = self.enclosures(model), self._places[reference]
        return None if together is None else [e.map(lambda a: a[..., place]) for e in together]

    def of(self, references: Collection[Reference], enclosures: list[Enclosure]) -> list[Enclosure]:
        """Those of some of the sets, still together."""
        if len(references) == len(self.references):
            return enclosures
        places = [self._places[reference] for reference in references]
        return [e.map(lambda a: a[..., places]) for e in enclosures]


def prepare(references: Sequence[Reference]) -> None:
    """Compute now what every judgement needs, so that it does not fall to the threads that judge.

    The input sets of a program are compiled once, and enclosed and compared together.
    """
    sound: dict[Reference, Execution] = {}
    for group in by_program([reference.case for reference in references]):
        chosen = [references[i] for i in group]
        for reference, result in zip(chosen, chosen[0].native.run_many([r.case for r in chosen]), strict=True):
            reference.__dict__["execution"] = result
        enclosable = {r: r.execution for r in chosen if isinstance(r.execution, Execution)}
        if enclosable:
            with contextlib.suppress(UnsupportedOp, Internal):  # said again when somebody is judged
                _enclose(list(enclosable))
                sound |= enclosable
    if sound:
        _settle({r: execution.outputs for r, execution in sound.items()}, references[0].native.model)


def _enclose(references: Sequence[Reference]) -> None:
    """Enclose input sets of a program."""
    first = references[0].case
    size = sets_at_once(live(first.program), first.shapes) if len(references) > 1 else 1
    for start in range(0, len(references), size):
        part = references[start : start + size]
        if len(part) > 1:
            stack = Stack(part)
            for reference in part:
                reference.stack = stack
            stack.enclosures(STRICT_MODEL)
        else:
            part[0].enclosures(STRICT_MODEL)


def _settle(results: Mapping[Reference, tuple[Array, ...]], model: str) -> None:
    """Compare the results of many programs at once, and note what is inside the strictest model, or else inside `model`.

    What is left open, something outside or a defect of an enclosure, is told when each is judged.
    """
    for held in dict.fromkeys((STRICT_MODEL, model)):
        programs: dict[Stack | Reference, list[Reference]] = {}
        for reference, outputs in results.items():
            if isinstance(reference.execution, Execution) and not reference.known(held, outputs):
                programs.setdefault(reference.stack or reference, []).append(reference)
        asked: dict[Asked, list[Reference]] = {}
        for program, references in programs.items():
            with contextlib.suppress(UnsupportedOp, Internal):
                if question := _question(program, {r: results[r] for r in references}, held):
                    asked[question] = references
        with np.errstate(all="ignore"):
            told = compare_many(list(asked))
        for references, comparisons in zip(asked.values(), told, strict=True):
            for reference, comparison in zip(references, comparisons, strict=True):
                if comparison is not None:
                    reference.note(held, results[reference], comparison)


def _question(program: Stack | Reference, results: Mapping[Reference, tuple[Array, ...]], held: str) -> Asked | None:
    """What to ask of a program, or of some of its input sets; None if each set has to be enclosed for itself."""
    reference = program.enclosures(held)
    strict = None if held == STRICT_MODEL else program.enclosures(STRICT_MODEL)
    if reference is None or (strict is None and held != STRICT_MODEL):
        return None
    native = [r.execution.outputs for r in results if isinstance(r.execution, Execution)]
    if isinstance(program, Reference):
        return Asked(reference, strict, list(results.values()), native)
    reference, strict = (found and program.of(results, found) for found in (reference, strict))
    return Asked(reference or [], strict, list(results.values()), native, stacked=True)


def judge(executor: Executor, reference: Reference) -> Answer:
    """The verdict on `executor` for one case; never raises for what the executor does."""
    own = executor == reference.native
    return judge_result(executor, reference, reference.execution if own else attempt(executor, reference.case))


def judge_many(executor: Executor, references: Sequence[Reference]) -> list[Answer]:
    """`judge` for several cases, which may share a module.

    What disagrees in company is asked again alone, since only that can be reduced. Wrong in company and right alone is
    wrong all the same.
    """
    if all(executor == reference.native for reference in references):
        return [judge(executor, reference) for reference in references]
    results = executor.run_many([reference.case for reference in references])
    start = time.perf_counter()
    _settle(
        {
            reference: result.outputs
            for reference, result in zip(references, results, strict=True)
            if isinstance(result, Execution) and not executor.bit_exact(reference.case)
        },
        executor.model,
    )
    share = (time.perf_counter() - start) / max(1, len(references))
    answers = []
    for reference, result in zip(references, results, strict=True):
        answer = judge_result(executor, reference, result)
        if "compare" in answer.seconds:
            answer.seconds["compare"] += share
        if answer.verdict.is_disagreement and isinstance(result, Execution) and result.shared:
            alone = judge(executor, reference)
            if alone.verdict.is_disagreement:
                answer = alone
        answers.append(answer)
    return answers


def judge_result(executor: Executor, reference: Reference, result: Execution | TenferroError) -> Answer:
    """The verdict on what an executor gave."""
    if reference.case.refusal is not None:
        return _refusal(executor, reference, reference.case.refusal, result)
    expected = reference.execution
    if isinstance(result, TenferroError):
        return _failed(executor, result, reference)
    if isinstance(expected, TenferroError):
        if refuses(expected) and executor.peer.family != "native":
            # singular, not positive definite, not finite: StableHLO has no errors, and leaves the result open
            reason = f"the native executor refuses the values of a matrix: {expected}"
            return Answer(executor.name, Verdict.UNDECIDED, reason=reason, error=expected.to_json())
        reason = f"gave a result where the native executor raises {expected.kind}: {expected}"
        return Answer(executor.name, Verdict.MISMATCH, reason=reason, error=expected.to_json())
    start = time.perf_counter()
    answer = _compared(executor, reference, result, expected.outputs)
    seconds = {**result.seconds, "compare": time.perf_counter() - start}
    return dataclasses.replace(answer, seconds=seconds)


def _failed(executor: Executor, error: TenferroError, reference: Reference) -> Answer:
    record, expected = error.to_json(), reference.execution
    if isinstance(expected, TenferroError) and error is not expected and _raises(error, expected):
        return Answer(executor.name, Verdict.PASS, reason=f"raises as the native executor does: {error}", error=record)
    if error is expected and refuses(error):
        reason = f"the reference itself refuses the values of a matrix: {error}"
        return Answer(executor.name, Verdict.UNDECIDED, reason=reason, error=record)
    if error is not expected and refuses_dead(error, reference.case):
        # a refusal is no effect that the passes keep: removing what nothing reads is right, and so is running it
        return Answer(executor.name, Verdict.PASS, reason=f"refuses what no output depends on: {error}", error=record)
    if isinstance(error, WorkerDied):
        verdict = Verdict.TIMEOUT if error.how.startswith("timeout") else Verdict.CRASH
    elif isinstance(error, LoweringError) or (isinstance(error, PjrtCall) and error.code == "UNIMPLEMENTED"):
        verdict = Verdict.UNSUPPORTED
    else:
        verdict = Verdict.ERROR
    return Answer(executor.name, verdict, reason=f"{error.kind}: {error}", error=record)


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
    said, way = "gives a result", "no error"
    if error is not None:
        facts = error.facts()
        said = f"raises {error_words(error.kind, facts.get('op'), facts.get('axis'))} ({error})"
        other = "op" if facts.get("op") not in (due.op, None, "") else "axis"
        way = f"error of another {other}" if error.kind == due.kind else f"{error.kind} instead"
    reason = f"{said} where {due} is due ({due.fault})"
    return Answer(executor.name, Verdict.MISMATCH, Comparison(value_class=way), reason, record)


def _raises(error: TenferroError, due: TenferroError | Refusal) -> bool:
    """Kind, op and axis agree (SEMANTICS 2.7), as far as a command under test says them."""
    facts, wanted = error.facts(), due.facts() if isinstance(due, TenferroError) else {"op": due.op, "axis": due.axis}

    def agrees(fact: str) -> bool:
        said, want = facts.get(fact), wanted.get(fact)
        return said == want or (isinstance(error, ForeignRefusal) and (said in (None, "") or want is None))

    return error.kind == due.kind and agrees("op") and agrees("axis")


def _compared(executor: Executor, reference: Reference, execution: Execution, native: tuple[Array, ...]) -> Answer:
    if executor != reference.native and executor.bit_exact(reference.case):
        comparison = compare_bits(native, execution.outputs)
        return _verdict(executor.name, comparison)
    try:
        return _verdict(executor.name, reference.compare(executor.model, execution.outputs))
    except UnsupportedOp as error:
        if decomposing(reference.case.program):
            return _staged(executor, reference)
        return Answer(executor.name, Verdict.UNDECIDED, reason=str(error), error=error.to_json())
    except Internal as error:
        return Answer(executor.name, Verdict.ERROR, reason=str(error), error=error.to_json())


def _staged(executor: Executor, reference: Reference) -> Answer:
    try:
        return _verdict(executor.name, judge_stages(executor, reference.case))
    except UnsupportedOp as error:
        return Answer(executor.name, Verdict.UNDECIDED, reason=str(error), error=error.to_json())
    except TenferroError as error:
        return _failed(executor, error, reference)


def _verdict(name: str, comparison: Comparison) -> Answer:
    if comparison.outside:
        index = list(comparison.worst_index or ())
        reason = (
            f"output {comparison.worst_output}{index}: {comparison.value_class}: "
            f"{comparison.observed} is not in {comparison.expected} ({comparison.outside} of {comparison.elements} elements)"
        )
        return Answer(name, Verdict.MISMATCH, comparison, reason)
    if comparison.elements and not comparison.decided:
        return Answer(name, Verdict.UNDECIDED, comparison, "the enclosure decides no element")
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
