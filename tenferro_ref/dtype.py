"""The element types, what is known of each, and the front ends' promotion rule (SEMANTICS 1 and 1.1).

The engine has seven (`ENGINE_DTYPES`), which its own policy admits; StableHLO's policy admits all. Names as the engine has
them: C32 is a complex of two F32, C64 of two F64. Casting lives in the kernels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Any, Literal, TypeAlias

import ml_dtypes
import numpy as np

from tenferro_ref.errors import UsageError
from tenferro_ref.suggest import did_you_mean

Kind: TypeAlias = Literal["bool", "int", "uint", "float", "complex"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a dtype.

    Attributes
    ----------
    numpy
        Its NumPy name; `ml_dtypes` registers those that NumPy itself lacks.
    bits
        Width of an element as a number; in memory it takes whole bytes.
    element
        Its name in StableHLO.
    pjrt
        Its name among PJRT's buffer types, which call a complex type by its whole size; "" if no plugin takes it (measured:
        buffers of 6-bit floats end the process).
    """

    numpy: str
    kind: Kind
    bits: int
    element: str
    pjrt: str


def _float8(name: str, bits: int = 8) -> Facts:
    width, rest = name.split("E", 1)
    return Facts(f"float{bits}_e{rest.lower()}", "float", bits, f"{width.lower()}E{rest}", "" if bits == 6 else name)


class DType(Enum):
    """An element type."""

    F32 = Facts("float32", "float", 32, "f32", "F32")
    F64 = Facts("float64", "float", 64, "f64", "F64")
    I32 = Facts("int32", "int", 32, "i32", "S32")
    I64 = Facts("int64", "int", 64, "i64", "S64")
    Bool = Facts("bool", "bool", 1, "i1", "PRED")
    C32 = Facts("complex64", "complex", 64, "complex<f32>", "C64")
    C64 = Facts("complex128", "complex", 128, "complex<f64>", "C128")
    I8 = Facts("int8", "int", 8, "i8", "S8")
    I16 = Facts("int16", "int", 16, "i16", "S16")
    U8 = Facts("uint8", "uint", 8, "ui8", "U8")
    U16 = Facts("uint16", "uint", 16, "ui16", "U16")
    U32 = Facts("uint32", "uint", 32, "ui32", "U32")
    U64 = Facts("uint64", "uint", 64, "ui64", "U64")
    F16 = Facts("float16", "float", 16, "f16", "F16")
    BF16 = Facts("bfloat16", "float", 16, "bf16", "BF16")
    I2 = Facts("int2", "int", 2, "i2", "S2")
    I4 = Facts("int4", "int", 4, "i4", "S4")
    U2 = Facts("uint2", "uint", 2, "ui2", "U2")
    U4 = Facts("uint4", "uint", 4, "ui4", "U4")
    F4E2M1FN = _float8("F4E2M1FN", 4)
    F6E2M3FN = _float8("F6E2M3FN", 6)
    F6E3M2FN = _float8("F6E3M2FN", 6)
    F8E3M4 = _float8("F8E3M4")
    F8E4M3 = _float8("F8E4M3")
    F8E4M3B11FNUZ = _float8("F8E4M3B11FNUZ")
    F8E4M3FN = _float8("F8E4M3FN")
    F8E4M3FNUZ = _float8("F8E4M3FNUZ")
    F8E5M2 = _float8("F8E5M2")
    F8E5M2FNUZ = _float8("F8E5M2FNUZ")
    F8E8M0FNU = _float8("F8E8M0FNU")

    # members are singletons: identity is equality, and the default hash of Enum is a Python-level call that shows up in
    # the executor's profile
    __hash__ = object.__hash__

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """NumPy dtype of one element, in the machine's byte order: little-endian, as the formats are, on all that it runs on."""
        return _NUMPY[self]

    @property
    def kind(self) -> Kind:
        """What sort of number it holds. NumPy's own letter says nothing of the dtypes of `ml_dtypes`."""
        return self.value.kind

    @property
    def bits(self) -> int:
        """Width of an element as a number."""
        return self.value.bits

    @property
    def itemsize(self) -> int:
        """Bytes an element takes in memory."""
        return int(_NUMPY[self].itemsize)

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value of an integer dtype; (0, 1) for Bool."""
        return _LIMITS[self]

    @property
    def extremes(self) -> tuple[float, float]:
        """Lowest and highest value of a real dtype, which a maximum and a minimum begin with: infinities where it has them."""
        if not self.is_float:
            return self.limits
        with np.errstate(all="ignore"):
            ends = float(self.numpy.type(-np.inf)), float(self.numpy.type(np.inf))
        known = self.finfo
        return (known.min if np.isnan(ends[0]) else ends[0]), (known.max if np.isnan(ends[1]) else ends[1])

    @property
    def finfo(self) -> Any:
        """Limits of a float dtype, or of the parts of a complex one: as `numpy.finfo`."""
        return ml_dtypes.finfo(self.real.numpy)  # type: ignore[no-untyped-call]

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
        """A real floating-point dtype, of any width."""
        return self in _FLOATS

    @property
    def is_int(self) -> bool:
        """An integer dtype, signed or not, of any width; not Bool."""
        return self in _INTS

    @property
    def is_unsigned(self) -> bool:
        """An unsigned integer dtype."""
        return self.value.kind == "uint"

    @property
    def is_complex(self) -> bool:
        """C32 or C64."""
        return self in COMPLEX

    @property
    def is_narrow_float(self) -> bool:
        """A float of 16 bits or fewer: computed in float64 and rounded once."""
        return self in NARROW_FLOATS

    @property
    def engine(self) -> DType:
        """The engine's dtype of the same kind, whose rules hold for this one under StableHLO's policy."""
        if self in ENGINE_DTYPES:
            return self
        return DType.I32 if self.is_int else DType.F32

    @classmethod
    def of(cls, array: np.ndarray) -> DType:
        """The dtype of a NumPy array; `KeyError` if there is no such dtype."""
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
#: The seven that the engine has, in the order of the seeds; the sets above are of these alone.
ENGINE_DTYPES = (DType.F32, DType.F64, DType.I32, DType.I64, DType.Bool, DType.C32, DType.C64)
ANY = frozenset(ENGINE_DTYPES)
_FLOATS = frozenset(d for d in DType if d.value.kind == "float")
_INTS = frozenset(d for d in DType if d.value.kind in ("int", "uint"))
#: Floats of 16 bits or fewer.
NARROW_FLOATS = _FLOATS - FLOAT

_NUMPY = {d: np.dtype(d.value.numpy) for d in DType}
_OF_NUMPY = {np.dtype(d.value.numpy): d for d in DType}


def _limits(dtype: DType) -> tuple[int, int]:
    bits = dtype.bits
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.value.kind == "int" else (0, 2**bits - 1)


_LIMITS = {d: _limits(d) for d in (*_INTS, DType.Bool)}


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


def as_dtype(dtype: DType | str) -> DType:
    """A dtype by its name.

    Raises
    ------
    UsageError
        There is none of that name, or it is no name.
    """
    if isinstance(dtype, DType):
        return dtype
    if not isinstance(dtype, str):
        raise UsageError(detail=f"{type(dtype).__name__} where a dtype is needed, such as DType.F64 or 'F64'")
    if dtype not in DType.__members__:
        hint = did_you_mean(dtype, DType.__members__)
        raise UsageError(detail=f"unknown dtype {dtype!r}; known: {', '.join(DType.__members__)}{hint}")
    return DType[dtype]


def promote(dtypes: Iterable[DType]) -> DType:
    """Common dtype of the front ends: Bool < I32 < I64, any int with any float is F64 (also with F32).

    The empty list promotes to F64. The raw executor never promotes (SEMANTICS 1.1).
    """
    members = list(dtypes)
    return reduce(_promote_two, members) if members else DType.F64
