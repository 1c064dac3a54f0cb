"""ConjSinking: conjugation goes to the operands of what commutes with it (SEMANTICS A.3).

So it comes to stand before the contractions that can take it in (`DotConjFolding`). The instruction that was conjugated
stays for its other readers. The sign of an imaginary zero may change (a sum that cancels, what Pad fills in).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tenferro_ref import ops
from tenferro_ref.compiler.rewrite import PassResult, rebuild
from tenferro_ref.dtype import INEXACT
from tenferro_ref.ops import Op, TensorType
from tenferro_ref.program import ExecProgram, Instruction

#: Whose conjugate is the same of all operands' conjugates.
OF_ALL = (ops.Add, ops.Multiply, ops.Divide, ops.DotGeneral, ops.Concatenate)
#: Whose conjugate is the same of operand 0's conjugate; the others are indices, shapes, or there are none.
OF_FIRST = (
    ops.Negate, ops.ReduceSum, ops.ReduceProd, ops.Transpose, ops.Reshape, ops.BroadcastInDim, ops.Slice, ops.DynamicSlice,
    ops.Pad, ops.Reverse, ops.ExtractDiag, ops.EmbedDiag, ops.Tril, ops.Triu, ops.Gather, ops.Convert,
)  # fmt: skip


def conjugated_operands(op: Op, types: Mapping[int, TensorType], slots: tuple[int, ...]) -> tuple[int, ...] | None:
    """Which operands `op` is to have conjugated for its result to be; None if it does not commute with Conj."""
    if isinstance(op, OF_ALL):
        return tuple(range(len(slots)))
    if isinstance(op, ops.Convert):
        source = types[slots[0]].dtype
        if not {source, op.to} <= INEXACT or (op.to.is_complex and not source.is_complex):
            return None  # of a real number it would be the same number: every imaginary -0 would be lost
    return (0,) if isinstance(op, OF_FIRST) else None


@dataclass
class _Sweeping:
    """A program between two sweeps. Its types are inferred once, behind the last one: a Conj goes one op a sweep."""

    instructions: list[Instruction]
    outputs: tuple[int, ...]
    n_slots: int
    types: dict[int, TensorType]
    changes: list[str] = field(default_factory=list)
    #: Whether more changed than that a double Conj went.
    inexact: bool = False


def conj_sinking(program: ExecProgram) -> PassResult:
    """Whole sweeps until none changes anything."""
    if not any(isinstance(ins.op, ops.Conj) for ins in program.instructions):
        return PassResult(program)
    state = _Sweeping([*program.instructions], program.output_slots, program.n_slots, dict(program.slot_types))
    while _sweep(state):
        pass
    if not state.changes:
        return PassResult(program)
    made = rebuild(replace(program, output_slots=state.outputs), state.instructions, state.n_slots)
    return PassResult(made, tuple(state.changes), state.inexact)


def _sweep(state: _Sweeping) -> bool:
    """One sweep; whether it changed anything."""
    producers = {slot: ins for ins in state.instructions for slot in ins.output_slots}
    alias: dict[int, int] = {}
    made: dict[int, int] = {}
    instructions: list[Instruction] = []
    before = len(state.changes)
    for ins in state.instructions:
        slots = tuple([alias.get(slot, slot) for slot in ins.input_slots])
        inner = producers.get(slots[0]) if isinstance(ins.op, ops.Conj) else None
        if inner is not None and isinstance(inner.op, ops.Conj):
            (out,), source = ins.output_slots, inner.input_slots[0]
            alias[out] = source = alias.get(source, source)
            state.changes.append(f"slot {out}: Conj of Conj removed, slot {source} is read instead")
            continue
        places = None if inner is None else conjugated_operands(inner.op, state.types, inner.input_slots)
        if inner is None or places is None:
            instructions.append(ins if slots == ins.input_slots else Instruction(ins.op, slots, ins.output_slots))
            continue
        operands = [alias.get(slot, slot) for slot in inner.input_slots]
        for place in places:
            slot = operands[place]
            producer = producers.get(slot)
            if producer is not None and isinstance(producer.op, ops.Conj):
                operands[place] = alias.get(producer.input_slots[0], producer.input_slots[0])
            else:
                if slot not in made:
                    made[slot], state.n_slots = state.n_slots, state.n_slots + 1
                    state.types[made[slot]] = state.types[slot]
                    instructions.append(Instruction(ops.Conj(), (slot,), (made[slot],)))
                operands[place] = made[slot]
        instructions.append(Instruction(inner.op, tuple(operands), ins.output_slots))
        state.changes.append(
            f"slot {ins.output_slots[0]}: Conj of {inner.op.name} becomes {inner.op.name} of conjugates"
        )
        state.inexact = True
    state.instructions = instructions
    state.outputs = tuple(alias.get(slot, slot) for slot in state.outputs)
    return len(state.changes) > before
