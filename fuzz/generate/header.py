"""The header of a program's bytes: the decisions that concern the whole program, and at what place each of them is."""

from __future__ import annotations

from fuzz.generate.choices import Choices

#: Bytes of a header: decisions read in turn, as far as they go; then those at a place of their own: policy and symbols, the linalg
#: family, and the numbers of anchor and motif with the place of each.
_IN_TURN, _PLACED, _NUMBERS = 40, 7, 6
HEADER = _IN_TURN + _PLACED + _NUMBERS


def numbered(header: bytes, anchor: int, motif: int) -> bytes:
    """The header with another anchor and motif, counted from 1; 0 for none."""
    return header[:-_NUMBERS] + anchor.to_bytes(2, "big") + motif.to_bytes(2, "big") + header[-2:]


def motif_of(header: bytes) -> tuple[int, int]:
    """Number of the motif that a program must have, 0 for none, and where among the genes it comes, in 256ths."""
    tail = header[HEADER - _NUMBERS :]
    return (int.from_bytes(tail[2:4], "big"), tail[5]) if len(tail) == _NUMBERS else (0, 0)


def decisions(header: bytes) -> tuple[Choices, Choices, Choices]:
    """The three parts of a header, each read in turn: what is read as far as it goes, what has a place, the numbers."""
    return Choices(header[:_IN_TURN]), Choices(header[_IN_TURN:]), Choices(header[HEADER - _NUMBERS :])
