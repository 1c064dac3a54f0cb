"""Structural ops: they move or convert elements and compute nothing else (SEMANTICS 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tenferro_ref.dims import DimExpr, Extent, combine, equal_extents, product, substitute
from tenferro_ref.dtype import DType
from tenferro_ref.errors import AxisOutOfBounds, DuplicateAxis, InvalidArgument, RankMismatch, ShapeMismatch
from tenferro_ref.ops.base import Op, Policy, TensorType, check_admitted, check_axes, check_axis, check_length


@dataclass(frozen=True, slots=True)
class Transpose(Op):
    """Axis i of the result is axis `perm[i]` of the input."""

    perm: tuple[int, ...]

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        (x,) = inputs
        check_length(self, self.perm, x.rank)
        check_axes(self, self.perm, x.rank, "perm")
        return x.with_shape(x.shape[p] for p in self.perm)


def _target_shape(op: Op, shape: tuple[DimExpr, ...], inputs: tuple[TensorType, ...]) -> tuple[Extent, ...]:
    for expr in shape:
        if isinstance(expr, int) and expr < 0:
            raise InvalidArgument(op=op.name, argument="shape", detail=f"extent {expr} is negative")
    shapes = [t.shape for t in inputs]
    return tuple(substitute(expr, shapes) for expr in shape)


@dataclass(frozen=True, slots=True)
class Reshape(Op):
    """Column-major reinterpretation of input 0; further inputs only provide extents for `InputDim` expressions."""

    shape: tuple[DimExpr, ...]
    variadic: ClassVar = True

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        shape = _target_shape(self, self.shape, inputs)
        if equal_extents(product(inputs[0].shape), product(shape)) is False:
            raise ShapeMismatch(op=self.name, lhs=inputs[0].shape, rhs=shape)
        return inputs[0].with_shape(shape)


@dataclass(frozen=True, slots=True)
class BroadcastInDim(Op):
    """Input axis j becomes output axis `dims[j]`; its extent is 1 or that of the output."""

    shape: tuple[DimExpr, ...]
    dims: tuple[int, ...]
    variadic: ClassVar = True

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        x = inputs[0]
        check_length(self, self.dims, x.rank)
        shape = _target_shape(self, self.shape, inputs)
        check_axes(self, self.dims, len(shape), "dims")
        for extent, dim in zip(x.shape, self.dims, strict=True):
            if extent != 1 and equal_extents(extent, shape[dim]) is False:
                raise ShapeMismatch(op=self.name, lhs=x.shape, rhs=shape)
        return x.with_shape(shape)


@dataclass(frozen=True, slots=True)
class Convert(Op):
    """Cast to dtype `to` (the lossy cast of SEMANTICS 1.4)."""

    to: DType

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        check_admitted(self.name, self.to, policy)
        return inputs[0].with_dtype(self.to)


@dataclass(frozen=True, slots=True)
class ExtractDiag(Op):
    """The diagonal of axes `axis_a`, `axis_b`; `axis_b` disappears."""

    axis_a: int
    axis_b: int

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        (x,) = inputs
        check_axis(self, self.axis_a, x.rank)
        check_axis(self, self.axis_b, x.rank)
        if self.axis_a == self.axis_b:
            raise DuplicateAxis(op=self.name, axis=self.axis_b, role="axis_b")
        length = x.shape[self.axis_a]
        if equal_extents(length, x.shape[self.axis_b]) is not True:
            length = combine("min", length, x.shape[self.axis_b])
        shape = list(x.shape)
        shape[self.axis_a] = length
        del shape[self.axis_b]
        return x.with_shape(shape)


@dataclass(frozen=True, slots=True)
class EmbedDiag(Op):
    """A new axis at position `axis_b`, as long as `axis_a`; the value stands where both indices agree, else zero."""

    axis_a: int
    axis_b: int
    needs_zero: ClassVar = True

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        (x,) = inputs
        check_axis(self, self.axis_a, x.rank)
        if not 0 <= self.axis_b <= x.rank:
            raise AxisOutOfBounds(op=self.name, axis=self.axis_b, rank=x.rank + 1)
        shape = list(x.shape)
        shape.insert(self.axis_b, x.shape[self.axis_a])
        return x.with_shape(shape)


@dataclass(frozen=True, slots=True)
class _Triangle(Op):
    k: int
    needs_zero: ClassVar = True

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        (x,) = inputs
        if x.rank < 2:
            raise RankMismatch(op=self.name, expected=2, actual=x.rank)
        return x


@dataclass(frozen=True, slots=True)
class Tril(_Triangle):
    """Keep `row >= col - k` of the first two axes, zero elsewhere."""


@dataclass(frozen=True, slots=True)
class Triu(_Triangle):
    """Keep `row <= col - k` of the first two axes, zero elsewhere."""
