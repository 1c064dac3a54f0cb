"""AlgebraicLayoutSimplifier: transposes and reshapes that do nothing go, adjacent transposes become one (SEMANTICS 4.5).

Not in the default pipeline. It is the one pass that may make a program output another slot than before, even an input.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tenferro_ref import ops
from tenferro_ref.compiler.rewrite import PassResult, rebuild, recorded_type
from tenferro_ref.dims import InputDim
from tenferro_ref.program import ExecProgram, Instruction

#: Slot and permutation of the Transpose that wrote a slot.
Written = tuple[int, tuple[int, ...]]


def is_identity(program: ExecProgram, ins: Instruction) -> bool:
    """A Transpose that keeps the order, or a Reshape to the extents of its operand's own axes, each by name.

    The ranks are compared, too: `[n, 1] -> [InputDim(0, 0)]` names its extents but drops an axis.
    """
    match ins.op:
        case ops.Transpose(perm):
            return perm == tuple(range(len(perm)))
        case ops.Reshape(shape):
            rank = recorded_type(program, ins.input_slots[0]).rank
            return shape == tuple(InputDim(0, axis) for axis in range(rank))
    return False


def layout_simplifier(program: ExecProgram) -> PassResult:
    """Drop identity Transposes and Reshapes, and make one of two Transposes where nothing else reads the first."""
    changes: list[str] = []
    while lines := (step := _scan(program))[1]:
        program = step[0]
        changes += lines
    return PassResult(program, tuple(changes))


def _scan(program: ExecProgram) -> tuple[ExecProgram, list[str]]:
    uses = Counter(slot for ins in program.instructions for slot in ins.input_slots)
    uses.update(program.output_slots)
    transposes: dict[int, Written] = {}
    merged: set[int] = set()
    alias: dict[int, int] = {}
    instructions: list[Instruction] = []
    changes: list[str] = []
    for ins in program.instructions:
        op, slots = ins.op, tuple(alias.get(slot, slot) for slot in ins.input_slots)
        if is_identity(program, ins):
            (out,), source = ins.output_slots, slots[0]
            alias[out] = source
            uses[source] += uses[out] - 1
            changes.append(f"slot {out}: identity {op.name} removed, slot {source} is read instead")
            continue
        if isinstance(op, ops.Transpose):
            (out,), middle = ins.output_slots, slots[0]
            if middle in transposes and uses[middle] == 1:
                source, first = transposes[middle]
                merged.add(middle)
                op, slots = ops.Transpose(tuple(first[axis] for axis in op.perm)), (source,)
                changes.append(f"slot {out}: reads slot {source}, not its transpose in {middle}")
            transposes[out] = slots[0], op.perm
        instructions.append(Instruction(op, slots, ins.output_slots))
    if not changes:
        return program, changes
    outputs = tuple(alias.get(slot, slot) for slot in program.output_slots)
    kept = [ins for ins in instructions if merged.isdisjoint(ins.output_slots)]
    return rebuild(replace(program, output_slots=outputs), kept), changes
