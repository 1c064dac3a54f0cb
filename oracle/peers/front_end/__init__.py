"""A program in the words of the front end: operators, slices, methods and functions in place of ops.

Each row of `WORDS` writes an instruction as a person would who has NumPy in mind. That makes the same op, or a composition which moves elements
there and back; results must have the same bits, but for an einsum that is spelled in another way (`equations`), which is held to the
enclosure of the original one. What the front end cannot say so is appended as the op that it is.
"""

from oracle.peers.front_end.table import PHRASES, WORDS
from oracle.peers.front_end.writing import as_values, spelled_otherwise

__all__ = ["PHRASES", "WORDS", "as_values", "spelled_otherwise"]
