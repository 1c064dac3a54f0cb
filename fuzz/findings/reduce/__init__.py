"""The reducer: shrinks a failing case to a small one that still fails, whatever made it.

It changes programs through the ops' own rules, so that imported programs shrink as well as generated ones, and only valid
candidates are ever tested. Steps run in the order of `STEPS`, big cuts first, again and again until none helps: testing is
expensive (a compile), making a candidate is not.

`search` holds the current case and the budget, `draft` a case being changed. The steps are in `structure`, `extents` (with
`links` and `rank`, tables by op) and `values` (with `weights`); `invalid` reduces invalid cases, `primal` derivatives,
`configuration` executors.
"""

from __future__ import annotations

from collections.abc import Callable

from fuzz.findings.reduce.configuration import simplify_configuration
from fuzz.findings.reduce.extents import drop_unit_axes, narrowed, shrink_extents, simplify_attributes
from fuzz.findings.reduce.invalid import reduce_invalid
from fuzz.findings.reduce.primal import reduce_primal
from fuzz.findings.reduce.search import BudgetSpent, Evaluate, Reduction, Search, Size, Step, size
from fuzz.findings.reduce.structure import (
    adopt_dead_code,
    bypass,
    concrete_shapes,
    cut_out,
    drop_details,
    drop_instructions,
    drop_outputs,
    merge_inputs,
)
from fuzz.findings.reduce.values import simplify_values
from oracle.case import Case

STEPS: tuple[Callable[[Search], None], ...] = (
    drop_instructions,
    adopt_dead_code,
    drop_outputs,
    concrete_shapes,
    bypass,
    merge_inputs,
    shrink_extents,
    drop_unit_axes,
    simplify_attributes,
    simplify_values,
    drop_details,
)


def reduce_case(
    case: Case,
    still_fails: Callable[[Case], bool],
    *,
    evaluate: Evaluate | None = None,
    budget_seconds: float = 60.0,
    max_tests: int = 2000,
    progress: Callable[[int, Size], None] | None = None,
) -> Reduction:
    """Shrink `case` as long as `still_fails` holds.

    Of an invalid case a few simpler ones with the same fault are tried (`invalid`); of a derivative its primal program is
    shrunk, and differentiated again for each test (`primal`).

    Deterministic for a deterministic `still_fails`, unless the seconds run out.

    Parameters
    ----------
    still_fails
        Whether a case shows the failure that is being reduced: the same one, not just any. Called with valid cases only,
        never twice with the same one; what it raises is not caught.
    evaluate
        Value of every slot of a case, for cutting a program in the middle. A slot that it leaves out, and every slot
        where it raises a `TenferroError`, counts as ones.
    budget_seconds, max_tests
        No new test is begun beyond either. A test in progress is not interrupted.
    progress
        Called after each test with the number of tests and the smallest size so far; not for invalid cases, which have no size
        and at most four tests.
    """
    if case.refusal is not None:
        return reduce_invalid(case, still_fails, budget_seconds, max_tests)
    if case.derivation is not None:
        return reduce_primal(
            case,
            still_fails,
            lambda primal, fails: reduce_case(
                primal,
                fails,
                evaluate=evaluate,
                budget_seconds=budget_seconds,
                max_tests=max_tests,
                progress=progress,
            ),
        )
    search = Search(case, still_fails, evaluate, budget_seconds, max_tests, progress)
    reproduced = complete = False
    try:
        reproduced = search.fails(case)
        if reproduced:
            search.prune = _dead_code_is_idle(search)
            _to_fixpoint(search)
        complete = True
    except BudgetSpent:
        pass
    return Reduction(search.case, search.tests, search.seconds, tuple(search.steps), reproduced, complete)


def _dead_code_is_idle(search: Search) -> bool:
    """Whether the case still fails without its dead code and unused inputs, which are dropped then."""
    draft = search.draft
    draft.prune()
    program = search.case.program
    if (len(draft.instructions), len(draft.inputs)) == (len(program.instructions), len(program.input_slots)):
        return True
    return search.attempt(draft, "drop dead code")


def _to_fixpoint(search: Search) -> None:
    before = None
    while before != search.size:
        before = search.size
        for step in STEPS:
            step(search)


__all__ = ["STEPS", "Reduction", "Size", "Step", "cut_out", "narrowed", "reduce_case", "simplify_configuration", "size"]
