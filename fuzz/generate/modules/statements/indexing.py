"""Gathers, scatters and slices at positions that are values: all that their numbers can say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from fuzz.generate.modules.draft import ALL, FLOATS, INTS, MOST, Draft, array, body, region
from fuzz.generate.modules.statements.table import STATEMENTS
from fuzz.generate.values.recipes import Recipe, array_of
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.stablehlo.literals import Shape, type_text
from tenferro_ref.stablehlo.writer import SsaValue
from tenferro_ref.tensor import Array

_INDICES = (DType.I32, DType.I64, DType.I32, DType.U32, DType.U8, DType.I8, DType.U64, DType.I16, DType.U16)


def _operand(d: Draft) -> SsaValue:
    """An array of two axes or more; often a small one of four, which has room for two batching axes."""
    if d.choices.chance(40):
        return d.fresh(d.dtype(ALL), tuple(d.choices.choose((2, 3, 1)) for _ in range(4)))
    return d.operand(ALL, lambda v: len(v.shape) > 1 and prod(v.shape) <= MOST // 4)


# --- gather and scatter -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Windows:
    """Windows of an array at places that index vectors say.

    Attributes
    ----------
    sizes
        Of the windows, along each axis of the array.
    dropped
        Axes of the array that the windows lack in the result; their size is 1. Without the batching axes.
    batching, paired
        Batching axes of the array, and the axes of the indices that they go with.
    mapped
        Axes of the array that the components of an index vector are about.
    rows
        Extents of the indices without those of the index vectors.
    batched
        Which of `rows` are about batching axes.
    vector
        The axis of the index vectors.
    indices
        Shape of the indices; without a last axis where a vector of one component is implied.
    """

    sizes: list[int]
    dropped: list[int]
    batching: list[int]
    paired: list[int]
    mapped: list[int]
    rows: list[int]
    batched: list[int]
    vector: int
    indices: Shape

    @property
    def window(self) -> list[int]:
        """Extents of the windows in the result."""
        return [e for a, e in enumerate(self.sizes) if a not in (*self.dropped, *self.batching)]

    def laid_out(self, vectors: Array, dtype: DType) -> Array:
        """Index vectors, which stand along the last axis, as the indices of this shape."""
        return np.asfortranarray(np.moveaxis(vectors, -1, self.vector).reshape(self.indices).astype(dtype.numpy))

    def ascending(self, vectors: Array) -> Array:
        """The same index vectors in the order of the axes of the array that they are about."""
        rows = vectors.reshape(-1, len(self.mapped))
        keys = [rows[:, self.mapped.index(axis)] for axis in sorted(self.mapped, reverse=True)]
        return np.asarray(rows[np.lexsort(keys)].reshape(vectors.shape))


def _windows(d: Draft, x: SsaValue, single: bool = False, count: int = 3) -> _Windows:
    """Drawn windows.

    Parameters
    ----------
    single
        Whether windows have one element along each axis that is indexed, and whole axes otherwise.
    count
        How many rows of indices there may be along an axis.
    """
    axes = list(d.choices.permutation(x.rank))
    batching = sorted(axes[: d.choices.choose((1, 2, 0, 2)) if x.rank > 2 else 0][: x.rank - 2])
    free = [a for a in axes if a not in batching]
    mapped = free[: 1 if d.choices.chance(35) else 1 + d.choices.pick(len(free))]
    sizes = [1 if a in batching or a in mapped else e for a, e in enumerate(x.shape)]
    for axis in () if single else free:
        if d.choices.chance(50 if axis in mapped else 20):
            sizes[axis] = 1 + d.choices.near(x.shape[axis])
    dropped = [a for a in range(x.rank) if a not in batching and sizes[a] == 1 and d.choices.chance(60)]
    entries: list[tuple[int, int | None]] = [
        (1 + d.choices.pick(count), None) for _ in range(d.choices.choose((1, 2, 0)))
    ]
    for axis in batching:
        entries.insert(d.choices.pick(len(entries) + 1), (x.shape[axis], axis))
    if prod(e for e, _ in entries) * prod(sizes) > MOST:
        entries = [(1 if axis is None else e, axis) for e, axis in entries]
    rows, places = [e for e, _ in entries], [axis for _, axis in entries]
    implied = len(mapped) == 1 and d.choices.chance(40)
    vector = len(rows) if implied else d.choices.pick(len(rows) + 1)
    paired = [(n := places.index(axis)) + (n >= vector) for axis in batching]
    indices = tuple(rows) if implied else (*rows[:vector], len(mapped), *rows[vector:])
    batched = [n for n, axis in enumerate(places) if axis is not None]
    return _Windows(sizes, dropped, batching, paired, mapped, rows, batched, vector, indices)


def _arranged(d: Draft, rows: Sequence[int], window: Sequence[int], last: bool = False) -> tuple[list[int], Shape]:
    """Which axes of a result are those of the windows, and its shape: anywhere between those of the rows, or the last ones."""
    rank = len(rows) + len(window)
    places = sorted(range(len(rows), rank) if last else d.choices.permutation(rank)[: len(window)])
    rest, inner = iter(rows), iter(window)
    return places, tuple(next(inner) if axis in places else next(rest) for axis in range(rank))


def _indices(d: Draft, shape: Shape) -> SsaValue:
    """Positions, some of them outside."""
    dtype = d.choices.choose(_INDICES)
    usual = "simple" if dtype.is_unsigned else "small"
    return d.fresh(dtype, shape, Recipe("special" if d.choices.chance(12) else usual, d.choices.integer(2)))


@STATEMENTS.row("gather")
def _(d: Draft) -> SsaValue:
    return _gathered(d, dynamic=False)


@STATEMENTS.row("dynamic_gather")
def _(d: Draft) -> SsaValue:
    return _gathered(d, dynamic=True)


def _gathered(d: Draft, dynamic: bool) -> SsaValue:
    x = _operand(d)
    w = _windows(d, x)
    ordered = not w.batching and d.choices.chance(30)
    places, shape = _arranged(d, w.rows, w.window, last=ordered)
    numbers = (
        f"offset_dims = {places}, collapsed_slice_dims = {w.dropped}, operand_batching_dims = {w.batching}, "
        f"start_indices_batching_dims = {w.paired}, start_index_map = {w.mapped}, index_vector_dim = {w.vector}"
    )
    attrs = f"dimension_numbers = #stablehlo.gather<{numbers}>, indices_are_sorted = {str(ordered).lower()}"
    indices = _ascending_indices(d, w, x.shape) if ordered else _indices(d, w.indices)
    if dynamic:
        return d.one("dynamic_gather", [x, indices, d.vector(w.sizes, DType.I64)], x.dtype, shape, attrs)
    return d.one("gather", [x, indices], x.dtype, shape, f"{attrs}, slice_sizes = {array(w.sizes)}")


def _ascending_indices(d: Draft, w: _Windows, extents: Shape) -> SsaValue:
    """Positions in order, as `indices_are_sorted` promises; all inside, since those that are clamped may lose the order."""
    most = np.array([extents[axis] - w.sizes[axis] for axis in w.mapped])
    vectors = d.random().integers(0, most + 1, (*w.rows, len(w.mapped)))
    return d.given(w.laid_out(w.ascending(vectors), d.choices.choose(_INDICES)))


def _joining(dtype: DType) -> tuple[str, ...]:
    """Bodies whose result depends on no order, or only as far as a sum of floats does."""
    if dtype is DType.Bool:
        return ("or", "and")
    if dtype in INTS:
        return ("maximum", "minimum", "multiply", "xor", "add")
    return ("multiply", "maximum", "minimum", "multiply", "add") if dtype in FLOATS else ("multiply", "add")


@STATEMENTS.row("scatter")
def _(d: Draft) -> SsaValue:
    x = _operand(d)
    joined = body(d.choices.choose(_joining(x.dtype)), x.dtype)
    if d.choices.chance(40):
        return _at_different_places(d, [x], joined)[0]
    w = _windows(d, x)
    places, shape = _arranged(d, w.rows, w.window)
    indices = _indices_of_whole_windows(d, w, x.shape)
    return _scattered(d, w, places, [x], indices, [d.typed(x.dtype, shape)], joined, unique=False)[0]


def _indices_of_whole_windows(d: Draft, w: _Windows, extents: Shape) -> SsaValue:
    """Positions of windows that are wholly inside or wholly outside: implementations differ on one that is partly outside."""
    dtype = d.choices.choose(_INDICES)
    most = np.array([extents[axis] - w.sizes[axis] for axis in w.mapped])
    numbers = d.random().integers(0, most + 1, (*w.rows, len(w.mapped)))
    outside = d.random().random(numbers.shape) < 0.1
    return d.given(
        w.laid_out(np.where(outside, 100 if dtype.is_unsigned or d.choices.chance(50) else -100, numbers), dtype)
    )


@STATEMENTS.row("scatter that overwrites")
def _(d: Draft) -> SsaValue:
    x = _operand(d)
    return _at_different_places(d, [x], _second([x]))[0]


@STATEMENTS.row("scatter into two")
def _(d: Draft) -> Sequence[SsaValue]:
    """Often into one value twice, which compilers may take for one scatter."""
    x = _operand(d)
    operands = [x, x if d.choices.chance(30) else d.like(x)]
    return _at_different_places(d, operands, _second(operands))


@STATEMENTS.row("scatter that overwrites again")
def _(d: Draft) -> SsaValue:
    """Several updates of one place are the same, since any of them may stay."""
    x = _operand(d)
    w = _windows(d, x, single=True)
    places, shape = _arranged(d, w.rows, w.window)
    update = d.broadcast(_update(d, x.dtype, tuple(w.window)), shape, places)
    numbers = d.random().integers(0, 3, w.indices)  # so few that some come twice
    indices = d.given(numbers.astype(d.choices.choose(_INDICES).numpy))
    return _scattered(d, w, places, [x], indices, [update], _second([x]), unique=False)[0]


def _second(operands: Sequence[SsaValue]) -> str:
    """A body that takes the updates."""
    types = [type_text(v.dtype, ()) for v in operands]
    names = [f"%u{i}" for i in range(len(operands))]
    arguments = [(f"%o{i}", t) for i, t in enumerate(types)] + list(zip(names, types, strict=True))
    return region(arguments, [], ", ".join(names), ", ".join(types))


def _at_different_places(d: Draft, operands: Sequence[SsaValue], joined: str) -> list[SsaValue]:
    """A scatter whose windows do not overlap: the first component of each index vector of a batch is another one."""
    x = operands[0]
    w = _windows(d, x, single=True, count=2)
    free = [e for n, e in enumerate(w.rows) if n not in w.batched]
    extent, random = x.shape[w.mapped[0]], d.random()
    first = random.permutation(max(extent, prod(free)) + 1)[: prod(free)]
    vectors = random.integers(0, 3, (*w.rows, len(w.mapped)))
    vectors[..., 0] = first.reshape([1 if n in w.batched else e for n, e in enumerate(w.rows)])
    ordered = not w.batching and d.choices.chance(30)
    indices = d.given(w.laid_out(w.ascending(vectors) if ordered else vectors, d.choices.choose(_INDICES)))
    places, shape = _arranged(d, w.rows, w.window, last=ordered)
    updates = [_update(d, v.dtype, shape) for v in operands]
    unique = d.choices.chance(70)
    return _scattered(d, w, places, operands, indices, updates, joined, unique=unique, ordered=ordered)


def _update(d: Draft, dtype: DType, shape: Shape) -> SsaValue:
    """Updates; zeros of both signs in three of ten: whoever adds where a scatter overwrites makes +0 of -0."""
    if dtype in INEXACT and d.choices.chance(30):
        return d.fresh(dtype, shape, Recipe("zeros", d.choices.integer(2)))
    return d.typed(dtype, shape)


def _scattered(
    d: Draft, w: _Windows, places: list[int], operands: Sequence[SsaValue], indices: SsaValue, updates: Sequence[SsaValue],
    joined: str, unique: bool, ordered: bool = False,
) -> list[SsaValue]:  # fmt: skip
    numbers = (
        f"update_window_dims = {places}, inserted_window_dims = {w.dropped}, input_batching_dims = {w.batching}, "
        f"scatter_indices_batching_dims = {w.paired}, scatter_dims_to_operand_dims = {w.mapped}, index_vector_dim = {w.vector}"
    )
    attrs = f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, indices_are_sorted = {str(ordered).lower()}, unique_indices = {str(unique).lower()}"
    return d.operation("scatter", [*operands, indices, *updates], attrs, [(v.dtype, v.shape) for v in operands], joined)


# --- slices -----------------------------------------------------------------------------------------------------------


def _starts(d: Draft, extents: Sequence[int]) -> list[SsaValue]:
    """Where a slice begins, all of one type; what would be partly outside is moved inside."""
    dtype = d.choices.choose(_INDICES)
    far = array_of(Recipe("special", d.choices.integer(2)), dtype, (len(extents),))
    starts = [d.choices.choose((1, 0, 2, extent - 1, -1, extent + 3, int(far[i]))) for i, extent in enumerate(extents)]
    return [d.given(np.array(start).astype(dtype.numpy)) for start in starts]


@STATEMENTS.row("dynamic_slice")
def _(d: Draft) -> SsaValue:
    x = d.operand(ALL)
    shape = tuple(1 + d.choices.pick(e) for e in x.shape)
    return d.one("dynamic_slice", [x, *_starts(d, x.shape)], x.dtype, shape, f"slice_sizes = {array(shape)}")


#: Factors whose products are whole numbers, or would be if the factors were not rounded, and others.
_PRODUCTS = ((1.5, 2.0), (0.1, 10.0), (0.3, 10.0), (0.7, 10.0), (1 / 3, 3.0), (2.5, 0.5), (1.1, 2.0), (-0.5, 2.0))


@STATEMENTS.row("dynamic_slice at a computed place")
def _(d: Draft) -> SsaValue:
    """At the whole part of a product of floats, or at the whole number that is nearest to it."""
    x, dtype = d.operand(ALL), d.choices.choose((DType.F32, DType.F64, DType.F16, DType.BF16))
    shape, index = tuple(1 + d.choices.pick(e) for e in x.shape), d.choices.choose((DType.I32, DType.I64))
    starts = []
    for _axis in x.shape:
        factors = d.choices.choose(_PRODUCTS)
        a, b = (d.argument(np.array(factor).astype(dtype.numpy)) for factor in factors)
        product = d.same("multiply", a, b)
        if d.choices.chance(40):
            product = d.same(d.choices.choose(("floor", "round_nearest_even", "ceil")), product)
        starts.append(d.convert(product, index))
    return d.one("dynamic_slice", [x, *starts], x.dtype, shape, f"slice_sizes = {array(shape)}")


@STATEMENTS.row("dynamic_update_slice")
def _(d: Draft) -> SsaValue:
    x = d.operand(ALL)
    update = d.typed(x.dtype, tuple(1 + d.choices.pick(e) for e in x.shape))
    return d.one("dynamic_update_slice", [x, update, *_starts(d, x.shape)], x.dtype, x.shape)
