"""What a plugin made of a program: the instructions of an optimised HLO module.

Does not live here: asking the plugin for them (`executable`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from tenferro_ref.errors import FormatError
from tenferro_ref.pjrt.proto import MESSAGES

_WHERE = "optimised program"

#: Names of `PrimitiveType` (xla_data.proto), as HLO's text writes them, by number.
ELEMENTS = {
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
    if format not in ("hlo", "hlo_with_config"):
        raise FormatError(_WHERE, f"its format is {format!r}, expected 'hlo' or 'hlo_with_config'")
    try:
        if format == "hlo":
            module = MESSAGES["HloModuleProto"].FromString(program)
        else:
            module = MESSAGES["HloModuleProtoWithConfig"].FromString(program).hlo_module
    except DecodeError as error:
        raise FormatError(_WHERE, f"not a protobuf message of that kind: {error}") from None
    read = [_instruction(i) for computation in module.computations for i in computation.instructions]
    if not read:
        raise FormatError(_WHERE, "it has no instructions")
    return read


def _instruction(message: Any) -> HloInstruction:
    if not message.opcode:
        raise FormatError(_WHERE, "an instruction has no opcode")
    element = message.shape.element_type
    return HloInstruction(
        message.opcode, ELEMENTS.get(element, f"type {element}"), message.custom_call_target or message.fusion_kind
    )
