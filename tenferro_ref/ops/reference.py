"""Ops of the reference alone: StableHLO has them, the engine does not (ADR 0018).

The loader writes them into programs; each has a kernel and an enclosure, all can be written as StableHLO again (`stablehlo.emit.reference`),
and nothing else: the strategies of programs do not draw them, and JAX's calls lack them. An executor gets the module that was handed in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

from tenferro_ref.dtype import COMPLEX, FLOAT, INT, DType
from tenferro_ref.errors import DTypeMismatch, InvalidArgument, InvalidCompiledGraph
from tenferro_ref.ops.base import Op, Policy, TensorType, check_same_shape


@dataclass(frozen=True, slots=True)
class ReferenceOp(Op):
    """An op that no layer but kernels and enclosures needs to know."""

    reference_only: ClassVar = True


def _check_function(op: Op, function: str, known: Collection[str]) -> None:
    if function not in known:
        raise InvalidArgument(
            op=op.name, argument="function", detail=f"{function!r} is none of {', '.join(sorted(known))}"
        )


@dataclass(frozen=True, slots=True)
class Special(ReferenceOp):
    """A real function of one argument, one of `functions`: names of StableHLO and CHLO."""

    function: str
    dtypes: ClassVar = FLOAT
    functions: ClassVar[tuple[str, ...]] = (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "cbrt", "cosh", "digamma", "erf", "erf_inv", "erfc",
        "lgamma", "sinh", "tan",
    )  # fmt: skip

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        _check_function(self, self.function, self.functions)
        return inputs[0]


@dataclass(frozen=True, slots=True)
class Special2(ReferenceOp):
    """A real function of two arguments, one of `functions`."""

    function: str
    arity: ClassVar = 2
    same_dtype: ClassVar = 2
    dtypes: ClassVar = FLOAT
    functions: ClassVar[tuple[str, ...]] = ("atan2", "polygamma", "zeta")

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        _check_function(self, self.function, self.functions)
        check_same_shape(self, *inputs)
        return inputs[0]


@dataclass(frozen=True, slots=True)
class Whole(ReferenceOp):
    """The whole number beside each element, with the sign of the element where it is zero; by one of `functions`: names of StableHLO."""

    function: str
    dtypes: ClassVar = FLOAT
    needs_zero: ClassVar = True
    functions: ClassVar[tuple[str, ...]] = ("ceil", "floor", "round_nearest_afz", "round_nearest_even")

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        _check_function(self, self.function, self.functions)
        return inputs[0]


@dataclass(frozen=True, slots=True)
class Bits(ReferenceOp):
    """An operation on the bits of integers, one of `functions`: names of StableHLO, each with how many operands it has.

    A shift by the width or more (the amount read as unsigned) gives 0, or the sign where the shift is arithmetic.
    """

    function: str
    arity: ClassVar = 1
    variadic: ClassVar = True
    dtypes: ClassVar = INT
    functions: ClassVar[Mapping[str, int]] = {
        "not": 1, "popcnt": 1, "count_leading_zeros": 1,
        **dict.fromkeys(("and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical"), 2),
    }  # fmt: skip

    def check_arity(self, count: int) -> None:
        expected = self.functions.get(self.function, count)
        if count != expected:
            raise InvalidCompiledGraph(detail=f"{self.name} ({self.function}): expected {expected} inputs, got {count}")
        Op.check_arity(self, count)

    def check_dtypes(self, inputs: tuple[TensorType, ...], policy: Policy) -> None:  # type: ignore[override]
        for operand in inputs:
            Op.check_dtypes(self, (operand,), policy)

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        _check_function(self, self.function, self.functions)
        check_same_shape(self, *inputs)
        return inputs[0]


@dataclass(frozen=True, slots=True)
class Imag(ReferenceOp):
    """The imaginary part of each element."""

    dtypes: ClassVar = COMPLEX

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        return inputs[0].with_dtype(inputs[0].dtype.real)


@dataclass(frozen=True, slots=True)
class Complex(ReferenceOp):
    """The complex number of a real and an imaginary part."""

    arity: ClassVar = 2
    same_dtype: ClassVar = 2
    dtypes: ClassVar = FLOAT

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        check_same_shape(self, *inputs)
        return inputs[0].with_dtype(inputs[0].dtype.complex)


@dataclass(frozen=True, slots=True)
class Bitcast(ReferenceOp):
    """The bits of each element as an element of another dtype of the same width."""

    to: DType

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        (x,) = inputs
        if x.dtype.bits != self.to.bits:
            raise InvalidArgument(
                op=self.name, argument="to", detail=f"{x.dtype} and {self.to} have elements of different widths"
            )
        return x.with_dtype(self.to)


@dataclass(frozen=True, slots=True)
class ReducePrecision(ReferenceOp):
    """Rounding to a format of fewer bits, the result in the operand's dtype."""

    exponent_bits: int
    mantissa_bits: int
    dtypes: ClassVar = FLOAT
    needs_zero: ClassVar = True

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        for argument, least in (("exponent_bits", 1), ("mantissa_bits", 0)):
            if getattr(self, argument) < least:
                raise InvalidArgument(op=self.name, argument=argument, detail=f"less than {least}")
        return inputs[0]


@dataclass(frozen=True, slots=True)
class Repeated(ReferenceOp):
    """A reduction into which its initial value enters not at all, once, or up to `times` times: StableHLO does not say how often.

    The operands are the reduction with the initial value once, which is the result here; that without it; and, of integers that
    are added or multiplied, the initial value. Of all others any number of further results may follow: what is permitted is between the
    least and the greatest of them. `function` is the name of the body in StableHLO; `select` if it is no initial value that is left
    open but which elements a window selects, `order` if it is which of several elements comes first, `logistic` if it is which steps are
    rounded.
    """

    function: str
    times: int
    arity: ClassVar = 2
    variadic: ClassVar = True

    def check_dtypes(self, inputs: tuple[TensorType, ...], policy: Policy) -> None:  # type: ignore[override]
        for operand in inputs[1:]:
            if operand.dtype is not inputs[0].dtype:
                raise DTypeMismatch(op=self.name, lhs=inputs[0].dtype.name, rhs=operand.dtype.name)

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        check_same_shape(self, *inputs)
        return inputs[0]


REFERENCE: tuple[type[ReferenceOp], ...] = (
    Special, Special2, Whole, Bits, Imag, Complex, Bitcast, ReducePrecision, Repeated,
)  # fmt: skip
