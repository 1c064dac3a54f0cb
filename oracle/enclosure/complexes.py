"""Rules of complex numbers: rectangles of two real enclosures; functions by balls, whose errors are counted in the modulus.

What acts on the parts alone is the rule of the real op, twice. Products and contractions are made of real products and
sums. Quotients and functions of finite numbers are enclosed by a ball: the value at the centre in the wide type, a radius
from the derivative, and a budget in ULPs of the *modulus*, since no algorithm keeps a small part accurate beside a large one.

Infinities, NaN and overflow of intermediate results differ between C99's Annex G, naive formulas and real scalars that
stay real: wherever one may be, every result is possible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from oracle.enclosure import functions, indexing, moves, sums  # noqa: F401 - the parts need the real rows
from oracle.enclosure.arithmetic import add, may_be_zero, multiply, shared
from oracle.enclosure.formats import Array, Format, quantum
from oracle.enclosure.moves import concatenated
from oracle.enclosure.rule import ENCLOSE, Context, Rule
from oracle.enclosure.value import Enclosure, Unrounded, build, exact, point, rectangle, three_valued
from tenferro_ref.dtype import DType
from tenferro_ref.ops import (
    Abs,
    Add,
    BroadcastInDim,
    Clamp,
    Compare,
    Concatenate,
    Conj,
    Constant,
    Convert,
    Cos,
    Divide,
    DotGeneral,
    DynamicSlice,
    DynamicTruncate,
    DynamicUpdateSlice,
    EmbedDiag,
    Exp,
    Expm1,
    ExtractDiag,
    Gather,
    GatherDynamicSliceSizes,
    Log,
    Log1p,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Op,
    Pad,
    PadToMatch,
    Pow,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reshape,
    Reverse,
    Rsqrt,
    Scatter,
    Select,
    ShapeOf,
    Sign,
    Sin,
    Slice,
    Sqrt,
    Tanh,
    Transpose,
    Tril,
    Triu,
)
from tenferro_ref.table import Table

COMPLEX: Table[Rule] = Table("enclosure of complex numbers")
COMPLEX.unsupported("complex numbers have no order", Maximum, Minimum, Clamp)


#: Units of rounding that a product is off relative to its modulus (Brent, Percival and Zimmermann 2007; FMA or not), a
#: quotient (docs/enclosures.md), and a product with the rounded reciprocal of a divisor.
PRODUCT = 5**0.5
QUOTIENT = 5 + 2**0.5
RECIPROCAL = QUOTIENT + PRODUCT


def real_context(c: Context) -> Context:
    return Context(c.model, c.policy, c.dtype.real)


def by_parts(op: Op, c: Context, *operands: Enclosure) -> Enclosure:
    """The real rule on the real, and on the imaginary parts; operands that are not complex go to both."""
    rule, real = ENCLOSE[type(op)], real_context(c)
    if not c.dtype.is_complex:  # a complex operand of which only the shape is read
        return rule(op, real, *(x.parts[0] for x in operands))
    return rectangle(*(rule(op, real, *(x.parts[k % len(x.parts)] for x in operands)) for k in (0, 1)))


def simple(*values: Enclosure) -> bool:
    """Nothing is remembered of where the values came from."""
    return all(v.unrounded is None and v.terms is None for v in values)


def together(*values: Enclosure) -> Enclosure:
    """Real enclosures of one shape, each `simple`, as one with a new first axis: one call of NumPy does what many would."""
    lo = np.array([v.lo for v in values])
    hi = lo if all(v.is_point for v in values) else np.array([v.hi for v in values])
    nan, pos, neg = (np.array(m) for m in zip(*((v.nan, v.pos_zero, v.neg_zero) for v in values), strict=True))
    const, repeated = all(v.const for v in values), all(v.repeated for v in values)
    return Enclosure(values[0].dtype, lo, hi, nan, pos, neg, const, repeated=repeated)


def apart(x: Enclosure) -> tuple[Enclosure, Enclosure]:
    """The two elements of the first axis."""
    return x.map(lambda a: a[0, ...]), x.map(lambda a: a[1, ...])


MOVES: tuple[type[Op], ...] = (
    *(Transpose, Reshape, BroadcastInDim, ExtractDiag, EmbedDiag, Tril, Triu, Slice, Reverse, Concatenate, Pad),
    *(PadToMatch, Gather, GatherDynamicSliceSizes, DynamicSlice, DynamicUpdateSlice, DynamicTruncate, ShapeOf),
)
for _op in (*MOVES, Negate, ReduceSum, Scatter, Select):
    COMPLEX[_op] = by_parts
COMPLEX[Constant] = ENCLOSE[Constant]


@COMPLEX.row(ReduceMax, ReduceMin)
def _reduce_extremum(op: Op, c: Context, x: Enclosure) -> Enclosure:
    """Complex numbers have no order; what passes the op's rule has no axes, and is a copy."""
    return x


@COMPLEX.row(Conj)
def _conj(op: Op, c: Context, x: Enclosure) -> Enclosure:
    re, im = x.parts
    return rectangle(re, _negated(c, im))


def _negated(c: Context, x: Enclosure) -> Enclosure:
    return ENCLOSE[Negate](Negate(), real_context(c), x)


@COMPLEX.row(Convert)
def _convert(op: Convert, c: Context, x: Enclosure) -> Enclosure:
    """To reals the real part; from reals with a zero imaginary part; to Bool whether either is not zero."""
    rule = ENCLOSE[Convert]
    parts = x.parts
    if op.to is DType.Bool:
        re, im = (rule(op, c, p) for p in parts)
        return three_valued(re.can_true | im.can_true, re.can_false & im.can_false)
    if not op.to.is_complex:
        return rule(op, c, parts[0])
    if x.imag is None:
        return promoted(c, x)
    return rectangle(*(rule(Convert(op.to.real), real_context(c), p) for p in parts))


def promoted(c: Context, x: Enclosure) -> Enclosure:
    """A real number as a complex one of the result's dtype."""
    if x.imag is not None:
        return x
    real = c.dtype.real
    zero = replace(point(np.zeros(x.shape, real.numpy), const=x.const), repeated=x.repeated)
    return rectangle(replace(ENCLOSE[Convert](Convert(real), real_context(c), x), const=x.const), zero)


@COMPLEX.row(Compare)
def _compare(op: Compare, c: Context, x: Enclosure, y: Enclosure) -> Enclosure:
    """Equal where both parts are; there is no other comparison."""
    re, im = (ENCLOSE[Compare](op, c, p, q) for p, q in zip(x.parts, y.parts, strict=True))
    return three_valued(re.can_true & im.can_true, re.can_false | im.can_false)


# --- sums and products ----------------------------------------------------------------------------------------------


def certainly_finite(x: Enclosure) -> Array:
    if x.number:
        return np.ones(x.shape, bool)
    return np.asarray(np.logical_and.reduce([(p.lo > -np.inf) & (p.hi < np.inf) & ~p.nan for p in x.parts]))


def anything(x: Enclosure, mask: Array, *, signs: bool = False) -> Enclosure:
    """Every value where the mask holds; with `signs`, zeros of either sign everywhere."""
    some = bool(mask.any())
    if not some and not signs:
        return x

    def opened(p: Enclosure) -> Enclosure:
        lo, hi = (np.where(mask, -np.inf, p.lo), np.where(mask, np.inf, p.hi)) if some else (p.lo, p.hi)
        zero = (lo <= 0) & (hi >= 0) if signs else mask
        return replace(
            p.plain(), lo=lo, hi=hi, nan=p.nan | mask, pos_zero=p.pos_zero | zero, neg_zero=p.neg_zero | zero
        )

    return rectangle(*map(opened, x.parts))


def nothing(x: Enclosure, mask: Array) -> Enclosure:
    """Certainly NaN, both parts, where the mask holds."""
    if not mask.any():
        return x

    def emptied(p: Enclosure) -> Enclosure:
        lo, hi = np.where(mask, np.inf, p.lo), np.where(mask, -np.inf, p.hi)
        return replace(p, lo=lo, hi=hi, nan=p.nan | mask, pos_zero=p.pos_zero & ~mask, neg_zero=p.neg_zero & ~mask)

    return rectangle(*map(emptied, x.parts))


def _reach(x: Enclosure) -> Array:
    """Largest magnitude of a part, but for NaN."""
    return np.asarray(np.maximum.reduce([np.where(p.empty, 0, np.maximum(-p.lo, p.hi)) for p in x.parts]))


def spoiled(f: Format, x: Enclosure, y: Enclosure) -> Array:
    """Where both parts of a product, or of a sum of four products in any form, are NaN.

    A NaN in either part of a factor goes into both parts of the product; Annex G makes a number of two NaN only where a
    factor or one of the four products is infinite. A real factor may stay real: then only its own NaN does that.
    """
    certain = np.zeros((), bool)
    if x.number and y.number:
        return certain
    for v, other in ((x, y), (y, x)):
        if v.imag is None or other.imag is not None:
            certain = certain | np.logical_or.reduce([p.empty for p in v.parts])
    if not certain.any():
        return certain
    return np.asarray(certain & (_reach(x) * _reach(y) < f.max) & np.isfinite(_reach(x)) & np.isfinite(_reach(y)))


@COMPLEX.row(Add)
def _add(op: Op, c: Context, x: Enclosure, y: Enclosure) -> Enclosure:
    both = x.imag is not None and y.imag is not None
    u, v = promoted(c, x).parts, promoted(c, y).parts
    if simple(*u, *v) and u[0].shape == v[0].shape:
        total = rectangle(*apart(add(real_context(c), together(*u), together(*v))))
    else:
        total = by_parts(op, c, promoted(c, x), promoted(c, y))
    if both:
        return total
    # a real scalar may stay real: then zeros of the imaginary part keep their sign
    re, im = total.parts
    return rectangle(re, replace(im, neg_zero=im.neg_zero | ((im.lo <= 0) & (im.hi >= 0))))


def _first_negated(x: Enclosure) -> Enclosure:
    """Of two products along the first axis, the first negated."""

    def ends(lo: Array, hi: Array) -> tuple[Array, Array]:
        low, high = lo.copy(), hi.copy()
        low[0], high[0] = -hi[0], -lo[0]
        return low, low if lo is hi else high

    pos, neg = x.pos_zero.copy(), x.neg_zero.copy()
    pos[0], neg[0] = x.neg_zero[0], x.pos_zero[0]
    u = x.unrounded
    unrounded = None if u is None else Unrounded(u.kind, *ends(u.lo, u.hi), u.scaled, None, u.roundings)
    return Enclosure(x.dtype, *ends(x.lo, x.hi), x.nan, pos, neg, x.const, unrounded, None, x.repeated)


@COMPLEX.row(Multiply)
def _multiply(op: Op, c: Context, x: Enclosure, y: Enclosure) -> Enclosure:
    """(ac - bd) + (ad + bc) i in real arithmetic, each product rounded or fused."""
    real = real_context(c)
    stays_real = x.imag is None or y.imag is None
    finite = certainly_finite(x) & certainly_finite(y)
    (a, b), (p, q) = promoted(c, x).parts, promoted(c, y).parts
    if simple(a, b, p, q) and a.shape == p.shape:
        products = multiply(real, together(a, a, b, b), together(p, q, q, p))
        left, right = products.map(lambda m: m[:2]), products.map(lambda m: m[2:])
        re, im = apart(add(real, left, _first_negated(right)))
    else:
        re = add(real, multiply(real, a, p), _negated(c, multiply(real, b, q)))
        im = add(real, multiply(real, a, q), multiply(real, b, p))
    # Annex G makes an infinity of two NaN
    wild = (re.nan & im.nan) | (~finite & stays_real)
    made = anything(rectangle(re, im), wild, signs=stays_real or c.model.rewrite)
    return nothing(made, spoiled(real.format, x, y))


@COMPLEX.row(DotGeneral)
def _dot_general(op: DotGeneral, c: Context, x: Enclosure, y: Enclosure) -> Enclosure:
    """Two real contractions, each over twice as many terms, in any order."""
    real = real_context(c)
    (a, b), (p, q) = ((v.plain() for v in z.parts) for z in (x, y))
    rows, first, second = (
        concatenated([v.map(lambda m: m[..., np.newaxis]) for v in pair], -1)
        for pair in ((a, b), (p, _negated(c, q)), (q, p))
    )
    r, s = len(x.shape), len(y.shape)
    wider = DotGeneral(
        (*op.lhs_contracting_dims, r), (*op.rhs_contracting_dims, s), op.lhs_batch_dims, op.rhs_batch_dims
    )
    if rows.lo.size * first.lo.size <= sums.SORTED:  # both at once, by one more free axis
        both = replace(
            wider,
            rhs_contracting_dims=tuple(k + 1 for k in wider.rhs_contracting_dims),
            rhs_batch_dims=tuple(k + 1 for k in wider.rhs_batch_dims),
        )
        axis = r - len(op.lhs_contracting_dims) - len(op.lhs_batch_dims)
        pair = ENCLOSE[DotGeneral](both, real, rows, together(first, second))
        order = (axis, *(k for k in range(len(pair.shape)) if k != axis))
        made = rectangle(*apart(pair.map(lambda m: m.transpose(order))))
    else:
        made = rectangle(*(ENCLOSE[DotGeneral](wider, real, rows, columns) for columns in (first, second)))
    if c.model.any_zero_sum:  # BLAS sums the halves apart, some kernels with the other sign
        re, im = made.parts
        either = may_be_zero(re)
        made = rectangle(replace(re, pos_zero=either, neg_zero=either), im)
    finite = certainly_finite(made)
    if finite.all():
        return made
    # BLAS scales its result by 1 + 0i, which makes NaN of an infinity
    made = anything(made, ~finite)
    sizes, holes = zip(*((_reach(v), np.logical_or.reduce([p.empty for p in v.parts])) for v in (x, y)), strict=True)
    largest = [np.max(s, initial=0, where=np.isfinite(s)) for s in sizes]
    if not largest[0] * largest[1] < real_context(c).format.max:
        return made
    # a term that is NaN in both parts, as in `spoiled`
    certain = np.zeros(made.shape, bool)
    for k in (0, 1):
        masks = [exact(DType.Bool, np.isfinite(s) & (holes[i] if i == k else True)) for i, s in enumerate(sizes)]
        certain |= ENCLOSE[DotGeneral](op, replace(c, dtype=DType.Bool), *masks).lo != 0
    return nothing(made, certain)


# --- balls ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Ball:
    """Wide complex numbers within `rad` of `mid`, where `ok`."""

    mid: Array
    rad: Array
    ok: Array

    @property
    def size(self) -> Array:
        """Largest modulus."""
        return np.asarray(np.abs(self.mid) + self.rad)

    @property
    def least(self) -> Array:
        """Smallest modulus."""
        return np.asarray(np.maximum(np.abs(self.mid) - self.rad, 0))


def _complex(re: Array, im: Array) -> Array:
    """Not `re + 1j * im`, which loses signs of zero."""
    shape = re.shape if re.shape == im.shape else np.broadcast_shapes(re.shape, im.shape)
    made: Array = np.empty(shape, np.result_type(re.dtype, np.complex64))
    made.real, made.imag = re, im
    return made


def ball(f: Format, x: Enclosure) -> Ball:
    """The ball around a rectangle; anything that may be infinite or NaN is not `ok`."""
    re, im = x.parts
    ok = certainly_finite(x)
    ends = np.where(ok, np.array((re.lo, re.hi, im.lo, im.hi)), 1.0).astype(f.wide)
    mid = _complex(ends[0] / 2 + ends[1] / 2, ends[2] / 2 + ends[3] / 2)
    rad = np.hypot(ends[1] - ends[0], ends[3] - ends[2]) / 2
    noise = 8 * f.wide_unit
    return Ball(mid, np.where(rad > 0, rad * (1 + noise) + noise * np.abs(mid), 0), ok)


def enclosed(
    c: Context, ulps: Array | float, *balls: Ball, limit: float = 4.0, exact: Array | None = None
) -> Enclosure:
    """The rectangle of results within `ulps` ULPs of the modulus of a number in one of the balls; anything elsewhere.

    `limit`: a modulus within this factor of the largest value may overflow on the way.
    """
    real = real_context(c)
    f = real.format
    tiny = 4 * (f.min_normal if c.model.flush else f.least_denormal)
    sizes = [b.size for b in balls]
    ok = reduce(np.logical_and, (b.ok & (size < f.max / limit) for b, size in zip(balls, sizes, strict=True)))
    errors = [
        b.rad + (ulps + f.slack) * f.ulp(np.where(ok, size, 1.0)) + tiny for b, size in zip(balls, sizes, strict=True)
    ]
    if exact is not None:
        errors = [np.where(exact, 0, e) for e in errors]
    centres = [np.where(ok, np.array((b.mid.real, b.mid.imag)), 0) for b in balls]
    low = reduce(np.minimum, (m - e for m, e in zip(centres, errors, strict=True)))
    high = reduce(np.maximum, (m + e for m, e in zip(centres, errors, strict=True)))
    low, high = f.widened(np.where(ok, low, -np.inf), np.where(ok, high, np.inf))
    every = np.ones(low.shape, bool)
    nan = np.broadcast_to(~ok, low.shape)
    return rectangle(*apart(build(c.model, real.dtype, low, high, nan, every, every)))


def _safe(f: Format, b: Ball) -> Array:
    """Its square, and that of its reciprocal, stay in the normal range."""
    return np.asarray((b.least > np.sqrt(f.min_normal / f.unit)) & (b.size < np.sqrt(f.max) / 2))


@COMPLEX.row(Divide)
def _divide(op: Op, c: Context, x: Enclosure, y: Enclosure) -> Enclosure:
    """Off by QUOTIENT units, and by underflows on the way; or 0, where Smith's denominator may overflow.

    The textbook's, whose squared modulus overflows long before, has to be right as well.
    """
    f = real_context(c).format
    n, d = ball(f, promoted(c, x)), ball(f, promoted(c, y))
    lost = f.min_normal if c.model.flush else f.least_denormal
    above, below, least = n.size, d.size, d.least
    ok = n.ok & d.ok & (least > 16 * f.min_normal / f.unit) & (above < f.max / 1.5)
    divisor, least = np.where(ok, d.mid, 1), np.where(ok, least, 1)
    quotient = n.mid / divisor
    modulus = np.abs(quotient)
    rad = (n.rad + modulus * d.rad) / least * (1 + 8 * f.wide_unit)
    units = RECIPROCAL if c.model.rewrite and shared(y, x) else QUOTIENT
    size = modulus + rad
    rounded = f.gamma(units) * size + 8 * lost / least + above * f.least_denormal
    rounded = rounded + np.where(below < f.max / 1.5, 0, size)
    result = enclosed(c, 0.0, Ball(quotient, rad + rounded, ok))
    lost_in = spoiled(f, x, y)
    if not lost_in.any():
        return result
    # Annex G: of a zero divisor comes an infinity
    return nothing(result, lost_in & np.logical_or.reduce([(p.lo > 0) | (p.hi < 0) for p in y.parts]))


@COMPLEX.row(ReduceProd)
def _reduce_prod(op: ReduceProd, c: Context, x: Enclosure) -> Enclosure:
    """Any order: each product is off by at most PRODUCT units, unless one may leave the normal range."""
    if not op.axes:
        return x
    f = real_context(c).format
    x = x.map(sums.flattened(op.axes, len(x.shape)))
    n = x.shape[-1]
    if n == 1:  # a product may still be fused with what follows
        return x.map(lambda a: a[..., 0])
    factors = ball(f, x.plain())
    ok = factors.ok.all(-1)
    mid, rad = np.ones(ok.shape, factors.mid.dtype), np.zeros(ok.shape, f.wide)
    for i in range(n):
        m, r = factors.mid[..., i], factors.rad[..., i]
        rad = (np.abs(mid) * r + rad * np.abs(m) + rad * r) * (1 + 8 * f.wide_unit)
        mid = mid * m
    zero = (factors.size == 0).any(-1)
    # a zero ends the product, but not what the others come to before they meet it
    large = np.maximum(np.log2(np.where(factors.size == 0, 1, factors.size)), 0).sum(-1)
    small = np.minimum(np.log2(np.where(zero[..., np.newaxis], 1, factors.least)), 0).sum(-1)
    ok = ok & (large < np.log2(f.max) - 4) & (small > np.log2(f.min_normal / f.unit))
    # Gaussian integers over a common power of two: every partial product is exact
    common = np.prod(np.minimum(quantum(factors.mid.real), quantum(factors.mid.imag)).clip(0, 1), -1)
    sizes = np.prod(np.maximum(np.abs(factors.mid.real) + np.abs(factors.mid.imag), 1), -1)
    exact = (factors.rad == 0).all(-1) & (sizes * f.unit < common) & (common > f.min_normal)
    tiny = (f.min_normal if c.model.flush else f.least_denormal) * n * np.exp2(np.minimum(large, 300.0))
    rounded = f.gamma(PRODUCT * max(n - 1, 0)) * (np.abs(mid) + rad)
    error = Ball(mid, np.where(exact, 0, rad + rounded + tiny), ok)
    return enclosed(c, 0.0, error, exact=exact)


# --- functions ------------------------------------------------------------------------------------------------------


@COMPLEX.row(Abs)
def _abs(op: Op, c: Context, x: Enclosure) -> Enclosure:
    f = c.format
    parts = [(np.where(p.lo * p.hi <= 0, 0, np.minimum(np.abs(p.lo), np.abs(p.hi))),
              np.maximum(np.abs(p.lo), np.abs(p.hi))) for p in x.parts]  # fmt: skip
    ok = certainly_finite(x)
    infinite = np.logical_or.reduce([(v.lo == v.hi) & np.isinf(v.lo) & ~v.nan for v in x.parts])
    infinite &= ~np.logical_or.reduce([v.nan for v in x.parts])
    lost = np.logical_or.reduce([v.empty for v in x.parts]) & np.isfinite(_reach(x))
    (a, b), (p, q) = (tuple(np.where(ok, v, 0).astype(f.wide) for v in part) for part in parts)
    low, high = np.hypot(a, p), np.hypot(b, q)
    point_like = (a == b) & (p == q)
    lo, hi = functions.budgeted(f, c.model.budget("Abs", c.dtype.complex), low, high, 0.0)
    zero = point_like & (low == 0)
    lo, hi = np.where(ok, np.where(zero, 0, lo), 0.0), np.where(ok, np.where(zero, 0, hi), np.inf)
    lo, hi = np.where(lost | infinite, np.inf, lo), np.where(lost, -np.inf, hi)
    positive = ~point_like | zero | ~ok | (lo <= 0)
    return build(c.model, c.dtype, lo.astype(float), hi.astype(float), ~ok & ~infinite, positive, ~(ok | ~ok))


@COMPLEX.row(Sign)
def _sign(op: Op, c: Context, x: Enclosure) -> Enclosure:
    """z / |z|, and 0 of 0; anything where |z| may overflow, which makes the quotient 0 in some hands."""
    f = real_context(c).format
    z = ball(f, x)
    zero = (z.size == 0) & z.ok
    inside = (z.least > f.min_normal / f.unit) & (z.size < f.max / 2)
    modulus = np.where(inside, np.abs(z.mid), 1)
    made = enclosed(c, c.budget("Sign"), Ball(z.mid / modulus, 2 * z.rad / modulus, z.ok & inside))
    made = nothing(made, _undefined(x))
    if not zero.any():
        return made

    def still(p: Enclosure) -> Enclosure:
        return replace(p, lo=np.where(zero, 0.0, p.lo), hi=np.where(zero, 0.0, p.hi), nan=p.nan & ~zero)

    return rectangle(*map(still, made.parts))


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
        real = real_context(c).format
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


def overflown(f: Format, x: Enclosure, z: Ball, direction: Array, log: Array, ulps: float) -> Enclosure:
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

    def infinite(p: Enclosure, side: Array) -> Enclosure:
        limit = np.copysign(np.inf, side).astype(float)
        nan, pos, neg = (np.asarray(v & ~over) for v in (p.nan, p.pos_zero, p.neg_zero))
        return Enclosure(p.dtype, np.where(over, limit, p.lo), np.where(over, limit, p.hi), nan, pos, neg)

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
    return _complex(np.cos(z.imag), np.sin(z.imag)), z.real


_entire(Exp, np.exp, lambda z: np.exp(z.mid.real) * np.expm1(z.rad), _turned, 0)
_entire(Expm1, np.expm1, lambda z: np.exp(z.mid.real) * np.expm1(z.rad), _turned, 0)


def _far_sine(z: Array) -> tuple[Array, Array]:
    return _complex(np.sin(z.real), np.cos(z.real) * np.sign(z.imag)), np.abs(z.imag) - np.log(2.0)


def _far_cosine(z: Array) -> tuple[Array, Array]:
    return _complex(np.cos(z.real), np.sin(z.real) * -np.sign(z.imag)), np.abs(z.imag) - np.log(2.0)


_entire(Sin, np.sin, lambda z: np.cosh(np.abs(z.mid.imag) + z.rad) * z.rad, _far_sine, 1)
_entire(Cos, np.cos, lambda z: np.cosh(np.abs(z.mid.imag) + z.rad) * z.rad, _far_cosine, 1)


@COMPLEX.row(Tanh)
def _tanh(op: Op, c: Context, x: Enclosure) -> Enclosure:
    z = ball(real_context(c).format, x)
    a = np.clip(z.mid.real, -40, 40)  # |cosh| grows with |a|
    least = np.abs(np.cosh(_complex(a, z.mid.imag))) - z.rad * np.cosh(np.abs(a) + z.rad)
    ok = z.ok & ((z.rad == 0) | ((z.rad < 1) & (least > 0)))
    made = enclosed(c, c.budget("Tanh"), Ball(np.tanh(z.mid), _none(z, z.rad / np.where(ok, least, 1) ** 2), ok))
    # far from the imaginary axis a formula may have +-1 whatever the imaginary part is
    return nothing(made, _undefined(x) & x.parts[0].empty)


def sides(z: Ball) -> tuple[Ball, ...]:
    """A ball that touches the cut along the negative real axis as two, one on each side of it.

    Which side a zero imaginary part is on is its sign's to say, which not every implementation asks: both are admitted.
    """
    touches = (z.mid.real - z.rad <= 0) & (np.abs(z.mid.imag) <= z.rad)
    if not touches.any():
        return (z,)
    up, down = (
        _complex(z.mid.real, np.where(touches, np.copysign(np.maximum(side * z.mid.imag, 0), side), z.mid.imag))
        for side in (1, -1)
    )
    rad = np.where(touches, 2 * z.rad, z.rad)
    return Ball(up, rad, z.ok), Ball(down, rad, z.ok)


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
        z = ball(real_context(c).format, x)
        return nothing(enclosed(c, c.budget(op.name), *map(f, sides(z))), _undefined(x))


_cut(Log, logarithm)
_cut(Sqrt, _root)
_cut(Rsqrt, _inverse_root)


@COMPLEX.row(Log1p)
def _log1p(op: Op, c: Context, x: Enclosure) -> Enclosure:
    """ln(1 + z), by ln |1 + z|^2 / 2 = log1p(x (2 + x) + y^2) / 2 near 0."""
    z = ball(real_context(c).format, x)
    balls = []
    for w in sides(replace(z, mid=_complex(1 + z.mid.real, z.mid.imag))):
        found = logarithm(w)
        re, im = z.mid.real, z.mid.imag
        near = (np.abs(re) < 0.5) & (np.abs(im) < 0.5)
        accurate = np.log1p(np.where(near, re * (2 + re) + im * im, 0)) / 2
        balls.append(replace(found, mid=_complex(np.where(near, accurate, found.mid.real), found.mid.imag)))
    return nothing(enclosed(c, c.budget("Log1p"), *balls), _undefined(x))


@COMPLEX.row(Pow)
def _pow(op: Op, c: Context, x: Enclosure, y: Enclosure) -> Enclosure:
    """exp(y log x): an error of the logarithm grows with y; so do those of repeated products.

    Two factors have to be in range, |x|^Re y and exp(-Im y arg x), and the reciprocal of a large power, of which a
    negative one is made; what underflows is off by as much, times the other factor. Anything elsewhere, and where
    nothing would be known of the angle.
    """
    f = real_context(c).format
    x, y = promoted(c, x), promoted(c, y)
    base, exponent = ball(f, x), ball(f, y)
    lost = f.min_normal if c.model.flush else f.least_denormal
    balls, growth = [], np.zeros(())
    for z in sides(base):
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
    return rectangle(*(replace(p, lo=np.where(zero, 0.0, p.lo), hi=np.where(zero, 0.0, p.hi), nan=p.nan & ~zero)
                       for p in result.parts))  # fmt: skip
