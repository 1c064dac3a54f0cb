"""Rules of the functions of complex numbers, by balls: the derivative gives a radius, the budget is in ULPs of the modulus.

Limits at infinity, branch cuts and powers are in docs/explanation/enclosures.md. What a ball and a rectangle are is in `complexes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from oracle.enclosure import limits
from oracle.enclosure.balls import Ball, ball, certainly_finite, complex_of, enclosed
from oracle.enclosure.bounds import is_value, is_zero, may_be_zero
from oracle.enclosure.formats import Array, Format
from oracle.enclosure.freedoms import cuts
from oracle.enclosure.freedoms.limits import may_be_lost
from oracle.enclosure.functions import budgeted
from oracle.enclosure.limits import infinite_or_nan, listed
from oracle.enclosure.rectangles import nothing, promoted, reach, size_class
from oracle.enclosure.rule import COMPLEX, ENCLOSE, Context
from oracle.enclosure.value import Enclosure, Interval, Rectangle, each_part, rectangle
from tenferro_ref import ops
from tenferro_ref.ops import Op

#: Two factors of each part.
Pairs: TypeAlias = tuple[tuple[Array, Array], tuple[Array, Array]]


@COMPLEX.row(ops.Abs)
def _abs(op: Op, c: Context, x: Enclosure) -> Enclosure:
    f = c.format
    # not by the sign of `p.lo * p.hi`, which is zero for tiny ends
    parts = [(np.where((p.lo <= 0) & (p.hi >= 0), 0, np.minimum(np.abs(p.lo), np.abs(p.hi))),
              np.maximum(np.abs(p.lo), np.abs(p.hi))) for p in x.parts]  # fmt: skip
    ok = certainly_finite(x)
    infinite = np.logical_or.reduce([(v.lo == v.hi) & np.isinf(v.lo) & ~v.nan for v in x.parts])
    beside_nan = may_be_lost(c) & np.logical_or.reduce([v.nan for v in x.parts])
    lost = np.logical_or.reduce([v.empty for v in x.parts]) & np.isfinite(reach(x))
    (a, b), (p, q) = (tuple(np.where(ok, v, 0).astype(f.wide) for v in part) for part in parts)
    low, high = np.hypot(a, p), np.hypot(b, q)
    point_like = (a == b) & (p == q)
    lo, hi = budgeted(f, c.model.budget("Abs", c.dtype.complex), low, high, 0.0)
    zero = point_like & (low == 0)
    lo, hi = np.where(ok, np.where(zero, 0, lo), 0.0), np.where(ok, np.where(zero, 0, hi), np.inf)
    lo, hi = np.where(lost | infinite, np.inf, lo), np.where(lost, -np.inf, hi)
    positive = ~point_like | zero | ~ok | (lo <= 0)
    return c.build(lo.astype(float), hi.astype(float), np.where(infinite, beside_nan, ~ok), positive, ~(ok | ~ok))


@COMPLEX.row(ops.Sign)
def _sign(op: Op, c: Context, x: Enclosure) -> Enclosure:
    """z / |z|, and 0 of 0; or 0 where |z| may overflow. Of a small modulus with what underflows in a quotient, as in `Divide`."""
    f = c.real.format
    z = ball(f, x)
    zero = (z.size == 0) & z.ok
    inside = z.least > 4 * f.min_normal
    modulus, least = np.where(inside, np.abs(z.mid), 1), np.where(inside, z.least, 1)
    underflow = np.where(least > f.min_normal / f.unit, 0, 8 * c.real.lost_below / least)
    rad = 2 * z.rad / modulus + underflow
    made = enclosed(c, c.budget("Sign"), Ball(z.mid / modulus, rad, z.ok & inside & (z.size < np.inf)))
    large = z.size >= f.max / 2

    def beside_zero(p: Interval) -> Interval:
        lo, hi = np.where(large, np.minimum(p.lo, 0), p.lo), np.where(large, np.maximum(p.hi, 0), p.hi)
        lo, hi = np.where(zero, 0.0, lo), np.where(zero, 0.0, hi)
        return replace(p, lo=lo, hi=hi, nan=p.nan & ~zero, pos_zero=p.pos_zero | large, neg_zero=p.neg_zero | large)

    made = limits.of_products(c, x, made, _quotient_by_modulus, quotient=True)
    made = each_part(beside_zero, nothing(made, _undefined(x)))
    return _on_axes(op, c, x, made, (x.parts[0].lo > 0) | (x.parts[0].hi < 0))


def _quotient_by_modulus(x: Array, y: Array) -> Pairs:
    inverse = 1 / np.hypot(x, y)
    return (x, inverse), (y, inverse)


#: Functions that have imaginary numbers of them, or real ones, by the part that is zero then.
_ON_IMAGINARY_AXIS: dict[type[Op], int] = {ops.Sin: 0, ops.Cos: 1, ops.Tanh: 0}


def _on_axes(op: Op, c: Context, x: Enclosure, made: Rectangle, domain: Array | bool = True) -> Rectangle:
    """Of a real number the imaginary part is a zero, as every formula has a factor there that is one: sin y, sinh y, or the angle.

    The real part is that of the real function at 0 and 1, where that has one value. `domain`: where the function of a real number is real.
    """
    re, im = x.parts
    finite = [np.isfinite(p.lo) & np.isfinite(p.hi) & ~p.nan for p in (re, im)]
    real, imaginary = is_zero(im) & finite[0] & finite[1] & domain, is_zero(re) & finite[0] & finite[1]
    zero = [np.zeros(x.shape, bool), real]
    if type(op) in _ON_IMAGINARY_AXIS:
        k = _ON_IMAGINARY_AXIS[type(op)]
        zero[k] = zero[k] | imaginary
    if not np.count_nonzero(zero):
        return made
    # what overflows beside such a factor may be NaN
    parts = [listed(p, z & ~p.empty, np.zeros(p.shape), p.nan) for p, z in zip(made.parts, zero, strict=True)]
    of_real = ENCLOSE[type(op)](op, c.real, re.plain())
    known = real & (is_zero(re) | is_value(re, 1.0)) & (of_real.lo == of_real.hi)
    return rectangle(listed(parts[0], known, np.where(known, of_real.lo, 0.0), False), parts[1])


def _entire(
    name: type[Op],
    f: Callable[[Array], Array],
    grown: Callable[[Ball], Array],
    far: Callable[[Array], tuple[Array, Array]],
    axis: int,
    factors: limits.Factors,
) -> None:
    """An entire function; `grown(ball)` is a radius that holds the image.

    `far` is what the function grows like: `direction * exp(log)`; `axis`: the part whose infinities are limits, of 0 or
    of such a direction.
    """

    @COMPLEX.row(name)
    def rule(op: Op, c: Context, x: Enclosure) -> Enclosure:
        real = c.real.format
        z = ball(real, _within(x, axis))
        made = nothing(enclosed(c, c.budget(op.name), Ball(f(z.mid), _none(z, grown(z)), z.ok)), _undefined(x))
        made = overflown(real, made, z, *far(z.mid), c.budget(op.name))
        made = limits.of_products(c, x, made, factors, shift=-1.0 if name is ops.Expm1 else 0.0)
        return _on_axes(op, c, x, made)


#: Beyond all arguments whose exponential is a number of a wide type.
_FAR = 1e5


def _within(x: Enclosure, axis: int) -> Enclosure:
    """Infinities of one part as numbers that are as good as those to the exponential function."""
    part = x.parts[axis]
    infinite = np.isinf(part.lo) & (part.lo == part.hi) & ~part.nan
    if not infinite.any():
        return x
    lo, hi = (np.where(infinite, np.clip(v, -_FAR, _FAR), v) for v in (part.lo, part.hi))
    moved = replace(part, lo=lo, hi=hi)
    return rectangle(moved, x.parts[1]) if axis == 0 else rectangle(x.parts[0], moved)


def overflown(f: Format, x: Rectangle, z: Ball, direction: Array, log: Array, ulps: float) -> Rectangle:
    """An infinity in each part where the true ones, `direction * exp(log)`, are too large and their signs are certain.

    Every formula has that there: a large or infinite exponential by a sine or cosine, which keep their signs.
    """
    if not (log > np.log(f.max)).any():
        return x
    sides = np.array((direction.real, direction.imag))
    unsure = z.rad * np.exp(z.rad) * (1 + 2.0**-20) + 4 * f.min_normal
    least = np.abs(sides) * (1 - 4 * (ulps + f.slack) * f.unit) - unsure
    large = (least > 0) & (np.log(np.where(least > 0, least, 1)) + log > np.log(f.max) + 1)
    none = (sides == 0) & (z.rad == 0)  # what comes of that is among the limits
    over = z.ok & (large | none).all(0)
    if not over.any():
        return x

    def infinite(p: Interval, side: Array, over: Array) -> Interval:
        limit = np.copysign(np.inf, side).astype(float)
        nan, pos, neg = (np.asarray(v & ~over) for v in (p.nan, p.pos_zero, p.neg_zero))
        return Interval(p.dtype, np.where(over, limit, p.lo), np.where(over, limit, p.hi), nan, pos, neg)

    return rectangle(*map(infinite, x.parts, sides, over & ~none))


def _undefined(x: Enclosure) -> Array:
    """Where C99 and every formula give NaN in both parts of a function: of NaN, and an ordinary number or another NaN."""
    re, im = x.parts
    if not (re.nan.any() or im.nan.any()):
        return np.zeros((), bool)
    plain = [~p.nan & np.isfinite(p.lo) & np.isfinite(p.hi) & ((p.lo > 0) | (p.hi < 0)) for p in (re, im)]
    return np.asarray((re.empty & (im.empty | plain[1])) | (im.empty & plain[0]))


def _none(z: Ball, rad: Array) -> Array:
    """`rad`, and 0 for points."""
    return np.where(z.rad == 0, 0, rad * (1 + 2.0**-40))


def _turned(z: Array) -> tuple[Array, Array]:
    return complex_of(np.cos(z.imag), np.sin(z.imag)), z.real


def _exp_factors(x: Array, y: Array) -> Pairs:
    size = np.exp(np.where(np.isfinite(x), np.maximum(x, -700), x))  # only of -inf it is 0
    return (size, np.cos(y)), (size, np.sin(y))


_entire(ops.Exp, np.exp, lambda z: np.exp(z.mid.real) * np.expm1(z.rad), _turned, 0, _exp_factors)
_entire(ops.Expm1, np.expm1, lambda z: np.exp(z.mid.real) * np.expm1(z.rad), _turned, 0, _exp_factors)


def _far_sine(z: Array) -> tuple[Array, Array]:
    return complex_of(np.sin(z.real), np.cos(z.real) * np.sign(z.imag)), np.abs(z.imag) - np.log(2.0)


def _far_cosine(z: Array) -> tuple[Array, Array]:
    return complex_of(np.cos(z.real), np.sin(z.real) * -np.sign(z.imag)), np.abs(z.imag) - np.log(2.0)


def _sin_factors(x: Array, y: Array) -> Pairs:
    return (np.sin(x), np.cosh(y)), (np.cos(x), np.sinh(y))


def _cos_factors(x: Array, y: Array) -> Pairs:
    return (np.cos(x), np.cosh(y)), (-np.sin(x), np.sinh(y))


_entire(ops.Sin, np.sin, lambda z: np.cosh(np.abs(z.mid.imag) + z.rad) * z.rad, _far_sine, 1, _sin_factors)
_entire(ops.Cos, np.cos, lambda z: np.cosh(np.abs(z.mid.imag) + z.rad) * z.rad, _far_cosine, 1, _cos_factors)


@COMPLEX.row(ops.Tanh)
def _tanh(op: Op, c: Context, x: Enclosure) -> Enclosure:
    z = ball(c.real.format, x)
    a = np.clip(z.mid.real, -40, 40)  # |cosh| grows with |a|
    least = np.abs(np.cosh(complex_of(a, z.mid.imag))) - z.rad * np.cosh(np.abs(a) + z.rad)
    ok = z.ok & ((z.rad == 0) | ((z.rad < 1) & (least > 0)))
    made = enclosed(c, c.budget("Tanh"), Ball(np.tanh(z.mid), _none(z, z.rad / np.where(ok, least, 1) ** 2), ok))
    # far from the imaginary axis a formula may have +-1 whatever the imaginary part is
    made = nothing(made, _undefined(x) & x.parts[0].empty)
    re, im = x.parts
    far = np.isfinite(re.lo) & (np.maximum(-re.lo, re.hi) > 8)
    return _on_axes(op, c, x, limits.of_products(c, rectangle(replace(re, nan=re.nan | far), im), made, _tanh_factors))


def _tanh_factors(x: Array, y: Array) -> Pairs:
    """+-1 at an infinity whatever the imaginary part is; elsewhere the real part, and the imaginary part, decide."""
    far, known = np.isinf(x), np.where(np.isfinite(y), 1, np.nan)
    return (np.tanh(x), np.where(far, 1, known)), (np.where(far, 0, np.where(np.isnan(x), x, 1)), y * known)


def sides(z: Ball, known: Array | bool, im: Interval) -> tuple[Ball, ...]:
    """A ball that touches the cut along the negative real axis as two, one on each side of it.

    Parameters
    ----------
    known
        Where the sign of a zero imaginary part decides on the side; elsewhere both are admitted.
    im
        The imaginary part.
    """
    touches = (z.mid.real - z.rad <= 0) & (np.abs(z.mid.imag) <= z.rad)
    if not touches.any():
        return (z,)
    by_sign = (z.rad == 0) & (z.mid.imag == 0) & known

    def half(side: int) -> Ball:
        sign = np.where(by_sign, np.where(im.pos_zero, 1, -1), side)
        imag = np.where(touches, np.copysign(np.maximum(sign * z.mid.imag, 0), sign), z.mid.imag)
        return Ball(complex_of(z.mid.real, imag), np.where(touches, 2 * z.rad, z.rad), z.ok)

    return half(1), half(-1)


def _beside_zero(z: Ball) -> tuple[Array, Array]:
    """Where the ball stays clear of zero, and the modulus of its centre there."""
    clear = np.abs(z.mid) > 2 * z.rad
    return clear, np.where(clear, np.abs(z.mid), 1)


def logarithm(z: Ball) -> Ball:
    clear, modulus = _beside_zero(z)
    return Ball(np.log(np.where(clear, z.mid, 1)), _none(z, z.rad / (modulus - z.rad)), z.ok & clear)


def _root(z: Ball) -> Ball:
    # |sqrt z + sqrt m| >= sqrt |m| on one side of the cut
    clear, modulus = _beside_zero(z)
    zero = z.size == 0
    return Ball(np.sqrt(z.mid), _none(z, z.rad / np.sqrt(modulus)), z.ok & (clear | zero))


def _inverse_root(z: Ball) -> Ball:
    clear, modulus = _beside_zero(z)
    rad = z.rad / (modulus * np.sqrt(modulus - z.rad))
    return Ball(1 / np.sqrt(np.where(clear, z.mid, 1)), _none(z, rad), z.ok & clear)


def _by_sides(op: Op, c: Context, x: Enclosure, f: Callable[[Ball], Ball]) -> Rectangle:
    z = ball(c.real.format, x)
    balls = map(f, sides(z, cuts.side_is_known(c, x.parts[1]), x.parts[1]))
    return nothing(enclosed(c, c.budget(op.name), *balls), _undefined(x))


@COMPLEX.row(ops.Log)
def _log(op: Op, c: Context, x: Enclosure) -> Enclosure:
    made = _by_sides(op, c, x, partial(_logarithm_of_rounded, c.real))
    made = limits.of_logarithm(c, x, made, cuts.side_is_known(c, x.parts[1]))
    return _on_axes(op, c, x, made, x.parts[0].lo > 0)


def _logarithm_of_rounded(c: Context, z: Ball) -> Ball:
    """Where subnormals may be flushed, with a subnormal modulus that is rounded, to a multiple of the least."""
    rounded = (z.size < 2 * c.zero_below) & (z.mid.real != 0) & (z.mid.imag != 0)
    return logarithm(Ball(z.mid, np.where(rounded, z.rad + c.format.least_subnormal / 2, z.rad), z.ok))


@COMPLEX.row(ops.Sqrt)
def _sqrt(op: Op, c: Context, x: Enclosure) -> Enclosure:
    made = _by_sides(op, c, x, _root)
    known_side = cuts.side_is_known(c, x.parts[1])
    made = limits.of_products(c, x, made, partial(_root_factors, 1), known_side=known_side)
    return _on_axes(op, c, x, made, x.parts[0].lo >= 0)


@COMPLEX.row(ops.Rsqrt)
def _rsqrt(op: Op, c: Context, x: Enclosure) -> Enclosure:
    made = _by_sides(op, c, x, _inverse_root)
    made = limits.of_products(c, x, made, partial(_root_factors, -1), quotient=True)
    return _on_axes(op, c, x, made, x.parts[0].lo > 0)


def _root_factors(sign: int, x: Array, y: Array) -> Pairs:
    """The modulus, and the direction of half the angle, exact at the angles of infinities."""
    modulus = np.sqrt(np.hypot(x, y))
    half = np.arctan2(y, np.where(modulus == 0, 0.0, x)) / 2  # of the root of 0, which is 0
    cos, sin = np.rint(np.cos(half) * 2**20), np.rint(np.sin(half) * 2**20)
    modulus = modulus if sign > 0 else 1 / modulus
    return (modulus, cos), (modulus, sin * sign)


@COMPLEX.row(ops.Log1p)
def _log1p(op: Op, c: Context, x: Enclosure) -> Enclosure:
    """ln(1 + z), by ln |1 + z|^2 / 2 = log1p(x (2 + x) + y^2) / 2 near 0."""
    z = ball(c.real.format, x)
    balls = []
    # in a sum with the complex number 1, which is an implementation as well, the sign of a zero is lost
    for w in sides(replace(z, mid=complex_of(1 + z.mid.real, z.mid.imag)), False, x.parts[1]):
        log = logarithm(w)
        re, im = z.mid.real, z.mid.imag
        near = (np.abs(re) < 0.5) & (np.abs(im) < 0.5)
        accurate = np.log1p(np.where(near, re * (2 + re) + im * im, 0)) / 2
        balls.append(replace(log, mid=complex_of(np.where(near, accurate, log.mid.real), log.mid.imag)))
    made = nothing(enclosed(c, c.budget("Log1p"), *balls), _undefined(x))
    return _on_axes(op, c, x, limits.of_logarithm(c, x, made, False, 1.0), x.parts[0].lo > -1)


def _safe(f: Format, b: Ball) -> Array:
    """Its square, and that of its reciprocal, stay in the normal range."""
    return np.asarray((b.least > np.sqrt(f.min_normal / f.unit)) & (b.size < np.sqrt(f.max) / 2))


@COMPLEX.row(ops.Pow)
def _pow(op: Op, c: Context, x: Enclosure, y: Enclosure) -> Enclosure:
    """exp(y log x): an error of the logarithm grows with y; so do those of repeated products.

    Two factors have to be in range, |x|^Re y and exp(-Im y arg x), and the reciprocal of a large power, of which a
    negative one is made; what underflows is off by as much, times the other factor. Anything elsewhere, and where
    nothing would be known of the angle.
    """
    f = c.real.format
    x, y = promoted(c, x), promoted(c, y)
    base, exponent = ball(f, x), ball(f, y)
    lost = c.real.lost_below
    balls, growth = [], np.zeros(())
    for z in sides(base, cuts.side_is_known(c, x.parts[1]), x.parts[1]):
        log = logarithm(z)
        mid = exponent.mid * log.mid
        rad = exponent.size * log.rad + np.abs(log.mid) * exponent.rad
        growth = np.maximum(growth, exponent.size * (1 + log.size))
        power = np.exp(mid)
        ok = (
            log.ok & exponent.ok & (base.size < f.max * (1 - 8 * f.unit)) & (exponent.size < f.max / 2 / (1 + log.size))
        )
        made = Ball(power, np.where(rad == 0, 0, np.abs(power) * np.expm1(rad) * (1 + 2.0**-40)), ok)
        factors = exponent.mid.real * log.mid.real, -exponent.mid.imag * log.mid.imag
        above = np.maximum(factors, 0).sum(0) + rad
        # the repeated product that a reciprocal is taken of must not overflow
        no_product = (exponent.rad == 0) & (exponent.mid != np.rint(exponent.mid.real))
        inside = no_product | (exponent.mid.real >= exponent.rad) | (factors[0] - rad > 2 - np.log(f.max))
        inside &= (above < np.log(f.max) - 2) & (made.size < f.unit / f.min_normal / 16) & (growth * f.unit < 1 / 16)
        underflow = 8 * lost * (1 + growth) * np.exp(np.where(inside, above, 0))
        below = np.minimum(factors, 0).sum(0) - rad
        safe = _safe(f, made) & (above < np.log(f.max) - 2) & (below > np.log(f.min_normal / f.unit) + 2)
        made = replace(made, rad=made.rad + np.where(safe, 0, underflow), ok=made.ok & (safe | inside))
        balls.append(made)
    # an error of the logarithm that y makes a large one is in the exponent; beyond all exponents nothing is known
    off = 2 * f.unit * c.budget("Pow") * (1 + growth)
    known = off < np.log(f.max)
    error = np.expm1(np.where(known, off, 0))
    result = enclosed(c, error / (2 * f.unit), *(replace(b, ok=b.ok & known) for b in balls))
    result = _far_power(result, x, y)
    # 0 to a positive power, where the product with an infinite logarithm has no part that is 0 times that
    (re, im) = y.parts
    zero = (base.size == 0) & base.ok & (re.lo > 0) & ~re.nan & (im.lo == 0) & (im.hi == 0) & ~im.nan
    return rectangle(*(listed(p, zero, np.zeros(p.shape), False) for p in result.parts))


def _far_power(result: Rectangle, x: Rectangle, y: Rectangle) -> Rectangle:
    """Powers of infinities, NaN and 0 to a finite exponent: exp(y log x) with an infinite logarithm; or NaN."""
    if x.number and not np.count_nonzero(reach(x) == 0):
        return result
    infinite, finite, zero = size_class(x)
    none, one = np.logical_or.reduce([p.empty for p in x.parts]), size_class(y)[2]
    re, im = y.parts
    # z^1 is z
    usual = certainly_finite(y) & ~((re.lo <= 1) & (re.hi >= 1) & (im.lo <= 0) & (im.hi >= 0))
    up, down, turned = usual & (re.lo > 0), usual & (re.hi < 0), usual & ((im.lo > 0) | (im.hi < 0))
    real = np.logical_or.reduce([may_be_zero(p) for p in x.parts])
    vanishing = (zero & up) | (infinite & ~none & down)
    units = (np.where(one, v, 0.0) for v in (1.0, 0.0))
    beside = (one & ~certainly_finite(x)) | (one & zero) | vanishing
    result = rectangle(*(listed(p, beside, v, True) for p, v in zip(result.parts, units, strict=True)))
    result = infinite_or_nan(result, (zero & down) | (infinite & ~none & ~real & up))
    return nothing(result, (zero & is_zero(re) & turned) | (none & finite & (up | down | turned)))
