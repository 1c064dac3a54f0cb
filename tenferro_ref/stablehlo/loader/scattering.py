"""Scatter with known indices: each element of the operand meets its updates one after another."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from tenferro_ref import ops
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import bodies
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.composed import select, static
from tenferro_ref.stablehlo.loader.reductions import reduced
from tenferro_ref.stablehlo.loader.regions import apply_body, grouped_places, is_exact, taken
from tenferro_ref.stablehlo.loader.tracer import Tracer
from tenferro_ref.tensor import Array


def in_rounds(
    b: Tracer, op: Operation, operands: Sequence[Value], indices: Array, updates: Sequence[Value]
) -> Sequence[Value]:
    """The operands with their updates, those of one element in their order.

    Raises
    ------
    UnsupportedOp
        Several updates meet one element, and the body rounds, or `unique_indices` says that none do.
    """
    shape = static(operands[0])
    targets = targets_of(op, shape, static(updates[0]), indices)
    kept = np.flatnonzero(targets >= 0)
    table = grouped_places(targets[kept], kept, prod(shape))
    flat = [b.reshape(x, (prod(shape),)) for x in operands]
    lines = [b.reshape(u, (prod(static(u)),)) for u in updates]
    if not prod(shape) or not kept.size:
        return operands
    if table.shape[1] > 1 and op.attribute("unique_indices", False):
        raise op.refusal("several updates meet one element, which unique_indices rules out: its result is undefined")
    if table.shape[1] > 1 and not is_exact(op):
        found = bodies.results(op)
        name = bodies.fold(found[0], 0, 1) if found is not None and len(operands) == 1 else None
        if name != "multiply":
            raise op.refusal("several updates meet one element, and its body rounds: in which order is not said")
        one = b.constant(1, flat[0].dtype)
        factors = b.apply(ops.Concatenate(1), b.reshape(flat[0], (prod(shape), 1)), taken(b, lines[0], table, one))
        return [b.reshape(v, shape) for v in reduced(b, op, [factors], [one], (1,))]
    current = flat
    for k in range(table.shape[1]):
        hit = b.array(table[:, k] >= 0)
        next_ = [taken(b, line, np.maximum(table[:, k], 0)) for line in lines]
        joined = apply_body(b, op, [*current, *next_])
        current = [select(hit, new, old) for new, old in zip(joined, current, strict=True)]
    return [b.reshape(v, shape) for v in current]


def targets_of(op: Operation, shape: tuple[int, ...], updates: tuple[int, ...], indices: Array) -> NDArray[np.int64]:
    """The flat number of the element that each update meets; -1 for those of a window that is outside.

    Raises
    ------
    UnsupportedOp
        A window is partly outside: StableHLO's specification skips its elements that are, XLA all of them.
    """
    indices = indices.astype(np.int64)
    dims = op.fields("scatter_dimension_numbers")
    window = dims.get("update_window_dims", [])
    inserted = [*dims.get("inserted_window_dims", []), *dims.get("input_batching_dims", [])]
    vector = dims.get("index_vector_dim", 0)
    if vector == indices.ndim:
        indices = indices[..., np.newaxis]
    vectors = np.moveaxis(indices, vector, 0)
    batch = [a for a in range(len(updates)) if a not in window]
    lined = [updates[a] if a in batch else 1 for a in range(len(updates))]
    inside = beside = np.ones(lined, bool)
    place = np.zeros(updates, np.int64)
    kept = iter(window)
    windows = {axis: next(kept) for axis in range(len(shape)) if axis not in inserted}
    starts = dict(zip(dims.get("scatter_dims_to_operand_dims", []), vectors, strict=True))
    paired = dict(zip(dims.get("input_batching_dims", []), dims.get("scatter_indices_batching_dims", []), strict=True))
    for axis, extent in enumerate(shape):
        size = updates[windows[axis]] if axis in windows else 1
        if axis in starts:
            start = starts[axis].reshape(lined)
        elif axis in paired:
            # axes of the indices without the one of the vectors are the batch axes of the updates, in their order
            number = paired[axis] - (paired[axis] > vector)
            start = np.arange(updates[batch[number]]).reshape(
                [-1 if a == batch[number] else 1 for a in range(len(updates))]
            )
        else:
            start = np.zeros((1,) * len(updates), np.int64)
        inside = inside & (start >= 0) & (start <= extent - size)
        beside = beside & (start > -size) & (start < extent)
        at = np.where(inside, start, 0)  # what is outside is as far away as integers go
        if axis in windows:
            at = at + np.arange(size).reshape([-1 if a == windows[axis] else 1 for a in range(len(updates))])
        place = place * extent + at
    if (beside & ~inside).any():
        raise op.refusal(
            "a window is partly outside: StableHLO's specification skips its elements that are, XLA all of them"
        )
    return np.where(inside, place, -1).reshape(-1)
