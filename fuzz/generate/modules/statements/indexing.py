"""Gathers and scatters with batching axes, and scatters that do something else than add."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fuzz.generate.modules.draft import ALL, FLOATS, INTS, MOST, Draft, array, body, region
from fuzz.generate.modules.statements.table import STATEMENTS
from fuzz.generate.values.recipes import Recipe
from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.literals import Shape, type_text
from tenferro_ref.stablehlo.writer import SsaValue

_INDICES = (DType.I32, DType.I64, DType.I32, DType.U32, DType.U8, DType.I8, DType.U64)


def _operand(d: Draft) -> SsaValue:
    return d.operand(ALL, lambda v: len(v.shape) > 1 and prod(v.shape) <= MOST // 4)


def _indices(d: Draft, shape: Shape) -> SsaValue:
    """Positions, some of them outside."""
    dtype = d.choices.choose(_INDICES)
    return d.fresh(dtype, shape, Recipe("simple" if dtype.is_unsigned else "small", d.choices.integer(2)))


@STATEMENTS.row("gather with batching axes")
def _(d: Draft) -> SsaValue:
    return _gathered(d, dynamic=False)


@STATEMENTS.row("dynamic_gather")
def _(d: Draft) -> SsaValue:
    return _gathered(d, dynamic=True)


def _gathered(d: Draft, dynamic: bool) -> SsaValue:
    """Rows of an array at positions along one axis; the first axis may be a batching axis."""
    x = _operand(d)
    batching = x.rank > 2 and d.choices.chance(60)
    axis = 1 if batching else d.choices.pick(x.rank)
    count, size = 1 + d.choices.pick(4), 1 + d.choices.near(x.shape[axis])
    rows: Shape = (x.shape[0], count) if batching else (count,)
    indices = _indices(d, (*rows, 1))
    sizes = [1 if batching and a == 0 else size if a == axis else e for a, e in enumerate(x.shape)]
    collapsed = [axis] if size == 1 and d.choices.chance(50) else []
    offsets = [e for a, e in enumerate(sizes) if a not in collapsed and not (batching and a == 0)]
    places = list(range(len(rows), len(rows) + len(offsets)))
    numbers = f"offset_dims = {places}, collapsed_slice_dims = {collapsed}, start_index_map = [{axis}], index_vector_dim = {len(rows)}"
    if batching:
        numbers += ", operand_batching_dims = [0], start_indices_batching_dims = [0]"
    attrs = f"dimension_numbers = #stablehlo.gather<{numbers}>, indices_are_sorted = false"
    shape = (*rows, *offsets)
    if dynamic:
        return d.one("dynamic_gather", [x, indices, d.vector(sizes, DType.I64)], x.dtype, shape, attrs)
    return d.one("gather", [x, indices], x.dtype, shape, f"{attrs}, slice_sizes = {array(sizes)}")


def _joining(dtype: DType) -> tuple[str, ...]:
    """Bodies whose result depends on no order."""
    if dtype is DType.Bool:
        return ("or", "and")
    if dtype in INTS:
        return ("maximum", "minimum", "multiply", "xor", "add")
    return ("maximum", "minimum", "multiply") if dtype in FLOATS else ("multiply",)


@STATEMENTS.row("scatter")
def _(d: Draft) -> SsaValue:
    x = _operand(d)
    return _scattered(d, [x], body(d.choices.choose(_joining(x.dtype)), x.dtype), False)[0]


@STATEMENTS.row("scatter that overwrites")
def _(d: Draft) -> SsaValue:
    """Every position once, since of several updates any may stay."""
    x = _operand(d)
    return _scattered(d, [x], _second([x]), True)[0]


@STATEMENTS.row("scatter into two")
def _(d: Draft) -> Sequence[SsaValue]:
    x = _operand(d)
    operands = [x, d.like(x)]
    return _scattered(d, operands, _second(operands), True)


def _second(operands: Sequence[SsaValue]) -> str:
    """A body that takes the updates."""
    types = [type_text(v.dtype, ()) for v in operands]
    names = [f"%u{i}" for i in range(len(operands))]
    arguments = [(f"%o{i}", t) for i, t in enumerate(types)] + list(zip(names, types, strict=True))
    return region(arguments, [], ", ".join(names), ", ".join(types))


def _scattered(d: Draft, operands: Sequence[SsaValue], joined: str, unique: bool) -> list[SsaValue]:
    x = operands[0]
    batching = x.rank > 2 and d.choices.chance(60)
    axis = 1 if batching else d.choices.pick(x.rank)
    count = min(1 + d.choices.pick(4), x.shape[axis]) if unique else 1 + d.choices.pick(4)
    rows: Shape = (x.shape[0], count) if batching else (count,)
    indices = _distinct(d, (*rows, 1), x.shape[axis]) if unique else _indices(d, (*rows, 1))
    window = [e for a, e in enumerate(x.shape) if a != axis and not (batching and a == 0)]
    updates = [d.typed(v.dtype, (*rows, *window)) for v in operands]
    places = list(range(len(rows), len(rows) + len(window)))
    numbers = (
        f"update_window_dims = {places}, inserted_window_dims = [{axis}], scatter_dims_to_operand_dims = [{axis}], "
        f"index_vector_dim = {len(rows)}"
    )
    if batching:
        numbers += ", input_batching_dims = [0], scatter_indices_batching_dims = [0]"
    attrs = f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, indices_are_sorted = false, unique_indices = {str(unique).lower()}"
    return d.operation("scatter", [*operands, indices, *updates], attrs, [(v.dtype, v.shape) for v in operands], joined)


def _distinct(d: Draft, shape: Shape, extent: int) -> SsaValue:
    """Different positions along the axis of each batch, one of which may be outside."""
    order = list(d.choices.permutation(extent))[: shape[-2]]
    if d.choices.chance(30):
        order[-1] = extent + d.choices.pick(3)
    line = d.vector(order, d.choices.choose((DType.I32, DType.I64)))
    return d.broadcast(line, shape, [len(shape) - 2])
