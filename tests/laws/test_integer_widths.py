"""Integers of every width: kernels and enclosures say what Python's integers say, and the engine's policy keeps to its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.enclosure import MODELS, enclose
from oracle.enclosure.integers import add, divide, multiply, negate
from oracle.enclosure.value import Interval, bound_type, exact
from tenferro_ref import ops
from tenferro_ref.dtype import ANY, DType
from tenferro_ref.errors import Unsupported
from tenferro_ref.ops import DEFAULT_POLICY, STABLEHLO
from tenferro_ref.program import GraphBuilder
from tenferro_ref.runtime.kernels import run_kernel

pytestmark = pytest.mark.once

INTEGERS = [d for d in DType if d.is_int]


def wrapped(dtype: DType, value: int) -> int:
    least, _ = dtype.limits
    return (value - least) % 2**dtype.bits + least


def quotient(dtype: DType, a: int, b: int) -> int:
    if b == 0:
        return wrapped(dtype, -1)
    return wrapped(dtype, abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))


MEANING: dict[type[ops.Op], Callable[[DType, int, int], int]] = {
    ops.Add: lambda d, a, b: wrapped(d, a + b),
    ops.Multiply: lambda d, a, b: wrapped(d, a * b),
    ops.Divide: quotient,
    ops.Maximum: lambda d, a, b: max(a, b),
    ops.Minimum: lambda d, a, b: min(a, b),
}


def values(dtype: DType) -> st.SearchStrategy[int]:
    least, greatest = dtype.limits
    return st.sampled_from([least, least + 1, 0, 1, greatest // 2 + 1, greatest]) | st.integers(least, greatest)


def array(dtype: DType, *numbers: int) -> np.ndarray:
    return np.array(numbers, bound_type(dtype)).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@given(st.data())
def test_kernels_and_enclosures_say_what_python_says(dtype: DType, data: st.DataObject) -> None:
    a, b = data.draw(values(dtype)), data.draw(values(dtype))
    for op, meaning in MEANING.items():
        builder = GraphBuilder(policy=STABLEHLO)
        program = builder.build(builder.apply(op(), builder.input(dtype, (1,)), builder.input(dtype, (1,))))
        inputs = [array(dtype, a), array(dtype, b)]
        (result,) = run_kernel(op(), STABLEHLO, *inputs)
        assert result.dtype == dtype.numpy
        assert int(result[0]) == meaning(dtype, a, b)
        (enclosure,) = enclose(program, inputs, MODELS["ieee"])
        assert isinstance(enclosure, Interval)
        assert int(enclosure.lo[0]) == int(enclosure.hi[0]) == meaning(dtype, a, b)


@pytest.mark.parametrize("dtype", [DType.I8, DType.U8, DType.U64, DType.I64], ids=str)
@given(st.data())
def test_intervals_hold_what_their_members_give(dtype: DType, data: st.DataObject) -> None:
    def interval() -> tuple[Interval, int]:
        low, inside, high = sorted(data.draw(st.lists(values(dtype), min_size=3, max_size=3)))
        return exact(dtype, np.array([low], bound_type(dtype)), np.array([high], bound_type(dtype))), inside

    (x, a), (y, b) = interval(), interval()
    for rule, value in (
        (add(dtype, x, y), wrapped(dtype, a + b)),
        (multiply(dtype, x, y), wrapped(dtype, a * b)),
        (divide(dtype, x, y), quotient(dtype, a, b)),
        (negate(dtype, x), wrapped(dtype, -a)),
    ):
        assert rule.contains(array(dtype, value)).all()


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_conversions_of_floats_saturate(dtype: DType) -> None:
    least, greatest = dtype.limits
    x = np.array([np.nan, -np.inf, np.inf, -1e30, 1e30, -1.9, 1.9, 0.5])
    wanted = [0, least, greatest, least, greatest, max(least, -1), min(greatest, 1), 0]
    (result,) = run_kernel(ops.Convert(dtype), STABLEHLO, x)
    assert [int(v) for v in result] == wanted
    builder = GraphBuilder(policy=STABLEHLO)
    (enclosure,) = enclose(builder.build(builder.input(DType.F64, (8,)).astype(dtype)), [x], MODELS["ieee"])
    assert isinstance(enclosure, Interval)
    assert [int(v) for v in enclosure.lo] == [int(v) for v in enclosure.hi] == wanted


def test_integers_beyond_the_digits_of_a_float_are_rounded_once() -> None:
    x = np.array([2**53 + 1, 2**63 + 1, 2**64 - 1, 2**60 + 2**52 + 1, 2**60 + 2**52], np.uint64)
    assert run_kernel(ops.Convert(DType.F64), STABLEHLO, x)[0].tolist() == [float(int(v)) for v in x]
    bf16 = run_kernel(ops.Convert(DType.BF16), STABLEHLO, x)[0].astype(np.float64).tolist()
    assert bf16 == [2.0**53, 2.0**63, 2.0**64, 2.0**60 * (1 + 2**-7), 2.0**60]


@pytest.mark.parametrize("dtype", [d for d in DType if d not in ANY], ids=str)
def test_the_engines_policy_keeps_to_its_seven(dtype: DType) -> None:
    builder = GraphBuilder(policy=DEFAULT_POLICY)
    x = builder.input(DType.F32, (2,))
    with pytest.raises(Unsupported, match=f"dtype {dtype} "):
        x.astype(dtype)
    with pytest.raises(Unsupported, match=f"dtype {dtype} "):
        builder.build(builder.input(dtype, (2,))).slot_types  # noqa: B018 - infers
