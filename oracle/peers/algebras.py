"""`native-algebras`: the engine of the algebras, on the part of each program that has a meaning over other algebras.

What a program gives over max-plus is not what it says, so this executor compares by itself: the fast path and the required path must
give the bits of the definition (`oracle.algebras`). Its outputs are those of the program, computed one instruction after the other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from oracle.algebras import CONTROLS, MEANINGS, read
from oracle.case import Case, live
from oracle.peers.base import Execution, attempt, validate
from oracle.peers.native import NativeExecutor
from oracle.peers.semirings import COMPUTING, PATHS, backend_of, fits
from tenferro_ref import ops
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.dtype import FLOAT, NUMERIC, DType
from tenferro_ref.errors import Internal, TenferroError, UnsupportedOp, defects_in
from tenferro_ref.ops import Op
from tenferro_ref.program import GraphProgram, Instruction, Program
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.runtime.semiring import SEMIRING
from tenferro_ref.tensor import Array, column_major, same_bits, type_of

#: Values that are what they are in every algebra: they come from outside of the part.
_GIVEN: tuple[type[Op], ...] = (ops.Constant, ops.ShapeOf)
#: Ops whose result may have elements where an operand has none.
_SUMS = (ops.ReduceSum, ops.ReduceSumSquares, ops.DotGeneral, ops.DotGeneralWithConj)
#: The most elements that a value of the part has: the required path takes one column of a product after the other.
_LARGEST = 1024


@dataclass(frozen=True)
class Part:
    """The instructions of a program that an algebra has, as a program of its own.

    Attributes
    ----------
    inputs
        What comes from the other instructions, and the inputs.
    slots
        Which slots of the whole program the outputs are.
    """

    program: GraphProgram
    inputs: tuple[Array, ...]
    slots: tuple[int, ...]


@dataclass(frozen=True)
class AlgebrasExecutor(NativeExecutor):
    """The reference without passes, which checks on the way what the part of a program gives over algebras."""

    name: str = "native-algebras"
    passes: tuple[str, ...] = ()
    segmented: bool = False

    def run(self, case: Case) -> Execution:
        validate(case)
        program = live(case.program)
        made = (slot for ins in program.instructions for slot in ins.output_slots)
        slots = tuple(dict.fromkeys((*program.input_slots, *made)))
        (result,) = NativeExecutor.run_many(self, [replace(case, program=replace(program, output_slots=slots))])
        if isinstance(result, TenferroError):
            raise result
        values = dict(zip(slots, result.outputs, strict=True))
        start = time.perf_counter()
        if not sum(_check(part, names, values) for part, names in _parts(program, values)):
            raise UnsupportedOp(op="program", reason="no part of it computes in an algebra")
        seconds = {**result.seconds, "algebras": time.perf_counter() - start}
        return Execution(tuple(values[slot] for slot in program.output_slots), seconds)

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        return [attempt(self, case) for case in cases]


def _parts(program: GraphProgram, values: Mapping[int, Array]) -> Iterator[tuple[Part, tuple[str, ...]]]:
    """The parts of real floats, of Bools in place of them, and of all numbers, each with the algebras that it runs over."""
    tropical = tuple(name for name in MEANINGS if name != "boolean")
    for dtypes, boolean, names in (
        (FLOAT, False, tropical),
        (FLOAT, True, ("boolean",)),
        (NUMERIC, False, ("standard",)),
    ):
        part = part_of(program, values, dtypes, boolean=boolean)
        if part is not None:
            yield part, names


def _check(part: Part, names: Sequence[str], values: Mapping[int, Array]) -> int:
    """How many algebras compute the part, on every path, as they are defined.

    Raises
    ------
    Internal
        One does not.
    """
    compiled = compile_std_to_exec(part.program, ())  # a pass may move roundings
    for name in names:
        standard = name == "standard"
        expected = [values[s] for s in part.slots] if standard else read(part.program, part.inputs, name)
        for path in PATHS:
            if standard and not fits(part.program, path):
                continue
            executor = GraphExecutor(backend_of(name, path), checking=True)
            try:
                with defects_in(f"the engine of {name}"):
                    given = executor.eval_exec_ir(compiled, part.inputs)
            except TenferroError as error:
                raise Internal(detail=f"{name}, {path} path: {error}") from error
            for slot, one, other in zip(part.program.output_slots, given, expected, strict=True):
                if not same_bits(one, other):
                    op = part.program.instructions[part.program.producers[slot]].op.name
                    raise Internal(detail=f"{name}, {path} path: {op} gives other bits than its definition")
    return len(names)


def part_of(
    program: GraphProgram, values: Mapping[int, Array], dtypes: frozenset[DType], *, boolean: bool = False
) -> Part | None:
    """The instructions that have rows and elements of `dtypes`, cut from the others, whose results become inputs.

    None where there are none, or they move elements alone.

    Parameters
    ----------
    values
        Of all slots.
    boolean
        Whether the elements become Bools, which say what is not zero. Indices and predicates stay as they are.
    """
    taken: list[Instruction] = []
    inputs: dict[tuple[int, bool], Array] = {}
    made: dict[int, None] = {}
    for ins in program.instructions:
        controls = CONTROLS.get(type(ins.op), ())
        operands = [(slot, place in controls) for place, slot in enumerate(ins.input_slots)]
        data = {DType.of(values[slot]) for slot, control in operands if not control}
        steered = any(control and slot in made for slot, control in operands)
        known = type(ins.op) in SEMIRING and not isinstance(ins.op, _GIVEN)
        squares = boolean and isinstance(ins.op, ops.ReduceSumSquares)  # its rule admits no Bools
        large = any(values[slot].size > _LARGEST for slot in (*ins.input_slots, *ins.output_slots))
        if not known or not data <= dtypes or steered or squares or large:
            continue
        for slot, control in operands:
            if slot not in made:
                array = values[slot]
                inputs[slot, control] = column_major(array != 0) if boolean and not control else array
        made.update(dict.fromkeys(ins.output_slots))
        taken.append(ins)
    if not any(isinstance(ins.op, COMPUTING) for ins in taken):
        return None
    numbers: dict[tuple[int, bool], int] = {
        key: i for i, key in enumerate((*inputs, *((slot, False) for slot in made)))
    }
    read_here = {slot for ins in taken for slot in ins.input_slots}
    slots = tuple(slot for slot in made if slot not in read_here or slot in program.output_slots)
    policy = replace(program.policy, dtypes="stablehlo" if boolean else program.policy.dtypes)
    if any(_is_sum_of_nothing(ins, values) for ins in taken):  # which most algebras refuse under "error"
        policy = replace(policy, empty_reduction="identity")
    written = Program(
        tuple(_renumbered(ins, numbers) for ins in taken),
        tuple(range(len(inputs))),
        tuple(type_of(a) for a in inputs.values()),
        tuple(numbers[slot, False] for slot in slots),
        len(numbers),
        policy,
    )
    return Part(written, tuple(inputs.values()), slots)


def _is_sum_of_nothing(ins: Instruction, values: Mapping[int, Array]) -> bool:
    empty = not all(values[slot].size for slot in ins.input_slots)
    return isinstance(ins.op, _SUMS) and empty and values[ins.output_slots[0]].size > 0


def _renumbered(ins: Instruction, numbers: Mapping[tuple[int, bool], int]) -> Instruction:
    controls = CONTROLS.get(type(ins.op), ())
    operands = tuple(numbers[slot, place in controls] for place, slot in enumerate(ins.input_slots))
    return Instruction(ins.op, operands, tuple(numbers[slot, False] for slot in ins.output_slots))
