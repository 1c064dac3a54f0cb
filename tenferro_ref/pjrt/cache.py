"""Executables that are kept, because the same module is often wanted again: with other values, reduced, alone, or tomorrow.

In memory they are loaded programs of one client; on the disk (`disk`) serialised ones, which processes share. A key names everything that
an executable depends on, so that a change of any of it is a miss.
"""

from __future__ import annotations

import json
import os
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from hashlib import sha256
from typing import Self

from tenferro_ref.errors import FormatError, InvalidArgument, PjrtCall
from tenferro_ref.pjrt.client import Client
from tenferro_ref.pjrt.discovery import Option
from tenferro_ref.pjrt.disk import DiskCache, processor
from tenferro_ref.pjrt.executable import Executable
from tenferro_ref.pjrt.native import HandleState
from tenferro_ref.pjrt.transfer import TensorSpec, show_spec

#: The layouts that every executable here is compiled for.
LAYOUT = "the plugin's own on the device"


@dataclass(frozen=True)
class CacheKey:
    """What an executable depends on.

    Attributes
    ----------
    module
        SHA-256 of the StableHLO module's text or bytecode.
    plugin
        SHA-256 of the plugin's file as it was loaded.
    platform
        Name and version of the platform, the options that the client was made with, and the environment that XLA reads
        options from: XLA_FLAGS, and what goes with the plugin.
    options
        SHA-256 of the CompileOptionsProto.
    layout
        Layout policy.
    types
        Parameter types, and the result types that are expected.
    """

    module: str
    plugin: str
    platform: str
    options: str
    layout: str
    types: str

    def digest(self) -> str:
        """SHA-256 of the key and of the processor, in 64 hexadecimal digits: what an executable on the disk is called."""
        return sha256(json.dumps([*astuple(self), processor()]).encode()).hexdigest()


class ExecutableCache:
    """Executables of one client; closing the cache frees them, not the client.

    Parameters
    ----------
    size
        How many are kept in memory; the least recently used goes first.
    disk
        Where they are kept beyond this process, None for nowhere.

    Attributes
    ----------
    statistics
        How often an executable was "kept" in memory, "loaded" from the disk, or "compiled"; how often one on the disk was
        "healed", that is damaged or refused by the plugin, and compiled again; how many were "written" there.

    Raises
    ------
    InvalidArgument
        If `size` is less than 1.
    """

    def __init__(self, client: Client, size: int = 64, disk: DiskCache | None = None) -> None:
        if size < 1:
            raise InvalidArgument(op="ExecutableCache", argument="size", detail=f"{size} is less than 1")
        self.client = client
        self.size = size
        self.disk = disk
        self.statistics: Counter[str] = Counter()
        self._kept: OrderedDict[CacheKey, Executable] = OrderedDict()

    def compile(
        self,
        code: str | bytes,
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
        key = self.key(code, encoded, parameters, results)
        executable = self._kept.pop(key, None)
        if executable is None or executable.state is HandleState.CLOSED:
            executable = self._from_disk(key) or self._compiled(key, code, encoded, parameters, results)
        else:
            self.statistics["kept"] += 1
        self._kept[key] = executable
        if len(self._kept) > self.size:
            self._kept.popitem(last=False)[1].close()
        return executable

    def key(
        self, code: str | bytes, options: bytes, parameters: Sequence[TensorSpec], results: Sequence[TensorSpec] | None
    ) -> CacheKey:
        """What an executable of that module and those options is known by."""
        client = self.client
        ref, flags = client.plugin.ref, os.environ.get("XLA_FLAGS", "")
        created, variables = sorted(client.create_options.items()), sorted(ref.environment.items())
        return CacheKey(
            module=sha256(code.encode() if isinstance(code, str) else code).hexdigest(),
            plugin=client.plugin.sha256(),
            platform=f"{client.platform_name} {client.platform_version} {created} {flags!r} {variables}",
            options=sha256(options).hexdigest(),
            layout=LAYOUT,
            types=f"{_shown(parameters)} -> {'?' if results is None else _shown(results)}",
        )

    def _from_disk(self, key: CacheKey) -> Executable | None:
        data = self.disk.read(key.digest()) if self.disk else None
        if self.disk is None or data is None:
            return None
        try:
            executable = self.client.deserialize(data)
        except (FormatError, PjrtCall):  # damaged, or the plugin does not take it back
            self.disk.remove(key.digest())
            self.statistics["healed"] += 1
            return None
        self.statistics["loaded"] += 1
        return executable

    def _compiled(
        self,
        key: CacheKey,
        code: str | bytes,
        options: bytes,
        parameters: Sequence[TensorSpec],
        results: Sequence[TensorSpec] | None,
    ) -> Executable:
        executable = self.client.compile(code, options, parameters=parameters, results=results)
        self.statistics["compiled"] += 1
        if self.disk is not None:
            try:
                data = executable.serialize()
            except PjrtCall:  # a plugin may be unable to
                return executable
            self.statistics["written"] += self.disk.write(key.digest(), data)
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


def _shown(specs: Sequence[TensorSpec]) -> str:
    return f"({', '.join(map(show_spec, specs))})"
