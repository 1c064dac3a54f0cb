"""Ops of StableHLO that the vocabulary does not have, composed of those that it has, value for value.

Each function takes and gives values of the program being built. Exact means: the same value for every operand, infinities,
NaN and signed zeros included, where the native executor computes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader.tracer import Tracer, tracer


def pad(x: Value, value: Value, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Value:
    """The engine pads with zero; any other value is selected by a padded mask."""
    if not (any(low) or any(high) or any(interior)):
        return x
    b, op = tracer(x), ops.Pad(tuple(low), tuple(high), tuple(interior))
    padded = b.apply(op, x)
    if value is b.array(np.zeros((), value.dtype.numpy)):
        return padded
    return select(b.apply(op, full(x, True, DType.Bool)), padded, spread(value, static(padded)))


def full(like: Value, value: complex | np.generic, dtype: DType | None = None) -> Value:
    """`value` in the shape of `like`."""
    return spread(like.builder.apply(ops.Constant.of(value, dtype or like.dtype)), static(like))


#: The whole numbers up to this one are numbers of BF16, and so are 256 times them.
_WHOLE = 256


def iota(b: Tracer, shape: Sequence[int], axis: int, dtype: DType) -> Value:
    """0, 1, 2, ... along an axis. Large ones in BF16 are sums of two exact numbers: XLA may leave both unrounded where F32 reads them."""
    line = np.arange(shape[axis])
    if dtype is DType.BF16 and _WHOLE < len(line) <= _WHOLE**2:
        low = line % _WHOLE
        x = b.apply(ops.Add(), *(b.array(part.astype(dtype.numpy)) for part in (line - low, low)))
    else:
        x = b.array(line.astype(dtype.numpy))
    return x if len(shape) == 1 else b.apply(ops.BroadcastInDim(tuple(shape), (axis,)), x)


def spread(x: Value, shape: tuple[int, ...]) -> Value:
    """A scalar in every element of `shape`."""
    return x.builder.apply(ops.BroadcastInDim(shape, ()), x) if shape else x


def broadcast(x: Value, shape: tuple[int, ...], dims: tuple[int, ...]) -> Value:
    """`x` in `shape`, its axes at `dims`; itself where that changes nothing."""
    return (
        x if x.shape == shape and dims == tuple(range(x.ndim)) else x.builder.apply(ops.BroadcastInDim(shape, dims), x)
    )


def static(x: Value) -> tuple[int, ...]:
    """The shape of a value, all of whose extents are integers here."""
    return x.type.static_shape


def select(pred: Value, on_true: Value, on_false: Value) -> Value:
    return pred.builder.apply(ops.Select(), pred, on_true, on_false)


# --- logic and bits ---------------------------------------------------------------------------------------------------


def logical(name: str, *operands: Value) -> Value:
    """and, or, xor, not: of truth values by Select, of integers bit by bit."""
    x, y = operands[0], operands[-1]
    if x.dtype is not DType.Bool:
        return x.builder.apply(ops.Bits(name), *operands)
    if name == "not":
        return ~x
    if name == "xor":
        return x != y
    return select(x, y, x) if name == "and" else select(x, x, y)


# --- floats -----------------------------------------------------------------------------------------------------------


def is_finite(x: Value) -> Value:
    return abs(x) <= full(x, float(x.dtype.finfo.max))  # not every format has an infinity


def sign(x: Value) -> Value:
    """StableHLO keeps the sign of a zero; the engine's Sign gives +0."""
    result = x.builder.apply(ops.Sign(), x)
    return select(x == full(x, 0), x, result) if x.dtype.is_float else result


def logistic(x: Value) -> Value:
    """In steps, each of which may be rounded, or the last one only: as XLA:CPU does of BF16, and of constants in F32.

    Of F64 the second way is by the exponential of what is not positive, which does not overflow where the result is a subnormal.
    """
    one, exp = full(x, 1), ops.Exp()
    steps = one / (one + x.builder.apply(exp, -x))
    if x.dtype.is_complex:
        return steps
    if x.dtype is DType.F64:
        negative = x < full(x, 0)
        e = x.builder.apply(exp, select(negative, x, -x))
        otherwise = select(negative, e, one) / (one + e)
    else:
        otherwise = logistic(x.astype(DType.F32 if x.dtype.is_narrow_float else DType.F64)).astype(x.dtype)
    return x.builder.apply(ops.Repeated("logistic", 1), steps, otherwise)


def tan(x: Value) -> Value:
    """sin / cos; of a complex number `-i tanh(i z)`, as in C, which has its limits."""
    b = x.builder
    if x.dtype.is_complex:
        turned = b.apply(ops.Tanh(), complex_(-imag(x), real(x)))
        return complex_(imag(turned), -real(turned))
    return b.apply(ops.Sin(), x) / b.apply(ops.Cos(), x)


# --- complex numbers --------------------------------------------------------------------------------------------------
# A complex value that the module takes apart and puts together again is recognised: the tracer knows the parts.


def real(z: Value) -> Value:
    """The real part, exact."""
    if not z.dtype.is_complex:
        return z
    known = tracer(z).parts.get(z.slot)
    return known[0] if known else z.astype(z.dtype.real)


def imag(z: Value) -> Value:
    """The imaginary part, exact."""
    if not z.dtype.is_complex:
        return full(z, 0)
    b, known = tracer(z), tracer(z).parts.get(z.slot)
    if known:
        return known[1]
    result = b.apply(ops.Imag(), z)
    b.imaginary[result.slot] = z
    return result


def complex_(re: Value, im: Value) -> Value:
    """The complex value of these parts, exact."""
    b = tracer(re)
    conjugate, source = _conjugate_of(re, im)
    if source is not None:
        return b.apply(ops.Conj(), source) if conjugate else source
    result = b.apply(ops.Complex(), re, im)
    b.parts[result.slot] = (re, im)
    return result


def _conjugate_of(re: Value, im: Value) -> tuple[bool, Value | None]:
    """Whether `im` is a negated imaginary part, and the complex value that both parts are from, if they are."""
    b = tracer(re)
    op, operands = b.made.get(im.slot, (None, ()))
    negated = isinstance(op, ops.Negate) and operands[0].slot in b.imaginary
    source = b.imaginary.get(operands[0].slot if negated else im.slot)
    return negated, source if source is not None and real(source) is re else None
