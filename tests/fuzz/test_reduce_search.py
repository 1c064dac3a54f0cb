"""The reducer's search: budget, determinism, bookkeeping."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fuzz.findings.reduce import reduce_case
from fuzz.generate.faults.batches import invalid_case
from oracle.case import Case
from tenferro_ref.ops import (
    TensorType,
)
from tenferro_ref.program import GraphBuilder
from tests.fuzz.reductions import first_failing, has, outputs, random_case, run

pytestmark = pytest.mark.once


def test_same_case_same_reduction() -> None:
    fails = has("Transpose", "DotGeneral")
    start = first_failing(fails)
    one, two = (reduce_case(start, fails, evaluate=run) for _ in range(2))
    assert one.case.fingerprint == two.case.fingerprint
    assert one.steps == two.steps
    assert one.tests == two.tests


def test_no_case_is_tested_twice_and_all_are_valid() -> None:
    seen: set[str] = set()
    fails = has("Reshape", "Transpose")

    def once(case: Case) -> bool:
        assert case.fingerprint not in seen
        seen.add(case.fingerprint)
        case.program.check_inputs(
            [TensorType(t.dtype, a.shape) for t, a in zip(case.program.input_types, case.inputs, strict=True)]
        )
        outputs(case)
        return fails(case)

    start = first_failing(fails)
    reduction = reduce_case(start, once, evaluate=run)
    assert reduction.tests == len(seen)


def test_the_budget_of_tests_is_kept_and_what_was_found_is_returned() -> None:
    fails = has("Transpose", "DotGeneral")
    start = first_failing(fails)
    for limit in (0, 1, 2, 7):
        reduction = reduce_case(start, fails, evaluate=run, max_tests=limit)
        assert reduction.tests == limit
        assert not reduction.complete
        assert reduction.reproduced == (limit > 0)
        assert fails(reduction.case)


def test_invalid_cases_keep_to_the_budget() -> None:
    case = invalid_case(seed=5, batch=0, place=0, turn=0)
    seen: list[Case] = []
    for limit in (0, 1, 2):
        seen.clear()
        reduction = reduce_case(case, lambda c: bool(seen.append(c)) or c is case, max_tests=limit)
        assert reduction.tests == len(seen) == limit
        assert not reduction.complete
        assert reduction.reproduced == (limit > 0)
        assert reduction.case is case
    assert not reduce_case(case, lambda _: True, budget_seconds=0.0).reproduced
    whole = reduce_case(case, lambda _: True)
    assert (whole.tests, whole.complete, whole.reproduced) == (2, True, True)
    assert len(whole.case.program.instructions) <= len(case.program.instructions)


def test_the_budget_of_seconds_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()
    monkeypatch.setattr("fuzz.findings.reduce.search.time.monotonic", lambda: float(next(clock)))
    fails = has("Transpose", "DotGeneral")
    reduction = reduce_case(first_failing(fails), fails, evaluate=run, budget_seconds=10.0)
    assert not reduction.complete
    assert reduction.tests <= 10


def test_a_case_that_does_not_fail_comes_back_as_it_was() -> None:
    start = random_case(0)
    reduction = reduce_case(start, lambda case: False, evaluate=run)
    assert reduction.case is start
    assert not reduction.reproduced
    assert reduction.complete
    assert reduction.tests == 1
    assert reduction.steps == ()


def test_progress_sees_every_test_and_never_a_larger_case() -> None:
    fails = has("Reverse")
    seen = []
    reduction = reduce_case(first_failing(fails), fails, evaluate=run, progress=lambda n, s: seen.append((n, s)))
    assert [n for n, _ in seen] == list(range(2, reduction.tests + 1))
    assert all(a[1] >= b[1] for a, b in itertools.pairwise(seen))


def test_what_the_test_raises_is_not_swallowed() -> None:
    def breaks(case: Case) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        reduce_case(random_case(0), breaks)


def test_the_reduced_case_is_independent_of_the_input_order_of_memory() -> None:
    b = GraphBuilder()
    program = b.build(-b.input("F64", (2, 3)))
    array = np.arange(6.0).reshape(2, 3)
    one = Case(program, (array,))
    two = Case.of(program, [array])
    fails = has("Negate")
    assert reduce_case(one, fails).case.fingerprint == reduce_case(two, fails).case.fingerprint
    assert replace(one.program) == two.program
