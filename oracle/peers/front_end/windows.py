"""Outputs with symbolic extents as indices leave them of something larger: slices, integers, windows, copies that are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_ref import frontend as tn
from tenferro_ref.dims import is_exact
from tenferro_ref.dtype import DType
from tenferro_ref.program import Value

#: More than any axis has.
_MANY = 2**40


def windowed(x: Value) -> Value:
    """The value by way of an index that its slot decides; itself if its extents are integers."""
    if x.type.is_static:
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


def _one_of_many(x: Value) -> Value:
    """An element of a new axis, which is three longer than a symbolic one."""
    if not all(map(is_exact, x.shape)):
        return _inside(x)
    padded, last = _padded(x, 1, 2)
    copies = x.broadcast_to((padded.shape[last - 1], *x.shape), like=[padded])
    return copies[(0, -1, 2, -2)[x.slot // len(_WAYS) % 4]]


def _taken(x: Value) -> Value:
    """One of two copies."""
    return tn.take(tn.stack([x, x], -1), x.builder.constant(x.slot // len(_WAYS) % 2, DType.I64), -1)


_WAYS: tuple[Callable[[Value], Value], ...] = (_inside, _backwards, _from_the_end, _one_of_many, _taken)
