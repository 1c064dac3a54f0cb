"""Real arithmetic: an operation may give the number that it rounds otherwise.

*Bound.* The number before rounding is between the neighbours of the rounded one, so that both bounds move out by one
step; parts of complex products and quotients, which are rounded several times, by some units of the modulus. Where the result is known to be exact nothing moves: comparisons with such results stay decided.

No platform computes so. Two programs that are equal over the real numbers have a value in common under this freedom, however
each of them rounds: that is how derivatives are held to identities (`oracle.identities`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.enclosure.bounds import is_zero
from oracle.enclosure.formats import FORMATS, Array, Format, quantum
from oracle.enclosure.model import Model
from oracle.enclosure.value import Enclosure, Interval, Rectangle, each_part
from tenferro_ref import ops
from tenferro_ref.ops import Op

#: Ops that round; the others move, choose or compare.
ROUNDING = (
    *(ops.Add, ops.Subtract, ops.Multiply, ops.Divide, ops.Pow, ops.Convert, ops.Scatter, ops.Extension),
    *(ops.Exp, ops.Expm1, ops.Log, ops.Log1p, ops.Sin, ops.Cos, ops.Tanh, ops.Sqrt, ops.Rsqrt),
    *(ops.ReduceSum, ops.ReduceSumSquares, ops.ReduceProd, ops.DotGeneral),
)


def granted(model: Model) -> bool:
    """Whether a model has this freedom."""
    return model.real


def of_result(model: Model, op: Op, x: Enclosure, operands: tuple[Enclosure, ...]) -> Enclosure:
    """The result of an op, with what it is before rounding."""
    if not granted(model) or not (x.dtype.is_float or x.dtype.is_complex):
        return x
    rounds = isinstance(op, ROUNDING) or (isinstance(op, ops.Abs | ops.Sign) and isinstance(operands[0], Rectangle))
    if not rounds:
        return x
    exact = np.broadcast_to(_exact(op, FORMATS[x.dtype.real], operands), x.shape)
    cancels = isinstance(op, ops.Multiply | ops.Divide | ops.ReduceProd)
    several = _COMPLEX * FORMATS[x.dtype.real].unit * _modulus(x) if cancels else 0.0
    return each_part(lambda part: _widened(part, exact, several), x)


#: Units of the modulus that a part of a complex product or quotient may be off: its terms are rounded before they cancel. (Sums of
#: products, and products of more than two, have bounds for every order, and so for what is not rounded.)
_COMPLEX = 16


def _modulus(x: Enclosure) -> Array | float:
    """At least the modulus of complex numbers, infinite where a part is; 0 for real ones, which are rounded once."""
    if isinstance(x, Interval):
        return 0.0
    size = np.sum([np.maximum(np.abs(part.lo), np.abs(part.hi)) for part in x.parts], axis=0)
    return np.asarray(np.where(np.isfinite(size), size, np.inf))


def _widened(x: Interval, exact: Array, several: Array | float) -> Interval:
    """Bounds one step further out, and by `several`; an infinity stands for large numbers, from which it may have come."""
    storage = FORMATS[x.dtype].storage
    move = ~(exact | x.empty)
    ends = (
        (np.where(np.isfinite(x.lo), x.lo - several, x.lo), -np.inf),
        (np.where(np.isfinite(x.hi), x.hi + several, x.hi), np.inf),
    )
    lo, hi = (np.nextafter(v.astype(storage), storage(end)).astype(np.float64) for v, end in ends)
    lo, hi = np.where(move, lo, x.lo), np.where(move, hi, x.hi)
    zero = move & (lo <= 0) & (hi >= 0)
    return Interval(x.dtype, lo, hi, x.nan, x.pos_zero | zero, x.neg_zero | zero)


def _exact(op: Op, f: Format, operands: tuple[Enclosure, ...]) -> Any:
    """Where the result is known to be exact: all is a multiple of one quantum, and less than so many of it."""
    match op:
        case ops.Add() | ops.Subtract():
            sizes, quanta = zip(*map(_measured, operands), strict=True)
            return _holds(f, sizes[0] + sizes[1], np.minimum(*quanta))
        case ops.Multiply():
            (a, p), (b, q) = map(_measured, operands)
            return (a == 0) & np.isfinite(b) | (b == 0) & np.isfinite(a) | _holds(f, a * b, p * q)
        case ops.Divide():
            return _exact_quotient(f, *operands)
        case ops.ReduceSum():
            size, q = _measured(operands[0])
            return _holds(f, size.sum(op.axes), q.min(op.axes, initial=np.inf))
        case ops.DotGeneral():
            (a, p), (b, q) = map(_measured, operands)
            if not a.any() or not b.any():
                return np.isfinite(a).all() and np.isfinite(b).all()
            return _holds(f, a.sum() * b.max(), p.min() * q.min())
        case ops.Scatter():
            (a, p), (b, q) = _measured(operands[0]), _measured(operands[2])
            least = min(p.min(initial=np.inf), q.min(initial=np.inf))
            return _holds(f, a.max(initial=0.0) + b.sum(), least)
        case ops.Convert():
            return _holds(f, *_measured(operands[0]))
        case ops.Abs() | ops.Sign():  # of complex numbers they round, but of 0 they are exactly 0
            return _measured(operands[0])[0] == 0
    return False


def _measured(x: Enclosure) -> tuple[Array, Array]:
    """The largest magnitude of each element and what divides it, 0 where that is not known; of complex numbers, of both parts together."""
    sizes, quanta = [], []
    for part in x.parts:
        known = part.lo == part.hi
        values = part.lo.astype(np.float64)
        sizes.append(np.maximum(np.abs(values), np.abs(part.hi)))
        quanta.append(np.where(known & ~part.nan, quantum(np.where(known, values, 0.0)), 0.0))
    return np.sum(sizes, axis=0), np.minimum.reduce(quanta)


def _holds(f: Format, size: Any, q: Any) -> Any:
    """Whether multiples of `q` up to `size` are numbers of the format; `size` may have been rounded down to the limit, so it has to be below it."""
    return (size <= f.max) & (size < q / f.unit) & (q >= f.least_subnormal)


def _exact_quotient(f: Format, x: Enclosure, y: Enclosure) -> Any:
    """A quotient by a power of two, or of zero."""
    if isinstance(x, Rectangle) or isinstance(y, Rectangle):
        return False
    (size, _), (divisor, q) = _measured(x), _measured(y)
    power = (divisor == q) & (divisor > 0) & (x.lo == x.hi) & (size / divisor >= f.min_normal) & np.isfinite(size)
    return power | is_zero(x) & (y.lo == y.hi) & (divisor > 0)
