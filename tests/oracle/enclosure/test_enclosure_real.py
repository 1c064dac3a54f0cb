"""Enclosures in real arithmetic contain the numbers themselves, where the terms of a complex product cancel, too."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from oracle.enclosure import REAL, enclose
from oracle.enclosure.value import Interval, Rectangle
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once

Number = tuple[Fraction, Fraction]


def _times(x: Number, y: Number) -> Number:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def _plus(x: Number, y: Number) -> Number:
    return x[0] + y[0], x[1] + y[1]


def _number(z: complex) -> Number:
    return Fraction(float(z.real)), Fraction(float(z.imag))


def _holds(part: Interval, number: Fraction) -> bool:
    low, high = float(part.lo), float(part.hi)
    return (low == -np.inf or Fraction(low) <= number) and (high == np.inf or number <= Fraction(high))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [DType.C32, DType.C64], ids=str)
def test_complex_products_and_their_sums_are_inside(dtype: DType, count: int) -> None:
    rng = np.random.default_rng(5)
    many: dict[Op, int] = {ops.ReduceProd((0,)): 1, ops.DotGeneral((0,), (0,), (), ()): 2}
    for _ in range(50):
        # near numbers of which a part of the product is 0
        corners = rng.choice(np.array([1 + 1j, 1 - 1j, 1, 1j, -1 + 1j]), (2, count))
        x, y = (corners + 1e-7 * (rng.normal(size=(2, count)) + 1j * rng.normal(size=(2, count)))).astype(dtype.numpy)
        numbers = [*map(_number, x)], [*map(_number, y)]
        due = [reduce(_times, numbers[0]), reduce(_plus, map(_times, *numbers))]
        for (op, operands), number in zip(many.items(), due, strict=True):
            b = GraphBuilder()
            program = b.build(b.apply(op, *(b.input(dtype, (count,)) for _ in range(operands))))
            (made,) = enclose(program, (x, y)[:operands], REAL)
            assert isinstance(made, Rectangle)
            assert all(map(_holds, made.parts, number)), (op, x, y)


def test_a_part_that_cancels_beside_one_that_overflows_is_inside() -> None:
    """Its terms are rounded at their own size, of which the modulus says nothing where it is infinite."""
    x = np.array(2.0**898 * 1.23456789 + 0.98765432101j)
    y = np.array(-(2.0**898) * 1.23456789 + 0.98765432109j)
    b = GraphBuilder()
    (made,) = enclose(b.build(b.input(DType.C64, ()) * b.input(DType.C64, ())), [x, y], REAL)
    assert isinstance(made, Rectangle)
    assert _holds(made.parts[1], _times(_number(complex(x)), _number(complex(y)))[1])
