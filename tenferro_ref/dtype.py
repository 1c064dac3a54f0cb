"""The seven dtypes of the engine and the front ends' promotion rule (SEMANTICS 1 and 1.1).

Names as the engine has them: C32 is a complex of two F32, C64 of two F64. Casting lives in the kernels.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import reduce

import numpy as np


class DType(Enum):
    """An element type; the value is the NumPy name."""

    F32 = "float32"
    F64 = "float64"
    I32 = "int32"
    I64 = "int64"
    Bool = "bool"
    C32 = "complex64"
    C64 = "complex128"

    # members are singletons: identity is equality, and the default hash of Enum is a Python-level call that shows up in
    # the executor's profile
    __hash__ = object.__hash__

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """Little-endian NumPy dtype of one element."""
        return _NUMPY[self]

    @property
    def itemsize(self) -> int:
        """Bytes an element takes."""
        return int(_NUMPY[self].itemsize)

    @property
    def real(self) -> DType:
        """Dtype of the parts of a complex dtype; itself for the others."""
        return {DType.C32: DType.F32, DType.C64: DType.F64}.get(self, self)

    @property
    def complex(self) -> DType:
        """The complex dtype whose parts are this float dtype; itself for complex dtypes."""
        return {DType.F32: DType.C32, DType.F64: DType.C64, DType.C32: self, DType.C64: self}[self]

    @property
    def is_float(self) -> bool:
        """F32 or F64."""
        return self in FLOAT

    @property
    def is_int(self) -> bool:
        """I32 or I64."""
        return self in INT

    @property
    def is_complex(self) -> bool:
        """C32 or C64."""
        return self in COMPLEX

    @classmethod
    def of(cls, array: np.ndarray) -> DType:
        """The dtype of a NumPy array; `KeyError` if the engine has no such dtype."""
        return _OF_NUMPY[array.dtype]

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


FLOAT = frozenset({DType.F32, DType.F64})
INT = frozenset({DType.I32, DType.I64})
COMPLEX = frozenset({DType.C32, DType.C64})
REAL = FLOAT | INT
NUMERIC = REAL | COMPLEX
INEXACT = FLOAT | COMPLEX
ANY = frozenset(DType)

_NUMPY = {d: np.dtype(d.value).newbyteorder("<") for d in DType}
_OF_NUMPY = {np.dtype(d.value): d for d in DType}


def _promote_two(a: DType, b: DType) -> DType:
    if a is b or b is DType.Bool:
        return a
    if a is DType.Bool:
        return b
    if a.is_int and b.is_int:
        return DType.I64
    if a.is_int or b.is_int:
        other = b if a.is_int else a
        return DType.F64 if other.is_float else DType.C64
    real = DType.F64 if DType.F64 in (a.real, b.real) else DType.F32
    return real.complex if a.is_complex or b.is_complex else real


def promote(dtypes: Iterable[DType]) -> DType:
    """Common dtype of the front ends: Bool < I32 < I64, any int with any float is F64 (also with F32).

    The empty list promotes to F64. The raw executor never promotes (SEMANTICS 1.1).
    """
    members = list(dtypes)
    return reduce(_promote_two, members) if members else DType.F64
