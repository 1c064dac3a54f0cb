"""Bundles of what `check` was given and an executor gets wrong: reduced, and written with what it takes to see it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fuzz.checking.judged import Checked, Judged, answers_to
from fuzz.checking.subject import Subject, given_subject
from fuzz.findings.alike import value_class
from fuzz.findings.bundle import write_bundle
from fuzz.findings.reduce_module import MOST_READ, native_value, reduce_module
from fuzz.findings.suspect import inspect
from fuzz.findings.triage import to_finding
from oracle.peers import Executor, Pool
from tenferro_ref.stablehlo import Source
from tenferro_ref.tensor import Array


def write_bundles(
    folder: Path, checked: Checked, executors: Sequence[Executor], pool: Pool, budget_seconds: float = 60.0
) -> Iterator[Path]:
    """Write one bundle for each plugin, library or command that gets a subject wrong, whatever the lane; gives their folders.

    Only what was judged by enclosures is bundled: a bundle says why the expected value is right.

    Raises
    ------
    OutputError
        Something cannot be written.
    """
    seen: set[tuple[str, str]] = set()
    for executor, judged in zip(executors, checked.answers, strict=True):
        key = (executor.peer.kind, executor.peer.build)
        subject = checked.subject
        if key in seen or executor.peer.family == "native":
            continue
        if judged.answer.verdict.is_disagreement and judged.evidence != "interpreter":
            seen.add(key)
            yield from _bundle(folder, subject, executor, judged, pool, budget_seconds)


def _bundle(
    folder: Path, subject: Subject, executor: Executor, judged: Judged, pool: Pool, budget_seconds: float
) -> Iterator[Path]:
    answer = judged.answer
    if subject.source is not None:  # the module itself is reduced, not the program that it was read as
        smallest = _reduced(subject.source, subject, executor, judged, pool, budget_seconds)
        (judged_again,) = answers_to(smallest, [executor], pool)
        subject, answer, budget_seconds = smallest, judged_again.answer, 0
    if subject.case is None:
        return
    suspect = inspect(executor, subject.case, answer, pool)
    finding, case = to_finding(suspect, pool, (), programs=1, also=(), budget_seconds=budget_seconds)
    environment = tuple(fact for fact in executor.info().facts)
    write_bundle(folder / finding.id, finding, executor, case, environment)
    yield folder / finding.id


def _reduced(
    source: Source, subject: Subject, executor: Executor, judged: Judged, pool: Pool, budget_seconds: float
) -> Subject:
    """The smallest module found that the executor gets wrong in the same way."""

    def shows(source: Source, arguments: tuple[Array, ...]) -> bool:
        smaller = given_subject(source, arguments, pool.reader, most)
        (now,) = answers_to(smaller, [executor], pool)
        words = [value_class(j.answer.comparison.value_class) for j in (now, judged)]
        return (now.answer.verdict, now.evidence) == (judged.answer.verdict, judged.evidence) and words[0] == words[1]

    most = MOST_READ if subject.case is None else max(MOST_READ, len(subject.case.program.instructions))
    reduced = reduce_module(
        source, subject.arguments, shows, pool.reader, value_of=native_value(pool.reader), budget_seconds=budget_seconds
    )
    return given_subject(reduced.source, reduced.arguments, pool.reader)
