"""Exact rules of integers and Bool: wrapping arithmetic, truncating division.

Known values are computed modulo 2**64, of which every narrower arithmetic is a part. Bounds that differ are computed with
Python's integers: they are rare, and whether they cross a wrap must be known exactly. One that does becomes everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oracle.enclosure.formats import Array
from oracle.enclosure.value import Enclosure, Interval, bound_type, everything, exact
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op


def modulo(dtype: DType, v: Array) -> Array:
    """Integers (uint64, int64 or Python's, of any size) taken into the range of the dtype."""
    if v.dtype == object:
        v = np.asarray(v & (2**64 - 1), object).astype(np.uint64)
    bits, v = np.uint64(dtype.bits), v.astype(np.uint64)
    if dtype.bits < 64:
        v = v & np.uint64(2**dtype.bits - 1)
    if dtype.kind == "int" and dtype.bits < 64:
        sign = np.uint64(1) << (bits - np.uint64(1))
        return np.asarray((v ^ sign).view(np.int64) - sign.view(np.int64))
    return np.asarray(v.view(bound_type(dtype)))


def wrapped(dtype: DType, lo: Array, hi: Array | None = None) -> Interval:
    """Bounds taken modulo the dtype.

    Parameters
    ----------
    lo, hi
        True bounds, as Python's integers; or `lo` alone, known values modulo 2**64.
    """
    if hi is None:
        return exact(dtype, modulo(dtype, np.asarray(lo)))
    least, greatest = dtype.limits
    lo, hi = (np.asarray(v).astype(object) for v in (lo, hi))  # of rank 0 they are no arrays any more
    crossed = np.asarray((lo - least) >> dtype.bits != (hi - least) >> dtype.bits).astype(bool)
    low, high = modulo(dtype, lo), modulo(dtype, hi)
    kind = low.dtype.type
    return exact(dtype, np.where(crossed, kind(least), low), np.where(crossed, kind(greatest), high))


def where_known(dtype: DType, known: Array, result: Array) -> Interval:
    """The result where everything that it comes of is known, any integer elsewhere."""
    if known.all():
        return exact(dtype, result)
    anything = everything(dtype, result.shape)
    return exact(dtype, np.where(known, result, anything.lo), np.where(known, result, anything.hi))


#: How many values operands may have together, for a result of each to be computed.
FEW = 64


def hull_of_few(made: Interval, f: Callable[..., Array], *operands: Interval) -> Interval:
    """From the least to the greatest of what `f` gives for all the values that operands have where these are few; elsewhere as made."""
    lows = [np.broadcast_to(x.lo, made.shape) for x in operands]
    spans = [np.broadcast_to(x.hi, made.shape).astype(np.uint64) - x.lo.astype(np.uint64) for x in operands]
    numbers = [np.minimum(span, np.uint64(FEW)) + np.uint64(1) for span in spans]
    count = np.asarray(np.prod(numbers, 0))
    few = (count > 1) & (count <= FEW)
    if not few.any():
        return made
    lows, numbers, count = [v[few] for v in lows], [v[few] for v in numbers], count[few]
    seen = []
    for index in range(int(count.max())):
        rest, values = np.uint64(index) % count, []
        for low, number in zip(lows, numbers, strict=True):
            values.append(low + (rest % number).astype(low.dtype))
            rest = rest // number
        seen.append(f(*values))
    lo, hi = made.lo.copy(), made.hi.copy()
    lo[few], hi[few] = np.minimum.reduce(seen), np.maximum.reduce(seen)
    return exact(made.dtype, lo, hi)


def big(x: Interval) -> tuple[Array, Array]:
    """The bounds as Python's integers."""
    return x.lo.astype(object), x.hi.astype(object)


def _words(x: Interval) -> Array:
    """Known values modulo 2**64."""
    return np.asarray(x.lo.astype(np.uint64))


def monotone(dtype: DType, f: Callable[[Array, Array], Array], x: Interval, y: Interval) -> Interval:
    """`f` increasing in both operands and never wrapping."""
    lo = f(x.lo, y.lo)
    return exact(dtype, lo, lo if x.is_point and y.is_point else f(x.hi, y.hi))


def add(dtype: DType, x: Interval, y: Interval) -> Interval:
    if dtype is DType.Bool:
        return monotone(dtype, np.maximum, x, y)
    if x.is_point and y.is_point:
        return wrapped(dtype, _words(x) + _words(y))
    (a, b), (c, d) = big(x), big(y)
    return wrapped(dtype, a + c, b + d)


def subtract(dtype: DType, x: Interval, y: Interval) -> Interval:
    if x.is_point and y.is_point:
        return wrapped(dtype, _words(x) - _words(y))
    (a, b), (c, d) = big(x), big(y)
    return wrapped(dtype, a - d, b - c)


def multiply(dtype: DType, x: Interval, y: Interval) -> Interval:
    if dtype is DType.Bool:
        return monotone(dtype, np.minimum, x, y)
    if x.is_point and y.is_point:
        return wrapped(dtype, _words(x) * _words(y))
    products = (np.asarray(a * b).astype(object) for a in big(x) for b in big(y))
    corners = np.stack(np.broadcast_arrays(*products))
    return wrapped(dtype, corners.min(0), corners.max(0))


def negate(dtype: DType, x: Interval) -> Interval:
    if x.is_point:
        return wrapped(dtype, -_words(x))
    lo, hi = big(x)
    return wrapped(dtype, -hi, -lo)


def absolute(dtype: DType, x: Interval) -> Interval:
    if dtype.is_unsigned:
        return x
    if x.is_point:
        return wrapped(dtype, np.abs(x.lo))
    least, greatest = dtype.limits
    lo = np.where((x.lo <= 0) & (x.hi >= 0), 0, np.minimum(np.abs(x.lo), np.abs(x.hi)))
    hi = np.maximum(np.abs(x.lo), np.abs(x.hi))
    minimum_inside = x.lo == least  # |MIN| = MIN
    return exact(dtype, np.where(minimum_inside, least, lo), np.where(minimum_inside, greatest, hi))


def divide(dtype: DType, x: Interval, y: Interval) -> Interval:
    """Truncating; x / 0 has all bits set and MIN / -1 = MIN (the engine raises for a zero divisor and gives no value)."""
    if x.is_point and y.is_point:
        return exact(dtype, _truncate(dtype, x.lo, y.lo))
    corners = [_truncate(dtype, a, b) for a in (x.lo, x.hi) for b in (y.lo, y.hi)]
    stacked = np.stack(np.broadcast_arrays(*corners))
    least, greatest = dtype.limits
    # monotone in each operand while the divisor keeps one sign and MIN / -1 stays out
    wild = ((y.lo <= 0) & (y.hi >= 0)) | ((x.lo == least) & (y.hi < 0) & (least < 0))
    wild &= (x.lo != x.hi) | (y.lo != y.hi)
    kind = stacked.dtype.type
    return exact(dtype, np.where(wild, kind(least), stacked.min(0)), np.where(wild, kind(greatest), stacked.max(0)))


def _truncate(dtype: DType, a: Array, b: Array) -> Array:
    kind = a.dtype.type
    if dtype.is_unsigned:
        return np.where(b == 0, kind(dtype.limits[1]), a // np.where(b == 0, kind(1), b))
    least = dtype.limits[0]
    overflow = (a == least) & (b == -1)
    safe = np.where((b == 0) | overflow, 1, b)
    quotient = a // safe
    quotient = quotient + ((quotient * safe != a) & ((a < 0) != (safe < 0)))
    return np.where(b == 0, -1, np.where(overflow, least, quotient))


def remainder(dtype: DType, x: Interval, y: Interval) -> Interval:
    """Sign of the dividend; x rem 0 = x and MIN rem -1 = 0 (the engine raises for a zero divisor and gives no value)."""
    trapping = (y.lo == 0) if dtype.is_unsigned else (y.lo == 0) | (y.lo == -1)
    value = np.where(y.lo == 0, x.lo, np.fmod(x.lo, np.where(trapping, y.lo.dtype.type(1), y.lo)))
    if x.is_point and y.is_point:
        return exact(dtype, value)
    (a, b), (c, d) = big(x), big(y)
    size_x, size_y = _largest(a, b), _largest(c, d)
    less = np.asarray(np.minimum(size_x, size_y - 1), object)
    most = np.where(np.asarray((c <= 0) & (d >= 0), bool), size_x, less)
    lo = np.where(np.asarray(a < 0, bool), np.asarray(-most, object), 0)
    hi = np.where(np.asarray(b > 0, bool), np.asarray(np.minimum(most, dtype.limits[1]), object), 0)
    made = wrapped(dtype, lo, hi)
    known = (x.lo == x.hi) & (y.lo == y.hi)
    return exact(dtype, np.where(known, value, made.lo), np.where(known, value, made.hi))


def _largest(lo: Array, hi: Array) -> Array:
    """The largest magnitude between Python's integers, of which those of rank 0 stay arrays: 2**63 fits into no other type."""
    return np.asarray(np.maximum(np.asarray(np.abs(lo), object), np.asarray(np.abs(hi), object)), object)


def power(dtype: DType, x: Interval, y: Interval) -> Interval:
    """By squaring, wrapping; with a negative exponent the reciprocal of the power, truncated: 0 but of 1 and -1.

    StableHLO does not say the latter; the plugins, JAX, the interpreter and IREE agree, also where it is the reciprocal of 0.
    """
    shape = np.broadcast_shapes(x.shape, y.shape)

    def value(base: Array, exponent: Array) -> Array:
        one = np.uint64(1)
        result = np.ones(base.shape, np.uint64)
        left = np.maximum(exponent, 0).astype(np.uint64)
        square = base.astype(np.uint64)
        while (left > 0).any():
            result = np.where(left & one, result * square, result)
            square = square * square
            left = left >> one
        made = modulo(dtype, result)
        if (exponent < 0).any():
            whole = np.where(base == -1, np.where(exponent & 1, -1, 1), base == 1)
            made = np.where(exponent < 0, whole, made)
        return made

    known = np.broadcast_to((x.lo == x.hi) & (y.lo == y.hi), shape)
    made = where_known(dtype, known, value(*(np.broadcast_to(v.lo, shape) for v in (x, y))))
    return made if known.all() else hull_of_few(made, value, x, y)


def is_known(op: Op, operands: Sequence[Enclosure], slots: Sequence[int]) -> bool:
    """Whether a compiler knows the result by algebra, whatever the integers are.

    `i - i`, `i ^ i`, `i * 0`, `i & 0`, `i | -1`, `i % 1`, `i = i`, `i ** 0`, `u < 0` of unsigned numbers and Bool, `b or true`; of floats
    `x ** 0` and `1 ** x` alone, which are 1 of a NaN, too.

    `slots` are those of the operands; one for what is computed alike.
    """
    pair = [v for v in operands if isinstance(v, Interval)]
    if len(pair) != 2 or len(operands) != 2:
        return False
    x, y = pair
    if x.dtype.is_float:
        return isinstance(op, ops.Pow) and (_is_constant(y, 0) or _is_constant(x, 1))
    unsigned = x.dtype.is_unsigned or x.dtype is DType.Bool
    match op:
        case ops.Add() | ops.Maximum() if x.dtype is DType.Bool:
            return _is_constant(x, 1) or _is_constant(y, 1)
        case ops.Minimum() if x.dtype is DType.Bool:
            return _is_constant(x, 0) or _is_constant(y, 0)
        case ops.Subtract() | ops.Bits(function="xor"):
            return slots[0] == slots[1]
        case ops.Compare(dir=ops.CompareDir.Lt | ops.CompareDir.Ge) if unsigned:
            return slots[0] == slots[1] or _is_constant(y, 0)
        case ops.Compare(dir=ops.CompareDir.Gt | ops.CompareDir.Le) if unsigned:
            return slots[0] == slots[1] or _is_constant(x, 0)
        case ops.Compare():
            return slots[0] == slots[1]
        case ops.Multiply() | ops.Bits(function="and"):
            return _is_constant(x, 0) or _is_constant(y, 0)
        case ops.Bits(function="or"):
            ones = x.dtype.limits[1] if x.dtype.is_unsigned else -1
            return _is_constant(x, ones) or _is_constant(y, ones)
        case ops.Remainder():
            return _is_constant(y, 1)
        case ops.Pow():
            return _is_constant(y, 0)
    return False


def gives_back(op: Op, operands: Sequence[Enclosure]) -> int | None:
    """Which operand integer algebra gives back: `i + 0`, `i - 0`, `i * 1`, `i / 1`, `i | 0`, `i & -1`, `i ** 1`, `max(i, MIN)`."""
    pair = [v for v in operands if isinstance(v, Interval) and not v.dtype.is_float]
    if len(pair) != 2 or len(operands) != 2 or pair[0].shape != pair[1].shape:
        return None
    x, y = pair
    least, greatest = (0, 1) if x.dtype is DType.Bool else x.dtype.limits
    match op:
        case ops.Subtract() | ops.Bits(function="shift_left" | "shift_right_logical" | "shift_right_arithmetic"):
            return 0 if _is_constant(y, 0) else None
        case ops.Divide() | ops.Pow():
            return 0 if _is_constant(y, 1) else None
        case ops.Add() | ops.Bits(function="or" | "xor"):
            neutral = 0
        case ops.Multiply():
            neutral = 1
        case ops.Bits(function="and"):
            neutral = -1 if least < 0 else greatest
        case ops.Maximum():
            neutral = least
        case ops.Minimum():
            neutral = greatest
        case _:
            return None
    return 0 if _is_constant(y, neutral) else 1 if _is_constant(x, neutral) else None


def _is_constant(x: Interval, value: int) -> bool:
    return x.const and bool(np.all((x.lo == value) & (x.hi == value) & ~x.nan))
