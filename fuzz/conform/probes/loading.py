"""Loading, attributes, client and devices: what a plugin says of itself."""

from __future__ import annotations

import re

from fuzz.conform.probes.session import Fails, Session, refused
from fuzz.conform.probes.table import probe
from tenferro_ref.errors import PjrtCall
from tenferro_ref.pjrt import Client, abi

#: Without these there is nothing to do: find an error's words, make a client, compile, move data, execute.
NEEDED = (
    "Error_Destroy", "Error_Message", "Error_GetCode", "Event_Destroy", "Event_IsReady", "Event_Await", "Client_Create",
    "Client_Destroy", "Client_PlatformName", "Client_PlatformVersion", "Client_AddressableDevices", "Client_Compile",
    "Client_BufferFromHostBuffer", "Device_GetDescription", "DeviceDescription_Id", "DeviceDescription_Kind",
    "Executable_Destroy", "Executable_Name", "Executable_NumOutputs", "LoadedExecutable_Destroy",
    "LoadedExecutable_GetExecutable", "LoadedExecutable_Execute", "Buffer_Destroy", "Buffer_ElementType", "Buffer_Dimensions",
    "Buffer_ToHostBuffer",
)  # fmt: skip


@probe("loading", "the file loads and GetPjrtApi gives a table")
def _(s: Session) -> None:
    if s.plugin.api_version[0] != abi.API_MAJOR:
        raise Fails(f"API {s.plugin.api_version[0]}.{s.plugin.api_version[1]}, expected {abi.API_MAJOR}.x")


@probe("loading", "the table has the functions that every client needs")
def _(s: Session) -> None:
    if missing := [name for name in NEEDED if not s.api.has(name)]:
        raise Fails(f"missing: {', '.join(missing)}")


@probe("loading", "a struct_size that is too small is refused")
def _(s: Session) -> None:
    client = s.client.raw

    def call() -> None:
        args = abi.new(abi.ARGS["Client_PlatformName"], client=client)
        args.struct_size = 8
        s.api.invoke("Client_PlatformName", args)

    refused(call, "PJRT_Client_PlatformName with struct_size 8")


@probe("loading", "a struct_size that is larger is taken")
def _(s: Session) -> None:
    kind = abi.ARGS["Client_PlatformName"]
    args = abi.new(kind, client=s.client.raw)
    args.struct_size = kind.STRUCT_SIZE + 64
    s.api.invoke("Client_PlatformName", args)


@probe("attributes", "values are of their types, and names are not repeated")
def _(s: Session) -> None:
    s.need("Plugin_Attributes")
    for name, value in s.plugin.attributes.items():
        if not name or str(value).startswith("(a value of unknown type"):
            raise Fails(f"{name!r} is {value!r}")


@probe("attributes", "StableHLO versions, the least before the current")
def _(s: Session) -> None:
    s.need("Plugin_Attributes")
    versions = []
    for name in ("stablehlo_minimum_version", "stablehlo_current_version"):
        value = s.plugin.attributes.get(name)
        if not (isinstance(value, tuple) and len(value) == 3):
            raise Fails(f"{name} is {value!r}, expected three integers: clients cannot choose a version to send")
        versions.append(value)
    if versions != sorted(versions):
        raise Fails(f"the minimum {versions[0]} is after the current {versions[1]}")


@probe("devices", "a client with a platform's name and version")
def _(s: Session) -> None:
    if not re.fullmatch(r"[\w.-]+", s.client.platform_name):
        raise Fails(f"the platform's name is {s.client.platform_name!r}")
    if not s.client.platform_version:
        raise Fails("the platform's version is empty")


@probe("devices", "at least one device, each with an id of its own and a kind")
def _(s: Session) -> None:
    devices = s.client.devices
    if len({device.id for device in devices}) != len(devices):
        raise Fails(f"ids {[device.id for device in devices]}")
    if nameless := [device.id for device in devices if not device.kind]:
        raise Fails(f"devices without a kind: {nameless}")


@probe("devices", "every device has a memory with a kind")
def _(s: Session) -> None:
    s.need("Device_AddressableMemories", "Memory_Kind")
    if bare := [device.id for device in s.client.devices if not device.memories or not all(device.memories)]:
        raise Fails(f"devices without one: {bare}")


@probe("devices", "a second client beside the first")
def _(s: Session) -> None:
    with Client(s.plugin) as other:
        if other.platform_name != s.client.platform_name:
            raise Fails(f"platform {other.platform_name!r}, before {s.client.platform_name!r}")


@probe("devices", "an unknown option of the client ends in a status, or is ignored")
def _(s: Session) -> None:
    try:
        Client(s.plugin, {**s.ref.create_options, "tenferro_no_such_option": 1}).close()
    except PjrtCall as error:
        if not error.code:
            raise
