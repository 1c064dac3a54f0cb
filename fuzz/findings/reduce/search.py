"""`Search`: the smallest case so far, the test of a candidate, and the budget.

Which candidates are tried, and in which order, is in the sibling modules.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fuzz.findings.reduce.draft import Draft, concrete_types
from fuzz.findings.reduce.weights import numbers, weight
from oracle.case import Case
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import DEFAULT_POLICY
from tenferro_ref.tensor import Array

Evaluate: TypeAlias = Callable[[Case], Mapping[int, Array]]


class Size(NamedTuple):
    """How large a case is; compared as a tuple, most important first.

    Attributes
    ----------
    instructions
        Number of instructions.
    ports
        Number of inputs and outputs.
    elements
        Elements over all slots.
    values
        Complexity of the input elements and constants (`fuzz.findings.reduce.weights`).
    details
        Extents, operands, integers in attributes, symbolic extents, policy flags and a name, all counted together.
    """

    instructions: int
    ports: int
    elements: int
    values: int
    details: int


def size(case: Case) -> Size:
    """Size of a case; every accepted step of a reduction makes it smaller."""
    program = case.program
    types = concrete_types(case)
    flags = sum(
        getattr(program.policy, f.name) != getattr(DEFAULT_POLICY, f.name) for f in dataclasses.fields(DEFAULT_POLICY)
    )
    details = (
        sum(1 + e for t in types.values() for e in t.static_shape)
        + sum(not isinstance(e, int) for t in program.input_types for e in t.shape)
        + sum(len(ins.input_slots) + _integers(ins.op) for ins in program.instructions)
        + flags
        + bool(program.name)
    )
    return Size(
        len(program.instructions),
        len(program.input_slots) + len(program.output_slots),
        sum(prod(t.static_shape) for t in types.values()),
        sum(int(weight(part).sum()) for part in numbers(case)),
        details,
    )


def _integers(value: Any) -> int:
    """Sum of the magnitudes of all integers in an op's attributes; one more for each node of an expression."""
    if isinstance(value, int):
        return abs(value)
    if isinstance(value, tuple):
        return sum(map(_integers, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return 1 + sum(_integers(getattr(value, f.name)) for f in dataclasses.fields(value))
    return 0


class Step(NamedTuple):
    """One accepted change: what it was, and the size that it led to."""

    name: str
    size: Size


@dataclass(frozen=True, slots=True)
class Reduction:
    """The result of a reduction.

    Attributes
    ----------
    case
        The smallest case found that still fails; the given one if that did not fail.
    tests
        Calls of `still_fails`.
    reproduced
        The given case failed when tested again.
    complete
        A fixpoint was reached; False if the budget ran out first.
    """

    case: Case
    tests: int
    seconds: float
    steps: tuple[Step, ...]
    reproduced: bool
    complete: bool


class BudgetSpent(Exception):
    """Ends the search from within a step when tests or seconds are spent; no error, and caught by `reduce_case`."""


class Search:
    """The state of one reduction.

    Parameters
    ----------
    still_fails, evaluate, budget_seconds, max_tests, progress
        As of `reduce_case`.
    """

    def __init__(
        self,
        case: Case,
        still_fails: Callable[[Case], bool],
        evaluate: Evaluate | None,
        budget_seconds: float,
        max_tests: int,
        progress: Callable[[int, Size], None] | None,
    ) -> None:
        self.case = case
        self.size = size(case)
        self.tests = 0
        self.steps: list[Step] = []
        #: Whether candidates lose their dead code at once; False if the failure needs it.
        self.prune = True
        self._still_fails = still_fails
        self._evaluate = evaluate
        self._started = time.monotonic()
        self._budget_seconds, self._max_tests = budget_seconds, max_tests
        self._progress = progress
        self._tried: set[str] = set()
        self._values: tuple[Case, Mapping[int, Array]] | None = None

    @property
    def draft(self) -> Draft:
        """A new draft of the current case."""
        return Draft.of(self.case)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def fails(self, case: Case) -> bool:
        """One call of `still_fails`; raises `BudgetSpent` instead when the budget is spent."""
        if self.tests >= self._max_tests or self.seconds >= self._budget_seconds:
            raise BudgetSpent
        self._tried.add(case.fingerprint)
        self.tests += 1
        return self._still_fails(case)

    def attempt(self, draft: Draft | None, step: str) -> bool:
        """Make the draft the current case if it is valid, smaller, new, and still fails."""
        if draft is None:
            return False
        if self.prune:
            draft.prune()
        case = draft.build()
        if case is None or case.fingerprint in self._tried:
            return False
        smaller = size(case)
        if smaller >= self.size:
            return False
        accepted = self.fails(case)
        if accepted:
            self.case, self.size = case, smaller
            self.steps.append(Step(step, smaller))
        if self._progress is not None:
            self._progress(self.tests, self.size)
        return accepted

    def value(self, slot: int) -> Array:
        """Value of a slot of the current case.

        Ones if the caller cannot evaluate the case: many failures, crashes above all, do not depend on values.
        """
        if self._values is None or self._values[0] is not self.case:
            self._values = (self.case, self._evaluated())
        known = self._values[1]
        if slot in known:
            return known[slot]
        type_ = concrete_types(self.case)[slot]
        return np.ones(type_.static_shape, type_.dtype.numpy, order="F")

    def _evaluated(self) -> Mapping[int, Array]:
        if self._evaluate is None:
            return {}
        try:
            return self._evaluate(self.case)
        except TenferroError:
            return {}
