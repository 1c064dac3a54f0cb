"""Where the elements of what was moved come from: a value whose elements all are elements of one earlier value reads that one.

A compiler leaves out what puts a value together and takes it apart again (a Concatenate or Pad and its slice, slices that are joined, an update and
what it wrote), so that what reads the result reads the earlier value: its sets, and where that came from. The rules of the ops that move elements
are asked where those go, with the number of an element in place of each.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from oracle.enclosure import unchanged
from oracle.enclosure.bounds import is_zero
from oracle.enclosure.formats import Array
from oracle.enclosure.freedoms import merging
from oracle.enclosure.rule import ENCLOSE, Context
from oracle.enclosure.sums import flattened
from oracle.enclosure.value import Enclosure, Interval, exact
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.program import Instruction

_FIRST = slice(1)
#: Which operands an op moves. Of the others it reads the values, which have to be known, or the shapes alone (`_OF_SHAPES`).
_MOVED = {
    **dict.fromkeys((ops.Transpose, ops.Reshape, ops.BroadcastInDim, ops.Slice, ops.Reverse, ops.ExtractDiag), _FIRST),
    **dict.fromkeys((ops.Pad, ops.PadToMatch, ops.EmbedDiag, ops.Tril, ops.Triu, ops.DynamicSlice, ops.Gather), _FIRST),
    ops.Concatenate: slice(None),
    ops.DynamicUpdateSlice: slice(2),
    ops.Select: slice(1, 3),
    ops.Scatter: slice(2, 3),
}
_OF_SHAPES = (ops.Reshape, ops.BroadcastInDim, ops.PadToMatch)
#: What they give may have elements of several values, or zeros between them; of a broadcast it is known that it repeats what it has.
_JOINS = (ops.BroadcastInDim, ops.Concatenate, ops.Pad, ops.PadToMatch, ops.EmbedDiag, ops.Tril, ops.Triu, ops.DynamicUpdateSlice, ops.Select, ops.Scatter)  # fmt: skip
#: Elements of slot s have the numbers from `(s + 1) << _SHIFT` on; 0 is a zero that was put between elements.
_SHIFT = 32


@dataclass(frozen=True, slots=True)
class Places:
    """Numbers of elements by slot, in the shape of the slot's value without the axis of the input sets.

    Attributes
    ----------
    moved
        For a value all of whose elements are of one slot: which ones.
    joined
        For a value put together of operands, zeros or repetitions: which elements of its operands. A move of it has numbers of its own elements, not of these.
    resolved
        The same as `joined`, with what elements of other joined values were put together of in their place: of one update after another, what each wrote.
    spread
        The slots of `joined` that are broadcasts. A value cut from what broadcasts were put together in is read as a piece of the broadcast, since that it repeats is worth knowing.
    """

    moved: dict[int, Array] = field(default_factory=dict)
    joined: dict[int, Array] = field(default_factory=dict)
    resolved: dict[int, Array] = field(default_factory=dict)
    spread: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Piece:
    """Elements of an earlier value.

    Attributes
    ----------
    value
        Their enclosure.
    whole
        The slot of that value, if these are all of its elements, in its shape.
    """

    value: Enclosure
    whole: int | None = None


def piece(ins: Instruction, c: Context, sets: int, places: Places, values: Mapping[int, Enclosure]) -> Piece | None:
    """The elements of an earlier value that an instruction gives; None unless they are that whole value, or were put together with others and taken out.

    `places` is given the numbers of the result.

    Parameters
    ----------
    c
        Context of I64.
    sets
        How many input sets the values have; of more than one along the last axis.
    """
    numbers = _numbers(ins, c, sets, places, values)
    if numbers is None:
        return None
    slot, joins = ins.output_slots[0], isinstance(ins.op, _JOINS)
    source, repeats = _source(numbers), isinstance(ins.op, ops.BroadcastInDim)
    if joins and (source is None or repeats):
        places.joined[slot] = numbers
        places.resolved[slot] = resolved = _resolved(numbers, places)
        if repeats:
            places.spread.add(slot)
        if repeats or (source := _source(resolved)) is None:
            return None
        numbers = resolved
    through = joins
    while source in places.joined and not (through and source in places.spread):
        before = places.joined[source].reshape(-1)[numbers - _first(source)]
        if _source(before) is None:
            break
        repeats = repeats or source in places.spread
        numbers, source, through = before, _source(before), True
    places.moved[slot] = numbers
    if source is None:
        return None
    whole = values[source]
    rank = len(whole.shape) - (sets > 1)
    at = numbers - _first(source)
    same = at.shape == whole.shape[:rank] and np.array_equal(at.reshape(-1), np.arange(at.size))
    if not (same or through):
        return None
    taken: Callable[[Array], Any] = lambda a: a.reshape(-1, *a.shape[rank:])[at]  # noqa: E731
    made = whole if same else whole.map(taken)
    if repeats or all(values[s].repeated for s in ins.input_slots[_MOVED.get(type(ins.op), _FIRST)]):
        made = made.known_as(const=made.const, repeated=not made.const)
    return Piece(made, source if same else None)


def given_back(slot: int, back: int, sets: int, places: Places, values: Mapping[int, Enclosure]) -> None:
    """Note that an instruction gives the slot `back` back: the elements of its result have the numbers of that."""
    places.moved.setdefault(slot, _numbers_of(back, sets, places, values))


def _numbers_of(slot: int, sets: int, places: Places, values: Mapping[int, Enclosure]) -> Array:
    """The numbers of a slot's elements: those of what it is all of, or its own."""
    known = places.moved.get(slot)
    shape = values[slot].shape
    return _numbered(slot, shape[: len(shape) - (sets > 1)]) if known is None else known


def _numbers(ins: Instruction, c: Context, sets: int, places: Places, values: Mapping[int, Enclosure]) -> Array | None:
    """The numbers of a result's elements; None where the op computes them, or where it takes them from depends on values that are not known."""
    moved = _MOVED.get(type(ins.op))
    if isinstance(ins.op, ops.ReduceProd | ops.ReduceMax | ops.ReduceMin) or (
        isinstance(ins.op, ops.ReduceSum) and merging.is_free(c)
    ):
        return _kept_by_reduction(ins.op, ins.input_slots[0], sets, places, values)
    if moved is None:
        return None
    operands: list[Enclosure] = []
    of_shapes = isinstance(ins.op, _OF_SHAPES)
    for k, slot in enumerate(ins.input_slots):
        x = values[slot]
        if k in range(len(ins.input_slots))[moved]:
            operands.append(exact(DType.I64, _numbers_of(slot, sets, places, values)))
        elif of_shapes or (x.const and np.all(x.decided) and (sets == 1 or _same_in_all_sets(x))):
            operands.append(x.map(lambda a: a[..., 0]) if sets > 1 else x)
        else:
            return None
    if isinstance(ins.op, ops.Scatter):
        if not all(np.all(is_zero(part)) for part in operands[0].parts):
            return None
        operands[0] = exact(DType.I64, np.zeros(operands[0].shape, np.int64))
    made = None
    with contextlib.suppress(UnsupportedOp):  # there may be too many possible starts
        made = ENCLOSE[type(ins.op)](ins.op, c, *operands)
    if made is None or not np.array_equal(made.lo, made.hi):
        return None
    if isinstance(ins.op, ops.Scatter) and np.count_nonzero(made.lo) != operands[2].size:  # two on one place, or none
        return None
    return made.lo


def _resolved(numbers: Array, places: Places) -> Array:
    """Numbers with those that the elements of joined values have in these, as far down as that goes."""
    made = numbers
    for slot in {int(n) - 1 for n in np.unique(numbers >> _SHIFT)} & places.resolved.keys():
        here = numbers >> _SHIFT == slot + 1
        made = made.copy() if made is numbers else made
        made[here] = places.resolved[slot].reshape(-1)[numbers[here] - _first(slot)]
    return made


def _kept_by_reduction(
    op: ops.ReduceProd | ops.ReduceMax | ops.ReduceMin | ops.ReduceSum,
    slot: int,
    sets: int,
    places: Places,
    values: Mapping[int, Enclosure],
) -> Array | None:
    """The numbers of the elements that are reduced alone, beside neutral ones or none."""
    x = values[slot]
    of_complex = not isinstance(x, Interval)
    if not op.axes or (of_complex and not isinstance(op, ops.ReduceSum)):  # 1 + 0i is not neutral to the signs of zeros
        return None
    alone = all(x.shape[axis] == 1 for axis in op.axes)
    if not alone and all(p.origin.fixed is None and not p.const for p in x.parts):  # no element is neutral
        return None
    needed = np.flatnonzero(unchanged.needed(op, x.map(flattened(op.axes, len(x.shape)))))
    if needed.size != 1:
        return None
    numbers = _numbers_of(slot, sets, places, values)
    return np.asarray(flattened(op.axes, numbers.ndim)(numbers)[..., needed[0]])


def _same_in_all_sets(x: Enclosure) -> bool:
    """Whether the value is the same in all input sets; an input that is a constant to a compiler may be another in each."""
    return all(bool(np.all(p.lo == p.lo[..., :1])) for p in x.parts)


def _source(numbers: Array) -> int | None:
    """The one slot that all elements are of."""
    if not numbers.size:
        return None
    source = int(numbers.flat[0]) >> _SHIFT
    return source - 1 if source and np.all(numbers >> _SHIFT == source) else None


def _first(slot: int) -> int:
    """The number of a slot's first element."""
    return (slot + 1) << _SHIFT


def _numbered(slot: int, shape: tuple[int, ...]) -> Array:
    """The numbers of all elements of a slot."""
    first = _first(slot)
    return np.arange(first, first + prod(shape), dtype=np.int64).reshape(shape)
