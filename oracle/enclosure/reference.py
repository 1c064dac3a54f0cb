"""Rules of the ops of the reference alone (`tenferro_ref.ops.reference`) that are no functions.

Operations on bits know single values, and few; of more, they know the leading bits that all have. Of a NaN, whose bits no implementation
promises, any value is possible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce

import numpy as np

from oracle.enclosure import integers, narrowing
from oracle.enclosure.arithmetic import with_sign_flipped
from oracle.enclosure.formats import Array
from oracle.enclosure.freedoms import contraction, excess, flush
from oracle.enclosure.origin import Origin
from oracle.enclosure.poles import gapped, united
from oracle.enclosure.rule import COMPLEX, ENCLOSE, Context
from oracle.enclosure.value import Enclosure, Interval, Rectangle, each_part, exact, hull, real_point
from tenferro_ref import ops
from tenferro_ref.dtype import DType

#: Operations on bits that a mask may have a part in.
_MASKING = ("and", "or", "xor")


@ENCLOSE.row(ops.Bits)
def _bits(op: ops.Bits, c: Context, *operands: Interval) -> Interval:
    made = _on_integers(op, c, *operands)
    return with_sign_flipped(made, *operands) if op.function == "xor" else made


def _on_integers(op: ops.Bits, c: Context, *operands: Interval) -> Interval:
    shape, mask = operands[0].shape, 2**c.dtype.bits - 1
    function = np.frompyfunc(lambda *v: _on_bits(op.function, c.dtype, *v), len(operands), 1)

    def result(*values: Array) -> Array:
        bits = function(*(v.astype(object) & mask for v in values))
        return integers.modulo(c.dtype, np.asarray(bits, object))

    known = np.logical_and.reduce([np.broadcast_to(x.lo == x.hi, shape) for x in operands])
    made = integers.where_known(c.dtype, known, result(*(x.lo for x in operands)))
    if known.all():
        return made
    made = _between(made, ~known, *_bounds(op.function, c.dtype, *operands))
    x, *by = operands[::-1] if op.function in _MASKING and (operands[0].lo == operands[0].hi).all() else operands
    monotone = _monotone(op.function, c.dtype, *by) & ((x.lo < 0) == (x.hi < 0))
    ends = (result(end, *(y.lo for y in by)) for end in (x.lo, x.hi))
    return integers.hull_of_few(_between(made, np.broadcast_to(monotone, shape), *ends), result, *operands)


def _bounds(function: str, dtype: DType, x: Interval, y: Interval | None = None) -> tuple[Array, Array]:
    """Between what two the results of an operation on bits are, whatever is known of its operands."""
    if y is None:
        least, most = (dtype.limits[0], dtype.limits[1]) if function == "not" else (0, dtype.bits)
    elif function in _MASKING:
        return _masked(function, dtype, x, y)
    elif function == "shift_left" and (y.lo == y.hi).all():  # a product, which may wrap
        factors = [2**by if by < dtype.bits else 0 for by in (y.lo.ravel().astype(object) & 2**dtype.bits - 1)]
        shift = np.reshape(np.array(factors, object), y.shape)
        low, high = integers.big(x)
        shifted = integers.wrapped(dtype, low * shift, high * shift)
        return shifted.lo, shifted.hi
    else:
        least, most = dtype.limits
    every = integers.everything(dtype, x.shape)
    return np.full_like(every.lo, least), np.full_like(every.lo, most)


def _masked(function: str, dtype: DType, x: Interval, y: Interval) -> tuple[Array, Array]:
    """Bounds of a mask's result, of the leading bits that all values of each operand have."""
    mask, sign = np.uint64(2**dtype.bits - 1), np.uint64(0 if dtype.is_unsigned else 2 ** (dtype.bits - 1))

    def leading(v: Interval) -> tuple[Array, Array]:
        """Bits that are set in all values, and bits that are in none: those before the first that the ends do not share."""
        first, last = v.lo.astype(np.uint64) & mask, v.hi.astype(np.uint64) & mask
        open_ = first ^ last
        for step in (1, 2, 4, 8, 16, 32):
            open_ = open_ | (open_ >> np.uint64(step))
        return first & ~open_, ~first & ~open_ & mask

    (a, not_a), (b, not_b) = leading(x), leading(y)
    match function:
        case "and":
            ones, zeros = a & b, not_a | not_b
        case "or":
            ones, zeros = a | b, not_a & not_b
        case _:
            ones, zeros = (a & not_b) | (not_a & b), (a & b) | (not_a & not_b)
    open_ = mask & ~(ones | zeros)
    low, high = (integers.modulo(dtype, ones | (open_ & chosen)) for chosen in (sign, ~sign))
    for v in (x, y) if function == "and" else ():  # what is not negative, a mask makes no larger
        high = np.where(v.lo >= 0, np.minimum(high, v.hi), high)
    return low, high


def _monotone(function: str, dtype: DType, by: Interval | None = None) -> Array:
    """Where an operation on bits is monotone on numbers of one sign: shifts to the right, and masks that tell the sign from the rest."""
    if by is None:
        return np.asarray(function == "not")
    masks = [by.lo == mask for mask in (0, -1, *dtype.limits) if function in _MASKING]
    return np.asarray((by.lo == by.hi) & reduce(np.logical_or, masks, np.asarray(function.startswith("shift_right"))))


def _on_bits(function: str, dtype: DType, x: int, y: int = 0) -> int:
    """An operation on integers whose bits are those of the operands, unsigned; modulo the width."""
    width = dtype.bits
    if function == "shift_left":
        return x << y if y < width else 0
    if function == "shift_right_logical":
        return x >> y if y < width else 0
    if function == "shift_right_arithmetic":
        return (x - (x >> (width - 1) << width)) >> min(y, width)
    if function == "count_leading_zeros":
        return width - x.bit_length()
    simple = {"and": x & y, "or": x | y, "xor": x ^ y, "not": ~x, "popcnt": x.bit_count()}
    return simple[function]


def _between(x: Interval, mask: Array, a: Array, b: Array) -> Interval:
    """From the lesser to the greater of two where the mask holds."""
    return exact(x.dtype, np.where(mask, np.minimum(a, b), x.lo), np.where(mask, np.maximum(a, b), x.hi))


@ENCLOSE.row(ops.Whole)
def _whole(op: ops.Whole, c: Context, x: Interval) -> Interval:
    """Monotone, so that the bounds are taken; of two that follow one another, nothing is between them."""
    function = _WHOLE[op.function]
    lo = c.format.nearest(function(x.lo))  # the next number may be beyond a narrow format
    hi = lo if x.is_point else c.format.nearest(function(x.hi))
    # what has the sign of the operand where it is zero comes to zero from one side, or from both
    pos, neg = x.pos_zero | (op.function != "ceil") & (x.hi > 0), x.neg_zero | (op.function != "floor") & (x.lo < 0)
    made = c.build(lo, hi, x.nan, pos, neg, inexact=False)
    open_ = ~x.empty & (lo < hi)
    if not open_.any():
        return made
    unrounded = excess.of_result(c.model, made)
    if unrounded is not made:  # of what was not rounded, which may go on so
        return unrounded
    follow = open_ & (hi == lo + 1)
    return gapped(c, made, np.where(follow, lo, np.inf), np.where(follow, hi, -np.inf))


def _away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.isfinite(x), whole + np.copysign(np.abs(x - whole) >= 0.5, x), x)


_WHOLE: dict[str, Callable[[Array], Array]] = {
    "ceil": np.ceil, "floor": np.floor, "round_nearest_afz": _away, "round_nearest_even": np.rint,
}  # fmt: skip


@ENCLOSE.row(ops.Imag)
def _imag_of_real(op: ops.Imag, c: Context, x: Interval) -> Interval:
    """A real number that is enclosed as a complex one has a zero there."""
    return exact(c.dtype, np.zeros(x.shape))


@COMPLEX.row(ops.Imag)
def _imag(op: ops.Imag, c: Context, x: Enclosure) -> Enclosure:
    return x.parts[1]


@COMPLEX.row(ops.Complex)
def _complex(op: ops.Complex, c: Context, re: Enclosure, im: Enclosure) -> Enclosure:
    """Nothing is computed: what is known of a part, as that it is a product that may go unrounded, is known of it still."""
    (real,), (imag,) = re.parts, im.parts
    return Rectangle(real, imag)


@ENCLOSE.row(ops.Bitcast)
def _bitcast(op: ops.Bitcast, c: Context, x: Interval) -> Interval:
    return narrowing.cast(x, _of_bits(c, x))


def _of_bits(c: Context, x: Interval) -> Interval:
    known = np.asarray(x.lo == x.hi)
    if x.dtype.is_float:
        known = known & ~x.nan & ~(x.pos_zero & x.neg_zero)
        # the sign of a zero is in the flags: a bound may be a zero of the other
        value = np.where(x.lo == 0, np.where(x.neg_zero & ~x.pos_zero, -0.0, 0.0), np.where(x.empty, 0.0, x.lo))
        bits = value.astype(x.dtype.numpy).view(f"u{x.dtype.itemsize}").astype(np.uint64)
    else:
        bits = x.lo.astype(np.uint64)
    if c.dtype.is_float:
        array = (bits & np.uint64(2**c.dtype.bits - 1)).astype(f"u{c.dtype.itemsize}").view(c.dtype.numpy)
        made = flush.of_known(c.model, real_point(array))  # bits of a subnormal, which who reads it may flush
        assert isinstance(made, Interval)
        if known.all():
            return made
        lo, hi = np.where(known, made.lo, -np.inf), np.where(known, made.hi, np.inf)
        every = Interval(c.dtype, lo, hi, made.nan | ~known, made.pos_zero | ~known, made.neg_zero | ~known)
        return _of_ordered_bits(c, x, every) if not x.dtype.is_float and c.dtype.bits == x.dtype.bits else every
    made = integers.where_known(c.dtype, known, integers.modulo(c.dtype, bits))
    if not x.dtype.is_float or known.all() or c.dtype.bits != x.dtype.bits:
        return made
    # floats of one sign are ordered as their bits are
    ends = [
        np.where(x.empty, 1, v).astype(x.dtype.numpy).view(f"u{x.dtype.itemsize}").astype(np.uint64)
        for v in (x.lo, x.hi)
    ]
    one_sign = ((x.lo > 0) | (x.hi < 0)) & ~x.nan
    return _between(made, one_sign, *(integers.modulo(c.dtype, v) for v in ends))


def _of_ordered_bits(c: Context, x: Interval, every: Interval) -> Interval:
    """Floats of more than 8 bits, those of bits of one sign, which are ordered as the floats are: infinities last, and NaN after them."""
    if c.dtype.bits < 16:
        return every
    bits = [v.astype(np.uint64) & np.uint64(2**c.dtype.bits - 1) for v in (x.lo, x.hi)]
    with np.errstate(invalid="ignore"):  # of a signaling NaN
        first, last = (v.astype(f"u{c.dtype.itemsize}").view(c.dtype.numpy).astype(np.float64) for v in bits)
    negative, also = (v >> np.uint64(c.dtype.bits - 1) != 0 for v in bits)
    nan = np.isnan(last)
    last = np.where(nan & ~np.isnan(first), np.where(negative, -np.inf, np.inf), last)
    made = c.build(
        np.where(negative, last, first), np.where(negative, first, last), nan, ~negative, negative, inexact=False
    )
    ordered = (negative == also) & (x.lo < x.hi)
    fields = ((getattr(made, k), getattr(every, k)) for k in ("lo", "hi", "nan", "pos_zero", "neg_zero"))
    return Interval(c.dtype, *(np.where(ordered, own, other) for own, other in fields))


@ENCLOSE.row(ops.Repeated)
def _repeated(op: ops.Repeated, c: Context, once: Interval, *others: Interval) -> Interval:
    """One of the operands; where they are added or multiplied, all between them: of integers what initial values make of `never`, if that
    does not wrap. What reads the result may read any operand before it was rounded."""
    arithmetic = op.function in ("add", "multiply")
    if not once.dtype.is_int or not arithmetic:
        made = reduce(hull, others, once)
        if not once.dtype.is_float:
            return made
        made = made.from_(_origin_of_one(once, *others))
        if not arithmetic:
            return united(made, once, *others)
        across = (made.lo < 0) & (made.hi > 0)
        return replace(made, pos_zero=made.pos_zero | across, neg_zero=made.neg_zero | across)
    never, initial = others
    # as vectors: NumPy makes Python's integers of arrays of objects without an axis, and then C's of those
    low, high, *bounds = (v.ravel().astype(object) for v in (never.lo, never.hi, initial.lo, initial.hi))
    if op.function == "add":
        ends = [v + k * bound for v in (low, high) for bound in bounds for k in (0, op.times)]
    else:
        most = np.vectorize(lambda bound: abs(bound) ** min(op.times, 64), otypes=[object])
        size = np.maximum(abs(low), abs(high)) * np.maximum(1, np.maximum(*map(most, bounds)))
        ends = [np.where((low >= 0) & (bounds[0] >= 0), 0, -size), size]
    least, greatest = np.minimum.reduce(ends), np.maximum.reduce(ends)
    lo, hi = once.dtype.limits
    inside = np.asarray((least >= lo) & (greatest <= hi), bool)
    ends = [np.where(inside, v, beyond).reshape(once.shape) for v, beyond in ((least, lo), (greatest, hi))]
    return hull(exact(once.dtype, *(v.astype(once.lo.dtype) for v in ends)), once)


def _origin_of_one(*ways: Interval) -> Origin:
    """How one of several ways to compute a value came about: where they agree in their bounds, the first that says so; else the products of all."""
    first, *others = ways
    if all(np.array_equal(first.lo, w.lo) and np.array_equal(first.hi, w.hi) for w in others):
        origin = next((w.origin for w in ways if w.unrounded is not None), first.origin)
        return origin.known(const=False, repeated=False)
    return contraction.picked(*ways, pick=lambda v, low: (np.minimum if low else np.maximum).reduce(v))


@COMPLEX.row(ops.Repeated)
def _repeated_complex(op: ops.Repeated, c: Context, *results: Enclosure) -> Enclosure:
    return each_part(partial(_repeated, op, c), *results)


@ENCLOSE.row(ops.ReducePrecision)
def _reduce_precision(op: ops.ReducePrecision, c: Context, x: Interval) -> Interval:
    """Monotone, so that the bounds are rounded; a NaN stays one. F16 has all numbers of the formats of eight bits and fewer."""
    own = c.dtype if c.dtype.bits >= DType.F16.bits else DType.F16
    info = own.finfo
    least_exponent = 2 - 2 ** (op.exponent_bits - 1)
    # where no bit of the exponent goes, subnormals are rounded as all others are
    subnormals = op.exponent_bits >= own.bits - 1 - int(info.nmant)
    if subnormals and op.mantissa_bits >= int(info.nmant):
        return x  # it drops nothing, and is left out
    # a format with more exponents than the operand's has larger values, which the operand's has not
    largest = min(np.ldexp(2 - 2.0**-op.mantissa_bits, 2 ** (op.exponent_bits - 1) - 1), c.format.max)

    def rounded(v: Array) -> Array:
        """To nearest even; beyond the largest value an infinity, below the least normal one a zero."""
        wide = np.where(np.isfinite(v), v, 0).astype(np.longdouble)
        exponent = np.maximum(np.frexp(wide)[1] - 1, int(info.minexp))
        step = np.ldexp(np.longdouble(1), exponent - op.mantissa_bits)
        near = np.rint(wide / step) * step
        # of two powers of two that one is even whose exponent is, as it is stored: its bias is odd
        if not op.mantissa_bits:
            near = np.where(np.abs(wide) == 1.5 * step, np.ldexp(step, 1 - exponent % 2), near)
        near = np.where(np.abs(near) > largest, np.inf, near)
        if not subnormals:
            near = np.where(np.abs(near) < 2.0**least_exponent, 0, near)
        return np.where(np.isfinite(v), np.copysign(near, wide), v).astype(np.float64)

    lo = rounded(x.lo)
    hi = lo if x.is_point else rounded(x.hi)
    pos, neg = x.pos_zero | ((lo == 0) & (x.hi > 0)) | (x.hi > 0), x.neg_zero | (x.lo < 0)
    return c.build(lo, hi, x.nan, pos, neg)
