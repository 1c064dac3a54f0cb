"""From a suspect to a finding: reduce and name it.

The signature is the key for de-duplication: ops of the reduced program, dtype, value class, attribution. Known findings
(with a page in docs/findings/) are matched in `fuzz.findings.known`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from fuzz.findings.alike import alike, class_of, either_sign
from fuzz.findings.known import Known, match, page_of
from fuzz.findings.naming import signature, subject
from fuzz.findings.reduce import Size, reduce_case, simplify_configuration
from fuzz.findings.reduce.draft import Draft
from fuzz.findings.reduce_module import MOST_READ, native_value, reduce_module
from fuzz.findings.suspect import MAKING, Suspect, evaluate_all, explained, start
from fuzz.records import Finding, ValueRow
from oracle.attribution import UNCLEAR, attribute, builds, hlo_pass
from oracle.case import Case, live
from oracle.compare import interval_words
from oracle.enclosure import MODELS, enclose
from oracle.given_case import given_case
from oracle.judge import Reference, judge
from oracle.peers import DerivativeExecutor, Executor, NativeExecutor, Pool
from oracle.peers.modules import module_or_reason
from oracle.unmade import unread
from oracle.verdict import Answer, Build, Verdict
from tenferro_ref.errors import TenferroError
from tenferro_ref.program import dumps, print_program
from tenferro_ref.stablehlo import Source
from tenferro_ref.tensor import Array

#: Elements of each output shown in a finding.
_ROWS = 64
#: The attribution of a disagreement that was not seen again.
NOT_REPEATED = "does not repeat"
#: How often a case that does not disagree again is run: an arbitrary value may be right by chance.
_ATTEMPTS = 4


def _cause(executor: Executor, case: Case, coarse: str, pool: Pool) -> str:
    """The attribution of a reduced case: by HLO pass where no option and no known rewrite explains it."""
    if case.refusal is not None or case.unmade:
        return coarse
    if coarse == UNCLEAR:
        coarse = attribute(executor, case, pool)
    name = "" if coarse.startswith(("option", "rewrite")) else hlo_pass(executor, case)
    return f"HLO pass: {name}" if name else coarse


def still_disagrees(suspect: Suspect, pool: Pool, times: int = 1) -> Callable[[Case], bool]:
    """Predicate of the reducer: whether one of `times` runs of a case ends as the suspect did (`_same_answer`)."""
    return lambda case: any(_same_answer(suspect, case, pool) is not None for _ in range(times))


def _same_answer(suspect: Suspect, case: Case, pool: Pool) -> Answer | None:
    """The answer of the suspect's executor, if it is of the same kind (`_of_one_kind`) and has the attribution."""
    answer = judge(suspect.executor, Reference(case, NativeExecutor()))
    return answer if _of_one_kind(answer, suspect.answer) and suspect.shares_cause(case, pool) else None


def _of_one_kind(answer: Answer, other: Answer) -> bool:
    """The same verdict and words of an error, and the same value class but for its sign."""
    return alike(answer, other) and either_sign(class_of(answer)) == either_sign(class_of(other))


def to_finding(
    suspect: Suspect,
    pool: Pool,
    known: tuple[Known, ...],
    *,
    programs: int,
    also: tuple[str, ...],
    budget_seconds: float = 20.0,
    builds_seconds: float | None = None,
    progress: Callable[[int, Size], None] | None = None,
) -> tuple[Finding, Case]:
    """Reduce a suspect to a finding with all that a stranger needs to know; gives the reduced case as well.

    Parameters
    ----------
    budget_seconds
        For reducing it.
    builds_seconds
        For running the other builds of a plugin; by default as long again.
    """
    derivation, suspect = suspect.case.derivation, _of_program(suspect)
    size = len(suspect.case.primal.instructions)
    suspect, seconds = _reduced(suspect, pool, budget_seconds, progress)
    case, answer = suspect.case, suspect.answer
    others: tuple[Build, ...] = ()
    if suspect.attribution not in (NOT_REPEATED, MAKING) and case.refusal is None:
        others = builds(suspect.executor, case, pool, budget_seconds if builds_seconds is None else builds_seconds)
    finding = Finding(
        signature=signature(case, answer, suspect.attribution),
        title=f"{subject(case)}: {class_of(answer) or answer.reason}",
        verdict=answer.verdict.value,
        executor=suspect.executor.name,
        also=also,
        op=suspect.op,
        dtype=suspect.dtype,
        value_class=class_of(answer),
        attribution=suspect.attribution,
        known="",
        programs=programs,
        instructions=len(case.primal.instructions),
        original_instructions=size,
        reduce_seconds=seconds,
        program_text=print_program(case.program),
        program_json=dumps(case.program),
        stablehlo=module_or_reason(case),
        inputs=tuple(
            (f"in{i}: {type_}", printed(a))
            for i, (type_, a) in enumerate(zip(case.program.input_types, case.inputs, strict=True))
        ),
        values=value_rows(suspect.executor, case) if answer.verdict is Verdict.MISMATCH else (),
        reason=answer.reason,
        builds=others,
        build=_build(suspect.executor),
        derivation="" if derivation is None else str(derivation),
        primal_text="" if case.derivation is None else print_program(case.derivation.primal),
    )
    return replace(finding, known=match(finding, known)), case


def printed(array: Array) -> str:
    """The elements of an array in the manner of NumPy; of more than `_ROWS` those at the edges, fewer where there are many axes."""
    edge = next((e for e in (3, 2) if prod(min(n, 2 * e) for n in array.shape) <= _ROWS), 1)
    return np.array2string(array, threshold=_ROWS, edgeitems=edge, separator=", ", floatmode="unique")


def recognise(suspect: Suspect, pool: Pool, known: tuple[Known, ...], budget_seconds: float) -> tuple[str, Case]:
    """The page of the known finding that a suspect is, "" if it is none, and the reduced case that says so."""
    found, _ = _reduced(_of_program(suspect), pool, budget_seconds, None)
    name, verdict = signature(found.case, found.answer, found.attribution), found.answer.verdict.value
    return page_of(name, verdict, found.executor.name, _build(found.executor), known), found.case


def _of_program(suspect: Suspect) -> Suspect:
    """The suspect without where its program comes from, unless that is what is checked: an executor is wrong about any program."""
    case = suspect.case
    checked = case.derivation is None or case.unmade or isinstance(suspect.executor, DerivativeExecutor)
    return suspect if checked else replace(suspect, case=replace(case, derivation=None))


def _reduced(
    suspect: Suspect, pool: Pool, budget_seconds: float, progress: Callable[[int, Size], None] | None
) -> tuple[Suspect, float]:
    """The suspect with its reduced case, the answer to that and the final attribution, and the seconds that it took.

    A disagreement that does not repeat is given back as it was found, with the attribution `NOT_REPEATED`; of several outputs the
    wrong one alone.
    """
    seconds = 0.0
    for begin, times in ((start(suspect, pool) if budget_seconds else suspect, 1), (suspect, _ATTEMPTS)):
        case, reproduced, disagrees = begin.case, True, still_disagrees(begin, pool, times)
        if tested := case.source is None or _as_a_program(case, disagrees):
            reduction = reduce_case(
                case, disagrees, evaluate=evaluate_all, budget_seconds=budget_seconds, progress=progress
            )
            case, seconds, reproduced = reduction.case, seconds + reduction.seconds, reduction.reproduced
        found = replace(begin, executor=_simplest(begin, case, pool)) if reproduced else suspect
        answer = answer_of(found.executor, case)
        # a program may be wrong in a second way, each time, beside the failure that does not repeat
        repeats = answer.verdict.is_disagreement and ((tested and reproduced) or _of_one_kind(answer, found.answer))
        if repeats and (reproduced or not budget_seconds):
            break
    if not repeats:
        return replace(suspect, case=_worst_alone(suspect), attribution=NOT_REPEATED), seconds
    found = replace(found, case=case, answer=answer)
    if budget_seconds and case.source is not None:
        # as a program of ours it does not disagree: the module itself is reduced
        started = time.monotonic()
        found = _smaller_module(found, case.source, pool, budget_seconds)
        case, seconds = found.case, seconds + time.monotonic() - started
    if budget_seconds and (simpler := _simpler(found, pool)):
        again, longer = _reduced(simpler, pool, budget_seconds, progress)
        if again.attribution != NOT_REPEATED:
            return again, seconds + longer
    return replace(found, attribution=_cause(found.executor, case, found.attribution, pool)), seconds


def _as_a_program(case: Case, disagrees: Callable[[Case], bool]) -> bool:
    """Whether a module that was handed in disagrees, too, as the program that is read of it: that is what `reduce_case` changes."""
    if case.refusal is not None or case.unmade or case.derivation is not None:
        return True
    program = Draft.of(case).build()
    return program is not None and disagrees(program)


def _worst_alone(suspect: Suspect) -> Case:
    """The program of the worst output, with the inputs that it reads; the case as it is where it has one output."""
    case, worst = suspect.case, suspect.answer.comparison.worst_output
    if worst is None or len(case.program.output_slots) < 2 or case.refusal is not None or case.derivation is not None:
        return case
    draft = Draft.of(case)
    draft.outputs = [case.program.output_slots[worst]]
    draft.prune()
    return draft.build() or case


def _smaller_module(suspect: Suspect, source: Source, pool: Pool, budget_seconds: float) -> Suspect:
    """The suspect with the smallest module found that disagrees alike, and the answer to that: the next run may be right by chance."""
    smallest = suspect
    most = max(MOST_READ, len(suspect.case.program.instructions))

    def made(source: Source, arguments: tuple[Array, ...]) -> Case:
        return unread(source, arguments) if suspect.case.unmade else given_case(source, arguments, pool.reader, most)

    def shows(source: Source, arguments: tuple[Array, ...]) -> bool:
        nonlocal smallest
        try:
            case = made(source, arguments)
            answer = _same_answer(suspect, case, pool)
        except TenferroError:  # a module that is not read as a program
            return False
        if answer is not None:
            smallest = replace(suspect, case=case, answer=answer)
        return answer is not None

    value_of = native_value(pool.reader)
    reduce_module(source, suspect.case.arguments, shows, pool.reader, value_of=value_of, budget_seconds=budget_seconds)
    return smallest


def _simpler(suspect: Suspect, pool: Pool) -> Suspect | None:
    """The suspect with one of its wrong elements, if that tells the cause, or without its last instruction."""
    alone = explained(suspect, pool)
    return alone if alone is not suspect else _without_last(suspect, pool)


def _without_last(suspect: Suspect, pool: Pool) -> Suspect | None:
    """The suspect without its last instruction, if what that reads is wrong for the same cause, in whatever way.

    The reducer keeps the value class, which an instruction behind the wrong one may have changed.
    """
    program = suspect.case.program
    unlike = suspect.case.derivation or suspect.case.source or suspect.attribution == UNCLEAR
    if suspect.answer.verdict is not Verdict.MISMATCH or unlike:
        return None
    for slot in program.instructions[-1].input_slots if program.instructions else ():
        if slot in program.producers:
            case = replace(suspect.case, program=live(replace(program, output_slots=(slot,))))
            answer = judge(suspect.executor, Reference(case, NativeExecutor()))
            if answer.verdict is Verdict.MISMATCH and suspect.shares_cause(case, pool):
                return replace(suspect, case=case, answer=answer)
    return None


def _build(executor: Executor) -> str:
    """What its library reports of itself; "" if it does not live long enough to say so."""
    try:
        return executor.build
    except TenferroError:
        return ""


def answer_of(executor: Executor, case: Case) -> Answer:
    """The answer; of several runs the first that disagrees."""
    for _ in range(_ATTEMPTS):
        answer = judge(executor, Reference(case, NativeExecutor()))
        if answer.verdict.is_disagreement:
            break
    return answer


def _simplest(suspect: Suspect, case: Case, pool: Pool) -> Executor:
    """The configuration nearest to the default under which the case fails as the suspect did, if it was drawn."""
    executor = suspect.executor
    if not (isinstance(executor, NativeExecutor) and executor.peer.kind == "native" and executor.peer.build):
        return executor

    def fails(executor: NativeExecutor) -> bool:
        return still_disagrees(replace(suspect, executor=executor), pool)(case)

    return simplify_configuration(executor, fails)


def value_rows(executor: Executor, case: Case) -> tuple[ValueRow, ...]:
    """Expected and observed, element by element, for the first elements of each output; none where an error is due."""
    if case.refusal is not None:
        return ()
    try:
        outputs = executor.run(case).outputs
        enclosures = enclose(case.program, case.inputs, MODELS[executor.model])
    except TenferroError:
        return ()
    rows = []
    for number, (observed, enclosure) in enumerate(zip(outputs, enclosures, strict=False)):  # some may be missing
        if observed.shape != enclosure.shape:
            continue
        outside = ~enclosure.contains(observed)
        indices = sorted(np.ndindex(observed.shape), key=lambda i: not outside[i])[:_ROWS]
        rows += [
            ValueRow(
                f"out{number}", str(list(i)), interval_words(enclosure, i), repr(observed[i].item()), bool(outside[i])
            )
            for i in indices
        ]
    return tuple(rows)
