"""Slices at runtime positions, gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import free_axes
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import bodies, composed
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.composed import full, select, spread, static
from tenferro_ref.stablehlo.loader.scattering import in_rounds, targets_of
from tenferro_ref.stablehlo.loader.tracer import ROWS, Tracer, numbers


def _starts(b: Tracer, starts: Sequence[Value]) -> Value:
    return b.apply(ops.Concatenate(0), *(spread(s, (1,)) for s in starts))


@ROWS.row("dynamic_slice")
def _(b: Tracer, op: Operation, x: Value, *starts: Value) -> Value:
    return b.apply(ops.DynamicSlice(op.axes("slice_sizes")), x, _starts(b, starts)) if starts else x


@ROWS.row("dynamic_update_slice")
def _(b: Tracer, op: Operation, x: Value, update: Value, *starts: Value) -> Value:
    return b.apply(ops.DynamicUpdateSlice(), x, update, _starts(b, starts)) if starts else update


def _with_batch(b: Tracer, indices: Value, dim: int, batching: Sequence[int]) -> Value:
    """Index vectors with their position along the `batching` axes in front: what batching axes of the operand stand for."""
    if not batching:
        return indices
    shape = static(indices)
    if dim == len(shape):
        shape = (*shape, 1)
        indices = b.apply(ops.Reshape(shape), indices)
    one = (*shape[:dim], 1, *shape[dim + 1 :])
    if max(shape[a] for a in batching) - 1 > indices.dtype.limits[1]:
        indices = indices.astype("I64")
    lines = [np.arange(shape[a], dtype=indices.dtype.numpy) for a in batching]
    places = [
        line.reshape([-1 if i == a else 1 for i in range(len(one))]) for line, a in zip(lines, batching, strict=True)
    ]
    return b.apply(ops.Concatenate(dim), *(b.array(np.broadcast_to(place, one)) for place in places), indices)


@ROWS.row("gather", "dynamic_gather")
def _(b: Tracer, op: Operation, x: Value, indices: Value, *sizes: Value) -> Value:
    dims = op.fields("dimension_numbers")
    batch, dim = dims.get("operand_batching_dims", []), dims.get("index_vector_dim", 0)
    gather = ops.Gather(
        tuple(dims.get("offset_dims", ())),
        tuple(sorted([*dims.get("collapsed_slice_dims", []), *batch])),
        (*batch, *dims.get("start_index_map", ())),
        dim,
        numbers(b, op, sizes[0]) if sizes else op.axes("slice_sizes"),
    )
    return b.apply(gather, x, _with_batch(b, indices, dim, dims.get("start_indices_batching_dims", [])))


@ROWS.row("scatter")
def _(b: Tracer, op: Operation, *operands: Value) -> Value | Sequence[Value]:
    """The engine's Scatter adds. What else a body does is done, where the indices are known, update after update; else once
    an element, to the sum of its one update."""
    found = bodies.results(op)
    body = bodies.fold(found[0], 0, 1) if found is not None and len(operands) == 3 else None
    count = len(operands) // 2
    places = (b.computed if body == "add" else b.decided)(operands[count])
    if places is not None:
        if body != "add":
            return in_rounds(b, op, operands[:count], places, operands[count + 1 :])
        # refuses a window that is partly outside
        targets_of(op, static(operands[0]), static(operands[-1]), places)
    if body not in (*bodies.FOLDS, "right"):
        raise op.refusal("its indices are not known, and its body is none of add, multiply, maximum, minimum, update")
    x, indices, updates = operands
    dims = op.fields("scatter_dimension_numbers")
    batch, dim = dims.get("input_batching_dims", []), dims.get("index_vector_dim", 0)
    scatter = ops.Scatter(
        tuple(dims.get("update_window_dims", ())),
        tuple(sorted([*dims.get("inserted_window_dims", []), *batch])),
        (*batch, *dims.get("scatter_dims_to_operand_dims", ())),
        dim,
    )
    indices = _with_batch(b, indices, dim, dims.get("scatter_indices_batching_dims", []))
    if body == "add" or (body == "or" and x.dtype is DType.Bool):
        return b.apply(scatter, x, indices, updates)
    count = prod(e for a, e in enumerate(static(updates)) if a not in scatter.update_window_dims)
    if count > 1 and not op.attribute("unique_indices", False):
        if body != "right":
            raise op.refusal(f"a body of {body} needs indices that are declared unique")
        updates = select(_last(b, op, scatter, indices, updates), updates, _nothing(updates))
    hit = b.apply(scatter, full(x, False, DType.Bool), indices, full(updates, True, DType.Bool))
    update = b.apply(scatter, _nothing(x), indices, updates)
    if body == "right":
        new = update
    else:
        new = composed.logical(body, x, update) if body in ("and", "or") else b.apply(bodies.OPS[str(body)], x, update)
    return select(hit, new, x)


def _nothing(x: Value) -> Value:
    """What changes no number that it is added to: -0, since +0 would change that."""
    return full(x, False) if x.dtype is DType.Bool else -full(x, 0)


#: The most index vectors that are compared pair by pair.
_MOST_INDICES = 4096


def _last(b: Tracer, op: Operation, scatter: ops.Scatter, indices: Value, updates: Value) -> Value:
    """Whether no later update has the same index vector, for each element of `updates`: the last one is what stays.

    Windows along an axis that is indexed must be a single element, or they could overlap in part.
    """
    axes = [a for a in range(updates.ndim) if a not in scatter.update_window_dims]
    rank = len(scatter.inserted_window_dims) + len(scatter.update_window_dims)
    kept = free_axes(rank, scatter.inserted_window_dims)
    shape, count = static(updates), prod(static(updates)[a] for a in axes)
    for axis, window in zip(kept, scatter.update_window_dims, strict=True):
        if axis in scatter.scatter_dims_to_operand_dims and shape[window] != 1:
            raise op.refusal("windows that may overlap in part need indices that are declared unique")
    if count > _MOST_INDICES:
        raise op.refusal(f"more than {_MOST_INDICES} indices that are not declared unique")
    dim = scatter.index_vector_dim
    order = [a for a in range(indices.ndim) if a != dim] + ([dim] if dim < indices.ndim else [])
    components = len(scatter.scatter_dims_to_operand_dims)
    vectors = b.reshape(b.transpose(indices, order), (count, components))
    pairs = [b.apply(ops.BroadcastInDim((count, count, components), (a, 2)), vectors) for a in (0, 1)]
    same = b.apply(ops.ReduceMin((2,)), pairs[0] == pairs[1])
    later = b.array(np.triu(np.ones((count, count), np.bool_), 1))
    last = ~b.apply(ops.ReduceMax((1,)), later & same)
    return b.apply(ops.BroadcastInDim(shape, tuple(axes)), b.reshape(last, tuple(shape[a] for a in axes)))
