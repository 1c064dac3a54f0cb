"""The two program forms, `GraphProgram` and `ExecProgram`, and what makes one well formed.

Both are SSA over slots: every slot is written once, by being an input or by one instruction. A GraphProgram says what is
computed; an ExecProgram adds, for each instruction, the types of its output slots and `last_use`. Building, compiling,
printing and running live elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

from tenferro_ref.dims import DimExpr, Extent, InputDim, evaluate, expr_of
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidCompiledGraph, ShapeMismatch, TenferroError
from tenferro_ref.ops import ENGINE, Op, Policy, TensorType, check_size

#: The most slots a program may have: an executor keeps a table of them.
MAX_SLOTS = 2**24


@dataclass(frozen=True, slots=True)
class Instruction:
    """One op applied to slots."""

    op: Op
    input_slots: tuple[int, ...]
    output_slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ExecInstruction(Instruction):
    """An instruction with the metadata that execution needs.

    Attributes
    ----------
    types
        One an output slot; extents are in terms of the *program's* inputs.
    last_use
        For each input: the slot is no program output and no later instruction reads it.
    """

    types: tuple[TensorType, ...]
    last_use: tuple[bool, ...]

    @property
    def dtype(self) -> DType:
        """Representative dtype: that of the first output."""
        return self.types[0].dtype

    @property
    def output_shapes(self) -> tuple[tuple[DimExpr, ...], ...]:
        return tuple(tuple(map(expr_of, t.shape)) for t in self.types)

    @property
    def output_extents(self) -> tuple[tuple[Extent, ...], ...]:
        return tuple(t.shape for t in self.types)


I = TypeVar("I", bound=Instruction)


@dataclass(frozen=True)
class Program(Generic[I]):
    """What both forms share.

    Attributes
    ----------
    input_types
        Types of `input_slots`. A symbolic extent is an `InputDim` naming the first input axis that has it.
    symbols
        Names (identifiers) of symbolic extents, for printing: `{InputDim: name}` as pairs.
    """

    instructions: tuple[I, ...]
    input_slots: tuple[int, ...]
    input_types: tuple[TensorType, ...]
    output_slots: tuple[int, ...]
    n_slots: int
    policy: Policy = ENGINE
    name: str = ""
    symbols: tuple[tuple[InputDim, str], ...] = field(default=(), compare=False)

    @cached_property
    def producers(self) -> dict[int, int]:
        """Index of the instruction that writes each slot; inputs have none."""
        return {slot: i for i, ins in enumerate(self.instructions) for slot in ins.output_slots}

    @cached_property
    def last_read(self) -> dict[int, int]:
        """Index of the last instruction that reads each slot."""
        return {slot: i for i, ins in enumerate(self.instructions) for slot in ins.input_slots}

    @property
    def is_static(self) -> bool:
        """All input extents are integers."""
        return all(t.is_static for t in self.input_types)

    def check_inputs(self, types: Sequence[TensorType]) -> None:
        """Concrete inputs fit the declared ones.

        Raises
        ------
        InvalidCompiledGraph
            Wrong number of inputs, or a wrong dtype.
        ShapeMismatch
            A shape that contradicts the declared one, or itself where a symbol repeats.
        """
        if len(types) != len(self.input_types):
            raise InvalidCompiledGraph(detail=f"expected {len(self.input_types)} inputs, got {len(types)}")
        if self.is_static and tuple(types) == self.input_types:
            return
        shapes = [tuple(map(_as_int, t.shape)) for t in types]
        for i, (given, declared) in enumerate(zip(types, self.input_types, strict=True)):
            if given.dtype is not declared.dtype:
                raise InvalidCompiledGraph(detail=f"input {i} is {given}, the program declares {declared}")
            if given.shape == declared.shape:
                continue
            fits = given.rank == declared.rank and all(
                evaluate(expr_of(want), shapes) == got for want, got in zip(declared.shape, shapes[i], strict=True)
            )
            if not fits:
                raise ShapeMismatch(op=f"program input {i}", lhs=declared.shape, rhs=given.shape)


def _as_int(extent: Extent) -> int:
    if not isinstance(extent, int):
        raise InvalidCompiledGraph(detail=f"extent {extent} of a program input is not concrete")
    return extent


@dataclass(frozen=True)
class GraphProgram(Program[Instruction]):
    """A traced program, before compilation."""

    @cached_property
    def slot_types(self) -> dict[int, TensorType]:
        """Type of every slot, inferred; raises what `infer_types` raises."""
        return infer_types(self)

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        return tuple(self.slot_types[s] for s in self.output_slots)


@dataclass(frozen=True)
class ExecProgram(Program[ExecInstruction]):
    """The execution IR."""

    @cached_property
    def slot_types(self) -> dict[int, TensorType]:
        """Type of every slot, as recorded."""
        types = dict(zip(self.input_slots, self.input_types, strict=True))
        for ins in self.instructions:
            types.update(zip(ins.output_slots, ins.types, strict=True))
        return types

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        return tuple(self.slot_types[s] for s in self.output_slots)

    def verify(self) -> None:
        """Check SSA form, slot ranges, recorded types and `last_use`.

        Raises
        ------
        InvalidCompiledGraph
            The first broken invariant.
        ValidationError
            An instruction breaks its op's rule.
        """
        for ins in self.instructions:
            if len(ins.types) != len(ins.output_slots) or len(ins.last_use) != len(ins.input_slots):
                raise InvalidCompiledGraph(detail=f"{ins.op.name}: metadata does not fit its slots")
        inferred = infer_types(self)
        for ins, expected_last_use in zip(self.instructions, last_use(self), strict=True):
            for slot, recorded in zip(ins.output_slots, ins.types, strict=True):
                if recorded != inferred[slot]:
                    raise InvalidCompiledGraph(
                        detail=f"slot {slot} ({ins.op.name}) is recorded as {recorded}, its rule gives {inferred[slot]}"
                    )
            if ins.last_use != expected_last_use:
                raise InvalidCompiledGraph(
                    detail=f"{ins.op.name} -> slot {ins.output_slots[0]}: last_use is {list(ins.last_use)}, "
                    f"liveness gives {list(expected_last_use)}"
                )

    def to_graph(self) -> GraphProgram:
        """The same computation without the execution metadata."""
        bare = tuple(Instruction(i.op, i.input_slots, i.output_slots) for i in self.instructions)
        return GraphProgram(
            bare,
            self.input_slots,
            self.input_types,
            self.output_slots,
            self.n_slots,
            self.policy,
            self.name,
            self.symbols,
        )


def infer_types(program: GraphProgram | ExecProgram) -> dict[int, TensorType]:
    """Type of every slot by the ops' rules, checking the program's form on the way.

    Raises
    ------
    InvalidCompiledGraph
        Slot out of range, slot written twice, slot read before it is written, wrong arity or output count.
    ValidationError
        An op's rule is broken. The `place` of either is the JSON path of the input, instruction or output.
    """
    types: dict[int, TensorType] = {}

    def define(slot: int, type_: TensorType, what: str) -> None:
        if not 0 <= slot < program.n_slots:
            raise InvalidCompiledGraph(detail=f"{what}: slot {slot} out of range (n_slots is {program.n_slots})")
        if slot in types:
            raise InvalidCompiledGraph(detail=f"{what}: slot {slot} is written twice")
        types[slot] = type_

    def read(slot: int, what: str) -> TensorType:
        if not 0 <= slot < program.n_slots:
            raise InvalidCompiledGraph(detail=f"{what}: slot {slot} out of range (n_slots is {program.n_slots})")
        if slot not in types:
            raise InvalidCompiledGraph(detail=f"{what}: slot {slot} is read before it is written")
        return types[slot]

    place = "$"
    try:
        if len(program.input_slots) != len(program.input_types):
            raise InvalidCompiledGraph(detail="every input slot needs a type")
        if not 0 <= program.n_slots <= MAX_SLOTS:
            raise InvalidCompiledGraph(detail=f"n_slots is {program.n_slots}, not 0 to {MAX_SLOTS}")
        for i, (slot, type_) in enumerate(zip(program.input_slots, program.input_types, strict=True)):
            place = f"$.inputs[{i}]"
            check_size(f"program input {i}", type_)
            define(slot, type_, f"input {i}")
        for i, ins in enumerate(program.instructions):
            place, what = f"$.instructions[{i}]", f"instruction {i} ({ins.op.name})"
            operands = tuple(read(slot, what) for slot in ins.input_slots)
            results = ins.op.result_types(operands, program.policy)
            if len(results) != len(ins.output_slots):
                counts = f"expected {len(results)} outputs, got {len(ins.output_slots)}"
                raise InvalidCompiledGraph(detail=f"{what}: {counts}")
            for slot, type_ in zip(ins.output_slots, results, strict=True):
                define(slot, type_, what)
        for i, slot in enumerate(program.output_slots):
            place = f"$.outputs[{i}]"
            read(slot, f"output {i}")
    except TenferroError as error:
        error.place = place
        raise
    return types


def last_use(program: GraphProgram | ExecProgram) -> tuple[tuple[bool, ...], ...]:
    """For each instruction and input: no program output, and no later instruction reads the slot (SEMANTICS 4.4).

    A slot read twice by its last instruction is flagged at both places, so reclaiming must be idempotent.
    """
    last_read, outputs = program.last_read, set(program.output_slots)
    return tuple(
        tuple(slot not in outputs and last_read[slot] == i for slot in ins.input_slots)
        for i, ins in enumerate(program.instructions)
    )


def to_exec(graph: GraphProgram) -> ExecProgram:
    """Attach inferred types and `last_use`; no instruction changes."""
    types, uses = graph.slot_types, last_use(graph)
    instructions = tuple(
        ExecInstruction(i.op, i.input_slots, i.output_slots, tuple(types[s] for s in i.output_slots), use)
        for i, use in zip(graph.instructions, uses, strict=True)
    )
    return ExecProgram(
        instructions, graph.input_slots, graph.input_types, graph.output_slots, graph.n_slots, graph.policy, graph.name,
        graph.symbols,
    )  # fmt: skip


__all__ = [
    "ExecInstruction",
    "ExecProgram",
    "GraphProgram",
    "Instruction",
    "Program",
    "infer_types",
    "last_use",
    "to_exec",
]
