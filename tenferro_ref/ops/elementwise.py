"""Elementwise ops (SEMANTICS 2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn

from tenferro_ref.dims import Extent, combine, equal_extents
from tenferro_ref.dtype import ANY, COMPLEX, FLOAT, INEXACT, INT, NUMERIC, REAL, DType
from tenferro_ref.errors import DTypeMismatch, ShapeMismatch, Unsupported
from tenferro_ref.ops.attributes import CompareDir
from tenferro_ref.ops.base import Op, Policy, TensorType, check_same_shape

_BOOL = frozenset({DType.Bool})


def _reject_order(op: Op, dtype: DType, policy: Policy) -> NoReturn:
    if dtype.is_complex:
        raise Unsupported(op=op.name, detail=f"complex numbers ({dtype}) have no total order")
    Op.reject_dtype(op, dtype, policy)


# --- two operands, either of which may be a scalar --------------------------------------------------------------------


def _scalar_beside(op: Op, x: TensorType, y: TensorType) -> TensorType:
    """Equal shapes, or one operand of rank 0; two distinct symbolic extents infer their maximum."""
    if x.rank == 0 or x.shape == y.shape:
        return y
    if y.rank == 0:
        return x
    if x.rank != y.rank:
        raise ShapeMismatch(op=op.name, lhs=x.shape, rhs=y.shape)
    shape: list[Extent] = []
    for a, b in zip(x.shape, y.shape, strict=True):
        equal = equal_extents(a, b)
        if equal is False:
            raise ShapeMismatch(op=op.name, lhs=x.shape, rhs=y.shape)
        shape.append(a if equal or a == b else combine("max", a, b))
    return x.with_shape(shape)


@dataclass(frozen=True, slots=True)
class _Arithmetic(Op):
    arity: ClassVar = 2
    same_dtype: ClassVar = 2
    #: A real operand of rank 0 may stand beside a complex one of its precision (SEMANTICS 1.1).
    mixes_complex: ClassVar = True

    def check_dtypes(self, inputs: tuple[TensorType, ...], policy: Policy) -> None:  # type: ignore[override]
        if not _real_scalar_beside_complex(self, *inputs):
            # not super(): dataclass(slots=True) makes a new class, which zero-argument super() does not see
            Op.check_dtypes(self, inputs, policy)

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        x, y = inputs
        wide = y if y.dtype.is_complex else x
        return _scalar_beside(self, x, y).with_dtype(wide.dtype)


def _real_scalar_beside_complex(op: _Arithmetic, x: TensorType, y: TensorType) -> bool:
    if not op.mixes_complex or x.dtype is y.dtype:
        return False
    scalar, tensor = (x, y) if x.dtype.is_float else (y, x)
    return scalar.rank == 0 and scalar.dtype.is_float and tensor.dtype.is_complex and tensor.dtype.real is scalar.dtype


@dataclass(frozen=True, slots=True)
class Add(_Arithmetic):
    """`x + y`; integers wrap. Under StableHLO dtypes Bool is a logical or."""

    dtypes: ClassVar = NUMERIC
    stablehlo_dtypes: ClassVar = _BOOL


@dataclass(frozen=True, slots=True)
class Subtract(_Arithmetic):
    """`x - y`; integers wrap. `x - x` is +0 for every finite x (SEMANTICS A.1)."""

    dtypes: ClassVar = NUMERIC


@dataclass(frozen=True, slots=True)
class Multiply(_Arithmetic):
    """`x * y`; integers wrap. Under StableHLO dtypes Bool is a logical and."""

    dtypes: ClassVar = NUMERIC
    stablehlo_dtypes: ClassVar = _BOOL


@dataclass(frozen=True, slots=True)
class Divide(_Arithmetic):
    """`x / y`; integers truncate toward zero, a zero divisor is an error unless the policy says otherwise."""

    dtypes: ClassVar = NUMERIC


@dataclass(frozen=True, slots=True)
class Remainder(_Arithmetic):
    """`x - y * trunc(x / y)`, exact, with the sign of `x` (C's `fmod`); NaN for an infinite `x` or a zero `y` (SEMANTICS A.1).

    Of integers, a zero divisor is an error unless the policy says otherwise (then it is `x`), and MIN rem -1 is 0.
    """

    dtypes: ClassVar = REAL
    mixes_complex: ClassVar = False
    reject_dtype = _reject_order


@dataclass(frozen=True, slots=True)
class Pow(_Arithmetic):
    """C's `pow`; a negative integer exponent is an error unless the policy says otherwise."""

    dtypes: ClassVar = NUMERIC
    mixes_complex: ClassVar = False


# --- two operands of strictly one shape -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Extremum(Op):
    arity: ClassVar = 2
    same_dtype: ClassVar = 2
    dtypes: ClassVar = REAL
    stablehlo_dtypes: ClassVar = _BOOL
    reject_dtype = _reject_order

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        check_same_shape(self, *inputs)
        return inputs[0]


@dataclass(frozen=True, slots=True)
class Maximum(_Extremum):
    """The larger operand, NaN if either is NaN, lhs when equal."""


@dataclass(frozen=True, slots=True)
class Minimum(_Extremum):
    """The smaller operand, NaN if either is NaN, lhs when equal."""


@dataclass(frozen=True, slots=True)
class Compare(Op):
    """Bool result of comparing `lhs` and `rhs`; false where either is NaN; only Eq for complex."""

    dir: CompareDir
    arity: ClassVar = 2
    same_dtype: ClassVar = 2
    dtypes: ClassVar = ANY
    reject_dtype = _reject_order

    def check_dtypes(self, inputs: tuple[TensorType, ...], policy: Policy) -> None:  # type: ignore[override]
        Op.check_dtypes(self, inputs, policy)
        dtype = inputs[0].dtype
        unordered = COMPLEX if policy.dtypes == "stablehlo" else COMPLEX | _BOOL
        if self.dir is not CompareDir.Eq and dtype in unordered:
            self.reject_dtype(dtype, policy)

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        check_same_shape(self, *inputs)
        return inputs[0].with_dtype(DType.Bool)


# --- three operands ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Select(Op):
    """`on_true` where `pred` holds, else `on_false`; inputs (pred, on_true, on_false) of one shape."""

    arity: ClassVar = 3

    def check_dtypes(self, inputs: tuple[TensorType, ...], policy: Policy) -> None:  # type: ignore[override]
        pred, on_true, on_false = inputs
        if pred.dtype is not DType.Bool:
            raise DTypeMismatch(op=self.name, lhs=DType.Bool.name, rhs=pred.dtype.name)
        if on_true.dtype is not on_false.dtype:
            raise DTypeMismatch(op=self.name, lhs=on_true.dtype.name, rhs=on_false.dtype.name)

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        check_same_shape(self, *inputs)
        return inputs[1]


@dataclass(frozen=True, slots=True)
class Clamp(Op):
    """`min(upper, max(lower, x))`, inputs (input, lower, upper); NaN from any operand."""

    arity: ClassVar = 3
    same_dtype: ClassVar = 3
    dtypes: ClassVar = FLOAT
    stablehlo_dtypes: ClassVar = INT
    reject_dtype = _reject_order

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        check_same_shape(self, *inputs)
        return inputs[0]


# --- one operand ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Unary(Op):
    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        return inputs[0]


@dataclass(frozen=True, slots=True)
class Negate(_Unary):
    """`-x`; flips the sign of zero, integers wrap."""

    dtypes: ClassVar = NUMERIC


@dataclass(frozen=True, slots=True)
class Conj(_Unary):
    """Complex conjugate; identity for floats."""

    dtypes: ClassVar = INEXACT


@dataclass(frozen=True, slots=True)
class Abs(_Unary):
    """Absolute value; the modulus, in the real dtype, for complex."""

    dtypes: ClassVar = NUMERIC
    unsigned: ClassVar = False

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        return inputs[0].with_dtype(inputs[0].dtype.real)


@dataclass(frozen=True, slots=True)
class Sign(_Unary):
    """-1, +0 or 1 (both zeros give +0); NaN stays; `z / |z|` for complex."""

    dtypes: ClassVar = NUMERIC
    unsigned: ClassVar = False


@dataclass(frozen=True, slots=True)
class _Analytic(_Unary):
    dtypes: ClassVar = INEXACT


@dataclass(frozen=True, slots=True)
class Exp(_Analytic):
    """`e**x`."""


@dataclass(frozen=True, slots=True)
class Log(_Analytic):
    """Natural logarithm."""


@dataclass(frozen=True, slots=True)
class Sin(_Analytic):
    """Sine of `x` in radians."""


@dataclass(frozen=True, slots=True)
class Cos(_Analytic):
    """Cosine of `x` in radians."""


@dataclass(frozen=True, slots=True)
class Tanh(_Analytic):
    """Hyperbolic tangent."""


@dataclass(frozen=True, slots=True)
class Sqrt(_Analytic):
    """Square root, correctly rounded for real dtypes."""


@dataclass(frozen=True, slots=True)
class Rsqrt(_Analytic):
    """`1 / sqrt(x)`; of +-0 it is +-inf."""


@dataclass(frozen=True, slots=True)
class Expm1(_Analytic):
    """`exp(x) - 1`."""


@dataclass(frozen=True, slots=True)
class Log1p(_Analytic):
    """`log(1 + x)`."""
