"""What tests of programs share: arrays, programs of one op or of a few, and every way to run them, compared bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from string import ascii_letters
from typing import Any

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dims import UpperBound, evaluate
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import DEFAULT_POLICY, Op, Policy, free_axes
from tenferro_ref.program import ExecProgram, GraphBuilder, GraphProgram, LoweringView, Value, to_exec
from tenferro_ref.runtime import GraphExecutor, run_kernel
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.tensor import Array, column_major, same_bits, type_of

FLOATS = [DType.F32, DType.F64]
COMPLEXES = [DType.C32, DType.C64]
INTS = [DType.I32, DType.I64]
INEXACT = FLOATS + COMPLEXES
INF, NAN = np.inf, np.nan
ONES = np.ones(3)

# --- arrays -----------------------------------------------------------------------------------------------------------


def arr(values: object, dtype: DType) -> Array:
    """Column-major array of a dtype."""
    return column_major(np.asarray(values).astype(dtype.numpy))


def numbered(*shape: int, dtype: DType = DType.F64) -> Array:
    """1, 2, 3, ... in column-major order."""
    return np.arange(1, np.prod(shape, dtype=int) + 1).astype(dtype.numpy).reshape(shape, order="F")


def integers(shape: Sequence[int], seed: int = 0, dtype: DType = DType.F64) -> Array:
    """Small integers, complex ones for a complex dtype: any order of summation gives the same bits."""
    rng = np.random.default_rng([seed, *shape])
    values = rng.integers(-4, 5, tuple(shape))
    return np.asarray(values + 1j * rng.integers(-4, 5, tuple(shape)) if dtype.is_complex else values).astype(
        dtype.numpy
    )


def normal(dtype: DType, shape: Sequence[int], seed: int = 0) -> Array:
    """Normally distributed values, column-major."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    return arr(values + 1j * rng.standard_normal(shape) if dtype.is_complex else values, dtype)


def quiet_nans(dtype: DType) -> Array:
    """Quiet NaNs with different signs and payloads."""
    if dtype is DType.F32:
        return np.array([0x7FC00000, 0xFFC00000, 0x7FC00123, 0xFFC00456], np.uint32).view(np.float32)
    return np.array([0x7FF8 << 48, 0xFFF8 << 48, 0x7FF8 << 48 | 123, 0xFFF8 << 48 | 456], np.uint64).view(np.float64)


def hostile(dtype: DType, size: int, rng: np.random.Generator) -> Array:
    """Random values of every magnitude with many special ones among them."""
    if dtype.is_complex:
        return hostile(dtype.real, 2 * size, rng).view(dtype.numpy)
    if dtype is DType.Bool:
        return rng.random(size) < 0.5
    info: Any
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


def bits(array: Array) -> tuple[Any, ...]:
    """Dtype, shape and bytes with every NaN made one, for comparisons where payloads do not matter."""
    array = np.array(array, order="F")
    if array.dtype.kind in "fc":
        for part in (array.real, array.imag) if array.dtype.kind == "c" else (array,):
            part[np.isnan(part)] = np.nan
    return array.dtype, array.shape, array.tobytes("F")


def same(a: Array, b: Array) -> bool:
    """The same bits, but for the payloads of NaNs."""
    return bits(a) == bits(b)


def contents(arrays: Sequence[Array]) -> list[tuple[Any, ...]]:
    """Dtypes, shapes and bytes."""
    return [(a.dtype, a.shape, a.tobytes("F")) for a in arrays]


def close(got: Array, want: Array, dtype: DType | None = None) -> None:
    """Equal but for rounding, relative to the largest element."""
    tolerance = 2e-5 if (dtype or DType.of(got)).real is DType.F32 else 1e-13
    scale = max(1.0, float(np.abs(want).max())) if want.size else 1.0
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale)


# --- programs ---------------------------------------------------------------------------------------------------------


def one_op(op: Op, *operands: str, policy: Policy = DEFAULT_POLICY) -> GraphProgram:
    """A program of one op on inputs that are written as `F64 2 n`."""
    b = GraphBuilder(policy=policy)
    values = [b.input(o.split()[0], [int(e) if e.isdigit() else e for e in o.split()[1:]]) for o in operands]
    return b.build(*b.apply_many(op, *values))


def lines(op: Op, *operands: str, policy: Policy = DEFAULT_POLICY) -> list[str]:
    """The body of the StableHLO function that `one_op` is lowered to."""
    text = lower_to_stablehlo(LoweringView.of(one_op(op, *operands, policy=policy)))
    return [line.strip() for line in text.splitlines()[2:-3]]


def one_dot(lhs: Sequence[int | str], rhs: Sequence[int | str], *dims: tuple[int, ...]) -> GraphProgram:
    """A program that is one DotGeneral; `dims` are lc, rc, lb, rb."""
    return one_op(ops.DotGeneral(*dims), *(" ".join(["F64", *map(str, shape)]) for shape in (lhs, rhs)))


def traced(build: Callable[..., Value | tuple[Value, ...]], *arrays: Array) -> GraphProgram:
    """`build(*values)` over inputs of the arrays' types."""
    b = GraphBuilder()
    results = build(*(b.input(DType.of(x), x.shape) for x in arrays))
    return b.build(*(results if isinstance(results, tuple) else (results,)))


def exec_of(*outputs: Value) -> ExecProgram:
    return to_exec(outputs[0].builder.build(*outputs))


def chain() -> ExecProgram:
    """Of three instructions on one input, `ONES` for example."""
    x = GraphBuilder().input("F64", (3,))
    y = -x
    return exec_of((y + y) * x)


def change(program: ExecProgram, index: int, **fields: Any) -> ExecProgram:
    """With other fields of one instruction."""
    instructions = list(program.instructions)
    instructions[index] = replace(instructions[index], **fields)
    return replace(program, instructions=tuple(instructions))


def steps(program: ExecProgram) -> list[tuple[object, tuple[int, ...], int]]:
    """Op, operand slots and first result slot of each instruction."""
    return [(i.op, i.input_slots, i.output_slots[0]) for i in program.instructions]


# --- running ----------------------------------------------------------------------------------------------------------


def apply(op: Op, *arrays: Array, policy: Policy = DEFAULT_POLICY) -> Array:
    """The op's one result; checked: its type is what the rule says, it is column-major, operands are untouched."""
    expected = op.result_types(tuple(map(type_of, arrays)), policy)
    before = contents(arrays)
    results = run_kernel(op, policy, *arrays)
    assert contents(arrays) == before
    for result, type_ in zip(results, expected, strict=True):
        assert type(result) is np.ndarray
        assert result.flags.f_contiguous
        assert result.dtype == type_.dtype.numpy
        assert result.ndim == type_.rank
        for got, want in zip(result.shape, type_.shape, strict=True):
            assert got <= want.expr if isinstance(want, UpperBound) else got == want
    (result,) = results
    return result


def paths(**options: Any) -> tuple[Callable[..., list[Array]], ...]:
    """The segmented and the unsegmented path of one executor."""
    executor = GraphExecutor(**options)
    return executor.eval_exec_ir, executor.eval_unsegmented


def both(program: ExecProgram, inputs: Sequence[Any], **options: Any) -> list[Array]:
    """Results of both paths, which must be the same bit for bit."""
    a, b = (path(program, inputs) for path in paths(**options))
    assert contents(a) == contents(b)
    return a


def raises_on_both(
    error: type[TenferroError], program: ExecProgram, inputs: Sequence[Any], match: str | None = None, **options: Any
) -> Any:
    """The error that both paths raise."""
    caught = []
    for path in paths(**options):
        with pytest.raises(error, match=match) as info:
            path(program, inputs)
        caught.append(info.value)
    assert caught[0].to_json() == caught[1].to_json()
    return caught[0]


def run(build: Callable[..., Value | tuple[Value, ...]], *arrays: Array) -> list[Array]:
    """Results of `traced`; checked: all ways agree, types are the rule's, operands are untouched."""
    p = to_exec(traced(build, *arrays))
    before = [x.copy() for x in arrays]
    results = both(p, arrays, checking=True)
    assert all(map(same_bits, results, GraphExecutor().eval_exec_ir(p, arrays)))
    assert all(map(same_bits, arrays, before))
    for result, type_ in zip(results, p.output_types, strict=True):
        assert (DType.of(result), result.shape) == (type_.dtype, type_.shape)
    return results


# --- a second interpreter, in NumPy, that shares no code with the runtime ---------------------------------------------


def dot(op: ops.DotGeneral, lhs: Array, rhs: Array) -> Array:
    """By einsum: one letter an axis, paired axes share theirs."""
    left = list(ascii_letters[: lhs.ndim])
    right = list(ascii_letters[lhs.ndim : lhs.ndim + rhs.ndim])
    for a, b in [
        *zip(op.lhs_contracting_dims, op.rhs_contracting_dims, strict=True),
        *zip(op.lhs_batch_dims, op.rhs_batch_dims, strict=True),
    ]:
        assert lhs.shape[a] == rhs.shape[b]
        right[b] = left[a]
    out = [left[a] for a in free_axes(lhs.ndim, op.lhs_contracting_dims, op.lhs_batch_dims)]
    out += [right[a] for a in free_axes(rhs.ndim, op.rhs_contracting_dims, op.rhs_batch_dims)]
    out += [left[a] for a in op.lhs_batch_dims]
    return np.asarray(np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", lhs, rhs))


def interpret(program: GraphProgram | ExecProgram, inputs: Sequence[Array]) -> list[Array]:
    """Outputs of a program of products, moves and sums."""
    env = dict(zip(program.input_slots, inputs, strict=True))
    for ins in program.instructions:
        args = [env[s] for s in ins.input_slots]
        value: Any
        match ins.op:
            case ops.Transpose(perm):
                value = args[0].transpose(perm)
            case ops.Reshape(shape):
                value = args[0].reshape([evaluate(e, [a.shape for a in args]) for e in shape], order="F")
            case ops.DotGeneral() as op:
                value = dot(op, *args)
            case ops.DynamicTruncate(axis):
                value = args[0].take(range(int(args[1])), axis)
            case ops.Add():
                value = args[0] + args[1]
            case ops.Multiply():
                value = args[0] * args[1]
            case ops.Negate():
                value = -args[0]
            case ops.ReduceSum(axes):
                value = args[0].sum(axes)
            case op:
                raise AssertionError(op)
        env[ins.output_slots[0]] = np.asarray(value)
    return [env[s] for s in program.output_slots]
