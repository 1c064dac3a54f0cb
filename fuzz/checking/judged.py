"""The verdicts on one subject: by enclosures, else by the interpreter, with what else is worth knowing of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from fuzz.checking.subject import Subject
from oracle.attribution import builds
from oracle.beyond import beyond_ieee
from oracle.case import Case
from oracle.evidence import Evidence, judge_by_evidence
from oracle.judge import Reference, failed, judge_result
from oracle.peers import Execution, Executor, NativeExecutor, PjrtExecutor, Pool, attempt
from oracle.unfounded import unfounded
from oracle.verdict import Answer, Build, Comparison, Verdict, first_bad
from tenferro_ref.errors import (
    Internal,
    LoweringError,
    ResourceExhausted,
    TenferroError,
    UnsupportedOp,
    ValidationError,
)
from tenferro_ref.ops import Repeated

#: The page of a known finding, "" for none, and the reduced case, by group of alike disagreements.
Pages: TypeAlias = dict[tuple[str, ...], tuple[str, Case]]
#: Budget for reducing a disagreement far enough to be recognised as a known finding.
_REDUCE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Judged:
    """One executor's answer to a subject.

    Attributes
    ----------
    evidence
        "proved" (enclosures), "bits" (equal by contract), "interpreter", or "none" where nothing was compared.
    beyond
        How many elements are outside IEEE arithmetic but inside the executor's model, by freedom (`oracle.beyond`).
    written
        Of a disagreement on a module: what became of the same program written by us, in words; else "".
    builds
        Of a disagreement of a plugin: the verdict on each of its builds in the same lane.
    known
        Of a disagreement: the page in docs/findings/ that describes it, once it is reduced; "" if none does.
    """

    answer: Answer
    evidence: str = "none"
    beyond: dict[str, int] = field(default_factory=dict)
    written: str = ""
    builds: tuple[Build, ...] = ()
    known: str = ""

    @property
    def first_bad(self) -> str:
        """Which build began, in words; "" where builds were not asked."""
        if not self.builds:
            return ""
        bad = f"first bad build {first_bad(self.builds) or 'none'}"
        return f"{bad}: {', '.join(map(str, self.builds))}"


@dataclass(frozen=True, slots=True)
class Checked:
    """All answers to a subject; `disagrees` if one of them says that an executor is wrong."""

    subject: Subject
    answers: tuple[Judged, ...]
    disagrees: bool

    @classmethod
    def together(cls, several: Sequence[Checked]) -> Checked:
        """Answers to one program or module with several sets of inputs as one.

        Of each executor the worst disagreement, else what passes; elements of answers with the same verdict and evidence are
        counted together.
        """
        if len(several) == 1:
            return several[0]
        rows = zip(*([(c.subject, judged) for judged in c.answers] for c in several), strict=True)
        answers = tuple(_worst(row) for row in rows)
        return cls(several[0].subject, answers, any(c.disagrees for c in several))


def _worst(answers: Sequence[tuple[Subject, Judged]]) -> Judged:
    order = list(Verdict)

    def badness(entry: tuple[Subject, Judged]) -> tuple[bool, int]:
        verdict = entry[1].answer.verdict
        return verdict.is_disagreement, order.index(verdict) if verdict.is_disagreement else -order.index(verdict)

    subject, judged = max(answers, key=badness)
    alike = [
        j
        for _, j in answers
        if (j.answer.verdict, j.evidence) == (judged.answer.verdict, judged.evidence) and j is not judged
    ]
    answer = judged.answer
    for other in alike:
        answer = replace(answer, comparison=_sum(answer.comparison, other.answer.comparison))
    if answer.verdict.is_disagreement:
        answer = replace(answer, reason=f"{answer.reason} ({subject.inputs} inputs)")
    beyond: Counter[str] = Counter()
    for one in (judged, *alike):
        beyond.update(one.beyond)
    return replace(judged, answer=answer, beyond=dict(beyond))


def _sum(a: Comparison, b: Comparison) -> Comparison:
    ulps = [ulp for ulp in (a.worst_ulp, b.worst_ulp) if ulp is not None]
    return replace(
        a, elements=a.elements + b.elements, decided=a.decided + b.decided, tight=a.tight + b.tight, outside=a.outside + b.outside,
        forgiven=a.forgiven + b.forgiven, worst_ulp=max(ulps, default=None),
    )  # fmt: skip


def check(subject: Subject, executors: Sequence[Executor], pool: Pool, model: str | None = None) -> Checked:
    """The verdict of each executor.

    Parameters
    ----------
    model
        Arithmetic model that foreign executors are held to, instead of their own.
    """
    answers = answers_to(subject, executors, pool, model)
    own, case = NativeExecutor().name, subject.case
    # values that the reference itself refuses are what others are held to, and no disagreement
    refused = case is not None and isinstance(attempt(NativeExecutor(), case), ValidationError) and not unfounded(case)
    disagrees = any(j.answer.verdict.is_disagreement and not (refused and j.answer.executor == own) for j in answers)
    asked: dict[tuple[str, str], tuple[Build, ...]] = {}
    pages: Pages = {}
    for i, (executor, judged) in enumerate(zip(executors, answers, strict=True)):
        if judged.answer.verdict.is_disagreement and case is not None and judged.evidence != "interpreter":
            written = _as_written(executor, case, judged.answer, model)
            shown = (case.written, written) if written.verdict.is_disagreement else (case, judged.answer)
            answers[i] = replace(
                judged,
                written=_second_opinion(judged.answer, written),
                builds=_builds(executor, case, pool, asked),
                # rules speak of what is wrong under an executor's own model
                known=_known(executor, *shown, pool, pages) if model is None else "",
            )
        elif judged.answer.verdict.is_disagreement and case is not None and (evidence := _evidence(subject, pool)):
            again = judge_by_evidence(executor, evidence, attempt(executor, case.written))
            answers[i] = replace(judged, written=_second_opinion(judged.answer, again))
    return Checked(subject, tuple(answers), disagrees)


def answers_to(subject: Subject, executors: Sequence[Executor], pool: Pool, model: str | None = None) -> list[Judged]:
    """The answers alone, without second opinions and other builds."""
    if subject.case is None:
        return list(_unread(subject, executors, pool))
    reference = Reference(subject.case, NativeExecutor())
    if isinstance(reference.execution, ResourceExhausted):
        raise reference.execution
    if subject.source is not None and isinstance(reference.execution, Internal | LoweringError):
        # a kernel is missing, or has a defect: the others cannot be held to it
        return list(_unread(replace(subject, case=None, unread=reference.execution), executors, pool))
    evidence = _evidence(subject, pool)
    return [_read(executor, reference, evidence, model) for executor in executors]


def _evidence(subject: Subject, pool: Pool) -> Evidence | None:
    """None without a module, and where how often an initial value enters, or an order, is left open: the interpreter goes one of several ways."""
    made = [] if subject.case is None else [i.op for i in subject.case.program.instructions]
    if subject.source is None or any(isinstance(op, Repeated) and op.function != "select" for op in made):
        return None
    return Evidence(subject.source, subject.arguments, pool.make("interpreter"), pool.reader)


def _read(executor: Executor, reference: Reference, evidence: Evidence | None, model: str | None) -> Judged:
    """The verdict on a case."""
    own = executor == reference.native
    result = reference.execution if own else attempt(executor, reference.case)
    foreign = executor.peer.family != "native"
    answer = judge_result(executor, reference, result, model if foreign else None)
    comparable = isinstance(result, Execution) and executor.peer.family != "interpreter"
    if _unproved(answer) and evidence is not None and foreign and comparable:
        by_interpreter = judge_by_evidence(executor, evidence)
        if by_interpreter.verdict is not Verdict.UNDECIDED:
            return Judged(by_interpreter, "interpreter")
    beyond = {}
    if answer.comparison.forgiven and isinstance(result, Execution):
        beyond = _beyond(reference.case, result, model or executor.model)
    bits = not own and reference.case.refusal is None and executor.bit_exact(reference.case)
    compared = answer.comparison.decided or answer.comparison.outside
    if isinstance(result, Execution) and answer.verdict is Verdict.PASS and not answer.comparison.elements:
        compared = len(result.outputs)  # of results without elements the dtypes and shapes are all there is to compare
    return Judged(answer, "none" if not compared else "bits" if bits else "proved", beyond)


def _unproved(answer: Answer) -> bool:
    """Whether there were no enclosures, for want of a rule or of a decided element, or for a defect of a rule."""
    kind = (answer.error or {}).get("kind", UnsupportedOp.__name__)
    return (answer.verdict, kind) in ((Verdict.UNDECIDED, UnsupportedOp.__name__), (Verdict.ERROR, Internal.__name__))


def _beyond(case: Case, result: Execution, model: str) -> dict[str, int]:
    try:
        return beyond_ieee(case, result.outputs, model)
    except TenferroError:  # judged by stages, which have no enclosure of the whole
        return {}


def _unread(subject: Subject, executors: Sequence[Executor], pool: Pool) -> Iterator[Judged]:
    """The verdicts on a module that is no program here: those of executors that take modules, if it can be handed to them."""
    evidence = _evidence(subject, pool)
    for executor in executors:
        if (executor.peer.family == "native" or evidence is None) and subject.unread is not None:
            yield Judged(failed(executor.name, subject.unread))
        elif evidence is not None:
            answer = judge_by_evidence(executor, evidence)
            alike = answer.verdict is Verdict.PASS and evidence.source.results
            yield Judged(answer, "interpreter" if answer.comparison.elements or alike else "none")


def _as_written(executor: Executor, case: Case, given: Answer, model: str | None) -> Answer:
    """The same executor's answer to the program as we write it, where it disagrees on a module; else the one that it gave."""
    if case.source is None or executor.peer.family == "native":
        return given
    written = case.written
    return judge_result(executor, Reference(written, NativeExecutor()), attempt(executor, written), model)


def _second_opinion(given: Answer, written: Answer) -> str:
    """What the answer to the program as we write it says of a disagreement on the module."""
    if written is given:
        return ""
    if written.verdict.is_disagreement:
        return "as given and as written are both wrong"
    return f"only as given (as written: {written.verdict.value})"


def _known(executor: Executor, case: Case, answer: Answer, pool: Pool, pages: Pages) -> str:
    """The known finding that a disagreement is; one disagreement of each group of alike ones is reduced.

    Another build that gets wrong what was reduced for the first needs no reduction of its own.
    """
    if answer.verdict in (Verdict.PASS, Verdict.UNSUPPORTED, Verdict.UNDECIDED, Verdict.TIMEOUT):
        return ""  # a program that hangs takes the time limit in each step of a reduction
    # what reduces programs is a quarter of what a command imports, and needed for a disagreement alone
    from fuzz.findings.known import load_known
    from fuzz.findings.suspect import inspect
    from fuzz.findings.triage import recognise

    suspect = inspect(executor, case, answer, pool)
    key = suspect.group
    for group, (_, smaller) in list(pages.items()):
        if key in pages or group[:-1] != suspect.cause:
            continue
        again = judge_result(executor, Reference(smaller, NativeExecutor()), attempt(executor, smaller))
        if again.verdict.is_disagreement:
            pages[key] = recognise(inspect(executor, smaller, again, pool), pool, load_known(), 0.0)
    if key not in pages:
        pages[key] = recognise(suspect, pool, load_known(), _REDUCE_SECONDS)
    return pages[key][0]


def _builds(
    executor: Executor, case: Case, pool: Pool, asked: dict[tuple[str, str], tuple[Build, ...]]
) -> tuple[Build, ...]:
    """The verdicts on all builds of a plugin; each lane is asked once."""
    if not isinstance(executor, PjrtExecutor):
        return ()
    key = (executor.plugin.platform or executor.name, executor.lane)
    if key not in asked:
        asked[key] = builds(executor, case, pool)
    return asked[key]
