"""Convolutions, and contractions whose operands and result differ in type."""

from __future__ import annotations

from fuzz.generate.modules.draft import MOST, NUMBERS, Draft, array, pairs
from fuzz.generate.modules.statements.table import STATEMENTS
from fuzz.generate.values.recipes import Recipe
from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.literals import Shape
from tenferro_ref.stablehlo.writer import SsaValue

_DTYPES = NUMBERS - {DType.U32, DType.U64, DType.C64}
#: Types of operands and of a result.
_WIDER = [
    (DType.I8, DType.I32), (DType.BF16, DType.F32), (DType.F16, DType.F32), (DType.F32, DType.F64), (DType.I32, DType.I64),
    (DType.U8, DType.U32), (DType.I16, DType.I32),
]  # fmt: skip
#: By the type of operands and result: types that operands are rounded to, with that of the sums.
_ALGORITHMS = {
    DType.F32: (("bf16", "f32"), ("tf32", "f32"), ("f32", "f32"), ("f16", "f32")), DType.F64: (("f64", "f64"),),
    DType.F16: (("f16", "f32"), ("f16", "f16")), DType.BF16: (("bf16", "f32"), ("bf16", "bf16")),
}  # fmt: skip
_NARROWER = [(DType.F32, DType.BF16), (DType.F32, DType.F16), (DType.F64, DType.F32), (DType.I32, DType.I8)]


@STATEMENTS.row("convolution")
def _(d: Draft) -> SsaValue:
    return _convolution(d, 1, batched=False)


@STATEMENTS.row("convolution in groups")
def _(d: Draft) -> SsaValue:
    """Of features, or of batches."""
    return _convolution(d, d.choices.choose((2, 3)), batched=d.choices.chance(40))


@STATEMENTS.row("dynamic_conv")
def _(d: Draft) -> SsaValue:
    """With its padding as a value."""
    return _convolution(d, 1, batched=False, dynamic=True)


@STATEMENTS.row("convolution to another type")
def _(d: Draft) -> SsaValue:
    """A wider one, or a narrower one, which few executors take."""
    before, after = d.choices.choose(_NARROWER if d.choices.chance(20) else _WIDER)
    return _convolution(d, d.choices.choose((1, 1, 2)), batched=False, dtype=before, to=after)


def _convolution(
    d: Draft, groups: int, batched: bool, dynamic: bool = False, dtype: DType | None = None, to: DType | None = None
) -> SsaValue:
    """Of zero to two spatial axes, with every attribute; axes in any order."""
    dtype, spatial = dtype or d.dtype(_DTYPES), d.choices.choose((1, 2, 1, 0))
    batch, inputs, outputs = 1 + d.choices.pick(3), d.choices.choose((1, 2, 1, 2, 8)), d.choices.choose((2, 1, 3))
    rows = [_spatial(d) for _ in range(spatial)]
    extents, sizes = [r[0] for r in rows], [r[1] for r in rows]
    features, kernel_inputs = (inputs, inputs) if batched else (inputs * groups, inputs)
    batch, outputs = (batch * groups if batched else batch), outputs * groups
    lhs, lhs_order = _arranged(d, dtype, [batch, features, *extents])
    rhs, rhs_order = _arranged(d, dtype, [kernel_inputs, outputs, *sizes])
    result = [batch // groups if batched else batch, outputs, *(r[-1] for r in rows)]
    order = d.choices.permutation(spatial + 2)
    shape = tuple(result[axis] for axis in order)
    padding = _paddings([r[3] for r in rows])
    numbers = "x".join([_letters("bf", lhs_order), _letters("io", rhs_order)]) + "->" + _letters("bf", order)
    attrs = (
        f"window_strides = {array([r[2] for r in rows])}, {'' if dynamic else f'padding = {padding}, '}"
        f"lhs_dilation = {array([r[4] for r in rows])}, rhs_dilation = {array([r[5] for r in rows])}, "
        f"window_reversal = array<i1{': ' if rows else ''}{', '.join('true' if r[6] else 'false' for r in rows)}>, "
        f"dimension_numbers = #stablehlo.conv<{numbers}>, "
        f"feature_group_count = {1 if batched else groups} : i64, batch_group_count = {groups if batched else 1} : i64"
    )
    if dynamic:
        edges = d.one("constant", [], DType.I64, (spatial, 2), f"value = {padding}")
        return d.one("dynamic_conv", [lhs, rhs, edges], dtype, shape, attrs)
    return d.one("convolution", [lhs, rhs], to or dtype, shape, attrs)


def _paddings(rows: list[tuple[int, int]]) -> str:
    return pairs(rows) if rows else "dense<> : tensor<0x2xi64>"


def _spatial(d: Draft) -> tuple[int, int, int, tuple[int, int], int, int, bool, int]:
    """Extent, window, stride, padding, both dilations, reversal, and how many positions there are."""
    extent, size, stride = 1 + d.choices.pick(8), 1 + d.choices.pick(3), 1 + d.choices.near(3)
    left, right = d.choices.choose((1, 1, 1, 2)), d.choices.choose((1, 1, 1, 2, 3))
    edges = d.choices.choose((0, 1, 2, -1)), d.choices.choose((0, 1, 0, 2))
    reverse = d.choices.chance(50)
    padded = (extent - 1) * left + 1 + sum(edges)
    if padded < (size - 1) * right + 1:
        size, right, edges, padded = 1, 1, (0, 0), (extent - 1) * left + 1
    return extent, size, stride, edges, left, right, reverse, (padded - (size - 1) * right - 1) // stride + 1


def _arranged(d: Draft, dtype: DType, extents: list[int]) -> tuple[SsaValue, tuple[int, ...]]:
    """An operand with its axes in a drawn order, and that order."""
    order = d.choices.permutation(len(extents))
    return d.typed(dtype, tuple(extents[axis] for axis in order)), order


def _letters(two: str, order: tuple[int, ...]) -> str:
    """`[b, 0, f]`: where the axes of a convolution are."""
    names = [*two, *(str(i) for i in range(len(order) - 2))]
    return f"[{', '.join(names[axis] for axis in order)}]"


@STATEMENTS.row("convolution of single elements")
def _(d: Draft) -> SsaValue:
    """A kernel of one position, of eight channels, with edges that are cut off on one side and added on the other."""
    dtype, channels = d.choices.choose((DType.F32, DType.F32, DType.F64, DType.I32)), d.choices.choose((8, 8, 4, 16))
    extents = [5 + d.choices.pick(3) for _ in range(2)]
    edges = [d.choices.choose(((0, 0), (-5, 1), (-2, 2), (1, -1), (-1, 1), (-4, 3))) for _ in extents]
    positions = [e + sum(pair) for e, pair in zip(extents, edges, strict=True)]
    shapes = (1 + d.choices.pick(2), *extents, channels), (1, 1, channels, channels)
    x, kernel = (
        d.fresh(dtype, shape, Recipe("small" if dtype.is_int else "exact", d.choices.integer(2))) for shape in shapes
    )
    attrs = (
        f"padding = {pairs(edges)}, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
        "feature_group_count = 1 : i64, batch_group_count = 1 : i64"
    )
    return d.one("convolution", [x, kernel], dtype, (shapes[0][0], *positions, channels), attrs)


@STATEMENTS.row("dot_general")
def _(d: Draft) -> SsaValue:
    """Of several axes in each role, in any order in either operand."""
    dtype = d.dtype(_DTYPES)
    batch, shared, left, right = ([1 + d.choices.pick(3) for _ in range(d.choices.pick(3))] for _ in range(4))
    lhs, lhs_axes = _mixed(d, dtype, batch, shared, left)
    rhs, rhs_axes = _mixed(d, dtype, batch, shared, right)
    # the axes of one role stand in the order in which they go together, which need not be theirs
    numbers = ", ".join(
        f"{side}_{role}_dimensions = {axes[part]}"
        for role, part in (("batching", 0), ("contracting", 1))
        for side, axes in (("lhs", lhs_axes), ("rhs", rhs_axes))
    )
    attrs = f"dot_dimension_numbers = #stablehlo.dot<{numbers}>"
    if dtype in _ALGORITHMS and d.choices.chance(12):
        attrs += f", algorithm = {_algorithm(*d.choices.choose(_ALGORITHMS[dtype]))}"
    free = [[x.shape[a] for a in axes[2]] for x, axes in ((lhs, lhs_axes), (rhs, rhs_axes))]
    return d.one("dot_general", [lhs, rhs], dtype, (*batch, *free[0], *free[1]), attrs)


def _algorithm(operands: str, sums: str) -> str:
    """The attribute by which operands are rounded to one type and products are added in another."""
    counts = "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1"
    types = f"lhs_precision_type = {operands}, rhs_precision_type = {operands}, accumulation_type = {sums}"
    return f"#stablehlo.dot_algorithm<{types}, {counts}, allow_imprecise_accumulation = false>"


def _mixed(d: Draft, dtype: DType, *roles: list[int]) -> tuple[SsaValue, list[list[int]]]:
    """An operand with the axes of some roles in a drawn order, and where those of each role are; the last ones in order."""
    extents = [e for role in roles for e in role]
    order = d.choices.permutation(len(extents))
    places, first = list[list[int]](), 0
    for role in roles:
        places.append([order.index(first + i) for i in range(len(role))])
        first += len(role)
    places[-1].sort()
    return d.typed(dtype, tuple(extents[i] for i in order)), places


@STATEMENTS.row("dot_general to another type")
def _(d: Draft) -> SsaValue:
    """A wider one, or a narrower one, which few executors take."""
    before, after = d.choices.choose(_NARROWER if d.choices.chance(12) else [*_WIDER, (DType.I4, DType.I32)])
    m, k, n, batch = (1 + d.choices.pick(6) for _ in range(4))
    lead: Shape = (batch,) if d.choices.chance(40) else ()
    given = DType.I8 if before is DType.I4 else before
    x, y = d.typed(given, (*lead, m, k)), d.typed(given, (*lead, n, k))
    x, y = (d.convert(v, before) for v in (x, y)) if given is not before else (x, y)
    place = len(lead)
    axes = f"lhs_batching_dimensions = [{'0' * place}], rhs_batching_dimensions = [{'0' * place}], "
    axes += f"lhs_contracting_dimensions = [{place + 1}], rhs_contracting_dimensions = [{place + 1}]"
    assert m * n * k * batch <= 6 * MOST
    return d.one("dot_general", [x, y], after, (*lead, m, n), f"dot_dimension_numbers = #stablehlo.dot<{axes}>")
