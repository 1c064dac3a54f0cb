"""The answers to one batch: from its programs to the counts and disagreements that a store seals it with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fuzz.campaign.guide import draw_of
from fuzz.campaign.programs import cases_of
from fuzz.campaign.tally import Tally
from fuzz.campaign.worksite import Worksite
from fuzz.findings.suspect import Suspect, inspect
from fuzz.store import Batch, Disagreement
from oracle.case import Case
from oracle.judge import Reference, judge, judge_many, prepare
from oracle.peers import Executor, NativeExecutor
from oracle.verdict import Answer, Verdict
from tenferro_ref import children
from tenferro_ref.errors import WorkerDied

#: A program that was begun so often, alone, without an answer has ended this process each time.
_STRIKES = 2
#: Opcodes are asked for of a module in so many programs, and of large modules in so many batches: some 3 and 30 ms each.
_SURVEYED, _SURVEYED_BATCHES = 8, 8
#: The worker that an answer names, and the attribution, where a program ends the campaign's own process.
_CAMPAIGN, _ENDS_PROCESS = "of the campaign", "ends the process"


@dataclass(frozen=True, eq=False)
class OpenBatch:
    """A batch at work.

    Attributes
    ----------
    cases
        All of its programs.
    references
        Those to answer, by number: what was counted before the batch was opened again is not among them.
    answers
        By program number and executor; they are in the store too.
    groups
        The executors that are asked, those together that share a worker process.
    opcodes
        What an executor is left with of a module after optimisation.
    """

    held: Batch
    cases: Sequence[Case]
    references: dict[int, Reference]
    answers: dict[tuple[int, str], Answer]
    groups: Sequence[Sequence[Executor]]
    opcodes: list[tuple[str, list[str]]] = field(default_factory=list)

    @property
    def executors(self) -> list[Executor]:
        return [executor for group in self.groups for executor in group]


def open_batch(site: Worksite, held: Batch) -> OpenBatch:
    """The batch with its programs, from the store or made from the seed, and the answers so far."""
    draw = draw_of(site.store, site.stream, held.number)
    cases = site.store.programs(held)
    if not cases:
        cases = cases_of(site.stream.plan, held.number, draw.mix)[: held.programs]
        site.store.put_programs(held, cases)
    references = {n: Reference(cases[n], NativeExecutor()) for n in range(held.counted, len(cases))}
    asked = [[executor for executor in group if executor.name in draw.executors] for group in site.groups]
    return OpenBatch(held, cases, references, site.store.answers(held), [group for group in asked if group])


def prepare_references(site: Worksite, batch: OpenBatch) -> None:
    """Compute what the programs should give, where an answer is missing."""
    prepare(
        [
            reference
            for number, reference in batch.references.items()
            if any((number, executor.name) not in batch.answers for executor in batch.executors)
        ]
    )


def judge_group(site: Worksite, group: Sequence[Executor], batch: OpenBatch) -> None:
    """Judge what is not answered yet; answers are kept as soon as the module that gave them is done.

    The native ones, which cost less than a transaction, are kept together.
    """
    numbers = list(batch.references)
    size = max(executor.programs_a_module for executor in group) * site.stream.plan.input_sets
    if all(executor.peer.family == "native" for executor in group):
        size = len(numbers)
    for start in range(0, len(numbers), size):
        chunk = numbers[start : start + size]
        answers: list[tuple[int, Answer]] = []
        for executor in group:
            todo = [n for n in chunk if (n, executor.name) not in batch.answers]
            judged = judge_many(executor, [batch.references[n] for n in todo])
            if children.interrupted.is_set():  # the answers may be of processes that were ended
                return
            answers += zip(todo, judged, strict=True)
        if answers:
            _keep(site, batch, answers)
            site.report_answers()
        if not start % max(size, _SURVEYED * site.stream.plan.input_sets):
            _survey(group, batch, chunk)


def _survey(group: Sequence[Executor], batch: OpenBatch, numbers: Sequence[int]) -> None:
    """Ask the compilers what they left of the module that begins with these programs, while they have it."""
    often = not batch.held.number % _SURVEYED_BATCHES
    for executor in group:
        if executor.peer.family == "pjrt" and (often or executor.programs_a_module <= _SURVEYED):
            verdicts = {batch.answers[n, executor.name].verdict for n in numbers}
            if verdicts.isdisjoint((Verdict.ERROR, Verdict.TIMEOUT, Verdict.CRASH)):
                batch.opcodes.append((executor.name, executor.opcodes([batch.cases[n] for n in numbers])))


def _keep(site: Worksite, batch: OpenBatch, answers: Sequence[tuple[int, Answer]]) -> None:
    site.store.put_answers(batch.held, answers)
    batch.answers.update({(number, answer.executor): answer for number, answer in answers})


def judge_alone(site: Worksite, batch: OpenBatch) -> None:
    """Answer a program at a time, each announced: the one that ends this process is known at the next attempt."""
    for number, reference in batch.references.items():
        for executor in batch.executors:
            if (number, executor.name) in batch.answers:
                continue
            if site.store.strike(batch.held, number, executor.name) > _STRIKES:
                error = WorkerDied(worker=_CAMPAIGN, how=f"ended {_STRIKES} times", stderr_tail="")
                answer = Answer(executor.name, Verdict.CRASH, reason=f"{error.kind}: {error}", error=error.to_json())
            else:
                answer = judge(executor, reference)
            _keep(site, batch, [(number, answer)])


def seal(site: Worksite, batch: OpenBatch) -> None:
    """Count the answers and locate what disagrees; then the store drops the batch."""
    tally, disagreements, first = Tally(), [], batch.held.number * site.stream.plan.batch
    tally.add_cases([reference.case for reference in batch.references.values()])
    for number, reference in batch.references.items():
        for executor in batch.executors:
            answer = batch.answers[number, executor.name]
            tally.add_answer(reference.case, answer, first + number)
            if answer.verdict.is_disagreement:
                suspect = _located(site, executor, reference.case, answer)
                if reference.case.refusal is None:
                    tally.blame(reference.case, suspect.op, suspect.dtype, answer, first + number)
                where = suspect.op, suspect.dtype, suspect.attribution
                disagreements.append(Disagreement(number, reference.case, answer, json.dumps(suspect.group), *where))
    for name, opcodes in batch.opcodes:
        tally.add_opcodes(name, opcodes)
    site.store.seal(batch.held, site.owner, batch.cases, tally, disagreements)


def seal_answered(site: Worksite, batch: OpenBatch) -> None:
    """Count the answers that there are; what disagrees is not located, and the rest of the batch is left out."""
    answers = dict(sorted(batch.answers.items()))
    numbers = sorted({number for number, _ in answers if number in batch.references})
    tally, disagreements, first = Tally(), [], batch.held.number * site.stream.plan.batch
    tally.add_cases([batch.cases[number] for number in numbers])
    for (number, executor), answer in answers.items():
        if number not in batch.references:
            continue
        case = batch.cases[number]
        tally.add_answer(case, answer, first + number)
        if answer.verdict.is_disagreement:
            if case.refusal is None:
                tally.blame(case, "", "", answer, first + number)
            disagreements.append(Disagreement(number, case, answer, json.dumps(["interrupted", executor]), "", "", ""))
    kept = replace(batch.held, programs=batch.held.counted + len(numbers))
    site.store.seal(kept, site.owner, batch.cases[: kept.programs], tally, disagreements)


def _located(site: Worksite, executor: Executor, case: Case, answer: Answer) -> Suspect:
    if (answer.error or {}).get("worker") == _CAMPAIGN:  # it must not be run again
        return Suspect(executor, case, answer, "", "", _ENDS_PROCESS)
    return inspect(executor, case, answer, site.pool)
