"""DotGeneral, and the form of it that conjugates its operands (SEMANTICS 2.5, A.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from tenferro_ref.dims import equal_extents
from tenferro_ref.dtype import INEXACT, INT, DType
from tenferro_ref.errors import AxisRoleConflict, DuplicateAxis, InvalidArgument, ShapeMismatch
from tenferro_ref.ops.base import Category, Op, Policy, TensorType, check_axis

T = TypeVar("T")


def free_axes(rank: int, *taken: tuple[int, ...]) -> tuple[int, ...]:
    """Axes of a rank that are in none of the lists, ascending."""
    used = {axis for axes in taken for axis in axes}
    return tuple(axis for axis in range(rank) if axis not in used)


@dataclass(frozen=True, slots=True)
class DotGeneral(Op):
    """Batched contraction; the result has lhs free, rhs free, then batch axes (in `lhs_batch_dims` order).

    StableHLO orders the result batch, lhs free, rhs free.
    """

    lhs_contracting_dims: tuple[int, ...]
    rhs_contracting_dims: tuple[int, ...]
    lhs_batch_dims: tuple[int, ...]
    rhs_batch_dims: tuple[int, ...]
    category: ClassVar = Category.FFI
    arity: ClassVar = 2
    same_dtype: ClassVar = 2
    dtypes: ClassVar = INEXACT
    stablehlo_dtypes: ClassVar = INT | {DType.Bool}

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        lhs, rhs = inputs
        sides = (
            (lhs, "lhs_contracting_dims", self.lhs_contracting_dims, "lhs_batch_dims", self.lhs_batch_dims),
            (rhs, "rhs_contracting_dims", self.rhs_contracting_dims, "rhs_batch_dims", self.rhs_batch_dims),
        )
        for side, _, contracting, _, batch in sides:
            for axis in (*contracting, *batch):
                check_axis(self, axis, side.rank)
        for _, contracting_role, contracting, batch_role, batch in sides:
            for role, axes in ((contracting_role, contracting), (batch_role, batch)):
                for i, axis in enumerate(axes):
                    if axis in axes[:i]:
                        raise DuplicateAxis(op=self.name, axis=axis, role=role)
        for _, _, contracting, _, batch in sides:
            for axis in contracting:
                if axis in batch:
                    raise AxisRoleConflict(op=self.name, axis=axis)
        pairs = (
            ("contracting_dims", self.lhs_contracting_dims, self.rhs_contracting_dims),
            ("batch_dims", self.lhs_batch_dims, self.rhs_batch_dims),
        )
        for what, left, right in pairs:
            if len(left) != len(right):
                raise InvalidArgument(
                    op=self.name, argument=what, detail=f"{len(left)} axes on the left, {len(right)} on the right"
                )
        for _, left, right in pairs:
            for a, b in zip(left, right, strict=True):
                if equal_extents(lhs.shape[a], rhs.shape[b]) is False:
                    raise ShapeMismatch(op=self.name, lhs=lhs.shape, rhs=rhs.shape)
        lhs_free = free_axes(lhs.rank, self.lhs_contracting_dims, self.lhs_batch_dims)
        rhs_free = free_axes(rhs.rank, self.rhs_contracting_dims, self.rhs_batch_dims)
        return lhs.with_shape(
            [lhs.shape[a] for a in lhs_free]
            + [rhs.shape[a] for a in rhs_free]
            + [lhs.shape[a] for a in self.lhs_batch_dims]
        )


@dataclass(frozen=True, slots=True)
class DotGeneralWithConj(DotGeneral):
    """The DotGeneral of operands that are conjugated where flagged; the flags mean nothing for real dtypes.

    Made by `DotConjFolding`; the engine's traced programs do not have it.
    """

    lhs_conj: bool = False
    rhs_conj: bool = False

    @property
    def plain(self) -> DotGeneral:
        """The same contraction of the operands as they are."""
        return DotGeneral(
            self.lhs_contracting_dims, self.rhs_contracting_dims, self.lhs_batch_dims, self.rhs_batch_dims
        )

    def conjugated(self, conj: Callable[[T], T], lhs: T, rhs: T) -> tuple[T, T]:
        """The operands, the flagged ones passed through `conj`."""
        return conj(lhs) if self.lhs_conj else lhs, conj(rhs) if self.rhs_conj else rhs
