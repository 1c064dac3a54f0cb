"""Ops that give a part of an earlier value: a Concatenate of adjoining slices, and a slice of one operand of a Concatenate or update.

A compiler leaves such an op out, so that what reads the result reads the earlier value: its sets, and where it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from oracle.enclosure.formats import Array
from oracle.enclosure.indexing import room, starts_between
from oracle.enclosure.value import Enclosure, Interval
from tenferro_ref import ops
from tenferro_ref.program import Instruction

Makers = Mapping[int, Instruction]
Values = Mapping[int, Enclosure]


def piece(ins: Instruction, makers: Makers, values: Values) -> Enclosure | None:
    """The part of an earlier value that an instruction gives; None where it gives no such part, or the place is not known."""
    return _joined(ins, makers, values) if isinstance(ins.op, ops.Concatenate) else _taken_back(ins, makers, values)


def _joined(ins: Instruction, makers: Makers, values: Values) -> Enclosure | None:
    """What a Concatenate gives of slices of one value that follow one another: that value, or one slice of it."""
    pieces = [makers.get(slot) for slot in ins.input_slots]
    if not isinstance(ins.op, ops.Concatenate) or not all(p and isinstance(p.op, ops.Slice) for p in pieces):
        return None
    axis, slices = ins.op.axis, [p.op for p in pieces if p and isinstance(p.op, ops.Slice)]
    if len({p.input_slots[0] for p in pieces if p}) > 1 or any(stride != 1 for s in slices for stride in s.strides):
        return None
    first, last = slices[0], slices[-1]
    follow = all(a.limits[axis] == b.starts[axis] for a, b in pairwise(slices))
    others = {(*s.starts[:axis], *s.starts[axis + 1 :], *s.limits[:axis], *s.limits[axis + 1 :]) for s in slices}
    if not follow or len(others) > 1:
        return None
    limits = (*first.limits[:axis], last.limits[axis], *first.limits[axis + 1 :])
    whole = next(values[p.input_slots[0]] for p in pieces if p)
    if not any(first.starts) and limits == whole.shape[: len(limits)]:
        return whole
    return _cut(whole, tuple(map(slice, first.starts, limits)))


def _taken_back(ins: Instruction, makers: Makers, values: Values) -> Enclosure | None:
    """What a slice gives that lies within one operand of a Concatenate, or within what an update wrote at a known place: a slice of that."""
    window = _window(ins, values)
    maker = makers.get(ins.input_slots[0]) if window else None
    if maker is None or window is None:
        return None
    starts, limits, strides = window
    for operand, begins in _parts(maker, values, len(starts)):
        # the last axis of an operand may be that of the input sets
        ends = [begin + extent for begin, extent in zip(begins, operand.shape, strict=False)]
        if all(b <= s < l <= e for b, s, l, e in zip(begins, starts, limits, ends, strict=True)):
            index = (slice(s - b, l - b, step) for b, s, l, step in zip(begins, starts, limits, strides, strict=True))
            return _cut(operand, tuple(index))
    return None


def _window(ins: Instruction, values: Values) -> tuple[Sequence[int], Sequence[int], Sequence[int]] | None:
    """Starts, limits and strides of a slice, if they are known."""
    match ins.op:
        case ops.Slice(starts, limits, strides):
            return starts, limits, strides
        case ops.DynamicSlice(sizes):
            begins = _starts(values[ins.input_slots[1]], values[ins.input_slots[0]], sizes)
            if begins is not None:
                return begins, [b + size for b, size in zip(begins, sizes, strict=True)], [1] * len(sizes)
    return None


def _parts(maker: Instruction, values: Values, rank: int) -> Iterator[tuple[Enclosure, Sequence[int]]]:
    """Operands of an instruction that its result has as they are, and where they begin in it."""
    match maker.op:
        case ops.Concatenate(axis):
            begin = 0
            for operand in (values[slot] for slot in maker.input_slots):
                yield operand, [begin if k == axis else 0 for k in range(rank)]
                begin += operand.shape[axis]
        case ops.DynamicUpdateSlice():
            x, update, starts = (values[slot] for slot in maker.input_slots)
            if (begins := _starts(starts, x, update.shape)) is not None:
                yield update, begins


def _starts(starts: Enclosure, x: Enclosure, sizes: Sequence[int]) -> list[int] | None:
    """Constant starts of a window of `x`, clamped so that it fits."""
    if not (starts.const and isinstance(starts, Interval) and starts.is_point):
        return None
    rank = starts.shape[0]
    of_one_set = starts.map(lambda a: a.reshape(rank, -1)[:, 0])
    least, _ = starts_between(of_one_set, room(x.shape[:rank], sizes[:rank]))
    return [int(start) for start in least]


def _cut(x: Enclosure, index: tuple[slice, ...]) -> Enclosure:
    cut: Callable[[Array], Any] = lambda a: a[index]  # noqa: E731
    return x.map(cut)
