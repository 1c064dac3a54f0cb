"""A serialised executable as bytes: who can load it again and what its types are, before the plugin's own bytes.

A plugin may load what another build wrote, and return garbage: so the file of the plugin and the processor must be the same. The first line
holds the form's name and the SHA-256 of the rest, which shows damage; it is no protection against an attacker, who can compute one.
"""

from __future__ import annotations

import json
from hashlib import sha256

import msgspec

from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError
from tenferro_ref.files import decode
from tenferro_ref.pjrt.disk import processor
from tenferro_ref.pjrt.transfer import Owner, TensorSpec

#: Name and version of the form.
MAGIC = b"tenferro-pjrt-executable 2"
_WHERE = "serialised executable"
_Types = tuple[TensorSpec, ...] | None


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """What stands before the plugin's bytes.

    Attributes
    ----------
    plugin, plugin_sha256
        Name and file hash of the plugin that can load it.
    cpu
        Hash of the processor's features (`disk.processor`).
    parameters, results
        Dtype and shape of each, None if they are not known.
    """

    plugin: str
    plugin_sha256: str
    cpu: str
    parameters: list[tuple[str, tuple[int, ...]]] | None
    results: list[tuple[str, tuple[int, ...]]] | None


def pack(client: Owner, parameters: _Types, results: _Types, body: bytes) -> bytes:
    """The bytes of an executable of `client`; `body` are the plugin's."""
    ref = client.plugin.ref
    header = Header(ref.name, client.plugin.sha256(), processor(), _plain(parameters), _plain(results))
    content = json.dumps(msgspec.to_builtins(header)).encode() + b"\n" + body
    return b"%s %s\n%s" % (MAGIC, sha256(content).hexdigest().encode(), content)


def header_of(data: bytes) -> Header:
    """What a serialised executable says of itself.

    Raises
    ------
    FormatError
        The bytes are none, or damaged, or of another version.
    """
    return _open(data)[0]


def unpack(client: Owner, data: bytes) -> tuple[bytes, _Types, _Types]:
    """The plugin's own bytes, parameter types and result types.

    Raises
    ------
    FormatError
        As `header_of`; or another plugin file made them, or for another processor.
    """
    header, body = _open(data)
    for name, expected in (("plugin_sha256", client.plugin.sha256()), ("cpu", processor())):
        if getattr(header, name) != expected:
            detail = f"{name} is {getattr(header, name)!r}, expected {expected!r}: compile the program again"
            raise FormatError(_WHERE, detail)
    return body, _typed(header.parameters), _typed(header.results)


def _open(data: bytes) -> tuple[Header, bytes]:
    mark, _, content = data.partition(b"\n")
    if not mark.startswith(MAGIC + b" "):
        detail = f"it does not begin with {MAGIC.decode()!r}: no executable, or one of another version"
        raise FormatError(_WHERE, detail)
    if mark[len(MAGIC) + 1 :] != sha256(content).hexdigest().encode():
        raise FormatError(_WHERE, "it is damaged: the SHA-256 of its content is not the one that it begins with")
    line, _, body = content.partition(b"\n")
    try:
        header = msgspec.json.decode(decode(line, _WHERE), type=Header)
    except msgspec.DecodeError as error:
        raise FormatError(_WHERE, f"its header cannot be read: {error}") from None
    for name, shape in (*(header.parameters or ()), *(header.results or ())):
        if name not in DType.__members__:
            raise FormatError(_WHERE, f"its header has no dtype of ours: {name!r}")
        if min(shape, default=0) < 0:
            raise FormatError(_WHERE, f"its header has a shape that is none: {list(shape)}")
    return header, body


def _plain(specs: _Types) -> list[tuple[str, tuple[int, ...]]] | None:
    return None if specs is None else [(dtype.name, shape) for dtype, shape in specs]


def _typed(specs: list[tuple[str, tuple[int, ...]]] | None) -> _Types:
    return None if specs is None else tuple((DType[name], shape) for name, shape in specs)
