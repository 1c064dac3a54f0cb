"""Device buffers and events as objects that own their native part.

Lives here: `Buffer`, `Event`. Does not live here: how bytes are copied (`transfer`), and execution (`executable`).
"""

from __future__ import annotations

import time
from typing import ClassVar

from tenferro_ref.errors import PjrtCall
from tenferro_ref.pjrt.native import Handle
from tenferro_ref.pjrt.transfer import NDArray, Owner, TensorSpec, show_spec, spec_of_buffer


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


class Buffer(Handle):
    """A tensor on the device of a client.

    Attributes
    ----------
    client
        The client that it belongs to; no other can use it.
    """

    __slots__ = ("_spec", "client")
    native: ClassVar[str] = "Buffer"

    def __init__(self, client: Owner, raw: int, spec: TensorSpec | None = None) -> None:
        super().__init__(client.api, raw, "Client_BufferFromHostBuffer")
        self.client = client
        self._spec = spec
        client.adopt(self)

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
        """The contents as a new column-major array; waits until they are there."""
        return self.client.download(self.spec)(self.raw)

    def ready_event(self) -> Event:
        """An event that ends when the contents are there; close it after use."""
        raw = self._api.call("Buffer_ReadyEvent", buffer=self.raw).event
        return Event(self._api, raw, "Buffer_ReadyEvent")

    def __repr__(self) -> str:
        return f"Buffer({show_spec(self._spec) if self._spec else '?'}, {self.state.value})"
