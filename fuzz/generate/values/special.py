"""Special values of each dtype: what breaks kernels at its edges."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tenferro_ref.dtype import DType

#: Of a dtype that is drawn, so that NumPy's types cannot follow it.
Array: TypeAlias = NDArray[Any]

#: Arguments where a function overflows, saturates or changes branch: of any float, of F64, of F32.
_KNEES = (
    -1.0, -0.9999999, -0.41, -0.5, 0.5, 1.5, 2.5, -2.5, 0.9999999403953552, 1.0000001192092896, 1.5707963267948966,
    3.141592653589793, 2.0**31, 2147483520.0, -(2.0**31), 0.7071067811865476, 2.718281828459045, 3.0, 1024.0, 1e5, 1e15,
)  # fmt: skip
_KNEES_F64 = (
    709.782712893384, 709.7827128933841, -708.3964185322641, -745.1332191019411, -745.1332191019412, 710.4758600739439,
    22.0, 19.0615474653984, 36.7368005696771, -37.42994775023705, 1e-16, 1.4916681462400413e154, 1.3407807929942597e154,
    2.0**1023, 2.0**63, -(2.0**63), 9223372036854774784.0, 4503599627370497.5,
)  # fmt: skip
_KNEES_F32 = (
    88.72283172607422, 88.72283935546875, -87.33654022216797, -103.97207641601562, -103.97208404541016,
    9.010913848876953, 8.317766189575195, -17.32868, 1e-8, 1.8446742974197924e19, 1.8446744073709552e19, 2.0**127,
    2.0**63, 16777217.0, 8388609.5,
)  # fmt: skip


def limits(dtype: DType) -> Any:
    """The `finfo` of a dtype, of its parts if it is complex."""
    return dtype.finfo


def nan(dtype: DType, payload: int) -> Array:
    """A quiet NaN with a payload, of shape ()."""
    integer = f"<u{dtype.itemsize}"
    quiet = np.array(np.nan, dtype.numpy).view(integer)
    fits = payload if payload < 2 ** (int(dtype.finfo.nmant) - 1) else 1
    return np.asarray(quiet | np.array(fits, integer)).view(dtype.numpy)


def _knees(dtype: DType) -> Array:
    with np.errstate(over="ignore"):
        middle = np.array(_KNEES + (_KNEES_F64 if dtype is DType.F64 else _KNEES_F32)).astype(dtype.numpy)
    inf = np.array(np.inf, dtype.numpy)
    return np.concatenate([middle, -middle, np.nextafter(middle, inf), np.nextafter(middle, -inf)])


def _specials(dtype: DType) -> Array:
    if dtype is DType.Bool:
        return np.array([False, True])
    if dtype.is_int:
        bottom, top = dtype.limits
        near = [0, 1, -1, 2, top, bottom, top - 1, bottom + 1, 2**24 + 1, 2**16, -(2**16), 46341, 7]
        wide = [2**53 + 1, 2**31, -(2**31) - 1, 2**32, 3037000500, 2**63 + 1] if dtype.bits == 64 else []
        return np.array([v for v in near + wide if bottom <= v <= top], dtype.numpy)
    info = limits(dtype)
    largest, tiny, least = float(info.max), float(info.smallest_normal), float(info.smallest_subnormal)
    if dtype.is_complex:
        parts = [0.0, 1.0, -1.0, -0.0, np.inf, -np.inf, np.nan, largest]
        # of such parts the squares overflow or vanish, not the moduli
        far = [(largest / 4, largest / 4), (-largest / 4, 1.0), (4 * tiny, -4 * tiny), (0.0, 4 * tiny)]
        return np.array([*(complex(a, b) for b in parts for a in parts), *(complex(*z) for z in far)], dtype.numpy)
    plain = [0.0, 1.0, -0.0, -1.0, np.nan, np.inf, -np.inf, largest, -largest]
    small = [tiny, -tiny, tiny - least, least, -least, 2 * tiny, float(info.eps), float(info.epsneg)]
    array = np.array([*plain, *small, 2.0, 0.5, largest / 2, 1 + float(info.eps)], dtype.numpy)
    return np.concatenate([array, [nan(dtype, 0x123)], -array[4:5]]).astype(dtype.numpy)


def _integer_knees(dtype: DType) -> Array:
    """Powers of two and their neighbours, both signs."""
    bottom, top = dtype.limits
    near = {sign * (1 << k) + step for k in range(dtype.bits) for step in (-1, 0, 1) for sign in (1, -1)}
    return np.array(sorted(v for v in near if bottom <= v <= top), dtype.numpy)


#: The special values of each dtype, simplest first.
SPECIALS: dict[DType, Array] = {dtype: _specials(dtype) for dtype in DType}
#: The knees of each float and their neighbours, both signs; of integers, where their width shows.
KNEES: dict[DType, Array] = {dtype: _knees(dtype) for dtype in DType if dtype.is_float} | {
    dtype: _integer_knees(dtype) for dtype in DType if dtype.is_int
}
