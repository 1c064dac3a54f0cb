"""DotDecomposer: every DotGeneral becomes a batched matrix product with trailing batch axes (SEMANTICS 4.3).

The canonical form is `[M, K, B...] x [K, N, B...] -> [M, N, B...]`, without M or N where a side has no free axis. A side
is brought there by a Transpose and by a Reshape that merges its free and its contracting axes; a last Reshape gives
merged free axes back and writes the slot that the original wrote, so that no reader notices. What these instructions
assume of linearisation cancels out: that Reshape is column-major only shows in a program's own Reshapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tenferro_ref import ops
from tenferro_ref.compiler.rewrite import PassResult, rebuild, recorded_type
from tenferro_ref.dims import DimExpr, DimOp, Extent, InputDim, equal_extents
from tenferro_ref.errors import Internal
from tenferro_ref.ops import Op, free_axes
from tenferro_ref.program import ExecProgram, Instruction

Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One operand: its slot, its extents, and its axes by role."""

    slot: int
    shape: tuple[Extent, ...]
    free: Axes
    contracting: Axes
    batch: Axes

    @classmethod
    def of(cls, program: ExecProgram, slot: int, contracting: Axes, batch: Axes) -> Side:
        """The operand in `slot` with its axes by role."""
        shape = recorded_type(program, slot).shape
        return cls(slot, shape, free_axes(len(shape), contracting, batch), contracting, batch)

    @property
    def has_free(self) -> int:
        """1 if there are free axes, else 0: how many axes they are merged to."""
        return min(len(self.free), 1)

    @property
    def canonical_batch(self) -> Axes:
        """Where the batch axes stand in the canonical form."""
        start = self.has_free + 1
        return tuple(range(start, start + len(self.batch)))


def _is_canonical(op: ops.DotGeneral, lhs: Side, rhs: Side) -> bool:
    return len(lhs.free) <= 1 and len(rhs.free) <= 1 and op == _canonical(op, lhs, rhs)


def _mergeable(lhs: Side, rhs: Side) -> bool:
    """Merging the contracting axes hides no mismatch: [n, m] against [m, n] must fail as it did before."""
    pairs = list(zip(lhs.contracting, rhs.contracting, strict=True))
    return len(pairs) == 1 or all(equal_extents(lhs.shape[a], rhs.shape[b]) for a, b in pairs)


def _canonical(op: ops.DotGeneral, lhs: Side, rhs: Side) -> ops.DotGeneral:
    """`op` with the canonical axes; what it conjugates stays."""
    return replace(
        op,
        lhs_contracting_dims=(lhs.has_free,),
        rhs_contracting_dims=(0,),
        lhs_batch_dims=lhs.canonical_batch,
        rhs_batch_dims=rhs.canonical_batch,
    )


def _sides(program: ExecProgram, op: ops.DotGeneral, slots: Sequence[int]) -> tuple[Side, Side]:
    for what, left, right in (
        ("contracting", op.lhs_contracting_dims, op.rhs_contracting_dims),
        ("batch", op.lhs_batch_dims, op.rhs_batch_dims),
    ):
        if len(left) != len(right):
            raise Internal(detail=f"DotGeneral with {len(left)} lhs and {len(right)} rhs {what} axes")
    lhs, rhs = slots
    return (
        Side.of(program, lhs, op.lhs_contracting_dims, op.lhs_batch_dims),
        Side.of(program, rhs, op.rhs_contracting_dims, op.rhs_batch_dims),
    )


def _merged(shape: Sequence[Extent], axes: Axes) -> DimExpr:
    """Product of the extents of `axes` of input 0: integers where exact, else read from the running program."""
    first, *rest = (e if isinstance(e := shape[axis], int) else InputDim(0, axis) for axis in axes)
    product: DimExpr = first
    for expr in rest:
        product = DimOp("mul", product, expr)
    return product


class _Decomposition:
    """The instructions that replace one DotGeneral, with fresh slots from `next_slot` on."""

    def __init__(self, next_slot: int) -> None:
        self.instructions: list[Instruction] = []
        self.next_slot = next_slot

    def append(self, op: Op, *slots: int, out: int | None = None) -> int:
        """Add an instruction that writes slot `out`, or a new one; the slot."""
        if out is None:
            out, self.next_slot = self.next_slot, self.next_slot + 1
        self.instructions.append(Instruction(op, slots, (out,)))
        return out

    def operand(self, side: Side, first: Axes, second: Axes) -> int:
        """Slot of the operand with axes `first`, `second`, batch, the first two groups merged to one axis each."""
        slot, shape = side.slot, side.shape
        order = first + second + side.batch
        positions = tuple(range(len(order)))
        if order != positions:
            slot = self.append(ops.Transpose(order), slot)
            shape = tuple(shape[axis] for axis in order)
        if len(first) > 1 or len(second) > 1:
            batch = len(first) + len(second)
            spans = [positions[: len(first)], positions[len(first) : batch], *((p,) for p in positions[batch:])]
            slot = self.append(ops.Reshape(tuple(_merged(shape, span) for span in spans if span)), slot)
        return slot

    def dot(self, op: ops.DotGeneral, lhs: Side, rhs: Side, out: int) -> None:
        """The canonical product of two sides, with its free axes given back, in slot `out`."""
        left = self.operand(lhs, lhs.free, lhs.contracting)
        right = self.operand(rhs, rhs.contracting, rhs.free)
        if len(lhs.free) <= 1 and len(rhs.free) <= 1:
            self.append(_canonical(op, lhs, rhs), left, right, out=out)
            return
        product = self.append(_canonical(op, lhs, rhs), left, right)
        original = [InputDim(1, a) for a in lhs.free] + [InputDim(2, a) for a in rhs.free]
        original += [InputDim(1, a) for a in lhs.batch]
        self.append(ops.Reshape(tuple(original)), product, lhs.slot, rhs.slot, out=out)


def dot_decomposer(program: ExecProgram) -> PassResult:
    """Bring every DotGeneral that contracts something to the canonical form.

    Several contracting axes whose extents are not known to be pairwise equal stay as they are.

    Raises
    ------
    Internal
        The program is malformed (a slot without a shape, lists of unequal length).
    """
    instructions: list[Instruction] = []
    changes: list[str] = []
    next_slot = program.n_slots
    for ins in program.instructions:
        if isinstance(ins.op, ops.DotGeneral) and ins.op.lhs_contracting_dims:
            lhs, rhs = _sides(program, ins.op, ins.input_slots)
            if not _is_canonical(ins.op, lhs, rhs) and _mergeable(lhs, rhs):
                new = _Decomposition(next_slot)
                new.dot(ins.op, lhs, rhs, ins.output_slots[0])
                next_slot = new.next_slot
                instructions += new.instructions
                names = ", ".join(i.op.name for i in new.instructions)
                changes.append(f"slot {ins.output_slots[0]}: {ins.op.name} becomes {names}")
                continue
        instructions.append(ins)
    return PassResult(rebuild(program, instructions, next_slot), tuple(changes)) if changes else PassResult(program)
