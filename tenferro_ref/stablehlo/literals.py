"""Types and constants in StableHLO's text, without loss (SEMANTICS 0 and 7.2).

The parser wants a decimal point in a decimal float (`2`, `1e-05` and `5e-324` are errors) and takes a bit pattern of full
width for any float: so integers that every reader gets right are written in decimal, all else as bits.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tenferro_ref.dtype import DType

Shape = tuple[int, ...]


@lru_cache(maxsize=4096)
def type_text(dtype: DType, shape: Shape) -> str:
    """`tensor<2x3xf64>`."""
    return f"tensor<{'x'.join([*map(str, shape), dtype.value.element])}>"


def literal(value: np.generic) -> str:
    """A scalar as it stands in `dense<...>`; reading it back gives the same bits."""
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.complexfloating):
        return f"({literal(value.real)}, {literal(value.imag)})"
    dtype = DType.of(np.asarray(value))
    return _float(value, dtype) if dtype.is_float else str(int(value))


def _float(value: np.generic, dtype: DType) -> str:
    number = float(value)
    small = 2.0 ** (int(dtype.finfo.nmant) + 1)
    if abs(number) < small and number == int(number):  # false for NaN and infinities before `int` sees them
        return f"{'-' if np.signbit(number) else ''}{abs(int(number))}.0"
    bits = int(np.asarray(value).view(f"u{dtype.itemsize}"))
    return f"0x{bits:0{2 * dtype.itemsize}X}"
