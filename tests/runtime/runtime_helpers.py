"""What the runtime's tests share: one op run as the executor would, both paths, hostile values, and arrays by dtype."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tenferro_ref.dims import UpperBound
from tenferro_ref.dtype import DType
from tenferro_ref.ops import ENGINE
from tenferro_ref.program import GraphBuilder, to_exec
from tenferro_ref.runtime import GraphExecutor, run_kernel
from tenferro_ref.tensor import column_major, type_of

FLOATS = [DType.F32, DType.F64]
COMPLEXES = [DType.C32, DType.C64]
INTS = [DType.I32, DType.I64]


def arr(values, dtype):
    return column_major(np.asarray(values).astype(dtype.numpy))


def apply(op, *arrays, policy=ENGINE):
    """The op's one result; checked: its type is what the rule says, it is a column-major array, operands are untouched."""
    expected = op.result_types(tuple(map(type_of, arrays)), policy)
    before = [a.tobytes("F") for a in arrays]
    results = run_kernel(op, policy, *arrays)
    assert [a.tobytes("F") for a in arrays] == before
    for result, type_ in zip(results, expected, strict=True):
        assert type(result) is np.ndarray
        assert result.flags.f_contiguous
        assert result.dtype == type_.dtype.numpy
        assert result.ndim == type_.rank
        for got, want in zip(result.shape, type_.shape, strict=True):
            assert got <= want.expr if isinstance(want, UpperBound) else got == want
    (result,) = results
    return result


def bits(array):
    """Bytes with every NaN made one, for comparisons where payloads do not matter."""
    array = np.array(array, order="F")
    if array.dtype.kind in "fc":
        parts = (array.real, array.imag) if array.dtype.kind == "c" else (array,)
        for part in parts:
            part[np.isnan(part)] = np.nan
    return array.dtype, array.shape, array.tobytes("F")


def same(a, b):
    return bits(a) == bits(b)


def quiet_nans(dtype):
    """Quiet NaNs with different signs and payloads."""
    if dtype is DType.F32:
        return np.array([0x7FC00000, 0xFFC00000, 0x7FC00123, 0xFFC00456], np.uint32).view(np.float32)
    return np.array([0x7FF8 << 48, 0xFFF8 << 48, 0x7FF8 << 48 | 123, 0xFFF8 << 48 | 456], np.uint64).view(np.float64)


def hostile(dtype, size, rng):
    """Random values of every magnitude with many special ones among them."""
    if dtype.is_complex:
        return hostile(dtype.real, 2 * size, rng).view(dtype.numpy)
    if dtype is DType.Bool:
        return rng.random(size) < 0.5
    if dtype.is_int:
        info = np.iinfo(dtype.numpy)
        special = np.array([0, 1, -1, 2, info.min, info.max, info.min + 1], dtype.numpy)
        values = rng.integers(-100, 100, size).astype(dtype.numpy)
    else:
        info = np.finfo(dtype.numpy)
        special = np.concatenate([
            np.array([0.0, -0.0, np.inf, -np.inf, 1, -1, 2, 0.5], dtype.numpy),
            np.array([info.max, info.min, info.tiny, info.smallest_subnormal, -info.tiny], dtype.numpy),
            quiet_nans(dtype),
        ])  # fmt: skip
        values = (rng.standard_normal(size) * np.exp(rng.uniform(-12, 8, size))).astype(dtype.numpy)
    mask = rng.random(size) < 0.3
    values[mask] = rng.choice(special, int(mask.sum()))
    return values


def exec_of(*outputs):
    return to_exec(outputs[0].builder.build(*outputs))


def paths(**options):
    executor = GraphExecutor(**options)
    return executor.eval_exec_ir, executor.eval_unsegmented


def both(program, inputs, **options):
    """Results of both paths, which must be the same bit for bit."""
    a, b = (path(program, inputs) for path in paths(**options))
    assert [(x.dtype, x.shape, x.tobytes("F")) for x in a] == [(x.dtype, x.shape, x.tobytes("F")) for x in b]
    return a


def raises_on_both(error, program, inputs, match=None, **options):
    caught = []
    for path in paths(**options):
        with pytest.raises(error, match=match) as info:
            path(program, inputs)
        caught.append(info.value)
    assert caught[0].to_json() == caught[1].to_json()
    return caught[0]


def chain():
    b = GraphBuilder()
    x = b.input("F64", (3,))
    y = -x
    z = y + y
    return exec_of(z * x)


def change(program, index, **fields):
    instructions = list(program.instructions)
    instructions[index] = replace(instructions[index], **fields)
    return replace(program, instructions=tuple(instructions))


ONES = np.ones(3)
