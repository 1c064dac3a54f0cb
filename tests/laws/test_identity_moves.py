"""Moves that bring elements back, and ops that give them back, take nothing from an enclosure: a compiler may leave them out, and then do whatever it may do in a program without them.

They are put behind each value of generated programs; the enclosure of each output has to hold all that it holds without them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from oracle.enclosure import XLA, Interval, enclose
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.program import GraphBuilder, GraphProgram, Value
from tests.laws.cases import Array, apply, generated

pytestmark = pytest.mark.once

Move = Callable[[Value], Value]


def shape_of(x: Value) -> tuple[int, ...]:
    return tuple(x.type.static_shape)


def window(x: Value, starts: tuple[int, ...], shape: tuple[int, ...]) -> Value:
    limits = tuple(s + n for s, n in zip(starts, shape, strict=True))
    return apply(ops.Slice(starts, limits, (1,) * len(shape)), x)


def indices(x: Value, *numbers: int) -> Value:
    return apply(ops.Concatenate(0), *(x.builder.constant(n, DType.I64).reshape(1) for n in numbers))


def filled(x: Value, number: float, shape: tuple[int, ...]) -> Value:
    return apply(ops.BroadcastInDim(shape, ()), x.builder.constant(number, x.dtype))


def beside(x: Value) -> Value:
    """The second half of the value beside itself."""
    n, *rest = shape_of(x)
    return window(apply(ops.Concatenate(0), x, x), (n, *(0 for _ in rest)), shape_of(x))


def beside_twice(x: Value) -> Value:
    n, *rest = shape_of(x)
    both = apply(ops.Concatenate(0), apply(ops.Concatenate(0), filled(x, 1, shape_of(x)), x), x)
    return window(both, (n, *(0 for _ in rest)), shape_of(x))


def halves(x: Value) -> Value:
    n, *rest = shape_of(x)
    none = tuple(0 for _ in rest)
    return apply(
        ops.Concatenate(0), window(x, (0, *none), (n // 2, *rest)), window(x, (n // 2, *none), (n - n // 2, *rest))
    )


def padded(x: Value) -> Value:
    ones = (1,) * x.ndim
    return window(apply(ops.Pad(ones, ones, (0,) * x.ndim), x), ones, shape_of(x))


def cropped(x: Value) -> Value:
    none, ones = (0,) * x.ndim, (1,) * x.ndim
    return apply(ops.Pad(tuple(-n for n in ones), none, none), apply(ops.Pad(ones, none, none), x))


def taken(x: Value) -> Value:
    """By a start that is a constant, out of what is padded."""
    ones = (1,) * x.ndim
    return apply(ops.DynamicSlice(shape_of(x)), apply(ops.Pad(ones, ones, (0,) * x.ndim), x), indices(x, *ones))


def written(x: Value) -> Value:
    ones, around = (1,) * x.ndim, tuple(n + 2 for n in shape_of(x))
    return window(apply(ops.DynamicUpdateSlice(), filled(x, 1, around), x, indices(x, *ones)), ones, shape_of(x))


def scattered(x: Value) -> Value:
    n, *rest = shape_of(x)
    axes = tuple(range(1, x.ndim))
    return apply(ops.Scatter(axes, (0,), (0,), 1), filled(x, 0, (n, *rest)), indices(x, *range(n)).reshape(n, 1), x)


def on_diagonal(x: Value) -> Value:
    return apply(ops.ExtractDiag(0, 1), apply(ops.EmbedDiag(0, 1), x))


def chosen(x: Value) -> Value:
    never = apply(ops.BroadcastInDim(shape_of(x), ()), x.builder.constant(False, DType.Bool))
    return apply(ops.Select(), never, filled(x, 1, shape_of(x)), x)


def turned_beside(x: Value) -> Value:
    """Reversed beside a constant, cut, and reversed again."""
    both = apply(ops.Reverse((0,)), apply(ops.Concatenate(0), filled(x, 1, shape_of(x)), x))
    return apply(ops.Reverse((0,)), window(both, (0,) * x.ndim, shape_of(x)))


def reshaped_beside(x: Value) -> Value:
    n, *rest = shape_of(x)
    both = apply(ops.Reshape((2 * n, 1, *rest)), apply(ops.Concatenate(0), x, x))
    return apply(ops.Reshape((n, *rest)), window(both, (0,) * (x.ndim + 1), (n, 1, *rest)))


def spread_out(x: Value) -> Value:
    shape = shape_of(x)
    both = apply(ops.BroadcastInDim((2, *shape), tuple(range(1, x.ndim + 1))), x)
    return apply(ops.Reshape(shape), window(both, (1, *(0 for _ in shape)), (1, *shape)))


def reduced(x: Value) -> Value:
    return apply(ops.ReduceSum((0,)), apply(ops.Reshape((1, *shape_of(x))), x))


def two_parts(x: Value) -> tuple[Value, Value]:
    n, *rest = shape_of(x)
    none = tuple(0 for _ in rest)
    return window(x, (0, *none), (n // 2, *rest)), window(x, (n // 2, *none), (n - n // 2, *rest))


def in_part(x: Value, f: Move) -> Value:
    """With `f` of its second half in place of that."""
    first, rest = two_parts(x)
    return apply(ops.Concatenate(0), first, f(rest))


def times_one(x: Value) -> Value:
    return x * filled(x, 1, shape_of(x))


def over_one(x: Value) -> Value:
    return x / filled(x, 1, shape_of(x))


def added_nothing(x: Value) -> Value:
    """Of complex numbers the zero has two signs, one of which changes a zero."""
    return x if x.dtype.is_complex else x + filled(x, -0.0 if x.dtype.is_float else 0, shape_of(x))


def negated_twice(x: Value) -> Value:
    return apply(ops.Negate(), apply(ops.Negate(), x))


def conjugated_twice(x: Value) -> Value:
    return apply(ops.Conj(), apply(ops.Conj(), x)) if x.dtype.is_complex else x


def wider_and_back(x: Value) -> Value:
    wider = {DType.F16: DType.F32, DType.BF16: DType.F32, DType.F32: DType.F64, DType.C32: DType.C64}.get(x.dtype)
    return apply(ops.Convert(x.dtype), apply(ops.Convert(wider), x)) if wider else x


def of_bits(x: Value) -> Value:
    integer = {DType.F16: DType.I16, DType.BF16: DType.I16, DType.F32: DType.I32, DType.F64: DType.I64}.get(x.dtype)
    return apply(ops.Bitcast(x.dtype), apply(ops.Bitcast(integer), x)) if integer else x


def clamped(x: Value) -> Value:
    ends = (filled(x, end, shape_of(x)) for end in (-np.inf, np.inf)) if x.dtype.is_float else ()
    return apply(ops.Clamp(), x, *ends) if x.dtype.is_float else x


def with_ones(x: Value) -> Value:
    """Multiplied along an axis on which there are ones beside it."""
    column = apply(ops.Reshape((*shape_of(x), 1)), x)
    one = filled(x, 1, shape_of(column))
    return apply(ops.ReduceProd((x.ndim,)), apply(ops.Concatenate(x.ndim), one, column, one))


def with_zeros(x: Value) -> Value:
    """Added along an axis on which there are zeros beside it."""
    column = apply(ops.Reshape((*shape_of(x), 1)), x)
    zero = filled(x, 0, shape_of(column))
    return apply(ops.ReduceSum((x.ndim,)), apply(ops.Concatenate(x.ndim), zero, column, zero))


def above_everything(x: Value) -> Value:
    """The greatest along an axis on which there is -inf beside it."""
    if not x.dtype.is_float:
        return x
    column = apply(ops.Reshape((*shape_of(x), 1)), x)
    return apply(ops.ReduceMax((x.ndim,)), apply(ops.Concatenate(x.ndim), filled(x, -np.inf, shape_of(column)), column))


def updated_twice(x: Value) -> Value:
    """Zeros, all of which are written over."""
    first, rest = two_parts(x)
    none = (0,) * (x.ndim - 1)
    half = apply(ops.DynamicUpdateSlice(), filled(x, 0, shape_of(x)), first, indices(x, 0, *none))
    return apply(ops.DynamicUpdateSlice(), half, rest, indices(x, shape_of(first)[0], *none))


def updated_by_itself(x: Value) -> Value:
    first, rest = two_parts(x)
    return apply(
        ops.DynamicUpdateSlice(), x, times_one(rest), indices(x, shape_of(first)[0], *(0 for _ in range(x.ndim - 1)))
    )


def gathered(x: Value) -> Value:
    n, *rest = shape_of(x)
    gather = ops.Gather(tuple(range(1, x.ndim)), (0,), (0,), 1, (1, *rest))
    return apply(gather, x, indices(x, *range(n)).reshape(n, 1))


#: What gives each element back, and of which a part of a value may be put together with the rest.
ELEMENTWISE: tuple[Move, ...] = (
    times_one, over_one, added_nothing, negated_twice, conjugated_twice, wider_and_back, of_bits, clamped,
)  # fmt: skip

MOVES: tuple[Move, ...] = (
    beside, beside_twice, halves, padded, cropped, taken, written, scattered, on_diagonal, chosen,
    turned_beside, reshaped_beside, spread_out, reduced,
)  # fmt: skip


def movable(program: GraphProgram) -> list[int]:
    """The slots that an instruction gives and another reads, of numbers with at least one axis and element."""
    read = {s for ins in program.instructions for s in ins.input_slots}
    types = [(s, program.slot_types[s]) for ins in program.instructions for s in ins.output_slots if s in read]
    return [s for s, t in types if t.shape and 0 not in t.shape and t.dtype is not DType.Bool]


def with_move(of: GraphProgram, move: Move, slot: int) -> GraphProgram:
    """The program with a move behind one of its values, for all that read it."""
    b = GraphBuilder(policy=of.policy)
    values = {s: b.typed_input(of.slot_types[s]) for s in of.input_slots}
    given = dict[int, Value]()
    for ins in of.instructions:
        made = b.apply_many(ins.op, *(given.get(s, values[s]) for s in ins.input_slots))
        values.update(zip(ins.output_slots, made, strict=True))
        if slot in ins.output_slots:
            given[slot] = move(values[slot])
    return b.build(*(values[s] for s in of.output_slots))


def lost(x: Interval, y: Interval) -> Array:
    """Elements of which `x` has values that `y` lacks."""
    beyond = (x.lo < y.lo) | (x.hi > y.hi)
    if not x.dtype.is_float:
        return beyond
    flags = (x.nan & ~y.nan) | (x.pos_zero & ~y.pos_zero) | (x.neg_zero & ~y.neg_zero)
    return np.asarray(flags | (~x.empty & (beyond | y.empty)))


@pytest.mark.parametrize("move", MOVES, ids=[m.__name__ for m in MOVES])
def test_what_may_be_left_out_takes_no_freedom(move: Move) -> None:
    assert asked_of(move, 96) > 50


OTHERS: dict[str, Move] = {
    **{
        m.__name__: m
        for m in (*ELEMENTWISE, with_ones, with_zeros, above_everything, updated_twice, updated_by_itself, gathered)
    },
    **{f"{m.__name__}, in part": partial(in_part, f=m) for m in ELEMENTWISE},
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_gives_its_operand_back_takes_no_freedom(name: str) -> None:
    assert asked_of(OTHERS[name], 32) > 50


def asked_of(move: Move, programs: int) -> int:
    """How many values of so many programs the move was put behind; raise where an enclosure lacks something then."""
    asked = 0
    for case in generated(5, programs):
        try:
            plain = enclose(case.program, case.inputs, XLA)
        except UnsupportedOp:
            continue
        for slot in movable(case.program):
            whole = enclose(with_move(case.program, move, slot), case.inputs, XLA)
            asked += 1
            for x, y in zip(plain, whole, strict=True):
                for p, q in zip(x.parts, y.parts, strict=True):
                    assert not np.any(lost(p, q)), (case.program, slot)
    return asked
