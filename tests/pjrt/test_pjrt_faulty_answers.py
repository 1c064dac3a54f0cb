"""What a plugin answers and must not: typed errors that say it, and nothing left behind."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, InvalidArgument, PjrtCall
from tenferro_ref.pjrt import Client
from tenferro_ref.pjrt.serialized import MAGIC
from tests.pjrt.conftest import MakeClient
from tests.pjrt.test_pjrt_contract import COPY, SPEC, X, Y, compiled, live


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("no_code", r"PJRT_LoadedExecutable_Execute failed \(UNKNOWN\): the fake plugin was asked to fail"),
        ("execute_error:0", r"PJRT_LoadedExecutable_Execute failed \(UNKNOWN\): the fake plugin was asked to fail"),
        ("upload_error:8", r"PJRT_Client_BufferFromHostBuffer failed \(RESOURCE_EXHAUSTED\): .* asked to fail later"),
        ("destroy_error", r"PJRT_Buffer_Destroy failed \(INTERNAL\)"),
    ],
)
def test_an_error_is_told_and_nothing_is_left(
    fake_client: MakeClient, monkeypatch: pytest.MonkeyPatch, mode: str, message: str
) -> None:
    client = fake_client()
    executable = compiled(client)
    before = live(client)
    monkeypatch.setenv("FAKE_PJRT_MODE", mode)
    with pytest.raises(PjrtCall, match=message):
        executable.run([X, Y])
    monkeypatch.delenv("FAKE_PJRT_MODE")
    assert live(client) == before


@pytest.mark.parametrize(
    ("mode", "message"), [("null_types", "2 results, without types or ranks"), ("null_dims", "4 axes, without extents")]
)
def test_announcements_that_are_null(fake_client: MakeClient, mode: str, message: str) -> None:
    with pytest.raises(PjrtCall, match=message):
        compiled(fake_client(mode))


def test_a_serialised_executable_that_nothing_frees(fake_client: MakeClient) -> None:
    client = fake_client("null_deleter")
    assert client.deserialize(compiled(client).serialize()).results == (SPEC, SPEC)


def test_a_flag_is_known_by_the_type_of_its_value(fake_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    client, asked = fake_client(), list[Any]()

    def compile(self: Client, code: str, options: dict[str, Any], real: Any = Client.compile) -> Any:
        asked.append(options["flag"])
        return real(self, code, options)

    monkeypatch.setattr(Client, "compile", compile)
    for value in (True, 1, 1.0, True, 1, 1.0):
        assert client.knows("flag", value)
    assert [type(value) for value in asked] == [bool, int, float]


@pytest.mark.parametrize(
    "types",
    [3, [(DType.F32, (-1,))], [(DType.F32, ("a",))], [(DType.F32, None)], [(DType.F32, 4)], [DType.F32]],
    ids=str,
)
def test_types_that_are_none(fake_client: MakeClient, types: Any) -> None:
    for name in ("parameters", "results"):
        with pytest.raises(InvalidArgument, match=f"compile: {name}: .* is no "):
            fake_client().compile(COPY, **{name: types})


def test_a_header_with_a_shape_that_is_none(fake_client: MakeClient) -> None:
    client = fake_client()
    line, _, body = compiled(client).serialize().partition(b"\n")[2].partition(b"\n")
    content = json.dumps({**json.loads(line), "parameters": [["F32", [-1]]]}).encode() + b"\n" + body
    with pytest.raises(FormatError, match=r"a shape that is none: \[-1\]"):
        client.deserialize(b"%s %s\n%s" % (MAGIC, sha256(content).hexdigest().encode(), content))
