"""Enclosures of integer arithmetic hold the values at the ends of their operands, the extreme ones included, at every rank."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from oracle.enclosure import IEEE, XLA, enclose, integers
from oracle.enclosure.model import Model
from oracle.enclosure.value import Interval
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import GraphBuilder
from tenferro_ref.runtime.kernels import run_kernel

pytestmark = pytest.mark.once


def quotient(x: int, y: int) -> int:
    """Truncated; all bits set where the divisor is zero."""
    return -1 if y == 0 else (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)


def remainder(x: int, y: int) -> int:
    """With the sign of the dividend, which it is where the divisor is zero."""
    return x if y == 0 else (abs(x) % abs(y)) * (1 if x >= 0 else -1)


OPS = {
    "add": (integers.add, lambda x, y: x + y),
    "subtract": (integers.subtract, lambda x, y: x - y),
    "multiply": (integers.multiply, lambda x, y: x * y),
    "divide": (integers.divide, quotient),
    "remainder": (integers.remainder, remainder),
}


def between(dtype: DType, ends: tuple[int, int], shape: tuple[int, ...]) -> Interval:
    lo, hi = (np.full(shape, end, dtype.numpy) for end in ends)
    return integers.exact(dtype, lo, hi)


def wraps(dtype: DType, value: int) -> int:
    least, _ = dtype.limits
    return (value - least) % 2**dtype.bits + least


@pytest.mark.parametrize("shape", [(), (2,)], ids=str)
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", [DType.I8, DType.I32, DType.I64, DType.U8, DType.U64], ids=str)
def test_ends_are_inside(dtype: DType, name: str, shape: tuple[int, ...]) -> None:
    rule, value = OPS[name]
    least, most = dtype.limits
    values = sorted({least, least + 1, max(least, -1), 0, 1, 7, most - 1, most})
    ends = [(lo, hi) for lo in values for hi in values if lo <= hi]
    for left, right in product(ends, ends):
        made = rule(dtype, between(dtype, left, shape), between(dtype, right, shape))
        for x, y in product({*left}, {*right}):
            due = wraps(dtype, value(x, y))
            assert (made.lo <= due).all(), (left, right, x, y)
            assert (made.hi >= due).all(), (left, right, x, y)


def test_a_repeated_initial_value_of_rank_0_may_be_any_power_of_it():
    b = GraphBuilder(policy=STABLEHLO)
    once, never, first = (b.input(DType.I32) for _ in range(3))
    program = b.build(b.apply(ops.Repeated("multiply", 14), once, never, first))
    (made,) = enclose(program, [np.array(n, np.int32) for n in (3, 3, 2**31 - 1)], IEEE)
    (small,) = enclose(program, [np.array(n, np.int32) for n in (3, 3, 1)], IEEE)
    assert (int(made.lo), int(made.hi)) == DType.I32.limits
    assert (int(small.lo), int(small.hi)) == (0, 3)


@pytest.mark.parametrize("dtype", [DType.I8, DType.I32, DType.I64])
def test_a_negative_power_of_an_integer_is_its_reciprocal_truncated(dtype):
    """As `1 / x**-y` in Python's integers; all of IREE, the interpreter, JAX and the plugins agree (findings 0173 and 0174 apart)."""
    base, exponent = (
        a.ravel().astype(dtype.numpy) for a in np.meshgrid([-3, -1, 0, 1, 2], [-1, -2, -3, dtype.limits[0]])
    )
    b = GraphBuilder(policy=STABLEHLO)
    program = b.build(b.apply(ops.Pow(), *(b.input(dtype, a.shape) for a in (base, exponent))))
    (made,) = enclose(program, [base, exponent], IEEE)
    expected = [0 if abs(x) != 1 else 1 if y % 2 == 0 else int(x) for x, y in zip(base, exponent, strict=True)]
    assert made.lo.tolist() == made.hi.tolist() == expected


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        (ops.Pow(), [(2,), (2,)]),
        (ops.ReduceProd((1,)), [(2, 2)]),
        (ops.DotGeneral((1,), (0,), (), ()), [(2, 2), (2, 2)]),
    ],
)
def test_an_integer_that_is_not_known_leaves_what_does_not_read_it_decided(op, shapes):
    """The second row of the first operand is unknown: the exponential of 40, in F64 known to 32 at best."""
    b = GraphBuilder(policy=STABLEHLO)
    x, sure = b.input(DType.F64, shapes[0]), [b.input(DType.I64, shape) for shape in shapes[1:]]
    program = b.build(b.apply(op, b.apply(ops.Convert(DType.I64), b.apply(ops.Exp(), x)), *sure))
    first = np.full(shapes[0], 0.5)
    first[1] = 40.0
    (made,) = enclose(program, [first, *[np.full(shape, 3) for shape in shapes[1:]]], IEEE)
    decided = (made.lo == made.hi).reshape(2, -1)
    assert decided[0].all()
    assert not decided[1].any()


BITS = ("and", "or", "xor", "not", "shift_right_arithmetic", "shift_right_logical")


@pytest.mark.parametrize("function", BITS)
@pytest.mark.parametrize("dtype", [DType.I8, DType.U8], ids=str)
def test_bits_of_a_range_of_one_sign_are_between_those_of_its_ends(dtype: DType, function: str) -> None:
    """For masks that tell the sign from the rest, as a total order of floats is made of, and shifts to the right."""
    count, rng, (least, most) = 200, np.random.default_rng(3), dtype.limits
    lo, hi = np.sort(rng.integers(least, most, (2, count), endpoint=True), 0).astype(dtype.numpy)
    telling = rng.choice([0, wraps(dtype, -1), least, most], count)
    by = np.where(np.arange(count) % 4 == 0, rng.integers(least, most, count, endpoint=True), telling)
    by = (np.arange(count) % 9 if function.startswith("shift") else by).astype(dtype.numpy)
    others = [] if function == "not" else [by]
    b = GraphBuilder(policy=STABLEHLO)
    x, *ys = (b.input(dtype, (count,)) for _ in (lo, *others))
    program = b.build(b.apply(ops.Bits(function), x, *ys), b.apply(ops.Bits(function), *ys, x))
    first, second = enclose(
        program, [integers.exact(dtype, lo, hi), *(integers.exact(dtype, y, y) for y in others)], IEEE
    )
    for i in range(count):
        values = np.arange(int(lo[i]), int(hi[i]) + 1).astype(dtype.numpy)
        (seen,) = run_kernel(ops.Bits(function), STABLEHLO, values, *(np.full_like(values, y[i]) for y in others))
        assert first.lo[i] <= seen.min() <= seen.max() <= first.hi[i]
        if (function.startswith("shift") or i % 4) and (lo[i] < 0) == (hi[i] < 0):
            assert (first.lo[i], first.hi[i]) == (seen.min(), seen.max())
        if not function.startswith("shift"):
            assert (first.lo[i], first.hi[i]) == (second.lo[i], second.hi[i])


def ranges(dtype: DType, count: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends of ranges that have up to `width` values more than one."""
    rng, (least, most) = np.random.default_rng(width), dtype.limits
    lo = rng.integers(least, most, count, endpoint=True)
    hi = np.minimum(lo + rng.integers(0, width, count, endpoint=True), most)
    return lo.astype(dtype.numpy), hi.astype(dtype.numpy)


@pytest.mark.parametrize(
    "op", [*map(ops.Bits, ops.Bits.functions), ops.Pow()], ids=lambda op: getattr(op, "function", op.name)
)
@pytest.mark.parametrize("dtype", [DType.I8, DType.U8], ids=str)
@pytest.mark.parametrize("width", [7, 100])
def test_all_results_of_two_ranges_are_inside_and_few_have_their_hull(width: int, dtype: DType, op: ops.Op) -> None:
    """Of more than few, bits that all values share bound a mask, counts of bits are counts, and a shift that wraps nowhere is a product."""
    count, arity = 30, ops.Bits.functions[op.function] if isinstance(op, ops.Bits) else 2
    ends = [ranges(dtype, count, width), ranges(dtype, count, 7)][:arity]
    ends[0][1][::5] = ends[0][0][::5]
    b = GraphBuilder(policy=STABLEHLO)
    program = b.build(b.apply(op, *(b.input(dtype, (count,)) for _ in ends)))
    (made,) = enclose(program, [integers.exact(dtype, lo, hi) for lo, hi in ends], IEEE)
    for i in range(count):
        every = [np.arange(int(lo[i]), int(hi[i]) + 1).astype(dtype.numpy) for lo, hi in ends]
        values = [v.ravel() for v in np.meshgrid(*every)]
        (seen,) = run_kernel(op, STABLEHLO, *values)
        assert made.lo[i] <= seen.min() <= seen.max() <= made.hi[i]
        if len(values[0]) <= integers.FEW:
            assert (made.lo[i], made.hi[i]) == (seen.min(), seen.max())


def test_bits_of_many_integers_are_bounded_by_what_these_share():
    def of(function: str, x: tuple[int, int], *ys: tuple[int, int]) -> tuple[int, int]:
        b = GraphBuilder(policy=STABLEHLO)
        operands = [integers.exact(DType.I32, np.array([lo]), np.array([hi])) for lo, hi in (x, *ys)]
        (made,) = enclose(
            b.build(b.apply(ops.Bits(function), *(b.input(DType.I32, (1,)) for _ in operands))), operands, IEEE
        )
        return int(made.lo[0]), int(made.hi[0])

    wide = DType.I32.limits
    assert of("and", wide, (255, 255)) == of("and", (255, 255), wide) == (0, 255)
    assert of("and", (0, 1000), (0, 700)) == (0, 700)
    assert of("or", (0, 2**23 - 1), (0x3F800000, 0x3F800000)) == (0x3F800000, 0x3FFFFFFF)
    assert of("xor", (1024, 1535), (2048, 2048)) == (3072, 3583)
    assert of("popcnt", wide) == of("count_leading_zeros", wide) == (0, 32)
    assert of("shift_left", (1000, 2000), (4, 4)) == (16000, 32000)
    assert of("shift_left", (1000, 2000), (40, 40)) == of("shift_left", wide, (-1, -1)) == (0, 0)
    assert of("shift_left", (1000, 2000), (25, 25)) == of("shift_left", (0, 1000), wide) == wide


@pytest.mark.parametrize("model", [IEEE, XLA], ids=lambda m: m.name)
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16], ids=str)
def test_floats_of_bits_of_one_sign_are_between_those_of_the_ends(dtype: DType, model: Model) -> None:
    infinity = int(np.array(np.inf, dtype.numpy).view(np.uint16))
    special = [0, 1, 9, infinity // 2, infinity // 2 + 300, infinity - 1, infinity, infinity + 1, 2**15 - 1]
    ends = [(a, b) for a in special for b in special if a < b]
    ends = [*ends, *((a + 2**15, b + 2**15) for a, b in ends), (5, 2**15 + 5), (infinity, 2**16 - 1)]
    lo, hi = np.array(ends, np.uint16).T
    b = GraphBuilder(policy=STABLEHLO)
    program = b.build(b.apply(ops.Bitcast(dtype), b.input(DType.U16, lo.shape)))
    (made,) = enclose(program, [integers.exact(DType.U16, lo, hi)], model)
    for i, (first, last) in enumerate(ends):
        values = np.arange(first, last + 1).astype(np.uint16).view(dtype.numpy)
        alike = np.full(len(values), i)
        assert made.map(lambda a, alike=alike: a[alike]).contains(values).all()
        if (first < 2**15) == (last < 2**15):
            nan = (np.arange(first, last + 1) & 2**15 - 1) > infinity
            numbers = values[~nan].astype(float)
            assert made.nan[i] == nan.any()
            assert made.empty[i] == (not len(numbers))
            if len(numbers) and (first & 2**15 - 1) > 9:  # no subnormals, which may be flushed
                assert (made.lo[i], made.hi[i]) == (numbers.min(), numbers.max())


def test_an_absolute_value_by_bits_and_a_number_of_bits_are_decided():
    """`bits & 0x7FFFFFFF` of what is computed, and `bits >> 9 | 0x3F800000`, which is how random numbers between 1 and 2 are made."""
    b = GraphBuilder(policy=STABLEHLO)
    x, mask, by, one = b.input(DType.F32, (2,)), *(b.input(DType.I32, (2,)) for _ in range(3))
    bits = b.apply(ops.Bitcast(DType.I32), b.apply(ops.Negate(), b.apply(ops.Exp(), x)))
    shifted = b.apply(ops.Bits("shift_right_logical"), bits, by)
    results = [b.apply(ops.Bits("and"), bits, mask), b.apply(ops.Bits("or"), shifted, one)]
    program = b.build(*(b.apply(ops.Bitcast(DType.F32), v) for v in results))
    x = np.log(np.array([3, 8], np.float32))
    made = enclose(program, [x, *(np.full(2, v, np.int32) for v in (0x7FFFFFFF, 9, 0x3F800000))], XLA)
    assert all(e.decided.all() for e in made)
    assert made[0].hi == pytest.approx([3, 8], rel=1e-6)
    assert made[0].lo == pytest.approx([3, 8], rel=1e-6)
    assert (made[1].lo >= 1).all()
    assert (made[1].hi < 2).all()
