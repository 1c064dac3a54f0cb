"""A conversion to a wider float and back that a compiler leaves out: whole, or, from F32 to F64, around one operation.

`F32(F64(x) + F64(y))` is `x + y` in F32, bit for bit, as F64 has more than twice the digits (Figueroa 1995): LLVM writes it so. What
that changes is what an operation before or after may be fused with, so that only the origin of the value matters. So it is where the
bits of a float become a float again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from oracle.enclosure.bounds import is_value
from oracle.enclosure.formats import FORMATS
from oracle.enclosure.origin import Converted
from oracle.enclosure.rule import ENCLOSE, Context
from oracle.enclosure.value import Enclosure, Interval, hull, real_point
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op

#: Conversions that lose nothing; of BF16 the operand may come unrounded (`freedoms.conversion`).
WIDER = ((DType.F32, DType.F64), (DType.F16, DType.F32), (DType.F16, DType.F64))
#: Operations around which the conversions are left out.
AROUND = (ops.Add, ops.Subtract, ops.Multiply, ops.Divide, ops.Negate, ops.Abs)


def converted(x: Interval, made: Interval) -> Interval:
    """A converted value, given what conversion alone makes of `x`."""
    if (x.dtype, made.dtype) in WIDER or x.dtype is DType.Bool:
        return made.from_(made.origin.converted_from(Converted(x, exact=True)))
    return _back(x, made)


def is_predicate(x: Interval) -> bool:
    """Whether a number is one that a Bool was converted to."""
    return x.origin.converted is not None and x.origin.converted.value.dtype is DType.Bool


def of_integer(x: Interval, made: Interval) -> Interval:
    """An integer made of the low bits of `x`: that these are the bits of a float stays known while none of them is cut off."""
    before = x.origin.converted
    if before is None or made.dtype.bits < before.value.dtype.bits:
        return made
    return made.from_(made.origin.converted_from(before))


def cast(x: Interval, made: Interval) -> Interval:
    """A value of the same bits, given what these bits alone make of `x`."""
    if x.dtype.is_float and made.dtype.is_int and x.dtype.bits == made.dtype.bits:
        return made.from_(made.origin.converted_from(Converted(x, exact=True)))
    return of_integer(x, made) if x.dtype.is_int and made.dtype.is_int else _back(x, made)


def _back(x: Interval, made: Interval) -> Interval:
    before = x.origin.converted
    if before is None or made.dtype is not before.value.dtype:
        return made
    return before.value if before.exact else hull(made, before.value).from_(before.value.origin)


def joined(parts: Sequence[Interval], join: Callable[[Sequence[Interval]], Interval]) -> Converted | None:
    """What parts that `join` joins were converted from, if any of them were; of the others that are no constants it is not known."""
    dtypes = {p.origin.converted.value.dtype for p in parts if p.origin.converted}
    if len(dtypes) != 1:
        return None
    (dtype,) = dtypes
    if not dtype.is_float:
        return None
    known = [p.origin.converted or Converted(*_alone(p, dtype)) for p in parts]
    return Converted(join([n.value for n in known]), exact=all(n.exact for n in known))


def _alone(x: Interval, dtype: DType) -> tuple[Interval, bool]:
    """What a value that was not converted stands for beside converted ones, and whether that is exact.

    A constant stands for the same number, or for that rounded; one of integers for the float of these bits.
    """
    value = _constant(x, dtype)
    if value is not None:
        return value, True
    if not (x.const and x.is_point):
        return _unknown(dtype, x.shape), False
    if x.dtype.is_float:
        array = FORMATS[dtype].nearest(x.lo).astype(dtype.numpy)
    else:
        bits = x.lo.astype(np.uint64) & np.uint64(2**dtype.bits - 1)
        array = bits.astype(f"u{dtype.itemsize}").view(dtype.numpy)
    return real_point(array, const=True), False


def _unknown(dtype: DType, shape: tuple[int, ...]) -> Interval:
    """Empty intervals: nothing is known of any element."""
    never = np.zeros(shape, bool)
    return Interval(dtype, np.full(shape, np.inf), np.full(shape, -np.inf), never, never, never)


def of_result(op: Op, contexts: Mapping[DType, Context], made: Enclosure, operands: Sequence[Enclosure]) -> Enclosure:
    """The result of an op in F64, with what a conversion to F32 may give where its operands come from there."""
    if not isinstance(made, Interval) or made.dtype is not DType.F64:
        return made
    op, read = _as_written(op, [x for x in operands if isinstance(x, Interval)])
    if not isinstance(op, AROUND):
        return made
    if made.origin.converted is not None or not any(x.origin.converted for x in read):
        return made
    known = [value for x in read if (value := _narrow(x)) is not None]
    if len(known) < len(read):
        return made
    value = ENCLOSE[type(op)](op, contexts[DType.F32], *known)
    return made.from_(made.origin.converted_from(Converted(value, exact=False)))


def _as_written(op: Op, operands: Sequence[Interval]) -> tuple[Op, Sequence[Interval]]:
    """A square that is written as a power as the product that is made of it; any other op as it is."""
    if isinstance(op, ops.Pow) and operands[1].const and np.all(is_value(operands[1], 2.0)):
        return ops.Multiply(), (operands[0], operands[0])
    return op, operands


def _narrow(x: Interval) -> Interval | None:
    """The value in F32 that a value in F64 was converted from, or a constant that could have been."""
    before = x.origin.converted
    if before is not None:
        return before.value if before.exact and before.value.dtype is DType.F32 else None
    return _constant(x, DType.F32)


def _constant(x: Interval, dtype: DType) -> Interval | None:
    """A constant as the narrower float that it could have been converted from."""
    if not x.dtype.is_float or not x.const or not x.is_point or np.any(FORMATS[dtype].nearest(x.lo) != x.lo):
        return None
    return Interval(dtype, x.lo, x.hi, x.nan, x.pos_zero, x.neg_zero).known_as(const=True, repeated=x.repeated)
