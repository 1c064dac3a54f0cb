"""Errors of the front end: typed, and they name op and axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.dims import InputDim
from tenferro_ref.dtype import ENGINE_DTYPES
from tenferro_ref.errors import (
    AxisOutOfBounds,
    DTypeMismatch,
    DuplicateAxis,
    InvalidArgument,
    RankMismatch,
    ShapeMismatch,
    TenferroError,
    Unsupported,
    UsageError,
)
from tenferro_ref.extensions import einsum, fft, linalg
from tenferro_ref.ops import Policy
from tenferro_ref.program import GraphBuilder, Value
from tests.program.test_frontend import run

F32, F64, I32, I64, Bool, C32, C64 = ENGINE_DTYPES


ERRORS: list[tuple[Callable[[Value], Any], type[TenferroError], dict[str, Any]]] = [
    (lambda x: x.sum(2), AxisOutOfBounds, {"op": "ReduceSum", "axis": 2}),
    (lambda x: x.max(-3), AxisOutOfBounds, {"op": "ReduceMax", "axis": -3}),
    (lambda x: x.prod((0, -2)), DuplicateAxis, {"op": "ReduceProd", "axis": 0}),
    (lambda x: x.transpose(0, 0), DuplicateAxis, {"op": "Transpose", "axis": 0}),
    (lambda x: x.transpose(0), RankMismatch, {"op": "Transpose"}),
    (lambda x: x.reshape(5), ShapeMismatch, {"op": "Reshape"}),
    (lambda x: x.reshape(-1, -1), InvalidArgument, {"op": "Reshape", "argument": "shape"}),
    *((lambda x, order=order: x.reshape(3, 4, order=order), UsageError, {}) for order in ("c", "A", "K", "f", None, 1)),
    (lambda x: x.reshape(0, -1), InvalidArgument, {"op": "DimExpr", "argument": "FloorDivByZero"}),
    (lambda x: x[4], InvalidArgument, {"op": "Slice", "argument": "starts"}),
    (lambda x: x[:, -4], InvalidArgument, {"op": "Slice", "argument": "starts"}),
    (lambda x: x[::0], InvalidArgument, {"op": "Slice", "argument": "strides"}),
    (lambda x: x[0, 0, 0], RankMismatch, {"op": "Slice"}),
    (lambda x: x[..., ...], RankMismatch, {"op": "Slice"}),
    (lambda x: tn.concatenate(3), UsageError, {}),
    (lambda x: tn.stack("xx"), UsageError, {}),
    (lambda x: x[1.5], UsageError, {}),
    (lambda x: x[True], UsageError, {}),
    (lambda x: x[x], UsageError, {}),
    (lambda x: x[x.sum() :], UsageError, {}),
    (lambda x: x[:2.0], UsageError, {}),
    (lambda x: x.sum(1.0), UsageError, {}),
    (lambda x: x.sum([x]), UsageError, {}),
    (lambda x: x.reshape(2, 6.0), UsageError, {}),
    (lambda x: x.reshape(InputDim(7, 0)), InvalidArgument, {"op": "Reshape", "argument": "shape"}),
    (lambda x: np.ones((4, 4)) @ x, UsageError, {}),
    (lambda x: (x > 0) & 3, DTypeMismatch, {"op": "Select"}),
    (lambda x: (x > 0) | x, DTypeMismatch, {"op": "Select"}),
    (lambda x: x & (x > 0), DTypeMismatch, {"op": "Select"}),
    (lambda x: x.astype("F17"), UsageError, {}),
    (lambda x: x @ x, ShapeMismatch, {"op": "DotGeneral"}),
    (lambda x: x.astype("I32") @ x.astype("I32").T, Unsupported, {"op": "DotGeneral"}),
    (lambda x: tn.exp(x.astype("I64")), Unsupported, {"op": "Exp"}),
    (lambda x: x.astype("C64") < 1, Unsupported, {"op": "Compare"}),
    (lambda x: ~x, DTypeMismatch, {"op": "Select"}),
    (lambda x: tn.where(x, x, x), DTypeMismatch, {"op": "Select"}),
    (lambda x: tn.where(x > 0, x[:3], x), ShapeMismatch, {"op": "Select"}),
    (lambda x: x.broadcast_to((3,)), ShapeMismatch, {"op": "BroadcastInDim"}),
    (lambda x: x.broadcast_to((4, 4)), ShapeMismatch, {"op": "BroadcastInDim"}),
    (lambda x: tn.concatenate([x, x], 2), AxisOutOfBounds, {"op": "Concatenate", "axis": 2}),
    (lambda x: tn.concatenate([]), UsageError, {}),
    (lambda x: tn.pad(x, [(1, 1)] * 3), RankMismatch, {"op": "Pad", "expected": 2, "actual": 3}),
    (lambda x: tn.pad(x, []), RankMismatch, {"op": "Pad"}),
    (lambda x: tn.pad(x, [1, (2, 3)]), UsageError, {}),
    (lambda x: tn.pad(x, [(1, 2), ()]), UsageError, {}),
    (lambda x: tn.pad(x, [(1, 2), (3,)]), UsageError, {}),  # NumPy's are an array
    (lambda x: tn.diag(x[:, :, None]), RankMismatch, {"op": "diag", "actual": 3}),
    (lambda x: tn.diag(x.sum()), RankMismatch, {"op": "diag", "actual": 0}),
    (lambda x: tn.stack([x, x], 3), AxisOutOfBounds, {"op": "stack", "axis": 3, "rank": 3}),
    (lambda x: tn.stack([x, x], -4), AxisOutOfBounds, {"op": "stack", "axis": -4}),
    (lambda x: tn.pad(x, (1, 2, 3)), UsageError, {}),
    (lambda x: tn.pad(x, 1.5), UsageError, {}),
    (lambda x: tn.pad(x, 1, (1.0, 0)), UsageError, {}),
    (lambda x: tn.tril(x, "1"), UsageError, {}),
    (lambda x: tn.exp(2.0), UsageError, {}),
    (lambda x: tn.take(x, [0]), UsageError, {}),
    *((wrong, UsageError, {}) for wrong in (
        lambda x: tn.moveaxis(x, [0, 0], 0), lambda x: tn.take(x, x, axis=(0, 1)), lambda x: tn.shape_of(x, ()),
        lambda x: tn.stack([x, 1.0]), lambda x: tn.tensordot(x, x, 3), lambda x: tn.tensordot(x, x, -1),
        lambda x: tn.truncate(x, 2, axis=(0, 1)), lambda x: tn.tensordot(x, x, (0,)), lambda x: tn.tensordot(3, 4, 0),
        lambda x: tn.where(1, x, x), lambda x: tn.clip(1, 0, 2), lambda x: tn.diag(1), lambda x: tn.mean(1),
        lambda x: tn.flip(1), lambda x: tn.pad(1, 1), lambda x: tn.tril(1), lambda x: tn.pad_to_match(x, 3),
        lambda x: tn.dynamic_update_slice(1, x, [1]), lambda x: tn.dynamic_slice(x, 5, (1,)), lambda x: x.broadcast_to(3),
        lambda x: tn.einsum("i", 3), lambda x: tn.einsum(5, x), lambda x: tn.einsum(([[0, 1]],), x),
        lambda x: einsum.einsum("ij->ij", x, path=3), lambda x: tn.einsum("ij,ij->ij", x, x, path=np.array([[0, 1]])),
        lambda x: einsum.einsum("ij,ij->ij", x, x, path=[0]),
    )),
    (lambda x: tn.moveaxis(x, 0, 5), AxisOutOfBounds, {"op": "Transpose", "axis": 5}),
    (lambda x: tn.moveaxis(x, 0, -9), AxisOutOfBounds, {"op": "Transpose", "axis": -9}),
    (lambda x: tn.scatter_add(x, [0], x), UsageError, {}),
    (lambda x: tn.concatenate([1.0, x]), UsageError, {}),
    (lambda x: tn.dynamic_slice(x, [0, 0], 1), UsageError, {}),
    (lambda x: tn.take(x, x, 2), AxisOutOfBounds, {"op": "Gather", "axis": 2}),
    (lambda x: tn.take(x, x, 2**70), AxisOutOfBounds, {"op": "Gather", "axis": 2**70}),
    (lambda x: tn.scatter_add(x, x, x, 2**70), AxisOutOfBounds, {"op": "Scatter", "axis": 2**70}),
    (lambda x: tn.take(x, x > 0), InvalidArgument, {"op": "index_tensor"}),
    (lambda x: tn.diagonal(x, 0, 1, 1), DuplicateAxis, {"op": "ExtractDiag", "axis": 1}),
    (lambda x: tn.diagonal(x, 1, 0, 2), AxisOutOfBounds, {"op": "ExtractDiag", "axis": 2}),
    (lambda x: tn.tril(x[0]), RankMismatch, {"op": "Tril"}),
    (lambda x: tn.dynamic_slice(x, [0], [1, 1]), RankMismatch, {"op": "DynamicSlice"}),
    (lambda x: list(x.sum()), UsageError, {}),
    (lambda x: x.astype("I32") + 2**31, InvalidArgument, {"op": "Constant"}),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "kind", "facts"), ERRORS)
def test_errors_are_typed_and_name_op_and_axis(
    wrong: Callable[[Value], Any], kind: type[TenferroError], facts: dict[str, Any]
) -> None:
    x = GraphBuilder().input(F64, (4, 3))
    with pytest.raises(kind) as caught:
        wrong(x)
    assert facts.items() <= caught.value.facts().items()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x: tn.stack([x, x], 3), "^stack: axis 3 is out of bounds for rank 3$"),
        (lambda x: x[..., ...], "^index: more than one ellipsis$"),
        (lambda x: x[0, 0, 0], "^index: 3 indices, and the value has rank 2$"),
        (lambda x: x[:, 3], "^index 3 is out of bounds for axis 1 of extent 3$"),
        (lambda x: x[::0], "^index: a slice of step 0 on axis 0$"),
        (lambda x: x @ 2.0, "^@ with a number, or a value of rank 0"),
        (lambda x: 2 @ x, "^@ with a number, or a value of rank 0"),
        (lambda x: x.sum() @ x, "^@ with a number, or a value of rank 0"),
        (lambda x: fft.fft(x, 2.0), "float where an integer is needed: length n of fft"),
        (lambda x: fft.rfft(x, axis=True), "bool where an integer is needed: axis of rfft"),
        (lambda x: fft.ifft(x, norm=None), 'norm is "backward", "ortho" or "forward", not None: ifft'),
        (lambda x: fft.fft(x, norm="x"), 'norm is "backward", "ortho" or "forward", not \'x\': fft'),
        (lambda x: fft.fft(3), "must be a Value"),
        (lambda x: linalg.cholesky(3), "must be a Value"),
        (lambda x: linalg.solve(x, 3), "an operand is no Value: int"),
        (lambda x: tn.diag(x[:, :, None]), "^diag: the operand is of rank 3, not 1 or 2$"),
        (lambda x: tn.pad(x, [(1, 1)] * 3), "^pad: 3 pairs of widths for 2 axes$"),
        (lambda x: x.reshape(12, order="c"), "order is .* not 'c': reshape"),
        (lambda x: ~x, "^~ is of Bool values alone, and here is F64"),
        (lambda x: x & x, "^& is of Bool values alone, and here is F64"),
        (lambda x: (x > 0) | 1, r"^\| is of Bool values alone, and here is int"),
        (lambda x: x / InputDim(0, 1), r"^the extent in0\.1 is no number before the program runs: shape_of"),
    ],
)
def test_errors_speak_of_what_was_written(wrong: Callable[[Value], Any], words: str) -> None:
    with pytest.raises(TenferroError, match=words):
        wrong(GraphBuilder().input(F64, (4, 3)))


def test_slices_of_symbolic_axes_that_have_no_expression() -> None:
    x = GraphBuilder().input(F64, ("n", 6))
    for wrong in (lambda: x[::2], lambda: x[-3:2], lambda: x[:, ::3], lambda: x[5::-1]):
        with pytest.raises(InvalidArgument) as caught:
            wrong()
        assert caught.value.op == "Slice"


def test_integers_may_be_numpys() -> None:
    b = GraphBuilder()
    x = b.input(F64, (4, 3))
    two = np.int32(2)
    shapes = [
        x[two].shape,
        x[:two].shape,
        x.reshape(two, 6).shape,
        x.sum(np.int64(0)).shape,
        x.T.reshape(two, -1).shape,
    ]
    assert shapes == [(3,), (2, 3), (2, 6), (3,), (2, 6)]
    assert all(type(i.op.shape[0]) is int for i in b.build().instructions if isinstance(i.op, ops.Reshape))
    assert ((x > 0) & np.bool_(True)).dtype is Bool


def test_policy_is_kept() -> None:
    b = GraphBuilder(policy=Policy(empty_reduction="identity"))
    assert run(b.input(F64, (0, 2)).sum(0), inputs=(np.ones((0, 2)),))[0].tolist() == [0, 0]


def test_numbers_of_numpy_are_integers_everywhere() -> None:
    one = np.int64(1)
    x = GraphBuilder().input(F64, (4, 3))
    assert tn.pad(x, one, one).shape == (9, 7)
    padded = tn.pad(x, [(one, one), (0, one)], [one, 0])
    assert padded.builder.build(padded).instructions[-1].op == ops.Pad((1, 0), (1, 1), (1, 0))
    wide = tn.pad(x, one)
    for value in (wide, tn.tril(x, one), tn.dynamic_slice(x, [0, 0], [one, one]), tn.concatenate([x, x], one)):
        assert all(type(extent) is int for extent in value.shape)
