"""What the kernels make of special values is in the enclosures: every tuple of them, for every op and dtype that takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from oracle.case import Case
from oracle.enclosure import MODELS, Enclosure, enclose
from oracle.peers import Execution, NativeExecutor, attempt
from tenferro_ref import ops
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.ops import CompareDir, Op
from tenferro_ref.program import GraphBuilder
from tenferro_ref.tensor import Array
from tests.op_examples import admitted, policy_for

pytestmark = pytest.mark.once

REDUCTIONS = (ops.ReduceSum, ops.ReduceProd, ops.ReduceMax, ops.ReduceMin)


#: Dtypes that only StableHLO's policy admits; all of them in the nightly run.
FOREIGN = tuple(d for d in DType if d not in ENGINE_DTYPES)
SAMPLE = (DType.BF16, DType.F8E5M2, DType.I8, DType.U64)
DTYPES = [*ENGINE_DTYPES, *SAMPLE, *(pytest.param(d, marks=pytest.mark.nightly) for d in FOREIGN if d not in SAMPLE)]


def takes(op: type[Op], dtype: DType) -> bool:
    """Whether some policy admits the dtype; arithmetic of F8E8M0FNU has no enclosure, since it has neither zero nor sign."""
    if dtype is DType.F8E8M0FNU:
        return op in (ops.Clamp, ops.Compare, ops.Convert, ops.Maximum, ops.Minimum, ops.Select)
    return dtype in admitted(op) or (
        dtype in FOREIGN and dtype.engine in op.dtypes | op.stablehlo_dtypes and (op.unsigned or not dtype.is_unsigned)
    )


def floats(dtype: DType, *, few: bool) -> Array:
    limits = dtype.finfo
    largest, least, normal = float(limits.max), float(limits.smallest_subnormal), float(limits.smallest_normal)
    chosen = [0.0, -0.0, 1, -1, 0.5, -2.5, least, -normal, largest, -largest, np.inf, -np.inf, np.nan]
    more = [2, -2, -0.5, 3, -3, 1.5, 2.5, -least, normal, 1e4, -1e4, largest / 2, np.pi / 2, np.sqrt(largest)]
    values = np.array(chosen if few else chosen + more)
    if dtype is DType.F8E8M0FNU:  # powers of two alone: no zero, no sign, no infinity
        values = values[values > 0]
    return values.astype(dtype.numpy)


def specials(dtype: DType, operands: int) -> Array:
    """Fewer where there are more operands."""
    if dtype.is_complex:
        parts = floats(dtype.real, few=True)
        pairs = np.empty((parts.size, parts.size), dtype.numpy)
        pairs.real, pairs.imag = parts[:, None], parts
        return pairs.ravel()
    if dtype.is_float:
        return floats(dtype, few=operands > 2)
    if dtype is DType.Bool:
        return np.array([False, True])
    least, greatest = dtype.limits
    near = [0, 1, -1, 2, -2, 3, 7, 46341, greatest, least, greatest - 1, least + 1]
    return np.unique(np.array([v for v in near if least <= v <= greatest], object)).astype(dtype.numpy)


def tuples(values: Array, count: int) -> list[Array]:
    """All tuples of `count` of the values, one array an operand."""
    return [np.ravel(a) for a in np.meshgrid(*[values] * count)]


def applied(op: Op, operands: Sequence[Array], dtype: DType) -> tuple[Array, Enclosure]:
    b = GraphBuilder(policy=policy_for(type(op), dtype))
    case = Case.of(b.build(b.apply(op, *(b.input(DType.of(a), a.shape) for a in operands))), list(operands))
    result = attempt(NativeExecutor(), case)
    assert isinstance(result, Execution), result
    (enclosure,) = enclose(case.program, case.inputs, MODELS[NativeExecutor().model])
    return result.outputs[0], enclosure


def assert_admitted(op: Op, operands: Sequence[Array], dtype: DType) -> None:
    got, enclosure = applied(op, operands, dtype)
    outside = np.flatnonzero(~enclosure.contains(got))
    shown = [(*(a[i].tolist() for a in operands), got[i].tolist()) for i in outside[:5]]
    assert not shown, f"{op} of {dtype.name}: {outside.size} outside, as {shown}"


def instances(op: type[Op], dtype: DType) -> Iterator[Op]:
    if op is ops.Convert:
        yield from map(ops.Convert, ENGINE_DTYPES if dtype in ENGINE_DTYPES else DType)
    elif op is ops.Compare:
        ordered = dtype.is_int or dtype.is_float
        yield from map(ops.Compare, CompareDir if ordered else [CompareDir.Eq])
    else:
        yield op()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elementwise(dtype: DType) -> None:
    for op in ops.ELEMENTWISE:
        if not takes(op, dtype):
            continue
        values = specials(dtype, op.arity)
        if op is ops.Select:
            operands = [np.ravel(a) for a in np.meshgrid([False, True], values, values)]
        else:
            operands = tuples(values, op.arity)
        if dtype.is_int and op.__name__ in ("Pow", "Divide", "Remainder"):  # what has an error is no value
            kept = operands[1] >= 0 if op is ops.Pow else operands[1] != 0
            operands = [a[kept] for a in operands]
        for instance in instances(op, dtype):
            assert_admitted(instance, operands, dtype)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.F16, DType.BF16], ids=str)
def test_functions_of_the_reference_alone(dtype: DType) -> None:
    x = np.concatenate([specials(dtype, 1), np.arange(-9, 9).astype(dtype.numpy)])
    for function in ops.Special.functions:
        assert_admitted(ops.Special(function), [x], dtype)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reductions(dtype: DType, count: int) -> None:
    """Over one axis; over two, each of which is a fold of its own."""
    rows = np.stack(tuples(specials(dtype, count), count), -1)
    for op in REDUCTIONS:
        if takes(op, dtype):
            for shape in ((count,), (count, 1), (1, count)):
                axes = tuple(range(1, 1 + len(shape)))
                assert_admitted(op(axes), [rows.reshape(-1, *shape)], dtype)  # type: ignore[call-arg]


@pytest.mark.parametrize("dtype", [d for d in ENGINE_DTYPES if not d.is_complex], ids=lambda d: d.name)
def test_a_real_product_of_two_factors_is_decided(dtype: DType) -> None:
    rows = np.stack(tuples(specials(dtype, 2), 2), -1)
    if dtype in admitted(ops.ReduceProd):
        _, enclosure = applied(ops.ReduceProd((1,)), [rows], dtype)
        assert enclosure.decided.all()
