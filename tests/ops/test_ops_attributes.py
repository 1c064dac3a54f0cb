"""An attribute that is no object of its declared type is refused where the op is made, of every op."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dims import DimOp, InputDim, UpperBound
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument
from tenferro_ref.ops import KNOWN, CompareDir, Op

#: By annotation: an object of the type, and objects that are none.
OBJECTS: dict[str, tuple[object, tuple[object, ...]]] = {
    "int": (1, (True, 1.0, "1", None, np.int64(1), 2**63, -(2**63) - 1)),
    "bool": (True, (1, "true", None, np.True_)),
    "str": ("a", (b"a", 1, None)),
    "bytes": (b"a", ("a", 1, None, bytearray(b"a"))),
    "DType": (DType.F64, ("F64", np.float64, None)),
    "CompareDir": (CompareDir.Lt, ("Lt", 1, None)),
    "tuple[int, ...]": (
        (1, 0),
        (1, [1, 0], np.array([1, 0]), (True,), (1.0,), (np.int64(1),), (0, 2**63), (-(2**63) - 1,), "10", None),
    ),
    "tuple[DimExpr, ...]": (
        (2, InputDim(0, 1), DimOp("mul", InputDim(0, 0), 2)),
        (2, [2], (2.0,), (2**64,), ("n",), (True,), (UpperBound(InputDim(0, 0)),), None),
    ),
}


def deep(levels: int) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for _ in range(levels - 1):
        config = {"a": config}
    return config


def _good(op: type[Op]) -> dict[str, Any]:
    text = {"config": "{}"} if op is ops.Extension else {}
    return {f.name: OBJECTS[str(f.type)][0] for f in fields(op)} | text


@pytest.mark.parametrize("op", KNOWN.values(), ids=lambda op: op.__name__)
def test_an_attribute_of_another_type_is_refused_by_name(op: type[Op]) -> None:
    good = _good(op)
    op(**good)
    for field in fields(op):
        for bad in OBJECTS[str(field.type)][1]:
            with pytest.raises(InvalidArgument, match=" is not ") as caught:
                op(**{**good, field.name: bad})
            assert (caught.value.op, caught.value.argument) == (op.__name__, field.name)


def test_what_is_refused_is_shown_in_a_line() -> None:
    with pytest.raises(InvalidArgument) as caught:
        KNOWN["Transpose"](perm=list(range(10**6)))  # type: ignore[call-arg]
    assert str(caught.value) == "Transpose: perm: [0, 1, 2, 3, 4, 5, ...] is not a tuple of ints of 64 bits"


@pytest.mark.parametrize(
    ("value", "dtype", "due"),
    [
        (1 + 2**-8 + 2**-30, "BF16", 1 + 2**-7),
        ((1 << 80) + (1 << 56) + 1, "F32", 2.0**80 + 2.0**57),
        ((1 << 80) + (1 << 56), "F32", 2.0**80),
        (-(1 << 80) - (1 << 56) - 1, "C32", -(2.0**80) - 2.0**57),
        (10**400, "F64", np.inf), (-(10**400), "F32", -np.inf), (10**40, "F32", np.inf), (2**70, "BF16", 2.0**70),
        ((1 << 1024) - 1, "F64", np.inf), (2**53 + 1, "F64", 2.0**53), (np.float64(0.1), "F32", np.float32(0.1)), (True, "F16", 1),
    ],
)  # fmt: skip
def test_a_constant_is_the_nearest_number(value: Any, dtype: str, due: float) -> None:
    made = ops.Constant.of(value, DType[dtype]).value
    assert complex(made) == due


def test_bits_of_a_constant_of_the_same_dtype_stay() -> None:
    for dtype in (DType.BF16, DType.F16, DType.F8E5M2):
        scalar = np.frombuffer(b"\x7f\xff"[-dtype.itemsize :], dtype.numpy)[0]
        assert ops.Constant.of(scalar, dtype).data == scalar.tobytes()


def test_what_is_no_dtype_is_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match="'F64' is no DType"):
        ops.Constant.of(1, "F64")  # type: ignore[arg-type]


def test_equal_configurations_are_equal_ops() -> None:
    op = ops.Extension("tenferro-fft.fft.v1", "fft", '{ "norm" : "ortho", "axis" : 0}')
    assert op == ops.Extension.of("tenferro-fft.fft.v1", "fft", {"axis": 0, "norm": "ortho"})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"axis": np.int64(2)}, "int64 is not JSON serializable"),
        ({"eps": float("nan")}, "eps: nan is no JSON number"),
        ({"eps": [float("inf")]}, "not JSON compliant"),
        (None, "not a JSON object that a file can hold: null"),
        ("axis", 'not a JSON object that a file can hold: "axis"'),
        ([1], r"hold: \[1\]"),
        (deep(33), "nested more than 32 deep"),
        (deep(10**5), "recursion"),
    ],
)
def test_a_configuration_that_no_file_can_hold_is_refused(config: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=f"g: config: .*{message}"):
        ops.Extension.of("f", "g", config)
    assert ops.Extension.of("f", "g", deep(32)).config.count("{") == 32


@pytest.mark.parametrize("text", ["", "a", "null", "[]", "NaN", '{"a": NaN}', '{"a": 1e999}', "1" * 5000])
def test_a_configuration_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="g: config: not a JSON object that a file can hold: "):
        ops.Extension("f", "g", text)
