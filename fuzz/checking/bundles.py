"""Bundles of what `check` was given and an executor gets wrong: reduced, and written with what it takes to see it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from fuzz.checking.judged import Checked, Judged, answers_to
from fuzz.checking.subject import Subject, given_subject
from fuzz.findings.alike import either_sign, value_class
from fuzz.findings.bundle import write_bundle
from fuzz.findings.reduce_module import MOST_READ, native_value, reduce_module
from fuzz.findings.suspect import inspect
from fuzz.findings.triage import to_finding
from fuzz.records import Finding
from oracle.case import Case
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
    found: dict[str, tuple[Finding, Executor, Case]] = {}
    for executor, judged in zip(executors, checked.answers, strict=True):
        key = (executor.peer.kind, executor.peer.build)
        if key in seen or executor.peer.family == "native":
            continue
        if judged.answer.verdict.is_disagreement and judged.evidence != "interpreter":
            seen.add(key)
            finding, case = _finding(checked.subject, executor, judged, pool, budget_seconds)
            if finding is None or case is None:
                continue
            if finding.id in found:  # of the same cause, as far as a signature tells
                first, where, smallest = found[finding.id]
                found[finding.id] = replace(first, also=(*first.also, executor.name)), where, smallest
            else:
                found[finding.id] = (finding, executor, case)
    for name, (finding, executor, case) in found.items():
        write_bundle(folder / name, finding, executor, case, tuple(executor.info().facts))
        yield folder / name


def _finding(
    subject: Subject, executor: Executor, judged: Judged, pool: Pool, budget_seconds: float
) -> tuple[Finding, Case] | tuple[None, None]:
    """What is found, and the reduced case; nothing if the module cannot be read."""
    answer, whole, reducing = judged.answer, subject.case, budget_seconds
    if subject.source is not None:  # the module itself is reduced, not the program that it was read as
        subject = _reduced(subject.source, subject, executor, judged, pool, budget_seconds)
        (judged_again,) = answers_to(subject, [executor], pool)
        answer, reducing = judged_again.answer, 0
    if subject.case is None:
        return None, None
    suspect = inspect(executor, subject.case, answer, pool)
    finding, case = to_finding(
        suspect, pool, (), programs=0, also=(), budget_seconds=reducing, builds_seconds=budget_seconds
    )
    return replace(finding, original_instructions=len((whole or subject.case).primal.instructions)), case


def _reduced(
    source: Source, subject: Subject, executor: Executor, judged: Judged, pool: Pool, budget_seconds: float
) -> Subject:
    """The smallest module found that the executor gets wrong in the same way."""

    def shows(source: Source, arguments: tuple[Array, ...]) -> bool:
        smaller = given_subject(source, arguments, pool.reader, most)
        (now,) = answers_to(smaller, [executor], pool)
        words = [either_sign(value_class(j.answer.comparison.value_class)) for j in (now, judged)]
        return (now.answer.verdict, now.evidence) == (judged.answer.verdict, judged.evidence) and words[0] == words[1]

    most = MOST_READ if subject.case is None else max(MOST_READ, len(subject.case.program.instructions))
    reduced = reduce_module(
        source, subject.arguments, shows, pool.reader, value_of=native_value(pool.reader), budget_seconds=budget_seconds
    )
    return given_subject(reduced.source, reduced.arguments, pool.reader)
