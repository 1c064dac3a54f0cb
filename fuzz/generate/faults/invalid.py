"""Invalid programs, each with the error that it must raise before anything is compiled or run (SEMANTICS 2.7).

A fault breaks one rule of a valid program: most append an instruction whose operands or attributes do not fit, some break
the form of the graph. What is broken is broken by construction, and the expected error follows from the rule, not from
running the checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from math import prod
from typing import Any, NamedTuple, TypeAlias

from hypothesis import strategies as st

from fuzz.generate.config import DEFAULT, Config
from fuzz.generate.decode import GENE, grow
from fuzz.generate.genes import Genes
from fuzz.generate.growth import HEADER, Growth, Shape, shape_of
from oracle.case import Case, Refusal
from tenferro_ref.dims import DimExpr, DimOp, InputDim
from tenferro_ref.dtype import DType
from tenferro_ref.ops import (
    MAX_ELEMENTS,
    MAX_RANK,
    OPS,
    Abs,
    Add,
    BroadcastInDim,
    Clamp,
    Compare,
    CompareDir,
    Constant,
    Convert,
    Cos,
    Divide,
    DotGeneral,
    Exp,
    Expm1,
    Extension,
    Log,
    Log1p,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Op,
    Pow,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reshape,
    Rsqrt,
    Select,
    Sign,
    Sin,
    Sqrt,
    Tanh,
    Transpose,
)
from tenferro_ref.program import GraphProgram, Instruction, Value


class Bad(NamedTuple):
    """A faulty instruction, and the facts of its error."""

    op: Op
    operands: tuple[Value, ...]
    axis: int | None = None
    argument: str | None = None
    blamed: str | None = None


InstructionFault: TypeAlias = Callable[[Growth, type[Any]], Bad]
GraphFault: TypeAlias = Callable[[Genes, GraphProgram], GraphProgram]


class Fault(NamedTuple):
    """One way to break one op (or, without an op, the graph)."""

    name: str
    kind: str
    op: type[Op] | None
    make: Any
    late: bool = False


#: What faults are made with where nobody restricts it.
WHOLE = Config(ops=OPS, dtypes=tuple(DType))
#: The most instructions before the faulty one.
LONGEST = 4
#: In the order of their declaration; those of indexing are in `fuzz.generate.faults.indexing`.
_FAULTS: list[Fault] = []


def fault(kind: str, *ops: type[Op], late: bool = False) -> Callable[[InstructionFault], None]:
    """Declare a fault of these ops; `late` if only values show it."""

    def add(make: InstructionFault) -> None:
        name = make.__name__.replace("_", " ")
        _FAULTS.extend(Fault(f"{name}: {op.__name__}", kind, op, make, late) for op in ops)

    return add


def _graph_fault(make: GraphFault) -> None:
    _FAULTS.append(Fault(make.__name__.replace("_", " "), "InvalidCompiledGraph", None, make))


# --- operands and attributes for the faults ---------------------------------------------------------------------------

_TWO = (Add, Multiply, Divide, Pow, Maximum, Minimum, Compare)
_SCALAR_BESIDE = (Add, Multiply, Divide, Pow)
_ANALYTIC = (Exp, Log, Sin, Cos, Tanh, Sqrt, Rsqrt, Expm1, Log1p)
_REDUCTIONS = (ReduceSum, ReduceProd, ReduceMax, ReduceMin)


def _plain(op: type[Any]) -> Op:
    """An op with attributes that say as little as possible."""
    given: dict[type, Op] = {
        Compare: Compare(CompareDir.Lt),
        DotGeneral: DotGeneral((), (), (), ()),
        **{reduction: reduction((0,)) for reduction in _REDUCTIONS},
    }
    return given[op] if op in given else op()


def operand(g: Growth, op: type[Any], rank: int = 0) -> Value:
    """A value that `op` admits, of at least that rank."""
    admitted = [d for d in (DType.F64, DType.F32, DType.I64) if d in op.dtypes]
    return of_rank(g, admitted, rank)


def of_rank(g: Growth, admitted: list[DType], rank: int) -> Value:
    found = [v for v in g.pool if v.dtype in admitted and v.type.rank >= rank and 0 not in v.shape]
    if found and g.genes.chance(70):
        return g.genes.choose(found)
    return g.fresh(g.genes.choose(admitted), (2, 3, 4)[: max(rank, g.genes.pick(3))])


def _other_shape(g: Growth, shape: Shape, scalar: bool) -> Shape:
    """A shape other than `shape`; of rank 0 only if `scalar`."""
    mode = g.genes.pick(4)
    if mode == 0 or not shape:
        return (*shape, 2)
    if mode == 1 and (len(shape) > 1 or scalar):
        return shape[1:]
    axis = g.genes.pick(len(shape))
    return (*shape[:axis], shape[axis] + 1, *shape[axis + 1 :])


def outside(g: Growth, rank: int) -> int:
    return g.genes.choose((rank, -1, rank + 7, 2**31))


def _insert(g: Growth, axes: tuple[int, ...], axis: int) -> tuple[int, ...]:
    i = g.genes.pick(len(axes) + 1)
    return (*axes[:i], axis, *axes[i:])


# --- operands that do not fit together --------------------------------------------------------------------------------


@fault("ShapeMismatch", *_TWO)
def other_shape(g: Growth, op: type[Any]) -> Bad:
    strict = op not in _SCALAR_BESIDE
    x = operand(g, op, 0 if strict else 1)
    y = g.fresh(x.dtype, _other_shape(g, shape_of(x), scalar=strict))
    return Bad(_plain(op), (x, y) if g.genes.pick(2) else (y, x))


@fault("ShapeMismatch", Select, Clamp)
def other_shape_of_three(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, Clamp)
    dtypes = [DType.Bool, x.dtype, x.dtype] if op is Select else [x.dtype] * 3
    odd = g.genes.pick(3)
    shapes = [_other_shape(g, shape_of(x), scalar=True) if i == odd else shape_of(x) for i in range(3)]
    return Bad(op(), tuple(g.fresh(d, s) for d, s in zip(dtypes, shapes, strict=True)))


@fault("ShapeMismatch", Reshape)
def other_element_count(g: Growth, op: type[Any]) -> Bad:
    x = of_rank(g, [dtype for dtype in DType if dtype in g.config.dtypes], 0)
    n = prod(shape_of(x))
    return Bad(op(g.genes.choose(((n + 1,), (2, n + 3), (n, 2), (0,), (1, n, 1, 3)))), (x,))


@fault("ShapeMismatch", BroadcastInDim)
def extent_that_does_not_stretch(g: Growth, op: type[Any]) -> Bad:
    x = g.fresh(g.main, g.genes.choose(((2,), (3, 2), (2, 1, 4))))
    shape = shape_of(x)
    axis = g.genes.choose([a for a, e in enumerate(shape) if e != 1])
    target = [*shape[:axis], g.genes.choose((shape[axis] + 1, 1, 0)), *shape[axis + 1 :], 5]
    return Bad(op(tuple(target), tuple(range(len(shape)))), (x,))


@fault("ShapeMismatch", DotGeneral)
def paired_extents_differ(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, op, 1)
    axis = g.genes.pick(x.type.rank)
    y = g.fresh(x.dtype, (2, shape_of(x)[axis] + 1))
    batch = g.genes.pick(2)
    return Bad(op((), (), (axis,), (1,)) if batch else op((axis,), (1,), (), ()), (x, y))


@fault("DTypeMismatch", *_TWO, DotGeneral)
def other_dtype(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, op)
    y = g.fresh(DType.F32 if x.dtype is not DType.F32 else DType.F64, shape_of(x))
    return Bad(_plain(op), (x, y) if g.genes.pick(2) else (y, x))


@fault("DTypeMismatch", Select, Clamp)
def other_dtype_of_three(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, Clamp)
    other = DType.F32 if x.dtype is DType.F64 else DType.F64
    dtypes = [DType.Bool, x.dtype, x.dtype] if op is Select else [x.dtype] * 3
    dtypes[g.genes.pick(3)] = other
    return Bad(op(), tuple(g.fresh(d, shape_of(x)) for d in dtypes))


@fault("Unsupported", *_TWO, Negate, Abs, Sign, *_ANALYTIC, Clamp, DotGeneral, *_REDUCTIONS)
def dtype_that_the_op_lacks(g: Growth, op: type[Any]) -> Bad:
    refused = [d for d in (DType.Bool, DType.I32, DType.C64) if d not in op.dtypes] or [DType.Bool, DType.C32]
    x = g.fresh(g.genes.choose(refused), (2, 3))
    return Bad(_plain(op), tuple(x if i == 0 else g.fresh(x.dtype, (2, 3)) for i in range(op.arity)))


# --- axes -------------------------------------------------------------------------------------------------------------


@fault("RankMismatch", Transpose)
def permutation_too_long_or_short(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, Add, 1)
    rank = x.type.rank
    return Bad(op(tuple(range(g.genes.choose((rank - 1, rank + 1, 0))))), (x,))


@fault("RankMismatch", BroadcastInDim)
def dims_too_long_or_short(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, Add, 1)
    dims = tuple(range(x.type.rank + g.genes.choose((1, -1))))
    return Bad(op((*shape_of(x), 2, 2), dims), (x,))


@fault("AxisOutOfBounds", Transpose, BroadcastInDim)
def axis_out_of_range(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, Add, 1)
    rank = x.type.rank
    axes, axis = list(g.genes.permutation(rank)), outside(g, rank)
    axes[g.genes.pick(rank)] = axis
    return Bad(op(tuple(axes)) if op is Transpose else op(shape_of(x), tuple(axes)), (x,), axis)


@fault("AxisOutOfBounds", *_REDUCTIONS)
def reduced_axis_out_of_range(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, op)
    axis = outside(g, x.type.rank)
    return Bad(op(_insert(g, tuple(range(g.genes.pick(x.type.rank + 1))), axis)), (x,), axis)


@fault("AxisOutOfBounds", DotGeneral)
def dot_axis_out_of_range(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, op, 1)
    axis = outside(g, x.type.rank)
    lists: list[tuple[int, ...]] = [(), (), (), ()]
    lists[g.genes.pick(4)] = (axis,)
    return Bad(op(*lists), (x, x), axis)


@fault("DuplicateAxis", Transpose, BroadcastInDim)
def axis_twice(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, Add, 2)
    order = g.genes.permutation(x.type.rank)
    axes = (*order[:-1], order[0])
    return Bad(op(axes) if op is Transpose else op((*shape_of(x), 2), axes), (x,), order[0])


@fault("DuplicateAxis", *_REDUCTIONS)
def reduced_axis_twice(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, op, 1)
    order = g.genes.permutation(x.type.rank)
    return Bad(op((*order, order[-1])), (x,), order[-1])


@fault("DuplicateAxis", DotGeneral)
def dot_axis_twice(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, op, 1)
    axis = g.genes.pick(x.type.rank)
    lists: list[tuple[int, ...]] = [(), (), (), ()]
    place = g.genes.pick(4)
    lists[place] = lists[place ^ 1] = (axis, axis)
    return Bad(op(*lists), (x, x), axis)


@fault("AxisRoleConflict", DotGeneral)
def axis_contracted_and_batch(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, op, 1)
    axis = g.genes.pick(x.type.rank)
    y = g.fresh(x.dtype, (shape_of(x)[axis],) * 2)
    good, bad = ((0,), (1,)), ((axis,), (axis,))
    return Bad(op(bad[0], good[0], bad[1], good[1]), (x, y), axis) if g.genes.pick(2) else Bad(
        op(good[0], bad[0], good[1], bad[1]), (y, x), axis
    )  # fmt: skip


# --- other arguments --------------------------------------------------------------------------------------------------


@fault("InvalidArgument", DotGeneral)
def axes_without_partner(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, op, 1)
    axis = (g.genes.pick(x.type.rank),)
    if g.genes.pick(2):
        return Bad(op((), (), (), axis), (x, x), argument="batch_dims")
    return Bad(op(axis, (), (), ()), (x, x), argument="contracting_dims")


@fault("InvalidArgument", Constant)
def wrong_byte_count(g: Growth, op: type[Any]) -> Bad:
    dtype = g.genes.choose(tuple(DType))
    length = g.genes.choose((dtype.itemsize + 1, dtype.itemsize - 1, 2 * dtype.itemsize, 0))
    return Bad(op(dtype, bytes(length)), (), argument="data")


@fault("InvalidArgument", *_REDUCTIONS)
def empty_reduced_axis(g: Growth, op: type[Any]) -> Bad:
    x = g.fresh(operand(g, op).dtype, g.genes.choose(((0,), (0, 3), (2, 0))))
    empty = shape_of(x).index(0)
    axes = (empty,) if g.genes.pick(2) else g.genes.permutation(x.type.rank)
    return Bad(op(axes), (x,), argument="axes")


@fault("InvalidArgument", Reshape, BroadcastInDim)
def negative_extent(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, Add)
    shape = (*shape_of(x), -g.genes.choose((1, 2, 2**31)))
    return Bad(op(shape) if op is Reshape else op(shape, tuple(range(x.type.rank))), (x,), argument="shape")


@fault("InvalidArgument", BroadcastInDim)
def tensor_too_large(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, Add)
    dims = tuple(range(x.type.rank))
    if g.genes.pick(2):
        return Bad(op((*shape_of(x), *[1] * (MAX_RANK + 1 - len(dims))), dims), (x,), argument="rank")
    huge = g.genes.choose(((MAX_ELEMENTS + 1,), (2**31, 2**31), (2**62,), (0, 2**62)))
    return Bad(op((*shape_of(x), *huge), dims), (x,), argument="shape")


_HUGE = 2**63 - 1
_DIM_FAULTS: tuple[tuple[str, Callable[[int], DimExpr]], ...] = (
    ("InputOutOfBounds", lambda rank: InputDim(1, 0)),
    ("InputOutOfBounds", lambda rank: InputDim(-1, 0)),
    ("AxisOutOfBounds", lambda rank: InputDim(0, rank)),
    ("AxisOutOfBounds", lambda rank: InputDim(0, -1)),
    ("AddOverflow", lambda rank: DimOp("add", DimOp("add", _HUGE, _HUGE), 2)),
    ("SubUnderflow", lambda rank: DimOp("sub", 2, 3)),
    ("MulOverflow", lambda rank: DimOp("mul", _HUGE, 3)),
    ("FloorDivByZero", lambda rank: DimOp("floordiv", 4, 0)),
    ("FloorDivByZero", lambda rank: DimOp("max", 1, DimOp("floordiv", 4, DimOp("sub", 3, 3)))),
)


@fault("InvalidArgument", Reshape, BroadcastInDim)
def dim_expression(g: Growth, op: type[Any]) -> Bad:
    x = operand(g, Add)
    argument, make = g.genes.choose(_DIM_FAULTS)
    shape: tuple[DimExpr, ...] = (*shape_of(x), make(x.type.rank))
    faulty = op(shape) if op is Reshape else op(shape, tuple(range(x.type.rank)))
    return Bad(faulty, (x,), argument=argument, blamed="DimExpr")


@fault("UnsupportedOp", Extension)
def family_that_nobody_registered(g: Growth, op: type[Any]) -> Bad:
    return Bad(op.of("no-such-crate.op.v1", "f", {"n": 1}), (operand(g, Add),))


# --- values that only a run shows -------------------------------------------------------------------------------------


def full(g: Growth, number: complex, dtype: DType, shape: Shape = ()) -> Value:
    """A constant, stretched to a shape."""
    scalar = g.apply(Constant.of(number, dtype))
    return g.apply(BroadcastInDim(shape, ()), scalar) if shape else scalar


@fault("InvalidArgument", Divide, late=True)
def integer_zero_divisor(g: Growth, op: type[Any]) -> Bad:
    x = of_rank(g, [DType.I64, DType.I32], 0)
    return Bad(op(), (x, full(g, 0, x.dtype, g.genes.choose((shape_of(x), ())))))


@fault("InvalidArgument", Pow, late=True)
def negative_integer_exponent(g: Growth, op: type[Any]) -> Bad:
    x = of_rank(g, [DType.I64, DType.I32], 0)
    return Bad(op(), (x, full(g, -1 - g.genes.pick(3), x.dtype, g.genes.choose((shape_of(x), ())))))


# --- the graph --------------------------------------------------------------------------------------------------------


def _with(program: GraphProgram, i: int, **changes: Any) -> GraphProgram:
    """`program` with instruction `i` changed."""
    instructions = list(program.instructions)
    instructions[i] = replace(instructions[i], **changes)
    return replace(program, instructions=tuple(instructions))


def _stray(genes: Genes, program: GraphProgram) -> int:
    return genes.choose((program.n_slots, program.n_slots + 5, -1, 2**31))


def _reader(genes: Genes, program: GraphProgram) -> int:
    """An instruction that has operands."""
    return genes.choose([i for i, ins in enumerate(program.instructions) if ins.input_slots])


@_graph_fault
def operand_slot_out_of_range(genes: Genes, program: GraphProgram) -> GraphProgram:
    i = _reader(genes, program)
    slots = list(program.instructions[i].input_slots)
    slots[genes.pick(len(slots))] = _stray(genes, program)
    return _with(program, i, input_slots=tuple(slots))


@_graph_fault
def result_slot_out_of_range(genes: Genes, program: GraphProgram) -> GraphProgram:
    return _with(program, genes.pick(len(program.instructions)), output_slots=(_stray(genes, program),))


@_graph_fault
def input_slot_out_of_range(genes: Genes, program: GraphProgram) -> GraphProgram:
    return replace(program, input_slots=(*program.input_slots[:-1], _stray(genes, program)))


@_graph_fault
def output_slot_out_of_range(genes: Genes, program: GraphProgram) -> GraphProgram:
    return replace(program, output_slots=_insert_slot(genes, program.output_slots, _stray(genes, program)))


def _insert_slot(genes: Genes, slots: tuple[int, ...], slot: int) -> tuple[int, ...]:
    i = genes.pick(len(slots) + 1)
    return (*slots[:i], slot, *slots[i:])


@_graph_fault
def output_never_written(genes: Genes, program: GraphProgram) -> GraphProgram:
    outputs = _insert_slot(genes, program.output_slots, program.n_slots)
    return replace(program, n_slots=program.n_slots + 1, output_slots=outputs)


@_graph_fault
def operand_missing_or_left_over(genes: Genes, program: GraphProgram) -> GraphProgram:
    exact = [i for i, ins in enumerate(program.instructions) if ins.input_slots and not ins.op.variadic]
    i = genes.choose(exact)
    slots = program.instructions[i].input_slots
    return _with(program, i, input_slots=slots[1:] if genes.pick(2) else (*slots, slots[0]))


@_graph_fault
def too_many_results(genes: Genes, program: GraphProgram) -> GraphProgram:
    i = genes.pick(len(program.instructions))
    slots = (*program.instructions[i].output_slots, program.n_slots)
    return replace(_with(program, i, output_slots=slots), n_slots=program.n_slots + 1)


@_graph_fault
def no_result(genes: Genes, program: GraphProgram) -> GraphProgram:
    return _with(program, genes.pick(len(program.instructions)), output_slots=())


@_graph_fault
def slot_written_twice(genes: Genes, program: GraphProgram) -> GraphProgram:
    i = genes.pick(len(program.instructions))
    taken = [*program.input_slots, *(s for ins in program.instructions[:i] for s in ins.output_slots)]
    return _with(program, i, output_slots=(genes.choose(taken),))


@_graph_fault
def input_slot_given_twice(genes: Genes, program: GraphProgram) -> GraphProgram:
    i = genes.pick(len(program.input_slots))
    return replace(
        program,
        input_slots=(*program.input_slots, program.input_slots[i]),
        input_types=(*program.input_types, program.input_types[i]),
    )


@_graph_fault
def slot_read_before_it_is_written(genes: Genes, program: GraphProgram) -> GraphProgram:
    i = _reader(genes, program)
    later = [s for ins in program.instructions[i:] for s in ins.output_slots]
    slots = list(program.instructions[i].input_slots)
    slots[genes.pick(len(slots))] = genes.choose(later)
    return _with(program, i, input_slots=tuple(slots))


# --- from faults to strategies ----------------------------------------------------------------------------------------


def _append(program: GraphProgram, ins: Instruction) -> GraphProgram:
    """`program` with one more instruction, whose result is a new slot and the last output."""
    slot = program.n_slots
    return replace(
        program,
        instructions=(*program.instructions, replace(ins, output_slots=(slot,))),
        output_slots=(*program.output_slots, slot),
        n_slots=slot + 1,
    )


@cache
def faults(config: Config = DEFAULT, kind: str | None = None, *, late: bool = False) -> tuple[Fault, ...]:
    """The faults that can be made with the ops of a config, with those that only values show if `late`."""
    usable = {*config.vocabulary, Extension, None}
    return tuple(f for f in _FAULTS if f.op in usable and kind in (None, f.kind) and late >= f.late)


def kinds(config: Config | None = None) -> tuple[str, ...]:
    """Kinds of error that invalid programs raise; those that can be raised with the ops of a config."""
    return tuple(dict.fromkeys(f.kind for f in (_FAULTS if config is None else faults(config))))


def decode_invalid(config: Config, kind: str | None, header: bytes, genes: list[bytes], gene: bytes) -> Case:
    """The invalid case that the bytes say, with a fault of any kind or of one."""
    first = Genes(gene)
    return decode_fault(config, first.choose(faults(config, kind)), header, genes, first)


def decode_fault(config: Config, chosen: Fault, header: bytes, genes: Sequence[bytes], gene: Genes) -> Case:
    """The case that the bytes say, with one fault."""
    # symbols and other policies make valid what is a fault here; a decomposition may refuse its matrix first
    g = grow(replace(config, policies=0, symbolic=0, linalg=0, motifs=config.motifs and not chosen.late), header, genes)
    g.genes, g.style = gene, "leaves"  # nothing that a fault may read is left out
    if chosen.op is None:
        if not g.recipes:  # faults of the graph want an input, and an instruction that reads it
            g.fresh(DType.F64, ())
        sound = _append(g.finish(), Instruction(Convert(DType.F64), (next(iter(g.recipes)),), ()))
        program, refusal = chosen.make(g.genes, sound), Refusal(chosen.name, chosen.kind)
    else:
        bad: Bad = chosen.make(g, chosen.op)
        program = _append(g.finish(), Instruction(bad.op, tuple(v.slot for v in bad.operands), ()))
        refusal = Refusal(
            chosen.name, chosen.kind, bad.blamed or bad.op.name, bad.axis, bad.argument, len(program.instructions) - 1,
            chosen.late,
        )  # fmt: skip
        if g.genes.chance(30):  # something reads the faulty value
            program = _append(program, Instruction(Negate(), program.output_slots[-1:], ()))
    return Case.of(program, g.inputs(program), refusal)


def simplest_of(fault: str) -> Case | None:
    """The simplest case with the fault of that name; None if there is no such fault any more."""
    return next((decode_fault(WHOLE, f, b"", (), Genes(b"")) for f in _FAULTS if f.name == fault), None)


def invalid_cases(config: Config = DEFAULT, kind: str | None = None) -> st.SearchStrategy[Case]:
    """Invalid programs, of any kind of error or of one (`kinds()`)."""
    gene = st.binary(min_size=GENE, max_size=GENE)
    header = st.binary(min_size=HEADER, max_size=HEADER)
    genes = st.lists(gene, min_size=config.min_instructions, max_size=max(LONGEST, config.min_instructions))
    return st.builds(decode_invalid, st.just(config), st.just(kind), header, genes, gene)


def invalid(kind: str, config: Config = DEFAULT) -> st.SearchStrategy[Case]:
    """Invalid programs of one kind of error."""
    return invalid_cases(config, kind)


__all__ = [
    "WHOLE",
    "Fault",
    "decode_fault",
    "decode_invalid",
    "faults",
    "invalid",
    "invalid_cases",
    "kinds",
    "simplest_of",
]
