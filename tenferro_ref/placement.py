"""Where a tensor is: on the host, or on a device of a client. Programs say nothing of it, and nothing moves by itself."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_ref.errors import PlacementMismatch


@dataclass(frozen=True, slots=True)
class Placement:
    """The memory of the host, or of one device.

    Attributes
    ----------
    plugin
        Name of the plugin that the device belongs to; "" for the host.
    client
        Number of the client in this process: clients of one plugin do not share buffers.
    device
        Id of the device.
    """

    plugin: str = ""
    client: int = 0
    device: int = 0

    def __str__(self) -> str:
        return f"device {self.device} of client {self.client} of {self.plugin}" if self.plugin else "the host"

    def admit(self, op: str, argument: str, value: object) -> None:
        """Refuse a value that is elsewhere; a value that says nothing of it, such as an array, is on the host.

        Raises
        ------
        PlacementMismatch
            Its `placement` is another one.
        """
        actual = getattr(value, "placement", HOST)
        if actual != self:
            remedy = "numpy() of the buffer" if actual != HOST else ""
            if self != HOST:
                remedy += (", then " if remedy else "") + "put() of the client"
            raise PlacementMismatch(op, argument, str(actual), str(self), remedy)


HOST = Placement()
