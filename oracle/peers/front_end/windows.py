"""Outputs with symbolic extents as indices leave them of something larger: slices, integers, windows, copies that are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_ref import frontend as tn
from tenferro_ref.dims import MAX_OPERATIONS, DimOp, Extent, is_exact
from tenferro_ref.dtype import DType
from tenferro_ref.program import Value

#: More than any axis has.
_MANY = 2**40
#: Copies at most, where as many as an axis is long would not fit into memory.
_FEW = 4
#: Operations in an extent beyond which an index, which has the extent several times, might come to more than there may be.
_LONG = MAX_OPERATIONS // 16


def windowed(x: Value) -> Value:
    """The value by way of an index that its slot decides; itself if its extents are integers, or long expressions."""
    if x.type.is_static or any(isinstance(e, DimOp) and e.operations > _LONG for e in x.shape):
        return x
    return _WAYS[x.slot % len(_WAYS)](x)


def _padded(x: Value, low: int, high: int) -> tuple[Value, int]:
    """Zeros around all axes up to the last symbolic one, and how many these are."""
    there = [not isinstance(extent, int) for extent in x.shape]
    last = len(there) - there[::-1].index(True)
    return tn.pad(x, [(low, high)] * last + [(0, 0)] * (x.ndim - last)), last


def _inside(x: Value) -> Value:
    padded, last = _padded(x, 1, 2)
    return padded[(*[slice(1, -2)] * last, ...)]


def _backwards(x: Value) -> Value:
    padded, last = _padded(x, 1, 2)
    turned: Sequence[Any] = (*[slice(None, None, -1)] * last, ...)
    inner = [slice(2, -1) if not isinstance(e, int) else slice(e, 0, -1) for e in x.shape[:last]]
    symbols = tuple(slice(None, None, 1 if isinstance(e, int) else -1) for e in x.shape[:last])
    return padded[(*symbols, ...)][(*inner, ...)][tuple(turned)]


def _from_the_end(x: Value) -> Value:
    padded, last = _padded(x, 0, 2)
    return padded[(*[slice(-_MANY, -2)] * last, ...)]


def _to_the_end(x: Value) -> Value:
    padded, last = _padded(x, 2, 0)
    return padded[(*[slice(2, _MANY)] * last, ...)]


def _beside_nothing(x: Value) -> Value:
    """The value between two slices of it that are empty, since they leave out more elements than the first axis has."""
    return x if isinstance(x.shape[0], int) or not is_exact(x.shape[0]) else tn.concatenate([x[:-_MANY], x, x[_MANY:]])


def _one_of_many(x: Value) -> Value:
    """The first or second element of a new axis that is longer than a symbolic one, or the last or last but one; the others are zeros."""
    if not all(map(is_exact, x.shape)):
        return _inside(x)
    place, from_behind = x.slot // len(_WAYS) % 2, x.slot // len(_WAYS) // 2 % 2
    one, zero = x[None], _zeros(x, x.shape)[None]
    many = _zeros(x, (_longer(x)[:_FEW].shape[0], *x.shape))
    parts = [many, one, *[zero] * place] if from_behind else [*[zero] * place, one, many]
    return tn.concatenate(parts)[-1 - place if from_behind else place]


def _taken(x: Value) -> Value:
    """The second of two, the first of which is zero; the mean of ones says which."""
    if not all(map(is_exact, x.shape)):
        return _inside(x)
    longer = _longer(x)
    ones = x.builder.constant(1.0).broadcast_to(longer.shape, like=[longer])
    return tn.take(tn.stack([_zeros(x, x.shape), x], -1), tn.mean(ones).astype(DType.I64), -1)


def _in_parts(x: Value) -> Value:
    """Slices of the first symbolic axis one after another: two from its beginning, and two of what is left, up to the end and from there."""
    if not all(map(is_exact, x.shape)):
        return _inside(x)
    axis = next(a for a, extent in enumerate(x.shape) if not isinstance(extent, int))
    before = (slice(None),) * axis
    rest = x[(*before, slice(2, None))]
    pieces = [(x, slice(1)), (x, slice(1, 2)), (rest, slice(-2)), (rest, slice(-2, None))]
    return tn.concatenate([whole[(*before, piece)] for whole, piece in pieces], axis)


def _chosen(x: Value) -> Value:
    """The value, chosen from itself and itself by a condition of one element that has one axis more."""
    if not all(map(is_exact, x.shape)):
        return _inside(x)
    condition = x.builder.constant(x.slot // len(_WAYS) % 2, DType.Bool).reshape((1,) * (x.ndim + 1))
    return tn.where(condition, x, x)[0]


def _zeros(x: Value, shape: Sequence[Extent]) -> Value:
    return x.builder.constant(0, x.dtype).broadcast_to(shape, like=[_longer(x), x])


def _longer(x: Value) -> Value:
    """A vector that has one element more than the last symbolic axis, so that it has some."""
    symbolic = max(axis for axis, extent in enumerate(x.shape) if not isinstance(extent, int))
    zero = x.builder.constant(0, DType.F64)
    return tn.pad(zero.broadcast_to((x.shape[symbolic],), like=[x]), (0, 1))


_WAYS: tuple[Callable[[Value], Value], ...] = (
    _inside,
    _backwards,
    _from_the_end,
    _to_the_end,
    _beside_nothing,
    _one_of_many,
    _taken,
    _in_parts,
    _chosen,
)
