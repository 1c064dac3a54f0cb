"""Derivative programs in batches: of a program grown around the next op that has a rule, or of the program that was drawn."""

from fuzz.generate.derivatives.cases import in_turn, of_drawn

__all__ = ["in_turn", "of_drawn"]
