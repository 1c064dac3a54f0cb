"""Rows of `STRATEGY` for Transpose, Reshape and BroadcastInDim, with dim expressions in their shapes."""

from __future__ import annotations

from math import prod
from typing import Any

from fuzz.generate.growth import Growth
from fuzz.generate.shapes import Shape, shape_of, volume
from fuzz.generate.table import STRATEGY
from tenferro_ref import ops
from tenferro_ref.dims import DimExpr, DimOp, InputDim
from tenferro_ref.program import Value


def permutation(g: Growth, rank: int) -> tuple[int, ...]:
    """Any permutation; the identity, which does nothing, becomes the reversal most of the time."""
    perm = g.choices.permutation(rank)
    return perm[::-1] if perm == tuple(range(rank)) and not g.choices.chance(10) else perm


@STRATEGY.row(ops.Transpose)
def _(g: Growth, op: type[Any]) -> Value:
    x = g.operand(g.dtypes_of(op), (lambda v: v.type.rank >= 2) if not g.choices.chance(6) else None)
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
    choices, mode, rank = g.choices, g.choices.pick(10), len(shape)
    if g.max_rank == 0:
        return shape
    if mode == 0:
        return (prod(shape),)
    if mode <= 2 and rank >= 2:  # merge
        i = choices.pick(rank - 1)
        return (*shape[:i], shape[i] * shape[i + 1], *shape[i + 2 :])
    if mode <= 5 and 0 < rank < g.max_rank:  # split
        i = choices.pick(rank)
        factors = _prime_factors(shape[i])
        first = prod(factors[: choices.pick(len(factors) + 1)])
        return (*shape[:i], first, shape[i] // first, *shape[i + 1 :])
    if mode == 6 and rank < g.max_rank:
        i = choices.pick(rank + 1)
        return (*shape[:i], 1, *shape[i:])
    if mode == 7 and 1 in shape:
        return tuple(e for e in shape if e != 1)
    if mode == 8:
        return tuple(shape[p] for p in permutation(g, rank))
    extents = [1] * min(1 + choices.pick(4), g.max_rank)
    for factor in _prime_factors(prod(shape)):  # none for an empty tensor
        extents[choices.pick(len(extents))] *= factor
    return tuple(extents) if prod(shape) else shape


def _with_expressions(g: Growth, shape: Shape, x: Value) -> tuple[tuple[DimExpr, ...], tuple[Value, ...]]:
    """`shape` with some extents read from `x` or from a second operand, which is returned too; sometimes through arithmetic."""
    if not (g.config.dim_exprs and g.choices.chance(60 if g.symbols else 8)):
        return shape, ()
    providers = (x, g.recent(g.pool)) if g.choices.chance(50) else (x,)
    known = [(InputDim(i, axis), e) for i, v in enumerate(providers) for axis, e in enumerate(shape_of(v))]
    return tuple(expression(g, extent, known) for extent in shape), providers[1:]


def expression(g: Growth, extent: int, known: list[tuple[InputDim, int]]) -> DimExpr:
    """An extent as an expression over extents that are known."""
    equal = [dim for dim, e in known if e == extent]
    if equal and not g.choices.chance(30):
        return g.choices.choose(equal)
    if not known:
        return extent
    dim, e = g.choices.choose(known)
    mode = g.choices.pick(5)
    if mode == 0 and e and extent % e == 0:
        return DimOp("mul", dim, extent // e)
    if mode == 1 and extent and e % extent == 0 and e:
        return DimOp("floordiv", dim, e // extent)
    if mode == 2:
        return DimOp("max", extent, DimOp("min", dim, extent))
    if mode == 3:
        return DimOp("sub", extent + e, dim)
    return DimOp("add", dim, extent - e) if e <= extent else DimOp("sub", dim, e - extent)


@STRATEGY.row(ops.Reshape)
def _(g: Growth, op: type[Any]) -> Value:
    x = g.operand(g.dtypes_of(op), (lambda v: v.type.rank >= 1) if not g.choices.chance(6) else None)
    shape, providers = _with_expressions(g, regroup(g, shape_of(x)), x)
    return g.apply(op(shape), x, *providers, estimate=g.estimates[x.slot])


def broadcast(g: Growth, x: Value, *, provably: bool = False) -> Value:
    """Broadcast `x`: new axes anywhere, unit axes widened, axes in any order.

    `provably`: an extent that is kept is written as that of the operand, as the derivative asks for where it is a symbol.
    """
    choices, extents = g.choices, shape_of(x)
    rank = min(len(extents) + choices.choose((1, 1, 2, 0)), max(g.max_rank, len(extents)))
    places = choices.permutation(rank)[: len(extents)]
    permuted = choices.chance(60 if len(extents) >= 3 else 30)  # three axes have cycles, which only an inverse undoes
    dims = places if permuted else tuple(sorted(places))
    shape = [0] * rank
    free = []
    for axis in range(rank):
        kept = extents[dims.index(axis)] if axis in dims else 1
        if axis not in dims or (kept == 1 and choices.chance(60)):
            free.append(axis)
            shape[axis] = g.extent()
        else:
            shape[axis] = kept
    for axis in free:  # where the result is too large, the first ones give way
        if volume(shape) > g.limit:
            shape[axis] = 1
    exprs, providers = _with_expressions(g, tuple(shape), x)
    if provably:
        exprs = tuple(expr if axis in free else InputDim(0, dims.index(axis)) for axis, expr in enumerate(exprs))
    return g.apply(ops.BroadcastInDim(exprs, dims), x, *providers, estimate=g.estimates[x.slot])


@STRATEGY.row(ops.BroadcastInDim)
def _(g: Growth, op: type[Any]) -> Value:
    return broadcast(g, g.operand(g.dtypes_of(op), lambda v: v.type.rank <= g.max_rank))
