"""The programs that mutants are hunted with, and how each looks without a fault: computed once a process.

Only programs that enter the changed code need be looked at with the fault.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType
from typing import Any

from fuzz.generate.batches import generate
from fuzz.mutants.looks import Watch, look, watch
from fuzz.mutants.rewrite import lru_caches
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import STABLEHLO, Op
from tenferro_ref.program import Instruction

CHUNK = 16


def under_stablehlo(case: Case) -> Case:
    """The same program under the policy of imported programs, with what it admits and generated programs lack.

    Integer maxima and minima become quotients and powers; a Bool tensor is reduced; complex numbers are asked whether they
    are nonzero, and real ones become integers, whatever they are.
    """
    program = case.program
    types = program.slot_types
    instructions = []
    for ins in program.instructions:
        if isinstance(ins.op, ops.Maximum | ops.Minimum) and types[ins.output_slots[0]].dtype.is_int:
            ins = dataclasses.replace(ins, op=ops.Divide() if isinstance(ins.op, ops.Maximum) else ops.Pow())
        instructions.append(ins)
    odd, free = len(instructions), program.n_slots
    more: list[tuple[Op, list[int]]] = [
        ((ops.ReduceMax, ops.ReduceMin, ops.ReduceSum, ops.ReduceProd)[odd % 4]((0,)),
         [s for s, t in types.items() if t.dtype is DType.Bool and t.rank]),
        (ops.Convert(DType.Bool), [s for s, t in types.items() if t.dtype.is_complex]),
        (ops.Convert((DType.I32, DType.I64)[odd % 2]), [s for s, t in types.items() if t.dtype.is_float]),
    ]  # fmt: skip
    added = [(op, slots[-1]) for op, slots in more if slots]
    instructions += [Instruction(op, (slot,), (free + i,)) for i, (op, slot) in enumerate(added)]
    program = dataclasses.replace(
        program, policy=STABLEHLO, instructions=tuple(instructions), n_slots=free + len(added),
        output_slots=(*program.output_slots, *range(free, free + len(added))),
    )  # fmt: skip
    return Case(program, case.inputs)


@dataclass(frozen=True, eq=False)
class Item:
    """A program, how it looks without a fault, and the code that looking enters."""

    number: int
    case: Case
    look: Hashable
    entered: frozenset[CodeType]


@dataclass(eq=False)
class Programs:
    """The programs of one seed for one kind of look, made as they are asked for."""

    seed: int
    watch: Watch
    _chunks: list[list[Item]] = field(default_factory=list)

    def chunk(self, number: int) -> list[Item]:
        """The next programs; no fault may be there while they are made."""
        while len(self._chunks) <= number:
            batch = len(self._chunks)
            config = self.watch.config(batch)
            cases = generate(self.seed, batch, CHUNK, config)
            if config.ops is None:
                cases[1::2] = [under_stablehlo(case) for case in cases[1::2]]
            first = 1 + sum(map(len, self._chunks))
            self._chunks.append([self._item(first + i, case) for i, case in enumerate(cases)])
        return self._chunks[number]

    def _item(self, number: int, case: Case) -> Item:
        if self.watch.look is None:
            return Item(number, case, None, frozenset())
        for wrapper in lru_caches_once():
            wrapper.cache_clear()
        entered: set[CodeType] = set()

        def note(frame: FrameType, event: str, _: Any) -> None:
            if event == "call":
                entered.add(frame.f_code)

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            seen = look(self.watch, case)
        finally:
            sys.setprofile(before)
        return Item(number, case, seen, frozenset(entered))


@cache
def lru_caches_once() -> tuple[Any, ...]:
    return lru_caches()


@cache
def _programs(seed: int, watch: Watch) -> Programs:
    return Programs(seed, watch)


def programs(seed: int, place: str) -> Programs:
    """The programs that faults of `place` are hunted with; places that look alike share them."""
    return _programs(seed, watch(place))


__all__ = ["Item", "Programs", "programs", "under_stablehlo"]
