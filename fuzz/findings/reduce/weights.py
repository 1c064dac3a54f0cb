"""The numbers of a case, elements of its inputs and constants, as flat real arrays, and how simple each number is.

A complex number counts as its two parts. Which simpler numbers are tried is in `values`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fuzz.findings.reduce.draft import Draft, Input
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.tensor import Array


def _parts(array: Array) -> Array:
    """The elements in column-major order, complex ones as pairs."""
    flat = array.ravel("F")
    return flat.view(DType.of(array).real.numpy) if np.iscomplexobj(flat) else flat


def numbers(case: Case) -> list[Array]:
    """The numbers of every input, then of every constant."""
    constants = [ins.op.value for ins in case.program.instructions if isinstance(ins.op, ops.Constant)]
    return [_parts(a) for a in (*case.inputs, *map(np.asarray, constants))]


def with_numbers(case: Case, parts: Sequence[Array]) -> Draft:
    """The case with other numbers, in the order of `numbers`."""
    draft = Draft.of(case)
    remaining = iter(parts)
    for slot, (type_, array) in draft.inputs.items():
        draft.inputs[slot] = Input(type_, next(remaining).view(array.dtype).reshape(array.shape, order="F"))
    for i, ins in enumerate(draft.instructions):
        if isinstance(ins.op, ops.Constant):
            draft.instructions[i] = replace(ins, op=replace(ins.op, data=next(remaining).tobytes()))
    return draft


def weight(part: Array) -> NDArray[np.int64]:
    """Complexity of each number: 0 for zero, 1 for one, then special ones, then the others.

    The weight of other numbers is the count of their significant bits plus the distance of the exponent from that of 1,
    and one for a sign. NaN with another payload than the usual one is heavier than NaN.
    """
    if part.dtype == np.bool_:
        return part.astype(np.int64)
    with np.errstate(all="ignore"):
        x = part.astype(np.float64)
        finite = np.isfinite(x)
        mantissa, exponent = np.frexp(np.where(finite, np.abs(x), 0.0))
        scaled = np.ldexp(mantissa, 53).astype(np.int64)
        trailing = np.bitwise_count((scaled & -scaled) - 1).astype(np.int64)
    result = 5 + (53 - trailing) + np.abs(exponent - 1) + np.signbit(x)
    result = np.where(finite, result, 3 + (np.isnan(x) & ~_usual_nan(part)))
    for value, simple in ((0.0, 3), (1.0, 1), (-1.0, 2), (2.0, 2), (0.5, 2)):
        result = np.where(x == value, simple, result)
    return np.where((x == 0.0) & ~np.signbit(x), 0, result).astype(np.int64)


def _usual_nan(part: Array) -> NDArray[np.bool_]:
    if part.dtype.kind != "f":
        return np.zeros(part.shape, np.bool_)
    bits = part.view(f"u{part.dtype.itemsize}")
    usual: NDArray[np.bool_] = bits == np.full(1, np.nan, part.dtype).view(bits.dtype)[0]
    return usual
