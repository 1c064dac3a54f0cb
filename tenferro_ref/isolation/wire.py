"""What travels between the harness and a worker: msgpack maps, with arrays as `[dtype, shape, column-major bytes]`.

A message on the socket is its length in 8 bytes, most significant first, and then so many bytes of msgpack.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints

import msgpack
import msgspec
import numpy as np

from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, TenferroError
from tenferro_ref.tensor import Array, column_major

Message = dict[str, Any]

_LENGTH = struct.Struct(">Q")
#: Bytes of the longest message; a length beyond it is no length, but something else that was written to the socket.
_MOST_BYTES = 8 << 30
#: Names of files may hold bytes that are no UTF-8; Python keeps them as surrogates, which are packed as they are.
_SURROGATES = "surrogatepass"
#: Bytes asked for at once.
_CHUNK = 1 << 20


class Channel:
    """One end of a worker's socket, which this owns.

    `check` is called before each read and write: what it raises ends the exchange. If the socket has a timeout, no wait in
    between is longer than that.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def send(self, message: Message, check: Callable[[], None] = lambda: None) -> None:
        """Send a message.

        Raises
        ------
        ConnectionError
            The other side is gone.
        """
        body = msgpack.packb(message, unicode_errors=_SURROGATES)
        length = _LENGTH.pack(len(body))
        for data in (length + body,) if len(body) < _CHUNK else (length, body):
            left = memoryview(data)
            while left:
                check()
                with contextlib.suppress(TimeoutError):
                    left = left[self._socket.send(left) :]

    def receive(self, check: Callable[[], None] = lambda: None) -> Message:
        """The next message.

        Raises
        ------
        EOFError, ConnectionError
            The other side is gone.
        FormatError
            The bytes are no message: native code can write to the socket, too.
        """
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size, check))
        if length > _MOST_BYTES:
            raise FormatError(where="a message", detail=f"its length is {length} bytes, more than {_MOST_BYTES}")
        try:
            message = msgpack.unpackb(self._read(length, check), unicode_errors=_SURROGATES)
        except (ValueError, RecursionError) as error:  # all that msgpack raises for bytes that it cannot read
            raise FormatError(where="a message", detail=f"not msgpack: {error}") from None
        if not isinstance(message, dict):
            raise FormatError(where="a message", detail=f"a {type(message).__name__}, expected a map")
        return message

    def _read(self, size: int, check: Callable[[], None]) -> bytearray:
        data = bytearray()
        while len(data) < size:
            check()
            with contextlib.suppress(TimeoutError):
                part = self._socket.recv(min(_CHUNK, size - len(data)))
                if not part:
                    raise EOFError
                data += part
        return data

    def close(self) -> None:
        """Close the socket, which ends the other side."""
        self._socket.close()


def pack(array: Array) -> list[Any]:
    """An array as it travels."""
    return [DType.of(array).name, list(array.shape), column_major(array).tobytes("F")]


def unpack(packed: list[Any]) -> Array:
    """The array that `pack` packed, read-only."""
    name, shape, data = packed
    return np.frombuffer(data, DType[name].numpy).reshape(shape, order="F")


def output_sets(answer: Message) -> tuple[list[list[Array]], dict[str, float]]:
    """The arrays in an engine's answer, an input set after the other, and its seconds by phase.

    Raises
    ------
    AttributeError, KeyError, TypeError, ValueError
        The answer has another form.
    """
    arrays = [[unpack(packed) for packed in outputs] for outputs in answer["output_sets"]]
    return arrays, {str(phase): float(seconds) for phase, seconds in answer["seconds"].items()}


class _ErrorRecord(msgspec.Struct):
    kind: str
    facts: dict[str, str | bool | int | float | list[str | bool | int | float | None] | None]


def pack_error(error: TenferroError) -> Message:
    """The record of an error, for `unpack_error`."""
    return {"kind": error.kind, "facts": {k: _plain(v) for k, v in error.facts().items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    fits = not isinstance(value, int) or -(2**63) <= value < 2**64
    return value if fits and isinstance(value, int | float | bool | str | type(None)) else str(value)


def unpack_error(packed: Any) -> TenferroError:
    """The same error on this side: kinds are those of the taxonomy, facts are plain and of their declared types.

    Raises
    ------
    KeyError
        It is of none of the kinds, or lacks facts that its kind has, or has others.
    FormatError
        It is no record of an error, or a fact has another type.
    """
    try:
        record = msgspec.convert(packed, _ErrorRecord)
    except msgspec.ValidationError as error:
        raise FormatError(where="an error's record", detail=str(error)) from None
    kind: Any = _taxonomy()[record.kind]
    types = {f.name: get_type_hints(kind)[f.name] for f in fields(kind)}
    if record.facts.keys() != types.keys():
        raise KeyError(kind.__name__)
    try:
        facts = {name: msgspec.convert(value, types[name]) for name, value in record.facts.items()}
    except msgspec.ValidationError as error:
        raise FormatError(where=f"the record of an error of kind {kind.__name__}", detail=str(error)) from None
    unpacked: TenferroError = kind(**facts)
    return unpacked


def _taxonomy() -> dict[str, type[TenferroError]]:
    """The kinds by name; those that name themselves by a fact are none of them."""
    return {kind.__name__: kind for kind in _kinds(TenferroError) if kind.kind is TenferroError.kind}


def _kinds(base: type[TenferroError]) -> list[type[TenferroError]]:
    return [base, *(kind for child in base.__subclasses__() for kind in _kinds(child))]
