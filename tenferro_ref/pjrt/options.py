"""Options as the C API wants them: CompileOptionsProto in protobuf's wire format, client options as PJRT_NamedValue.

Lives here: encoding and its checks. Does not live here: which options a lane sets. The encoder is by hand because the
message is small and a protobuf runtime would be a dependency; `compile_options.proto` of OpenXLA has the field numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from tenferro_ref.errors import InvalidArgument
from tenferro_ref.pjrt import abi
from tenferro_ref.pjrt.discovery import Option

_VARINT, _FIXED64, _BYTES = 0, 1, 2


def encode_compile_options(
    overrides: Mapping[str, Option] | None = None,
    *,
    num_replicas: int = 1,
    num_partitions: int = 1,
    device_ordinal: int = 0,
) -> bytes:
    """A serialised CompileOptionsProto; the same options give the same bytes.

    Parameters
    ----------
    overrides
        XLA flags for this executable (`env_option_overrides`), for instance `{"xla_cpu_enable_fast_min_max": False}`.
        A flag that the plugin does not know is an error of the compile.
    num_replicas, num_partitions
        At least 1: plugins abort the process on 0, which is also what empty bytes mean.
    device_ordinal
        The device to compile for.

    Raises
    ------
    InvalidArgument
        If a number is out of range, or an override is not a string, bool, 64-bit integer or float.
    """
    for name, count, least in (
        ("num_replicas", num_replicas, 1),
        ("num_partitions", num_partitions, 1),
        ("device_ordinal", device_ordinal, 0),
    ):
        if not least <= count < 2**31:
            raise InvalidArgument("compile options", name, f"{count} is not in [{least}, 2**31)")
    build = b"".join(
        _field(number, _VARINT, _varint(value))
        for number, value in ((1, device_ordinal), (4, num_replicas), (5, num_partitions))
        if value
    )
    return _message(3, build) + b"".join(
        _message(7, _message(1, _utf8(name, name)) + _message(2, _override(name, value)))
        for name, value in sorted((overrides or {}).items())
    )


def _override(name: str, value: Option) -> bytes:
    """OptionOverrideProto: one of string 1, bool 2, int64 3, double 4."""
    match value:
        case bool():  # before int, which bool is too
            return _field(2, _VARINT, _varint(int(value)))
        case str():
            return _message(1, _utf8(name, value))
        case int() if -(2**63) <= value < 2**63:
            return _field(3, _VARINT, _varint(value % 2**64))
        case float():
            return _field(4, _FIXED64, struct.pack("<d", value))
    raise InvalidArgument("compile options", name, f"{value!r} is not a string, bool, 64-bit integer or float")


def _utf8(name: str, value: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument("compile options", ascii(name), f"{value!a} is not valid Unicode text") from None


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, wire_type: int, payload: bytes) -> bytes:
    return _varint(number << 3 | wire_type) + payload


def _message(number: int, payload: bytes) -> bytes:
    return _field(number, _BYTES, _varint(len(payload)) + payload)


def named_values(options: Mapping[str, Option]) -> tuple[Any, list[bytes]]:
    """An array of PJRT_NamedValue, and the strings that must stay alive as long as it is used.

    Raises
    ------
    InvalidArgument
        If a value is not a string, bool, 64-bit integer or float.
    """
    kind = abi.STRUCTS["NamedValue"]
    array = (kind * len(options))()
    keep: list[bytes] = []
    for item, (name, value) in zip(array, options.items(), strict=True):
        keep.append(name.encode())
        item.struct_size, item.name, item.name_size = kind.STRUCT_SIZE, abi.address(keep[-1]), len(keep[-1])
        item.value_size = 1
        match value:
            case bool():
                item.type, item.value.bool_value = abi.NAMED_VALUE_TYPES.index("kBool"), value
            case str():
                keep.append(value.encode())
                item.type, item.value.string_value = abi.NAMED_VALUE_TYPES.index("kString"), abi.address(keep[-1])
                item.value_size = len(keep[-1])
            case int() if -(2**63) <= value < 2**63:
                item.type, item.value.int64_value = abi.NAMED_VALUE_TYPES.index("kInt64"), value
            case float():
                item.type, item.value.float_value = abi.NAMED_VALUE_TYPES.index("kFloat"), value
            case _:
                raise InvalidArgument(
                    "client options", name, f"{value!r} is not a string, bool, 64-bit integer or float"
                )
    return array, keep
