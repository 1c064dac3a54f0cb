"""`Value`: a slot of a program that is being built, with NumPy's operators and methods.

An operator inserts what NumPy does implicitly: a Convert for promotion, a BroadcastInDim for broadcasting (SEMANTICS 1.1).
Functions (`exp`, `where`, ...) are in `tenferro_ref.frontend`, indexing is in `slicing`, the ops are in `tenferro_ref.ops`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dims import DimExpr, DimOp, Extent, InputDim, Unknown, UpperBound, combine, expr_of, product
from tenferro_ref.dtype import INEXACT, DType, as_dtype, promote
from tenferro_ref.errors import DTypeMismatch, InvalidArgument, ShapeMismatch, UsageError
from tenferro_ref.ops import CompareDir, Op, Policy, TensorType
from tenferro_ref.program.slicing import as_integer, index_steps

#: A number beside a value: a Python number adapts to its dtype, a NumPy scalar keeps its own (NEP 50).
Scalar: TypeAlias = complex | np.generic
Operand: TypeAlias = "Value | Scalar"
Axes: TypeAlias = int | Sequence[int]


class Builder(Protocol):
    """What a value needs of the program that it belongs to, a `GraphBuilder`."""

    division: Literal["integer", "float"]
    policy: Policy
    inputs: list[Value]

    def apply(self, op: Op, *operands: Value) -> Value:
        """Append an op with one output."""
        ...

    def apply_many(self, op: Op, *operands: Value) -> tuple[Value, ...]:
        """Append an op with any number of outputs."""
        ...

    def constant(self, value: complex | np.generic, dtype: DType = ...) -> Value:
        """Append a rank-0 constant."""
        ...


def _binary(op: Op) -> Callable[[Value, Operand], Value]:
    """The method of an operator: `op` on the promoted and broadcast operands."""
    return lambda self, other: elementwise(op, self, other)


def _reflected(op: Op) -> Callable[[Value, Scalar], Value]:
    """As `_binary`, for a number on the left."""
    return lambda self, other: elementwise(op, other, self)


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A slot of the program being built; operators append instructions to its builder.

    Binary operators promote and broadcast as NumPy does; integers stay integers under `/` and `**` unless the builder's
    `division` is "float". Extents are integers, or symbolic (`x.shape[0] * 4` is an extent too).
    """

    builder: Builder
    slot: int
    type: TensorType

    #: NumPy scalars and arrays on the left leave the operation to the methods here.
    __array_ufunc__ = None
    __hash__ = object.__hash__

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Extents, some of which may be symbolic."""
        return self.type.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.type.rank

    @property
    def dtype(self) -> DType:
        """Dtype of the elements."""
        return self.type.dtype

    def __bool__(self) -> bool:
        raise UsageError(detail="a Value has no truth value while its program is written; use where(condition, x, y)")

    # --- elementwise ---

    __add__, __radd__ = _binary(ops.Add()), _reflected(ops.Add())
    __sub__, __rsub__ = _binary(ops.Subtract()), _reflected(ops.Subtract())
    __mul__, __rmul__ = _binary(ops.Multiply()), _reflected(ops.Multiply())
    __truediv__, __rtruediv__ = _binary(ops.Divide()), _reflected(ops.Divide())
    __pow__, __rpow__ = _binary(ops.Pow()), _reflected(ops.Pow())
    __lt__, __le__ = _binary(ops.Compare(CompareDir.Lt)), _binary(ops.Compare(CompareDir.Le))
    __gt__, __ge__ = _binary(ops.Compare(CompareDir.Gt)), _binary(ops.Compare(CompareDir.Ge))

    def __neg__(self) -> Value:
        return self.builder.apply(ops.Negate(), self)

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        return self.builder.apply(ops.Abs(), self)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return elementwise(ops.Compare(CompareDir.Eq), self, other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return ~(self == other)

    def __invert__(self) -> Value:
        """Logical not, of Bool values: a Select, for there is no such op."""
        return choose(_truth(self, "~"), False, True)

    def __and__(self, other: Operand) -> Value:
        """Logical and, of Bool values."""
        return choose(_truth(self, "&"), _truth(other, "&"), False)

    def __or__(self, other: Operand) -> Value:
        """Logical or, of Bool values."""
        return choose(_truth(self, "|"), True, _truth(other, "|"))

    # --- structure ---

    @property
    def T(self) -> Value:  # noqa: N802 - NumPy's name
        """Axes reversed."""
        return self.transpose()

    def transpose(self, *perm: int | Sequence[int]) -> Value:
        """Axis i of the result is axis `perm[i]`; reversed without `perm`."""
        order = _flat(perm) if perm else tuple(reversed(range(self.ndim)))
        return self.builder.apply(ops.Transpose(normal_axes(order, self.ndim)), self)

    def reshape(
        self, *shape: Extent | Sequence[Extent], order: Literal["F", "C"] = "F", like: Sequence[Value] = ()
    ) -> Value:
        """Elements in column-major order (the engine's), or in NumPy's with `order="C"`; one extent may be -1.

        Parameters
        ----------
        shape
            Integers, or extents of values (`y.shape[0]`).
        like
            Values whose running shape gives the extents that are only bounded.

        Raises
        ------
        UsageError
            Another order than these.
        """
        if order not in ("F", "C"):
            raise UsageError(detail=f'order is "F" (column-major) or "C" (row-major), not {order!r}: reshape')
        target = _flat(shape)
        if order == "C":
            return self.T.reshape(target[::-1], like=like).T
        exprs, providers = dim_exprs("Reshape", self, target, like)
        if exprs.count(-1) == 1:
            own = product([e if isinstance(e, int) else InputDim(0, axis) for axis, e in enumerate(self.shape)])
            others = product([e for e in exprs if e != -1])
            rest = expr_of(own if others == 1 else combine("floordiv", own, others))
            exprs = tuple(rest if e == -1 else e for e in exprs)
        return self.builder.apply(ops.Reshape(exprs), self, *providers)

    def broadcast_to(self, shape: Sequence[Extent], *, like: Sequence[Value] = ()) -> Value:
        """NumPy's right-aligned broadcasting as one BroadcastInDim; nothing if the shape is that already.

        Raises
        ------
        ShapeMismatch
            The shape has fewer axes, or an extent that is neither 1 nor the one asked for.
        UsageError
            It is no shape.
        """
        if not isinstance(shape, Sequence):
            raise UsageError(detail=f"{type(shape).__name__} where a shape is needed: broadcast_to")
        if self.shape == tuple(shape) and not like:
            return self
        offset = len(shape) - self.ndim
        if offset < 0:
            raise ShapeMismatch(op="BroadcastInDim", lhs=self.shape, rhs=tuple(shape))
        exprs, providers = dim_exprs("BroadcastInDim", self, shape, like)
        return self.builder.apply(ops.BroadcastInDim(exprs, tuple(range(offset, len(shape)))), self, *providers)

    def astype(self, dtype: DType | str) -> Value:
        """The lossy cast of SEMANTICS 1.4; itself if the dtype is that already."""
        target = as_dtype(dtype)
        return self if target is self.dtype else self.builder.apply(ops.Convert(target), self)

    def __getitem__(self, index: Any) -> Value:
        """Integers, slices with steps, `...` and None, as in NumPy; errors as `slicing.index_steps`."""
        value = self
        for op, start in index_steps(self.type, index, self.builder.policy):
            starts = () if start is None else (self.builder.constant(start, DType.I64),)
            value = self.builder.apply(op, value, *starts)
        return value

    def __iter__(self) -> Iterator[Value]:
        if not self.shape or not isinstance(self.shape[0], int):
            raise UsageError(
                detail=f"a Value of type {self.type} cannot be iterated over: axis 0 has no constant extent"
            )
        return (self[i] for i in range(self.shape[0]))

    # --- reductions ---

    def sum(self, axis: Axes | None = None, *, keepdims: bool = False) -> Value:
        """Sum over `axis`, or over all axes."""
        return _reduce(ops.ReduceSum, self, axis, keepdims)

    def prod(self, axis: Axes | None = None, *, keepdims: bool = False) -> Value:
        """Product over `axis`, or over all axes."""
        return _reduce(ops.ReduceProd, self, axis, keepdims)

    def max(self, axis: Axes | None = None, *, keepdims: bool = False) -> Value:
        """Largest element over `axis`, or over all axes; NaN if there is one."""
        return _reduce(ops.ReduceMax, self, axis, keepdims)

    def min(self, axis: Axes | None = None, *, keepdims: bool = False) -> Value:
        """Smallest element over `axis`, or over all axes; NaN if there is one."""
        return _reduce(ops.ReduceMin, self, axis, keepdims)

    def __matmul__(self, other: Value) -> Value:
        """NumPy's `@`: the last axis with the last but one of `other`, leading axes broadcast; a DotGeneral."""
        return _matmul(self, other)

    def __rmatmul__(self, other: Operand) -> Value:
        return _matmul(other, self)


def _flat(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """`f(2, 3)` and `f((2, 3))` alike."""
    return tuple(values[0]) if len(values) == 1 and isinstance(values[0], Sequence) else values


def normal_axes(axes: Axes, rank: int) -> tuple[int, ...]:
    """Negative axes counted from the end; one out of range stays, for the op's rule to name.

    Raises
    ------
    UsageError
        An axis that is no integer.
    """
    numbers = [as_integer(a, "axis") for a in (axes if isinstance(axes, Sequence) else (axes,))]
    return tuple(a + rank if -rank <= a < 0 else a for a in numbers)


# --- promotion --------------------------------------------------------------------------------------------------------


def _lift(builder: Builder, operand: Operand, beside: DType | None) -> Value:
    """A value as it is, a number as a constant: of the dtype beside it, unless numbers of its type are of a wider kind."""
    if isinstance(operand, Value):
        return operand
    if isinstance(operand, np.generic):
        try:
            return builder.constant(operand, DType.of(np.asarray(operand)))
        except KeyError:
            raise UsageError(detail=f"{operand.dtype} is none of the dtypes") from None
    if isinstance(operand, bool):
        return builder.constant(operand, beside or DType.Bool)
    if isinstance(operand, int):
        return builder.constant(operand, DType.I64 if beside in (None, DType.Bool) else beside)
    if isinstance(operand, float):
        return builder.constant(
            operand, DType.F64 if beside is None or beside.is_int or beside is DType.Bool else beside
        )
    if isinstance(operand, complex):
        return builder.constant(operand, beside.complex if beside in INEXACT else DType.C64)
    kind = type(operand).__name__
    if isinstance(operand, InputDim | DimOp | UpperBound | Unknown):
        raise UsageError(
            detail=f"the extent {operand} is no number before the program runs: shape_of(x, axis) gives it"
        )
    raise UsageError(detail=f"{kind} is neither a Value nor a number; an array must be a program input")


def builder_of(*operands: Operand) -> Builder:
    """The builder of the first Value among `operands`."""
    for operand in operands:
        if isinstance(operand, Value):
            return operand.builder
    raise UsageError(detail="one operand at least must be a Value")


def promoted(builder: Builder, *operands: Operand, division: bool = False) -> tuple[Value, ...]:
    """The operands as values of their common dtype (SEMANTICS 1.1), numbers as constants.

    Parameters
    ----------
    division
        For Divide and Pow: integers become F64 if the builder's `division` is "float".
    """
    values = [o for o in operands if isinstance(o, Value)]
    beside = promote(v.dtype for v in values) if values else None
    lifted = [_lift(builder, o, beside) for o in operands]
    common = promote(v.dtype for v in lifted)
    if division and common.is_int and builder.division == "float":
        common = DType.F64
    return tuple(v.astype(common) for v in lifted)


# --- broadcasting -----------------------------------------------------------------------------------------------------


def broadcast(op: str, *values: Value, trailing: int = 0) -> tuple[Value, ...]:
    """The values with one shape, right-aligned; the last `trailing` axes are left alone.

    Only a literal extent 1 is stretched, so that a symbolic extent that happens to be 1 at run time is an error there, not
    a broadcast.

    Raises
    ------
    ShapeMismatch
        Two integers that differ; other extents are compared by the run.
    """
    rank = max(v.ndim for v in values)
    sources: list[tuple[Extent, Value]] = []
    for axis in range(-rank, -trailing):
        present = [(v.shape[axis], v) for v in values if v.ndim >= -axis and v.shape[axis] != 1]
        constant = [(e, v) for e, v in present if isinstance(e, int)]
        for e, v in constant[1:]:
            if e != constant[0][0]:
                raise ShapeMismatch(op=op, lhs=constant[0][1].shape, rhs=v.shape)
        sources.append((constant or present or [(1, values[0])])[0])
    return tuple(_stretch(v, sources, trailing) for v in values)


def _stretch(value: Value, sources: Sequence[tuple[Extent, Value]], trailing: int) -> Value:
    """`value` with axes of extent 1, and those that it lacks, as long as `sources` says; its other extents are its own."""
    rank = len(sources) + trailing
    offset = rank - value.ndim
    exprs: list[DimExpr] = []
    providers: list[Value] = []
    for axis in range(rank):
        own = value.shape[axis - offset] if axis >= offset else 1
        extent, source = sources[axis] if axis < len(sources) and own == 1 else (own, value)
        if isinstance(extent, int):
            exprs.append(extent)
        elif source is value:
            exprs.append(InputDim(0, axis - offset))
        else:
            exprs.append(InputDim(1 + _position(providers, source), axis - rank + source.ndim))
    if exprs == [e if isinstance(e, int) else InputDim(0, i) for i, e in enumerate(value.shape)]:
        return value
    return value.builder.apply(ops.BroadcastInDim(tuple(exprs), tuple(range(offset, rank))), value, *providers)


def _position(values: list[Value], value: Value) -> int:
    """Where `value` is among `values`, appended if it is not."""
    for i, other in enumerate(values):
        if other is value:
            return i
    values.append(value)
    return len(values) - 1


def dim_exprs(
    op: str, value: Value, shape: Sequence[Extent], like: Sequence[Value]
) -> tuple[tuple[DimExpr, ...], tuple[Value, ...]]:
    """`shape`, in terms of the program's inputs, as expressions over the inputs of one instruction on `value`.

    Also the shape providers that the instruction needs behind `value`: of `like`, and program inputs.
    """
    candidates = (*like, value)
    used: list[Value] = [value]

    def expr(extent: Extent) -> DimExpr:
        if not isinstance(extent, InputDim | DimOp | UpperBound | Unknown):
            return as_integer(extent, "extent")
        for candidate in candidates:
            if extent in candidate.shape:
                return InputDim(_position(used, candidate), candidate.shape.index(extent))
        if isinstance(extent, DimOp):
            return DimOp(extent.kind, expr(extent.lhs), expr(extent.rhs))
        if isinstance(extent, InputDim) and extent.input < len(value.builder.inputs):
            return InputDim(_position(used, value.builder.inputs[extent.input]), extent.axis)
        raise InvalidArgument(
            op=op,
            argument="shape",
            detail=f"extent {extent} is known at run time only; name a value that has it with like=",
        )

    return tuple(map(expr, shape)), tuple(used[1:])


# --- what the operators are made of -----------------------------------------------------------------------------------


def elementwise(op: Op, *operands: Operand) -> Value:
    """`op` on promoted and broadcast operands."""
    builder = builder_of(*operands)
    values = promoted(builder, *operands, division=isinstance(op, (ops.Divide, ops.Pow)))
    return builder.apply(op, *broadcast(op.name, *values))


def choose(pred: Value, on_true: Operand, on_false: Operand) -> Value:
    """Select on operands that are promoted and broadcast, the predicate broadcast."""
    picks = promoted(pred.builder, on_true, on_false)
    return pred.builder.apply(ops.Select(), *broadcast("Select", pred, *picks))


def _truth(operand: Any, operator: str) -> Any:
    """`operand`, which must be Bool: of an integer only "zero or not" would remain."""
    dtype = operand.dtype.name if isinstance(operand, Value) else type(operand).__name__
    if dtype not in ("Bool", "bool"):
        words = f"{operator} is of Bool values alone, and here is {dtype}: compare it, as in x != 0"
        raise DTypeMismatch(op="Select", lhs=DType.Bool.name, rhs=dtype).saying(words)
    return operand


def _reduce(
    op: type[ops.ReduceSum | ops.ReduceProd | ops.ReduceMax | ops.ReduceMin],
    x: Value,
    axis: Axes | None,
    keepdims: bool,
) -> Value:
    axes = tuple(range(x.ndim)) if axis is None else normal_axes(axis, x.ndim)
    result = x.builder.apply(op(axes), x)
    return result[tuple(None if i in axes else slice(None) for i in range(x.ndim))] if keepdims else result


def _matmul(x: Operand, y: Operand) -> Value:
    x, y = promoted(builder_of(x, y), x, y)
    if 0 in (x.ndim, y.ndim):
        raise UsageError(detail="@ with a number, or a value of rank 0: * multiplies by it")
    batches = min(x.ndim, y.ndim) - 2
    if batches > 0:
        x, y = broadcast("DotGeneral", x, y, trailing=2)
        batches = x.ndim - 2
    batch = tuple(range(batches)) if batches > 0 else ()
    result = x.builder.apply(ops.DotGeneral((x.ndim - 1,), (max(y.ndim - 2, 0),), batch, batch), x, y)
    if batch:  # lhs free, rhs free, batch
        return result.transpose(*range(2, result.ndim), 0, 1)
    rows = x.ndim - 1
    if y.ndim > 2 and rows:  # the one free axis of x goes before the last of y
        return result.transpose(*range(1, result.ndim - 1), 0, result.ndim - 1)
    return result
