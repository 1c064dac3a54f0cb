"""Motifs of contractions and structure: what passes of ours look for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

from fuzz.generate.describe import maker, of_program
from fuzz.generate.growth import Estimate, Growth
from fuzz.generate.motifs.table import motif
from fuzz.generate.ops.contractions import contract, reduce
from fuzz.generate.ops.structural import broadcast, permutation, regroup
from fuzz.generate.shapes import EXTENTS, shape_of, volume
from fuzz.generate.values.recipes import Recipe
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dims import InputDim
from tenferro_ref.dtype import ENGINE_DTYPES, NUMERIC, DType
from tenferro_ref.extensions import einsum
from tenferro_ref.ops import REDUCTIONS, STABLEHLO, TensorType
from tenferro_ref.program import Value


def _factor(g: Growth, rank: int = 0) -> Value:
    """An operand of a contraction."""
    return g.operand(g.dtypes_of(ops.DotGeneral), lambda v: v.type.rank >= rank)


# --- contractions (TransposeFolding, DotDimensionSorter, DotDecomposer) -----------------------------------------------


@motif(3, 4, "Transpose > DotGeneral")
def transposed_dot(g: Growth) -> None:
    """One or both operands of a dot are transposes: folded or, where axes would change order, left."""
    lhs = _factor(g, 2)
    turned = g.apply(ops.Transpose(permutation(g, lhs.type.rank)), lhs)
    if g.choices.chance(40):
        rhs = g.operand((lhs.dtype,), lambda v: v.type.rank >= 2)
        contract(g, turned, g.apply(ops.Transpose(permutation(g, rhs.type.rank)), rhs))
    else:
        contract(g, turned)


def _einsums(case: Case) -> Iterator[einsum.Equation]:
    """The equation of each einsum."""
    for ins in case.program.instructions:
        if isinstance(ins.op, ops.Extension) and ins.op.family == einsum.FAMILY:
            yield einsum.parse(ins.op)


def _crosses_batches(case: Case) -> bool:
    """Whether an einsum sums over a label of two operands that share two others, which are in another order in each."""
    for equation in _einsums(case):
        if len(equation.inputs) == 2:
            lhs, rhs = equation.inputs
            shared = [[label for label in side if label in lhs and label in rhs] for side in (lhs, rhs)]
            kept = [[label for label in side if label in equation.output] for side in shared]
            if len(kept[0]) > 1 and kept[0] != kept[1] and len(shared[0]) > len(kept[0]):
                return True
    return False


@motif(1, 2, _crosses_batches, ops.Extension)
def crossed_batches(g: Growth) -> None:
    """An einsum over labels that its operands have in different orders: two of both and the result, one of both, one of each."""
    dtypes = [d for d in g.config.dtypes if d in NUMERIC]
    if not dtypes or g.max_rank < 4 or g.limit < 4**4:
        return
    dtype, extents = g.dtype(dtypes), {label: 1 + g.choices.pick(4) for label in "abcde"}
    lhs, rhs = ("".join(labels[p] for p in permutation(g, 4)) for labels in ("abcd", "abce"))
    if [x for x in lhs if x in "ab"] == [x for x in rhs if x in "ab"]:
        rhs = rhs.translate(str.maketrans("ab", "ba"))
    output = "".join("abde"[p] for p in permutation(g, 4))
    operands = [g.fresh(dtype, tuple(extents[label] for label in side)) for side in (lhs, rhs)]
    g.apply(ops.Extension.of(einsum.FAMILY, "einsum", {"equation": f"{lhs},{rhs}->{output}"}), *operands)


def _shares_among_three(case: Case) -> bool:
    """Whether three operands of an einsum have a label."""
    return any(
        max(Counter(label for side in equation.inputs for label in {*side}).values(), default=0) > 2
        for equation in _einsums(case)
    )


@motif(2, 2, _shares_among_three, ops.Extension, ops.Concatenate)
def shared_among_three(g: Growth) -> None:
    """An einsum of three operands that have a label, which is summed or kept; its extent may be one that is computed."""
    dtypes = [d for d in g.config.dtypes if d in NUMERIC]
    if not dtypes or not g.max_rank or g.limit < 4**3:
        return
    choices, dtype = g.choices, g.dtype(dtypes)
    extents = {label: 1 + choices.pick(4) for label in "ijkl"}
    doubled = choices.chance(40)
    if doubled:
        extents["i"] = 2 * (1 + choices.pick(2))
    sides = []
    for own in ("j", choices.choose("jk"), choices.choose("jl")):
        labels = "i" + (own if g.max_rank > 1 and choices.chance(60) else "")
        sides.append(labels[::-1] if choices.chance(40) else labels)
    first, *rest = ([extents[label] for label in side] for side in sides)
    if doubled:
        axis = sides[0].index("i")
        first[axis] //= 2
        half = g.fresh(dtype, tuple(first))
        operands = [g.apply(ops.Concatenate(axis), half, half)]
    else:
        operands = [g.fresh(dtype, tuple(first))]
    operands += [g.fresh(dtype, tuple(shape)) for shape in rest]
    kept = [label for label in dict.fromkeys("".join(sides)) if choices.chance(50)]
    output = "".join(kept[p] for p in permutation(g, len(kept)))[: g.max_rank]
    g.apply(ops.Extension.of(einsum.FAMILY, "einsum", {"equation": f"{','.join(sides)}->{output}"}), *operands)


#: Columns of a product of F64 after which a library begins another block.
_BLOCK = 16_384
#: Shapes of a higher rank than the usual ones.
_DEEP = ((2, 1, 2, 2, 8, 8, 8), (1, 2, 2, 2, 8, 8, 8))


def _sums(case: Case, op: str, enough: Callable[[TensorType], bool]) -> bool:
    program = case.program
    sums = [i.input_slots[0] for i in program.instructions if i.op.name == "ReduceSum"]
    return any((m := maker(program, s)) and m.op.name == op and enough(program.slot_types[s]) for s in sums)


@motif(
    2, 1, lambda case: _sums(case, "DotGeneral", lambda t: t.shape[-1:] == (_BLOCK + 1,)), ops.DotGeneral, ops.ReduceSum
)
def tall_product(g: Growth) -> None:
    """A product of F64 with many columns, each of which is summed."""
    if DType.F64 not in g.config.dtypes or g.config.max_rank < 2 or g.config.max_elements < 3 * (_BLOCK + 1):
        return
    left, tall = g.fresh(DType.F64, (2, 3)), g.fresh(DType.F64, (_BLOCK + 1, 3))
    product = g.apply(ops.DotGeneral((1,), (1,), (), ()), left, tall, estimate=Estimate(False, 8))
    g.apply(ops.ReduceSum((0,)), product, estimate=Estimate(False, 9))


@motif(2, 1, lambda case: _sums(case, "Multiply", lambda t: t.rank > 6), ops.Multiply, ops.ReduceSum)
def deep_sum(g: Growth) -> None:
    """A sum of products over one axis of many."""
    floats, shape = [d for d in g.dtypes_of(ops.Multiply) if d.is_float], g.choices.choose(_DEEP)
    if not floats or g.config.max_rank < len(shape) or g.config.max_elements < volume(shape):
        return
    dtype = g.dtype(floats)
    product = g.apply(ops.Multiply(), g.fresh(dtype, shape), g.fresh(dtype, shape), estimate=Estimate(False, 8))
    g.apply(ops.ReduceSum((g.choices.choose((3, 2, 6)),)), product, estimate=Estimate(False, 12))


@motif(3, 2, "Transpose > Reshape > DotGeneral")
def transposed_reshaped_dot(g: Growth) -> None:
    """A Reshape between Transpose and dot, which must keep the transpose from folding."""
    x = _factor(g, 2)
    turned = g.apply(ops.Transpose(permutation(g, x.type.rank)), x)
    contract(g, g.apply(ops.Reshape(regroup(g, shape_of(turned))), turned))


@motif(6, 2, "Conj > DotGeneral | Conj > Transpose > DotGeneral", ops.Add, ops.Reverse)
def conjugated_dot(g: Growth) -> None:
    """A contraction of conjugates: of a sum, where Conj sinks, behind moves that may be outputs, and perhaps of a double Conj."""
    dtypes = g.dtypes_of(ops.Conj)  # StableHLO contracts integers, too
    x = g.operand([d for d in dtypes if d.is_complex] or dtypes, lambda v: v.type.rank >= 1)
    value = g.apply(ops.Conj(), g.apply(ops.Add(), x, x) if g.choices.chance(40) else x)
    mode = g.choices.pick(4)
    if mode == 3:
        value = g.apply(ops.Conj(), value)
    else:
        for _ in range(mode):
            turned = ops.Transpose(permutation(g, value.type.rank))
            value = g.apply(ops.Reverse((0,)) if g.choices.chance(30) else turned, value)
            if g.choices.chance(30):
                g.give(value)
    contract(g, value)


def _conjugates_twice(case: Case) -> bool:
    """Whether a contraction conjugates an operand that is a conjugate of complex numbers."""
    p = case.program
    return any(
        flag and p.slot_types[slot].dtype.is_complex and (m := maker(p, slot)) and isinstance(m.op, ops.Conj)
        for i in p.instructions
        if isinstance(i.op, ops.DotGeneralWithConj)
        for slot, flag in zip(i.input_slots, (i.op.lhs_conj, i.op.rhs_conj), strict=True)
    )


@motif(4, 2, _conjugates_twice, ops.Conj, ops.DotGeneralWithConj)
def conjugated_twice(g: Growth) -> None:
    """A contraction that conjugates an operand which is a conjugate already, or two, or one through a transpose."""
    dtypes = g.dtypes_of(ops.Conj)
    x = g.operand([d for d in dtypes if d.is_complex] or dtypes, lambda v: v.type.rank >= 1)
    value = g.apply(ops.Conj(), x)
    if g.choices.chance(25):
        value = g.apply(ops.Conj(), g.apply(ops.Transpose(permutation(g, x.type.rank)), value))
    contract(g, value, value if g.choices.chance(30) else None, ops.DotGeneralWithConj)


#: Axes of both operands: a, b are batch, k, l contracted, the others free.
DOTS = (
    "mk,kn", "km,kn", "mk,nk", "bmk,bkn", "mkb,knb", "mkl,lkn", "mkl,kln", "mpk,kn", "abmkl,abkln", "bmpk,bkn",
    "mk,knq", "mpk,knq", "abm,ban", "kmb,bnk", "bmk,nkb", "m,n", "bm,bn", "k,k", "bk,bk", "mb,nb", "lkm,kln", "amkb,bkna",
    "mk,pqkn",
)  # fmt: skip


def _factor_of(g: Growth, dtype: DType, letters: str, extent: Mapping[str, int], free: Collection[str]) -> Value:
    """A value with these axes, a transpose in four of ten cases: of two of the letters in `free`, or of all axes."""
    shape = tuple(extent[c] for c in letters)
    if len(shape) < 2 or not g.has(ops.Transpose) or not g.choices.chance(40):
        return g.typed(dtype, shape)
    own = [axis for axis, c in enumerate(letters) if c in free]
    perm = permutation(g, len(shape))
    if len(own) > 1 and g.choices.chance(60):
        a, b = own[:2]
        perm = tuple(b if axis == a else a if axis == b else axis for axis in range(len(shape)))
    return g.apply(ops.Transpose(perm), g.typed(dtype, tuple(shape[perm.index(axis)] for axis in range(len(shape)))))


def dot_of(g: Growth, lhs: str, rhs: str, first: Value | None = None) -> Value | None:
    """A dot with the axes that the letters say; `first` is its left operand if it has such a rank."""
    if max(len(lhs), len(rhs), len(set(lhs + rhs) - set("kl"))) > g.max_rank:
        return None
    extent = dict.fromkeys(sorted(set(lhs + rhs)), 2)
    equal = g.choices.chance(35)  # equal extents hide a missing transpose from shapes: only values tell
    common = EXTENTS(g.choices)
    for letter in extent:
        extent[letter] = common if equal else EXTENTS(g.choices)
    if first is not None:
        extent.update(zip(lhs, shape_of(first), strict=True))
    while volume(list(extent.values())) > g.limit:
        largest = max((c for c in extent if first is None or c not in lhs), key=extent.__getitem__)
        if extent[largest] <= 1:
            return None
        extent[largest] = (extent[largest] + 1) // 2
    dtype = first.dtype if first is not None else g.dtype(g.dtypes_of(ops.DotGeneral))
    paired = [c for c in lhs if c in rhs]
    x = first if first is not None else _factor_of(g, dtype, lhs, extent, {*lhs}.difference(rhs))
    y = _factor_of(g, dtype, rhs, extent, {*rhs}.difference(lhs))
    contracted, batch = [c for c in paired if c in "kl"], [c for c in paired if c in "ab"]
    op = ops.DotGeneral(
        tuple(map(lhs.index, contracted)), tuple(map(rhs.index, contracted)),
        tuple(map(lhs.index, batch)), tuple(map(rhs.index, batch)),
    )  # fmt: skip
    a, b = g.estimates[x.slot], g.estimates[y.slot]
    return g.apply(op, x, y, estimate=Estimate(a.positive and b.positive, a.size + b.size + 3))


@motif(3, 4, "DotGeneral")
def known_dot(g: Growth) -> None:
    """One of the usual contractions: canonical, batch leading or trailing, several contracted axes."""
    lhs, rhs = g.choices.choose(DOTS).split(",")
    if dot_of(g, lhs, rhs) is None:
        contract(g, _factor(g))


def _swaps_free(case: Case) -> bool:
    """Whether a factor of a contraction is a transpose that exchanges axes which are not contracted."""
    for ins in case.program.instructions:
        if not isinstance(op := ins.op, ops.DotGeneral):
            continue
        left, right = (*op.lhs_contracting_dims, *op.lhs_batch_dims), (*op.rhs_contracting_dims, *op.rhs_batch_dims)
        for slot, taken in zip(ins.input_slots, (left, right), strict=True):
            inner = maker(case.program, slot)
            if inner and isinstance(inner.op, ops.Transpose):
                free = [axis for place, axis in enumerate(inner.op.perm) if place not in taken]
                if free != sorted(free):
                    return True
    return False


@motif(3, 2, _swaps_free, ops.Transpose, ops.DotGeneral)
def wide_dot(g: Growth) -> None:
    """A contraction with two free axes on a side, in an order that a transpose may have changed."""
    lhs, rhs = g.choices.choose(("mk,knq", "mk,nqk", "mpk,knq", "mpk,kn", "bmk,bknq", "mk,pqkn")).split(",")
    if dot_of(g, lhs, rhs) is None:
        contract(g, _factor(g))


@motif(4, 2, "DotGeneral > DotGeneral | DotGeneral > Reshape > DotGeneral")
def chained_dots(g: Growth) -> None:
    """The result of a batched dot, batch last, is contracted again with a batch that leads, or with other axes."""
    first = dot_of(g, *g.choices.choose((("bmpk", "bkn"), ("bmk", "bkn"), ("mkb", "knb"), ("bmk", "knb"))))
    if first is None:
        contract(g, _factor(g))
    elif g.choices.chance(35):
        contract(g, g.apply(ops.Reshape(regroup(g, shape_of(first))), first))
    elif dot_of(g, "mpkb" if first.type.rank == 4 else "mkb", "bkn", first) is None:
        contract(g, first)


def _reads_extents_of_a_dot(case: Case) -> bool:
    """Whether a Reshape reads extents of a contraction, and elements of another value."""
    return any(
        isinstance(ins.op, ops.Reshape)
        and any((made := maker(case.program, slot)) and made.op.name == "DotGeneral" for slot in ins.input_slots[1:])
        for ins in case.program.instructions
    )


@motif(2, 2, _reads_extents_of_a_dot, ops.DotGeneral, ops.Reshape)
def extents_of_a_dot(g: Growth) -> None:
    """Elements in the shape of a contraction, of which nothing else is read."""
    dot = dot_of(g, *g.choices.choose((("mk", "kn"), ("mk", "nk"), ("mpk", "kn"), ("mka", "kna"))))
    if dot is None or not g.config.dim_exprs:
        return
    x = g.typed(dot.dtype, shape_of(dot)[::-1])
    g.apply(ops.Reshape(tuple(InputDim(1, axis) for axis in range(dot.ndim))), x, dot)


# --- structure --------------------------------------------------------------------------------------------------------


@motif(3, 5, "BroadcastInDim > Multiply")
def broadcast_product(g: Growth) -> None:
    """Broadcasts feeding a Multiply, which segmentation runs as one: two of them, or one and a scalar, another factor or itself; in either order."""
    choices = g.choices
    target = broadcast(g, g.operand(g.dtypes_of(ops.Multiply), lambda v: v.type.rank <= 3))
    shape = shape_of(target)
    if choices.chance(30):  # the pair
        kind = choices.pick(4)
        other = (
            target if kind == 1 else g.rank_0(target.dtype) if kind > 1 else g.typed(target.dtype, shape, None, target)
        )
    else:
        dims = tuple(sorted(choices.permutation(len(shape))[: choices.pick(len(shape) + 1)]))
        source = g.fresh(target.dtype, tuple(shape[d] for d in dims))
        other = g.apply(ops.BroadcastInDim(shape, dims), source)
    a, b = g.estimates[target.slot], g.estimates[other.slot]
    pair = (other, target) if choices.chance(40) else (target, other)
    g.apply(ops.Multiply(), *pair, estimate=Estimate(a.positive and b.positive, a.size + b.size))


def _is_turned(case: Case) -> bool:
    """Whether a broadcast changes the order of axes and nothing else."""
    types = case.program.slot_types
    return any(
        isinstance(ins.op, ops.BroadcastInDim)
        and ins.op.dims != tuple(range(types[ins.output_slots[0]].rank)) == tuple(sorted(ins.op.dims))
        for ins in case.program.instructions
    )


@motif(6, 2, _is_turned, ops.BroadcastInDim, ops.Add, ops.Multiply, ops.Constant)
def turned_broadcast(g: Growth) -> None:
    """A broadcast of equal extents that only moves axes, in a sum.

    Constants before and behind make the sum a segment of its own, and nothing else reads what is moved, so that it is fused.
    """
    rank = min(g.choices.choose((2, 2, 3)), g.max_rank)
    if rank < 2:
        return
    extent = min(g.fit((1 + EXTENTS(g.choices),) * rank))
    x = g.typed(g.dtype(g.dtypes_of(ops.Add)), (extent,) * rank)
    other, size, factor = g.fresh(x.dtype, shape_of(x)), g.estimates[x.slot], g.constant(x.dtype)
    turned = g.apply(ops.BroadcastInDim(shape_of(x), permutation(g, rank)), x, estimate=size)
    total = g.apply(ops.Add(), turned, other, estimate=size)
    g.apply(ops.Add(), g.apply(ops.Multiply(), total, factor, estimate=size), g.constant(x.dtype), estimate=size)


@motif(2, 2, "Transpose > Transpose | Reshape > Reshape")
def there_and_back(g: Growth) -> None:
    """Two layout changes in a row that may cancel: transposes, reshapes, one that changes nothing or only moves unit axes."""
    x = g.operand(frozenset(DType), lambda v: v.type.rank >= 2)
    shape = shape_of(x)
    if g.choices.chance(50):
        perm = permutation(g, len(shape))
        turned = g.apply(ops.Transpose(perm), x)
        inverse = tuple(int(i) for i in np.argsort(perm))
        g.apply(ops.Transpose(permutation(g, len(shape)) if g.choices.chance(40) else inverse), turned)
    else:
        by_name = g.config.dim_exprs and g.choices.chance(20)
        named = tuple(InputDim(0, axis) for axis in range(len(shape)))
        moved = g.apply(ops.Reshape(named if by_name else regroup(g, shape)), x)
        g.apply(ops.Reshape(regroup(g, shape_of(moved)) if g.choices.chance(40) else shape), moved)


@motif(2, 2, "BroadcastInDim > ReduceSum")
def reduced_broadcast(g: Growth) -> None:
    """A reduction over axes that a broadcast made."""
    x = g.operand(g.dtypes_of(ops.ReduceSum), lambda v: v.type.rank <= 3)
    reduce(g, ops.ReduceSum, broadcast(g, x))


def _reduces_nothing(case: Case) -> bool:
    """Whether numbers come of a reduction over no element."""
    types = case.program.slot_types
    return any(
        type(ins.op) in REDUCTIONS
        and 0 in types[ins.input_slots[0]].shape
        and 0 not in types[ins.output_slots[0]].shape
        for ins in case.program.instructions
    )


@motif(1, 1, _reduces_nothing, *REDUCTIONS, policy=STABLEHLO, name="reduction of nothing")
def reduction_of_nothing(g: Growth) -> None:
    """Over an axis without elements, by which the initial value is all that there is."""
    op: type[Any] = g.choices.choose(REDUCTIONS)
    dtypes = g.dtypes_of(op)
    if dtypes and g.policy.empty_reduction == "identity" and g.max_rank:
        shape = g.choices.choose(((0,), (2, 0), (0, 3), (2, 0, 3))[: 1 + 2 * (g.max_rank > 1) + (g.max_rank > 2)])
        axis = shape.index(0)
        g.show(op((axis,)), g.fresh(g.choices.choose(dtypes), shape))


#: What is summed where libraries share a sum among threads. Its elements are small integers, so that no partial sum is rounded.
_SHARED = (3, 512, 512)


@motif(
    2,
    0,
    lambda case: any(isinstance(i.op, ops.BroadcastInDim) and i.op.shape == _SHARED for i in case.program.instructions),
    ops.BroadcastInDim,
    ops.ReduceSum,
    name="sum in threads",
)
def sum_in_threads(g: Growth) -> None:
    """A sum over a broadcast of so many elements that several threads add."""
    dtypes = [d for d in g.dtypes_of(ops.ReduceSum) if d.is_float and d in ENGINE_DTYPES]
    if dtypes and g.max_rank >= len(_SHARED) and g.config.max_elements >= volume(_SHARED):
        x = g.fresh(g.choices.choose(dtypes), _SHARED[1:2], Recipe("simple", g.choices.integer(2)))
        g.show(ops.ReduceSum((0, 1, 2)), g.inner(ops.BroadcastInDim(_SHARED, (1,)), x))


@motif(1, 2, lambda case: "graph: repeated instruction" in of_program(case.program))
def repeated(g: Growth) -> None:
    """The last instruction once more, on the same operands: a common subexpression."""
    if g.last is not None:
        op, operands, estimate = g.last
        g.apply(op, *operands, estimate=estimate)
