"""Device buffers and events as objects that own their native part.

Lives here: `Buffer`, `Event`, and which executions a buffer waits for. Does not live here: how bytes are copied (`transfer`), and
execution (`executable`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, c_void_p, cast
from typing import ClassVar

from tenferro_ref.errors import PjrtCall
from tenferro_ref.pjrt.native import Api, Handle, reported_as
from tenferro_ref.pjrt.transfer import NDArray, Owner, TensorSpec, show_spec, spec_of_buffer
from tenferro_ref.placement import Placement


class Event(Handle):
    """Something that a plugin does in the background."""

    __slots__ = ()
    native: ClassVar[str] = "Event"

    def ready(self) -> bool:
        """Whether it has ended, well or not."""
        return bool(self._api.call("Event_IsReady", event=self.raw).is_ready)

    def wait(self, timeout: float | None = None) -> None:
        """Block until it has ended.

        Parameters
        ----------
        timeout
            Seconds; None waits for ever inside the plugin, where Python cannot interrupt it.

        Raises
        ------
        PjrtCall
            If it ended with an error, or (DEADLINE_EXCEEDED) did not end in time.
        """
        if timeout is not None:
            deadline, pause = time.monotonic() + timeout, 1e-5
            while not self.ready():
                if time.monotonic() > deadline:
                    raise PjrtCall("PJRT_Event_Await", "DEADLINE_EXCEEDED", f"not ready after {timeout} s")
                time.sleep(pause)
                pause = min(2 * pause, 0.01)
        self._api.call("Event_Await", event=self.raw)

    def failure(self) -> PjrtCall | None:
        """The error that it has ended with; None if it ended well, or has not ended."""
        if self.ready():
            try:
                self._api.call("Event_Error", event=self.raw)
            except PjrtCall as error:
                if error.code:
                    return error
                raise
        return None

    def on_ready(self, callback: Callable[[PjrtCall | None], None]) -> None:
        """Have `callback` called with the error, or None, once it has ended.

        The call comes from a thread of the plugin, or from this one if it has ended already; the event may be closed before. What
        the callback raises goes to `sys.unraisablehook`. It must not wait for anything that this plugin does.

        Raises
        ------
        PjrtCall
            If the plugin does not have the function; then `callback` is never called.
        """
        number = next(_NUMBERS)
        _CALLBACKS[number] = self._api, callback
        try:
            self._api.call("Event_OnReady", event=self.raw, callback=cast(_CALLED, c_void_p).value, user_arg=number)
        except PjrtCall:
            del _CALLBACKS[number]
            raise


# one native function for all callbacks, which stays alive while it runs; the callbacks are known to it by numbers from 1
_CALLBACKS: dict[int, tuple[Api, Callable[[PjrtCall | None], None]]] = {}
_NUMBERS = itertools.count(1)


def _call(error: int | None, number: int) -> None:
    api, callback = _CALLBACKS.pop(number)
    callback(api.exception("Event_OnReady", error) if error else None)


_CALLED = CFUNCTYPE(None, c_void_p, c_void_p)(_call)


def unfinished(buffers: Sequence[Buffer]) -> tuple[Event, ...]:
    """The executions that `buffers` wait for, each once, oldest first, without the first ones that have ended well.

    So a chain of executions without a wait keeps the events of those under way only.
    """
    events = list(dict.fromkeys(event for buffer in buffers for event in buffer.executions))
    over = 0
    while over < len(events) and events[over].ready() and events[over].failure() is None:
        over += 1
    return tuple(events[over:])


class Buffer(Handle):
    """A tensor on the device of a client, perhaps one that is still being computed.

    Attributes
    ----------
    client
        The client that it belongs to; no other can use it.
    device
        Index of its device among those of the client.
    executions
        Events of the executions that its contents come from, as far as they may be under way.
    """

    __slots__ = ("_spec", "client", "device", "executions")
    native: ClassVar[str] = "Buffer"

    def __init__(
        self,
        client: Owner,
        raw: int,
        spec: TensorSpec | None = None,
        executions: tuple[Event, ...] = (),
        device: int = 0,
    ) -> None:
        super().__init__(client.api, raw, "Client_BufferFromHostBuffer")
        self.client = client
        self.executions = executions
        self.device = device
        self._spec = spec
        client.adopt(self)

    @property
    def placement(self) -> Placement:
        """The device that it is on."""
        return self.client.placements[self.device]

    @property
    def spec(self) -> TensorSpec:
        """Dtype and shape, as the plugin says.

        Raises
        ------
        UnsupportedDType
            If the engine has no such dtype.
        """
        if self._spec is None:
            self._spec = spec_of_buffer(self._api, self.raw)
        return self._spec

    def numpy(self) -> NDArray:
        """The contents as a new column-major array; waits until they are there.

        Raises
        ------
        PjrtCall
            If the copy fails, or an execution that the contents come from has failed.
        """
        self._await_executions()
        return self.client.download(self.spec)(self.raw)

    def wait(self, timeout: float | None = None) -> None:
        """Block until the contents are there.

        Raises
        ------
        PjrtCall
            If an execution that they come from has failed, or (DEADLINE_EXCEEDED) they are not there after `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        self._await_executions(deadline)
        with self.ready_event() as event:
            event.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def _await_executions(self, deadline: float | None = None) -> None:
        if not self._raw:
            return  # whatever is asked next says so
        try:
            for event in self.executions:
                event.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
        except PjrtCall as error:
            raise reported_as("LoadedExecutable_Execute", error) from None
        self.executions = ()

    def close(self) -> None:
        """Destroy the native object; nothing happens the second time. The execution that computes it goes on."""
        self.executions = ()
        super().close()

    def ready_event(self) -> Event:
        """An event that ends when the contents are there, well or not; close it after use."""
        raw = self._api.call("Buffer_ReadyEvent", buffer=self.raw).event
        return Event(self._api, raw, "Buffer_ReadyEvent")

    def __repr__(self) -> str:
        return f"Buffer({show_spec(self._spec) if self._spec else '?'}, {self.state.value})"
