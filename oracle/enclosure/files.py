"""Enclosures in `.npz` files: `lo0`, `hi0`, `nan0`, `pos_zero0`, `neg_zero0` for output 0, and so on.

Of complex outputs these are the real part, and `imag_lo0`, ... the imaginary one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from oracle.enclosure.value import Enclosure, rectangle
from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError
from tenferro_ref.tensor import Array, load_arrays, save_npz

_FIELDS = ("lo", "hi", "nan", "pos_zero", "neg_zero")


def _names(number: int, dtype: DType) -> Iterator[tuple[str, ...]]:
    """Names of the arrays of output `number`, a tuple a part."""
    for prefix in ("", "imag_") if dtype.is_complex else ("",):
        yield tuple(f"{prefix}{field}{number}" for field in _FIELDS)


def save_enclosures(path: str | Path, enclosures: Sequence[Enclosure]) -> None:
    """Write the sets of possible results, one enclosure an output.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    arrays: dict[str, Array] = {}
    for number, enclosure in enumerate(enclosures):
        for names, part in zip(_names(number, enclosure.dtype), enclosure.parts, strict=True):
            arrays.update({name: getattr(part, field) for name, field in zip(names, _FIELDS, strict=True)})
    save_npz(path, arrays)


def load_enclosures(path: str | Path, outputs: Sequence[Array]) -> list[Enclosure]:
    """The enclosures of `outputs` in a file.

    Raises
    ------
    FormatError
        Other names, dtypes or shapes than those of enclosures of these outputs.
    """
    arrays = load_arrays(path)
    dtypes = [DType.of(output) for output in outputs]
    expected = [name for number, dtype in enumerate(dtypes) for names in _names(number, dtype) for name in names]
    if arrays.keys() != set(expected):
        raise FormatError(where=str(path), detail=f"has {sorted(arrays)}, expected {expected}")
    enclosures = []
    for number, (dtype, output) in enumerate(zip(dtypes, outputs, strict=True)):
        bounds = np.float64 if dtype.real.is_float else np.int64
        parts = []
        for names in _names(number, dtype):
            for name, wanted in zip(names, (bounds, bounds, np.bool_, np.bool_, np.bool_), strict=True):
                if arrays[name].shape != output.shape or arrays[name].dtype != wanted:
                    given = f"{arrays[name].dtype}{list(arrays[name].shape)}"
                    detail = f"{given} for an output {dtype}{list(output.shape)}"
                    raise FormatError(where=f"{path}: {name}", detail=detail)
            lo, hi, nan, pos_zero, neg_zero = (arrays[name] for name in names)
            parts.append(Enclosure(dtype.real, lo, hi, nan, pos_zero, neg_zero))
        enclosures.append(rectangle(*parts) if len(parts) == 2 else parts[0])
    return enclosures


__all__ = ["load_enclosures", "save_enclosures"]
