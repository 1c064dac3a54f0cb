"""Rules of complex numbers: rectangles of two real enclosures; quotients by balls, whose errors are counted in the modulus.

What acts on the parts alone is the rule of the real op, twice. Products and contractions are made of real products and
sums. Quotients of finite numbers, and functions (`complex_functions`), are enclosed by a ball: the value at the centre in
the wide type, a radius, and an error in units of the *modulus*, since no algorithm keeps a small part accurate beside a
large one.

Infinities, NaN and overflow of intermediate results differ between C99's Annex G, naive formulas and real scalars that
stay real: wherever one may be, every result is possible.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial, reduce

import numpy as np

from oracle.enclosure import functions, indexing, moves, products, sums  # noqa: F401 - the parts need the real rows
from oracle.enclosure.arithmetic import add, multiply, negated
from oracle.enclosure.balls import Ball, ball, certainly_finite, enclosed
from oracle.enclosure.bounds import shared
from oracle.enclosure.formats import Array, quantum
from oracle.enclosure.freedoms import (
    approximations,
    conjugates,
    contraction_zeros,
    gathering,
    merging,
    reciprocals,
    restarts,
    zeros,
)
from oracle.enclosure.limits import infinite_or_nan, listed
from oracle.enclosure.moves import concatenated
from oracle.enclosure.origin import Origin
from oracle.enclosure.rectangles import (
    anything,
    apart,
    never_finite,
    nothing,
    promoted,
    reach,
    simple,
    size_class,
    spoiled,
    together,
)
from oracle.enclosure.rule import COMPLEX, ENCLOSE, Context
from oracle.enclosure.value import (
    Enclosure,
    Interval,
    Rectangle,
    each_part,
    exact,
    hull,
    point,
    rectangle,
    three_valued,
)
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op, free_axes

#: Units of rounding that a product is off relative to its modulus (Brent, Percival and Zimmermann 2007; FMA or not), a
#: quotient (docs/explanation/enclosures.md), and a product with the rounded reciprocal of a divisor.
PRODUCT = 5**0.5
QUOTIENT = 5 + 2**0.5
RECIPROCAL = QUOTIENT + PRODUCT


def by_parts(op: Op, c: Context, *operands: Enclosure) -> Enclosure:
    """The real rule on the real, and on the imaginary parts; operands that are not complex go to both."""
    rule, real = ENCLOSE[type(op)], c.real
    if not c.dtype.is_complex:  # a complex operand of which only the shape is read
        return rule(op, real, *(x.parts[0] for x in operands))
    made = []
    for k in (0, 1):
        part = rule(op, real, *(x.parts[k % len(x.parts)] for x in operands))
        # zeros that a compiler knows, it knows wherever they are moved to
        known = all(x.parts[k].const for x in operands if isinstance(x, Rectangle)) and not isinstance(op, ops.Scatter)
        made.append(part.known_as(const=part.const or known, repeated=part.repeated))
    return Rectangle(*made)


MOVES: tuple[type[Op], ...] = (
    *(
        ops.Transpose,
        ops.Reshape,
        ops.BroadcastInDim,
        ops.ExtractDiag,
        ops.EmbedDiag,
        ops.Tril,
        ops.Triu,
        ops.Slice,
        ops.Reverse,
        ops.Concatenate,
        ops.Pad,
    ),
    *(
        ops.PadToMatch,
        ops.Gather,
        ops.GatherDynamicSliceSizes,
        ops.DynamicSlice,
        ops.DynamicUpdateSlice,
        ops.DynamicTruncate,
        ops.ShapeOf,
    ),
)
for _op in (*MOVES, ops.Negate, ops.ReduceSum, ops.Scatter, ops.Select):
    COMPLEX[_op] = by_parts


@COMPLEX.row(ops.Constant)
def _constant(op: ops.Constant, c: Context) -> Enclosure:
    return point(np.asarray(op.value), const=True)


@COMPLEX.row(ops.ReduceMax, ops.ReduceMin)
def _reduce_extremum(op: Op, c: Context, x: Enclosure) -> Enclosure:
    """Complex numbers have no order; what passes the op's rule has no axes, and is a copy."""
    return x


@COMPLEX.row(ops.Conj)
def _conj(op: Op, c: Context, x: Enclosure) -> Enclosure:
    re, im = conj(x).parts
    return conjugates.of_conjugate(c, rectangle(re, im))


def conj(x: Enclosure) -> Enclosure:
    """The complex conjugate."""
    re, im = x.parts
    return rectangle(re, negated(im))


@COMPLEX.row(ops.Convert)
def _convert(op: ops.Convert, c: Context, x: Enclosure) -> Enclosure:
    """To reals the real part; from reals with a zero imaginary part; to Bool whether either is not zero."""
    rule = ENCLOSE[ops.Convert]
    parts = x.parts
    if op.to is DType.Bool:
        re, im = (rule(op, c, p) for p in parts)
        return three_valued(re.can_true | im.can_true, re.can_false & im.can_false)
    if not op.to.is_complex:
        return rule(op, c, parts[0])
    if isinstance(x, Interval):
        return promoted(c, x)
    return rectangle(*(rule(ops.Convert(op.to.real), c.real, p) for p in parts))


@COMPLEX.row(ops.Compare)
def _compare(op: ops.Compare, c: Context, x: Enclosure, y: Enclosure) -> Enclosure:
    """Equal where both parts are; there is no other comparison."""
    re, im = (ENCLOSE[ops.Compare](op, c, p, q) for p, q in zip(x.parts, y.parts, strict=True))
    return three_valued(re.can_true & im.can_true, re.can_false | im.can_false)


# --- sums and products ----------------------------------------------------------------------------------------------


@COMPLEX.row(ops.Add, ops.Subtract)
def _sum(op: ops.Add | ops.Subtract, c: Context, x: Enclosure, y: Enclosure) -> Enclosure:
    both = isinstance(x, Rectangle) and isinstance(y, Rectangle)
    # beside a number that is not known, zero parts are added as they are
    whole = promoted(c, x), promoted(c, y)
    known = [p.const and q.const for p, q in zip(*(z.parts for z in whole), strict=True)]
    u, v = (
        tuple(p.known_as(const=z.const or k, repeated=p.repeated) for p, k in zip(z.parts, known, strict=True))
        for z in whole
    )
    if isinstance(op, ops.Subtract):
        v = tuple(map(negated, v))
    if simple(*u, *v) and u[0].shape == v[0].shape:
        total = rectangle(*apart(add(c.real, together(*u), together(*v))))
    else:
        total = rectangle(*(add(c.real, p, q) for p, q in zip(u, v, strict=True)))
    # of two real numbers the imaginary part is a zero that a compiler knows, too
    re, im = (p.known_as(const=k, repeated=p.repeated) for p, k in zip(total.parts, known, strict=True))
    if both:
        return rectangle(re, im)
    # a real scalar may stay real: then zeros of the imaginary part keep their sign
    return rectangle(re, replace(im, neg_zero=im.neg_zero | ((im.lo <= 0) & (im.hi >= 0))))


def _first_negated(x: Interval) -> Interval:
    """Of two products along the first axis, the first negated."""

    def ends(lo: Array, hi: Array) -> tuple[Array, Array]:
        low, high = lo.copy(), hi.copy()
        low[0], high[0] = -hi[0], -lo[0]
        return low, low if lo is hi else high

    pos, neg = x.pos_zero.copy(), x.neg_zero.copy()
    pos[0], neg[0] = x.neg_zero[0], x.pos_zero[0]
    u = x.unrounded
    low, high = ends(u.lo, u.hi) if u else (x.lo, x.hi)
    unrounded = u and replace(u, lo=low, hi=high, real=None, reduced=False)
    return Interval(x.dtype, *ends(x.lo, x.hi), x.nan, pos, neg, Origin(x.const, x.repeated, unrounded))


@COMPLEX.row(ops.Multiply)
def _multiply(op: Op, c: Context, x: Enclosure, y: Enclosure) -> Enclosure:
    """(ac - bd) + (ad + bc) i in real arithmetic, each product rounded or fused."""
    real = c.real
    stays_real = isinstance(x, Interval) or isinstance(y, Interval)
    finite = certainly_finite(x) & certainly_finite(y) if stays_real else True
    (a, b), (p, q) = promoted(c, x).parts, promoted(c, y).parts
    if simple(a, b, p, q) and a.shape == p.shape and not (b.const and q.const):
        products = multiply(real, together(a, a, b, b), together(p, q, q, p))
        left, right = products.map(lambda m: m[:2]), products.map(lambda m: m[2:])
        re, im = apart(add(real, left, _first_negated(right)))
    else:
        second = negated(multiply(real, b, q))  # of two real numbers it is a zero, which a compiler leaves out
        re = add(real, multiply(real, a, p), second.known_as(const=b.const and q.const, repeated=second.repeated))
        im = add(real, multiply(real, a, q), multiply(real, b, p))
    # Annex G makes an infinity of two NaN
    lost = np.zeros((), bool) if stays_real else re.empty & im.empty
    wild = (re.nan & im.nan & ~lost) | ~np.asarray(finite)
    made = anything(rectangle(re, im), wild, signs=stays_real or gathering.either_zero(c))
    lost = lost | (wild & (never_finite(x) | never_finite(y)))
    made = nothing(infinite_or_nan(made, lost), spoiled(real.format, x, y))
    return _without_one(c, _without_one(c, made, x, y), y, x)


@COMPLEX.row(ops.DotGeneralWithConj)
def _dot_general_with_conj(op: ops.DotGeneralWithConj, c: Context, x: Enclosure, y: Enclosure) -> Enclosure:
    return _dot_general(op.plain, c, *op.conjugated(conj, x, y))


@COMPLEX.row(ops.DotGeneral)
def _dot_general(op: ops.DotGeneral, c: Context, x: Enclosure, y: Enclosure) -> Enclosure:
    """A contraction; one over a single term is also a product: a factor of one may be left out, and a sum may take its real products one by one."""
    made = _contraction(op, c, x, y)
    terms = math.prod(x.shape[a] for a in op.lhs_contracting_dims)
    if terms != 1 or not (merging.is_free(c) or gathering.may_leave_out_one(c)):
        return made
    x_free = free_axes(len(x.shape), op.lhs_contracting_dims, op.lhs_batch_dims)
    y_free = free_axes(len(y.shape), op.rhs_contracting_dims, op.rhs_batch_dims)
    batch = [x.shape[a] for a in op.lhs_batch_dims]
    x_order = (*x_free, *op.lhs_batch_dims, *op.lhs_contracting_dims)
    y_order = (*y_free, *op.rhs_batch_dims, *op.rhs_contracting_dims)
    x_shape = (*(x.shape[a] for a in x_free), *(1 for _ in y_free), *batch)
    y_shape = (*(1 for _ in x_free), *(y.shape[a] for a in y_free), *batch)
    left = x.map(lambda a: np.broadcast_to(a.transpose(x_order).reshape(x_shape), made.shape))
    right = y.map(lambda a: np.broadcast_to(a.transpose(y_order).reshape(y_shape), made.shape))
    product = _multiply(ops.Multiply(), c, left, right)
    made = rectangle(*(p.remembering(terms=q.terms) for p, q in zip(made.parts, product.parts, strict=True)))
    for factor, one in ((left, right), (right, left)):  # of finite numbers, too: the signs of their zeros stay
        made = gathering.without_one(c, made, promoted(c, factor), one)
    return made


def _contraction(op: ops.DotGeneral, c: Context, x: Enclosure, y: Enclosure) -> Rectangle:
    """Two real contractions, each over twice as many terms, in any order."""
    real = c.real
    (a, b), (p, q) = ((v.plain() for v in z.parts) for z in (x, y))
    rows, first, second = (
        concatenated([v.map(lambda m: m[..., np.newaxis]) for v in pair], -1)
        for pair in ((a, b), (p, negated(q)), (q, p))
    )
    r, s = len(x.shape), len(y.shape)
    wider = ops.DotGeneral(
        (*op.lhs_contracting_dims, r), (*op.rhs_contracting_dims, s), op.lhs_batch_dims, op.rhs_batch_dims
    )
    if rows.lo.size * first.lo.size <= sums.SORTED:  # both at once, by one more free axis
        both = replace(
            wider,
            rhs_contracting_dims=tuple(k + 1 for k in wider.rhs_contracting_dims),
            rhs_batch_dims=tuple(k + 1 for k in wider.rhs_batch_dims),
        )
        axis = r - len(op.lhs_contracting_dims) - len(op.lhs_batch_dims)
        pair = ENCLOSE[ops.DotGeneral](both, real, rows, together(first, second))
        order = (axis, *(k for k in range(len(pair.shape)) if k != axis))
        made = rectangle(*apart(pair.map(lambda m: m.transpose(order))))
    else:
        made = rectangle(*(ENCLOSE[ops.DotGeneral](wider, real, rows, columns) for columns in (first, second)))
    made = zeros.of_contraction(contraction_zeros.within(c), made)
    if made.number:
        return made
    re, im = made.parts
    lost = re.empty & im.empty
    # kernels scale their result by 1 + 0i, which makes NaN of a part beside an infinity
    made = each_part(lambda p: replace(p, nan=p.nan | ~certainly_finite(made)), made)
    made = infinite_or_nan(anything(made, re.nan & im.nan & ~lost), lost)
    sizes, holes = zip(*((reach(v), np.logical_or.reduce([p.empty for p in v.parts])) for v in (x, y)), strict=True)
    largest = [np.max(s, initial=0, where=np.isfinite(s)) for s in sizes]
    if not largest[0] * largest[1] < c.real.format.max:
        return made
    # a term that is NaN in both parts, as in `spoiled`
    certain = np.zeros(made.shape, bool)
    for k in (0, 1):
        masks = [exact(DType.Bool, np.isfinite(s) & (holes[i] if i == k else True)) for i, s in enumerate(sizes)]
        certain |= ENCLOSE[ops.DotGeneral](op, replace(c, dtype=DType.Bool), *masks).lo != 0
    return nothing(made, certain)


# --- quotients and products of many -----------------------------------------------------------------------------------


@COMPLEX.row(ops.Divide)
def _divide(op: Op, c: Context, x: Enclosure, y: Enclosure) -> Enclosure:
    """Off by QUOTIENT units, and by underflows on the way; or 0, where Smith's denominator may overflow.

    The textbook's, whose squared modulus overflows long before, has to be right as well.
    """
    f = c.real.format
    n, d = ball(f, promoted(c, x)), ball(f, promoted(c, y))
    lost = c.real.lost_below
    above, below, least = n.size, d.size, d.least
    ok = n.ok & d.ok & (least > 4 * f.min_normal) & (above < f.max / 1.5)
    divisor, least = np.where(ok, d.mid, 1), np.where(ok, least, 1)
    quotient = n.mid / divisor
    modulus = np.abs(quotient)
    rad = (n.rad + modulus * d.rad) / least * (1 + 8 * f.wide_unit)
    units = approximations.units(c, RECIPROCAL if reciprocals.taken(c, shared(y, x)) else QUOTIENT)
    size = modulus + rad
    rounded = f.gamma(units) * size + 8 * lost / least + above * f.least_subnormal
    rounded = rounded + np.where(below < f.max / 1.5, 0, size)
    result = _far_quotient(enclosed(c, 0.0, Ball(quotient, rad + rounded, ok)), x, y)
    lost_in = spoiled(f, x, y)
    if lost_in.any():  # Annex G: of a zero divisor comes an infinity
        result = nothing(result, lost_in & np.logical_or.reduce([(p.lo > 0) | (p.hi < 0) for p in y.parts]))
    return _without_one(c, result, x, y)


def _without_one(c: Context, made: Rectangle, x: Enclosure, one: Enclosure) -> Rectangle:
    return made if x.number and not one.const else gathering.without_one(c, made, promoted(c, x), one)


def _far_quotient(result: Rectangle, x: Enclosure, y: Enclosure) -> Rectangle:
    """By an infinity 0, of one or by 0 an infinity, or NaN; NaN of two infinities or two zeros."""
    if x.number and not np.count_nonzero(reach(y) == 0) and not np.count_nonzero(~np.isfinite(reach(y))):
        return result
    (x_infinite, x_finite, x_zero), (y_infinite, y_finite, y_zero) = map(size_class, (x, y))
    x_large, y_large = x_infinite | never_finite(x), y_infinite | never_finite(y)
    result = rectangle(*(listed(p, x_finite & y_large, np.zeros(p.shape), True) for p in result.parts))
    result = infinite_or_nan(result, (x_large & y_finite) | (x_finite & y_zero))
    return nothing(result, (x_large & y_large) | (x_zero & y_zero))


@COMPLEX.row(ops.ReduceProd)
def _reduce_prod(op: ops.ReduceProd, c: Context, x: Enclosure) -> Enclosure:
    """Any order: each product is off by at most PRODUCT units, and by what underflows, unless one may overflow.

    A fold begins with 1, whose product with an infinity has a NaN, and which changes signs of zero; a tree does without. Folds along
    one axis after the other begin with 1 each.
    """
    if not op.axes:
        return x
    f = c.real.format
    x = x.map(sums.flattened(op.axes, len(x.shape)))
    n = x.shape[-1]
    if n in (1, 2):
        first, *rest = (x.map(products.taken(i)) for i in range(n))
        one = point(np.ones(first.shape, c.dtype.numpy))
        times = partial(_multiply, op, c)
        once = partial(times, one)
        starts, others = [first, once(first)], restarts.of_product(c, rest, once)
        if len(op.axes) > 1:
            starts, others = [*starts, once(once(first))], [rest, [once(x) for x in rest]]
        tree, *folds = (reduce(times, factors, start) for start in starts for factors in others)
        if len(op.axes) > 1:
            folds += [once(x) for x in (tree, *folds)]
        # a product may still be fused with what follows
        return each_part(lambda p, *others: reduce(hull, others, p).from_(p.origin), tree, *folds)
    factors = ball(f, x.plain())
    ok = factors.ok.all(-1)
    mid, rad = np.ones(ok.shape, factors.mid.dtype), np.zeros(ok.shape, f.wide)
    for i in range(n):
        m, r = factors.mid[..., i], factors.rad[..., i]
        rad = (np.abs(mid) * r + rad * np.abs(m) + rad * r) * (1 + 8 * f.wide_unit)
        mid = mid * m
    gamma = f.gamma(PRODUCT * max(n - 1, 0))
    # a zero ends the product, but not what the others come to before they meet it; real products and sums reach no further than moduli
    large = np.maximum(np.log2(np.where(factors.size == 0, 1, factors.size)), 0).sum(-1)
    ok = ok & (large + np.log2(1 + gamma) < np.log2(f.max) - 2.0**-10)
    # Gaussian integers over a common power of two: every partial product is exact
    common = np.prod(np.minimum(quantum(factors.mid.real), quantum(factors.mid.imag)).clip(0, 1), -1)
    sizes = np.prod(np.maximum(np.abs(factors.mid.real) + np.abs(factors.mid.imag), 1), -1)
    exact = (factors.rad == 0).all(-1) & (sizes * f.unit < common) & (common > f.min_normal)
    # of each product two real products and their sum may be lost in each part, and what is lost is enlarged by the other factors
    tiny = 6 * c.real.lost_below * n * (1 + gamma) * np.exp2(large)
    error = Ball(mid, np.where(exact, 0, rad + gamma * (np.abs(mid) + rad) + tiny), ok)
    return enclosed(c, 0.0, error, limit=1.0, exact=exact)
