"""Rules of the ops that move elements, fill with zero, or convert; moves keep the memory of where values came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from oracle.enclosure import integers, multiples, narrowing
from oracle.enclosure.bounds import may_be_zero
from oracle.enclosure.formats import FORMATS, Array
from oracle.enclosure.freedoms import contraction, flush, merging
from oracle.enclosure.origin import Converted, Origin, fixed_in
from oracle.enclosure.poles import gapped
from oracle.enclosure.rule import ENCLOSE, Context
from oracle.enclosure.value import (
    Enclosure,
    Interval,
    bound_type,
    exact,
    merged,
    ordered,
    real_point,
    spread,
    three_valued,
)
from oracle.extents import extents
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.narrow import sticky
from tenferro_ref.ops import Op


@ENCLOSE.row(ops.Constant)
def _constant(op: ops.Constant, c: Context) -> Interval:
    return real_point(np.asarray(op.value), const=True)


@ENCLOSE.row(ops.Transpose)
def _transpose(op: ops.Transpose, c: Context, x: Interval) -> Interval:
    return x.map(lambda a: a.transpose(op.perm))


@ENCLOSE.row(ops.Reshape)
def _reshape(op: ops.Reshape, c: Context, x: Interval, *providers: Interval) -> Interval:
    shape = extents(op.shape, [v.shape for v in (x, *providers)])
    return x.map(lambda a: a.reshape(shape, order="F"))


@ENCLOSE.row(ops.BroadcastInDim)
def _broadcast_in_dim(op: ops.BroadcastInDim, c: Context, x: Interval, *providers: Interval) -> Interval:
    shape = extents(op.shape, [v.shape for v in (x, *providers)])
    order = sorted(range(len(op.dims)), key=op.dims.__getitem__)
    thin = [1] * len(shape)
    for axis, dim in enumerate(op.dims):
        thin[dim] = x.shape[axis]
    moved = x.map(lambda a: spread(a.transpose(order).reshape(thin), shape))
    repeated = x.repeated or moved.lo.size > x.lo.size
    return moved.known_as(const=moved.const, repeated=repeated)


@ENCLOSE.row(ops.ExtractDiag)
def _extract_diag(op: ops.ExtractDiag, c: Context, x: Interval) -> Interval:
    position = op.axis_a - (op.axis_a > op.axis_b)
    return x.map(lambda a: np.moveaxis(np.diagonal(a, 0, op.axis_a, op.axis_b), -1, position))


@ENCLOSE.row(ops.EmbedDiag)
def _embed_diag(op: ops.EmbedDiag, c: Context, x: Interval) -> Interval:
    n = x.shape[op.axis_a]
    # the new axis pushes axis_a up when it goes in before it
    source = op.axis_a + (op.axis_b <= op.axis_a)

    def mask(rank: int) -> Array:
        shape = [1] * rank
        shape[source] = shape[op.axis_b] = n
        return np.eye(n, dtype=bool).reshape(shape)

    widened = x.map(lambda a: np.expand_dims(a, op.axis_b))
    return _keep(widened, lambda rank: mask(rank))


@ENCLOSE.row(ops.Tril, ops.Triu)
def _triangle(op: ops.Tril | ops.Triu, c: Context, x: Interval) -> Interval:
    rows, columns = np.ogrid[: x.shape[0], : x.shape[1]]
    k = max(-x.shape[0], min(op.k, x.shape[1]))  # beyond this nothing changes, and the subtraction could wrap
    kept = rows >= columns - k if isinstance(op, ops.Tril) else rows <= columns - k
    return _keep(x, lambda rank: kept.reshape(kept.shape + (1,) * (rank - 2)))


def _keep(x: Interval, mask: Callable[[int], Array]) -> Interval:
    """`x` where the mask holds, +0 elsewhere."""
    kept = mask(x.lo.ndim)
    if kept.size and np.all(kept):
        return x
    zero = x.dtype.is_float
    moved = x.map(lambda a: np.where(kept, a, a.dtype.type(0)))
    return _filled(moved, np.where(kept, x.pos_zero, zero), ~kept)


def _filled(x: Interval, pos_zero: Array, between: Array) -> Interval:
    """What was moved, with +0 `between`; not by `replace`, which takes as long as several rules."""
    before, converted, multiple = x.origin.filled, x.origin.converted, x.origin.multiple
    between = np.broadcast_to(between, x.shape)
    filled = between if before is None else before | between

    def fill(v: Interval) -> Interval:
        return _filled(v, v.pos_zero | (between & v.dtype.is_float), between)

    terms = x.terms and replace(x.terms, quantum=np.where(between, np.inf, x.terms.quantum))
    origin = Origin(
        x.const,
        x.repeated,
        x.unrounded,
        terms,
        multiple=multiple and multiples.filled(multiple, between, fill),
        converted=converted and Converted(fill(converted.value), converted.exact),
        filled=filled if x.dtype.is_float else None,
        fixed=between | fixed_in(x),
    )
    return Interval(x.dtype, x.lo, x.hi, x.nan, pos_zero, x.neg_zero, origin)


@ENCLOSE.row(ops.Slice)
def _slice(op: ops.Slice, c: Context, x: Interval) -> Interval:
    index = tuple(slice(*entry) for entry in zip(op.starts, op.limits, op.strides, strict=True))
    return x.map(lambda a: a[index])


@ENCLOSE.row(ops.Reverse)
def _reverse(op: ops.Reverse, c: Context, x: Interval) -> Interval:
    return x.map(lambda a: np.flip(a, op.axes))


@ENCLOSE.row(ops.Concatenate)
def _concatenate(op: ops.Concatenate, c: Context, *parts: Interval) -> Interval:
    filled = [part for part in parts if part.shape[op.axis]]
    return filled[0] if len(filled) == 1 else concatenated(parts, op.axis)


def concatenated(parts: Sequence[Interval], axis: int) -> Interval:
    """Intervals one after another along `axis`."""

    def join(arrays: Sequence[Array]) -> Array:
        return np.concatenate(arrays, axis)

    def join_values(values: Sequence[Interval]) -> Interval:
        return concatenated(values, axis)

    origin = contraction.picked(*parts, pick=lambda ends, _: join(ends))
    if terms := merging.joined(parts, axis):
        origin = replace(origin, terms=terms)
    if any(p.const or p.origin.fixed is not None for p in parts):
        origin = replace(origin, fixed=join([fixed_in(p) for p in parts]))
    if converted := narrowing.joined(parts, join_values):
        origin = replace(origin, converted=converted)
    if multiple := multiples.joined(parts, join, join_values):
        origin = replace(origin, multiple=multiple)
    return merged(join, parts).from_(origin)


@ENCLOSE.row(ops.Pad)
def _pad(op: ops.Pad, c: Context, x: Interval) -> Interval:
    return _padded(x, op.edge_padding_low, op.edge_padding_high, op.interior_padding)


@ENCLOSE.row(ops.PadToMatch)
def _pad_to_match(op: ops.PadToMatch, c: Context, x: Interval, reference: Interval) -> Interval:
    none = (0,) * len(x.shape)
    missing = max(reference.shape[op.axis] - x.shape[op.axis], 0)
    high = tuple(missing if axis == op.axis else 0 for axis in range(len(x.shape)))
    return _padded(x, none, high, none)


def read_of(op: Op, operands: Sequence[Enclosure]) -> Sequence[Enclosure]:
    """The operands whose values the result depends on; not one of which nothing is kept, nor the indices of an update without elements.

    The last axis of a shape may be that of the input sets.
    """
    match op:
        case ops.ShapeOf():
            return []
        case ops.Pad():
            return [] if _is_all_padding(op, operands[0].shape) else operands
        case ops.DynamicSlice() | ops.Gather() | ops.GatherDynamicSliceSizes() if _is_uniform(operands[0]):
            return operands[:1]
        case ops.Tril():
            return [] if operands[0].shape[0] <= -op.k else operands
        case ops.Triu():
            return [] if operands[0].shape[1] <= op.k else operands
        case ops.DynamicUpdateSlice() if not operands[1].size:
            return operands[:1]
        case ops.Scatter() if not operands[2].size:
            return operands[:1]
    return operands


def _is_uniform(x: Enclosure) -> bool:
    """A constant of one value, whatever is taken of it."""
    return bool(
        x.const and x.size and all(np.all((p.lo == p.lo.flat[0]) & (p.hi == p.lo.flat[0]) & ~p.nan) for p in x.parts)
    )


def is_spread(op: Op, x: Enclosure, result: Enclosure, sets: int) -> bool:
    """Whether a gather broadcasts, whatever its indices: `x` does, or a window is all there is along each axis that is indexed."""
    if not isinstance(op, ops.Gather | ops.GatherDynamicSliceSizes):
        return False
    extents = result.shape[: len(result.shape) - (sets > 1)]
    kept = iter([extents[axis] for axis in op.offset_dims])
    rank = len(op.offset_dims) + len(op.collapsed_slice_dims)
    sizes = [1 if axis in op.collapsed_slice_dims else next(kept) for axis in range(rank)]
    whole = all(sizes[axis] == x.shape[axis] for axis in op.start_index_map)  # every start is clamped to 0
    windows = prod(n for axis, n in enumerate(extents) if axis not in op.offset_dims)
    return x.repeated or (whole and windows > 1)


def _is_all_padding(op: ops.Pad, shape: Sequence[int]) -> bool:
    """Whether nothing is left of the operand: along some axis of `shape` it is cropped."""
    axes = zip(shape, op.edge_padding_low, op.edge_padding_high, op.interior_padding, strict=False)
    for n, low, high, between in axes:
        places = range(low, low + n * (between + 1), between + 1)
        if n and not any(0 <= place < places[-1] + 1 + high for place in places):
            return True
    return False


def _padded(x: Interval, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Interval:
    """Zeros between and around; negative edges crop afterwards."""
    if not any((*low, *high, *interior)):
        return x
    shape, put, cut = [], [], []
    for n, before, after, between in zip(x.shape, low, high, interior, strict=True):
        dense = (n - 1) * (between + 1) + 1 if n else 0
        start = max(before, 0)
        extent = dense + start + max(after, 0)
        shape.append(extent)
        put.append(slice(start, start + dense, between + 1))
        cut.append(slice(max(-before, 0), extent - max(-after, 0)))

    def pad(a: Array, fill: object) -> Array:
        out = np.full(shape, fill, a.dtype) if fill else np.zeros(shape, a.dtype)
        out[tuple(put)] = a
        return out[tuple(cut)]

    moved = x.map(lambda a: pad(a, 0))
    return _filled(moved, pad(x.pos_zero, x.dtype.is_float), pad(np.zeros(x.shape, bool), True))


@ENCLOSE.row(ops.ShapeOf)
def _shape_of(op: ops.ShapeOf, c: Context, x: Interval) -> Interval:
    return real_point(np.asarray(float(x.shape[op.axis])), const=True)


# --- conversion -----------------------------------------------------------------------------------------------------


@ENCLOSE.row(ops.Convert)
def _convert(op: ops.Convert, c: Context, x: Interval) -> Interval:
    """The lossy cast of SEMANTICS 1.4; every branch is monotone, so that the bounds convert."""
    if op.to is x.dtype:
        return x
    if op.to is DType.Bool:
        return _to_bool(x)
    if op.to.is_float:
        return _to_float(c, x)
    return _float_to_int(op.to, x) if x.dtype.is_float else narrowing.of_integer(x, _int_to_int(op.to, x))


def _to_bool(x: Interval) -> Interval:
    if not x.dtype.is_float:
        return three_valued((x.lo != 0) | (x.hi != 0), (x.lo <= 0) & (x.hi >= 0))
    zero = may_be_zero(x)
    return three_valued(x.nan | (x.lo < 0) | (x.hi > 0), zero)


def _to_float(c: Context, x: Interval) -> Interval:
    f = FORMATS[c.dtype]
    if c.dtype is DType.F8E8M0FNU:
        return _to_power(c, x)
    if x.dtype.is_float:
        lo = f.nearest(x.lo)
        hi = lo if x.is_point else f.nearest(x.hi)
        pos, neg = x.pos_zero | (x.hi > 0), x.neg_zero | (x.lo < 0)
        made = c.build(lo, hi, x.nan, pos, neg)
        gap = x.gap
        return narrowing.converted(x, made if gap is None else gapped(c, made, f.nearest(gap[0]), f.nearest(gap[1])))
    lo = f.of_integers(x.lo)
    hi = lo if x.is_point else f.of_integers(x.hi)
    never = np.zeros(lo.shape, bool)
    return narrowing.converted(x, c.build(lo, hi, never, ~never, never))


def _to_power(c: Context, x: Interval) -> Interval:
    """To powers of two alone: NaN of what is not positive, or too large; a number below F32's may be flushed before that."""
    f = c.format
    low, high = (v if x.dtype.is_float else sticky(v) for v in (x.lo, x.hi))
    flushed = low < flush.zero_below(c.model, FORMATS[DType.F32])
    lo = f.nearest(np.where((low > 0) | (high <= 0), low, f.least_subnormal))
    hi = f.nearest(high)
    beyond = np.isnan(hi)
    nan = x.nan | (low <= 0) | flushed | beyond
    never = np.zeros(lo.shape, bool)
    return ordered(c.dtype, lo, np.where(beyond & (high > 0) & ~np.isnan(lo), f.max, hi), nan, never, never)


def _float_to_int(to: DType, x: Interval) -> Interval:
    least, greatest = to.limits
    kind = bound_type(to)

    def saturated(v: Array) -> Array:
        # one beyond the greatest is a power of two, as the least is: both are floats
        above, below = v >= float(greatest + 1), v <= float(least)
        inside = np.trunc(np.where(above | below | np.isnan(v), 0.0, v)).astype(kind)
        return np.where(above, kind(greatest), np.where(below, kind(least), inside))

    lo = saturated(x.lo)
    hi = lo if x.is_point else saturated(x.hi)
    if not x.nan.any():
        return exact(to, lo, hi)
    zero = kind(0)
    lo, hi = np.where(x.empty, zero, lo), np.where(x.empty, zero, hi)
    return exact(to, np.where(x.nan, np.minimum(lo, zero), lo), np.where(x.nan, np.maximum(hi, zero), hi))


def _int_to_int(to: DType, x: Interval) -> Interval:
    return integers.wrapped(to, x.lo) if x.is_point else integers.wrapped(to, *integers.big(x))
