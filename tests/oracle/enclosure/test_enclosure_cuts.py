"""Functions with a branch cut have one of two values beside it, not what is between."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.compare import interval_words
from oracle.enclosure import MODELS, Enclosure, enclose
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op
from tenferro_ref.program import GraphBuilder
from tenferro_ref.tensor import Array

pytestmark = pytest.mark.once

#: Above and below the cut.
VALUES = {
    "Sqrt": (2j, -2j), "Log": (np.log(4) + np.pi * 1j, np.log(4) - np.pi * 1j), "Rsqrt": (-0.5j, 0.5j), "Pow": (2j, -2j),
    "Log1p": (np.log(3) + np.pi * 1j, np.log(3) - np.pi * 1j),
}  # fmt: skip


def enclosed(op: Op, model: str, dtype: DType) -> Enclosure:
    z = np.array([complex(-4, 0.0), complex(-4, -0.0)], dtype.numpy)
    operands: list[Array] = [z, np.full(2, 0.5, dtype.numpy)] if op.arity == 2 else [z]
    b = GraphBuilder()
    return enclose(b.build(b.apply(op, *(b.input(dtype, (2,)) for _ in operands))), operands, MODELS[model])[0]


@pytest.mark.parametrize("dtype", [DType.C32, DType.C64])
@pytest.mark.parametrize("op", [ops.Sqrt(), ops.Log(), ops.Rsqrt(), ops.Pow(), ops.Log1p()], ids=lambda op: op.name)
def test_one_of_two_values(op: Op, dtype: DType) -> None:
    up, down = VALUES[op.name]
    free, held = (enclosed(op, model, dtype) for model in ("xla", "numpy"))
    for place, own in enumerate((up, down)):
        for value in (up, down, (up + down) / 2):
            result = np.full(2, value, dtype.numpy)
            assert free.contains(result)[place] == (value != (up + down) / 2)
            assert held.contains(result)[place] == (value == own or (op == ops.Log1p() and value in (up, down)))
    assert free.decided.all()


def test_a_part_that_is_moved_keeps_its_gap_and_one_that_is_computed_with_does_not() -> None:
    z = np.array([[complex(-4, 0.0), complex(9, 0.0)]])
    b = GraphBuilder()
    x = b.input("C64", (1, 2))
    root = b.apply(ops.Sqrt(), x)
    program = b.build(b.apply(ops.Transpose((1, 0)), root), b.apply(ops.Add(), root, root))
    moved, twice = enclose(program, [z], MODELS["xla"])
    assert not moved.contains(np.array([[0j], [3 + 0j]]))[0, 0]
    assert twice.contains(np.array([[0j, 6 + 0j]])).all()
    words = interval_words(moved, (0, 0))
    assert words.count("] or [") == 1
    assert interval_words(moved, (1, 0)).count("] or [") == 0
