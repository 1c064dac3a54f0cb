"""`Draft`: a case being changed, its instructions, inputs and outputs as plain lists, and the way back to a valid `Case`.

What to change is decided in the sibling modules; here is only what every change needs: slots that are read but no longer
written become inputs, dead code goes, slots are numbered without gaps, and a draft that breaks an op's rule builds no case.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from oracle.case import Case
from tenferro_ref.dims import InputDim, expr_of
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import Policy, TensorType
from tenferro_ref.program import GraphProgram, Instruction
from tenferro_ref.tensor import Array, column_major, type_of


class Input(NamedTuple):
    """Declared type (possibly symbolic) and value of a program input."""

    type: TensorType
    array: Array


@dataclass(slots=True)
class Draft:
    """The parts of a case, free to be changed."""

    instructions: list[Instruction]
    inputs: dict[int, Input]
    outputs: list[int]
    policy: Policy
    name: str
    symbols: dict[InputDim, str]

    @classmethod
    def of(cls, case: Case) -> Draft:
        """The parts of `case`."""
        p = case.program
        inputs = dict(zip(p.input_slots, map(Input, p.input_types, case.inputs), strict=True))
        return cls(list(p.instructions), inputs, list(p.output_slots), p.policy, p.name, dict(p.symbols))

    def keep(self, kept: Collection[int], value: Callable[[int], Array]) -> None:
        """Keep only the instructions numbered in `kept`.

        A slot that they read from a dropped instruction becomes an input with the value `value(slot)`; a slot that only
        dropped instructions read becomes an output, so that a failure that shows in it can still be seen; if no output is
        left, every unread result becomes one.
        """
        dropped = [ins for i, ins in enumerate(self.instructions) if i not in kept]
        self.instructions = [ins for i, ins in enumerate(self.instructions) if i in kept]
        lost = {slot for ins in dropped for slot in ins.output_slots}
        read_by_dropped = {slot for ins in dropped for slot in ins.input_slots}
        self.outputs = [slot for slot in self.outputs if slot not in lost]
        for slot in sorted(lost & self.read()):
            array = column_major(value(slot))
            self.inputs[slot] = Input(type_of(array), array)
        unread = self.unread()
        self.outputs += [slot for slot in unread if slot in read_by_dropped] or ([] if self.outputs else unread)

    def read(self) -> set[int]:
        """Slots that an instruction reads, and outputs."""
        return {slot for ins in self.instructions for slot in ins.input_slots} | set(self.outputs)

    def unread(self) -> list[int]:
        """Results that no instruction reads and that are no outputs."""
        read = self.read()
        return [slot for ins in self.instructions for slot in ins.output_slots if slot not in read]

    def rename(self, old: int, new: int) -> None:
        """Everything that reads slot `old` reads `new`."""
        swap = {old: new}
        self.instructions = [
            replace(ins, input_slots=tuple(swap.get(s, s) for s in ins.input_slots)) for ins in self.instructions
        ]
        self.outputs = [swap.get(s, s) for s in self.outputs]

    def prune(self) -> None:
        """Drop instructions and inputs that no output depends on."""
        live = set(self.outputs)
        kept: list[Instruction] = []
        for ins in reversed(self.instructions):
            if live.intersection(ins.output_slots):
                kept.append(ins)
                live.update(ins.input_slots)
        self.instructions = kept[::-1]
        self.inputs = {slot: entry for slot, entry in self.inputs.items() if slot in live}

    def build(self) -> Case | None:
        """The case with slots renumbered; None if it has no output or breaks a rule."""
        if not self.outputs:
            return None
        written = (*self.inputs, *(s for ins in self.instructions for s in ins.output_slots))
        number = {slot: i for i, slot in enumerate(dict.fromkeys(written))}
        first: dict[InputDim, InputDim] = {}
        types = [_declare(i, entry.type, first) for i, entry in enumerate(self.inputs.values())]
        try:
            program = GraphProgram(
                tuple(
                    Instruction(ins.op, _slots(number, ins.input_slots), _slots(number, ins.output_slots))
                    for ins in self.instructions
                ),
                _slots(number, self.inputs),
                tuple(types),
                _slots(number, self.outputs),
                len(number),
                self.policy,
                self.name,
                tuple((new, self.symbols[old]) for old, new in first.items() if old in self.symbols),
            )
            case = Case.of(program, [entry.array for entry in self.inputs.values()])
            program.slot_types  # noqa: B018 - inference is the check
            program.check_inputs([type_of(a) for a in case.inputs])
            concrete_types(case)
        except (TenferroError, KeyError):  # KeyError: a slot that nothing writes any more
            return None
        return case


def _slots(number: dict[int, int], slots: Iterable[int]) -> tuple[int, ...]:
    return tuple(number[s] for s in slots)


def _declare(index: int, type_: TensorType, first: dict[InputDim, InputDim]) -> TensorType:
    """Symbolic extents name the first input axis that has them; dropping inputs may have moved that."""
    return type_.with_shape(
        first.setdefault(extent, InputDim(index, axis)) if isinstance(extent, InputDim) else extent
        for axis, extent in enumerate(type_.shape)
    )


def concrete_types(case: Case) -> dict[int, TensorType]:
    """Type of every slot at the case's input shapes; an extent that is only bounded counts as its bound."""
    program = case.program
    if not program.is_static:
        program = replace(program, input_types=tuple(map(type_of, case.inputs)))
    return {slot: type_.with_shape(map(expr_of, type_.shape)) for slot, type_ in program.slot_types.items()}
