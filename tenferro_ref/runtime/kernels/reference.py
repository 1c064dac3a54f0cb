"""Kernels of the ops of the reference alone (`tenferro_ref.ops.reference`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.runtime.kernels.base import KERNELS, Values, canonical

# --- functions --------------------------------------------------------------------------------------------------------


def _scipy(name: str) -> Callable[..., Any]:
    """A function of scipy.special, which takes a fifth of a command's start to import and which few programs need."""

    def function(*operands: Values) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*operands)

    return function


erf, erfc, erfcx, erfinv, gamma, gammaln, psi, zeta, i1e = map(
    _scipy, ("erf", "erfc", "erfcx", "erfinv", "gamma", "gammaln", "psi", "zeta", "i1e")
)

_SPECIAL: dict[str, Callable[[Values], Any]] = {
    "cbrt": np.cbrt, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": erf,
    "erfc": lambda x: _erfc(x), "erf_inv": erfinv, "lgamma": lambda x: _lgamma(x),
    "digamma": lambda x: _digamma(x), "bessel_i1e": lambda x: np.copysign(i1e(x), x),
}  # fmt: skip
_SPECIAL2: dict[str, Callable[[Values, Values], Any]] = {
    "atan2": np.arctan2,
    "zeta": lambda s, q: _zeta(s, q),
    "polygamma": lambda n, x: np.where(n == 0, _digamma(x), _polygamma(n, x)),
}


def _erfc(x: Values) -> Any:
    """SciPy's loses digits above 2, up to eight bits of them, and is zero where the value is subnormal."""
    value, far = np.array(erfc(x)), x > 2
    z = np.minimum(x[far].astype(np.float64), 28)
    high = np.round(z * 2**20) / 2**20  # its square is exact
    root = np.exp(-high * high / 2)
    value[far] = root * (erfcx(z) * np.exp((high - z) * (high + z))) * root
    return value


def _lgamma(x: Values) -> Any:
    """C's: SciPy has -inf at minus infinity, and inf for the smallest numbers."""
    value = np.where(np.isinf(x), np.inf, gammaln(x))
    return np.where(np.abs(x) < 1e-300, -np.log(np.abs(x)), value)


def _digamma(x: Values) -> Any:
    """NaN at the poles, as StableHLO's decomposition has it; SciPy's loses digits near them, where the reflection has them."""
    turn = x - np.round(x)
    value = np.where(x < 0, psi(1 - x) - np.pi / np.tan(np.pi * turn), psi(x))
    return np.where((x <= 0) & (turn == 0), np.nan, value)


def _polygamma(n: Values, x: Values) -> Any:
    """In float64: a factorial overflows long before its product with what it meets does."""
    n, x = n.astype(np.float64), x.astype(np.float64)
    return (-1.0) ** (n + 1) * gamma(n + 1) * _zeta(n + 1, x)


#: The largest order of zeta that is computed by the reflection; of larger ones, terms on either side of the nearest pole that matter.
_REFLECTED, _NEIGHBOURS = 21, 8


def _zeta(s: Values, q: Values) -> Any:
    """SciPy's sum has a term for each unit below zero: far below it never ends, and where the order is odd its terms cancel each other."""
    s, q = np.broadcast_arrays(s.astype(np.float64), q.astype(np.float64))
    below = (q < 0) & (q != np.floor(q)) & (s > 1) & (s == np.floor(s))
    reflected = below & (s <= _REFLECTED)
    far = below & ~reflected & (q < -2 * _NEIGHBOURS)
    turn = np.where(below, q - np.round(q), 0.25)
    value = np.array(zeta(s, np.where(reflected, 1 - q, np.where(far, 1.0, q))))
    for order in np.unique(s[reflected]):
        at, sign = reflected & (s == order), 1 if order % 2 else -1
        value[at] = sign * (value[at] + _derivative_of_cotangent(int(order) - 1, turn[at]) / gamma(order))
    around = np.arange(-_NEIGHBOURS, _NEIGHBOURS + 1.0)
    value[far] = np.sum((turn[far, np.newaxis] + around) ** -s[far, np.newaxis], axis=-1)
    return value


def _derivative_of_cotangent(order: int, turn: Values) -> Any:
    """Of `pi * cot(pi * turn)`, a polynomial in the cotangent whose coefficients have one sign."""
    slope = np.polynomial.Polynomial([-1.0, 0.0, -1.0])
    value = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(order):
        value = slope * value.deriv()
    # near a half the cotangent is zero, and the tangent of what is missing has its digits
    rest = np.copysign(0.5, turn) - turn
    cotangent = np.where(np.abs(turn) < 0.25, 1 / np.tan(np.pi * turn), np.tan(np.pi * rest))
    total = np.full(turn.shape, value.coef[-1])
    for coefficient in value.coef[-2::-1]:  # NumPy's begins with a product by zero, which is NaN of an infinity
        total = total * cotangent + coefficient
    return np.pi ** (order + 1) * total


@KERNELS.row(ops.Special)
def _special(op: ops.Special, x: Values) -> Values:
    return canonical(np.asarray(_SPECIAL[op.function](x)).astype(x.dtype))


@KERNELS.row(ops.Special2)
def _special2(op: ops.Special2, x: Values, y: Values) -> Values:
    return canonical(np.asarray(_SPECIAL2[op.function](x, y)).astype(x.dtype))


# --- bits -------------------------------------------------------------------------------------------------------------


def words(x: Values) -> Values:
    """The bits of integers, in uint64."""
    dtype = DType.of(x)
    wide = x.astype(np.int64) if dtype.kind == "int" else x.astype(np.uint64)
    return np.asarray(wide.view(np.uint64) & np.uint64(2**dtype.bits - 1))


def of_words(x: Values, dtype: DType) -> Values:
    """The integers of a dtype with these bits, modulo its width."""
    x = x & np.uint64(2**dtype.bits - 1)
    if dtype.kind == "int" and dtype.bits < 64:
        sign = np.uint64(2 ** (dtype.bits - 1))
        return np.asarray(((x ^ sign).view(np.int64) - np.int64(sign)).astype(dtype.numpy))
    return np.asarray(x.view(np.int64) if dtype.kind == "int" else x).astype(dtype.numpy)


def _length(x: Values) -> Values:
    """How many bits an unsigned integer needs."""
    high, low = (x >> np.uint64(32)).astype(np.float64), (x & np.uint64(2**32 - 1)).astype(np.float64)
    return np.where(high > 0, 32 + np.frexp(high)[1], np.frexp(low)[1]).astype(np.uint64)


def on_bits(function: str, dtype: DType, x: Values, y: Values | None = None) -> Values:
    """An operation on the bits of integers of a dtype, given and returned as words."""
    width = np.uint64(dtype.bits)
    if y is None:
        one_operand: dict[str, Callable[[], Any]] = {
            "not": lambda: ~x,
            "popcnt": lambda: np.bitwise_count(x).astype(np.uint64),
            "count_leading_zeros": lambda: width - _length(x),
        }
        return np.asarray(one_operand[function]())
    if function in ("and", "or", "xor"):
        return np.asarray({"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[function](x, y))
    inside = y < width
    by = np.where(inside, y, np.uint64(0))
    if function == "shift_left":
        return np.where(inside, x << by, np.uint64(0))
    moved = np.where(inside, x >> by, np.uint64(0))
    if function == "shift_right_logical":
        return moved
    negative = (x >> (width - np.uint64(1))) & np.uint64(1) == 1
    ones = np.uint64(2**64 - 1)
    kept = np.where(inside, width - by, np.uint64(0))
    # shifting by 64 is undefined: what is kept of 64 bits fills nothing
    filled = np.where(kept >= 64, np.uint64(0), ones << np.where(kept >= 64, np.uint64(0), kept))
    return np.where(negative, moved | filled, moved)


@KERNELS.row(ops.Bits)
def _bits(op: ops.Bits, *operands: Values) -> Values:
    dtype = DType.of(operands[0])
    return of_words(on_bits(op.function, dtype, *map(words, operands)), dtype)


@KERNELS.row(ops.Bitcast)
def _bitcast(op: ops.Bitcast, x: Values) -> Values:
    dtype = DType.of(x)
    if dtype.bits < 8 and dtype.is_int and op.to.is_int:
        return of_words(words(x), op.to)
    return np.asarray(x.view(op.to.numpy))


# --- narrower formats -------------------------------------------------------------------------------------------------


def reduced(x: Values, exponent_bits: int, mantissa_bits: int, own: DType) -> Values:
    """Floats rounded to nearest even in a format of fewer bits, subnormals of that format as zeros, in their own dtype."""
    info = own.finfo
    bits = x.view(f"u{x.dtype.itemsize}").astype(np.uint64)
    dropped = int(info.nmant) - mantissa_bits
    sign = bits & np.uint64(1 << (own.bits - 1))
    if dropped > 0:
        last = (bits >> np.uint64(dropped)) & np.uint64(1)
        bits = (bits + np.uint64((1 << (dropped - 1)) - 1) + last) & ~np.uint64((1 << dropped) - 1)
    own_exponent = own.bits - 1 - int(info.nmant)
    if exponent_bits < own_exponent:
        exponent = (bits >> np.uint64(int(info.nmant))) & np.uint64((1 << own_exponent) - 1)
        bias, reach = (1 << (own_exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        infinity = np.uint64(((1 << own_exponent) - 1) << int(info.nmant))
        bits = np.where(exponent > bias + reach, sign | infinity, bits)
        bits = np.where(exponent <= bias - reach, sign, bits)
    result = bits.astype(f"u{x.dtype.itemsize}").view(x.dtype)
    return np.where(np.isnan(x), x, result)


@KERNELS.row(ops.Imag)
def _imag(op: ops.Imag, x: Values) -> Values:
    return np.array(x.imag, order="F")


@KERNELS.row(ops.Repeated)
def _repeated(op: ops.Repeated, once: Values, *others: Values) -> Values:
    return once


@KERNELS.row(ops.ReducePrecision)
def _reduce_precision(op: ops.ReducePrecision, x: Values) -> Values:
    return reduced(x, op.exponent_bits, op.mantissa_bits, DType.of(x))
