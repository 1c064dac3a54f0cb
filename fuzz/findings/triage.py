"""From a disagreement to a finding: locate, reduce, name. What makes the difference is found by `oracle.attribution`.

The signature is the key for de-duplication: ops of the reduced program, dtype, value class, attribution. Known findings
(with a page in docs/findings/) are matched in `fuzz.findings.known`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from fuzz.findings.alike import alike, class_of, complaint, either_sign, how_of
from fuzz.findings.known import Known, match, page_of
from fuzz.findings.naming import named, signature, subject, with_operands
from fuzz.findings.reduce import Size, cut_out, narrowed, reduce_case, simplify_configuration
from fuzz.findings.reduce_module import reduce_module
from fuzz.records import Finding, ValueRow
from oracle.attribution import EVERY_LANE, UNCLEAR, attribute, builds, hlo_pass
from oracle.case import Case, live
from oracle.compare import interval_words
from oracle.derivation import derived, kept_seeds
from oracle.enclosure import MODELS, enclose
from oracle.given_case import given_case
from oracle.judge import Reference, all_slots, first_wrong_slot, judge, judge_many
from oracle.peers import DerivativeExecutor, Executor, NativeExecutor, Pool
from oracle.peers.modules import module_or_reason
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
#: In a program of up to so many instructions that fails, each is run alone.
_RUN_ALONE = 16


@dataclass(frozen=True, eq=False)
class Suspect:
    """A disagreement before reduction, with where and why it seems to arise.

    A configuration that was drawn with the program stays as it is while the program changes.

    Attributes
    ----------
    how
        The kind of error, which goes into the group; by default the value class, or the error, of the answer.
    """

    executor: Executor
    case: Case
    answer: Answer
    op: str
    dtype: str
    attribution: str
    how: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "executor", self.executor.settled(self.case))

    def shares_cause(self, case: Case, pool: Pool) -> bool:
        """Whether a smaller case has the attribution of this one; any does if this one has none."""
        return self.attribution == UNCLEAR or attribute(self.executor, case, pool) == self.attribution

    @property
    def group(self) -> tuple[str, ...]:
        """What suspects with one cause probably share: one of each group is reduced."""
        # one option shows in many ops, one rewrite in many dtypes and value classes: they must not make many groups
        if self.attribution.startswith("option"):
            return (self.answer.verdict.value, self.attribution)
        if self.attribution.startswith("rewrite"):
            return (self.answer.verdict.value, self.op, self.attribution)
        peer = self.executor.peer
        side = str(peer) if peer.family == "native" else "xla"
        if peer.kind == "native" and peer.build:  # each program has another configuration
            side = "native-drawn"
        if self.answer.verdict is Verdict.ERROR:  # a compiler's words tell causes apart, the program's output does not
            return (self.answer.verdict.value, complaint(self.answer), self.attribution, side)
        return (self.answer.verdict.value, self.op, self.dtype, self.how or how_of(self.answer), self.attribution, side)


def inspect(executor: Executor, case: Case, answer: Answer, pool: Pool) -> Suspect:
    """Locate and attribute a disagreement."""
    executor = executor.settled(case)
    case, answer = _worst_output(executor, case, answer)
    whole = _explained(Suspect(executor, case, answer, "", "", attribute(executor, case, pool)), pool)
    case, answer = whole.case, whole.answer
    if case.refusal is not None:  # the answer to one fault is wrong, wherever that fault is
        return replace(whole, op=case.refusal.op or "", how=f"{case.refusal.fault}: {how_of(answer)}")
    if isinstance(executor, DerivativeExecutor):
        core = _rule_alone(whole, pool)
        return replace(whole, op=subject(whole.case if core is None else core.case))
    if answer.verdict is Verdict.MISMATCH:
        slot = first_wrong(executor, case)
        core = None if slot is None else _alone(whole, slot, pool)
    else:
        slot, core = _first_failing(whole, pool)
    if slot is None:
        slot = next(iter(_worst_slots(case, answer) or case.program.output_slots), None)
    producer = None if slot is None else case.program.producers.get(slot)
    dtype = "" if slot is None else case.program.slot_types[slot].dtype.name
    if core is not None:
        return replace(whole, op=named(core.case.program, 0), dtype=dtype, how=how_of(core.answer))
    return replace(whole, op="" if producer is None else with_operands(case, producer), dtype=dtype)


def _worst_output(executor: Executor, case: Case, answer: Answer) -> tuple[Case, Answer]:
    """The worst output alone, if it is as wrong by itself: another wrong output may have another cause."""
    outputs = case.program.output_slots
    slots = _worst_slots(case, answer)
    if answer.verdict is not Verdict.MISMATCH or not slots or len(outputs) < 2 or case.derivation or case.source:
        return case, answer
    small = replace(case, program=live(replace(case.program, output_slots=slots)))
    alone = judge(executor, Reference(small, NativeExecutor()))
    return (small, alone) if alike(alone, answer) and class_of(alone) == class_of(answer) else (case, answer)


def _worst_slots(case: Case, answer: Answer) -> tuple[int, ...]:
    """The slot of the worst output; none where that is missing, or a value inside a decomposition that is judged in stages."""
    worst = answer.comparison.worst_output
    return () if worst is None else case.program.output_slots[worst : worst + 1]


def _explained(suspect: Suspect, pool: Pool) -> Suspect:
    """The first wrong element alone, if no lane explains all wrong elements but one explains that: the others may have another cause."""
    case, unexplained = suspect.case, suspect.attribution in (EVERY_LANE, UNCLEAR)
    if not unexplained or suspect.answer.comparison.outside < 2 or case.derivation or case.source:
        return suspect
    alone = _first_element(replace(suspect, attribution=UNCLEAR), pool)
    if alone is None or class_of(alone.answer) != class_of(suspect.answer):
        return suspect
    cause = attribute(suspect.executor, alone.case, pool)
    return suspect if cause in (EVERY_LANE, UNCLEAR) else replace(alone, attribution=cause)


def _first_element(suspect: Suspect, pool: Pool) -> Suspect | None:
    """The first wrong element alone, if it disagrees for the same cause."""
    comparison = suspect.answer.comparison
    wrong = _worst_slots(suspect.case, suspect.answer)
    case = narrowed(suspect.case, wrong[0], comparison.worst_index or ()) if wrong else None
    return _with_case(suspect, case, pool) if case else None


def first_wrong(executor: Executor, case: Case) -> int | None:
    """The first slot that is wrong when all are watched, else the first instruction that is wrong alone.

    Watching changes what is compiled: the disagreement may go away, or the module be refused. Instructions are run alone
    only on executors that take them all in one module.
    """
    slot = first_wrong_slot(executor, case)
    if slot is not None or executor.programs_a_module == 1:
        return slot
    values = evaluate_all(case)
    slots = (ins.output_slots[0] for ins in live(case.program).instructions)
    alone = {slot: small for slot in slots if (small := cut_out(case, slot, lambda _: values))}
    answers = judge_many(executor, [Reference(small, NativeExecutor()) for small in alone.values()])
    wrong = (slot for slot, answer in zip(alone, answers, strict=True) if answer.verdict is Verdict.MISMATCH)
    return next(wrong, None)


def _first_failing(suspect: Suspect, pool: Pool) -> tuple[int | None, Suspect | None]:
    """The result of the first instruction that fails alone as the program does, and that instruction alone.

    Most instructions pass, so that this is cheaper than a search, of which each step that succeeds may end a process.
    """
    instructions = suspect.case.program.instructions
    if suspect.answer.verdict is Verdict.TIMEOUT or len(instructions) > _RUN_ALONE:
        return None, None
    values = evaluate_all(suspect.case)
    for ins in instructions:
        slot = ins.output_slots[0]
        small = cut_out(suspect.case, slot, lambda _: values)
        if core := small and _with_case(suspect, small, pool):
            return slot, core
    return None, None


def _rule_alone(suspect: Suspect, pool: Pool) -> Suspect | None:
    """The derivative of the first instruction of the primal program that is wrong alone."""
    derivation = suspect.case.derivation
    assert derivation is not None
    primal = Case(derivation.primal, suspect.case.inputs[: len(derivation.primal.input_slots)])
    seeds, values = kept_seeds(suspect.case), evaluate_all(primal)
    for ins in primal.program.instructions:
        small = cut_out(primal, ins.output_slots[0], lambda _: values)
        made = small and derived(small, derivation.transforms, seeds)
        if core := made and _with_case(suspect, made, pool):
            return core
    return None


def _alone(suspect: Suspect, slot: int, pool: Pool) -> Suspect | None:
    """The instruction that makes `slot` alone, on the operands that it should get, if it disagrees for the same cause.

    What follows it in the program changes how the wrong value looks in the output; neither the group nor the reduction
    should depend on that.
    """
    case = cut_out(suspect.case, slot, evaluate_all)
    return None if case is None else _with_case(suspect, case, pool)


def _with_case(suspect: Suspect, case: Case, pool: Pool) -> Suspect | None:
    """The suspect with a smaller case, if that disagrees for the same cause."""
    answer = judge(suspect.executor, Reference(case, NativeExecutor()))
    if not alike(answer, suspect.answer) or not suspect.shares_cause(case, pool):
        return None
    return replace(suspect, case=case, answer=answer)


def _start(suspect: Suspect, pool: Pool) -> Suspect:
    """Where to begin reducing: the worst output, the guilty instruction, the wrong element alone, as far as that still disagrees.

    Each saves many tests that a search from the whole program would need.
    """
    if suspect.case.refusal is not None:
        return suspect
    if isinstance(suspect.executor, DerivativeExecutor):
        return _rule_alone(suspect, pool) or suspect
    worst, answer = _worst_output(suspect.executor, suspect.case, suspect.answer)
    suspect = replace(suspect, case=worst, answer=answer)  # as it was attributed
    program = worst.program
    guilty = [
        ins.output_slots[0]
        for i, ins in enumerate(program.instructions)
        if (named(program, i), program.slot_types[ins.output_slots[0]].dtype.name) == (suspect.op, suspect.dtype)
    ]
    suspect = next(filter(None, (_alone(suspect, slot, pool) for slot in guilty)), suspect)
    if suspect.answer.verdict is not Verdict.MISMATCH:
        return suspect
    return _first_element(suspect, pool) or suspect


def _cause(executor: Executor, case: Case, coarse: str, pool: Pool) -> str:
    """The attribution of a reduced case: by HLO pass where no option and no known rewrite explains it."""
    if case.refusal is not None:
        return coarse
    if coarse == UNCLEAR:
        coarse = attribute(executor, case, pool)
    name = "" if coarse.startswith(("option", "rewrite")) else hlo_pass(executor, case)
    return f"HLO pass: {name}" if name else coarse


def still_disagrees(suspect: Suspect, pool: Pool, times: int = 1) -> Callable[[Case], bool]:
    """Predicate of the reducer: same executor, same verdict, same words of an error, same value class but for its sign, same attribution.

    A case is run up to `times` times until it does.
    """
    want = suspect.answer

    def once(case: Case) -> bool:
        answer = judge(suspect.executor, Reference(case, NativeExecutor()))
        if not alike(answer, want) or either_sign(class_of(answer)) != either_sign(class_of(want)):
            return False
        return suspect.shares_cause(case, pool)

    return lambda case: any(once(case) for _ in range(times))


def evaluate_all(case: Case) -> Mapping[int, Array]:
    """Native value of every slot; empty where the program cannot be run."""
    watched = all_slots(case)
    try:
        outputs = NativeExecutor(passes=()).run(watched).outputs
    except TenferroError:
        return {}
    values = dict(zip(case.program.input_slots, case.inputs, strict=True))
    values.update(zip(watched.program.output_slots, outputs, strict=True))
    return values


def to_finding(
    suspect: Suspect,
    pool: Pool,
    known: tuple[Known, ...],
    *,
    programs: int,
    also: tuple[str, ...],
    budget_seconds: float = 20.0,
    progress: Callable[[int, Size], None] | None = None,
) -> tuple[Finding, Case]:
    """Reduce a suspect to a finding with all that a stranger needs to know; gives the reduced case as well.

    Parameters
    ----------
    budget_seconds
        For reducing it; running the other builds of a plugin may take as long again.
    """
    derivation, suspect = suspect.case.derivation, _of_program(suspect)
    size = len(suspect.case.primal.instructions)
    suspect, seconds = _reduced(suspect, pool, budget_seconds, progress)
    case, answer = suspect.case, suspect.answer
    others: tuple[Build, ...] = ()
    if suspect.attribution != NOT_REPEATED and case.refusal is None:
        others = builds(suspect.executor, case, pool, budget_seconds)
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
            (f"in{i}: {type_}", np.array2string(a, threshold=_ROWS, separator=", ", floatmode="unique"))
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


def recognise(suspect: Suspect, pool: Pool, known: tuple[Known, ...], budget_seconds: float) -> tuple[str, Case]:
    """The page of the known finding that a suspect is, "" if it is none, and the reduced case that says so."""
    found, _ = _reduced(_of_program(suspect), pool, budget_seconds, None)
    name, verdict = signature(found.case, found.answer, found.attribution), found.answer.verdict.value
    return page_of(name, verdict, found.executor.name, _build(found.executor), known), found.case


def _of_program(suspect: Suspect) -> Suspect:
    """The suspect without where its program comes from, unless that is what is checked: an executor is wrong about any program."""
    checked = suspect.case.derivation is None or isinstance(suspect.executor, DerivativeExecutor)
    return suspect if checked else replace(suspect, case=replace(suspect.case, derivation=None))


def _reduced(
    suspect: Suspect, pool: Pool, budget_seconds: float, progress: Callable[[int, Size], None] | None
) -> tuple[Suspect, float]:
    """The suspect with its reduced case, the answer to that and the final attribution, and the seconds that it took.

    A disagreement that does not repeat is given back as it was found, with the attribution `NOT_REPEATED`.
    """
    seconds = 0.0
    for start, times in ((_start(suspect, pool) if budget_seconds else suspect, 1), (suspect, _ATTEMPTS)):
        reduction = reduce_case(
            start.case,
            still_disagrees(start, pool, times),
            evaluate=evaluate_all,
            budget_seconds=budget_seconds,
            progress=progress,
        )
        case, seconds = reduction.case, seconds + reduction.seconds
        found = replace(start, executor=_simplest(start, case, pool)) if reduction.reproduced else suspect
        answer = _answer(found.executor, case)
        if answer.verdict.is_disagreement and (reduction.reproduced or not budget_seconds):
            break
    if not answer.verdict.is_disagreement:
        return replace(suspect, attribution=NOT_REPEATED), seconds
    found = replace(found, case=case, answer=answer)
    if budget_seconds and case.source is not None:
        # as a program of ours it does not disagree: the module itself is reduced
        started = time.monotonic()
        found = _smaller_module(found, case.source, pool, budget_seconds)
        case, seconds = found.case, seconds + time.monotonic() - started
    if budget_seconds and (unread := _without_last(found, pool)):
        again, longer = _reduced(unread, pool, budget_seconds, progress)
        if again.attribution != NOT_REPEATED:
            return again, seconds + longer
    return replace(found, attribution=_cause(found.executor, case, found.attribution, pool)), seconds


def _smaller_module(suspect: Suspect, source: Source, pool: Pool, budget_seconds: float) -> Suspect:
    """The suspect with the smallest module found that disagrees alike."""
    disagrees = still_disagrees(suspect, pool)

    def shows(source: Source, arguments: tuple[Array, ...]) -> bool:
        try:
            return disagrees(given_case(source, arguments, pool.reader))
        except TenferroError:  # a module that is not read as a program
            return False

    reduced = reduce_module(source, suspect.case.arguments, shows, pool.reader, budget_seconds=budget_seconds)
    if not reduced.steps:
        return suspect
    case = given_case(reduced.source, reduced.arguments, pool.reader)
    return replace(suspect, case=case, answer=_answer(suspect.executor, case))


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


def _answer(executor: Executor, case: Case) -> Answer:
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
