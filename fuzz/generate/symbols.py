"""Symbols in place of integers in the input shapes of a finished program, equal symbols for equal extents."""

from __future__ import annotations

from dataclasses import replace

from tenferro_ref.dims import Extent, InputDim
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import TensorType
from tenferro_ref.program import GraphProgram

_NAMES = ("n", "m", "k")


def symbolised(program: GraphProgram, bits: int) -> GraphProgram:
    """`program` with up to three symbols; fewer where an op's rule needs to know an extent, none for bits 0.

    Parameters
    ----------
    bits
        Says which extents become symbols, how many do, and whether an extent has the same symbol in every input.
    """
    if not bits:
        return program
    sides = 1 + bits // 64 % 2
    found = dict.fromkeys((e, i % sides) for i, t in enumerate(program.input_types) for e in t.shape)
    extents = list(found)
    turn = bits % max(1, len(extents))
    chosen = [*extents[turn:], *extents[:turn]][: 1 + bits % len(_NAMES)]
    for count in range(len(chosen), 0, -1):
        candidate = _with_symbols(program, chosen[:count], sides)
        try:
            candidate.slot_types  # noqa: B018 - inference is the check
        except TenferroError:
            continue
        return candidate
    return program


def _with_symbols(program: GraphProgram, chosen: list[tuple[Extent, int]], sides: int) -> GraphProgram:
    first: dict[tuple[Extent, int], InputDim] = {}

    def declared(i: int, type_: TensorType) -> TensorType:
        keys = [(extent, i % sides) for extent in type_.shape]
        return type_.with_shape(
            first.setdefault(key, InputDim(i, axis)) if key in chosen else key[0] for axis, key in enumerate(keys)
        )

    types = tuple(declared(i, t) for i, t in enumerate(program.input_types))
    symbols = tuple(zip(first.values(), _NAMES, strict=False))
    return replace(program, input_types=types, symbols=symbols)
