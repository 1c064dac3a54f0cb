"""Arrays as XLA's `LiteralProto`: shape, layout, and the elements in a field of their type."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, UnsupportedDType
from tenferro_ref.pjrt.hlo import ELEMENTS
from tenferro_ref.pjrt.proto import MESSAGES
from tenferro_ref.tensor import Array, column_major

_WHERE = "a literal"
_FIELDS = MESSAGES["LiteralProto"].DESCRIPTOR.fields_by_name
_TUPLE = "tuple"
#: Dtypes by the number of their `PrimitiveType`; those whose elements have a field here.
_DTYPES = {
    number: dtype
    for number, name in ELEMENTS.items()
    for dtype in DType
    if dtype.value.pjrt.lower() == name and f"{name}s" in _FIELDS
}
_NUMBERS = {dtype: number for number, dtype in _DTYPES.items()}


def literal(array: Array) -> Any:
    """The `LiteralProto` of an array, in row-major layout.

    Raises
    ------
    UnsupportedDType
        Its dtype is none of Bool, the integers of 8 to 64 bits, F16, BF16, F32, F64, C32 and C64, in the machine's byte order.
    """
    try:
        dtype = DType.of(array)
    except KeyError:
        raise UnsupportedDType(dtype=str(array.dtype), context=_WHERE) from None
    if dtype not in _NUMBERS:
        raise UnsupportedDType(dtype=dtype.name, context=_WHERE)
    shape = {
        "element_type": _NUMBERS[dtype], "dimensions": array.shape,
        "layout": {"minor_to_major": range(array.ndim)[::-1]},
    }  # fmt: skip
    flat, field = np.ascontiguousarray(array).reshape(-1), _field(dtype)
    if _is_bytes(field):
        return MESSAGES["LiteralProto"](shape=shape, **{field: flat.tobytes()})
    return MESSAGES["LiteralProto"](shape=shape, **{field: flat.view(_stored(dtype)).tolist()})


def arrays(literal: Any) -> list[Array]:
    """The array of a `LiteralProto`, or the arrays of a tuple; column-major.

    Raises
    ------
    FormatError
        An element type that is not supported here, a layout that is no order of the axes, or elements that are not as many as the shape has.
    """
    if ELEMENTS.get(literal.shape.element_type) == _TUPLE:
        return [array for part in literal.tuple_literals for array in arrays(part)]
    dtype, shape = _DTYPES.get(literal.shape.element_type), tuple(literal.shape.dimensions)
    if dtype is None:
        raise FormatError(_WHERE, f"element type {literal.shape.element_type} is not supported here")
    order = tuple(literal.shape.layout.minor_to_major) or tuple(range(len(shape))[::-1])
    if sorted(order) != list(range(len(shape))):
        raise FormatError(_WHERE, f"its layout is {list(order)}, for {len(shape)} axes")
    field = _field(dtype)
    stored = getattr(literal, field)
    if _is_bytes(field):
        size, flat = len(stored), np.frombuffer(stored, dtype.numpy) if len(stored) % dtype.itemsize == 0 else None
    else:
        values = np.array(stored, _stored(dtype))
        size, flat = values.nbytes, values.view(dtype.numpy) if values.nbytes % dtype.itemsize == 0 else None
    if flat is None or min(shape, default=0) < 0 or flat.size != np.prod(shape, dtype=object):
        raise FormatError(_WHERE, f"{size} bytes of {dtype.name}, for the shape {list(shape)}")
    in_order = flat.reshape([shape[axis] for axis in order], order="F")
    return [column_major(np.transpose(in_order, np.argsort(order)))]


def _field(dtype: DType) -> str:
    return f"{dtype.value.pjrt.lower()}s"


def _is_bytes(field: str) -> bool:
    return bool(_FIELDS[field].type == _FIELDS[field].TYPE_BYTES)


def _stored(dtype: DType) -> np.dtype[np.generic]:
    """Of what the repeated field has elements: a complex number is two."""
    return dtype.real.numpy if dtype.is_complex else dtype.numpy
