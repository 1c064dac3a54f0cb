"""`EXAMPLES`: what each op is asked, by op and dtype, in the tests of every layer; some with the result that is due.

Kernels, StableHLO, jaxlib's interpreter, JAX and the plugins answer the same examples: the edge cases that SEMANTICS 2
names, and generated values. A row is `row(op class, dtype) -> examples`, the dtype being that of the operand that the op's
dtype rule is about.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from fuzz.generate.values.classes import classes
from fuzz.generate.values.recipes import Recipe, array_of
from fuzz.generate.values.special import SPECIALS
from tenferro_ref import ops
from tenferro_ref.dims import DimOp, InputDim
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.ops import DEFAULT_POLICY, OPS, REDUCTIONS, STABLEHLO, CompareDir, Op, Policy
from tenferro_ref.program import GraphBuilder, GraphProgram
from tenferro_ref.table import Table
from tenferro_ref.tensor import Array
from tests.known import ABORTS, Example, known

Case: TypeAlias = tuple[Op, tuple[Array, ...]]
I32, I64 = np.int32, np.int64
I64_MAX, I32_MAX = 2**63 - 1, 2**31 - 1


Row: TypeAlias = Callable[[type[Any], DType], list[Example]]
EXAMPLES: Table[Row] = Table("examples")


def program_of(examples: Sequence[Example], policy: Policy | None = None) -> tuple[GraphProgram, list[Array]]:
    """One program with an instruction, its own inputs and an output for each example; and its inputs."""
    b = GraphBuilder(policy=policy or examples[0].policy)
    arrays: list[Array] = []
    outputs = []
    for example in examples:
        operands = list(map(np.asarray, example.operands))
        outputs.append(b.apply(example.op, *(b.input(DType.of(a), a.shape) for a in operands)))
        arrays += operands
    return b.build(*outputs), arrays


def admitted(op: type[Op]) -> list[DType]:
    """Dtypes that some policy admits."""
    return [d for d in DType if d in op.dtypes | op.stablehlo_dtypes]


def policy_for(op: type[Op], dtype: DType) -> Policy:
    """The engine's, where that admits the dtype."""
    return DEFAULT_POLICY if dtype in op.dtypes else STABLEHLO


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


@EXAMPLES.row(*(op for op in ops.ELEMENTWISE if op.arity == 1))
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = line(dtype)
    return [Example(op(), (a,), policy_for(op, dtype)) for a in (x, x[0])]


@EXAMPLES.row(ops.Add, ops.Subtract, ops.Multiply)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, y = pairs(dtype)
    examples = [Example(op(), (x, y), policy_for(op, dtype)), Example(op(), (x, y[3]), policy_for(op, dtype))]
    if dtype.is_complex:  # the one exception to equal dtypes
        examples.append(Example(op(), (y.real[5], x)))
    return examples


@EXAMPLES.row(ops.Divide, ops.Remainder)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, y = pairs(dtype)
    if not dtype.is_int:
        return [Example(op(), (x, y)), Example(op(), (x[7], y))]
    zero = y == 0
    return [
        Example(op(), (x[~zero], y[~zero]), STABLEHLO),
        Example(op(), (x[zero], y[zero]), STABLEHLO, without=ABORTS),
    ]


@EXAMPLES.row(ops.Pow)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, y = pairs(dtype)
    if not dtype.is_int:
        return [Example(op(), (x, y)), Example(op(), (x, y.dtype.type(0.5)[...]))]
    small = generated(dtype, x.shape, 3, "small")
    return [Example(op(), (x, small), STABLEHLO), Example(op(), (x, y), STABLEHLO)]


@EXAMPLES.row(ops.Maximum, ops.Minimum)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, y = pairs(dtype)
    return [Example(op(), operands, policy_for(op, dtype)) for operands in ((x, y), (x[0], y[0]))]


@EXAMPLES.row(ops.Compare)
def _(op: type[Any], dtype: DType) -> list[Example]:
    policy = STABLEHLO if dtype is DType.Bool else DEFAULT_POLICY
    directions = [CompareDir.Eq] if dtype.is_complex else list(CompareDir)
    return [Example(op(d), pairs(dtype), policy) for d in directions]


@EXAMPLES.row(ops.Select)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, y = pairs(dtype)
    chosen = generated(DType.Bool, x.shape, 1)
    return [Example(op(), (chosen, x, y)), Example(op(), (chosen[0], x[0], y[0]))]


@EXAMPLES.row(ops.Clamp)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x, y = pairs(dtype)
    return [Example(op(), (np.roll(x, 1), x, y), policy_for(op, dtype))]


# --- structural -------------------------------------------------------------------------------------------------------


@EXAMPLES.row(ops.Transpose)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (2, 3, 4), 1)
    return [Example(op((2, 0, 1)), (x,)), Example(op(()), (x[0, 0, 0],)), Example(op((1, 0)), (x[:, :0, 0],))]


@EXAMPLES.row(ops.Reshape)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (2, 3, 4), 1)
    shapes: list[tuple[Any, ...]] = [(4, 6), (24,), (3, 1, 8), (2, 1, 3, 4)]
    by_providers = Example(op((InputDim(1, 1), InputDim(1, 0), 2)), (x, generated(dtype, (3, 4), 2)))
    return [
        *(Example(op(s), (x,)) for s in shapes),
        Example(op((1, 1)), (x[1, 1, 1],)),
        Example(op(()), (x[1, 1, :1],)),
        by_providers,
    ]


@EXAMPLES.row(ops.BroadcastInDim)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (2, 1), 1)
    return [
        Example(op((4, 2, 3), (1, 2)), (x,)),
        Example(op((4, 3, 2), (2, 0)), (x,)),  # dims need not increase
        Example(op((2, 2), ()), (x[1, 0],)),
        Example(op((), ()), (x[1, 0],)),
        Example(op((2, 0), (0, 1)), (x,)),
    ]


@EXAMPLES.row(ops.Convert)
def _(op: type[Any], dtype: DType) -> list[Example]:
    return [Example(op(to), (line(dtype),)) for to in ENGINE_DTYPES]


@EXAMPLES.row(ops.Constant)
def _(op: type[Any], dtype: DType) -> list[Example]:
    return [Example(op(dtype, v.tobytes()), ()) for v in SPECIALS[dtype]]


# --- reductions and contraction ---------------------------------------------------------------------------------------


@EXAMPLES.row(*REDUCTIONS)
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


@EXAMPLES.row(ops.DotGeneralWithConj)
def _(op: type[Any], dtype: DType) -> list[Example]:
    """Those of DotGeneral, with each pair of flags in turn."""
    flags = [(True, False), (False, True), (True, True), (False, False)]
    return [
        replace(e, op=op(*(getattr(e.op, f.name) for f in fields(ops.DotGeneral)), *flags[i % 4]))
        for i, e in enumerate(EXAMPLES[ops.DotGeneral](ops.DotGeneral, dtype))
    ]


@EXAMPLES.row(ops.DotGeneral)
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
        Example(op((), (), (), ()), (x[0, 0, 0], y[0, 0, 0]), policy),
        Example(op((1,), (2,), (2, 0), (1, 0)), (square, square), policy),  # equal extents, no axis where it was
        Example(op((1,), (1,), (), ()), (hostile, hostile), policy),
        Example(op((1,), (0,), (), ()), (x[:, :0, 0], y[:0, 0]), policy, without=aborts),
    ]


# --- indexing, padding, diagonals: edges (SEMANTICS 2.2 and 2.4) ------------------------------------------------------


def data(dtype: DType, *shape: int) -> Array:
    """Elements that differ; floats begin with -0, a NaN with a payload, and an infinity."""
    n = math.prod(shape)
    if dtype is DType.Bool:
        flat: Array = np.arange(n) * 7 % 5 < 2
    else:
        flat = np.arange(1, n + 1).astype(dtype.numpy)
        if dtype.is_complex:
            flat.imag = -np.arange(n)
        if not dtype.is_int:
            special = np.array([-0.0, np.nan, -np.inf], dtype.real.numpy)
            bits = {4: np.uint32, 8: np.uint64}[special.itemsize]
            special[1:2].view(bits)[...] |= 0x123
            flat[: min(n, 3)] = special[: min(n, 3)]
    return flat.reshape(shape, order="F")


def indices(values: object, dtype: DType = DType.I64) -> Array:
    return np.asfortranarray(np.array(values, dtype.numpy))


def diagonals_and_triangles(dtype: DType) -> list[Case]:
    extract = [
        (0, 1, (3, 4)), (1, 0, (3, 4)), (1, 0, (4, 2)), (2, 0, (2, 3, 4)), (0, 2, (2, 3, 2)), (2, 1, (2, 3, 4)), (0, 1, (2, 3, 4)), (1, 2, (2, 3, 4)),
        (1, 2, (2, 0, 3)), (0, 2, (2, 0, 3)), (0, 1, (1, 1)),
    ]  # fmt: skip
    embed = [
        (0, 0, (3,)), (0, 1, (3,)), (1, 0, (2, 3)), (1, 1, (2, 3)), (1, 2, (2, 3)), (0, 2, (2, 3)), (0, 0, (0,)),
        (0, 1, (2, 0)), (1, 0, (2, 0)), (0, 0, (1,)),
    ]  # fmt: skip
    triangle = [(0, (3, 4)), (1, (3, 4)), (-1, (4, 3)), (0, (3, 2, 2)), (1, (2, 3, 2)), (0, (0, 3)), (1, (2, 3, 0))]
    extreme = [(5, (3, 4)), (-9, (3, 4)), (I64_MAX, (2, 2)), (-I64_MAX, (2, 2))]
    return [
        *((ops.ExtractDiag(a, b), (data(dtype, *shape),)) for a, b, shape in extract),
        *((ops.EmbedDiag(a, b), (data(dtype, *shape),)) for a, b, shape in embed),
        *((op(k), (data(dtype, *shape),)) for op in (ops.Tril, ops.Triu) for k, shape in triangle + extreme),
    ]


def static_windows(dtype: DType) -> list[Case]:
    x, rank0, none = data(dtype, 5, 4), data(dtype), data(dtype, 0, 3)
    pads = [
        ((1, 0), (2, 3), (0, 0)), ((0, 0), (0, 0), (2, 1)), ((-1, 2), (1, -3), (0, 0)), ((-2, -1), (-3, 0), (2, 1)),
        ((-5, 0), (0, 0), (0, 0)), ((-7, 0), (9, 0), (0, 0)), ((9, 0), (-7, 0), (0, 0)),
    ]  # fmt: skip
    return [
        (ops.Slice((1, 0), (5, 4), (2, 3)), (x,)), (ops.Slice((2, 0), (2, 4), (1, 1)), (x,)), (ops.Slice((), (), ()), (rank0,)),
        (ops.Slice((1, 1), (5, 4), (4, I64_MAX)), (x,)), (ops.Slice((0, 1), (0, 3), (1, 1)), (none,)),
        *((ops.Pad(*config), (x,)) for config in pads),
        (ops.Pad((), (), ()), (rank0,)), (ops.Pad((1, -1), (1, 0), (5, 0)), (none,)), (ops.Pad((-1, 0), (2, 0), (1, 1)), (none,)),
        (ops.PadToMatch(0), (x, data(DType.I32, 7, 1))), (ops.PadToMatch(1), (x, data(dtype, 9, 3))),
        (ops.PadToMatch(0), (none, data(DType.Bool, 2, 0))),
        (ops.Concatenate(1), (x, data(dtype, 5, 0), data(dtype, 5, 1), x)), (ops.Concatenate(0), (x,)),
        (ops.Concatenate(0), (none, none)),
        (ops.Reverse(()), (x,)), (ops.Reverse((0,)), (x,)), (ops.Reverse((1, 0)), (x,)), (ops.Reverse((0,)), (none,)),
        (ops.Reverse(()), (rank0,)), (ops.ShapeOf(1), (x,)), (ops.ShapeOf(0), (none,)),
    ]  # fmt: skip


def dynamic_windows(dtype: DType) -> list[Case]:
    x, rank0 = data(dtype, 5, 4), data(dtype)
    starts = [
        indices([1, 2]), indices([-3, 9]), indices([I64_MAX, -(2**63)]), indices([I32_MAX, -(2**31)], DType.I32),
        indices([3, 0], DType.I32),
    ]  # fmt: skip
    none = indices([])
    return [
        *((ops.DynamicSlice((2, 3)), (x, s)) for s in starts), (ops.DynamicSlice((5, 4)), (x, starts[0])),
        (ops.DynamicSlice((0, 2)), (x, starts[1])), (ops.DynamicSlice(()), (rank0, none)),
        *((ops.DynamicUpdateSlice(), (x, data(dtype, 2, 3), s)) for s in starts),
        (ops.DynamicUpdateSlice(), (x, data(dtype, 0, 3), starts[0])), (ops.DynamicUpdateSlice(), (rank0, data(dtype), none)),
    ]  # fmt: skip


def gathers(dtype: DType) -> list[Case]:
    x, cube, none = data(dtype, 5, 4), data(dtype, 3, 4, 2), data(dtype, 0, 4)
    outside = indices([[0, 3], [-7, 9], [4, 2], [I64_MAX, -(2**63)]])
    small = indices([4, -1, I32_MAX, 2], DType.I32)
    rows = ((1,), (0,), (0,), 1, (1, 4))  # whole rows
    whole = ops.GatherDynamicSliceSizes((1, 2), (0,), (0,), 1, (1, InputDim(0, 1), DimOp("min", InputDim(2, 0), 2)))
    vectors = ops.GatherDynamicSliceSizes((1,), (0,), (0,), 1, (InputDim(1, 1), 3))  # as long as an index vector
    return [
        (ops.Gather(*rows), (x, indices([[0], [4], [-1], [9]]))), (ops.Gather(*rows), (x, small)), (ops.Gather(*rows), (x, indices([]))),
        (ops.Gather((), (0, 1), (0, 1), 1, (1, 1)), (x, outside)), (ops.Gather((), (0, 1), (1, 0), 1, (1, 1)), (x, outside)),
        (ops.Gather((), (0, 1), (0, 1), 0, (1, 1)), (x, outside.T)),
        # windows larger than one, clamped so that they fit; axes that no index moves start at 0
        (ops.Gather((0, 2), (), (0, 1), 1, (2, 3)), (x, outside)), (ops.Gather((1, 2), (), (1,), 1, (2, 3)), (x, small)),
        (ops.Gather((0,), (1,), (), 1, (2, 1)), (x, np.zeros((3, 0), np.int64))),
        (ops.Gather((0, 3), (1,), (2, 1), 2, (2, 1, 1)), (cube, indices([[[0, 1], [1, 9]], [[-4, 2], [1, 3]]]))),
        (ops.Gather((1, 3), (), (1, 0), 1, (2, 2)), (x, indices([[[0, 3], [0, 2]], [[1, -7], [2, 1]]], DType.I32))),
        (ops.Gather((0,), (1, 2), (2, 1), 0, (3, 1, 1)), (cube, indices([1, 3]))),  # one index vector
        (ops.Gather((0, 1), (), (0,), 0, (2, 4)), (x, indices(3))),  # a rank-0 index
        (ops.Gather((), (), (), 1, ()), (data(dtype), np.zeros((3, 0), np.int64))), (ops.Gather((), (), (), 0, ()), (data(dtype), indices([]))),
        (ops.Gather((1,), (1,), (0,), 1, (0, 1)), (x, small)), (ops.Gather((1,), (1,), (1,), 1, (0, 1)), (none, small)),
        (whole, (cube, small, data(DType.Bool, 7))), (vectors, (x, indices([[0], [4], [-1], [9]]))),
    ]  # fmt: skip


@cache
def moves(dtype: DType) -> list[Example]:
    """Elements that are only moved, so that every implementation must give the same bits."""
    rows = diagonals_and_triangles, static_windows, dynamic_windows, gathers
    return [Example(*case, without=_without(case[0])) for row in rows for case in row(dtype)]


def beyond_files(dtype: DType) -> list[Example]:
    """Triangles whose `k` no program file holds, which ends at -(2**63 - 1)."""
    return [Example(op(-(2**63)), (data(dtype, 2, 2),)) for op in (ops.Tril, ops.Triu)]


def _without(op: Op) -> dict[str, str]:
    if isinstance(op, ops.Slice) and I64_MAX in op.strides:
        return {"jax": "its process ends: XLA:CPU adds to the stride"}
    return {}


@cache
def scatters(dtype: DType, policy: Policy = DEFAULT_POLICY) -> list[Example]:
    """Additions of small integers, any order of which gives the same bits; of false and true for Bool."""

    def values(*shape: int) -> Array:
        n = np.arange(math.prod(shape)) % 7
        flat = n > 4 if dtype is DType.Bool else (n - n * 1j if dtype.is_complex else n).astype(dtype.numpy)
        return flat.reshape(shape, order="F")

    line, x, cube = values(4), values(5, 4), values(3, 4, 2)
    outside = indices([[0, 3], [-7, 9], [4, 2], [0, 3], [I64_MAX, -(2**63)]])
    scalars, rows, windows = (
        ops.Scatter((), (0,), (0,), 1),
        ops.Scatter((1,), (0,), (0,), 1),
        ops.Scatter((1, 2), (), (0, 1), 1),
    )
    cases: list[Case] = [
        (scalars, (line, indices([-1, 2, 4]), values(3))), (scalars, (line, indices([[3], [3], [3]]), values(3))),
        (scalars, (line, indices([I32_MAX, -(2**31), 1, 1], DType.I32), values(4))),
        (scalars, (line, indices([]), values(0))), (ops.Scatter((), (0,), (0,), 0), (line, indices(9), values())),
        (rows, (x, indices([0, 4, 0, 5, -1]), values(5, 4))), (rows, (x, indices([1, 7]), values(2, 2))),
        (ops.Scatter((), (0, 1), (1, 0), 1), (x, outside[:, ::-1], values(5))),
        (ops.Scatter((), (0, 1), (0, 1), 0), (x, outside.T, values(5))),
        # windows larger than one: partly outside at either end, overlapping
        (windows, (x, outside, values(5, 2, 3))), (windows, (x, indices([[3, 1], [-1, 0], [3, 2]]), values(3, 2, 3))),
        (ops.Scatter((0,), (), (0,), 1), (line, indices([[-1], [1], [3], [2]]), values(2, 4))),
        (ops.Scatter((0, 2), (1,), (2, 1), 2), (cube, indices([[[0, 1], [1, 9]], [[0, 1], [1, 3]]]), values(3, 2, 1, 2))),
        (ops.Scatter((1,), (), (), 1), (line, np.zeros((3, 0), np.int64), values(3, 2))),
        (windows, (values(0, 4), indices([[0, 0]]), values(1, 0, 4))), (windows, (x, indices([[0, 0]]), values(1, 0, 4))),
        (scalars, (values(0), indices([0, 1]), values(2))),
    ]  # fmt: skip
    return [Example(op, operands, policy) for op, operands in cases]


def scatter_onto_rank_0(dtype: DType, policy: Policy = DEFAULT_POLICY) -> Example:
    """Three index vectors of length 0."""
    ones = np.ones(3, dtype.numpy)
    return Example(ops.Scatter((), (), (), 1), (np.array(ones[0]), np.zeros((3, 0), np.int64), ones), policy)


MOVES = (
    ops.ExtractDiag, ops.EmbedDiag, ops.Tril, ops.Triu, ops.Slice, ops.Pad, ops.PadToMatch, ops.Concatenate, ops.Reverse,
    ops.ShapeOf, ops.DynamicSlice, ops.DynamicUpdateSlice, ops.Gather, ops.GatherDynamicSliceSizes,
)  # fmt: skip


@EXAMPLES.row(*MOVES)
def _(op: type[Any], dtype: DType) -> list[Example]:
    return [example for example in moves(dtype) if type(example.op) is op]


@EXAMPLES.row(ops.Scatter)
def _(op: type[Any], dtype: DType) -> list[Example]:
    plain = "small" if dtype.is_int else "simple" if dtype is DType.Bool else "ordinary"
    x, updates = generated(dtype, (4, 3), 1, plain), generated(dtype, (4, 3), 2, plain)
    rows = np.array([[2], [-1], [2], [7]], I64)
    policies = (DEFAULT_POLICY, STABLEHLO) if dtype in op.dtypes else (STABLEHLO,)
    rounded = (
        (op((1,), (0,), (0,), 1), (x, rows, updates)),
        (op((0, 1), (), (0, 1), 0), (x, np.array([3, 2], I32), updates[:2, :2])),
        (op((), (0,), (0,), 1), (x[:, 0], np.array([0, 1, 0, 9], I32), updates[:, 0])),
    )
    return [e for p in policies for e in (*(Example(*case, p) for case in rounded), *scatters(dtype, p))]


@EXAMPLES.row(ops.DynamicTruncate)
def _(op: type[Any], dtype: DType) -> list[Example]:
    x = generated(dtype, (2, 5), 1)
    sizes = [
        *np.array([0.5, 1.5, 2.5, -0.5, -3.0, 4.4999, 1e30, 2.0**53 + 2]),
        *np.array([0.5, 2.4999998, 9.0], np.float32),
        *np.array([3, 0, -1, 2**62 + 1], I64),
    ]
    return [Example(op(1), (x, np.asarray(size))) for size in sizes]


EXAMPLES.unsupported("judged by residuals, with tests of their own families", ops.Extension)


@cache
def examples(op: type[Any], dtype: DType) -> list[Example]:
    """Those of the op's row, and those whose result is known."""
    return [*EXAMPLES[op](op, dtype), *known(op, dtype)]


#: Every op with every dtype that some policy admits.
PAIRS = [(op, dtype) for op in OPS if op in EXAMPLES for dtype in admitted(op)]
