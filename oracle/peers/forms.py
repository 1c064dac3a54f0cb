"""Forms of a program: what is run in place of a sound program, and gives the same bits.

What is written and read again must be the program that was written; otherwise that is an `Internal` error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from oracle.peers.front_end import as_values
from tenferro_ref.dims import InputDim
from tenferro_ref.errors import Internal, TenferroError
from tenferro_ref.program import (
    ExecProgram,
    GraphProgram,
    Program,
    dumps,
    loads,
    normal_form,
    parse,
    print_program,
    to_exec,
)


def through_json(program: Program) -> Program:
    """What is read of the program as JSON, with what a reader can infer and without."""
    text = dumps(program)
    return _the_same(_the_same(program, loads(text)), loads(_without_inferred(text)))


def _without_inferred(text: str) -> str:
    """The JSON of a program without the entries that follow from the others."""
    record = json.loads(text)
    instructions = record["instructions"]
    slots = {i["slot"] for i in record["inputs"]}.union(*(i["inputs"] + i["outputs"] for i in instructions))
    if record["n_slots"] == 1 + max(slots, default=-1):
        del record["n_slots"]
    for instruction in instructions:
        for key in ("dtype", "output_shapes", "output_extents", "last_use"):
            instruction.pop(key, None)
    return json.dumps(record)


def through_text(program: Program) -> Program:
    """What is read of the program as text."""
    return _the_same(program, parse(print_program(program)))


def _the_same(written: Program, read: Program) -> Program:
    """The program that was read, names of symbols and sources of guards included in what must agree."""
    if read != written or _beside(read) != _beside(written):
        raise Internal(detail="what is read of a program is another program")
    return read


def _beside(program: Program) -> tuple[object, ...]:
    """What does not count when programs are compared; an exec program keeps no names of symbols."""
    names = program.symbols if program.kind == "graph" else ()
    return names, [(guard.family, guard.instruction_index) for guard in program.shape_guards]


def at_sizes(program: GraphProgram, shapes: Sequence[Sequence[int]]) -> GraphProgram:
    """The program with integers in place of its symbols, as inputs of these shapes give them."""
    sizes = {name: shapes[extent.input][extent.axis] for extent, name in program.symbols}
    return program.at_sizes(sizes) if sizes else program


def with_symbols(program: GraphProgram) -> GraphProgram:
    """The program with a symbol of its own for each extent of its inputs, but where an op's rule needs to know the extent."""
    for number, type_ in enumerate(program.input_types):
        for axis in range(type_.rank):
            candidate = opened(program, number, axis)
            try:
                candidate.slot_types  # noqa: B018 - inference is the check
                to_exec(candidate)  # guards, too
            except TenferroError:
                continue
            program = candidate
    return program


def opened(program: GraphProgram, number: int, axis: int) -> GraphProgram:
    """The program with a symbol for one extent."""
    types, symbol = list(program.input_types), InputDim(number, axis)
    shape = types[number].shape
    types[number] = types[number].with_shape((*shape[:axis], symbol, *shape[axis + 1 :]))
    return replace(program, input_types=tuple(types), symbols=(*program.symbols, (symbol, f"n{number}_{axis}")))


#: By the word that follows "as-" in the name of an executor; "" for the program as it is.
FORMS: dict[str, Callable[[GraphProgram], GraphProgram]] = {
    "": lambda program: program,
    "json": through_json,
    "text": through_text,
    "normal": normal_form,
    "values": as_values,
}

#: Those of a compiled program, with types, last uses and shape guards.
EXEC_FORMS: dict[str, Callable[[ExecProgram], ExecProgram]] = {"exec-json": through_json, "exec-text": through_text}
