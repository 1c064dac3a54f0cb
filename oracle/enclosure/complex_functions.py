"""Rules of the functions of complex numbers, by balls: the derivative gives a radius, the budget is in ULPs of the modulus.

Limits at infinity, branch cuts and powers are in docs/explanation/enclosures.md. What a ball and a rectangle are is in `complexes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from oracle.enclosure.balls import Ball, ball, certainly_finite, complex_of, enclosed
from oracle.enclosure.complexes import nothing, promoted, reach
from oracle.enclosure.formats import Array, Format
from oracle.enclosure.freedoms import cuts
from oracle.enclosure.functions import budgeted
from oracle.enclosure.rule import COMPLEX, Context
from oracle.enclosure.value import Enclosure, Interval, Rectangle, each_part, rectangle
from tenferro_ref import ops
from tenferro_ref.ops import Op


@COMPLEX.row(ops.Abs)
def _abs(op: Op, c: Context, x: Enclosure) -> Enclosure:
    f = c.format
    parts = [(np.where(p.lo * p.hi <= 0, 0, np.minimum(np.abs(p.lo), np.abs(p.hi))),
              np.maximum(np.abs(p.lo), np.abs(p.hi))) for p in x.parts]  # fmt: skip
    ok = certainly_finite(x)
    infinite = np.logical_or.reduce([(v.lo == v.hi) & np.isinf(v.lo) & ~v.nan for v in x.parts])
    infinite &= ~np.logical_or.reduce([v.nan for v in x.parts])
    lost = np.logical_or.reduce([v.empty for v in x.parts]) & np.isfinite(reach(x))
    (a, b), (p, q) = (tuple(np.where(ok, v, 0).astype(f.wide) for v in part) for part in parts)
    low, high = np.hypot(a, p), np.hypot(b, q)
    point_like = (a == b) & (p == q)
    lo, hi = budgeted(f, c.model.budget("Abs", c.dtype.complex), low, high, 0.0)
    zero = point_like & (low == 0)
    lo, hi = np.where(ok, np.where(zero, 0, lo), 0.0), np.where(ok, np.where(zero, 0, hi), np.inf)
    lo, hi = np.where(lost | infinite, np.inf, lo), np.where(lost, -np.inf, hi)
    positive = ~point_like | zero | ~ok | (lo <= 0)
    return c.build(lo.astype(float), hi.astype(float), ~ok & ~infinite, positive, ~(ok | ~ok))


@COMPLEX.row(ops.Sign)
def _sign(op: Op, c: Context, x: Enclosure) -> Enclosure:
    """z / |z|, and 0 of 0; anything where |z| may overflow, where some implementations give 0."""
    f = c.real.format
    z = ball(f, x)
    zero = (z.size == 0) & z.ok
    inside = (z.least > f.min_normal / f.unit) & (z.size < f.max / 2)
    modulus = np.where(inside, np.abs(z.mid), 1)
    made = enclosed(c, c.budget("Sign"), Ball(z.mid / modulus, 2 * z.rad / modulus, z.ok & inside))
    made = nothing(made, _undefined(x))
    if not zero.any():
        return made

    def still(p: Interval) -> Interval:
        return replace(p, lo=np.where(zero, 0.0, p.lo), hi=np.where(zero, 0.0, p.hi), nan=p.nan & ~zero)

    return each_part(still, made)


def _entire(
    name: type[Op],
    f: Callable[[Array], Array],
    grown: Callable[[Ball], Array],
    far: Callable[[Array], tuple[Array, Array]],
    axis: int,
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
        return overflown(real, made, z, *far(z.mid), c.budget(op.name))


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
    over = z.ok & ((least > 0) & (np.log(np.where(least > 0, least, 1)) + log > np.log(f.max) + 1)).all(0)
    if not over.any():
        return x

    def infinite(p: Interval, side: Array) -> Interval:
        limit = np.copysign(np.inf, side).astype(float)
        nan, pos, neg = (np.asarray(v & ~over) for v in (p.nan, p.pos_zero, p.neg_zero))
        return Interval(p.dtype, np.where(over, limit, p.lo), np.where(over, limit, p.hi), nan, pos, neg)

    return rectangle(*map(infinite, x.parts, sides))


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


_entire(ops.Exp, np.exp, lambda z: np.exp(z.mid.real) * np.expm1(z.rad), _turned, 0)
_entire(ops.Expm1, np.expm1, lambda z: np.exp(z.mid.real) * np.expm1(z.rad), _turned, 0)


def _far_sine(z: Array) -> tuple[Array, Array]:
    return complex_of(np.sin(z.real), np.cos(z.real) * np.sign(z.imag)), np.abs(z.imag) - np.log(2.0)


def _far_cosine(z: Array) -> tuple[Array, Array]:
    return complex_of(np.cos(z.real), np.sin(z.real) * -np.sign(z.imag)), np.abs(z.imag) - np.log(2.0)


_entire(ops.Sin, np.sin, lambda z: np.cosh(np.abs(z.mid.imag) + z.rad) * z.rad, _far_sine, 1)
_entire(ops.Cos, np.cos, lambda z: np.cosh(np.abs(z.mid.imag) + z.rad) * z.rad, _far_cosine, 1)


@COMPLEX.row(ops.Tanh)
def _tanh(op: Op, c: Context, x: Enclosure) -> Enclosure:
    z = ball(c.real.format, x)
    a = np.clip(z.mid.real, -40, 40)  # |cosh| grows with |a|
    least = np.abs(np.cosh(complex_of(a, z.mid.imag))) - z.rad * np.cosh(np.abs(a) + z.rad)
    ok = z.ok & ((z.rad == 0) | ((z.rad < 1) & (least > 0)))
    made = enclosed(c, c.budget("Tanh"), Ball(np.tanh(z.mid), _none(z, z.rad / np.where(ok, least, 1) ** 2), ok))
    # far from the imaginary axis a formula may have +-1 whatever the imaginary part is
    return nothing(made, _undefined(x) & x.parts[0].empty)


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


def _cut(name: type[Op], f: Callable[[Ball], Ball]) -> None:
    @COMPLEX.row(name)
    def rule(op: Op, c: Context, x: Enclosure) -> Enclosure:
        z = ball(c.real.format, x)
        return nothing(
            enclosed(c, c.budget(op.name), *map(f, sides(z, cuts.side_is_known(c, x.parts[1]), x.parts[1]))),
            _undefined(x),
        )


_cut(ops.Log, logarithm)
_cut(ops.Sqrt, _root)
_cut(ops.Rsqrt, _inverse_root)


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
    return nothing(enclosed(c, c.budget("Log1p"), *balls), _undefined(x))


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
        ok = log.ok & exponent.ok & (base.size < f.max / 2) & (exponent.size < f.max / 2 / (1 + log.size))
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
    result = enclosed(c, c.budget("Pow") * (1 + growth), *balls)
    # 0 to a positive power, where the product with an infinite logarithm has no part that is 0 times that
    (re, im) = y.parts
    zero = (base.size == 0) & base.ok & (re.lo > 0) & ~re.nan & (im.lo == 0) & (im.hi == 0) & ~im.nan
    if not zero.any():
        return result
    return rectangle(*(replace(p, lo=np.where(zero, 0.0, p.lo), hi=np.where(zero, 0.0, p.hi), nan=p.nan & ~zero, gap=None)
                       for p in result.parts))  # fmt: skip
