"""`WITHOUT`: an op's attributes when unit axes of its operands and result are dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from fuzz.findings.reduce.draft import Draft, Input
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.ops import CONTRACTIONS, ELEMENTWISE, REDUCTIONS, Op
from tenferro_ref.table import Table
from tenferro_ref.tensor import column_major

Gone = AbstractSet[int]

#: (op, axes dropped from each operand, axes dropped from the result) -> op; a result that is not valid is never tested.
WITHOUT: Table[Callable[[Any, Sequence[Gone], Gone], Op]] = Table("reducer, unit axes")
WITHOUT.unsupported("the length of an index vector is the rank", ops.DynamicSlice, ops.DynamicUpdateSlice)
WITHOUT.unsupported(
    "not worth the rules",
    ops.Gather,
    ops.GatherDynamicSliceSizes,
    ops.Scatter,
    ops.EmbedDiag,
    ops.ExtractDiag,
    ops.Extension,
)


def without_axes(case: Case, gone: Mapping[int, Gone]) -> Draft | None:
    """The case without the given unit axes of each slot; None if an op cannot do without them."""
    draft = Draft.of(case)
    for i, ins in enumerate(draft.instructions):
        touched = [gone[s] for s in ins.input_slots]
        result = gone[ins.output_slots[0]]
        if result or any(touched):
            if type(ins.op) not in WITHOUT:
                return None
            draft.instructions[i] = replace(ins, op=WITHOUT[type(ins.op)](ins.op, touched, result))
    for slot, (type_, array) in draft.inputs.items():
        axes = tuple(sorted(gone[slot]))
        draft.inputs[slot] = Input(type_.drop_axes(axes), column_major(array.squeeze(axes)))
    return draft


def _renumber(axes: Sequence[int], gone: Gone) -> tuple[int, ...]:
    return tuple(axis - sum(g < axis for g in gone) for axis in axes if axis not in gone)


def _entries(values: Sequence[Any], gone: Gone) -> tuple[Any, ...]:
    return tuple(v for axis, v in enumerate(values) if axis not in gone)


@WITHOUT.row(*ELEMENTWISE, ops.Convert, ops.Tril, ops.Triu, ops.Constant)
def _(op: Op, ins: Sequence[Gone], out: Gone) -> Op:
    return op


@WITHOUT.row(ops.Transpose)
def _(op: ops.Transpose, ins: Sequence[Gone], out: Gone) -> Op:
    return ops.Transpose(_renumber(op.perm, ins[0]))


@WITHOUT.row(ops.Reshape)
def _(op: ops.Reshape, ins: Sequence[Gone], out: Gone) -> Op:
    return ops.Reshape(_entries(op.shape, out))


@WITHOUT.row(ops.BroadcastInDim)
def _(op: ops.BroadcastInDim, ins: Sequence[Gone], out: Gone) -> Op:
    return ops.BroadcastInDim(_entries(op.shape, out), _renumber(_entries(op.dims, ins[0]), out))


@WITHOUT.row(*REDUCTIONS, ops.Reverse)
def _(op: Any, ins: Sequence[Gone], out: Gone) -> Op:
    result: Op = replace(op, axes=_renumber(op.axes, ins[0]))
    return result


@WITHOUT.row(ops.Concatenate, ops.ShapeOf, ops.DynamicTruncate, ops.PadToMatch)
def _(op: Any, ins: Sequence[Gone], out: Gone) -> Op:
    axis = _renumber((op.axis,), ins[0])
    result: Op = replace(op, axis=axis[0] if axis else -1)  # -1: the op's own axis is gone, which its rule refuses
    return result


@WITHOUT.row(*CONTRACTIONS)
def _(op: ops.DotGeneral, ins: Sequence[Gone], out: Gone) -> Op:
    lhs, rhs = ins
    return replace(
        op,
        lhs_contracting_dims=_renumber(op.lhs_contracting_dims, lhs),
        rhs_contracting_dims=_renumber(op.rhs_contracting_dims, rhs),
        lhs_batch_dims=_renumber(op.lhs_batch_dims, lhs),
        rhs_batch_dims=_renumber(op.rhs_batch_dims, rhs),
    )


@WITHOUT.row(ops.Slice)
def _(op: ops.Slice, ins: Sequence[Gone], out: Gone) -> Op:
    return ops.Slice(_entries(op.starts, out), _entries(op.limits, out), _entries(op.strides, out))


@WITHOUT.row(ops.Pad)
def _(op: ops.Pad, ins: Sequence[Gone], out: Gone) -> Op:
    return ops.Pad(
        _entries(op.edge_padding_low, out), _entries(op.edge_padding_high, out), _entries(op.interior_padding, out)
    )
