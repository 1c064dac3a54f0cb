"""`GraphBuilder`: programs written in Python, with the front ends' services (SEMANTICS 1.1).

Operators promote dtypes and broadcast in NumPy's manner by inserting Convert and BroadcastInDim instructions; `apply`
appends an op as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tenferro_ref.dims import DimExpr, Extent, InputDim, same
from tenferro_ref.dtype import INEXACT, DType, promote
from tenferro_ref.errors import ShapeMismatch, UsageError
from tenferro_ref.ops import (
    ENGINE,
    Add,
    BroadcastInDim,
    Compare,
    CompareDir,
    Constant,
    Convert,
    Divide,
    DotGeneral,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Op,
    Policy,
    Pow,
    ReduceSum,
    Reshape,
    Select,
    TensorType,
    Transpose,
    check_size,
)
from tenferro_ref.program.program import GraphProgram, Instruction

Scalar = int | float | complex | bool


def _scalar_dtype(given: Scalar, beside: DType) -> DType:
    """Dtype of a Python scalar beside a value: it takes the value's dtype unless that would lose a fraction or a part."""
    if isinstance(given, bool):
        return beside
    if isinstance(given, int):
        return DType.I64 if beside is DType.Bool else beside
    if isinstance(given, float):
        return beside if beside in INEXACT else DType.F64
    return beside.complex if beside in INEXACT else DType.C64


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A slot of the program being built; operators append instructions to its builder."""

    builder: GraphBuilder
    slot: int
    type: TensorType

    @property
    def shape(self) -> tuple[Extent, ...]:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def T(self) -> Value:  # noqa: N802 - NumPy's name
        """Axes reversed."""
        return self.transpose(tuple(reversed(range(self.type.rank))))

    def transpose(self, perm: Sequence[int]) -> Value:
        return self.builder.apply(Transpose(tuple(perm)), self)

    def reshape(self, *shape: int) -> Value:
        """Column-major reshape."""
        return self.builder.apply(Reshape(tuple(shape)), self)

    def sum(self, axes: Sequence[int] | None = None) -> Value:
        return self.builder.apply(ReduceSum(tuple(range(self.type.rank)) if axes is None else tuple(axes)), self)

    def astype(self, dtype: DType) -> Value:
        return self if dtype is self.dtype else self.builder.apply(Convert(dtype), self)

    def __add__(self, other: Value | Scalar) -> Value:
        return self.builder.binary(Add(), self, other)

    def __radd__(self, other: Scalar) -> Value:
        return self.builder.binary(Add(), other, self)

    def __mul__(self, other: Value | Scalar) -> Value:
        return self.builder.binary(Multiply(), self, other)

    def __rmul__(self, other: Scalar) -> Value:
        return self.builder.binary(Multiply(), other, self)

    def __neg__(self) -> Value:
        return self.builder.apply(Negate(), self)

    def __sub__(self, other: Value | Scalar) -> Value:
        return self + -self.builder.value(other, self.dtype)

    def __rsub__(self, other: Scalar) -> Value:
        return self.builder.value(other, self.dtype) + -self

    def __truediv__(self, other: Value | Scalar) -> Value:
        return self.builder.binary(Divide(), self, other)

    def __rtruediv__(self, other: Scalar) -> Value:
        return self.builder.binary(Divide(), other, self)

    def __pow__(self, other: Value | Scalar) -> Value:
        return self.builder.binary(Pow(), self, other)

    def __matmul__(self, other: Value) -> Value:
        """Contraction of the last axis with the first of `other` (column-major batches trail)."""
        return self.builder.apply(DotGeneral((self.type.rank - 1,), (0,), (), ()), self, other)

    def __lt__(self, other: Value | Scalar) -> Value:
        return self.builder.binary(Compare(CompareDir.Lt), self, other)

    def __le__(self, other: Value | Scalar) -> Value:
        return self.builder.binary(Compare(CompareDir.Le), self, other)

    def __gt__(self, other: Value | Scalar) -> Value:
        return self.builder.binary(Compare(CompareDir.Gt), self, other)

    def __ge__(self, other: Value | Scalar) -> Value:
        return self.builder.binary(Compare(CompareDir.Ge), self, other)

    def eq(self, other: Value | Scalar) -> Value:
        """Elementwise equality (`==` stays Python's identity)."""
        return self.builder.binary(Compare(CompareDir.Eq), self, other)


class GraphBuilder:
    """Collects instructions; `build` returns the GraphProgram.

    Examples
    --------
    >>> b = GraphBuilder()
    >>> x, w = b.input("F64", (2, 3)), b.input("F64", (3, 4))
    >>> program = b.build((x @ w + 1.0).sum([0]))
    >>> [i.op.name for i in program.instructions]
    ['DotGeneral', 'Constant', 'BroadcastInDim', 'Add', 'ReduceSum']
    """

    def __init__(self, name: str = "", policy: Policy = ENGINE) -> None:
        self.name = name
        self.policy = policy
        self._inputs: list[Value] = []
        self._instructions: list[Instruction] = []
        self._symbols: dict[str, InputDim] = {}
        self._n_slots = 0

    def _new(self, type_: TensorType) -> Value:
        value = Value(self, self._n_slots, type_)
        self._n_slots += 1
        return value

    def input(self, dtype: DType | str, shape: Sequence[int | str] = ()) -> Value:
        """A program input; a string extent is a symbol (an identifier), equal wherever it repeats.

        Raises
        ------
        UsageError
            An unknown dtype, or a symbol that is no identifier.
        InvalidArgument
            A negative extent, or a shape beyond all limits.
        """
        number = len(self._inputs)
        if isinstance(dtype, str) and dtype not in DType.__members__:
            raise UsageError(detail=f"unknown dtype {dtype!r}; known: {', '.join(DType.__members__)}")
        for extent in shape:
            if isinstance(extent, str) and not extent.isidentifier():
                raise UsageError(detail=f"symbol {extent!r} is not an identifier")
        extents: list[Extent] = [
            self._symbols.setdefault(e, InputDim(number, axis)) if isinstance(e, str) else e
            for axis, e in enumerate(shape)
        ]
        type_ = TensorType(DType[dtype] if isinstance(dtype, str) else dtype, tuple(extents))
        check_size(f"program input {number}", type_)
        value = self._new(type_)
        self._inputs.append(value)
        return value

    def constant(self, value: complex | np.generic, dtype: DType = DType.F64) -> Value:
        """A rank-0 constant."""
        return self.apply(Constant.of(value, dtype))

    def value(self, given: Value | Scalar, dtype: DType) -> Value:
        """`given` itself, or a constant for a Python scalar: of `dtype` if that has numbers of its kind."""
        return given if isinstance(given, Value) else self.constant(given, _scalar_dtype(given, dtype))

    def apply_many(self, op: Op, *operands: Value) -> tuple[Value, ...]:
        """Append `op` as it is, with no promotion and no broadcasting; one Value an output.

        Raises
        ------
        ValidationError
            The op's rule is broken.
        UsageError
            An operand belongs to another builder.
        """
        if any(v.builder is not self for v in operands):
            raise UsageError(detail=f"{op.name}: an operand belongs to another GraphBuilder")
        types = op.result_types(tuple(v.type for v in operands), self.policy)
        results = tuple(self._new(t) for t in types)
        self._instructions.append(Instruction(op, tuple(v.slot for v in operands), tuple(v.slot for v in results)))
        return results

    def apply(self, op: Op, *operands: Value) -> Value:
        """`apply_many` for an op with one output."""
        (result,) = self.apply_many(op, *operands)
        return result

    def broadcast_to(self, value: Value, shape: Sequence[Extent], *providers: Value) -> Value:
        """NumPy's right-aligned broadcasting as one BroadcastInDim; nothing if the shape is that already.

        A symbolic extent of `shape` is read at run time from the first of `providers` that has it on that axis.
        """
        if value.shape == tuple(shape):
            return value
        offset = len(shape) - value.type.rank
        if offset < 0:
            raise ShapeMismatch(op="broadcast", lhs=value.shape, rhs=tuple(shape))
        exprs: list[DimExpr] = []
        extra: list[Value] = []
        for axis, extent in enumerate(shape):
            if isinstance(extent, int):
                exprs.append(extent)
                continue
            source = next((v for v in providers if v.shape[axis - len(shape) :][:1] == (extent,)), None)
            if source is None:
                raise ShapeMismatch(op="broadcast", lhs=value.shape, rhs=tuple(shape))
            if source not in extra:
                extra.append(source)
            exprs.append(InputDim(1 + extra.index(source), axis - len(shape) + source.type.rank))
        return self.apply(BroadcastInDim(tuple(exprs), tuple(range(offset, len(shape)))), value, *extra)

    def _common_shape(self, op: str, a: Value, b: Value) -> tuple[Extent, ...]:
        rank = max(a.type.rank, b.type.rank)
        x = (1,) * (rank - a.type.rank) + a.shape
        y = (1,) * (rank - b.type.rank) + b.shape
        if any(p != 1 and q != 1 and same(p, q) is False for p, q in zip(x, y, strict=True)):
            raise ShapeMismatch(op=op, lhs=a.shape, rhs=b.shape)
        return tuple(q if p == 1 else p for p, q in zip(x, y, strict=True))

    def binary(self, op: Op, a: Value | Scalar, b: Value | Scalar) -> Value:
        """Promote and broadcast both operands, then `op`."""
        if not isinstance(a, Value):
            if not isinstance(b, Value):
                raise UsageError(detail=f"{op.name}: one operand must be a Value")
            a = self.value(a, b.dtype)
        b = self.value(b, a.dtype)
        dtype = promote((a.dtype, b.dtype))
        a, b = a.astype(dtype), b.astype(dtype)
        shape = self._common_shape(op.name, a, b)
        return self.apply(op, self.broadcast_to(a, shape, a, b), self.broadcast_to(b, shape, a, b))

    def maximum(self, a: Value, b: Value | Scalar) -> Value:
        return self.binary(Maximum(), a, b)

    def minimum(self, a: Value, b: Value | Scalar) -> Value:
        return self.binary(Minimum(), a, b)

    def where(self, pred: Value, on_true: Value, on_false: Value) -> Value:
        return self.apply(Select(), pred, on_true, on_false)

    def build(self, *outputs: Value) -> GraphProgram:
        """The program with the given outputs.

        Raises
        ------
        UsageError
            An output belongs to another builder.
        """
        if any(v.builder is not self for v in outputs):
            raise UsageError(detail="an output belongs to another GraphBuilder")
        return GraphProgram(
            tuple(self._instructions),
            tuple(v.slot for v in self._inputs),
            tuple(v.type for v in self._inputs),
            tuple(v.slot for v in outputs),
            self._n_slots,
            self.policy,
            self.name,
            tuple((dim, name) for name, dim in self._symbols.items()),
        )
