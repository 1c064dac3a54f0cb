"""Which axes must have one extent, op by op, and how an op's attributes follow when extents change.

`LINKS` says which axes of operands and results have one and the same extent; `FOLLOW` rewrites the attributes that hold
extents. What to change, and the propagation through a program, is in `extents`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, TypeAlias

from tenferro_ref import ops
from tenferro_ref.ops import CONTRACTIONS, ELEMENTWISE, REDUCTIONS, Op, free_axes
from tenferro_ref.table import Table

Shape: TypeAlias = tuple[int, ...]
#: (operand number, axis); `RESULT` stands for the result.
End: TypeAlias = tuple[int, int]
RESULT = -1
Links: TypeAlias = list[tuple[End, End]]

#: (op, operand shapes, result shape) -> pairs of axes of one extent.
LINKS: Table[Callable[[Any, Sequence[Shape], Shape], Links]] = Table("reducer, linked axes")
#: (op, operand shapes before, operand shapes now, wanted result shape) -> op.
FOLLOW: Table[Callable[[Any, Sequence[Shape], Sequence[Shape], Shape], Op]] = Table("reducer, attributes")

LINKS.unsupported("nothing follows from one extent to another", ops.Constant, ops.ShapeOf, ops.Extension)


def _kept(pairs: Iterable[tuple[int, int]], operand: int = 0, result: int = RESULT) -> Links:
    """Links of an operand's axes to those of the result, or of another operand."""
    return [((operand, a), (result, b)) for a, b in pairs]


def _all_axes(shape: Shape, operand: int = 0) -> Links:
    return _kept(((axis, axis) for axis in range(len(shape))), operand)


@LINKS.row(*ELEMENTWISE, ops.Convert, ops.Tril, ops.Triu, ops.Reverse)
def _(op: Op, ins: Sequence[Shape], out: Shape) -> Links:
    return [link for n, shape in enumerate(ins) if len(shape) == len(out) for link in _all_axes(out, n)]


@LINKS.row(ops.DynamicUpdateSlice, ops.DynamicTruncate)
def _(op: Op, ins: Sequence[Shape], out: Shape) -> Links:
    return _all_axes(out)


@LINKS.row(ops.Slice, ops.DynamicSlice, ops.PadToMatch)
def _(op: Op, ins: Sequence[Shape], out: Shape) -> Links:
    return _kept((axis, axis) for axis, extent in enumerate(out) if extent == ins[0][axis])


@LINKS.row(ops.Gather, ops.GatherDynamicSliceSizes)
def _(op: ops.Gather | ops.GatherDynamicSliceSizes, ins: Sequence[Shape], out: Shape) -> Links:
    return _batch(op.index_vector_dim, ins[1], RESULT, op.offset_dims, len(out))


@LINKS.row(ops.Scatter)
def _(op: ops.Scatter, ins: Sequence[Shape], out: Shape) -> Links:
    return _all_axes(out) + _batch(op.index_vector_dim, ins[1], 2, op.update_window_dims, len(ins[2]))


def _batch(index_vector_dim: int, indices: Shape, result: int, window: Sequence[int], rank: int) -> Links:
    """The batch axes of an index tensor are the axes outside the window."""
    batch = [axis for axis in range(len(indices)) if axis != index_vector_dim]
    return _kept(zip(batch, free_axes(rank, tuple(window)), strict=True), 1, result)


@LINKS.row(ops.Transpose)
def _(op: ops.Transpose, ins: Sequence[Shape], out: Shape) -> Links:
    return _kept((p, axis) for axis, p in enumerate(op.perm))


@LINKS.row(ops.BroadcastInDim)
def _(op: ops.BroadcastInDim, ins: Sequence[Shape], out: Shape) -> Links:
    return _kept((axis, d) for axis, d in enumerate(op.dims) if ins[0][axis] == out[d])


@LINKS.row(ops.Reshape)
def _(op: ops.Reshape, ins: Sequence[Shape], out: Shape) -> Links:
    return _kept((a[0], b[0]) for a, b in _groups(ins[0], out) if len(a) == len(b) == 1)


@LINKS.row(*REDUCTIONS)
def _(op: Any, ins: Sequence[Shape], out: Shape) -> Links:
    return _kept((a, b) for b, a in enumerate(free_axes(len(ins[0]), op.axes)))


@LINKS.row(*CONTRACTIONS)
def _(op: ops.DotGeneral, ins: Sequence[Shape], out: Shape) -> Links:
    paired = zip(op.lhs_contracting_dims + op.lhs_batch_dims, op.rhs_contracting_dims + op.rhs_batch_dims, strict=True)
    lhs = free_axes(len(ins[0]), op.lhs_contracting_dims, op.lhs_batch_dims)
    rhs = free_axes(len(ins[1]), op.rhs_contracting_dims, op.rhs_batch_dims)
    origin = [*((0, a) for a in lhs), *((1, a) for a in rhs), *((0, a) for a in op.lhs_batch_dims)]
    return _kept(paired, 0, 1) + [(end, (RESULT, axis)) for axis, end in enumerate(origin)]


@LINKS.row(ops.ExtractDiag)
def _(op: ops.ExtractDiag, ins: Sequence[Shape], out: Shape) -> Links:
    square = ins[0][op.axis_a] == ins[0][op.axis_b]
    kept = enumerate(free_axes(len(ins[0]), (op.axis_b,)))
    diagonal = _kept([(op.axis_a, op.axis_b)], 0, 0) if square else []
    return diagonal + _kept((origin, axis) for axis, origin in kept if square or origin != op.axis_a)


@LINKS.row(ops.EmbedDiag)
def _(op: ops.EmbedDiag, ins: Sequence[Shape], out: Shape) -> Links:
    return _kept([(op.axis_a, op.axis_b), *enumerate(free_axes(len(out), (op.axis_b,)))])


@LINKS.row(ops.Pad)
def _(op: ops.Pad, ins: Sequence[Shape], out: Shape) -> Links:
    amounts = zip(op.edge_padding_low, op.edge_padding_high, op.interior_padding, strict=True)
    return _kept((axis, axis) for axis, amount in enumerate(amounts) if not any(amount))


@LINKS.row(ops.Concatenate)
def _(op: ops.Concatenate, ins: Sequence[Shape], out: Shape) -> Links:
    others = [axis for axis in range(len(out)) if axis != op.axis]
    return [link for n in range(len(ins)) for link in _kept(zip(others, others, strict=True), n)]


# --- attributes that hold extents -------------------------------------------------------------------------------------


@FOLLOW.row(ops.Reshape)
def _(op: ops.Reshape, before: Sequence[Shape], now: Sequence[Shape], wanted: Shape) -> Op:
    target = list(wanted)
    if prod(now[0]) != prod(target) and all(isinstance(e, int) for e in op.shape):
        old = [e for e in op.shape if isinstance(e, int)]
        for axes, targets in _groups(before[0], old):
            fitted = _fit([target[t] for t in targets], prod(now[0][a] for a in axes))
            for t, extent in zip(targets, fitted, strict=True):
                target[t] = extent
    return replace(op, shape=_literal(op.shape, target))


@FOLLOW.row(ops.BroadcastInDim)
def _(op: ops.BroadcastInDim, before: Sequence[Shape], now: Sequence[Shape], wanted: Shape) -> Op:
    return replace(op, shape=_literal(op.shape, wanted))


def _literal(exprs: Sequence[Any], extents: Sequence[int]) -> tuple[Any, ...]:
    """New extents where the old ones are integers; dim expressions follow by themselves."""
    return tuple(new if isinstance(old, int) else old for old, new in zip(exprs, extents, strict=True))


@FOLLOW.row(ops.Slice)
def _(op: ops.Slice, before: Sequence[Shape], now: Sequence[Shape], wanted: Shape) -> Op:
    starts, limits = list(op.starts), list(op.limits)
    for axis, (extent, size, stride) in enumerate(zip(now[0], wanted, op.strides, strict=True)):
        starts[axis] = min(starts[axis], max(extent - 1, 0))
        reach = starts[axis] + (size - 1) * stride + 1 if size else starts[axis]
        limits[axis] = min(reach, extent)
    return ops.Slice(tuple(starts), tuple(limits), op.strides)


@FOLLOW.row(ops.DynamicSlice)
def _(op: ops.DynamicSlice, before: Sequence[Shape], now: Sequence[Shape], wanted: Shape) -> Op:
    return ops.DynamicSlice(tuple(map(min, wanted, now[0])))


@FOLLOW.row(ops.Gather, ops.GatherDynamicSliceSizes)
def _(op: Any, before: Sequence[Shape], now: Sequence[Shape], wanted: Shape) -> Op:
    offsets = iter(op.offset_dims)
    sizes = [
        size if axis in op.collapsed_slice_dims else min(wanted[next(offsets)], now[0][axis])
        for axis, size in enumerate(op.slice_sizes)
    ]
    result: Op = replace(op, slice_sizes=_literal(op.slice_sizes, sizes))
    return result


def _groups(a: Sequence[int], b: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Axes of two shapes in the smallest runs of equal product, in column-major order."""
    if 0 in a or 0 in b:
        return [(list(range(len(a))), list(range(len(b))))]
    groups: list[tuple[list[int], list[int]]] = []
    axes: list[int] = []
    targets: list[int] = []
    i = j = 0
    p = q = 1
    while i < len(a) or j < len(b):
        if i < len(a) and (j == len(b) or p < q or (p == q and len(axes) <= len(targets))):
            p, i, axes = p * a[i], i + 1, [*axes, i]
        else:
            q, j, targets = q * b[j], j + 1, [*targets, j]
        if p == q and axes and targets:
            groups.append((axes, targets))
            axes, targets, p, q = [], [], 1, 1
    return [*groups, (axes, targets)] if axes or targets else groups


def _fit(extents: Sequence[int], total: int) -> list[int]:
    """Extents with the product `total`, changing one of the old ones if that is possible."""
    for k in sorted(range(len(extents)), key=lambda k: -extents[k]):
        rest = prod(extents[:k]) * prod(extents[k + 1 :])
        if rest and total % rest == 0:
            return [*extents[:k], total // rest, *extents[k + 1 :]]
    return [total, *([1] * (len(extents) - 1))] if extents else []
