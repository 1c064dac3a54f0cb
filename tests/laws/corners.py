"""Programs that generated ones rarely are: limits, extents of one, windows that overlap, symbols, special values.

Each names the corner that it is about. Programs that must be refused say with which error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dims import DimOp, InputDim
from tenferro_ref.dtype import DType
from tenferro_ref.extensions.einsum import einsum
from tenferro_ref.ops import DEFAULT_POLICY, STABLEHLO, CompareDir, Op
from tenferro_ref.program import Value
from tests.laws.cases import apply, case_of, numbers, spread


@dataclass(frozen=True, eq=False)
class Corner:
    """One program.

    `error` is the kind with which it must be refused, "" if it must not; `finding` what xla081 gets wrong of it in lane `fast`.
    """

    about: str
    case: Case
    error: str = ""
    finding: str = ""


def one(about: str, op: Op, *inputs: object, error: str = "", finding: str = "", **options: Any) -> Corner:
    """A program of one instruction; options as of `case_of`."""
    return Corner(about, case_of(partial(apply, op), *inputs, **options), error, finding)


exp, log, sin = partial(apply, ops.Exp()), partial(apply, ops.Log()), partial(apply, ops.Sin())


def limits() -> Iterator[Corner]:
    """Conversions, indices and powers where a limit is."""
    edge = np.array([2.0**31, -(2.0**31), 2.0**31 - 1, -(2.0**31) - 1, 2.0**63, -(2.0**63)])
    for to, values in itertools.product((DType.I32, DType.I64), (edge, edge.astype(np.float32))):
        yield one("conversion at the limits", ops.Convert(to), values)
    refused = "InvalidArgument"
    for dtype, index, error in (
        (np.float64, 2.0**24 + 1, ""), (np.float64, 2.0**53, ""), (np.float32, 2.0**24, ""),
        (np.float32, 2.0**24 + 2, refused), (np.float64, 2.0**53 + 2, refused), (np.float32, 0.5, refused),
    ):  # fmt: skip
        place = np.array([index], dtype)
        yield one("float indices at the limit of what is exact", ops.DynamicSlice((2,)), numbers(3), place, error=error)
    roots, half, minus = np.array([-np.inf, -0.0, 2.0]), np.float64(0.5), np.float64(-np.inf)
    for x, y in ((roots, half), (minus, half), (roots[:1], np.array([0.5])), (minus, np.array([0.5]))):
        yield one("a root as a power", ops.Pow(), x, y)
    for base, exponent, error in ((3, -1, refused), (3, 0, ""), (0, 0, "")):
        pair = np.array([base], np.int32), np.array([exponent], np.int32)
        yield one("integer powers of one element", ops.Pow(), *pair, error=error)
    yield one(
        "integer division of one element by zero", ops.Divide(), np.array([3]), np.array([0]), error="NumericalFailure"
    )
    signs = np.array([-3, -1, 1, 2, 0]), np.array([-3, -2, -1, 2, 1])
    yield one("integer powers of negative exponent", ops.Pow(), *signs, policy=STABLEHLO, finding="0174")
    for op, dtype in itertools.product((ops.ReduceMax, ops.ReduceMin), (np.float64, np.float32, np.int32)):
        yield one("an extremum of nothing", op((1,)), np.zeros((2, 0), dtype), policy=STABLEHLO)


def ones() -> Iterator[Corner]:
    """Extents of one and windows that overlap."""
    for op, rank in ((ops.Tril(-1), 2), (ops.Triu(1), 2), (ops.Tril(-1), 3), (ops.Tril(0), 2)):
        yield one("a triangle of one element", op, np.full((1,) * rank, 5.0))
    zeros = np.zeros((2, 1), np.int64)
    yield one("a scatter into one element", ops.Scatter((0,), (), (0,), 1), np.array([3.0]), zeros, numbers(1, 2))
    starts = np.array([[0], [1], [2], [1]])
    for dims, updates in (((1,), numbers(4, 6)), ((0,), numbers(6, 4))):
        yield one(
            "a scatter of windows that overlap in part", ops.Scatter(dims, (), (0,), 1), numbers(8), starts, updates
        )
    places = np.array([[[0], [3]], [[1], [5]], [[3], [0]]])
    for policy, (axis, shape) in itertools.product(
        (DEFAULT_POLICY, STABLEHLO), ((2, (3, 2, 6)), (0, (6, 3, 2)), (1, (3, 6, 2)))
    ):
        scatter = ops.Scatter((axis,), (0,), (0,), 2)
        about = "a scatter of rows, one beyond the end"
        yield one(about, scatter, numbers(4, 6), places, numbers(*shape), policy=policy)
    for reduce in (ops.ReduceSum, ops.ReduceMax):
        yield one("a matrix of reductions of nothing", reduce((1,)), np.zeros((2, 0, 3)), policy=STABLEHLO)
    for sizes in ((2, 3), (1, 3), (2, 2)):
        gather = ops.Gather((1, 2), (), (0,), 1, sizes)
        yield one("a gather of rows", gather, numbers(4, 3), np.array([[0], [3]]))
    yield one("more terms than half of those that are looked at one by one", ops.ReduceSum((0,)), np.ones(17_000))
    yield one("a broadcast that only transposes", ops.BroadcastInDim((3, 3), (1, 0)), numbers(3, 3))


def runs() -> Iterator[Corner]:
    """Products of broadcasts in every neighbourhood, and fused runs of more than one shape."""
    row, column, other = numbers(3), numbers(2), numbers(4)

    def product(triplet: bool, swapped: bool, read: bool, kept: bool, behind: bool) -> Callable[..., tuple[Value, ...]]:
        """Of two broadcasts next to each other, or of one and a value; what else reads the broadcast, and what follows."""

        def trace(x: Value, y: Value, z: Value) -> tuple[Value, ...]:
            if triplet:
                left, right = spread(x, 2, 3, dims=(1,)), spread(y, 2, 3, dims=(0,))
            else:
                right = -spread(y, 2, 3, dims=(0,))
                left = spread(x, 2, 3, dims=(1,))
            made = right * left if swapped else left * right
            return made, *([left] if kept else []), *([-left] if read else []), *([exp(z)] if behind else [])

        return trace

    for which in itertools.product((True, False), repeat=5):
        yield Corner("a product of broadcasts", case_of(product(*which), row, column, other))

    def beside(x: Value, y: Value) -> tuple[Value, ...]:
        """The Multiply reads another value than the broadcast before it."""
        squared = x * x
        wide = spread(y, 2, 3, dims=(0,))
        return wide, squared * squared

    yield Corner("a product beside a broadcast", case_of(beside, row, column))
    for second in (other, row.astype(np.float32)):
        case = case_of(lambda x, y: (exp(-x), exp(-y)), row, second)
        yield Corner("a fused run of two shapes or dtypes", case)

    def long(x: Value, y: Value) -> Value:
        """Several scratch blocks alive at once."""
        parts = [exp(x), exp(y), -x, -y]
        products = [a * b for a in parts[:2] for b in parts[2:]]
        total = products[0]
        for part in (*products[1:], *parts):
            total = total + part
        return total

    for count in (1, 4, 5, 6, 9, 10, 11, 12):
        yield Corner("a long fused run", case_of(long, numbers(count), numbers(count) + 1))


def symbols() -> Iterator[Corner]:
    """Extents that the program does not know."""
    a, b, c = numbers(2, 3, 4), numbers(3, 4, 5), numbers(4, 2, 3)
    for op, x, y, shapes in (
        (ops.DotGeneral((1, 2), (0, 1), (), ()), a, b, (("i", "j", "k"), ("j", "k", "n"))),
        (ops.DotGeneral((1, 2), (0, 1), (), ()), a, b, (("i", "j", "k"), ("p", "q", "n"))),
        (ops.DotGeneral((2,), (0,), (), ()), a, c, (("i", "j", "k"), ("k", "m", "n"))),
        (ops.DotGeneral((2,), (0,), (), ()), a, c, (("i", "j", "k"), ("l", "m", "n"))),
        (ops.DotGeneral((1,), (2,), (0,), (1,)), a, c, (("i", "j", 4), (4, "i", "j"))),
        (ops.DotGeneral((0,), (1,), (2,), (0,)), a, c, (("i", 3, "k"), ("k", "i", 3))),
        (ops.DotGeneral((1,), (0,), (), ()), a, numbers(3, 2), (a.shape, (3, 2))),
        (ops.DotGeneral((1,), (0,), (), ()), numbers(2, 3), b, ((2, 3), b.shape)),
    ):
        yield one("a contraction of symbolic extents", op, x, y, shapes=shapes)
    yield one("a symbolic transposition", ops.Transpose((1, 0)), a[0], shapes=(("i", "j"),))
    for shape in (("i", "j", "k"), (2, "j", 4)):
        yield Corner("a symbolic chain", case_of(lambda x: (-x).transpose(2, 0, 1), a, shapes=(shape,)))

    def product(x: Value, y: Value) -> Value:
        shape = (InputDim(1, 0), InputDim(2, 0))
        return apply(ops.Multiply(), *(apply(ops.BroadcastInDim(shape, (i,)), v, x, y) for i, v in enumerate((x, y))))

    def uneven(x: Value, y: Value, scalar: Value) -> Value:
        return apply(ops.Multiply(), apply(ops.BroadcastInDim((InputDim(1, 0),), ()), scalar, x), y)

    for count, error in ((4, ""), (3, "ShapeMismatch")):
        case = case_of(uneven, a[0, 0], numbers(count), np.float64(2), shapes=(("i",), ("j",), ()))
        yield Corner("a product of symbolic extents that differ or do not", case, error)
    for first in ("i", 4):
        case = case_of(product, a[0, 0], b[0, 0], shapes=((first,), ("j",)))
        yield Corner("a symbolic product of broadcasts", case)
    flat = ops.Reshape((DimOp("mul", InputDim(0, 0), InputDim(0, 1)),))
    yield Corner("a symbolic reshape", case_of(lambda x: apply(flat, exp(x)), a[0], shapes=(("i", "j"),)))
    for equation, operands, shapes in (
        ("ij,jk->ik", (a[0], numbers(4, 2)), (("i", "j"), ("j", "k"))),
        ("ij,jk->ik", (a[0], numbers(4, 2)), (("i", "j"), (4, "k"))),
        ("ij,jk->ik", (a[0], numbers(4, 2)), ((3, 4), ("l", "k"))),
        ("ij,ij->ji", (a[0], a[1]), (("i", 4), (3, "j"))),
    ):
        yield Corner("einsum over symbols", case_of(partial(einsum, equation), *operands, shapes=shapes))


def einsums() -> Iterator[Corner]:
    """Labels that NumPy does not take, and contractions of several operands."""
    m = [numbers(2, 3), numbers(3, 4), numbers(4, 2)]
    for equation, operands in (
        ("βδ,δλ->βλ", m[:2]), ("éà,àü->üé", m[:2]), ("zy,yx->xz", m[:2]), ("ij,jk,ki->", m), ("ij,jk,kl->il", m),
        ("ij,jk,kl,jm->lm", [*m, m[1]]), ("ii->i", [numbers(3, 3)]), ("i,j,k->kij", [v[0] for v in m]),
    ):  # fmt: skip
        yield Corner("einsum", case_of(partial(einsum, equation), *operands))
    yield Corner("a chain of products turned over", case_of(lambda x: einsum("ij->ji", (x * 3.0) * 0.1), m[0]))


def specials() -> Iterator[Corner]:
    """Every special value against every other, known and as an interval."""
    for dtype in (np.float64, np.float32):
        info = np.finfo(dtype)
        least = info.smallest_subnormal, info.smallest_normal
        values = np.array([0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan, *least, -info.max], dtype)
        x, y = (np.asfortranarray(a) for a in np.meshgrid(values, values))
        large = np.array([info.max, info.max, -info.max, -info.max], dtype)
        rows = np.broadcast_to(large[:, np.newaxis], (4, values.size)).copy("F")
        for op in (
            ops.Add(),
            ops.Multiply(),
            ops.Divide(),
            ops.Maximum(),
            ops.Minimum(),
            *map(ops.Compare, CompareDir),
        ):

            def both(x: Value, y: Value, op: Op = op) -> tuple[Value, ...]:
                pairs = (x, y), (exp(x), y), (x, exp(y)), (exp(x), log(y)), (sin(x), exp(y))
                return tuple(apply(op, *pair) for pair in pairs)

            def anywhere(x: Value, y: Value, op: Op = op) -> tuple[Value, ...]:
                """A sum that may overflow on the way is anything."""
                whole = apply(ops.ReduceSum((0,)), y)
                return apply(op, whole, x), apply(op, x, whole), whole

            yield Corner("pairs of special values", case_of(both, x, y))
            yield Corner("what may be anything, and special values", case_of(anywhere, values, rows))

        def alone(x: Value) -> tuple[Value, ...]:
            unary = ops.Negate(), ops.Abs(), ops.Sign(), ops.Sqrt()
            return tuple(apply(op, v) for v in (x, exp(x), sin(x), log(x)) for op in unary)

        yield Corner("special values", case_of(alone, values))


@cache
def corners() -> tuple[Corner, ...]:
    """All of them, in a fixed order."""
    return tuple(c for family in (limits, ones, runs, symbols, einsums, specials) for c in family())
