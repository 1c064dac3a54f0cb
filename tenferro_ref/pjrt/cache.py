"""Executables that are kept, because the same module is often wanted again: with other values, reduced, or alone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Self

from tenferro_ref.errors import InvalidArgument
from tenferro_ref.pjrt.client import Client
from tenferro_ref.pjrt.discovery import Option
from tenferro_ref.pjrt.executable import Executable
from tenferro_ref.pjrt.native import HandleState
from tenferro_ref.pjrt.transfer import TensorSpec


class ExecutableCache:
    """Executables of one client, by module, compile options and types; closing the cache frees them, not the client.

    Parameters
    ----------
    size
        How many are kept; the least recently used goes first.

    Raises
    ------
    InvalidArgument
        If `size` is less than 1.
    """

    def __init__(self, client: Client, size: int = 64) -> None:
        if size < 1:
            raise InvalidArgument(op="ExecutableCache", argument="size", detail=f"{size} is less than 1")
        self.client = client
        self.size = size
        self._kept: OrderedDict[object, Executable] = OrderedDict()

    def compile(
        self,
        code: str,
        options: Mapping[str, Option] | bytes | None = None,
        *,
        parameters: Sequence[TensorSpec],
        results: Sequence[TensorSpec] | None = None,
    ) -> Executable:
        """`Client.compile`, unless the executable is here; it belongs to this cache.

        Raises
        ------
        InvalidArgument, UnsupportedDType, PjrtCall
            As `Client.compile`.
        """
        encoded = options if isinstance(options, bytes) else self.client.encode(options)
        key = code, encoded, tuple(parameters), None if results is None else tuple(results)
        executable = self._kept.pop(key, None)
        if executable is None or executable.state is HandleState.CLOSED:
            executable = self.client.compile(code, encoded, parameters=parameters, results=results)
        self._kept[key] = executable
        if len(self._kept) > self.size:
            self._kept.popitem(last=False)[1].close()
        return executable

    def __len__(self) -> int:
        return len(self._kept)

    def close(self) -> None:
        """Free the executables."""
        while self._kept:
            self._kept.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
