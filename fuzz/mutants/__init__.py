"""Seeded faults, and the hunt for them: who tests the tester."""

from fuzz.mutants.catalogue import CATALOGUE, Mutant
from fuzz.mutants.hunt import Hunter, Kill, activate, find, hunt

__all__ = ["CATALOGUE", "Hunter", "Kill", "Mutant", "activate", "find", "hunt"]
