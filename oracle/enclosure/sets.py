"""Input sets of one program as one more axis, the last, of every value.

What an op does to values of one rank an op of the same kind does to values of one more: attributes that count axes or extents
grow by one, and index vectors by the number of their set. What is left is done set by set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

import numpy as np

from oracle.enclosure.moves import concatenated
from oracle.enclosure.sums import SORTED
from oracle.enclosure.value import Enclosure, Interval, Mixed, each_part, exact, merged_with_origin, real_point
from tenferro_ref import ops
from tenferro_ref.dims import evaluate, expr_of
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.ops import CONTRACTIONS, Op, TensorType
from tenferro_ref.program import GraphProgram, infer_types

#: Enclosed set by set: the extents or places of all that they give depend on values, or the rule looks at all of an operand.
ALONE = (ops.DynamicTruncate, ops.DynamicUpdateSlice, ops.Extension)
#: Ops with index vectors.
Indexed: TypeAlias = ops.DynamicSlice | ops.Gather | ops.GatherDynamicSliceSizes | ops.Scatter
_INDEXED = (ops.DynamicSlice, ops.Gather, ops.GatherDynamicSliceSizes, ops.Scatter)


def sets_at_once(program: GraphProgram, shapes: Sequence[tuple[int, ...]]) -> int:
    """How many input sets of these shapes may be enclosed at once, so that no bound is less close than for each alone.

    The rule of sums counts partial sums one by one up to so many terms.
    """
    types = tuple(t.with_shape(shape) for t, shape in zip(program.input_types, shapes, strict=True))
    sizes = {slot: _extents(t) for slot, t in infer_types(replace(program, input_types=types)).items()}
    largest = 1
    for ins in program.instructions:
        largest = max([largest, *(prod(sizes[slot]) for slot in ins.input_slots)])
        if isinstance(ins.op, ops.DotGeneral):
            contracted = [sizes[ins.input_slots[0]][axis] for axis in ins.op.lhs_contracting_dims]
            largest = max(largest, prod(sizes[ins.output_slots[0]]) * prod(contracted))
    return max(1, SORTED // largest)


def _extents(type_: TensorType) -> list[int]:
    """Extents, or what values bound them by."""
    return [evaluate(expr_of(extent), ()) for extent in type_.shape]


def repeated(x: Enclosure, n: int) -> Enclosure:
    """The same for each of `n` sets."""
    if n == 1:
        return x.map(lambda a: a[..., np.newaxis])
    return x.map(lambda a: np.broadcast_to(a[..., np.newaxis], (*a.shape, n)))


def one_by_one(rule: Callable[..., Enclosure], op: Op, operands: Sequence[Enclosure], n: int) -> Enclosure:
    """What a rule gives for each set alone.

    Raises
    ------
    UnsupportedOp
        The rule raises it; or the results of the sets differ in kind.
    """
    alone = [rule(*(x.map(lambda a, i=i: a[..., i]) for x in operands)) for i in range(n)]  # type: ignore[misc]
    try:
        if len({x.shape for x in alone}) > 1:
            raise Mixed
        return each_part(lambda *p: merged_with_origin(lambda arrays: np.stack(arrays, -1), p), *alone)
    except Mixed:
        raise UnsupportedOp(op=op.name, reason="enclosure: the results of the input sets differ in kind") from None


def widened(op: Op, operands: Sequence[Enclosure], n: int) -> tuple[Op, Sequence[Enclosure]]:
    """The op that does the same with operands of one more axis, the last, of extent `n`; and its operands."""
    if isinstance(op, _INDEXED):
        return _numbered(op, operands, n)
    widen = _WIDENED.get(type(op))
    return (op if widen is None else widen(op, n, *(len(x.shape) - 1 for x in operands))), operands


#: Of an op, the number of sets, and the ranks of its operands without them; ops without a row are the same for all ranks.
_WIDENED: dict[type[Op], Callable[..., Op]] = {
    ops.Transpose: lambda op, n, rank: ops.Transpose((*op.perm, rank)),
    ops.Reshape: lambda op, n, *ranks: ops.Reshape((*op.shape, n)),
    ops.BroadcastInDim: lambda op, n, *ranks: ops.BroadcastInDim((*op.shape, n), (*op.dims, len(op.shape))),
    ops.Slice: lambda op, n, rank: ops.Slice((*op.starts, 0), (*op.limits, n), (*op.strides, 1)),
    ops.Pad: lambda op, n, rank: ops.Pad(
        (*op.edge_padding_low, 0), (*op.edge_padding_high, 0), (*op.interior_padding, 0)
    ),
    **dict.fromkeys(
        CONTRACTIONS,
        lambda op, n, left, right: replace(
            op, lhs_batch_dims=(*op.lhs_batch_dims, left), rhs_batch_dims=(*op.rhs_batch_dims, right)
        ),
    ),
}


def _numbered(op: Indexed, operands: Sequence[Enclosure], n: int) -> tuple[Op, Sequence[Enclosure]]:
    """The number of its set as one more component of each index vector, which selects the set of the operand."""
    x, indices, *rest = operands
    assert isinstance(indices, Interval)
    axis, rank = len(x.shape) - 1, len(indices.shape) - 1
    if isinstance(op, ops.DynamicSlice):
        axes = tuple(range(len(op.slice_sizes)))
        op = ops.Gather(axes, (), axes, 0, op.slice_sizes)
    elif isinstance(op, ops.GatherDynamicSliceSizes):  # sizes are of operands as they are, before index vectors grow
        shapes = [operand.shape for operand in operands]
        sizes = tuple(evaluate(size, shapes) for size in op.slice_sizes)
        op, rest = (
            ops.Gather(op.offset_dims, op.collapsed_slice_dims, op.start_index_map, op.index_vector_dim, sizes),
            [],
        )
    if op.index_vector_dim == rank:  # implicit
        indices, op = indices.map(lambda a: a[..., np.newaxis]), replace(op, index_vector_dim=rank + 1)
    shape = [1 if k == op.index_vector_dim else e for k, e in enumerate(indices.shape)]
    numbers = np.arange(n).reshape([n if k == rank else 1 for k in range(len(shape))])
    numbers = np.broadcast_to(numbers, shape)
    place = real_point(numbers.astype(float)) if indices.dtype.is_float else exact(indices.dtype, numbers)
    wider: Op
    if isinstance(op, ops.Scatter):
        dropped, mapped = (*op.inserted_window_dims, axis), (*op.scatter_dims_to_operand_dims, axis)
        wider = replace(op, inserted_window_dims=dropped, scatter_dims_to_operand_dims=mapped)
    else:
        dropped, mapped = (*op.collapsed_slice_dims, axis), (*op.start_index_map, axis)
        wider = replace(op, collapsed_slice_dims=dropped, start_index_map=mapped, slice_sizes=(*op.slice_sizes, 1))
    return wider, [x, concatenated([indices, place], op.index_vector_dim), *rest]
