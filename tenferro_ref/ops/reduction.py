"""Reductions (SEMANTICS 2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tenferro_ref.dtype import FLOAT, NUMERIC, REAL, DType
from tenferro_ref.errors import InvalidArgument
from tenferro_ref.ops.base import Op, Policy, TensorType, check_axes


@dataclass(frozen=True, slots=True)
class _Reduction(Op):
    axes: tuple[int, ...]
    stablehlo_dtypes: ClassVar = frozenset({DType.Bool})

    def check_dtypes(self, inputs: tuple[TensorType, ...], policy: Policy) -> None:  # type: ignore[override]
        if self.axes:  # over no axis a reduction is a copy, for every dtype
            Op.check_dtypes(self, inputs, policy)

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        (x,) = inputs
        check_axes(self, self.axes, x.rank)
        if policy.empty_reduction == "error":
            for axis in self.axes:
                if x.shape[axis] == 0:
                    raise InvalidArgument(
                        op=self.name,
                        argument="axes",
                        detail=f'axis {axis} has extent 0; set policy empty_reduction="identity" to admit it',
                    )
        return x.drop_axes(self.axes)


@dataclass(frozen=True, slots=True)
class ReduceSum(_Reduction):
    """Sum over `axes`; reduced axes disappear."""

    dtypes: ClassVar = NUMERIC
    needs_zero: ClassVar = True


@dataclass(frozen=True, slots=True)
class ReduceSumSquares(_Reduction):
    """Sum of `x * x` over `axes`, each square rounded; over no axis the squares themselves (SEMANTICS A.1)."""

    dtypes: ClassVar = FLOAT
    needs_zero: ClassVar = True
    stablehlo_dtypes: ClassVar = frozenset()
    check_dtypes = Op.check_dtypes  # over no axis, too


@dataclass(frozen=True, slots=True)
class ReduceProd(_Reduction):
    """Product over `axes`."""

    dtypes: ClassVar = NUMERIC


@dataclass(frozen=True, slots=True)
class ReduceMax(_Reduction):
    """Largest element over `axes`; NaN if there is one."""

    dtypes: ClassVar = REAL


@dataclass(frozen=True, slots=True)
class ReduceMin(_Reduction):
    """Smallest element over `axes`; NaN if there is one."""

    dtypes: ClassVar = REAL
