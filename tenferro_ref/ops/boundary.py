"""Constant, and Extension: the boundary to op families that register their own runtime (SEMANTICS 2.6 and 6)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from tenferro_ref.dims import Extent
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, UnsupportedOp
from tenferro_ref.narrow import narrowed
from tenferro_ref.ops.base import Category, Op, Policy, TensorType, check_admitted
from tenferro_ref.suggest import did_you_mean
from tenferro_ref.table import Table

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints


@dataclass(frozen=True, slots=True)
class Constant(Op):
    """A rank-0 value given by its little-endian bytes; no inputs."""

    dtype: DType
    data: bytes
    category: ClassVar = Category.HOST
    arity: ClassVar = 0
    same_dtype: ClassVar = 0

    def infer(self, policy: Policy, *inputs: TensorType) -> TensorType:
        check_admitted(self.name, self.dtype, policy)
        if len(self.data) != self.dtype.itemsize:
            raise InvalidArgument(
                op=self.name,
                argument="data",
                detail=f"{self.dtype} takes {self.dtype.itemsize} bytes, got {len(self.data)}",
            )
        return TensorType(self.dtype, ())

    @classmethod
    def of(cls, value: complex | np.generic, dtype: DType) -> Constant:
        """The constant of `dtype` nearest to `value`.

        Raises
        ------
        InvalidArgument
            What is no number or no dtype, a real dtype for a complex value, or an integer dtype for what is no integer in its
            range.
        """
        if not isinstance(dtype, DType):
            raise InvalidArgument(op=cls.__name__, argument="dtype", detail=f"{dtype!r} is no DType")
        number: Any = value.item() if isinstance(value, np.generic) else value
        if not issubclass(type(number), (int, float, complex)):
            raise InvalidArgument(op=cls.__name__, argument="value", detail=f"{type(value).__name__} is no number")
        if isinstance(number, complex) and not dtype.is_complex and dtype is not DType.Bool:
            raise InvalidArgument(op=cls.__name__, argument="value", detail=f"{number} is complex, {dtype} is not")
        if dtype.is_int:
            least, greatest = dtype.limits
            if not least <= number <= greatest or number != int(number):
                raise InvalidArgument(op=cls.__name__, argument="value", detail=f"{number} is no {dtype}")
        with np.errstate(all="ignore"):  # beyond the range of F32 the nearest is infinity
            if isinstance(value, int) and (dtype.is_float or dtype.is_complex):
                value = _as_float(value, exact=dtype.real is DType.F64)
            array = np.asarray(value)
            narrow = dtype.is_narrow_float and array.dtype != dtype.numpy
            return cls(dtype, (narrowed(dtype, array) if narrow else array.astype(dtype.numpy)).tobytes())

    @property
    def value(self) -> np.generic:
        """The value as a NumPy scalar; a nonzero Bool byte is true."""
        raw = bytes([int(self.data != b"\0")]) if self.dtype is DType.Bool else self.data
        scalar: np.generic = np.frombuffer(raw, self.dtype.numpy)[0]
        return scalar


def _as_float(number: int, *, exact: bool) -> float:
    """The nearest float; if not `exact`, one that is odd where digits are lost, so that rounding it again is rounding once."""
    size, sign = abs(number), -1.0 if number < 0 else 1.0
    lost = max(0, size.bit_length() - 53)
    if not exact and 0 < lost <= 1024 - 53:
        return sign * math.ldexp(float(size >> lost | (size & (1 << lost) - 1 != 0)), lost)
    try:
        return float(number)
    except OverflowError:
        return sign * math.inf


class ExtensionFamily(Protocol):
    """What an op asks of its family: `tenferro_ref.extensions.Family` has the rest."""

    def result_types(self, op: Extension, inputs: tuple[TensorType, ...], /) -> tuple[TensorType, ...]:
        """One type an output."""
        ...

    def equal_extents(self, op: Extension, inputs: tuple[TensorType, ...], /) -> Iterable[tuple[Extent, Extent]]:
        """Extents that must be equal, of operands that `result_types` has accepted."""
        ...


#: Other ids of families, as newer engines write them (SEMANTICS C.1): an op has the id on the right.
FAMILY_ALIASES = {"tenferro.einsum.v1": "tenferro-einsum.einsum.v1"}
#: Families by id; `tenferro_ref.extensions.register` enters them.
FAMILIES: Table[ExtensionFamily] = Table("extension families")


#: Group of entry points, one a family that a distribution brings: its id, and the object whose module registers it.
GROUP = "tenferro_ref.extension_families"
#: Nesting of a configuration.
CONFIG_DEPTH = 32


def nesting(config: Any) -> int:
    """How deep a JSON value is nested; 0 for what is no object and no array."""
    inner = config.values() if isinstance(config, dict) else config if isinstance(config, list) else None
    return 0 if inner is None else 1 + max(map(nesting, inner), default=0)


def _canonical(config: Any) -> str:
    """The text of a configuration; ValueError for what program JSON does not hold."""
    if not isinstance(config, dict):
        text = json.dumps(config)
        raise ValueError(text if len(text) <= 60 else f"{text[:57]}...")
    for key, value in config.items():  # `allow_nan` does not name them
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{key}: {value} is no JSON number")
    if nesting(config) > CONFIG_DEPTH:
        raise ValueError(f"nested more than {CONFIG_DEPTH} deep")
    return json.dumps(config, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _brought() -> EntryPoints:
    """The families that installed distributions bring."""
    from importlib.metadata import entry_points  # most programs have families that are there, or none

    return entry_points(group=GROUP)


@dataclass(frozen=True, slots=True)
class Extension(Op):
    """Operation `op` of the family `family` ("<crate>.<name>.v<major>"), with its configuration.

    `config` is kept as its canonical JSON text, so that equal configurations are equal ops.
    """

    family: str
    op: str
    config: str = "{}"
    category: ClassVar = Category.FFI
    arity: ClassVar = 0
    variadic: ClassVar = True
    same_dtype: ClassVar = 0

    def __post_init__(self) -> None:
        """Refuse a configuration that is no JSON object; InvalidArgument."""
        Op.__post_init__(self)
        object.__setattr__(self, "family", FAMILY_ALIASES.get(self.family, self.family))
        try:
            object.__setattr__(self, "config", _canonical(json.loads(self.config)))
        except (ValueError, RecursionError) as error:
            detail = f"not a JSON object that a file can hold: {error}"
            raise InvalidArgument(op=self.op, argument="config", detail=detail) from None

    @classmethod
    def of(cls, family: str, op: str, config: Mapping[str, Any]) -> Extension:
        """The op with its configuration as JSON values.

        Raises
        ------
        InvalidArgument
            A value that JSON has not.
        """
        try:
            text = json.dumps(config)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument(op=op, argument="config", detail=str(error)) from None
        return cls(family, op, text)

    @property
    def key(self) -> tuple[str, str]:
        """What the op's rows are under in tables of extension ops."""
        return self.family, self.op

    def infer(self, policy: Policy, *inputs: TensorType) -> tuple[TensorType, ...]:
        if self.family not in FAMILIES:
            self._import_family()
        if self.family not in FAMILIES:
            hint = did_you_mean(self.family, {*FAMILIES, *_brought().names})
            raise UnsupportedOp(
                op=self.name,
                reason=f"extension family {self.family!r} is not registered; import the package that brings it{hint}",
            )
        return FAMILIES[self.family].result_types(self, inputs)

    def _import_family(self) -> None:
        """Import what brings the family: a program that names it can be read whatever was imported before."""
        for entry in _brought().select(name=self.family):
            try:
                entry.load()
            except (ImportError, AttributeError) as error:
                reason = f"extension family {self.family!r}: {entry.value} cannot be imported: {error}"
                raise UnsupportedOp(op=self.name, reason=reason) from error
