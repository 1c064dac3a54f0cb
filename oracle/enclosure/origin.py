"""`Origin`: how a value came about, as far as a platform that fuses or rewrites operations may ask.

Which freedom asks for what is in `oracle.enclosure.freedoms`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar, dataclass_transform

import numpy as np

from oracle.enclosure.formats import Array

if TYPE_CHECKING:
    from oracle.enclosure.value import Interval

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def record(cls: type[T]) -> type[T]:
    """A frozen dataclass to the type checker; freezing one at run time makes its construction take three times as long."""
    return dataclass(slots=True, eq=False)(cls)


@record
class Unrounded:
    """What an operation that takes this value may read instead of it, where it is fused or rewritten; all wide.

    Attributes
    ----------
    lo, hi
        Bounds of the last result before it was rounded, however the operations before were grouped.
    scaled
        A product or quotient one of whose operands is a constant.
    real
        Bounds of the real value of the chain of products and quotients; None: those of `lo` and `hi`.
    roundings
        How many roundings any grouping of that chain takes, the last included; of one shape with the value, or one for all.
    reduced
        A product along axes, which one along further axes may take in.
    inverse
        A quotient whose reciprocal is a product: of what many elements share, or one over a root.
    multiplied
        A quotient by such an inverse, which may have become a product.
    """

    kind: Literal["product", "quotient", "root"]
    lo: Array
    hi: Array
    scaled: bool = False
    real: tuple[Array, Array] | None = None
    roundings: Array | float = 1.0
    reduced: bool = False
    inverse: bool = False
    multiplied: bool = False

    @property
    def regroups(self) -> bool:
        """A product or quotient whose constant may be gathered with others."""
        return self.scaled and self.kind != "root"

    @property
    def contractible(self) -> bool:
        """A product, or a quotient that may have become one."""
        return self.kind == "product" or (self.kind == "quotient" and (self.scaled or self.multiplied))

    @property
    def chain(self) -> tuple[Array, Array]:
        """Bounds of the real value."""
        return (self.lo, self.hi) if self.real is None else self.real

    def map(self, f: Callable[[Array], Array]) -> Unrounded:
        real = None if self.real is None else (f(self.real[0]), f(self.real[1]))
        roundings = f(self.roundings) if isinstance(self.roundings, np.ndarray) else self.roundings
        lo = f(self.lo)
        hi = lo if self.lo is self.hi else f(self.hi)
        return replace(self, lo=lo, hi=hi, real=real, roundings=roundings)

    def __neg__(self) -> Unrounded:
        real = None if self.real is None else (-self.real[1], -self.real[0])
        return replace(self, lo=-self.hi, hi=-self.lo, real=real)


@record
class Terms:
    """The terms of a sum, taken together; all wide.

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
        The terms are products of a contraction, whose accumulator may start from an addend.
    products
        Each term is a product, which may be rounded first.
    """

    lo: Array
    hi: Array
    size_lo: Array
    size_hi: Array
    quantum: Array
    count: int
    contraction: bool = False
    products: bool = False

    def map(self, f: Callable[[Array], Array]) -> Terms:
        lo, hi, size_lo, size_hi, quantum = map(f, (self.lo, self.hi, self.size_lo, self.size_hi, self.quantum))
        return Terms(lo, hi, size_lo, size_hi, quantum, self.count, self.contraction, self.products)

    def __neg__(self) -> Terms:
        ends = -self.hi, -self.lo, self.size_hi, self.size_lo
        return Terms(*ends, self.quantum, self.count, self.contraction, self.products)


@record
class Multiple:
    """A value that is another one times a constant power of two, or (`inverse`) such a constant divided by that other one."""

    value: Interval
    factor: Array
    inverse: bool = False

    def map(self, f: Callable[[Array], Array]) -> Multiple:
        return Multiple(self.value.map(f), f(self.factor), self.inverse)

    def __neg__(self) -> Multiple:
        return Multiple(self.value, -self.factor, self.inverse)


@record
class Converted:
    """What a value was converted from, and is again (`exact`), or may be, when it is converted back: a narrower float, a Bool, or the
    float whose bits an integer has. No value at all where that is not known of an element."""

    value: Interval
    exact: bool

    def map(self, f: Callable[[Array], Array]) -> Converted:
        return Converted(self.value.map(f), self.exact)


@record
class Origin:
    """How a value came about, as far as a compiler that rewrites its readers may ask.

    Attributes
    ----------
    const
        Depends on constants, or on arrays without elements, only: a compiler may know the value.
    repeated
        A broadcast, or computed from broadcasts and constants alone: a divisor whose reciprocal pays.
    unrounded, terms, multiple, converted
        See those classes; None for other producers.
    filled
        Where a move has put a zero that is no element of what it moved, or a Select a zero that a compiler knows; None: nowhere.
    fixed
        Which elements come from constants, where others may not; None: every element of a constant does, and no other. A value whose
        elements are all fixed becomes a constant (`executor.derived`).
    """

    const: bool = False
    repeated: bool = False
    unrounded: Unrounded | None = None
    terms: Terms | None = None
    multiple: Multiple | None = None
    converted: Converted | None = None
    filled: Array | None = None
    fixed: Array | None = None

    @property
    def moves(self) -> bool:
        """It has arrays, which move with the value."""
        return not (
            self.unrounded is None
            and self.terms is None
            and self.multiple is None
            and self.converted is None
            and self.filled is None
            and self.fixed is None
        )

    def map(self, f: Callable[[Array], Array]) -> Origin:
        if not self.moves:
            return self
        return Origin(
            self.const,
            self.repeated,
            None if self.unrounded is None else self.unrounded.map(f),
            None if self.terms is None else self.terms.map(f),
            None if self.multiple is None else self.multiple.map(f),
            None if self.converted is None else self.converted.map(f),
            None if self.filled is None else f(self.filled),
            None if self.fixed is None else f(self.fixed),
        )

    def __neg__(self) -> Origin:
        return Origin(
            self.const,
            self.repeated,
            None if self.unrounded is None else -self.unrounded,
            None if self.terms is None else -self.terms,
            None if self.multiple is None else -self.multiple,
            fixed=self.fixed,
        )

    def known(self, *, const: bool, repeated: bool) -> Origin:
        """The same with these facts."""
        return Origin(
            const, repeated, self.unrounded, self.terms, self.multiple, self.converted, self.filled, self.fixed
        )

    def tied(self, multiple: Multiple) -> Origin:
        """The same as a multiple of another value."""
        return Origin(
            self.const, self.repeated, self.unrounded, self.terms, multiple, self.converted, self.filled, self.fixed
        )

    def converted_from(self, converted: Converted) -> Origin:
        """The same with what a conversion back gives."""
        return Origin(
            self.const, self.repeated, self.unrounded, self.terms, self.multiple, converted, self.filled, self.fixed
        )


#: That of most values.
NOWHERE = Origin()


def fixed_in(x: Interval) -> Array:
    """Which elements are those of constants."""
    return np.full(x.shape, x.const) if x.origin.fixed is None else x.origin.fixed
