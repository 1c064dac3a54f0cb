"""Reductions whose bodies or initial values programs lack, windows, normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fuzz.generate.modules.draft import (
    ALL,
    COMPLEX,
    FLOATS,
    INTS,
    MOST,
    NUMBERS,
    ORDERED,
    REAL,
    WIDE,
    Draft,
    array,
    body,
    pairs,
    region,
)
from fuzz.generate.modules.statements.table import STATEMENTS
from fuzz.generate.values.recipes import Recipe
from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.literals import Shape, type_text
from tenferro_ref.stablehlo.writer import SsaValue


def _bodies(dtype: DType) -> tuple[str, ...]:
    """Names of operations that join elements of a dtype in any order, or round in none of them."""
    if dtype is DType.Bool:
        return ("and", "or", "xor", "add", "maximum")
    if dtype in INTS:
        return ("add", "maximum", "and", "xor", "or", "minimum", "multiply")
    return ("add", "maximum", "minimum", "multiply") if dtype in FLOATS else ("add", "multiply")


_FOLDS = ("add", "maximum", "minimum", "multiply")


def _without(shape: Shape, axes: Sequence[int]) -> Shape:
    return tuple(e for axis, e in enumerate(shape) if axis not in axes)


@STATEMENTS.row("reduce")
def _(d: Draft) -> SsaValue:
    x = d.operand(ALL)
    if d.choices.chance(8):  # over no element
        x = d.fresh(x.dtype, (*x.shape[:-1], 0))
    op, axes = d.choices.choose(_bodies(x.dtype)), [] if d.choices.chance(8) else d.axes(x)
    shape = _without(x.shape, axes)
    return d.one(
        "reduce", [x, _start(d, op, x.dtype)], x.dtype, shape, f"dimensions = {array(axes)}", body(op, x.dtype)
    )


def _start(d: Draft, op: str, dtype: DType) -> SsaValue:
    """An initial value: one that changes nothing in half of the cases, since it is open how often another one enters.

    In a complex product always, where nothing can be said of it then.
    """
    plain = d.choices.chance(50) or (dtype in COMPLEX and op == "multiply")
    return d.filled(neutral(op, dtype), dtype, ()) if plain else d.scalar(dtype)


@STATEMENTS.row("reduce of four bits")
def _(d: Draft) -> Sequence[SsaValue]:
    """Extrema, and a sum or product, of integers of four bits, often of none of them; what comes of them as wider integers."""
    x, narrow = d.operand(INTS), d.choices.choose((DType.I4, DType.I4, DType.U4))
    axes = d.axes(x)
    if d.choices.chance(50):
        x, axes = d.fresh(x.dtype, (*x.shape[:-1], 0)), [x.rank - 1]
    small, wide = d.convert(x, narrow), d.choices.choose((DType.I8, DType.I32, DType.I64))
    shape, lists = _without(x.shape, axes), f"dimensions = {array(axes)}"
    made = []
    for op in ("minimum", "maximum", d.choices.choose(("add", "multiply"))):
        start = d.filled(neutral(op, narrow), narrow, ())
        made.append(d.one("reduce", [small, start], narrow, shape, lists, body(op, narrow)))
    return [d.convert(value, wide) for value in made]


@STATEMENTS.row("reduce of two")
def _(d: Draft) -> Sequence[SsaValue]:
    x = d.operand(REAL)
    op, axes = d.choices.choose(_bodies(x.dtype)), d.axes(x)
    results = [(x.dtype, _without(x.shape, axes))] * 2
    operands = [x, d.like(x), *(_start(d, op, x.dtype) for _ in range(2))]
    return d.operation("reduce", operands, f"dimensions = {array(axes)}", results, body(op, x.dtype, 2))


@STATEMENTS.row("reduce of mixed types")
def _(d: Draft) -> Sequence[SsaValue]:
    """Of two or three arrays of a shape, each with a body of its own; XLA refuses floats of two widths."""
    x = d.operand(ORDERED)
    mixed = (DType.I32, x.dtype if x.dtype in FLOATS else DType.F32, DType.Bool, DType.U8)
    others = [d.typed(d.choices.choose(mixed), x.shape) for _ in range(1 + d.choices.pick(2))]
    arrays, axes = [x, *others], d.axes(x)
    shape = _without(x.shape, axes)
    types = [type_text(v.dtype, ()) for v in arrays]
    bodies = [d.choices.choose(_FOLDS if v.dtype is not DType.Bool else ("and", "or")) for v in arrays]
    lines = [f"%q{i} = stablehlo.{op} %p{i}, %p{len(arrays) + i} : {types[i]}" for i, op in enumerate(bodies)]
    names = [(f"%p{i}", t) for i, t in enumerate(types * 2)]
    joined = region(names, lines, ", ".join(f"%q{i}" for i in range(len(arrays))), ", ".join(types))
    operands = [*arrays, *(_start(d, op, v.dtype) for op, v in zip(bodies, arrays, strict=True))]
    return d.operation("reduce", operands, f"dimensions = {array(axes)}", [(v.dtype, shape) for v in arrays], joined)


@STATEMENTS.row("reduce by a comparison")
def _(d: Draft) -> Sequence[SsaValue]:
    """The extremum of integers and what stands beside it, which is one for all that are equal."""
    x = d.operand(INTS)
    twice = d.same("add", x, x)
    axes, direction = d.axes(x), d.choices.choose(("GT", "LT"))
    shape = _without(x.shape, axes)
    first = _worst(x.dtype, direction == "GT") if d.choices.chance(70) else d.number(x.dtype)
    operands = [x, twice, (start := d.filled(first, x.dtype, ())), d.same("add", start, start)]
    joined = _picked(direction, x.dtype, x.dtype)
    return d.operation("reduce", operands, f"dimensions = {array(axes)}", [(x.dtype, shape)] * 2, joined)


def _picked(direction: str, dtype: DType, beside: DType) -> str:
    """A body that picks one of two elements by a plain comparison, with what stands beside it."""
    t, w = type_text(dtype, ()), type_text(beside, ())
    lines = [
        f"%c = stablehlo.compare {direction}, %a, %b, {kind_of(dtype)} : ({t}, {t}) -> tensor<i1>",
        f"%v = stablehlo.select %c, %a, %b : tensor<i1>, {t}",
        f"%w = stablehlo.select %c, %i, %j : tensor<i1>, {w}",
    ]
    return region([("%a", t), ("%i", w), ("%b", t), ("%j", w)], lines, "%v, %w", f"{t}, {w}")


@STATEMENTS.row("reduce of floats by a comparison")
def _(d: Draft) -> Sequence[SsaValue]:
    """The extremum of floats and where it stands, as written without a thought of NaN and of equal elements."""
    x = d.operand(FLOATS)
    if d.choices.chance(60):
        kind = d.choices.choose(("zeros", "simple", "special"))
        x = d.fresh(x.dtype, x.shape, Recipe(kind, d.choices.integer(2)))
    axis, direction = d.axis(x), d.choices.choose(("GT", "GE", "LT", "LE"))
    shape = _without(x.shape, [axis])
    places = d.one("iota", [], DType.I32, x.shape, f"iota_dimension = {axis} : i64")
    first = _worst(x.dtype, direction[0] == "G") if d.choices.chance(70) else d.number(x.dtype)
    operands = [x, places, d.filled(first, x.dtype, ()), d.filled(0, DType.I32, ())]
    joined = _picked(direction, x.dtype, DType.I32)
    results = [(x.dtype, shape), (DType.I32, shape)]
    return d.operation("reduce", operands, f"dimensions = {array([axis])}", results, joined)


@STATEMENTS.row("reduce to an index")
def _(d: Draft) -> Sequence[SsaValue]:
    """The extremum and where it stands, in the form in which JAX writes argmax and argmin, and perhaps the other one beside it."""
    dtypes = REAL - {DType.F16, DType.BF16}
    x = d.operand(dtypes)
    if d.choices.chance(25):  # the first NaN is the extremum
        x = d.fresh(d.dtype(dtypes.intersection(FLOATS)), x.shape, Recipe("special", d.choices.integer(2)))
    # both extrema of a line of one element are the same
    axis = x.shape.index(max(x.shape)) if x.shape and d.choices.chance(70) else d.axis(x)
    greater = d.choices.chance(50)
    found = list(_extremum_and_place(d, x, axis, greater))
    return found + list(_extremum_and_place(d, x, axis, not greater)) if d.choices.chance(50) else found


def _extremum_and_place(d: Draft, x: SsaValue, axis: int, greater: bool) -> Sequence[SsaValue]:
    index = d.choices.choose((DType.I32, DType.I64))
    places = d.one("iota", [], index, x.shape, f"iota_dimension = {axis} : i64")
    usual = d.choices.chance(60)  # else an element of its own, which may be the extremum
    first = d.filled(_worst(x.dtype, greater) if usual else d.number(x.dtype), x.dtype, ())
    t, i, kind = type_text(x.dtype, ()), type_text(index, ()), kind_of(x.dtype)
    lines = [
        f"%gt = stablehlo.compare {'GT' if greater else 'LT'}, %a, %b, {kind} : ({t}, {t}) -> tensor<i1>",
        f"%nan = stablehlo.compare NE, %a, %a, {kind} : ({t}, {t}) -> tensor<i1>",
        "%more = stablehlo.or %gt, %nan : tensor<i1>",
        f"%eq = stablehlo.compare EQ, %a, %b, {kind} : ({t}, {t}) -> tensor<i1>",
        f"%lower = stablehlo.compare LT, %i, %j, SIGNED : ({i}, {i}) -> tensor<i1>",
        "%tie = stablehlo.and %eq, %lower : tensor<i1>",
        "%both = stablehlo.or %more, %tie : tensor<i1>",
        f"%value = stablehlo.select %more, %a, %b : tensor<i1>, {t}",
        f"%place = stablehlo.select %both, %i, %j : tensor<i1>, {i}",
    ]
    joined = region([("%a", t), ("%i", i), ("%b", t), ("%j", i)], lines, "%value, %place", f"{t}, {i}")
    shape = _without(x.shape, [axis])
    results = [(x.dtype, shape), (index, shape)]
    operands = [x, places, first, d.filled(0 if usual else d.choices.pick(3), index, ())]
    return d.operation("reduce", operands, f"dimensions = {array([axis])}", results, joined)


def kind_of(dtype: DType) -> str:
    """How elements of a dtype are compared."""
    return {"int": "SIGNED", "uint": "UNSIGNED", "bool": "UNSIGNED"}.get(dtype.kind, "FLOAT")


def _worst(dtype: DType, greater: bool) -> float:
    """What every element beats."""
    return float("-inf" if greater else "inf") if dtype in FLOATS else dtype.limits[not greater]


# --- windows ----------------------------------------------------------------------------------------------------------


def _windows(d: Draft, x: SsaValue) -> tuple[str, Shape]:
    """Attributes of windows that fit, and how many there are along each axis."""
    rows, columns, plain = [], [], d.choices.chance(25)
    for extent in x.shape:
        size, stride = 1 + d.choices.near(min(extent, 5) + 1), 1 + d.choices.near(3)
        if plain:  # windows of one element, of which edges are cut off
            edges = d.choices.choose(((0, 0), (-1, 0), (0, -1), (-1, 1)) if extent > 1 else ((0, 0),))
            rows.append((1, 1, 1, 1))
            columns.append((edges, extent + sum(edges)))
            continue
        base, window = d.choices.choose((1, 1, 1, 2)), d.choices.choose((1, 1, 1, 2))
        low, high = d.choices.choose((0, 1, 0, 2, -1)), d.choices.choose((0, 1, 0, size - 1, -1))
        padded = (extent - 1) * base + 1 + low + high
        if padded < (size - 1) * window + 1:
            size, stride, base, window, low, high, padded = 1, 1, 1, 1, 0, 0, extent
        rows.append((size, stride, base, window))
        columns.append(((low, high), (padded - (size - 1) * window - 1) // stride + 1))
    sizes, strides, bases, windows = zip(*rows, strict=True)
    attrs = (
        f"window_dimensions = {array(sizes)}, window_strides = {array(strides)}, base_dilations = {array(bases)}, "
        f"window_dilations = {array(windows)}, padding = {pairs([edges for edges, _ in columns])}"
    )
    return attrs, tuple(count for _, count in columns)


@STATEMENTS.row("reduce_window")
def _(d: Draft) -> SsaValue:
    x = d.operand(ALL, lambda v: prod(v.shape) <= MOST // 4)
    attrs, shape = _windows(d, x)
    op = d.choices.choose(_bodies(x.dtype))
    return d.one("reduce_window", [x, _start(d, op, x.dtype)], x.dtype, shape, attrs, body(op, x.dtype))


def neutral(op: str, dtype: DType) -> float:
    """What changes nothing under `op`."""
    if op in ("maximum", "minimum") and dtype is not DType.Bool:
        return _worst(dtype, op == "maximum")
    if op == "and":
        return dtype.limits[1] if dtype.is_unsigned else 1 if dtype is DType.Bool else -1
    return 1 if op in ("multiply", "minimum") else 0


@STATEMENTS.row("reduce_window of many")
def _(d: Draft) -> SsaValue:
    """So many elements that a library may take it; windows of one element along an axis that is dilated or padded."""
    dtype = d.choices.choose((DType.F32, DType.F64, DType.F16, DType.BF16, DType.I8, DType.U8))
    op = d.choices.choose(("maximum", "minimum", "add") if dtype in WIDE else ("maximum", "minimum"))
    x = d.fresh(
        dtype, (64, 64 + d.choices.pick(3)), Recipe("exact" if dtype in FLOATS else "small", d.choices.integer(2))
    )
    size, base, low = 1 + d.choices.pick(3), 1 + d.choices.pick(3), d.choices.pick(2)
    attrs = (
        f"window_dimensions = {array((size, 1))}, window_strides = {array((size, 1))}, base_dilations = {array((1, base))}, "
        f"window_dilations = {array((1, 1))}, padding = {pairs([(0, 0), (low, 0)])}"
    )
    shape = ((x.shape[0] - size) // size + 1, (x.shape[1] - 1) * base + 1 + low)
    first = d.filled(neutral(op, dtype), dtype, ())
    return d.one("reduce_window", [x, first], dtype, shape, attrs, body(op, dtype))


@STATEMENTS.row("reduce_window of a prefix")
def _(d: Draft) -> SsaValue:
    """What is summed up along an axis so far, as JAX writes it; now and then from an initial value that is not neutral."""
    x = d.operand(NUMBERS, lambda v: prod(v.shape) * max(v.shape) <= 16 * MOST)
    axis, op, back = d.axis(x), d.choices.choose(("add", "maximum", "minimum")), d.choices.chance(30)
    op = op if x.dtype in REAL else "add"
    n, ones = x.shape[axis], [1] * x.rank
    edges = [((0, n - 1) if back else (n - 1, 0)) if a == axis else (0, 0) for a in range(x.rank)]
    sizes = [n if a == axis else 1 for a in range(x.rank)]
    attrs = f"window_dimensions = {array(sizes)}, window_strides = {array(ones)}, padding = {pairs(edges)}"
    first = d.filled(neutral(op, x.dtype), x.dtype, ()) if d.choices.chance(75) else d.scalar(x.dtype)
    return d.one("reduce_window", [x, first], x.dtype, x.shape, attrs, body(op, x.dtype))


@STATEMENTS.row("select_and_scatter")
def _(d: Draft) -> SsaValue:
    """The gradient of a pooling: each window's chosen element gets the window's share."""
    x = d.operand(WIDE | {DType.I32}, lambda v: prod(v.shape) <= MOST // 4)
    rows, columns = [], []
    for extent in x.shape:
        size, stride = 1 + d.choices.near(min(extent, 4)), 1 + d.choices.near(3)
        low, high = (d.choices.choose((0, 1)) for _ in range(2)) if size > 1 else (0, 0)
        rows.append((size, stride))
        columns.append(((low, high), (extent + low + high - size) // stride + 1))
    sizes, strides = zip(*rows, strict=True)
    attrs = (
        f"window_dimensions = {array(sizes)}, window_strides = {array(strides)}, "
        f"padding = {pairs([edges for edges, _ in columns])}"
    )
    source = d.typed(x.dtype, tuple(count for _, count in columns))
    t, direction = type_text(x.dtype, ()), d.choices.choose(("GE", "LE", "GT"))
    test = f"%keep = stablehlo.compare {direction}, %a, %b, {kind_of(x.dtype)} : ({t}, {t}) -> tensor<i1>"
    chosen = region([("%a", t), ("%b", t)], [test], "%keep", "tensor<i1>")
    operands = [x, source, d.filled(0, x.dtype, ()) if d.choices.chance(75) else d.scalar(x.dtype)]
    return d.one("select_and_scatter", operands, x.dtype, x.shape, attrs, chosen, body("add", x.dtype))


# --- normalisation ----------------------------------------------------------------------------------------------------

_EPSILONS = ("1.000000e-03", "0.000000e+00", "1.000000e+00", "1.000000e-05")


def _normalised(d: Draft) -> tuple[SsaValue, str, Shape]:
    x = d.operand(WIDE)
    axis = d.axis(x)
    attrs = f"epsilon = {d.choices.choose(_EPSILONS)} : f32, feature_index = {axis} : i64"
    return x, attrs, (x.shape[axis],)


@STATEMENTS.row("batch_norm_inference")
def _(d: Draft) -> SsaValue:
    x, attrs, features = _normalised(d)
    return d.one("batch_norm_inference", [x, *(d.typed(x.dtype, features) for _ in range(4))], x.dtype, x.shape, attrs)


@STATEMENTS.row("batch_norm_training")
def _(d: Draft) -> Sequence[SsaValue]:
    x, attrs, features = _normalised(d)
    results = [(x.dtype, x.shape), (x.dtype, features), (x.dtype, features)]
    return d.operation("batch_norm_training", [x, *(d.typed(x.dtype, features) for _ in range(2))], attrs, results)


@STATEMENTS.row("batch_norm_grad")
def _(d: Draft) -> Sequence[SsaValue]:
    x, attrs, features = _normalised(d)
    results = [(x.dtype, x.shape), (x.dtype, features), (x.dtype, features)]
    operands = [x, *(d.typed(x.dtype, features) for _ in range(3)), d.like(x)]
    return d.operation("batch_norm_grad", operands, attrs, results)
