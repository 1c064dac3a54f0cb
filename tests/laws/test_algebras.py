"""The engine of the algebras computes what their definitions say, by the fast path and by the required one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fuzz.generate import Config
from fuzz.generate.config import DEFAULT as CONFIG
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import Execution, NativeExecutor
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import Op, Policy, free_axes
from tenferro_ref.runtime import GraphExecutor, SemiringBackend
from tenferro_ref.runtime.kernels import bind
from tenferro_ref.runtime.semiring import ALGEBRAS, SEMIRING, NumpyCore
from tenferro_ref.tensor import column_major
from tests.laws.cases import Array, generated

pytestmark = pytest.mark.once


#: Addition, multiplication and zero of each.
DEFINITIONS: dict[str, tuple[np.ufunc, np.ufunc, Any]] = {
    "max-plus": (np.maximum, np.add, -np.inf),
    "min-plus": (np.minimum, np.add, np.inf),
    "max-times": (np.maximum, np.multiply, 0.0),
    "boolean": (np.logical_or, np.logical_and, False),
}
OPS = tuple(op for op in CONFIG.ops if op in SEMIRING)


def programs(*dtypes: DType) -> list[Case]:
    count = 240 if dtypes == (DType.Bool,) else 120  # many come with numbers, which the Boolean algebra does not take
    return generated(2, count, Config(ops=OPS, dtypes=dtypes, max_instructions=8))


def engine(name: str, case: Case, *, fast: bool) -> tuple[Array, ...]:
    backend = SemiringBackend.of(name) if fast else SemiringBackend(NumpyCore(ALGEBRAS[name]))
    return tuple(GraphExecutor(backend, checking=True).eval_exec_ir(compile_std_to_exec(case.program), case.inputs))


def definition(name: str, case: Case) -> list[Array]:
    """The program's outputs, instruction by instruction from the definition of the algebra."""
    program = case.program
    values: dict[int, Array] = dict(zip(program.input_slots, case.inputs, strict=True))
    with np.errstate(all="ignore"):
        for ins in program.instructions:
            operands = [values[slot] for slot in ins.input_slots]
            values[ins.output_slots[0]] = one(name, ins.op, program.policy, operands)
    return [values[slot] for slot in program.output_slots]


def one(name: str, op: Op, policy: Policy, operands: Sequence[Array]) -> Array:
    plus, times, zero = DEFINITIONS[name]
    if isinstance(op, ops.Add | ops.Multiply):
        return np.asarray((plus if isinstance(op, ops.Add) else times)(*operands))
    if isinstance(op, ops.ReduceSum):
        return total(plus, operands[0], op.axes, zero)
    if isinstance(op, ops.ReduceSumSquares):
        return total(plus, times(operands[0], operands[0]), op.axes, zero)
    if isinstance(op, ops.DotGeneral):
        x, y = operands
        left = free_axes(x.ndim, op.lhs_contracting_dims, op.lhs_batch_dims)
        right = free_axes(y.ndim, op.rhs_contracting_dims, op.rhs_batch_dims)
        x = x.transpose([*left, *op.lhs_batch_dims, *op.lhs_contracting_dims])
        y = y.transpose([*right, *op.rhs_batch_dims, *op.rhs_contracting_dims])
        n = len(op.lhs_contracting_dims)
        x = x.reshape([*x.shape[: len(left)], *(1,) * len(right), *x.shape[len(left) :]])
        y = y.reshape([*(1,) * len(left), *y.shape])
        product = times(x, y)
        return total(plus, product, tuple(range(product.ndim - n, product.ndim)), zero)
    kernel = bind(op, policy)
    if isinstance(op, ops.EmbedDiag | ops.Tril | ops.Triu | ops.Pad):
        (x,) = operands
        kept = kernel(np.ones(x.shape, np.bool_, order="F"))
        return np.asarray(np.where(kept, kernel(x), x.dtype.type(zero)))
    return kernel(*operands)


def total(plus: np.ufunc, x: Array, axes: tuple[int, ...], zero: Any) -> Array:
    """The sum over axes; that of no element is zero, which is neutral only to elements that the algebra has."""
    if 0 in (x.shape[axis] for axis in axes):
        return np.full([e for axis, e in enumerate(x.shape) if axis not in axes], zero, x.dtype)
    return np.asarray(plus.reduce(x, axis=axes)) if axes else x


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "required"])
@pytest.mark.parametrize("name", DEFINITIONS)
def test_programs_mean_what_the_definition_says(name: str, fast: bool) -> None:
    """But for the sign of zeros, which is open."""
    checked = 0
    for case in programs(*(DType.F32, DType.F64) if name != "boolean" else (DType.Bool,)):
        if not {t.dtype for t in case.program.slot_types.values()} <= ALGEBRAS[name].dtypes:
            continue
        try:
            outputs = engine(name, case, fast=fast)
        except TenferroError as error:
            assert "nothing to sum" in str(error)  # noqa: PT017 - what the policy says is an error
            continue
        checked += 1
        for a, b in zip(outputs, definition(name, case), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), case.program
    assert checked > 40


def _with_zeros_of(other: Array, x: Array) -> Array:
    """`x` with the signs that the zeros of another array have where both are zero; of complex numbers by parts."""
    if np.iscomplexobj(x):
        signed = np.empty_like(x)
        signed.real, signed.imag = _with_zeros_of(other.real, x.real), _with_zeros_of(other.imag, x.imag)
        return signed
    return np.asarray(np.where((x == 0) & (other == 0), other, x))


@dataclass(frozen=True)
class Standard(NativeExecutor):
    """The engine over the standard algebra, held to enclosures; the sign of its zeros, which is open, is the native one."""

    name: str = "algebra"
    fast: bool = False

    def run(self, case: Case) -> Execution:
        pairs = zip(engine("standard", case, fast=self.fast), NativeExecutor.run(self, case).outputs, strict=True)
        return Execution(tuple(column_major(_with_zeros_of(b, a)) for a, b in pairs))

    def bit_exact(self, case: Case) -> bool:
        return False


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "required"])
def test_the_standard_algebra_is_that_of_the_native_executor(fast: bool) -> None:
    for case in programs(DType.F32, DType.F64, DType.C32):
        answer = judge(Standard(fast=fast), Reference(case, NativeExecutor()))
        assert answer.verdict in (Verdict.PASS, Verdict.UNDECIDED), answer.reason
