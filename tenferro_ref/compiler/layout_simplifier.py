"""AlgebraicLayoutSimplifier: transposes and reshapes that do nothing go, adjacent transposes become one (SEMANTICS 4.5).

It is, with ConjSinking, a pass that may make a program output another slot than before, even an input.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tenferro_ref import ops
from tenferro_ref.compiler.rewrite import PassResult, rebuild, recorded_type
from tenferro_ref.dims import InputDim
from tenferro_ref.program import ExecProgram, Instruction


def is_identity(program: ExecProgram, ins: Instruction) -> bool:
    """A Transpose that keeps the order, or a Reshape to the extents of its operand's own axes, each by name.

    The ranks are compared, too: `[n, 1] -> [InputDim(0, 0)]` names its extents but drops an axis.
    """
    match ins.op:
        case ops.Transpose(perm):
            return perm == tuple(range(len(perm)))
        case ops.Reshape(shape):
            rank = recorded_type(program, ins.input_slots[0]).rank
            return rank > 0 and shape == tuple(InputDim(0, axis) for axis in range(rank))
    return False


def layout_simplifier(program: ExecProgram) -> PassResult:
    """Drop identity Transposes and Reshapes, and read through a Transpose that nothing else reads.

    One sweep, on the program as it was before: what it makes possible is left to the next sweep, and a Transpose that is
    not read any more to dead code elimination (SEMANTICS A.2).
    """
    uses = Counter(slot for ins in program.instructions for slot in ins.input_slots)
    uses.update(program.output_slots)
    transposes = {
        ins.output_slots[0]: (ins.input_slots[0], ins.op.perm)
        for ins in program.instructions
        if isinstance(ins.op, ops.Transpose)
    }
    alias: dict[int, int] = {}
    instructions: list[Instruction] = []
    changes: list[str] = []
    for ins in program.instructions:
        op, slots = ins.op, ins.input_slots
        if uses[ins.output_slots[0]] if ins.output_slots else 0:
            (out, *_) = ins.output_slots
            if is_identity(program, ins):
                alias[out] = source = alias.get(slots[0], slots[0])
                changes.append(f"slot {out}: identity {op.name} removed, slot {source} is read instead")
                continue
            if isinstance(op, ops.Transpose) and slots[0] in transposes and uses[slots[0]] == 1:
                middle, (source, first) = slots[0], transposes[slots[0]]
                op, slots = ops.Transpose(tuple(first[axis] for axis in op.perm)), (source,)
                changes.append(f"slot {out}: reads slot {alias.get(source, source)}, not its transpose in {middle}")
        instructions.append(Instruction(op, tuple(alias.get(slot, slot) for slot in slots), ins.output_slots))
    if not changes:
        return PassResult(program)
    outputs = tuple(alias.get(slot, slot) for slot in program.output_slots)
    return PassResult(rebuild(replace(program, output_slots=outputs), instructions), tuple(changes))
