"""A refusal of a matrix that is far from what its op refuses is an error, any other one leaves the verdict open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor
from oracle.unfounded import unfounded
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.extensions import linalg
from tenferro_ref.program import GraphBuilder

_NAN = np.nan


def _case(name: str, *operands: Any, **config: Any) -> Case:
    b = GraphBuilder()
    arrays = [np.asarray(x, np.int32 if np.asarray(x).dtype == int else None) for x in operands]
    op = ops.Extension.of(linalg.FAMILY, name, config)
    values = [b.input("I32" if a.dtype == np.int32 else "F64", a.shape) for a in arrays]
    return Case.of(b.build(*b.apply_many(op, *values)), arrays)


def _refusing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let the kernel of an op refuse whatever it is given."""

    def kernel(*matrices: Any, **config: Any) -> Any:
        raise np.linalg.LinAlgError("it is singular")

    monkeypatch.setitem(linalg.OPS, name, replace(linalg.OPS[name], kernel=kernel))


_EYE, _RIGHT = [[2.0, 0.5], [0.5, 3.0]], [[1.0], [2.0]]
_WORKABLE = {
    "Cholesky": _case("Cholesky", _EYE),
    "Cholesky, NaN above": _case("Cholesky", [[2.0, _NAN], [0.5, 3.0]]),
    "Cholesky, a batch": _case("Cholesky", np.stack([_EYE, _EYE], -1)),
    "Eigh, NaN above": _case("Eigh", [[2.0, _NAN], [0.5, 3.0]]),
    "EighVals, zero": _case("EighVals", np.zeros((2, 2))),
    "Svd, wide": _case("Svd", [[1.0, 2.0, 3.0]]),
    "Solve": _case("Solve", _EYE, _RIGHT),
    "FullPivLuSolve": _case("FullPivLuSolve", _EYE, _RIGHT),
    "LuSolvePrepared": _case("LuSolvePrepared", _EYE, _EYE, [1, 2], _RIGHT),
    "TriangularSolve": _case("TriangularSolve", [[2.0, 0.0], [0.5, 3.0]], _RIGHT),
    "TriangularSolve, unit diagonal": _case("TriangularSolve", np.zeros((2, 2)), _RIGHT, unit_diagonal=True),
}


@pytest.mark.parametrize("name", _WORKABLE)
def test_a_refusal_of_a_matrix_that_is_far_from_singular_is_an_error(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = _WORKABLE[name]
    assert judge(NativeExecutor(), Reference(case, NativeExecutor())).verdict is Verdict.PASS
    _refusing(monkeypatch, name.partition(",")[0])
    answer = judge(NativeExecutor(), Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.ERROR
    assert f"{name.partition(',')[0]} has to work on this matrix" in answer.reason


@pytest.mark.parametrize(
    "case",
    [
        _case("Cholesky", [[2.0, 0.0], [_NAN, 3.0]]),
        _case("Cholesky", [[1.0, 2.0], [2.0, 1.0]]),
        _case("Cholesky", [[1.0, 0.0], [0.0, 0.0]]),
        _case("Eigh", [[2.0, 0.5], [0.5, np.inf]]),
        _case("Svd", [[_NAN, 1.0]]),
        _case("Solve", [[1.0, 2.0], [2.0, 4.0]], _RIGHT),
        _case("FullPivLuSolve", np.zeros((2, 2)), _RIGHT),
        _case("LuSolvePrepared", _EYE, np.zeros((2, 2)), [1, 2], _RIGHT),
        _case("LuSolvePrepared", _EYE, _EYE, [1, 9], _RIGHT),
        _case("TriangularSolve", np.zeros((2, 2)), _RIGHT),
        _case("Cholesky", np.stack([_EYE, np.zeros((2, 2))], -1)),
    ],
    ids=lambda case: case.program.instructions[0].op.op,
)
def test_a_refusal_that_may_be_due_leaves_the_verdict_open(case: Case) -> None:
    assert judge(NativeExecutor(), Reference(case, NativeExecutor())).verdict is Verdict.UNDECIDED
    assert unfounded(case) == ""
