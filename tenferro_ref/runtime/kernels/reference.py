"""Kernels of the ops of the reference alone (`tenferro_ref.ops.reference`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
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


erf, erfc, erfcx, erfinv, gamma, gammaln, psi, i1e = map(
    _scipy, ("erf", "erfc", "erfcx", "erfinv", "gamma", "gammaln", "psi", "i1e")
)

_SPECIAL: dict[str, Callable[[Values], Any]] = {
    "cbrt": np.cbrt, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": erf,
    "erfc": lambda x: _erfc(x), "erf_inv": lambda x: np.copysign(erfinv(x), x), "lgamma": lambda x: _lgamma(x),
    "digamma": lambda x: _digamma(x), "bessel_i1e": lambda x: np.copysign(i1e(x), x),
}  # fmt: skip
_SPECIAL2: dict[str, Callable[[Values, Values], Any]] = {
    "atan2": np.arctan2,
    "zeta": lambda s, q: _zeta(s, q),
    "polygamma": lambda n, x: np.where(n == 0, _digamma(x), _polygamma(n, x)),
}


def _erfc(x: Values) -> Any:
    """SciPy's loses up to nine bits above 2, and is zero where the value is subnormal."""
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


#: The largest order of polygamma whose factorial is computed exactly.
_MOST_ORDERS = 1000


def _polygamma(n: Values, x: Values) -> Any:
    """In float64. A factorial overflows, and a sum underflows, long before the product of both does: powers of two are kept apart."""
    n, x = np.broadcast_arrays(n.astype(np.float64), x.astype(np.float64))
    sign = (-1.0) ** (n + 1)
    value = np.array(sign * gamma(n + 1) * _zeta(n + 1, x))
    apart = (x >= 2) & np.isfinite(x) & (n >= 1) & (n <= _MOST_ORDERS) & (n == np.floor(n))
    for order in np.unique(n[apart]):
        at, factorial = apart & (n == order), math.factorial(int(order))
        bits, power = factorial.bit_length(), np.frexp(x[at])[1] - 1
        step = np.ldexp(1.0, -power)
        product = float(Fraction(factorial, 1 << bits)) * _hurwitz(order + 1, x[at] * step, step)
        value[at] = sign[at] * np.ldexp(product, bits - power * int(order + 1))
    return np.where((n >= 0) & (n == np.floor(n)), value, np.nan)  # n + 1 may be whole where n is not


def _zeta(s: Values, q: Values) -> Any:
    """Hurwitz's zeta function. Below zero it has a term for each unit, and those of odd orders nearly cancel: the reflection is used there."""
    s, q = np.broadcast_arrays(s.astype(np.float64), q.astype(np.float64))
    pole = (q <= 0) & (q == np.floor(q))
    value = np.where((s == 1) | ((s > 1) & pole), np.inf, np.where((s > 1) & (q == np.inf), 0.0, np.nan))
    above, below = (s > 1) & (q > 0) & np.isfinite(q), (s > 1) & (s == np.floor(s)) & (q < 0) & ~pole
    value[above] = _hurwitz(s[above], q[above])
    s, q = s[below], q[below]
    value[below] = _both_sides(s, q - np.round(q)) - (-1.0) ** s * _hurwitz(s, 1 - q)
    return value


#: Terms that are added before the rest is taken from a series, and the coefficients of that: Bernoulli's numbers by factorials.
_TERMS = 32
_REST = (
    1 / 12, -1 / 720, 1 / 30_240, -1 / 1_209_600, 1 / 47_900_160, -691 / 1_307_674_368_000, 1 / 74_724_249_600,
    -3617 / 10_670_622_842_880_000,
)  # fmt: skip


def _hurwitz(s: Values, q: Values, step: Values | float = 1.0) -> Any:
    """The sum of `(q + k * step) ** -s` over k = 0, 1, ..."""
    return _summed(s, lambda p, k: (q + k * step) ** -p, q + _TERMS * step, step)


def _both_sides(s: Values, turn: Values) -> Any:
    """The sum of `(turn + k) ** -s` over all integers k, for whole s; `turn` is at most a half.

    The two terms for k and -k - 1, on either side of zero, are added as the nearer one times a factor, of which nothing is lost where they nearly cancel.
    """
    near, odd = np.abs(turn), s % 2 == 1

    def power(p: Values, k: int) -> Values:
        decay = -2 * p * np.arctanh((0.5 - near) / (0.5 + k))
        both: Values = (near + k) ** -p * np.where(odd, np.copysign(np.expm1(decay), turn), 1 + np.exp(decay))
        return both

    return _summed(s, power, _TERMS, 1.0)


def _summed(s: Values, power: Callable[[Any, int], Any], end: Values | float, step: Values | float) -> Any:
    """The sum of `power(s, k)` over k = 0, 1, ..., a power of a base that grows by `step` and is `end` for the first that is not added.

    By Euler and Maclaurin. Of an order beyond twice the number of steps to `end` the rest is nothing, and its series diverges.
    """
    rest = power(s - 1, _TERMS) / ((s - 1) * step) + power(s, _TERMS) / 2
    factor, bounded = step, np.minimum(s, 1e15)  # whose products do not overflow
    for j, coefficient in enumerate(_REST):
        factor = factor * (bounded + 2 * j)
        rest = rest + coefficient * factor * power(s + 2 * j + 1, _TERMS)
        factor = factor * (bounded + 2 * j + 1) * step * step
    terms = 0.0
    for k in reversed(range(_TERMS)):
        terms = terms + power(s, k)
    return terms + np.where(s * step / 2 > end, 0.0, rest)


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


def _half_away(x: Values) -> Any:
    """To nearest, halves away from zero: what is dropped is exact."""
    whole = np.trunc(x)
    return np.copysign(whole + np.copysign(np.abs(x - whole) >= 0.5, x), x)


_WHOLE: dict[str, Callable[[Values], Any]] = {
    "ceil": np.ceil, "floor": np.floor, "round_nearest_afz": _half_away, "round_nearest_even": np.rint,
}  # fmt: skip


@KERNELS.row(ops.Whole)
def _whole(op: ops.Whole, x: Values) -> Values:
    return np.asarray(np.where(np.isfinite(x), _WHOLE[op.function](x), x), x.dtype)


@KERNELS.row(ops.Imag)
def _imag(op: ops.Imag, x: Values) -> Values:
    return np.array(x.imag, order="F")


@KERNELS.row(ops.Complex)
def _complex(op: ops.Complex, re: Values, im: Values) -> Values:
    made = np.empty(re.shape, DType.of(re).complex.numpy, order="F")
    made.real, made.imag = re, im
    return made


@KERNELS.row(ops.Repeated)
def _repeated(op: ops.Repeated, once: Values, *others: Values) -> Values:
    return once


@KERNELS.row(ops.ReducePrecision)
def _reduce_precision(op: ops.ReducePrecision, x: Values) -> Values:
    """A number is rounded, not its bits: in F16, which has all numbers of the formats of eight bits and fewer."""
    own = DType.of(x)
    if own.bits >= DType.F16.bits:
        return reduced(x, op.exponent_bits, op.mantissa_bits, own)
    return reduced(x.astype(np.float16), op.exponent_bits, op.mantissa_bits, DType.F16).astype(x.dtype)
