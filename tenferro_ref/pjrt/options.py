"""Options as the C API wants them: a serialised CompileOptionsProto, and client options as PJRT_NamedValue.

Lives here: encoding and its checks. Does not live here: which options a lane sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenferro_ref.errors import InvalidArgument
from tenferro_ref.pjrt import abi
from tenferro_ref.pjrt.discovery import Option
from tenferro_ref.pjrt.proto import MESSAGES


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
    options = MESSAGES["CompileOptionsProto"]()
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = num_replicas, num_partitions
    if device_ordinal:
        build.device_ordinal = device_ordinal
    for name, value in sorted((overrides or {}).items()):
        kind = _kind("compile options", name, value)
        try:
            options.env_option_overrides.add(key=name, value={_OVERRIDES[kind]: value})
        except UnicodeEncodeError:
            detail = f"{value!a} is not valid Unicode text"
            raise InvalidArgument("compile options", ascii(name), detail) from None
    return bytes(options.SerializeToString())


_OVERRIDES = {"kString": "string_field", "kBool": "bool_field", "kInt64": "int64_field", "kFloat": "double_field"}


def _kind(what: str, name: str, value: Option) -> str:
    """What the C API calls the type of an option's value."""
    match value:
        case bool():  # before int, which bool is too
            return "kBool"
        case str():
            return "kString"
        case int() if -(2**63) <= value < 2**63:
            return "kInt64"
        case float():
            return "kFloat"
    raise InvalidArgument(what, name, f"{value!r} is not a string, bool, 64-bit integer or float")


def encoded(what: str, name: str, text: str) -> bytes:
    """Text as UTF-8; InvalidArgument where it is none."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(what, ascii(name), f"{text!a} is not valid Unicode text") from None


def named_values(options: Mapping[str, Option]) -> tuple[Any, list[bytes]]:
    """An array of PJRT_NamedValue, and the strings that must stay alive as long as it is used.

    Raises
    ------
    InvalidArgument
        If a value is not a string, bool, 64-bit integer or float.
    """
    struct = abi.STRUCTS["NamedValue"]
    array = (struct * len(options))()
    keep: list[bytes] = []
    for item, (name, value) in zip(array, options.items(), strict=True):
        kind = _kind("client options", name, value)
        keep.append(encoded("client options", name, name))
        item.struct_size, item.name, item.name_size = struct.STRUCT_SIZE, abi.address(keep[-1]), len(keep[-1])
        item.type, item.value_size = abi.NAMED_VALUE_TYPES.index(kind), 1
        if isinstance(value, str):
            keep.append(encoded("client options", name, value))
            item.value.string_value, item.value_size = abi.address(keep[-1]), len(keep[-1])
        else:
            setattr(item.value, _MEMBERS[kind], value)
    return array, keep


_MEMBERS = {"kInt64": "int64_value", "kFloat": "float_value", "kBool": "bool_value"}
