"""Extension ops that standard ops can say: the program in which they are said so (SEMANTICS 6).

A lowering to StableHLO, or whatever else knows the standard ops alone, takes the program through `standard_view` or `standard_program` first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tenferro_ref import ops
from tenferro_ref.extensions import einsum
from tenferro_ref.ops import Policy, TensorType
from tenferro_ref.program import GraphBuilder, GraphProgram, Instruction, LoweringView, Value

#: By family: `lower(op, *operands) -> results` appends standard ops to the operands' builder. All extents are integers.
STANDARD: dict[str, Callable[..., Sequence[Value]]] = {einsum.FAMILY: einsum.lower}


def standard_view(view: LoweringView) -> LoweringView:
    """The view, at the same input shapes, of `standard_program`."""
    given = view.program
    if not _lowerable(given):
        return view
    return LoweringView.of(standard_program(given.to_graph(), view.input_specs))


def standard_program(program: GraphProgram, input_types: tuple[TensorType, ...]) -> GraphProgram:
    """The program for inputs of concrete types, with extension ops replaced by standard ops where that can be done.

    It can where the family has a lowering and all extents of the operands are exact; other extension ops stay as they are.
    Slots keep their numbers; those that the standard ops need beyond them come behind. A program with nothing to replace
    is returned as it is.

    Raises
    ------
    ValidationError
        An op's rule is broken at these input shapes.
    """
    if not _lowerable(program):
        return program
    if input_types != program.input_types:
        program = replace(program, input_types=input_types, symbols=())
    instructions: list[Instruction] = []
    n_slots = program.n_slots
    for ins in program.instructions:
        operands = [program.slot_types[slot] for slot in ins.input_slots]
        if isinstance(ins.op, ops.Extension) and ins.op.family in STANDARD and all(t.is_static for t in operands):
            lowered = _lowered(ins, STANDARD[ins.op.family], operands, program.policy, n_slots)
            n_slots = max((n_slots, *(slot + 1 for i in lowered for slot in i.output_slots)))
            instructions += lowered
        else:
            instructions.append(ins)
    return replace(program, instructions=tuple(instructions), n_slots=n_slots)


def _lowerable(program: GraphProgram) -> bool:
    return any(isinstance(ins.op, ops.Extension) and ins.op.family in STANDARD for ins in program.instructions)


def _lowered(
    ins: Instruction, lower: Callable[..., Sequence[Value]], operands: list[TensorType], policy: Policy, free: int
) -> list[Instruction]:
    """Standard instructions between the slots of `ins`; slots from `free` on are theirs."""
    builder = GraphBuilder(policy=policy)
    inputs = [builder.input(t.dtype, [e for e in t.shape if isinstance(e, int)]) for t in operands]
    results = lower(ins.op, *inputs)
    standard = builder.build(*results)
    place = dict(zip(standard.output_slots, ins.output_slots, strict=True))
    place.update(zip(standard.input_slots, ins.input_slots, strict=True))
    for inner in standard.instructions:
        for slot in inner.output_slots:
            free += slot not in place
            place.setdefault(slot, free - 1)
    instructions = [
        Instruction(i.op, tuple(place[s] for s in i.input_slots), tuple(place[s] for s in i.output_slots))
        for i in standard.instructions
    ]
    # a result that is an operand, or another result, needs an instruction that writes it
    for result, out in zip(results, ins.output_slots, strict=True):
        if place[result.slot] != out:
            copy = ops.Transpose(tuple(range(result.type.rank)))
            instructions.append(Instruction(copy, (place[result.slot],), (out,)))
    return instructions
