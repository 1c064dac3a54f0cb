"""The base class `Op`, the type of a value, the program policy, and the checks that rules share.

The ops are in the sibling modules; what a layer does with them is a `Table` in that layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Literal, NoReturn, get_args, get_type_hints

from tenferro_ref.dims import Extent, equal_extents, expr_of
from tenferro_ref.dtype import ANY, DType
from tenferro_ref.errors import (
    AxisOutOfBounds,
    DTypeMismatch,
    DuplicateAxis,
    Internal,
    InvalidArgument,
    InvalidCompiledGraph,
    RankMismatch,
    ShapeMismatch,
    Unsupported,
)
from tenferro_ref.ops.attributes import check_attributes

#: NumPy's own limit; the engine has none, XLA none that matters.
MAX_RANK = 64
#: The most elements a tensor may have: its byte size must fit a signed 64-bit integer.
MAX_ELEMENTS = 2**59


class Category(Enum):
    """Where the executor runs an instruction (SEMANTICS 5)."""

    BACKEND = "backend session"
    HOST = "host"
    FFI = "ffi"


@dataclass(frozen=True, slots=True)
class Policy:
    """Program-level choices where the engine and StableHLO differ (SEMANTICS 0).

    Raises
    ------
    InvalidArgument
        A choice that there is not.
    """

    scatter_bounds: Literal["clamp", "skip"] = "clamp"
    integer_faults: Literal["error", "stablehlo"] = "error"
    empty_reduction: Literal["error", "identity"] = "error"
    dtypes: Literal["engine", "stablehlo"] = "engine"

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(Policy).items():
            choice, choices = getattr(self, name), get_args(hint)
            if choice not in choices:
                raise InvalidArgument(
                    op="Policy", argument=name, detail=f"{choice!r} is none of {', '.join(map(repr, choices))}"
                )


DEFAULT_POLICY = Policy()
#: What imported StableHLO programs run under.
STABLEHLO = Policy("skip", "stablehlo", "identity", "stablehlo")
_REMEDY = '; a program of Policy(dtypes="stablehlo") may have it'


@dataclass(frozen=True, slots=True)
class TensorType:
    """Dtype and shape of a value; the extents are ints unless the program is symbolic."""

    dtype: DType
    shape: tuple[Extent, ...]

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """All extents are integers."""
        for extent in self.shape:  # noqa: SIM110 - `all` takes twice as long, for every value of every program
            if not isinstance(extent, int):
                return False
        return True

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape of a value whose extents are all known.

        Raises
        ------
        InvalidCompiledGraph
            An extent is symbolic.
        """
        shape: list[int] = []
        for extent in self.shape:
            if not isinstance(extent, int):
                raise InvalidCompiledGraph(detail=f"{self}: extent {extent} is not concrete")
            shape.append(extent)
        return tuple(shape)

    def with_shape(self, shape: Iterable[Extent]) -> TensorType:
        """The type of this dtype with another shape."""
        return TensorType(self.dtype, tuple(shape))

    def with_dtype(self, dtype: DType) -> TensorType:
        """The type of this shape with another dtype."""
        return self if dtype is self.dtype else TensorType(dtype, self.shape)

    def drop_axes(self, axes: Sequence[int]) -> TensorType:
        """The type without some axes."""
        return self.with_shape(e for i, e in enumerate(self.shape) if i not in axes)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Op:
    """One operation with its attributes as fields.

    A subclass declares its arity, its category, the dtypes that it admits, and `infer`: the rule from operand types to
    the result type, which raises a `ValidationError` where the operands or attributes do not fit.
    """

    category: ClassVar[Category] = Category.BACKEND
    #: Number of inputs: exactly `arity`, or at least `arity` when `variadic`.
    arity: ClassVar[int] = 1
    variadic: ClassVar[bool] = False
    #: How many leading operands must share one dtype that the dtype policy admits.
    same_dtype: ClassVar[int] = 1
    dtypes: ClassVar[frozenset[DType]] = ANY
    #: What StableHLO admits beyond `dtypes`; used under `Policy(dtypes="stablehlo")`, where a dtype that the engine lacks is
    #: admitted where the engine's of its kind is.
    stablehlo_dtypes: ClassVar[frozenset[DType]] = frozenset()
    #: Whether unsigned integers are admitted where signed ones are, under StableHLO's policy.
    unsigned: ClassVar[bool] = True
    #: Whether there may be a zero in the result, or in how it is computed, that no operand has; F8E8M0FNU has none.
    needs_zero: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse attributes of other types than they are declared with; InvalidArgument."""
        check_attributes(self)

    @property
    def name(self) -> str:
        """The engine's name of the op."""
        return type(self).__name__

    @property
    def called(self) -> str:
        """What errors call it: one of a family by its own name, which is all that the user wrote."""
        return getattr(self, "op", self.name)

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType | tuple[TensorType, ...]:
        """Result type, or one type an output."""
        raise Internal(detail=f"{self.name} declares no rule")

    def result_types(self, inputs: tuple[TensorType, ...], policy: Policy = DEFAULT_POLICY) -> tuple[TensorType, ...]:
        """Types of the outputs for operands of the given types.

        Raises
        ------
        ValidationError
            The op's rule is broken; `Unsupported` for a dtype that the policy does not admit.
        InvalidCompiledGraph
            Wrong number of operands.
        """
        self.check_arity(len(inputs))
        self.check_dtypes(inputs, policy)
        result = self.infer(policy, *inputs)
        types = result if isinstance(result, tuple) else (result,)
        for type_ in types:
            check_size(self.called, type_)
        return types

    def check_arity(self, count: int) -> None:
        """Check the number of operands.

        Raises
        ------
        InvalidCompiledGraph
            Another number than the op takes.
        """
        if count < self.arity or (count > self.arity and not self.variadic):
            expected = f"at least {self.arity}" if self.variadic else str(self.arity)
            raise InvalidCompiledGraph(detail=f"{self.name}: expected {expected} inputs, got {count}")

    def check_dtypes(self, inputs: Sequence[TensorType], policy: Policy) -> None:
        """The leading `same_dtype` operands agree and are admitted."""
        data = [t.dtype for t in inputs[: self.same_dtype]]
        for other in data[1:]:
            if other is not data[0]:
                raise DTypeMismatch(op=self.name, lhs=data[0].name, rhs=other.name)
        if not data:
            return
        if policy.dtypes == "engine":
            admitted = data[0] in self.dtypes
        else:
            admitted = self._admits_beyond(data[0])
            if self.needs_zero and data[0] is DType.F8E8M0FNU:
                raise Unsupported(op=self.name, detail=f"dtype {data[0]} has no zero; convert the operand to F32")
        if not admitted:
            self.reject_dtype(data[0], policy)

    def _admits_beyond(self, dtype: DType) -> bool:
        """Whether StableHLO's policy admits a dtype."""
        return dtype.engine in self.dtypes | self.stablehlo_dtypes and (self.unsigned or not dtype.is_unsigned)

    def reject_dtype(self, dtype: DType, policy: Policy) -> NoReturn:
        """Raise what says that the op does not admit `dtype`."""
        remedy = _REMEDY if policy.dtypes == "engine" and self._admits_beyond(dtype) else ""
        raise Unsupported(op=self.name, detail=f"dtype {dtype} is not supported under dtypes={policy.dtypes!r}{remedy}")


def check_admitted(op: str, dtype: DType, policy: Policy) -> None:
    """Check that a program under `policy` may have values of this dtype; Unsupported if not."""
    if policy.dtypes == "engine" and dtype not in ANY:
        raise Unsupported(op=op, detail=f"dtype {dtype} is not supported under dtypes={policy.dtypes!r}{_REMEDY}")


def check_size(op: str, type_: TensorType) -> None:
    """Rank, extents and element count that a host array can have.

    Raises
    ------
    InvalidArgument
        More than `MAX_RANK` axes, a negative extent, or more than `MAX_ELEMENTS` elements.
    """
    if type_.rank > MAX_RANK:
        raise InvalidArgument(op=op, argument="rank", detail=f"{type_.rank} axes; at most {MAX_RANK} are supported")
    total = 1
    for extent in type_.shape:
        if isinstance(extent, int):
            if extent < 0:
                raise InvalidArgument(op=op, argument="shape", detail=f"extent {extent} is negative")
            total *= max(extent, 1)
            if total > MAX_ELEMENTS:
                raise InvalidArgument(
                    op=op, argument="shape", detail=f"{type_} has more elements than a tensor can have ({MAX_ELEMENTS})"
                )


def check_axis(op: Op, axis: int, rank: int) -> None:
    """Check that the operand has this axis; AxisOutOfBounds if not."""
    if not 0 <= axis < rank:
        raise AxisOutOfBounds(op=op.name, axis=axis, rank=rank)


def check_axes(op: Op, axes: Sequence[int], rank: int, role: str = "axes") -> None:
    """Every axis in range, then none twice."""
    for axis in axes:
        check_axis(op, axis, rank)
    seen: set[int] = set()
    for axis in axes:
        if axis in seen:
            raise DuplicateAxis(op=op.name, axis=axis, role=role)
        seen.add(axis)


def check_length(op: Op, values: Sequence[object], expected: int) -> None:
    """Check the length of a list of attributes; RankMismatch if it is another."""
    if len(values) != expected:
        raise RankMismatch(op=op.name, expected=expected, actual=len(values))


def check_same_shape(op: Op, *inputs: TensorType) -> None:
    """All operands have one shape; extents that only the running program knows pass."""
    first = inputs[0]
    for other in inputs[1:]:
        if other.shape == first.shape:
            continue
        if other.rank != first.rank or any(
            equal_extents(a, b) is False for a, b in zip(first.shape, other.shape, strict=True)
        ):
            raise ShapeMismatch(op=op.name, lhs=first.shape, rhs=other.shape)


def constant_extent(op: Op, extent: Extent, what: str) -> int:
    """The integer value of an extent that this op's rule needs to know."""
    value = expr_of(extent)
    if not isinstance(extent, int) or not isinstance(value, int):
        raise InvalidArgument(op=op.name, argument=what, detail=f"extent {extent} must be a constant here")
    return value
