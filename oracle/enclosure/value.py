"""`Interval` and `Rectangle`: the values that the enclosure executor computes with, and how they are built, moved and merged.

An enclosure says for each element of a tensor which results a correct implementation may produce. Of real numbers, integers
and Bool it is an `Interval`, of complex numbers a `Rectangle` of two. The rules of real ops see intervals only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, fields
from math import prod
from typing import Any, TypeAlias, overload

import numpy as np

from oracle.enclosure.formats import Array
from oracle.enclosure.origin import NOWHERE, Converted, Multiple, Origin, Terms, Unrounded, record
from tenferro_ref.dtype import DType


def bound_type(dtype: DType) -> type[np.integer[Any]]:
    """What the bounds of integers and Bool (0 and 1) are kept in."""
    return np.uint64 if dtype is DType.U64 else np.int64


#: Width over magnitude below which an enclosure is tight.
TIGHT = 1e-3


# --- the value ------------------------------------------------------------------------------------------------------


@record
class Interval:
    """For each element of real numbers, integers or Bool, the set of results that a correct implementation may produce.

    Attributes
    ----------
    lo, hi
        Closed interval of the results that are not NaN: float64 for floats (finite bounds are values of `dtype`), int64 for
        integers and Bool (uint64 for U64). Empty, (+inf, -inf), where the result is certainly NaN. One array for both where all are known.
    nan
        NaN is possible.
    pos_zero, neg_zero
        +0 and -0 are possible (floats only).
    origin
        How the value came about.
    gap
        Ends of an open interval inside `[lo, hi]` whose numbers are not possible, (+inf, -inf) for none: where a function
        has one of two values. It is moved with the elements; every rule that computes forgets it.
    """

    dtype: DType
    lo: Array
    hi: Array
    nan: Array
    pos_zero: Array
    neg_zero: Array
    origin: Origin = NOWHERE
    gap: tuple[Array, Array] | None = None
    _finite: bool | None = field(default=None, init=False, repr=False)
    _number: bool | None = field(default=None, init=False, repr=False)

    @property
    def parts(self) -> tuple[Interval, ...]:
        """Real and imaginary part of complex numbers; itself alone for others."""
        return (self,)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lo.shape

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.lo.size

    @property
    def const(self) -> bool:
        return self.origin.const

    @property
    def repeated(self) -> bool:
        return self.origin.repeated

    @property
    def unrounded(self) -> Unrounded | None:
        return self.origin.unrounded

    @property
    def terms(self) -> Terms | None:
        return self.origin.terms

    @property
    def is_point(self) -> bool:
        """Known to be single values (cheap, and False for some that are)."""
        return self.lo is self.hi

    @property
    def empty(self) -> Array:
        """Certainly NaN."""
        return np.asarray(self.lo > self.hi)

    @property
    def finite(self) -> bool:
        """Every element has a result, and no infinite one (cheap, and False for some of which this is true)."""
        if self._finite is None:  # once: rules ask again and again
            known = np.count_nonzero(np.isfinite(self.lo)) == self.lo.size
            if known and not self.is_point:
                known = np.count_nonzero(np.isfinite(self.hi)) == self.hi.size
            object.__setattr__(self, "_finite", known)
        return bool(self._finite)

    @property
    def number(self) -> bool:
        """Every element is a finite number for certain (as cheap as `finite`)."""
        if self._number is None:
            object.__setattr__(self, "_number", self.finite and not np.count_nonzero(self.nan))
        return bool(self._number)

    @property
    def can_true(self) -> Array:
        return np.asarray(self.hi != 0)

    @property
    def can_false(self) -> Array:
        return np.asarray(self.lo == 0)

    @property
    def decided(self) -> Array:
        """Pinned down: not NaN and bounded, or on two sides of a gap, each one value or bounded; or a list of at most two values
        and NaN; one value for integers and Bool."""
        if not self.dtype.is_float:
            return np.asarray(self.lo == self.hi)
        one = self.lo == self.hi
        bounded = np.isfinite(self.lo) & np.isfinite(self.hi)
        if self.gap is not None:
            below, above = self.gap
            one = one | ((self.lo == below) & (self.hi == above))
            bounded |= (self.lo == below) & np.isfinite(above) & np.isfinite(self.hi)
            bounded |= (self.hi == above) & np.isfinite(below) & np.isfinite(self.lo)
        return np.asarray(np.where(self.nan, self.empty | one, bounded | one))

    @property
    def tight(self) -> Array:
        """Certainly NaN; or not NaN, and one value or narrower than `TIGHT` of the magnitude."""
        one = self.lo == self.hi
        if not self.dtype.is_float:
            return np.asarray(one)
        with np.errstate(invalid="ignore", over="ignore"):
            narrow = self.hi / 2 - self.lo / 2 <= TIGHT / 2 * np.maximum(np.abs(self.lo), np.abs(self.hi))
        return np.where(self.nan, self.empty, one | (narrow & np.isfinite(self.lo) & np.isfinite(self.hi)))

    def contains(self, x: Array) -> Array:
        """Which elements of `x`, an array of this dtype and shape, are in the set."""
        if not self.dtype.is_float:
            whole = x.astype(bound_type(self.dtype))
            return np.asarray((self.lo <= whole) & (whole <= self.hi))
        with np.errstate(invalid="ignore"):  # of a signaling NaN
            v = x.astype(np.float64)
        inside = (self.lo <= v) & (v <= self.hi)
        if self.gap is not None:
            inside &= (v <= self.gap[0]) | (v >= self.gap[1])
        signed = np.where(np.signbit(v), self.neg_zero, self.pos_zero)
        return np.where(np.isnan(v), self.nan, inside & ((v != 0) | signed))

    def map(self, f: Callable[[Array], Array]) -> Interval:
        """The elements moved by `f`, which must treat all arrays alike."""
        lo = f(self.lo)
        hi = lo if self.is_point else f(self.hi)
        nan = f(self.nan)
        # one array where all flags are down
        pos = nan if self.pos_zero is self.nan else f(self.pos_zero)
        neg = pos if self.neg_zero is self.pos_zero else f(self.neg_zero)
        origin = self.origin if self.origin is NOWHERE else self.origin.map(f)
        gap = None if self.gap is None else (f(self.gap[0]), f(self.gap[1]))
        moved = Interval(self.dtype, lo, hi, nan, pos, neg, origin, gap)
        if self._finite:  # of what is moved, and of zeros between, that stays true
            object.__setattr__(moved, "_finite", True)
            object.__setattr__(moved, "_number", self._number or None)
        return moved

    def from_(self, origin: Origin) -> Interval:
        """The same sets with another origin."""
        return Interval(self.dtype, self.lo, self.hi, self.nan, self.pos_zero, self.neg_zero, origin, self.gap)

    def plain(self) -> Interval:
        """Without the arrays of its origin."""
        return self.remembering() if self.origin.moves else self

    def remembering(self, unrounded: Unrounded | None = None, terms: Terms | None = None) -> Interval:
        """With these arrays as its origin, and no others."""
        return self.from_(Origin(self.const, self.repeated, unrounded, terms))

    def known_as(self, *, const: bool, repeated: bool) -> Interval:
        """With these facts about its origin."""
        own = self.origin
        if const == own.const and repeated == own.repeated:
            return self
        return self.from_(own.known(const=const, repeated=repeated))

    def reshaped(self, shape: tuple[int, ...]) -> Interval:
        return self if self.shape == shape else self.map(lambda a: spread(a, shape))


@record
class Rectangle:
    """Complex numbers whose parts are anywhere in two intervals of one dtype and shape; built by `rectangle`."""

    real: Interval
    imag: Interval

    @property
    def dtype(self) -> DType:
        return self.real.dtype.complex

    @property
    def parts(self) -> tuple[Interval, ...]:
        return self.real, self.imag

    @property
    def shape(self) -> tuple[int, ...]:
        return self.real.shape

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.real.size

    @property
    def const(self) -> bool:
        return self.real.const and self.imag.const

    @property
    def repeated(self) -> bool:
        return self.real.repeated and self.imag.repeated

    @property
    def number(self) -> bool:
        """Every element is a finite number for certain, in both parts."""
        return self.real.number and self.imag.number

    @property
    def decided(self) -> Array:
        """Both parts are."""
        return np.asarray(self.real.decided & self.imag.decided)

    @property
    def tight(self) -> Array:
        """Both parts are, or are narrower than `TIGHT` of the modulus."""
        parts = self.parts
        with np.errstate(invalid="ignore", over="ignore"):
            widths, sizes = zip(
                *((p.hi / 2 - p.lo / 2, np.maximum(np.abs(p.lo), np.abs(p.hi))) for p in parts), strict=True
            )
            narrow = np.maximum(*widths) <= TIGHT / 2 * np.maximum(*sizes)
        bounded = np.logical_and.reduce([~p.nan & np.isfinite(p.lo) & np.isfinite(p.hi) for p in parts])
        return np.asarray((narrow & bounded) | np.logical_and.reduce([p.tight for p in parts]))

    def contains(self, x: Array) -> Array:
        """Which elements of `x`, an array of this dtype and shape, are in the set."""
        return np.asarray(self.real.contains(x.real) & self.imag.contains(x.imag))

    def map(self, f: Callable[[Array], Array]) -> Rectangle:
        """The elements moved by `f`, which must treat all arrays alike."""
        return Rectangle(self.real.map(f), self.imag.map(f))

    def plain(self) -> Rectangle:
        """Without the arrays of its parts' origins."""
        return Rectangle(self.real.plain(), self.imag.plain())

    def known_as(self, *, const: bool, repeated: bool) -> Rectangle:
        """With these facts about its origin, and what is known of one part alone."""
        return Rectangle(
            *(p.known_as(const=const or p.const, repeated=repeated or (p.repeated and not const)) for p in self.parts)
        )


def _known_part(x: Interval, const: bool, repeated: bool) -> Interval:
    """A part with the facts about the whole; a zero that a compiler knows, it knows whatever the other part is."""
    zero = x.const and not const and not (np.count_nonzero(x.lo) or np.count_nonzero(x.hi))
    return x.known_as(const=const or zero, repeated=repeated)


Enclosure: TypeAlias = Interval | Rectangle


def rectangle(real: Interval, imag: Interval) -> Rectangle:
    """Complex numbers from their parts; what is known of both producers is kept."""
    a, b = real.origin, imag.origin
    if a is not b and (a.const != b.const or a.repeated != b.repeated):
        const, repeated = a.const and b.const, a.repeated and b.repeated
        real, imag = (_known_part(p, const, repeated) for p in (real, imag))
    return Rectangle(real, imag)


@overload
def each_part(f: Callable[..., Interval], first: Rectangle, /, *values: Rectangle) -> Rectangle: ...
@overload
def each_part(f: Callable[..., Interval], /, *values: Enclosure) -> Enclosure: ...
def each_part(f: Callable[..., Interval], /, *values: Enclosure) -> Enclosure:
    """`f` of real numbers; of complex ones, of the real and of the imaginary parts."""
    parts = [f(*p) for p in zip(*(v.parts for v in values), strict=True)]
    return rectangle(*parts) if len(parts) == 2 else parts[0]


def spread(a: Array, shape: tuple[int, ...]) -> Array:
    """An array broadcast to a shape: a small one as a copy, which is several times as fast as a view."""
    if prod(shape) > 4096:
        return np.broadcast_to(a, shape)
    copy = np.empty(shape, a.dtype)
    copy[...] = a
    return copy


# --- several values as one ------------------------------------------------------------------------------------------


class Mixed(Exception):
    """Values whose origins differ in kind have none together."""


def merged(f: Callable[[Sequence[Array]], Array], values: Sequence[Interval]) -> Interval:
    """Intervals of one dtype as one of what `f` makes of their arrays, without an origin."""
    lo = f([v.lo for v in values])
    hi = lo if all(v.is_point for v in values) else f([v.hi for v in values])
    nan, pos, neg = (f(flags) for flags in zip(*((v.nan, v.pos_zero, v.neg_zero) for v in values), strict=True))
    gap = None
    if any(v.gap is not None for v in values):
        gaps = [v.gap or (np.full(v.shape, np.inf), np.full(v.shape, -np.inf)) for v in values]
        below, above = zip(*gaps, strict=True)
        gap = f(below), f(above)
    return Interval(values[0].dtype, lo, hi, nan, pos, neg, gap=gap)


def merged_with_origin(f: Callable[[Sequence[Array]], Array], values: Sequence[Interval]) -> Interval:
    """As `merged`, of values of one shape, with the origins merged likewise.

    Raises
    ------
    Mixed
        The origins differ in more than their arrays.
    """
    return merged(f, values).from_(_merged_records(f, [v.origin for v in values]))


def _merged_records(f: Callable[[Sequence[Array]], Array], records: Sequence[Any]) -> Any:
    first = records[0]
    if all(isinstance(x, np.ndarray | np.generic) for x in records):  # a reduction to rank 0 may give a scalar
        return f(records)
    if any(type(x) is not type(first) for x in records):
        raise Mixed
    if isinstance(first, tuple):
        return tuple(_merged_records(f, each) for each in zip(*records, strict=True))
    if isinstance(first, Interval):
        return merged_with_origin(f, records)
    if isinstance(first, Origin | Unrounded | Terms | Multiple | Converted):
        return type(first)(*(_merged_records(f, [getattr(x, k.name) for x in records]) for k in fields(first)))
    if any(x != first for x in records):
        raise Mixed
    return first


def joined(enclosures: Iterable[Enclosure]) -> Enclosure:
    """The elements of enclosures of one dtype in a line, without their origins."""
    return each_part(lambda *p: merged(lambda arrays: np.concatenate([a.ravel() for a in arrays]), p), *enclosures)


# --- building -------------------------------------------------------------------------------------------------------


def point(array: Array, *, const: bool = False) -> Enclosure:
    """The enclosure of known values."""
    if array.dtype.kind == "c":
        return Rectangle(real_point(array.real, const=const), real_point(array.imag, const=const))
    return real_point(array, const=const)


def real_point(array: Array, *, const: bool = False) -> Interval:
    """The enclosure of known values that are not complex."""
    dtype = DType.of(array)
    if not dtype.is_float:
        return exact(dtype, array.astype(bound_type(dtype))).known_as(const=const, repeated=False)
    v = array.astype(np.float64)
    nan = np.isnan(v)
    some = bool(np.count_nonzero(nan))
    pos = neg = np.zeros(v.shape, bool) if some else nan
    if np.count_nonzero(v) != v.size:
        zero, minus = v == 0, np.signbit(v)
        pos, neg = zero & ~minus, zero & minus
    lo, hi = (np.where(nan, np.inf, v), np.where(nan, -np.inf, v)) if some else (v, v)
    return Interval(dtype, lo, hi, nan, pos, neg, Origin(const))


def exact(dtype: DType, lo: Array, hi: Array | None = None) -> Interval:
    """An enclosure of integers or Bool; one array for known values."""
    kind = bound_type(dtype)
    lo = np.asarray(lo, kind)
    never = np.zeros(lo.shape, bool)
    return Interval(dtype, lo, lo if hi is None else np.asarray(hi, kind), never, never, never)


def three_valued(can_true: Array, can_false: Array) -> Interval:
    """A Bool."""
    return exact(DType.Bool, ~np.asarray(can_false), np.asarray(can_true))


def everything(dtype: DType, shape: tuple[int, ...]) -> Interval:
    """Any integer of the dtype."""
    lo, hi = dtype.limits
    return exact(dtype, np.full(shape, lo, bound_type(dtype)), np.full(shape, hi, bound_type(dtype)))


def ordered(dtype: DType, lo: Array, hi: Array, nan: Array, pos: Array, neg: Array, reach: float = 0.0) -> Interval:
    """A float enclosure from rounded bounds: empties and flags put in order.

    Parameters
    ----------
    lo, hi
        Bounds; a NaN in either, or `lo > hi`, says that there is no result but NaN.
    pos, neg
        Zeros that are possible if the interval contains zero at all.
    reach
        Where no interval comes as close to zero as this, and only there, both flags of zeros are one array.
    """
    lo, hi = np.asarray(lo), np.asarray(hi)
    is_point = lo is hi
    some = lo <= hi
    if np.count_nonzero(some) != some.size:
        nan = nan | ~some
        lo, hi = np.where(some, lo, np.inf), np.where(some, hi, -np.inf)
        is_point = False
    if is_point:
        hi = lo
    if nan.shape != lo.shape:
        nan = np.broadcast_to(nan, lo.shape)
    near = (lo <= reach) & (hi >= -reach)
    if not np.count_nonzero(near):
        return Interval(dtype, lo, hi, nan, near, near)
    zero = (lo <= 0) & (hi >= 0) if reach else near
    # of rank 0 both would be the one False that NumPy has
    return Interval(dtype, lo, hi, nan, np.asarray(pos & zero), np.asarray(neg & zero))


def hull(a: Interval, b: Interval) -> Interval:
    """The union of two enclosures of one dtype and shape, as an interval; zeros inside a gap count as possible."""
    lo, hi = np.minimum(a.lo, b.lo), np.maximum(a.hi, b.hi)
    if not a.dtype.is_float:
        return exact(a.dtype, lo, hi)
    return Interval(a.dtype, lo, hi, a.nan | b.nan, a.pos_zero | b.pos_zero, a.neg_zero | b.neg_zero)
