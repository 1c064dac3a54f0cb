"""`enclose_stacked`: many input sets of one program enclosed at once, along one more axis, the last.

The rules are those of `ENCLOSE`; only attributes that count axes or extents grow by one, and index vectors by the number of
their set. What is left is enclosed set by set and put together again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from math import prod
from typing import Any

import numpy as np

from oracle.enclosure.executor import derived, rule_of
from oracle.enclosure.model import Model
from oracle.enclosure.moves import concatenated
from oracle.enclosure.rule import Context, Rule
from oracle.enclosure.sums import SORTED
from oracle.enclosure.value import Enclosure, Terms, Unrounded, admit_flush, point
from tenferro_ref import ops
from tenferro_ref.dims import evaluate, expr_of
from tenferro_ref.errors import Internal, UnsupportedOp
from tenferro_ref.ops import Op, TensorType
from tenferro_ref.program import GraphProgram, infer_types
from tenferro_ref.tensor import Array

#: Enclosed set by set: the extents or places of all that they give depend on values, or the rule looks at all of an operand.
_ALONE = (ops.DynamicTruncate, ops.DynamicUpdateSlice, ops.Extension)
#: Ops with index vectors.
_INDEXED = (ops.DynamicSlice, ops.Gather, ops.GatherDynamicSliceSizes, ops.Scatter)


def enclose_stacked(
    program: GraphProgram, input_sets: Sequence[Sequence[Array]], model: Model
) -> list[Enclosure] | None:
    """What `enclose` gives for each input set, with the sets along a last axis of every output.

    Parameters
    ----------
    input_sets
        Of the same shapes.

    Returns
    -------
    list of Enclosure, or None
        None where sets are remembered differently, so that each has to be enclosed for itself.

    Raises
    ------
    UnsupportedOp
        An op for which there is no rule, or an extent that is not decided.
    """
    n = len(input_sets)
    types = program.slot_types
    values: dict[int, Enclosure] = {}
    # what depends on constants alone is the same for all sets, and has no further axis
    shared: set[int] = set()
    with np.errstate(all="ignore"):
        for slot, *arrays in zip(program.input_slots, *input_sets, strict=True):
            known = point(np.stack(arrays, -1))
            values[slot] = admit_flush(known) if model.flush else known
        for ins in program.instructions:
            op, slot = ins.op, ins.output_slots[0]  # an op with several has no rule
            operands = [values[s] for s in ins.input_slots]
            c = Context(model, program.policy, types[slot].dtype)
            rule = rule_of(op, c, operands)
            alike = all(s in shared for s in ins.input_slots)
            if alike or isinstance(op, ops.ShapeOf):
                shared.add(slot)
                result = rule(op, c, *operands)
            else:
                stacked = [
                    x if s not in shared else _repeated(x, n) for s, x in zip(ins.input_slots, operands, strict=True)
                ]
                try:
                    result = _stacked(op, c, rule, stacked, n)
                except _Different:
                    return None
            values[slot] = derived(result, model, operands)
    return [values[s].plain() if s not in shared else _repeated(values[s].plain(), n) for s in program.output_slots]


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


def _stacked(op: Op, c: Context, rule: Rule, operands: Sequence[Enclosure], n: int) -> Enclosure:
    if not isinstance(op, _ALONE):
        try:
            wider, arguments = _indexed(op, operands, n) if isinstance(op, _INDEXED) else (op, operands)
            return rule_of(wider, c, operands)(_widened(wider, [len(x.shape) - 1 for x in operands], n), c, *arguments)
        except UnsupportedOp:  # of all sets together there may be too many possible starts
            pass
    alone: Enclosure = _joined([rule(op, c, *(_taken(x, i) for x in operands)) for i in range(n)])
    return alone


def _repeated(x: Enclosure, n: int) -> Enclosure:
    """The same for all sets."""
    return x.map(lambda a: np.broadcast_to(a[..., np.newaxis], (*a.shape, n)))


def _taken(x: Enclosure, i: int) -> Enclosure:
    """Set number `i`."""
    return x.map(lambda a: a[..., i])


def _widened(op: Op, ranks: Sequence[int], n: int) -> Op:
    """The op on operands of these ranks and one more axis of extent `n`, the last."""
    match op:
        case ops.Transpose():
            return ops.Transpose((*op.perm, ranks[0]))
        case ops.Reshape():
            return ops.Reshape((*op.shape, n))
        case ops.BroadcastInDim():
            return ops.BroadcastInDim((*op.shape, n), (*op.dims, len(op.shape)))
        case ops.Slice():
            return ops.Slice((*op.starts, 0), (*op.limits, n), (*op.strides, 1))
        case ops.Pad():
            return ops.Pad((*op.edge_padding_low, 0), (*op.edge_padding_high, 0), (*op.interior_padding, 0))
        case ops.DotGeneral():
            batch = (*op.lhs_batch_dims, ranks[0]), (*op.rhs_batch_dims, ranks[1])
            return ops.DotGeneral(op.lhs_contracting_dims, op.rhs_contracting_dims, *batch)
        case ops.Gather() | ops.GatherDynamicSliceSizes():
            collapsed, mapped = (*op.collapsed_slice_dims, ranks[0]), (*op.start_index_map, ranks[0])
            sizes: tuple[Any, ...] = (*op.slice_sizes, 1)
            return replace(op, collapsed_slice_dims=collapsed, start_index_map=mapped, slice_sizes=sizes)
        case ops.Scatter():
            dropped, mapped = (*op.inserted_window_dims, ranks[0]), (*op.scatter_dims_to_operand_dims, ranks[0])
            return replace(op, inserted_window_dims=dropped, scatter_dims_to_operand_dims=mapped)
    return op


def _indexed(op: Op, operands: Sequence[Enclosure], n: int) -> tuple[Op, list[Enclosure]]:
    """The op and its operands with the number of its set as one more component of each index vector."""
    x, indices, *rest = operands
    rank = len(indices.shape) - 1
    if isinstance(op, ops.DynamicSlice):
        axes = tuple(range(len(op.slice_sizes)))
        op = ops.Gather(axes, (), axes, 0, op.slice_sizes)
    if not isinstance(op, ops.Gather | ops.GatherDynamicSliceSizes | ops.Scatter):
        raise Internal(detail=f"{op.name} has no index vectors")
    if op.index_vector_dim == rank:  # implicit
        indices, op = indices.map(lambda a: a[..., np.newaxis]), replace(op, index_vector_dim=rank + 1)
    shape = [1 if axis == op.index_vector_dim else e for axis, e in enumerate(indices.shape)]
    numbers = np.arange(n).reshape([n if axis == rank else 1 for axis in range(len(shape))])
    place = point(np.broadcast_to(numbers, shape).astype(indices.dtype.numpy))
    return op, [x, concatenated([indices, place], op.index_vector_dim), *rest]


# --- putting sets together ------------------------------------------------------------------------------------------


class _Different(Exception):
    """Two sets are remembered in different ways."""


def _joined(sets: Sequence[Any]) -> Any:
    """Arrays along a last axis, and records of arrays field by field; whatever else they hold must be the same."""
    first = sets[0]
    if isinstance(first, np.ndarray | np.generic):  # a reduction to rank 0 may give a scalar
        if not all(isinstance(x, np.ndarray | np.generic) and x.shape == first.shape for x in sets):
            raise _Different
        return np.stack(sets, -1)
    if any(type(x) is not type(first) for x in sets):
        raise _Different
    if isinstance(first, tuple):
        return tuple(map(_joined, zip(*sets, strict=True)))
    if isinstance(first, Enclosure | Unrounded | Terms):
        names = [f.name for f in fields(first) if f.init]
        made = type(first)(**{name: _joined([getattr(x, name) for x in sets]) for name in names})
        if isinstance(made, Enclosure) and all(x.is_point for x in sets):
            made = replace(made, hi=made.lo)
        return made
    if any(x != first for x in sets):
        raise _Different
    return first


__all__ = ["enclose_stacked", "sets_at_once"]
