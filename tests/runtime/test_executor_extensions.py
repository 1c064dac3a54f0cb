"""Extensions in the executor: runtimes, and how they fail."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import Internal, InvalidArgument, ResourceExhausted, UnsupportedOp, UsageError
from tenferro_ref.extensions import Family, einsum, linalg, register
from tenferro_ref.ops import FAMILIES, TensorType
from tenferro_ref.program import GraphBuilder
from tests.build import both, exec_of, raises_on_both

FAMILY = "tests.divmod.v1"


def infer(op, inputs):
    return (inputs[0], TensorType(DType.I32, inputs[0].shape))


def execute(op, inputs, fault=""):
    """Whole part and number of halves; misbehaves on demand."""
    (x,) = inputs
    if fault == "raise":
        raise ValueError("did not converge")
    if fault == "typed":
        raise InvalidArgument(op="Extension", argument="rank", detail="no")
    if fault == "count":
        return [x]
    if fault == "nothing":
        return None
    if fault == "numbers":
        return [1.0, [2]]
    if fault == "dtype":
        return [np.floor(x), x]
    return [np.floor(x), np.asarray(np.floor(2 * x).astype(np.int32))]


@pytest.fixture
def program(monkeypatch):
    """A program with an op of the family; called, it registers the family with a runtime."""

    def registered(runtime, extent=3):
        monkeypatch.setitem(FAMILIES._rows, FAMILY, Family(FAMILY, ("Split",), infer, runtime))
        b = GraphBuilder()
        x = b.input("F64", (extent,))
        whole, halves = b.apply_many(ops.Extension.of(FAMILY, "Split", {}), x + 0.0)
        return exec_of(-whole, halves)

    return registered


HALVES = np.array([0.5, 1.0, 2.75])


def test_extension_runs_through_its_runtime(program):
    for checking in (False, True):
        whole, halves = both(program(execute), [HALVES], checking=checking)
        assert whole.tolist() == [0, -1, -2]
        assert halves.tolist() == [1, 2, 5]


def test_missing_runtime_names_the_family(program):
    error = raises_on_both(UnsupportedOp, program(None), [HALVES], f"{FAMILY}.*no registered runtime")
    assert error.op == "Extension"


def test_what_does_not_fit_is_said_with_the_op(program):
    b = GraphBuilder()
    x, y = b.input("F64", ("n",)), b.input("F64", ("m",))
    outer = exec_of(einsum.einsum("i,j->ij", x, y))
    raises_on_both(ResourceExhausted, outer, [np.ones(10**6)] * 2, "^einsum: F64")
    with pytest.raises(InvalidArgument, match=r"^SvdFull: shape: .* more elements"):
        linalg.svd_full(b.input("F64", (10**9, 1)))


def test_unknown_family_names_the_family(program, monkeypatch):
    fresh = program(execute, "n")
    monkeypatch.delitem(FAMILIES._rows, FAMILY)
    raises_on_both(UnsupportedOp, fresh, [np.ones(4)], FAMILY)


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        ("raise", Internal, r"'tests.divmod.v1' failed in execute of Split: ValueError: did not converge"),
        ("typed", InvalidArgument, "rank: no"),
        ("count", InvalidArgument, r"gave 1 results for 2"),
        ("dtype", Internal, "its rule says"),
        ("nothing", Internal, "it gave NoneType, not a list of arrays"),
        ("numbers", Internal, r"it gave \['float', 'list'\], not a list of arrays"),
    ],
)
def test_extension_failures_are_typed(program, fault, kind, message):
    raises_on_both(kind, program(partial(execute, fault=fault)), [HALVES], message)


def test_a_runtime_cannot_write_to_its_operands(program):
    def in_place(op, inputs):
        return [np.multiply(inputs[0], 2, out=inputs[0]), np.zeros(3, np.int32)]

    raises_on_both(Internal, program(in_place), [HALVES], "execute of Split: ValueError: output array is read-only")


def test_an_operand_that_is_a_result_is_the_callers_own(program):
    def unchanged(op, inputs):
        return [inputs[0], np.zeros(3, np.int32)]

    for checking in (False, True):
        whole, _ = both(program(unchanged), [HALVES], checking=checking)
        whole += 1
        assert whole.tolist() == [0.5, 0, -1.75]


def test_another_registration_of_a_name_is_refused(program):
    runs = program(execute)
    register(Family(FAMILY, ("Split",), infer, execute))  # the same once more, as a module that runs twice
    with pytest.raises(UsageError, match=f"'{FAMILY}' is registered already"):
        register(Family(FAMILY, ("Split",), infer, partial(execute, fault="raise")))
    assert both(runs, [HALVES])[1].tolist() == [1, 2, 5]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((5, ("Split",), infer), "name: 5 is no id"),
        (("divmod", ("Split",), infer), r"name: 'divmod' is no id \"<crate>.<name>.v<major>\""),
        ((FAMILY, "Split", infer), "ops: 'Split' is no collection of names"),
        ((FAMILY, (), infer), "ops"),
        ((FAMILY, ("Split",), None), "infer: None cannot be called"),
        ((FAMILY, ("Split",), infer, 3), "execute: 3 cannot be called"),
    ],
)
def test_a_malformed_record_is_refused(fields, message):
    with pytest.raises(UsageError, match=message):
        Family(*fields)


def test_what_is_no_family_is_not_registered():
    with pytest.raises(UsageError, match="str where a Family is needed"):
        register(FAMILY)


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (lambda x: None, "it gave NoneType, not a tuple of TensorTypes"),
        (lambda x: [x], r"it gave \['TensorType'\]"),
        (lambda x: (2, 3), r"it gave \['int', 'int'\]"),
        (lambda x: (x, x.with_dtype("F32")), "TypeError: TensorType.dtype: 'F32' is not a DType"),
        (lambda x: (TensorType(x.dtype, [2]),), r"TypeError: TensorType.shape: \[2\] is not a tuple of extents"),
        (lambda x: (TensorType(x.dtype, (2.0,)),), r"TypeError: TensorType.shape: \(2.0,\) is not"),
        (lambda x: x.no, "AttributeError: 'TensorType' object has no attribute 'no'"),
    ],
)
def test_a_rule_that_gives_no_types(monkeypatch, types, message):
    monkeypatch.setitem(FAMILIES._rows, FAMILY, Family(FAMILY, ("Split",), lambda op, inputs: types(inputs[0])))
    b = GraphBuilder()
    with pytest.raises(Internal, match=f"'{FAMILY}' failed in infer of Split: {message}"):
        b.apply_many(ops.Extension.of(FAMILY, "Split", {}), b.input("F64", (2,)))


def test_an_op_that_the_family_does_not_have(program):
    program(execute)
    with pytest.raises(UnsupportedOp, match=f"Other: .*family '{FAMILY}' has no such op"):
        ops.Extension.of(FAMILY, "Other", {}).result_types((TensorType(DType.F64, (2,)),))
