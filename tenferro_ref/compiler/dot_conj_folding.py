"""DotConjFolding: a contraction takes in the Conj of an operand, as a flag (SEMANTICS A.4).

The Conj may stand directly before it, or before a chain of instructions that only move elements, each read by the next
one alone. The Conj itself stays, for dead code elimination to remove.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace

from tenferro_ref import ops
from tenferro_ref.compiler.rewrite import PassResult, rebuild
from tenferro_ref.program import ExecProgram, Instruction

#: What a Conj may be read through.
LAYOUT = (
    ops.Transpose, ops.Reshape, ops.BroadcastInDim, ops.Slice, ops.DynamicSlice, ops.Pad, ops.Reverse, ops.ExtractDiag,
    ops.EmbedDiag, ops.Tril, ops.Triu, ops.Gather,
)  # fmt: skip


def dot_conj_folding(program: ExecProgram) -> PassResult:
    """One look at each operand of each contraction, on the program as it was before."""
    producers = {slot: i for i, ins in enumerate(program.instructions) for slot in ins.output_slots}
    uses = Counter(slot for ins in program.instructions for slot in ins.input_slots)
    uses.update(program.output_slots)
    instructions = list(program.instructions)
    changes: list[str] = []
    #: slot of a Conj that was folded behind a chain, and what it conjugates
    behind: dict[int, int] = {}
    for i, ins in enumerate(program.instructions):
        if not isinstance(ins.op, ops.DotGeneral):
            continue
        flags, slots = [getattr(ins.op, name, False) for name in ("lhs_conj", "rhs_conj")], list(ins.input_slots)
        for side, slot in enumerate(ins.input_slots):
            chain = _chain_to_conj(program, producers, uses, slot)
            if chain is None:
                continue
            *through, conj = chain
            (conjugated,), (source,) = program.instructions[conj].output_slots, program.instructions[conj].input_slots
            flags[side] = not flags[side]
            if through:
                last = through[-1]
                instructions[last] = replace(instructions[last], input_slots=(source,))
                behind[conjugated] = source
            else:
                slots[side] = source
            changes.append(f"slot {ins.output_slots[0]}: {('lhs', 'rhs')[side]} takes in the Conj in slot {conjugated}")
        lists = [getattr(ins.op, f.name) for f in fields(ops.DotGeneral)]
        op = ops.DotGeneralWithConj(*lists, *flags) if any(flags) else ops.DotGeneral(*lists)
        if tuple(slots) != ins.input_slots or flags != [getattr(ins.op, n, False) for n in ("lhs_conj", "rhs_conj")]:
            instructions[i] = Instruction(op, tuple(slots), ins.output_slots)
    if not changes:
        return PassResult(program)
    for i, ins in enumerate(instructions):
        if isinstance(ins.op, ops.Reshape) and not behind.keys().isdisjoint(ins.input_slots[1:]):
            providers = (behind.get(slot, slot) for slot in ins.input_slots[1:])
            instructions[i] = replace(ins, input_slots=(ins.input_slots[0], *providers))
    # what fills up a padded or embedded operand is conjugated now: zeros may have another sign
    return PassResult(rebuild(program, instructions), tuple(changes), bool(behind))


def _chain_to_conj(program: ExecProgram, producers: dict[int, int], uses: Counter[int], slot: int) -> list[int] | None:
    """Instructions from the one that writes `slot` back to a Conj, the last of them; None if there is none."""
    chain: list[int] = []
    while (i := producers.get(slot)) is not None:
        ins = program.instructions[i]
        chain.append(i)
        if isinstance(ins.op, ops.Conj):
            return chain
        if not isinstance(ins.op, LAYOUT) or len(ins.input_slots) != 1 or uses[slot] != 1:
            return None
        slot = ins.input_slots[0]
    return None
