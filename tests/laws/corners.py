"""Programs that generated ones rarely are: limits, extents of one, windows that overlap, symbols, special values.

Each names the corner that it is about. Programs that must be refused say with which error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dims import DimOp, InputDim
from tenferro_ref.dtype import DType
from tenferro_ref.extensions.einsum import einsum
from tenferro_ref.ops import ENGINE, STABLEHLO, CompareDir, Op
from tenferro_ref.program import Value
from tests.laws.cases import apply, case_of, numbers, spread


@dataclass(frozen=True, eq=False)
class Corner:
    """One program; `error` is the kind with which it must be refused, "" if it must not."""

    about: str
    case: Case
    error: str = ""


def _limits() -> Iterator[Corner]:
    """Conversions, indices and powers where a limit is."""
    edge = np.array([2.0**31, -(2.0**31), 2.0**31 - 1, -(2.0**31) - 1, 2.0**63, -(2.0**63)])
    for to in (DType.I32, DType.I64):
        for values in (edge, edge.astype(np.float32)):
            yield Corner("conversion at the limits", case_of(lambda x, to=to: apply(ops.Convert(to), x), values))
    line = numbers(3)
    for dtype, index, error in (
        (np.float64, 2.0**24 + 1, ""), (np.float64, 2.0**53, ""), (np.float32, 2.0**24, ""),
        (np.float32, 2.0**24 + 2, "InvalidArgument"), (np.float64, 2.0**53 + 2, "InvalidArgument"),
        (np.float32, 0.5, "InvalidArgument"),
    ):  # fmt: skip
        case = case_of(lambda x, i: apply(ops.DynamicSlice((2,)), x, i), line, np.array([index], dtype))
        yield Corner("float indices at the limit of what is exact", case, error)
    roots = np.array([-np.inf, -0.0, 2.0])
    for x, y in ((roots, np.float64(0.5)), (np.float64(-np.inf), np.float64(0.5)), (roots[:1], np.array([0.5])),
                 (np.float64(-np.inf), np.array([0.5]))):  # fmt: skip
        yield Corner("a root as a power", case_of(lambda x, y: apply(ops.Pow(), x, y), x, y))
    for base, exponent, error in ((3, -1, "InvalidArgument"), (3, 0, ""), (0, 0, "")):
        case = case_of(lambda x, y: apply(ops.Pow(), x, y), np.array([base], np.int32), np.array([exponent], np.int32))
        yield Corner("integer powers of one element", case, error)
    case = case_of(lambda x, y: apply(ops.Divide(), x, y), np.array([3]), np.array([0]))
    yield Corner("integer division of one element by zero", case, "InvalidArgument")
    signs = np.array([-3, -1, 1, 2, 0], np.int64)
    case = case_of(lambda x, y: apply(ops.Pow(), x, y), signs, np.array([-3, -2, -1, 2, 1]), policy=STABLEHLO)
    yield Corner("integer powers of negative exponent", case)
    for op in (ops.ReduceMax, ops.ReduceMin):
        for nothing in (np.zeros((2, 0)), np.zeros((2, 0), np.float32), np.zeros((2, 0), np.int32)):
            case = case_of(lambda x, op=op: apply(op((1,)), x), nothing, policy=STABLEHLO)
            yield Corner("an extremum of nothing", case)


def _ones() -> Iterator[Corner]:
    """Extents of one and windows that overlap."""
    for op, k, shape in (
        (ops.Tril, -1, (1, 1)),
        (ops.Triu, 1, (1, 1)),
        (ops.Tril, -1, (1, 1, 1)),
        (ops.Tril, 0, (1, 1)),
    ):
        case = case_of(lambda x, op=op, k=k: apply(op(k), x), np.full(shape, 5.0))
        yield Corner("a triangle of one element", case)
    one = np.array([3.0])
    case = case_of(
        lambda x, i, u: apply(ops.Scatter((0,), (), (0,), 1), x, i, u), one, np.zeros((2, 1), np.int64), numbers(1, 2)
    )
    yield Corner("a scatter into one element", case)
    starts = np.array([[0], [1], [2], [1]])
    for update_dims, updates in (((1,), numbers(4, 6)), ((0,), numbers(6, 4))):
        case = case_of(
            lambda x, i, u, d=update_dims: apply(ops.Scatter(d, (), (0,), 1), x, i, u), numbers(8), starts, updates
        )
        yield Corner("a scatter of windows that overlap in part", case)
    places = np.array([[[0], [3]], [[1], [5]], [[3], [0]]])
    for policy in (ENGINE, STABLEHLO):
        for update_dims, updates in (((2,), numbers(3, 2, 6)), ((0,), numbers(6, 3, 2)), ((1,), numbers(3, 6, 2))):
            case = case_of(
                lambda x, i, u, d=update_dims: apply(ops.Scatter(d, (0,), (0,), 2), x, i, u),
                numbers(4, 6), places, updates, policy=policy,
            )  # fmt: skip
            yield Corner("a scatter of rows, one beyond the end", case)
    for reduce in (ops.ReduceSum, ops.ReduceMax):
        case = case_of(lambda x, op=reduce: apply(op((1,)), x), np.zeros((2, 0, 3)), policy=STABLEHLO)
        yield Corner("a matrix of reductions of nothing", case)
    for sizes in ((2, 3), (1, 3), (2, 2)):
        case = case_of(
            lambda x, i, s=sizes: apply(ops.Gather((1, 2), (), (0,), 1, s), x, i), numbers(4, 3), np.array([[0], [3]])
        )
        yield Corner("a gather of rows", case)
    case = case_of(lambda x: apply(ops.ReduceSum((0,)), x), np.ones(17_000))
    yield Corner("more terms than half of those that are looked at one by one", case)
    case = case_of(lambda x: spread(x, 3, 3, dims=(1, 0)), numbers(3, 3))
    yield Corner("a broadcast that only transposes", case)


def _runs() -> Iterator[Corner]:
    """Products of broadcasts in every neighbourhood, and fused runs of more than one shape."""
    row, column, other = numbers(3), numbers(2), numbers(4)

    def triplet(swapped: bool, read: bool, kept: bool, behind: bool) -> Callable[..., tuple[Value, ...]]:
        def trace(x: Value, y: Value, z: Value) -> tuple[Value, ...]:
            left, right = spread(x, 2, 3, dims=(1,)), spread(y, 2, 3, dims=(0,))
            product = apply(ops.Multiply(), *((right, left) if swapped else (left, right)))
            outputs = [product, left] if kept else [product]
            outputs += [apply(ops.Negate(), left)] if read else []
            outputs += [apply(ops.Exp(), z)] if behind else []
            return tuple(outputs)

        return trace

    def pair(first: bool, read: bool, kept: bool, behind: bool) -> Callable[..., tuple[Value, ...]]:
        def trace(x: Value, y: Value, z: Value) -> tuple[Value, ...]:
            whole = apply(ops.Negate(), spread(y, 2, 3, dims=(0,)))
            left = spread(x, 2, 3, dims=(1,))
            product = apply(ops.Multiply(), *((left, whole) if first else (whole, left)))
            outputs = [product, left] if kept else [product]
            outputs += [apply(ops.Negate(), left)] if read else []
            outputs += [apply(ops.Exp(), z)] if behind else []
            return tuple(outputs)

        return trace

    for make in (triplet, pair):
        for flags in range(16):
            which = tuple(bool(flags >> i & 1) for i in range(4))
            yield Corner("a product of broadcasts", case_of(make(*which), row, column, other))

    def beside(x: Value, y: Value) -> tuple[Value, ...]:
        """The Multiply reads another value than the broadcast before it."""
        squared = apply(ops.Multiply(), x, x)
        wide = spread(y, 2, 3, dims=(0,))
        return wide, apply(ops.Multiply(), squared, squared)

    yield Corner("a product beside a broadcast", case_of(beside, row, column))

    def shapes(x: Value, y: Value) -> tuple[Value, ...]:
        return apply(ops.Exp(), apply(ops.Negate(), x)), apply(ops.Exp(), apply(ops.Negate(), y))

    yield Corner("a fused run of two shapes", case_of(shapes, row, other))
    yield Corner("a fused run of two dtypes", case_of(shapes, row, row.astype(np.float32)))

    def long(x: Value, y: Value) -> Value:
        """Several scratch blocks alive at once."""
        parts = [apply(op, v) for op in (ops.Exp(), ops.Negate()) for v in (x, y)]
        products = [apply(ops.Multiply(), a, b) for a in parts[:2] for b in parts[2:]]
        total = products[0]
        for part in (*products[1:], *parts):
            total = apply(ops.Add(), total, part)
        return total

    for count in (1, 4, 5, 6, 9, 10, 11, 12):
        yield Corner("a long fused run", case_of(long, numbers(count), numbers(count) + 1))


def _symbols() -> Iterator[Corner]:
    """Extents that the program does not know."""
    a, b, c = numbers(2, 3, 4), numbers(3, 4, 5), numbers(4, 2, 3)
    shapes: tuple[tuple[int | str, ...], ...]
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
        case = case_of(lambda x, y, op=op: apply(op, x, y), x, y, shapes=shapes)
        yield Corner("a contraction of symbolic extents", case)
    case = case_of(lambda x: apply(ops.Transpose((1, 0)), x), a[0], shapes=(("i", "j"),))
    yield Corner("a symbolic transposition", case)
    for shape in (("i", "j", "k"), (2, "j", 4)):
        case = case_of(lambda x: apply(ops.Transpose((2, 0, 1)), apply(ops.Negate(), x)), a, shapes=(shape,))
        yield Corner("a symbolic chain", case)

    def product(x: Value, y: Value) -> Value:
        shape = (InputDim(1, 0), InputDim(2, 0))
        return apply(ops.Multiply(), *(apply(ops.BroadcastInDim(shape, (i,)), v, x, y) for i, v in enumerate((x, y))))

    def uneven(x: Value, y: Value, scalar: Value) -> Value:
        return apply(ops.Multiply(), apply(ops.BroadcastInDim((InputDim(1, 0),), ()), scalar, x), y)

    for count, error in ((4, ""), (3, "ShapeMismatch")):
        case = case_of(uneven, a[0, 0], numbers(count), np.float64(2), shapes=(("i",), ("j",), ()))
        yield Corner("a product of symbolic extents that differ or do not", case, error)

    def flat(x: Value) -> Value:
        return apply(ops.Reshape((DimOp("mul", InputDim(0, 0), InputDim(0, 1)),)), apply(ops.Exp(), x))

    yield Corner("a symbolic product of broadcasts", case_of(product, a[0, 0], b[0, 0], shapes=(("i",), ("j",))))
    yield Corner("a symbolic product of broadcasts", case_of(product, a[0, 0], b[0, 0], shapes=((4,), ("j",))))
    yield Corner("a symbolic reshape", case_of(flat, a[0], shapes=(("i", "j"),)))
    for equation, operands, shapes in (
        ("ij,jk->ik", (a[0], numbers(4, 2)), (("i", "j"), ("j", "k"))),
        ("ij,jk->ik", (a[0], numbers(4, 2)), (("i", "j"), (4, "k"))),
        ("ij,jk->ik", (a[0], numbers(4, 2)), ((3, 4), ("l", "k"))),
        ("ij,ij->ji", (a[0], a[1]), (("i", 4), (3, "j"))),
    ):
        yield Corner("einsum over symbols", case_of(lambda *v, e=equation: einsum(e, *v), *operands, shapes=shapes))


def _einsums() -> Iterator[Corner]:
    """Labels that NumPy does not take, and contractions of several operands."""
    m = [numbers(2, 3), numbers(3, 4), numbers(4, 2)]
    for equation, operands in (
        ("βδ,δλ->βλ", m[:2]), ("éà,àü->üé", m[:2]), ("zy,yx->xz", m[:2]), ("ij,jk,ki->", m), ("ij,jk,kl->il", m),
        ("ij,jk,kl,jm->lm", [*m, m[1]]), ("ii->i", [numbers(3, 3)]), ("i,j,k->kij", [v[0] for v in m]),
    ):  # fmt: skip
        yield Corner("einsum", case_of(lambda *v, e=equation: einsum(e, *v), *operands))
    case = case_of(lambda x: einsum("ij->ji", (x * 3.0) * 0.1), m[0])
    yield Corner("a chain of products turned over", case)


def _specials() -> Iterator[Corner]:
    """Every special value against every other, known and as an interval."""
    for dtype in (np.float64, np.float32):
        info = np.finfo(dtype)
        values = np.array([0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan, info.smallest_subnormal, info.smallest_normal, -info.max],
                          dtype)  # fmt: skip
        x, y = (np.asfortranarray(a) for a in np.meshgrid(values, values))
        for op in (
            ops.Add(),
            ops.Multiply(),
            ops.Divide(),
            ops.Maximum(),
            ops.Minimum(),
            *map(ops.Compare, CompareDir),
        ):

            def both(x: Value, y: Value, op: Op = op) -> tuple[Value, ...]:
                pairs = (
                    (x, y),
                    (apply(ops.Exp(), x), y),
                    (apply(ops.Exp(), x), apply(ops.Log(), y)),
                    (apply(ops.Sin(), x), apply(ops.Exp(), y)),
                )
                return tuple(apply(op, *pair) for pair in pairs)

            yield Corner("pairs of special values", case_of(both, x, y))

            def anywhere(x: Value, y: Value, op: Op = op) -> tuple[Value, ...]:
                """A sum that may overflow on the way is anything."""
                whole = apply(ops.ReduceSum((0,)), y)
                return apply(op, whole, x), apply(op, x, whole), whole

            large = np.array([info.max, info.max, -info.max, -info.max], dtype)
            spread_out = np.broadcast_to(large[:, np.newaxis], (4, values.size)).copy("F")
            yield Corner("what may be anything, and special values", case_of(anywhere, values, spread_out))

        def alone(x: Value) -> tuple[Value, ...]:
            sources = x, apply(ops.Exp(), x), apply(ops.Sin(), x), apply(ops.Log(), x)
            return tuple(apply(op, v) for v in sources for op in (ops.Negate(), ops.Abs(), ops.Sign(), ops.Sqrt()))

        yield Corner("special values", case_of(alone, values))


@cache
def corners() -> tuple[Corner, ...]:
    """All of them, in a fixed order."""
    return tuple(d for family in (_limits, _ones, _runs, _symbols, _einsums, _specials) for d in family())
