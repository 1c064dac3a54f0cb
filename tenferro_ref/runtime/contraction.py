"""Contractions that a program spells out as Transpose, Reshape and DotGeneral, recognised for one call of a backend.

That is how DotDecomposer leaves a contraction: each operand is permuted and its axes are merged, the matrix product is
taken, and merged axes are given back. Read together these are one DotGeneral of the operands as they were, whose pairs of
axes have the order of the merged ones, so that it adds the same terms in the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tenferro_ref import ops
from tenferro_ref.ops import TensorType, free_axes
from tenferro_ref.program import ExecProgram

Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Contraction:
    """Instructions that together are one DotGeneral.

    Attributes
    ----------
    op, operands
        The DotGeneral, and the slots that it contracts.
    result, type
        The slot that the last of the instructions writes, and its type: that of `op`, but for merged axes.
    before, at
        Indices of the Transposes and Reshapes of operands, and of the DotGeneral. A Reshape of its result comes later.
    """

    op: ops.DotGeneral
    operands: tuple[int, int]
    result: int
    type: TensorType
    before: tuple[int, ...]
    at: int


@dataclass(frozen=True, slots=True)
class _Operand:
    """Where an operand of a DotGeneral comes from: a slot, the axes there that each of its axes is, and by which instructions."""

    slot: int
    axes: tuple[Axes, ...]
    steps: tuple[int, ...]

    def of(self, axes: Iterable[int]) -> Axes:
        """The axes of the slot that these axes of the operand are."""
        return tuple(a for axis in axes for a in self.axes[axis])


def contractions_in(
    program: ExecProgram, results: Sequence[tuple[TensorType, ...] | None], types: Mapping[int, TensorType]
) -> dict[int, Contraction]:
    """The contractions of more than one instruction, under the index of each of these.

    Parameters
    ----------
    results
        Types of each instruction's results; None for those that have to run by themselves.
    types
        Type of each slot that has one.
    """
    uses = Counter(slot for ins in program.instructions for slot in ins.input_slots) + Counter(program.output_slots)
    # Transposes and Reshapes by the slot that they write
    steps = {
        ins.output_slots[0]: i
        for i, ins in enumerate(program.instructions)
        if isinstance(ins.op, ops.Transpose | ops.Reshape) and results[i] is not None
    }
    found: dict[int, Contraction] = {}
    for at, ins in enumerate(program.instructions):
        if not isinstance(ins.op, ops.DotGeneral) or results[at] is None:
            continue
        single = {slot: i for slot, i in steps.items() if uses[slot] == 1 and i not in found}
        lhs, rhs = (_operand(program, single, types, slot, at) for slot in ins.input_slots)
        op = _composed(ins.op, lhs, rhs, types)
        if op is None:
            continue
        (result,) = ins.output_slots
        reader = program.last_read.get(result, at)
        merged = (
            uses[result] == 1 and reader in steps.values() and program.instructions[reader].input_slots[0] == result
        )
        after = (reader,) if merged and isinstance(program.instructions[reader].op, ops.Reshape) else ()
        before = tuple(sorted(lhs.steps + rhs.steps))
        if before or after:
            (result,) = program.instructions[(at, *after)[-1]].output_slots
            group = Contraction(op, (lhs.slot, rhs.slot), result, types[result], before, at)
            found |= dict.fromkeys((*before, at, *after), group)
    return found


def _operand(
    program: ExecProgram, steps: Mapping[int, int], types: Mapping[int, TensorType], slot: int, at: int
) -> _Operand:
    """The operand in `slot` of instruction `at`, followed back through `steps`."""
    operand = _Operand(slot, tuple((axis,) for axis in range(types[slot].rank)), ())
    while (step := steps.get(operand.slot)) is not None:
        ins = program.instructions[step]
        source = ins.input_slots[0]
        if step < program.last_read[source] < at:
            break  # its buffer is reclaimed before the contraction would read it
        spans = (
            [(axis,) for axis in ins.op.perm]
            if isinstance(ins.op, ops.Transpose)
            else _merged(types[source].static_shape, types[operand.slot].static_shape)
        )
        if spans is None:
            break
        axes = tuple(tuple(a for axis in group for a in spans[axis]) for group in operand.axes)
        operand = _Operand(source, axes, (step, *operand.steps))
    return operand


def _merged(shape: Sequence[int], merged: Sequence[int]) -> list[Axes] | None:
    """Which consecutive axes of `shape` make up each axis of `merged`; None if it is no such merger."""
    spans: list[Axes] = []
    axis = 0
    for place, extent in enumerate(merged):
        span: list[int] = []
        size, last = 1, place == len(merged) - 1
        while axis < len(shape) and (size * shape[axis] <= extent if last else size != extent or not span):
            size *= shape[axis]
            span.append(axis)
            axis += 1
        if size != extent:
            return None
        spans.append(tuple(span))
    return spans if axis == len(shape) and 0 not in shape else None


def _composed(
    op: ops.DotGeneral, lhs: _Operand, rhs: _Operand, types: Mapping[int, TensorType]
) -> ops.DotGeneral | None:
    """`op` in terms of the slots that its operands come from; None where no DotGeneral gives that."""
    new = replace(
        op,
        lhs_contracting_dims=lhs.of(op.lhs_contracting_dims),
        rhs_contracting_dims=rhs.of(op.rhs_contracting_dims),
        lhs_batch_dims=lhs.of(op.lhs_batch_dims),
        rhs_batch_dims=rhs.of(op.rhs_batch_dims),
    )
    left, right = types[lhs.slot].static_shape, types[rhs.slot].static_shape
    paired = [left[a] for a in new.lhs_contracting_dims] == [right[a] for a in new.rhs_contracting_dims] and [
        left[a] for a in new.lhs_batch_dims
    ] == [right[a] for a in new.rhs_batch_dims]
    # the result has free axes in ascending order, whatever was done to the operand
    ordered = all(
        operand.of(free_axes(len(operand.axes), contracting, batch)) == free_axes(rank, *mapped)
        for operand, contracting, batch, rank, mapped in (
            (
                lhs,
                op.lhs_contracting_dims,
                op.lhs_batch_dims,
                len(left),
                (new.lhs_contracting_dims, new.lhs_batch_dims),
            ),
            (
                rhs,
                op.rhs_contracting_dims,
                op.rhs_batch_dims,
                len(right),
                (new.rhs_contracting_dims, new.rhs_batch_dims),
            ),
        )
    )
    return new if paired and ordered else None
