"""Motifs of what is shared, returned or named: whose memory a result may take, and where an extent comes from."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from fuzz.generate.describe import maker
from fuzz.generate.growth import Growth
from fuzz.generate.motifs.table import motif
from fuzz.generate.ops import STRATEGY
from fuzz.generate.ops.structural import permutation
from fuzz.generate.shapes import shape_of
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dims import InputDim
from tenferro_ref.dtype import INEXACT
from tenferro_ref.ops import ARITHMETIC


def _keeps_an_alias(case: Case) -> bool:
    """Whether arithmetic, which other arithmetic follows, reads a sum of real numbers that has a conjugate, which is the sum itself."""
    sums = {
        i.input_slots[0] for i in case.program.instructions
        if i.op.name == "Conj" and case.program.slot_types[i.input_slots[0]].dtype.is_float
        and (m := maker(case.program, i.input_slots[0])) and m.op.name == "Add"
    }  # fmt: skip
    arithmetic = [i for i in case.program.instructions if type(i.op) in ARITHMETIC]
    read = {slot for i in arithmetic for slot in i.input_slots}
    return any(not sums.isdisjoint(i.input_slots) and i.output_slots[0] in read for i in arithmetic)


@motif(4, 2, _keeps_an_alias, ops.Add, ops.Conj, *ARITHMETIC)
def beside_an_alias(g: Growth) -> None:
    """A sum of real numbers, its conjugate, and arithmetic that may take the sum's memory while the conjugate is still to be read."""
    x = g.operand([d for d in g.dtypes_of(ops.Conj) if d.is_float])
    total = g.apply(ops.Add(), x, g.like(x))
    same, op = g.apply(ops.Conj(), total), g.choices.choose([op for op in ARITHMETIC if x.dtype in g.dtypes_of(op)])
    # an output has memory of its own: what takes the sum's is a link in the middle
    g.give(same, g.apply(ops.Add(), g.apply(op(), total, g.like(x)), g.like(x)))


def _crosses_shapes(case: Case) -> bool:
    """Whether arithmetic on values of one shape is followed by arithmetic on as many elements in another."""
    for a, b in pairwise(case.program.instructions):
        if type(a.op) in ARITHMETIC and type(b.op) in ARITHMETIC:
            x, y = (case.program.slot_types[i.output_slots[0]] for i in (a, b))
            both = x.is_static and y.is_static and x.dtype is y.dtype and x.dtype in INEXACT
            if both and x.static_shape != y.static_shape and prod(x.static_shape) == prod(y.static_shape) > 1:
                return True
    return False


@motif(4, 2, _crosses_shapes, ops.Multiply, ops.Add)
def crossed_shapes(g: Growth) -> None:
    """Arithmetic on two arrays of as many elements, in shapes of which no pass over both may take one for the other."""
    dtypes = [d for d in g.dtypes_of(ops.Multiply) if d in INEXACT]
    if dtypes and g.max_rank > 1:
        rows, dtype = 2 + g.choices.pick(3), g.dtype(dtypes)
        columns = rows + 1 + g.choices.pick(3)
        x = g.fresh(dtype, (rows, columns))
        y = g.fresh(dtype, g.choices.choose(((columns, rows), (rows * columns,))))
        squares = [g.apply(ops.Multiply(), v, v) for v in (x, y)]
        g.give(*(g.apply(ops.Add(), square, v) for square, v in zip(squares, (x, y), strict=True)))


def _spreads_one(case: Case) -> bool:
    """Whether arithmetic of inexact numbers reads a broadcast of an array of one element with axes, and other arithmetic its result."""
    types = case.program.slot_types
    spread = {
        i.output_slots[0] for i in case.program.instructions
        if isinstance(i.op, ops.BroadcastInDim) and (t := types[i.input_slots[0]]).dtype in INEXACT
        and t.rank and set(t.shape) == {1} and set(types[i.output_slots[0]].shape) != {1}
    }  # fmt: skip
    arithmetic = [i for i in case.program.instructions if type(i.op) in ARITHMETIC]
    read = {slot for i in arithmetic for slot in i.input_slots}
    return any(not spread.isdisjoint(i.input_slots) and i.output_slots[0] in read for i in arithmetic)


@motif(3, 2, _spreads_one, ops.BroadcastInDim, ops.Multiply, ops.Add)
def spread_one(g: Growth) -> None:
    """A chain of arithmetic with an array of one element that has axes: all blocks of a fused kernel read that element."""
    dtypes = [d for d in g.dtypes_of(ops.Multiply) if d in INEXACT]
    if dtypes and g.max_rank:
        x = g.operand(dtypes, lambda v: v.type.rank > 0)
        shape = shape_of(x)
        axes = tuple(range(len(shape))) if g.choices.chance(50) else (g.choices.pick(len(shape)),)
        one = g.apply(ops.BroadcastInDim(shape, axes), g.fresh(x.dtype, (1,) * len(axes)))
        g.apply(ops.Add(), g.apply(ops.Multiply(), x, one), g.like(x))


def _shaped_like_a_step(case: Case) -> bool:
    """Whether arithmetic of inexact numbers reads a value that other arithmetic made, and a broadcast that has its shape from that value."""
    program = case.program
    steps = {i.output_slots[0] for i in program.instructions if type(i.op) in ARITHMETIC}
    likes = {
        i.output_slots[0]: steps.intersection(i.input_slots[1:]) for i in program.instructions
        if isinstance(i.op, ops.BroadcastInDim) and program.slot_types[i.output_slots[0]].dtype in INEXACT
    }  # fmt: skip
    readers = [i.input_slots for i in program.instructions if type(i.op) in ARITHMETIC]
    return any(likes.get(a, set()) & {b} for slots in readers for a in slots for b in slots)


@motif(4, 2, _shaped_like_a_step, ops.BroadcastInDim, ops.Multiply, ops.Add)
def shaped_like_a_step(g: Growth) -> None:
    """A broadcast with the shape of a value that the same fused run makes, so that it cannot be made before the run."""
    dtypes = [d for d in g.dtypes_of(ops.Multiply) if d in INEXACT]
    if dtypes and g.max_rank and g.config.dim_exprs:
        x = g.operand(dtypes, lambda v: v.type.rank > 0)
        step = g.apply(ops.Add(), x, g.like(x))
        axis = g.choices.pick(x.type.rank)
        row = g.fresh(x.dtype, (shape_of(x)[axis],))
        shape = tuple(InputDim(1, a) for a in range(x.type.rank))
        g.apply(ops.Multiply(), step, g.apply(ops.BroadcastInDim(shape, (axis,)), row, step))


#: Ops of complex numbers whose conjugate a pass might think to be that of one operand, or of all.
_CONJUGATED = (
    ops.DynamicUpdateSlice, ops.Scatter, ops.Select, ops.GatherDynamicSliceSizes, ops.PadToMatch, ops.DotGeneralWithConj, ops.Subtract,
    ops.Pow, ops.Exp, ops.Sqrt, ops.Sign,
)  # fmt: skip


def _conjugates_a_result(case: Case) -> bool:
    readers = (i for i in case.program.instructions if i.op.name == "Conj")
    made = ((i, maker(case.program, i.input_slots[0])) for i in readers)
    types = case.program.slot_types
    return any(m and type(m.op) in _CONJUGATED and types[i.output_slots[0]].dtype.is_complex for i, m in made)


@motif(2, 3, _conjugates_a_result, ops.Conj, *_CONJUGATED)
def conjugated_result(g: Growth) -> None:
    """The conjugate of what another op gives of complex numbers."""
    op = g.choices.choose(_CONJUGATED)
    dtypes = [d for d in g.dtypes_of(op) if d.is_complex]
    if dtypes:
        g.wanted_dtype = g.choices.choose(dtypes)
        result = STRATEGY[op](g, op)
        g.wanted_dtype = None
        if result.dtype.is_complex and g.room:
            g.apply(ops.Conj(), result)


def _names_axes(case: Case) -> bool:
    """Whether a Reshape reads all extents from one operand, but not the own ones in their order, or not all of them."""
    return any(
        i.op.shape
        and all(isinstance(e, InputDim) for e in i.op.shape)
        and i.op.shape != tuple(InputDim(0, a) for a in range(case.program.slot_types[i.input_slots[0]].rank))
        for i in case.program.instructions
        if isinstance(i.op, ops.Reshape)
    )


@motif(2, 2, _names_axes, ops.Reshape)
def axes_by_name(g: Growth) -> None:
    """Extents that are read from an operand: in another order, those of another value, or without a unit axis that was put in."""
    x = g.operand(g.config.dtypes, lambda v: 0 < v.type.rank < g.max_rank)
    shape = list(shape_of(x))
    if g.config.dim_exprs and len(shape) > 1 and g.choices.chance(40):
        order = permutation(g, len(shape))
        if g.choices.chance(50) and g.has(ops.Transpose):
            g.apply(ops.Reshape(tuple(InputDim(1, a) for a in range(len(shape)))), x, g.apply(ops.Transpose(order), x))
        else:
            g.apply(ops.Reshape(tuple(InputDim(0, a) for a in order)), x)
    elif g.config.dim_exprs and 0 < len(shape) < g.max_rank:
        place = g.choices.choose((len(shape), len(shape), 0, g.choices.pick(len(shape) + 1)))
        y = g.apply(ops.Reshape((*shape[:place], 1, *shape[place:])), x)
        g.apply(ops.Reshape(tuple(InputDim(0, a) for a in range(len(shape) + 1) if a != place)), y)


def _gives_links(case: Case) -> bool:
    """Whether a result of float arithmetic is an output, and arithmetic reads it whose result a function reads."""
    p = case.program
    made = {
        i.output_slots[0]: i.input_slots for i in p.instructions
        if type(i.op) in _LINKS and p.slot_types[i.output_slots[0]].dtype.is_float
    }  # fmt: skip
    given = made.keys() & p.output_slots
    read = {slot for i in p.instructions if type(i.op) in _READERS for slot in i.input_slots}
    return any(slot in read and not given.isdisjoint(operands) for slot, operands in made.items())


#: The links of a chain.
_LINKS = (ops.Add, ops.Subtract, ops.Multiply, ops.Divide)
#: What may read the end of a chain.
_READERS = (ops.Exp, ops.Tanh)


@motif(5, 2, _gives_links, *_LINKS, *_READERS)
def returned_links(g: Growth) -> None:
    """A chain of arithmetic of one shape, some of whose links are outputs, too, that a fused kernel must not write over."""
    dtypes = g.dtypes_of(ops.Divide)
    x = g.operand([d for d in dtypes if d.is_float] or dtypes, lambda v: v.type.rank > 0)
    for place in range(2 + g.choices.pick(3)):
        other = g.fresh(x.dtype, shape_of(x))
        pair = (other, x) if g.choices.chance(30) else (x, other)
        x = g.apply(g.choices.choose(_LINKS)(), *pair)
        if not place or g.choices.chance(40):
            g.give(x)
    g.apply(g.choices.choose(_READERS)(), x)


#: Ops whose operands do not commute.
_ORDERED = (ops.Subtract, ops.Divide, ops.Pow, ops.Remainder)


def _has_both_orders(case: Case) -> bool:
    """Whether an op has two operands in either order."""
    seen = {(i.op, i.input_slots) for i in case.program.instructions if type(i.op) in _ORDERED}
    return any(slots != slots[::-1] and (op, slots[::-1]) in seen for op, slots in seen)


@motif(2, 2, _has_both_orders, *_ORDERED)
def both_orders(g: Growth) -> None:
    """x - y beside y - x, and their like: two values, whatever takes equal instructions for one."""
    op = g.choices.choose(_ORDERED)
    x = g.operand(g.dtypes_of(op))
    y = g.typed(x.dtype, shape_of(x), None, x)
    g.give(g.apply(op(), x, y), g.apply(op(), y, x))
