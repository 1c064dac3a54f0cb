"""A client of a plugin: its devices, and compiling, loading and moving data for the first of them.

Lives here: `Client` and what it reports. Does not live here: running a program (`executable`), and keeping a plugin that
crashes or hangs away from the caller: this client is in process, that is the job of worker processes. Never fork after a
client exists: the child hangs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import addressof
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, PjrtCall
from tenferro_ref.pjrt import abi, native
from tenferro_ref.pjrt.buffer import Buffer
from tenferro_ref.pjrt.discovery import Option
from tenferro_ref.pjrt.executable import Executable
from tenferro_ref.pjrt.native import Attribute
from tenferro_ref.pjrt.options import encode_compile_options, encoded, named_values
from tenferro_ref.pjrt.plugin import Plugin
from tenferro_ref.pjrt.serialized import unpack
from tenferro_ref.pjrt.transfer import NDArray, Owner, TensorSpec, spec_of_array
from tenferro_ref.placement import HOST


@dataclass(frozen=True)
class Device:
    """An addressable device: its id, kind ("cpu", "NVIDIA H200", ...) and the kinds of its memories."""

    id: int
    kind: str
    memories: tuple[str, ...]


class Client(Owner):
    """A client of a plugin. Closing it closes its executables and buffers first.

    Parameters
    ----------
    plugin
        A loaded plugin.
    create_options
        Options for PJRT_Client_Create; None takes those that go with the plugin (`PluginRef.create_options`).

    Raises
    ------
    PjrtCall
        If the plugin cannot make a client (for instance FAILED_PRECONDITION without its hardware) or has no device.
    """

    def __init__(self, plugin: Plugin, create_options: Mapping[str, Option] | None = None) -> None:
        options = dict(plugin.ref.create_options if create_options is None else create_options)
        values, keep = named_values(options)
        args = plugin.api.call("Client_Create", create_options=addressof(values), num_options=len(options))
        del keep  # the plugin has read them
        super().__init__(plugin, args.client)
        self.create_options = options
        self._known: dict[tuple[str, type, Option], bool] = {}

    @cached_property
    def platform_name(self) -> str:
        """The platform, for instance "cpu"."""
        args = self._api.call("Client_PlatformName", client=self.raw)
        return native.text(args.platform_name, args.platform_name_size)

    @cached_property
    def platform_version(self) -> str:
        """Version of the platform, in the plugin's words."""
        args = self._api.call("Client_PlatformVersion", client=self.raw)
        return native.text(args.platform_version, args.platform_version_size)

    @property
    def api_version(self) -> tuple[int, int]:
        """Version of the PJRT API that the plugin speaks."""
        return self.plugin.api_version

    @property
    def attributes(self) -> dict[str, Attribute]:
        """The plugin's attributes (`Plugin.attributes`)."""
        return self.plugin.attributes

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """The addressable devices; programs run on the first."""
        call, devices = self._api.call, []
        if not self._raw:
            raise PjrtCall("PJRT_Client_AddressableDevices", "", "this Client is closed")
        for device in self._devices:
            description = call("Device_GetDescription", device=device).device_description
            kind = call("DeviceDescription_Kind", device_description=description)
            memories = call("Device_AddressableMemories", device=device)
            kinds = [call("Memory_Kind", memory=m) for m in native.pointers(memories.memories, memories.num_memories)]
            devices.append(
                Device(
                    call("DeviceDescription_Id", device_description=description).id,
                    native.text(kind.device_kind, kind.device_kind_size),
                    tuple(native.text(k.kind, k.kind_size) for k in kinds),
                )
            )
        return tuple(devices)

    def knows(self, option: str, value: Option = False) -> bool:
        """Whether the plugin takes this compile option; tried once, on a module that does nothing."""
        key = option, type(value), value  # to a dictionary True, 1 and 1.0 are one
        if key not in self._known:
            try:
                self.compile(_NOTHING, {option: value}).close()
                self._known[key] = True
            except PjrtCall as error:
                if error.code != "INVALID_ARGUMENT":
                    raise
                self._known[key] = False
        return self._known[key]

    def encode(self, options: Mapping[str, Option] | None) -> bytes:
        """A serialised CompileOptionsProto of XLA flags, those that go with the plugin among them.

        Raises
        ------
        InvalidArgument
            As `encode_compile_options`.
        """
        return encode_compile_options({**self.plugin.ref.compile_options, **(options or {})})

    def compile(
        self,
        code: bytes | str,
        options: Mapping[str, Option] | bytes | None = None,
        *,
        parameters: Sequence[TensorSpec] | None = None,
        results: Sequence[TensorSpec] | None = None,
    ) -> Executable:
        """Compile a StableHLO module for one device.

        Parameters
        ----------
        code
            MLIR text or bytecode, or a portable artifact (PJRT program format "mlir").
        options
            XLA flags for this program (those that go with the plugin are added), or a serialised CompileOptionsProto.
        parameters
            Types of the arguments of `main`: the C API does not tell them, and plugins do not check arguments against
            them. Without them the program can be compiled but not run.
        results
            Expected types of the results; a plugin that announces others is in error.

        Raises
        ------
        InvalidArgument
            If an option or the text cannot be encoded, or a type is none.
        UnsupportedDType
            If a result has a dtype that the engine has not.
        PjrtCall
            If the plugin rejects the program, its results are not the expected, or this client is closed.
        """
        settings = options if isinstance(options, bytes) else self.encode(options)
        if not settings:
            raise InvalidArgument("compile options", "options", "empty bytes, on which plugins abort the process")
        source = encoded("compile", "code", code) if isinstance(code, str) else code
        for name, given in (("parameters", parameters), ("results", results)):
            _check_types(name, given)
        program = abi.new(
            abi.STRUCTS["Program"],
            code=abi.address(source),
            code_size=len(source),
            format=abi.address(_MLIR),
            format_size=len(_MLIR),
        )
        args = self._api.call(
            "Client_Compile",
            client=self.raw,
            program=addressof(program),
            compile_options=abi.address(settings),
            compile_options_size=len(settings),
        )
        return Executable(self, args.executable, "Client_Compile", parameters, results)

    def deserialize(self, data: bytes) -> Executable:
        """Load what `Executable.serialize` gave; its parameter and result types come with it.

        The bytes are code: load only what you, or somebody whom you trust, serialised.

        Raises
        ------
        FormatError
            If the bytes are not that, are damaged, or were made with another plugin file or for another processor.
        PjrtCall
            If the plugin rejects them, or this client is closed.
        """
        raw = self.raw
        body, parameters, results = unpack(self, data)
        name = "Executable_DeserializeAndLoad"
        args = self._api.call(
            name, client=raw, serialized_executable=abi.address(body), serialized_executable_size=len(body)
        )
        return Executable(self, args.loaded_executable, name, parameters, results)

    def put(self, x: NDArray, device: int = 0) -> Buffer:
        """Copy a host array, of any strides, to the device with this index; programs run on the first.

        Raises
        ------
        UnsupportedDType
            If the engine has no such dtype.
        PlacementMismatch
            If `x` is a buffer.
        InvalidArgument
            If there is no such device, or `x` is no array.
        """
        HOST.admit("put", "x", x)
        if not isinstance(x, np.ndarray):
            raise InvalidArgument("put", "x", f"{type(x).__name__} where an array is needed")
        if not isinstance(device, int) or not 0 <= device < len(self.placements):
            raise InvalidArgument("put", "device", f"{device!r}, of {len(self.placements)} devices")
        spec = spec_of_array(x)
        return Buffer(self, self.upload(spec, device)(x), spec, device=device)

    def __repr__(self) -> str:
        return f"Client({self.plugin.ref.name!r}, {self.state.value})"


def _check_types(name: str, given: object) -> None:
    if given is not None and not isinstance(given, Sequence):
        raise InvalidArgument("compile", name, f"{given!r} is no list of types")
    for spec in given or ():
        if not (isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[0], DType) and _is_shape(spec[1])):
            raise InvalidArgument("compile", name, f"{spec!r} is no pair of a DType and a shape")


def _is_shape(shape: object) -> bool:
    return isinstance(shape, Sequence) and all(isinstance(extent, int) and extent >= 0 for extent in shape)


_MLIR = b"mlir"
_NOTHING = "module {\n  func.func @main() {\n    return\n  }\n}\n"
