"""TransposeFolding: a DotGeneral reads through a Transpose of its operand (SEMANTICS 4.2).

Axis d of `Transpose(perm)` is axis `perm[d]` of its input, so every dim list is mapped that way. That keeps the order of
the result's axes and of the summation only if free, contracting and batch axes each stay ascending; otherwise the dot is
left alone. Only a direct Transpose folds; the Transpose itself stays, for dead code elimination to remove.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from tenferro_ref import ops
from tenferro_ref.compiler.rewrite import PassResult, rebuild
from tenferro_ref.ops import free_axes
from tenferro_ref.program import ExecProgram, Instruction

Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of a DotGeneral."""

    slot: int
    contracting: Axes
    batch: Axes


def fold(operand: Operand, source: int, perm: Axes) -> Operand | None:
    """`operand`, produced by `Transpose(perm)` of slot `source`, read from there; None if that would reorder axes."""
    contracting, batch, free = (
        tuple(perm[axis] for axis in axes)
        for axes in (operand.contracting, operand.batch, free_axes(len(perm), operand.contracting, operand.batch))
    )
    if all(a < b for axes in (contracting, batch, free) for a, b in pairwise(axes)):
        return Operand(source, contracting, batch)
    return None


def fold_all(operand: Operand, transposes: Mapping[int, tuple[int, Axes]]) -> Operand:
    """`operand` read through as many transposes, each the producer of the one before, as fold."""
    while operand.slot in transposes and (folded := fold(operand, *transposes[operand.slot])):
        operand = folded
    return operand


def transpose_folding(program: ExecProgram) -> PassResult:
    """Fold transposes into both operands of every DotGeneral, to a fixpoint."""
    transposes = {
        ins.output_slots[0]: (ins.input_slots[0], ins.op.perm)
        for ins in program.instructions
        if isinstance(ins.op, ops.Transpose)
    }
    instructions: list[Instruction] = []
    changes: list[str] = []
    for ins in program.instructions:
        if not isinstance(ins.op, ops.DotGeneral):
            instructions.append(ins)
            continue
        op, slots = ins.op, ins.input_slots
        lhs = fold_all(Operand(slots[0], op.lhs_contracting_dims, op.lhs_batch_dims), transposes)
        rhs = fold_all(Operand(slots[1], op.rhs_contracting_dims, op.rhs_batch_dims), transposes)
        for side, before, after in (("lhs", slots[0], lhs.slot), ("rhs", slots[1], rhs.slot)):
            if before != after:
                changes.append(f"slot {ins.output_slots[0]}: {side} reads slot {after}, not its transpose in {before}")
        folded = replace(
            op,
            lhs_contracting_dims=lhs.contracting,
            rhs_contracting_dims=rhs.contracting,
            lhs_batch_dims=lhs.batch,
            rhs_batch_dims=rhs.batch,
        )
        instructions.append(Instruction(folded, (lhs.slot, rhs.slot), ins.output_slots))
    return PassResult(rebuild(program, instructions), tuple(changes)) if changes else PassResult(program)
