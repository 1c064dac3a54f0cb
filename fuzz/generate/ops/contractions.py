"""Rows of `STRATEGY` for reductions and DotGeneral."""

from __future__ import annotations

from math import inf, log2, prod
from operator import itemgetter
from typing import Any

from fuzz.generate.growth import Estimate, Growth
from fuzz.generate.ops.elementwise import below
from fuzz.generate.shapes import Shape, shape_of, volume
from fuzz.generate.table import STRATEGY
from tenferro_ref import ops
from tenferro_ref.dtype import ANY
from tenferro_ref.ops import CONTRACTIONS, REDUCTIONS
from tenferro_ref.program import Value


def reduce(g: Growth, op: type[Any], x: Value) -> Value:
    """Reduce over one, some, all or (seldom) no axes, in any order; an axis without elements is kept if it must be."""
    choices, shape, empty = g.choices, shape_of(x), g.policy.empty_reduction == "identity"
    axes = tuple(a for a in choices.permutation(len(shape)) if shape[a] or empty)
    mode = choices.pick(16)
    if mode < 6:
        axes = axes[:1]
    elif mode < 10:
        axes = axes[: 1 + choices.pick(max(1, len(axes)))]
    elif mode == 15:
        axes = ()
    elements, before = prod(shape[a] for a in axes), g.estimates[x.slot]
    if not elements and op is not ops.ReduceSum:
        before = Estimate(False, inf)
    terms = log2(max(1, elements))
    sizes = {
        ops.ReduceSum: before.size + terms,
        ops.ReduceSumSquares: 2 * before.size + terms,
        ops.ReduceProd: before.size * elements,
    }
    positive = before.positive or op is ops.ReduceSumSquares
    return g.apply(op(axes), x, estimate=Estimate(positive, sizes.get(op, before.size)))


@STRATEGY.row(*REDUCTIONS)
def _(g: Growth, op: type[Any]) -> Value:
    dtypes = g.dtypes_of(op)
    admitted = ANY if g.choices.chance(3) and op is not ops.ReduceSumSquares else dtypes
    x = g.operand(admitted, (lambda v: v.type.rank >= 1) if not g.choices.chance(6) else None, below(60))
    if x.dtype not in dtypes and op is not ops.ReduceSumSquares:  # over no axis a reduction copies any dtype
        return g.apply(op(()), x)
    return reduce(g, op, x)


#: Multiplications that one contraction may cost.
_MAX_WORK = 2**18
#: Pairs of axes of the two operands.
_Pairs = list[tuple[int, int]]


def contract(g: Growth, lhs: Value, rhs: Value | None = None, op: type[Any] = ops.DotGeneral) -> Value:
    """A DotGeneral of `lhs` with `rhs` as far as their extents pair up, else with an operand made to fit."""
    choices, left = g.choices, shape_of(lhs)
    order = choices.permutation(len(left))
    roles = [(axis, choices.choose(("contract", "contract", "batch", "free"))) for axis in order]
    if rhs is None and choices.pick(5) > 2:
        rhs = g.recent([v for v in g.pool if v.dtype is lhs.dtype])
    paired = _pair_up(g, left, shape_of(rhs), roles) if rhs is not None else None
    if rhs is None or paired is None:
        rhs, paired = _fitting(g, lhs, [(axis, role) for axis, role in roles if role != "free"])
    contracted, batch = paired
    if choices.chance(40):
        contracted.sort(key=itemgetter(choices.pick(2)))
    a, b = g.estimates[lhs.slot], g.estimates[rhs.slot]
    terms = prod(left[axis] for axis, _ in contracted)
    (lc, rc), (lb, rb) = (tuple(zip(*pairs, strict=True)) or ((), ()) for pairs in (contracted, batch))
    estimate = Estimate(a.positive and b.positive, a.size + b.size + log2(max(1, terms)))
    flags = (choices.chance(60), choices.chance(60)) if op is ops.DotGeneralWithConj else ()
    return g.apply(op(lc, rc, lb, rb, *flags), lhs, rhs, estimate=estimate)


def _pair_up(g: Growth, left: Shape, right: Shape, roles: list[tuple[int, str]]) -> tuple[_Pairs, _Pairs] | None:
    """Contracted and batch axes as far as extents are equal; None if the result or the work is too large."""
    pairs: dict[str, _Pairs] = {"contract": [], "batch": []}
    unused = list(range(len(right)))
    for axis, role in roles:
        fitting = [a for a in unused if right[a] == left[axis]]
        if role != "free" and fitting:
            pairs[role].append((axis, g.choices.choose(fitting)))
            unused.remove(pairs[role][-1][1])
    contracted = {axis for axis, _ in pairs["contract"]}
    free = [right[a] for a in unused]
    result = [e for a, e in enumerate(left) if a not in contracted] + free
    if volume(left) * volume(free) > _MAX_WORK or volume(result) > g.limit or len(result) > g.max_rank:
        return None
    return pairs["contract"], pairs["batch"]


def _fitting(g: Growth, lhs: Value, roles: list[tuple[int, str]]) -> tuple[Value, tuple[_Pairs, _Pairs]]:
    """An operand with the axes that are contracted or batch and up to two of its own, in any order."""
    choices, left = g.choices, shape_of(lhs)
    own = [g.extent() for _ in range(min(choices.choose((1, 0, 1, 2)), g.max_rank - len(left)))]
    while max(own, default=1) > 1 and volume(left) * volume(own) > min(_MAX_WORK, g.limit):
        own[own.index(max(own))] = 1
    order = choices.permutation(len(roles) + len(own))
    extents = [left[axis] for axis, _ in roles] + own
    pairs: dict[str, _Pairs] = {"contract": [], "batch": []}
    for i, (axis, role) in enumerate(roles):
        pairs[role].append((axis, order.index(i)))
    return g.typed(lhs.dtype, tuple(extents[i] for i in order)), (pairs["contract"], pairs["batch"])


@STRATEGY.row(*CONTRACTIONS)
def _(g: Growth, op: type[Any]) -> Value:
    rank = None if g.choices.chance(8) else lambda v: v.type.rank >= 1
    return contract(g, g.operand(g.dtypes_of(op), rank, below(50)), op=op)
