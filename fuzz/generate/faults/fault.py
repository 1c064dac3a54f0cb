"""What a fault is: one way to break one rule of a valid program, and how it is declared.

What is broken is broken by construction, and the expected error follows from the rule, not from running the checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from fuzz.generate.choices import Choices
from fuzz.generate.growth import Growth
from fuzz.generate.shapes import Shape
from oracle.case import Refusal
from oracle.peers.forms import opened
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op
from tenferro_ref.program import GraphProgram, Instruction, Value

#: Gives a program with other declared types of its inputs.
Declared: TypeAlias = Callable[[GraphProgram], GraphProgram]


class Fault(NamedTuple):
    """One way to break an instruction of one op, or the graph."""

    name: str
    kind: str
    #: None for the graph.
    op: type[Op] | None
    #: Only values or extents show it, so that it is an error when the program runs.
    late: bool
    #: The broken program, made of a growing one, the error that is due, and what declares the types of its inputs otherwise than they are.
    build: Callable[[Growth], tuple[GraphProgram, Refusal, Declared]]

    @property
    def rule(self) -> str:
        """What is broken, whatever the op."""
        return self.name.partition(":")[0]


class Faulty(NamedTuple):
    """A faulty instruction, and the facts of its error.

    `blamed` is the op that it names if it is not the op itself; if it is `symbolic`, the extents of its operands, which are
    inputs, become symbols, so that the program is one for other inputs than these; if it is `tied`, those of the second operand are the first's,
    and the inputs themselves are refused.
    """

    op: Op
    operands: tuple[Value, ...]
    axis: int | None = None
    argument: str | None = None
    blamed: str | None = None
    symbolic: bool = False
    tied: bool = False


InstructionRule: TypeAlias = Callable[[Growth, type[Any]], Faulty]
GraphRule: TypeAlias = Callable[[Choices, GraphProgram], GraphProgram]


class Faults(list[Fault]):
    """The faults of one file; a fault's name is that of the function that makes it."""

    def instruction(self, kind: str, *ops: type[Op], late: bool = False) -> Callable[[InstructionRule], None]:
        """Declare a fault of the instructions of `ops`; `late` if only values or extents show it."""

        def add(rule: InstructionRule) -> None:
            for op in ops:
                name = f"{_name(rule)}: {op.__name__}"
                self.append(Fault(name, kind, op, late, partial(_break_instruction, rule, op, name, kind, late)))

        return add

    def graph(self, rule: GraphRule) -> None:
        """Declare a fault of the graph."""
        name, kind = _name(rule), "InvalidCompiledGraph"
        self.append(Fault(name, kind, None, False, partial(_break_graph, rule, name, kind)))


def _name(rule: Any) -> str:
    name: str = rule.__name__
    return name.replace("_", " ")


def _break_instruction(
    rule: InstructionRule, op: type[Op], name: str, kind: str, late: bool, g: Growth
) -> tuple[GraphProgram, Refusal, Declared]:
    faulty = rule(g, op)
    program = _append(g.finish(), Instruction(faulty.op, tuple(v.slot for v in faulty.operands), ()))
    at = len(program.instructions) - 1
    numbers = [program.input_slots.index(v.slot) for v in faulty.operands] if faulty.symbolic or faulty.tied else []
    blamed = f"program input {numbers[1]}, declared and given" if faulty.tied else faulty.blamed or faulty.op.name
    refusal = Refusal(name, kind, blamed, faulty.axis, faulty.argument, at, late)
    if g.choices.chance(30):  # something reads the faulty value
        program = _append(program, Instruction(ops.Negate(), program.output_slots[-1:], ()))
    return program, refusal, partial(_declared, numbers, faulty.tied)


def _declared(numbers: Sequence[int], tied: bool, program: GraphProgram) -> GraphProgram:
    """The program with symbols for the extents of some inputs; if they are tied, with those of the first for all."""
    for number in numbers[:1] if tied else numbers:
        for axis in range(program.input_types[number].rank):
            program = opened(program, number, axis)
    types = list(program.input_types)
    for number in numbers[1:] if tied else ():
        types[number] = types[number].with_shape(types[numbers[0]].shape)
    return replace(program, input_types=tuple(types))


def _break_graph(rule: GraphRule, name: str, kind: str, g: Growth) -> tuple[GraphProgram, Refusal, Declared]:
    if not g.recipes:  # faults of the graph want an input, and an instruction that reads it
        g.fresh(DType.F64, ())
    sound = _append(g.finish(), Instruction(ops.Convert(DType.F64), (next(iter(g.recipes)),), ()))
    return rule(g.choices, sound), Refusal(name, kind), partial(_declared, (), False)


def _append(program: GraphProgram, ins: Instruction) -> GraphProgram:
    """`program` with one more instruction, whose result is a new slot and the last output."""
    slot = program.n_slots
    return replace(
        program,
        instructions=(*program.instructions, replace(ins, output_slots=(slot,))),
        output_slots=(*program.output_slots, slot),
        n_slots=slot + 1,
    )


# --- operands and attributes ------------------------------------------------------------------------------------------


def of_rank(g: Growth, admitted: list[DType], rank: int) -> Value:
    """A value of one of these dtypes, of at least that rank and with elements."""
    fitting = [v for v in g.pool if v.dtype in admitted and v.type.rank >= rank and 0 not in v.shape]
    if fitting and g.choices.chance(70):
        return g.choices.choose(fitting)
    return g.fresh(g.choices.choose(admitted), (2, 3, 4)[: max(rank, g.choices.pick(3))])


def operand(g: Growth, op: type[Any], rank: int = 0) -> Value:
    """A value that `op` admits, of at least that rank and with elements."""
    return of_rank(g, [d for d in (DType.F64, DType.F32, DType.I64) if d in op.dtypes], rank)


def matrix(g: Growth) -> Value:
    """A new input of rank 2 or 3."""
    dtype = g.choices.choose((DType.F64, DType.F32, DType.I64))
    return g.fresh(dtype, g.choices.choose(((3, 2), (2, 4), (4, 3, 2))))


def full(g: Growth, number: complex, dtype: DType, shape: Shape = ()) -> Value:
    """A constant, stretched to a shape."""
    scalar = g.apply(ops.Constant.of(number, dtype))
    return g.apply(ops.BroadcastInDim(shape, ()), scalar) if shape else scalar


def another_dtype(dtype: DType) -> DType:
    """F32, or F64 in its place."""
    return DType.F32 if dtype is not DType.F32 else DType.F64


def outside(g: Growth, rank: int) -> int:
    """An axis that a tensor of that rank lacks."""
    return g.choices.choose((rank, -1, rank + 7, 2**31))


def any_axis(g: Growth, x: Value) -> int:
    """An axis of `x`."""
    return g.choices.pick(x.type.rank)


def changed(x: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    """`x` with another value at a place."""
    return (*x[:place], value, *x[place + 1 :])


def inserted(g: Growth, x: tuple[int, ...], value: int) -> tuple[int, ...]:
    """`x` with a value put in anywhere."""
    place = g.choices.pick(len(x) + 1)
    return (*x[:place], value, *x[place:])
