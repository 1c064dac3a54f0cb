"""Record the layout of the newest PJRT header: `python -m tools.pjrt_layout > tests/pjrt/layout_0_114.txt`.

The facts are from the package `pypjrt` (pip install pypjrt==0.1.1), whose tables libclang read from OpenXLA's header. Only what
this project's client uses is written, one fact a line: "struct.member offset size", "struct.STRUCT_SIZE bytes", "enumerator value".
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from tenferro_ref.pjrt import abi, ffi_abi

STRUCTS = {f"PJRT_{name}": kind for name, kind in abi.STRUCTS.items() if name != "Value"}
STRUCTS |= {f"PJRT_{name}_Args": kind for name, kind in abi.ARGS.items()}
STRUCTS |= ffi_abi.STRUCTS
ENUMS: dict[str, dict[int, str]] = {
    "PJRT_Error_Code_": dict(enumerate(abi.ERROR_CODES)),
    "PJRT_Buffer_Type_": dict(enumerate(abi.BUFFER_TYPES)),
    "PJRT_NamedValue_": dict(enumerate(abi.NAMED_VALUE_TYPES)),
    "PJRT_Extension_Type_": dict(enumerate(abi.EXTENSION_TYPES)),
    "XLA_FFI_DataType_": ffi_abi.DATA_TYPES,
}


def facts(header: Any) -> Iterator[str]:
    """What a module of pypjrt says of the structs and enumerations that the client uses."""
    yield f"version {header.PJRT_API_MAJOR}.{header.PJRT_API_MINOR}"
    for name in STRUCTS:
        struct = getattr(header, name)
        if hasattr(header, f"{name}_STRUCT_SIZE"):
            yield f"{name}.STRUCT_SIZE {getattr(header, f'{name}_STRUCT_SIZE')}"
        for member, *_ in struct._fields_:
            yield f"{name}.{member} {getattr(struct, member).offset} {getattr(struct, member).size}"
    for prefix in ENUMS:
        values = {
            name: number for name, number in vars(header).items() if name.startswith(prefix) and "SIZE" not in name
        }
        yield from (f"{name} {number}" for name, number in sorted(values.items(), key=lambda item: item[1]))


if __name__ == "__main__":
    print("\n".join(facts(importlib.import_module("pypjrt._abi.pjrt_0_114"))))
