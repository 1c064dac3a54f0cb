"""ConjSinking: conjugation goes to the operands of what commutes with it (SEMANTICS A.3).

So it comes to stand before the contractions that can take it in (`DotConjFolding`). The instruction that was conjugated
stays for its other readers. The sign of an imaginary zero may change (a sum that cancels, what Pad fills in).
"""

from __future__ import annotations

from dataclasses import replace

from tenferro_ref import ops
from tenferro_ref.compiler.rewrite import PassResult, rebuild
from tenferro_ref.dtype import INEXACT
from tenferro_ref.ops import Op
from tenferro_ref.program import ExecProgram, Instruction

#: Whose conjugate is the same of all operands' conjugates.
OF_ALL = (ops.Add, ops.Multiply, ops.Divide, ops.DotGeneral, ops.Concatenate)
#: Whose conjugate is the same of operand 0's conjugate; the others are indices, shapes, or there are none.
OF_FIRST = (
    ops.Negate, ops.ReduceSum, ops.ReduceProd, ops.Transpose, ops.Reshape, ops.BroadcastInDim, ops.Slice, ops.DynamicSlice,
    ops.Pad, ops.Reverse, ops.ExtractDiag, ops.EmbedDiag, ops.Tril, ops.Triu, ops.Gather, ops.Convert,
)  # fmt: skip


def conjugated_operands(op: Op, program: ExecProgram, slots: tuple[int, ...]) -> tuple[int, ...] | None:
    """Which operands `op` is to have conjugated for its result to be; None if it does not commute with Conj."""
    if isinstance(op, OF_ALL):
        return tuple(range(len(slots)))
    if isinstance(op, ops.Convert):
        source = program.slot_types[slots[0]].dtype
        if not {source, op.to} <= INEXACT or (op.to.is_complex and not source.is_complex):
            return None  # of a real number it would be the same number: every imaginary -0 would be lost
    return (0,) if isinstance(op, OF_FIRST) else None


def conj_sinking(program: ExecProgram) -> PassResult:
    """Whole sweeps until none changes anything."""
    if not any(isinstance(ins.op, ops.Conj) for ins in program.instructions):
        return PassResult(program)
    changes: list[str] = []
    inexact = False
    while lines := (step := _sweep(program))[1]:
        program = step[0]
        changes += lines
        inexact = inexact or step[2]
    return PassResult(program, tuple(changes), inexact)


def _sweep(program: ExecProgram) -> tuple[ExecProgram, list[str], bool]:
    """The program after one sweep, what changed, and whether more changed than that a double Conj went."""
    producers = {slot: ins for ins in program.instructions for slot in ins.output_slots}
    alias: dict[int, int] = {}
    made: dict[int, int] = {}
    instructions: list[Instruction] = []
    changes: list[str] = []
    next_slot, inexact = program.n_slots, False
    for ins in program.instructions:
        slots = tuple(alias.get(slot, slot) for slot in ins.input_slots)
        inner = producers.get(slots[0]) if isinstance(ins.op, ops.Conj) else None
        if inner is not None and isinstance(inner.op, ops.Conj):
            (out,), source = ins.output_slots, inner.input_slots[0]
            alias[out] = source = alias.get(source, source)
            changes.append(f"slot {out}: Conj of Conj removed, slot {source} is read instead")
            continue
        places = None if inner is None else conjugated_operands(inner.op, program, inner.input_slots)
        if inner is None or places is None:
            instructions.append(Instruction(ins.op, slots, ins.output_slots))
            continue
        operands = [alias.get(slot, slot) for slot in inner.input_slots]
        for place in places:
            slot = operands[place]
            producer = producers.get(slot)
            if producer is not None and isinstance(producer.op, ops.Conj):
                operands[place] = alias.get(producer.input_slots[0], producer.input_slots[0])
            else:
                if slot not in made:
                    made[slot], next_slot = next_slot, next_slot + 1
                    instructions.append(Instruction(ops.Conj(), (slot,), (made[slot],)))
                operands[place] = made[slot]
        instructions.append(Instruction(inner.op, tuple(operands), ins.output_slots))
        changes.append(f"slot {ins.output_slots[0]}: Conj of {inner.op.name} becomes {inner.op.name} of conjugates")
        inexact = True
    if not changes:
        return program, changes, inexact
    outputs = tuple(alias.get(slot, slot) for slot in program.output_slots)
    return rebuild(replace(program, output_slots=outputs), instructions, next_slot), changes, inexact
