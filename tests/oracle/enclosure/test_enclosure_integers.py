"""Enclosures of integer arithmetic hold the values at the ends of their operands, the extreme ones included, at every rank."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from oracle.enclosure import IEEE, enclose, integers
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
