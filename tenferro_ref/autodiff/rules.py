"""The two tables of derivative rules, and what rows are written with (SEMANTICS B.2).

A row of `JVP` says how tangents pass an op; a row of `TRANSPOSE` how cotangents pass back through an op that is linear in some
operands. Vector-Jacobian products need no table of their own: they are the transpose of the linear part of a JVP.
An absent tangent or cotangent is a zero: None. Rows use the operators of `Value`, and emit ops of the vocabulary only, so
that a derivative program is an ordinary program, and can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tenferro_ref import ops
from tenferro_ref.autodiff.errors import UnsupportedMetadata
from tenferro_ref.dims import Extent, is_exact
from tenferro_ref.ops import TensorType
from tenferro_ref.program import Value
from tenferro_ref.program.value import dim_exprs
from tenferro_ref.table import Table


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear operand while its op is transposed: there is no value, only a type, in terms of the new program's inputs."""

    type: TensorType


Operand: TypeAlias = Value | Linear
Optional: TypeAlias = Value | None

#: `(op, primal operands, primal results, tangents of the operands)`; one tangent a result, bare where there is one result.
#: A tangent may be absent, but not all of them: that of an only operand is there.
JvpRow: TypeAlias = Callable[[Any, tuple[Value, ...], tuple[Value, ...], tuple[Any, ...]], Any]
Cotangents: TypeAlias = tuple[Optional, ...]
#: `(op, operands, cotangent of the one result)`; one cotangent an operand, None for those that are not linear.
TransposeRow: TypeAlias = Callable[[Any, tuple[Operand, ...], Value], Cotangents]

JVP: Table[JvpRow] = Table("jvp")
TRANSPOSE: Table[TransposeRow] = Table("transpose")


def conj(x: Value) -> Value:
    """The complex conjugate; a real value itself."""
    return x.builder.apply(ops.Conj(), x) if x.dtype.is_complex else x


def linear(x: Operand) -> bool:
    """Whether an operand carries the linear variable."""
    return isinstance(x, Linear)


def total(*terms: Optional) -> Optional:
    """Sum of the terms that exist, in order; None if none does."""
    result: Optional = None
    for term in terms:
        if term is not None:
            result = term if result is None else result + term
    return result


def zeros(builder: Any, type_: TensorType) -> Value:
    """Zeros of a type: a constant, broadcast."""
    zero: Value = builder.constant(0, type_.dtype)
    return zero.broadcast_to(type_.shape)


def or_zeros(tangent: Optional, like: Value) -> Value:
    """The tangent of `like`, made of zeros if it is absent."""
    return zeros(like.builder, like.type) if tangent is None else tangent


def widened(tangent: Value, type_: TensorType) -> Value:
    """A tangent with the type of its result: an op may broadcast an operand of rank 0, or take it to a complex dtype."""
    return tangent.astype(type_.dtype).broadcast_to(type_.shape)


def narrowed(cotangent: Value, type_: TensorType) -> Value:
    """A cotangent with the type of its operand: the adjoint of `widened` (a complex number's real part is what counts)."""
    surplus = cotangent.ndim - type_.rank
    stretched = [
        surplus + axis
        for axis, extent in enumerate(type_.shape)
        if extent == 1 and cotangent.shape[surplus + axis] != 1
    ]
    if surplus or stretched:
        cotangent = summed(cotangent, (*range(surplus), *stretched)).reshape(type_.shape)
    return cotangent.astype(type_.dtype)


def summed(x: Value, axes: Sequence[int]) -> Value:
    """`x` summed over `axes`: the adjoint of a broadcast; zeros where an axis is empty, whatever the program's policy says."""
    if any(x.shape[axis] == 0 for axis in axes):
        return zeros(x.builder, x.type.drop_axes(axes))
    return x.sum(axes) if axes else x


def expanded(x: Value, axes: Sequence[int], type_: TensorType, like: Sequence[Value] = ()) -> Value:
    """`x`, which has no axes `axes`, repeated along them: the adjoint of ReduceSum.

    Parameters
    ----------
    like
        Values whose running shape gives extents that are only bounded.
    """
    kept = tuple(axis for axis in range(type_.rank) if axis not in axes)
    if not like and not all(map(is_exact, type_.shape)):
        raise UnsupportedMetadata(op="BroadcastInDim", detail=f"{type_} has an extent that only a run knows")
    exprs, providers = dim_exprs("BroadcastInDim", x, type_.shape, like)
    return x.builder.apply(ops.BroadcastInDim(exprs, kept), x, *providers)


def part(x: Value, axis: int, start: int, end: int) -> Value:
    """`x` from `start` to `end` along one axis."""
    return x[(slice(None),) * axis + (slice(start, end),)]


def constant_extents(op: ops.Op, type_: TensorType) -> tuple[int, ...]:
    """The extents of a type as integers.

    Raises
    ------
    UnsupportedMetadata
        One is symbolic.
    """
    return tuple(constant_extent(op, extent) for extent in type_.shape)


def constant_extent(op: ops.Op, extent: Extent) -> int:
    """An extent as an integer; raises as `constant_extents`."""
    if not isinstance(extent, int):
        raise UnsupportedMetadata(op=op.called, detail=f"{extent} is not constant")
    return extent


__all__ = [
    "JVP",
    "TRANSPOSE",
    "Cotangents",
    "Linear",
    "Operand",
    "Optional",
    "conj",
    "constant_extent",
    "constant_extents",
    "expanded",
    "linear",
    "narrowed",
    "or_zeros",
    "part",
    "summed",
    "total",
    "widened",
    "zeros",
]
