"""Elementwise operations that programs lack, on their own and as readers of other results."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

import numpy as np

from fuzz.generate.modules.draft import ALL, COMPLEX, FLOATS, INTS, MOST, NUMBERS, ORDERED, REAL, WIDE, Draft
from fuzz.generate.modules.statements.table import STATEMENTS, Statement
from fuzz.generate.values.classes import corner_classes
from fuzz.generate.values.recipes import Recipe
from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.literals import Shape
from tenferro_ref.stablehlo.writer import SsaValue
from tenferro_ref.tensor import Array

_UNARY: dict[str, Collection[DType]] = {
    **dict.fromkeys(("cbrt", "ceil", "floor", "round_nearest_afz", "round_nearest_even"), FLOATS),
    "tan": FLOATS | COMPLEX,
    **dict.fromkeys(("not", "popcnt", "count_leading_zeros"), INTS),
    "logistic": FLOATS | COMPLEX,
    "sign": FLOATS | COMPLEX | {DType.I32, DType.I64, DType.I8, DType.I16},
    **{
        f"chlo.{name}": FLOATS
        for name in (
            "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "cosh", "digamma", "erf", "erf_inv", "erfc",
            "lgamma", "sinh", "tan", "square",
        )
    },
    "chlo.conj": COMPLEX,
}  # fmt: skip
#: Functions of CHLO that take complex numbers as well.
_OF_COMPLEX = ("tan", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "square")
_BINARY: dict[str, Collection[DType]] = {
    "atan2": FLOATS,
    **dict.fromkeys(("and", "or", "xor"), INTS | {DType.Bool}),
    **dict.fromkeys(("shift_left", "shift_right_arithmetic", "shift_right_logical"), INTS),
    "chlo.next_after": WIDE,
    "chlo.mulhi": INTS,
}
_TESTS: dict[str, Collection[DType]] = {
    "is_finite": FLOATS,
    **dict.fromkeys(("chlo.is_inf", "chlo.is_pos_inf", "chlo.is_neg_inf"), FLOATS),
}


def _operands(d: Draft, dtypes: Collection[DType], count: int) -> list[SsaValue]:
    """Operands of one type; now and then arguments of a class of numbers on which implementations go ways of their own."""
    if d.choices.chance(25):
        dtype, shape = d.dtype(dtypes), d.shape()
        if dtype in FLOATS:
            kind = d.choices.choose(("subnormal", "special", "knees"))
            return [d.fresh(dtype, shape, Recipe(kind, d.choices.integer(2))) for _ in range(count)]
    x = d.operand(dtypes, empty=True)
    return [x, *(d.like(x) for _ in range(count - 1))]


def _corners(d: Draft, dtype: DType, count: int) -> list[SsaValue]:
    """Arguments that have every special number of a dtype, or every pair of them."""
    kinds, n = corner_classes(dtype, count)
    return [d.fresh(dtype, (n,), Recipe(kind, 0)) for kind in kinds]


def _applied(name: str, dtypes: Collection[DType], count: int, result: DType | None = None) -> Statement:
    """An operation of so many operands of one type; every other time on the corners of each dtype that is not complex."""

    cornered = [dtype for dtype in DType if dtype in dtypes and dtype in REAL]

    def append(d: Draft) -> SsaValue | list[SsaValue]:
        if cornered and d.choices.chance(50):
            operands = [_corners(d, dtype, count) for dtype in cornered]
        else:
            operands = [_operands(d, dtypes, count)]
        return [d.one(name, xs, result or xs[0].dtype, xs[0].shape) for xs in operands]

    return append


for _name, _dtypes in _UNARY.items():
    STATEMENTS[_name] = _applied(_name, _dtypes, 1)
for _name, _dtypes in _BINARY.items():
    STATEMENTS[_name] = _applied(_name, _dtypes, 2)
for _name, _dtypes in _TESTS.items():
    STATEMENTS[_name] = _applied(_name, _dtypes, 1, DType.Bool)


#: Where functions of F32 come so near to their limit that a polynomial may go beyond it, or leave the normal numbers.
_LIMITS: dict[str, tuple[tuple[float, float], ...]] = {
    "chlo.erf": ((3.7, 3.84), (-3.84, -3.7)), "chlo.erfc": ((8.5, 9.3),), "tanh": ((7.9, 9.1), (-9.1, -7.9)),
    "logistic": ((16, 18), (-104, -87)),
}  # fmt: skip


def _near_limit(name: str, ranges: Sequence[tuple[float, float]]) -> Statement:
    def append(d: Draft) -> SsaValue:
        least, greatest = d.choices.choose(ranges)
        x = d.given(np.asfortranarray(d.random().uniform(least, greatest, (2, 64)).astype(np.float32)))
        return d.one(name, [x], x.dtype, x.shape)

    return append


for _name, _ranges in _LIMITS.items():
    STATEMENTS[f"{_name} near its limit"] = _near_limit(_name, _ranges)


@STATEMENTS.row("atan2 of zeros")
def _(d: Draft) -> SsaValue:
    """Of zeros that come of truth values or integers, which compilers find out."""
    dtype, x = d.choices.choose((DType.F32, DType.F64)), d.operand(INTS)

    def zero() -> SsaValue:
        p = d.compare("LT", x, d.like(x)) if d.choices.chance(70) else x
        return d.convert(d.one("xor", [p, p], p.dtype, p.shape), dtype)

    return d.one("atan2", [zero(), zero()], dtype, x.shape)


@STATEMENTS.row("chlo.polygamma")
def _(d: Draft) -> SsaValue:
    """Of a small whole order."""
    x = d.operand(WIDE)
    return d.one("chlo.polygamma", [d.filled(d.choices.choose((0, 1, 2, 3, 5)), x.dtype, x.shape), x], x.dtype, x.shape)


@STATEMENTS.row("chlo.zeta")
def _(d: Draft) -> SsaValue:
    x = d.operand(WIDE)
    return d.one("chlo.zeta", [d.filled(d.choices.choose((1, 2, 1.5, 3, 6)), x.dtype, x.shape), x], x.dtype, x.shape)


@STATEMENTS.row("chlo.mulhi of 64 bits")
def _(d: Draft) -> SsaValue:
    """The upper half of a product of 128 bits."""
    x = d.fresh(d.choices.choose((DType.U64, DType.I64)), d.shape(), Recipe("bits", d.choices.integer(2)))
    y = d.fresh(x.dtype, x.shape, Recipe(d.choices.choose(("bits", "special")), d.choices.integer(2)))
    return d.one("chlo.mulhi", [x, y], x.dtype, x.shape)


@STATEMENTS.row("not of truth values")
def _(d: Draft) -> SsaValue:
    x = d.operand({DType.Bool})
    return d.one("not", [x], x.dtype, x.shape)


@STATEMENTS.row("compare NE")
def _(d: Draft) -> SsaValue:
    """In half of the cases on every pair of special numbers."""
    if d.choices.chance(50):
        x, y = _corners(d, d.dtype(FLOATS), 2)
    else:
        x = d.operand(ALL)
        y = d.like(x)
    return d.compare(
        "NE" if x.dtype in NUMBERS - REAL else d.choices.choose(("NE", "NE", "NE", "LT", "GE", "EQ")), x, y
    )


@STATEMENTS.row("compare TOTALORDER")
def _(d: Draft) -> SsaValue:
    """Of zeros of two signs or of NaNs as a rule, which no other comparison tells apart."""
    direction = d.choices.choose(("LT", "GT", "LE", "GE", "EQ", "NE"))
    if d.choices.chance(40):
        x, y = _corners(d, d.dtype(FLOATS), 2)
    elif d.choices.chance(60):
        dtype, shape = d.dtype(FLOATS), d.shape()
        kind = d.choices.choose(("zeros", "zeros", "special"))
        x, y = (d.fresh(dtype, shape, Recipe(kind, d.choices.integer(2))) for _ in range(2))
    else:
        x = d.operand(FLOATS)
        y = d.like(x)
    return comparison(d, x, y, direction, "TOTALORDER")


def comparison(d: Draft, x: SsaValue, y: SsaValue, direction: str, kind: str) -> SsaValue:
    """A comparison of a kind that the writer does not choose by itself."""
    attrs = (
        f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
        f"compare_type = #stablehlo<comparison_type {kind}>"
    )
    return d.one("compare", [x, y], DType.Bool, x.shape, attrs)


@STATEMENTS.row("clamp by scalars")
def _(d: Draft) -> SsaValue:
    x = _corners(d, d.dtype(REAL), 1)[0] if d.choices.chance(30) else d.operand(REAL)
    return d.one("clamp", [d.scalar(x.dtype), x, d.scalar(x.dtype)], x.dtype, x.shape)


@STATEMENTS.row("select by a scalar")
def _(d: Draft) -> SsaValue:
    x = d.operand(ALL)
    return d.one("select", [d.scalar(DType.Bool), x, d.like(x)], x.dtype, x.shape)


@STATEMENTS.row("real")
def _(d: Draft) -> SsaValue:
    return d.real(d.operand(COMPLEX))


@STATEMENTS.row("imag")
def _(d: Draft) -> SsaValue:
    x = d.operand(COMPLEX)
    return d.one("imag", [x], x.dtype.real, x.shape)


@STATEMENTS.row("complex")
def _(d: Draft) -> SsaValue:
    """Of two real values; its conjugate in its place every other time."""
    x, y = _corners(d, d.dtype(WIDE), 2) if d.choices.chance(30) else _operands(d, WIDE, 2)
    z = d.one("complex", [x, y], x.dtype.complex, x.shape)
    return d.one("chlo.conj", [z], z.dtype, z.shape) if d.choices.chance(50) else z


@STATEMENTS.row("complex of parts")
def _(d: Draft) -> SsaValue:
    """Of parts of complex values: those of one value as they were, in the other order, or only one of them."""
    z = d.operand(COMPLEX)
    re, im = d.real(z), d.one("imag", [z], z.dtype.real, z.shape)
    other = d.typed(re.dtype, re.shape) if d.choices.chance(50) else d.real(d.like(z))
    turned = d.same("negate", im)
    parts = d.choices.choose(((other, im), (re, im), (other, turned), (im, re), (other, im), (re, other), (re, turned)))
    return d.one("complex", parts, z.dtype, z.shape)


@STATEMENTS.row("chlo of complex numbers")
def _(d: Draft) -> Sequence[SsaValue]:
    """Two functions, of numbers as they come, and of special ones every other time."""
    names = [d.choices.choose(_OF_COMPLEX), d.choices.choose(_OF_COMPLEX)]
    x = d.operand(COMPLEX)
    if d.choices.chance(50):
        parts = _corners(d, x.dtype.real, 2)
        x = d.one("complex", parts, x.dtype, parts[0].shape)
    return [d.one(f"chlo.{name}", [x], x.dtype, x.shape) for name in names]


@STATEMENTS.row("reduce_precision")
def _(d: Draft) -> Sequence[SsaValue]:
    """Of special numbers, and twice of numbers near the ends of the narrower format as a rule: its largest exponent, its smallest one, halves of its last bit."""
    made = []
    for turn in range(3):
        dtype = d.dtype(FLOATS)
        widest = {64: 53, 32: 24, 16: 11}.get(dtype.bits, 4)
        exponent, mantissa = (5, 10) if d.choices.chance(25) else (1 + d.choices.pick(11), d.choices.pick(widest))
        if not turn:
            x = _corners(d, dtype, 1)[0]
        elif d.choices.chance(70):
            x = d.given(_edges(d, dtype, exponent, mantissa, d.shape()))
        else:
            x = d.operand(FLOATS)
        attrs = f"exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32"
        made.append(d.one("reduce_precision", [x], x.dtype, x.shape, attrs))
    return made


def _edges(d: Draft, dtype: DType, exponent: int, mantissa: int, shape: Shape) -> Array:
    """Powers of two at both ends of a format and one beyond, times what is some halves of its last bit away from 1."""
    bias = (1 << (exponent - 1)) - 1
    random = d.random()
    powers = random.choice((bias, bias + 1, bias - 1, 1 - bias, -bias, 0), shape)
    bits = min(mantissa, 40)
    parts = random.choice((0, 1, 2, 3, (2 << bits) - 1, (2 << bits) - 2), shape)
    with np.errstate(all="ignore"):
        numbers = np.ldexp(1 + np.ldexp(parts.astype(np.float64), -bits - 1), powers)
        signed = np.where(random.random(shape) < 0.5, -numbers, numbers)
        return np.asfortranarray(signed.astype(dtype.numpy))


@STATEMENTS.row("optimization_barrier")
def _(d: Draft) -> Sequence[SsaValue]:
    operands = [d.operand(ALL) for _ in range(1 + d.choices.pick(2))]
    return d.operation("optimization_barrier", operands, "", [(x.dtype, x.shape) for x in operands])


@STATEMENTS.row("convert and back")
def _(d: Draft) -> SsaValue:
    """Through a float of 8 bits, to which and from which everything is converted."""
    x = _corners(d, d.dtype(FLOATS), 1)[0] if d.choices.chance(50) else d.operand(FLOATS)
    narrow = d.choices.choose((DType.F8E4M3FN, DType.F8E5M2, DType.F8E4M3B11FNUZ, DType.F8E5M2FNUZ, DType.F8E4M3FNUZ))
    return d.convert(d.convert(x, narrow), x.dtype)


@STATEMENTS.row("convert to four bits")
def _(d: Draft) -> SsaValue:
    """An integer of four bits or a float of four, something computed with it, and that as a wider integer."""
    x = d.operand(INTS)
    narrow = d.choices.choose((DType.I4, DType.U4, DType.F4E2M1FN))
    small = d.convert(x, narrow)
    if narrow is DType.F4E2M1FN:
        return d.convert(small, d.dtype(INTS))
    op = d.choices.choose(("add", "multiply", "subtract", "negate"))
    made = d.same(op, small) if op == "negate" else d.same(op, small, small)
    return d.convert(made, d.choices.choose((DType.I8, DType.I32, DType.I64)))


# --- bits -------------------------------------------------------------------------------------------------------------

_SAME_WIDTH = [
    (DType.F32, DType.I32), (DType.I32, DType.F32), (DType.F64, DType.I64), (DType.I64, DType.F64), (DType.F32, DType.U32),
    (DType.U32, DType.F32), (DType.F16, DType.I16), (DType.I16, DType.BF16), (DType.BF16, DType.U16), (DType.I8, DType.U8),
]  # fmt: skip
_NARROWER = [
    (DType.F64, DType.F32), (DType.F64, DType.I32), (DType.I32, DType.I16), (DType.F32, DType.U8), (DType.I64, DType.I8),
    (DType.F32, DType.F16),
]  # fmt: skip


@STATEMENTS.row("bitcast_convert")
def _(d: Draft) -> SsaValue:
    before, after = d.choices.choose(_SAME_WIDTH)
    x = d.operand({before})
    return d.one("bitcast_convert", [x], after, x.shape)


@STATEMENTS.row("bitcast_convert to parts")
def _(d: Draft) -> SsaValue:
    before, after = d.choices.choose(_NARROWER)
    ratio = before.bits // after.bits
    x = d.operand({before}, lambda v: len(v.shape) < 4 and prod(v.shape) * ratio <= MOST)
    return d.one("bitcast_convert", [x], after, (*x.shape, ratio))


@STATEMENTS.row("bitcast_convert to four bits")
def _(d: Draft) -> SsaValue:
    """Of an array that the module brings along as a rule, and as a wider integer then."""
    before = d.choices.choose((DType.U8, DType.U16, DType.I8, DType.I16))
    after, shape = d.choices.choose((DType.I4, DType.U4)), (2 + d.choices.pick(6),)
    low, high = before.limits
    numbers = d.random().integers(low, high + 1, shape).astype(before.numpy)
    x = d.array(numbers) if d.choices.chance(60) else d.argument(numbers)
    parts = d.one("bitcast_convert", [x], after, (*shape, before.bits // 4))
    return d.convert(parts, DType.I32)


@STATEMENTS.row("bitcast_convert of parts")
def _(d: Draft) -> SsaValue:
    after, before = d.choices.choose(_NARROWER)
    ratio = after.bits // before.bits
    x = d.fresh(before, (*d.shape()[:3], ratio))
    return d.one("bitcast_convert", [x], after, x.shape[:-1])


# --- readers ----------------------------------------------------------------------------------------------------------


def read(d: Draft, x: SsaValue) -> SsaValue:
    """An operation that programs have, on the result of one that they lack: what compilers fuse with it."""
    mode = d.choices.pick(10)
    if mode >= 8 and x.dtype in ORDERED - {DType.Bool}:
        return d.compare(d.choices.choose(("GE", "LT", "EQ")), x, d.filled(0, x.dtype, x.shape))
    if x.dtype is DType.Bool:
        return d.one("select", [x, y := d.typed(d.dtype(NUMBERS), x.shape), d.like(y)], y.dtype, x.shape)
    if mode == 0:
        return d.same("negate", x)
    if mode < 4 and x.shape and x.rank > 1:
        return d.transpose(x, d.choices.permutation(x.rank))
    if mode == 4 and x.dtype in ORDERED:
        return d.same("maximum", x, d.like(x))
    if mode == 5 and x.dtype in FLOATS:
        return d.same("exponential", x)
    return d.same(("add", "multiply", "subtract")[mode % 3], x, d.like(x))
