"""Enclosures in `.npz` files: `lo0`, `hi0`, `nan0`, `pos_zero0`, `neg_zero0` for output 0, and so on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from oracle.enclosure.value import Enclosure
from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError
from tenferro_ref.tensor import Array, load_arrays, save_npz

PARTS = ("lo", "hi", "nan", "pos_zero", "neg_zero")


def save_enclosures(path: str | Path, enclosures: Sequence[Enclosure]) -> None:
    """Write the sets of possible results, one enclosure an output.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    save_npz(path, {f"{part}{i}": getattr(e, part) for i, e in enumerate(enclosures) for part in PARTS})


def load_enclosures(path: str | Path, outputs: Sequence[Array]) -> list[Enclosure]:
    """The enclosures of `outputs` in a file.

    Raises
    ------
    FormatError
        Other names, dtypes or shapes than those of enclosures of these outputs.
    """
    arrays = load_arrays(path)
    names = {f"{part}{i}" for i in range(len(outputs)) for part in PARTS}
    if arrays.keys() != names:
        raise FormatError(where=str(path), detail=f"has {sorted(arrays)}, expected {sorted(names)}")
    enclosures = []
    for i, output in enumerate(outputs):
        dtype = DType.of(output)
        parts = [arrays[f"{part}{i}"] for part in PARTS]
        bounds = np.float64 if dtype.is_float else np.int64
        for part, array, wanted in zip(PARTS, parts, (bounds, bounds, np.bool_, np.bool_, np.bool_), strict=True):
            if array.shape != output.shape or array.dtype != wanted:
                shown = f"{array.dtype}{list(array.shape)}"
                raise FormatError(
                    where=f"{path}: {part}{i}", detail=f"{shown} for an output {dtype}{list(output.shape)}"
                )
        lo, hi, nan, pos_zero, neg_zero = parts
        enclosures.append(Enclosure(dtype, lo, hi, nan, pos_zero, neg_zero))
    return enclosures
