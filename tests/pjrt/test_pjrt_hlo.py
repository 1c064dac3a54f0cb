"""Optimised programs: what our reader finds in them, beside XLA's own reader, and bytes that are none."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, PjrtCall
from tenferro_ref.pjrt import Client, HloInstruction, hlo_instructions
from tenferro_ref.pjrt.proto import MESSAGES
from tests.pjrt.conftest import MakeClient

PROGRAM = """
func.func public @main(%a: tensor<8x8xf32>, %b: tensor<8x3xcomplex<f64>>, %c: tensor<9xi64>) -> (tensor<8xf32>, tensor<8x3xcomplex<f64>>, tensor<9xi64>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.sine %0 : tensor<8x8xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %3 = stablehlo.exponential %b : tensor<8x3xcomplex<f64>>
  %4 = "stablehlo.sort"(%c) ({
    ^bb0(%x: tensor<i64>, %y: tensor<i64>):
      %5 = stablehlo.compare LT, %x, %y : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
  }) : (tensor<9xi64>) -> tensor<9xi64>
  return %2, %3, %4 : tensor<8xf32>, tensor<8x3xcomplex<f64>>, tensor<9xi64>
}
"""
TYPES = [(DType.F32, (8, 8)), (DType.C64, (8, 3)), (DType.I64, (9,))]


def optimised(client: Client) -> tuple[bytes, str]:
    with client.compile(PROGRAM, parameters=TYPES) as executable:
        return executable.optimized_program()


def test_instructions_of_a_program(client: Client) -> None:
    found = set(hlo_instructions(*optimised(client)))
    wanted = {
        HloInstruction("sine", "f32", ""),
        HloInstruction("reduce", "f32", ""),
        HloInstruction("complex", "c128", ""),  # exp of a complex number is expanded
        HloInstruction("sort", "s64", ""),
        HloInstruction("compare", "pred", ""),
        HloInstruction("fusion", "c128", "kLoop"),
        HloInstruction("tuple", "tuple", ""),
    }
    assert wanted <= found
    assert any(i.opcode in ("dot", "custom-call") for i in found)


def test_xlas_own_reader_finds_the_same(client: Client) -> None:
    xla = pytest.importorskip("jaxlib.xla_client").hlo
    program, format = optimised(client)
    assert format == "hlo_with_config"
    module = (
        MESSAGES["HloModuleProtoWithConfig"].FromString(program).hlo_module
    )  # fields that are not declared are kept
    text = xla.HloModule.from_serialized_hlo_module_proto(module.SerializeToString()).to_string()
    lines = re.findall(r"^ +(?:ROOT )?\S+ = (\(|\w+)(?:.*?) ([a-z][a-z-]*)\(", text, re.MULTILINE)
    expected = Counter((opcode, "tuple" if kind == "(" else kind) for kind, opcode in lines)
    assert len(expected) > 10
    assert Counter((i.opcode, i.element) for i in hlo_instructions(program, format)) == expected


def test_a_closed_executable_and_a_plugin_that_does_not_tell(client: Client, fake_client: MakeClient) -> None:
    executable = client.compile(PROGRAM, parameters=TYPES)
    executable.close()
    with pytest.raises(PjrtCall, match="closed"):
        executable.optimized_program()
    fake = fake_client().compile(PROGRAM, parameters=TYPES)
    with pytest.raises(PjrtCall, match="does not have this function"):
        fake.optimized_program()


# --- bytes ------------------------------------------------------------------------------------------------------------


def encoded(*instructions: dict[str, Any], kind: str = "HloModuleProto") -> bytes:
    """A module with one computation for each instruction; `kind` may also be the message around it."""
    module = {"computations": [{"instructions": [instruction]} for instruction in instructions]}
    return bytes(MESSAGES[kind](**module if kind == "HloModuleProto" else {"hlo_module": module}).SerializeToString())


INSTRUCTIONS: tuple[dict[str, Any], ...] = (
    {"opcode": "add", "shape": {"element_type": 11}},
    {"opcode": "fusion", "shape": {"element_type": 12}, "fusion_kind": "kLoop"},
    {"opcode": "custom-call", "shape": {"element_type": 99}, "custom_call_target": "TopK"},
)
READ = [
    HloInstruction("add", "f32", ""),
    HloInstruction("fusion", "f64", "kLoop"),
    HloInstruction("custom-call", "type 99", "TopK"),
]
#: Recorded before there were message classes: among others with names, ids and a field of 32 bits, which are not read.
MODULE = bytes.fromhex(
    "0a046d61696e1a2a12130a056164642e3112036164641a02100b98020512131206667573696f6e1a02100c5a056b4c6f6f70"
    "1a20121e120b637573746f6d2d63616c6c1a021063e20104546f704bd50531323334"
)


def test_a_module_with_and_without_its_configuration() -> None:
    assert hlo_instructions(MODULE, "hlo") == READ
    assert hlo_instructions(encoded(*INSTRUCTIONS), "hlo") == READ
    around = encoded(*INSTRUCTIONS, kind="HloModuleProtoWithConfig")
    assert hlo_instructions(around + b"\x12\x02\x08\x01", "hlo_with_config") == READ


@pytest.mark.parametrize(
    ("data", "format", "detail"),
    [
        (MODULE, "mlir", "format is 'mlir'"),
        (b"", "hlo", "no instructions"),
        (b"", "hlo_with_config", "no instructions"),
        (MODULE[:-1], "hlo", "not a protobuf message"),
        (encoded({}), "hlo", "no opcode"),
        (encoded({"opcode": "add"}).replace(b"add", b"\xffdd"), "hlo", "UTF-8"),
        (encoded({"opcode": "add"}).replace(b"\x12\x03add", b"\x10\x03\x10\x03\x03"), "hlo", "not a protobuf message"),
        (b"\x1b", "hlo", "not a protobuf message"),
        (b"\x80" * 11, "hlo", "not a protobuf message"),
        (b"\x02\x00", "hlo", "not a protobuf message"),
    ],
)
def test_what_is_no_module(data: bytes, format: str, detail: str) -> None:
    with pytest.raises(FormatError, match=detail):
        hlo_instructions(data, format)


@settings(max_examples=50)
@given(st.integers(0, len(MODULE) - 1), st.integers(0, 255), st.integers(0, len(MODULE)))
def test_damaged_bytes_are_read_or_refused(at: int, byte: int, end: int) -> None:
    damaged = bytearray(MODULE)
    damaged[at] = byte
    try:
        found = hlo_instructions(bytes(damaged[:end]), "hlo")
    except FormatError:
        return
    assert found
