"""Derivatives made simpler by way of their primal programs: where a derivative itself is wrong, its rule is to blame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fuzz.findings.reduce.search import Reduction
from oracle.case import Case
from oracle.derivation import derived_alike


def reduce_primal(
    case: Case, still_fails: Callable[[Case], bool], reduce: Callable[[Case, Callable[[Case], bool]], Reduction]
) -> Reduction:
    """What `reduce` makes of the primal program; the derivative of each candidate is tested, with the same seeds where they fit."""
    derivation = case.derivation
    assert derivation is not None

    def fails(primal: Case) -> bool:
        made = derived_alike(case, primal)
        return made is not None and still_fails(made)

    primal = Case(derivation.primal, case.inputs[: len(derivation.primal.input_slots)])
    reduction = reduce(primal, fails)
    return replace(reduction, case=derived_alike(case, reduction.case) or case)
