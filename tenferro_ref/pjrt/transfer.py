"""Copies between NumPy arrays and device buffers, and the element types of both sides.

Lives here: raw handles (integers), the argument structs of the copies, prepared once for each type, and the native client
that copies go through. Does not live here: buffers and executables as objects, which build on this.

How plugins behave (measured, see the tests): an upload with `byte_strides` and without a `device_layout` is right
for every rank, extent and stride; a download in column-major order through `host_layout` is right where the plugin
honours it, and a plugin that does not honour it says nothing, so that each client is probed once.
"""

from __future__ import annotations

import itertools
from ctypes import Array, addressof, c_int64
from functools import cached_property, partial
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np

from tenferro_ref.dtype import DType
from tenferro_ref.errors import PjrtCall, UnsupportedDType
from tenferro_ref.pjrt import abi, native
from tenferro_ref.pjrt.native import Api, Handle
from tenferro_ref.pjrt.plugin import Plugin
from tenferro_ref.placement import Placement

TensorSpec = tuple[DType, tuple[int, ...]]
NDArray = np.ndarray[Any, Any]
_ELEMENT_TYPE, _DIMENSIONS = abi.ARGS["Buffer_ElementType"], abi.ARGS["Buffer_Dimensions"]

# PJRT names a complex type by its whole size, the engine by the size of a part
_ELEMENT = {d: abi.BUFFER_TYPES.index(d.value.pjrt) for d in DType if d.value.pjrt in abi.BUFFER_TYPES}
_DTYPE = {number: dtype for dtype, number in _ELEMENT.items()}


def dtype_of_element(number: int) -> DType:
    """The dtype of a PJRT_Buffer_Type.

    Raises
    ------
    UnsupportedDType
        If the engine has no such dtype.
    """
    try:
        return _DTYPE[number]
    except KeyError:
        known = 0 <= number < len(abi.BUFFER_TYPES)
        name = abi.BUFFER_TYPES[number] if known else f"PJRT element type {number}"
        raise UnsupportedDType(name, "PJRT output") from None


def element_of_dtype(dtype: DType) -> int:
    """The PJRT_Buffer_Type of a dtype.

    Raises
    ------
    UnsupportedDType
        There are no buffers of it.
    """
    if dtype not in _ELEMENT:
        raise UnsupportedDType(dtype.name, "PJRT input")
    return _ELEMENT[dtype]


def spec_of_array(x: NDArray) -> TensorSpec:
    """Dtype and shape of an array.

    Raises
    ------
    UnsupportedDType
        If the engine has no such dtype, there are no buffers of it, or the array is not in the machine's byte order.
    """
    try:
        dtype = DType.of(x)
    except KeyError:
        raise UnsupportedDType(str(x.dtype), "PJRT input") from None
    element_of_dtype(dtype)
    return dtype, x.shape


def spec_of_buffer(api: Api, raw: int) -> TensorSpec:
    """Dtype and shape that the plugin says a buffer has."""
    element = _ELEMENT_TYPE(_ELEMENT_TYPE.STRUCT_SIZE, None, raw)
    api.invoke("Buffer_ElementType", element)
    dims = _DIMENSIONS(_DIMENSIONS.STRUCT_SIZE, None, raw)
    api.invoke("Buffer_Dimensions", dims)
    return dtype_of_element(element.type), native.int64s(dims.dims, dims.num_dims) if dims.num_dims else ()


def show_spec(spec: TensorSpec) -> str:
    """A type as messages show it: `F32[2,3]`."""
    return f"{spec[0].name}[{','.join(map(str, spec[1]))}]"


class Upload:
    """Copies host arrays of one type to one device; immutable, so that threads can share it."""

    def __init__(self, api: Api, client: int, device: int, spec: TensorSpec) -> None:
        dtype, shape = spec
        self._api = api
        self._rank = len(shape)
        self._usual = np.empty(shape, dtype.numpy, order="F").strides if 0 not in shape else None
        self._arrays: tuple[Array[c_int64], ...] = (
            (c_int64 * self._rank)(*shape),
            (c_int64 * self._rank)(*(self._usual or ())),
        )
        self._kind = abi.ARGS["Client_BufferFromHostBuffer"]
        self._template = bytes(
            abi.new(
                self._kind,
                client=client,
                device=device,
                type=element_of_dtype(dtype),
                dims=addressof(self._arrays[0]),
                num_dims=self._rank,
                byte_strides=addressof(self._arrays[1]),
                num_byte_strides=self._rank,
                # the plugin has copied when the call returns: nothing of ours is referenced afterwards
                host_buffer_semantics=abi.IMMUTABLE_ONLY_DURING_CALL,
            )
        )

    def __call__(self, x: NDArray) -> int:
        """The raw buffer with the contents of `x`, which must have the type that this was made for."""
        if not x.flags.aligned:
            x = x.copy(order="F")
        args = self._kind.from_buffer_copy(self._template)
        if x.strides != self._usual:
            strides = (c_int64 * self._rank)(*x.strides)
            args.byte_strides = addressof(strides)
        args.data = x.ctypes.data
        self._api.invoke("Client_BufferFromHostBuffer", args)
        if args.done_with_host_buffer:
            try:
                self._api.await_event(args.done_with_host_buffer, "Client_BufferFromHostBuffer", looks=0)
            except PjrtCall:
                self._api.destroy_all("Buffer", filter(None, [args.buffer]))
                raise
        if not args.buffer:
            raise PjrtCall("PJRT_Client_BufferFromHostBuffer", "", "the plugin returned neither an error nor a buffer")
        return int(args.buffer)


class Download:
    """Copies buffers of one type to new column-major host arrays; immutable, so that threads can share it.

    Parameters
    ----------
    host_layout
        Whether the plugin honours one; if not, it hands out row-major bytes, which are reordered here.
    """

    def __init__(self, api: Api, spec: TensorSpec, host_layout: bool) -> None:
        self._api = api
        self.spec = spec
        self._shape, self._dtype = spec[1], spec[0].numpy
        rank = len(self._shape)
        self._order: Any = "F" if host_layout or rank < 2 else "C"
        self._minor_to_major = (c_int64 * rank)(*range(rank))
        tiled = abi.new(
            abi.STRUCTS["Buffer_MemoryLayout_Tiled"],
            minor_to_major=addressof(self._minor_to_major),
            minor_to_major_size=rank,
        )
        self._layout = abi.new(abi.STRUCTS["Buffer_MemoryLayout"], tiled=tiled, type=abi.LAYOUT_TILED)
        self._kind = abi.ARGS["Buffer_ToHostBuffer"]
        self._template = bytes(
            abi.new(
                self._kind,
                # vectors and scalars have one order only
                host_layout=addressof(self._layout) if self._order == "F" and rank > 1 else None,
                dst_size=self.nbytes,
            )
        )

    @property
    def nbytes(self) -> int:
        """Bytes that one array takes."""
        return int(np.prod(self._shape, dtype=np.int64)) * self._dtype.itemsize

    def __call__(self, raw: int) -> NDArray:
        """The contents of a buffer, which must have the type that this was made for."""
        out = np.empty(self._shape, self._dtype, self._order)
        args = self._kind.from_buffer_copy(self._template)
        args.src = raw
        args.dst = out.ctypes.data
        self._api.invoke("Buffer_ToHostBuffer", args)
        if args.event:
            self._api.await_event(args.event, "Buffer_ToHostBuffer")
        return out if self._order == "F" else np.asfortranarray(out)


#: Numbers of the clients of this process, by which messages tell them apart.
_NUMBERS = itertools.count(1)


class Owner(Handle):
    """A native client as its buffers and executables see it; closing it closes them first.

    Attributes
    ----------
    plugin
        What made the client.
    """

    native: ClassVar[str] = "Client"

    def __init__(self, plugin: Plugin, raw: int | None) -> None:
        super().__init__(plugin.api, raw, "Client_Create")
        self.plugin = plugin
        self._number = next(_NUMBERS)
        self._owned: WeakSet[Handle] = WeakSet()
        #: A token for each handle that is not closed, also for those that Python is about to collect.
        self._open: set[object] = set()
        self._dropped = False
        listed = self._api.call("Client_AddressableDevices", client=self.raw)
        self._devices = native.pointers(listed.addressable_devices, listed.num_addressable_devices)
        if not self._devices:
            self.close()
            raise PjrtCall("PJRT_Client_AddressableDevices", "", "the client has no addressable device")

    @property
    def api(self) -> Api:
        """The plugin's function table."""
        return self._api

    @cached_property
    def host_layout(self) -> bool:
        """Whether a download honours the order of axes that it asks for (else it is row-major); tried once."""
        probe = np.arange(6, dtype=np.float32).reshape(2, 3)
        spec = spec_of_array(probe)
        buffer = self.upload(spec)(probe)
        try:
            for host_layout in (True, False):
                try:
                    copy = Download(self._api, spec, host_layout)(buffer)
                except PjrtCall as error:
                    if not host_layout or error.code not in ("UNIMPLEMENTED", "INVALID_ARGUMENT"):
                        raise
                    continue
                if np.array_equal(copy, probe):
                    return host_layout
        finally:
            self._api.destroy("Buffer", buffer)
        detail = f"an array of {probe.tolist()} comes back as {copy.tolist()} in either order"
        raise PjrtCall("PJRT_Buffer_ToHostBuffer", "", detail)

    @cached_property
    def placements(self) -> tuple[Placement, ...]:
        """Where buffers of this client can be: on its addressable devices; programs run on the first."""
        described = [self._api.call("Device_GetDescription", device=d).device_description for d in self._devices]
        ids = [self._api.call("DeviceDescription_Id", device_description=d).id for d in described]
        return tuple(Placement(self.plugin.ref.name, self._number, id_) for id_ in ids)

    def upload(self, spec: TensorSpec, device: int = 0) -> Upload:
        """What copies host arrays of one type to the device with this index.

        Raises
        ------
        PjrtCall
            If this client is closed.
        """
        return Upload(self._api, self.raw, self._devices[device], spec)

    def download(self, spec: TensorSpec) -> Download:
        """What copies raw buffers of one type to the host."""
        return Download(self._api, spec, len(spec[1]) < 2 or self.host_layout)

    def adopt(self, handle: Handle) -> None:
        """Remember a handle that must be closed before this client."""
        token = object()
        self._owned.add(handle)
        self._open.add(token)
        handle._closed = partial(self._released, token)

    def close(self) -> None:
        """Close what this client made, then the client."""
        for handle in list(getattr(self, "_owned", ())):
            handle.close()
        super().close()

    def __del__(self) -> None:
        # where client and handles are collected together, Python has cleared `_owned` by now: the last of them closes the client
        self._dropped = bool(getattr(self, "_open", ()))
        if not self._dropped:
            super().__del__()

    def _released(self, token: object) -> None:
        self._open.discard(token)
        if self._dropped and not self._open:
            super().__del__()
