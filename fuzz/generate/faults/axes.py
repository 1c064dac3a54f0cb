"""Faults: axes that are missing, too many, out of range, repeated or of two roles."""

from __future__ import annotations

from typing import Any

from fuzz.generate.faults.fault import Faults, Faulty, any_axis, inserted, operand, outside
from fuzz.generate.growth import Growth
from fuzz.generate.shapes import shape_of
from tenferro_ref import ops
from tenferro_ref.ops import CONTRACTIONS, REDUCTIONS

FAULTS = Faults()


@FAULTS.instruction("RankMismatch", ops.Transpose)
def permutation_too_long_or_short(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, ops.Add, 1)
    rank = x.type.rank
    return Faulty(op(tuple(range(g.choices.choose((rank - 1, rank + 1, 0))))), (x,))


@FAULTS.instruction("RankMismatch", ops.BroadcastInDim)
def dims_too_long_or_short(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, ops.Add, 1)
    dims = tuple(range(x.type.rank + g.choices.choose((1, -1))))
    return Faulty(op((*shape_of(x), 2, 2), dims), (x,))


@FAULTS.instruction("AxisOutOfBounds", ops.Transpose, ops.BroadcastInDim)
def axis_out_of_range(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, ops.Add, 1)
    rank = x.type.rank
    axes, axis = list(g.choices.permutation(rank)), outside(g, rank)
    axes[g.choices.pick(rank)] = axis
    return Faulty(op(tuple(axes)) if op is ops.Transpose else op(shape_of(x), tuple(axes)), (x,), axis)


@FAULTS.instruction("AxisOutOfBounds", *REDUCTIONS)
def reduced_axis_out_of_range(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, op)
    axis = outside(g, x.type.rank)
    return Faulty(op(inserted(g, tuple(range(g.choices.pick(x.type.rank + 1))), axis)), (x,), axis)


@FAULTS.instruction("AxisOutOfBounds", *CONTRACTIONS)
def dot_axis_out_of_range(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, op, 1)
    axis = outside(g, x.type.rank)
    lists: list[tuple[int, ...]] = [(), (), (), ()]
    lists[g.choices.pick(4)] = (axis,)
    return Faulty(op(*lists), (x, x), axis)


@FAULTS.instruction("DuplicateAxis", ops.Transpose, ops.BroadcastInDim)
def axis_twice(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, ops.Add, 2)
    order = g.choices.permutation(x.type.rank)
    axes = (*order[:-1], order[0])
    return Faulty(op(axes) if op is ops.Transpose else op((*shape_of(x), 2), axes), (x,), order[0])


@FAULTS.instruction("DuplicateAxis", *REDUCTIONS)
def reduced_axis_twice(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, op, 1)
    order = g.choices.permutation(x.type.rank)
    return Faulty(op((*order, order[-1])), (x,), order[-1])


@FAULTS.instruction("DuplicateAxis", *CONTRACTIONS)
def dot_axis_twice(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, op, 1)
    axis = any_axis(g, x)
    lists: list[tuple[int, ...]] = [(), (), (), ()]
    place = g.choices.pick(4)
    lists[place] = lists[place ^ 1] = (axis, axis)
    return Faulty(op(*lists), (x, x), axis)


@FAULTS.instruction("AxisRoleConflict", *CONTRACTIONS)
def axis_contracted_and_batch(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, op, 1)
    axis = any_axis(g, x)
    if shape_of(x)[axis] ** 2 > g.config.max_elements:  # of the other operand
        x, axis = g.fresh(x.dtype, (2,)), 0
    y = g.fresh(x.dtype, (shape_of(x)[axis],) * 2)
    good, bad = ((0,), (1,)), ((axis,), (axis,))
    return Faulty(op(bad[0], good[0], bad[1], good[1]), (x, y), axis) if g.choices.pick(2) else Faulty(
        op(good[0], bad[0], good[1], bad[1]), (y, x), axis
    )  # fmt: skip
