"""The PJRT C ABI as ctypes sees it: the structs that this client uses, the function table, the enumerations.

Lives here: layout only, as in `pjrt_c_api.h`. A test compares every offset with the oldest supported header (0.81, which a
plugin's package ships) and with the newest (0.114, `tests/pjrt/layout_0_114.txt`). Does not live here: any call. A plugin of
another minor version has a shorter or a longer table; which functions it has follows from its `struct_size` (see `native.Api`).
A struct of ours may end before the header's: plugins take a shorter one for one of an older caller.
"""

from __future__ import annotations

from ctypes import Structure, Union, c_bool, c_char_p, c_float, c_int, c_int64, c_size_t, c_void_p, cast, sizeof
from typing import Any, ClassVar, TypeVar

API_MAJOR = 0
#: The newest minor version whose header this file was compared with.
API_MINOR = 114
#: The first minor version with today's order of functions in the table: 0.57 rearranged it.
OLDEST_MINOR = 57


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Members of PJRT_Api after its version, in order, without the prefix "PJRT_". Only ever extended at the end.
FUNCTIONS = _words(
    """
    Error_Destroy Error_Message Error_GetCode Plugin_Initialize Plugin_Attributes Event_Destroy Event_IsReady
    Event_Error Event_Await Event_OnReady Client_Create Client_Destroy Client_PlatformName Client_ProcessIndex
    Client_PlatformVersion Client_Devices Client_AddressableDevices Client_LookupDevice
    Client_LookupAddressableDevice Client_AddressableMemories Client_Compile Client_DefaultDeviceAssignment
    Client_BufferFromHostBuffer DeviceDescription_Id DeviceDescription_ProcessIndex DeviceDescription_Attributes
    DeviceDescription_Kind DeviceDescription_DebugString DeviceDescription_ToString Device_GetDescription
    Device_IsAddressable Device_LocalHardwareId Device_AddressableMemories Device_DefaultMemory
    Device_MemoryStats Memory_Id Memory_Kind Memory_DebugString Memory_ToString Memory_AddressableByDevices
    Executable_Destroy Executable_Name Executable_NumReplicas Executable_NumPartitions Executable_NumOutputs
    Executable_SizeOfGeneratedCodeInBytes Executable_GetCostAnalysis Executable_OutputMemoryKinds
    Executable_OptimizedProgram Executable_Serialize LoadedExecutable_Destroy LoadedExecutable_GetExecutable
    LoadedExecutable_AddressableDevices LoadedExecutable_Delete LoadedExecutable_IsDeleted
    LoadedExecutable_Execute Executable_DeserializeAndLoad LoadedExecutable_Fingerprint Buffer_Destroy
    Buffer_ElementType Buffer_Dimensions Buffer_UnpaddedDimensions Buffer_DynamicDimensionIndices
    Buffer_GetMemoryLayout Buffer_OnDeviceSizeInBytes Buffer_Device Buffer_Memory Buffer_Delete Buffer_IsDeleted
    Buffer_CopyToDevice Buffer_ToHostBuffer Buffer_IsOnCpu Buffer_ReadyEvent Buffer_UnsafePointer
    Buffer_IncreaseExternalReferenceCount Buffer_DecreaseExternalReferenceCount
    Buffer_OpaqueDeviceMemoryDataPointer CopyToDeviceStream_Destroy CopyToDeviceStream_AddChunk
    CopyToDeviceStream_TotalBytes CopyToDeviceStream_GranuleSize CopyToDeviceStream_CurrentBytes
    TopologyDescription_Create TopologyDescription_Destroy TopologyDescription_PlatformName
    TopologyDescription_PlatformVersion TopologyDescription_GetDeviceDescriptions TopologyDescription_Serialize
    TopologyDescription_Attributes Compile Executable_OutputElementTypes Executable_OutputDimensions
    Buffer_CopyToMemory Client_CreateViewOfDeviceBuffer Executable_Fingerprint Client_TopologyDescription
    Executable_GetCompiledMemoryStats Memory_Kind_Id ExecuteContext_Create ExecuteContext_Destroy
    Buffer_CopyRawToHost AsyncHostToDeviceTransferManager_Destroy AsyncHostToDeviceTransferManager_TransferData
    Client_CreateBuffersForAsyncHostToDevice AsyncHostToDeviceTransferManager_RetrieveBuffer
    AsyncHostToDeviceTransferManager_Device AsyncHostToDeviceTransferManager_BufferCount
    AsyncHostToDeviceTransferManager_BufferSize AsyncHostToDeviceTransferManager_SetBufferError
    AsyncHostToDeviceTransferManager_AddMetadata Client_DmaMap Client_DmaUnmap Client_CreateUninitializedBuffer
    Client_UpdateGlobalProcessInfo TopologyDescription_Deserialize Client_CreateAliasBuffer
    Client_FulfillAliasBuffer LoadedExecutable_GetDeviceAssignment Client_CreateErrorBuffer
    AsyncHostToDeviceTransferManager_TransferLiteral Buffer_CopyRawToHostFuture Device_PoisonExecution
    Device_CreateAsyncTrackingEvent AsyncTrackingEvent_Destroy Executable_GetCompileOptions
    Buffer_DonateWithControlDependency Event_Create Event_Set Device_GetAttributes Client_Load
    LoadedExecutable_AddressableDeviceLogicalIds Buffer_Bitcast Error_ForEachPayload TopologyDescription_Fingerprint
    Executable_ParameterMemoryKinds Device_ClearMemoryStats TopologyDescription_MakeCanonicalShapeForMemorySpace
    TopologyDescription_GetMemorySpaceKindIds
    """
)


class Sized(Structure):
    """A struct that begins with its own size and an extension chain, as nearly all of PJRT's do."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p)]
    # X_STRUCT_SIZE of the header: the end of the last member, without the padding that sizeof adds
    STRUCT_SIZE: ClassVar[int] = 16


S = TypeVar("S", bound=Sized)


def new(kind: type[S], **members: Any) -> S:
    """A struct with its size filled in, the given members set, and all else zero."""
    return kind(struct_size=kind.STRUCT_SIZE, **members)


def address(data: bytes) -> int | None:
    """Where the bytes of `data` are; valid as long as the caller holds `data`."""
    return cast(c_char_p(data), c_void_p).value


_C = {"": c_void_p, "size": c_size_t, "i64": c_int64, "int": c_int, "bool": c_bool}


def _sized(name: str, members: str) -> type[Sized]:
    """A struct from "name:type name ..."; a name without a type is a pointer, an enum is an int."""
    fields: list[tuple[str, Any]] = []
    for member in members.split():
        field, _, kind = member.partition(":")
        fields.append((field, _C[kind] if kind in _C else STRUCTS[kind]))
    made: type[Sized] = type(name, (Sized,), {"_fields_": fields})
    if fields:
        last = getattr(made, fields[-1][0])
        made.STRUCT_SIZE = last.offset + last.size
    return made


class Value(Union):
    """What a PJRT_NamedValue holds; which member counts is in its `type`."""

    _fields_ = [
        ("string_value", c_void_p),
        ("int64_value", c_int64),
        ("int64_array_value", c_void_p),
        ("float_value", c_float),
        ("bool_value", c_bool),
    ]


# --- structs other than the arguments of one function: header name without "PJRT_" -----------------------------------

STRUCTS: dict[str, Any] = {"Value": Value}
for _name, _members in {
    "Api_Version": "major_version:int minor_version:int",
    "NamedValue": "name name_size:size type:int value:Value value_size:size",
    "Program": "code code_size:size format format_size:size",
    "Buffer_MemoryLayout_Tiled": ("minor_to_major minor_to_major_size:size tile_dims tile_dim_sizes num_tiles:size"),
    # the header has a union of Tiled and Strides here; Tiled is the larger, and Strides no plugin accepts
    "Buffer_MemoryLayout": "tiled:Buffer_MemoryLayout_Tiled type:int",
    "ExecuteOptions": (
        "send_callbacks recv_callbacks num_send_ops:size num_recv_ops:size launch_id:int "
        "non_donatable_input_indices num_non_donatable_input_indices:size context call_location "
        "num_tasks:size task_ids incarnation_ids"
    ),
    "Api": "pjrt_api_version:Api_Version " + " ".join(FUNCTIONS),
}.items():
    STRUCTS[_name] = _sized(f"PJRT_{_name}", _members)

# --- argument structs by function, without "PJRT_" and "_Args" -------------------------------------------------------

ARGS = {
    name: _sized(f"PJRT_{name}_Args", members)
    for name, members in {
        "Error_Destroy": "error",
        "Error_Message": "error message message_size:size",
        "Error_GetCode": "error code:int",
        "Plugin_Initialize": "",
        "Plugin_Attributes": "attributes num_attributes:size",
        "Event_Destroy": "event",
        "Event_IsReady": "event is_ready:bool",
        "Event_Error": "event",
        "Event_Await": "event",
        "Event_OnReady": "event callback user_arg",
        "Client_Create": (
            "create_options num_options:size kv_get_callback kv_get_user_arg kv_put_callback kv_put_user_arg client "
            "kv_try_get_callback kv_try_get_user_arg"
        ),
        "Client_Destroy": "client",
        "Client_PlatformName": "client platform_name platform_name_size:size",
        "Client_PlatformVersion": "client platform_version platform_version_size:size",
        "Client_AddressableDevices": "client addressable_devices num_addressable_devices:size",
        "Client_Compile": "client program compile_options compile_options_size:size executable",
        "Client_BufferFromHostBuffer": (
            "client data type:int dims num_dims:size byte_strides num_byte_strides:size host_buffer_semantics:int "
            "device memory device_layout done_with_host_buffer buffer"
        ),
        "Device_GetDescription": "device device_description",
        "Device_AddressableMemories": "device memories num_memories:size",
        "DeviceDescription_Id": "device_description id:int",
        "DeviceDescription_Kind": "device_description device_kind device_kind_size:size",
        "Memory_Kind": "memory kind kind_size:size",
        "Executable_Destroy": "executable",
        "Executable_Name": "executable executable_name executable_name_size:size",
        "Executable_NumOutputs": "executable num_outputs:size",
        "Executable_OptimizedProgram": "executable program",
        "Executable_OutputElementTypes": "executable output_types num_output_types:size",
        "Executable_OutputDimensions": "executable num_outputs:size dims dim_sizes",
        "Executable_Serialize": (
            "executable serialized_bytes serialized_bytes_size:size serialized_executable serialized_executable_deleter"
        ),
        "Executable_DeserializeAndLoad": (
            "client serialized_executable serialized_executable_size:size loaded_executable "
            "overridden_serialized_compile_options overridden_serialized_compile_options_size:size"
        ),
        "LoadedExecutable_Destroy": "executable",
        "LoadedExecutable_GetExecutable": "loaded_executable executable",
        "LoadedExecutable_Execute": (
            "executable options argument_lists num_devices:size num_args:size output_lists device_complete_events "
            "execute_device"
        ),
        "LoadedExecutable_Delete": "executable",
        "Buffer_Destroy": "buffer",
        "Buffer_Delete": "buffer",
        "Buffer_IsDeleted": "buffer is_deleted:bool",
        "Buffer_ElementType": "buffer type:int",
        "Buffer_Dimensions": "buffer dims num_dims:size",
        "Buffer_ReadyEvent": "buffer event",
        "Buffer_ToHostBuffer": "src host_layout dst dst_size:size event",
    }.items()
}

# the part of PJRT_Api that a table must have before anything else in it can be judged
API_HEADER_SIZE = 16 + sizeof(STRUCTS["Api_Version"])

# --- enumerations: names without their prefix, at the index of their value -------------------------------------------

ERROR_CODES = _words(
    """
    OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED
    RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS
    UNAUTHENTICATED
    """
)
BUFFER_TYPES = _words(
    """
    INVALID PRED S8 S16 S32 S64 U8 U16 U32 U64 F16 F32 F64 BF16 C64 C128 F8E5M2 F8E4M3FN F8E4M3B11FNUZ F8E5M2FNUZ
    F8E4M3FNUZ S4 U4 TOKEN S2 U2 F8E4M3 F8E3M4 F8E8M0FNU F4E2M1FN S1 U1 F6E2M3FN F6E3M2FN
    """
)
NAMED_VALUE_TYPES = ("kString", "kInt64", "kInt64List", "kFloat", "kBool")
EXTENSION_TYPES = _words(
    """
    Gpu_Custom_Call Profiler Custom_Partitioner Stream Layouts FFI MemoryDescriptions Triton RawBuffer PhaseCompile
    Example Unknown CrossHostTransfers ExecutableMetadata Callback HostAllocator TpuTopology TpuExecutable Megascale
    Shardings AbiVersion Collectives MultiSlice HostMemoryAllocator XlaTransform
    """
)
IMMUTABLE_ONLY_DURING_CALL = 0
LAYOUT_TILED = 0


class ExtensionBase(Structure):
    """One link of an extension chain: unlike the other structs it has its type where those have the chain."""

    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", c_void_p)]
