"""Types and constants in StableHLO's text, without loss (SEMANTICS 0 and 7.2).

The parser wants a decimal point in a decimal float (`2`, `1e-05` and `5e-324` are errors) and takes a bit pattern of full
width for any float: so integers that every reader gets right are written in decimal, all else as bits.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tenferro_ref.dtype import DType

#: Element types.
ELEMENT = {
    DType.F32: "f32",
    DType.F64: "f64",
    DType.I32: "i32",
    DType.I64: "i64",
    DType.Bool: "i1",
    DType.C32: "complex<f32>",
    DType.C64: "complex<f64>",
}


Shape = tuple[int, ...]


@lru_cache(maxsize=4096)
def type_text(dtype: DType, shape: Shape) -> str:
    """`tensor<2x3xf64>`."""
    return f"tensor<{'x'.join([*map(str, shape), ELEMENT[dtype]])}>"


def literal(value: np.generic) -> str:
    """A scalar as it stands in `dense<...>`; reading it back gives the same bits."""
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.complexfloating):
        return f"({_float(value.real)}, {_float(value.imag)})"
    return _float(value) if isinstance(value, np.floating) else str(value)


def _float(value: np.floating) -> str:
    small = 2**24 if value.itemsize == 4 else 2**53
    if abs(value) < small and value == int(value):  # false for NaN and infinities before `int` sees them
        return f"{'-' if np.signbit(value) else ''}{abs(int(value))}.0"
    bits = value.view(np.uint32 if value.itemsize == 4 else np.uint64)
    return f"0x{int(bits):0{2 * value.itemsize}X}"
