"""The normal form of a program, the key of a compile cache: without names, and without numbering and order that are free."""

from __future__ import annotations

from tenferro_ref.program.program import Instruction, Program


def normal_form(program: Program) -> Program:
    """The graph with the same inputs, outputs and policy, equal for all programs with the same flow of data.

    It has no name, no names of symbols and no dead code; instructions come as the outputs need them, operands first, and
    slots are numbered in the order in which they are written. Values are the same; where several instructions fail for the
    values at hand, another one may be the first.

    Raises
    ------
    InvalidCompiledGraph, ValidationError
        The program is malformed, or an instruction breaks its op's rule.
    """
    program.slot_types  # noqa: B018 - a malformed program has no flow of data
    order: list[Instruction] = []
    numbers = {slot: i for i, slot in enumerate(program.input_slots)}
    pending = list(reversed(program.output_slots))
    while pending:
        slot = pending[-1]
        if slot in numbers:
            pending.pop()
            continue
        ins = program.instructions[program.producers[slot]]
        missing = [operand for operand in ins.input_slots if operand not in numbers]
        pending += reversed(missing)
        if not missing:
            numbers |= {made: len(numbers) + i for i, made in enumerate(ins.output_slots)}
            order.append(
                Instruction(
                    ins.op, tuple(numbers[s] for s in ins.input_slots), tuple(numbers[s] for s in ins.output_slots)
                )
            )
    return Program(
        tuple(order),
        tuple(numbers[slot] for slot in program.input_slots),
        program.input_types,
        tuple(numbers[slot] for slot in program.output_slots),
        len(numbers),
        program.policy,
    )
