"""What moves, picks or converts elements gives the one value that its rule says: the kernel, and the enclosure, which shares no code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracle.enclosure import IEEE, XLA, enclose
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import DEFAULT_POLICY, STABLEHLO, Op
from tenferro_ref.program import to_exec
from tenferro_ref.runtime import GraphExecutor
from tests.known import Example
from tests.op_examples import MOVES, PAIRS, examples, program_of, scatters

pytestmark = pytest.mark.once


MOVING = (*MOVES, ops.Transpose, ops.Reshape, ops.BroadcastInDim, ops.Select, ops.Constant, ops.Convert, ops.Scatter)


def asked(op: type[Any], dtype: DType) -> list[Example]:
    """The examples of an op; of Scatter those in which any order of additions gives the same bits."""
    policies = (STABLEHLO,) if dtype is DType.Bool else (DEFAULT_POLICY, STABLEHLO)
    return [e for policy in policies for e in scatters(dtype, policy)] if op is ops.Scatter else examples(op, dtype)


@pytest.mark.parametrize(("op", "dtype"), [p for p in PAIRS if p[0] in MOVING])
def test_moved_elements_are_known(op: type[Op], dtype: DType) -> None:
    by_policy = {e.policy: [f for f in asked(op, dtype) if f.policy is e.policy] for e in asked(op, dtype)}
    for policy, chosen in by_policy.items():
        program, arrays = program_of(chosen, policy)
        native = GraphExecutor().eval_exec_ir(to_exec(program), arrays)
        exact, wide = (enclose(program, arrays, model) for model in (IEEE, XLA))
        for example, result, e, x in zip(chosen, native, exact, wide, strict=True):
            assert e.shape == x.shape == result.shape
            parts = (result.real, result.imag) if e.dtype.is_complex else (result,)
            for part, value in zip(e.parts, parts, strict=True):
                nan = np.isnan(value) if part.dtype.is_float else np.zeros(e.shape, bool)
                assert np.all(np.where(nan, part.empty, (part.lo == value) & (part.hi == value))), example
            assert x.decided.all() or op is ops.Convert, example  # a subnormal may be read as zero
            assert x.contains(result).all(), example
