"""Copies to and from a plugin that keeps every word of the PJRT interface, and is written here: no library takes part.

It reads what an upload describes one element at a time and at addresses that its dtype allows, and writes what a download
asks for, in the layout that it asks for or, being one of those plugins that honour none, in row-major order.
"""

from __future__ import annotations

import math
from ctypes import c_int64, memmove, string_at
from typing import Any, cast

import numpy as np

from fuzz.mutants.elements import SLOW
from fuzz.mutants.promises import same, views
from oracle.case import Case
from tenferro_ref.pjrt import abi
from tenferro_ref.pjrt.native import Api
from tenferro_ref.pjrt.transfer import Download, Upload, dtype_of_element, spec_of_array

#: Any handle will do, and none is zero.
_CLIENT, _DEVICE, _BUFFER, _EVENT = 11, 12, 13, 14


class _Broken(Exception):
    """What the plugin was asked breaks the interface."""


class _Plugin:
    """Holds one array; events are counted until they are destroyed or awaited."""

    def __init__(self, *, honours: bool) -> None:
        self.honours = honours
        self.events = 0
        self.asked = False
        self.held = np.empty(0)

    def invoke(self, name: str, args: Any) -> None:
        (self._upload if name == "Client_BufferFromHostBuffer" else self._download)(args)
        self.events += 1

    def destroy(self, kind: str, raw: int) -> None:
        self.events -= (kind, raw) == ("Event", _EVENT)

    def await_event(self, raw: int, call: str) -> None:
        self.events -= raw == _EVENT

    def _upload(self, args: Any) -> None:
        dtype = dtype_of_element(args.type).numpy
        shape, strides = ((c_int64 * n).from_address(at)[:] if n else [] for at, n in (
            (args.dims, args.num_dims), (args.byte_strides, args.num_byte_strides)))  # fmt: skip
        if (args.client, args.device, len(shape)) != (_CLIENT, _DEVICE, len(strides)):
            raise _Broken("another client, device or number of strides")
        held = np.empty(shape, dtype)
        for index in np.ndindex(*shape):
            at = args.data + sum(i * s for i, s in zip(index, strides, strict=True))
            if at % dtype.alignment:
                raise _Broken(f"an element at an address that {dtype} has not")
            held[index] = np.frombuffer(string_at(at, dtype.itemsize), dtype)[0]
        self.held = held
        args.buffer, args.done_with_host_buffer = _BUFFER, _EVENT

    def _download(self, args: Any) -> None:
        self.asked = bool(args.host_layout)
        order = [*reversed(range(self.held.ndim))]
        if args.host_layout and self.honours:
            layout = abi.STRUCTS["Buffer_MemoryLayout"].from_address(args.host_layout)
            if (layout.type, layout.tiled.minor_to_major_size) != (abi.LAYOUT_TILED, self.held.ndim):
                raise _Broken("a layout that is none of this array")
            order = list((c_int64 * self.held.ndim).from_address(layout.tiled.minor_to_major))
        data = self.held.transpose(order[::-1]).tobytes("C")
        if (args.src, args.dst_size) != (_BUFFER, len(data)):
            raise _Broken(f"another buffer, or not {len(data)} bytes")
        memmove(args.dst, data, len(data))
        args.event = _EVENT


def transfers(case: Case) -> str:
    """Arrays of any strides and alignment arrive as they are, and come back dense and column-major; "" if so."""
    try:
        return _there_and_back(case)
    except _Broken as error:
        return str(error)


def _there_and_back(case: Case) -> str:
    for x in case.inputs:
        if x.size > SLOW:
            continue
        for honours in (True, False):
            plugin = _Plugin(honours=honours)
            api = cast(Api, plugin)
            spec = spec_of_array(x)
            upload = Upload(api, _CLIENT, _DEVICE, spec)
            download = Download(api, spec, honours)
            for view in (x, *(np.asarray(v.data) for v in views(x))):
                raw = upload(view)
                if not same(plugin.held, x) or raw != _BUFFER:
                    return f"strides {view.strides}: something else arrives"
                back = download(raw)
                if not same(back, x) or not back.flags.f_contiguous or not back.flags.owndata:
                    return f"strides {view.strides}: something else comes back, {'' if honours else 'not '}by layout"
                if plugin.asked != (honours and x.ndim > 1):
                    return f"a layout is {'' if plugin.asked else 'not '}asked for"
            if plugin.events or download.nbytes != math.prod(x.shape) * x.itemsize:
                return f"{plugin.events} events left, {download.nbytes} bytes"
    return ""


__all__ = ["transfers"]
