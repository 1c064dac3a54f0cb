"""Rules of the transcendental functions: bounds from the wide type, taken outward by the model's budget.

A budget of B ULPs means `|result - true value| <= B * ulp(true value)`, the result keeping the sign of the true value, its
range ([-1, 1] for tanh, ...), and exactness where the true value is 0, 1 of a power of 1, of an argument of 0, or a limit at infinity. Domain errors are NaN, never an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from oracle.enclosure import integers
from oracle.enclosure.arithmetic import divide, multiply
from oracle.enclosure.bounds import Bounds, is_value, is_zero, may_be_negative, may_be_zero
from oracle.enclosure.formats import Array, Format, outward
from oracle.enclosure.freedoms import approximations, conversion, gathering
from oracle.enclosure.origin import Unrounded
from oracle.enclosure.rule import ENCLOSE, Context
from oracle.enclosure.value import Interval, hull, merged, real_point
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op

#: Non-point arguments of sin and cos beyond this give [-1, 1]: the bounds no longer show whether an extremum lies between them.
TRIG_LIMIT = 2.0**30


def budgeted(
    f: Format, ulps: float, low: Array, high: Array, least: float = -np.inf, greatest: float = np.inf
) -> Bounds:
    """The results that are within `ulps` of a value in [low, high] (wide), given the range of the function."""
    one = low is high
    # upper bounds with their signs changed, so that one call does for both
    ends = np.array((low, -high))
    out = outward(f, ulps + f.slack, ends, single=one)
    # the sign of the true value is kept, and a zero is exact; so is an underflow far below the least subnormal: a bound in
    # ULPs alone would leave it open
    gone = -f.wide(f.least_subnormal) / 4
    nothing = (out < 0) & (ends > gone)
    if np.count_nonzero(nothing):
        out = np.where(nothing, 0, out)
    bounds = f.least_at_or_above(out)
    if not one or ulps < 1:
        # with less than an ULP between the sides no result may be left: the nearest ones always are
        bounds = np.fmin(bounds, f.nearest(ends))
    lo, hi = bounds[0, ...], -bounds[1, ...]
    if least != -np.inf:
        lo = np.fmax(lo, least)
    return lo, hi if greatest == np.inf else np.fmin(hi, greatest)


def _function(
    c: Context,
    x: Interval,
    name: str,
    low: Array,
    high: Array,
    nan: Array,
    *,
    range_: tuple[float, float] = (-np.inf, np.inf),
    pos: Array | None = None,
    neg: Array | None = None,
    exact: Array | None = None,
) -> Interval:
    """From wide bounds of the true value. `pos`, `neg`: zeros that the argument maps to zero exactly; `exact`: where it is rounded once."""
    lo, hi = budgeted(c.format, c.budget(name), low, high, *range_)
    # C99 (F.10) has 0, 1 or an infinity of a zero, and every formula has it
    known = is_zero(x) & (low == high)
    if exact is not None:
        known = known | exact
    if np.count_nonzero(known):
        lo, hi = np.where(known, c.format.nearest(low), lo), np.where(known, c.format.nearest(high), hi)
    if not x.finite:
        limit = np.isinf(x.lo) & (x.lo == x.hi)  # the limits at infinity are exact
        lo, hi = np.where(limit, low, lo).astype(float), np.where(limit, high, hi).astype(float)
        none = low > high
        lo, hi = np.where(none, np.inf, lo), np.where(none, -np.inf, hi)
    pos_zero, neg_zero = high > 0, low < 0
    if pos is not None:
        pos_zero = pos_zero | pos
    if neg is not None:
        neg_zero = neg_zero | neg
    return c.build(lo, hi, nan, pos_zero, neg_zero)


def _ends(c: Context, x: Interval, f: Callable[[Array], Array]) -> Bounds:
    """`f` at both ends in the wide type; empty stays empty."""
    w = c.format.wide
    low = f(x.lo.astype(w))
    if x.is_point:
        return low, low
    high = f(x.hi.astype(w))
    none = x.lo > x.hi
    if not np.count_nonzero(none):
        return low, high
    return np.where(none, np.inf, low), np.where(none, -np.inf, high)


def _clipped(x: Interval, least: float) -> Interval:
    """The part of the argument in the domain [least, inf]."""
    if not np.count_nonzero(x.lo < least):
        return x
    none = x.hi < least
    lo, hi = np.where(none, np.inf, np.maximum(x.lo, least)), np.where(none, -np.inf, x.hi)
    return Interval(x.dtype, lo, hi, x.nan, x.pos_zero, x.neg_zero, x.origin)


@ENCLOSE.row(ops.Exp)
def _exp(op: Op, c: Context, x: Interval) -> Interval:
    low, high = _ends(c, x, np.exp)
    return _function(c, x, "Exp", low, high, x.nan, range_=(0.0, np.inf), pos=x.lo <= x.hi)


@ENCLOSE.row(ops.Expm1)
def _expm1(op: Op, c: Context, x: Interval) -> Interval:
    low, high = _ends(c, x, np.expm1)
    return _function(c, x, "Expm1", low, high, x.nan, range_=(-1.0, np.inf), pos=x.pos_zero, neg=x.neg_zero)


#: From where on XLA:CPU gives 1 for tanh in F32 in every lane; in some it gives 1 - 3/2^24 from 9 to there.
_TANH_CUT = 20.0


@ENCLOSE.row(ops.Tanh)
def _tanh(op: Op, c: Context, x: Interval) -> Interval:
    low, high = _ends(c, x, np.tanh)
    # so far out that 1 - |tanh x| = 2 exp(-2 |x|) is below u / 64: XLA:CPU cuts off at 20 in F64, where it is u / 13, and in F32
    cut = max(_TANH_CUT if c.dtype is DType.F32 else 0.0, np.log(128 / c.format.unit) / 2)
    far = (x.lo <= x.hi) & (np.maximum(x.lo, -x.hi) >= cut)
    return _function(c, x, "Tanh", low, high, x.nan, range_=(-1.0, 1.0), pos=x.pos_zero, neg=x.neg_zero, exact=far)


@ENCLOSE.row(ops.Log)
def _log(op: Op, c: Context, x: Interval) -> Interval:
    """log(+-0) = -inf, log of a negative number NaN, log(1) = +0."""
    low, high = _ends(c, _clipped(x, 0.0), lambda v: np.log(np.abs(v)))
    low, high = gathering.logarithm(c, x, low, high)
    return _function(c, x, "Log", low, high, x.nan | (x.lo < 0), pos=(low <= 0) & (high >= 0))


@ENCLOSE.row(ops.Log1p)
def _log1p(op: Op, c: Context, x: Interval) -> Interval:
    low, high = _ends(c, _clipped(x, -1.0), np.log1p)
    return _function(c, x, "Log1p", low, high, x.nan | (x.lo < -1), pos=x.pos_zero, neg=x.neg_zero)


@ENCLOSE.row(ops.Sqrt)
def _sqrt(op: Op, c: Context, x: Interval) -> Interval:
    """Correctly rounded; sqrt(-0) = -0."""
    f = c.format
    inside = _clipped(x, 0.0)
    low = np.sqrt(inside.lo)
    high = low if inside.is_point else np.sqrt(np.maximum(inside.hi, 0.0))
    none = inside.lo > inside.hi
    some_empty = bool(np.count_nonzero(none))
    if some_empty:
        high = np.where(none, -np.inf, high)
    if c.dtype.is_narrow_float:
        lo, hi = conversion.of_root(c.model, f, low, high)
    else:
        lo = f.nearest(low)
        hi = lo if high is low else f.nearest(high)
    lo, hi = approximations.within(c, lo, hi, (low, high))
    result = c.build(lo, hi, x.nan | (x.lo < 0), x.pos_zero, x.neg_zero)
    return result.from_(gathering.root(c, inside, low, high))


@ENCLOSE.row(ops.Rsqrt)
def _rsqrt(op: Op, c: Context, x: Interval) -> Interval:
    """1 / sqrt(x): decreasing, rsqrt(+-0) = +-inf."""
    w = c.format.wide
    inside = _clipped(x, 0.0)
    high = 1 / np.sqrt(np.abs(inside.lo).astype(w))
    low = high if inside.is_point else 1 / np.sqrt(np.abs(inside.hi).astype(w))
    if np.count_nonzero(inside.neg_zero):
        only_minus = inside.neg_zero & ~inside.pos_zero & (inside.hi == 0)
        high = np.where(only_minus, -np.inf, high)
        low = np.where(inside.neg_zero, -np.inf, low)
    none = inside.lo > inside.hi
    if np.count_nonzero(none):
        low, high = np.where(none, np.inf, low), np.where(none, -np.inf, high)
    made = _function(c, x, "Rsqrt", low, high, x.nan | (x.lo < 0), pos=x.hi == np.inf)
    return gathering.inverse_root(c, made, low, high)


# --- sine and cosine ------------------------------------------------------------------------------------------------


def _trig(c: Context, x: Interval, f: Callable[[Array], Array], peak: float, name: str) -> Interval:
    """`peak`: where the function is 1, in turns; it is -1 half a turn later."""
    low_end, high_end = _ends(c, x, f)
    if x.is_point and x.finite:
        return _function(c, x, name, low_end, low_end, x.nan, range_=(-1.0, 1.0), pos=x.pos_zero, neg=x.neg_zero)
    finite = np.isfinite(x.lo) & np.isfinite(x.hi)
    nan = x.nan | (~finite & ~x.empty)
    low, high = np.fmin(low_end, high_end), np.fmax(low_end, high_end)
    single = x.lo == x.hi
    if not (single & finite).all():
        turns = 1 / (2 * np.pi)
        slack = 2.0**-20
        safe_lo, safe_hi = np.where(finite, x.lo, 0.0) * turns, np.where(finite, x.hi, 0.0) * turns
        top = np.floor(safe_hi - peak + slack) > np.floor(safe_lo - peak - slack)
        bottom = np.floor(safe_hi - peak - 0.5 + slack) > np.floor(safe_lo - peak - 0.5 - slack)
        wild = ~finite | (np.fmax(np.abs(safe_lo), np.abs(safe_hi)) > TRIG_LIMIT * turns)
        low = np.where(~single & (bottom | wild), -1.0, low)
        high = np.where(~single & (top | wild), 1.0, high)
        none = x.empty | (single & ~finite)
        low, high = np.where(none, np.inf, low), np.where(none, -np.inf, high)
    return _function(c, x, name, low, high, nan, range_=(-1.0, 1.0), pos=x.pos_zero | ~single, neg=x.neg_zero | ~single)


@ENCLOSE.row(ops.Sin)
def _sin(op: Op, c: Context, x: Interval) -> Interval:
    return _trig(c, x, np.sin, 0.25, "Sin")


@ENCLOSE.row(ops.Cos)
def _cos(op: Op, c: Context, x: Interval) -> Interval:
    return _trig(c, x, np.cos, 0.0, "Cos")


# --- power ----------------------------------------------------------------------------------------------------------


@ENCLOSE.row(ops.Pow)
def _pow(op: Op, c: Context, x: Interval, y: Interval) -> Interval:
    """C's pow. On x >= 0 it is monotone in each operand (infinities included), so that the corners bound it."""
    if not c.dtype.is_float:
        return integers.power(c.dtype, x, y)
    shape = np.broadcast_shapes(x.shape, y.shape)
    x, y = x.reshaped(shape), y.reshaped(shape)
    w = c.format.wide
    some = ~(x.empty | y.empty)
    yl = np.where(some, y.lo, 0.0).astype(w)
    yh = np.where(some, y.hi, 0.0).astype(w)
    exponent_known = yl == yh

    def corners(a: Array, b: Array) -> Bounds:
        a, b = a.astype(w), b.astype(w)
        values = [np.power(a, yl)]
        if not (x.is_point and y.is_point):
            values += [np.power(a, yh), np.power(b, yl), np.power(b, yh)]
        return np.minimum.reduce(values), np.maximum.reduce(values)

    low, high = np.full(shape, np.nan, w), np.full(shape, np.nan, w)
    minus = np.zeros(shape, bool)  # some result carries a minus sign
    nan = x.nan | y.nan

    positive = plus = ((x.hi > 0) | x.pos_zero) & some
    if positive.any():
        l, h = corners(np.abs(np.where(positive, np.maximum(x.lo, 0.0), 1.0)), np.where(positive, np.abs(x.hi), 1.0))
        low, high = np.where(positive, l, np.nan), np.where(positive, h, np.nan)

    negative = may_be_negative(x) & some
    if negative.any():
        near, far = np.abs(np.minimum(x.hi, 0.0)), np.abs(np.minimum(x.lo, 0.0))
        size = corners(np.where(negative, near, 1.0), np.where(negative, far, 1.0))
        whole, fraction = np.floor(yl) == yl, np.floor(yh) < np.ceil(yl)
        for use, a, b, up, down in _powers_of_negative(x, yl, exponent_known, whole, fraction, size):
            use = use & negative
            low, high = np.where(use, np.fmin(low, a), low), np.where(use, np.fmax(high, b), high)
            plus, minus = plus | (use & up), minus | (use & down)
        finite_negative = (x.lo < 0) & (x.hi > -np.inf)
        nan = nan | (finite_negative & negative & ~(exponent_known & whole))

    one = (x.nan & may_be_zero(y)) | (y.nan & (x.lo <= 1) & (x.hi >= 1))
    certain_one = (is_value(y, 0.0) & ~y.nan) | (is_value(x, 1.0) & ~x.nan)
    nan = nan & ~certain_one
    none = np.isnan(low)
    low, high = np.where(none, np.inf, low), np.where(none, -np.inf, high)
    low = np.where(certain_one, 1, np.where(one, np.fmin(low, 1), low))
    high = np.where(certain_one, 1, np.where(one, np.fmax(high, 1), high))
    lo, hi = budgeted(c.format, c.budget("Pow"), low, high)
    exact = certain_one | (exponent_known & (x.lo == x.hi) & (np.abs(x.lo) == 1))
    lo, hi = np.where(exact, low, lo).astype(float), np.where(exact, high, hi).astype(float)
    none = low > high
    lo, hi = np.where(none, np.inf, lo), np.where(none, -np.inf, hi)
    made = c.build(lo, hi, nan, plus, minus)
    return _as_product(c, made, x, y) if y.const and c.model.keeps_unrounded else made


def _as_product(c: Context, made: Interval, x: Interval, exponent: Interval) -> Interval:
    """A power with a constant exponent: 1 gives what it is given, and 2 the square, either of which may go unrounded into a sum; others may be those of `_WRITTEN`."""
    if np.all(is_value(exponent, 1.0)):
        return made.from_(x.origin)
    if np.all(is_value(exponent, 2.0)):
        square = multiply(c, x, x)
        return hull(made, square).from_(square.origin)
    for value, of in _WRITTEN:
        if np.all(is_value(exponent, value)):
            return _or_written(made, of(c, x), x)
    rounded = made.lo, made.hi
    left = gathering.without_factor(c, x, exponent, rounded)
    return made if left is rounded else made.remembering(Unrounded("product", *left))


def _or_written(made: Interval, written: Interval, x: Interval) -> Interval:
    """A power of `x`, or what may be written for it; pow has values of its own at zeros and at -inf."""
    alike = ((x.lo > 0) | (x.hi < 0)) & (x.lo > -np.inf)
    return merged(lambda a: np.where(alike, *a), (hull(made, written), made)).from_(written.origin)


def _inverse(c: Context, x: Interval) -> Interval:
    return divide(c, real_point(np.ones(x.shape, c.dtype.numpy), const=True), x)


#: Exponents of which XLA makes another operation, which may be gathered with its operand's factors, and its readers with it.
_WRITTEN: tuple[tuple[float, Callable[[Context, Interval], Interval]], ...] = (
    (-1.0, _inverse),
    (0.5, lambda c, x: _sqrt(ops.Sqrt(), c, x)),
    (-0.5, lambda c, x: _rsqrt(ops.Rsqrt(), c, x)),
)


def _powers_of_negative(
    x: Interval, exponent: Array, known: Array, whole: Array, fraction: Array, size: Bounds
) -> Iterator[tuple[Array, Array, Array, bool, bool]]:
    """Powers of the part of `x` with a minus sign: where, least and greatest, whether one has a plus or a minus sign.

    `size` are bounds of the powers of its magnitude, `known` and `whole` say where the exponent is one number and an integer, `fraction`
    where it is between two integers.
    """
    least, greatest = size
    # of a fractional power only -0 and -inf have a value
    wide = exponent.dtype.type
    of_zero, of_infinity = np.power(wide(0), np.where(whole, 1, exponent)), np.power(wide(np.inf), exponent)
    yield fraction & x.neg_zero, of_zero, of_zero, True, False
    yield fraction & (x.lo == -np.inf), of_infinity, of_infinity, True, False
    odd = whole & (np.abs(np.fmod(np.where(np.isfinite(exponent), exponent, 0.0), 2.0)) == 1)
    yield known & whole & ~odd, least, greatest, True, False
    yield known & odd, -greatest, -least, False, True
    yield ~known & ~fraction, -greatest, greatest, True, True
