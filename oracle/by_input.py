"""How far results of an op are from the native ones, by the value that the op was given: what a report's heat maps show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oracle.case import Case
from oracle.ulp import ulp_distance
from tenferro_ref.dtype import DType
from tenferro_ref.ops import ELEMENTWISE
from tenferro_ref.tensor import Array

#: Exponents of two in one bin of inputs, the farthest bin on each side, and the farthest bin of distances (2**20 and more).
WIDE, FARTHEST, FAR = 8, 8, 21
#: Elements of an output that are looked at.
_MOST = 256


def errors_by_input(
    case: Case, native: Sequence[Array], observed: Sequence[Array]
) -> tuple[tuple[str, str, str, int], ...]:
    """Elements of outputs that an elementwise op computes from inputs of the program alone, so that nothing else has a part in the error.

    Returns
    -------
    tuple of (op, dtype, bins, count)
        `bins` is "X U": the bin of the op's first operand ("0", or the sign and `floor(log2 |x|) // WIDE`), and that of the distance
        (0 for none, n for less than 2**n ULPs).
    """
    program, found = case.program, Counter[tuple[str, str, str]]()
    values = dict(zip(program.input_slots, case.inputs, strict=True))
    for slot, expected, seen in zip(program.output_slots, native, observed, strict=False):
        at = program.producers.get(slot)
        ins = None if at is None else program.instructions[at]
        if ins is None or type(ins.op) not in ELEMENTWISE or not set(ins.input_slots) <= set(values):
            continue
        x, dtype = values[ins.input_slots[0]], DType.of(expected)
        fits = x.shape == expected.shape == seen.shape and expected.dtype == seen.dtype
        if not (fits and expected.size and (dtype.is_float or dtype.is_complex)) or DType.of(x) is DType.Bool:
            continue
        chosen = np.linspace(0, x.size - 1, min(_MOST, x.size)).astype(np.int64)
        far = ulp_distance(seen, expected).reshape(-1, order="F")
        for words in _bins(x.reshape(-1, order="F")[chosen], far[chosen]):
            found[ins.op.name, dtype.name, words] += 1
    return tuple((*key, count) for key, count in sorted(found.items()))


def _bins(x: Array, far: NDArray[np.float64]) -> list[str]:
    with np.errstate(all="ignore"):
        size = np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))
        sign = np.where(x.real < 0, "-", "+")
        known = np.isfinite(size) & np.isfinite(far)
        places = np.clip(np.floor(np.log2(size[known]) / WIDE), -FARTHEST, FARTHEST)
        distances = np.where(far[known] > 0, np.clip(np.floor(np.log2(far[known])) + 1, 1, FAR), 0)
    rows = zip(sign[known].tolist(), size[known].tolist(), places.tolist(), distances.tolist(), strict=True)
    return [f"{f'{s}{int(place)}' if value else '0'} {int(d)}" for s, value, place, d in rows]
