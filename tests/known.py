"""Examples whose result is known: what `tests.op_examples` asks each op, with the answer that is due, dtype by dtype."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import DEFAULT_POLICY, STABLEHLO, CompareDir, Op, Policy
from tenferro_ref.tensor import Array, type_of
from tests.build import COMPLEXES, FLOATS, INF, INTS, NAN, arr

F, T = False, True
BOOL = [DType.Bool]


@dataclass(frozen=True, eq=False)
class Example:
    """An op and its operands.

    Attributes
    ----------
    result
        What it is due; None if only layers are compared with each other.
    error
        Kind and words of the error that the engine's policy makes of it, as a pattern.
    without
        Who is not asked, and why.
    """

    op: Op
    operands: tuple[Array, ...]
    policy: Policy = DEFAULT_POLICY
    result: Array | None = None
    error: str = ""
    without: dict[str, str] = field(default_factory=dict)


def _array(values: Any, dtype: DType) -> Array:
    """Values of the dtype: "min" and "max" are its ends, a function asks for it, arrays stay what they are."""

    def resolve(v: Any) -> Any:
        return (
            [*map(resolve, v)]
            if isinstance(v, list)
            else getattr(np.iinfo(dtype.numpy), v)
            if v in ("min", "max")
            else v
        )

    values = values(dtype) if callable(values) else values
    return values if isinstance(values, np.ndarray) else arr(resolve(values), dtype)


@dataclass(frozen=True)
class Known:
    """Examples with a result, for several dtypes."""

    op: Op
    dtypes: Sequence[DType]
    operands: tuple[Any, ...]
    result: Any
    policy: Policy = DEFAULT_POLICY
    error: str = ""
    without: dict[str, str] = field(default_factory=dict)

    def example(self, dtype: DType) -> Example:
        operands = tuple(_array(v, dtype) for v in self.operands)
        (type_,) = self.op.result_types(tuple(map(type_of, operands)), self.policy)
        return Example(self.op, operands, self.policy, _array(self.result, type_.dtype), self.error, self.without)


ABORTS = {"interpreter": "its process ends at an integer division by zero"}
LEFT, RIGHT = [1, 2, 2, NAN, 1, NAN, 0.0, INF], [2, 1, 2, 1, NAN, NAN, -0.0, INF]
COMPARED = {
    CompareDir.Eq: [0, 0, 1, 0, 0, 0, 1, 1],
    CompareDir.Lt: [1, 0, 0, 0, 0, 0, 0, 0],
    CompareDir.Le: [1, 0, 1, 0, 0, 0, 1, 1],
    CompareDir.Gt: [0, 1, 0, 0, 0, 0, 0, 0],
    CompareDir.Ge: [0, 1, 1, 0, 0, 0, 1, 1],
}
POWERS = [
    (NAN, 0.0, 1), (1, NAN, 1), (1, INF, 1), (-1, INF, 1), (-1, -INF, 1), (0.0, 0.0, 1), (-8, 1 / 3, NAN), (-2, 3, -8),
    (-INF, 0.5, INF), (-0.0, 0.5, 0.0), (-0.0, -1, -INF), (-0.0, -2, INF), (-0.0, 3, -0.0), (-INF, 3, -INF),
    (-INF, -3, -0.0), (0.5, INF, 0.0), (2, -INF, 0.0), (INF, -1, 0.0), (NAN, 1, NAN), (2, NAN, NAN), (4, 0.5, 2),
    (9, 2, 81), (2, -1, 0.5),
]  # fmt: skip
CUBE = np.random.default_rng(0).choice([-4, -3, -2, -1, 1, 2, 3], (2, 3, 4))
FOLDS: dict[type[Any], Any] = {
    ops.ReduceSum: np.sum, ops.ReduceProd: np.prod, ops.ReduceMax: np.max, ops.ReduceMin: np.min,
}  # fmt: skip
MATRIX = ops.DotGeneral((1,), (0,), (), ())


def _power_of_three(dtype: DType) -> list[int]:
    info = np.iinfo(dtype.numpy)
    return [(3**41 - int(info.min)) % 2**info.bits + int(info.min)]


def _real_two(dtype: DType) -> Array:
    return arr(2, dtype.real)


KNOWN = (
    # integers wrap, division truncates toward zero; what is an error here is a value in StableHLO
    Known(ops.Add(), INTS, (["max"], [1]), ["min"]), Known(ops.Multiply(), INTS, (["max"], [2]), [-2]),
    Known(ops.Negate(), INTS, (["min"],), ["min"]), Known(ops.Abs(), INTS, (["min"],), ["min"]),
    Known(ops.Pow(), INTS, ([3], [41]), _power_of_three, STABLEHLO),
    Known(ops.Divide(), INTS, ([7, -7, 7, -7, 6, -6, 0], [2, 2, -2, -2, 3, 3, 5]), [3, -3, -3, 3, 2, -2, 0], STABLEHLO),
    Known(ops.Divide(), INTS, (["min", "max"], [-1, -1]), lambda d: arr([np.iinfo(d.numpy).min, -np.iinfo(d.numpy).max], d), STABLEHLO),
    Known(ops.Divide(), INTS, ([5, -5, 0, "min"], 0), [-1] * 4, STABLEHLO, "InvalidArgument.*division by zero", ABORTS),
    Known(ops.Divide(), INTS, ([], 0), [], STABLEHLO, "", ABORTS),
    Known(ops.Pow(), INTS, ([1, -1, -1, 2, 0, 3, 7, -1], [-3, -3, -4, -1, -1, 2, -7, -7]), [1, -1, 1, 0, 0, 9, 0, -1], STABLEHLO, "InvalidArgument.*negative integer exponent"),
    Known(ops.Pow(), INTS, ([0, 5, -2], [0, 0, 3]), [1, 1, -8], STABLEHLO),
    Known(ops.Maximum(), INTS, ([1, -2, 3], [2, -3, 3]), [2, -2, 3]), Known(ops.Minimum(), INTS, ([1, -2, 3], [2, -3, 3]), [1, -3, 3]),
    Known(ops.Sign(), INTS, ([-7, 0, 9],), [-1, 0, 1]),
    Known(ops.Compare(CompareDir.Ge), INTS, ([1, -2, 3], [2, -3, 3]), [F, T, T]),
    Known(ops.Clamp(), INTS, ([1, -2, 3], [2, -3, 3], [1, -2, 3]), [1, -2, 3], STABLEHLO, "Unsupported"),
    *(Known(op, BOOL, ([F, F, T, T], [F, T, F, T]), result, STABLEHLO, "Unsupported") for op, result in (
        (ops.Add(), [F, T, T, T]), (ops.Multiply(), [F, F, F, T]), (ops.Maximum(), [F, T, T, T]), (ops.Minimum(), [F, F, F, T]),
        (ops.Compare(CompareDir.Lt), [F, T, F, F]))),
    Known(ops.Compare(CompareDir.Eq), BOOL, ([F, F, T, T], [F, T, F, T]), [T, F, F, T]),
    # signs of zeros, NaNs, infinities
    Known(ops.Sign(), FLOATS, ([-0.0, 0.0, -2, 3, INF, -INF, NAN],), [0.0, 0.0, -1, 1, 1, -1, NAN]),
    Known(ops.Abs(), FLOATS, ([-0.0],), [0.0]), Known(ops.Negate(), FLOATS, ([0.0],), [-0.0]),
    Known(ops.Maximum(), FLOATS, ([-0.0, 0.0, NAN, 1, NAN, 1, 9], [0.0, -0.0, 1, NAN, NAN, 2, 9]), [-0.0, 0.0, NAN, NAN, NAN, 2, 9]),
    Known(ops.Minimum(), FLOATS, ([-0.0, 0.0, NAN, 1, NAN, 1, 9], [0.0, -0.0, 1, NAN, NAN, 2, 9]), [-0.0, 0.0, NAN, NAN, NAN, 1, 9]),
    Known(ops.Add(), FLOATS, ([0.0, -0.0], [-0.0, -0.0]), [0.0, -0.0]),
    Known(ops.Subtract(), FLOATS, ([0.0, -0.0, 0.0, 5, INF, 1], [0.0, 0.0, -0.0, 5, INF, NAN]), [0.0, -0.0, 0.0, 0.0, NAN, NAN]),
    Known(ops.Subtract(), INTS, (["min", 7, 0], [1, -3, "min"]), ["max", 10, "min"]),
    Known(ops.Subtract(), COMPLEXES, (_real_two, [1 + 2j, 3 - 1j]), [1 - 2j, -1 + 1j]),
    Known(ops.Sqrt(), FLOATS, ([-0.0, -1],), [-0.0, NAN]), Known(ops.Rsqrt(), FLOATS, ([0.0, -0.0],), [INF, -INF]),
    # a lower bound above the upper one gives the upper one
    Known(ops.Clamp(), FLOATS, ([-0.0, -5, 5, 0.5, 0, 0, NAN, 0, 0], [-1, 0, 0, 0, 3, 2, 0, NAN, 0], [1, 1, 1, 1, 2, 1, 1, 1, NAN]),
          [-0.0, 0, 1, 0.5, 2, 1, NAN, NAN, NAN]),
    Known(ops.Divide(), FLOATS, ([1, -1, 0, INF, 1], [0, 0, 0, INF, INF]), [INF, -INF, NAN, NAN, 0.0]),
    Known(ops.Log(), FLOATS, ([-1, 0, -0.0, INF],), [NAN, -INF, -INF, INF]), Known(ops.Log1p(), FLOATS, ([-1, -0.0],), [-INF, -0.0]),
    Known(ops.Sin(), FLOATS, ([INF, -0.0],), [NAN, -0.0]), Known(ops.Tanh(), FLOATS, ([INF, -INF, -0.0],), [1, -1, -0.0]),
    Known(ops.Expm1(), FLOATS, ([-INF, INF, -0.0],), [-1, INF, -0.0]),
    Known(ops.Pow(), FLOATS, tuple([p[i] for p in POWERS] for i in (0, 1)), [p[2] for p in POWERS]),
    *(Known(ops.Compare(d), FLOATS, (LEFT, RIGHT), result) for d, result in COMPARED.items()),
    *(Known(ops.Compare(d), FLOATS, (2, 2), result[2]) for d, result in COMPARED.items()),
    # complex numbers, real scalars beside them
    Known(ops.Abs(), COMPLEXES, ([3 + 4j, 0, complex(0, -5), complex(NAN, 1)],), [5, 0, 5, NAN]),
    Known(ops.Abs(), COMPLEXES, ([complex(-INF, NAN)],), [INF], without={"xla": "hypot(NaN, inf) is NaN in XLA"}),
    Known(ops.Conj(), COMPLEXES, ([3 + 4j, complex(0, -5)],), [3 - 4j, 5j]), Known(ops.Conj(), COMPLEXES, (1 + 2j,), 1 - 2j),
    Known(ops.Multiply(), COMPLEXES, (_real_two, [1 + 2j, 3 - 1j]), [2 + 4j, 6 - 2j]),
    Known(ops.Add(), COMPLEXES, ([1 + 2j, 3 - 1j], _real_two), [3 + 2j, 5 - 1j]),
    Known(ops.Divide(), COMPLEXES, ([1 + 2j, 3 - 1j], _real_two), [0.5 + 1j, 1.5 - 0.5j]),
    Known(ops.Compare(CompareDir.Eq), COMPLEXES, ([1 + 2j, 3 - 1j], [1 - 2j, 3 - 1j]), [F, T]),
    # scalars beside tensors
    *(Known(op, FLOATS, (left, right), result) for op in (ops.Add(), ops.Multiply()) for left, right in (([[1, -2]], 3), (3, [[1, -2]]))
      for result in ([[4, 1]] if isinstance(op, ops.Add) else [[3, -6]],)),
    Known(ops.Divide(), FLOATS, ([[1, -2]], 2), [[0.5, -1]]), Known(ops.Pow(), FLOATS, ([[1, -2]], 3), [[1, -8]]),
    # conversions (SEMANTICS 1.4)
    *(Known(ops.Convert(to), FLOATS, ([1.9, -1.9, NAN, 1e30, -1e30, 0.0, 0.3],), [1, -1, 0, "max", "min", 0, 0]) for to in INTS),
    Known(ops.Convert(DType.I32), [DType.F64], ([2147483647.5, -2147483648.5],), ["max", "min"]),
    Known(ops.Convert(DType.Bool), FLOATS, ([1.9, NAN, 0.0, 0.3],), [T, T, F, T]),
    Known(ops.Convert(DType.I32), [DType.I64], ([2**32 + 5, -1, 0],), [5, -1, 0]),
    Known(ops.Convert(DType.C64), [DType.I64], ([2**32 + 5, -1, 0],), [2**32 + 5, -1, 0]),
    Known(ops.Convert(DType.C32), BOOL, ([T, F],), [1, 0]),
    Known(ops.Convert(DType.Bool), COMPLEXES, ([0, 1j, 1, complex(NAN, 0), complex(0, NAN), complex(-0.0, -0.0)],), [F, T, T, T, T, F]),
    *(Known(ops.Convert(to), COMPLEXES, ([1.5 - 2j, 2j, 0],), [1.5, 0, 0]) for to in FLOATS),
    Known(ops.Convert(DType.I64), COMPLEXES, ([1.5 - 2j, 2j, 0],), [1, 0, 0]),
    *(Known(ops.Convert(to), COMPLEXES, ([1.5 - 2j, 2j, 0],), [1.5 - 2j, 2j, 0]) for to in COMPLEXES),
    # reductions: over axes, over nothing, over no axis
    *(Known(op(axes), [*FLOATS, *INTS], (CUBE.tolist(),), fold(CUBE, axes).tolist()) for op, fold in FOLDS.items()
      for axes in ((0,), (2, 0), (0, 1, 2))),
    Known(ops.ReduceSum((1,)), FLOATS, ([[-0.0] * 3] * 2,), [0.0, 0.0]), Known(ops.ReduceSum((0,)), FLOATS, ([-0.0],), 0.0),
    Known(ops.ReduceSum(()), FLOATS, (-0.0,), -0.0),
    Known(ops.ReduceSum((0,)), INTS, (["max", 1],), "min"), Known(ops.ReduceProd((0,)), INTS, (["max", 2],), -2),
    *(Known(op((1,)), dtypes, ([[], []],), [identity] * 2, STABLEHLO, "InvalidArgument.*extent 0") for op, dtypes, identity in (
        (ops.ReduceSum, [*FLOATS, *INTS], 0), (ops.ReduceProd, [*FLOATS, *INTS], 1), (ops.ReduceMax, FLOATS, -INF), (ops.ReduceMin, FLOATS, INF),
        (ops.ReduceMax, INTS, "min"), (ops.ReduceMin, INTS, "max"))),
    *(Known(op((0,)), BOOL, ([[T, F], [T, T]],), result, STABLEHLO, "Unsupported") for op, result in zip(
        FOLDS, ([T, T], [T, F], [T, T], [T, F]), strict=True)),
    Known(MATRIX, [DType.I32], ([["max", 1], [2, 3]],) * 2, [[3, -2147483646], [4, 11]], STABLEHLO, "Unsupported"),
    Known(MATRIX, [DType.I64], ([[1]], [[-1]]), [[-1]], STABLEHLO, "Unsupported"),
    Known(MATRIX, BOOL, ([[T, F], [F, F]],) * 2, [[T, F], [F, F]], STABLEHLO, "Unsupported"),
)  # fmt: skip


def known(op: type[Any], dtype: DType) -> list[Example]:
    return [k.example(dtype) for k in KNOWN if type(k.op) is op and dtype in k.dtypes]
