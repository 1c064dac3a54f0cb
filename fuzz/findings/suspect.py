"""`Suspect`: a disagreement with where and why it seems to arise. What makes the difference is found by `oracle.attribution`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fuzz.findings.alike import alike, class_of, complaint, how_of
from fuzz.findings.naming import named, subject, with_operands
from fuzz.findings.reduce import cut_out, narrowed
from fuzz.findings.reduce_module import taken
from oracle.attribution import EVERY_LANE, UNCLEAR, attribute
from oracle.case import Case, live
from oracle.derivation import derived_alike
from oracle.given_case import given_case
from oracle.judge import Reference, all_slots, first_wrong_slot, judge, judge_many
from oracle.peers import DerivativeExecutor, Executor, NativeExecutor, Pool
from oracle.verdict import Answer, Verdict
from tenferro_ref.errors import TenferroError
from tenferro_ref.stablehlo import Source
from tenferro_ref.tensor import Array

#: The attribution where this project failed to make the case.
MAKING = "this project"
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
        return self.attribution in (UNCLEAR, MAKING) or attribute(self.executor, case, pool) == self.attribution

    @property
    def cause(self) -> tuple[str, ...]:
        """What suspects with one cause probably share, whichever build shows it."""
        verdict = self.answer.verdict.value
        # one option or rewrite shows in many dtypes and value classes: they must not make many groups
        if self.attribution.startswith(("option", "rewrite")):
            return (verdict, self.op, self.attribution)
        if self.attribution == MAKING or self.answer.verdict is Verdict.ERROR:
            # a compiler's words tell causes apart, the program's output does not
            return (verdict, complaint(self.answer), self.attribution)
        return (verdict, self.op, self.dtype, self.how or how_of(self.answer), self.attribution)

    @property
    def group(self) -> tuple[str, ...]:
        """The cause and the build: one suspect of a group is reduced, unless the build gets wrong what another build's was reduced to."""
        peer = self.executor.peer
        if self.attribution == MAKING:  # whoever was asked
            return (*self.cause, "")
        if peer.kind == "native" and peer.build:  # each program has another configuration
            return (*self.cause, "native-drawn")
        return (*self.cause, str(peer) if peer.family == "native" else peer.build or peer.kind)


def inspect(executor: Executor, case: Case, answer: Answer, pool: Pool) -> Suspect:
    """Locate and attribute a disagreement."""
    if case.unmade:
        return Suspect(executor, case, answer, subject(case), "", MAKING)
    executor = executor.settled(case)
    case, answer = _worst_output(executor, case, answer, pool)
    whole = explained(Suspect(executor, case, answer, "", "", attribute(executor, case, pool)), pool)
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


def _worst_output(executor: Executor, case: Case, answer: Answer, pool: Pool) -> tuple[Case, Answer]:
    """The worst output alone, if it is as wrong by itself: another wrong output may have another cause."""
    outputs = case.program.output_slots
    slots = _worst_slots(case, answer)
    if answer.verdict is not Verdict.MISMATCH or not slots or len(outputs) < 2 or case.derivation:
        return case, answer
    try:
        small = (
            replace(case, program=live(replace(case.program, output_slots=slots)))
            if case.source is None
            else _result_alone(case, case.source, answer.comparison.worst_output or 0, pool)
        )
    except TenferroError:  # a module that is not read as a program
        return case, answer
    alone = judge(executor, Reference(small, NativeExecutor()))
    return (small, alone) if alike(alone, answer) and class_of(alone) == class_of(answer) else (case, answer)


def _result_alone(case: Case, source: Source, number: int, pool: Pool) -> Case:
    """The case of the module that returns one of its results; the same one if it has no other."""
    for candidate in pool.reader.smaller(source, number):
        smaller, arguments = taken(candidate, source.where, case.arguments, pool.reader)
        return given_case(smaller, arguments, pool.reader)
    return case


def _worst_slots(case: Case, answer: Answer) -> tuple[int, ...]:
    """The slot of the worst output; none where that is missing, or a value inside a decomposition that is judged in stages."""
    worst = answer.comparison.worst_output
    return () if worst is None else case.program.output_slots[worst : worst + 1]


def explained(suspect: Suspect, pool: Pool) -> Suspect:
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
    values = evaluate_all(primal)
    for ins in primal.program.instructions:
        small = cut_out(primal, ins.output_slots[0], lambda _: values)
        made = small and derived_alike(suspect.case, small)
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


def start(suspect: Suspect, pool: Pool) -> Suspect:
    """Where to begin reducing: the worst output, the guilty instruction, the wrong element alone, as far as that still disagrees.

    Each saves many tests that a search from the whole program would need.
    """
    if suspect.case.refusal is not None:
        return suspect
    if suspect.case.derivation is not None:  # kept where it is what is checked
        return _rule_alone(suspect, pool) or suspect
    worst, answer = _worst_output(suspect.executor, suspect.case, suspect.answer, pool)
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
