"""Derivative programs: `jvp`, `transpose` and `vjp`, from program to program (SEMANTICS B.1).

Nothing is executed. A transform replays the program's instructions into a new one, applies the rows of `JVP` forwards or of
`TRANSPOSE` backwards, and drops what no output needs. `vjp` is the transpose of `jvp`, so that each op has its derivative
written down once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tenferro_ref import ops
from tenferro_ref.autodiff.errors import ActivityArity, NonScalarGrad, UnsupportedAdRule, UnsupportedMetadata
from tenferro_ref.autodiff.rules import JVP, TRANSPOSE, Linear, Operand, Optional, narrowed, total, widened, zeros
from tenferro_ref.dims import DimExpr, Extent, InputDim, expr_of, inputs_of, rewrap, substitute
from tenferro_ref.dtype import INEXACT
from tenferro_ref.errors import InvalidArgument, UnsupportedOp
from tenferro_ref.ops import TensorType
from tenferro_ref.program import GraphBuilder, Instruction, Program, Value
from tenferro_ref.table import Table


@dataclass(frozen=True, slots=True)
class Derivative:
    """A derivative program, and where its inputs and outputs come from.

    Attributes
    ----------
    seeds
        For each active input of a JVP, or active output of a VJP: the index of its tangent or cotangent among the program's
        inputs; None if its dtype has no derivative.
    results
        For each output of a JVP, or active input of a VJP: the index of its tangent or cotangent among the program's
        outputs; None if it is zero for every input.
    """

    program: Program
    seeds: tuple[int | None, ...]
    results: tuple[int | None, ...]


def jvp(program: Program, active: Sequence[int] | None = None) -> Derivative:
    """The Jacobian-vector product of a program: how its outputs change with its inputs.

    Parameters
    ----------
    program
        Any graph program, also a derivative.
    active
        Indices of the inputs that change; all by default. Those of I32, I64 and Bool get no tangent.

    Returns
    -------
    Derivative
        Inputs: those of `program`, then a tangent of the type of each active input. Outputs: the tangents that exist.

    Raises
    ------
    ActivityArity
        `active` names an input that does not exist, or one twice.
    InvalidArgument
        `program` is none.
    UnsupportedAdRule
        An op on the way has no rule, or what changes is a float of 16 bits or fewer.

    Examples
    --------
    >>> from tenferro_ref.program import parse, print_program
    >>> square = parse("graph (%0: F64[3]) -> (%1) slots 2 {\\n  %1 = Multiply(%0, %0) : F64[3]\\n}")
    >>> [i.op.name for i in jvp(square).program.instructions]
    ['Multiply', 'Multiply', 'Add']
    """
    _check("jvp", program)
    chosen = _indices("jvp", "active", active, len(program.input_slots))
    builder = _builder(program)
    values = {slot: builder.typed_input(t) for slot, t in zip(program.input_slots, program.input_types, strict=True)}
    tangents: dict[int, Value] = {}
    seeds: list[int | None] = []
    for index in chosen:
        type_ = program.input_types[index]
        if type_.dtype.is_narrow_float:
            raise UnsupportedAdRule(
                "jvp", f"input {index}", f"derivatives are of F32, F64, C32 and C64, not of {type_.dtype}"
            )
        seeds.append(len(builder.inputs) if type_.dtype in INEXACT else None)
        if type_.dtype in INEXACT:
            tangents[program.input_slots[index]] = builder.typed_input(type_)
    for ins in program.instructions:
        operands = tuple([values[slot] for slot in ins.input_slots])
        results = builder.apply_many(ins.op, *operands)
        values.update(zip(ins.output_slots, results, strict=True))
        if any(slot in tangents for slot in ins.input_slots):
            given = tuple([tangents.get(slot) for slot in ins.input_slots])
            made = _rule("jvp", ins)(ins.op, operands, results, given)
            made = made if isinstance(made, tuple) else (made,)
            for slot, result, tangent in zip(ins.output_slots, results, made, strict=True):
                if tangent is not None:
                    tangents[slot] = widened(tangent, result.type)
    return _finished(builder, [tangents.get(slot) for slot in program.output_slots], seeds)


def transpose(program: Program, linear: Sequence[int]) -> Derivative:
    """The adjoint of a program that is linear in some of its inputs, by the real inner product `Re(conj(a) b)`.

    Parameters
    ----------
    linear
        Indices of the inputs in which it is linear.

    Returns
    -------
    Derivative
        Inputs: the other inputs, then a cotangent of the type of each output. Outputs: the cotangents of the linear
        inputs that exist.

    Raises
    ------
    UnsupportedAdRule
        The program is not linear in these inputs.
    UnsupportedMetadata
        A cotangent needs an extent that only the running program knows.
    """
    _check("transpose", program)
    chosen = _indices("transpose", "linear", linear, len(program.input_slots))
    return _transposed(program, chosen, tuple(range(len(program.output_slots))))


def vjp(program: Program, inputs: Sequence[int] | None = None, outputs: Sequence[int] | None = None) -> Derivative:
    """The vector-Jacobian product of a program: what its inputs contribute to a change of its outputs.

    For complex numbers the inner product is `Re(conj(a) b)`, so that the product of exp is `conj(exp(z)) g`.

    Parameters
    ----------
    inputs, outputs
        Indices of the active ones; all by default. Those of I32, I64 and Bool get no cotangent.

    Returns
    -------
    Derivative
        Inputs: those of `program`, then a cotangent of the type of each active output. Outputs: the cotangents that exist.

    Raises
    ------
    ActivityArity, InvalidArgument, UnsupportedAdRule
        As `jvp`.
    UnsupportedMetadata
        As `transpose`.
    """
    _check("vjp", program)
    chosen_outputs = _indices("vjp", "outputs", outputs, len(program.output_slots))
    chosen_inputs = _indices("vjp", "inputs", inputs, len(program.input_slots))
    part = replace(program, output_slots=tuple(program.output_slots[i] for i in chosen_outputs))
    forward = jvp(part, chosen_inputs)
    types = [part.slot_types[slot] for slot in part.output_slots]
    return _transposed(
        forward.program,
        tuple(seed for seed in forward.seeds if seed is not None),
        forward.results,
        types,
        tuple(seed is not None for seed in forward.seeds),
    )


def grad(program: Program, inputs: Sequence[int] | None = None) -> Derivative:
    """`vjp` of a program with one output, a real number of rank 0, with the cotangent 1 built in.

    Raises
    ------
    NonScalarGrad
        The output is something else.
    """
    _check("grad", program)
    types = program.output_types
    if len(types) != 1 or types[0].rank or not types[0].dtype.is_float:
        raise NonScalarGrad(", ".join(map(str, types)))
    backward = vjp(program, _indices("grad", "inputs", inputs, len(program.input_slots)))
    (seed,) = backward.seeds
    builder = _builder(program)
    values = {
        slot: builder.constant(1, types[0].dtype) if index == seed else builder.typed_input(type_)
        for index, (slot, type_) in enumerate(
            zip(backward.program.input_slots, backward.program.input_types, strict=True)
        )
    }
    _replay(builder, backward.program, values)
    results = [None if i is None else values[backward.program.output_slots[i]] for i in backward.results]
    return _finished(builder, results, [])


#: How many of an op's operands are read for their values, where the others only provide extents.
_VALUES = {ops.BroadcastInDim: 1, ops.Reshape: 1, ops.PadToMatch: 1, ops.GatherDynamicSliceSizes: 2, ops.ShapeOf: 0}

# --- what the transforms are made of ----------------------------------------------------------------------------------


def _transposed(
    program: Program,
    linear: Sequence[int],
    results: Sequence[int | None],
    types: Sequence[TensorType] | None = None,
    wanted: Sequence[bool] | None = None,
) -> Derivative:
    """`transpose`, with a cotangent for each of `results`, also for those that are None.

    Parameters
    ----------
    results
        Indices of outputs of the linear program.
    types
        Types of `results`; those of the outputs if left out.
    wanted
        One entry a result of the derivative: whether it is that of the next linear input, or None.
    """
    builder = _builder(program)
    dependent = {program.input_slots[i] for i in linear}
    values: dict[int, Value] = {}
    places: dict[int, int] = {}
    for index, (slot, type_) in enumerate(zip(program.input_slots, program.input_types, strict=True)):
        if index not in linear:
            places[index] = len(builder.inputs)
            values[slot] = builder.typed_input(_moved(type_, places))
    backward: list[Instruction] = []
    for ins in program.instructions:
        if dependent.intersection(ins.input_slots[: _VALUES.get(type(ins.op))]):
            dependent.update(ins.output_slots)
            backward.append(ins)
            continue
        for slot in dependent.intersection(ins.input_slots):
            if slot not in values:  # only its shape is read
                values[slot] = zeros(builder, _moved(program.slot_types[slot], places))
        _replay_one(builder, ins, values)
    cotangents: dict[int, Value] = {}
    seeds: list[int | None] = []
    for number, result in enumerate(results):
        type_ = program.slot_types[program.output_slots[number]] if types is None else types[number]
        if type_.dtype not in INEXACT:
            seeds.append(None)
            continue
        if not all(isinstance(extent, int | InputDim) for extent in type_.shape):
            detail = f"{type_} has an extent that is computed, and the cotangent, which is an input, only a symbol"
            raise UnsupportedMetadata(op="program output", detail=detail)
        seeds.append(len(builder.inputs))
        seed = builder.typed_input(_moved(type_, places))
        if result is not None and program.output_slots[result] in dependent:
            _add(cotangents, program.output_slots[result], seed)
    for ins in reversed(backward):
        _step(builder, program, ins, values, dependent, cotangents, places)
    found = iter([cotangents.get(program.input_slots[i]) for i in linear])
    return _finished(builder, [next(found) if there else None for there in wanted or [True] * len(linear)], seeds)


def _step(
    builder: GraphBuilder,
    program: Program,
    ins: Instruction,
    values: Mapping[int, Value],
    dependent: set[int],
    cotangents: dict[int, Value],
    places: Mapping[int, int],
) -> None:
    """Pass the cotangents of one instruction's results to its linear operands."""
    given = [cotangents[slot] for slot in ins.output_slots if slot in cotangents]
    if not given:
        return
    operands: list[Operand] = [
        Linear(_moved(program.slot_types[slot], places)) if slot in dependent else values[slot]
        for slot in ins.input_slots
    ]
    made = _rule("transpose", ins)(ins.op, tuple(operands), *given)
    for slot, operand, g in zip(ins.input_slots, operands, made, strict=True):
        if g is not None and isinstance(operand, Linear):
            _add(cotangents, slot, narrowed(g, operand.type))


def _add(cotangents: dict[int, Value], slot: int, contribution: Value) -> None:
    sum_ = total(cotangents.get(slot), contribution)
    if sum_ is not None:
        cotangents[slot] = sum_


def _rule(transform: str, ins: Instruction) -> Any:
    """The row of an instruction's op in `JVP` or `TRANSPOSE`."""
    table: Table[Any] = JVP if transform == "jvp" else TRANSPOSE
    key = (ins.op.family, ins.op.op) if isinstance(ins.op, ops.Extension) else type(ins.op)
    try:
        return table[key]
    except UnsupportedOp as error:
        raise UnsupportedAdRule(transform, error.op, str(table.reason(key))) from None


def _replay_one(builder: GraphBuilder, ins: Instruction, values: dict[int, Value]) -> None:
    results = builder.apply_many(ins.op, *[values[slot] for slot in ins.input_slots])
    values.update(zip(ins.output_slots, results, strict=True))


def _replay(builder: GraphBuilder, program: Program, values: dict[int, Value]) -> None:
    for ins in program.instructions:
        _replay_one(builder, ins, values)


def _builder(program: Program) -> GraphBuilder:
    return GraphBuilder(program.name, program.policy, symbols=program.symbols)


def _moved(type_: TensorType, places: Mapping[int, int]) -> TensorType:
    """A type in terms of inputs that have moved.

    Raises
    ------
    UnsupportedMetadata
        An extent is that of an input which is gone.
    """
    return type_ if type_.is_static else type_.with_shape(_moved_extent(e, places) for e in type_.shape)


def _moved_extent(extent: Extent, places: Mapping[int, int]) -> Extent:
    expr: DimExpr = expr_of(extent)
    named = inputs_of(expr)
    gone = named - places.keys()
    if gone:
        raise UnsupportedMetadata(op="transpose", detail=f"{extent} is an extent of a linear input")
    if not named:
        return extent
    shapes = [
        [InputDim(places.get(number, number), axis) for axis in range(_MAX_AXES)] for number in range(max(named) + 1)
    ]
    return rewrap(extent, expr_of(substitute(expr, shapes)))


#: Axes that an extent may name.
_MAX_AXES = 64


def _finished(builder: GraphBuilder, outputs: Sequence[Optional], seeds: Sequence[int | None]) -> Derivative:
    """The program of the outputs that exist, without instructions that none of them needs."""
    there = [value for value in outputs if value is not None]
    places = iter(range(len(there)))
    results = tuple(None if value is None else next(places) for value in outputs)
    program = builder.build(*there)
    live = set(program.output_slots)
    kept: list[Instruction] = []
    for ins in reversed(program.instructions):
        if live.intersection(ins.output_slots):
            live.update(ins.input_slots)
            kept.append(ins)
    return Derivative(replace(program, instructions=tuple(reversed(kept))), tuple(seeds), results)


def _check(transform: str, program: object) -> None:
    if not isinstance(program, Program):
        raise InvalidArgument(transform, "program", f"{type(program).__name__} where a program is needed")


def _indices(transform: str, field: str, given: Sequence[int] | None, count: int) -> tuple[int, ...]:
    if given is None:
        return tuple(range(count))
    if not isinstance(given, Sequence):
        raise ActivityArity(transform, field, f"{type(given).__name__} where a sequence of numbers is needed")
    for index in given:
        if type(index) is not int:
            raise ActivityArity(transform, field, f"{index!r} where the number of an input or output is needed")
        if not 0 <= index < count:
            raise ActivityArity(transform, field, f"there is no number {index}; the program has {count}, from 0 on")
    if len(set(given)) < len(given):
        raise ActivityArity(transform, field, f"{list(given)} names one twice")
    return tuple(given)
