"""The C ABI of XLA's foreign function interface, by which a program calls back into this process (custom calls).

Lives here: layout only, as in `xla/ffi/api/c_api.h` (0.3, which jaxlib ships) and in the FFI extension of PJRT; tests compare both.
Does not live here: what a call means (`ffi`).
"""

from __future__ import annotations

from ctypes import Structure, c_int, c_int64, c_size_t, c_void_p
from typing import Any

API_MAJOR, API_MINOR = 0, 1
"""What is announced to a plugin: the oldest minor version that has all that is used here."""
EXTENSION = "FFI"
METADATA = 1
STAGE_EXECUTE = 3
BUFFER = 1

_C = {"": c_void_p, "size": c_size_t, "i64": c_int64, "int": c_int}


def _struct(name: str, members: str) -> type[Structure]:
    """A struct from "name:type ...", where a name without a type is a pointer."""
    fields = [(field, _C[kind] if kind in _C else STRUCTS[kind]) for field, _, kind in map(_split, members.split())]
    return type(name, (Structure,), {"_fields_": fields})


def _split(member: str) -> tuple[str, str, str]:
    return member.partition(":")


#: By the header's name. `struct_size` and `extension_start` are written out, since some of these have neither.
STRUCTS: dict[str, Any] = {}
_SIZED = "struct_size:size extension_start"
for _name, _members in {
    "PJRT_Extension_Base": "struct_size:size type:int next",
    "PJRT_FFI_Extension": "base:PJRT_Extension_Base type_register user_data_add register_handler",
    # the one argument struct of PJRT without an extension chain
    "PJRT_FFI_Register_Handler_Args": (
        "struct_size:size target_name target_name_size:size handler platform_name platform_name_size:size traits:int"
    ),
    "XLA_FFI_Extension_Base": "struct_size:size type:int next",
    "XLA_FFI_Api_Version": f"{_SIZED} major_version:int minor_version:int",
    "XLA_FFI_Metadata": "struct_size:size api_version:XLA_FFI_Api_Version traits:int",
    "XLA_FFI_Metadata_Extension": "extension_base:XLA_FFI_Extension_Base metadata",
    "XLA_FFI_Error_Create_Args": f"{_SIZED} message errc:int",
    "XLA_FFI_Buffer": f"{_SIZED} dtype:int data rank:i64 dims",
    "XLA_FFI_ByteSpan": "ptr len:size",
    "XLA_FFI_Scalar": "dtype:int value",
    "XLA_FFI_Array": "dtype:int size:size data",
    "XLA_FFI_Args": f"{_SIZED} size:i64 types args",
    "XLA_FFI_Rets": f"{_SIZED} size:i64 types rets",
    "XLA_FFI_Attrs": f"{_SIZED} size:i64 types names attrs",
    "XLA_FFI_CallFrame": (f"{_SIZED} api ctx stage:int args:XLA_FFI_Args rets:XLA_FFI_Rets attrs:XLA_FFI_Attrs"),
    "XLA_FFI_Api": f"{_SIZED} api_version:XLA_FFI_Api_Version internal_api XLA_FFI_Error_Create",
}.items():
    STRUCTS[_name] = _struct(_name, _members)

ATTRIBUTE_ARRAY, ATTRIBUTE_DICTIONARY, ATTRIBUTE_SCALAR, ATTRIBUTE_STRING = 1, 2, 3, 4

#: XLA_FFI_DataType by number, with PJRT's names; the two enumerations number differently.
DATA_TYPES = {
    0: "INVALID", 1: "PRED", 2: "S8", 3: "S16", 4: "S32", 5: "S64", 6: "U8", 7: "U16", 8: "U32", 9: "U64", 10: "F16",
    11: "F32", 12: "F64", 15: "C64", 16: "BF16", 17: "TOKEN", 18: "C128", 19: "F8E5M2", 20: "F8E4M3FN", 21: "S4",
    22: "U4", 23: "F8E4M3B11FNUZ", 24: "F8E5M2FNUZ", 25: "F8E4M3FNUZ", 26: "S2", 27: "U2", 28: "F8E4M3", 29: "F8E3M4",
    30: "S1", 31: "U1", 32: "F4E2M1FN", 33: "F8E8M0FNU",
}  # fmt: skip
