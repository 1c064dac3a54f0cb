"""Whether a program has a derivative that is a number for certain: then a derivative program that gives NaN is wrong.

Two formulas of one derivative may differ at poles, and where something overflows on the way or is lost. Far from these, by values
of ordinary size, none has a reason to be NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oracle.derivation import Differentiated, concrete
from oracle.differences import SMOOTH, SMOOTH_REAL
from oracle.enclosure import IEEE, Enclosure, enclose
from oracle.enclosure.formats import Array
from oracle.enclosure.value import Interval, each_part
from tenferro_ref import ops
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.extensions import einsum, fft

#: Ops that have a derivative everywhere, at kinks that of the contract.
_ANYWHERE = (
    *SMOOTH, ops.Maximum, ops.Minimum, ops.Clamp, ops.Select, ops.Abs, ops.ReduceMax, ops.ReduceMin, ops.Compare, ops.Sign,
    ops.Gather, ops.Scatter, ops.DynamicSlice, ops.DynamicUpdateSlice, ops.Constant,
)  # fmt: skip
#: Magnitudes, beside 0, of which no product of a few is lost or overflows in F32.
_LEAST, _MOST = 2.0**-16, 2.0**16
_DTYPES = (DType.F32, DType.F64, DType.C32, DType.C64)


def ordinary(d: Differentiated) -> bool:
    """Whether all values of the program, and all seeds, are of ordinary size, and all its ops have derivatives there."""
    program = concrete(d.program, d.inputs)
    if not all(map(_sized, (*d.inputs, *d.tangents, *d.cotangents))):
        return False
    try:
        values = enclose(program, d.inputs, IEEE, all_slots=True)
    except UnsupportedOp:
        return False
    moving = {s for s, t in zip(program.input_slots, program.input_types, strict=True) if t.dtype in INEXACT}
    for ins in program.instructions:
        read = [values[slot] for slot in ins.input_slots]
        if moving.intersection(ins.input_slots):
            moving.update(slot for slot in ins.output_slots if program.slot_types[slot].dtype in INEXACT)
        positive = all(isinstance(x, Interval) and bool((x.lo > 0).all()) for x in read)
        power = isinstance(ins.op, ops.Pow) and ins.input_slots[1] not in moving and _whole(read)
        moved = isinstance(ins.op, ops.Convert) or (
            isinstance(ins.op, ops.Extension) and ins.op.family in (einsum.FAMILY, fft.FAMILY)
        )
        if not (moved or isinstance(ins.op, _ANYWHERE) or (isinstance(ins.op, SMOOTH_REAL) and positive) or power):
            return False
        if not all(_known(values[slot]) for slot in ins.output_slots):
            return False
    return True


def _whole(operands: Sequence[Enclosure]) -> bool:
    """Whether real numbers are raised to certain whole powers of 1 and more, which have a derivative at 0."""
    base, y = operands
    if not (isinstance(base, Interval) and isinstance(y, Interval)):
        return False
    return bool(((y.lo == y.hi) & (y.lo == np.rint(y.lo)) & (y.lo >= 1) & ~y.nan).all())


def _sized(x: object) -> bool:
    array = np.asarray(x)
    if array.dtype.kind not in "fc":
        return True
    size = np.abs(array)
    return DType.of(array) in _DTYPES and bool(((size == 0) | ((size >= _LEAST) & (size <= _MOST))).all())


def _known(x: Enclosure) -> bool:
    """Finite and of ordinary size for certain; by parts, since one of a complex number may be zero, or nearly."""
    if not (x.dtype.is_float or x.dtype.is_complex):
        return True
    size = np.sum([np.maximum(np.abs(p.lo), np.abs(p.hi)) for p in x.parts], axis=0)
    return x.dtype in _DTYPES and x.number and bool(((size == 0) | ((size >= _LEAST) & (size <= _MOST))).all())


def without_claims(x: Enclosure) -> Enclosure:
    """Anything in place of what is certainly NaN."""
    return each_part(lambda part: _replaced(part, part.empty, -np.inf, np.inf), x)


def with_nans(x: Enclosure, computed: Enclosure) -> Enclosure:
    """NaN where IEEE arithmetic certainly gives one; real arithmetic, where zeros may be tiny numbers, often leaves that open."""
    return each_part(lambda part, ieee: _replaced(part, ieee.empty, np.inf, -np.inf), x, computed)


def _replaced(x: Interval, mask: Array, lo: float, hi: float) -> Interval:
    return Interval(x.dtype, np.where(mask, lo, x.lo), np.where(mask, hi, x.hi), x.nan | mask, x.pos_zero, x.neg_zero)
