"""Motifs: sequences of ops that a pass of ours looks for, or that compilers like to rewrite; chance alone makes few of them.

A motif appends several instructions; it is used only if the config has all of its ops, and if there is room for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fuzz.generate.config import Config, admitted
from fuzz.generate.growth import EXTENTS, Estimate, Growth, Shape, shape_of, volume
from fuzz.generate.ops.contractions import contract, reduce
from fuzz.generate.ops.elementwise import compare
from fuzz.generate.ops.structural import broadcast, permutation, regroup
from fuzz.generate.values.recipes import Recipe
from tenferro_ref import ops
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.extensions import linalg
from tenferro_ref.ops import ARITHMETIC, BY_NAME, Op
from tenferro_ref.program import Value


class Motif(NamedTuple):
    """A sequence of at most `size` instructions, adapters not counted, over the dtypes that all of `ops` admit."""

    ops: tuple[type[Op], ...]
    size: int
    weight: float
    grow: Callable[[Growth], object]

    def usable(self, config: Config) -> bool:
        """Whether programs of a config can have it."""
        return all(op in config.ops and (admitted(op, config.dtypes) or not op.same_dtype) for op in self.ops)


MOTIFS: dict[str, Motif] = {}


def _motif(size: int, weight: float, *ops: type[Op]) -> Callable[[Callable[[Growth], object]], None]:
    def add(grow: Callable[[Growth], object]) -> None:
        MOTIFS[grow.__name__] = Motif(ops, size, weight, grow)

    return add


def _factor(g: Growth, rank: int = 0) -> Value:
    """An operand of a contraction."""
    return g.operand(g.dtypes_of(ops.DotGeneral), lambda v: v.type.rank >= rank)


def _inexact(g: Growth) -> Value:
    return g.operand([d for d in g.config.dtypes if d in INEXACT])


def _real_float(g: Growth, rank: int = 0) -> Value:
    return g.operand([d for d in g.config.dtypes if d.is_float], lambda v: v.type.rank >= rank)


# --- contractions (TransposeFolding, DotDimensionSorter, DotDecomposer) -----------------------------------------------


@_motif(3, 4, ops.Transpose, ops.DotGeneral)
def transposed_dot(g: Growth) -> None:
    """One or both operands of a dot are transposes: folded or, where axes would change order, left."""
    lhs = _factor(g, 2)
    turned = g.apply(ops.Transpose(permutation(g, lhs.type.rank)), lhs)
    if g.choices.chance(40):
        rhs = g.operand((lhs.dtype,), lambda v: v.type.rank >= 2)
        contract(g, turned, g.apply(ops.Transpose(permutation(g, rhs.type.rank)), rhs))
    else:
        contract(g, turned)


@_motif(3, 2, ops.Transpose, ops.Reshape, ops.DotGeneral)
def transposed_reshaped_dot(g: Growth) -> None:
    """A Reshape between Transpose and dot, which must keep the transpose from folding."""
    x = _factor(g, 2)
    turned = g.apply(ops.Transpose(permutation(g, x.type.rank)), x)
    contract(g, g.apply(ops.Reshape(regroup(g, shape_of(turned))), turned))


#: Axes of both operands: a, b are batch, k, l contracted, the others free.
DOTS = (
    "mk,kn", "km,kn", "mk,nk", "bmk,bkn", "mkb,knb", "mkl,lkn", "mkl,kln", "mpk,kn", "abmkl,abkln", "bmpk,bkn",
    "mk,knq", "abm,ban", "kmb,bnk", "bmk,nkb", "m,n", "bm,bn", "k,k", "bk,bk", "mb,nb", "lkm,kln", "amkb,bkna",
)  # fmt: skip


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
    x = first if first is not None else g.typed(dtype, tuple(extent[c] for c in lhs))
    y = g.typed(dtype, tuple(extent[c] for c in rhs))
    paired = [c for c in lhs if c in rhs]
    contracted, batch = [c for c in paired if c in "kl"], [c for c in paired if c in "ab"]
    op = ops.DotGeneral(
        tuple(map(lhs.index, contracted)), tuple(map(rhs.index, contracted)),
        tuple(map(lhs.index, batch)), tuple(map(rhs.index, batch)),
    )  # fmt: skip
    a, b = g.estimates[x.slot], g.estimates[y.slot]
    return g.apply(op, x, y, estimate=Estimate(a.positive and b.positive, a.size + b.size + 3))


@_motif(1, 4, ops.DotGeneral)
def known_dot(g: Growth) -> None:
    """One of the usual contractions: canonical, batch leading or trailing, several contracted axes."""
    lhs, rhs = g.choices.choose(DOTS).split(",")
    if dot_of(g, lhs, rhs) is None:
        contract(g, _factor(g))


@_motif(2, 2, ops.DotGeneral)
def chained_dots(g: Growth) -> None:
    """The result of a batched dot, batch last, is contracted again with a batch that leads."""
    first = dot_of(g, *g.choices.choose((("bmpk", "bkn"), ("bmk", "bkn"), ("mkb", "knb"), ("bmk", "knb"))))
    if first is None:
        contract(g, _factor(g))
    elif dot_of(g, "mpkb" if first.type.rank == 4 else "mkb", "bkn", first) is None:
        contract(g, first)


# --- structure --------------------------------------------------------------------------------------------------------


@_motif(3, 5, ops.BroadcastInDim, ops.Multiply)
def broadcast_product(g: Growth) -> None:
    """Broadcasts feeding a Multiply, which segmentation runs as one: two or one, in or out of order."""
    choices = g.choices
    target = broadcast(g, g.operand(g.dtypes_of(ops.Multiply), lambda v: v.type.rank <= 3))
    shape = shape_of(target)
    if choices.chance(30):  # the pair
        other = target if choices.chance(30) else g.typed(target.dtype, shape, None, target)
    else:
        dims = tuple(sorted(choices.permutation(len(shape))[: choices.pick(len(shape) + 1)]))
        source = g.fresh(target.dtype, tuple(shape[d] for d in dims))
        other = g.apply(ops.BroadcastInDim(shape, dims), source)
    a, b = g.estimates[target.slot], g.estimates[other.slot]
    pair = (other, target) if choices.chance(25) else (target, other)
    g.apply(ops.Multiply(), *pair, estimate=Estimate(a.positive and b.positive, a.size + b.size))


@_motif(2, 2, ops.Transpose, ops.Reshape)
def there_and_back(g: Growth) -> None:
    """Two layout changes in a row that may cancel: transposes, reshapes, a reshape that only moves unit axes."""
    x = g.operand(frozenset(DType), lambda v: v.type.rank >= 2)
    shape = shape_of(x)
    if g.choices.chance(50):
        perm = permutation(g, len(shape))
        turned = g.apply(ops.Transpose(perm), x)
        inverse = tuple(int(i) for i in np.argsort(perm))
        g.apply(ops.Transpose(permutation(g, len(shape)) if g.choices.chance(40) else inverse), turned)
    else:
        moved = g.apply(ops.Reshape(regroup(g, shape)), x)
        g.apply(ops.Reshape(regroup(g, shape_of(moved)) if g.choices.chance(40) else shape), moved)


@_motif(2, 2, ops.BroadcastInDim, ops.ReduceSum)
def reduced_broadcast(g: Growth) -> None:
    """A reduction over axes that a broadcast made."""
    x = g.operand(g.dtypes_of(ops.ReduceSum), lambda v: v.type.rank <= 3)
    reduce(g, ops.ReduceSum, broadcast(g, x))


@_motif(1, 2)
def repeated(g: Growth) -> None:
    """The last instruction once more, on the same operands: a common subexpression."""
    if g.last is not None:
        op, operands, estimate = g.last
        g.apply(op, *operands, estimate=estimate)


# --- decompositions ---------------------------------------------------------------------------------------------------

#: Ops with the operands that they take beside a matrix; those that StableHLO has come first and more often.
_LINALG: tuple[tuple[str, bool], ...] = (
    ("Cholesky", False), ("TriangularSolve", True), ("Cholesky", False), ("TriangularSolve", True), ("Solve", True),
    ("Qr", False), ("Svd", False), ("SvdVals", False), ("Eigh", False), ("EighVals", False), ("Lu", False),
)  # fmt: skip


@_motif(7, 1.5, ops.Extension, ops.DotGeneral, ops.Conj, ops.Add, ops.EmbedDiag, ops.BroadcastInDim, ops.Constant)
def decomposed(g: Growth) -> None:
    """A matrix that can be factored whatever the draw: X X^H + n I, and what is solved with it."""
    choices = g.choices
    factored = [d for d in g.config.dtypes if d in INEXACT]
    if g.max_rank < 3 or not factored:
        return
    dtype = g.dtype(factored)
    n, batch = 1 + choices.pick(4), choices.choose(((), (), (2,), (1,)))
    x = g.fresh(dtype, (n, 1 + choices.pick(4), *batch), Recipe("unit", choices.integer(2)))
    axes = tuple(range(2, 2 + len(batch)))
    gram = g.apply(ops.DotGeneral((1,), (1,), axes, axes), x, g.apply(ops.Conj(), x) if dtype.is_complex else x)
    ones = g.apply(ops.BroadcastInDim((n, *batch), ()), g.apply(ops.Constant.of(n, dtype), estimate=Estimate(True, 2)))
    matrix = g.apply(ops.Add(), gram, g.apply(ops.EmbedDiag(0, 1), ones), estimate=Estimate(False, 4))
    name, solves = choices.choose(_LINALG[:4] if g.portable else _LINALG)
    config = {"lower": choices.chance(50), "left_side": True} if name == "TriangularSolve" else {}
    rest = [g.fresh(dtype, (n, 1 + choices.pick(3), *batch), Recipe("ordinary", choices.integer(2)))] if solves else []
    g.apply_many(ops.Extension.of(linalg.FAMILY, name, config), matrix, *rest, estimate=Estimate(False, 4))


# --- what compilers rewrite -------------------------------------------------------------------------------------------

#: One after the other, beginning with x; a binary op takes x and what there is so far.
_REWRITTEN: tuple[tuple[type[Op], ...], ...] = tuple(
    tuple(BY_NAME[name] for name in chain.split())
    for chain in (
        "Exp Log", "Log Exp", "Multiply Sqrt", "Pow Log", "Sqrt Divide", "Rsqrt Multiply", "Negate Negate", "Negate Add",
        "Add Negate", "Divide", "Expm1 Log1p", "Log1p Expm1", "Abs Abs", "Negate Abs", "Abs Sqrt", "Exp Divide",
        "Exp Multiply", "Negate Maximum", "Abs Minimum", "Sqrt Multiply", "Log Multiply Exp", "Multiply Add",
        "Multiply Multiply", "Add Divide", "Exp Exp", "Tanh Multiply Negate", "Sqrt Pow",
        "Subtract", "Negate Subtract", "Multiply Subtract", "Add Subtract", "Subtract Subtract",
    )
)  # fmt: skip


@_motif(3, 5, *(op for chain in _REWRITTEN for op in chain))
def rewritten(g: Growth) -> None:
    """Log of Exp, Sqrt of a square, a value over its root, ..."""
    chain = g.choices.choose(_REWRITTEN)
    if not any(d.is_float for d in g.config.dtypes):  # complex numbers alone
        chain = (ops.Exp, ops.Log)
    # complex numbers have no order, and their modulus is real
    x = value = _real_float(g) if {ops.Maximum, ops.Minimum, ops.Abs} & {*chain} else _inexact(g)
    for op in chain:
        value = g.apply(op(), x, value) if op.arity == 2 else g.apply(op(), value)


@_motif(2, 4, ops.Constant, *ARITHMETIC)
def with_constant(g: Growth) -> None:
    """x + 0, x * 0, x / c, x ** 2, ... with the constant on either side, and perhaps broadcast."""
    x = _inexact(g)
    number = g.choices.choose((0.0, 1.0, -0.0, -1.0, 2.0, 0.5, 3.0, -2.0, 1e-40, np.inf, np.nan, 7.0, 0.1, 1e30))
    constant = g.apply(ops.Constant.of(number, x.dtype), estimate=Estimate(number > 0, 3))
    other = g.adapt(constant, shape_of(x)) if g.choices.chance(40) and g.has(ops.BroadcastInDim) else constant
    other = constant if other is None else other
    operands = (x, other) if not g.choices.chance(30) else (other, x)
    g.apply(g.choices.choose(ARITHMETIC)(), *operands, estimate=g.estimates[x.slot])


@_motif(5, 2, ops.Constant, ops.Add, ops.Multiply, ops.BroadcastInDim)
def constants_only(g: Growth) -> None:
    """A subgraph of constants, which compilers fold: one more implementation of the"""
    a, b = g.constant(g.main), g.constant(g.main)
    op = g.choices.choose((ops.Add, ops.Multiply))
    scalar = g.apply(op(), a, b)
    if g.max_rank and g.choices.chance(60):
        wide = g.apply(ops.BroadcastInDim(g.fit((g.extent(),)), ()), scalar)
        g.apply(g.choices.choose((ops.Add, ops.Multiply))(), wide, a)


@_motif(2, 3, ops.Compare, ops.Select)
def masked(g: Growth) -> None:
    """A choice by comparing the very values that are chosen among: a maximum, a clamp, a NaN filter."""
    ordered = g.dtypes_of(ops.Maximum)
    if not ordered:
        return
    x = g.operand(ordered)
    y = g.like(x)
    picked = (x, y) if g.choices.chance(60) else (y, x)
    g.apply(ops.Select(), compare(g, x, x if g.choices.chance(15) else y), *picked)


@_motif(2, 2, ops.Convert)
def narrowed(g: Growth) -> None:
    """Converted and converted back: F64 to F32 rounds, I64 to I32 wraps, float to integer truncates."""
    x = g.operand(g.config.dtypes)
    g.convert(g.convert(x, g.choices.choose(g.config.dtypes)), x.dtype)


@_motif(6, 2, ops.ReduceMax, ops.BroadcastInDim, ops.Negate, ops.Add, ops.Exp, ops.ReduceSum)
def softmax(g: Growth) -> None:
    """exp(x - max x), normalised as far as there is room: what users write."""
    if not any(d.is_float for d in g.config.dtypes):
        return
    x = _real_float(g, 1)
    shape = shape_of(x)
    if not shape or 0 in shape:
        return
    axis = g.choices.pick(len(shape))
    kept: Shape = tuple(a for a in range(len(shape)) if a != axis)
    top = g.apply(ops.BroadcastInDim(shape, kept), g.apply(ops.ReduceMax((axis,)), x))
    e = g.apply(ops.Exp(), g.apply(ops.Add(), x, g.apply(ops.Negate(), top)), estimate=Estimate(True, 0))
    g.apply(ops.ReduceSum((axis,)), e, estimate=Estimate(True, 6))
