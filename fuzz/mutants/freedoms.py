"""What a platform may do beyond one rounding an operation, said a second time: programs with what each of them may give.

For each program the results that XLA's ways of evaluating it give, computed here with fractions and rounded by `near`: all
of them are in the enclosure, and none of its ends is further out than they are. The rules of `oracle.enclosure` say the same
for every program (docs/enclosures.md, "Contraction", "Rewrites", "Flushing"); nothing is shared with them.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from fuzz.mutants.directed import Array, apply, case_of, spread
from oracle.case import Case
from oracle.enclosure import XLA, enclose
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import CompareDir
from tenferro_ref.program import Value

Trace = Callable[..., Value]


@dataclass(frozen=True, eq=False)
class Freedom:
    """A program with one output, and what it may give.

    Attributes
    ----------
    may
        Results, each of the output's shape: all that there are but for `ulps`, in those of the largest of each element.
    zeros
        All zeros that there are, too.
    """

    about: str
    case: Case
    may: tuple[Array, ...]
    ulps: float
    zeros: bool


def freedom(
    about: str, trace: Trace, inputs: Sequence[Array], may: Sequence[Array], ulps: float = 0.0, *, zeros: bool = False
) -> Freedom:
    """As `Freedom`; `trace` makes the program from its inputs."""
    return Freedom(about, case_of(trace, *inputs), tuple(may), ulps, zeros)


def broken(free: Freedom) -> str:
    """Where the enclosure is not what the program may give, "" for nowhere."""
    (found,) = enclose(free.case.program, free.case.inputs, XLA)
    for result in free.may:
        if not found.contains(result).all():
            return f"{free.about}: {result} is left out of [{found.lo}, {found.hi}]"
    wide = np.stack(free.may).astype(np.float64)
    none, some = np.isnan(wide).all(axis=0), np.isnan(wide).any(axis=0)
    if np.any((found.nan & ~some) | (none & ~found.empty)):
        return f"{free.about}: NaN, or a number, that nothing gives"
    zero, minus = wide == 0, np.signbit(wide)
    if free.zeros and any(
        np.any(possible & ~given.any(axis=0))
        for possible, given in ((found.pos_zero, zero & ~minus), (found.neg_zero, zero & minus))
    ):
        return f"{free.about}: nothing gives a zero of one of the signs"
    with np.errstate(invalid="ignore", over="ignore"):
        slack = free.ulps * np.spacing(np.abs(wide).max(axis=0).astype(found.dtype.numpy)).astype(np.float64)
        outside = (found.lo < np.fmin.reduce(wide) - slack) | (found.hi > np.fmax.reduce(wide) + slack)
    return f"{free.about}: nothing gives the ends of [{found.lo}, {found.hi}]" if outside.any() else ""


# --- exact arithmetic -------------------------------------------------------------------------------------------------

#: Arrays of fractions.
real: Callable[[Array], Any] = np.vectorize(lambda v: Fraction(float(v)), otypes=[object])


def near(exact: Array, kind: Any) -> Array:
    """Fractions rounded to nearest even."""
    info = np.finfo(kind)

    def one(q: Fraction) -> Any:
        if abs(q) >= Fraction(float(info.max)) + Fraction(2) ** (info.maxexp - info.nmant - 2):
            return kind(np.inf if q > 0 else -np.inf)
        exponent = abs(q.numerator).bit_length() - q.denominator.bit_length()  # of the binade, or the one above
        exponent -= abs(q) < Fraction(2) ** exponent
        step = Fraction(2) ** (max(exponent, info.minexp) - info.nmant)
        return kind(float(round(q / step) * step))

    return np.asarray(np.vectorize(one, otypes=[kind])(exact))


def fused(x: Array, y: Array, z: Array) -> Array:
    """`x y + z`, rounded once."""
    apart = x * y + z
    factors, addend = np.stack([x, y]), z
    known = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    x, y, z = (np.where(known, v, 0) for v in (x, y, z))
    exact = real(x) * real(y) + real(z)
    # an infinite addend stays when the product does not overflow before
    apart = np.where(np.isfinite(factors).all(axis=0) & np.isinf(addend), addend, apart)
    return np.where(known & (exact != 0), near(exact, z.dtype.type), apart)


def _draw(kind: Any, seed: int, count: int = 24) -> Array:
    """Numbers of both signs between 1 and 2."""
    rng = np.random.default_rng(seed)
    return np.asarray((rng.uniform(1, 2, count) * rng.choice([-1, 1], count)).astype(kind))


def _constant(x: Value, value: Any) -> Value:
    return x.builder.constant(value, DType.of(np.asarray(value)))


# --- the freedoms -----------------------------------------------------------------------------------------------------


def _contractions(kind: Any) -> Iterator[Freedom]:
    """A product may go unrounded into a sum, whatever moved it on the way."""
    x, y, u, v = (_draw(kind, seed) for seed in range(4))
    # what is left of a product that is taken away again is its rounding error: 2 ** -64 of the product is not known of F64
    z = -(x * y)
    ulps = 0.0 if kind is np.float32 else 2.0**48
    moved = (4, 6)

    def plus(made: Callable[..., Value]) -> Trace:
        return lambda *v: apply(ops.Add(), made(*v[:-1]), v[-1])

    def product(a: Value, b: Value) -> Value:
        return apply(ops.Multiply(), a, b)

    both = [x * y + z, fused(x, y, z)]
    yield freedom("x y + z", plus(product), (x, y, z), both, ulps, zeros=True)
    for n in range(2, 10):
        first = [v[:n] if n % 3 != i else v[0] for i, v in enumerate((x, y, z))]
        whole = np.broadcast_arrays(*first)
        yield freedom("x y + z, one of them a scalar", plus(product), [np.array(v) for v in first],
                      [whole[0] * whole[1] + whole[2], fused(*whole)], 2.0**8 * ulps)  # fmt: skip
    yield freedom("z + x y", lambda a, b, c: apply(ops.Add(), c, product(a, b)), (x, y, z), both, ulps)
    yield freedom(
        "z - x y",
        plus(lambda a, b: apply(ops.Negate(), product(a, b))),
        (x, y, -z),
        [-(x * y) - z, fused(-x, y, -z)],
        ulps,
    )
    if kind is np.float64:  # products of 60 digits are known
        s, t = (np.round(v * 2**29) / 2**29 for v in (x, y))
        yield freedom("x y + z, all digits known", plus(product), (s, t, -s * t), [s * t - s * t, fused(s, t, -s * t)])
        one, far = np.ones(1), np.array([2.0**64])
        yield freedom("x or y, less x", plus(_either), (one, far, -one), [one - one, far])
        yield freedom("x or y, times 1, less x", plus(lambda a, b, c: product(_either(a, b), c)), (one, far, one, -one),
                      [one - one, far])  # fmt: skip
    else:  # just below a tie, so close that float64 does not tell
        odd = np.array([1 + 2.0**-23, -1 - 2.0**-23], kind)
        near_one = (
            np.array([2.0**-12 - 2.0**-35] * 2, kind),
            np.array([2.0**-12 + 2.0**-35, -(2.0**-12) - 2.0**-35], kind),
        )
        yield freedom(
            "x y + z, below a tie",
            plus(product),
            (*near_one, odd),
            [near_one[0] * near_one[1] + odd, fused(*near_one, odd)],
        )
    line = np.array([0, -0.0, 1, -3, np.nan, np.finfo(kind).max, np.inf, -np.inf], kind)
    wild = [np.ascontiguousarray(a).ravel() for a in np.meshgrid(line, line, line)]
    yield freedom("x y + z of special values", plus(product), wild, [wild[0] * wild[1] + wild[2], fused(*wild)])
    yield freedom(
        "a product that has moved",
        plus(lambda a, b: apply(ops.Transpose((1, 0)), apply(ops.Reshape(moved), product(a, b)))),
        (x, y, np.asfortranarray(z.reshape(moved, order="F").T)),
        [r.reshape(moved, order="F").T for r in both],
        ulps,
    )
    yield freedom("two products", lambda a, b, c, d: apply(ops.Add(), product(a, b), product(c, d)), (x, y, u, v),
                  [x * y + u * v, fused(x, y, u * v), fused(u, v, x * y)], ulps)  # fmt: skip
    yield freedom(
        "a sum, not a product",
        plus(lambda a, b: apply(ops.Add(), a, b)),
        (x, y, z),
        [(x + y) + z],
    )
    yield freedom("x times one of two", lambda a, b, c: product(a, _either(b, c)), (x, y, u), [x * y, x * u])
    yield freedom("one of two times x", lambda a, b, c: product(_either(b, c), a), (x, y, u), [x * y, x * u])
    yield freedom("either of two products", plus(lambda a, b, c, d: _either(product(a, b), product(c, d))), (x, y, u, v, z),
                  [*both, u * v + z, fused(u, v, z)], ulps)  # fmt: skip
    yield freedom("a product or none", plus(lambda a, b, c: _either(product(a, b), c)), (x, y, u, z),
                  [*both, u + z], ulps)  # fmt: skip
    yield freedom("none or a product", plus(lambda a, b, c: _either(c, product(a, b))), (x, y, u, z),
                  [*both, u + z], ulps)  # fmt: skip
    three = np.asfortranarray(np.stack([x, y, u]))
    partial = [(x * y, u), (x * u, y), (y * u, x)]
    yield freedom("the last of many products", plus(lambda a: apply(ops.ReduceProd((0,)), a)), (three, z),
                  [r for a, b in partial for r in (a * b + z, fused(a, b, z))], 2.0**46 if kind is np.float64 else 2.0**27)  # fmt: skip
    for reduce in (ops.ReduceSum, ops.ReduceProd, ops.ReduceMax, ops.ReduceMin):
        row = (np.asfortranarray(a[np.newaxis]) for a in (x, y))
        yield freedom(f"a product in a {reduce.__name__} of one", plus(lambda a, b, op=reduce: apply(op((0,)), product(a, b))),
                      (*row, z), both, ulps)  # fmt: skip
    landed = np.array([[3], [5], [3]]), np.asfortranarray(np.ones((1, 3), kind))
    after = x * y
    np.add.at(after, landed[0].ravel(), kind(1))
    yield freedom("a product that others were added to",
                  plus(lambda a, b, i, e: apply(ops.Scatter((0,), (), (0,), 1), product(a, b), i, e)), (x, y, *landed, z),
                  [after + z], 1.0)  # fmt: skip
    pairs = np.asfortranarray(np.stack([x, u])), np.asfortranarray(np.stack([y, v]))
    yield freedom("a sum of products", lambda a, b: apply(ops.ReduceSum((0,)), product(a, b)), pairs,
                  [x * y + u * v, fused(x, y, u * v), fused(u, v, x * y)], ulps)  # fmt: skip


def _either(first: Value, second: Value) -> Value:
    """One of the two; which of them, no platform agrees on: an exponential is compared with its true value."""
    at = first.builder.constant(1.5, DType.F32)
    true = np.exp(np.longdouble(1.5))
    edge = np.float32(true)
    edge = edge if edge > true else np.nextafter(edge, np.float32(np.inf))
    smaller = apply(ops.Compare(CompareDir.Lt), apply(ops.Exp(), at), first.builder.constant(edge, DType.F32))
    return apply(ops.Select(), spread(smaller, *first.shape, dims=()), first, second)


def _times(a: Value, *factors: Any) -> Value:
    for factor in factors:
        a = apply(ops.Multiply(), a, factor if isinstance(factor, Value) else _constant(a, factor))
    return a


def _gatherings(kind: Any) -> Iterator[Freedom]:
    """Constants, and values that many elements share, are gathered."""
    x, y, u = (_draw(kind, seed) for seed in range(10, 13))
    c, d = kind(1.1), kind(1.7)

    ways = [(x * c) * d, x * (c * d), (x * d) * c]
    yield freedom("(x c) d", lambda a: _times(a, c, d), (x,), ways, 1.0)
    yield freedom("d (c x)", lambda a: apply(ops.Multiply(), _constant(a, d), apply(ops.Multiply(), _constant(a, c), a)), (x,), ways, 1.0)  # fmt: skip
    yield freedom("(x s) t, of shared s and t", lambda a, s, t: _times(a, *(spread(v, x.size, dims=()) for v in (s, t))),
                  (x, np.asarray(c), np.asarray(d)), ways, 1.0)  # fmt: skip
    yield freedom("(x c) d, x one of two", lambda a, b: _times(_either(a, b), c, d), (x, y),
                  [*ways, (y * c) * d, y * (c * d), (y * d) * c], 1.0)  # fmt: skip
    # as far from its rounded value as a product can be
    inverse = max((f for f in (np.abs(_draw(kind, 14, 4096)) / c).astype(kind) if c * f >= 1),
                  key=lambda f: abs(Fraction(float(c)) * Fraction(float(f)) / Fraction(float(c * f)) - 1))  # fmt: skip
    known = c * inverse
    e = kind(1.3)
    yield freedom("(c d)(x e), c d known", lambda a: apply(ops.Multiply(), _times(_constant(a, c), inverse), _times(a, e)), (x,),
                  [known * (x * e), x * (known * e)], 1.0)  # fmt: skip
    yield freedom("(x c)(y d)", lambda a, b: apply(ops.Multiply(), _times(a, c), _times(b, d)), (x, y),
                  [(x * c) * (y * d), (x * y) * (c * d), x * (c * (y * d)), ((x * c) * y) * d], 2.0)  # fmt: skip
    yield freedom("(x y) u", _times, (x, y, u), [(x * y) * u])
    yield freedom("(x y)(x u)", lambda a, b, e: _times(_times(a, b), _times(a, e)), (x, y, u), [(x * y) * (x * u)])
    yield freedom("(x c) y", lambda a, b: _times(a, c, b), (x, y), [(x * c) * y])
    yield freedom("(x 2) 4", lambda a: _times(a, kind(2), kind(4)), (x,), [x * 8])
    half = kind(0.5)
    yield freedom("(x c) / 2 + y", lambda a, b: apply(ops.Add(), apply(ops.Divide(), _times(a, c), _constant(a, kind(2))), b), (x, y),
                  [(x * c) * half + y, fused(x, np.full_like(x, c * half), y)], 1.0)  # fmt: skip
    root = np.abs(x)
    squared = np.sqrt(root) * np.sqrt(root)
    yield freedom("sqrt x sqrt x", lambda a: (lambda r: _times(r, r))(apply(ops.Sqrt(), a)), (root,), [squared, root])


def _quotients(kind: Any) -> Iterator[Freedom]:
    """Divisions by what is shared become products, divisions of quotients become one."""
    x, y, z = (_draw(kind, seed) for seed in range(20, 23))
    c, d = kind(1.1), kind(3)
    one = kind(1)

    def over(a: Value, *divisors: Any) -> Value:
        for divisor in divisors:
            a = apply(ops.Divide(), a, divisor if isinstance(divisor, Value) else _constant(a, divisor))
        return a

    yield freedom("x / y", over, (x, y), [x / y])
    yield freedom("x / c", lambda a: over(a, c), (x,), [x / c, x * (one / c)])
    yield freedom(
        "x / s, shared", lambda a, s: over(a, spread(s, x.size, dims=())), (x, np.asarray(c)), [x / c, x * (one / c)]
    )
    yield freedom("x / 2 ** k", lambda a: over(a, kind(8)), (x,), [x / 8])
    yield freedom("(x / y) / z", over, (x, y, z), [(x / y) / z, x / (y * z)], 1.0)
    yield freedom("x / (y / z)", lambda a, b, e: over(a, over(b, e)), (x, y, z), [x / (y / z), (x * z) / y], 2.0)
    yield freedom("(x / c) / d", lambda a: over(a, c, d), (x,),
                  [(x / c) / d, x / (c * d), x * (one / (c * d)), (x * (one / c)) / d, (x * (one / c)) * (one / d)], 3.0)  # fmt: skip
    yield freedom("(x c) / d", lambda a: over(apply(ops.Multiply(), a, _constant(a, c)), d), (x,),
                  [(x * c) / d, x * (c / d), (x * c) * (one / d)], 3.0)  # fmt: skip
    yield freedom("(x y) / z", lambda a, b, e: over(apply(ops.Multiply(), a, b), e), (x, y, z), [(x * y) / z])
    size = np.abs(y)
    inverse = near(1 / real(np.sqrt(size.astype(np.longdouble))), kind) if kind is np.float32 else one / np.sqrt(size)
    yield freedom("x / sqrt y", lambda a, b: over(a, apply(ops.Sqrt(), apply(ops.Abs(), b))), (x, y),
                  [x / np.sqrt(size), x * inverse], 8.0)  # fmt: skip
    reciprocal, z = np.full_like(x, one / c), np.copysign(z, x)
    yield freedom("x / c + z", lambda a, b: apply(ops.Add(), over(a, c), b), (x, z),
                  [x / c + z, x * (one / c) + z, fused(x, reciprocal, z)], 4.0)  # fmt: skip
    yield freedom("x / y + z", lambda a, b, e: apply(ops.Add(), over(a, b), e), (x, y, z), [x / y + z])


def _vanishing(kind: Any) -> Iterator[Freedom]:
    """Denormals may be zeros of their sign: operands, and results that were tiny before they were rounded."""
    info = np.finfo(kind)
    tiny, least = info.smallest_normal, info.smallest_subnormal
    values = np.array([0.0, -0.0, least, -least, tiny / 2, -tiny / 2, tiny - least, tiny, -tiny, tiny + least, 2 * tiny, 1],
                      kind)  # fmt: skip
    x, y = (np.ascontiguousarray(a).ravel() for a in np.meshgrid(values, values))
    for op, f in (
        (ops.Add(), operator.add), (ops.Maximum(), np.maximum), (ops.Minimum(), np.minimum), (ops.Multiply(), operator.mul),
    ):  # fmt: skip
        results = [
            r
            for a, b in itertools.product(_read(x), _read(y))
            for r in _written(f(a, b), exact=isinstance(op, ops.Maximum | ops.Minimum))
        ]
        if isinstance(op, ops.Maximum | ops.Minimum):  # of two that are read as zeros either may be taken
            alike = (np.abs(x) < tiny) & (np.abs(y) < tiny)
            results += [np.where(alike, v, results[0]) for p in (x, y) for v in _read(p)]
        yield freedom(f"{op.name} of denormals", lambda a, b, op=op: apply(op, a, b), (x, y), results,
                      zeros=isinstance(op, ops.Maximum | ops.Minimum))  # fmt: skip
    pairs = np.asfortranarray(np.stack([x, y]))
    for reduce, f in ((ops.ReduceMax((0,)), np.maximum), (ops.ReduceMin((0,)), np.minimum)):
        alike = (np.abs(x) < tiny) & (np.abs(y) < tiny)
        results = [f(a, b) for a, b in itertools.product(_read(x), _read(y))]
        results += [np.where(alike, v, results[0]) for p in (x, y) for v in _read(p)]
        yield freedom(f"{reduce.name} of denormals", lambda a, op=reduce: apply(op, a), (pairs,), results, zeros=True)
    yield freedom(
        "denormals, negated", lambda a: apply(ops.Negate(), a), (values,), [-v for v in _read(values)], zeros=True
    )

    # quotients by two that are tiny: a tie, and a fused sum knows on which side of it they are
    for top, addend in ((2 * tiny - least, least - 2 * tiny), (tiny + least, tiny + least)):
        a, b = np.array([top], kind), np.array([addend], kind)
        yield freedom(
            "x / 2 + y, x / 2 tiny",
            lambda v, w: apply(ops.Add(), apply(ops.Divide(), v, _constant(v, kind(2))), w),
            (a, b),
            [r for v in _written(a / 2) for s in (v + b, fused(a, np.full_like(a, 0.5), b)) for r in _written(s)],
        )
    for sign in (1, -1):  # alone in its tensor
        whole, half = np.array([sign * (2 * tiny - least)], kind), np.array([0.5], kind)
        yield freedom("x y, just below the least normal number", lambda a, b: apply(ops.Multiply(), a, b), (whole, half),
                      _written(whole * half), zeros=True)  # fmt: skip
    if kind is np.float32:
        yield _gathered_below()


def _gathered_below() -> Freedom:
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

    last = next(c for c in np.abs(_draw(kind, 30, 4096)) if gathered(c) > info.smallest_normal * c)
    return freedom(
        "(x ... / 2 ** k) c, tiny on the way",
        lambda v: _times(apply(ops.Divide(), _times(v, *map(kind, factors)), _constant(v, kind(2) ** shift)), last),
        (x,),
        [x - x, np.full_like(x, info.smallest_normal * last), gathered(last)],
        4.0,
    )


def _read(x: Array) -> list[Array]:
    """As they are, and denormals as zeros of their sign."""
    small = np.abs(x) < np.finfo(x.dtype).smallest_normal
    return [x, np.where(small, np.copysign(x.dtype.type(0), x), x)]


def _written(x: Array, *, exact: bool = False) -> list[Array]:
    """As `_read`, but the least normal number may have come from below."""
    small = np.abs(x) <= np.finfo(x.dtype).smallest_normal
    return _read(x) if exact else [x, np.where(small, np.copysign(x.dtype.type(0), x), x)]


def _zeros(kind: Any) -> Iterator[Freedom]:
    """What a zero changes: a constant one nothing, others the sign of zero; and a sum of zeros starts from either."""
    minus, plus = np.full(3, -0.0, kind), np.full(3, 0.0, kind)
    yield freedom("-0 + 0, a constant", lambda a: apply(ops.Add(), a, _constant(a, kind(0))), (minus,), [minus, plus])
    yield freedom("0 + -0, a constant", lambda a: apply(ops.Add(), a, _constant(a, kind(-0.0))), (plus,), [plus])
    rows = np.zeros((2, 3), kind, order="F"), np.full((2, 3), -1.0, kind, order="F")
    dot = ops.DotGeneral((0,), (0,), (), ())
    square = np.zeros((3, 3), kind, order="F")
    for a, b in (rows, rows[::-1]):
        yield freedom("a contraction of -0", lambda v, w: apply(dot, v, w), (a, b), [square, -square])
    yield freedom("a sum of -0", lambda v: apply(ops.ReduceSum((0,)), v), (-rows[0],), [minus, plus])


def _sums(kind: Any) -> Iterator[Freedom]:
    """Sums of sums may be one sum, and a contraction may start from what is added to it."""
    large = kind(2.0 ** (np.finfo(kind).nmant + 3))  # its neighbours are 8 away
    rows = np.array([[large, -large], [3, 3]], kind, order="F")
    orders = {
        (v[0] + v[1]) + (v[2] + v[3]) for v in itertools.permutations(rows.ravel())
    } | {((v[0] + v[1]) + v[2]) + v[3] for v in itertools.permutations(rows.ravel())}  # fmt: skip
    results = [np.asarray(v, kind) for v in orders]

    def nested(x: Value) -> Value:
        return apply(ops.ReduceSum((0,)), apply(ops.ReduceSum((1,)), x))

    # the largest partial sums are off by some units of them
    yield freedom("a sum of sums", nested, (rows,), results, 2.0 ** (np.finfo(kind).nmant + 1))
    yield freedom("a sum of sums, negated", lambda v: apply(ops.ReduceSum((0,)), apply(ops.Negate(), apply(ops.ReduceSum((1,)), v))),
                  (rows,), [-r for r in results], 2.0 ** (np.finfo(kind).nmant + 1))  # fmt: skip
    far = np.full((2, 3), 2.0**40, kind, order="F")  # its sine is anywhere

    def waves(x: Value) -> Value:
        blurred = apply(ops.Sin(), apply(ops.Exp(), x))
        return apply(ops.ReduceSum((0,)), apply(ops.Negate(), apply(ops.ReduceSum((1,)), blurred)))

    yield freedom("a sum of sums of anything", waves, (np.log(far).astype(kind),),
                  [np.asarray(v, kind) for v in (-6, 0, 6)], 4.0)  # fmt: skip
    yield from _started(kind)
    a, b = np.array([large, 1], kind), np.array([1, 3], kind)
    yield freedom("a contraction and an addend", lambda v, w, z: apply(ops.Add(), apply(ops.DotGeneral((0,), (0,), (), ()), v, w), z),
                  (a, b, np.asarray(-large)), [np.asarray(v, kind) for v in (0, 3, 8)], 2.0 ** (np.finfo(kind).nmant + 1))  # fmt: skip


def _started(kind: Any) -> Iterator[Freedom]:
    """Two products and an addend meet in any order, fused or not."""
    dot = ops.DotGeneral((0,), (0,), (1,), (1,))

    def trace(x: Value, y: Value, z: Value) -> Value:
        return apply(ops.Add(), apply(dot, x, y), z)

    def ways(x: Array, y: Array, z: Array) -> list[Array]:
        orders = []
        for i, j in ((0, 1), (1, 0)):
            first, last = x[i] * y[i], x[j] * y[j]
            for both in (first + last, fused(x[i], y[i], last)):
                orders += [both + z]
            for start in (first + z, fused(x[i], y[i], z)):
                orders += [start + last, fused(x[j], y[j], start)]
        return orders

    p, q = (np.asfortranarray(np.stack([_draw(kind, seed), _draw(kind, seed + 1)])) for seed in (40, 42))
    z = -kind(0.75) * (p * q)[0]
    far = _draw(kind, 44) * kind(2.0 ** (np.finfo(kind).nmant + 3))
    for factor in (1, 4):
        yield freedom("two products and a large addend", trace, (factor * p, q, far), ways(factor * p, q, far), 3.0)
    steep = (kind(16) * p, p / kind(4)), (far, -far)
    yield freedom("one of two contractions and one of two addends",
                  lambda a, b, e, f, g: trace(_either(a, b), e, _either(f, g)), (*steep[0], q, *steep[1]),
                  [way for s, t in itertools.product(*steep) for way in ways(s, q, t)], 8.0)  # fmt: skip
    yield freedom("two products and an addend", trace, (p, q, z), ways(p, q, z), 256.0)
    line = np.array([0, -0.0, 1, -3, np.inf, -np.inf, np.nan], kind)
    a, b, z = (np.ascontiguousarray(v).ravel() for v in np.meshgrid(line, line, line))
    wild = np.asfortranarray(np.stack([a, b]))
    ones = np.ones_like(wild)
    yield freedom("two values and an addend, special ones", trace, (wild, ones, z), ways(wild, ones, z), 8.0)
    large = np.full((2, 3), np.finfo(kind).max, kind, order="F")
    yield freedom("a contraction that overflows, and an addend", trace, (large, np.ones_like(large), -large[0]),
                  [large[0] + large[0]])  # fmt: skip
    tiny = np.finfo(kind).smallest_normal * _draw(kind, 45) / 4
    small = np.asfortranarray(np.stack([tiny, tiny[::-1]]))
    ones = np.ones_like(small)
    yield freedom("two denormals and an addend", trace, (small, ones, tiny), [
        sum_ for s, t in itertools.product(_read(small), _read(tiny)) for way in ways(s, ones, t) for sum_ in _written(way)
    ], 2.0 ** (np.finfo(kind).nmant + 4))  # fmt: skip


def _exactly(kind: Any) -> Iterator[Freedom]:
    """Small integers give one value in every order."""
    x = np.arange(-6, 6, dtype=kind).reshape(3, 4, order="F")
    y = np.arange(12, dtype=kind)[::-1].reshape(3, 4, order="F") - 5
    for about, trace, result in (
        ("a sum of products", lambda a, b: apply(ops.ReduceSum((0,)), apply(ops.Multiply(), a, b)), (x * y).sum(0)),
        ("a sum of sums of products", lambda a, b: apply(ops.ReduceSum((0,)), apply(ops.ReduceSum((1,)), apply(ops.Multiply(), a, b))),
         (x * y).sum()),
        ("a contraction", lambda a, b: apply(ops.DotGeneral((0,), (0,), (), ()), a, b), x.T @ y),
        ("a contraction of sums", lambda a, b: apply(ops.DotGeneral((0,), (0,), (), ()), apply(ops.Add(), a, b), b), (x + y).T @ y),
        ("a product of many", lambda a, b: apply(ops.ReduceProd((0,)), apply(ops.Add(), a, b)), (x + y).prod(0)),
        ("a quotient of a sum", lambda a, b: apply(ops.Divide(), apply(ops.Add(), a, b), _constant(a, kind(4))), (x + y) / 4),
        ("a contraction and an addend", lambda a, b: apply(ops.Add(), apply(ops.DotGeneral((0,), (0,), (1,), (1,)), a, b),
         apply(ops.ReduceSum((0,)), b)), (x * y).sum(0) + y.sum(0)),
        ("a sum of products with constants", lambda a, b: apply(ops.ReduceSum((0,)), _times(a, kind(3), kind(5))), x.sum(0) * 15),
        ("a sum of products of products with constants",
         lambda a, b: apply(ops.ReduceSum((0,)), _times(_times(a, kind(3)), _times(b, kind(5)))), (x * y).sum(0) * 15),
        ("a sum of quotients", lambda a, b: apply(ops.ReduceSum((0,)), apply(ops.Divide(), _times(a, kind(3)), _constant(b, kind(4)))),
         x.sum(0) * 3 / 4),
        ("a product and a sum", lambda a, b: apply(ops.Add(), apply(ops.Multiply(), a, b), b), x * y + y),
    ):  # fmt: skip
        yield freedom(f"small integers, {about}", trace, (x, y), [np.asarray(result, kind)])


_FAMILIES = (_contractions, _gatherings, _quotients, _vanishing, _zeros, _sums, _exactly)


@cache
def freedoms() -> tuple[Freedom, ...]:
    """All of them, in a fixed order."""
    with np.errstate(all="ignore"):
        return tuple(f for family in _FAMILIES for kind in (np.float32, np.float64) for f in family(kind))


@cache
def _by_case() -> dict[str, Freedom]:
    return {f.case.fingerprint: f for f in freedoms()}


def taken(case: Case) -> str:
    """What is wrong with the enclosure of one of these programs; "" for nothing, and of others."""
    free = _by_case().get(case.fingerprint)
    return "" if free is None else broken(free)


__all__ = ["Freedom", "broken", "freedoms", "near", "taken"]
