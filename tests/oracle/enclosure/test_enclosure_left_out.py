"""Ways of writing a sum, a product or a quotient that XLA sees through: its result is another rounding of the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oracle.compare import compare
from oracle.enclosure import IEEE, XLA, enclose
from oracle.enclosure.model import IREE
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import STABLEHLO, CompareDir
from tenferro_ref.program import GraphBuilder, Value

pytestmark = pytest.mark.once

F32, F64 = np.float32, np.float64
RNG = np.random.default_rng(1)
INPUTS = tuple(RNG.normal(size=64).astype(F32) for _ in range(3))
#: What a program is made with, and its three inputs.
Made = Callable[[GraphBuilder, Value, Value, Value], Value]
ONE, OTHER = F32(1.9809284), F32(1.9817103)
SIGN = -(2**31)


def constant(b: GraphBuilder, value: float) -> Value:
    return b.constant(F32(value), DType.F32).broadcast_to((64,))


def beside(*values: Value) -> Value:
    """The values as the columns of a matrix."""
    columns = [v.reshape((64, 1)) for v in values]
    return columns[0].builder.apply(ops.Concatenate(1), *columns)


def through(b: GraphBuilder, x: Value, *steps: ops.Op) -> Value:
    for op in steps:
        x = b.apply(op, x)
    return x


def summed(b: GraphBuilder, x: Value) -> Value:
    """Sums of the products in the rows, as a contraction with ones."""
    return b.apply(ops.DotGeneral((1,), (0,), (), ()), x, b.constant(F32(1), DType.F32).broadcast_to((2,)))


def bits(b: GraphBuilder, x: Value) -> Value:
    return b.apply(ops.Bitcast(DType.I32), x)


def floated(b: GraphBuilder, x: Value) -> Value:
    return b.apply(ops.Bitcast(DType.F32), x)


def halves(b: GraphBuilder, x: Value, fill: float) -> tuple[Value, Value]:
    """The first half of a value with `fill` after it, and `fill` with the second half after it."""
    first, second = (b.apply(ops.Slice((at,), (at + 32,), (1,)), x) for at in (0, 32))
    rest = b.constant(F32(fill), DType.F32).broadcast_to((32,))
    return b.apply(ops.Concatenate(0), first, rest), b.apply(ops.Concatenate(0), rest, second)


def number(b: GraphBuilder, value: float, like: Value) -> Value:
    return b.constant(F32(value), DType.F32).broadcast_to(like.shape)


def in_part(b: GraphBuilder, x: Value, f: Callable[[Value], Value]) -> Value:
    """The value, with `f` of its last 44 elements in place of these."""
    first, rest = (b.apply(ops.Slice((at,), (end,), (1,)), x) for at, end in ((0, 20), (20, 64)))
    return b.apply(ops.Concatenate(0), first, f(rest))


def known(b: GraphBuilder, first: bool) -> Value:
    """A constant predicate that holds for the first 20 elements, or for the others."""
    parts = [b.constant(v, DType.Bool).broadcast_to((n,)) for v, n in ((first, 20), (not first, 44))]
    return b.apply(ops.Concatenate(0), *parts)


def updated(b: GraphBuilder, x: Value, by: Value, start: int, end: int) -> Value:
    """`x` with the elements of `by` from `start` to `end` in place of its own."""
    slice_ = b.apply(ops.Slice((start,), (end,), (1,)), by)
    return b.apply(ops.DynamicUpdateSlice(), x, slice_, b.constant(start, DType.I64).reshape((1,)))


def integers(b: GraphBuilder, value: int) -> Value:
    return b.constant(np.int32(value), DType.I32).broadcast_to((64,))


def positive(b: GraphBuilder, x: Value) -> Value:
    return b.apply(ops.Compare(CompareDir.Gt), x, constant(b, 0))


def fused(x: Any, y: Any, z: Any) -> Any:
    return F32(F64(x) * y + z)


def reciprocal(x: Any) -> Any:
    return F32(F32(1) / x)


ROWS: dict[str, tuple[Made, Callable[[Any, Any, Any], Any]]] = {
    "c / (d / x)": (
        lambda b, x, y, z: constant(b, ONE) / (constant(b, OTHER) / x),
        lambda x, y, z: x * F32(ONE * reciprocal(OTHER)),
    ),
    "y / (d / x)": (
        lambda b, x, y, z: y / (constant(b, OTHER) / x),
        lambda x, y, z: F32(x * y) * reciprocal(OTHER),
    ),
    "product of products": (
        lambda b, x, y, z: beside(x, y, z, y).reshape((64, 2, 2)).prod((2,)).prod((1,)),
        lambda x, y, z: x * y * z * y,
    ),
    "the larger of equals": (
        lambda b, x, y, z: b.apply(ops.Maximum(), x * y, y * x) + z,
        fused,
    ),
    "the largest of copies": (
        lambda b, x, y, z: b.apply(ops.ReduceMax((1,)), beside(x * y, x * y)) + z,
        fused,
    ),
    "bits there and back": (
        lambda b, x, y, z: through(b, x * y, ops.Bitcast(DType.I32), ops.Bitcast(DType.F32)) + z,
        fused,
    ),
    "bits as two integers and back": (
        lambda b, x, y, z: (
            through(
                b,
                x * y,
                ops.Bitcast(DType.I32),
                ops.Convert(DType.U32),
                ops.Convert(DType.I64),
                ops.Convert(DType.I32),
                ops.Bitcast(DType.U32),
                ops.Bitcast(DType.F32),
            )
            + z
        ),
        fused,
    ),
    "a quotient by a power of -1": (
        lambda b, x, y, z: constant(b, ONE) * y / b.apply(ops.Pow(), constant(b, OTHER) * x, constant(b, -1)),
        lambda x, y, z: y * (x * F32(ONE * OTHER)),
    ),
    "a precision that drops nothing": (
        lambda b, x, y, z: through(b, x * y, ops.ReducePrecision(8, 23)) + z,
        fused,
    ),
    "a power of two taken out": (
        lambda b, x, y, z: x * y * constant(b, 4) + z * constant(b, 4),
        lambda x, y, z: fused(x, y, z) * F32(4),
    ),
    "a contraction of products with ones": (
        lambda b, x, y, z: summed(b, beside(x * y, y * z)),
        lambda x, y, z: fused(y, z, x * y),
    ),
    "a constant part of a complex number that was reversed": (
        lambda b, x, y, z: x / through(b, b.apply(ops.Complex(), y, constant(b, OTHER)), ops.Reverse((0,)), ops.Imag()),
        lambda x, y, z: x * reciprocal(OTHER),
    ),
    "a one that is a part of a complex number": (
        lambda b, x, y, z: (
            x * y * through(b, b.apply(ops.Complex(), y, constant(b, 1)), ops.Reverse((0,)), ops.Imag()) + z
        ),
        fused,
    ),
    "bits whose sign is flipped": (
        lambda b, x, y, z: floated(b, b.apply(ops.Bits("xor"), bits(b, x * y), integers(b, SIGN))) + z,
        lambda x, y, z: fused(-x, y, z),
    ),
    "bits to which the sign is added": (
        lambda b, x, y, z: floated(b, integers(b, SIGN) + bits(b, x * y)) + z,
        lambda x, y, z: fused(-x, y, z),
    ),
    "bits inverted twice": (
        lambda b, x, y, z: floated(b, through(b, bits(b, x * y), ops.Bits("not"), ops.Bits("not"))) + z,
        fused,
    ),
    "the greater of bits and themselves": (
        lambda b, x, y, z: floated(b, (lambda v: b.apply(ops.Maximum(), v, v))(bits(b, x * y))) + z,
        fused,
    ),
    "a choice between bits and zero": (
        lambda b, x, y, z: floated(b, b.apply(ops.Select(), positive(b, x), bits(b, x * y), integers(b, 0))) + z,
        lambda x, y, z: np.where(x > 0, fused(x, y, z), z),
    ),
    "a choice in F64, beside a number that F32 has not": (
        lambda b, x, y, z: (
            b.apply(
                ops.Select(), positive(b, x), (x * y).astype(DType.F64), b.constant(0.1, DType.F64).broadcast_to((64,))
            ).astype(DType.F32)
            + z
        ),
        lambda x, y, z: np.where(x > 0, fused(x, y, z), F32(0.1) + z),
    ),
    "a square in F64": (
        lambda b, x, y, z: (
            b.apply(ops.Pow(), x.astype(DType.F64), b.constant(2.0, DType.F64).broadcast_to((64,))).astype(DType.F32)
            + z
        ),
        lambda x, y, z: fused(x, x, z),
    ),
    "a factor that is a predicate": (
        lambda b, x, y, z: x * y * positive(b, x).astype(DType.F32) + z,
        lambda x, y, z: np.where(x > 0, fused(x, y, z), z),
    ),
    "factors beside ones": (
        lambda b, x, y, z: (lambda first, second: first * second)(*halves(b, x * y, 1)) + z,
        fused,
    ),
    "the greater of halves beside -inf": (
        lambda b, x, y, z: b.apply(ops.Maximum(), *halves(b, x * y, -np.inf)) + z,
        fused,
    ),
    "a product with ones along an axis": (
        lambda b, x, y, z: (
            b.apply(ops.Concatenate(1), (x * y).reshape((64, 1)), constant(b, 1).reshape((64, 1))).prod((1,)) + z
        ),
        fused,
    ),
    "a product along an axis with ones on both sides": (
        lambda b, x, y, z: beside(constant(b, 1), x * y, constant(b, 1)).prod((1,)) + z,
        fused,
    ),
    "the greatest beside -inf": (
        lambda b, x, y, z: b.apply(ops.ReduceMax((1,)), beside(x * y, constant(b, -np.inf), x * y)) + z,
        fused,
    ),
    "a sum over a broadcast": (
        lambda b, x, y, z: (x * constant(b, 3)).reshape((64, 1)).broadcast_to((64, 2)).sum((1,)) + z,
        lambda x, y, z: fused(x, F32(6), z),
    ),
    "a complex product with one": (
        lambda b, x, y, z: (
            through(b, b.apply(ops.Complex(), z, x * y) * b.constant(1 + 0j, DType.C32).broadcast_to((64,)), ops.Imag())
            + z
        ),
        fused,
    ),
    "a part times one beside the rest": (
        lambda b, x, y, z: (
            (lambda v: updated(b, v, v * constant(b, 1), 20, 64))(x * constant(b, ONE)) * constant(b, OTHER)
        ),
        lambda x, y, z: x * F32(ONE * OTHER),
    ),
    "slices, one of them times one, side by side": (
        lambda b, x, y, z: in_part(b, x * constant(b, ONE), lambda v: v * number(b, 1, v)) * constant(b, OTHER),
        lambda x, y, z: x * F32(ONE * OTHER),
    ),
    "slices, one of them with -0 added, side by side": (
        lambda b, x, y, z: in_part(b, x * constant(b, ONE), lambda v: v + number(b, -0.0, v)) * constant(b, OTHER),
        lambda x, y, z: x * F32(ONE * OTHER),
    ),
    "slices, one of them negated twice, side by side": (
        lambda b, x, y, z: (
            in_part(b, x * constant(b, ONE), lambda v: through(b, v, ops.Negate(), ops.Negate())) * constant(b, OTHER)
        ),
        lambda x, y, z: x * F32(ONE * OTHER),
    ),
    "slices, one of them conjugated twice, side by side": (
        lambda b, x, y, z: (
            through(
                b,
                in_part(
                    b,
                    b.apply(ops.Complex(), y, x * constant(b, ONE)),
                    lambda v: through(b, v, ops.Conj(), ops.Conj()),
                ),
                ops.Imag(),
            )
            * constant(b, OTHER)
        ),
        lambda x, y, z: x * F32(ONE * OTHER),
    ),
    "a product along an axis with ones, times a constant": (
        lambda b, x, y, z: beside(constant(b, 1), x * constant(b, ONE), constant(b, 1)).prod((1,)) * constant(b, OTHER),
        lambda x, y, z: x * F32(ONE * OTHER),
    ),
    "the least beside inf, times a constant": (
        lambda b, x, y, z: (
            b.apply(ops.ReduceMin((1,)), beside(x * constant(b, ONE), constant(b, np.inf))) * constant(b, OTHER)
        ),
        lambda x, y, z: x * F32(ONE * OTHER),
    ),
    "the greater of choices beside -inf": (
        lambda b, x, y, z: (
            b.apply(
                ops.Maximum(),
                *(b.apply(ops.Select(), known(b, first), x * y, constant(b, -np.inf)) for first in (True, False)),
            )
            + z
        ),
        fused,
    ),
    "zeros that two updates write over": (
        lambda b, x, y, z: (
            (lambda v: updated(b, updated(b, constant(b, 0), v, 0, 20), v, 20, 64))(x * constant(b, ONE))
            * constant(b, OTHER)
        ),
        lambda x, y, z: x * F32(ONE * OTHER),
    ),
    "added to zeros": (
        lambda b, x, y, z: (
            b.apply(
                ops.Scatter((0,), (), (0,), 0),
                constant(b, 0),
                b.constant(0, DType.I64).reshape((1,)),
                x * constant(b, ONE),
            )
            * constant(b, OTHER)
        ),
        lambda x, y, z: x * F32(ONE * OTHER),
    ),
    "a sum along an axis beside zeros": (
        lambda b, x, y, z: beside(x * y, constant(b, 0)).sum((1,)) + z,
        fused,
    ),
    "a sum of sums side by side": (
        lambda b, x, y, z: (lambda t: b.apply(ops.Concatenate(1), t, t).sum((1,)))(
            beside(x, y, z, x).reshape((64, 2, 2)).sum((2,))
        ),
        lambda x, y, z: ((((((x + y) + z) + x) + x) + y) + z) + x,
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_a_compiler_sees_through_keeps_where_it_came_from(name: str) -> None:
    make, right = ROWS[name]
    b = GraphBuilder(policy=STABLEHLO)
    program = b.build(make(b, *(b.input(DType.F32, (64,)) for _ in range(3))))
    expected = F32(right(*INPUTS))
    (one,), (other,) = (enclose(program, INPUTS, model) for model in (XLA, IEEE))
    assert one.contains(expected).all()
    assert not other.contains(expected).all()
    # and no more than that: a result that is wrong by a part in ten thousand is outside
    big = np.abs(expected) > 0.1
    assert not one.contains(expected * F32(1.0001))[big].any()


def test_a_contraction_with_ones_adds_what_its_elements_are_sums_of() -> None:
    """Rounded, they cancel; the two older builds multiply and add on."""
    b = GraphBuilder(policy=STABLEHLO)
    x, y, z = (b.input(DType.F32, (64,)) for _ in range(3))
    program = b.build(summed(b, beside(x * x + y * y, z)))
    x, y = INPUTS[:2]
    inputs = x, y, -F32(x * x + y * y)
    expected = fused(x, x, fused(y, y, inputs[2]))
    (one,), (other,) = (enclose(program, inputs, model) for model in (XLA, IEEE))
    assert one.contains(expected).all()
    assert not other.contains(expected).all()
    assert not one.contains(expected + F32(1e-4)).any()


@pytest.mark.parametrize("op", [ops.Negate(), ops.Reverse((0,))])
def test_an_integer_less_itself_there_and_back_is_left_out_of_a_sum(op: ops.Op) -> None:
    """All builds and JAX have -0; of floats the difference is computed, and -0 + 0 is +0."""
    b = GraphBuilder(policy=STABLEHLO)
    x, j, f = b.input(DType.F32, (2,)), b.input(DType.I32, (2,)), b.input(DType.F32, (2,))
    nothing, zero = (b.apply(ops.Subtract(), v, through(b, v, op, op)) for v in (j, f))
    program = b.build(x + nothing.astype(DType.F32), x + zero)
    zeros = np.full(2, -0.0, np.float32)
    inputs = (zeros, np.array([3, -(2**31)], np.int32), np.array([3, 5], np.float32))
    of_integers, of_floats = enclose(program, inputs, XLA)
    assert of_integers.contains(zeros).all()
    assert not of_floats.contains(zeros).any()
    (exact, _) = enclose(program, inputs, IEEE)
    assert not exact.contains(zeros).any()


def test_a_precision_that_drops_a_bit_is_a_rounding() -> None:
    b = GraphBuilder(policy=STABLEHLO)
    x, y, z = (b.input(DType.F32, (64,)) for _ in range(3))
    program = b.build(through(b, x * y, ops.ReducePrecision(8, 22)) + z, through(b, x * y, ops.Bitcast(DType.I32)))
    (sums, _) = enclose(program, INPUTS, XLA)
    assert not sums.contains(fused(*INPUTS)).all()


def test_a_quotient_by_an_inverse_root_is_a_product_with_the_root() -> None:
    """In F16, whose inverse roots are nearly correctly rounded, so that their budget does not hide it."""
    b = GraphBuilder(policy=STABLEHLO)
    x, y = (b.input(DType.F16, (64,)) for _ in range(2))
    arrays = [np.abs(a).astype(np.float16) for a in INPUTS[:2]]
    program = b.build(y / b.apply(ops.Rsqrt(), x))
    product = arrays[1] * np.sqrt(arrays[0])
    (one,), (other,) = (enclose(program, arrays, model) for model in (XLA, IEEE))
    assert one.contains(product).all()
    assert not other.contains(product).all()
    assert not one.contains(product * np.float16(1.01)).any()


def test_iree_starts_a_sum_of_products_from_an_addend() -> None:
    """64 of 64 of its results are those of that order, bit for bit; of sums of plain numbers none is."""
    x, y = (a.reshape(16, 4) for a in INPUTS[:2])
    v = INPUTS[2][:16] * F32(100)
    b = GraphBuilder(policy=STABLEHLO)
    inputs = b.input(DType.F32, (16, 4)), b.input(DType.F32, (16, 4)), b.input(DType.F32, (16,))
    sums = [(inputs[0] * inputs[1]).sum((1,)) + inputs[2], inputs[0].sum((1,)) + inputs[2]]
    expected = v
    for j in range(4):
        expected = expected + x[:, j] * y[:, j]
    (of_products, of_numbers) = enclose(b.build(*sums), (x, y, v), IREE)
    (other, _) = enclose(b.build(*sums), (x, y, v), XLA)
    assert of_products.contains(expected).all()
    assert not other.contains(expected).all()
    assert not of_products.contains(expected * F32(1.0001)).any()
    started = v
    for j in range(4):
        started = started + x[:, j]
    assert not of_numbers.contains(started).all()


@pytest.mark.parametrize(
    "numbers", [(complex(0, np.inf), complex(0, np.nan), complex(-np.inf, 0.5)), (complex(0, -0.0),) * 3]
)
@pytest.mark.parametrize("terms", [0, 1])
def test_a_contraction_over_one_term_leaves_a_factor_of_one_out_as_a_product_does(
    terms: int, numbers: tuple[complex, ...]
) -> None:
    z = np.array(numbers).reshape((3,) + (1,) * terms)
    dot = ops.DotGeneral(tuple(range(1, 1 + terms)), tuple(range(terms)), (), ())
    gives_operand = [z.reshape(3)]
    ways = ((ops.Multiply(), z.reshape(3), np.ones(3, complex)), (dot, z, np.ones((1,) * terms, complex)))
    for op, *operands in ways:
        b = GraphBuilder()
        program = b.build(b.apply(op, *(b.input(DType.C64, x.shape) for x in operands)))
        for model, left_out in ((XLA, True), (IEEE, False)):
            made = enclose(program, operands, model)
            assert (compare(made, None, gives_operand, gives_operand).outside == 0) is left_out


@pytest.mark.parametrize(
    "steps",
    [
        (ops.Reshape((8, 8)), ops.Reshape((64,))),
        (ops.Pad((1,), (1,), (0,)), ops.Slice((1,), (65,), (1,))),
        (ops.BroadcastInDim((2, 64), (1,)), ops.Slice((1, 0), (2, 64), (1, 1)), ops.Reshape((64,))),
    ],
    ids=["reshaped", "padded", "broadcast"],
)
def test_a_narrow_float_that_was_moved_and_brought_back_is_converted_unrounded(steps: tuple[ops.Op, ...]) -> None:
    b = GraphBuilder(policy=STABLEHLO)
    x = b.input(DType.BF16, (64,))
    program = b.build(through(b, x * x, *steps, ops.Convert(DType.F32)))
    array = INPUTS[0].astype(DType.BF16.numpy)
    unrounded = array.astype(F32) * array.astype(F32)
    (one,), (other,) = (enclose(program, (array,), model) for model in (XLA, IEEE))
    assert one.contains(unrounded).all()
    assert not other.contains(unrounded).all()


def test_the_square_of_an_inverse_root_is_a_reciprocal() -> None:
    """In F16, where both are nearly correctly rounded."""
    b = GraphBuilder(policy=STABLEHLO)
    x = b.input(DType.F16, (64,))
    root = b.apply(ops.Rsqrt(), x * x)
    array = INPUTS[0].astype(np.float16)
    program = b.build(root * root, root * (x * x))
    expected = (1 / (array * array).astype(F64)).astype(np.float16)
    (one, _), (other, _) = (enclose(program, [array], model) for model in (XLA, IEEE))
    assert one.contains(expected).all()
    assert not other.contains(expected).all()
    assert not one.contains(expected * np.float16(1.01)).any()


def test_the_square_of_an_inverse_root_of_what_is_negative_is_nan() -> None:
    b = GraphBuilder(policy=STABLEHLO)
    x = b.input(DType.F32, (64,))
    root = b.apply(ops.Rsqrt(), x)
    (made,) = enclose(b.build(root * root), INPUTS[:1], XLA)
    negative = INPUTS[0] < 0
    assert np.array_equal(made.nan, negative)
    assert np.array_equal(made.lo > made.hi, negative)
