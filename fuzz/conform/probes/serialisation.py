"""Serialised executables: what is loaded again computes the same, and what is damaged is refused."""

from __future__ import annotations

from ctypes import CFUNCTYPE, c_void_p, string_at

import numpy as np

from fuzz.conform.probes.session import F32_4, SUM, Fails, Session, X, Y, refused, same_bits
from fuzz.conform.probes.table import probe
from tenferro_ref.pjrt import Executable, abi

_FUNCTIONS = ("Executable_Serialize", "Executable_DeserializeAndLoad")


def _serialize(s: Session, executable: Executable) -> bytes:
    """The plugin's own bytes."""
    s.need(*_FUNCTIONS)
    inner = s.api.call("LoadedExecutable_GetExecutable", loaded_executable=executable.raw).executable
    try:
        args = s.api.call("Executable_Serialize", executable=inner)
        data = string_at(args.serialized_bytes, args.serialized_bytes_size)
        CFUNCTYPE(None, c_void_p)(args.serialized_executable_deleter)(args.serialized_executable)
    finally:
        s.api.destroy("Executable", inner)
    return data


def _load(s: Session, data: bytes) -> Executable:
    name = "Executable_DeserializeAndLoad"
    args = s.api.call(
        name, client=s.client.raw, serialized_executable=abi.address(data), serialized_executable_size=len(data)
    )
    return Executable(s.client, args.loaded_executable, name, [F32_4, F32_4], None)


@probe("serialisation", "an executable that is loaded again computes the same")
def _(s: Session) -> None:
    data = _serialize(s, s.sum)
    if not data:
        raise Fails("it is serialised to no bytes")
    with _load(s, data) as loaded:
        same_bits(loaded.run([X, Y])[0], s.sum.run([X, Y])[0], "x + y")
        if (loaded.name, loaded.results) != (s.sum.name, s.sum.results):
            raise Fails(f"{loaded.name} with results {loaded.results}, before {s.sum.name} with {s.sum.results}")


@probe("serialisation", "it outlives the executable that it was made of, and is serialised again")
def _(s: Session) -> None:
    with s.compile(SUM, F32_4, F32_4) as executable:
        data = _serialize(s, executable)
    with _load(s, data) as loaded, _load(s, _serialize(s, loaded)) as again:
        same_bits(again.run([X, Y])[0], X + Y, "x + y")


@probe("serialisation", "no bytes are refused")
def _(s: Session) -> None:
    s.need(*_FUNCTIONS)
    refused(lambda: _load(s, b"").close(), "no bytes")


@probe("serialisation", "bytes that are no executable are refused")
def _(s: Session) -> None:
    s.need(*_FUNCTIONS)
    refused(lambda: _load(s, bytes(range(256)) * 16).close(), "4,096 bytes of anything")


@probe("serialisation", "half of an executable is refused")
def _(s: Session) -> None:
    data = _serialize(s, s.sum)
    refused(lambda: _load(s, data[: len(data) // 2]).close(), f"{len(data) // 2} of {len(data)} bytes")


@probe("serialisation", "a damaged executable is refused, or computes the same")
def _(s: Session) -> None:
    data = bytearray(_serialize(s, s.sum))
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(data), 4):
        damaged = bytearray(data)
        damaged[place] ^= 0x10

        def call(damaged: bytes = bytes(damaged)) -> None:
            with _load(s, damaged) as loaded:
                if not np.array_equal(loaded.run([X, Y])[0], X + Y):
                    raise Fails(f"with one bit changed x + y is {loaded.run([X, Y])[0].tolist()}")

        try:
            refused(call, "")
        except Fails as told:
            if "taken without an error" not in str(told):
                raise
