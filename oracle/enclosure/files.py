"""Enclosures in `.npz` files: `lo0`, `hi0`, `nan0`, `pos_zero0`, `neg_zero0` for output 0, and so on.

Of complex outputs those are the real part's; the imaginary part's are `imag_lo0` and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from oracle.enclosure.value import Enclosure, Interval, bound_type, rectangle
from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError
from tenferro_ref.tensor import Array, load_arrays, save_npz

PARTS = ("lo", "hi", "nan", "pos_zero", "neg_zero")
SIDES = ("", "imag_")


def save_enclosures(path: str | Path, enclosures: Sequence[Enclosure]) -> None:
    """Write the sets of possible results, one enclosure an output.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    save_npz(
        path,
        {
            f"{side}{part}{i}": getattr(e, part)
            for i, whole in enumerate(enclosures)
            for side, e in zip(SIDES, whole.parts, strict=False)
            for part in PARTS
        },
    )


def load_enclosures(path: str | Path, outputs: Sequence[Array]) -> list[Enclosure]:
    """The enclosures of `outputs` in a file.

    Raises
    ------
    FormatError
        Other names, dtypes or shapes than those of enclosures of these outputs.
    """
    dtypes = [DType.of(output) for output in outputs]
    due = {
        f"{side}{part}{i}": 8.0 * outputs[i].size
        for i, d in enumerate(dtypes) for side in SIDES[: 1 + d.is_complex] for part in PARTS
    }  # fmt: skip
    arrays = load_arrays(path, due)
    if arrays.keys() != due.keys():
        raise FormatError(where=str(path), detail=f"has {sorted(arrays)}, expected {sorted(due)}")
    enclosures = []
    for i, (output, dtype) in enumerate(zip(outputs, dtypes, strict=True)):
        bounds = bound_type(dtype) if dtype.is_int or dtype is DType.Bool else np.float64
        sides = []
        for side in SIDES[: 1 + dtype.is_complex]:
            parts = [arrays[f"{side}{part}{i}"] for part in PARTS]
            for part, array, wanted in zip(PARTS, parts, (bounds, bounds, np.bool_, np.bool_, np.bool_), strict=True):
                if array.shape != output.shape or array.dtype != wanted:
                    shown = f"{array.dtype}{list(array.shape)}"
                    raise FormatError(
                        where=f"{path}: {side}{part}{i}", detail=f"{shown} for an output {dtype}{list(output.shape)}"
                    )
            lo, hi, nan, pos_zero, neg_zero = parts
            sides.append(Interval(dtype.real, lo, hi, nan, pos_zero, neg_zero))
        enclosures.append(rectangle(*sides) if dtype.is_complex else sides[0])
    return enclosures
