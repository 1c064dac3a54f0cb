"""Every kernel gives an array, of rank 0 too: NumPy likes to make scalars of those, which cannot be written to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenferro_ref.dtype import DType
from tenferro_ref.ops import (
    ELEMENTWISE,
    ENGINE,
    OPS,
    BroadcastInDim,
    Clamp,
    Compare,
    CompareDir,
    Concatenate,
    Constant,
    Convert,
    DotGeneral,
    DynamicSlice,
    DynamicTruncate,
    DynamicUpdateSlice,
    EmbedDiag,
    ExtractDiag,
    Gather,
    GatherDynamicSliceSizes,
    Op,
    Pad,
    PadToMatch,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reshape,
    Reverse,
    Scatter,
    Select,
    ShapeOf,
    Slice,
    Transpose,
    Tril,
    Triu,
)
from tenferro_ref.runtime import KERNELS
from tenferro_ref.runtime.kernels.base import run_kernel

X, THREE, NONE = np.array(1.5), np.ones(3), np.zeros(0, np.int32)
#: An op with operands of the least rank that it takes.
LEAST: list[tuple[Op, tuple[Any, ...]]] = [
    *((op(), (X,) * op.arity) for op in ELEMENTWISE if op not in (Compare, Select, Clamp)),
    (Compare(CompareDir.Eq), (X, X)), (Select(), (np.array(True), X, X)), (Clamp(), (X, X, X)),
    (Constant.of(1.0, DType.F64), ()), (Convert(DType.F32), (X,)), (Convert(DType.F64), (X,)),
    (Transpose(()), (X,)), (Reshape(()), (X,)), (Reshape(()), (np.ones(1),)), (BroadcastInDim((), ()), (X,)),
    (ExtractDiag(0, 1), (np.ones((1, 1)),)), (EmbedDiag(0, 0), (THREE,)),
    (Tril(0), (np.ones((1, 1)),)), (Triu(0), (np.ones((1, 1)),)),
    *((op(axes), (x,)) for op in (ReduceSum, ReduceProd, ReduceMax, ReduceMin) for axes, x in (((), X), ((0,), THREE))),
    (DotGeneral((), (), (), ()), (X, X)), (DotGeneral((0,), (0,), (), ()), (THREE, THREE)),
    (Reverse(()), (X,)), (Slice((), (), ()), (X,)), (Pad((), (), ()), (X,)), (Concatenate(0), (THREE,)),
    (DynamicSlice(()), (X, NONE)), (DynamicUpdateSlice(), (X, X, NONE)), (ShapeOf(0), (THREE,)),
    (Gather((), (), (), 0, ()), (X, NONE)), (Gather((), (0,), (0,), 0, (1,)), (THREE, np.zeros(1, np.int32))),
    (GatherDynamicSliceSizes((), (0,), (0,), 0, (1,)), (THREE, np.zeros(1, np.int32))),
    (Scatter((), (), (), 0), (X, NONE, X)), (DynamicTruncate(0), (THREE, X)), (PadToMatch(0), (THREE, THREE)),
]  # fmt: skip


@pytest.mark.parametrize(("op", "operands"), LEAST, ids=lambda x: x.name if isinstance(x, Op) else "")
def test_a_kernel_gives_arrays(op: Op, operands: tuple[Any, ...]) -> None:
    for result in run_kernel(op, ENGINE, *operands):
        assert type(result) is np.ndarray


def test_every_kernel_is_asked() -> None:
    assert {type(op) for op, _ in LEAST} == {op for op in OPS if op in KERNELS}
