"""What a probe of the C API gets: the plugin, a client, and calls below this package's own checks.

A probe returns if what it looks at holds, and raises `Fails` or `Lacks` if not. Lives here: that contract, and raw calls, since a
client that checks its arguments cannot show what a plugin does with wrong ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from ctypes import addressof, c_int64, c_void_p
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tenferro_ref.dtype import DType
from tenferro_ref.errors import PjrtCall
from tenferro_ref.pjrt import Buffer, Client, Executable, Plugin, PluginRef, TensorSpec, abi, load_plugin, native

NDArray = np.ndarray[Any, Any]


class Fails(Exception):
    """What the probe looks at does not hold."""


class Lacks(Exception):
    """The plugin, or this machine, has not got what the probe looks at."""


@dataclass
class Session:
    """A plugin in this process, with one client that the probes share.

    Attributes
    ----------
    patience
        Seconds after which an event that is not ready never will be.
    """

    ref: PluginRef
    patience: float = 10.0

    @cached_property
    def plugin(self) -> Plugin:
        """The plugin, loaded and initialised."""
        return load_plugin(self.ref)

    @cached_property
    def client(self) -> Client:
        """The client.

        Raises
        ------
        Lacks
            The plugin makes none here, for instance without its hardware.
        """
        try:
            return Client(self.plugin)
        except PjrtCall as error:
            raise Lacks(f"no client: {error}") from None

    @property
    def api(self) -> native.Api:
        """The plugin's function table."""
        return self.plugin.api

    @cached_property
    def device(self) -> int:
        """The first device, raw."""
        listed = self.api.call("Client_AddressableDevices", client=self.client.raw)
        return native.pointers(listed.addressable_devices, listed.num_addressable_devices)[0]

    def need(self, *functions: str) -> None:
        """Raise `Lacks` if the table has not these functions."""
        for function in functions:
            if not self.api.has(function):
                raise Lacks(f"the table has no PJRT_{function}")

    # --- programs ---

    def compile(self, text: str, *parameters: TensorSpec) -> Executable:
        """A program of this package's own writing."""
        return self.client.compile(text, parameters=parameters)

    @cached_property
    def sum(self) -> Executable:
        """x + y of two F32[4], which nearly every plugin can do."""
        return self.compile(SUM, F32_4, F32_4)

    def execute(
        self, executable: Executable, arguments: Sequence[int], *, keep: Sequence[int] = ()
    ) -> tuple[list[int], int]:
        """Execute a program of one result on raw buffers, unchecked: raw results, and the execution's raw event (0 for none).

        Parameters
        ----------
        keep
            Positions of arguments that must not be donated.
        """
        inputs = (c_void_p * len(arguments))(*arguments)
        outputs = (c_void_p * 1)()
        lists, results, done = c_void_p(addressof(inputs)), c_void_p(addressof(outputs)), c_void_p()
        kept = (c_int64 * len(keep))(*keep)
        options = abi.new(
            abi.STRUCTS["ExecuteOptions"],
            non_donatable_input_indices=addressof(kept),
            num_non_donatable_input_indices=len(keep),
        )
        self.api.call(
            "LoadedExecutable_Execute",
            executable=executable.raw,
            options=addressof(options),
            argument_lists=addressof(lists),
            num_devices=1,
            num_args=len(arguments),
            output_lists=addressof(results),
            device_complete_events=addressof(done),
        )
        if not outputs[0]:
            raise Fails("an execution without an error gives no result")
        return [raw or 0 for raw in outputs], done.value or 0

    def results(self, executable: Executable, *arguments: Buffer, keep: Sequence[int] = ()) -> list[NDArray]:
        """Execute on buffers and download the results, each step in limited time."""
        made, done = self.execute(executable, [b.raw for b in arguments], keep=keep)
        self.finish(done)
        arrays = []
        for raw in made:
            with Buffer(self.client, raw) as buffer:
                arrays.append(buffer.numpy())
        return arrays

    # --- events ---

    def ready(self, event: int) -> bool:
        """Whether a raw event becomes ready in time."""
        deadline, pause = time.monotonic() + self.patience, 1e-5
        while not self.api.call("Event_IsReady", event=event).is_ready:
            if time.monotonic() > deadline:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.01)
        return True

    def finish(self, event: int) -> None:
        """Wait for a raw event in limited time, raise its error, destroy it; 0 is no event."""
        if event:
            if not self.ready(event):
                raise Fails(f"an event is not ready after {self.patience:g} s")
            self.api.await_event(event, "Event_Await")

    # --- raw transfers ---

    def upload(
        self,
        element: str,
        x: NDArray,
        *,
        strides: Sequence[int] | None = None,
        dims: Sequence[int] | None = None,
        semantics: int = abi.IMMUTABLE_ONLY_DURING_CALL,
        layout: Any = None,
    ) -> tuple[int, int]:
        """A raw buffer with the contents of `x`, and the raw event of when `x` is no longer read (0 for none)."""
        shape, step = x.shape if dims is None else dims, x.strides if strides is None else strides
        sizes, steps = (c_int64 * len(shape))(*shape), (c_int64 * len(step))(*step)
        args = self.api.call(
            "Client_BufferFromHostBuffer",
            client=self.client.raw,
            data=x.ctypes.data,
            type=abi.BUFFER_TYPES.index(element),
            dims=addressof(sizes),
            num_dims=len(shape),
            byte_strides=addressof(steps),
            num_byte_strides=len(step),
            host_buffer_semantics=semantics,
            device=self.device,
            device_layout=None if layout is None else addressof(layout),
        )
        if not args.buffer:
            raise Fails("the plugin returned neither an error nor a buffer")
        return int(args.buffer), args.done_with_host_buffer or 0

    def download(self, raw: int, out: NDArray, minor_to_major: Sequence[int] | None = None) -> NDArray:
        """The bytes of a raw buffer, written into `out`; in the order of axes that is asked for, else as the plugin keeps them."""
        layout = None if minor_to_major is None else tiled(minor_to_major)
        args = self.api.call(
            "Buffer_ToHostBuffer",
            src=raw,
            host_layout=None if layout is None else addressof(layout),
            dst=out.ctypes.data,
            dst_size=out.nbytes,
        )
        self.finish(args.event or 0)
        return out


def tiled(minor_to_major: Sequence[int]) -> Any:
    """A PJRT_Buffer_MemoryLayout; it holds what it points to."""
    order = (c_int64 * len(minor_to_major))(*minor_to_major)
    inner = abi.new(
        abi.STRUCTS["Buffer_MemoryLayout_Tiled"],
        minor_to_major=addressof(order),
        minor_to_major_size=len(minor_to_major),
    )
    layout = abi.new(abi.STRUCTS["Buffer_MemoryLayout"], tiled=inner, type=abi.LAYOUT_TILED)
    layout.keep = order
    return layout


def refused(call: Callable[[], object], what: str) -> None:
    """Check that `call` ends with a status of the C API.

    Raises
    ------
    Fails
        It is taken, or the error is without a message.
    """
    try:
        call()
    except PjrtCall as error:
        if not error.code:
            raise Fails(f"{what}: no status: {error}") from None
        if not error.detail.strip():
            raise Fails(f"{what}: {error.code} without a message") from None
        return
    raise Fails(f"{what}: taken without an error")


F32_4: TensorSpec = (DType.F32, (4,))
X = np.array([1.0, -2.0, 0.5, 4.0], np.float32)
Y = np.array([2.0, 8.0, -0.25, 1.0], np.float32)
SUM = """module @sum {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


def same_bits(got: NDArray, want: NDArray, what: str) -> None:
    """Check that two arrays have the same shape and bytes.

    Raises
    ------
    Fails
        They differ.
    """
    if got.shape != want.shape or got.tobytes() != want.tobytes():
        raise Fails(f"{what}: got {_shown(got)}, expected {_shown(want)}")


def _shown(x: NDArray) -> str:
    return " ".join(np.array2string(x.ravel(), threshold=12, edgeitems=6, separator=", ").split())
