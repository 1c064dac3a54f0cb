"""Multiples of a value by constant powers of two: once these cancel, what reads the multiple reads the value.

`t * 2 * 0.5` and `t / 4 * 4` are t to a compiler, and `x / (1 / y)` is `x * y`: t, or that product, may then be fused with a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oracle.enclosure.formats import Array
from oracle.enclosure.origin import Multiple
from oracle.enclosure.value import Interval


def of_product(made: Interval, x: Interval, y: Interval) -> Interval:
    """The product of `x` and `y`, one of which may be a constant factor."""
    for factor, other in ((y, x), (x, y)):
        if _is_scale(factor) and (of := _multiple(other, made)):
            return _tied(made, Multiple(of.value, of.factor * factor.lo, of.inverse))
    return made


def of_quotient(made: Interval, x: Interval, y: Interval) -> Interval:
    """The quotient of `x` and `y`, one of which may be a constant."""
    if _is_scale(y) and (of := _multiple(x, made)):
        return _tied(made, Multiple(of.value, of.factor / y.lo, of.inverse))
    if _is_scale(x) and not y.const and y.shape == made.shape:
        of = y.origin.multiple or Multiple(y, np.ones(y.shape))
        return _tied(made, Multiple(of.value, x.lo / of.factor, not of.inverse))
    return made


def reciprocal(y: Interval) -> tuple[Interval, int] | None:
    """The value whose reciprocal, or the negative of it, `y` is; and the sign."""
    of = y.origin.multiple
    sign = _sign(of.factor) if of is not None and of.inverse else 0
    return (of.value, sign) if of is not None and sign else None


def joined(
    parts: Sequence[Interval],
    join: Callable[[Sequence[Array]], Array],
    of_values: Callable[[Sequence[Interval]], Interval],
) -> Multiple | None:
    """What parts that are joined are multiples of, if any are; any other part is 1 times itself, or, beside reciprocals, a multiple by NaN, which never cancels."""
    first = next((p.origin.multiple for p in parts if p.origin.multiple), None)
    if first is None:
        return None
    alone = np.nan if first.inverse else 1.0
    known = [
        m if (m := p.origin.multiple) and m.inverse == first.inverse else Multiple(p, np.full(p.shape, alone))
        for p in parts
    ]
    return Multiple(of_values([m.value for m in known]), join([m.factor for m in known]), first.inverse)


def filled(of: Multiple, between: Array, fill: Callable[[Interval], Interval]) -> Multiple | None:
    """A multiple between whose elements zeros were put, which are multiples of zeros by any positive factor."""
    if of.inverse:
        return None
    rest = of.factor[~between]
    factor = rest[0] if rest.size and rest[0] > 0 else 1.0
    return Multiple(fill(of.value), np.where(between, factor, of.factor))


def _is_scale(x: Interval) -> bool:
    """A constant all of whose elements are powers of two."""
    return x.const and bool(np.all((x.lo == x.hi) & np.isfinite(x.lo) & (np.abs(np.frexp(x.lo)[0]) == 0.5)))


def _multiple(x: Interval, made: Interval) -> Multiple | None:
    """What a factor or dividend is a multiple of: itself, if there is more to know of it than its value."""
    if x.const or x.shape != made.shape:
        return None
    return x.origin.multiple or (Multiple(x, np.ones(x.shape)) if x.origin.moves else None)


def _sign(factor: Array) -> int:
    """Of a factor that is 1, or -1, throughout; else 0."""
    return next((sign for sign in (1, -1) if np.all(factor == sign)), 0)


def _tied(made: Interval, of: Multiple) -> Interval:
    """A multiple, with the origin of the value where the factor has become 1 or -1.

    Not where the multiple overflowed on the way: what a rewrite makes of that stays outside.
    """
    sign = 0 if of.inverse else _sign(of.factor)
    value = of.value
    if not sign or not (made.finite or _same(made, value, sign)):
        return made.from_(made.origin.tied(of))
    origin = value.origin if sign > 0 else -value.origin
    return made.from_(origin.known(const=made.const, repeated=made.repeated))


def _same(made: Interval, value: Interval, sign: int) -> bool:
    lo, hi = (value.lo, value.hi) if sign > 0 else (-value.hi, -value.lo)
    return np.array_equal(made.lo, lo) and np.array_equal(made.hi, hi)
