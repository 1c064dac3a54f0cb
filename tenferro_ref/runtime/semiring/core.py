"""The required and the optional part of an algebra's backend, and NumPy implementations of both for any algebra.

Required: batched matrix products and reductions. Optional: contractions without the detour over matrices, and
elementwise products. Which of them runs an instruction is decided in `backend`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tenferro_ref import ops
from tenferro_ref.ops import DEFAULT_POLICY, free_axes
from tenferro_ref.runtime.kernels import run_kernel
from tenferro_ref.runtime.kernels.base import Values
from tenferro_ref.runtime.semiring.algebra import ALGEBRAS, Algebra


class SemiringCore(Protocol):
    """The required part."""

    @property
    def algebra(self) -> Algebra:
        """What plus and times are."""
        ...

    def batched_gemm(self, lhs: Values, rhs: Values) -> Values:
        """`[M, K, B] x [K, N, B] -> [M, N, B]`, no extent 0, all column-major."""
        ...

    def reduce_sum(self, x: Values, axes: tuple[int, ...]) -> Values:
        """The sum over `axes`, none of extent 0; they disappear."""
        ...


class SemiringFastPath(Protocol):
    """The optional part; None means: not this one, take the required path."""

    def contract(self, op: ops.DotGeneral, lhs: Values, rhs: Values) -> Values | None:
        """The contraction itself; no extent is 0."""
        ...

    def elementwise_mul(self, lhs: Values, rhs: Values) -> Values | None:
        """The product of equal shapes, or of a tensor and a scalar."""
        ...


@dataclass(frozen=True, slots=True)
class NumpyCore:
    """Any algebra: a column of a product is the sum over K of the lhs matrix times a row spread over its columns."""

    algebra: Algebra

    def batched_gemm(self, lhs: Values, rhs: Values) -> Values:
        if self.algebra is ALGEBRAS["standard"]:
            return run_kernel(ops.DotGeneral((1,), (0,), (2,), (2,)), DEFAULT_POLICY, lhs, rhs)[0]
        result = np.empty((lhs.shape[0], rhs.shape[1], lhs.shape[2]), lhs.dtype, order="F")
        for column in range(rhs.shape[1]):
            result[:, column, :] = self.algebra.plus.fold(self.algebra.times(lhs, rhs[:, column, :]), (1,))
        return result

    def reduce_sum(self, x: Values, axes: tuple[int, ...]) -> Values:
        return self.algebra.plus.fold(x, axes)


@dataclass(frozen=True, slots=True)
class NumpyFastPath:
    """Any algebra: the operands, axes aligned with the result's, are multiplied slice by slice and summed up."""

    algebra: Algebra

    def contract(self, op: ops.DotGeneral, lhs: Values, rhs: Values) -> Values | None:
        if self.algebra is ALGEBRAS["standard"]:
            return run_kernel(op, DEFAULT_POLICY, lhs, rhs)[0]
        left = free_axes(lhs.ndim, op.lhs_contracting_dims, op.lhs_batch_dims)
        right = free_axes(rhs.ndim, op.rhs_contracting_dims, op.rhs_batch_dims)
        extents = [lhs.shape[axis] for axis in op.lhs_contracting_dims]
        # contracted axes first, then those of the result: lhs free, rhs free, batch
        x = lhs.transpose([*op.lhs_contracting_dims, *left, *op.lhs_batch_dims])
        y = rhs.transpose([*op.rhs_contracting_dims, *right, *op.rhs_batch_dims])
        x = x.reshape(
            [*extents, *(lhs.shape[a] for a in left), *(1,) * len(right), *(lhs.shape[a] for a in op.lhs_batch_dims)]
        )
        y = y.reshape([*extents, *(1,) * len(left), *y.shape[len(extents) :]])
        first, *rest = np.ndindex(*extents)
        result = self.algebra.times(x[first], y[first])
        for index in rest:
            result = self.algebra.plus(result, self.algebra.times(x[index], y[index]))
        return result

    def elementwise_mul(self, lhs: Values, rhs: Values) -> Values | None:
        return self.algebra.times(lhs, rhs)
