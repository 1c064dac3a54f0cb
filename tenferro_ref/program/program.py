"""`Program`: a tensor program before and after compilation, and the one function that checks it.

A program is in SSA form over slots: each slot is written once, by being an input or by one instruction. The seeds have two
names for it. A *GraphProgram* (`kind == "graph"`) says what is computed. An *ExecProgram* (`kind == "exec"`, made by
`to_exec`) records as well, for each instruction, the types of its output slots and which operands it reads last. Building,
printing, compiling and running programs live elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

from tenferro_ref.dims import USIZE_MAX, DimOp, InputDim, Unknown, UpperBound, evaluate, expr_of, is_exact
from tenferro_ref.errors import InvalidCompiledGraph, ShapeMismatch, TenferroError, UsageError
from tenferro_ref.ops import DEFAULT_POLICY, FAMILIES, Extension, Op, Policy, TensorType, check_admitted, check_size
from tenferro_ref.ops.attributes import ATTRIBUTE_TYPES, FieldType, exactly, field_types, integers_or, misfit, tuple_of
from tenferro_ref.program.guards import ShapeGuard, normalised

#: The most slots a program may have: an executor keeps a table of them.
MAX_SLOTS = 2**24


@dataclass(frozen=True, slots=True)
class Instruction:
    """One op applied to slots.

    Attributes
    ----------
    types
        Exec programs only: one type per output slot, with extents in terms of the *program's* inputs.
    last_use
        Exec programs only, one flag per input: no later instruction reads the slot, and it is no program output
        (SEMANTICS 4.4).
    """

    op: Op
    input_slots: tuple[int, ...]
    output_slots: tuple[int, ...]
    types: tuple[TensorType, ...] = ()
    last_use: tuple[bool, ...] = ()

    @property
    def bare(self) -> Instruction:
        """The instruction without what an exec program records."""
        return Instruction(self.op, self.input_slots, self.output_slots) if self.types or self.last_use else self


@dataclass(frozen=True)
class Program:
    """A tensor program.

    Attributes
    ----------
    input_types
        Types of `input_slots`. A symbolic extent is an `InputDim` that names the first input axis with that extent.
    symbols
        Names (identifiers) of symbolic extents, for printing: pairs of an `InputDim` and its name.
    kind
        "exec" if the instructions record their types and `last_use`, else "graph".
    shape_guards
        Exec programs only: extents of inputs that must be equal, checked before a program runs (SEMANTICS A.5).
    """

    instructions: tuple[Instruction, ...]
    input_slots: tuple[int, ...]
    input_types: tuple[TensorType, ...]
    output_slots: tuple[int, ...]
    n_slots: int
    policy: Policy = DEFAULT_POLICY
    name: str = ""
    symbols: tuple[tuple[InputDim, str], ...] = field(default=(), compare=False)
    kind: Literal["graph", "exec"] = "graph"
    shape_guards: tuple[ShapeGuard, ...] = ()

    @cached_property
    def producers(self) -> dict[int, int]:
        """Index of the instruction that writes each slot; inputs have none."""
        return {slot: i for i, ins in enumerate(self.instructions) for slot in ins.output_slots}

    @cached_property
    def last_read(self) -> dict[int, int]:
        """Index of the last instruction that reads each slot."""
        return {slot: i for i, ins in enumerate(self.instructions) for slot in ins.input_slots}

    @cached_property
    def slot_types(self) -> Mapping[int, TensorType]:
        """Type of every slot: as recorded in an exec program, inferred in a graph.

        Raises
        ------
        TenferroError
            What `infer_types` raises.
        """
        if self.kind == "graph":
            return infer_types(self)
        types = dict(zip(self.input_slots, self.input_types, strict=True))
        for ins in self.instructions:
            types.update(zip(ins.output_slots, ins.types, strict=True))
        return types

    @property
    def declared(self) -> ResolvedTypes:
        """What the ops' rules give at the declared input types, whatever the instructions record; kept where none is broken.

        A broken rule has an error of its own each time: one object that is raised twice would be taken for one failure.

        Raises
        ------
        InvalidCompiledGraph, InvalidArgument, Unsupported
            What `check_form` raises.
        """
        kept: ResolvedTypes | None = vars(self).get("_declared")
        if kept is None:
            check_form(self)
            kept = _resolve(self, self.input_types)
            if kept.error is None:
                self._keep(kept)
        return kept

    def _keep(self, declared: ResolvedTypes) -> None:
        vars(self)["_declared"] = declared  # past the frozen fields, as a cached_property does

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        """Types of the program's outputs."""
        return tuple(self.slot_types[s] for s in self.output_slots)

    @property
    def is_static(self) -> bool:
        """All input extents are integers."""
        return all(t.is_static for t in self.input_types)

    def check_inputs(self, types: Sequence[TensorType]) -> None:
        """Check that inputs of concrete types fit the declared ones.

        Raises
        ------
        InvalidCompiledGraph
            Wrong number of inputs, or a wrong dtype.
        ShapeConstraintViolation, ShapeConstraintEvaluation
            A shape guard is broken, which comes before the others.
        ShapeMismatch
            A shape that contradicts the declared one, or itself where a symbol repeats.
        """
        if len(types) != len(self.input_types):
            raise InvalidCompiledGraph(detail=f"expected {len(self.input_types)} inputs, got {len(types)}")
        shapes = [t.static_shape for t in types]
        for guard in self.shape_guards:
            guard.check(shapes)
        if self.is_static and tuple(types) == self.input_types:
            return
        for i, (actual, declared) in enumerate(zip(types, self.input_types, strict=True)):
            if actual.dtype is not declared.dtype:
                raise InvalidCompiledGraph(detail=f"input {i} is {actual}, the program declares {declared}")
            fits = actual.rank == declared.rank and all(
                evaluate(expr_of(want), shapes) == got for want, got in zip(declared.shape, shapes[i], strict=True)
            )
            if not fits:
                raise self._misfit(i, shapes)

    def _misfit(self, i: int, shapes: Sequence[tuple[int, ...]]) -> ShapeMismatch:
        """The error of input `i`: its shape, the declared one, and where the first symbol that does not fit has its value."""
        names, declared, given = dict(self.symbols), self.input_types[i].shape, shapes[i]
        shape = tuple(names.get(e, str(e)) if isinstance(e, InputDim) else e for e in declared)
        error = ShapeMismatch(op=f"program input {i}, declared and given", lhs=shape, rhs=given)
        if len(given) == len(declared):
            axis = next(a for a, e in enumerate(declared) if evaluate(expr_of(e), shapes) != given[a])
            if isinstance(extent := declared[axis], InputDim):
                where = f"axis {extent.axis} of input {extent.input}"
                error.saying(f"{error}: {shape[axis]} is {evaluate(extent, shapes)} by {where}")
        return error

    def at(self, types: Sequence[TensorType]) -> ResolvedTypes:
        """What the ops' rules give for inputs of these concrete types.

        Raises
        ------
        InvalidCompiledGraph, ShapeMismatch
            The program is malformed, or the types do not fit its inputs.
        """
        declared = self.declared
        self.check_inputs(types)
        return declared if declared.inputs == tuple(types) else _resolve(self, types)

    def verify(self) -> None:
        """Check the objects that it is made of, its form, its rules and, in an exec program, the recorded types and `last_use`.

        A program that was made by hand should be verified before it is used: the rest of the engine takes for granted that
        each field is an object of its declared type.

        Raises
        ------
        InvalidCompiledGraph
            The first broken invariant. Its `place` is the JSON path of the input, instruction or output.
        ValidationError
            An instruction breaks its op's rule.
        """
        _check_objects(self)
        inferred = infer_types(replace(self))  # from the instructions, whatever is kept
        if self.kind == "graph":
            return
        for ins, expected in zip(self.instructions, last_use(self), strict=True):
            for slot, recorded in zip(ins.output_slots, ins.types, strict=True):
                if recorded != inferred[slot]:
                    raise InvalidCompiledGraph(
                        detail=f"slot {slot} ({ins.op.name}) is recorded as {recorded}, its rule gives {inferred[slot]}"
                    )
            if ins.last_use != expected:
                raise InvalidCompiledGraph(
                    detail=f"{ins.op.name} -> slot {ins.output_slots[0]}: last_use is {list(ins.last_use)}, "
                    f"liveness gives {list(expected)}"
                )

    def at_sizes(self, sizes: Mapping[str, int]) -> Program:
        """The graph whose symbolic extents have these sizes.

        Raises
        ------
        UsageError
            A symbol without a size, or a size for no symbol.
        """
        names = dict(self.symbols)
        if names.keys() and set(names.values()) == sizes.keys():
            known = {extent: sizes[name] for extent, name in names.items()}
            types = (
                t.with_shape(known.get(e, e) if isinstance(e, InputDim) else e for e in t.shape)
                for t in self.input_types
            )
            return replace(self, input_types=tuple(types), symbols=())
        lacking = [name for name in dict.fromkeys(names.values()) if name not in sizes]
        if lacking and sizes.keys() <= set(names.values()):
            raise UsageError(detail=f"no size of {', '.join(lacking)}, which the program has as well")
        what = f"its symbols are {', '.join(names.values())}" if names else "it has no symbols"
        given = ", ".join(sizes) or "none"
        raise UsageError(detail=f"sizes of {given} do not fit the program: {what}")

    def to_graph(self) -> Program:
        """The same computation without the execution metadata; itself if it is a graph."""
        if self.kind == "graph":
            return self
        instructions = tuple(ins.bare for ins in self.instructions)
        return replace(self, instructions=instructions, kind="graph", shape_guards=())


#: A program of kind "graph", and one of kind "exec": for readers of signatures, not for type checkers (ADR 0013).
GraphProgram: TypeAlias = Program
ExecProgram: TypeAlias = Program


@dataclass(frozen=True, slots=True)
class ResolvedTypes:
    """Types of a program's slots for given input types, as far as the rules hold.

    Attributes
    ----------
    types
        By slot. With concrete inputs an extent is an integer unless it depends on the data (DynamicTruncate, PadToMatch,
        and what follows from them).
    count
        How many instructions from the first on have types; the slots that the others write are not in `types`.
    error
        The broken rule of the instruction behind them, None if all have types.
    """

    inputs: tuple[TensorType, ...]
    types: Mapping[int, TensorType]
    count: int
    error: TenferroError | None = None


_SYMBOLIC = (InputDim, DimOp, UpperBound, Unknown)
_KNOWN = ATTRIBUTE_TYPES | {
    "Op": FieldType("an Op", lambda value: isinstance(value, Op)),
    "Policy": FieldType("a Policy", exactly(Policy)),
    "Literal['graph', 'exec']": FieldType("'graph' or 'exec'", lambda value: value in ("graph", "exec")),
    "tuple[bool, ...]": FieldType("a tuple of bools", tuple_of(bool)),
    "tuple[Extent, ...]": FieldType("a tuple of extents", integers_or(*_SYMBOLIC, most=USIZE_MAX)),
    "tuple[TensorType, ...]": FieldType("a tuple of TensorTypes", tuple_of(TensorType)),
    "tuple[Instruction, ...]": FieldType("a tuple of Instructions", tuple_of(Instruction)),
    "tuple[ShapeGuard, ...]": FieldType("a tuple of ShapeGuards", tuple_of(ShapeGuard)),
    "tuple[tuple[InputDim, str], ...]": FieldType("a tuple of pairs", tuple_of(tuple)),
}
_DECLARED = {kind: field_types(kind, _KNOWN) for kind in (Program, Instruction, TensorType)}
#: What the fields of a TensorType are, for `misfit`.
TYPE_FIELDS = _DECLARED[TensorType]


def _check_objects(program: Program) -> None:
    """Check that each field is an object of its declared type. Readers and builders make no other programs, so that only `verify` asks."""
    parts: list[tuple[str, Program | Instruction | TensorType]] = [("$", program)]
    for place, part in parts:
        if wrong := misfit(part, _DECLARED[type(part)]):
            error = InvalidCompiledGraph(detail=f"{type(part).__name__}.{wrong[0]}: {wrong[1]}")
            error.place = place
            raise error
        if isinstance(part, Program):
            names = [pair[-1] for pair in part.symbols]
            if len({*names}) < len(names) or not all(isinstance(name, str) and name.isidentifier() for name in names):
                error = InvalidCompiledGraph(detail=f"symbols {names}: each needs a name of its own, an identifier")
                error.place = place
                raise error
            parts += [(f"$.inputs[{i}]", type_) for i, type_ in enumerate(part.input_types)]
            parts += [(f"$.instructions[{i}]", ins) for i, ins in enumerate(part.instructions)]
        elif isinstance(part, Instruction):
            parts += [(place, type_) for type_ in part.types]


def check_form(program: Program) -> None:
    """Check slots, the numbers of operands, and that metadata is there where it has to be.

    Raises
    ------
    InvalidCompiledGraph
        A slot out of range, written twice, or an output that is never written; a wrong number of operands; metadata that
        does not fit. Its `place` is the JSON path of the input, instruction or output.
    InvalidArgument
        An input type that no tensor can have.
    """
    written: set[int] = set()

    def write(slots: Sequence[int], what: str) -> None:
        check(slots, what)
        for slot in slots:
            if slot in written:
                raise InvalidCompiledGraph(detail=f"{what}: slot {slot} is written twice")
            written.add(slot)

    def check(slots: Sequence[int], what: str) -> None:
        for slot in slots:
            if not 0 <= slot < program.n_slots:
                raise InvalidCompiledGraph(detail=f"{what}: slot {slot} out of range (n_slots is {program.n_slots})")

    place = "$"
    try:
        if len(program.input_slots) != len(program.input_types):
            raise InvalidCompiledGraph(detail="every input slot needs a type")
        if not 0 <= program.n_slots <= MAX_SLOTS:
            raise InvalidCompiledGraph(detail=f"n_slots is {program.n_slots}, not 0 to {MAX_SLOTS}")
        for i, (slot, type_) in enumerate(zip(program.input_slots, program.input_types, strict=True)):
            place = f"$.inputs[{i}]"
            check_size(f"program input {i}", type_)
            check_admitted(f"program input {i}", type_.dtype, program.policy)
            write([slot], f"input {i}")
        for i, ins in enumerate(program.instructions):
            place, what = f"$.instructions[{i}]", f"instruction {i} ({ins.op.name})"
            check(ins.input_slots, what)
            ins.op.check_arity(len(ins.input_slots))
            write(ins.output_slots, what)
            if len(ins.output_slots) != 1 and not isinstance(ins.op, Extension):
                raise InvalidCompiledGraph(detail=f"{what}: expected 1 outputs, got {len(ins.output_slots)}")
            if not ins.output_slots:
                raise InvalidCompiledGraph(detail=f"{what} has no result")
            flags, count = len(ins.last_use), len(ins.input_slots)
            if program.kind == "exec" and (len(ins.types) != len(ins.output_slots) or flags != count):
                raise InvalidCompiledGraph(
                    detail=f"{what}: {len(ins.types)} types for {len(ins.output_slots)} outputs, "
                    f"{flags} last_use flags for {count} inputs"
                )
        for i, slot in enumerate(program.output_slots):
            place = f"$.outputs[{i}]"
            check([slot], f"output {i}")
            if slot not in written:
                raise InvalidCompiledGraph(detail=f"output {i}: slot {slot} is never written")
    except TenferroError as error:
        error.place = place
        raise


def _resolve(program: Program, inputs: Sequence[TensorType]) -> ResolvedTypes:
    """Apply the ops' rules in program order, up to the first that is broken."""
    types = dict(zip(program.input_slots, inputs, strict=True))
    for i, ins in enumerate(program.instructions):
        try:
            for slot in ins.input_slots:
                if slot not in types:
                    what = f"instruction {i} ({ins.op.name})"
                    raise InvalidCompiledGraph(detail=f"{what}: slot {slot} is read before it is written")
            results = ins.op.result_types(tuple([types[slot] for slot in ins.input_slots]), program.policy)
            if len(results) != len(ins.output_slots):
                counts = f"expected {len(results)} outputs, got {len(ins.output_slots)}"
                raise InvalidCompiledGraph(detail=f"instruction {i} ({ins.op.name}): {counts}")
        except TenferroError as error:
            error.place = f"$.instructions[{i}]"
            return ResolvedTypes(tuple(inputs), types, i, error)
        types.update(zip(ins.output_slots, results, strict=True))
    return ResolvedTypes(tuple(inputs), types, len(program.instructions))


def infer_types(program: Program) -> Mapping[int, TensorType]:
    """Type of every slot by the ops' rules, at the declared input types.

    Raises
    ------
    InvalidCompiledGraph
        The form is wrong (`check_form`), a slot is read before it is written, or an op has another number of results.
    ValidationError
        An op's rule is broken. The `place` of either is the JSON path of the input, instruction or output.
    """
    resolved = program.declared
    if resolved.error is not None:
        raise resolved.error
    return resolved.types


def last_use(program: Program) -> tuple[tuple[bool, ...], ...]:
    """For each instruction and input: no program output, and no later instruction reads the slot (SEMANTICS 4.4).

    A slot that its last instruction reads twice is flagged at both places, so reclaiming must be idempotent.
    """
    last_read, outputs = program.last_read, set(program.output_slots)
    return tuple(
        tuple(slot not in outputs and last_read[slot] == i for slot in ins.input_slots)
        for i, ins in enumerate(program.instructions)
    )


def to_exec(graph: Program) -> Program:
    """The exec program of a graph: types, `last_use` and shape guards are recorded, no instruction changes.

    Guards that are there already stay, in front: a pass may have removed the instruction that asked for them.

    Raises
    ------
    TenferroError
        What `infer_types` raises; `ShapeConstraintViolation` where no inputs can fit.
    """
    types = graph.slot_types
    instructions = tuple(
        Instruction(ins.op, ins.input_slots, ins.output_slots, tuple([types[s] for s in ins.output_slots]), flags)
        for ins, flags in zip(graph.instructions, last_use(graph), strict=True)
    )
    guards = normalised((*graph.shape_guards, *_required(graph, types)))
    made = replace(graph, instructions=instructions, kind="exec", shape_guards=guards)
    made._keep(graph.declared)  # of the same instructions: the rules are not asked again
    return made


def _required(graph: Program, types: Mapping[int, TensorType]) -> Iterator[ShapeGuard]:
    """What the rules of extension families ask of exact extents."""
    for i, ins in enumerate(graph.instructions):
        if isinstance(ins.op, Extension):
            operands = tuple(types[slot] for slot in ins.input_slots)
            for lhs, rhs in FAMILIES[ins.op.family].equal_extents(ins.op, operands):
                if is_exact(lhs) and is_exact(rhs):
                    yield ShapeGuard(expr_of(lhs), expr_of(rhs), ins.op.family, i)
