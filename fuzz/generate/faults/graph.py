"""Faults of the graph: slots that do not exist, are never written, or are written twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fuzz.generate.choices import Choices
from fuzz.generate.faults.fault import Faults
from tenferro_ref.program import GraphProgram

FAULTS = Faults()


def _with(program: GraphProgram, i: int, **changes: Any) -> GraphProgram:
    """`program` with instruction `i` changed."""
    instructions = list(program.instructions)
    instructions[i] = replace(instructions[i], **changes)
    return replace(program, instructions=tuple(instructions))


def _stray(choices: Choices, program: GraphProgram) -> int:
    return choices.choose((program.n_slots, program.n_slots + 5, -1, 2**31))


def _reader(choices: Choices, program: GraphProgram) -> int:
    """An instruction that has operands."""
    return choices.choose([i for i, ins in enumerate(program.instructions) if ins.input_slots])


@FAULTS.graph
def operand_slot_out_of_range(choices: Choices, program: GraphProgram) -> GraphProgram:
    i = _reader(choices, program)
    slots = list(program.instructions[i].input_slots)
    slots[choices.pick(len(slots))] = _stray(choices, program)
    return _with(program, i, input_slots=tuple(slots))


@FAULTS.graph
def result_slot_out_of_range(choices: Choices, program: GraphProgram) -> GraphProgram:
    return _with(program, choices.pick(len(program.instructions)), output_slots=(_stray(choices, program),))


@FAULTS.graph
def input_slot_out_of_range(choices: Choices, program: GraphProgram) -> GraphProgram:
    return replace(program, input_slots=(*program.input_slots[:-1], _stray(choices, program)))


@FAULTS.graph
def output_slot_out_of_range(choices: Choices, program: GraphProgram) -> GraphProgram:
    return replace(program, output_slots=_insert_slot(choices, program.output_slots, _stray(choices, program)))


def _insert_slot(choices: Choices, slots: tuple[int, ...], slot: int) -> tuple[int, ...]:
    i = choices.pick(len(slots) + 1)
    return (*slots[:i], slot, *slots[i:])


@FAULTS.graph
def output_never_written(choices: Choices, program: GraphProgram) -> GraphProgram:
    outputs = _insert_slot(choices, program.output_slots, program.n_slots)
    return replace(program, n_slots=program.n_slots + 1, output_slots=outputs)


@FAULTS.graph
def operand_missing_or_left_over(choices: Choices, program: GraphProgram) -> GraphProgram:
    exact = [i for i, ins in enumerate(program.instructions) if ins.input_slots and not ins.op.variadic]
    i = choices.choose(exact)
    slots = program.instructions[i].input_slots
    return _with(program, i, input_slots=slots[1:] if choices.pick(2) else (*slots, slots[0]))


@FAULTS.graph
def too_many_results(choices: Choices, program: GraphProgram) -> GraphProgram:
    i = choices.pick(len(program.instructions))
    slots = (*program.instructions[i].output_slots, program.n_slots)
    return replace(_with(program, i, output_slots=slots), n_slots=program.n_slots + 1)


@FAULTS.graph
def no_result(choices: Choices, program: GraphProgram) -> GraphProgram:
    return _with(program, choices.pick(len(program.instructions)), output_slots=())


@FAULTS.graph
def slot_written_twice(choices: Choices, program: GraphProgram) -> GraphProgram:
    i = choices.pick(len(program.instructions))
    taken = [*program.input_slots, *(s for ins in program.instructions[:i] for s in ins.output_slots)]
    return _with(program, i, output_slots=(choices.choose(taken),))


@FAULTS.graph
def input_slot_given_twice(choices: Choices, program: GraphProgram) -> GraphProgram:
    i = choices.pick(len(program.input_slots))
    return replace(
        program,
        input_slots=(*program.input_slots, program.input_slots[i]),
        input_types=(*program.input_types, program.input_types[i]),
    )


@FAULTS.graph
def slot_read_before_it_is_written(choices: Choices, program: GraphProgram) -> GraphProgram:
    i = _reader(choices, program)
    later = [s for ins in program.instructions[i:] for s in ins.output_slots]
    slots = list(program.instructions[i].input_slots)
    slots[choices.pick(len(slots))] = choices.choose(later)
    return _with(program, i, input_slots=tuple(slots))
