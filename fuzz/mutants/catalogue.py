"""The catalogue of seeded faults: those written by hand and those made by rule."""

from __future__ import annotations

from fuzz.mutants.by_hand import BY_HAND
from fuzz.mutants.by_rule import mutants
from fuzz.mutants.mutant import Mutant

CATALOGUE: tuple[Mutant, ...] = (*BY_HAND, *mutants())
BY_NAME = {mutant.name: mutant for mutant in CATALOGUE}

__all__ = ["BY_NAME", "CATALOGUE", "Mutant"]
