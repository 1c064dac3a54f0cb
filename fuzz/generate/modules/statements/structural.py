"""Operations that move elements, in the forms that programs lack: padding with a value, shapes that are given as values."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fuzz.generate.modules.draft import ALL, MOST, NUMBERS, Draft, array
from fuzz.generate.modules.statements.table import STATEMENTS
from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.literals import Shape
from tenferro_ref.stablehlo.writer import SsaValue


def _edges(d: Draft, x: SsaValue) -> tuple[list[int], list[int], list[int], Shape]:
    """Padding of each axis, which may cut off elements, and the shape that comes of it."""
    low, high, interior, shape = [], [], [], list[int]()
    for extent in x.shape:
        inner = d.choices.choose((0, 0, 0, 1, 2))
        full = extent + max(0, extent - 1) * inner
        edges = [d.choices.choose((0, 1, 0, 2, -1, 3, -2)) for _ in range(2)]
        if full + sum(edges) < 0 or prod(shape) * (full + sum(edges)) > MOST:
            inner, full, edges = 0, extent, [0, 0]
        low.append(edges[0])
        high.append(edges[1])
        interior.append(inner)
        shape.append(full + sum(edges))
    return low, high, interior, tuple(shape)


@STATEMENTS.row("pad")
def _(d: Draft) -> SsaValue:
    x = d.operand(ALL, empty=True)
    low, high, interior, shape = _edges(d, x)
    attrs = f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}, interior_padding = {array(interior)}"
    return d.one("pad", [x, d.scalar(x.dtype)], x.dtype, shape, attrs)


@STATEMENTS.row("dynamic_pad")
def _(d: Draft) -> SsaValue:
    x = d.operand(ALL, empty=True)
    *edges, shape = _edges(d, x)
    dtype = d.choices.choose((DType.I32, DType.I64))
    return d.one("dynamic_pad", [x, d.scalar(x.dtype), *(d.vector(e, dtype) for e in edges)], x.dtype, shape)


def _given(d: Draft, numbers: Sequence[int]) -> SsaValue:
    """Numbers of a shape as a value."""
    return d.vector(numbers, d.choices.choose((DType.I32, DType.I64)))


@STATEMENTS.row("iota")
def _(d: Draft) -> SsaValue:
    dtype, shape = d.dtype(NUMBERS), d.shape()
    if dtype.bits == 8:  # longer than the type can count
        shape = (1 + d.choices.pick(300),)
    return d.one("iota", [], dtype, shape, f"iota_dimension = {d.choices.pick(len(shape))} : i64")


@STATEMENTS.row("dynamic_iota")
def _(d: Draft) -> SsaValue:
    dtype, shape = d.dtype(NUMBERS), d.shape()
    return d.one(
        "dynamic_iota", [_given(d, shape)], dtype, shape, f"iota_dimension = {d.choices.pick(len(shape))} : i64"
    )


@STATEMENTS.row("dynamic_reshape")
def _(d: Draft) -> SsaValue:
    x = d.operand(ALL, empty=True)
    shape = d.choices.choose((x.shape[::-1], (prod(x.shape),), (1, *x.shape), (*x.shape[1:], x.shape[0])))
    return d.one("dynamic_reshape", [x, _given(d, shape)], x.dtype, shape)


@STATEMENTS.row("broadcast_in_dim")
def _(d: Draft) -> SsaValue:
    """Axes in any order, some of them of one element that is repeated; often the extents are equal, so that only the order changes."""
    x = d.operand(ALL, lambda v: len(v.shape) < 4 and prod(v.shape) <= MOST // 3)
    if d.choices.chance(50):
        x = d.fresh(x.dtype, d.choices.choose(((2, 2), (3, 3), (1, 2), (2, 3, 2), (2, 2, 2), (3, 1, 3))))
    rank = x.rank + d.choices.choose((0, 0, 1))
    dims = list(d.choices.permutation(rank)[: x.rank])
    shape = [2] * rank
    for axis, dim in enumerate(dims):
        shape[dim] = 3 if x.shape[axis] == 1 and d.choices.chance(60) else x.shape[axis]
    return d.one("broadcast_in_dim", [x], x.dtype, tuple(shape), f"broadcast_dimensions = {array(dims)}")


@STATEMENTS.row("dynamic_broadcast_in_dim")
def _(d: Draft) -> SsaValue:
    x = d.operand(ALL, lambda v: len(v.shape) < 4 and prod(v.shape) <= MOST // 3)
    at, extent = d.choices.pick(x.rank + 1), 1 + d.choices.pick(3)
    shape = (*x.shape[:at], extent, *x.shape[at:])
    dims = [axis for axis in range(len(shape)) if axis != at]
    return d.one(
        "dynamic_broadcast_in_dim", [x, _given(d, shape)], x.dtype, shape, f"broadcast_dimensions = {array(dims)}"
    )


@STATEMENTS.row("real_dynamic_slice")
def _(d: Draft) -> SsaValue:
    x = d.operand(ALL, empty=True)
    starts = [d.choices.pick(e) for e in x.shape]
    strides = [1 + d.choices.near(3) for _ in x.shape]
    limits = [min(e, s + 1 + d.choices.pick(e)) for s, e in zip(starts, x.shape, strict=True)]
    shape = tuple(len(range(*r)) for r in zip(starts, limits, strides, strict=True))
    dtype = d.choices.choose((DType.I32, DType.I64))
    return d.one("real_dynamic_slice", [x, *(d.vector(v, dtype) for v in (starts, limits, strides))], x.dtype, shape)


@STATEMENTS.row("get_dimension_size")
def _(d: Draft) -> SsaValue:
    x = d.operand(ALL, empty=True)
    size = d.one("get_dimension_size", [x], DType.I32, (), f"dimension = {d.axis(x)} : i64")
    return d.same("add", d.broadcast(size, x.shape), d.fresh(DType.I32, x.shape))


@STATEMENTS.row("reverse of some axes")
def _(d: Draft) -> SsaValue:
    x = d.operand(ALL, empty=True)
    return d.one("reverse", [x], x.dtype, x.shape, f"dimensions = {array(d.axes(x))}")


@STATEMENTS.row("concatenate of several")
def _(d: Draft) -> SsaValue:
    x = d.operand(ALL, lambda v: prod(v.shape) <= MOST // 3, empty=True)
    axis, parts = d.axis(x), [x]
    for _ in range(1 + d.choices.pick(2)):
        extent = d.choices.pick(x.shape[axis] + 1)
        parts.append(d.typed(x.dtype, (*x.shape[:axis], extent, *x.shape[axis + 1 :])))
    total = sum(p.shape[axis] for p in parts)
    return d.one(
        "concatenate", parts, x.dtype, (*x.shape[:axis], total, *x.shape[axis + 1 :]), f"dimension = {axis} : i64"
    )
