"""`Enclosure`: the value that the enclosure executor computes with, and how one is built, moved and merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal, TypeVar, dataclass_transform

import numpy as np

from oracle.enclosure.formats import FORMATS, Array
from oracle.enclosure.model import Model
from tenferro_ref.dtype import DType

#: Smallest and largest value of the exact dtypes; Bool is an integer of 0 and 1 here.
INT_RANGE: dict[DType, tuple[int, int]] = {
    DType.Bool: (0, 1),
    DType.I32: (-(2**31), 2**31 - 1),
    DType.I64: (-(2**63), 2**63 - 1),
}


T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def record(cls: type[T]) -> type[T]:
    """A frozen dataclass to the type checker; to freeze one at run time makes the making of one three times as long."""
    return dataclass(slots=True, eq=False)(cls)


@record
class Unrounded:
    """What a contraction or rewrite may read instead of a value, all wide.

    Attributes
    ----------
    lo, hi
        Bounds of what was rounded last, however the operations before were grouped.
    scaled
        A product or quotient one of whose operands is a constant.
    real
        Bounds of the real value of the chain of products and quotients; None: those of `lo` and `hi`.
    roundings
        How many roundings any grouping of that chain takes, the last included; of one shape with the value, or one for all.
    """

    kind: Literal["product", "quotient", "root"]
    lo: Array
    hi: Array
    scaled: bool = False
    real: tuple[Array, Array] | None = None
    roundings: Array | float = 1.0

    @property
    def regroups(self) -> bool:
        """A product or quotient whose constant may be gathered with others."""
        return self.scaled and self.kind != "root"

    @property
    def contractible(self) -> bool:
        """A product, or a quotient that may have become one."""
        return self.kind == "product" or (self.kind == "quotient" and self.scaled)

    @property
    def chain(self) -> tuple[Array, Array]:
        """Bounds of the real value."""
        return (self.lo, self.hi) if self.real is None else self.real

    def map(self, f: Callable[[Array], Array]) -> Unrounded:
        real = None if self.real is None else (f(self.real[0]), f(self.real[1]))
        roundings = f(self.roundings) if isinstance(self.roundings, np.ndarray) else self.roundings
        lo = f(self.lo)
        return Unrounded(self.kind, lo, lo if self.lo is self.hi else f(self.hi), self.scaled, real, roundings)

    def __neg__(self) -> Unrounded:
        real = None if self.real is None else (-self.real[1], -self.real[0])
        return Unrounded(self.kind, -self.hi, -self.lo, self.scaled, real, self.roundings)


@record
class Terms:
    """What a sum was a sum of, all wide.

    Attributes
    ----------
    lo, hi
        Sums of the terms' bounds.
    size_lo, size_hi
        Sums of the magnitudes of the terms' bounds; infinite where a term is not finite, or may be NaN.
    quantum
        Divides every term (0: unknown).
    count
        Number of terms.
    contraction
        Products of a contraction, whose accumulator may start from an addend.
    """

    lo: Array
    hi: Array
    size_lo: Array
    size_hi: Array
    quantum: Array
    count: int
    contraction: bool = False

    def map(self, f: Callable[[Array], Array]) -> Terms:
        lo, hi, size_lo, size_hi, quantum = map(f, (self.lo, self.hi, self.size_lo, self.size_hi, self.quantum))
        return Terms(lo, hi, size_lo, size_hi, quantum, self.count, self.contraction)


@record
class Enclosure:
    """For each element, the set of results that a correct implementation may produce.

    Attributes
    ----------
    lo, hi
        Closed interval of the results that are not NaN: float64 for floats (finite bounds are values of `dtype`), int64 for
        integers and Bool. Empty, (+inf, -inf), where the result is certainly NaN.
    nan
        NaN is possible.
    pos_zero, neg_zero
        +0 and -0 are possible (floats only).
    const
        Depends on constants only: a compiler may know the value.
    repeated
        A broadcast, or computed from broadcasts and constants alone: a divisor whose reciprocal pays.
    unrounded, terms
        See those classes; None for other producers.
    imag
        Of complex numbers, the imaginary part; all of the above is the real part then. Rules see the parts (`parts`).
    """

    dtype: DType
    lo: Array
    hi: Array
    nan: Array
    pos_zero: Array
    neg_zero: Array
    const: bool = False
    unrounded: Unrounded | None = None
    terms: Terms | None = None
    repeated: bool = False
    imag: Enclosure | None = None
    _parts: tuple[Enclosure, ...] | None = field(default=None, init=False, repr=False)
    _finite: bool | None = field(default=None, init=False, repr=False)
    _number: bool | None = field(default=None, init=False, repr=False)

    @property
    def parts(self) -> tuple[Enclosure, ...]:
        """Real and imaginary part of complex numbers; itself alone for others."""
        if self.imag is None:
            return (self,)
        if self._parts is None:  # once: rules ask again and again
            object.__setattr__(self, "_parts", self._made())
        return self._parts or ()

    def _made(self) -> tuple[Enclosure, ...]:
        if self.imag is None:
            return ()
        # not by `replace`, which takes three times as long
        return tuple(
            Enclosure(
                self.imag.dtype,
                p.lo,
                p.hi,
                p.nan,
                p.pos_zero,
                p.neg_zero,
                self.const,
                p.unrounded,
                p.terms,
                self.repeated,
            )
            for p in (self, self.imag)
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lo.shape

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
        """Every element is a finite number for certain, of complex numbers in both parts (as cheap as `finite`)."""
        if self._number is None:
            known = all(p.number for p in self.parts) if self.imag is not None else self._is_number()
            object.__setattr__(self, "_number", known)
        return bool(self._number)

    def _is_number(self) -> bool:
        return self.finite and not np.count_nonzero(self.nan)

    @property
    def can_true(self) -> Array:
        return np.asarray(self.hi != 0)

    @property
    def can_false(self) -> Array:
        return np.asarray(self.lo == 0)

    @property
    def decided(self) -> Array:
        """Pinned down: certainly NaN, or not NaN and bounded or one infinity; one value for integers and Bool.

        Of complex numbers both parts.
        """
        if self.imag is not None:
            return np.asarray(self.parts[0].decided & self.imag.decided)
        if not self.dtype.is_float:
            return np.asarray(self.lo == self.hi)
        bounded = np.isfinite(self.lo) & np.isfinite(self.hi)
        return np.where(self.nan, self.empty, bounded | (self.lo == self.hi))

    def contains(self, x: Array) -> Array:
        """Which elements of `x`, an array of this dtype and shape, are in the set."""
        if self.imag is not None:
            return np.asarray(self.parts[0].contains(x.real) & self.imag.contains(x.imag))
        if not self.dtype.is_float:
            whole = x.astype(np.int64)
            return np.asarray((self.lo <= whole) & (whole <= self.hi))
        v = x.astype(np.float64)
        inside = (self.lo <= v) & (v <= self.hi)
        signed = np.where(np.signbit(v), self.neg_zero, self.pos_zero)
        return np.where(np.isnan(v), self.nan, inside & ((v != 0) | signed))

    def map(self, f: Callable[[Array], Array]) -> Enclosure:
        """The elements moved by `f`, which must treat all arrays alike."""
        if self.imag is not None:
            return rectangle(*(p.map(f) for p in self.parts))
        lo = f(self.lo)
        hi = lo if self.is_point else f(self.hi)
        nan = f(self.nan)
        # one array where all flags are down
        pos = nan if self.pos_zero is self.nan else f(self.pos_zero)
        neg = pos if self.neg_zero is self.pos_zero else f(self.neg_zero)
        unrounded = None if self.unrounded is None else self.unrounded.map(f)
        terms = None if self.terms is None else self.terms.map(f)
        moved = Enclosure(self.dtype, lo, hi, nan, pos, neg, self.const, unrounded, terms, self.repeated)
        if self._finite:  # of what is moved, and of zeros between, that stays true
            object.__setattr__(moved, "_finite", True)
            object.__setattr__(moved, "_number", self._number or None)
        return moved

    def plain(self) -> Enclosure:
        """Without the memory of where it came from."""
        if self.imag is not None:
            return rectangle(*(p.plain() for p in self.parts))
        return self if self.unrounded is None and self.terms is None else self.remembering()

    def remembering(self, unrounded: Unrounded | None = None, terms: Terms | None = None) -> Enclosure:
        """Real numbers with this memory of where they came from, and no other."""
        sets = self.lo, self.hi, self.nan, self.pos_zero, self.neg_zero
        return Enclosure(self.dtype, *sets, self.const, unrounded, terms, self.repeated)

    def reshaped(self, shape: tuple[int, ...]) -> Enclosure:
        return self if self.shape == shape else self.map(lambda a: spread(a, shape))


def spread(a: Array, shape: tuple[int, ...]) -> Array:
    """An array broadcast to a shape: a small one as a copy, which is several times as fast as a view."""
    if prod(shape) > 4096:
        return np.broadcast_to(a, shape)
    copy = np.empty(shape, a.dtype)
    copy[...] = a
    return copy


def rectangle(re: Enclosure, im: Enclosure) -> Enclosure:
    """Complex numbers whose parts are anywhere in those of one shape; what is known of both producers is kept."""
    const, repeated = re.const and im.const, re.repeated and im.repeated
    made = Enclosure(
        re.dtype.complex,
        re.lo,
        re.hi,
        re.nan,
        re.pos_zero,
        re.neg_zero,
        const,
        re.unrounded,
        re.terms,
        repeated,
        im,
    )
    if const == re.const == im.const and repeated == re.repeated == im.repeated:
        object.__setattr__(made, "_parts", (re, im))
    return made


def joined(enclosures: Sequence[Enclosure]) -> Enclosure:
    """The elements of enclosures of one dtype in a line, without the memory of where they came from."""
    if enclosures[0].imag is not None:
        sides = zip(*(e.parts for e in enclosures), strict=True)
        return rectangle(*map(joined, sides))
    lo, hi, nan, pos, neg = (
        np.concatenate([a.ravel() for a in kind])
        for kind in zip(*[(e.lo, e.hi, e.nan, e.pos_zero, e.neg_zero) for e in enclosures], strict=True)
    )
    return Enclosure(enclosures[0].dtype, lo, hi, nan, pos, neg)


def point(array: Array, const: bool = False) -> Enclosure:
    """The enclosure of known values."""
    dtype = DType.of(array)
    if dtype.is_complex:
        return rectangle(point(np.asarray(array.real), const), point(np.asarray(array.imag), const))
    if not dtype.is_float:
        return exact(dtype, array.astype(np.int64), const=const)
    v = array.astype(np.float64)
    nan = np.isnan(v)
    some = bool(np.count_nonzero(nan))
    pos = neg = np.zeros(v.shape, bool) if some else nan
    if np.count_nonzero(v) != v.size:
        zero, minus = v == 0, np.signbit(v)
        pos, neg = zero & ~minus, zero & minus
    if some:
        return Enclosure(dtype, np.where(nan, np.inf, v), np.where(nan, -np.inf, v), nan, pos, neg, const)
    return Enclosure(dtype, v, v, nan, pos, neg, const)


def exact(dtype: DType, lo: Array, hi: Array | None = None, *, const: bool = False) -> Enclosure:
    """An enclosure of integers or Bool; one array for known values."""
    lo = np.asarray(lo, np.int64)
    never = np.zeros(lo.shape, bool)
    return Enclosure(dtype, lo, lo if hi is None else np.asarray(hi, np.int64), never, never, never, const)


def three_valued(can_true: Array, can_false: Array) -> Enclosure:
    """A Bool."""
    return exact(DType.Bool, ~np.asarray(can_false), np.asarray(can_true))


def everything(dtype: DType, shape: tuple[int, ...]) -> Enclosure:
    """Any integer of the dtype."""
    lo, hi = INT_RANGE[dtype]
    return exact(dtype, np.full(shape, lo), np.full(shape, hi))


def build(
    model: Model,
    dtype: DType,
    lo: Array,
    hi: Array,
    nan: Array,
    pos: Array,
    neg: Array,
    *,
    inexact: bool = True,
) -> Enclosure:
    """A float enclosure from rounded bounds: empties, flags and denormals put in order.

    Parameters
    ----------
    lo, hi
        Bounds; a NaN in either, or `lo > hi`, says that there is no result but NaN.
    pos, neg
        Zeros that are possible if the interval contains zero at all.
    inexact
        The result was rounded: then one that was tiny before rounding may be flushed although it rounds to the smallest
        normal value.
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
    reach = FORMATS[dtype].min_normal if model.flush else 0.0
    near = (lo <= reach) & (hi >= -reach)
    if not np.count_nonzero(near):
        return Enclosure(dtype, lo, hi, nan, near, near)
    zero = (lo <= 0) & (hi >= 0) if model.flush else near
    pos, neg = pos & zero, neg & zero
    built = Enclosure(dtype, lo, hi, nan, pos, neg)
    return admit_flush(built, inexact=inexact) if model.flush else built


def admit_flush(x: Enclosure, *, inexact: bool = False) -> Enclosure:
    """Beside each denormal, the zero of its sign."""
    if x.imag is not None:
        return rectangle(*(admit_flush(p) for p in x.parts))
    if not x.dtype.is_float:
        return x
    least = FORMATS[x.dtype].min_normal
    if not np.count_nonzero((x.lo <= least) & (x.hi >= -least)):
        return x
    small = np.less_equal if inexact else np.less
    pos = (x.hi > 0) & small(x.lo, least) & (x.lo <= x.hi)
    neg = (x.lo < 0) & small(-x.hi, least) & (x.lo <= x.hi)
    if not np.count_nonzero(pos | neg):
        return x
    lo, hi = np.where(pos & (x.lo > 0), 0.0, x.lo), np.where(neg & (x.hi < 0), 0.0, x.hi)
    return Enclosure(
        x.dtype, lo, hi, x.nan, x.pos_zero | pos, x.neg_zero | neg, x.const, x.unrounded, x.terms, x.repeated
    )


def hull(a: Enclosure, b: Enclosure) -> Enclosure:
    """The union of two enclosures of one dtype and shape, as an interval; zeros inside a gap count as possible."""
    if a.imag is not None:
        return rectangle(*(hull(p, q) for p, q in zip(a.parts, b.parts, strict=True)))
    lo, hi = np.minimum(a.lo, b.lo), np.maximum(a.hi, b.hi)
    if not a.dtype.is_float:
        return exact(a.dtype, lo, hi)
    return Enclosure(a.dtype, lo, hi, a.nan | b.nan, a.pos_zero | b.pos_zero, a.neg_zero | b.neg_zero)
