"""Compile options against an independent reading of protobuf's wire format."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tenferro_ref.errors import InvalidArgument
from tenferro_ref.pjrt import Client, encode_compile_options
from tests.pjrt.conftest import MakeClient


def decode(data: bytes) -> list[tuple[int, Any]]:
    """Fields of one message in order: varints as int, fixed64 as float, the rest as bytes."""
    fields: list[tuple[int, Any]] = []
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(data):
        tag = varint()
        if tag & 7 == 0:
            fields.append((tag >> 3, varint()))
        elif tag & 7 == 1:
            fields.append((tag >> 3, struct.unpack_from("<d", data, position)[0]))
            position += 8
        else:
            assert tag & 7 == 2
            size = varint()
            fields.append((tag >> 3, data[position : position + size]))
            assert len(fields[-1][1]) == size
            position += size
    return fields


def test_default_has_one_replica_and_one_partition() -> None:
    ((number, build),) = decode(encode_compile_options())
    assert number == 3
    assert decode(build) == [(4, 1), (5, 1)]


def test_numbers() -> None:
    ((_, build),) = decode(encode_compile_options(num_replicas=300, num_partitions=2, device_ordinal=7))
    assert decode(build) == [(1, 7), (4, 300), (5, 2)]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("algsimp,dce", (1, b"algsimp,dce")),
        ("", (1, b"")),
        ("\u00e9" * 100, (1, ("\u00e9" * 100).encode())),
        (True, (2, 1)),
        (False, (2, 0)),
        (0, (3, 0)),
        (2**63 - 1, (3, 2**63 - 1)),
        (-1, (3, 2**64 - 1)),
        (-(2**63), (3, 2**63)),
        (0.1, (4, 0.1)),
        (float("-inf"), (4, float("-inf"))),
    ],
)
def test_override(value: str | bool | int | float, field: tuple[int, Any]) -> None:
    build, (number, entry) = decode(encode_compile_options({"xla_flag": value}))
    assert (build[0], number) == (3, 7)
    (key, name), (value_key, override) = decode(entry)
    assert (key, name, value_key) == (1, b"xla_flag", 2)
    assert decode(override) == [field]


def test_order_of_overrides_does_not_matter() -> None:
    assert encode_compile_options({"a": 1, "b": 2}) == encode_compile_options({"b": 2, "a": 1})


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, None, b"x", [1], "\ud800"])
def test_what_cannot_be_encoded(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="flag"):
        encode_compile_options({"flag": value})


@pytest.mark.parametrize("name", ["num_replicas", "num_partitions"])
@pytest.mark.parametrize("count", [0, -1, 2**31])
def test_counts_on_which_plugins_abort(name: str, count: int) -> None:
    with pytest.raises(InvalidArgument, match=name):
        encode_compile_options(**{name: count})  # type: ignore[arg-type]


def test_empty_options_never_reach_a_plugin(fake_client: MakeClient) -> None:
    with pytest.raises(InvalidArgument, match="empty bytes"):
        fake_client().compile("func.func @main() {}", b"")


def test_client_options_reach_the_plugin(fake_client: MakeClient) -> None:
    client = fake_client("", text="a b", count=-3, flag=True, ratio=0.5)
    assert client.platform_version == "fake text='a b' count=-3 flag=true ratio=0.5"


def test_client_option_of_another_type(fake_client: MakeClient) -> None:
    with pytest.raises(InvalidArgument, match="names"):
        fake_client("", names=["a"])


def test_override_reaches_the_plugin(client: Client) -> None:
    text = "func.func public @main() -> tensor<f32> {%0 = stablehlo.constant dense<1.0> : tensor<f32>\n return %0 : tensor<f32>}"
    with client.compile(text, {"xla_cpu_enable_fast_min_max": False}, parameters=[]) as executable:
        assert executable.run([])[0] == 1
