"""Damage that knows the form of what it damages: bytes, words of a text, values of JSON and MessagePack, members of an archive."""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgpack

#: Damages a sound input.
Mutation: TypeAlias = Callable[[random.Random, bytes], bytes]

_WORD = re.compile(rb"\w+|\s+|[^\w\s]")
#: What readers of numbers, strings and nested things trip over.
_HOSTILE = (
    b"", b"-1", b"0", b"1e999", b"NaN", b"-0.0", b"9223372036854775808", b"99999999999999999999999", b"null", b"true", b'"', b"'",
    b"\\u0000", b"\x00", b"\xff\xfe", b"\xc3\xa9", b"\xe2\x80\xae", b"\r\n", b"[[[[[[[[", b"]]]]", b"{" * 60, b"}", b",", b":", b"=",
    b"%0", b"%99", b"in0.0", b"../..", b"[" * 20_000,
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**63 - 1, -(2**63), 1e308, float("nan"), float("inf"), "", "\0", "x" * 5000, "F64", [], {}, [[]],
    [None] * 300, {"": ""}, {"kind": "x"},
)  # fmt: skip


def bytes_changed(rng: random.Random, data: bytes) -> bytes:
    """Some bytes changed, left out, doubled or turned round."""
    for _ in range(rng.randint(1, 4)):
        i, j = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        piece = data[i : min(j, i + 40)]
        data = rng.choice((
            data[:i] + rng.randbytes(rng.randint(1, 3)) + data[i + 1 :],
            data[:i] + data[i + len(piece) :],
            data[:j] + piece + data[j:],
            data[:i] + piece[::-1] + data[i + len(piece) :],
        )) or b"\0"  # fmt: skip
    return data


def words_changed(rng: random.Random, data: bytes) -> bytes:
    """Words of a text exchanged, left out, doubled, or replaced by what readers trip over."""
    words = _WORD.findall(data) or [b""]
    for _ in range(rng.randint(1, 3)):
        i, j = rng.randrange(len(words)), rng.randrange(len(words))
        kind = rng.randrange(4)
        if kind == 0:
            words[i] = rng.choice(_HOSTILE)
        elif kind == 1:
            words[i], words[j] = words[j], words[i]
        elif kind == 2:
            del words[min(i, j) : min(i, j) + rng.randint(1, 8)]
        else:
            words[j:j] = words[i : i + rng.randint(1, 20)]
        words = words or [b""]
    return b"".join(words)


def _value_changed(rng: random.Random, value: Any) -> Any:
    """The tree with one value replaced, left out, doubled, or under another key."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        kind = rng.randrange(8)
        if kind == 0:
            return {k: v for k, v in value.items() if k != key}
        if kind == 1:
            return {**value, rng.choice(["", "x", f"{key}2"]): value[key]}
        return {**value, key: _value_changed(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        i = rng.randrange(len(value))
        kind = rng.randrange(8)
        if kind == 0:
            return value[:i] + value[i + 1 :]
        if kind == 1:
            return value[:i] + [value[i]] * rng.randint(2, 50) + value[i + 1 :]
        return [*value[:i], _value_changed(rng, value[i]), *value[i + 1 :]]
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.5:
        return value + rng.choice([-1, 1, 7, -(2**31), 2**40])
    return rng.choice(_VALUES)


def json_changed(rng: random.Random, data: bytes) -> bytes:
    """One to three values of a JSON document changed."""
    value = json.loads(data)
    for _ in range(rng.randint(1, 3)):
        value = _value_changed(rng, value)
    return json.dumps(value).encode()


def msgpack_changed(rng: random.Random, data: bytes) -> bytes:
    """One to three values of a MessagePack document changed."""
    value = msgpack.unpackb(data)
    for _ in range(rng.randint(1, 3)):
        value = _value_changed(rng, value)
    return bytes(msgpack.packb(_packable(value)))


def _packable(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _packable(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_packable(v) for v in value]
    return value if not isinstance(value, int) or -(2**63) <= value < 2**64 else 0


def archive_changed(rng: random.Random, data: bytes) -> bytes:
    """A member's content or name changed, with a checksum that is right."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [[name, archive.read(name)] for name in archive.namelist()]
    member = rng.choice(members)
    if rng.random() < 0.2:
        member[0] = rng.choice(["in0.npy", "in7.npy", "../x.npy", "in0", "", "lo0.npy"])
    else:
        head = member[1][:120]  # where the header is
        member[1] = rng.choice((bytes_changed, words_changed))(rng, head) + member[1][120:]
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, content in dict(members[: rng.randint(1, len(members) + 1)]).items():
            archive.writestr(zipfile.ZipInfo(name or "x"), content)
    return written.getvalue()


def sealed_changed(rng: random.Random, data: bytes) -> bytes:
    """The header of a serialised executable changed, with a hash that is right."""
    mark, _, content = data.partition(b"\n")
    header, _, body = content.partition(b"\n")
    content = rng.choice((json_changed, words_changed))(rng, header) + b"\n" + body
    return mark.rpartition(b" ")[0] + b" " + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def mutated(rng: random.Random, seeds: Sequence[bytes], mutations: Sequence[Mutation]) -> bytes:
    """One of the sound inputs, damaged in one way; rarely the head of one with the tail of another."""
    data = rng.choice(seeds)
    if rng.random() < 0.05:
        other = rng.choice(seeds)
        return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]
    return rng.choice(mutations)(rng, data)
