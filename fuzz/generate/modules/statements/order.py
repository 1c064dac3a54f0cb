"""Sorting, by one key or several, with ties."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from fuzz.generate.modules.draft import ALL, FLOATS, MOST, ORDERED, REAL, Draft, region
from fuzz.generate.modules.statements.reductions import kind_of
from fuzz.generate.modules.statements.table import STATEMENTS
from fuzz.generate.values.recipes import Recipe
from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.literals import Shape, literal, type_text
from tenferro_ref.stablehlo.writer import SsaValue


def _few_enough(v: SsaValue) -> bool:
    return prod(v.shape) * max(v.shape) <= 16 * MOST


@STATEMENTS.row("sort")
def _(d: Draft) -> Sequence[SsaValue]:
    """One array in order, or others in the order of the first; now and then not stable, or by a comparison that NaNs have no place in."""
    dtypes = ORDERED - {DType.Bool}
    if d.choices.chance(50):
        x = d.operand(dtypes, _few_enough, empty=True)
        axis = d.axis(x)
    else:  # no other axis of three comes back by another permutation than it goes
        x = d.fresh(d.dtype(dtypes), (2 + d.choices.pick(3), 3, 1 + d.choices.pick(4)))
        axis = d.choices.choose((0, 0, 1, 2))
    others = [d.typed(d.dtype(ALL), x.shape) for _ in range(d.choices.choose((0, 1, 2)))]
    total, stable = x.dtype in FLOATS and not d.choices.chance(25), not d.choices.chance(25)
    return _sorted(d, axis, [x, *others], [total], stable=stable)


@STATEMENTS.row("sort of ties")
def _(d: Draft) -> Sequence[SsaValue]:
    """By one to three keys of few different numbers; the numbers of equal elements keep their order, as a rule."""
    shape, total = list(d.shape()), [d.choices.chance(50) for _ in range(d.choices.choose((1, 2, 1, 3)))]
    axis = max(range(len(shape)), key=shape.__getitem__)
    shape[axis] = max(shape[axis], 6)
    keys = [_key(d, tuple(shape), t) for t in total]
    numbers = d.given(np.arange(prod(shape), dtype=np.int32).reshape(shape, order="F"))
    ordered = [t and k.dtype in FLOATS for t, k in zip(total, keys, strict=True)]
    return _sorted(d, axis, [*keys, numbers], ordered, stable=not d.choices.chance(12))


def _key(d: Draft, shape: Shape, total: bool) -> SsaValue:
    """Zeros of two signs among floats, and NaNs where the order is total: in no other they have a place."""
    dtype = d.dtype(ORDERED)
    kind = "uniform" if dtype is DType.Bool else "simple"
    if dtype in FLOATS:
        kind = d.choices.choose(("zeros", "simple", "zeros", "special") if total else ("simple", "zeros"))
    return d.fresh(dtype, shape, Recipe(kind, d.choices.integer(2)))


def _sorted(d: Draft, axis: int, operands: Sequence[SsaValue], total: Sequence[bool], stable: bool) -> list[SsaValue]:
    """Operands in the order of the first ones: of two elements that are equal in one key, by the next one.

    Parameters
    ----------
    total
        For each key whether it is compared in the total order of floats.
    stable
        Whether equal elements keep their order.
    """
    types, lines, less = [type_text(v.dtype, ()) for v in operands], list[str](), ""
    for n in reversed(range(len(total))):
        dtype, t = operands[n].dtype, types[n]
        kind, direction = "TOTALORDER" if total[n] else kind_of(dtype), d.choices.choose(("LT", "GT"))
        pair = [f"%p{2 * n}", f"%p{2 * n + 1}"]
        if total[n] and d.choices.chance(60):
            lines += [line for name in pair for line in _plain(name, dtype)]
            pair = [f"{name}d" for name in pair]
        both = f"{pair[0]}, {pair[1]}, {kind} : ({t}, {t}) -> tensor<i1>"
        lines.append(f"%less{n} = stablehlo.compare {direction}, {both}")
        if less:
            lines += [
                f"%same{n} = stablehlo.compare EQ, {both}",
                f"%next{n} = stablehlo.and %same{n}, {less} : tensor<i1>",
                f"%all{n} = stablehlo.or %less{n}, %next{n} : tensor<i1>",
            ]
        less = f"%all{n}" if less else f"%less{n}"
    arguments = [(f"%p{i}", types[i // 2]) for i in range(2 * len(operands))]
    order = region(arguments, lines, less, "tensor<i1>")
    implied = axis == operands[0].rank - 1 and d.choices.chance(50)  # the last axis is the one that is meant by none
    attrs = [] if implied else [f"dimension = {axis} : i64"]
    if stable or d.choices.chance(50):  # it is not stable where nothing is said
        attrs.append(f"is_stable = {str(stable).lower()}")
    return d.operation("sort", operands, ", ".join(attrs), [(v.dtype, v.shape) for v in operands], order)


def _plain(name: str, dtype: DType) -> list[str]:
    """`NAMEd`: a float without the sign of a zero or of a NaN, which the total order would tell apart; as JAX writes it."""
    t, test = type_text(dtype, ()), "tensor<i1>"
    return [
        f"{name}z = stablehlo.constant dense<0.0> : {t}",
        f"{name}a = stablehlo.compare EQ, {name}, {name}z, FLOAT : ({t}, {t}) -> {test}",
        f"{name}b = stablehlo.select {name}a, {name}z, {name} : {test}, {t}",
        f"{name}c = stablehlo.compare NE, {name}, {name}, FLOAT : ({t}, {t}) -> {test}",
        f"{name}n = stablehlo.constant dense<{literal(dtype.numpy.type(np.nan))}> : {t}",
        f"{name}d = stablehlo.select {name}c, {name}n, {name}b : {test}, {t}",
    ]


@STATEMENTS.row("chlo.top_k")
def _(d: Draft) -> Sequence[SsaValue]:
    """Of an array, or of one with ties."""
    x = d.operand(REAL, _few_enough)
    if d.choices.chance(40):
        x = d.fresh(x.dtype, x.shape, Recipe("zeros" if x.dtype in FLOATS else "simple", d.choices.integer(2)))
    k = 1 + d.choices.pick(x.shape[-1])
    shape = (*x.shape[:-1], k)
    return d.operation("chlo.top_k", [x], f"k = {k} : i64", [(x.dtype, shape), (DType.I32, shape)])
