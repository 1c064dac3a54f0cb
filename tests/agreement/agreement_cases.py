"""`CASES`: what each op is asked in the agreement tests: the edge cases that SEMANTICS 2 names, and generated values.

A row is `row(op class, dtype) -> examples`, the dtype being that of the operand that the op's dtype rule is about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from fuzz.generate.values.classes import classes
from fuzz.generate.values.recipes import Recipe, array_of
from fuzz.generate.values.special import SPECIALS
from tenferro_ref import ops
from tenferro_ref.dims import InputDim
from tenferro_ref.dtype import DType
from tenferro_ref.ops import ENGINE, OPS, STABLEHLO, CompareDir, Op, Policy
from tenferro_ref.table import Table

Array: TypeAlias = np.ndarray[Any, Any]
I32, I64 = np.int32, np.int64


@dataclass(frozen=True, eq=False)
class Example:
    """An op and its operands.

    Attributes
    ----------
    without
        Executors that are not asked, and why.
    """

    op: Op
    operands: tuple[Array, ...]
    policy: Policy = ENGINE
    without: dict[str, str] = field(default_factory=dict)


Row: TypeAlias = Callable[[type[Any], DType], list[Example]]
CASES: Table[Row] = Table("agreement cases")


def admitted(op: type[Op]) -> list[DType]:
    """Dtypes that some policy admits."""
    return [d for d in DType if d in op.dtypes | op.stablehlo_dtypes]


def policy_for(op: type[Op], dtype: DType) -> Policy:
    """The engine's, where that admits the dtype."""
    return ENGINE if dtype in op.dtypes else STABLEHLO


# --- values -----------------------------------------------------------------------------------------------------------


def generated(dtype: DType, shape: tuple[int, ...], seed: int, kind: str = "") -> Array:
    """Column-major values of a class, by default plain ones with a few specials among them."""
    kind = kind or ("sprinkled" if "sprinkled" in classes(dtype) else "simple" if dtype is DType.Bool else "special")
    return array_of(Recipe(kind, seed), dtype, shape)


def line(dtype: DType, seed: int = 0) -> Array:
    """Every special value, then some of every class."""
    drawn = [generated(dtype, (24,), seed + i, kind) for i, kind in enumerate(classes(dtype))]
    return np.concatenate([SPECIALS[dtype], *drawn])


def pairs(dtype: DType) -> tuple[Array, Array]:
    """Every special value with every other, then generated ones."""
    x, y = (a.reshape(-1) for a in np.meshgrid(SPECIALS[dtype], SPECIALS[dtype]))
    return np.concatenate([x, line(dtype, 1)]), np.concatenate([y, line(dtype, 2)])


# --- elementwise ------------------------------------------------------------------------------------------------------


@CASES.row(
    ops.Negate,
    ops.Conj,
    ops.Abs,
    ops.Sign,
    ops.Exp,
    ops.Log,
    ops.Sin,
    ops.Cos,
    ops.Tanh,
    ops.Sqrt,
    ops.Rsqrt,
    ops.Expm1,
    ops.Log1p,
)
def _(op: type[Any], dtype: DType) -> list[Example]:
    return [Example(op(), (line(dtype),), policy_for(op, dtype))]


@CASES.row(ops.Add, ops.Multiply)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, y = pairs(dtype)
    examples = [Example(op(), (x, y), policy_for(op, dtype)), Example(op(), (x, y[3]), policy_for(op, dtype))]
    if dtype.is_complex:  # the one exception to equal dtypes
        examples.append(Example(op(), (y.real[5], x)))
    return examples


@CASES.row(ops.Divide)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, y = pairs(dtype)
    if not dtype.is_int:
        return [Example(op(), (x, y)), Example(op(), (x[7], y))]
    aborts = {"interpreter": "its process ends at an integer division by zero"}
    zero = y == 0
    return [
        Example(op(), (x[~zero], y[~zero]), STABLEHLO),
        Example(op(), (x[zero], y[zero]), STABLEHLO, aborts),
    ]


@CASES.row(ops.Pow)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, y = pairs(dtype)
    if not dtype.is_int:
        return [Example(op(), (x, y)), Example(op(), (x, y.dtype.type(0.5)[...]))]
    small = generated(dtype, x.shape, 3, "small")
    return [Example(op(), (x, small), STABLEHLO), Example(op(), (x, y), STABLEHLO)]


@CASES.row(ops.Maximum, ops.Minimum)
def _(op: type[Any], dtype: DType) -> list[Example]:
    return [Example(op(), pairs(dtype), policy_for(op, dtype))]


@CASES.row(ops.Compare)
def _(op: type[Any], dtype: DType) -> list[Example]:
    policy = STABLEHLO if dtype is DType.Bool else ENGINE
    directions = [CompareDir.Eq] if dtype.is_complex else list(CompareDir)
    return [Example(op(d), pairs(dtype), policy) for d in directions]


@CASES.row(ops.Select)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, y = pairs(dtype)
    return [Example(op(), (generated(DType.Bool, x.shape, 1), x, y))]


@CASES.row(ops.Clamp)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, y = pairs(dtype)
    return [Example(op(), (np.roll(x, 1), x, y), policy_for(op, dtype))]


# --- structural -------------------------------------------------------------------------------------------------------


@CASES.row(ops.Transpose)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (2, 3, 4), 1)
    return [Example(op((2, 0, 1)), (x,)), Example(op(()), (x[0, 0, 0],)), Example(op((1, 0)), (x[:, :0, 0],))]


@CASES.row(ops.Reshape)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (2, 3, 4), 1)
    shapes: list[tuple[Any, ...]] = [(4, 6), (24,), (3, 1, 8), (2, 1, 3, 4)]
    by_providers = Example(op((InputDim(1, 1), InputDim(1, 0), 2)), (x, generated(dtype, (3, 4), 2)))
    return [*(Example(op(s), (x,)) for s in shapes), Example(op((1, 1)), (x[1, 1, 1],)), by_providers]


@CASES.row(ops.BroadcastInDim)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (2, 1), 1)
    return [
        Example(op((4, 2, 3), (1, 2)), (x,)),
        Example(op((4, 3, 2), (2, 0)), (x,)),  # dims need not increase
        Example(op((2, 2), ()), (x[1, 0],)),
        Example(op((2, 0), (0, 1)), (x,)),
    ]


@CASES.row(ops.Convert)
def _(op: type[Any], dtype: DType) -> list[Example]:
    return [Example(op(to), (line(dtype),)) for to in DType]


@CASES.row(ops.ExtractDiag)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (2, 3, 4), 1)
    return [Example(op(a, b), (x,)) for a, b in ((0, 1), (2, 0), (1, 2), (2, 1))]


@CASES.row(ops.EmbedDiag)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (2, 3), 1)
    return [Example(op(a, b), (x,)) for a, b in ((0, 0), (0, 2), (1, 0), (1, 1))]


@CASES.row(ops.Tril, ops.Triu)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (3, 4, 2), 1)
    return [Example(op(k), (x,)) for k in (0, -1, 2, -9, 9, 2**40)]


@CASES.row(ops.Constant)
def _(op: type[Any], dtype: DType) -> list[Example]:
    return [Example(op(dtype, v.tobytes()), ()) for v in SPECIALS[dtype]]


# --- reductions and contraction ---------------------------------------------------------------------------------------


@CASES.row(ops.ReduceSum, ops.ReduceProd, ops.ReduceMax, ops.ReduceMin)
def _(op: type[Any], dtype: DType) -> list[Example]:
    policy = policy_for(op, dtype)
    plain = generated(dtype, (3, 4, 2), 1, "small" if dtype.is_int else "simple" if dtype is DType.Bool else "ordinary")
    hostile = generated(dtype, (5, 40), 3)
    examples = [Example(op(axes), (plain,), policy) for axes in ((0,), (1, 2), (2, 0), (0, 1, 2))]
    examples += [Example(op(()), (plain,)), Example(op((1,)), (plain[:0],), policy)]
    examples += [Example(op((1,)), (hostile,), policy), Example(op((0, 1)), (hostile[:, :0],), STABLEHLO)]
    if not dtype.is_complex and dtype.is_float:
        examples += [Example(op((0,)), (np.array(v, dtype.numpy),)) for v in ([-0.0, -0.0], [-0.0, 0.0], [0.0, -0.0])]
    return examples


@CASES.row(ops.DotGeneral)
def _(op: type[Any], dtype: DType) -> list[Example]:
    kind = "small" if dtype.is_int else "simple" if dtype is DType.Bool else "ordinary"
    x, y = generated(dtype, (2, 3, 4), 1, kind), generated(dtype, (4, 2, 5), 2, kind)
    square, hostile = generated(dtype, (2, 2, 2), 3, kind), generated(dtype, (2, 3), 4)
    policy = policy_for(op, dtype)
    aborts = {"interpreter": "its process ends at a contraction over no element"}
    return [
        Example(op((2,), (0,), (0,), (1,)), (x, y), policy),
        Example(op((0, 2), (1, 0), (), ()), (x, y), policy),
        Example(op((), (), (), ()), (x[0], y[:, 0]), policy),
        Example(op((1,), (2,), (2, 0), (1, 0)), (square, square), policy),  # equal extents, no axis where it was
        Example(op((1,), (1,), (), ()), (hostile, hostile), policy),
        Example(op((1,), (0,), (), ()), (x[:, :0, 0], y[:0, 0]), policy, aborts),
    ]


# --- indexing ---------------------------------------------------------------------------------------------------------


@CASES.row(ops.Gather)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (4, 3), 1)
    ends = np.iinfo(I64)
    rows = np.array([[-1], [0], [5], [2], [ends.max], [ends.min]], I64)
    windows = np.array([[[0, 3], [0, 2]], [[1, -7], [2, 1]]], I32)  # index vectors along axis 1
    return [
        Example(op((1,), (0,), (0,), 1, (1, 3)), (x, rows)),
        Example(op((0,), (1,), (1,), 1, (4, 1)), (x, np.array([2, 0, 9], I32))),  # an implicit last axis
        Example(op((1, 3), (), (1, 0), 1, (2, 2)), (x, windows)),
    ]


@CASES.row(ops.GatherDynamicSliceSizes)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, source = generated(dtype, (4, 3), 1), np.zeros((2, 3))
    indices = np.array([[3, 0], [-1, 2]], I32)
    return [Example(op((1, 2), (), (0, 1), 1, (InputDim(2, 0), InputDim(0, 1))), (x, indices, source))]


@CASES.row(ops.Scatter)
def _(op: type[Any], dtype: DType) -> list[Example]:
    plain = "small" if dtype.is_int else "simple" if dtype is DType.Bool else "ordinary"
    x, updates = generated(dtype, (4, 3), 1, plain), generated(dtype, (4, 3), 2, plain)
    rows = np.array([[2], [-1], [2], [7]], I64)
    policies = (ENGINE, STABLEHLO) if dtype in op.dtypes else (STABLEHLO,)
    examples = [Example(op((1,), (0,), (0,), 1), (x, rows, updates), p) for p in policies]
    return [
        *examples,
        Example(op((0, 1), (), (0, 1), 0), (x, np.array([3, 2], I32), updates[:2, :2]), policies[0]),
        Example(op((), (0,), (0,), 1), (x[:, 0], np.array([0, 1, 0, 9], I32), updates[:, 0]), policies[0]),
    ]


@CASES.row(ops.Slice)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (5, 4), 1)
    return [Example(op((1, 0), (5, 4), (2, 3)), (x,)), Example(op((2, 4), (2, 4), (1, 1)), (x,))]


@CASES.row(ops.DynamicSlice)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, ends = generated(dtype, (5, 4), 1), np.iinfo(I64)
    starts = [np.array(v, t) for v, t in (([1, 1], I32), ([-3, 9], I32), ([ends.min, ends.max], I64))]
    return [
        *(Example(op((2, 3)), (x, s)) for s in starts),
        Example(op((5, 0)), (x, starts[0])),
        Example(op(()), (x[0, 0], np.zeros(0, I32))),
    ]


@CASES.row(ops.DynamicUpdateSlice)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, update = generated(dtype, (5, 4), 1), generated(dtype, (2, 3), 2)
    starts = [np.array(v, t) for v, t in (([1, 1], I32), ([-3, 9], I64))]
    return [
        *(Example(op(), (x, update, s)) for s in starts),
        Example(op(), (x[0, 0], update[0, 0], np.zeros(0, I32))),
    ]


@CASES.row(ops.Pad)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (3, 2), 1)
    configs = [
        ((1, 0), (2, 1), (0, 0)),
        ((0, 1), (1, 0), (2, 1)),
        ((-1, -2), (-1, 3), (1, 3)),
        ((-3, 0), (0, 0), (0, 0)),
    ]
    return [Example(op(*c), (x,)) for c in configs] + [Example(op((1, 0), (1, 0), (4, 0)), (x[:0],))]


@CASES.row(ops.Concatenate)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, y = generated(dtype, (2, 3), 1), generated(dtype, (2, 1), 2)
    return [Example(op(1), (x, y, x[:, :0])), Example(op(0), (x,)), Example(op(0), (x, x))]


@CASES.row(ops.Reverse)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (2, 3), 1)
    return [Example(op(axes), (x,)) for axes in ((), (1,), (1, 0))]


@CASES.row(ops.ShapeOf)
def _(op: type[Any], dtype: DType) -> list[Example]:
    return [Example(op(axis), (generated(dtype, (2, 0, 5), 1),)) for axis in range(3)]


@CASES.row(ops.DynamicTruncate)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (2, 5), 1)
    sizes = [
        *np.array([0.5, 1.5, 2.5, -0.5, -3.0, 4.4999, 1e30, 2.0**53 + 2]),
        *np.array([0.5, 2.4999998, 9.0], np.float32),
        *np.array([3, 0, -1, 2**62 + 1], I64),
    ]
    return [Example(op(1), (x, np.asarray(size))) for size in sizes]


@CASES.row(ops.PadToMatch)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, long, short = generated(dtype, (2, 3), 1), np.zeros((2, 5)), np.zeros((2, 1), I32)
    return [Example(op(1), (x, long)), Example(op(1), (x, short)), Example(op(0), (x, np.zeros((4, 3), bool)))]


CASES.unsupported("judged by residuals, with tests of their own families", ops.Extension)

#: Every op with every dtype that some policy admits.
PAIRS = [(op, dtype) for op in OPS if op in CASES for dtype in admitted(op)]
