"""Extensions in the executor: runtimes, and how they fail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from runtime_helpers import both, exec_of, raises_on_both

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import (
    Internal,
    InvalidArgument,
    UnsupportedOp,
)
from tenferro_ref.ops import FAMILIES, TensorType
from tenferro_ref.program import GraphBuilder
from tenferro_ref.runtime import extension as extension_module
from tenferro_ref.runtime import register_runtime

FAMILY = "tests.divmod.v1"


class Family:
    def infer(self, op, inputs):
        return (inputs[0], TensorType(DType.I32, inputs[0].shape))


@dataclass
class Runtime:
    """Whole part and number of halves; misbehaves on demand."""

    fault: str = ""

    def execute(self, op, inputs):
        (x,) = inputs
        if self.fault == "raise":
            raise ValueError("did not converge")
        if self.fault == "typed":
            raise InvalidArgument(op="Extension", argument="rank", detail="no")
        if self.fault == "count":
            return [x]
        if self.fault == "dtype":
            return [np.floor(x), x]
        return [np.floor(x), np.asarray(np.floor(2 * x).astype(np.int32))]


@pytest.fixture
def program(monkeypatch):
    monkeypatch.setitem(FAMILIES, FAMILY, Family())
    return split(3)


def split(extent):
    b = GraphBuilder()
    x = b.input("F64", (extent,))
    whole, halves = b.apply_many(ops.Extension.of(FAMILY, "Split", {}), x + 0.0)
    return exec_of(-whole, halves)


HALVES = np.array([0.5, 1.0, 2.75])


def test_extension_runs_through_its_runtime(program):
    for checking in (False, True):
        whole, halves = both(program, [HALVES], extensions={FAMILY: Runtime()}, checking=checking)
        assert whole.tolist() == [0, -1, -2]
        assert halves.tolist() == [1, 2, 5]


def test_missing_runtime_names_the_family(program):
    error = raises_on_both(UnsupportedOp, program, [HALVES], FAMILY, extensions={})
    assert error.op == "Extension"


def test_unknown_family_names_the_family(program, monkeypatch):
    fresh = split("n")
    monkeypatch.delitem(FAMILIES, FAMILY)
    raises_on_both(UnsupportedOp, fresh, [np.ones(4)], FAMILY, extensions={})


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        ("raise", Internal, r"'tests.divmod.v1' failed in Split: did not converge"),
        ("typed", InvalidArgument, "rank: no"),
        ("count", InvalidArgument, r"gave 1 results for 2"),
        ("dtype", Internal, "its rule says"),
    ],
)
def test_extension_failures_are_typed(program, fault, kind, message):
    raises_on_both(kind, program, [HALVES], message, extensions={FAMILY: Runtime(fault)})


def test_first_registration_of_a_family_stays(program, monkeypatch):
    monkeypatch.setattr(extension_module, "RUNTIMES", {})
    monkeypatch.setattr("tenferro_ref.runtime.executor.RUNTIMES", extension_module.RUNTIMES)
    register_runtime(FAMILY, Runtime())
    register_runtime(FAMILY, Runtime("raise"))
    assert both(program, [HALVES])[1].tolist() == [1, 2, 5]
