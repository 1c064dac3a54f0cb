"""Rules of sums and of DotGeneral: bounds that hold for every order of evaluation.

An addition is off by at most u of its result, which is a partial sum of at most the positive, or the negative terms: their
sum over the additions of any tree bounds the error (`any_order`), and is less than (n-1) u sum|x|. Where all terms are
multiples of one quantum and few enough, every order is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from oracle.enclosure import integers, limits, matrices, unchanged
from oracle.enclosure.arithmetic import add, multiply
from oracle.enclosure.bounds import (
    any_order,
    may_be_negative,
    may_be_positive,
    may_be_zero,
    nan_of_product,
    product_bounds,
)
from oracle.enclosure.formats import Array, Format, quantum
from oracle.enclosure.freedoms import (
    accumulators,
    addends,
    contraction,
    contraction_zeros,
    flush,
    gathering,
    merging,
    tf32,
    zeros,
)
from oracle.enclosure.origin import Terms
from oracle.enclosure.rule import ENCLOSE, Context
from oracle.enclosure.value import Interval, exact, hull, real_point
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import free_axes

#: Products of a contraction that are held at once; of more, bounds are `matrices`'.
CHUNK = 2**20
#: Terms that are sorted for a closer bound of their partial sums.
SORTED = 2**15


@dataclass(frozen=True, slots=True, eq=False)
class Addends:
    """What is summed over the last axis: wide bounds of each term, its NaN, whether it may be -0.

    `size_lo`, `size_hi` are magnitudes that rounding errors are counted from at either bound, `count` is how many roundings a
    term may go through; `quantum` divides every term (0: unknown); `underflow` is the absolute error that each term may bring
    with it; `merged`: each is itself a sum, whose terms may meet in any order; `products`: each may be rounded before it is
    added.
    """

    lo: Array
    hi: Array
    nan: Array
    neg_zero: Array
    size_lo: Array
    size_hi: Array
    count: int
    quantum: Array
    underflow: float
    merged: bool = False
    products: bool = False


def any_term(a: Array) -> Array:
    """Whether a flag is set anywhere along the last axis."""
    return np.asarray(a.any(-1))


def flattened(axes: tuple[int, ...], rank: int) -> Callable[[Array], Array]:
    """Moves `axes` to one last axis."""
    kept = free_axes(rank, axes)

    def move(a: Array) -> Array:
        moved = a.transpose((*kept, *axes))
        return moved.reshape((*moved.shape[: len(kept)], math.prod(a.shape[i] for i in axes)))

    return move


@ENCLOSE.row(ops.ReduceSum)
def _reduce_sum(op: ops.ReduceSum, c: Context, x: Interval) -> Interval:
    if not op.axes:
        return x
    return sum_of(c, x.map(flattened(op.axes, len(x.shape))))


@ENCLOSE.row(ops.ReduceSumSquares)
def _reduce_sum_squares(op: ops.ReduceSumSquares, c: Context, x: Interval) -> Interval:
    squares = multiply(c, x, x)
    return sum_of(c, squares.map(flattened(op.axes, len(x.shape)))) if op.axes else squares


def sum_of(c: Context, x: Interval) -> Interval:
    """The sum over the last axis, in any order."""
    if not c.dtype.is_float:
        return _integer_sum(c.dtype, x)
    n = x.shape[-1]
    if n == 1:
        return zeros.of_single(c, x.map(lambda a: a[..., 0]).known_as(const=False, repeated=x.repeated))
    result = total(c, _terms_of(c, x))
    if n == 2:
        once = zeros.of_single(c, add(c, x.map(lambda a: a[..., 0]), x.map(lambda a: a[..., 1])))
        result = once.remembering(once.unrounded, result.terms)
    result = result.remembering(result.unrounded, addends.of_products(c, x, result.terms))
    if t := merging.nested(c, x):
        merged = _terms_of(c, x)
        # known, or a product among the terms overflows if it is rounded, and not if it comes unrounded
        known = (np.isfinite(t.size_lo) & np.isfinite(t.size_hi)) | (np.isinf(t.lo) != np.isinf(t.hi))
        merged = replace(
            merged,
            lo=np.where(known, t.lo, merged.lo),
            hi=np.where(known, t.hi, merged.hi),
            size_lo=np.where(known, t.size_lo, merged.size_lo),
            size_hi=np.where(known, t.size_hi, merged.size_hi),
            count=n * t.count - 1,
            quantum=t.quantum.min(-1, initial=np.inf),
            merged=True,
            products=t.products,
        )
        alternative = total(c, merged)
        result = hull(result, alternative).remembering(terms=alternative.terms)
    if gathering.may_count(c) and x.repeated and (value := unchanged.along_last(x)) is not None:
        product = multiply(c, value, real_point(np.full(value.shape, n, c.dtype.numpy), const=True))
        result = hull(result, product).remembering(product.unrounded, result.terms)
    return result


def _terms_of(c: Context, x: Interval) -> Addends:
    """The elements as terms; products may come unrounded."""
    w = c.format.wide
    lo, hi, single = contraction.terms(c, x)
    one = lo is hi
    lo = lo.astype(w)
    hi = lo if one else hi.astype(w)
    size = np.abs(lo)
    q = _common(x.lo, None if single is None else np.logical_and.reduce(single, -1))
    n = x.shape[-1]
    return Addends(lo, hi, x.nan, x.neg_zero, size, size if one else np.abs(hi), n - 1, q, c.zero_below)


def _common(x: Array, known: Array | None) -> Array:
    """What divides all elements along the last axis; 0 where they are not known. None: all are."""
    if known is None:
        return np.asarray(np.minimum.reduce(quantum(x), -1, initial=np.inf))
    if not np.count_nonzero(known):
        return np.zeros(known.shape)
    return np.where(known, np.minimum.reduce(quantum(x), -1, initial=np.inf), 0.0)


def total(c: Context, t: Addends, *, contraction: bool = False) -> Interval:
    """The sum in any order, of the products of a contraction or of anything."""
    f = c.format
    n, one = t.lo.shape[-1], t.lo is t.hi
    # upper bounds with their signs changed, so that one call does for both
    bounds, sizes = (
        np.array((t.lo,) if one else (t.lo, -t.hi)),
        np.array((t.size_lo,) if one else (t.size_lo, t.size_hi)),
    )
    finite = np.isfinite(bounds)
    all_finite = np.count_nonzero(finite) == finite.size
    if not all_finite:
        bounds, sizes = np.where(finite, bounds, 0), np.where(np.isfinite(sizes), sizes, 0)
    # the wide sums themselves are off by n units of the wide type
    noise = 2 * n * f.wide_unit
    sums, sizes = np.add.reduce(bounds, -1), np.add.reduce(sizes, -1)
    partial = None if t.merged or t.lo.size > SORTED else _partial_sums(bounds)
    largest = np.abs(sums) + noise * sizes, sizes * (1 + noise)
    # t + error(t) grows with t: the error at a bound is counted from the terms at that bound
    errors = any_order(f, *largest, t.count - t.products, t.products, partial) + t.underflow * n
    if one:
        sums = np.array((sums[0], -sums[0]))
    size, error = np.maximum.reduce(sizes), np.maximum.reduce(errors)
    exact, real = None, sums - noise * sizes
    if np.count_nonzero(t.quantum):
        exact = size < t.quantum / f.unit
        if c.zero_below:
            exact = exact & ((t.quantum >= c.zero_below) | (size == 0))
        real = np.where(exact, sums, real)
    ends = real - errors if exact is None else np.where(exact, real, real - errors)
    if not t.merged and np.count_nonzero(errors > np.abs(sums)):
        ends = np.fmax(ends, _of_one_sign(f, bounds, t.underflow * n))
    least, greatest = f.least_at_or_above(ends)
    greatest = -greatest

    never = np.zeros(size.shape, bool)
    nan = np.logical_or.reduce(t.nan, -1) if np.count_nonzero(t.nan) else never
    if not all_finite or np.count_nonzero(size + error < f.max / 2) != size.size:
        under, over = (
            _overflows(c, t, sums[i], sizes[i], errors[i], exact, end) for i, end in ((0, -t.lo), (-1, t.hi))
        )
        least, greatest, nan = _overflown(f, t, least, greatest, nan, over, under)
    minus = zeros.of_terms(c, t.lo, t.hi, t.neg_zero)
    if t.underflow:  # a partial sum may be flushed, or a fused product round to a zero of its own sign
        vanishing = (least < 0) & (greatest >= 0)
        minus = minus | (vanishing if exact is None else vanishing & ~exact)
    result = c.build(least, greatest, nan, ~never, minus)
    low, high = real[0], -real[1]
    size_lo, size_hi = sizes[0], sizes[-1]
    if not all_finite:
        unknown = ~np.logical_and.reduce(finite, -1)
        size_lo, size_hi = np.where(unknown[0], np.inf, size_lo), np.where(unknown[-1], np.inf, size_hi)
        low, high = (
            np.where((a == -np.inf).any(-1), -np.inf, np.where((a == np.inf).any(-1), np.inf, end))
            for a, end in ((t.lo, low), (t.hi, high))
        )
    quantum_of = t.quantum if t.quantum.shape == size.shape else np.broadcast_to(t.quantum, size.shape)
    memory = Terms(low, high, size_lo, size_hi, quantum_of, t.count + 1, contraction=contraction, products=contraction)
    return result.remembering(terms=memory)


def _of_one_sign(f: Format, terms: Array, lost: float) -> Array:
    """At least the largest of the `terms`, rounded, where none is negative: rounding is monotone, whatever the order. -inf elsewhere.

    The last row of `terms` is of lower bounds of the terms with their signs changed; if there is one row, the terms are known.
    """
    both = terms if len(terms) == 2 else np.array((terms[0], -terms[0]))
    largest = np.maximum(f.greatest_at_or_below(both.max(-1, initial=0)) - lost, 0)
    return np.where((both >= 0).all(-1), largest, -np.inf)


def _overflows(
    c: Context, t: Addends, total: Array, size: Array, error: Array, exact: Array | None, terms: Array
) -> Array:
    """Whether a partial sum may overflow upward, of `terms` that come to `-total`, and their magnitudes to `size`.

    Rounding is monotone: it reaches no further than one of the positive terms alone. Nor does it leave the range where all but the
    largest of them come to less than half the spacing there: from the top binade on such a sum is rounded down each time.
    """
    f, n = c.format, terms.shape[-1]
    noise = 2 * n * f.wide_unit
    positive = (size * (1 + noise) - total) / 2
    reaches = positive + error >= f.overflow
    if exact is not None:
        reaches = np.where(exact, (size - total) / 2 >= f.overflow, reaches)
    if t.merged or not n or not np.count_nonzero(reaches):
        return np.asarray(reaches)
    largest = np.maximum(np.where(np.isfinite(terms), terms, 0).max(-1), 0)
    rest = (positive - largest + noise * size) * np.exp(np.minimum(f.wide((n + 1) * f.unit), 700)) + n * t.underflow
    half = f.ulp(np.asarray(f.max)) / 2 * (1 - 2.0**-5)  # short of what rounds up by way of another format
    return np.asarray(reaches & ~((rest < half) & (largest - f.max + rest < half)))


def _overflown(
    f: Format, t: Addends, least: Array, greatest: Array, nan: Array, over: Array, under: Array
) -> tuple[Array, Array, Array]:
    """Bounds of a sum, and where it may be NaN, if partial sums may overflow (`over`, `under`) or terms be infinite or NaN."""
    ends_at = ((t.hi, np.inf), (t.lo, np.inf), (t.lo, -np.inf), (t.hi, -np.inf))
    inf_may, inf_must, minus_may, minus_must = ((v == inf).any(-1) for v, inf in ends_at)
    nan = nan | (inf_may & (minus_may | under)) | (minus_may & over) | (over & under)
    least = np.where(minus_may | under, -np.inf, np.maximum(least, -f.max))
    greatest = np.where(inf_may | over, np.inf, np.minimum(greatest, f.max))
    # an infinity among the terms stays, whatever the rest
    least = np.where(inf_must, np.where(under, -np.inf, np.inf), least)
    greatest = np.where(minus_must, np.where(over, np.inf, -np.inf), greatest)
    least = np.where(inf_must & ~minus_must, np.inf, least)
    greatest = np.where(minus_must & ~inf_must, -np.inf, greatest)
    # certainly NaN: a term that is (empty bounds), or both infinities
    none = (t.lo > t.hi).any(-1) | (inf_must & minus_must)
    return np.where(none, np.inf, least), np.where(none, -np.inf, greatest), nan


def _partial_sums(terms: Array) -> Array:
    """At least the sum, over the additions of any tree but the last, of the magnitudes of their exact results.

    The j-th largest inner node of a tree has at most n - j + 1 of the n leaves (by induction over its two halves), and
    k terms add up to at most the k largest positive, or the k largest negative ones.
    """
    n = terms.shape[-1]
    if n < 3:
        return np.zeros(terms.shape[:-1], terms.dtype)
    # float64 is several times as fast as wider types; what it loses, and what underflows in it, is far below the slack
    for type_ in (np.float64, terms.dtype):
        signed = np.empty((2, *terms.shape), type_)
        signed[1] = np.sort(terms.astype(type_), -1)
        signed[0] = signed[1, ..., ::-1]
        np.negative(signed[1], out=signed[1])
        reach = np.maximum.reduce(np.maximum(signed, 0, out=signed).cumsum(-1)[..., 1:-1])
        partial = np.add.reduce(reach, -1) * (1 + 2.0**-20)
        if np.count_nonzero(np.isfinite(partial)) == partial.size:
            break
    return np.asarray(partial)


def _integer_sum(dtype: DType, x: Interval) -> Interval:
    if dtype is DType.Bool:
        return exact(dtype, any_term(x.lo), any_term(x.hi))
    if x.is_point:
        return integers.wrapped(dtype, x.lo.sum(-1))
    lo, hi = integers.big(x)
    return integers.wrapped(dtype, lo.sum(-1), hi.sum(-1))


# --- contraction ----------------------------------------------------------------------------------------------------


@ENCLOSE.row(ops.DotGeneral, ops.DotGeneralWithConj)
def _dot_general(op: ops.DotGeneral, c: Context, x: Interval, y: Interval) -> Interval:
    """Result axes: lhs free, rhs free, batch."""
    c = contraction_zeros.within(c)
    x_free = free_axes(len(x.shape), op.lhs_contracting_dims, op.lhs_batch_dims)
    y_free = free_axes(len(y.shape), op.rhs_contracting_dims, op.rhs_batch_dims)
    batch = [x.shape[a] for a in op.lhs_batch_dims]
    rows, columns = [x.shape[a] for a in x_free], [y.shape[a] for a in y_free]
    b, m, n = map(math.prod, (batch, rows, columns))
    k = math.prod(x.shape[a] for a in op.lhs_contracting_dims)
    x_order = (*x_free, *op.lhs_batch_dims, *op.lhs_contracting_dims)
    y_order = (*y_free, *op.rhs_batch_dims, *op.rhs_contracting_dims)
    sums = [v if merging.beside_ones(c, v, other) else None for v, other in ((x, y), (y, x))]
    if k != 1:  # a product keeps what its factors were rounded from; of a contraction, those beside ones
        x, y = (v if contraction.beside_ones(c, v, other) else v.plain() for v, other in ((x, y), (y, x)))
    x, y = tf32.read(c, x), tf32.read(c, y)

    def left_of(v: Interval) -> Interval:
        return v.map(lambda a: a.transpose(x_order).reshape(m, 1, b, k))

    def right_of(v: Interval) -> Interval:
        return v.map(lambda a: a.transpose(y_order).reshape(1, n, b, k))

    left, right = left_of(x), right_of(y)
    large = c.dtype.is_float and k > 1 and m * n * b * k > CHUNK
    made = matrices.dot(c, left, right) if large else _dot(c, left, right)
    for v, moved in zip(sums, (left_of, right_of), strict=True):
        if v is not None and k != 1:
            made = hull(made, sum_of(c, moved(v)).reshaped(made.shape)).from_(made.origin)
    shape = (*rows, *columns, *batch)
    return made if made.shape == shape else made.map(lambda a: a.reshape(shape))


def _dot(c: Context, x: Interval, y: Interval) -> Interval:
    if not c.dtype.is_float:
        return _integer_dot(c.dtype, x, y)
    own = _float_dot(c, x, y)
    if not c.dtype.is_narrow_float or x.shape[-1] == 1:
        return own
    return accumulators.of_contraction(c, own, lambda wider: _float_dot(wider, x, y))


def _float_dot(c: Context, x: Interval, y: Interval) -> Interval:
    """What comes of adding in the format of the result."""
    f = c.format
    first = c.dtype.is_narrow_float and not contraction.is_free(c)  # products are rounded before they are added
    k = x.shape[-1]
    if k == 1:  # a product, which may be contracted as any other
        return zeros.of_single(c, multiply(c, x.map(lambda a: a[..., 0]), y.map(lambda a: a[..., 0])))
    lo, hi = product_bounds(f.wide, x, y)
    nan = nan_of_product(x, y)
    lo, hi = contraction.without_ones(c, x, y, lo, hi)
    one = lo is hi
    if not (x.finite and y.finite):
        none = np.isnan(lo)
        lo, hi, one = np.where(none, np.inf, lo), np.where(none, -np.inf, hi), one and not none.any()
    size = np.abs(lo)
    size_hi = size if one else np.abs(hi)
    # products beyond the largest value overflow when rounded, and need not when fused
    if np.count_nonzero(size >= f.overflow) or (not one and np.count_nonzero(size_hi >= f.overflow)):
        if first:  # of the others the errors of the sum are the bound
            lo, hi = (np.where(np.abs(v) >= f.overflow, f.nearest(v), v) for v in (lo, hi))
        lo, hi = np.where(lo <= -f.overflow, -np.inf, lo), np.where(hi >= f.overflow, np.inf, hi)
        size, size_hi = np.abs(lo), np.abs(hi)
    near = size < f.min_normal if one else (lo < f.min_normal) & (hi > -f.min_normal)
    vanishing = near | may_be_zero(x) | may_be_zero(y)
    if np.count_nonzero(vanishing):  # a zero of the sign of the product
        vanishing = vanishing & ((may_be_positive(x) & may_be_negative(y)) | (may_be_negative(x) & may_be_positive(y)))
    q = _common(x.lo, None if x.is_point else np.logical_and.reduce(x.lo == x.hi, -1))
    if np.count_nonzero(q):
        q = q * _common(y.lo, None if y.is_point else np.logical_and.reduce(y.lo == y.hi, -1))
    # the product of two is NaN where one is unknown and the other no number but 0
    q = np.where(q >= c.lost_below, q, 0.0)
    if not one:
        q = np.where(np.logical_and.reduce(lo == hi, -1), q, 0.0)
    shape = lo.shape[:-1]
    q = q if q.shape == shape else np.broadcast_to(q, shape)
    t = Addends(lo, hi, nan, vanishing, size, size_hi, k, q, flush.lost_in_contraction(c.model, f), products=True)
    made = total(c, t, contraction=True)
    if first:
        return made
    # rounded first, or added unrounded to a number, such a product is an infinity, which stays one or becomes NaN
    huge = np.logical_or.reduce((lo >= 2 * f.overflow) | (hi <= -2 * f.overflow), -1)
    return limits.never_finite(made, huge) if np.count_nonzero(huge) and not tf32.is_free(c) else made


def _integer_dot(dtype: DType, x: Interval, y: Interval) -> Interval:
    if dtype is DType.Bool:
        return exact(dtype, matrices.product(x.lo, y.lo) != 0, matrices.product(x.hi, y.hi) != 0)
    known = np.logical_and.reduce(x.lo == x.hi, -1) & np.logical_and.reduce(y.lo == y.hi, -1)
    return integers.where_known(dtype, known, integers.modulo(dtype, np.asarray(matrices.product(x.lo, y.lo))))
