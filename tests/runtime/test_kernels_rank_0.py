"""Every kernel gives an array, of rank 0 too: NumPy likes to make scalars of those, which cannot be written to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import ELEMENTWISE, ENGINE, OPS, CompareDir, Op
from tenferro_ref.runtime import KERNELS
from tenferro_ref.runtime.kernels.base import run_kernel

X, THREE, NONE = np.array(1.5), np.ones(3), np.zeros(0, np.int32)
#: An op with operands of the least rank that it takes.
LEAST: list[tuple[Op, tuple[Any, ...]]] = [
    *((op(), (X,) * op.arity) for op in ELEMENTWISE if op not in (ops.Compare, ops.Select, ops.Clamp)),
    (ops.Compare(CompareDir.Eq), (X, X)), (ops.Select(), (np.array(True), X, X)), (ops.Clamp(), (X, X, X)),
    (ops.Constant.of(1.0, DType.F64), ()), (ops.Convert(DType.F32), (X,)), (ops.Convert(DType.F64), (X,)),
    (ops.Transpose(()), (X,)), (ops.Reshape(()), (X,)), (ops.Reshape(()), (np.ones(1),)), (ops.BroadcastInDim((), ()), (X,)),
    (ops.ExtractDiag(0, 1), (np.ones((1, 1)),)), (ops.EmbedDiag(0, 0), (THREE,)),
    (ops.Tril(0), (np.ones((1, 1)),)), (ops.Triu(0), (np.ones((1, 1)),)),
    *((op(axes), (x,)) for op in (ops.ReduceSum, ops.ReduceProd, ops.ReduceMax, ops.ReduceMin) for axes, x in (((), X), ((0,), THREE))),
    (ops.DotGeneral((), (), (), ()), (X, X)), (ops.DotGeneral((0,), (0,), (), ()), (THREE, THREE)),
    (ops.Reverse(()), (X,)), (ops.Slice((), (), ()), (X,)), (ops.Pad((), (), ()), (X,)), (ops.Concatenate(0), (THREE,)),
    (ops.DynamicSlice(()), (X, NONE)), (ops.DynamicUpdateSlice(), (X, X, NONE)), (ops.ShapeOf(0), (THREE,)),
    (ops.Gather((), (), (), 0, ()), (X, NONE)), (ops.Gather((), (0,), (0,), 0, (1,)), (THREE, np.zeros(1, np.int32))),
    (ops.GatherDynamicSliceSizes((), (0,), (0,), 0, (1,)), (THREE, np.zeros(1, np.int32))),
    (ops.Scatter((), (), (), 0), (X, NONE, X)), (ops.DynamicTruncate(0), (THREE, X)), (ops.PadToMatch(0), (THREE, THREE)),
]  # fmt: skip


@pytest.mark.parametrize(("op", "operands"), LEAST, ids=lambda x: x.name if isinstance(x, Op) else "")
def test_a_kernel_gives_arrays(op: Op, operands: tuple[Any, ...]) -> None:
    for result in run_kernel(op, ENGINE, *operands):
        assert type(result) is np.ndarray


def test_every_kernel_is_asked() -> None:
    assert {type(op) for op, _ in LEAST} == {op for op in OPS if op in KERNELS}
