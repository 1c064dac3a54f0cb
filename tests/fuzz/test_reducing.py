"""How a campaign reduces a disagreement whose first attempt left something to do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fuzz.campaign import reducing
from fuzz.findings.suspect import Suspect
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor
from tenferro_ref.ops import Exp, Negate
from tenferro_ref.program import GraphBuilder
from tests.fuzz.faulty_executors import Wrong, chain, suspect_of


@dataclass(frozen=True)
class _Found:
    """What of a finding a second attempt depends on."""

    known: str = ""
    reduce_seconds: float = 9.0
    original_instructions: int = 2


def test_a_second_attempt_is_of_the_answer_to_what_the_first_one_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of the wrong output is another one in a smaller program."""
    b = GraphBuilder()
    x = b.input("F64", (3,))
    whole = Case.of(b.build(b.apply(Exp(), x), b.apply(Negate(), x)), [np.array([3.0, 2.0, 5.0])])
    smaller, seen = chain(Negate), []
    executor = Wrong()
    suspect = suspect_of(executor, whole)
    suspect = replace(suspect, case=whole, answer=judge(executor, Reference(whole, NativeExecutor())))
    assert suspect.answer.comparison.worst_output == 1

    def attempt(suspect: Suspect, **_: Any) -> tuple[Any, Case]:
        seen.append(suspect)
        return found, smaller

    found = _Found()
    monkeypatch.setattr(reducing, "to_finding", attempt)
    site: Any = SimpleNamespace(stream=SimpleNamespace(plan=SimpleNamespace(reduce_seconds=5.0)), pool=None)
    group: Any = SimpleNamespace(programs=1, also=())
    reducing._reduced(site, group, suspect)
    assert [(s.case, s.answer.comparison.worst_output) for s in seen] == [(whole, 1), (smaller, 0)]
    seen.clear()
    smaller = chain(Exp)  # it is not wrong: what does not repeat is not reduced once more
    assert reducing._reduced(site, group, suspect) == (found, smaller)
    assert len(seen) == 1


@pytest.mark.parametrize(("shows", "page"), [(True, True), (False, False)])
def test_another_build_is_what_the_first_one_is_if_it_gets_the_reduced_program_wrong(shows: bool, page: bool) -> None:
    case = chain(Negate if shows else Exp)
    suspect = suspect_of(Wrong(), chain(Negate))
    found = SimpleNamespace(case=case, finding=SimpleNamespace(verdict="mismatch"))
    site: Any = SimpleNamespace(pool=None, store=SimpleNamespace(finding={"a | b": found}.get))
    group: Any = SimpleNamespace(alike=("a | b",))
    assert (reducing._of_another_build(site, group, suspect) is found) is page
