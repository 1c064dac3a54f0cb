"""GraphBuilder: the front ends' promotion and broadcasting, and what it refuses (SEMANTICS 1.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tenferro_ref import frontend as tn
from tenferro_ref.dims import DimOp, InputDim
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.errors import (
    DTypeMismatch,
    InvalidArgument,
    ShapeMismatch,
    Unsupported,
    UsageError,
)
from tenferro_ref.extensions import linalg
from tenferro_ref.ops import Add, BroadcastInDim, Constant, Exp, Negate, Policy, TensorType
from tenferro_ref.program import GraphBuilder, Instruction, Value, loads, parse

F32, F64, I32, I64, Bool, C32, C64 = ENGINE_DTYPES


def ops(b: GraphBuilder, *outputs: Value) -> list[str]:
    return [i.op.name for i in b.build(*outputs).instructions]


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
def test_operators_broadcast_as_numpy_does(shapes: hnp.BroadcastableShapes) -> None:
    b = GraphBuilder()
    left, right = shapes.input_shapes
    z = b.input(F64, left) * b.input(F64, right)
    assert z.shape == shapes.result_shape
    assert sum(i.op.name == "BroadcastInDim" for i in b.build(z).instructions) == (
        (left != shapes.result_shape) + (right != shapes.result_shape)
    )


@pytest.mark.parametrize(("left", "right"), [((2,), (3,)), ((2, 3), (2, 1, 4)), ((0,), (2,)), (("n", 3), ("n", 4))])
def test_shapes_that_do_not_broadcast(left: tuple[int | str, ...], right: tuple[int | str, ...]) -> None:
    b = GraphBuilder()
    x, y = b.input(F64, left), b.input(F64, right)
    with pytest.raises(ShapeMismatch) as caught:
        x + y
    assert caught.value.op == "Add"


def test_symbolic_extents_are_read_from_an_operand_at_run_time() -> None:
    b = GraphBuilder()
    x, y = b.input(F64, (1,)), b.input(F64, (2, "n"))
    z = x + y
    assert z.shape == (2, InputDim(1, 1))
    (wide, add) = b.build(z).instructions
    assert wide == Instruction(BroadcastInDim((2, InputDim(1, 1)), (1,)), (0, 1), (2,))
    assert add.op == Add()


def test_apply_inserts_nothing() -> None:
    b = GraphBuilder()
    x, y = b.input(F32, (2,)), b.input(F64, (2,))
    with pytest.raises(DTypeMismatch):
        b.apply(Add(), x, y)
    with pytest.raises(ShapeMismatch):
        b.apply(Add(), y, b.input(F64, (1,)))
    assert ops(b, b.apply(Exp(), x)) == ["Exp"]


def test_an_op_with_several_outputs_is_for_apply_many() -> None:
    b = GraphBuilder()
    x = b.input(F64, (2, 2))
    op = linalg.qr(x)[0].builder.build().instructions[-1].op
    with pytest.raises(UsageError, match="Qr has 2 outputs: `apply_many` gives them"):
        b.apply(op, x)
    assert len(b.build().instructions) == 1


def _two() -> tuple[Value, Value]:
    return GraphBuilder().input(F64), GraphBuilder().input(F64)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: _two()[0] + _two()[1],
        lambda: _two()[0].builder.build(_two()[1]),
        lambda: GraphBuilder().input("F17"),
        lambda: GraphBuilder().input("f64"),
        lambda: GraphBuilder().input(F64, ("two words",)),
        lambda: GraphBuilder().input(F64, ("",)),
        lambda: tn.maximum(1.0, 2.0),
    ],
)
def test_misuse_is_a_usage_error(wrong: Callable[[], object]) -> None:
    with pytest.raises(UsageError):
        wrong()


@pytest.mark.parametrize("shape", [(-1,), (2, -3), (2**62,), (1,) * 65])
def test_impossible_inputs(shape: tuple[int, ...]) -> None:
    b = GraphBuilder()
    with pytest.raises(InvalidArgument):
        b.input(F64, shape)
    assert b.input(F64).slot == 0  # nothing was added


def test_inputs_have_a_dtype_of_the_policy() -> None:
    b = GraphBuilder()
    for narrow in set(DType) - set(ENGINE_DTYPES):
        for wrong in (lambda of=narrow: b.input(of.name, (3,)), lambda of=narrow: b.typed_input(TensorType(of, ()))):
            with pytest.raises(Unsupported, match=r'program input 0: .*Policy\(dtypes="stablehlo"\) may have it'):
                wrong()
    with pytest.raises(Unsupported):
        b.input("F16", ("n",))
    assert b.input(F64).slot == 0  # nothing was added
    assert b.build().symbols == ()
    wide = GraphBuilder(policy=Policy(dtypes="stablehlo"))
    assert [wide.input(of).dtype for of in DType] == list(DType)


def test_symbols_repeat_and_keep_their_names() -> None:
    b = GraphBuilder("s")
    x, y = b.input("F64", ("n", "m")), b.input("F64", ("m", "n", 3))
    program = b.build(x, x, y)
    assert program.input_types[1].shape == (InputDim(0, 1), InputDim(0, 0), 3)
    assert program.symbols == ((InputDim(0, 0), "n"), (InputDim(0, 1), "m"))
    assert program.output_slots == (0, 0, 1)
    assert not program.is_static
    assert program.name == "s"


@given(st.floats(), st.sampled_from([F32, F64, C32, C64]))
def test_constants_are_the_nearest_value(value: float, dtype: DType) -> None:
    b = GraphBuilder()
    with np.errstate(all="ignore"):
        nearest = np.asarray(value).astype(dtype.numpy)
    if np.isfinite(value) and not np.isfinite(nearest):
        with pytest.raises(InvalidArgument, match=f"is near to no finite {dtype}"):
            b.constant(value, dtype)
        return
    (ins,) = b.build(b.constant(value, dtype)).instructions
    assert isinstance(ins.op, Constant)
    assert ins.op.data == nearest.tobytes()
    assert b.build().instructions[0].op.result_types(()) == (TensorType(dtype, ()),)


@pytest.mark.parametrize(
    ("value", "dtype", "words"),
    [
        (1e300, "F32", "1e[+]300 is near to no finite F32"),
        (-1e39j, "C32", "is near to no finite C32"),
        (10**400, "F64", "is near to no finite F64"),
        (np.float64(1e39), "F32", "is near to no finite F32"),
        (449e3, "F8E4M3FN", "is near to no finite F8E4M3FN"),  # NaN
        (0, "F8E8M0FNU", "0 is near to no finite F8E8M0FNU"),
        (0.5, "Bool", "0.5 is no Bool: neither 0 nor 1"),
        (2, "Bool", "2 is no Bool"),
        (np.float32(-1), "Bool", "is no Bool"),
        (float("nan"), "Bool", "nan is no Bool"),
    ],
)
def test_a_constant_becomes_no_infinity_and_a_bool_is_0_or_1(value: complex, dtype: str, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        GraphBuilder(policy=Policy(dtypes="stablehlo")).constant(value, dtype)


def test_infinities_and_the_ends_of_a_range_are_constants() -> None:
    b = GraphBuilder()
    given = [
        (np.inf, "F32"),
        (complex(np.nan, 1), "C32"),
        (3.4e38, F32),
        (np.float32(np.inf), "F64"),
        (1.0, Bool),
        (True, "F32"),
    ]
    made = [np.isfinite(ins.op.value) for v in given for ins in b.build(b.constant(*v)).instructions[-1:]]  # type: ignore[attr-defined]
    assert made == [False, False, True, False, True, True]
    with pytest.raises(InvalidArgument, match="near to no finite F32"):
        b.input("F32", (2,)) * 1e39


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda b: b.input("F32", 2), "int where a shape is needed"),
        (lambda b: b.input("F32", ("batch")), "str where a shape is needed"),  # no comma
        (lambda b: b.input("F32", (2.0,)), "float where an integer is needed: extent"),
        (lambda b: b.input("F32", ("1n",)), "symbol '1n' is not an identifier"),
        (lambda b: b.input(np.float32, (2,)), "type where a dtype is needed"),
        (lambda b: b.constant("1"), "Constant: value: str is no number"),
        (lambda b: b.constant(1, "F65"), "unknown dtype 'F65'"),
        (lambda b: b.apply("Add", b.input("F32")), "str where an op is needed"),
        (lambda b: b.apply(Negate(), 1.0), "Negate: an operand is no Value: float"),
        (lambda b: b.apply(Negate(), GraphBuilder().input("F32")), "Negate: an operand belongs to another"),
        (lambda b: b.build(1), "an output is no Value: int"),
        (lambda b: b.build(GraphBuilder().input("F32")), "an output belongs to another"),
        (lambda _: GraphBuilder(policy="stablehlo"), "str where a Policy is needed"),
        (lambda _: GraphBuilder(3), "int where a name is needed"),  # type: ignore[arg-type]
        (lambda _: loads(None), "NoneType where the JSON of a program is needed"),  # type: ignore[arg-type]
        (lambda _: parse(b""), "bytes where the text of a program is needed"),  # type: ignore[arg-type]
        (lambda _: GraphBuilder(division="exact"), "not 'exact'"),
    ],
)
def test_what_a_builder_is_not_given(wrong: Callable[[Any], Any], words: str) -> None:
    with pytest.raises((UsageError, InvalidArgument), match=words):
        wrong(GraphBuilder())


def test_extents_may_be_expressions() -> None:
    b = GraphBuilder()
    x = b.input("F32", (InputDim(0, 0), 3))
    assert x.shape == (InputDim(0, 0), 3)
    assert b.input("F32", (DimOp("add", InputDim(0, 0), 1),)).shape == (DimOp("add", InputDim(0, 0), 1),)


def test_extents_may_be_numpys_integers() -> None:
    b = GraphBuilder()
    program = b.build(b.input("F32", (np.int64(2), np.uint8(3))))
    assert program.input_types[0].shape == (2, 3)
    assert {type(extent) for extent in program.input_types[0].shape} == {int}
