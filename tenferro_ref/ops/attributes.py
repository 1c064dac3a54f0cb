"""What Python objects the fields of ops and programs are, by their annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from reprlib import repr
from typing import TYPE_CHECKING, Any

from tenferro_ref.dims import INT_LEAST, INT_LIMIT, USIZE_MAX, DimOp, InputDim, is_integer
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument

if TYPE_CHECKING:
    from tenferro_ref.ops.base import Op


class CompareDir(Enum):
    """Directions of Compare; there is no Ne (SEMANTICS 0)."""

    Eq = "Eq"
    Lt = "Lt"
    Le = "Le"
    Gt = "Gt"
    Ge = "Ge"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class FieldType:
    """The objects that a field may be, and what an error calls them."""

    words: str
    admits: Callable[[object], bool]


def exactly(kind: type) -> Callable[[object], bool]:
    """A bool is no int, and NumPy's integers are none: a program is printed, hashed and compared by its attributes."""
    return lambda value: type(value) is kind


def tuple_of(*types: type) -> Callable[[object], bool]:
    admitted = frozenset(types)
    return lambda value: isinstance(value, tuple) and admitted.issuperset(map(type, value))


def integers_or(*types: type, most: int = INT_LIMIT) -> Callable[[object], bool]:
    """As `tuple_of`, with integers beside `types`."""

    def admits(value: object) -> bool:
        if not isinstance(value, tuple):
            return False
        for entry in value:  # `is_integer`, written out: this is for each op that is made
            if type(entry) is not int:
                if type(entry) not in types:
                    return False
            elif not INT_LEAST <= entry <= most:
                return False
        return True

    return admits


#: By annotation, so that a new op needs nothing here.
ATTRIBUTE_TYPES = {
    "int": FieldType("an int of 64 bits", is_integer),
    "bool": FieldType("a bool", exactly(bool)),
    "str": FieldType("a str", exactly(str)),
    "bytes": FieldType("bytes", exactly(bytes)),
    "DType": FieldType("a DType, such as DType.F64", exactly(DType)),
    "CompareDir": FieldType("a CompareDir, such as CompareDir.Lt", exactly(CompareDir)),
    "tuple[int, ...]": FieldType("a tuple of ints of 64 bits", integers_or()),
    "tuple[DimExpr, ...]": FieldType(
        "a tuple of ints of 64 bits and dim expressions", integers_or(InputDim, DimOp, most=USIZE_MAX)
    ),
}


def field_types(kind: Any, known: Mapping[str, FieldType]) -> tuple[tuple[str, FieldType], ...]:
    """Names and types of a dataclass's fields; `known` is by annotation."""
    return tuple((field.name, known[str(field.type)]) for field in fields(kind))


def misfit(value: object, declared: Iterable[tuple[str, FieldType]]) -> tuple[str, str] | None:
    """Name of the first field whose object is not of its declared type, and what an error says of it."""
    for name, expected in declared:
        entry = getattr(value, name)
        if not expected.admits(entry):
            return name, f"{repr(entry)} is not {expected.words}"
    return None


@cache  # for each op made: `fields` alone takes longer than the rest
def _attributes_of(op: type[Op]) -> tuple[tuple[str, FieldType], ...]:
    return field_types(op, ATTRIBUTE_TYPES)


def check_attributes(op: Op) -> None:
    """Check that each attribute is an object of the type that it is declared with.

    Raises
    ------
    InvalidArgument
        An attribute of another type, such as a list where a tuple belongs.
    """
    kind: Any = type(op)
    if wrong := misfit(op, _attributes_of(kind)):
        raise InvalidArgument(op=op.name, argument=wrong[0], detail=wrong[1])
