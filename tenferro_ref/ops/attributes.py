"""What Python objects the attributes of ops are, by the annotations of their fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from reprlib import repr
from typing import TYPE_CHECKING, Any

from tenferro_ref.dims import DimOp, InputDim
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
class AttributeType:
    """The objects that an attribute may be, and what an error calls them."""

    words: str
    admits: Callable[[object], bool]


def _exactly(kind: type) -> Callable[[object], bool]:
    """A bool is no int, and NumPy's integers are none: a program is printed, hashed and compared by its attributes."""
    return lambda value: type(value) is kind


def _tuple_of(*types: type) -> Callable[[object], bool]:
    admitted = frozenset(types)
    return lambda value: isinstance(value, tuple) and admitted.issuperset(map(type, value))


#: By annotation, so that a new op needs nothing here.
ATTRIBUTE_TYPES = {
    "int": AttributeType("an int", _exactly(int)),
    "bool": AttributeType("a bool", _exactly(bool)),
    "str": AttributeType("a str", _exactly(str)),
    "bytes": AttributeType("bytes", _exactly(bytes)),
    "DType": AttributeType("a DType, such as DType.F64", _exactly(DType)),
    "CompareDir": AttributeType("a CompareDir, such as CompareDir.Lt", _exactly(CompareDir)),
    "tuple[int, ...]": AttributeType("a tuple of ints", _tuple_of(int)),
    "tuple[DimExpr, ...]": AttributeType("a tuple of ints and dim expressions", _tuple_of(int, InputDim, DimOp)),
}


@cache  # for each op made: `fields` alone takes longer than the rest
def _attributes_of(op: type[Op]) -> tuple[tuple[str, AttributeType], ...]:
    return tuple((field.name, ATTRIBUTE_TYPES[str(field.type)]) for field in fields(op))


def check_attributes(op: Op) -> None:
    """Check that each attribute is an object of the type that it is declared with.

    Raises
    ------
    InvalidArgument
        An attribute of another type, such as a list where a tuple belongs.
    """
    kind: Any = type(op)
    for name, expected in _attributes_of(kind):
        value = getattr(op, name)
        if not expected.admits(value):
            raise InvalidArgument(op=op.name, argument=name, detail=f"{repr(value)} is not {expected.words}")
