"""The witness for input sets that are judged at once: silent without a fault, and loud for the faults that there may be."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import numpy as np
import pytest
from fuzz.mutants.directed import case_of, directed
from fuzz.mutants.stacks import SETS, singles, stacked, stacks

import oracle.judge as judges
from fuzz.generate import Config
from fuzz.generate.batches import generate
from oracle.case import Case
from oracle.compare import Asked
from oracle.enclosure import Enclosure, enclose_stacked
from oracle.judge import Stack
from oracle.peers import Execution, NativeExecutor
from oracle.verdict import Answer, Comparison, Verdict
from tenferro_ref import ops
from tenferro_ref.tensor import Array


@pytest.fixture
def case() -> Case:
    x = np.linspace(0.5, 3.5, 6).reshape(2, 3)
    return case_of(lambda x, y: (x.builder.apply(ops.Exp(), x @ y), x.sum([0])), x, x.T * 0.3)


def test_silent_without_a_fault() -> None:
    cases = [*generate(3, 1, 8, Config(max_instructions=6, usual_elements=30, max_elements=100)),
             *(d.case for d in directed()[5::25])]  # fmt: skip
    for case in cases:
        assert stacks(case) == "", case.program
        assert stacked(case) == stacked(case)


def test_sets_are_such_as_the_native_executor_computes(case: Case) -> None:
    sets = singles(case)
    assert len(sets) == SETS
    assert len({id(s.case) for s in sets}) == SETS
    assert all(isinstance(s.native, Execution) and s.enclosures and len(s.given) == SETS for s in sets)
    refused = next(d.case for d in directed() if d.error)
    assert singles(refused) == []
    assert (stacks(refused), stacked(refused)) == ("", "")


def turned(together: Sequence[Enclosure]) -> list[Enclosure]:
    return [e.map(lambda a: np.roll(a, 1, -1)) for e in together]


def test_an_enclosure_of_another_set_is_seen(case: Case) -> None:
    def wrong(*args: object) -> list[Enclosure] | None:
        return turned(enclose_stacked(*args) or [])  # type: ignore[arg-type]

    with mock.patch("fuzz.mutants.stacks.enclose_stacked", wrong):
        assert "that its own does not meet" in stacks(case)
    right = Stack.enclosures

    def other(self: Stack, model: str) -> list[Enclosure] | None:
        return turned(right(self, model) or [])

    with mock.patch.object(Stack, "enclosures", other):
        assert stacks(case) == "a set has the enclosure of another"


def test_a_wider_enclosure_is_seen(case: Case) -> None:
    def wider(*args: object) -> list[Enclosure] | None:
        found = enclose_stacked(*args) or []  # type: ignore[arg-type]
        return [Enclosure(e.dtype, e.lo, np.nextafter(e.hi, np.inf), e.nan, e.pos_zero, e.neg_zero) for e in found]

    with mock.patch("fuzz.mutants.stacks.enclose_stacked", wider):
        assert "beside its copies" in stacks(case)


def test_a_size_that_does_not_fit_is_seen(case: Case) -> None:
    for size, words in ((10**6, "too many"), (2, "too few")):
        with mock.patch("fuzz.mutants.stacks.sets_at_once", return_value=size):
            assert words in stacks(case)


def test_a_comparison_that_accepts_an_error_is_seen(case: Case) -> None:
    def accepts(asked: Sequence[Asked]) -> list[list[Comparison]]:
        def right(a: Asked) -> Comparison:
            elements = sum(e.lo[..., 0].size if a.stacked else e.lo.size for e in a.reference)
            return Comparison(elements, elements)

        return [[right(a)] * len(a.observed) for a in asked]

    with mock.patch("fuzz.mutants.stacks.compare_many", accepts):
        assert "of set 0 is said" in stacks(case)
    with mock.patch("oracle.judge.compare_many", accepts):
        assert stacks(case) != ""


def test_a_comparison_that_leaves_all_to_others_is_seen(case: Case) -> None:
    with mock.patch("oracle.judge.compare_many", lambda asked: [[None] * len(a.observed) for a in asked]):
        assert "prepared" in stacks(case)


def test_native_results_of_another_set_are_seen(case: Case) -> None:
    right = NativeExecutor.run_many

    def mixed(self: NativeExecutor, cases: Sequence[Case]) -> list[Execution]:
        results = right(self, cases)
        return [results[-1], *results[:-1]]  # type: ignore[list-item]

    with mock.patch.object(NativeExecutor, "run_many", mixed):
        assert stacks(case) in ("native results are those of another set", "other sets are refused than alone")


def test_a_set_that_is_judged_by_its_company_alone_is_seen(case: Case) -> None:
    """What disagrees in company is asked again alone."""
    with mock.patch.object(judges, "judge", side_effect=lambda *_: Answer("told", Verdict.PASS)):
        assert stacks(case) != ""


def test_what_was_inside_is_known_by_its_bits(case: Case) -> None:
    right = judges.Reference.known

    def anything(self: judges.Reference, model: str, outputs: tuple[Array, ...]) -> Comparison | None:
        return right(self, model, outputs) or (self._right[0][2] if self._right else None)

    with mock.patch.object(judges.Reference, "known", anything):
        assert stacks(case) != ""
