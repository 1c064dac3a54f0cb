"""Cases for the emitter: an op and its operands; and the text of one op (`lines`).

`ordinary` has one or a few of every op that the other functions lack. They are the indexing, padding and diagonal ops at
their edges (SEMANTICS 2.2 and 2.4): `moves` only move elements, so that every implementation must give the same bits;
`scatters` add small integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from tenferro_ref.dims import DimOp, InputDim
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import (
    ENGINE,
    STABLEHLO,
    Abs,
    Add,
    BroadcastInDim,
    Clamp,
    Compare,
    CompareDir,
    Concatenate,
    Conj,
    Constant,
    Convert,
    Cos,
    Divide,
    DotGeneral,
    DynamicSlice,
    DynamicUpdateSlice,
    EmbedDiag,
    Exp,
    Expm1,
    ExtractDiag,
    Gather,
    GatherDynamicSliceSizes,
    Log,
    Log1p,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Op,
    Pad,
    PadToMatch,
    Policy,
    Pow,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reshape,
    Reverse,
    Rsqrt,
    Scatter,
    Select,
    ShapeOf,
    Sign,
    Sin,
    Slice,
    Sqrt,
    Tanh,
    Transpose,
    Tril,
    Triu,
)  # fmt: skip
from tenferro_ref.program import GraphBuilder, GraphProgram, LoweringView
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.tensor import Array, type_of

Case: TypeAlias = tuple[Op, tuple[Array, ...]]

I64_MAX, I32_MAX = 2**63 - 1, 2**31 - 1


ORDINARY: tuple[Op, ...] = (
    *(op() for op in (Add, Multiply, Divide, Pow, Maximum, Minimum, Negate, Abs, Conj, Sign, Exp, Log, Sin, Cos, Tanh, Sqrt)),
    *(op() for op in (Rsqrt, Expm1, Log1p, Clamp)), *(Compare(d) for d in CompareDir), Select(),
    Reshape((3, 2)), Transpose((1, 0)), BroadcastInDim((2, 4, 3), (0, 2)), *(Convert(d) for d in DType),
    *(op((0,)) for op in (ReduceSum, ReduceProd, ReduceMax, ReduceMin)), DotGeneral((1,), (1,), (0,), (0,)),
    DotGeneral((), (), (0,), (0,)),
)  # fmt: skip


def ordinary(dtype: DType) -> list[Case]:
    """Those of `ORDINARY` that admit the dtype in a program imported from StableHLO, on ones; and a constant."""
    ones = np.ones((2, 3), dtype.numpy, order="F")

    def operands(op: Op) -> tuple[Array, ...]:
        return (ones.astype(np.bool_), ones, ones) if isinstance(op, Select) else (ones,) * op.arity

    def admitted(op: Op) -> bool:
        try:
            op.result_types(tuple(map(type_of, operands(op))), STABLEHLO)
        except TenferroError:
            return False
        return True

    return [(Constant.of(1, dtype), ()), *((op, operands(op)) for op in ORDINARY if admitted(op))]


def empty_reductions(dtype: DType) -> list[Case]:
    """Reductions over nothing, which give their identities in a program imported from StableHLO."""
    empty = np.zeros((2, 0, 3), dtype.numpy, order="F")
    ops = (ReduceSum, ReduceProd) if dtype.is_complex else (ReduceSum, ReduceProd, ReduceMax, ReduceMin)
    return [(op(axes), (empty,)) for op in ops for axes in ((1,), (0, 1, 2))]


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
        (0, 1, (3, 4)), (1, 0, (3, 4)), (1, 0, (4, 2)), (2, 0, (2, 3, 4)), (0, 2, (2, 3, 2)), (2, 1, (2, 3, 4)),
        (1, 2, (2, 0, 3)), (0, 2, (2, 0, 3)), (0, 1, (1, 1)),
    ]  # fmt: skip
    embed = [
        (0, 0, (3,)), (0, 1, (3,)), (1, 0, (2, 3)), (1, 1, (2, 3)), (1, 2, (2, 3)), (0, 2, (2, 3)), (0, 0, (0,)),
        (0, 1, (2, 0)), (1, 0, (2, 0)), (0, 0, (1,)),
    ]  # fmt: skip
    triangle = [(0, (3, 4)), (1, (3, 4)), (-1, (4, 3)), (0, (3, 2, 2)), (1, (2, 3, 2)), (0, (0, 3)), (1, (2, 3, 0))]
    extreme = [(5, (3, 4)), (-9, (3, 4)), (I64_MAX, (2, 2)), (-(2**63), (2, 2))]
    return [
        *((ExtractDiag(a, b), (data(dtype, *shape),)) for a, b, shape in extract),
        *((EmbedDiag(a, b), (data(dtype, *shape),)) for a, b, shape in embed),
        *((op(k), (data(dtype, *shape),)) for op in (Tril, Triu) for k, shape in triangle + extreme),
    ]


def static_windows(dtype: DType) -> list[Case]:
    x, rank0, none = data(dtype, 5, 4), data(dtype), data(dtype, 0, 3)
    pads = [
        ((1, 0), (2, 3), (0, 0)), ((0, 0), (0, 0), (2, 1)), ((-1, 2), (1, -3), (0, 0)), ((-2, -1), (-3, 0), (2, 1)),
        ((-5, 0), (0, 0), (0, 0)), ((-7, 0), (9, 0), (0, 0)), ((9, 0), (-7, 0), (0, 0)),
    ]  # fmt: skip
    return [
        (Slice((1, 0), (5, 4), (2, 3)), (x,)), (Slice((2, 0), (2, 4), (1, 1)), (x,)), (Slice((), (), ()), (rank0,)),
        (Slice((1, 1), (5, 4), (4, I64_MAX)), (x,)), (Slice((0, 1), (0, 3), (1, 1)), (none,)),
        *((Pad(*config), (x,)) for config in pads),
        (Pad((), (), ()), (rank0,)), (Pad((1, -1), (1, 0), (5, 0)), (none,)), (Pad((-1, 0), (2, 0), (1, 1)), (none,)),
        (PadToMatch(0), (x, data(DType.I32, 7, 1))), (PadToMatch(1), (x, data(dtype, 9, 3))),
        (PadToMatch(0), (none, data(DType.Bool, 2, 0))),
        (Concatenate(1), (x, data(dtype, 5, 0), data(dtype, 5, 1), x)), (Concatenate(0), (x,)),
        (Concatenate(0), (none, none)),
        (Reverse(()), (x,)), (Reverse((0,)), (x,)), (Reverse((1, 0)), (x,)), (Reverse((0,)), (none,)),
        (Reverse(()), (rank0,)), (ShapeOf(1), (x,)), (ShapeOf(0), (none,)),
    ]  # fmt: skip


def dynamic_windows(dtype: DType) -> list[Case]:
    x, rank0 = data(dtype, 5, 4), data(dtype)
    starts = [
        indices([1, 2]), indices([-3, 9]), indices([I64_MAX, -(2**63)]), indices([I32_MAX, -(2**31)], DType.I32),
        indices([3, 0], DType.I32),
    ]  # fmt: skip
    none = indices([])
    return [
        *((DynamicSlice((2, 3)), (x, s)) for s in starts), (DynamicSlice((5, 4)), (x, starts[0])),
        (DynamicSlice((0, 2)), (x, starts[1])), (DynamicSlice(()), (rank0, none)),
        *((DynamicUpdateSlice(), (x, data(dtype, 2, 3), s)) for s in starts),
        (DynamicUpdateSlice(), (x, data(dtype, 0, 3), starts[0])), (DynamicUpdateSlice(), (rank0, data(dtype), none)),
    ]  # fmt: skip


def gathers(dtype: DType) -> list[Case]:
    x, cube, none = data(dtype, 5, 4), data(dtype, 3, 4, 2), data(dtype, 0, 4)
    outside = indices([[0, 3], [-7, 9], [4, 2], [I64_MAX, -(2**63)]])
    small = indices([4, -1, I32_MAX, 2], DType.I32)
    rows = ((1,), (0,), (0,), 1, (1, 4))  # whole rows
    whole = GatherDynamicSliceSizes((1, 2), (0,), (0,), 1, (1, InputDim(0, 1), DimOp("min", InputDim(2, 0), 2)))
    return [
        (Gather(*rows), (x, indices([[0], [4], [-1], [9]]))), (Gather(*rows), (x, small)), (Gather(*rows), (x, indices([]))),
        (Gather((), (0, 1), (0, 1), 1, (1, 1)), (x, outside)), (Gather((), (0, 1), (1, 0), 1, (1, 1)), (x, outside)),
        (Gather((), (0, 1), (0, 1), 0, (1, 1)), (x, outside.T)),
        # windows larger than one, clamped so that they fit; axes that no index moves start at 0
        (Gather((0, 2), (), (0, 1), 1, (2, 3)), (x, outside)), (Gather((1, 2), (), (1,), 1, (2, 3)), (x, small)),
        (Gather((0,), (1,), (), 1, (2, 1)), (x, np.zeros((3, 0), np.int64))),
        (Gather((0, 3), (1,), (2, 1), 2, (2, 1, 1)), (cube, indices([[[0, 1], [1, 9]], [[-4, 2], [1, 3]]]))),
        (Gather((0,), (1, 2), (2, 1), 0, (3, 1, 1)), (cube, indices([1, 3]))),  # one index vector
        (Gather((0, 1), (), (0,), 0, (2, 4)), (x, indices(3))),  # a rank-0 index
        (Gather((), (), (), 1, ()), (data(dtype), np.zeros((3, 0), np.int64))), (Gather((), (), (), 0, ()), (data(dtype), indices([]))),
        (Gather((1,), (1,), (0,), 1, (0, 1)), (x, small)), (Gather((1,), (1,), (1,), 1, (0, 1)), (none, small)),
        (whole, (cube, small, data(DType.Bool, 7))),
    ]  # fmt: skip


def moves(dtype: DType) -> list[Case]:
    """Every case for one dtype, Scatter left out."""
    return [*diagonals_and_triangles(dtype), *static_windows(dtype), *dynamic_windows(dtype), *gathers(dtype)]


def scatters(dtype: DType) -> list[Case]:
    """Additions of small integers, any order of which gives the same bits; of false and true for Bool."""

    def values(*shape: int) -> Array:
        n = np.arange(math.prod(shape)) % 7
        flat = n > 4 if dtype is DType.Bool else (n - n * 1j if dtype.is_complex else n).astype(dtype.numpy)
        return flat.reshape(shape, order="F")

    line, x, cube = values(4), values(5, 4), values(3, 4, 2)
    outside = indices([[0, 3], [-7, 9], [4, 2], [0, 3], [I64_MAX, -(2**63)]])
    scalars, rows, windows = Scatter((), (0,), (0,), 1), Scatter((1,), (0,), (0,), 1), Scatter((1, 2), (), (0, 1), 1)
    return [
        (scalars, (line, indices([-1, 2, 4]), values(3))), (scalars, (line, indices([[3], [3], [3]]), values(3))),
        (scalars, (line, indices([I32_MAX, -(2**31), 1, 1], DType.I32), values(4))),
        (scalars, (line, indices([]), values(0))), (Scatter((), (0,), (0,), 0), (line, indices(9), values())),
        (rows, (x, indices([0, 4, 0, 5, -1]), values(5, 4))), (rows, (x, indices([1, 7]), values(2, 2))),
        (Scatter((), (0, 1), (1, 0), 1), (x, outside[:, ::-1], values(5))),
        (Scatter((), (0, 1), (0, 1), 0), (x, outside.T, values(5))),
        # windows larger than one: partly outside at either end, overlapping
        (windows, (x, outside, values(5, 2, 3))), (windows, (x, indices([[3, 1], [-1, 0], [3, 2]]), values(3, 2, 3))),
        (Scatter((0,), (), (0,), 1), (line, indices([[-1], [1], [3], [2]]), values(2, 4))),
        (Scatter((0, 2), (1,), (2, 1), 2), (cube, indices([[[0, 1], [1, 9]], [[0, 1], [1, 3]]]), values(3, 2, 1, 2))),
        (Scatter((1,), (), (), 1), (line, np.zeros((3, 0), np.int64), values(3, 2))),
        (windows, (values(0, 4), indices([[0, 0]]), values(1, 0, 4))), (windows, (x, indices([[0, 0]]), values(1, 0, 4))),
        (scalars, (values(0), indices([0, 1]), values(2))),
    ]  # fmt: skip


def scatter_onto_rank_0(dtype: DType) -> Case:
    """Three index vectors of length 0."""
    ones = np.ones(3, dtype.numpy)
    return Scatter((), (), (), 1), (np.array(ones[0]), np.zeros((3, 0), np.int64), ones)


def program_of(cases: Sequence[Case], policy: Policy = ENGINE) -> tuple[GraphProgram, list[Array]]:
    """All cases in one program, an output each, and its inputs."""
    b = GraphBuilder(policy=policy)
    arrays, outputs = [], []
    for op, operands in cases:
        outputs.append(b.apply(op, *(b.input(DType.of(a), a.shape) for a in operands)))
        arrays += operands
    return b.build(*outputs), arrays


def program(op: Op, *operands: str, policy: Policy = ENGINE) -> GraphProgram:
    """One op on inputs written as `F64 2 3`."""
    b = GraphBuilder(policy=policy)
    values = [b.input(o.split()[0], [int(e) if e.isdigit() else e for e in o.split()[1:]]) for o in operands]
    return b.build(*b.apply_many(op, *values))


def lines(op: Op, *operands: str, policy: Policy = ENGINE) -> list[str]:
    """The body of `program`."""
    text = lower_to_stablehlo(LoweringView.of(program(op, *operands, policy=policy)))
    return [line.strip() for line in text.splitlines()[2:-3]]
