"""What travels between the harness and a worker: msgpack maps, with arrays as `[dtype, shape, column-major bytes]`."""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import Any

import msgpack
import numpy as np

from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.tensor import Array, column_major

Message = dict[str, Any]


def send(connection: Connection, message: Message) -> None:
    connection.send_bytes(msgpack.packb(message))


def receive(connection: Connection) -> Message:
    """The next message.

    Raises
    ------
    EOFError
        The other side is gone.
    """
    message = msgpack.unpackb(connection.recv_bytes())
    if not isinstance(message, dict):
        raise EOFError("not a message")
    return message


def pack(array: Array) -> list[Any]:
    return [DType.of(array).name, list(array.shape), column_major(array).tobytes("F")]


def unpack(packed: list[Any]) -> Array:
    name, shape, data = packed
    return np.frombuffer(data, DType[name].numpy).reshape(shape, order="F")


def pack_error(error: TenferroError) -> Message:
    return {"kind": error.kind, "facts": {k: _plain(v) for k, v in error.facts().items()}}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def unpack_error(packed: Message) -> TenferroError:
    """The same error on this side: kinds are those of the taxonomy, facts are plain."""
    kinds = {kind.__name__: kind for kind in _kinds(TenferroError)}
    facts = {k: tuple(v) if isinstance(v, list) else v for k, v in packed["facts"].items()}
    return kinds[packed["kind"]](**facts)


def _kinds(base: type[TenferroError]) -> list[type[TenferroError]]:
    return [base, *(kind for child in base.__subclasses__() for kind in _kinds(child))]
