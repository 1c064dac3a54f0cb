"""What travels between the harness and a worker: msgpack maps, with arrays as `[dtype, shape, column-major bytes]`."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from multiprocessing.connection import Connection
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgpack
import numpy as np

from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, TenferroError
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
    FormatError
        It is no message: native code has the socket, too.
    """
    try:
        message = msgpack.unpackb(connection.recv_bytes())
    except (ValueError, RecursionError) as error:  # all that msgpack raises for bytes that it cannot read
        raise FormatError(where="a message", detail=f"not msgpack: {error}") from None
    if not isinstance(message, dict):
        raise FormatError(where="a message", detail="not a map")
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


def unpack_error(packed: Any) -> TenferroError:
    """The same error on this side: kinds are those of the taxonomy, facts are plain and of their declared types.

    Raises
    ------
    KeyError
        It is of none of the kinds, or lacks facts that its kind has, or has others.
    FormatError
        It is no record of an error, or a fact has another type.
    """
    if not isinstance(packed, dict) or not isinstance(packed.get("facts"), dict):
        raise FormatError(where="an error's record", detail="not a map with facts")
    if not isinstance(packed.get("kind"), str):
        raise FormatError(where="an error's record", detail="its kind is no word")
    kind: Any = _taxonomy()[packed["kind"]]
    facts = {k: tuple(v) if isinstance(v, list) else v for k, v in packed["facts"].items()}
    if facts.keys() != (types := _types(kind)).keys():
        raise KeyError(kind.__name__)
    for name, value in facts.items():
        if not _fits(types[name], value):
            detail = f"{name} is of type {type(value).__name__}"
            raise FormatError(where=f"the record of an error of kind {kind.__name__}", detail=detail)
    error: TenferroError = kind(**facts)
    return error


def _taxonomy() -> dict[str, type[TenferroError]]:
    """The kinds by name; those that name themselves by a fact are none of them."""
    return {kind.__name__: kind for kind in _kinds(TenferroError) if kind.kind is TenferroError.kind}


@cache
def _types(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind)}


def _fits(kind: Any, value: Any) -> bool:
    if kind is Any:
        return isinstance(value, (str, int, float, type(None)))
    if isinstance(kind, UnionType):
        return any(_fits(k, value) for k in get_args(kind))
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(_fits(get_args(kind)[0], v) for v in value)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _kinds(base: type[TenferroError]) -> list[type[TenferroError]]:
    return [base, *(kind for child in base.__subclasses__() for kind in _kinds(child))]
