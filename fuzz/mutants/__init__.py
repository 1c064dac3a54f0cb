"""Seeded faults, and the hunt for them: who tests the tester."""

from fuzz.mutants.catalogue import catalogue, drawn, find
from fuzz.mutants.hunt import Hunter, Kill, activate, hunt
from fuzz.mutants.mutant import Mutant

__all__ = ["Hunter", "Kill", "Mutant", "activate", "catalogue", "drawn", "find", "hunt"]
