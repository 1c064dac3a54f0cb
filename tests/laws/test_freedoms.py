"""What a platform may do beyond one rounding an operation (`oracle.enclosure.freedoms`).

For each program the results that XLA's ways of evaluating it give are computed here, in fractions: all of them are in the
enclosure, and none of its ends is further out than they are. Nothing is shared with the rules of `oracle.enclosure`.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tenferro_ref import ops
from tests.laws.cases import Array, apply
from tests.laws.exact import fused, near, read, real, written
from tests.laws.freedoms import (
    Freedom,
    broken,
    const,
    contraction,
    draw,
    either,
    freedom,
    grid,
    over,
    plus,
    rows,
    times,
    total,
    zero_above,
)

pytestmark = pytest.mark.once


# --- the freedoms -----------------------------------------------------------------------------------------------------


def contractions(kind: Any) -> Iterator[Freedom]:
    """A product may go unrounded into a sum."""
    x, y, u, v = (draw(kind, seed) for seed in range(4))
    # what is left of a product that is taken away again is its rounding error: 2 ** -64 of the product is not known of F64
    z = -(x * y)
    ulps = 0.0 if kind is np.float32 else 2.0**48
    both = [x * y + z, fused(x, y, z)]
    yield freedom("x y + z", plus(times), (x, y, z), both, ulps, zeros=True)
    for n in range(2, 10):
        first = [v[:n] if n % 3 != i else v[0] for i, v in enumerate((x, y, z))]
        whole = np.broadcast_arrays(*first)
        may = [whole[0] * whole[1] + whole[2], fused(*whole)]
        yield freedom("x y + z, one of them a scalar", plus(times), [np.array(v) for v in first], may, 2.0**8 * ulps)
    yield freedom("z + x y", lambda a, b, c: c + a * b, (x, y, z), both, ulps)
    yield freedom("z - x y", lambda a, b, c: -(a * b) + c, (x, y, -z), [-(x * y) - z, fused(-x, y, -z)], ulps)
    yield freedom("a sum, not a product", lambda a, b, c: (a + b) + c, (x, y, z), [(x + y) + z])
    yield freedom("two products", lambda a, b, c, d: a * b + c * d, (x, y, u, v),
                  [x * y + u * v, fused(x, y, u * v), fused(u, v, x * y)], ulps)  # fmt: skip
    if kind is np.float64:  # products of 60 digits are known
        s, t = (np.round(v * 2**29) / 2**29 for v in (x, y))
        yield freedom("x y + z, all digits known", plus(times), (s, t, -s * t), [s * t - s * t, fused(s, t, -s * t)])
    else:  # just below a tie, so close that float64 does not tell
        odd = np.array([1 + 2.0**-23, -1 - 2.0**-23], kind)
        below = np.array([2.0**-12 - 2.0**-35] * 2, kind), np.array([2.0**-12 + 2.0**-35, -(2.0**-12) - 2.0**-35], kind)
        yield freedom(
            "x y + z, below a tie", plus(times), (*below, odd), [below[0] * below[1] + odd, fused(*below, odd)]
        )
    big = np.array([np.finfo(kind).max], kind)
    yield freedom("x y + z, x y overflows", plus(times), (big, 0 * big + 2, -big), [big + np.inf, big])
    wild = grid(kind, 0, -0.0, 1, -3, np.nan, np.finfo(kind).max, np.inf, -np.inf, axes=3)
    yield freedom("x y + z of special values", plus(times), wild, [wild[0] * wild[1] + wild[2], fused(*wild)])
    yield freedom("a sum of products", lambda a, b: total(a * b), (rows(x, u), rows(y, v)),
                  [x * y + u * v, fused(x, y, u * v), fused(u, v, x * y)], ulps)  # fmt: skip


def moved_products(kind: Any) -> Iterator[Freedom]:
    """Whatever moves or selects a product on its way into a sum."""
    x, y, u, v = (draw(kind, seed) for seed in range(4))
    z, shape = -(x * y), (4, 6)
    ulps = 0.0 if kind is np.float32 else 2.0**48
    both = [x * y + z, fused(x, y, z)]

    def turned(a: Array) -> Array:
        return a.reshape(shape, order="F").T

    yield freedom("a product that has moved", plus(lambda a, b: (a * b).reshape(*shape).transpose(1, 0)),
                  (x, y, np.asfortranarray(turned(z))), [turned(r) for r in both], ulps)  # fmt: skip
    yield freedom("x times one of two", lambda a, b, c: times(a, either(b, c)), (x, y, u), [x * y, x * u])
    yield freedom("0 times one of two, an infinity", lambda a, b, c: times(either(a, b), c),
                  (np.abs(x), np.full_like(x, np.inf), x - x), [x - x, np.full_like(x, np.nan)])  # fmt: skip
    yield freedom("one of two times x", lambda a, b, c: times(either(b, c), a), (x, y, u), [x * y, x * u])
    yield freedom("either of two products", plus(lambda a, b, c, d: either(a * b, c * d)), (x, y, u, v, z),
                  [*both, u * v + z, fused(u, v, z)], ulps)  # fmt: skip
    yield freedom("a product or none", plus(lambda a, b, c: either(a * b, c)), (x, y, u, z), [*both, u + z], ulps)
    yield freedom("none or a product", plus(lambda a, b, c: either(c, a * b)), (x, y, u, z), [*both, u + z], ulps)
    if kind is np.float64:
        one, far = np.ones(1), np.array([2.0**64])
        yield freedom("x or y, less x", plus(either), (one, far, -one), [one - one, far])
        yield freedom("x or y, times 1, less x", plus(lambda a, b, c: times(either(a, b), c)), (one, far, one, -one),
                      [one - one, far])  # fmt: skip
    yield freedom("the last of many products", plus(lambda a: apply(ops.ReduceProd((0,)), a)), (rows(x, y, u), z),
                  [r for a, b in ((x * y, u), (x * u, y), (y * u, x)) for r in (a * b + z, fused(a, b, z))],
                  2.0**46 if kind is np.float64 else 2.0**27)  # fmt: skip
    for reduce in (ops.ReduceSum, ops.ReduceProd, ops.ReduceMax, ops.ReduceMin):
        yield freedom(f"a product in a {reduce.__name__} of one", plus(lambda a, b, op=reduce: apply(op((0,)), a * b)),
                      (rows(x), rows(y), z), both, ulps)  # fmt: skip
    landed = np.array([[3], [5], [3]]), np.ones((1, 3), kind, order="F")
    after = x * y
    np.add.at(after, landed[0].ravel(), kind(1))
    scatter = ops.Scatter((0,), (), (0,), 1)
    yield freedom("a product that others were added to", plus(lambda a, b, i, e: apply(scatter, a * b, i, e)),
                  (x, y, *landed, z), [after + z, np.where(after == x * y, fused(x, y, z), after + z)], max(ulps, 1.0))  # fmt: skip
    # what a Select puts beside a product is a zero in the elements of x that are above z
    size, beside = np.abs(x * y), np.where(x > z, 0, u).astype(kind)
    sums = [size + beside, fused(abs(x), abs(y), beside)]
    yield freedom("|x y| and a selected zero, + z", lambda a, b, c, d: (abs(a) * abs(b) + zero_above(a, d, c)) + d, (x, y, u, z),
                  [*(v + z for v in sums), np.where(x > z, fused(abs(x), abs(y), z), sums[0] + z)], max(ulps, 1.0))  # fmt: skip


def gatherings(kind: Any) -> Iterator[Freedom]:
    """Constants, and values that many elements share, are gathered."""
    x, y, u = (draw(kind, seed) for seed in range(10, 13))
    c, d, e, half = kind(1.1), kind(1.7), kind(1.3), kind(0.5)
    ways = [(x * c) * d, x * (c * d), (x * d) * c]
    yield freedom("(x c) d", lambda a: times(a, c, d), (x,), ways, 1.0)
    yield freedom("-(x c) d", lambda a: times(-times(a, c), d), (x,), [-way for way in ways], 1.0)
    again = [(x * c * d) * e, (x * c) * (d * e), x * (c * d * e), (x * e) * (c * d)]
    yield freedom("-((x c) d) e", lambda a: times(-times(a, c, d), e), (x,), [-way for way in again], 3.0)
    yield freedom("d (c x)", lambda a: times(const(a, d), times(const(a, c), a)), (x,), ways, 1.0)
    yield freedom(
        "(x s) t, of shared s and t", lambda a, s, t: (a * s) * t, (x, np.asarray(c), np.asarray(d)), ways, 1.0
    )
    yield freedom("(x c) d, x one of two", lambda a, b: times(either(a, b), c, d), (x, y),
                  [*ways, (y * c) * d, y * (c * d), (y * d) * c], 1.0)  # fmt: skip
    # as far from its rounded value as a product can be
    inverse = max((f for f in (np.abs(draw(kind, 14, 4096)) / c).astype(kind) if c * f >= 1),
                  key=lambda f: abs(Fraction(float(c)) * Fraction(float(f)) / Fraction(float(c * f)) - 1))  # fmt: skip
    known = c * inverse
    yield freedom("(c d)(x e), c d known", lambda a: times(times(const(a, c), inverse), times(a, e)), (x,),
                  [known * (x * e), x * (known * e)], 1.0)  # fmt: skip
    yield freedom("(x c)(y d)", lambda a, b: times(a, c) * times(b, d), (x, y),
                  [(x * c) * (y * d), (x * y) * (c * d), x * (c * (y * d)), ((x * c) * y) * d], 2.0)  # fmt: skip
    far = np.array([np.finfo(kind).max], kind)
    yield freedom("sqrt (x x), x x overflows", lambda a: apply(ops.Sqrt(), a * a), (far,), [far * far])
    with np.errstate(over="ignore"):
        yield freedom("(x c) d, x c overflows", lambda a: times(a, c, kind(0.3)), (far,), [far * c * kind(0.3)])
    small, less, more = np.array([np.finfo(kind).tiny], kind), kind(1e-20), kind(1e30)
    yield freedom("(x c) d, x c is lost", lambda a: times(a, less, more), (small,),
                  [np.zeros_like(small), small * (less * more)], 1.0)  # fmt: skip
    yield freedom("(x y) u", times, (x, y, u), [(x * y) * u])
    yield freedom("(x y)(x u)", lambda a, b, e: (a * b) * (a * e), (x, y, u), [(x * y) * (x * u)])
    yield freedom("(x c) y", lambda a, b: times(a, c, b), (x, y), [(x * c) * y])
    yield freedom("(x 2) 4", lambda a: times(a, kind(2), kind(4)), (x,), [x * 8])
    yield freedom("(x c) / 2 + y", lambda a, b: over(times(a, c), kind(2)) + b, (x, y),
                  [(x * c) * half + y, fused(x, np.full_like(x, c * half), y)], 1.0)  # fmt: skip
    root = np.abs(x)
    rooted = np.sqrt(root)
    yield freedom("(sqrt x c) sqrt x", lambda a: (lambda r: times(r, c, r))(apply(ops.Sqrt(), a)), (root,),
                  [(rooted * c) * rooted, root * c], 3.0)  # fmt: skip
    yield freedom("(sqrt x 2)(sqrt x 2)", lambda a: (lambda r: r * r)(times(apply(ops.Sqrt(), a), kind(2))), (root,),
                  [4 * (rooted * rooted), 4 * root], 3.0)  # fmt: skip
    yield freedom(
        "sqrt x sqrt x", lambda a: (lambda r: r * r)(apply(ops.Sqrt(), a)), (root,), [np.sqrt(root) ** 2, root]
    )


def quotients(kind: Any) -> Iterator[Freedom]:
    """Divisions by what is shared become products, divisions of quotients become one."""
    x, y, z = (draw(kind, seed) for seed in range(20, 23))
    c, d, one = kind(1.1), kind(3), kind(1)
    yield freedom("x / y", over, (x, y), [x / y])
    yield freedom("x / one of two", lambda a, b: a / either(b, times(b, d)), (x, y), [x / y, x / (y * d)], 1.0)
    many = draw(kind, 24, 5000)
    yield freedom("x / c, of many", lambda a: over(a, c), (many,), [many / c, many * (one / c)])
    near_by = -(x / 4) * kind(1 + 2.0**-8)
    yield freedom("x / (2 2) + y", lambda a, b: over(a, const(a, kind(2)) * const(a, kind(2))) + b, (x, near_by),
                  [x / 4 + near_by], 2.0)  # fmt: skip
    yield freedom("x / c", lambda a: over(a, c), (x,), [x / c, x * (one / c)])
    yield freedom("x / s, shared", lambda a, s: a / s, (x, np.asarray(c)), [x / c, x * (one / c)])
    large = np.array([np.finfo(kind).max], kind)
    yield freedom("x / c, 1 / c a subnormal", lambda a: over(a, large[0]), (large,), [large / large])
    root = np.sqrt(large)
    yield freedom(
        "(x / y) / z, y z overflows", over, (large, 2 * root, 2 * root), [(large / (2 * root)) / (2 * root)], 1.0
    )
    yield freedom("z / (x / y), x / y overflows", lambda a, b, e: a / (b / e), (large, 4 * root, one / (4 * root)),
                  [np.zeros_like(large), large * (one / (4 * root)) / (4 * root)], 2.0)  # fmt: skip
    yield freedom("x / 2 ** k", lambda a: over(a, kind(8)), (x,), [x / 8])
    yield freedom("(x / y) / z", over, (x, y, z), [(x / y) / z, x / (y * z)], 1.0)
    yield freedom("((x / y) 1) / z", lambda a, b, e: times(a / b, one) / e, (x, y, z), [(x / y) / z, x / (y * z)], 1.0)
    yield freedom("x / (y / z)", lambda a, b, e: a / (b / e), (x, y, z), [x / (y / z), (x * z) / y], 2.0)
    yield freedom("(x / c) / d", lambda a: over(a, c, d), (x,),
                  [(x / c) / d, x / (c * d), x * (one / (c * d)), (x * (one / c)) / d, (x * (one / c)) * (one / d)], 3.0)  # fmt: skip
    yield freedom(
        "(x c) / d", lambda a: over(times(a, c), d), (x,), [(x * c) / d, x * (c / d), (x * c) * (one / d)], 3.0
    )
    yield freedom("(x y) / z", lambda a, b, e: (a * b) / e, (x, y, z), [(x * y) / z])
    size = np.abs(y)
    inverse = near(1 / real(np.sqrt(size.astype(np.longdouble))), kind) if kind is np.float32 else one / np.sqrt(size)
    yield freedom("x / sqrt y", lambda a, b: over(a, apply(ops.Sqrt(), abs(b))), (x, y),
                  [x / np.sqrt(size), x * inverse], 8.0)  # fmt: skip
    reciprocal, z = np.full_like(x, one / c), np.copysign(z, x)
    yield freedom("x / c + z", lambda a, b: over(a, c) + b, (x, z),
                  [x / c + z, x * (one / c) + z, fused(x, reciprocal, z)], 4.0)  # fmt: skip
    yield freedom("x / y + z", lambda a, b, e: a / b + e, (x, y, z), [x / y + z])
    # a sum that cancels but for what rounding the product took
    many, sizes = draw(kind, 25, 4096), np.abs(draw(kind, 26, 4096))
    roots, third = np.sqrt(sizes), np.full_like(sizes, one / d)
    yield freedom("x / rsqrt y + z", lambda a, b, e: over(a, apply(ops.Rsqrt(), b)) + e, (many, sizes, -(many * roots)),
                  [fused(many, roots, -(many * roots))], math.inf)  # fmt: skip
    both = many * sizes
    yield freedom("x / (c / y) + z", lambda a, b, e: over(a, over(const(b, d), b)) + e, (many, sizes, -(both * third)),
                  [fused(both, third, -(both * third))], math.inf)  # fmt: skip
    # exact until the last step, and rounded on the way where it is grouped otherwise
    whole = np.arange(1, 25).astype(kind)
    yield freedom("(x 7 / 2) c", lambda a: times(over(times(a, kind(7)), kind(2)), c), (whole,),
                  [(whole * 7 / 2) * c, whole * (kind(3.5) * c)], 1.0)  # fmt: skip
    yield freedom("x / (s / 4), shared", lambda a, s: a / (s / const(s, kind(4))), (whole, np.asarray(kind(11))),
                  [whole / kind(2.75), (whole * 4) * (one / kind(11))], 3.0)  # fmt: skip
    yield freedom("x / (sqrt y / z)", lambda a, b, e: a / (apply(ops.Sqrt(), abs(b)) / e), (x, y, z),
                  [x / (np.sqrt(size) / z), (x * z) / np.sqrt(size), (x * z) * inverse], 8.0)  # fmt: skip
    yield freedom("(x / y) ** -1", lambda a, b: apply(ops.Pow(), a / b, const(a, kind(-1))), (whole, y),
                  [one / (whole / y), y / whole], 2.0)  # fmt: skip


def flushing(kind: Any) -> Iterator[Freedom]:
    """Subnormals may be zeros of their sign: operands, and results that were tiny before they were rounded."""
    info = np.finfo(kind)
    tiny, least = info.smallest_normal, info.smallest_subnormal
    values = np.array([0.0, -0.0, least, -least, tiny / 2, -tiny / 2, tiny - least, tiny, -tiny, tiny + least, 2 * tiny, 1],
                      kind)  # fmt: skip
    x, y = grid(kind, *values, axes=2)
    alike = (np.abs(x) < tiny) & (np.abs(y) < tiny)
    for op, f in ((ops.Add(), operator.add), (ops.Multiply(), operator.mul)):
        results = [r for a, b in itertools.product(read(x), read(y)) for r in written(f(a, b))]
        yield freedom(f"{op.name} of subnormals", lambda a, b, op=op: apply(op, a, b), (x, y), results)
    for op, reduce, f in ((ops.Maximum(), ops.ReduceMax, np.maximum), (ops.Minimum(), ops.ReduceMin, np.minimum)):
        pairs = [f(a, b) for a, b in itertools.product(read(x), read(y))]
        results = [r for p in pairs for r in read(p)]  # of two that are read as zeros either may be taken
        for trace, inputs, may in (
            (lambda a, b, op=op: apply(op, a, b), (x, y), results),
            (lambda a, op=reduce: apply(op((0,)), a), (rows(x, y),), pairs),
        ):
            taken = [np.where(alike, v, may[0]) for p in (x, y) for v in read(p)]
            yield freedom(f"{op.name} of subnormals", trace, inputs, [*may, *taken], zeros=True)
    yield freedom("subnormals, negated", lambda a: -a, (values,), [-v for v in read(values)], zeros=True)
    # quotients by two that are tiny: a tie, and a fused sum knows on which side of it they are
    for top, addend in ((2 * tiny - least, least - 2 * tiny), (tiny + least, tiny + least)):
        a, b = np.array([top], kind), np.array([addend], kind)
        yield freedom("x / 2 + y, x / 2 tiny", lambda v, w: over(v, kind(2)) + w, (a, b),
                      [r for v in written(a / 2) for s in (v + b, fused(a, np.full_like(a, 0.5), b)) for r in written(s)])  # fmt: skip
    for sign in (1, -1):  # alone in its tensor
        whole, half = np.array([sign * (2 * tiny - least)], kind), np.array([0.5], kind)
        yield freedom(
            "x y, just below the least normal number", times, (whole, half), written(whole * half), zeros=True
        )
    # a sum of a product that is so small that it is flushed, or just not; apart, it is nothing
    digits = (info.nmant + 2) // 2
    x, last = np.array([1 + 2.0**-digits], kind), 2 * digits
    for power, sign in itertools.product((last - info.nmant, last - 2, last, last + 1), (1, -1)):
        scale = sign * kind(2.0) ** power * tiny
        z = np.array([-(1 + 2.0 ** (1 - digits))], kind) * scale
        yield freedom(
            "x y + z, tiny", plus(times), (x, x * scale, z), [x - x, *written(fused(x, x * scale, z))], zeros=True
        )
    if kind is np.float32:
        yield gathered_below()


def gathered_below() -> Freedom:
    """Factors of the largest significand: their product over a power of two is just below the least normal number."""
    kind, factors = np.float32, (3, 3, 5, 7)
    info = np.finfo(kind)
    whole = (2**24 - 1) // math.prod(factors)
    shift = 26 - whole.bit_length()
    x = np.array([whole], kind) * (kind(2) ** (shift - 1) * info.smallest_subnormal)

    def gathered(last: Any) -> Array:
        constant = last
        for factor in factors:
            constant = kind(factor) * constant
        return np.asarray(x * (constant / kind(2) ** shift))

    last = next(c for c in np.abs(draw(kind, 30, 4096)) if gathered(c) > info.smallest_normal * c)
    return freedom("(x ... / 2 ** k) c, tiny on the way",
                   lambda v: times(over(times(v, *map(kind, factors)), kind(2) ** shift), last), (x,),
                   [x - x, np.full_like(x, info.smallest_normal * last), gathered(last)], 4.0)  # fmt: skip


def zeros(kind: Any) -> Iterator[Freedom]:
    """What a zero changes: a constant one nothing, others the sign of zero; and a sum of zeros starts from either."""
    minus, positive, ones = np.full(3, -0.0, kind), np.full(3, 0.0, kind), np.ones(3, kind)
    for x, c, may in (
        (minus, -0.0, [minus]), (minus, 0, [minus, positive]), (positive, -0.0, [positive]), (positive, 0, [positive]),
        (ones, -1, [positive]),
    ):  # fmt: skip
        yield freedom(f"{x[0]} + {c}, a constant", lambda a, c=c: a + const(a, kind(c)), (x,), may, zeros=True)
        yield freedom(f"{c}, a constant, + {x[0]}", lambda a, c=c: const(a, kind(c)) + a, (x,), may, zeros=True)
    nothing, square = np.zeros((2, 3), kind, order="F"), np.zeros((3, 3), kind, order="F")
    for pair in ((nothing, nothing - 1), (nothing - 1, nothing)):
        yield freedom("a contraction of -0", contraction, pair, [square, -square])
    yield freedom("a sum of -0", total, (-nothing,), [minus, positive], zeros=True)


def sums(kind: Any) -> Iterator[Freedom]:
    """Sums of sums may be one sum."""
    large = kind(2.0 ** (np.finfo(kind).nmant + 3))  # its neighbours are 8 away
    slack = 2.0 ** (np.finfo(kind).nmant + 1)  # the largest partial sums are off by some units of them
    square = np.array([[large, -large], [3, 3]], kind, order="F")
    orders = {r for v in itertools.permutations(square.ravel())
              for r in ((v[0] + v[1]) + (v[2] + v[3]), ((v[0] + v[1]) + v[2]) + v[3])}  # fmt: skip
    yield freedom(
        "a sum of sums", lambda x: total(total(x, 1)), (square,), [np.asarray(v, kind) for v in orders], slack
    )
    yield freedom("a sum of sums, negated", lambda x: total(-total(x, 1)), (square,),
                  [np.asarray(-v, kind) for v in orders], slack)  # fmt: skip
    for extra, result in ((4, np.inf), (-np.inf, np.nan)):
        endless = np.array([[np.inf, 1, 2], [3, extra, 5]], kind, order="F")
        yield freedom("a sum of sums, infinite", lambda x: total(total(x, 1)), (endless,), [np.asarray(result, kind)])
    far = np.full((2, 3), np.log(2.0**40), kind, order="F")  # the sine of its exponential is anywhere
    yield freedom("a sum of sums of anything", lambda x: total(-total(apply(ops.Sin(), apply(ops.Exp(), x)), 1)), (far,),
                  [np.asarray(v, kind) for v in (-6, 0, 6)], 4.0)  # fmt: skip
    a, b = np.array([large, 1], kind), np.array([1, 3], kind)
    yield freedom("a contraction and an addend", plus(contraction), (a, b, np.asarray(-large)),
                  [np.asarray(v, kind) for v in (0, 3, 8)], slack)  # fmt: skip


def accumulators(kind: Any) -> Iterator[Freedom]:
    """A contraction may start from what is added to it: two products and an addend meet in any order, fused or not."""
    trace = plus(lambda x, y: contraction(x, y, batched=True))

    def ways(x: Array, y: Array, z: Array) -> list[Array]:
        orders = []
        for i, j in ((0, 1), (1, 0)):
            first, last = x[i] * y[i], x[j] * y[j]
            for both in (first + last, fused(x[i], y[i], last)):
                orders += [both + z]
            for start in (first + z, fused(x[i], y[i], z)):
                orders += [start + last, fused(x[j], y[j], start)]
        return orders

    p, q = (rows(draw(kind, seed), draw(kind, seed + 1)) for seed in (40, 42))
    z = -kind(0.75) * (p * q)[0]
    far = draw(kind, 44) * kind(2.0 ** (np.finfo(kind).nmant + 3))
    for factor in (1, 4):
        yield freedom("two products and a large addend", trace, (factor * p, q, far), ways(factor * p, q, far), 3.0)
    steep = (kind(16) * p, p / kind(4)), (far, -far)
    yield freedom("one of two contractions and one of two addends",
                  lambda a, b, e, f, g: trace(either(a, b), e, either(f, g)), (*steep[0], q, *steep[1]),
                  [way for s, t in itertools.product(*steep) for way in ways(s, q, t)], 8.0)  # fmt: skip
    yield freedom("two products and an addend", trace, (p, q, z), ways(p, q, z), 256.0)
    a, b, z = grid(kind, 0, -0.0, 1, -3, np.inf, -np.inf, np.nan, axes=3)
    ones = np.ones_like(rows(a, b))
    yield freedom(
        "two values and an addend, special ones", trace, (rows(a, b), ones, z), ways(rows(a, b), ones, z), 8.0
    )
    large = np.full((2, 3), np.finfo(kind).max, kind, order="F")
    yield freedom("a contraction that overflows, and an addend", trace, (large, np.ones_like(large), -large[0]),
                  [large[0] + large[0]])  # fmt: skip
    root = kind(2.0 ** (np.finfo(kind).maxexp // 2))
    p, q = rows(-root / 2, root), rows(root, root)
    r, t = rows(kind(3), kind(5)), rows(kind(7), kind(11))
    first = p[0] * q[0] + r[0] * t[0]
    yield freedom("a product beyond the largest value in a sum of sums of two products", lambda a, b, c, d: total(a * b + c * d),
                  (p, q, r, t), [np.asarray(np.inf, kind), fused(p[1], q[1], fused(r[1], t[1], first))])  # fmt: skip
    tiny = np.finfo(kind).smallest_normal * draw(kind, 45) / 4
    small, ones = rows(tiny, tiny[::-1]), np.ones((2, tiny.size), kind, order="F")
    yield freedom("two subnormals and an addend", trace, (small, ones, tiny), [
        sum_ for s, t in itertools.product(read(small), read(tiny)) for way in ways(s, ones, t) for sum_ in written(way)
    ], 2.0 ** (np.finfo(kind).nmant + 4))  # fmt: skip


def small_integers(kind: Any) -> Iterator[Freedom]:
    """Small integers give one value in every order."""
    x = np.arange(-6, 6, dtype=kind).reshape(3, 4, order="F")
    y = np.arange(12, dtype=kind)[::-1].reshape(3, 4, order="F") - 5
    three, four, five = kind(3), kind(4), kind(5)
    for about, trace, result in (
        ("a sum of products", lambda a, b: total(a * b), (x * y).sum(0)),
        ("a sum of sums of products", lambda a, b: total(total(a * b, 1)), (x * y).sum()),
        ("a contraction", contraction, x.T @ y),
        ("a contraction of sums", lambda a, b: contraction(a + b, b), (x + y).T @ y),
        ("a product of many", lambda a, b: apply(ops.ReduceProd((0,)), a + b), (x + y).prod(0)),
        ("a quotient of a sum", lambda a, b: over(a + b, four), (x + y) / 4),
        (
            "a contraction and an addend",
            lambda a, b: contraction(a, b, batched=True) + total(b),
            (x * y).sum(0) + y.sum(0),
        ),
        ("a sum of products with constants", lambda a, b: total(times(a, three, five)), x.sum(0) * 15),
        ("a sum of products of products", lambda a, b: total(times(a, three) * times(b, five)), (x * y).sum(0) * 15),
        ("a sum of quotients", lambda a, b: total(over(times(a, three), four)), x.sum(0) * 3 / 4),
        ("a product and a sum", lambda a, b: a * b + b, x * y + y),
    ):
        yield freedom(f"small integers, {about}", trace, (x, y), [np.asarray(result, kind)])


FAMILIES = (
    contractions, moved_products, gatherings, quotients, flushing, zeros, sums, accumulators, small_integers,
)  # fmt: skip


def programs(family: Callable[[Any], Iterator[Freedom]], kind: Any) -> list[Freedom]:
    with np.errstate(all="ignore"):
        return list(family(kind))


@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=lambda k: k.__name__)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_enclosures_are_what_platforms_may_give(family: Callable[[Any], Iterator[Freedom]], kind: Any) -> None:
    assert [reason for reason in map(broken, programs(family, kind)) if reason] == []


# --- the second statement itself --------------------------------------------------------------------------------------


def test_enclosures_that_are_too_narrow_or_too_wide_are_noticed() -> None:
    x = np.full(2, 3.0)
    for may, reason in (([6.0, 7.0], "left out"), ([5.0], "left out"), ([np.nan], "left out"), ([6.0], "")):
        said = broken(freedom("a sum", lambda a, b: a + b, (x, x), [np.full(2, v) for v in may]))
        assert (reason in said) if reason else not said
    product = next(f for f in programs(contractions, np.float32) if f.about == "x y + z")
    assert "ends" in broken(replace(product, may=product.may[:1]))
    zero = next(f for f in programs(zeros, np.float32) if f.about == "a sum of -0")
    assert "zero" in broken(replace(zero, may=zero.may[:1]))
