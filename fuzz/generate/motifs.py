"""Sequences of ops that a pass of ours looks for, or that compilers like to rewrite; chance alone makes few of them.

A motif appends several instructions; it is used only where all of its ops may be and where there is room for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fuzz.generate.growth import EXTENTS, Growth, Hint, Shape, shape_of, volume
from fuzz.generate.ops.rows import admitted, broadcast, compare, contract, dtypes_of, permutation, reduce, regroup
from fuzz.generate.values.arrays import Recipe
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.extensions import linalg
from tenferro_ref.ops import (
    Abs,
    Add,
    BroadcastInDim,
    Compare,
    Conj,
    Constant,
    Convert,
    Divide,
    DotGeneral,
    EmbedDiag,
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
    ReduceSum,
    Reshape,
    Rsqrt,
    Select,
    Sqrt,
    Tanh,
    Transpose,
)
from tenferro_ref.program import Value


class Motif(NamedTuple):
    """A sequence of at most `size` instructions, adapters not counted, over the dtypes that all of `ops` admit."""

    ops: tuple[type[Op], ...]
    size: int
    weight: float
    grow: Callable[[Growth], object]

    def dtypes(self, given: tuple[DType, ...]) -> bool:
        """Whether it can be built with some of the given dtypes."""
        return all(admitted(op, given) for op in self.ops if op.same_dtype)


MOTIFS: dict[str, Motif] = {}


def _motif(size: int, weight: float, *ops: type[Op]) -> Callable[[Callable[[Growth], object]], None]:
    def add(grow: Callable[[Growth], object]) -> None:
        MOTIFS[grow.__name__] = Motif(ops, size, weight, grow)

    return add


def _factor(g: Growth, rank: int = 0) -> Value:
    """What can be contracted."""
    return g.operand(dtypes_of(g, DotGeneral), lambda v: v.type.rank >= rank)


def _inexact(g: Growth) -> Value:
    return g.operand([d for d in g.config.dtypes if d in INEXACT])


def _real_float(g: Growth, rank: int = 0) -> Value:
    return g.operand([d for d in g.config.dtypes if d.is_float], lambda v: v.type.rank >= rank)


# --- contractions (TransposeFolding, DotDimensionSorter, DotDecomposer) -----------------------------------------------


@_motif(3, 4, Transpose, DotGeneral)
def transposed_dot(g: Growth) -> None:
    """One or both operands of a dot are transposes: folded or, where axes would change order, left."""
    lhs = _factor(g, 2)
    turned = g.apply(Transpose(permutation(g, lhs.type.rank)), lhs)
    if g.genes.chance(40):
        rhs = g.operand((lhs.dtype,), lambda v: v.type.rank >= 2)
        contract(g, turned, g.apply(Transpose(permutation(g, rhs.type.rank)), rhs))
    else:
        contract(g, turned)


@_motif(3, 2, Transpose, Reshape, DotGeneral)
def transposed_reshaped_dot(g: Growth) -> None:
    """A Reshape between Transpose and dot, which must keep the transpose from folding."""
    x = _factor(g, 2)
    turned = g.apply(Transpose(permutation(g, x.type.rank)), x)
    contract(g, g.apply(Reshape(regroup(g, shape_of(turned))), turned))


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
    equal = g.genes.chance(35)  # equal extents hide a missing transpose from shapes: only values tell
    common = EXTENTS(g.genes)
    for letter in extent:
        extent[letter] = common if equal else EXTENTS(g.genes)
    if first is not None:
        extent.update(zip(lhs, shape_of(first), strict=True))
    while volume(list(extent.values())) > g.limit:
        worst = max((c for c in extent if first is None or c not in lhs), key=extent.__getitem__)
        if extent[worst] <= 1:
            return None
        extent[worst] = (extent[worst] + 1) // 2
    dtype = first.dtype if first is not None else g.dtype(dtypes_of(g, DotGeneral))
    x = first if first is not None else g.typed(dtype, tuple(extent[c] for c in lhs))
    y = g.typed(dtype, tuple(extent[c] for c in rhs))
    paired = [c for c in lhs if c in rhs]
    contracted, batch = [c for c in paired if c in "kl"], [c for c in paired if c in "ab"]
    op = DotGeneral(
        tuple(map(lhs.index, contracted)), tuple(map(rhs.index, contracted)),
        tuple(map(lhs.index, batch)), tuple(map(rhs.index, batch)),
    )  # fmt: skip
    a, b = g.hints[x.slot], g.hints[y.slot]
    return g.apply(op, x, y, hint=Hint(a.positive and b.positive, a.size + b.size + 3))


@_motif(1, 4, DotGeneral)
def known_dot(g: Growth) -> None:
    """One of the usual contractions: canonical, batch leading or trailing, several contracted axes."""
    lhs, rhs = g.genes.choose(DOTS).split(",")
    if dot_of(g, lhs, rhs) is None:
        contract(g, _factor(g))


@_motif(2, 2, DotGeneral)
def chained_dots(g: Growth) -> None:
    """The result of a batched dot, batch last, is contracted again with a batch that leads."""
    first = dot_of(g, *g.genes.choose((("bmpk", "bkn"), ("bmk", "bkn"), ("mkb", "knb"), ("bmk", "knb"))))
    if first is None:
        contract(g, _factor(g))
    elif dot_of(g, "mpkb" if first.type.rank == 4 else "mkb", "bkn", first) is None:
        contract(g, first)


# --- structure --------------------------------------------------------------------------------------------------------


@_motif(3, 5, BroadcastInDim, Multiply)
def broadcast_product(g: Growth) -> None:
    """Broadcasts feeding a Multiply, which segmentation runs as one: two or one, in or out of order."""
    genes = g.genes
    target = broadcast(g, g.operand(dtypes_of(g, Multiply), lambda v: v.type.rank <= 3))
    shape = shape_of(target)
    if genes.chance(30):  # the pair
        other = target if genes.chance(30) else g.typed(target.dtype, shape, None, target)
    else:
        dims = tuple(sorted(genes.permutation(len(shape))[: genes.pick(len(shape) + 1)]))
        source = g.fresh(target.dtype, tuple(shape[d] for d in dims))
        other = g.apply(BroadcastInDim(shape, dims), source)
    a, b = g.hints[target.slot], g.hints[other.slot]
    pair = (other, target) if genes.chance(25) else (target, other)
    g.apply(Multiply(), *pair, hint=Hint(a.positive and b.positive, a.size + b.size))


@_motif(2, 2, Transpose, Reshape)
def there_and_back(g: Growth) -> None:
    """Two layout changes in a row that may cancel: transposes, reshapes, a reshape that only moves unit axes."""
    x = g.operand(frozenset(DType), lambda v: v.type.rank >= 2)
    shape = shape_of(x)
    if g.genes.chance(50):
        perm = permutation(g, len(shape))
        turned = g.apply(Transpose(perm), x)
        inverse = tuple(int(i) for i in np.argsort(perm))
        g.apply(Transpose(permutation(g, len(shape)) if g.genes.chance(40) else inverse), turned)
    else:
        moved = g.apply(Reshape(regroup(g, shape)), x)
        g.apply(Reshape(regroup(g, shape_of(moved)) if g.genes.chance(40) else shape), moved)


@_motif(2, 2, BroadcastInDim, ReduceSum)
def reduced_broadcast(g: Growth) -> None:
    """A reduction over axes that a broadcast made."""
    x = g.operand(dtypes_of(g, ReduceSum), lambda v: v.type.rank <= 3)
    reduce(g, ReduceSum, broadcast(g, x))


@_motif(1, 2)
def repeated(g: Growth) -> None:
    """The last instruction once more, on the same operands: a common subexpression."""
    if g.last is not None:
        op, operands, hint = g.last
        g.apply(op, *operands, hint=hint)


# --- decompositions ---------------------------------------------------------------------------------------------------

#: Ops with the operands that they take beside a matrix; those that StableHLO has come first and more often.
_LINALG: tuple[tuple[str, bool], ...] = (
    ("Cholesky", False), ("TriangularSolve", True), ("Cholesky", False), ("TriangularSolve", True), ("Solve", True),
    ("Qr", False), ("Svd", False), ("SvdVals", False), ("Eigh", False), ("EighVals", False), ("Lu", False),
)  # fmt: skip


@_motif(7, 1.5, Extension, DotGeneral, Conj, Add, EmbedDiag, BroadcastInDim, Constant)
def decomposed(g: Growth) -> None:
    """A matrix that can be factored whatever the draw: X X^H + n I, and what is solved with it."""
    genes = g.genes
    if g.max_rank < 3:
        return
    dtype = g.dtype([d for d in g.config.dtypes if d.is_float or d.is_complex])
    n, batch = 1 + genes.pick(4), genes.choose(((), (), (2,), (1,)))
    x = g.fresh(dtype, (n, 1 + genes.pick(4), *batch), Recipe("unit", genes.integer(2)))
    axes = tuple(range(2, 2 + len(batch)))
    gram = g.apply(DotGeneral((1,), (1,), axes, axes), x, g.apply(Conj(), x) if dtype.is_complex else x)
    ones = g.apply(BroadcastInDim((n, *batch), ()), g.apply(Constant.of(n, dtype), hint=Hint(True, 2)))
    matrix = g.apply(Add(), gram, g.apply(EmbedDiag(0, 1), ones), hint=Hint(False, 4))
    name, solves = genes.choose(_LINALG[:4] if g.portable else _LINALG)
    config = {"lower": genes.chance(50), "left_side": True} if name == "TriangularSolve" else {}
    rest = [g.fresh(dtype, (n, 1 + genes.pick(3), *batch), Recipe("ordinary", genes.integer(2)))] if solves else []
    g.apply_many(Extension.of(linalg.FAMILY, name, config), matrix, *rest, hint=Hint(False, 4))


# --- what compilers rewrite -------------------------------------------------------------------------------------------

#: One after the other, beginning with x; a binary op takes x and what there is so far.
_REWRITTEN: tuple[tuple[type[Op], ...], ...] = (
    (Exp, Log), (Log, Exp), (Multiply, Sqrt), (Pow, Log), (Sqrt, Divide), (Rsqrt, Multiply), (Negate, Negate),
    (Negate, Add), (Add, Negate), (Divide,), (Expm1, Log1p), (Log1p, Expm1), (Abs, Abs), (Negate, Abs), (Abs, Sqrt),
    (Exp, Divide), (Exp, Multiply), (Negate, Maximum), (Abs, Minimum), (Sqrt, Multiply), (Log, Multiply, Exp),
    (Multiply, Add), (Multiply, Multiply), (Add, Divide), (Exp, Exp), (Tanh, Multiply, Negate), (Sqrt, Pow),
)  # fmt: skip
_BINARY = frozenset({Add, Multiply, Divide, Pow, Maximum, Minimum})


@_motif(3, 5, Exp, Log, Multiply, Sqrt, Pow, Divide, Rsqrt, Negate, Add, Expm1, Log1p, Abs, Maximum, Minimum, Tanh)
def rewritten(g: Growth) -> None:
    """Log of Exp, Sqrt of a square, a value over its root, ..."""
    chain = g.genes.choose(_REWRITTEN)
    if not any(d.is_float for d in g.config.dtypes):  # complex numbers alone
        chain = (Exp, Log)
    # complex numbers have no order, and their modulus is real
    x = value = _real_float(g) if {Maximum, Minimum, Abs} & {*chain} else _inexact(g)
    for kind in chain:
        value = g.apply(kind(), x, value) if kind in _BINARY else g.apply(kind(), value)


@_motif(2, 4, Constant, Add, Multiply, Divide, Pow)
def with_constant(g: Growth) -> None:
    """x + 0, x * 0, x / c, x ** 2, ... with the constant on either side, and perhaps broadcast."""
    x = _inexact(g)
    number = g.genes.choose((0.0, 1.0, -0.0, -1.0, 2.0, 0.5, 3.0, -2.0, 1e-40, np.inf, np.nan, 7.0, 0.1, 1e30))
    constant = g.apply(Constant.of(number, x.dtype), hint=Hint(number > 0, 3))
    other = g.adapt(constant, shape_of(x)) if g.genes.chance(40) and g.has(BroadcastInDim) else constant
    other = constant if other is None else other
    operands = (x, other) if not g.genes.chance(30) else (other, x)
    g.apply(g.genes.choose((Add, Multiply, Divide, Pow))(), *operands, hint=g.hints[x.slot])


@_motif(5, 2, Constant, Add, Multiply, BroadcastInDim)
def constants_only(g: Growth) -> None:
    """A subgraph of constants, which compilers fold: one more implementation of the ops."""
    a, b = g.constant(g.main), g.constant(g.main)
    op = g.genes.choose((Add, Multiply))
    scalar = g.apply(op(), a, b)
    if g.max_rank and g.genes.chance(60):
        wide = g.apply(BroadcastInDim(g.fit((g.extent(),)), ()), scalar)
        g.apply(g.genes.choose((Add, Multiply))(), wide, a)


@_motif(2, 3, Compare, Select)
def masked(g: Growth) -> None:
    """A choice by comparing the very values that are chosen among: a maximum, a clamp, a NaN filter."""
    ordered = dtypes_of(g, Maximum)
    if not ordered:
        return
    x = g.operand(ordered)
    y = g.like(x)
    picked = (x, y) if g.genes.chance(60) else (y, x)
    g.apply(Select(), compare(g, x, x if g.genes.chance(15) else y), *picked)


@_motif(2, 2, Convert)
def narrowed(g: Growth) -> None:
    """Converted and converted back: F64 to F32 rounds, I64 to I32 wraps, float to integer truncates."""
    x = g.operand(g.config.dtypes)
    g.convert(g.convert(x, g.genes.choose(g.config.dtypes)), x.dtype)


@_motif(6, 2, ReduceMax, BroadcastInDim, Negate, Add, Exp, ReduceSum)
def softmax(g: Growth) -> None:
    """exp(x - max x), normalised as far as there is room: what users write."""
    if not any(d.is_float for d in g.config.dtypes):
        return
    x = _real_float(g, 1)
    shape = shape_of(x)
    if not shape or 0 in shape:
        return
    axis = g.genes.pick(len(shape))
    kept: Shape = tuple(a for a in range(len(shape)) if a != axis)
    top = g.apply(BroadcastInDim(shape, kept), g.apply(ReduceMax((axis,)), x))
    e = g.apply(Exp(), g.apply(Add(), x, g.apply(Negate(), top)), hint=Hint(True, 0))
    g.apply(ReduceSum((axis,)), e, hint=Hint(True, 6))
