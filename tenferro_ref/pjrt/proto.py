"""XLA's protobuf messages, with those of their fields that are used here.

From OpenXLA: `CompileOptionsProto` and what is in it (xla/pjrt/proto/compile_options.proto), `HloModuleProtoWithConfig`
(xla/service/hlo.proto), `ShapeProto` and `LiteralProto` (xla/xla_data.proto), `RunHloModuleLiterals`
(xla/tools/run_hlo_module.proto). Fields that are not listed are skipped when a message is read.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import Edition, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

#: "name:number:type" of each field; a type is one of protobuf's or a message of this table, repeated if `*` stands before it.
_MESSAGES = {
    "OptionOverrideProto": "string_field:1:string bool_field:2:bool int64_field:3:int64 double_field:4:double",
    "ExecutableBuildOptionsProto": "device_ordinal:1:int64 num_replicas:4:int64 num_partitions:5:int64",
    # a map travels as a repeated message like this one
    "EnvOptionOverridesEntry": "key:1:string value:2:OptionOverrideProto",
    "CompileOptionsProto": (
        "executable_build_options:3:ExecutableBuildOptionsProto env_option_overrides:7:*EnvOptionOverridesEntry"
    ),
    "LayoutProto": "minor_to_major:1:*int64",
    "ShapeProto": "element_type:2:int32 dimensions:3:*int64 layout:5:LayoutProto",
    "LiteralProto": (
        "shape:1:ShapeProto preds:2:*bool u8s:3:bytes s32s:4:*int32 s64s:5:*int64 u32s:6:*uint32 u64s:7:*uint64 f32s:8:*float "
        "f64s:9:*double tuple_literals:10:*LiteralProto f16s:11:bytes c64s:12:*float bf16s:13:bytes s8s:15:bytes "
        "u16s:16:bytes s16s:17:bytes c128s:18:*double"
    ),
    "RunHloModuleIterationLiterals": "arguments:2:*LiteralProto result:3:LiteralProto",
    "RunHloModuleLiterals": "iterations:1:*RunHloModuleIterationLiterals",
    "HloInstructionProto": (
        "opcode:2:string shape:3:ShapeProto literal:8:LiteralProto fusion_kind:11:string custom_call_target:28:string"
    ),
    "HloComputationProto": "instructions:2:*HloInstructionProto",
    "HloModuleProto": "computations:3:*HloComputationProto",
    "HloModuleProtoWithConfig": "hlo_module:1:HloModuleProto",
}


def _classes() -> dict[str, Any]:
    # the edition gives every field presence, so that an option that is 0 or "" is written too, and checks strings for UTF-8
    file = FileDescriptorProto(name="tenferro_ref/pjrt.proto", syntax="editions", edition=Edition.EDITION_2023)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields.split():
            field, number, kind = text.split(":")
            label = FieldDescriptorProto.LABEL_REPEATED if kind[0] == "*" else FieldDescriptorProto.LABEL_OPTIONAL
            declared = message.field.add(name=field, number=int(number), label=label)
            if (kind := kind.lstrip("*")) in _MESSAGES:
                declared.type, declared.type_name = FieldDescriptorProto.TYPE_MESSAGE, kind
            else:
                declared.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    pool = DescriptorPool()
    pool.Add(file)
    return {name: GetMessageClass(pool.FindMessageTypeByName(name)) for name in _MESSAGES}


#: Message classes by name.
MESSAGES = _classes()
