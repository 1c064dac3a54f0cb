"""Motifs of windows, updates and truncations, arrays of constants, and chains of ops that each work on the result of the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import zip_longest

from fuzz.generate.config import may_have
from fuzz.generate.describe import maker, varying
from fuzz.generate.growth import Estimate, Growth
from fuzz.generate.motifs.table import Found, motif
from fuzz.generate.ops import STRATEGY, usable
from fuzz.generate.ops.indexing import index_tensor
from fuzz.generate.ops.structural import regroup
from fuzz.generate.shapes import shape_of, volume
from fuzz.generate.values.recipes import Recipe
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import ARITHMETIC, BY_NAME, INDEXING, OPS, REDUCTIONS, STABLEHLO, Op
from tenferro_ref.program import Value

#: An array of ones.
_ONES = Recipe("simple", 0, density=0)


def _window(g: Growth, x: Value) -> tuple[int, ...]:
    """Extents of a window that is smaller than the value where it can be."""
    return tuple(max(min(1, e), e - 1 - g.choices.near(e)) if e else 0 for e in shape_of(x))


def _updates_itself(case: Case) -> bool:
    makers = [
        (maker(case.program, i.input_slots[1]), i)
        for i in case.program.instructions
        if i.op.name == "DynamicUpdateSlice"
    ]
    return any(m and m.op.name in ("Slice", "DynamicSlice") and m.input_slots[0] == i.input_slots[0] for m, i in makers)


@motif(3, 2, _updates_itself, ops.Slice, ops.DynamicSlice, ops.DynamicUpdateSlice)
def updated_with_itself(g: Growth) -> None:
    """An update whose value is a window of the same operand at a shifted place; compilers take windows through a Reshape."""
    x = g.operand(g.config.dtypes, lambda v: v.type.rank >= 1)
    if g.choices.chance(30):
        _move_rows(g, x)
        return
    if g.has(ops.Reshape) and g.choices.chance(50):
        x = g.apply(ops.Reshape(regroup(g, shape_of(x)) or (1,)), x)
    shape, sizes = shape_of(x), _window(g, x)
    if g.choices.chance(50):
        window = g.apply(ops.DynamicSlice(sizes), x, index_tensor(g, (len(sizes),)))
    else:
        starts = tuple(g.choices.pick(e - s + 1) for e, s in zip(shape, sizes, strict=True))
        limits = tuple(a + s for a, s in zip(starts, sizes, strict=True))
        window = g.apply(ops.Slice(starts, limits, (1,) * len(sizes)), x)
    g.apply(ops.DynamicUpdateSlice(), x, window, index_tensor(g, (len(sizes),)))


def _move_rows(g: Growth, x: Value) -> None:
    """All rows but the last one step on, of a value with a unit axis more or less."""
    shape = shape_of(x)
    if g.has(ops.Reshape):
        rest = tuple(e for e in shape if e != 1) or shape
        other = rest if rest != shape else (*shape, 1)
        x = g.apply(ops.Reshape(other), x) if len(other) <= g.max_rank else x
    rows, *row = shape_of(x)
    kept = (max(0, rows - 1), *row)
    window = g.apply(ops.Slice((0,) * len(kept), kept, (1,) * len(kept)), x)
    # any start is brought within bounds: 1 among the rows, 0 elsewhere
    integers = [d for d in g.config.dtypes if d.is_int] or [DType.I32]
    g.apply(ops.DynamicUpdateSlice(), x, window, g.fresh(g.choices.choose(integers), (len(kept),), _ONES))


_INDEXED = (ops.DynamicSlice, ops.DynamicUpdateSlice, ops.Gather, ops.Scatter)
#: Index types, and extents that are beyond their largest values.
_SHORT = {DType.I8: (129, 200), DType.U8: (257, 300)}


def _indexed(case: Case) -> Iterator[tuple[list[int], DType]]:
    """The extents of each operand that is indexed, but for symbols, and the dtype of its indices."""
    types = case.program.slot_types
    for ins in case.program.instructions:
        if type(ins.op) in INDEXING:
            operand, *others = [types[slot] for slot in ins.input_slots]
            extents = [e for e in operand.shape if isinstance(e, int)]
            yield from ((extents, other.dtype) for other in others)


def _is_short(case: Case) -> bool:
    return any(dtype in _SHORT and max(e, default=0) > dtype.limits[1] + 1 for e, dtype in _indexed(case))


@motif(3, 8, _is_short, *_INDEXED, policy=STABLEHLO)
def short_index(g: Growth) -> None:
    """Indices of a type that cannot say where the axis ends, in which compilers compute the last start."""
    dtype = g.choices.choose((*_SHORT,))
    if g.policy != STABLEHLO or not may_have(g.config, dtype) or g.config.max_rank < 1 or g.limit < max(_SHORT[dtype]):
        return
    extent, op = (
        g.choices.choose(_SHORT[dtype]),
        g.choices.choose((ops.Scatter, ops.Scatter, ops.Gather, ops.DynamicSlice, ops.DynamicUpdateSlice)),
    )
    x = g.fresh(g.dtype(g.dtypes_of(op)), (extent,))
    if g.choices.chance(40) and g.has(ops.Constant, ops.BroadcastInDim):  # for compilers to fold
        number = ops.Constant.of(1 + g.choices.pick(dtype.limits[1]), dtype)
        indices = g.apply(ops.BroadcastInDim((1,), ()), g.apply(number))
    else:
        indices = g.fresh(dtype, (1,), Recipe("bits", g.choices.integer(2)))
    _index(g, op, x, indices)


def _index(g: Growth, op: type[Op], x: Value, indices: Value) -> None:
    """Read or write two or more elements of a vector, or one, at one index."""
    if op is ops.Scatter:
        window, missing, shape = g.choices.choose((((), (0,), ()), ((0,), (), (2,))))
        g.apply(op(window, missing, (0,), 0), x, indices, g.typed(x.dtype, shape), estimate=g.estimates[x.slot])
    elif op is ops.Gather:
        g.apply(op((0,), (), (0,), 0, (2,)), x, indices, estimate=g.estimates[x.slot])
    elif op is ops.DynamicSlice:
        g.apply(op((2,)), x, indices, estimate=g.estimates[x.slot])
    else:
        g.apply(op(), x, g.typed(x.dtype, (2,)), indices, estimate=g.estimates[x.slot])


def _is_unsigned(case: Case) -> bool:
    return any(dtype in (DType.U32, DType.U64) and e for e, dtype in _indexed(case))


@motif(4, 1, _is_unsigned, *_INDEXED, policy=STABLEHLO)
def unsigned_indices(g: Growth) -> None:
    """Indices beyond what signed numbers of their width can say, every other time."""
    # a scatter passes over an index that is outside on either side
    kinds = [(d, _INDEXED[i]) for d in (DType.U64, DType.U32) for i in g.choices.permutation(3)[:2]]
    for dtype, op in kinds:
        if g.room and g.policy == STABLEHLO and may_have(g.config, dtype) and g.config.max_rank >= 1:
            x = g.fresh(g.dtype(g.dtypes_of(op)), (3 + g.choices.pick(6),))
            _index(g, op, x, g.fresh(dtype, (1,), Recipe("bits", g.choices.integer(2))))


def _has_short_addresses(case: Case) -> bool:
    return any(dtype in _SHORT and len(e) > 1 and volume(e) > dtype.limits[1] + 1 for e, dtype in _indexed(case))


@motif(1, 1, _has_short_addresses, ops.Scatter, ops.Gather, policy=STABLEHLO)
def short_address(g: Growth) -> None:
    """Pairs of indices of a type that can say where each axis ends, but not how many elements there are."""
    dtype, op, shape = g.choices.choose((*_SHORT,)), g.choices.choose((ops.Scatter, ops.Gather)), (60, 12)
    if g.policy != STABLEHLO or not may_have(g.config, dtype) or g.config.max_rank < 2 or g.limit < volume(shape):
        return
    x, indices = (
        g.fresh(g.dtype(g.dtypes_of(op)), shape),
        g.fresh(dtype, (3, 2), Recipe("indices", g.choices.integer(2))),
    )
    if op is ops.Scatter:
        g.apply(op((), (0, 1), (0, 1), 1), x, indices, g.typed(x.dtype, (3,)), estimate=g.estimates[x.slot])
    else:
        g.apply(op((), (0, 1), (0, 1), 1, (1, 1)), x, indices, estimate=g.estimates[x.slot])


def _puts_back(case: Case) -> bool:
    """Whether an update of a dynamic slice is written to where that came from."""
    for ins in case.program.instructions:
        if ins.op.name == "DynamicUpdateSlice" and (inner := maker(case.program, ins.input_slots[1])):
            window = maker(case.program, inner.input_slots[0]) if inner.op.name == "DynamicUpdateSlice" else None
            if (
                window
                and window.op.name == "DynamicSlice"
                and window.input_slots == (ins.input_slots[0], ins.input_slots[2])
            ):
                return True
    return False


@motif(3, 2, _puts_back, ops.DynamicSlice, ops.DynamicUpdateSlice)
def slice_put_back(g: Growth) -> None:
    """A window is taken, updated, and written to where it was: what users do with a part of a buffer."""
    x = g.operand(g.config.dtypes, lambda v: v.type.rank >= 1)
    sizes = _window(g, x)
    starts = index_tensor(g, (len(sizes),))
    window = g.apply(ops.DynamicSlice(sizes), x, starts)
    part = g.typed(x.dtype, _window(g, window))
    g.apply(
        ops.DynamicUpdateSlice(),
        x,
        g.apply(ops.DynamicUpdateSlice(), window, part, index_tensor(g, (len(sizes),))),
        starts,
    )


def _gives_both(case: Case) -> bool:
    given, updates = {*case.program.output_slots}, ("DynamicUpdateSlice", "Scatter")
    made = [i for i in case.program.instructions if i.op.name in updates and i.input_slots[0] in case.program.producers]
    return any(given.issuperset((i.input_slots[0], i.output_slots[0])) for i in made)


@motif(3, 2, _gives_both, ops.DynamicUpdateSlice, ops.Scatter, ops.Negate)
def updated_beside(g: Growth) -> None:
    """A computed value returned beside an update of it, which a compiler would like to make in place."""
    op = g.choices.choose((ops.DynamicUpdateSlice, ops.Scatter))
    x = g.operand(g.dtypes_of(ops.Negate), lambda v: v.type.rank >= 1)
    x = x if x.slot not in g.recipes else g.apply(ops.Negate(), x)
    g.wanted = x
    g.give(x, STRATEGY[op](g, op))


#: An operand of wide rows, and the places of the rows that are added to it.
_ROWS, _PLACES = (5, 16, 17), (2, 3)


def _adds_wide_rows(case: Case) -> bool:
    """Whether a Scatter adds so many elements at places in two axes or more."""
    for ins in case.program.instructions:
        if isinstance(ins.op, ops.Scatter):
            _, places, updates = [case.program.slot_types[slot] for slot in ins.input_slots]
            wide = updates.is_static and volume(updates.static_shape) >= volume((*_PLACES, *_ROWS[1:]))
            if wide and places.rank > len(_PLACES):
                return True
    return False


def _skips_wide_rows(case: Case) -> bool:
    return case.program.policy.scatter_bounds == "skip" and _adds_wide_rows(case)


@motif(1, 1, _skips_wide_rows, ops.Scatter, name="skipped_wide_rows", policy=STABLEHLO)
@motif(1, 1, _adds_wide_rows, ops.Scatter)
def wide_rows(g: Growth) -> None:
    """Rows of hundreds of elements added at places that are themselves in rows and columns, along one axis or two, in either order."""
    dtypes = g.dtypes_of(ops.Scatter)
    if not dtypes or g.max_rank <= len(_PLACES) + 1 or g.config.max_elements < volume((*_PLACES, *_ROWS[1:])):
        return
    integers = [d for d in g.config.dtypes if d.is_int] or [DType.I32]
    dtype, index = g.dtype(dtypes), g.choices.choose(integers)
    axes = g.choices.choose(((0,), (0, 1), (1, 0)))
    shape = _ROWS if len(axes) == 1 else (3, _ROWS[0], volume(_ROWS[1:]))
    row = shape[len(axes) :]
    x = g.fresh(dtype, shape)
    indices = g.fresh(index, (*_PLACES, len(axes)), Recipe("indices", g.choices.integer(2)))
    updates = g.fresh(dtype, (*_PLACES, *row))
    window = tuple(range(len(_PLACES), len(_PLACES) + len(row)))
    g.apply(
        ops.Scatter(window, tuple(sorted(axes)), axes, len(_PLACES)), x, indices, updates, estimate=g.estimates[x.slot]
    )


def _reads_constants(case: Case) -> bool:
    """Whether an op reads an array that depends on constants alone, beside something that does not."""
    inputs, types = varying(case.program), case.program.slot_types
    for ins in case.program.instructions:
        if not inputs.isdisjoint(ins.input_slots):
            fixed = [s for s in ins.input_slots if s not in inputs and types[s].rank]
            if any((m := maker(case.program, s)) and m.op.name == "Concatenate" for s in fixed):
                return True
    return False


@motif(8, 2, _reads_constants, ops.Constant, ops.BroadcastInDim, ops.Concatenate)
def constant_operand(g: Growth) -> None:
    """An array of constants as any operand of an elementwise op, or as the first one of any other."""
    known = [op for op in OPS if op.arity and usable(op, g.config) and g.dtypes_of(op)]
    op = g.choices.choose([op for op in known if op is not ops.DynamicTruncate])
    x = g.operand(g.dtypes_of(op), lambda v: v.type.rank >= 1 and v.shape[0] not in (0, 1))
    array = g.constant_array(x.dtype, shape_of(x))
    if op in ARITHMETIC or op in (ops.Maximum, ops.Minimum):
        g.apply(op(), *((x, array) if g.choices.chance(50) else (array, x)), estimate=g.estimates[x.slot])
    else:
        g.wanted = array
        STRATEGY[op](g, op)


def _gathers_constants(case: Case) -> bool:
    """Whether what is gathered from constants, at constant indices, is computed with."""
    fixed = {s for i in case.program.instructions if i.op.name == "Gather" for s in i.output_slots} - varying(
        case.program
    )
    return any(i.op.name in ("Add", "Multiply") and fixed.issuperset(i.input_slots) for i in case.program.instructions)


@motif(9, 2, _gathers_constants, ops.Constant, ops.BroadcastInDim, ops.Concatenate, ops.Gather, ops.Add, ops.Multiply)
def folded_gather(g: Growth) -> None:
    """Columns of two rows of constants, with which is computed: once folded, they may be laid out in another order."""
    op = g.choices.choose((ops.Add, ops.Multiply))
    dtypes = [d for d in g.dtypes_of(op) if d in g.dtypes_of(ops.Gather)]
    integers = [d for d in g.config.dtypes if d.is_int]
    if not dtypes or not integers or g.max_rank < 2:
        return
    count = 2 + g.choices.pick(4)
    rows = g.constant_array(g.dtype(dtypes), (2, count))
    column = ops.Constant.of(g.choices.pick(count), g.choices.choose(integers))
    indices = g.apply(ops.BroadcastInDim((count, 1), ()), g.apply(column))
    columns = g.apply(ops.Gather((0,), (1,), (1,), 1, (2, 1)), rows, indices)
    g.apply(op(), columns, columns, estimate=g.estimates[rows.slot])


#: Ops that are about axes, for a value that has none, and how many empty index tensors and further values each reads.
_WITHOUT_AXES: tuple[tuple[Op, int, int], ...] = (
    (ops.Transpose(()), 0, 0), (ops.Reshape(()), 0, 0), (ops.BroadcastInDim((), ()), 0, 0), (ops.Slice((), (), ()), 0, 0),
    (ops.Reverse(()), 0, 0), (ops.Pad((), (), ()), 0, 0), (ops.DynamicSlice(()), 1, 0), (ops.DynamicUpdateSlice(), 1, 1),
    (ops.Gather((), (), (), 0, ()), 1, 0), (ops.Scatter((), (), (), 0), 1, 1), (ops.ReduceSum(()), 0, 0),
    (ops.ReduceProd(()), 0, 0), (ops.ReduceMax(()), 0, 0), (ops.ReduceMin(()), 0, 0), (ops.ReduceSumSquares(()), 0, 0),
)  # fmt: skip


def _lacks_axes(case: Case) -> bool:
    types, about = case.program.slot_types, {type(op) for op, _, _ in _WITHOUT_AXES}
    return any(type(i.op) in about and not types[i.input_slots[0]].rank for i in case.program.instructions)


@motif(1, 1, _lacks_axes, *(type(op) for op, _, _ in _WITHOUT_AXES), name="of no axes")
def of_no_axes(g: Growth) -> None:
    """An op that is about axes, on a value without any."""
    op, indices, more = g.choices.choose(_WITHOUT_AXES)
    integers = [d for d in g.config.dtypes if d.is_int]
    dtypes = g.dtypes_of(type(op))
    if dtypes and (integers or not indices):
        x = g.rank_0(g.dtype(dtypes))
        further = [x if g.choices.chance(30) else g.fresh(x.dtype, ()) for _ in range(more)]
        starts = [g.fresh(g.choices.choose(integers), (0,)) for _ in range(indices)]
        operands = (*further, *starts) if isinstance(op, ops.DynamicUpdateSlice) else (*starts, *further)
        g.apply(op, x, *operands, estimate=g.estimates[x.slot])


# --- chains -----------------------------------------------------------------------------------------------------------

#: Ops that follow one another, each on the result of the one before.
_CHAINS = """
    DynamicSlice > DynamicSlice; DynamicSlice > Gather; DynamicSlice > Scatter; DynamicSlice > DynamicUpdateSlice
    DynamicUpdateSlice > DynamicSlice; DynamicUpdateSlice > DynamicUpdateSlice; DynamicUpdateSlice > Slice; Gather > Gather
    Gather > DynamicSlice; Gather > Scatter; Scatter > Gather; Scatter > Scatter; Scatter > DynamicSlice; Slice > Gather
    Slice > DynamicSlice; Slice > Slice; Slice > Scatter; Slice > Reverse; Reverse > Slice; Reverse > DynamicSlice; Slice > Pad
    Pad > Slice; Pad > Pad; Pad > DynamicSlice; Concatenate > Slice; Concatenate > DynamicSlice; Concatenate > Gather
    Slice > Concatenate; Concatenate > Concatenate; Concatenate > Reshape > Slice; Pad > ReduceSum; Concatenate > ReduceSum
    Transpose > Reshape > Transpose; Transpose > Reshape > BroadcastInDim > DotGeneral; BroadcastInDim > DotGeneral
    BroadcastInDim > Transpose > DotGeneral; Reshape > DotGeneral > Reshape; DotGeneral > Reshape > Transpose
    DotGeneral > Transpose > DotGeneral; DotGeneral > BroadcastInDim > ReduceSum; Reverse > DotGeneral; Slice > DotGeneral
    Convert > DotGeneral; Pad > DotGeneral; Tril > DotGeneral; DotGeneral > Slice; DotGeneral > DynamicSlice; DotGeneral > ReduceSum
    BroadcastInDim > DynamicSlice; BroadcastInDim > Gather; BroadcastInDim > Scatter; BroadcastInDim > DynamicUpdateSlice
    BroadcastInDim > Reshape > Transpose; Transpose > Gather; Transpose > DynamicUpdateSlice; Transpose > ReduceMax; Reshape > Scatter
    Reshape > DynamicSlice; ReduceSum > ReduceSum; ReduceMax > BroadcastInDim > Subtract; ReduceSum > BroadcastInDim > ReduceSum
    Compare > Convert > ReduceSum; Select > ReduceMax; Convert > ReduceSum; Convert > ReduceProd; Reverse > Reverse
    ReduceSum > Conj; Convert > Conj; DotGeneral > Conj; Scatter > Conj; DynamicUpdateSlice > Conj; DynamicSlice > Conj; Gather > Conj
    Conj > Conj > Conj > Multiply > Conj; Conj > Add > Conj > Conj; Conj > Conj > Negate > Conj; Conj > Multiply > Negate > Conj
    Concatenate > Conj; Pad > Conj; Select > Conj; Divide > Conj; Reshape > Transpose > Conj; EmbedDiag > ExtractDiag; Tril > Triu; GatherDynamicSliceSizes > DynamicSlice; PadToMatch > Slice; Select > DynamicUpdateSlice"""


def _chain(g: Growth, path: tuple[type[Op], ...]) -> None:
    """The ops of a path one after the other."""
    common = set(g.config.dtypes).intersection(
        *(g.dtypes_of(op) for op in path if op.same_dtype and op not in _DTYPES_END)
    )
    if ops.Conj in path:  # which changes complex numbers alone
        common = {d for d in common if d.is_complex} or common
    if not common:
        return
    axes = 2 + sum(op in REDUCTIONS or op in (ops.ExtractDiag, ops.Gather, ops.Reshape) for op in path[:-1])
    g.wanted_dtype, g.wanted_rank = g.dtype([d for d in g.config.dtypes if d in common]), min(axes, g.max_rank)
    for op, after in zip_longest(path, path[1:]):
        targets = g.dtypes_of(after) if op is ops.Convert and after else ()
        value = g.convert(g.operand(g.config.dtypes), g.choices.choose(targets)) if targets else STRATEGY[op](g, op)
        g.wanted_dtype, g.wanted_rank, g.wanted = None, 0, value
    g.wanted = None


#: Ops whose result has another dtype than their operand.
_DTYPES_END = (ops.Convert, ops.Compare)
for _path in [line.strip() for line in _CHAINS.replace("\n", ";").split(";") if line.strip()]:
    _ops = tuple(BY_NAME[name] for name in _path.split(" > "))
    motif(len(_ops), 1, _path, name=_path, group="chain")(partial(_chain, path=_ops))


# --- truncations ------------------------------------------------------------------------------------------------------


def _truncates_to(fits: Callable[[float], bool]) -> Found:
    """Finds a DynamicTruncate whose size is a constant that fits."""

    def found(case: Case) -> bool:
        program = case.program
        for ins in program.instructions:
            made = program.producers.get(ins.input_slots[-1]) if isinstance(ins.op, ops.DynamicTruncate) else None
            size = None if made is None else program.instructions[made].op
            if isinstance(size, ops.Constant) and fits(float(size.value.real)):
                return True
        return False

    return found


@motif(2, 0.7, _truncates_to(lambda size: size < 0), ops.DynamicTruncate, ops.Constant, name="truncated below nothing")
def truncated_below_nothing(g: Growth) -> None:
    """To less than no elements, of an axis that has more than that."""
    sizes = [d for d in (DType.I64, DType.F64, DType.F32) if d in g.config.dtypes]
    if not sizes or g.portable:
        return
    x = g.operand(g.config.dtypes, lambda v: any(isinstance(e, int) and e > 1 for e in v.shape))
    axes = [a for a, e in enumerate(shape_of(x)) if e > 1]
    if axes:
        number = ops.Constant.of(g.choices.choose((-1, -1, -2)), g.choices.choose(sizes))
        size = g.apply(number, estimate=Estimate(False, 2))
        g.show(ops.DynamicTruncate(g.choices.choose(axes)), x, size)


_AT_HALF = _truncates_to(lambda size: size % 1 == 0.5)


@motif(3, 1, _AT_HALF, ops.DynamicTruncate, ops.Constant, name="truncated at a half")
def truncated_at_half(g: Growth) -> None:
    """To n + 1/2 elements, n even: halves go away from zero. What is left may be contracted, so that its cut axis is merged with another."""
    sizes = [d for d in (DType.F64, DType.F32) if d in g.config.dtypes]
    factors = g.dtypes_of(ops.DotGeneral) if g.has(ops.DotGeneral) and g.max_rank > 2 and g.limit >= 4**3 else ()
    contracted = bool(factors) and g.choices.chance(60)
    if contracted:
        x = g.fresh(g.dtype(factors), tuple(2 + g.choices.pick(3) for _ in range(3)))
    else:
        x = g.operand(g.config.dtypes, lambda v: any(isinstance(e, int) and e > 1 for e in v.shape))
    shape = shape_of(x)
    axes = [a for a, e in enumerate(shape) if e > 1]
    if not sizes or not axes or g.portable:
        return
    axis = g.choices.choose(axes)
    number = g.choices.choose(range(0, shape[axis], 2)) + 0.5
    size = g.apply(ops.Constant.of(number, g.choices.choose(sizes)), estimate=Estimate(True, 4))
    if not contracted:
        g.show(ops.DynamicTruncate(axis), x, size)
        return
    cut, beside, last = g.inner(ops.DynamicTruncate(axis), x, size), (axis + 1) % 3, (axis + 2) % 3
    if g.choices.chance(50):
        g.show(ops.DotGeneral((last,), (0,), (), ()), cut, g.fresh(x.dtype, (shape[last],)))
    else:
        g.show(ops.DotGeneral((axis, beside), (axis, beside), (), ()), cut, cut)
