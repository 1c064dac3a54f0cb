"""`STRATEGY`: for each op, how an instruction of it joins a growing program.

A row finds or makes operands, decodes attributes, and appends the instruction. Rows of ops that index, cut and pad are in
`indexing`; sequences of ops that deserve more than chance (what passes look for, what compilers rewrite) in `motifs`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log2, prod
from operator import itemgetter
from typing import Any, TypeAlias

from fuzz.generate.growth import Growth, Hint, Shape, shape_of, volume
from tenferro_ref import ops
from tenferro_ref.dims import DimExpr, DimOp, InputDim
from tenferro_ref.dtype import ANY, NUMERIC, DType
from tenferro_ref.ops import ENGINE, CompareDir, Op, Policy
from tenferro_ref.program import Value
from tenferro_ref.table import Table

#: Appends one instruction of the op (its adapters before it) and returns the result.
Row: TypeAlias = Callable[[Growth, type[Any]], Value]
STRATEGY: Table[Row] = Table("generator")

_INTEGER_FAULTS = (ops.Divide, ops.Pow)


def admitted(op: type[Any], dtypes: tuple[DType, ...], policy: Policy = ENGINE) -> tuple[DType, ...]:
    """Those of `dtypes` that the generator gives to the data operands of `op`."""
    known = NUMERIC if op is ops.Extension else op.dtypes
    if policy.dtypes == "stablehlo":
        known |= op.stablehlo_dtypes
    faults = op in _INTEGER_FAULTS and policy.integer_faults == "error"
    return tuple([d for d in dtypes if d in known and not (faults and d.is_int)])


def dtypes_of(g: Growth, op: type[Op]) -> tuple[DType, ...]:
    """The dtypes that `op` has in this program."""
    return admitted(op, g.config.dtypes, g.policy)


def _data(g: Growth, op: type[Op], *args: Any, **kwargs: Any) -> Value:
    return g.operand(dtypes_of(g, op), *args, **kwargs)


def _calm(bound: float) -> Callable[[Hint], bool]:
    return lambda hint: hint.size <= bound


def _positive(hint: Hint) -> bool:
    return hint.positive


# --- elementwise ------------------------------------------------------------------------------------------------------

#: What an analytic op wants of its operand in ordinary programs, and what it makes of it.
_ANALYTIC: dict[type[Op], tuple[Callable[[Hint], bool], Callable[[Hint], Hint]]] = {
    ops.Exp: (_calm(6), lambda h: Hint(True, 1.45 * 2 ** min(h.size, 12))),
    ops.Expm1: (_calm(6), lambda h: Hint(h.positive, 1.45 * 2 ** min(h.size, 12))),
    ops.Log: (_positive, lambda h: Hint(False, 7)),
    ops.Log1p: (_positive, lambda h: Hint(h.positive, 7)),
    ops.Sin: (_calm(20), lambda h: Hint(False, 0)),
    ops.Cos: (_calm(20), lambda h: Hint(False, 0)),
    ops.Tanh: (_calm(inf), lambda h: Hint(h.positive, 0)),
    ops.Sqrt: (_positive, lambda h: Hint(True, h.size / 2)),
    ops.Rsqrt: (_positive, lambda h: Hint(True, 7)),
    ops.Conj: (_calm(inf), lambda h: h),
    ops.Negate: (_calm(inf), lambda h: Hint(False, h.size)),
    ops.Abs: (_calm(inf), lambda h: Hint(True, h.size)),
    ops.Sign: (_calm(inf), lambda h: Hint(h.positive, 0)),
}


@STRATEGY.row(*_ANALYTIC)
def _(g: Growth, op: type[Any]) -> Value:
    prefer, result = _ANALYTIC[op]
    x = _data(g, op, prefer=prefer)
    ill = prefer is _positive and g.regime == "ordinary" and not (g.hints[x.slot].positive or x.dtype.is_complex)
    if ill and g.has(ops.Abs) and g.genes.chance(60):
        x = g.apply(ops.Abs(), x, hint=Hint(True, g.hints[x.slot].size))
    return g.apply(op(), x, hint=result(g.hints[x.slot]))


@STRATEGY.row(ops.Add, ops.Multiply, ops.Divide, ops.Pow)
def _(g: Growth, op: type[Any]) -> Value:
    prefer = _calm(3 if op is ops.Pow else 60)
    x = _data(g, op, prefer=(lambda h: h.positive and h.size <= 6) if op is ops.Pow else prefer)
    mode = g.genes.pick(8)
    y = g.like(x, prefer) if mode < 5 else g.rank_0(x.dtype)
    if mode == 7:
        x, y = y, x
    a, b = g.hints[x.slot], g.hints[y.slot]
    size = (
        max(a.size, b.size) + 1
        if op is ops.Add
        else 4 * a.size + 4
        if op is ops.Pow
        else a.size + b.size + 4 * (op is ops.Divide)
    )
    return g.apply(op(), x, y, hint=Hint((a.positive and b.positive) or (op is ops.Multiply and x is y), size))


@STRATEGY.row(ops.Maximum, ops.Minimum)
def _(g: Growth, op: type[Any]) -> Value:
    x = _data(g, op)
    y = g.like(x)
    a, b = g.hints[x.slot], g.hints[y.slot]
    return g.apply(op(), x, y, hint=Hint(a.positive and b.positive, max(a.size, b.size)))


@STRATEGY.row(ops.Clamp)
def _(g: Growth, op: type[Any]) -> Value:
    x = _data(g, op)
    lower = g.like(x)
    return g.apply(op(), x, lower, g.like(x))


_DIRECTIONS = tuple(CompareDir)


def compare(g: Growth, x: Value, y: Value) -> Value:
    """Compare two values of one type in any direction that their dtype has."""
    unordered = x.dtype.is_complex or x.dtype is DType.Bool
    direction = CompareDir.Eq if unordered else g.genes.choose(_DIRECTIONS)
    return g.apply(ops.Compare(direction), x, y, hint=Hint(True, 0))


@STRATEGY.row(ops.Compare)
def _(g: Growth, op: type[Any]) -> Value:
    kinds = [tuple(d for d in g.config.dtypes if (d is DType.Bool) is bools) for bools in (False, True)]
    x = g.operand(kinds[g.genes.chance(8)] or g.config.dtypes)
    return compare(g, x, g.like(x))


def predicate(g: Growth, x: Value, y: Value) -> Value:
    """A Bool of the shape of `x`, made by comparing `x` with `y` where the program has none."""
    shape = shape_of(x)
    known = any(v.dtype is DType.Bool and v.shape == shape for v in g.pool)
    if not known and g.has(ops.Compare) and g.genes.pick(4) < 3:
        return compare(g, x, y)
    return g.typed(DType.Bool, shape)


@STRATEGY.row(ops.Select)
def _(g: Growth, op: type[Any]) -> Value:
    x = g.operand(g.config.dtypes)
    y = g.like(x)
    return g.apply(op(), predicate(g, x, y), x, y)


@STRATEGY.row(ops.Constant)
def _(g: Growth, op: type[Any]) -> Value:
    return g.constant(g.dtype(g.config.dtypes))


@STRATEGY.row(ops.Convert)
def _(g: Growth, op: type[Any]) -> Value:
    return g.convert(g.operand(ANY), g.genes.choose(g.config.dtypes))


# --- structural -------------------------------------------------------------------------------------------------------


def permutation(g: Growth, rank: int) -> tuple[int, ...]:
    """Any permutation; the identity, being dull, gets a second chance to be the reversal."""
    perm = g.genes.permutation(rank)
    return perm[::-1] if perm == tuple(range(rank)) and not g.genes.chance(10) else perm


@STRATEGY.row(ops.Transpose)
def _(g: Growth, op: type[Any]) -> Value:
    x = g.operand(ANY, (lambda v: v.type.rank >= 2) if not g.genes.chance(6) else None)
    return g.apply(op(permutation(g, x.type.rank)), x)


def _prime_factors(n: int) -> list[int]:
    factors, p = [], 2
    while n > 1:
        while n % p:
            p += 1 if p * p <= n else n - p
        factors.append(p)
        n //= p
    return factors


def regroup(g: Growth, shape: Shape) -> Shape:
    """Another shape of as many elements: axes flattened, merged, split, permuted, unit axes put in or left out."""
    genes, mode, rank = g.genes, g.genes.pick(10), len(shape)
    if g.max_rank == 0:
        return shape
    if mode == 0:
        return (prod(shape),)
    if mode <= 2 and rank >= 2:  # merge
        i = genes.pick(rank - 1)
        return (*shape[:i], shape[i] * shape[i + 1], *shape[i + 2 :])
    if mode <= 5 and 0 < rank < g.max_rank:  # split
        i = genes.pick(rank)
        factors = _prime_factors(shape[i])
        first = prod(factors[: genes.pick(len(factors) + 1)])
        return (*shape[:i], first, shape[i] // first, *shape[i + 1 :])
    if mode == 6 and rank < g.max_rank:
        i = genes.pick(rank + 1)
        return (*shape[:i], 1, *shape[i:])
    if mode == 7 and 1 in shape:
        return tuple(e for e in shape if e != 1)
    if mode == 8:
        return tuple(shape[p] for p in permutation(g, rank))
    extents = [1] * min(1 + genes.pick(4), g.max_rank)
    for factor in _prime_factors(prod(shape)):  # none for an empty tensor
        extents[genes.pick(len(extents))] *= factor
    return tuple(extents) if prod(shape) else shape


def symbolic(g: Growth, shape: Shape, x: Value) -> tuple[tuple[DimExpr, ...], tuple[Value, ...]]:
    """`shape` with some extents read from `x` or from a second operand; sometimes through arithmetic."""
    if not (g.config.dim_exprs and g.genes.chance(60 if g.symbols else 8)):
        return shape, ()
    providers = (x, g.pool[-1 - g.genes.near(len(g.pool))]) if g.genes.chance(50) else (x,)
    known = [(InputDim(i, axis), e) for i, v in enumerate(providers) for axis, e in enumerate(shape_of(v))]
    return tuple(_expression(g, extent, known) for extent in shape), providers[1:]


def _expression(g: Growth, extent: int, known: list[tuple[InputDim, int]]) -> DimExpr:
    equal = [dim for dim, e in known if e == extent]
    if equal and not g.genes.chance(30):
        return g.genes.choose(equal)
    if not known:
        return extent
    dim, e = g.genes.choose(known)
    mode = g.genes.pick(5)
    if mode == 0 and e and extent % e == 0:
        return DimOp("mul", dim, extent // e)
    if mode == 1 and extent and e % extent == 0 and e:
        return DimOp("floordiv", dim, e // extent)
    if mode == 2:
        return DimOp("max", extent, DimOp("min", dim, extent))
    return DimOp("add", dim, extent - e) if e <= extent else DimOp("sub", dim, e - extent)


@STRATEGY.row(ops.Reshape)
def _(g: Growth, op: type[Any]) -> Value:
    x = g.operand(ANY, (lambda v: v.type.rank >= 1) if not g.genes.chance(6) else None)
    shape, providers = symbolic(g, regroup(g, shape_of(x)), x)
    return g.apply(op(shape), x, *providers, hint=g.hints[x.slot])


def broadcast(g: Growth, x: Value) -> Value:
    """Broadcast `x`: new axes anywhere, unit axes widened, axes in any order."""
    genes, given = g.genes, shape_of(x)
    rank = min(len(given) + genes.choose((1, 1, 2, 0)), max(g.max_rank, len(given)))
    places = genes.permutation(rank)[: len(given)]
    dims = places if genes.chance(30) else tuple(sorted(places))
    shape = [0] * rank
    free = []
    for axis in range(rank):
        kept = given[dims.index(axis)] if axis in dims else 1
        if axis not in dims or (kept == 1 and genes.chance(60)):
            free.append(axis)
            shape[axis] = g.extent()
        else:
            shape[axis] = kept
    for axis in free:  # the first ones give way
        if volume(shape) > g.limit:
            shape[axis] = 1
    exprs, providers = symbolic(g, tuple(shape), x)
    return g.apply(ops.BroadcastInDim(exprs, dims), x, *providers, hint=g.hints[x.slot])


@STRATEGY.row(ops.BroadcastInDim)
def _(g: Growth, op: type[Any]) -> Value:
    return broadcast(g, g.operand(ANY, lambda v: v.type.rank <= g.max_rank))


# --- reductions and contractions --------------------------------------------------------------------------------------


def reduce(g: Growth, op: type[Any], x: Value) -> Value:
    """Reduce over one, some, all or (seldom) no axes, in any order; an axis without elements is kept if it must be."""
    genes, shape, empty = g.genes, shape_of(x), g.policy.empty_reduction == "identity"
    axes = tuple(a for a in genes.permutation(len(shape)) if shape[a] or empty)
    mode = genes.pick(16)
    if mode < 6:
        axes = axes[:1]
    elif mode < 10:
        axes = axes[: 1 + genes.pick(max(1, len(axes)))]
    elif mode == 15:
        axes = ()
    elements, hint = prod(shape[a] for a in axes), g.hints[x.slot]
    if not elements and op is not ops.ReduceSum:
        hint = Hint(False, inf)
    size = {ops.ReduceSum: hint.size + log2(max(1, elements)), ops.ReduceProd: hint.size * elements}.get(op, hint.size)
    return g.apply(op(axes), x, hint=Hint(hint.positive, size))


@STRATEGY.row(ops.ReduceSum, ops.ReduceProd, ops.ReduceMax, ops.ReduceMin)
def _(g: Growth, op: type[Any]) -> Value:
    dtypes = dtypes_of(g, op)
    x = g.operand(
        ANY if g.genes.chance(3) else dtypes, (lambda v: v.type.rank >= 1) if not g.genes.chance(6) else None, _calm(60)
    )
    if x.dtype not in dtypes:  # over no axis a reduction copies any dtype
        return g.apply(op(()), x)
    return reduce(g, op, x)


#: Multiplications that one contraction may cost.
_MAX_WORK = 2**18


def contract(g: Growth, lhs: Value, rhs: Value | None = None) -> Value:
    """A DotGeneral of `lhs` with `rhs` as far as their extents pair up, else with an operand made to fit."""
    genes, left = g.genes, shape_of(lhs)
    order = genes.permutation(len(left))
    roles = [genes.choose(("contract", "contract", "batch", "free")) for _ in order]
    if rhs is None and genes.pick(5) > 2:
        others = [v for v in reversed(g.pool) if v.dtype is lhs.dtype]
        rhs = others[genes.near(len(others))]
    pairs: dict[str, list[tuple[int, int]]] = {"contract": [], "batch": [], "free": []}
    if rhs is not None:
        right = shape_of(rhs)
        unused = list(range(len(right)))
        for axis, role in zip(order, roles, strict=True):
            fitting = [a for a in unused if right[a] == left[axis]]
            if role != "free" and fitting:
                pairs[role].append((axis, genes.choose(fitting)))
                unused.remove(pairs[role][-1][1])
        free = [left[a] for a in range(len(left)) if a not in {x for x, _ in pairs["contract"]}]
        free += [right[a] for a in unused]
        work = volume(left) * volume([right[a] for a in unused])
        if work > _MAX_WORK or volume(free) > g.limit or len(free) > g.max_rank:
            rhs, pairs = None, {"contract": [], "batch": [], "free": []}
    if rhs is None:
        taken = [(axis, role) for axis, role in zip(order, roles, strict=True) if role != "free"]
        own = [g.extent() for _ in range(min(genes.choose((1, 0, 1, 2)), g.max_rank - len(left)))]
        while max(own, default=1) > 1 and volume(left) * volume(own) > min(_MAX_WORK, g.limit):
            own[own.index(max(own))] = 1
        mixed = genes.permutation(len(taken) + len(own))
        extents = [left[axis] for axis, _ in taken] + own
        for i, (axis, role) in enumerate(taken):
            pairs[role].append((axis, mixed.index(i)))
        rhs = g.typed(lhs.dtype, tuple(extents[i] for i in mixed))
    if genes.chance(40):
        pairs["contract"].sort(key=itemgetter(genes.pick(2)))
    a, b = g.hints[lhs.slot], g.hints[rhs.slot]
    terms = prod(left[axis] for axis, _ in pairs["contract"])
    lc, rc = tuple(x for x, _ in pairs["contract"]), tuple(y for _, y in pairs["contract"])
    lb, rb = tuple(x for x, _ in pairs["batch"]), tuple(y for _, y in pairs["batch"])
    hint = Hint(a.positive and b.positive, a.size + b.size + log2(max(1, terms)))
    return g.apply(ops.DotGeneral(lc, rc, lb, rb), lhs, rhs, hint=hint)


@STRATEGY.row(ops.DotGeneral)
def _(g: Growth, op: type[Any]) -> Value:
    return contract(g, _data(g, op, None if g.genes.chance(8) else lambda v: v.type.rank >= 1, _calm(50)))
