"""What a plugin made of a program: the instructions of an optimised HLO module.

Lives here: a reader of protobuf's wire format, strict and no longer than needed, and the few fields of `hlo.proto` that say
which instructions there are. Does not live here: asking the plugin (`executable`). By hand as the encoder in `options` is:
the messages come with TensorFlow only, and their text needs XLA.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tenferro_ref.errors import FormatError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WHERE = "optimised program"

#: Names of `PrimitiveType` (xla_data.proto), as HLO's text writes them, by number.
_ELEMENTS = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32", 12: "f64",
    13: "tuple", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128",
}  # fmt: skip


class HloInstruction(NamedTuple):
    """One instruction of a module, those of its fusions and reducers included.

    Attributes
    ----------
    opcode
        As HLO's text has it: "add", "dot", "fusion", ...
    element
        Element type of the result: "pred", "s32", "f64", "c128", ..., "tuple".
    detail
        Kind of a fusion, target of a custom call, else "".
    """

    opcode: str
    element: str
    detail: str


def instructions(program: bytes, format: str) -> list[HloInstruction]:
    """The instructions of what `Executable.optimized_program` gave.

    Raises
    ------
    FormatError
        Another format than "hlo" (HloModuleProto) or "hlo_with_config", or bytes that are no such message.
    """
    module = program
    if format == "hlo_with_config":
        module = next((value for number, value in _messages(program) if number == 1), b"")
    elif format != "hlo":
        raise FormatError(_WHERE, f"its format is {format!r}, expected 'hlo' or 'hlo_with_config'")
    found = [
        _instruction(instruction)
        for number, computation in _messages(module)
        if number == 3
        for field, instruction in _messages(computation)
        if field == 2
    ]
    if not found:
        raise FormatError(_WHERE, "it has no instructions")
    return found


def _instruction(data: bytes) -> HloInstruction:
    opcode = detail = ""
    element = 0
    for number, value in _fields(data):
        if number == 2:
            opcode = _text(value)
        elif number == 3:
            element = next((v for n, v in _fields(_bytes(value)) if n == 2 and isinstance(v, int)), 0)
        elif number in (11, 28):
            detail = _text(value)
    if not opcode:
        raise FormatError(_WHERE, "an instruction has no opcode")
    return HloInstruction(opcode, _ELEMENTS.get(element, f"type {element}"), detail)


def _text(value: int | bytes) -> str:
    try:
        return str(_bytes(value), "utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(_WHERE, f"a name is not UTF-8: {error}") from None


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise FormatError(_WHERE, "a number where a text or message is expected")
    return value


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields that may be messages."""
    return ((number, value) for number, value in _fields(data) if not isinstance(value, int))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of a message's fields, in order."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise FormatError(_WHERE, f"wire type {wire} of field {number} is none that proto3 writes")
        if size > end - at or not number:
            raise FormatError(_WHERE, f"field {number} of {size} bytes where {end - at} are left")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned 64-bit integer and where the next field begins."""
    value = shift = 0
    for byte in data[at : at + 10]:
        at += 1
        if byte < 0x80:
            return value | byte << shift, at
        value |= (byte & 0x7F) << shift
        shift += 7
    raise FormatError(_WHERE, "a number has no end")
