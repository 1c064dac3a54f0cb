"""The witness for verdicts: silent without a fault, and loud for the faults that the judge of errors may have."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from fuzz.mutants.directed import apply, case_of, directed
from fuzz.mutants.verdicts import by_hand, staged, told, verdicts

import oracle.judge as judges
from fuzz.generate import Config
from fuzz.generate.batches import generate
from fuzz.generate.faults import faults, simplest_of
from fuzz.generate.faults.batches import in_turn, invalid_case
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import ExternalExecutor, NativeExecutor
from oracle.verdict import Answer, Verdict
from tenferro_ref import ops
from tenferro_ref.errors import TenferroError


def test_silent_without_a_fault() -> None:
    kinds = {in_turn(1, 0)[turn].kind for turn in range(10)}
    assert kinds == {fault.kind for fault in faults(late=True)}
    cases = [
        *by_hand(),
        *(invalid_case(1, 0, turn, turn) for turn in range(10)),
        *generate(4, 1, 4, Config(max_instructions=6, usual_elements=30, max_elements=100)),
        *(d.case for d in directed()[5::25]),
    ]
    for case in cases:
        assert verdicts(case) == "", case.program
    assert told(cases[0]) == told(cases[0])


def test_programs_by_hand_are_what_they_are_there_for() -> None:
    native = NativeExecutor()
    for case in by_hand():
        answer = judge(native, Reference(case, native))
        known = staged().get(case.fingerprint)
        if known and known.dead:
            assert answer.verdict is Verdict.PASS
            with pytest.raises(TenferroError, match="positive definite"):
                NativeExecutor("all", passes=()).run(case)
    found = [judge(native, Reference(case, native)).verdict.value for case in by_hand()]
    # the last of those with decompositions is refused, one extent and one sum are not decided
    assert found[:7] == ["pass", "pass", "undecided", "pass", "undecided", "undecided", "undecided"]
    assert set(found[7:]) == {"pass"}


#: A program of each kind: an axis is due, only values show it, one that the native executor refuses, one that it computes.
INVALID = simplest_of("axis out of range: Transpose")
LATE = simplest_of("integer zero divisor: Divide")
RAISING = case_of(lambda x, y: apply(ops.Divide(), x, y), *(np.array(v, np.int32) for v in ([6, 4], [0, 1])))
SOUND = case_of(lambda x: apply(ops.Exp(), x), np.array([0.5, 2.0]))


def _accepts(right: Any) -> Any:
    def wrong(executor: Any, *given: Any) -> Answer:
        answer: Answer = right(executor, *given)
        return dataclasses.replace(answer, verdict=Verdict.PASS) if answer.verdict is Verdict.MISMATCH else answer

    return wrong


def _strict(right: Any) -> Any:
    """A command has to say all."""
    return lambda error, due: error.kind == due.kind and error.facts().get("op") == getattr(due, "op", None)


def _any_axis(right: Any) -> Any:
    return lambda error, due: (
        right(error, due) or (error.kind == due.kind and error.facts().get("op") in ("Transpose", ""))
    )


def _any_op(right: Any) -> Any:
    return lambda error, due: error.kind == due.kind


def _nothing_open(right: Any) -> Any:
    def wrong(executor: Any, *given: Any) -> Answer:
        answer: Answer = right(executor, *given)
        known = answer.verdict is Verdict.UNSUPPORTED and not isinstance(executor, ExternalExecutor)
        return dataclasses.replace(answer, verdict=Verdict.MISMATCH) if known else answer

    return wrong


def _other_words(right: Any) -> Any:
    return lambda *given: dataclasses.replace(right(*given), reason="something else")


def _no_record(right: Any) -> Any:
    return lambda *given: dataclasses.replace(right(*given), error=None)


@pytest.mark.parametrize(
    ("function", "wrap", "case"),
    [
        ("_refusal", _accepts, INVALID), ("_refusal", _nothing_open, LATE), ("_refusal", _other_words, INVALID),
        ("_refusal", _no_record, LATE), ("_raises", _strict, INVALID), ("_raises", _any_axis, INVALID),
        ("_raises", _any_op, INVALID), ("_raises", _any_op, RAISING), ("_raises", _strict, RAISING), ("_failed", _no_record, SOUND),
        ("_failed", _nothing_open, SOUND), ("_compared", _accepts, SOUND), ("_verdict", _other_words, SOUND),
    ],
    ids=lambda value: getattr(value, "__name__", value) if not isinstance(value, Case) else "",
)  # fmt: skip
def test_faults_of_the_judge_are_seen(function: str, wrap: Callable[[Any], Any], case: Case) -> None:
    before = told(case)
    with mock.patch.object(judges, function, wrap(getattr(judges, function))):
        assert verdicts(case).startswith("of ")
        assert told(case) != before


def test_a_judge_that_raises_is_heard() -> None:
    with (
        mock.patch.object(judges, "_failed", side_effect=KeyError("planted")),
        pytest.raises(KeyError, match="planted"),
    ):
        verdicts(SOUND)
