"""What a compiler leaves out keeps where its operand came from; what it computes does not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oracle.enclosure import IEEE, XLA, Interval, enclose, enclose_sets
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import STABLEHLO, CompareDir
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


F32 = np.float32
INF = float("inf")
X, Y, W = F32([[0.1, -1.7], [2.3, 0.3]]), F32([[3.3, 0.7], [1.1, -0.9]]), F32([[5, -7], [2, 3]])
SHAPE = X.shape


def full(b: Any, value: float, dtype: DType = DType.F32) -> Any:
    return b.apply(ops.BroadcastInDim(SHAPE, ()), b.constant(dtype.numpy.type(value), dtype))


def convert(b: Any, x: Any, dtype: DType) -> Any:
    return b.apply(ops.Convert(dtype), x)


def rows(b: Any, x: Any, *bounds: tuple[int, int]) -> Any:
    return b.apply(ops.Concatenate(0), *(b.apply(ops.Slice((i, 0), (j, 2), (1, 1)), x) for i, j in bounds))


def is_fused(after: Callable[..., Any], sign: int = 1) -> bool:
    """Whether `after` the product X Y the error of its rounding may be left when the rounded product is subtracted."""
    b = GraphBuilder(policy=STABLEHLO)
    x, y, z, w = (b.input(DType.F32, SHAPE) for _ in range(4))
    made = after(b, x * y, w)
    program = b.build(made - z if sign > 0 else made + z)
    (e,) = enclose(program, [X, Y, X * Y, W], XLA)
    error = sign * (X.astype(float) * Y.astype(float) - (X * Y).astype(float))
    assert isinstance(e, Interval)
    assert e.decided.all()
    assert (e.pos_zero & (e.lo <= 0) & (e.hi >= 0)).all()
    inside = (e.lo <= error) & (error <= e.hi)
    assert inside.all() == inside.any()
    return bool(inside.all())


def selected(b: Any, t: Any, w: Any) -> Any:
    return b.apply(ops.Select(), b.apply(ops.Compare(CompareDir.Gt), w, t), t, t)


def always(b: Any, t: Any, w: Any) -> Any:
    return b.apply(ops.Select(), full(b, 1, DType.Bool), t, w)


def largest_of_copies(b: Any, t: Any, w: Any) -> Any:
    return b.apply(ops.ReduceMax((0,)), b.apply(ops.BroadcastInDim((3, *SHAPE), (1, 2)), t))


def taken_anywhere(b: Any, t: Any, w: Any) -> Any:
    """The product, at a start of which its enclosure says 0 or 1, in two copies of it."""
    copies = b.apply(ops.BroadcastInDim((2, *SHAPE), (1, 2)), t)
    one = b.apply(ops.Slice((0, 0), (1, 1), (1, 1)), convert(b, b.apply(ops.Exp(), w - w), DType.I32))
    start = b.apply(ops.Pad((0,), (2,), (0,)), one[0])
    return b.apply(ops.DynamicSlice((1, *SHAPE)), copies, start)[0]


def with_initial_zero(b: Any, t: Any, w: Any) -> Any:
    """A sum of one term that starts from -0, as the reader of StableHLO writes it."""
    line = b.apply(ops.Reshape((1, *SHAPE)), t)
    total = b.apply(ops.ReduceSum((0,)), line)
    return b.apply(ops.Repeated("add", 1), total, -b.apply(ops.ReduceSum((0,)), -line))


def cut(b: Any, x: Any, start: int) -> Any:
    return b.apply(ops.Slice((start, 0), (start + 2, 2), (1, 1)), x)


def padded(b: Any, x: Any) -> Any:
    return b.apply(ops.Pad((1, 0), (1, 0), (0, 0)), x)


def beside(b: Any, x: Any, other: Any) -> Any:
    return b.apply(ops.Concatenate(0), other, x)


def through_f64(b: Any, t: Any, move: Callable[[Any], Any]) -> Any:
    return convert(b, move(convert(b, t, DType.F64)), DType.F32)


def through_bits(b: Any, t: Any, move: Callable[[Any], Any]) -> Any:
    return b.apply(ops.Bitcast(DType.F32), move(b.apply(ops.Bitcast(DType.U32), t)))


LEFT_OUT = {
    "anywhere": taken_anywhere,
    "initial zero": with_initial_zero,
    "padded in f64": lambda b, t, w: through_f64(b, t, lambda x: cut(b, padded(b, x), 1)),
    "a corner in f64": lambda b, t, w: through_f64(b, t, lambda x: b.apply(ops.Tril(2), x)),
    "beside another in f64": lambda b, t, w: through_f64(
        b, t, lambda x: cut(b, beside(b, x, convert(b, w, DType.F64)), 2)
    ),
    "padded half": lambda b, t, w: cut(
        b, padded(b, t * full(b, 0.5)) / b.apply(ops.BroadcastInDim((4, 2), ()), b.constant(F32(0.5), DType.F32)), 1
    ),
    "half beside another": lambda b, t, w: cut(b, beside(b, t * full(b, 0.5), w), 2) / full(b, 0.5),
    "reciprocal beside another": lambda b, t, w: full(b, 1) / cut(b, beside(b, full(b, 1) / t, w), 2),
    "padded bits": lambda b, t, w: through_bits(b, t, lambda x: cut(b, padded(b, x), 1)),
    "bits beside others": lambda b, t, w: through_bits(
        b, t, lambda x: cut(b, beside(b, x, b.apply(ops.Bitcast(DType.U32), w)), 2)
    ),
    "bits beside integers": lambda b, t, w: through_bits(
        b, t, lambda x: cut(b, beside(b, x, convert(b, w, DType.U32)), 2)
    ),
    "maximum": lambda b, t, w: b.apply(ops.Maximum(), t, t),
    "minimum": lambda b, t, w: b.apply(ops.Minimum(), full(b, INF), t),
    "clamp": lambda b, t, w: b.apply(ops.Clamp(), t, full(b, -INF), full(b, INF)),
    "one": lambda b, t, w: t * full(b, 1),
    "over one": lambda b, t, w: t / full(b, 1),
    "select": selected,
    "always": always,
    "copies": largest_of_copies,
    "slices": lambda b, t, w: rows(b, t, (0, 1), (1, 2)),
    "cancelled": lambda b, t, w: t / full(b, 4) * full(b, 4),
    "there and back": lambda b, t, w: convert(b, convert(b, t, DType.F64), DType.F32),
    "first power": lambda b, t, w: b.apply(ops.Pow(), t, full(b, 1)),
}
COMPUTED = {
    "a bound": lambda b, t, w: b.apply(ops.Maximum(), t, full(b, -1e30)),
    "a bound of the inputs": lambda b, t, w: b.apply(ops.Maximum(), t, w - full(b, INF)),
    "a factor of the inputs": lambda b, t, w: t * (w / w),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_gives_its_operand_back_is_left_out(name: str) -> None:
    assert is_fused(LEFT_OUT[name])


@pytest.mark.parametrize("name", ["times", "over", "cancelled"])
def test_a_factor_of_minus_one_is_a_negation(name: str) -> None:
    after = {
        "times": lambda b, t, w: t * full(b, -1),
        "over": lambda b, t, w: t / full(b, -1),
        "cancelled": lambda b, t, w: t * full(b, -2) * full(b, 0.5),
    }[name]
    assert is_fused(after, sign=-1)


@pytest.mark.parametrize("name", COMPUTED)
def test_what_computes_is_not(name: str) -> None:
    assert not is_fused(COMPUTED[name])


def test_a_multiple_that_overflowed_is_not_taken_back() -> None:
    b = GraphBuilder()
    x, y, z = (b.input(DType.F32, ()) for _ in range(3))
    two, half = b.constant(F32(2), DType.F32), b.constant(F32(0.5), DType.F32)
    (e,) = enclose(b.build(x * y * two * half - z), [F32(2.0**64), F32(2.0**63), F32(2.0**127)], XLA)
    assert e.contains(F32(INF)).all()
    assert not e.contains(F32(0)).any()


def test_a_sum_in_f64_reads_the_rounded_product() -> None:
    b = GraphBuilder()
    x, y, z = (b.input(DType.F32, SHAPE) for _ in range(3))
    difference = convert(b, x * y, DType.F64) - convert(b, z, DType.F64)
    wide, narrow = enclose(b.build(difference, convert(b, difference, DType.F32)), [X, Y, X * Y], XLA)
    error = X.astype(float) * Y - (X * Y).astype(float)
    assert not wide.contains(error).any()
    assert narrow.contains(F32(error)).all()


@pytest.mark.parametrize("op", [ops.Subtract(), ops.Bits("xor")])
@pytest.mark.parametrize(("twice", "known"), [(0, True), (1, True), (2, False)])
def test_integer_algebra_gives_constants(op: ops.Op, twice: int, known: bool) -> None:
    """`i - i` and `i ^ i` are constants to a compiler, also where i is computed twice, and `i - j` of equal inputs is none."""
    b = GraphBuilder()
    x, y, z = (b.input(DType.F32, SHAPE) for _ in range(3))
    i, j = (b.input(DType.I32, SHAPE) for _ in range(2))
    pairs = ((i, i), (-i, -i), (i, j))
    zero = convert(b, b.apply(op, *pairs[twice]), DType.F32)
    integers = np.full(SHAPE, 5, np.int32)
    (e,) = enclose(b.build(x * y + zero - z), [X, Y, X * Y, integers, integers], XLA)
    error = F32(X.astype(float) * Y - (X * Y).astype(float))
    assert (e.contains(error) == known).all()


def test_a_zero_that_integer_algebra_gives_is_left_out_of_a_sum() -> None:
    b = GraphBuilder(policy=STABLEHLO)
    i, u, x = b.input(DType.I32, (1,)), b.input(DType.U32, (1,)), b.input(DType.F32, (1,))
    truth = b.input(DType.Bool, (1,))
    constant = lambda v, dtype: b.apply(ops.Constant.of(v, dtype)).broadcast_to((1,))  # noqa: E731
    zero, one, ones = (constant(v, DType.I32) for v in (0, 1, -1))
    x_of = lambda v: constant(v, DType.F32)  # noqa: E731
    unsigned, false = constant(0, DType.U32), constant(False, DType.Bool)
    zeros = {
        b.apply(ops.Bits("xor"), i, i): True,
        b.apply(ops.Bits("and"), i, zero): True,
        b.apply(ops.Bits("not"), b.apply(ops.Bits("or"), i, ones)): True,
        b.apply(ops.Remainder(), i, one): True,
        b.apply(ops.Compare(CompareDir.Lt), u, unsigned): True,
        b.apply(ops.Compare(CompareDir.Gt), unsigned, u): True,
        # a choice of one constant, written twice
        b.apply(ops.Select(), b.apply(ops.Compare(CompareDir.Gt), x, x), zero, constant(0, DType.I32)): True,
        # of Bool
        b.apply(ops.Compare(CompareDir.Lt), truth, false): True,
        b.apply(ops.Minimum(), truth, false): True,
        b.apply(ops.Maximum(), truth, false): False,
        # of floats
        x ** x_of(0) - x_of(1): True,
        x_of(1) ** x - x_of(1): True,
        x ** x_of(2): False,
        b.apply(ops.Bits("or"), i, i): False,
        b.apply(ops.Compare(CompareDir.Lt), i, zero): False,
        b.apply(ops.Compare(CompareDir.Lt), unsigned, u): False,
    }
    program = b.build(*(convert(b, made, DType.F32) + x for made in zeros))
    sums = enclose(program, [np.zeros(1, np.int32), np.zeros(1, np.uint32), F32([-0.0]), np.zeros(1, bool)], XLA)
    assert [bool(e.contains(F32([-0.0]))) for e in sums] == list(zeros.values())


@pytest.mark.parametrize("dtype", [DType.F32, DType.C32])
def test_a_constant_that_moves_lead_back_to_is_left_out_of_a_sum(dtype: DType) -> None:
    """Also where they lead through a value of which a part alone is constant, or indices that are not known."""
    b = GraphBuilder(policy=STABLEHLO)
    x, y, i = b.input(dtype, (2,)), b.input(dtype, (2,)), b.input(DType.I32, (1,))
    zero = lambda n: b.constant(dtype.numpy.type(0), dtype).broadcast_to((n,))  # noqa: E731
    cut = lambda v, low, high: b.apply(ops.Slice((low,), (high,), (1,)), v)  # noqa: E731
    joined, padded = b.apply(ops.Concatenate(0), y, zero(2)), b.apply(ops.Pad((2,), (0,), (0,)), y)
    zeros = {
        cut(joined, 2, 4): True,
        b.apply(ops.Reverse((0,)), cut(joined, 2, 4)): True,
        cut(padded, 0, 2): True,
        b.apply(ops.DynamicSlice((2,)), zero(8), i): True,
        b.apply(ops.DynamicUpdateSlice(), y, zero(2), i): True,
        cut(joined, 1, 3): False,
        cut(padded, 1, 3): False,
    }
    program = b.build(*(x + made for made in zeros))
    minus = np.full(2, -0.0, dtype.numpy)
    if dtype.is_complex:
        minus.imag = -0.0
    sums = enclose(program, [minus, np.zeros(2, dtype.numpy), np.zeros(1, np.int32)], XLA)
    assert [bool(e.contains(minus).all()) for e in sums] == list(zeros.values())


def test_an_integer_that_algebra_gives_back_is_the_same_one() -> None:
    b = GraphBuilder(policy=STABLEHLO)
    i, x = b.input(DType.I32, (1,)), b.input(DType.F32, (1,))
    constant = lambda v: b.constant(np.int32(v), DType.I32).broadcast_to((1,))  # noqa: E731
    least = -(2**31)
    same = {
        i + constant(0): True,
        i - constant(0): True,
        constant(1) * i: True,
        b.apply(ops.Bits("and"), i, constant(-1)): True,
        b.apply(ops.Maximum(), i, constant(least)): True,
        i + constant(1): False,
        b.apply(ops.Maximum(), i, constant(0)): False,
    }
    program = b.build(*(convert(b, i - made, DType.F32) + x for made in same))
    sums = enclose(program, [np.zeros(1, np.int32), F32([-0.0])], XLA)
    assert [bool(e.contains(F32([-0.0]))) for e in sums] == list(same.values())


def test_a_zero_selected_from_equal_constants_is_left_out_of_a_sum() -> None:
    b = GraphBuilder()
    x, w = (b.input(DType.F32, SHAPE) for _ in range(2))
    zeros = full(b, 0), full(b, 3) - full(b, 3)
    made = x + b.apply(ops.Select(), b.apply(ops.Compare(CompareDir.Gt), w, x), *zeros)
    (e,) = enclose(b.build(made), [np.full(SHAPE, F32(-0.0)), W], XLA)
    assert e.contains(np.full(SHAPE, F32(-0.0))).all()


def test_an_initial_value_is_an_extremum_or_it_is_not() -> None:
    b = GraphBuilder(policy=STABLEHLO)
    once, never = (b.input(DType.F32, (1,)) for _ in range(2))
    (e,) = enclose(b.build(b.apply(ops.Repeated("maximum", 1), once, never)), [F32([10]), F32([1])], IEEE)
    assert [bool(e.contains(F32([v]))) for v in (1, 5.7, 10)] == [True, False, True]
    (e,) = enclose(b.build(b.apply(ops.Repeated("add", 2), once, never)), [F32([10]), F32([1])], IEEE)
    assert e.contains(F32([5.7]))


def test_a_square_is_left_alone_beside_a_zero_of_the_program_only() -> None:
    b = GraphBuilder()
    x, z, w = (b.input(DType.F32, SHAPE) for _ in range(3))
    both = b.apply(ops.Tril(0), x * x) + b.apply(ops.Triu(1), x * x)
    outputs = enclose(b.build(both - z, (x * x + w) - z), [X, X * X, np.zeros(SHAPE, F32)], XLA)
    error = F32(X.astype(float) * X - (X * X).astype(float))
    assert [e.contains(error).all() for e in outputs] == [True, False]


def test_a_quotient_by_a_reciprocal_is_a_product() -> None:
    b = GraphBuilder()
    x, z = b.input(DType.F32, SHAPE), b.input(DType.F32, SHAPE)
    (e,) = enclose(b.build(x / (full(b, 1) / x) - z), [X, X * X], XLA)
    assert e.contains(F32(X.astype(float) * X - (X * X).astype(float))).all()


def test_a_product_keeps_its_sign_and_size_where_a_partial_one_may_underflow() -> None:
    b = GraphBuilder()
    x = b.input(DType.F32, (4,))
    program = b.build(b.apply(ops.ReduceProd((0,)), x))
    given = F32([-1e-20, 1e-20, 1e20, 1e10])
    strict, flushed = (enclose(program, [given], model)[0] for model in (IEEE, XLA))
    assert strict.hi < -0.9998e-10
    assert strict.lo > -1.0002e-10
    assert flushed.contains(F32(-0.0))
    assert not flushed.contains(F32(0))
    assert flushed.lo > -1.0002e-10


def test_a_root_that_is_taken_out_of_what_it_was_put_into_is_that_root() -> None:
    """log(sqrt x) may be half of log x: where the place of the root is known, also for several input sets at once."""
    b = GraphBuilder(policy=STABLEHLO)
    x, y, i = b.input(DType.F64, (2,)), b.input(DType.F64, (2,)), b.input(DType.I32, (1,))
    root, one = b.apply(ops.Sqrt(), x), b.constant(np.int32(1), DType.I32).broadcast_to((1,))
    cut = lambda v, low, high: b.apply(ops.Slice((low,), (high,), (1,)), v)  # noqa: E731
    window = lambda v, start: b.apply(ops.DynamicSlice((2,)), v, start)  # noqa: E731
    both, front = b.apply(ops.Concatenate(0), y, root, y), b.apply(ops.Concatenate(0), root, y)
    written = lambda start: b.apply(ops.DynamicUpdateSlice(), b.apply(ops.Concatenate(0), y, y), root, start)  # noqa: E731
    ways = {
        b.apply(ops.Concatenate(0), root): True,
        b.apply(ops.Concatenate(0), root, cut(y, 0, 0)): True,
        cut(both, 2, 4): True,
        window(b.apply(ops.Concatenate(0), cut(y, 0, 1), root), one): True,
        cut(written(one), 1, 3): True,
        window(written(one), one): True,
        window(written(one + one * 9), one + one): True,  # both are clamped
        window(front, i): False,
        cut(written(i), 0, 2): False,
        cut(written(one), 2, 4): False,
        cut(both, 3, 5): False,
    }
    program = b.build(*(b.apply(ops.Log(), way) for way in ways))
    sets = [[np.array([2.0, n]), np.array([n, 2.0]), np.zeros(1, np.int32)] for n in (2.0, 1.7)]
    half = 0.34657359027997264  # of log 2; the logarithm of the rounded root is greater
    for made in (
        enclose(program, sets[0], XLA),
        [e.map(lambda a: a[..., 0]) for e in enclose_sets(program, sets, XLA)],
    ):
        assert [bool(e.contains(np.float64([half, half]))[0]) for e in made] == list(ways.values())
    assert not any(e.contains(np.float64([half, half])).any() for e in enclose(program, sets[0], IEEE))
