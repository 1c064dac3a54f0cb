"""Copies to and from a plugin that keeps every word of the PJRT interface, and is written here: no library takes part.

It reads what an upload describes one element at a time and at addresses that its dtype allows, and writes what a download
asks for, in the layout that it asks for or, being one of those plugins that honour none, in row-major order.
"""

from __future__ import annotations

import math
from ctypes import c_int64, memmove, string_at
from typing import Any, cast

import numpy as np
import pytest

from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedDType
from tenferro_ref.pjrt import abi
from tenferro_ref.pjrt.native import Api
from tenferro_ref.pjrt.transfer import Download, Upload, dtype_of_element, spec_of_array
from tests.laws.cases import Array, generated, same
from tests.laws.strides import views

pytestmark = pytest.mark.once


#: Any handle will do, and none is zero.
CLIENT, DEVICE, BUFFER, EVENT = 11, 12, 13, 14


class Plugin:
    """Holds one array; events are counted until they are awaited."""

    def __init__(self, *, honours: bool) -> None:
        self.honours = honours
        self.events = 0
        self.asked = False
        self.held = np.empty(0)

    def invoke(self, name: str, args: Any) -> None:
        (self._upload if name == "Client_BufferFromHostBuffer" else self._download)(args)
        self.events += 1

    def await_event(self, raw: int, call: str, looks: int = 0) -> None:
        self.events -= raw == EVENT

    def _upload(self, args: Any) -> None:
        dtype = dtype_of_element(args.type).numpy
        shape, strides = (
            (c_int64 * n).from_address(at)[:] if n else []
            for at, n in ((args.dims, args.num_dims), (args.byte_strides, args.num_byte_strides))
        )
        assert (args.client, args.device, len(shape)) == (CLIENT, DEVICE, len(strides))
        self.held = np.empty(shape, dtype)
        for index in np.ndindex(*shape):
            at = args.data + sum(i * s for i, s in zip(index, strides, strict=True))
            assert at % dtype.alignment == 0, f"an element at an address that {dtype} has not"
            self.held[index] = np.frombuffer(string_at(at, dtype.itemsize), dtype)[0]
        args.buffer, args.done_with_host_buffer = BUFFER, EVENT

    def _download(self, args: Any) -> None:
        self.asked = bool(args.host_layout)
        order = [*reversed(range(self.held.ndim))]
        if args.host_layout and self.honours:
            layout = abi.STRUCTS["Buffer_MemoryLayout"].from_address(args.host_layout)
            assert (layout.type, layout.tiled.minor_to_major_size) == (abi.LAYOUT_TILED, self.held.ndim)
            order = list((c_int64 * self.held.ndim).from_address(layout.tiled.minor_to_major))
        data = self.held.transpose(order[::-1]).tobytes("C")
        assert (args.src, args.dst_size) == (BUFFER, len(data))
        memmove(args.dst, data, len(data))
        args.event = EVENT


def arrays() -> list[Array]:
    """Of all dtypes and many ranks."""
    drawn = {(a.dtype, a.shape): a for case in generated(5, 48) for a in case.inputs if a.size < 240}
    return [*drawn.values(), np.zeros((2, 0, 3), np.float32)]


@pytest.mark.parametrize("honours", [True, False], ids=["by layout", "row-major"])
def test_arrays_of_any_strides_arrive_and_come_back_dense_and_column_major(honours: bool) -> None:
    assert max(x.ndim for x in arrays()) > 2
    for x in arrays():
        plugin, spec = Plugin(honours=honours), spec_of_array(x)
        api = cast(Api, plugin)
        upload, download = Upload(api, CLIENT, DEVICE, spec), Download(api, spec, honours)
        assert download.nbytes == math.prod(x.shape) * x.itemsize
        for view in (x, *(np.asarray(v.data) for v in views(x))):
            raw = upload(view)
            assert raw == BUFFER
            assert same(plugin.held, x), f"strides {view.strides}"
            back = download(raw)
            assert same(back, x), f"strides {view.strides}"
            assert back.flags.f_contiguous
            assert back.flags.owndata
            assert plugin.asked == (honours and x.ndim > 1)
        assert plugin.events == 0


@pytest.mark.parametrize("dtype", [DType.F6E2M3FN, DType.F6E3M2FN])
def test_a_dtype_without_buffers_is_refused_whoever_says_that_it_comes(dtype: DType) -> None:
    """An executable that declares such a parameter, or an array."""
    with pytest.raises(UnsupportedDType, match=dtype.name):
        Upload(cast(Api, Plugin(honours=True)), CLIENT, DEVICE, (dtype, (3,)))
    with pytest.raises(UnsupportedDType, match=dtype.name):
        spec_of_array(np.zeros(3, dtype.numpy))
