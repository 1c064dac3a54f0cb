"""The native executor as one of those that are compared: what it promises beside numbers."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from oracle.case import Case
from oracle.peers import NativeExecutor
from tenferro_ref import ops
from tenferro_ref.errors import Internal
from tenferro_ref.program import GraphBuilder
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.tensor import Array


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        (lambda program, arrays: [arrays[0], arrays[0] + 1], "output 0 .* shares memory with an input"),
        (lambda program, arrays: [(y := arrays[0] + 1), y[:1]], "output 1 .* shares memory with an input or another"),
        (lambda program, arrays: [np.negative(arrays[0], out=arrays[0]) + 0, arrays[0] + 1], "wrote into input 0"),
    ],
)
def test_a_native_executor_that_breaks_its_promises_has_a_defect(
    monkeypatch: pytest.MonkeyPatch, kept: Callable[[object, list[Array]], list[Array]], words: str
) -> None:
    """Nobody else sees that: the numbers may be right, and what was written is seen by who runs next."""
    monkeypatch.setattr(GraphExecutor, "eval_exec_ir", lambda self, program, arrays: kept(program, arrays))
    b = GraphBuilder()
    x = b.input("F64", (2,))
    case = Case.of(b.build(b.apply(ops.Negate(), x), b.apply(ops.Exp(), x)), [np.array([1.0, 2.0])])
    (result,) = NativeExecutor().run_many([case])
    assert isinstance(result, Internal)
    assert re.search(words, str(result))
    assert case.inputs[0].tolist() == [1.0, 2.0]
