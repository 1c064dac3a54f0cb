"""The last steps of a grown program: without dead code, slots numbered without gaps, symbols for extents of its inputs."""

from __future__ import annotations

from dataclasses import replace

from oracle.case import live
from tenferro_ref.dims import Extent, InputDim
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import TensorType
from tenferro_ref.program import GraphProgram, Instruction

_SYMBOLS = ("n", "m", "k")


def without_dead_code(program: GraphProgram) -> GraphProgram:
    """`program` without instructions and inputs that no output depends on; slots keep their numbers."""
    program = live(program)
    read = {*program.output_slots, *(slot for ins in program.instructions for slot in ins.input_slots)}
    inputs = [(s, t) for s, t in zip(program.input_slots, program.input_types, strict=True) if s in read]
    return replace(program, input_slots=tuple(s for s, _ in inputs), input_types=tuple(t for _, t in inputs))


def renumbered(program: GraphProgram) -> GraphProgram:
    """`program` with its slots numbered without gaps."""
    written = [*program.input_slots, *(s for ins in program.instructions for s in ins.output_slots)]
    if len(written) == program.n_slots:
        return program
    new = {slot: i for i, slot in enumerate(sorted(written))}
    instructions = tuple(
        Instruction(ins.op, tuple(new[s] for s in ins.input_slots), tuple(new[s] for s in ins.output_slots))
        for ins in program.instructions
    )
    return replace(
        program,
        instructions=instructions,
        input_slots=tuple(new[s] for s in program.input_slots),
        output_slots=tuple(new[s] for s in program.output_slots),
        n_slots=len(new),
    )


def symbolised(program: GraphProgram, choice: int) -> GraphProgram:
    """`program` with up to three symbols; with fewer where an op's rule needs to know an extent.

    Parameters
    ----------
    choice
        A byte that decides which extents become symbols, how many do, and whether an extent has the same symbol in every
        input or one in inputs of even number and another in the rest; 0 for no symbols.
    """
    if not choice:
        return program
    sides = 1 + choice // 64 % 2
    extents = list(dict.fromkeys((e, i % sides) for i, t in enumerate(program.input_types) for e in t.shape))
    turn = choice % max(1, len(extents))
    chosen = [*extents[turn:], *extents[:turn]][: 1 + choice % len(_SYMBOLS)]
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
    return replace(program, input_types=types, symbols=tuple(zip(first.values(), _SYMBOLS, strict=False)))
