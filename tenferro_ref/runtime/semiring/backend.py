"""`SemiringBackend`: runs ExecPrograms over an algebra instead of the real or complex numbers.

The table says what each op is in an algebra: a sum or product of it, a move of elements, a fill with its zero, or nothing.
It is the same for every algebra; `check` refuses a program with an op that has no row before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from tenferro_ref import ops
from tenferro_ref.errors import InvalidArgument, UsageError
from tenferro_ref.ops import DEFAULT_POLICY, OPS, Op, Policy, TensorType
from tenferro_ref.program import ExecProgram
from tenferro_ref.runtime.backend import Contract, NumpyBackend, NumpySession
from tenferro_ref.runtime.fusion import FusionPlan
from tenferro_ref.runtime.kernels import bind
from tenferro_ref.runtime.kernels.base import Values
from tenferro_ref.runtime.kernels.contraction import conj, matrix_form
from tenferro_ref.runtime.semiring.algebra import ALGEBRAS
from tenferro_ref.runtime.semiring.core import NumpyCore, NumpyFastPath, SemiringCore, SemiringFastPath
from tenferro_ref.suggest import did_you_mean
from tenferro_ref.table import Table
from tenferro_ref.tensor import Array


@dataclass(frozen=True, slots=True)
class Semiring:
    """The ops of an algebra: its required part, its optional one if it has one, and the program's policy."""

    core: SemiringCore
    fast: SemiringFastPath | None
    policy: Policy = DEFAULT_POLICY

    def contract(self, op: ops.DotGeneral, lhs: Values, rhs: Values) -> Values:
        """DotGeneral by the fast path, else by Transpose, Reshape and one batched matrix product."""
        form = matrix_form(op, lhs.shape, rhs.shape)
        if 0 in form.shape or form.k == 0:
            return self._nothing(op, form.shape, lhs.dtype)
        result = None if self.fast is None else self.fast.contract(op, lhs, rhs)
        if result is None:
            left = lhs.transpose(form.lhs_axes).reshape(form.m, form.k, form.b, order="F")
            right = rhs.transpose(form.rhs_axes).reshape(form.k, form.n, form.b, order="F")
            result = self.core.batched_gemm(left, right)
        return result.reshape(form.shape, order="F")

    def _nothing(self, op: ops.DotGeneral, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Values:
        algebra = self.core.algebra
        if 0 not in shape and not algebra.empty_contraction and self.policy.empty_reduction == "error":
            raise InvalidArgument(
                op=op.name,
                argument="lhs_contracting_dims",
                detail=f'nothing to sum over in {algebra.name}; policy empty_reduction="identity" gives {algebra.zero}',
            )
        return np.full(shape, algebra.zero, dtype, order="F")

    def multiply(self, x: Values, y: Values) -> Values:
        """Elementwise product by the fast path, else as matrix products with K = 1."""
        shape = y.shape if x.ndim == 0 else x.shape
        result = None if self.fast is None else self.fast.elementwise_mul(x, y)
        if result is None and 0 not in shape:
            # a scalar multiplies a row of N elements; else each element is a 1 x 1 matrix of a batch
            x, y = (y, x) if y.ndim == 0 else (x, y)
            left = x.reshape(1, 1, -1, order="F")
            result = self.core.batched_gemm(left, y.reshape((1, -1, 1) if x.ndim == 0 else (1, 1, -1), order="F"))
        return np.empty(shape, x.dtype, order="F") if result is None else result.reshape(shape, order="F")

    def reduce_sum(self, x: Values, axes: tuple[int, ...]) -> Values:
        """Sum over `axes`; that of no element is the algebra's zero."""
        if not axes:
            return x
        if x.size == 0:
            shape = tuple(extent for axis, extent in enumerate(x.shape) if axis not in axes)
            return np.full(shape, self.core.algebra.zero, x.dtype, order="F")
        return self.core.reduce_sum(x, axes)


Row: TypeAlias = Callable[..., Values]
SEMIRING: Table[Row] = Table("semiring kernels")


@SEMIRING.row(ops.Add)
def _add(semiring: Semiring, op: Op, x: Values, y: Values) -> Values:
    algebra = semiring.core.algebra
    algebra.admit(op, x, y)
    return algebra.plus(x, y)


@SEMIRING.row(ops.Multiply)
def _multiply(semiring: Semiring, op: Op, x: Values, y: Values) -> Values:
    semiring.core.algebra.admit(op, x, y)
    return semiring.multiply(x, y)


@SEMIRING.row(ops.ReduceSum)
def _reduce_sum(semiring: Semiring, op: ops.ReduceSum, x: Values) -> Values:
    semiring.core.algebra.admit(op, x)
    return semiring.reduce_sum(x, op.axes)


@SEMIRING.row(ops.ReduceSumSquares)
def _reduce_sum_squares(semiring: Semiring, op: ops.ReduceSumSquares, x: Values) -> Values:
    semiring.core.algebra.admit(op, x)
    return semiring.reduce_sum(semiring.multiply(x, x), op.axes)


@SEMIRING.row(ops.DotGeneralWithConj)
def _dot_general_with_conj(semiring: Semiring, op: ops.DotGeneralWithConj, lhs: Values, rhs: Values) -> Values:
    return _dot_general(semiring, op.plain, *op.conjugated(conj, lhs, rhs))


@SEMIRING.row(ops.DotGeneral)
def _dot_general(semiring: Semiring, op: ops.DotGeneral, lhs: Values, rhs: Values) -> Values:
    semiring.core.algebra.admit(op, lhs, rhs)
    return semiring.contract(op, lhs, rhs)


@SEMIRING.row(
    ops.Transpose, ops.Reshape, ops.BroadcastInDim, ops.ExtractDiag, ops.Select, ops.Gather, ops.GatherDynamicSliceSizes, ops.Slice, ops.DynamicSlice,
    ops.DynamicUpdateSlice, ops.Concatenate, ops.Reverse,
)  # fmt: skip
def _move(semiring: Semiring, op: Op, *arrays: Values) -> Values:
    """Elements change places, whatever they are."""
    return bind(op, semiring.policy)(*arrays)


@SEMIRING.row(ops.EmbedDiag, ops.Tril, ops.Triu, ops.Pad)
def _fill(semiring: Semiring, op: Op, x: Values) -> Values:
    """A move, with the algebra's zero where the standard kernel puts 0."""
    semiring.core.algebra.admit(op, x)
    moved, kept = (bind(op, semiring.policy)(a) for a in (x, np.ones(x.shape, np.bool_, order="F")))
    return np.where(kept, moved, x.dtype.type(semiring.core.algebra.zero))


@SEMIRING.row(ops.Constant, ops.ShapeOf, ops.DynamicTruncate)
def _host(semiring: Semiring, op: Op, *arrays: Values) -> Values:
    """Runs on the host, where no algebra is: a value as it is written, an extent, a leading part."""
    return bind(op, semiring.policy)(*arrays)


SEMIRING.unsupported("pads with the number 0 on the host; use Pad, which fills with the algebra's zero", ops.PadToMatch)
SEMIRING.unsupported("adds elements outside of the contract (batched_gemm, reduce_sum)", ops.Scatter)
SEMIRING.unsupported("reduces with times, which the contract (batched_gemm, reduce_sum) does not", ops.ReduceProd)
SEMIRING.unsupported("extension runtimes compute in the standard algebra", ops.Extension)
SEMIRING.unsupported("has no meaning in a semiring", *SEMIRING.holes(OPS))


class SemiringSession(NumpySession):
    """A session that looks up ops in `SEMIRING`; it has no path for fused segments or products of broadcasts."""

    __slots__ = ("semiring",)

    def __init__(self, semiring: Semiring) -> None:
        self.semiring = semiring

    def execute_backend_op(self, op: Op, policy: Policy, operands: tuple[Array, ...]) -> tuple[Array, ...]:
        return (SEMIRING[type(op)](replace(self.semiring, policy=policy), op, *operands),)

    def execute_fused(
        self, plan: FusionPlan, policy: Policy, type_: TensorType, values: Mapping[int, Array]
    ) -> Mapping[int, Array] | None:
        return None

    def broadcast_multiply(self, shape: tuple[int, ...], lhs: Array, rhs: Array) -> Array | None:
        return None


class SemiringBackend(NumpyBackend):
    """Backend of an algebra, for `GraphExecutor`; of those in `ALGEBRAS` it is `SemiringBackend.of("max-plus")`.

    Parameters
    ----------
    core, fast
        The required part, and the optional one where there is one.
    """

    def __init__(self, core: SemiringCore, fast: SemiringFastPath | None = None) -> None:
        self.semiring = Semiring(core, fast)

    @classmethod
    def of(cls, name: str) -> SemiringBackend:
        """NumPy's backend of a known algebra, with its fast path.

        Raises
        ------
        UsageError
            There is no algebra of that name.
        """
        if name not in ALGEBRAS:
            raise UsageError(detail=f"no algebra {name!r}{did_you_mean(str(name), ALGEBRAS)}")
        algebra = ALGEBRAS[name]
        return cls(NumpyCore(algebra), NumpyFastPath(algebra))

    def check(self, program: ExecProgram) -> None:
        for ins in program.instructions:
            SEMIRING[type(ins.op)]  # raises for an op without a row

    def with_backend_session(self) -> SemiringSession:
        return SemiringSession(self.semiring)

    def dot_general(self, op: ops.DotGeneral, policy: Policy, lhs: Array, rhs: Array) -> Array:
        with self.with_backend_session() as session:
            return session.execute_backend_op(op, policy, (lhs, rhs))[0]

    @property
    def contraction(self) -> Contract | None:
        """`dot_general`, where there is a fast path for it to take."""
        return None if self.semiring.fast is None else self.dot_general
