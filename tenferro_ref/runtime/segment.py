"""Segmentation of an ExecProgram (SEMANTICS 5): which instructions share a backend session.

How a program falls into segments is decided here; how a segment is run, in `run`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tenferro_ref.ops import BroadcastInDim, Category, Multiply
from tenferro_ref.program import ExecProgram

#: `host` and `ffi` segments have one instruction. A `fused` run is a maximal run of backend-session instructions, but for
#: the two patterns that have their own fast path: `triplet` is BroadcastInDim, BroadcastInDim, Multiply of exactly those
#: two; `pair` is BroadcastInDim and a Multiply that reads it.
SegmentKind: TypeAlias = Literal["host", "ffi", "fused", "triplet", "pair"]


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive instructions that run together.

    Attributes
    ----------
    instructions
        Indices into the program's instructions.
    inputs
        Slots read but not produced inside, in first-seen order.
    outputs
        Slots produced inside that are program outputs or read later.
    last_use
        For each of `inputs`: an instruction of the segment flags it as the slot's last use.
    """

    kind: SegmentKind
    instructions: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    last_use: tuple[bool, ...]


def segment_exec_program(program: ExecProgram, *, decline_reused: bool = True) -> tuple[Segment, ...]:
    """Split a program into segments, in one forward scan.

    Parameters
    ----------
    decline_reused
        The engine's rule since July 2026: a triplet or pair stands alone only when no later instruction reads any of its
        results; otherwise its first instruction joins the ordinary run. False gives the earlier, unconditional rule.
    """
    segments: list[Segment] = []
    run: list[int] = []

    def flush() -> None:
        if run:
            segments.append(_segment(program, "fused", run))
            run.clear()

    cursor, count = 0, len(program.instructions)
    while cursor < count:
        category = program.instructions[cursor].op.category
        kind, length = _pattern_at(program, cursor, decline_reused)
        if category is not Category.BACKEND:
            kind, length = ("host" if category is Category.HOST else "ffi"), 1
        if kind == "fused":
            run.append(cursor)
        else:
            flush()
            segments.append(_segment(program, kind, range(cursor, cursor + length)))
        cursor += length
    flush()
    return tuple(segments)


def _pattern_at(program: ExecProgram, cursor: int, decline_reused: bool) -> tuple[SegmentKind, int]:
    window = program.instructions[cursor : cursor + 3]
    ops = [type(i.op) for i in window]
    kind: SegmentKind = "fused"
    length = 1
    if ops == [BroadcastInDim, BroadcastInDim, Multiply] and window[2].input_slots == (
        window[0].output_slots[0],
        window[1].output_slots[0],
    ):
        kind, length = "triplet", 3
        if not (decline_reused and _read_later(program, cursor, length)):
            return kind, length
        kind, length = "fused", 1
    if ops[:2] == [BroadcastInDim, Multiply] and window[0].output_slots[0] in window[1].input_slots:
        kind, length = "pair", 2
        if decline_reused and _read_later(program, cursor, length):
            kind, length = "fused", 1
    return kind, length


def _read_later(program: ExecProgram, cursor: int, length: int) -> bool:
    """Whether an instruction behind the pattern reads one of its results."""
    end = cursor + length
    return any(program.last_read.get(s, -1) >= end for i in program.instructions[cursor:end] for s in i.output_slots)


def _segment(program: ExecProgram, kind: SegmentKind, indices: Iterable[int]) -> Segment:
    indices = tuple(indices)
    produced: dict[int, None] = {}
    inputs: dict[int, bool] = {}
    for index in indices:
        ins = program.instructions[index]
        for slot, last in zip(ins.input_slots, ins.last_use, strict=True):
            if slot not in produced:
                inputs[slot] = inputs.get(slot, False) or last
        produced.update(dict.fromkeys(ins.output_slots))
    needed = set(program.output_slots)
    outputs = tuple(s for s in produced if s in needed or program.last_read.get(s, -1) > indices[-1])
    return Segment(kind, indices, tuple(inputs), outputs, tuple(inputs.values()))
