"""What Python objects the attributes of ops are, by the annotations of their fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from reprlib import repr
from typing import TYPE_CHECKING

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


def _is_int(value: object) -> bool:
    # neither bool nor NumPy's integers: a program is printed, hashed and compared by its attributes
    return type(value) is int


def _is_extent(value: object) -> bool:
    return type(value) is int or isinstance(value, (InputDim, DimOp))


def _tuple_of(admits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, tuple) and all(map(admits, value))


#: By annotation, so that a new op needs nothing here.
ATTRIBUTE_TYPES = {
    "int": AttributeType("an int", _is_int),
    "bool": AttributeType("a bool", lambda value: isinstance(value, bool)),
    "str": AttributeType("a str", lambda value: isinstance(value, str)),
    "bytes": AttributeType("bytes", lambda value: isinstance(value, bytes)),
    "DType": AttributeType("a DType, such as DType.F64", lambda value: isinstance(value, DType)),
    "CompareDir": AttributeType("a CompareDir, such as CompareDir.Lt", lambda value: isinstance(value, CompareDir)),
    "tuple[int, ...]": AttributeType("a tuple of ints", _tuple_of(_is_int)),
    "tuple[DimExpr, ...]": AttributeType("a tuple of ints and dim expressions", _tuple_of(_is_extent)),
}


def check_attributes(op: Op) -> None:
    """Check that each attribute is an object of the type that it is declared with.

    Raises
    ------
    InvalidArgument
        An attribute of another type, such as a list where a tuple belongs.
    """
    for field in fields(op):
        expected = ATTRIBUTE_TYPES[str(field.type)]
        value = getattr(op, field.name)
        if not expected.admits(value):
            raise InvalidArgument(op=op.name, argument=field.name, detail=f"{repr(value)} is not {expected.words}")
