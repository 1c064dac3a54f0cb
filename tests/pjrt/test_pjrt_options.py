"""Compile options as bytes, and options of a client."""

from __future__ import annotations

from typing import Any

import pytest

from tenferro_ref.errors import InvalidArgument
from tenferro_ref.pjrt import Client, encode_compile_options
from tests.pjrt.conftest import MakeClient

#: Overrides, and the bytes that an encoder written by hand after protobuf's specification gave for them.
RECORDED: list[tuple[dict[str, Any], str]] = [
    ({}, "1a0420012801"),
    (
        {"xla_cpu_enable_fast_min_max": False},
        "1a04200128013a210a1b786c615f6370755f656e61626c655f666173745f6d696e5f6d617812021000",
    ),
    ({"b": True, "a": "", "é": "ü"}, "1a04200128013a070a016112020a003a070a0162120210013a0a0a02c3a912040a02c3bc"),
    (
        {"i": -1, "j": 2**63 - 1, "k": 0, "l": -(2**63)},
        "1a04200128013a100a0169120b18ffffffffffffffffff013a0f0a016a120a18ffffffffffffffff7f3a070a016b120218003a100a01"
        "6c120b1880808080808080808001",
    ),
    (
        {"f": -0.5, "g": 0.0, "h": float("-inf")},
        "1a04200128013a0e0a0166120921000000000000e0bf3a0e0a016712092100000000000000003a0e0a0168120921000000000000f0ff",
    ),
    ({"s": "x" * 128}, "1a04200128013a89010a017312830" + "10a8001" + "78" * 128),
    ({"": ""}, "1a04200128013a060a0012020a00"),
]


@pytest.mark.parametrize(("overrides", "recorded"), RECORDED)
def test_bytes_of_overrides(overrides: dict[str, Any], recorded: str) -> None:
    assert encode_compile_options(overrides).hex() == recorded


def test_bytes_of_numbers() -> None:
    encoded = encode_compile_options(num_replicas=2, num_partitions=300, device_ordinal=7)
    assert encoded.hex() == "1a070807200228ac02"


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
