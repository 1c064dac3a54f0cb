"""Kernels of the elementwise ops (SEMANTICS 1.4 and 2.1).

Every one of them gives the same bits for an element wherever it stands in the array, which is what lets fused execution
work on blocks; where NumPy does not promise that, the row says what it does about it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, NumericalFailure
from tenferro_ref.ops import CompareDir, Op, Policy
from tenferro_ref.runtime.kernels.base import KERNELS, PerPolicy, Values, canonical

# --- one operand ------------------------------------------------------------------------------------------------------


def _expm1(x: Values) -> Values:
    if x.dtype.kind != "c":
        return np.expm1(x)
    # |exp(z)| is bounded away from 1 where |Re z| >= 1, so that nothing cancels there; and exp knows its special cases
    return np.where(np.abs(x.real) < 1, np.expm1(x), np.exp(x) - 1)


def _log1p(x: Values) -> Values:
    if x.dtype.kind != "c":
        return np.log1p(x)
    # near 0 the modulus of 1 + z is 1 + (a tiny number), which rounding would lose; its terms may cancel, so they are wider
    wide = np.dtype(np.float64 if x.dtype == np.complex64 else np.longdouble)
    re: Values = x.real.astype(wide)
    im: Values = x.imag.astype(wide)
    near = (np.abs(re) < 0.5) & (np.abs(im) < 0.5)
    result: Values = np.asarray(np.log(1 + x))
    result.real[...] = np.where(near, np.log1p(re * (2 + re) + im * im) / 2, result.real)
    return result


def _sign(x: Values) -> Values:
    if x.dtype.kind != "c":
        return np.asarray(np.sign(x) + x.dtype.type(0))  # -0 + 0 is +0
    modulus = np.hypot(x.real, x.imag)
    result = np.empty_like(x)
    result.real, result.imag = x.real / modulus, x.imag / modulus
    result[modulus == 0] = 0
    return result


def _abs(x: Values) -> Values:
    # not np.absolute for complex: hypot is what the rule says, and its special cases do not depend on the machine
    return np.asarray(np.hypot(x.real, x.imag) if x.dtype.kind == "c" else np.abs(x))


def _settled(function: Callable[[Values], Any]) -> Callable[[Op, Values], Values]:
    """The row that computes `function` and makes its NaNs canonical."""
    return lambda op, x: canonical(function(x))


KERNELS[ops.Exp] = np.exp
KERNELS[ops.Log] = np.log
KERNELS[ops.Sin] = np.sin
KERNELS[ops.Cos] = np.cos
KERNELS[ops.Tanh] = np.tanh
KERNELS[ops.Sqrt] = np.sqrt
KERNELS[ops.Abs] = _settled(_abs)
KERNELS[ops.Sign] = _settled(_sign)
KERNELS[ops.Rsqrt] = _settled(lambda x: 1 / np.sqrt(x))
KERNELS[ops.Expm1] = _settled(_expm1)
KERNELS[ops.Log1p] = _settled(_log1p)


@KERNELS.row(ops.Negate)
def _negate(op: Op, x: Values) -> Values:
    return np.asarray(np.negative(x))  # a NaN keeps its payload, so that a ufunc's row would be wrong


@KERNELS.row(ops.Conj)
def _conj(op: Op, x: Values) -> Values:
    return np.asarray(np.conjugate(x)) if x.dtype.kind == "c" else x


# --- arithmetic: equal shapes, or one operand of rank 0 ---------------------------------------------------------------


KERNELS[ops.Add] = np.add
KERNELS[ops.Subtract] = np.subtract


@KERNELS.row(ops.Multiply)
def _multiply(op: Op, x: Values, y: Values) -> Values:
    return multiply(x, y, y.shape if x.ndim == 0 else x.shape)


def multiply(x: Values, y: Values, shape: tuple[int, ...]) -> Values:
    """`x * y` broadcast, axis by axis, to `shape`.

    The complex product is spelled out because NumPy's own fuses multiplications and additions in its vector loop but not
    where operand and result overlap, as in `accumulate` (measured).
    """
    result = np.empty(shape, np.result_type(x, y), order="F")
    if result.dtype.kind == "c":
        np.subtract(x.real * y.real, x.imag * y.imag, out=result.real)
        np.add(x.real * y.imag, x.imag * y.real, out=result.imag)
    else:
        np.multiply(x, y, out=result)
    return canonical(result)


def _check_divisor(op: Op, policy: Policy, x: Values, zero: Values) -> None:
    if policy.integer_faults == "error" and x.size and np.any(zero):
        raise NumericalFailure(op=op.name, dtype=DType.of(x).name, cause="DivisionByZero")


@KERNELS.row(ops.Divide)
@PerPolicy
def _divide(op: Op, policy: Policy, x: Values, y: Values) -> Values:
    if x.dtype.kind not in "iu":
        return canonical(np.divide(x, y))
    zero = y == 0
    _check_divisor(op, policy, x, zero)
    # divisors 0 and -1 are kept from the hardware, which traps on 0 and on MIN / -1
    if x.dtype.kind == "u":
        return np.where(zero, np.iinfo(x.dtype).max, np.floor_divide(x, np.where(zero, y.dtype.type(1), y)))
    divisor = np.where(zero | (y == -1), y.dtype.type(1), y)
    quotient = np.floor_divide(x, divisor)
    remainder = x - quotient * divisor
    quotient = quotient + ((remainder != 0) & ((x < 0) != (divisor < 0)))  # from floor to truncation
    return np.where(zero, x.dtype.type(-1), np.where(y == -1, np.negative(x), quotient))


@KERNELS.row(ops.Remainder)
@PerPolicy
def _remainder(op: Op, policy: Policy, x: Values, y: Values) -> Values:
    if x.dtype.kind not in "iu":
        return canonical(np.fmod(x, y))
    zero = y == 0
    _check_divisor(op, policy, x, zero)
    # as in `_divide`; anything rem -1 is 0
    trapping = zero if x.dtype.kind == "u" else zero | (y == -1)
    return np.where(zero, x, np.fmod(x, np.where(trapping, y.dtype.type(1), y)))


@KERNELS.row(ops.Pow)
@PerPolicy
def _pow(op: Op, policy: Policy, x: Values, y: Values) -> Values:
    if x.dtype.kind in "iu":
        return _integer_pow(op, policy, x, y)
    shape = y.shape if x.ndim == 0 else x.shape
    if y.ndim < x.ndim or y.size == 1:
        # an exponent of stride 0 takes np.power's shortcuts, and sqrt(x) is not pow(x, 0.5): C's pow(-inf, 0.5) is inf
        y = np.full(shape or (1,), y, y.dtype, order="F")
    return canonical(np.power(x, y)).reshape(shape)


def _integer_pow(op: Op, policy: Policy, x: Values, y: Values) -> Values:
    negative = y < 0
    if not np.any(negative):
        return np.asarray(np.power(x, y))
    if policy.integer_faults == "error":
        if x.size == 0:
            return np.asarray(np.power(x, np.abs(y)))
        detail = 'negative integer exponent; policy integer_faults="stablehlo" admits it'
        raise InvalidArgument(op=op.name, argument="rhs", detail=detail)
    # 1 / x**-y in integers: nonzero for 1 and -1 only
    unit = np.where(x == 1, x, np.where(x == -1, np.where(y % 2 == 0, -x, x), x.dtype.type(0)))
    return np.where(negative, unit, np.power(x, np.where(negative, y.dtype.type(0), y)))


#: What these ops compute on float arrays, before NaNs are made canonical. None of them looks at a NaN's sign or payload.
FLOAT_UFUNCS: dict[type[Op], np.ufunc] = {op: row for op in KERNELS if isinstance(row := KERNELS[op], np.ufunc)} | {
    ops.Multiply: np.multiply,
    ops.Divide: np.divide,
    ops.Remainder: np.fmod,
}


# --- strictly one shape -----------------------------------------------------------------------------------------------


def maximum(x: Values, y: Values) -> Values:
    """The larger, `x` when equal (so the sign of a zero goes by position), NaN if either is NaN."""
    if x.dtype.kind != "f":
        return np.asarray(np.maximum(x, y))
    return np.where((x >= y) | np.isnan(x), x, y)


def minimum(x: Values, y: Values) -> Values:
    """The smaller, `x` when equal, NaN if either is NaN."""
    if x.dtype.kind != "f":
        return np.asarray(np.minimum(x, y))
    return np.where((x <= y) | np.isnan(x), x, y)


@KERNELS.row(ops.Maximum)
def _maximum(op: Op, x: Values, y: Values) -> Values:
    return maximum(x, y)


@KERNELS.row(ops.Minimum)
def _minimum(op: Op, x: Values, y: Values) -> Values:
    return minimum(x, y)


@KERNELS.row(ops.Clamp)
def _clamp(op: Op, x: Values, lower: Values, upper: Values) -> Values:
    return minimum(upper, maximum(lower, x))


_COMPARE: dict[CompareDir, Callable[[Values, Values], Any]] = {
    CompareDir.Eq: np.equal,
    CompareDir.Lt: np.less,
    CompareDir.Le: np.less_equal,
    CompareDir.Gt: np.greater,
    CompareDir.Ge: np.greater_equal,
}


@KERNELS.row(ops.Compare)
def _compare(op: ops.Compare, x: Values, y: Values) -> Values:
    return np.asarray(_COMPARE[op.dir](x, y))


@KERNELS.row(ops.Select)
def _select(op: Op, pred: Values, on_true: Values, on_false: Values) -> Values:
    return np.where(pred, on_true, on_false)
