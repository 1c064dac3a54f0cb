"""Custom calls that Python functions answer, by the FFI extension of PJRT, with declared and checked types.

A handler is a function with a `Signature`. A program calls it by `stablehlo.custom_call @NAME` with `api_version = 4`; what it passes is checked
against the signature before the function sees it, and what the function returns against what the program expects. Anything wrong, and any
exception, becomes an error of the execution (`PjrtCall`), never a crash. Arrays are read and written in place, so that only plugins whose
buffers are in this process's memory can have handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ctypes import CFUNCTYPE, addressof, byref, c_char, c_int, c_void_p, cast, string_at
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, PjrtCall, TenferroError, UnsupportedOp
from tenferro_ref.pjrt import abi, native
from tenferro_ref.pjrt.client import Client
from tenferro_ref.pjrt.ffi_abi import (
    API_MAJOR,
    API_MINOR,
    ATTRIBUTE_ARRAY,
    ATTRIBUTE_DICTIONARY,
    ATTRIBUTE_SCALAR,
    ATTRIBUTE_STRING,
    BUFFER,
    DATA_TYPES,
    EXTENSION,
    METADATA,
    STAGE_EXECUTE,
    STRUCTS,
)
from tenferro_ref.pjrt.transfer import NDArray, dtype_of_element

#: What platforms are called where handlers are registered; buffers of other platforms are not in this process's memory.
_PLATFORMS = {"cpu": b"Host"}
_HANDLER = CFUNCTYPE(c_void_p, c_void_p)


@dataclass(frozen=True)
class Operand:
    """An argument or a result: its dtype and rank, each None for any."""

    dtype: DType | None = None
    rank: int | None = None


@dataclass(frozen=True)
class Scalar:
    """An attribute that is a number or Bool of one NumPy dtype ("int64", "float32", "bool", ...); the function gets a NumPy scalar."""

    dtype: str


@dataclass(frozen=True)
class Vector:
    """An attribute that is a dense array of one NumPy dtype; the function gets an array of rank 1."""

    dtype: str


@dataclass(frozen=True)
class Text:
    """An attribute that is a string."""


@dataclass(frozen=True)
class Dictionary:
    """An attribute that has named attributes itself."""

    entries: Mapping[str, Attribute] = field(default_factory=dict)


Attribute: TypeAlias = "Scalar | Vector | Text | Dictionary"


@dataclass(frozen=True)
class Signature:
    """What a handler takes and gives.

    Attributes
    ----------
    arguments, results
        One each; None for any number of any.
    attributes
        By name; a program must give all of them and no others.
    """

    arguments: tuple[Operand, ...] | None
    results: tuple[Operand, ...] | None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


#: `function(*arguments, **attributes)` gives the results, one array each; the arguments are read-only, and gone after the call.
Function: TypeAlias = Callable[..., Sequence[NDArray]]

_REGISTERED: dict[tuple[int, str], _Handler] = {}
_REGISTERING = Lock()


def register(client: Client, name: str, signature: Signature, function: Function) -> None:
    """Let programs of the client's plugin call `function` as `stablehlo.custom_call @name`.

    A plugin keeps its handlers as long as the process lives; a second function under a name takes the place of the first.

    Raises
    ------
    UnsupportedOp
        The plugin has no FFI extension, or its buffers are not in this process's memory.
    PjrtCall
        The plugin refuses.
    """
    extension = client.plugin.extension(EXTENSION)
    if extension is None or client.platform_name not in _PLATFORMS:
        lacks = "has no FFI extension" if extension is None else f"is of the platform {client.platform_name!r}"
        raise UnsupportedOp(op=f"custom_call @{name}", reason=f"the plugin {client.plugin.ref.name} {lacks}")
    key = client.api.address, name
    with _REGISTERING:
        if key in _REGISTERED:
            _REGISTERED[key].signature, _REGISTERED[key].function = signature, function
            return
        handler = _Handler(name, signature, function)
        target, platform = name.encode(), _PLATFORMS[client.platform_name]
        kind = STRUCTS["PJRT_FFI_Register_Handler_Args"]
        args = kind(
            struct_size=kind.traits.offset + kind.traits.size,
            target_name=abi.address(target), target_name_size=len(target),
            handler=handler.address,
            platform_name=abi.address(platform), platform_name_size=len(platform),
        )  # fmt: skip
        call = STRUCTS["PJRT_FFI_Extension"].from_address(extension).register_handler
        error = native.PROTOTYPE(call)(byref(args)) if call else None
        if error or not call:
            lacking = PjrtCall("PJRT_FFI_Register_Handler", "", "the FFI extension does not have this function")
            raise client.api.exception("FFI_Register_Handler", error) if error else lacking
        _REGISTERED[key] = handler  # the plugin has its address for ever


class _Handler:
    """A registered function and the native function that stands for it."""

    def __init__(self, name: str, signature: Signature, function: Function) -> None:
        self.name, self.signature, self.function = name, signature, function
        self._native = _HANDLER(self._called)

    @property
    def address(self) -> int | None:
        return cast(self._native, c_void_p).value

    def _called(self, at: int) -> int | None:
        frame = STRUCTS["XLA_FFI_CallFrame"].from_address(at)
        if _metadata(frame):
            return None
        try:
            if frame.stage == STAGE_EXECUTE:
                self._execute(frame)
        except TenferroError as error:
            unsupported = isinstance(error, UnsupportedOp)
            return _error(
                frame, "UNIMPLEMENTED" if unsupported else "INVALID_ARGUMENT", f"custom call @{self.name}: {error}"
            )
        except MemoryError as error:
            return _error(frame, "RESOURCE_EXHAUSTED", f"custom call @{self.name}: out of memory: {error}")
        except BaseException as error:  # noqa: BLE001 - what is raised into native code is lost, and the call has succeeded
            return _error(frame, "INTERNAL", f"custom call @{self.name}: {type(error).__name__}: {error}")
        return None

    def _execute(self, frame: Any) -> None:
        signature = self.signature
        arguments = _arrays("argument", frame.args, "args", signature.arguments)
        targets = _arrays("result", frame.rets, "rets", signature.results)
        attributes = _attributes("attribute", frame.attrs, signature.attributes)
        for argument in arguments:
            argument.flags.writeable = False
        results = list(self.function(*arguments, **attributes))
        if len(results) != len(targets):
            raise InvalidArgument(
                self.name, "results", f"the function gave {len(results)}, the program has {len(targets)}"
            )
        for i, (result, target) in enumerate(zip(results, targets, strict=True)):
            if not isinstance(result, np.ndarray) or (result.dtype, result.shape) != (target.dtype, target.shape):
                given = (
                    f"{result.dtype}{list(result.shape)}" if isinstance(result, np.ndarray) else type(result).__name__
                )
                detail = f"the function gave {given}, the program expects {target.dtype}{list(target.shape)}"
                raise InvalidArgument("signature", f"result {i}", detail)
            np.copyto(target, result)


def _metadata(frame: Any) -> bool:
    """Answer the question for the version of the interface, which is asked once, at registration; whether it was asked."""
    link = frame.extension_start
    while link:
        base = STRUCTS["XLA_FFI_Extension_Base"].from_address(link)
        if base.type == METADATA:
            at = STRUCTS["XLA_FFI_Metadata_Extension"].from_address(link).metadata
            version = STRUCTS["XLA_FFI_Metadata"].from_address(at).api_version
            version.major_version, version.minor_version = API_MAJOR, API_MINOR
            return True
        link = base.next
    return False


def _error(frame: Any, code: str, message: str) -> int | None:
    """A native error, which the plugin owns."""
    text = message.encode("utf-8", "backslashreplace").replace(b"\0", b"\\0")
    kind = STRUCTS["XLA_FFI_Error_Create_Args"]
    size = kind.errc.offset + kind.errc.size
    args = kind(struct_size=size, message=abi.address(text), errc=abi.ERROR_CODES.index(code))
    create = STRUCTS["XLA_FFI_Api"].from_address(frame.api).XLA_FFI_Error_Create
    made: int | None = _HANDLER(create)(addressof(args))
    return made


def _arrays(role: str, listed: Any, member: str, expected: tuple[Operand, ...] | None) -> list[NDArray]:
    """The buffers of a call as arrays on their memory, of the declared types."""
    count = listed.size
    if expected is not None and len(expected) != count:
        raise InvalidArgument("signature", f"{role}s", f"the program gives {count}, the signature has {len(expected)}")
    kinds = (c_int * count).from_address(listed.types) if count else ()
    arrays = []
    for i, (kind, at) in enumerate(zip(kinds, native.pointers(getattr(listed, member), count), strict=True)):
        if kind != BUFFER:
            raise InvalidArgument("signature", f"{role} {i}", f"is of kind {kind}, which is no tensor")
        buffer = STRUCTS["XLA_FFI_Buffer"].from_address(at)
        dtype = dtype_of_element(abi.BUFFER_TYPES.index(DATA_TYPES.get(buffer.dtype, "INVALID")))
        shape = native.int64s(buffer.dims, buffer.rank) if buffer.rank else ()
        wanted = expected[i] if expected is not None else Operand()
        if wanted.dtype not in (None, dtype) or wanted.rank not in (None, len(shape)):
            shown = f"{wanted.dtype.name if wanted.dtype else 'any dtype'} of rank {'any' if wanted.rank is None else wanted.rank}"
            raise InvalidArgument(
                "signature", f"{role} {i}", f"the program gives {dtype.name}{list(shape)}, the signature has {shown}"
            )
        arrays.append(_view(buffer.data, dtype.numpy, shape))
    return arrays


def _view(data: int | None, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray:
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if not size or not data:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, memoryview((c_char * size).from_address(data)))


_NUMPY = {
    "PRED": "bool", "S8": "int8", "S16": "int16", "S32": "int32", "S64": "int64", "U8": "uint8", "U16": "uint16",
    "U32": "uint32", "U64": "uint64", "F16": "float16", "F32": "float32", "F64": "float64", "C64": "complex64",
    "C128": "complex128",
}  # fmt: skip


def _attributes(where: str, given: Any, expected: Mapping[str, Attribute]) -> dict[str, Any]:
    """The attributes of a call, or of a dictionary in it, of the declared types."""
    count = given.size
    names = [_text(at) for at in native.pointers(given.names, count)]
    if set(names) != set(expected):
        detail = f"the program gives {sorted(names)}, the signature has {sorted(expected)}"
        raise InvalidArgument("signature", f"{where}s", detail)
    kinds = (c_int * count).from_address(given.types) if count else ()
    pointers = native.pointers(given.attrs, count)
    return {
        key: _attribute(f"{where} {key!r}", kind, at, expected[key])
        for key, kind, at in zip(names, kinds, pointers, strict=True)
    }


def _attribute(where: str, kind: int, at: int, expected: Attribute) -> Any:
    found: str
    match kind, expected:
        case (_, Dictionary()) if kind == ATTRIBUTE_DICTIONARY:
            return _attributes(f"{where}: entry", STRUCTS["XLA_FFI_Attrs"].from_address(at), expected.entries)
        case (_, Text()) if kind == ATTRIBUTE_STRING:
            return _text(at)
        case (_, Scalar(dtype)) if kind == ATTRIBUTE_SCALAR:
            scalar = STRUCTS["XLA_FFI_Scalar"].from_address(at)
            if (found := _numpy(scalar.dtype)) == dtype:
                return _view(scalar.value, np.dtype(dtype), ())[()]
        case (_, Vector(dtype)) if kind == ATTRIBUTE_ARRAY:
            array = STRUCTS["XLA_FFI_Array"].from_address(at)
            if (found := _numpy(array.dtype)) == dtype:
                return _view(array.data, np.dtype(dtype), (array.size,)).copy()
        case _:
            names = {
                ATTRIBUTE_ARRAY: "array",
                ATTRIBUTE_DICTIONARY: "dictionary",
                ATTRIBUTE_SCALAR: "scalar",
                ATTRIBUTE_STRING: "string",
            }
            found = names.get(kind, f"attribute of kind {kind}")
    raise InvalidArgument("signature", where, f"the program gives {found}, the signature has {expected}")


def _numpy(number: int) -> str:
    name = DATA_TYPES.get(number, f"type {number}")
    return _NUMPY.get(name, name)


def _text(at: int) -> str:
    span = STRUCTS["XLA_FFI_ByteSpan"].from_address(at)
    return string_at(span.ptr, span.len).decode("utf-8", "replace") if span.ptr else ""
